"""A machine that lacks something: its pages are whole, say what was missing, and judge nothing that it cannot show.

What each page says letter by letter is kept by test_snapshots.py; how the poor records were made, golden/make.py tells.
"""

import csv
import json
import re
import shutil

import pytest

from ffilab.judge import again
from ffilab.judge.numbers import ONE_CORE
from ffilab.page import advice, front, guide, ledger_page, render
from ffilab.page.contents import split
from ffilab.page.places import markdown
from ffilab.run import paths
from ffilab.run.budget import Budget
from tests.helpers import golden_pages
from tests.helpers.golden_pages import POOR, SMALL_PAGES, chapters_of, records
from tests.helpers.notebooks import asked, glued, shown
from tests.helpers.prose import faults_of_markdown as faults
from tests.helpers.snapshots import SNAPSHOTS
from tests.helpers.source_pages import copy_of, resting

PAGES = [(chapter, variant) for chapter, variant in golden_pages.PAGES if variant in (POOR, SMALL_PAGES)]


@pytest.fixture
def taken_for_results(monkeypatch):
    """As if the poor records, of a smoke test, were results: then the ledger judges them."""
    monkeypatch.setattr(Budget, "is_result", True)


def test_the_poor_records_lack_what_they_are_said_to_lack():
    said = {}
    for path in records(POOR).glob("*/session.jsonl"):
        first, *lines = map(json.loads, path.read_text().splitlines())
        assert first["machine"]["cores_usable"] == 1, path
        assert all(len(drawn) <= 1 for drawn in first["layouts"].values()), path
        said[path.parent.name] = json.dumps(lines)
    for chapter, lack in {"placement": "lld", "balm": "valgrind", "races": "cargo", "boundary": "valgrind"}.items():
        assert re.search(rf"no [^.]*{lack}|{lack}[^.]*(is not|there is no)", said[chapter]), (chapter, lack)


@pytest.mark.parametrize(("chapter", "variant"), PAGES)
def test_a_table_has_no_cell_that_says_nothing(chapter, variant):
    tables = json.loads((SNAPSHOTS / f"{chapter}-{variant}.json").read_text())["tables"]
    for cell, of_cell in tables.items():
        for table in of_cell:
            for row in csv.reader(table[1:]):
                assert not {"nan", "NaN", "nan%"} & set(row), (cell, row)
                assert any(row), (cell, row)


@pytest.mark.parametrize(("chapter", "variant"), golden_pages.PAGES)
def test_whatever_a_page_shows_in_another_place_is_there(chapter, variant, executed):
    """A chapter may have several pages, and what is glued on one is not known on the next."""
    for name, page in split(executed.executed_notebook, chapter).items():
        assert set(asked("\n".join(markdown(page)))) <= glued(page).keys(), name


@pytest.mark.parametrize(("chapter", "variant"), golden_pages.PAGES)
def test_a_page_says_at_its_top_that_its_run_knows_one_binary_or_had_one_core(variant, executed):
    said = "".join(shown(executed.executed_notebook))
    for words in ("what this page says holds for *this binary*", "This run had one core"):
        assert (words in said) == (variant == POOR), words


def test_what_takes_two_cores_is_no_verdict_on_one(taken_for_results):
    rows = {row["id"]: row for row in again.rows(records(POOR), whatever_the_controls=True)}
    lacking = {
        (claim, part["number"]) for claim, row in rows.items() for part in row["parts"] if ONE_CORE in part["reason"]
    }
    assert {claim for claim, _ in lacking} >= {"C1", "C2", "A8"}
    assert {rows[claim]["verdict"] for claim in ("C1", "C2")} == {"open"}


def test_ledger_guide_and_front_page_are_made(source_tree, taken_for_results):
    copy, tree = copy_of.__wrapped__(POOR), source_tree
    for one in resting():
        text = advice.evidence(one, copy)
        assert faults(text) == [], text
    for page in (front.surprises(tree, copy), front.questions(tree, copy, "safe"), guide.cards_page(tree, copy)):
        assert page.strip()
        assert "nan" not in page.split()
    assert ledger_page.page(list(copy.rows.values())).strip()


@pytest.mark.full
def test_the_whole_book_is_rendered():
    for name in chapters_of(POOR):
        golden_pages.page(name, POOR)
    with golden_pages.locked("html"):
        shutil.rmtree(paths.EXECUTED, ignore_errors=True)
        shutil.copytree(golden_pages.folder() / POOR, paths.EXECUTED)
        pages = render.render().parent
        for page in pages.rglob("*.html"):
            assert "Traceback (most recent call last)" not in page.read_text(encoding="utf-8"), page
        shutil.rmtree(paths.EXECUTED)
