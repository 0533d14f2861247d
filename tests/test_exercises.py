"""Exercises outside JupyterLab: the answers are the notebook's own cells; as given they are open, and solutions solve them."""

import ast
import importlib
import os
import subprocess
import sys

import nbformat
import pytest

from ffilab.errors import UserError
from ffilab.judge.claims import corners
from ffilab.paths import ROOT
from ffilab.press import exercises
from ffilab.press.chapters import Chapter

GOLDEN = ROOT / "tests" / "golden"
CORNERS = [corner for corner in corners() if exercises.cells(Chapter(corner))[1]]
# What takes a compiler or a browser of instructions, or runs servers and services for seconds.
LONG = {"arenas", "convoy", "placement", "races"}


def solutions(corner):
    """The code of the solutions in the notebook, by exercise."""
    found, label = {}, None
    for cell in nbformat.read(Chapter(corner).source, as_version=4).cells:
        if cell.cell_type == "markdown" and "{solution-start}" in cell.source:
            label = cell.source.split("{solution-start} ")[1].split()[0]
        elif cell.cell_type == "markdown" and "{solution-end}" in cell.source:
            label = None
        elif label and exercises.CHECKS in cell.source:
            found[label] = cell.source
    return found


@pytest.mark.parametrize("corner", CORNERS)
def test_the_file_holds_the_notebooks_cells_and_no_solution(corner):
    code, parts = exercises.cells(Chapter(corner))
    text = exercises.template(Chapter(corner))
    assert len(parts) >= 2
    solved = importlib.import_module(f"notebooks.{corner}.exercise").SOLVED
    assert list(solved) == [one["label"] for one in parts]
    assert code.count(None) == len(parts)
    assert [one["label"] for one in parts] == list(solutions(corner))
    for one in parts:
        assert one["code"] in text
        assert solutions(corner)[one["label"]] not in text


@pytest.mark.parametrize("corner", [pytest.param(c, marks=pytest.mark.slow if c in LONG else ()) for c in CORNERS])
def test_as_given_exercises_are_open_and_solutions_solve_them(corner, tmp_path):
    """On golden records. What no record holds, the answers themselves, is run."""
    chapter = Chapter(corner)
    given = exercises.check(chapter, GOLDEN, tmp_path)
    assert not any(one["solved"] for one in given), given
    assert all(one["lines"] for one in given)
    path = tmp_path / f"{corner}.py"
    text = path.read_text()
    for one in given:
        # What the cell does before it checks stays.
        before = ast.unparse(ast.Module(ast.parse(one["code"]).body[:-1], []))
        text = text.replace(one["code"], f"{before}\n{solutions(corner)[one['label']]}")
    path.write_text(text)
    solved = exercises.check(chapter, GOLDEN, tmp_path)
    assert all(one["solved"] for one in solved), exercises.report(solved)


def changed(tmp_path, corner, old, new):
    path = tmp_path / f"{corner}.py"
    text = exercises.template(Chapter(corner))
    assert old in text
    path.write_text(text.replace(old, new))
    return path


def test_a_mistake_in_the_syntax_is_one_message_with_its_line(tmp_path):
    path = changed(tmp_path, "measuring", 'answers = {"A"', 'answers = ("A"')
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "answers = (" in text)
    with pytest.raises(UserError, match=rf"measuring\.py, line {line}: ") as error:
        exercises.check(Chapter("measuring"), GOLDEN, tmp_path)
    assert "\n" not in str(error.value)


def test_a_mistake_in_one_answer_names_its_line_and_leaves_the_others(tmp_path):
    path = changed(tmp_path, "measuring", 'answers = {"A": ""', 'answers = {"A": nothing')
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "nothing" in text)
    first, second = exercises.check(Chapter("measuring"), GOLDEN, tmp_path)
    assert not first["solved"]
    assert first["lines"] == [
        f"Not run: {os.path.relpath(path)}, line {line}: NameError: name 'nothing' is not defined"
    ] or (f"line {line}: NameError" in first["lines"][0])
    assert any("Equal functions" in said for said in second["lines"])


def test_a_part_that_is_gone_is_named(tmp_path):
    changed(tmp_path, "measuring", "# %% find-the-flaw", "# find-the-flaw")
    with pytest.raises(UserError, match="has no part 'find-the-flaw'"):
        exercises.check(Chapter("measuring"), GOLDEN, tmp_path)


def test_without_records_it_says_how_to_get_some(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="make chapter NAME=measuring"):
        exercises.check(Chapter("measuring"), tmp_path / "empty", tmp_path)


@pytest.mark.parametrize(
    ("words", "says"), [(["exercise", "nowhere"], "There is no chapter 'nowhere'"), (["exercise"], "say NAME=")]
)
def test_the_verb_says_what_is_wrong_in_one_sentence(words, says):
    answer = subprocess.run([sys.executable, "-m", "ffilab", *words], cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 1
    assert answer.stderr.startswith("ffilab: ")
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr
