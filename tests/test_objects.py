"""The object model: what every binding of native/objects answers, and the page of what was kept."""

import pytest

from ffilab.page import evidence
from ffilab.run.paths import NATIVE
from ffilab.setup import installed, native
from ffilab.setup.catalogue import CHAPTER_PAIR
from studies import kept, object_model
from studies.object_model import CALLS, MODEL, TOOLS

QUESTIONS = MODEL["QUESTIONS"]
LABELS = [one.label for one in CHAPTER_PAIR]
# Of each tool the calls that it has.
NAMES = {
    tool: {name for topic in CALLS.keys() - said["not-here"].keys() for name in CALLS[topic]}
    for tool, said in TOOLS.items()
}
SESSIONS = kept.read_sessions(kept.EVIDENCE / "object_model.json")


def expected(tool, label):
    """Topic, question and answer, as a tool says that it answers."""
    said = TOOLS[tool]
    assert not {(topic, asked) for topic, one in said["answers"].items() for asked in one} - {
        (topic, asked) for topic, one in QUESTIONS.items() for asked in one
    }
    answers = []
    for topic, questions in QUESTIONS.items():
        for asked, (_, usual) in questions.items():
            if topic not in said["not-here"]:
                answer = said["answers"].get(topic, {}).get(asked, usual)
                answers.append([topic, asked, answer[label] if isinstance(answer, dict) else answer])
    return answers


@pytest.fixture(scope="module")
def built():
    if failures := native.build_all(installed.pair(), chapters=["objects"]):
        pytest.fail("; ".join(failures))


@pytest.mark.full
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_binding_answers_as_it_says(tool, label, built):
    assert object_model.answers(label, tool) == expected(tool, label)


@pytest.mark.full
def test_every_call_can_be_timed(built, tmp_path):
    found = object_model.times(object_model.arms(), LABELS, seconds=0)
    names = {label: {tool: set(times) for tool, times in by_tool.items()} for label, by_tool in found.items()}
    assert names == dict.fromkeys(LABELS, NAMES)


@pytest.mark.skipif(not SESSIONS, reason="the study was not run yet")
def test_what_is_kept_is_of_these_bindings():
    (found,) = SESSIONS
    assert {name: found[name] for name in ("tools", "calls", "questions", "answers")} == about()
    for by_tool in found["times"].values():
        assert {tool: set(times) for tool, times in by_tool.items()} == NAMES


def about():
    """What a run keeps beside its times."""
    return {
        "tools": {tool: {kind: said[kind] for kind in ("not-here", "by-hand")} for tool, said in TOOLS.items()},
        "calls": {topic: list(calls) for topic, calls in CALLS.items()},
        "questions": {topic: list(questions) for topic, questions in QUESTIONS.items()},
        "answers": {label: {tool: expected(tool, label) for tool in TOOLS} for label in LABELS},
    }


def made_up():
    """A run whose numbers are known: the calls of the first tool take 10 ns, those of the second 20, without the GIL
    100 more."""
    calls = [call for topic in CALLS.values() for call in topic]
    times = {
        label: {
            tool: {call: [ns + 100.0 * number, ns + 100.0 * number - 1, ns + 100.0 * number + 1] for call in calls}
            for ns, tool in zip(range(10, 100, 10), TOOLS)
        }
        for number, label in enumerate(LABELS)
    }
    here = {"title": "Here", "version": "7", "released": "once", "said": "a tool", "stopped": ""}
    two = {"noop": [31.0, 30.0, 32.0], "add_one": [41.0, 40.0, 42.0]}
    machine = {"cpu": "a processor", "cores": 2, "date": "2026-01-02T03:04", "compiler": "cc"}
    tried = [
        here | {"times": {"C API": two, "Here": two | {"inside": [1.5, 1.4, 1.6]}}},
        here | {"title": "Gone", "version": "", "stopped": "error: a|b"},
    ]
    return {**about(), "times": times, "machine": machine, "versions": {"nanobind": "3.9"}, "tried": tried}


def cells(page, start):
    """The cells of the first row that starts so."""
    row = next(line for line in page.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in row.strip("|").split(" | ")][1:]


def test_the_page_is_made_of_what_is_kept():
    found = made_up()
    found["answers"][LABELS[1]]["nanobind"][0][2] = "OddError"
    page = evidence.object_model_page([found])
    sight, folded = page.split("```{dropdown}", 1)
    assert cells(sight, "new object") == ["10 / 110", "20 / 120", "30 / 130", "40 / 140", "50 / 150"]
    assert cells(folded, "new object")[0] == "10.0 [9.0, 11.0] / 110.0 [109.0, 111.0]"
    assert "- *enum in and out*: from 10 ns (nanobind) to 50 (C API) with the GIL." in sight
    for place, said in enumerate(TOOLS.values()):
        for topic, reason in said["not-here"].items():
            assert {cells(sight, call)[place] for call in CALLS[topic]} == {f"not here: {reason}"}
        for topic, how in said["by-hand"].items():
            assert {cells(sight, call)[place][-2:] for call in CALLS[topic]} == {"\\*"}
            assert f"*{topic}*: {how}." in sight
    assert (
        cells(page, "*keywords*: defaults and keywords are those of the C++ signature")[0]
        == "`(6.0, 7.0, 15.0, 6.0)` / `OddError`"
    )
    assert cells(page, "*enums*: it is an `enum.Enum`") == ["yes", "yes", "no", "yes", "yes"]
    assert cells(page, "Here 7")[2] == "31 and 41; in C 31 and 41; inside: 1.5"
    assert "| not here: error: a\\|b |" in page


def test_without_evidence_the_page_says_so():
    assert (
        evidence.object_model_page([])
        == "This study was not run yet: `python3 ffilab/bootstrap.py study object_model`.\n"
    )


def test_the_page_is_short():
    page = (NATIVE.parent / "book" / "object_model.md").read_text()
    assert len(page.split()) <= 700
