"""The workshop page (book/workshop.md): its commands, its minutes, what it names; and stored results in JupyterLab."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from nbclient import NotebookClient

from ffilab import cli
from ffilab.page.chapter import STORED
from ffilab.page.contents import Chapter
from ffilab.page.execute import reading_kernel
from ffilab.run import paths, settings
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS, ROOT
from ffilab.setup.catalogue import CHAPTER_PAIR
from tests.helpers.golden_pages import GOLDEN
from tests.helpers.notebooks import by_exercise, exercises

PAGE = (ROOT / "book" / "workshop.md").read_text()
LATER = pytest.mark.skipif("\nready:" not in (ROOT / "Makefile").read_text(), reason="there is no `make ready` yet")
COMMANDS = [
    pytest.param(line, marks=[LATER] if line.startswith("make ready") else [])
    for line in sorted(set(re.findall(r"(?:`|^ {7})(make [a-z][^`\n]*)", PAGE, re.M)))
]
# Files that the commands name; what others make, such as a folder of packs, is not asked.
GIVEN = re.compile(r'FROM="?(tests/[\w/]+)|\b(book/machines)\b')


def recipe(line: str) -> str:
    """What a command of the page would run."""
    dry = subprocess.run(["bash", "-c", line.replace("make", "make -n", 1)], cwd=ROOT, capture_output=True, text=True)
    assert dry.returncode == 0, dry.stderr
    return dry.stdout


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_one_and_names_what_is_there(line):
    (verb,) = re.findall(r"bootstrap\.py ([a-z-]+)", recipe(line))
    assert verb == "doctor" or verb in cli.verbs.commands
    for name in re.findall(r"NAME=(\w+)", line):
        assert (NOTEBOOKS / name).is_dir()
    assert all((ROOT / (one or other)).exists() for one, other in GIVEN.findall(line))


def test_the_page_has_commands_for_each_way():
    found = " ".join(line for one in COMMANDS for line in one.values)
    assert all(part in found for part in ("make doctor", "make ready", "FROM=tests/golden", "BUDGET=smoke"))


def test_the_plan_has_ninety_minutes_fifteen_of_slack_and_hands_on_by_minute_ten():
    rows = [
        (int(at), int(takes), what) for at, takes, what in re.findall(r"^\| (\d+) \| (\d+) \| (.*?) \|", PAGE, re.M)
    ]
    end = 0
    for at, takes, _ in rows:
        assert at == end
        end += takes
    assert end == 90
    assert sum(takes for _, takes, what in rows if what == "Slack") == 15
    (first,) = [at for at, _, what in rows if "**Hands on.**" in what]
    assert first < 10
    exercise = [takes for _, takes, what in rows if what.startswith("Exercise")]
    assert len(exercise) == 2
    assert max(exercise) <= 15


def test_what_the_page_names_of_chapters_is_there():
    text = {name: (NOTEBOOKS / name / f"{name}.ipynb").read_text() for name in ("loaders", "races")}
    for title in ("Choose the loaders", "Repair a program that hangs, fails and crashes", "Make PyDLL safe to block"):
        assert f"{{exercise}} {title}\\n" in text["loaders"]
        assert f"*{title}*" in PAGE
    assert "{exercise} Safe, or not\\n" in text["races"]
    for heading in ("What it costs", "What a call blocks"):
        assert f"## {heading}\\n" in text["loaders"]
        assert f"*{heading}*" in PAGE
    for words in ("oad, add, store", "he safety matrix", "he bank"):
        assert f"{words}" in text["races"]
        assert f"{words}*" in PAGE


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A function that runs cells of a chapter as `make lab FROM=` does, and returns what each of them showed."""
    for python in CHAPTER_PAIR:
        reading_kernel(tmp_path / "reading", python.name)
    told = {"lab": True, "source": str(GOLDEN)}
    environment = {settings.BUILD: str(tmp_path / "lab"), settings.TOLD: json.dumps(told), settings.BUDGET: "room"}
    environment |= {"PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(tmp_path / "reading")}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def run(chapter, notebook):
        resources = {"metadata": {"path": str(NOTEBOOKS / chapter)}}
        extra = ["--HistoryManager.hist_file=:memory:"]
        kernel = notebook.metadata.kernelspec.name
        NotebookClient(
            notebook, timeout=300, kernel_name=kernel, resources=resources, extra_arguments=extra, allow_errors=True
        ).execute()
        return [json.dumps(cell.outputs) for cell in notebook.cells]

    return run


# By chapter: an exercise that stored results check, and one whose program has to run.
CHECKED = {"loaders": ("choose-loaders", "repair-loaders"), "races": ("safe-or-not", "")}


@pytest.mark.parametrize("chapter", CHECKED)
def test_who_falls_behind_goes_on_from_stored_results(chapter, stored):
    """All cells down to the first exercise, and its solution; a program of one's own is refused in a sentence."""
    notebook, (checked, has_to_run) = Chapter(chapter).notebook, CHECKED[chapter]
    of_exercises = list(by_exercise(notebook))
    solution = [cell for label, solved, cell in of_exercises if label == checked and solved]
    own = [cell for label, solved, cell in of_exercises if label == has_to_run and not solved]
    for cell in own:
        cell.source = cell.source.replace("PyDLL", "PyDLL  ")
    first = min(number for number, cell in enumerate(notebook.cells) if "{exercise}" in cell.source)
    before = [cell for cell in notebook.cells[:first] if cell.cell_type == "code"]
    # What the check of the exercise as given has defined, such as `seen`.
    given = [cell for label, solved, cell in of_exercises if label == checked and not solved]
    notebook.cells = [*before, *given, *solution, *own]
    said = stored(chapter, notebook)
    done, refused = said[: len(said) - len(own)], said[len(said) - len(own) :]
    assert STORED.format(chapter=chapter) in done[0]
    assert not [text for text in done if '"error"' in text or "⟦" in text]
    printed = "".join(output.get("text", "") for output in solution[-1].outputs)
    assert re.search(exercises(chapter)["solved"][checked], printed, re.M)
    assert all("do not hold what this cell asks for" in text and "Traceback" not in text for text in refused)


def test_a_lab_from_records_sets_nothing_up(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    monkeypatch.setattr("ffilab.page.book.set_up", lambda *_: pytest.fail("it sets up"))
    started = []
    monkeypatch.setattr(os, "execve", lambda program, words, environment: started.append((words, environment)))
    cli.lab.main(["loaders", "--from", str(GOLDEN)], standalone_mode=False)
    ((words, environment),) = started
    assert json.loads(environment[settings.TOLD]) == {"lab": True, "source": str(GOLDEN)}
    specs = {path.parent.name for path in Path(environment["JUPYTER_PATH"]).rglob("kernel.json")}
    assert specs == {python.name for python in CHAPTER_PAIR}
    assert all(f"--KernelSpecManager.allowed_kernelspecs={name}" in words for name in specs)
    with pytest.raises(UserError, match="no complete session of the chapter 'loaders'"):
        cli.lab.main(["loaders", "--from", str(tmp_path)], standalone_mode=False)
