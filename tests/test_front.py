"""The front page, the decision guide and the checklist: what they declare is there, and what a run found chooses their
words."""

import ast
import json
import math
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from ffilab.judge import verdicts
from ffilab.judge.claims import in_words
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.numbers import Number
from ffilab.judge.poured import Poured, Text
from ffilab.page import advice, files, front, guide, places, tables
from ffilab.page.contents import Chapter
from ffilab.page.templates import filled
from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import costs
from tests.helpers.golden_pages import VARIANTS
from tests.helpers.made_up import matrix_cell
from tests.helpers.of_chapter import Golden
from tests.helpers.prose import faults_of_markdown as faults
from tests.helpers.source_pages import anchors, copy_of, resting

SAID = front.declarations()
QUESTIONS, SURPRISES = (advice.entries(front.FILE, kind) for kind in ("question", "surprise"))
SHOWN = [shown for card in guide.cards() for shown in card.tables]


def words(text: str) -> int:
    """Words that are read: without folds, raw HTML, code, directives, and addresses of links."""
    text = re.sub(r"^(`{3,}|:{3,})\{(raw|dropdown)\}.*?^\1$|^```\w+\n.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"\]\([^)]*\)|\{\w+\}|^[:`].*$", "", text, flags=re.M)
    return len(re.findall(r"[\w$@%'’./-]*\w[\w%'’./-]*", text))


def test_every_link_leads_to_a_heading_of_the_book():
    known = anchors()
    asked = advice.entries(guide.QUESTIONS, "question")
    links = [one.link for one in (*QUESTIONS, *SURPRISES, *advice.entries(), *asked, *SHOWN)]
    links += [SAID["figure"]["link"], SAID["chooser"]["page"]]
    links += [place for one in (*guide.points(), *guide.cards()) for place in one.links]
    for place in filter(None, links):
        page, _, anchor = place.partition("#")
        assert page in known, place
        assert not anchor or anchor in known[page], place


def kept_by(chapter):
    """Names of the tables that a chapter's notebook keeps; a label in them as the loop's variable."""
    code = "\n".join(cell.source for cell in Chapter(chapter).notebook.cells if cell.cell_type == "code")
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


@pytest.mark.parametrize("one", resting(), ids=lambda one: f"{one.chapter}: {one.say or one.part}"[:50])
def test_each_entry_says_another_thing_for_each_answer(one):
    number = Poured(Number(Share(5, 30)))
    for asked in (one.found, *one.each):
        forms = [*asked.forms.values(), asked.few]
        said = [form.format(**dict.fromkeys(asked.poured, number), each=Text("less: x")) for form in forms]
        assert len({re.sub(r"[\d.,]+", "", text) for text in said}) == len(said)
        for text in said if asked is one.found else []:
            assert faults(text) == [], text
            assert text.endswith("."), text
            assert not re.search(r"\[\d", text), f"an interval: {text}"


def absent(verdict, is_result=True):
    """A copy in which an entry's number is withheld, or of a smoke test, or not there."""
    one = next(one for one in QUESTIONS if one.found.questions[0].claim == "A18")
    part = {"number": one.found.questions[0].number, "verdict": verdict, "reason": "a control failed"}
    row = {"chapter": one.chapter, "parts": [part], "provenance": {"is_result": is_result}}
    smoke = SimpleNamespace(budget=SimpleNamespace(is_result=False))
    session = Golden(one.chapter) if is_result else smoke
    return one, advice.Copy({"A18": row}, {one.chapter: session})


def test_what_the_code_answers_is_said_whatever_the_run_can_say(source_tree):
    one, withheld = absent(verdicts.WITHHELD)
    assert one.say.startswith("**The same through `ctypes.CDLL`? No:**")
    assert advice.evidence(one, withheld) == "This run's number is withheld: a control failed."
    # Also where the entry asks for the number by itself, or only pours it in.
    (question,) = one.found.questions
    for found in (replace(one.found, questions=(replace(question, claim=""),)), replace(one.found, questions=())):
        assert advice.absent(replace(one, found=found), withheld)
    assert advice.evidence(one, absent(verdicts.NO_NUMBER, is_result=False)[1]) == advice.SMOKE
    assert all(advice.is_decided(one, copy) is None for copy in (withheld, absent("")[1], advice.Copy({})))
    *lines, _, last = front.questions(source_tree, advice.Copy({}), "safe").splitlines()
    assert all(re.match(r"- \*\*.+\? (Yes|No)\b", line) for line in lines)
    # Once a page.
    assert last.startswith("Not measured in this copy: [")
    assert guide.cards_page(source_tree, advice.Copy({})).count("Not measured in this copy") == 1


def test_surprises_are_those_with_a_number_decided_ones_first(source_tree, monkeypatch):
    decided = dict(zip((one.say for one in SURPRISES), [None, False, True, True, True, True]))
    monkeypatch.setattr(advice, "is_decided", lambda one, _: decided.get(one.say))
    monkeypatch.setattr(advice, "evidence", lambda one, _: "Found.")
    lines = front.surprises(source_tree, advice.Copy({})).splitlines()
    assert len(lines) == 3
    for number, line in enumerate(lines, 1):
        assert line.startswith(f"{number}. {SURPRISES[number + 1].say}")
    decided |= dict.fromkeys(decided) | {SURPRISES[1].say: False}
    assert front.surprises(source_tree, advice.Copy({})).startswith(f"1. {SURPRISES[1].say}")
    decided.clear()
    assert front.surprises(source_tree, advice.Copy({})) == "No chapter of this copy has a number for one yet.\n"


@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_records_give_an_answer_to_every_question(source_tree, variant):
    """Read with data that say yes, no and open: whole sentences, and no more of them than a reader has patience for."""
    copy = copy_of(variant)
    for one in resting():
        text = f"{in_words(one.say)} {advice.evidence(one, copy)}"
        assert faults(text) == [], text
        assert not re.search("not measured|Too little was measured", text), text
    page = re.sub(r"```\{include\}.*?```", "", (ROOT / "book" / "preface.md").read_text(), flags=re.S)
    page += front.surprises(source_tree, copy)
    page += front.questions(source_tree, copy, "safe") + front.questions(source_tree, copy, "quick")
    page += filled("ways.md", ways=front.ways(SAID["way"]), link=lambda place: "Its title")
    assert words(page) <= 700, words(page)
    cards = guide.cards_page(source_tree, copy) + (ROOT / "book" / "decision_guide.md").read_text()
    assert words(cards) <= 2000, words(cards)


CELLS = pd.DataFrame(
    [
        matrix_cell(GIL, "PyO3", "int → int", 30.0),
        matrix_cell(GIL, "pybind11", "int → int", 40.0),
        matrix_cell(GIL, "cffi ABI", "int → int"),
        matrix_cell(FREE_THREADED, "PyO3", "int → int", 33.0),
    ]
)


def data_of(ratio, low, high, mark=""):
    interval = costs.cheaper(Interval(ratio, low, high))
    pairs = pd.DataFrame(
        [[GIL, "int → int", "PyO3", "pybind11", *interval]],
        columns=["CPython", "signature", "binding a", "binding b", "ratio", "low", "high", "answer"],
    )
    return front.chooser_data(tables.Table(CELLS, "", mark), tables.Table(pairs, "", mark), "matrix.html")


def answered(data, one, other):
    """The answer of the chooser as HTML, and as it is read."""
    asked = {"CPython": "{GIL}", "signature": "int → int", "one": one, "other": other}
    found = front.looked_up(data, asked)["answer"]
    return found, re.sub(r"<[^>]+>", "", found)


@pytest.mark.parametrize(
    ("ratio", "says"),
    [
        ((0.75, 0.7, 0.8), "PyO3 is faster: 30 ns, pybind11 40 ns. Side by side it is 1.3 times as fast."),
        ((1.5, 1.4, 1.6), "pybind11 is faster: 40 ns, PyO3 30 ns. Side by side it is 1.5 times as fast."),
        ((0.97, 0.96, 0.975), "PyO3 is faster: 30 ns, pybind11 40 ns. Side by side it is 1.03 times as fast."),
        ((1.01, 1.005, 1.015), "No difference that matters: PyO3 30 ns, pybind11 40 ns, less than 2 % apart."),
        ((0.98, 0.9, 1.1), "Too close to call here: PyO3 30 ns, pybind11 40 ns."),
        ((0.5, math.nan, math.nan), "Too close to call here: PyO3 30 ns, pybind11 40 ns."),
    ],
)
def test_two_bindings_are_compared_by_the_interval_of_their_ratio(ratio, says):
    data = data_of(*ratio)
    for one, other in (("PyO3", "pybind11"), ("pybind11", "PyO3")):
        found, read = answered(data, one, other)
        assert read == says
        assert f'href="matrix.html#{files.slug(GIL, "pybind11", "int → int")}" title="40.0 ns [36.0, 44.0]"' in found
    json.dumps(data, allow_nan=False)


def test_the_chooser_says_what_it_cannot_compare():
    data = data_of(0.75, 0.7, 0.8)
    assert answered(data, "PyO3", "cffi ABI")[1] == "PyO3: 30 ns; cffi ABI: no number here (no compiler &lt;here&gt;)."
    assert answered(data, "PyO3", "PyO3")[1] == "PyO3: 30 ns."
    assert answered(data_of(0.75, 0.7, 0.8, "smoke test: no result"), "PyO3", "pybind11")[1] == (
        "PyO3 30 ns, pybind11 40 ns. What that means is not said: smoke test: no result."
    )


@pytest.mark.parametrize(
    ("ns", "says"),
    [(4.64, "4.6 ns"), (9.97, "10 ns"), (464.4, "460 ns"), (2310, "2.3 µs"), (45_000, "45 µs"), (3e6, "3.0 ms")],
)
def test_a_time_has_two_digits(ns, says):
    assert front.in_short(ns) == says


def test_figure_says_its_finding_and_its_mark(source_tree, monkeypatch):
    monkeypatch.setattr(tables, "kept_table", lambda chapter, name: tables.Table(CELLS, "", "smoke test: no result"))
    found = front.figure(source_tree)
    assert "Smoke test: no result" in found
    assert "<figcaption>The largest ratio: “int → int” through pybind11 on CPython 3.14 takes 3 times" in found
    assert "PyO3 2.2–2.5" in found
    static = source_tree / "book" / "_static"
    assert {path.name for path in static.glob("*.svg")} == {"front-light.svg", "front-dark.svg"}
    assert len(list((static / "files").glob("*.csv"))) == 1


def test_a_kept_table_travels_with_its_mark_and_an_optional_one_may_come_later(source_tree, monkeypatch):
    frame = pd.DataFrame({"CPython": [GIL, FREE_THREADED], "ns": ["1 [0, 2]", "<b>"]})
    monkeypatch.setattr(
        tables, "kept_table", lambda chapter, name: tables.Table(frame, "A caption.", "withheld: a control")
    )
    monkeypatch.setattr(places, "since", lambda chapter: " Its page is stale: x changed since.")
    page = guide.cards_page(source_tree, advice.Copy({}))
    assert page.count("(withheld: a control)") == page.count("Its page is stale") == len(SHOWN)
    assert "&lt;b&gt;" in page


def test_what_no_run_can_contradict_is_in_a_card_whatever_was_measured(source_tree):
    page = guide.cards_page(source_tree, advice.Copy({}))
    assert all(text in page for card in guide.cards() for text in (card.say, card.price, card.wrong))


def test_ways_add_up_and_fit():
    found = front.ways(SAID["way"])
    for way in found:
        assert way["total"] == sum(stop["took"] for stop in way["stops"])
        assert way["total"] <= way.get("minutes", math.inf), way["title"]
        assert all(stop["took"] > 0 for stop in way["stops"])
    for way in found[:2]:
        assert way["total"] >= 0.75 * way["minutes"], way["title"]
        assert any("Exercise" in stop["parts"] for stop in way["stops"]), "a way without an exercise"
    with pytest.raises(Exception, match="no page"):
        front.ways([{"title": "x", "stops": [{"page": "notebooks/nowhere", "parts": []}]}])


def test_the_glossary_is_in_the_order_of_the_alphabet():
    text = (ROOT / "book" / "glossary.md").read_text()
    entries = re.findall(r"^(\w.*)$", re.search(r"^```\{glossary\}\n(.*?)^```", text, re.M | re.S)[1], re.M)
    assert entries == sorted(entries, key=lambda entry: re.sub(r"[^a-z0-9]+", " ", entry.lower()))


def test_the_chooser_answers_in_three_choices(tmp_path, open_tab):
    """In a browser, by keyboard and select boxes, the same words as without JavaScript, as a list."""
    data = data_of(0.75, 0.7, 0.8)
    data["first"] = {"one": "PyO3", "other": "cffi ABI", "signature": "int → int", "CPython": GIL}
    (tmp_path / "data.js").write_text(f"window.ffiChooser = {json.dumps(data)};")
    shutil.copy(ROOT / "book" / "_static" / "front.js", tmp_path)
    example, plain = answered(data, "PyO3", "pybind11")
    (tmp_path / "page.html").write_text(
        '<meta charset="utf-8"><form class="ffi-chooser" data-src="data.js" hidden></form>'
        '<div class="ffi-chooser-answer"></div>'
        f'<details class="ffi-examples" open><p>{example}</p></details><script src="front.js" defer></script>'
    )
    tab = open_tab((tmp_path / "page.html").as_uri())
    tab.wait_for_selector("select[name=other]")
    assert "no number here (no compiler <here>)" in tab.inner_text(".ffi-chooser-answer")
    for one, other in (("PyO3", "pybind11"), ("pybind11", "PyO3")):
        tab.select_option("select[name=one]", label=one)
        tab.select_option("select[name=other]", label=other)
        assert tab.inner_text(".ffi-chooser-answer").strip() == plain, "the script and the page say different things"
    tab.select_option("select[name=CPython]", label=FREE_THREADED)
    assert "no number here" in tab.inner_text(".ffi-chooser-answer")
    off = open_tab((tmp_path / "page.html").as_uri(), java_script_enabled=False)
    assert plain in off.inner_text(".ffi-examples")
