"""`ffilab scale`: mistakes and refusals, names, and short real looks at what a free-threaded build counts and locks. No
test asks for a speed."""

import ast
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

import ffilab
from ffilab.judge.estimates import MIN_VALUES
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.installed import load
from ffilab.yours.scale import asking, command, diagnosing, rules
from ffilab.yours.scale.ffilab_child import names
from ffilab.yours.scale.result import Scaling
from studies.scale import undeclared
from tests.helpers.environment import clean_environment
from tests.helpers.scaling import processes

CHILD = ROOT / "ffilab/yours/scale/ffilab_child"
TWO_CORES = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="threads need a core each")


# ---- mistakes ----


def test_a_build_with_the_gil_is_refused():
    with pytest.raises(UserError, match="name a free-threaded one with --python"):
        asking.python_of(str(load(BY_LABEL[GIL]).python))


def test_a_version_that_is_not_known_is_refused(monkeypatch):
    newer = SimpleNamespace(interpreter=SimpleNamespace(free_threaded=True, version="3.99"))
    monkeypatch.setattr(asking, "found", lambda named: {"newer": newer})
    with pytest.raises(UserError, match=r"is 3\.99t, and how its objects are laid out is not known: name one of"):
        asking.python_of("newer")


@pytest.mark.parametrize(
    ("threads", "ours", "said"),
    [
        (1, {0, 1}, "say 2 or more"),
        (3, {0, 1}, "2 cores: say 2 or fewer"),
        (2, {0}, "one core, on which threads take turns"),
    ],
)
def test_threads_need_cores(threads, ours, said, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: ours)
    with pytest.raises(UserError, match=said):
        asking.cores(threads)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--json", "nowhere/x", "pass"], "--json names nowhere/x"),
        (["--fail-below", "-1", "pass"], "--fail-below is -1"),
        (["--time", "soon", "pass"], "say it as in 60s"),
        ([" "], "nothing to run"),
    ],
)
def test_a_mistake_is_one_sentence(words, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=said):
        command.scale.main(words, standalone_mode=False)


def asker(tmp_path, statement, setup=""):
    return asking.Asker(load(BY_LABEL[FREE_THREADED]).python, statement, setup, None, 2, tmp_path, 0.01)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("nowhere", r"cannot be run \(NameError: "),
        ("if", r"cannot be run \(SyntaxError: "),
        ("import os; os._exit(3)", "ended with exit code 3"),
        ("import ctypes; ctypes.string_at(0)", "was killed by SIGSEGV"),
        ("import time; time.sleep(1.1)", "one pass takes 1.1 s: give a smaller piece"),
    ],
)
@TWO_CORES
def test_a_statement_that_cannot_be_run_is_told(statement, said, tmp_path):
    with pytest.raises(UserError, match=said):
        asker(tmp_path, statement).ask("measure")


# ---- the child ----


def test_the_child_imports_only_the_standard_library():
    for path in CHILD.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= set(sys.stdlib_module_names), path
            if isinstance(node, ast.ImportFrom):
                assert node.level == 1 or node.module in sys.stdlib_module_names, path


def test_the_walk_gives_names_that_a_reader_would_type():
    text = (
        "class V: pass\nv = V(); v.a = [V()]; config = {'limit': V()}\ndef f(x=V()): return x\n"
        "def make():\n held = V()\n return lambda: held\ng = make()\nm = v.__init__\n"
    )
    space = {}
    exec(text + "def loop(): v.a; config['limit']; f(); g(); m; return 2.5", space)
    found = names.walk(space["loop"])
    for name, thing in {
        "v": space["v"],
        "v.a": space["v"].a,
        "v.a[0]": space["v"].a[0],
        "config['limit']": space["config"]["limit"],
        "f: default of x": space["f"].__defaults__[0],
        "g: held, closed over": space["g"].__closure__[0].cell_contents,
        "V": space["V"],
    }.items():
        assert found[name] is thing
    assert "constant 2.5" in found


def test_what_the_walk_misses_is_named_by_the_module_whose_global_it_is():
    import logging

    assert names.described(logging._lock) == "logging._lock"
    assert names.described(logging.NOTSET) == "int 0"
    assert names.chosen(["logging._lock"], {}) == [logging._lock]
    space = {"logging": logging, "made": logging.getLogger, "own": object()}
    assert names.imported(space) == ["logging", "made"]


def test_attributes_in_a_namespace_have_their_names():
    from types import SimpleNamespace

    space = {"settings": SimpleNamespace(pool=object())}
    exec("def loop(): settings.pool", space)
    found = names.walk(space["loop"])
    assert found["settings.pool"] is space["settings"].pool
    assert found["settings.__dict__"] is vars(space["settings"])


def seen(said, what):
    return {one["name"] for one in said[what]["seen"]}


@TWO_CORES
@pytest.mark.parametrize(
    ("statement", "setup", "kind", "wanted"),
    [
        ("l[0]", "class V: pass\nl = [V()]", "counts", {"l", "l[0]"}),
        ("L.acquire(); L.release()", "import threading\nL = threading.Lock()", "lock", {"L"}),
    ],
)
def test_a_real_sweep_sees_what_is_counted_and_locked(statement, setup, kind, wanted, tmp_path):
    one = asker(tmp_path, statement, setup)
    # Where others have the cores, the statement hardly runs in so short a time.
    for _ in range(20):
        said = one.ask("watch", seconds=0.1)
        assert not wanted & seen(said, f"pass {kind}")
        if wanted <= seen(said, f"statement {kind}"):
            return
    pytest.fail(f"{wanted} was never seen")


@TWO_CORES
def test_arms_do_what_they_say(tmp_path):
    """A child that made its suspects immortal, deferred or copied them still runs, and answers with rows."""
    # Long enough for a row of each thread, beside other load too.
    one = replace(asker(tmp_path, "l[0]", "class V: pass\nl = [V()]"), seconds=0.2)
    for how in (
        {"immortal": ["l", "l[0]"]},
        {"immortal": "everything"},
        {"deferred": ["l"]},
        {"own": True},
        {"own": ["l"]},
        {"local": ["l"]},
        {"processes": True},
        {"control": True},
        {"beside": True},
        {"no_collector": True},
    ):
        said = one.ask("measure", **how)
        assert len(said["rows"]) == 2, how
        assert all(said["rows"]), how


@TWO_CORES
def test_constants_are_those_that_an_import_reads_back(tmp_path):
    said = asker(tmp_path, "sin(1.0)", "from math import sin").ask("watch", seconds=0.05)
    assert "constant 1.0" not in {one["name"] for one in said["statement counts"]["seen"]}


@TWO_CORES
def test_the_module_that_brings_the_gil_back_is_named(tmp_path):
    undeclared(tmp_path, "undeclared")
    one = asker(tmp_path, "pass", f"import sys; sys.path.append({str(tmp_path)!r}); import undeclared")
    record = Scaling("pass", "t", 2, {rules.BASE: processes(1.0, gil=True)})
    diagnosing.Diagnosis(one, record, 0.0).without_gil()
    assert record.gil_by == "undeclared"
    assert record.kinds == [rules.GIL]


@pytest.mark.full
@TWO_CORES
def test_a_real_diagnosis(tmp_path):
    """It answers, whatever this machine lets it see, and its record reads back."""
    found = ffilab.scale("l[0]", "class V: pass\nl = [V()]", python=load(BY_LABEL[FREE_THREADED]).python, quiet=True)
    assert found.verdict in (rules.HELD, "open", rules.MACHINE)
    assert found.verdict != rules.HELD or len(found.arms[rules.BASE]) >= MIN_VALUES
    assert {one.name for one in found.culprits} <= {"l", "l[0]"}
    found.save(tmp_path / "record.json")
    assert str(Scaling.read(tmp_path / "record.json")) == str(found)


@pytest.mark.full
@TWO_CORES
def test_the_command_on_a_real_statement(tmp_path):
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from ffilab.yours.command import main; main()"
    words = ["--python", load(BY_LABEL[FREE_THREADED]).python, "--time", "5s", "--json", tmp_path / "x.json", "[]"]
    command_line = [sys.executable, "-c", program, "scale", *map(str, words)]
    ended = subprocess.run(command_line, env=clean_environment(), capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert os.path.exists(tmp_path / "x.json")
