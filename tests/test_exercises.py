"""Exercises: as given, each is open; the solution in the notebook solves it. Read from the pages of the golden
records."""

import re

from ffilab.page.cells import YOURS
from tests.helpers import golden_pages
from tests.helpers.notebooks import by_exercise, exercises

CHECK = "exercise.check_"


def answers(chapter):
    """What the check prints for an exercise as given and for its solution: {label: [given, solved]}."""
    found = {}
    for label, is_solution, cell in by_exercise(golden_pages.page(chapter).executed_notebook):
        if CHECK in cell.source and YOURS not in cell.metadata.get("tags", []):
            printed = "".join(output.get("text", "") for output in cell.outputs).replace("\n\n", "\n")
            found.setdefault(label, [None, None])[is_solution] = printed
    return found


def test_as_given_an_exercise_is_open_and_its_solution_solves_it(chapter):
    patterns = exercises(chapter)["solved"]
    found = answers(chapter)
    # The others are measured: test_lab.py.
    patterns = {label: pattern for label, pattern in patterns.items() if label in found}
    assert list(found) == list(patterns)
    for label, (given, solved) in found.items():
        assert given.strip()
        assert not re.search(patterns[label], given, re.M), (label, given)
        assert re.search(patterns[label], solved, re.M), (label, solved)
