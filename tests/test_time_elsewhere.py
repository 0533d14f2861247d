"""`ffilab time` in other hands: each fault that readers met, by its kind: a wrong number, a wrong exit code, a lost
run."""

import errno
import os
import random
import re
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

import ffilab
from ffilab.judge.estimates import Interval
from ffilab.measure.plan import Arm
from ffilab.measure.workers import Worker, WorkerFailed
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.installed import load
from ffilab.yours import benchmarks, beside, command, comparing, pythons
from ffilab.yours.amounts import SECONDS
from studies.scale import undeclared
from tests.helpers.environment import clean_environment, ran, script

PYTHON = sys.executable


# The command as a reader runs it.
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ffilab.yours.command import main; main()"


def ffilab_time(*words, cwd=None):
    """Run the command; nothing is measured where a mistake is told first."""
    told = clean_environment(**settings.telling(alone=True))
    return ran(PYTHON, "-c", PROGRAM, "time", *words, cwd=cwd, env=told, timeout=120)


@contextmanager
def made(*arms, label=GIL):
    """A worker that has made these arms, and what it answered."""
    with closing(Worker(load(BY_LABEL[label]), "test", Path(os.environ["FFILAB_BUILD"]) / "worker.log")) as worker:
        worker.load(arms, None, random.Random(0))
        yield worker


def tried(folder, statement, setup, pin=True):
    """Try a statement before it is measured."""
    interpreters = pythons.found([GIL])
    arms = comparing.prepared([Arm("x", statement, setup)])
    comparing.tried(arms, interpreters, pythons.pool(interpreters), folder, 1, pin=pin)


# ---- what was typed is what is run and shown ----


@pytest.mark.parametrize("word", ["./python3", "./mine"])
def test_a_relative_python_is_that_one(word, tmp_path, monkeypatch):
    (tmp_path / word).symlink_to(load(BY_LABEL[GIL]).python)
    monkeypatch.chdir(tmp_path)
    assert pythons.executable(word) == tmp_path / word


def test_a_link_to_a_folder_keeps_its_name(tmp_path):
    (tmp_path / "releases" / "7" / "bin").mkdir(parents=True)
    (tmp_path / "releases" / "7" / "bin" / "python").symlink_to(load(BY_LABEL[GIL]).python)
    (tmp_path / "current").symlink_to(tmp_path / "releases" / "7")
    assert list(pythons.found([tmp_path / "current"])) == ["current"]


# ---- the reader's names are the reader's alone ----


@pytest.mark.parametrize("name", ["loops", "_names", "timer", "self"])
def test_a_name_of_the_setup_is_what_the_setup_says(name):
    with made(Arm("x", f"assert {name} == 10", f"{name} = 10")) as worker:
        assert worker.loaded["missing"] == {}
        assert worker.time("x", 3)["ns"] > 0


def test_a_name_that_nobody_assigned_is_an_error():
    with made(Arm("x", "loops"), Arm("y", "_names"), Arm("z", "pass", "globals()['a b'] = 1")) as worker:
        reasons = {name: reason[:9] for name, reason in worker.loaded["missing"].items()}
    assert reasons == {"x": "NameError", "y": "NameError"}


def test_the_collector_is_as_in_timeit():
    on, off = "import gc; gc.enable()", "import gc"
    with made(Arm("on", "assert gc.isenabled()", on), Arm("off", "assert not gc.isenabled()", off)) as worker:
        assert worker.loaded["missing"] == {}


# ---- nothing of the reader's folder is taken for Python's own ----


@pytest.mark.parametrize("name", ["json", "platform", "types"])
def test_a_module_beside_the_reader_shadows_nothing(name, tmp_path, monkeypatch):
    (tmp_path / f"{name}.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.chdir(tmp_path)
    assert pythons.probed(Path(load(BY_LABEL[GIL]).python), "it")["implementation"] == "CPython"


def test_what_a_program_says_that_is_no_python_is_passed_on(tmp_path):
    program = script(tmp_path / "python", "echo 'no license' >&2\nexit 1")
    with pytest.raises(UserError, match=r"does not answer as a Python does \(no license\)"):
        pythons.probed(program, "it")


# ---- outputs are tried before anything is measured ----


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "nowhere/x.jsonl"], "--json names nowhere/x.jsonl, which cannot be written"),
        (["--export-markdown", "nowhere/x"], "--export-markdown names nowhere/x, which cannot be written"),
        (["--pyperf", "nowhere/x"], "--pyperf names nowhere/x, which cannot be written"),
        (["--json", ""], "--json is '': name a file"),
        (["--json", "-"], "--json is '-': name a file"),
        (["--json", "x", "--pyperf", "./x"], "name one file"),
        (["--json", "/proc/x"], "--json names /proc/x, which cannot be written"),
        (["--fail-if-slower", "0.02"], "--fail-if-slower is '0.02': say it as in 1%"),
        (["--time", "1 hour"], "say it as in 60s, 2m or 1h"),
    ],
)
def test_what_cannot_be_written_or_meant_is_said_before_the_run(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: pytest.fail("it was measured"))
    with pytest.raises(UserError, match=re.escape(said)):
        command.time.main([*words, "pass", "1"], standalone_mode=False)


@pytest.mark.parametrize(("typed", "seconds"), [("1h", 3600), ("500ms", 0.5), ("2m", 120), ("7", 7)])
def test_times_are_as_people_type_them(typed, seconds):
    assert SECONDS.read(typed, "--time") == seconds


@pytest.mark.parametrize("words", [["pass"], ["--python", PYTHON, "pass"]])
def test_a_gate_with_nothing_to_compare_is_a_mistake(words):
    ended = ffilab_time("--fail-if-slower", "2%", *words)
    assert ended.returncode == 2
    assert "nothing to compare with" in ended.stderr


def test_a_statement_that_looks_like_an_option_is_told_how(tmp_path):
    ended = ffilab_time("-9", "1", cwd=tmp_path)
    assert ended.returncode == 2
    assert "Put a statement that begins with - after --" in ended.stderr


def test_a_folder_that_was_removed_is_a_sentence_and_no_finding(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    leaves = f'cd "{gone}" && rmdir "{gone}" && exec "$0" -c "$1" time pass 1'
    ended = ran("sh", "-c", leaves, PYTHON, PROGRAM, env=clean_environment())
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


# ---- who dies is named, with the way out ----


@pytest.mark.usefixtures("quiet_progress")
@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("import sys; sys.exit(3)", r"'import sys; sys.exit\(3\)' cannot be timed on .* \(SystemExit: 3\)"),
        ("import os; os._exit(3)", r"'import os; os._exit\(3\)' cannot be timed: .* ended with exit code 3"),
        ("raise KeyboardInterrupt", r"\(KeyboardInterrupt\): correct it"),
        ("import ctypes; ctypes.string_at(0)", r"was killed by SIGSEGV"),
        ("for i in range(3):", "each argument is a statement of its own"),
    ],
)
def test_the_statement_that_ends_a_process_is_named(statement, said):
    with pytest.raises(UserError, match=said):
        ffilab.compare(["pass", statement])


def test_an_error_that_is_long_is_cut():
    with made(Arm("x", 'raise ValueError("a\\nb" * 3000)')) as worker:
        assert len(worker.loaded["missing"]["x"]) < 400
        assert "\n" not in worker.loaded["missing"]["x"]


def test_the_gil_that_comes_back_later_is_seen(tmp_path):
    undeclared(tmp_path, "undeclared")
    setup = f"import sys; sys.path.append({str(tmp_path)!r}); state = [0]"
    statement = "state[0] += 1\nif state[0] == 50: import undeclared"
    with (
        made(Arm("x", statement, setup), label=FREE_THREADED) as worker,
        pytest.raises(WorkerFailed, match=r"x on .* turned the GIL back on, by importing 'undeclared'"),
    ):
        worker.time("x", 100)


# ---- what is left out, used up or empty is said ----


def test_benchmarks_that_cannot_be_timed_are_named(tmp_path, capsys):
    file = tmp_path / "bench.py"
    file.write_text(
        "from others import bench_imported\n"
        "def bench_plain(): yield 1\n"
        "def bench_plain(): pass\n"
        "def bench_sized(n=3): return (lambda: (yield))\n"
        "def bench_needs(n): pass\n"
        "def bench_yields(): yield 1\n"
        "async def bench_awaited(): pass\n"
        "class Suite:\n    def bench_method(self): pass\n"
        "bench_bound = print\n"
    )
    arms = benchmarks.arms_of((), "", str(file), ())
    assert [arm.name for arm in arms] == ["bench_plain", "bench_sized", "bench_awaited"]
    said = capsys.readouterr().err
    assert all(name in said for name in ("imported", "bench_needs", "bench_yields", "bench_method", "bench_bound"))


@pytest.mark.parametrize(
    ("statement", "is_said"),
    [("f", True), ("m.f", True), ("'f()'", True), ("f()", False), ("...", False), ("x = f", False), ("if", False)],
)
def test_a_statement_that_calls_nothing_is_said(statement, is_said, capsys):
    benchmarks.arms_of((statement,), "", None, ())
    assert ("calls nothing" in capsys.readouterr().err) is is_said


def test_a_file_for_a_newer_python_is_read_by_that_one(tmp_path):
    file = tmp_path / "bench.py"
    file.write_text("def bench_it(: pass\n")
    assert len(benchmarks.arms_of(("f()",), "", str(file), ())) == 1
    with pytest.raises(UserError, match=r"is not valid in Python .*, which runs this command"):
        benchmarks.arms_of((), "", str(file), ())


@pytest.mark.usefixtures("quiet_progress")
@pytest.mark.parametrize(
    ("setup", "statement"),
    [("it = iter(range(100_000))", "for _ in it: pass"), ("d = dict.fromkeys(range(50_000))", "while d: d.popitem()")],
)
def test_work_that_is_used_up_is_said(setup, statement, capsys, tmp_path):
    tried(tmp_path, statement, setup)
    assert "The first pass of 'x' took" in capsys.readouterr().err


@pytest.mark.usefixtures("quiet_progress")
@pytest.mark.parametrize("pin", [True, False])
def test_threads_that_share_a_core_are_said(pin, capsys, tmp_path):
    setup = "from concurrent.futures import ThreadPoolExecutor; pool = ThreadPoolExecutor(2)"
    tried(tmp_path, "list(pool.map(abs, range(9)))", setup, pin)
    assert ("threads on one core: --no-pin" in capsys.readouterr().err) is pin


def test_a_coroutine_is_awaited_once_for_each_pass(tmp_path):
    program = "calls = []\nasync def called(): calls.append(1)\nawaited(called)(5)\nprint(len(calls))"
    assert ran(PYTHON, "-c", benchmarks.AWAITED + program, check=True).stdout == "5\n"
    file = tmp_path / "bench.py"
    file.write_text("import asyncio\nasync def bench_it(): asyncio.get_running_loop()\n")
    (arm,) = comparing.prepared(benchmarks.arms_of((), "", str(file), ()))
    with made(arm) as worker:
        assert worker.loaded["missing"] == {}
        assert worker.time(arm.name, 5)["ns"] > 0


@pytest.mark.usefixtures("quiet_progress")
def test_a_coroutine_that_nobody_awaits_is_told_how(tmp_path):
    with pytest.raises(UserError, match="makes the coroutine f, and nobody awaits it: "):
        tried(tmp_path, "f()", "async def f(): pass")


def test_memory_is_that_of_a_process_and_of_a_pass(monkeypatch):
    """Not that of whoever started the process: it may be larger."""
    monkeypatch.setattr(beside, "PROCESSES", 3)
    arms = [Arm("little", "x = bytes(10)"), Arm("much", f"x = b'x' * {64 << 20}")]
    result = SimpleNamespace(cells=[(GIL, arm.name) for arm in arms], names=["little", "much"])
    (_, *resident), (_, *traced) = beside.Beside(arms, [GIL], "off", result).memory()
    first, second = (float(text.split()[0]) for text in resident)
    assert first < 60
    assert 60 < second - first < 70
    assert [round(float(text.split()[0])) for text in traced] == [0, 64]


@pytest.mark.tool("valgrind")
def test_instructions_are_counted_for_any_python():
    arms = [Arm("little", "sum(range(10))"), Arm("much", "sum(range(1000))")]
    times = {name: Interval(1e4, 9e3, 11e3) for name in ("little", "much")}
    result = SimpleNamespace(cells=[(GIL, arm.name) for arm in arms], names=[*times], times=times)
    ((_, *counts),) = beside.Beside(arms, [GIL], "off", result).instructions()
    little, much = (float(text.split()[0].replace(",", "")) for text in counts)
    assert 10 * little < much


@pytest.mark.tool("valgrind")
def test_the_seed_of_the_hashes_is_what_varies_between_counts():
    arm, times = Arm("texts", "sorted(names)", "names = set(map(str, range(300)))"), {"texts": Interval(1e5, 9e4, 11e4)}
    result = SimpleNamespace(cells=[(GIL, "texts")], names=["texts"], times=times)
    ((_, count),) = beside.Beside([arm], [GIL], "off", result).instructions()
    assert re.fullmatch(r"[\d,.]+ \[[\d,.]+, [\d,.]+\]", count)


@pytest.mark.tool("valgrind")
@pytest.mark.parametrize("setup", ["1 / 0", "import plan"])
def test_what_callgrind_cannot_make_is_a_sentence_and_our_modules_are_not_the_readers(setup):
    result = SimpleNamespace(cells=[(GIL, "it")], names=["it"], times={"it": Interval(1e4, 9e3, 11e3)})
    with pytest.raises(UserError, match=r"callgrind could not run 'it' on 3\.14: leave --instructions out"):
        beside.Beside([Arm("it", "pass", setup)], [GIL], "off", result).instructions()


def test_a_python_that_may_not_be_read_is_a_sentence(monkeypatch):
    refused = PermissionError(errno.EACCES, "Permission denied", "kept/python3")
    monkeypatch.setattr(pythons.Path, "is_dir", Mock(side_effect=refused))
    with pytest.raises(UserError, match="'kept/python3', which this user may not read"):
        pythons.executable("kept/python3")


INTERRUPTED = """
import sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "ffilab.yours.command":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from ffilab.yours.script import main
main()
"""


def test_an_interrupt_during_the_first_imports_leaves_no_traceback():
    ended = ran(PYTHON, "-c", INTERRUPTED, cwd=ROOT)
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("arms", [[Arm("a")], [""], [Arm(" ", "pass")]])
def test_what_is_empty_is_a_sentence(arms):
    with pytest.raises(UserError, match="empty"):
        ffilab.compare(arms)


def test_a_text_is_one_statement_and_one_python(monkeypatch):
    asked = []
    monkeypatch.setattr(comparing, "prepared", lambda arms: asked.append(arms) or [])
    monkeypatch.setattr(comparing.known, "found", lambda named: asked.append(named) or {})
    with pytest.raises(UserError, match="nothing to time"):
        ffilab.compare("pass", pythons="python3")
    assert asked == [["python3"], ["pass"]]
    with pytest.raises(UserError, match="say off, on or both"):
        ffilab.compare("pass", gil="maybe")


# ---- where people already work ----


def test_a_notebook_compares_its_lines(monkeypatch):
    """Names of the notebook go along; a mistake is one sentence of IPython's."""
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "ffilab")
    asked = []
    monkeypatch.setattr(
        comparing, "compare", lambda arms, pythons, **further: asked.append((arms, further)) or "result"
    )
    shell.run_cell("n = 99\nx = list(range(n))\ndef total(x): return sum(x)")
    assert shell.run_cell("%%ffilab --time 2s -s 'y = n'\ntotal(x)\n# the other one\nmax(x)").result == "result"
    ((arms, further),) = asked
    assert [arm.statement for arm in arms] == ["total(x)", "max(x)"]
    assert (arms[0].setup, further["seconds"]) == ("y = n", 2)
    assert all(text in arms[0].uses for text in ("n = 99", "def total(x)", "x = [0, 1,"))
    assert shell.run_line_magic("ffilab", "--help") is None
    for cell, said in {
        "%%ffilab --time soon\npass": "say it as in",
        "%%ffilab --json x\npass": "call save",
        "%%ffilab\nshell": "cannot go to a worker",
    }.items():
        shell.user_ns["shell"] = object()
        with pytest.raises(UsageError, match=said):
            shell.run_cell_magic("ffilab", *cell.removeprefix("%%ffilab").split("\n", 1))
