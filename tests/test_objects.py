"""The object model: what every binding of native/objects answers, and the page of what was kept."""

import copy

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


def test_what_is_kept_is_of_these_bindings():
    (run,) = SESSIONS
    assert run["tools"] == {
        tool: {kind: said[kind] for kind in ("not-here", "by-hand")} for tool, said in TOOLS.items()
    }
    assert run["calls"] == {topic: list(calls) for topic, calls in CALLS.items()}
    assert run["questions"] == {topic: list(questions) for topic, questions in QUESTIONS.items()}
    assert run["answers"] == {label: {tool: expected(tool, label) for tool in TOOLS} for label in LABELS}
    for by_tool in run["times"].values():
        assert {tool: set(times) for tool, times in by_tool.items()} == NAMES


def test_the_page_shows_what_the_kept_run_does_not_have():
    """Builds that answer differently, and a tool that could not be tried. The rest is in
    tests/snapshots/parts/object_model.md."""
    run = copy.deepcopy(SESSIONS[0])
    run["answers"][LABELS[1]]["nanobind"][0][2] = "OddError"
    run["tried"][-1] |= {"times": {}, "stopped": "error: a|b"}
    page = evidence.object_model_page([run])
    assert " / `OddError` |" in page
    assert "| not here: error: a\\|b |" in page


def test_without_evidence_the_page_says_so():
    command = "python3 ffilab/bootstrap.py study object_model"
    assert evidence.object_model_page([]) == f"This study was not run yet: `{command}`.\n"


def test_the_page_is_short():
    page = (NATIVE.parent / "book" / "object_model.md").read_text()
    assert len(page.split()) <= 700
