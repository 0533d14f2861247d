"""The object model: what every binding of native/objects answers, and the page of what was kept."""

import json

import pytest

from ffilab.page import evidence
from ffilab.run.paths import NATIVE
from ffilab.setup import installed, native
from ffilab.setup.catalogue import CHAPTER_PAIR
from studies import kept, object_model
from studies.object_model import CALLS, MODEL, TOOLS

QUESTIONS = MODEL["QUESTIONS"]
LABELS = [one.label for one in CHAPTER_PAIR]
SESSIONS = kept.read(kept.EVIDENCE / "object_model.json")


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
    names = {
        tool: {name for topic in CALLS.keys() - said["not-here"].keys() for name in CALLS[topic]}
        for tool, said in TOOLS.items()
    }
    assert {
        label: {tool: set(times) for tool, times in by_tool.items()} for label, by_tool in found.items()
    } == dict.fromkeys(LABELS, names)


def test_what_is_kept_is_of_these_bindings():
    (found,) = SESSIONS
    assert found["answers"] == {label: {tool: expected(tool, label) for tool in TOOLS} for label in LABELS}
    assert found["calls"] == {topic: list(calls) for topic, calls in CALLS.items()}
    assert found["tools"] == {
        tool: {kind: said[kind] for kind in ("not-here", "by-hand")} for tool, said in TOOLS.items()
    }


def cells(page, start):
    """The cells of the row that starts so."""
    (row,) = {line for line in page.splitlines() if line.startswith(f"| {start} |")}
    return [cell.strip() for cell in row.strip("|").split("|")][1:]


def test_the_page_is_made_of_what_is_kept():
    found = json.loads(json.dumps(SESSIONS[0]))
    first, last = LABELS
    tool = next(iter(found["tools"]))
    found["times"][first][tool]["new object"] = [1234.5, 1230.0, 1239.0]
    found["times"][last][tool]["new object"] = [77.7, 77.6, 77.8]
    found["answers"][last][tool][0][2] = "OddError"
    page = evidence.object_model_page([found])
    rows = [line for line in page.splitlines() if line.startswith("| new object |")]
    assert "1,234 / 78" in rows[0], rows
    assert "1,234.5 [1,230.0, 1,239.0] / 77.70 [77.60, 77.80]" in rows[1]
    assert "/ `OddError` |" in page
    for name, said in found["tools"].items():
        place = list(found["tools"]).index(name)
        for topic, reason in said["not-here"].items():
            for call in found["calls"][topic]:
                assert f"not here: {reason}" == cells(page.split("```{dropdown}")[0], call)[place]
    for one in found["tried"]:
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {one['title']}")]
        assert (f"not here: {one['stopped']}" in row) == bool(one["stopped"])


def test_without_evidence_the_page_says_so():
    assert (
        evidence.object_model_page([])
        == "This study was not run yet: `python3 ffilab/bootstrap.py study object_model`.\n"
    )


def test_the_page_is_short():
    page = (NATIVE.parent / "book" / "object_model.md").read_text()
    assert len(page.split()) <= 700
