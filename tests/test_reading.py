"""The rendered book in a browser: weight, keyboard, axe, search, links; on pages made from golden records."""

import functools
import http.server
import re
import threading
import tomllib
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import axe_playwright_python
import pytest
from bs4 import BeautifulSoup

from ffilab.page import contents
from ffilab.page.render import SEARCH
from ffilab.run.paths import ROOT

# Most of it is the theme.
BUDGET_BYTES = 4_000_000
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text()
# Functions that return what is wrong with a page.
READING = (Path(__file__).parent / "helpers" / "reading.js").read_text()
# A thousand rows alike: to look at the colours of each takes half a minute.
MATRIX = "book/matrix.html"
FOUR = ("book/preface.html", "book/ledger.html", MATRIX, "notebooks/loaders/loaders.html")


@pytest.fixture(scope="module")
def pages(golden_book):
    """All but the one that only leads to the front page."""
    found = {p.relative_to(golden_book).as_posix() for p in golden_book.rglob("*.html") if "_static" not in p.parts}
    return sorted(found - {"index.html"})


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address(golden_book):
    """The book on loopback, as a server gives it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(golden_book)))
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def serious(tab, contrast: bool) -> list[tuple]:
    """What axe finds on the page that is serious. contrast: of colours, too, which takes most of the time."""
    tab.evaluate(AXE)
    rules = {"color-contrast": {"enabled": contrast}}
    answer = tab.evaluate("rules => axe.run(document, {resultTypes: ['violations'], rules})", rules)
    return [
        (each["id"], each["nodes"][0]["target"], each["nodes"][0]["failureSummary"])
        for each in answer["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def problems(browser, golden_book, address, page, width=1280, mode="light") -> list:
    """What is wrong with a page as a reader meets it: errors, outside requests, weight, keyboard, axe."""
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=mode, reduced_motion="reduce")
    found = []
    tab.on("request", lambda request: request.url.startswith((address, "data:", "blob:")) or found.append(request.url))
    tab.on("response", lambda answer: found.append(answer.url) if answer.status >= 400 else None)
    tab.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: found.append(str(error)))
    tab.goto(address + page)
    tab.wait_for_timeout(200)
    loaded = tab.evaluate("performance.getEntriesByType('resource').map(each => each.name)")
    files = {golden_book / unquote(urlsplit(url).path).lstrip("/") for url in (address + page, *loaded)}
    weight = sum(file.stat().st_size for file in files if file.is_file())
    found += [f"{weight} bytes"] * (weight > BUDGET_BYTES)
    tab.evaluate(READING)
    found += tab.evaluate("unreached()") + tab.evaluate("mode => unreadable(mode)", mode)
    # Before axe, which asks for style sheets by itself.
    found = [*found, *serious(tab, contrast=width > 600 and page != MATRIX)]
    tab.close()
    return found


@pytest.mark.parametrize("page", FOUR)
def test_a_page_is_whole_light_and_usable_by_all(browser, golden_book, address, page):
    assert problems(browser, golden_book, address, page) == []


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("width", "mode"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_every_page_is(browser, golden_book, pages, address, width, mode):
    found = {page: problems(browser, golden_book, address, page, width, mode) for page in pages}
    assert {page: wrong for page, wrong in found.items() if wrong} == {}


PROOF = "details.ffi-proof"


def crowded(browser, address, page) -> list[str]:
    """What is too wide on a page, or has no caption, at 1,280 px; and whether its proof is folded and opens by an
    address."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    tab.goto(address + page)
    tab.wait_for_timeout(100)
    tab.evaluate(READING)
    found = tab.evaluate("crowded()")
    for number in range(tab.locator(PROOF).count()):
        proof = f"document.querySelectorAll('{PROOF}')[{number}]"
        found += ["the proof is open"] * tab.evaluate(f"{proof}.open")
        if inside := tab.evaluate(f"{proof}.querySelector('[id]:not(svg *)')?.id"):
            tab.goto(f"{address}{page}#{inside}")
            tab.wait_for_timeout(100)
            # On the same page only the address changed.
            found += [f"#{inside} does not open the proof"] * (not tab.evaluate(f"{proof}.open"))
            tab.reload()
            tab.wait_for_timeout(100)
            found += [f"a page opened at #{inside} has its proof folded"] * (not tab.evaluate(f"{proof}.open"))
    tab.close()
    return found


def test_nothing_in_sight_is_cut_off(browser, address):
    assert crowded(browser, address, "notebooks/loaders/loaders.html") == []


@pytest.mark.full
@pytest.mark.timeout(900)
def test_nothing_in_sight_is_cut_off_on_any_page(browser, address, pages):
    found = {page: crowded(browser, address, page) for page in pages}
    wrong = [f"{page}: {one}" for page, several in found.items() for one in several]
    assert not wrong, "\n".join(wrong)


def test_the_search_of_the_theme_works(address, open_tab):
    tab = open_tab(f"{address}search.html?q=PyDLL")
    tab.wait_for_selector("ul.search li a")
    addresses = tab.evaluate("[...document.querySelectorAll('ul.search li a')].map(each => each.href)")
    assert any("loaders/loaders" in found for found in addresses)


def test_what_readers_type_leads_to_its_page_first(address, open_tab):
    """Words as they are typed, some of them on no page, and questions of several words."""
    typed = tomllib.loads((ROOT / "book" / SEARCH).read_text())["asked"]
    tab, first = open_tab(f"{address}search.html"), {}
    for words in typed:
        tab.goto(f"{address}search.html?q={quote(words)}")
        tab.wait_for_selector("ul.search li a")
        first[words] = tab.evaluate("document.querySelector('ul.search li a').href")
    assert {
        words: first[words] for words, pages in typed.items() if not any(page in first[words] for page in pages)
    } == {}


def test_what_leads_to_a_section_stands_below_its_heading(golden_book):
    places = tomllib.loads((ROOT / "book" / SEARCH).read_text())["words"]
    for page, _, section in [place.partition("#") for place in places if "#" in place]:
        soup = BeautifulSoup((golden_book / f"{page}.html").read_text(), "html.parser")
        parts = [target.find_parent("section") for target in soup.select("[id^=index-]")]
        headings = [part.find(re.compile("^h[1-6]$")).get_text().rstrip("#") for part in parts if part]
        assert section.replace("`", "") in headings, (page, section, headings)


def test_the_side_bar_fits(address, open_tab):
    """What is open at first: groups fold, and the back matter is one page of links."""
    tab = open_tab(f"{address}book/preface.html")
    links = tab.locator(".bd-sidebar-primary nav a:visible")
    assert 15 < links.count() <= 25, links.all_inner_texts()


@pytest.mark.full
def test_only_the_figures_in_sight_are_fetched(address, open_tab):
    """Of light and dark one, and what lies far below none."""
    tab = open_tab(address + "notebooks/boundary/boundary.html")
    tab.wait_for_load_state("networkidle")
    fetched = "performance.getEntriesByType('resource').map(each => each.name).filter(name => name.includes('/files/'))"
    at_first = set(tab.evaluate(fetched))
    for _ in range(80):
        tab.mouse.wheel(0, 900)
        tab.wait_for_timeout(15)
    tab.wait_for_load_state("networkidle")
    in_the_end = set(tab.evaluate(fetched))
    assert at_first < in_the_end
    assert in_the_end == set(tab.evaluate("[...document.querySelectorAll('img.ffi-light')].map(each => each.src)"))


@pytest.mark.full
def test_the_first_tabs_lead_to_the_content_and_show_where_they_are(address, open_tab):
    tab = open_tab(address + "notebooks/loaders/loaders.html")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to main content"
    tab.keyboard.press("Enter")
    tab.evaluate(READING)
    seen = set()
    for _ in range(40):
        tab.keyboard.press("Tab")
        seen.add(tuple(tab.evaluate("focused()")))
    assert {tag for tag, _ in seen} >= {"A", "BUTTON"}
    assert {tag for tag, is_shown in seen if not is_shown} <= {"BODY"}
    # A folded part opens by key.
    tab.evaluate("document.querySelector('details.toggle-details, details').querySelector('summary').focus()")
    before = tab.evaluate("document.activeElement.parentElement.open")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.parentElement.open") != before


def test_every_link_inside_the_book_leads_somewhere(golden_book, pages):
    read = functools.cache(lambda path: BeautifulSoup(path.read_text(), "html.parser"))
    anchors = functools.cache(lambda path: {each["id"] for each in read(path).select("[id]")})
    broken = []
    for page in pages:
        here = golden_book / page
        for element in read(here).select("[href], [src]"):
            url = element.get("href") or element.get("src")
            parts = urlsplit(url)
            if parts.scheme or url == "#":
                continue
            target = (here.parent / unquote(parts.path)).resolve() if parts.path else here
            if not target.is_file() or (
                parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in anchors(target)
            ):
                broken.append((page, url))
    assert broken == []


def test_every_figure_and_table_has_its_data(golden_book, pages):
    # A translated page has no folds: the data stand on the English one.
    for page in [page for page in pages if not page.endswith("_zh_TW.html")]:
        text = (golden_book / page).read_text()
        assert "data:image/svg" not in text.replace("data:image/svg+xml;charset", "") or page.startswith("book"), page
        assert "data:text/csv" not in text, page
        shown = text.count('<figure class="ffi-figure">') + text.count('<div class="ffi-table"')
        # Where some columns are shown, the whole table is folded below them, and has the data.
        shown -= text.count("The whole table: ")
        assert shown <= text.count('class="ffi-csv"') + text.count("<a download href="), page


def test_terms_are_linked_once_on_a_page(golden_book):
    for chapter in contents.chapters():
        found = re.findall(r'glossary\.html#(term-[\w-]+)"', (golden_book / f"{chapter.page}.html").read_text())
        assert found, chapter.name
    assert "std-term" in (golden_book / "notebooks/races/races.html").read_text()


@pytest.mark.full
def test_paper_shows_the_page_and_nothing_around_it(address, open_tab, tmp_path):
    tab = open_tab(address + "notebooks/loaders/loaders.html", color_scheme="dark")
    tab.emulate_media(media="print", color_scheme="dark")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    hidden = "[...document.querySelectorAll('.bd-sidebar-primary, .bd-sidebar-secondary, .copybtn, .ffi-dark')]"
    assert tab.evaluate(f"{hidden}.filter(each => each.offsetWidth).length") == 0
    # A figure that was not in sight is fetched when it is to be printed.
    tab.wait_for_function("[...document.querySelectorAll('.ffi-light')].every(each => each.offsetWidth)")
    assert tab.evaluate("[...document.querySelectorAll('details')].every(each => each.open)")
    assert tab.evaluate("document.documentElement.dataset.theme") == "light"
    path = tmp_path / "page.pdf"
    tab.pdf(path=path)
    assert path.read_bytes().startswith(b"%PDF")
