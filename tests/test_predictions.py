"""Predictions that the reader types: kept in the browser, shown beside the run's answer, of this chapter only."""

import json
import shutil
from pathlib import Path

import pytest

from ffilab.run.paths import ROOT

PAGE = """<!doctype html><html lang="en"><title>{chapter}</title><script src="../_static/predictions.js"></script><body>
<section id="your-prediction"><h2>Your prediction</h2><ol start="{start}"><li><p>How <code>much</code>?</p></li><li><p>Which?</p></li></ol></section>
<p><strong>You predicted ({start}).</strong> <span class="pasted-text">Twice as long.</span></p>
<p><strong>You predicted ({other}).</strong> <span class="pasted-text">The first.</span></p></body></html>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two chapters, the first with two pages, and the script of the book."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "book" / "_static", folder / "_static")
    for chapter, name, start in (("one", "one", 1), ("one", "further", 3), ("two", "two", 1)):
        (folder / chapter).mkdir(exist_ok=True)
        page = PAGE.format(chapter=chapter, start=start, other=start + 1)
        (folder / chapter / f"{name}.html").write_text(page)
    return folder


@pytest.fixture
def opened(open_tab, site):
    """A function that opens a page; all in one browser, in which nothing was kept before."""
    tabs = []

    def open_page(page):
        address = (site / page).as_uri()
        tabs.append(open_tab(address, context=tabs[0].context if tabs else None))
        return tabs[-1]

    return open_page


def said(tab):
    return [text.strip() for text in tab.locator("p:has(strong)").all_inner_texts()]


def test_a_prediction_stays_and_stands_beside_the_answer_of_its_chapter(opened):
    tab = opened("one/one.html")
    assert said(tab) == ["You predicted (1). Twice as long.", "You predicted (2). The first."]
    # By keyboard alone, and by its label.
    tab.keyboard.press("Tab")
    tab.keyboard.type("50 % <b>more</b>")
    assert tab.get_by_label("Your prediction (1)").input_value() == "50 % <b>more</b>"
    tab.reload()
    assert tab.get_by_label("Your prediction (1)").input_value() == "50 % <b>more</b>"
    assert said(tab)[0].startswith("You predicted (1).")
    assert "50 % <b>more</b>" in said(tab)[0]
    assert said(tab)[0].endswith("This run: Twice as long.")
    assert said(tab)[1] == "You predicted (2). The first."
    other = opened("two/two.html")
    assert other.get_by_label("Your prediction (1)").input_value() == ""
    assert said(other)[0] == "You predicted (1). Twice as long."
    further = opened("one/further.html")
    assert further.get_by_label("Your prediction (3)").input_value() == ""


def test_predictions_are_saved_and_cleared_by_chapter(opened):
    for page in ("one/one.html", "two/two.html"):
        tab = opened(page)
        tab.get_by_label("Your prediction (2)").fill(f"of {page}")
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save all as JSON").click()
    assert json.loads(Path(download.value.path()).read_text()) == [
        {"chapter": chapter, "number": 2, "question": "Which?", "answer": f"of {chapter}/{chapter}.html"}
        for chapter in ("one", "two")
    ]
    with tab.expect_download() as download:
        tab.get_by_role("button", name="Save all as text").click()
    assert "two (2) Which?\n  of two/two.html" in Path(download.value.path()).read_text()
    tab.get_by_role("button", name="Clear this chapter's").click()
    assert "of two" not in " ".join(said(tab))
    tab.reload()
    assert tab.get_by_label("Your prediction (2)").input_value() == ""
    assert opened("one/one.html").get_by_label("Your prediction (2)").input_value() == "of one/one.html"


def test_without_scripts_the_page_reads_as_it_was_written(site, open_tab):
    tab = open_tab((site / "one/one.html").as_uri(), java_script_enabled=False)
    assert tab.locator("textarea, button").count() == 0
    assert said(tab) == ["You predicted (1). Twice as long.", "You predicted (2). The first."]
