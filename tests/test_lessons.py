"""A chapter as a lesson: questions, objectives and minutes at its head, key points at its end, and notes for who teaches it."""

import json
import re

import pytest

from ffilab.judge.claims import corners
from ffilab.page import lessons
from ffilab.page.chapters import Chapter
from ffilab.run.paths import NOTEBOOKS

CORNERS = corners()
HEAD = re.compile(
    r"# [^\n]+\n\n```\{admonition\} (In this chapter|On this page)\n:class: note\n"
    r"\*\*Questions\*\*\n\n(?P<questions>(?:- .+\n)+)\n"
    r"\*\*Objectives\*\*\n\n(?P<objectives>(?:- .+\n)+)\n"
    r"Teaching: \d+ minutes\. Exercises: \d+ minutes\. .+\n```"
)


def typed(corner):
    cells = json.loads((NOTEBOOKS / corner / f"{corner}.ipynb").read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("corner", CORNERS)
def test_each_page_begins_with_questions_objectives_and_minutes(corner):
    for opening in Chapter(corner).openings:
        head = HEAD.match(opening)
        assert head, f"{corner}: {opening[:60]}"
        assert all(line.endswith("?") for line in head["questions"].splitlines()), head["questions"]
        assert all(line.startswith("- You will ") for line in head["objectives"].splitlines()), head["objectives"]


@pytest.mark.parametrize("corner", CORNERS)
def test_each_page_ends_with_key_points(corner):
    pages = re.split(r"(?m)^# ", typed(corner))[1:]
    for page in pages:
        points = re.search(r"^## Key points\n\n((?:- .+\n)+)", page, re.M)
        assert points, page[:60]
        assert points[1].count("- ") >= 2, points[1]
    assert re.search(r"^## Key points\n\n(- .*\n)*- .*\{glue:text\}", typed(corner), re.M), (
        "no key point comes from the run"
    )


def sections(corner):
    """Heading to text, down to the next heading of any level."""
    found = re.findall(r"^##+ ([^\n]+)\n(.*?)(?=^#+ |\Z)", typed(corner), re.M | re.S)
    assert found
    return found


@pytest.mark.parametrize("corner", CORNERS)
def test_each_prediction_has_a_note_on_the_answers_to_expect(corner):
    asked = {
        number
        for heading, text in sections(corner)
        if heading == "Your prediction"
        for number in re.findall(r"^(\d+)\. ", text, re.M)
    }
    notes = lessons.notes(Chapter(corner))
    assert tuple(notes) == lessons.PARTS
    expected = lessons.expected(Chapter(corner))
    assert set(expected) == asked
    # A wrong model, and a question that leads on.
    for number, note in expected.items():
        assert "The model: " in note, (corner, number)
    assert all(text.count("- ") >= 2 for part, text in notes.items() if part != lessons.EXPECTED)


@pytest.mark.parametrize("corner", CORNERS)
def test_what_may_be_skipped_is_there_and_answers_no_prediction(corner):
    """A section with its subsections."""
    named = re.findall(r"\*\*([^*]+)\*\*", lessons.notes(Chapter(corner))[lessons.SHORT])
    assert named
    for heading in named:
        found = re.search(rf"^(##+) {re.escape(heading)}\n(.*?)(?=^##? |\Z)", typed(corner), re.M | re.S)
        assert found, (corner, heading)
        text = found[2] if found[1] == "##" else re.split(r"(?m)^### ", found[2])[0]
        assert "You predicted" not in text, (corner, heading)


def test_the_instructors_page_has_every_chapters_notes():
    page = lessons.notes_page([Chapter(corner) for corner in CORNERS])
    for corner in CORNERS:
        for text in [*lessons.notes(Chapter(corner)).values(), *lessons.in_notebook(Chapter(corner))]:
            assert text in page
        assert f"/{corner}>`" in page
