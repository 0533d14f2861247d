"""As a reader does it in JupyterLab: change a cell, run it, see the new row; change native code, build it, pass the
check.

Real kernels and real measuring, in a folder of its own.
"""

import json
import re
import shutil

import pytest
from nbclient import NotebookClient

from ffilab.judge.claims import chapter_names
from ffilab.page.cells import YOURS
from ffilab.page.contents import Chapter
from ffilab.run import settings
from ffilab.run.paths import NOTEBOOKS, ROOT
from tests.helpers.notebooks import by_exercise, exercises

# By chapter: what stands in a cell, what takes its place, and what then has to be seen.
CHANGES = {name: of["change"].values() for name in chapter_names() if "change" in (of := exercises(name))}
LIMIT_S = 900


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A function that runs some cells of a chapter in its own kernel, and returns what each of them showed."""
    environment = {settings.BUILD: str(tmp_path / "lab"), settings.TOLD: "{}"}
    environment |= {"PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(ROOT / "kernels")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def run(chapter, cells, budget="smoke"):
        monkeypatch.setenv(settings.BUDGET, budget)
        notebook = Chapter(chapter).notebook
        notebook.cells = cells
        client = NotebookClient(
            notebook,
            timeout=LIMIT_S,
            kernel_name=notebook.metadata.kernelspec.name,
            resources={"metadata": {"path": str(NOTEBOOKS / chapter)}},
            extra_arguments=["--HistoryManager.hist_file=:memory:"],
        )
        client.execute()
        return [json.dumps(cell.get("outputs", []), ensure_ascii=False) for cell in notebook.cells]

    return run


def code_cells(chapter):
    return [cell for cell in Chapter(chapter).notebook.cells if cell.cell_type == "code" and cell.source]


def tagged(cell):
    return YOURS in cell.metadata.get("tags", [])


@pytest.mark.full
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("chapter", CHANGES)
def test_a_changed_cell_shows_its_new_row(chapter, lab):
    """All cells as far as the changed one, and those behind it as far as the first figure or table that has the row."""
    old, new, seen = CHANGES[chapter]
    cells = [cell for cell in code_cells(chapter) if not tagged(cell)]
    (at,) = [number for number, cell in enumerate(cells) if old in cell.source]
    shown = next(n for n, cell in enumerate(cells) if n > at and re.search(r"draw\.(figure|table)\(", cell.source))
    cells[at].source = cells[at].source.replace(old, new)
    before = kept_records()
    outputs = lab(chapter, cells[: shown + 1])
    assert seen in outputs[shown] or seen in outputs[at], outputs[shown][:2000]
    assert kept_records() == before


def kept_records():
    """The reader's records of the book's own pages."""
    return sorted(path for path in (ROOT / "_build" / "records").glob("*/*"))


def measured_exercises(chapter):
    """The exercises of a chapter that a reader measures: {label: (cells as given, cells of the solution)}."""
    found = {}
    for label, is_solution, cell in by_exercise(Chapter(chapter).notebook):
        if tagged(cell):
            found.setdefault(label, ([], []))[is_solution].append(cell)
    return found


EXERCISES = [(chapter, label) for chapter in chapter_names() for label in measured_exercises(chapter)]


@pytest.mark.full
@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize(("chapter", "label"), EXERCISES)
def test_as_given_a_measured_exercise_is_open_and_its_solution_solves_it(chapter, label, lab):
    pattern = exercises(chapter)["solved"][label]
    given, solution = measured_exercises(chapter)[label]
    # It rests on nothing but the session and what the cells define.
    before = code_cells(chapter)[:1]
    mine = ROOT / "my" / chapter
    if mine.exists():
        pytest.skip(f"my/{chapter} is a reader's own")
    try:
        # The smallest budget that has intervals.
        outputs = lab(chapter, [*before, *given, *solution], "room")
    finally:
        shutil.rmtree(mine, ignore_errors=True)
    printed = [said(output) for output in outputs[len(before) :]]
    assert not re.search(pattern, "".join(printed[: len(given)]), re.M), printed
    # How fast a live run finds it is not asked: what is right and may be fast is solved.
    solved = re.sub(r"Whether it is fast enough is too close.*", "Fast enough", "".join(printed[len(given) :]))
    if "Too close to call here" in solved:
        pytest.skip("too close to call on this machine now: the check says to run it again")
    assert re.search(pattern, solved, re.M), printed


def said(output):
    """What a cell printed."""
    return "".join("".join(one.get("text", "")) for one in json.loads(output) if one.get("name") == "stdout")
