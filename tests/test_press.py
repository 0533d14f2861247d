"""Chapters through papermill and pages through Jupyter Book, on real kernels."""

import json
import os
import signal
import threading
import time

import nbformat
import pytest
from faults.small import running

from ffilab import paths
from ffilab.errors import UserError
from ffilab.judge import claims, verdicts
from ffilab.press import chapters, execute, render
from ffilab.press.chapters import Chapter
from tests.test_slides import check_deck

pytestmark = pytest.mark.slow


def make_notebook(folder, *cells, kernel="cpython-3.14", name="victim"):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
    chapter = Chapter(name, folder / "notebooks", folder / "executed")
    chapter.source.parent.mkdir(parents=True)
    nbformat.write(notebook, chapter.source)
    return chapter


@pytest.fixture
def out(tmp_path):
    folder = tmp_path / "executed" / "victim"
    folder.mkdir(parents=True)
    (folder / "victim.ipynb").write_text("what stood here before")
    return folder


def marked_processes():
    """Kernels and workers of chapters that this test session runs, and of no other on the machine."""
    mine = os.environ["FFILAB_BUILD"]
    return running(lambda one: "FFILAB_RUN" in one.environ() and one.environ().get("FFILAB_BUILD") == mine)


def test_kernel_that_is_not_there(tmp_path, out):
    chapter = make_notebook(tmp_path, "1", kernel="cpython-9.99")
    with pytest.raises(UserError, match="not set up"):
        execute.execute(chapter, "smoke")


def test_good_chapter_replaces_the_old_one(tmp_path, out):
    path = execute.execute(make_notebook(tmp_path, "import sys", "print(sys.version)"), "smoke")
    cells = nbformat.read(path, as_version=4).cells
    assert [c.execution_count for c in cells] == [1, 2]
    assert "3.14" in cells[1].outputs[0].text


def test_interrupt_leaves_no_process_and_no_file(tmp_path, out):
    chapter = make_notebook(tmp_path, "import time; time.sleep(300)")

    def interrupt():
        while not marked_processes():
            time.sleep(0.05)
        time.sleep(1.5)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        execute.execute(chapter, "smoke")
    assert (out / "victim.ipynb").read_text() == "what stood here before"
    assert marked_processes() == []


def test_unknown_chapter_lists_the_known_ones():
    with pytest.raises(UserError, match="loaders"):
        chapters.chapter("no_such_chapter")


@pytest.fixture(scope="module")
def html():
    """Every chapter in smoke budget, rendered with warnings as errors."""
    for chapter in chapters.chapters():
        execute.execute(chapter, "smoke")
    return render.render().parent


def pages():
    return ["book/preface", "book/ledger", "book/status", "book/adding"] + [
        page for each in chapters.chapters() for page in each.pages
    ]


def test_pages_are_there_and_smoke_is_marked(html):
    assert (html / "index.html").exists()
    for page in pages():
        assert (html / f"{page}.html").stat().st_size > 5_000
    assert "smoke test: no result" in (html / "notebooks" / "loaders" / "loaders.html").read_text()


@pytest.mark.parametrize("chapter", chapters.chapters(), ids=lambda each: each.corner)
def test_a_page_made_again_from_its_records_is_the_same(html, tmp_path, chapter):
    again = Chapter(chapter.corner, executed_folder=tmp_path / "executed")
    execute.execute(again, "smoke", paths.RECORDS)
    pages = [nbformat.read(path, as_version=4) for path in (chapter.executed, again.executed)]
    for live, made in zip(*(page.cells for page in pages)):
        assert live.get("outputs") == made.get("outputs"), live.id
    assert again.facts["read"]
    assert again.changed() == []


def test_ledger_of_a_smoke_run_judges_nothing(html):
    expected = {
        claim.id: verdicts.NOT_MEASURABLE if claim.not_measurable else verdicts.CANNOT_TEST
        for claim in claims.all_claims()
    }
    rows = json.loads((paths.RESULTS / "ledger.json").read_text())
    assert {row["id"]: row["verdict"] for row in rows} == expected
    # Only the claim that rests on others names its parts: each has no number.
    assert {part["verdict"] for row in rows for part in row["parts"]} <= {verdicts.NO_NUMBER}


def test_the_ledger_says_how_far_to_trust_it(html):
    """How many wrong verdicts to expect stands above the claims; the rules' characteristics have a page of their own."""
    assert "wrong verdicts among them at most" in (html / "book" / "ledger.html").read_text()
    page = (html / "book" / "characteristics.html").read_text()
    assert "The largest share of wrong verdicts" in page
    assert "the wrong sign" in page


@pytest.mark.parametrize("chapter", chapters.chapters(), ids=lambda each: each.corner)
def test_glued_numbers_all_arrived(html, chapter):
    text = (html / f"{chapter.page}.html").read_text()
    assert 'class="pasted-text"' in text
    assert "{glue:" not in text


@pytest.mark.parametrize("chapter", chapters.chapters(), ids=lambda each: each.corner)
def test_every_chapter_has_slides(html, chapter):
    check_deck(html / "slides" / f"{chapter.corner}.html")


@pytest.mark.parametrize("width", [1280, 390], ids=["desktop", "phone"])
@pytest.mark.parametrize("page", pages())
def test_page_in_a_browser(html, browser, page, width):
    """No console error, no failed request, no sideways scrolling, alt text on every picture, one of light and dark seen."""
    tab = browser.new_page(viewport={"width": width, "height": 900})
    complaints = []
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    tab.goto((html / f"{page}.html").as_uri())
    # Figures are fetched when they come into sight; here all of them.
    tab.evaluate("for (const image of document.images) image.loading = 'eager'")
    tab.wait_for_function("[...document.images].every(image => image.complete)")
    tab.wait_for_timeout(300)
    assert complaints == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate("[...document.images].filter(i => !i.alt.trim() || !i.naturalWidth).length") == 0
    scrolled = """[...document.querySelectorAll('.ffi-table')].filter(box => box.scrollWidth > box.clientWidth).map(box => {
        box.scrollLeft = 150;
        return box.querySelector('td').getBoundingClientRect().left - box.getBoundingClientRect().left;
    })"""
    assert all(abs(left) < 2 for left in tab.evaluate(scrolled)), "a first column does not stay in sight"
    widths = tab.evaluate(
        "[...document.querySelectorAll('.ffi-figure img')].filter(i => i.offsetWidth).map(i => i.width)"
    )
    assert all(found >= 600 for found in widths), "a figure is too small to be read"
    for mode in ("light", "dark"):
        tab.evaluate("mode => { document.documentElement.dataset.theme = mode }", mode)
        seen = tab.evaluate(
            "[...document.querySelectorAll('.ffi-figure img')].filter(i => i.offsetWidth).map(i => i.className)"
        )
        assert set(seen) <= {f"ffi-{mode}"}
        assert len(seen) == tab.evaluate("document.querySelectorAll('.ffi-figure').length")
    tab.close()
