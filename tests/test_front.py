"""The front page and the decision guide: what they declare is there, and what a run found chooses their words."""

import ast
import json
import math
import re
import shutil

import pandas as pd
import pytest

from ffilab.judge import verdicts
from ffilab.judge.claims import all_claims, in_words
from ffilab.judge.estimates import Interval
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.page import advice, files, front, guide, places, tables
from ffilab.page.templates import filled
from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import results
from tests.prose import faults_of_markdown as faults
from tests.source_pages import anchors, golden_rows, source_tree

SAID = front.read()
QUESTIONS, SURPRISES = advice.read(front.FILE, "question"), advice.read(front.FILE, "surprise")
RESTING = [one for one in (*QUESTIONS, *SURPRISES) if one.ask]
RULES = {(claim.id, rule.number): rule for claim in all_claims() for rule in claim.tests}
SHOWN = [shown for step in guide.steps() for shown in step.tables]
SHOWN += [places.Shown(**one.table) for one in QUESTIONS if one.table]


def evidence(one, row=None):
    return advice.evidence(one, {one.ask.claim: row} if row else {})


def row_of(one, answer=YES, verdict=verdicts.HOLDS, **further):
    return {
        "id": one.ask.claim,
        "verdict": verdict,
        "qualifier": "",
        "parts": [{"number": one.ask.number, "verdict": answer, "reason": "it happened in 5 of 30 runs"}],
        "numbers": {one.ask.number: 1.3},
        "interval": {one.ask.number: [1.2, 1.4]},
        "counted": [],
        "stale": [],
        "provenance": {"is_result": True},
        **further,
    }


@pytest.fixture
def tree(tmp_path):
    return source_tree(tmp_path)


def test_every_link_leads_to_a_heading_of_the_book():
    known = anchors()
    links = [one.link for one in (*QUESTIONS, *SURPRISES, *advice.read(), *SHOWN)]
    links += [
        SAID["figure"]["link"],
        SAID["chooser"]["link"],
        *(place for one in guide.points() for place in one.links),
    ]
    for place in filter(None, links):
        page, _, anchor = place.partition("#")
        assert page in known, place
        assert not anchor or anchor in known[page], place


def kept_by(chapter):
    """Names of the tables that a chapter's notebook keeps; a label in them as the loop's variable."""
    cells = json.loads((ROOT / "notebooks" / chapter / f"{chapter}.ipynb").read_text())["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    for call in (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)):
        given = [word.value for word in call.keywords if word.arg == "keep"]
        if ast.unparse(call.func) == "draw.keep_table":
            given.append(call.args[2])
        yield from (ast.unparse(name).lstrip("f").strip("'") for name in given)


def test_every_table_that_is_shown_is_kept_by_its_chapter():
    kept = [(one.chapter, one.table) for one in SHOWN if not one.optional]
    kept += [(SAID["figure"]["chapter"], SAID["figure"]["table"])]
    kept += [(SAID["chooser"]["chapter"], SAID["chooser"][name]) for name in ("cells", "pairs")]
    for chapter, name in kept:
        assert name.replace("{FREE_THREADED}", "{label}") in set(kept_by(chapter)), (chapter, name)


@pytest.mark.parametrize("one", RESTING, ids=lambda one: f"{one.chapter}: {one.ask.number}"[:50])
def test_questions_and_surprises_say_another_thing_for_each_answer(one):
    said = [evidence(one, row_of(one, answer)) for answer in (YES, OPEN, NO, verdicts.WITHHELD)]
    said.append(evidence(one))
    smoke = row_of(one, parts=[], provenance={"is_result": False}, verdict=verdicts.NO_RESULT)
    said.append(evidence(one, smoke))
    assert "smoke test" in said[-1]
    assert "withheld" in said[-3]
    assert len({re.sub(r"[\d.,\[\]]+", "", text) for text in said}) == len(said)
    assert "stale" in evidence(one, row_of(one, stale=["the notebook"]))
    for text in (one.say, *said):
        assert faults(in_words(text)) == [], text


def test_surprises_are_those_with_a_number_decided_ones_first(tree):
    answers = [None, OPEN, YES, NO, YES, YES]
    chosen = list({one.ask.claim: one for one in SURPRISES}.values())
    rows = [row_of(one, answer or verdicts.WITHHELD, verdicts.MIXED) for one, answer in zip(chosen, answers)]
    found = front.surprises(tree, rows)
    expected = [chosen[number].say for number in (2, 3, 4, 5)]
    assert [line.split(" ", 1)[1].startswith(say) for line, say in zip(found.splitlines(), expected)] == [True] * 4
    assert len(found.splitlines()) == front.SURPRISES
    only = front.surprises(tree, rows[1:2])
    assert only.startswith(f"1. {chosen[1].say}")
    assert (
        front.surprises(tree, rows[:1])
        == front.surprises(tree, [])
        == "No chapter of this copy has a number for one yet.\n"
    )
    chapters = [one.chapter for one in SURPRISES]
    assert len(set(chapters)) >= front.SURPRISES


CELLS = pd.DataFrame(
    [
        [GIL, "PyO3", "int → int", 30.0, 29.0, 31.0, 1.5, 1.4, 1.6, ""],
        [GIL, "pybind11", "int → int", 40.0, 39.0, 41.0, 2.0, 1.9, 2.1, ""],
        [GIL, "cffi ABI", "int → int", None, None, None, None, None, None, "no <compiler>"],
        [FREE_THREADED, "PyO3", "int → int", 33.0, 32.0, 34.0, 1.6, 1.5, 1.7, ""],
    ],
    columns=[
        "CPython", "binding", "signature", "ns", "ns, low", "ns, high",
        "ratio to the floor", "ratio to the floor, low", "ratio to the floor, high", "why",
    ],
)  # fmt: skip


def data_of(ratio, low, high, mark=""):
    interval = results.cheaper(Interval(ratio, low, high))
    pairs = pd.DataFrame(
        [[GIL, "int → int", "PyO3", "pybind11", *interval]],
        columns=["CPython", "signature", "binding a", "binding b", "ratio", "low", "high", "answer"],
    )
    return front.chooser_data(tables.Table(CELLS, "", mark), tables.Table(pairs, "", mark), "matrix.html#")


def asked(one, other, label="{GIL}"):
    return {"CPython": label, "signature": "int → int", "one": one, "other": other}


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        ((0.75, 0.7, 0.8), "PyO3 takes less time here"),
        ((1.5, 1.4, 1.6), "pybind11 takes less time here"),
        ((0.98, 0.9, 1.1), "undecided here"),
        ((0.5, math.nan, math.nan), "undecided here"),
    ],
)
def test_two_bindings_are_compared_by_the_interval_of_their_ratio(ratio, says):
    data = data_of(*ratio)
    for one, other in (("PyO3", "pybind11"), ("pybind11", "PyO3")):
        found = filled("example.html", example=front.compared(data, asked(one, other)))
        assert says in found
        assert "time of PyO3 over time of pybind11" in found
        assert f'href="matrix.html#{files.slug(GIL, "pybind11", "int → int")}"' in found
        assert "30.0 ns [29.0, 31.0]" in found
    json.dumps(data, allow_nan=False)


def test_a_cell_without_a_number_says_why():
    found = filled("example.html", example=front.compared(data_of(0.75, 0.7, 0.8), asked("PyO3", "cffi ABI")))
    assert "no number here (no &lt;compiler&gt;)" in found
    assert front.NO_PAIR in found


def test_figure_says_its_numbers_and_its_mark(tree, monkeypatch):
    monkeypatch.setattr(tables, "read", lambda chapter, name: tables.Table(CELLS, "", "smoke test: no result"))
    found = front.figure(tree, SAID["figure"])
    assert "Smoke test: no result" in found
    assert "2.00 [1.90, 2.10] times the time through the C API" in found
    assert "PyO3 1.5 to 1.5" in found
    assert {path.name for path in (tree / "book" / "_static").glob("*.svg")} == {"front-light.svg", "front-dark.svg"}
    assert len(list((tree / "book" / "_static" / "files").glob("*.csv"))) == 1
    monkeypatch.setattr(tables, "read", lambda chapter, name: None)
    assert "not measured yet" in front.figure(tree, SAID["figure"])


def test_a_kept_table_travels_with_its_mark_and_an_optional_one_may_come_later(tree, monkeypatch):
    frame = pd.DataFrame({"CPython": [GIL, FREE_THREADED], "ns": ["1 [0, 2]", "<b>"]})
    monkeypatch.setattr(tables, "read", lambda chapter, name: tables.Table(frame, "A caption.", "withheld: a control"))
    monkeypatch.setattr(places, "since", lambda chapter: " Its page is stale: x changed since.")
    page = guide.steps_page(tree, [])
    tables_there = sum(len(step.tables) for step in guide.steps())
    assert page.count("(withheld: a control)") == page.count("Its page is stale") == tables_there
    assert "&lt;b&gt;" in page
    shown = places.Shown("loaders", "ratios", "h", where={"CPython": "{FREE_THREADED}"}, columns=("ns",))
    assert shown.read().frame.values.tolist() == [["<b>"]]


def test_golden_records_give_an_answer_to_every_question(tree):
    """Of records that were cut down, whatever their controls say: each test is answered, in words that are sentences."""
    rows = golden_rows()
    by_claim = {row["id"]: row for row in rows}
    for one in RESTING:
        assert advice.answer(one, by_claim), one.ask.number
        text = f"{in_words(one.say)} {advice.evidence(one, by_claim)}"
        assert faults(text) == [], text
    assert len(front.surprises(tree, rows).splitlines()) == front.SURPRISES
    found = {part: front.questions(tree, rows, part).splitlines() for part in ("safe", "quick")}
    assert sum(map(len, found.values())) == len(QUESTIONS)
    assert any(f"*{by_claim['A12']['verdict']}" in line for line in found["quick"])


def test_ways_add_up_and_fit():
    found = front.ways(SAID["way"])
    for way in found:
        assert way["total"] == sum(stop["took"] for stop in way["stops"]) + way.get("break", 0)
        assert way["total"] <= way.get("minutes", math.inf), way["title"]
        assert all(stop["took"] > 0 for stop in way["stops"])
    assert [way.get("minutes") for way in found] == [90, 240, None]
    assert all(way["total"] >= 0.8 * way["minutes"] for way in found[:2])
    # The last takes every page that says how long it takes.
    assert found[2]["total"] > found[1]["total"]
    assert front.minutes_of("Teaching: 25 minutes. Exercises: 15 minutes.", ["Teaching", "Exercise"]) == 40
    with pytest.raises(Exception, match="no page"):
        front.ways([{"title": "x", "stops": [{"page": "notebooks/nowhere", "parts": []}]}])


def test_the_chooser_answers_in_three_choices(tmp_path, browser):
    """In a browser: PyO3 or pybind11 for str without the GIL, by keyboard and select boxes; without JavaScript, as a list."""
    data = data_of(0.75, 0.7, 0.8)
    data["first"] = {"one": "PyO3", "other": "cffi ABI", "signature": "int → int", "CPython": GIL}
    (tmp_path / "data.js").write_text(f"window.ffiChooser = {json.dumps(data)};")
    shutil.copy(ROOT / "book" / "_static" / "front.js", tmp_path)
    example = filled("example.html", example=front.compared(data, asked("PyO3", "pybind11")))
    (tmp_path / "page.html").write_text(
        '<meta charset="utf-8"><form class="ffi-chooser" data-src="data.js" hidden></form>'
        '<div class="ffi-chooser-answer"></div>'
        f'<details class="ffi-examples" open>{example}</details><script src="front.js" defer></script>'
    )
    tab = browser.new_page()
    tab.goto((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("select[name=other]")
    assert "no number here (no <compiler>)" in tab.inner_text(".ffi-chooser-answer")
    tab.select_option("select[name=other]", label="pybind11")
    said = tab.inner_text(".ffi-chooser-answer")
    plain = re.sub(r"<[^>]+>", " ", example.partition("</strong>")[2])
    assert re.sub(r"\s+", "", said) == re.sub(r"\s+", "", plain), "the script and the page say different things"
    tab.select_option("select[name=CPython]", label=FREE_THREADED)
    assert front.NO_PAIR in tab.inner_text(".ffi-chooser-answer")
    off = browser.new_context(java_script_enabled=False).new_page()
    off.goto((tmp_path / "page.html").as_uri())
    assert "PyO3 takes less time here" in off.inner_text(".ffi-examples")
