"""JupyterLab forgives: a beginner's mistake ends in one sentence at the cell, before anything is measured; what was
changed is measured first.

Real kernels; nothing here waits for a whole measurement.
"""

import math
import re
from dataclasses import replace
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import click
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

from ffilab.measure import reporting
from ffilab.measure.case import Case
from ffilab.measure.changed import books_longest, books_own, changed
from ffilab.measure.plan import Arm
from ffilab.page import asked, forgiving
from ffilab.page import lab as laboratory
from ffilab.page.contents import Chapter
from ffilab.run import settings
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS, ROOT
from ffilab.setup import mine, native

GETPID = '*(call(loader, "getpid", None) for loader in LOADERS),'


CELLS = [cell.source for cell in Chapter("loaders").notebook.cells if cell.cell_type == "code"]
CASES = 'runs = session.run("counting thread", '
# A beginner's mistakes: what stands in a cell, what takes its place, and what is then said.
MISTAKES = {
    "a symbol that is not there": (
        GETPID,
        GETPID.replace("getpid", "getppppid"),
        r"^'CDLL getppppid' cannot be timed \(line 37 of this cell: .*undefined symbol: getppppid.* run the cell again",
    ),
    "a typo in the statement": ('"f()", setup, beside', '"f(", setup, beside', r"line 18 of this cell.*never closed"),
    "a typo in the setup": ("import ctypes; f =", "import ctype; f =", r"No module named 'ctype'"),
    "a statement that hangs": (
        GETPID,
        f'{GETPID} Arm("for ever", "while True: pass"),',
        r"^'for ever' cannot be timed.*took longer than 4 s",
    ),
    "a name that is not there": (
        "for loader in LOADERS",
        "for loader in LOADRES",
        r"^Line 36 of this cell.*LOADRES.*Did you mean: 'LOADERS'",
    ),
    "a tab among spaces": ("    free_threaded = {", "\tfree_threaded = {", r"^Line \d+ of this cell.*unindent"),
    "two arms of one name": (
        GETPID,
        f'{GETPID} Arm("mine", "pass"), Arm("mine", "f()"),',
        r"^Two arms are called 'mine': give one",
    ),
    "a function for a statement": (
        GETPID,
        f'{GETPID} Arm("mine", call),',
        r"^The statement of 'mine' is the function call: write it as text",
    ),
    "a statement that works once": (
        GETPID,
        f'{GETPID} Arm("mine", "x.pop()", "x = [1, 2, 3]"),',
        r"^'mine' worked once, and not again \(line 37 of this cell: .*IndexError: pop from empty list\. A st",
    ),
    "a slow statement": (
        GETPID,
        f'{GETPID} Arm("mine", "time.sleep(0.2)", "import time"),',
        r"^One pass of 'mine' takes 0\.2\d? s \(line 37 of this cell: .*of at most 50 ms",
    ),
    "nothing is called": (GETPID, f'{GETPID} Arm("mine", "f", "f = len"),', r"^'mine' calls nothing: write f\(\) to"),
    "a name of the instrument's": (GETPID, f'{GETPID} Arm("control 1", "f()"),', r"^'control 1' is a name of the"),
    "an empty statement": (GETPID, f'{GETPID} Arm("mine", ""),', r"^'mine' has no statement to time"),
    "no comma": ('"noop", more=" again"', '"noop" more=" again"', r"^Line 40 of this cell.*forgot a comma"),
    "a name that is not there, in a function": (
        ".sleep_ms\n",
        ".sleep_ms + nothing\n",
        r"^counting names nothing, .*\(sleep_ms = .* \+ nothing\): correct it",
    ),
    "a function of a case that hangs": (
        "    stop = True\n",
        "    stop = False\n",
        r"^counting\(loader='\w+'\) on 3\.14t? \(line 4 of its cell\) had not come back after 4 s",
    ),
    "an attribute that is not there": (
        CASES,
        CASES.replace("run(", "rum("),
        r"^Line 11 of this cell.*Did you mean: '.?run'",
    ),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A function that runs cells in the chapter's own kernel, as JupyterLab does, and returns what each says of its
    failure; and the folder where it measures."""
    build = tmp_path_factory.mktemp("lab")
    environment = {settings.BUILD: str(build), settings.TOLD: '{"lab": true}', settings.BUDGET: "smoke"}
    environment |= {"PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(ROOT / "kernels")}
    environment["PYTHONSTARTUP"] = str(ROOT / "ffilab" / "page" / "kernel_start.py")

    def run(sources):
        notebook = Chapter("loaders").notebook
        kernel = notebook.metadata.kernelspec.name
        notebook.cells = [new_code_cell(source) for source in sources]
        resources = {"metadata": {"path": str(NOTEBOOKS / "loaders")}}
        extra = ["--HistoryManager.hist_file=:memory:"]
        NotebookClient(
            notebook, timeout=120, kernel_name=kernel, resources=resources, extra_arguments=extra, allow_errors=True
        ).execute()
        failures = [[out for out in cell.outputs if out.output_type == "error"] for cell in notebook.cells]
        return ["\n".join(failed[0].traceback) if failed else "" for failed in failures]

    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield run, build


@pytest.fixture(scope="module")
def told(run):
    """What is said of each mistake, in one kernel, after a cell out of order."""
    run, build = run
    begin, imports, cell = CELLS[:3]
    counting, cases = (source for source in CELLS if "def counting" in source or CASES in source)
    in_order, expected = [begin, cell, imports, counting], ["", "out of order", "", ""]
    for what, (old, new, _) in MISTAKES.items():
        source = next(source for source in (cell, counting, cases) if old in source)
        expected.append(what)
        in_order.append(source.replace(old, new))
        if source == counting:
            expected[-1:] = ["", what, ""]
            in_order += [cases, counting]
    said = run(in_order)
    assert not list(build.rglob("calls.jsonl")), "it was measured"
    assert not [(source, line) for source, what, line in zip(in_order, expected, said) if line and not what]
    return dict(zip(expected, said))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_at_the_cell_before_anything_is_measured(mistake, told):
    assert re.search(MISTAKES[mistake][2], click.unstyle(told[mistake])), told[mistake]
    assert "ffilab" not in told[mistake]


def test_a_cell_that_runs_twice_counts_its_processes_once(run):
    # As events, which hold also where they were disturbed: of what is timed, a busy machine counts fewer.
    twice = 2 * [source.replace("repeats)", "repeats, events=True)") for source in CELLS if CASES in source]
    *_, rows = run[0](
        [
            *CELLS[:2],
            *(source for source in CELLS if "def counting" in source),
            *twice,
            "raise ValueError(f'{len(runs)} rows of {len(cases) * session.budget.repeats}')",
        ]
    )
    rows, planned = re.search(r"(\d+) rows of (\d+)", rows).groups()
    assert rows == planned


def test_before_the_chapter_has_begun_and_after_an_interrupt_a_cell_is_forgiven(run):
    """As after a restart of the kernel."""
    assert run[0](["session.time('calls', [])", "raise KeyboardInterrupt"]) == [
        f"session is not there yet: {forgiving.ABOVE}.",
        forgiving.STOPPED,
    ]


IN_A_SENTENCE = {
    "x = 1\nreturn x": "Line 2 of this cell, `return x`: SyntaxError: 'return' outside function. Correct it",
    "x = f(1,\n": "SyntaxError: a bracket or a text that is opened here is never closed. Correct it",
    "raise ValueError('the cause\\nand more')": "ValueError: the cause. Correct it",
}


def test_the_line_and_the_cause_are_in_the_sentence(run):
    for (cell, said), told in zip(IN_A_SENTENCE.items(), run[0]([*IN_A_SENTENCE])):
        assert said in click.unstyle(told), cell


ASKED = {
    "no list of arms": (asked.must_be_arms, Arm("mine", "pass"), "nothing to time"),
    "no arms": (asked.must_be_arms, [], "nothing to time"),
    "an interpreter that no arm can name": (asked.must_be_arms, [Arm("a", "pass", interpreters=("2.7",))], "names"),
    "a name with a slash": (asked.must_be_named, "mine/yours", "no name for a run"),
    "a label in place of a list": (partial(asked.must_be_labels, here=["3.14", "3.14t"]), "3.14", "write a list"),
    "a text in place of a function": (asked.must_be_cases, [Case("3.14", "counting")], "counting without quotes"),
    "a case on no interpreter": (asked.must_be_cases, [Case("2.7", partial)], "names '2.7'"),
    "no cases": (asked.must_be_cases, "counting", "nothing to run"),
}


@pytest.mark.parametrize("slip", ASKED)
def test_what_is_asked_is_looked_at_before_anything_starts(slip):
    look, given, said = ASKED[slip]
    with pytest.raises(UserError, match=said):
        look(given)


def test_an_attribute_is_timed_and_a_call_without_brackets_is_said(capsys):
    asked.must_call([Arm("mine", "o.x"), Arm("called", "o.x()"), Arm("kept", "y = o.x")])
    (line,) = capsys.readouterr().out.splitlines()
    assert line == "'mine' reads an attribute and calls nothing: write o.x() to time a call."


def test_a_cell_out_of_order_names_what_to_run_first(told):
    assert told["out of order"] == f"LIBRARY is not there yet: {forgiving.ABOVE}."


def test_a_session_that_was_closed_says_how_to_go_on(run):
    *_, said = run[0]([CELLS[0], "session.close()", "session.time('calls', [])"])
    assert "run the cell with `chapter.begin` again" in said


@pytest.mark.parametrize(
    ("chapter", "name"), {"loaders": "calls", "critical_sections": "single", "races": "remedies"}.items()
)
def test_the_books_own_arms_are_known(chapter, name):
    """The golden records have them as the cells make them now: else all would look changed."""
    arms, own = import_module(f"notebooks.{chapter}.experiment").arms(), books_own(chapter, name)
    assert not changed(arms, own)
    assert [arm.name for arm in changed([*arms, Arm("mine", "pass")], own)] == ["mine"]
    assert [arm.name for arm in changed([replace(arms[0], statement="f(")], own)] == [arms[0].name]


def test_an_arm_that_one_interpreter_can_make_is_no_mistake(monkeypatch, tmp_path):
    """The others name it, with the reason, above the table."""
    monkeypatch.setattr(laboratory, "LOGS", tmp_path)
    only_here = Arm("t", "pass", "import sys; assert not sys._is_gil_enabled()")
    laboratory.try_out([only_here], ["3.14", "3.14t"])
    with pytest.raises(UserError, match=r"'t' cannot be timed: AssertionError\. Correct it"):
        laboratory.try_out([only_here], ["3.14"])


# Mistakes in C: what stands in native/loaders/library/loaders.c, what takes its place, and what is then said.
IN_C = {
    "no semicolon": ("return 0;", "return 0", r"line 12, `return 0`: expected .;.*"),
    "a name that is not there": (")value + 1u", ")nought + 1u", r"line \d+, `.*nought.*`: .nought. undeclared.*"),
    "a function that is not there": ("nanosleep(", "nanoslep(", r"line \d+, `.*nanoslep.*`: there is no nanoslep\. .*"),
    "a function that is gone": ("int noop(", "int nop(", r"my/loaders/library has no noop any more.*"),
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The C file of a reader's copy of the library, in folders of its own; the original is built."""
    folder = tmp_path_factory.mktemp("mine")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"MINE": folder / "my", "ROOT": folder, "NATIVE_OUT": folder / "built"}.items():
            patch.setattr(mine, name, value)
        patch.setattr(native, "LOGS", folder)
        native.build(mine.NATIVE / "loaders/library", [], folder / "built/loaders")
        yield mine.copy("loaders/library") / "loaders.c"


@pytest.mark.parametrize("mistake", IN_C)
def test_a_mistake_in_c_is_told_with_its_line(mistake, copied):
    """As the cell of an exercise builds a reader's copy."""
    old, new, said = IN_C[mistake]
    text = (mine.NATIVE / "loaders/library/loaders.c").read_text()
    assert old in text
    copied.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=f"^(my/loaders/library/loaders.c, )?{said}run this cell again"):
        mine.build_here("loaders/library")


def test_a_hang_is_told_sooner_where_the_books_own_processes_are_short():
    case = Case("3.14", books_longest)
    assert laboratory.Watched.of(case, 0.5).timeout_s == laboratory.TRIAL_S
    assert laboratory.Watched.of(case, 2).timeout_s == 2 * laboratory.SLOWER
    assert laboratory.Watched.of(case, 20) is case
    hinted = laboratory.Watched.of(replace(case, timeout_s=4, hint="Is it attached again?"), math.nan)
    assert hinted.timeout_s == 4
    assert "Is it attached again?" in hinted.hung
    limited = replace(case, timeout_s=15)
    assert laboratory.Watched.of(limited, math.nan) is limited
    assert 0 < books_longest("loaders", "counting thread") < 2
    assert math.isnan(books_longest("loaders", "no such experiment"))


def test_names_of_a_chapter_are_what_its_cells_define():
    assert {"LIBRARY", "call", "ctypes", "record", "replace"} <= forgiving.names_of("loaders")
    assert "LOADRES" not in forgiving.names_of("loaders")


def test_what_was_changed_is_timed_beside_what_it_is_compared_with(monkeypatch):
    planned, shown = [], []
    monkeypatch.setattr(laboratory.runner, "run", lambda plan, folder: planned.append(plan))
    monkeypatch.setattr(laboratory.draw, "changed", lambda record, names, caption: shown.append(names))
    session = SimpleNamespace(budget=BUDGETS["room"], chapter="loaders")
    arms = [Arm("a", "pass", beside="x"), Arm("b", "pass", beside="x"), Arm("c", "pass", beside="y")]
    laboratory.Laboratory._first(session, "calls", arms, arms[:1], ["3.14"])
    assert shown == [["a"]]
    timed = [arm.name for arm in planned[0].arms if not arm.name.startswith(("control", "empty"))]
    assert timed == ["a", "b"]
    assert planned[0].wall_s == laboratory.FIRST_S


def test_progress_never_runs_backwards(monkeypatch, capsys):
    monkeypatch.setattr(reporting, "MIN_INTERVAL_S", 0)
    with reporting.Reporter("calls", 4) as reporter:
        for _ in range(4):
            reporter.advance("restart 1")
        reporter.add(4)
        for _ in range(4):
            reporter.advance("restart 2")
    said = capsys.readouterr().err
    shares = [int(share) for share in re.findall(r"(\d+)%", said)]
    assert len(shares) == 8
    assert shares == sorted(shares)
    assert "restart 2, more than planned" in said
