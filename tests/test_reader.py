"""Tried as a new reader: from the front page to one measured answer in three clicks or fewer, on a desk and on a
phone."""

import re

import pytest

pytestmark = pytest.mark.full
MOST_CLICKS = 3
# A number with its unit, a count of runs, or one of the endings. Golden records are cut down, so that controls may
# fail: then the answer is that.
MEASURED = r"\d (ns|µs|MiB)|\d+ of \d+|is faster|oo close to call|is withheld"


class Reader:
    """A browser at the front page that counts what its reader does."""

    def __init__(self, tab):
        self.tab, self.clicks = tab, 0
        tab.wait_for_url("**/preface.html")

    def choose(self, name, label):
        self.clicks += 1
        self.tab.select_option(f".ffi-chooser select[name={name}]", label=label)

    def follow(self, link):
        self.clicks += 1
        link.click()
        self.tab.wait_for_load_state()

    def question(self, words):
        """The one item of a list on the front page that asks this."""
        found = self.tab.locator("article li").filter(has_text=words)
        assert found.count() == 1, (words, found.count())
        return found


@pytest.fixture(params=[1280, 390], ids=["desktop", "phone"])
def reader(request, open_tab, golden_book):
    reader = Reader(open_tab((golden_book / "index.html").as_uri(), request.param))
    yield reader
    assert reader.clicks <= MOST_CLICKS


def test_pyo3_or_pybind11_for_str_without_the_gil(reader):
    reader.tab.wait_for_selector(".ffi-chooser select")
    chosen = {"one": "PyO3", "other": "pybind11", "signature": "str in, ASCII", "CPython": "3.14t"}
    for name, label in chosen.items():
        select = reader.tab.locator(f".ffi-chooser select[name={name}]")
        if select.evaluate("each => each.selectedOptions[0].label") != label:
            reader.choose(name, label)
    answer = reader.tab.locator(".ffi-chooser-answer")
    assert all(words in answer.inner_text() for words in ("PyO3", "pybind11"))
    assert re.search(MEASURED, answer.inner_text())
    # Its cell in the matrix, marked by its address.
    if reader.clicks < MOST_CLICKS:
        reader.follow(answer.get_by_role("link").first)
        cell = re.search(r"matrix\.html#(3-14t-(pyo3|pybind11)-str-in-ascii)$", reader.tab.url)
        assert cell, reader.tab.url
        reader.tab.locator(f"[id='{cell[1]}'].ffi-opened").wait_for()


@pytest.mark.parametrize(
    ("words", "leads_to"),
    [
        # What a reader takes home has no answer of its own.
        ("Choose", "book/decision_guide.html"),
        ("Make my extension ready", "book/free_threading.html"),
        ("Measure mine", "book/measure_yours.html"),
        ("What does CDLL cost", "loaders/loaders.html"),
        ("A C global, with the GIL, through PyDLL", "races/races.html"),
        ("The same through ctypes.CDLL", "races/races.html"),
        ("Which allocator keeps a long-lived server small", "arenas/arenas.html"),
    ],
)
def test_a_question_is_answered_where_it_stands_and_leads_on(reader, words, leads_to):
    asked = reader.question(words)
    assert leads_to.startswith("book/") or re.search(MEASURED, asked.inner_text()), asked.inner_text()
    reader.follow(asked.get_by_role("link").last)
    assert leads_to in reader.tab.url


def test_a_corner_leads_to_its_section(reader):
    links = reader.tab.locator(".ffi-corners a[href*=notebooks]:visible")
    assert links.count() >= 7
    reader.follow(links.first)
    name = reader.tab.evaluate("decodeURIComponent(location.hash.slice(1))")
    reader.tab.locator(f"[id='{name}']").first.wait_for(state="attached")
