"""`ffilab time` and `ffilab.compare`: what is said of results whose truth is known, mistakes in one sentence, and short
real runs."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyperf
import pytest

import ffilab
from ffilab.judge.estimates import MIN_VALUES
from ffilab.measure import foreign, runner
from ffilab.measure.plan import APART, APART_AGAIN, YOURS, Arm, control_pair
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.installed import load
from ffilab.yours import benchmarks, command, comparing, pythons, worked_example
from ffilab.yours.result import Result, width
from tests.helpers.environment import clean_environment, ran, script
from tests.helpers.made_up import timed

UV = Path(sys.executable).with_name("uv")


@pytest.fixture
def short(monkeypatch, tell, quiet_progress, quiet_machine):
    """Runs that say little, soon, and wait for nobody."""
    tell(alone=True)
    monkeypatch.setattr(runner, "LEAST_RESTARTS", MIN_VALUES)
    monkeypatch.setattr(comparing, "MOST_BLOCKS", 4)
    monkeypatch.setattr(comparing, "BATCH_MS", 0.5)


def made_up(noise=0.01, more=0.01, restarts=20, **logs):
    """A result whose arms are known: by name the logarithm of their time over the first one's. more: what the positive
    control shows."""
    draw = np.random.default_rng(1)
    same = [name for number in (1, 2) for name in control_pair(number)]
    known = {name: more * (number % 2) for number, name in enumerate(same)} | {APART: 0.0, APART_AGAIN: 0.0} | logs
    record = timed({name: log + draw.normal(0, noise, (restarts, 10)) for name, log in known.items()})
    for arm in record.run["plan"]["arms"]:
        arm |= {"beside": YOURS if arm["name"] in logs else "control", "interpreters": []}
    return Result(record, b"the record")


def test_the_winner_comes_first_and_no_difference_says_what_would_have_been_found():
    result = made_up(a=0.0, b=-0.4, c=0.4, d=0.0)
    assert result.sentence("b").startswith("b is 1.49")
    assert result.sentence("b").endswith(" times as fast as a.")
    assert result.sentence("c").endswith(" times as fast as c.")
    assert result.sentence("d").startswith("No difference found between d and a; 0.")
    assert result.ratios["b"].low < np.exp(-0.4) < result.ratios["b"].high
    text = str(result)
    assert all(words in text for words in ("over a\n", "20 restarts", "Not varied, and so unknown"))
    assert result._repr_html_().startswith("<pre>")


def test_the_table_is_written_as_markdown(tmp_path):
    result = made_up(**{"a | b": 0.0, "c": -0.4})
    result.save_markdown(tmp_path / "table.md")
    heading, line, first, second, *_ = (tmp_path / "table.md").read_text().splitlines()
    assert heading == "|  | µs per pass | over a \\| b |"
    assert line == "| --- | ---: | ---: |"
    assert first.startswith("| `a \\| b` | ")
    assert second.startswith("| `c` | ")
    assert f"- {result.sentence('c')}" in (tmp_path / "table.md").read_text()


def test_the_gate_fails_on_a_finding_only():
    result = made_up(a=0.0, slow=0.05, equal=0.0)
    assert result.slower(0.02) == {"slow": "yes", "equal": "no"}
    assert result.gate(0.02) == "Failed: slow takes more than 2 % longer than a."
    assert result.gate("10%") == result.gate(0.1) == "Passed: nothing takes more than 10 % longer than a."
    unclear = made_up(noise=0.2, a=0.0, b=0.03)
    assert unclear.slower(0.02) == {"b": "open"}
    assert unclear.gate(0.02).startswith("Open: this run cannot tell whether b takes more than 2 % longer than a")


def test_what_was_stopped_early_passes_no_gate(monkeypatch):
    """A job that was cancelled is not green; what certainly takes longer fails all the same."""
    result = made_up(a=0.0, b=0.1)
    stopped = Result(replace(result.record, cut_off=True), b"the record")
    monkeypatch.setattr(comparing, "compare", lambda *_, **__: stopped)
    for limit, code in {"2%": 1, "20%": 130}.items():
        with pytest.raises(SystemExit) as leaving:
            command.time.main(["--fail-if-slower", limit, "x", "y"], standalone_mode=False)
        assert leaving.value.code == code
    assert stopped.gate(0.2).startswith("Not judged whether anything takes more than 20 % longer than a")


def test_what_a_control_is_off_by_widens_every_interval():
    result = made_up(more=0.11, a=0.0, b=0.08, c=0.5)
    assert "A control was off (bias, " in str(result)
    assert result.slower() == {"b": "open", "c": "yes"}


def test_too_few_restarts_are_no_result():
    with pytest.raises(UserError, match="too few to tell anything"):
        made_up(restarts=2, a=0.0, b=0.1)


@pytest.mark.parametrize(
    ("given", "code"), [(["--fail-if-slower", "2%"], 1), (["--fail-if-slower", "20 %"], 0), ([], None)]
)
def test_the_exit_code_is_that_of_a_finding(monkeypatch, capsys, given, code):
    asked = {}
    monkeypatch.setattr(
        comparing, "compare", lambda arms, pythons, **further: asked.update(further) or made_up(a=0, b=0.1)
    )
    try:
        command.time.main([*given, "x", "y"], standalone_mode=False)
        ended = None
    except SystemExit as leaving:
        ended = leaving.code
    assert ended == code
    assert " times as fast as b." in capsys.readouterr().out
    defaults = {"to": 0.01, "seconds": 60.0, "gil": "off", "pin": True}
    assert {name: asked[name] for name in defaults} == defaults


def python_that_says(folder: Path, **facts) -> str:
    """A program that answers as a Python of this kind would."""
    answer = {
        "executable": str(folder / "python"),
        "implementation": "CPython",
        "release": [3, 12, 1],
        "version": "3.12",
        "free_threaded": False,
    }
    answer |= {"config_args": "", "environment": "", "packages": {}} | facts
    return str(script(folder / "python", f"echo '{json.dumps(answer)}'"))


def test_a_python_that_cannot_be_measured_is_a_sentence(tmp_path):
    for given, said in {
        "/nowhere/python": "neither a program nor a folder",
        str(tmp_path): "a folder without bin/python",
        "true": "does not answer as a Python does",
        python_that_says(tmp_path, implementation="PyPy"): "is PyPy, and only CPython is measured",
    }.items():
        with pytest.raises(UserError, match=said):
            pythons.found([given])
    with pytest.raises(UserError, match=r"is Python 3\.8\.18, and the oldest that is measured is 3\.9"):
        pythons.found([python_that_says(tmp_path, release=[3, 8, 18])])


def test_pythons_are_called_by_their_environment_or_version(tmp_path):
    plain = pythons.found([python_that_says(tmp_path), python_that_says(tmp_path)])
    assert list(plain) == ["3.12.1", "3.12.1 (2)"]
    in_project = python_that_says(tmp_path, environment="/mine/.venv", free_threaded=True)
    (label, found), *_ = pythons.found([in_project]).items()
    assert label == "mine"
    assert found.interpreter.label == "3.12t"
    assert pythons.found([GIL]) == {GIL: load(BY_LABEL[GIL])}


def test_the_gil_is_switched_on_where_there_is_one_to_switch():
    both = pythons.found([GIL, FREE_THREADED])
    arms = [Arm("f()", "f()")]
    *_, on = comparing.with_gil(arms, both, "both")
    assert on.name == "f(), with the GIL"
    assert on.gil is True
    assert on.interpreters == (FREE_THREADED,)
    plain, on = comparing.with_gil(arms, both, "on")
    assert plain.interpreters == (GIL,)
    assert on.interpreters == (FREE_THREADED,)
    with pytest.raises(UserError, match="in a free-threaded build only"):
        comparing.with_gil(arms, pythons.found([GIL]), "both")


def test_every_statement_has_a_name_of_its_own():
    found = comparing.prepared(["x", "x", "a\nb", "control 1", "y" * 99])
    assert [arm.name for arm in found[:4]] == ["x", "x (2)", "a b", "control 1 (2)"]
    assert len(found[4].name) == 40


def test_a_file_has_benchmarks_or_names_for_statements(tmp_path):
    file = tmp_path / "bench.py"
    file.write_text("def work(): pass\ndef bench_one(): work()\ndef bench_two(): pass\n")
    arms = benchmarks.arms_of((), "x = 1", str(file), ("first",))
    assert [(arm.name, arm.statement) for arm in arms] == [("first", "bench_one()"), ("bench_two", "bench_two()")]
    assert [arm.statement for arm in benchmarks.arms_of(("work()",), "", str(file), ())] == ["work()"]
    (tmp_path / "broken.py").write_text("def")
    for file, said in {"broken.py": "is not valid in Python", "no.py": "cannot be read"}.items():
        with pytest.raises(UserError, match=said):
            benchmarks.arms_of((), "", str(tmp_path / file), ())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "There is nothing to time"),
        (["--to", "much", "x"], "--to is 'much': say it as in 1%"),
        (["--time", "-5s", "x"], "--time is '-5s': say it as in 60s, 2m or 1h"),
        (["--name", "a", "--name", "b", "x"], "There are 2 names for 1 statements"),
    ],
)
def test_mistakes_of_the_command_are_sentences(words, said):
    with pytest.raises(UserError, match=said):
        command.time.main(words, standalone_mode=False)


@pytest.mark.usefixtures("quiet_progress")
@pytest.mark.parametrize(
    ("arm", "said"),
    [
        (Arm("x", "1 +"), r"'x' cannot be timed on .* \(SyntaxError: .* line 1\)\): correct it\."),
        (Arm("x", "1 / 0"), r"\(ZeroDivisionError: division by zero\): correct it\."),
        (
            Arm("x", "f()", "from no_such_package import f"),
            r"No module named 'no_such_package'\): install it there( \(.* not count here\))?\.",
        ),
        (Arm("x", "os.abort()", "import os"), r"'x' cannot be timed: the process on .* was killed by SIGABRT"),
    ],
)
def test_a_statement_that_cannot_run_is_a_sentence(arm, said, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(UserError, match=said):
        ffilab.compare([arm])


@pytest.mark.usefixtures("short")
def test_two_pythons_are_compared_and_written_down(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def f(): return 1")
    monkeypatch.chdir(tmp_path)
    result = ffilab.compare([Arm("f()", "f()", "from mine import f")], [GIL, sys.executable], seconds=0)
    assert len(result.record.noise.restarts) == runner.LEAST_RESTARTS
    assert list(result.ratios) == result.names[1:]
    result.save("record.jsonl")
    foreign.check(Path("record.jsonl"))
    files = result.save_pyperf("pyperf.json")
    suites = [pyperf.BenchmarkSuite.load(str(file)) for file in files]
    assert [suite.get_benchmark_names() for suite in suites] == [["f()"], ["f()"]]
    told = ran(sys.executable, "-m", "pyperf", "compare_to", *files)
    assert told.returncode == 0
    assert "ERROR" not in told.stdout


@pytest.mark.usefixtures("quiet_progress")
@pytest.mark.parametrize("surroundings", ["busy_machine", "one_core"])
def test_a_comparison_comes_to_an_end_wherever_it_runs(monkeypatch, tell, request, surroundings):
    """What it is worth there is not asked; that it is said."""
    tell(alone=True)
    monkeypatch.setattr(comparing, "MOST_BLOCKS", 4)
    request.getfixturevalue(surroundings)
    try:
        said = str(ffilab.compare(["1", "2"], [GIL], seconds=0))
    except UserError as few:
        said = str(few)
    assert re.search("^Noise: |too few to tell anything", said, re.M)


def test_a_restart_beside_a_neighbour_is_left_out_and_too_few_are_said(tmp_path):
    """The probes of the first one took twice as long as later: of three, two are left."""
    record = made_up(restarts=3, a=0.0, b=0.1).record
    blocks = [
        {**block, "probes": dict.fromkeys(block["ns"], [30_000 * (1 + (block["restart"] == 0))] * 5)}
        for block in record.blocks
    ]
    result = Result(replace(record, blocks=blocks), b"the record")
    assert result.sentence("b") == "Too few restarts to compare b with a."
    assert "(no interval)" in str(result)
    assert width(result.record) == np.inf
    (file,) = result.save_pyperf(tmp_path / "pyperf.json")
    assert [one.get_nvalue() for one in pyperf.BenchmarkSuite.load(str(file))] == [2, 2]


def test_which_row_has_the_gil_is_said_and_a_given_name_stays():
    arms = [
        {"name": "f()", "statement": "f()"},
        {"name": "f() (2)", "statement": "f()"},
        {"name": "f()" + comparing.ON, "statement": "f()"},
        {"name": "f(), mine", "statement": "f()"},
    ]
    record = made_up(a=0.0, b=0.1).record
    result = Result(replace(record, run={**record.run, "plan": {**record.run["plan"], "arms": arms}}), b"the record")
    assert list(result.typed.values()) == ["f()", "f() (2)", "f(), with the GIL", "f(), mine"]


@pytest.mark.usefixtures("short")
def test_ctrl_c_gives_what_was_measured(monkeypatch):
    blocks, block = [], runner._block

    def interrupted(*arguments):
        blocks.append(1)
        if len(blocks) > MIN_VALUES * comparing.MOST_BLOCKS:
            raise KeyboardInterrupt
        return block(*arguments)

    monkeypatch.setattr(runner, "_block", interrupted)
    assert "Stopped early" in str(ffilab.compare(["1", "2"], [GIL], to=0))


def test_the_worker_is_python_of_the_oldest_that_is_measured():
    for path in (ROOT / "ffilab/measure").glob("*worker.py"):
        ast.parse(path.read_text(), feature_version=pythons.OLDEST)
    ast.parse(pythons.PROBE, feature_version=(3, 4))


def test_what_draws_pages_is_not_asked_for():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import ffilab; from ffilab.yours import command; "
        "ffilab.compare; ffilab.Result; ffilab.scale; "
        "print(*{'pandas', 'rich', 'seaborn', 'fastjsonschema'} & set(sys.modules))"
    )
    assert subprocess.check_output([sys.executable, "-I", "-c", code, str(ROOT)], text=True) == "\n"


@pytest.mark.full
def test_the_wheel_works_in_an_environment_of_its_own(tmp_path):
    def run(*words):
        told = ran(*words, cwd=tmp_path, env=clean_environment(**settings.telling(alone=True)))
        assert told.returncode == 0, told.stderr
        return told.stdout

    # Without a word of what, the source distribution is built, and the wheel from that.
    run(UV, "build", "--quiet", "--out-dir", tmp_path, ROOT)
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        parts = {name.split("/")[1] for name in archive.getnames()}
    assert parts - {".gitignore"} == {"ffilab", "LICENSE", "PKG-INFO", "pyproject.toml"}
    names = zipfile.ZipFile(wheel).namelist()
    described = wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"
    assert {name.partition("/")[0] for name in names} == {"ffilab", described}
    assert "ffilab/py.typed" in names
    run(UV, "venv", "--quiet", "--python", sys.executable, "fresh")
    run(UV, "pip", "install", "--quiet", "--python", "fresh", wheel)
    assert "times as fast" in run("fresh/bin/ffilab", "time", "--time", "0", "pass", "sum(range(999))")
    free_threaded = load(BY_LABEL[FREE_THREADED]).python
    assert "2 threads; " in run("fresh/bin/ffilab", "scale", "--python", free_threaded, "--time", "2s", "abs(-1)")
    script = "from ffilab import compare; print(list(compare(['1', '2'], seconds=0, quiet=True).ratios))"
    assert run("fresh/bin/python", "-c", script) == "['2']\n"


MANUAL = (ROOT / "book" / "measure_yours.md").read_text()
COMMANDS = [
    pytest.param(line, marks=[pytest.mark.tool("valgrind")] if "--instructions" in line else [])
    for line in re.findall(r"^\$ ffilab (.*)$", MANUAL, re.M)
]


@pytest.fixture
def at_home(tmp_path, monkeypatch, short):
    """A folder with what the manual speaks of: environments, a module, a file of benchmarks, a free-threaded build
    on PATH."""
    for name, label in {"old": GIL, "new": GIL, "myenv": GIL, "bin": FREE_THREADED}.items():
        (tmp_path / name / "bin").mkdir(parents=True)
        (tmp_path / name / "bin" / "python").symlink_to(load(BY_LABEL[label]).python)
    (tmp_path / "bin" / "python3.14t").symlink_to(load(BY_LABEL[FREE_THREADED]).python)
    (tmp_path / "mine.py").write_text("def f(): return 1\ndef g(): return 2\n")
    (tmp_path / "bench.py").write_text("def work(n): return sum(range(n))\ndef bench_work(): work(10)\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", COMMANDS)
def test_the_lines_of_the_manual_run(line, at_home, capsys):
    verb, *words = shlex.split(line)
    assert verb == "time"
    try:
        command.time.main([*words, "--time", "0"], standalone_mode=False)
    except SystemExit:
        pass
    out = capsys.readouterr().out
    assert "Varied: " in out
    assert all((at_home / name).exists() for name in words if name.endswith((".jsonl", ".py")))


def test_the_python_of_the_manual_runs(at_home, capsys):
    (code,) = re.findall(r"^```python\n(.*?)^```", MANUAL, re.M | re.S)
    exec(code.replace("seconds=60", "seconds=0"), {})
    assert "max on new" in capsys.readouterr().out


def test_the_example_is_measured_and_its_page_says_what_came_out(tmp_path, monkeypatch, short):
    monkeypatch.setattr(worked_example, "RECORDS", tmp_path)
    monkeypatch.setattr(worked_example, "SHOWN", tmp_path / "shown" / "ways.jsonl")
    assert "was not measured in this copy" in worked_example.page()
    worked_example.measure("smoke")
    assert "bench_from_buffer" in worked_example.page()
