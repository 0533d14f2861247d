"""A chapter as a lesson: questions, objectives and minutes at its head, key points at its end, and notes for who teaches it."""

import json
import re

import pytest

from ffilab.judge.claims import corners
from ffilab.paths import NOTEBOOKS
from ffilab.press import status
from ffilab.press.chapters import Chapter

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


def test_the_course_counts_the_minutes_of_every_page():
    table = status.course_page()
    for corner in CORNERS:
        openings = "\n".join(Chapter(corner).openings)
        for part in ("Teaching", "Exercises"):
            minutes = sum(map(int, re.findall(rf"{part}: (\d+) minutes", openings)))
            assert minutes, (corner, part)
            assert f"| {minutes} min |" in next(line for line in table.splitlines() if f"/{corner}`" in line)
