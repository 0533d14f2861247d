"""The chapter on GIL Balm: its experiments answer, its module is refused where it does not fit, its rules say what is
true."""

import copy
import shutil

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import controls, verdicts
from ffilab.judge.sentences import sentences_of
from ffilab.measure.session import Measuring
from ffilab.run.machine import compiler
from ffilab.run.paths import NATIVE
from ffilab.setup import interpreters
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.balm import exercise, experiment, numbers, outcomes
from tests.helpers import balm_worker
from tests.helpers.environment import python_of, ran
from tests.helpers.of_chapter import PAIR, Golden, judged, rows_of

NEW, POOLED, BLOCK, BEST = experiment.NEW, experiment.POOLED, experiment.BLOCK, experiment.BEST


# ---- the experiments ----

CHURN = {"method": BEST, "threads": 2, "tuples": 4}
EXPERIMENTS = [
    (experiment.churn, {**CHURN, "how": "released"}, {"ns", "faults"}),
    (experiment.churn, {**CHURN, "method": BLOCK + experiment.WRITTEN, "how": "released"}, {"ns", "faults"}),
    *(
        (experiment.churn_beside, {"method": NEW, "tuples": 2, "how": "kept", "arenas": state}, {"ns", "faults"})
        for state in experiment.ARENAS
    ),
    (experiment.started, {"method": NEW, "threads": 2, "each": 2, "state": experiment.COLD}, {"ns", "faults"}),
    (experiment.by_length, {"method": BLOCK, "strings": 40_000, "lines": experiment.TEXTS}, {"lines", "ns"}),
    (experiment.in_batches, {"method": BEST, "strings": 256, "sizes": (64, 256)}, {"batch", "ns"}),
    (experiment.lives, {"method": BEST}, {"kept", "dropped", "collected"}),
    (experiment.kept_alive, {"method": POOLED, "tuples": 2}, {"alive", "after", "written"}),
    (experiment.layout_facts, {}, {"field", "is"}),
    (experiment.acted, {"what": "sort it"}, {"asked", "answer"}),
    (balm_worker.forked, {"forks": 3}, {"well"}),
]


@pytest.mark.parametrize(("function", "arguments", "columns"), EXPERIMENTS)
def test_each_experiment_answers(function, arguments, columns):
    rows = rows_of(GIL, function, {**experiment.FOLDER, **arguments})
    assert all(set(row) == columns for row in rows)


# ---- refused where it does not fit ----


@pytest.fixture
def headers(tmp_path):
    """A copy of the headers of the chapter's interpreter, to be changed."""
    return shutil.copytree(interpreters.probe(str(python_of(GIL)))["include"], tmp_path / "include")


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.chmod(0o644)
    path.write_text(text.replace(old, new))


def compiled(headers, target):
    """How the chapter's module compiles with these headers."""
    files = sorted((NATIVE / "balm" / "balm").glob("*.c"))
    flags = ["-O0", "-fPIC", "-shared", "-pthread", f"-I{headers}"]
    return ran(compiler(), *flags, *files, "-o", target)


def test_an_unknown_version_refuses_to_compile(headers, tmp_path):
    minor = "#define PY_MINOR_VERSION        "
    change(headers / "patchlevel.h", minor + GIL.partition(".")[2], minor + "99")
    assert "balm knows the layout of str" in compiled(headers, tmp_path / "balm.so").stderr


def test_an_unknown_layout_refuses_to_compile(headers, tmp_path):
    length = "    Py_ssize_t length;          /* Number of code"
    change(headers / "cpython" / "unicodeobject.h", length, f"    void *more;\n{length}")
    assert "PyASCIIObject.length" in compiled(headers, tmp_path / "balm.so").stderr


def test_a_layout_that_is_another_one_refuses_to_be_imported(headers, tmp_path):
    """Two flags have changed places: the sizes are the same, the meaning is not."""
    header = headers / "cpython" / "unicodeobject.h"
    change(header, "        unsigned int compact:1;", "        unsigned int ASCII_:1;")
    change(header, "        unsigned int ascii:1;", "        unsigned int compact:1;")
    change(header, "        unsigned int ASCII_:1;", "        unsigned int ascii:1;")
    done = compiled(headers, tmp_path / "balm.so")
    assert done.returncode == 0, done.stderr
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import balm"
    imported = ran(python_of(GIL), "-I", "-c", program)
    assert "ImportError: balm: this CPython lays out" in imported.stderr


# ---- the analysis ----

MISUSED, WORKS, OTHERS, GROWN = outcomes.MISUSED, outcomes.WORKS, outcomes.OTHERS, outcomes.LISTS


def rows_with(**frames):
    """The ledger's rows of the golden session, with other frames, by claim."""
    return judged(Golden("balm", frames))


def test_what_is_true_by_construction_is_no_claim_that_was_tested():
    rows = rows_with()
    assert {rows[claim]["verdict"] for claim in ("B4", "B5")} == {verdicts.BY_CONSTRUCTION}
    works, layouts = Golden("balm").frame(WORKS), Golden("balm").frame("layouts")
    works.loc[(works.probe == "type(x) is str") & (works.kind == BLOCK), "answer"] = "True"
    rows = rows_with(**{WORKS: works, "layouts": layouts.assign(wrong=1)})
    assert {rows[claim]["verdict"] for claim in ("B4", "B5")} == {verdicts.NO_RESULT}
    assert rows["B5"]["qualifier"] == "our own code failed its checks"


def test_one_that_goes_wrong_proves_a_caveat_and_none_refutes_it_here():
    assert rows_with()["B6"]["verdict"] == verdicts.HOLDS
    golden = Golden("balm")
    misused, others, grown = (golden.frame(title) for title in (MISUSED, OTHERS, GROWN))
    number = misused.asked == "int(x)"
    once = misused.copy()
    once.loc[number & (once.interpreter == FREE_THREADED), "answer"] = "12"
    row = rows_with(**{MISUSED: once})["B6"]
    assert row["verdict"] == verdicts.HOLDS
    assert "it is 0.5" in row["reason"]
    none = {
        MISUSED: misused.assign(answer=misused.answer.where(~number, "12")),
        OTHERS: others.assign(wrong="", ended="ok"),
        GROWN: grown.assign(ended="ok"),
    }
    for title, frame in none.items():
        row = rows_with(**{title: frame})["B6"]
        assert row["verdict"] == verdicts.MIXED, title
        assert row["qualifier"] == "2 yes, 1 no", title
    assert rows_with(**none)["B6"]["verdict"] == verdicts.FAILS


def test_the_page_says_why_there_is_no_number_and_where_a_misuse_had_its_consequence():
    golden = Golden("balm")
    misused, others, grown = (golden.frame(title) for title in (MISUSED, OTHERS, GROWN))
    free, nul = misused.interpreter == FREE_THREADED, misused.what == "no NUL at the end"
    frames = {
        OTHERS: others[(others.interpreter == GIL) & (others.layout_of == GIL)],
        GROWN: grown.iloc[:0],
        MISUSED: misused.assign(
            answer=misused.answer.mask(free & nul, "12"), ended=misused.ended.mask(free & ~nul, "killed by SIGSEGV")
        ),
    }
    texts = sentences_of(Golden("balm", frames))
    assert texts["wrong-layout"].startswith("One build was there alone")
    assert texts["list-grows"] == "No list was forged here."
    assert texts["misuse-nul"].endswith(f"; not so on {FREE_THREADED}.")
    assert texts["misuse-hash"].endswith(f"; no answer on {FREE_THREADED}, as the process died.")


@pytest.mark.parametrize(("factor", "passed"), [(1.0, True), (1.2, False)])
def test_copies_that_differ_withhold_the_claims_on_one_thread(factor, passed):
    golden = Golden("balm")
    record = copy.deepcopy(golden.timed("ways"))
    rng = np.random.default_rng(3)
    for block in record.blocks:
        for label in PAIR:
            twin = block["ns"][f"{label}/{NEW}"] / record.loops[f"{label}/{NEW}"] * factor
            name = f"{label}/{experiment.AGAIN}"
            block["ns"][name] = twin * record.loops[name] * np.exp(rng.normal(0, 0.001))
    golden.timed = {"ways": record}.get
    checks = controls.settled(numbers.controls(golden))
    assert {check.passed for check in checks} == {passed}
    assert {check.source for check in checks} == {"ways"}


def test_no_string_takes_less_memory_than_is_written_for_it(build):
    """As once measured: 64.9 bytes of a block that writes 80, as freed memory took them in."""
    runs = pd.DataFrame(
        {"interpreter": build, "method": BLOCK, "written": 80.0, "alive": alive, "after": 80.0}
        for alive in (64.9, 82.0)
    )
    assert numbers.resident(runs, build, BLOCK, "alive") == "refused: 64.9 resident, where 80.0 are written"
    assert numbers.resident(runs.assign(alive=82.0), build, BLOCK, "alive").value == 82.0
    row = rows_of(build, experiment.kept_alive, {**experiment.FOLDER, "method": BLOCK, "tuples": 30})[0]
    assert row["alive"] >= 0.99 * row["written"]


def test_the_exercise_calls_nothing_faster_than_the_rule_below_what_its_copies_tell(monkeypatch):
    session = Golden("balm")
    record, answers = session.timed("ways"), session.frame(WORKS)
    assert "times as fast" in exercise.check_choice(record, answers, {"viewer": NEW})[0]
    monkeypatch.setattr(numbers, "least", lambda record, label: 1e6)
    assert exercise.check_choice(record, answers, {"viewer": NEW})[0] == "viewer: right."


def test_cases_of_the_original_are_paired_by_round():
    runs = Golden("balm").frame(numbers.AS_RUN)
    ways = numbers.BY_AUTHORS_POOL, numbers.BY_NEW
    shuffled = runs.sample(frac=1, random_state=3)
    assert numbers.times_as_long(shuffled, *ways, threads=16) == numbers.times_as_long(runs, *ways, threads=16)


# ---- the exercises ----


@pytest.mark.parametrize(
    ("data", "unknown_hash", "says"), [(b"12\x0034", -1, "It passes."), (b"1234", 0, "It does not pass yet.")]
)
@pytest.mark.usefixtures("quiet_machine")
def test_a_forged_twelve_is_checked(data, unknown_hash, says, quiet_progress):
    session = Measuring("balm", [GIL])
    assert exercise.check_forgery(session, data, 2, unknown_hash)[-1] == says
    session.close()


@pytest.mark.parametrize(
    ("program", "choice", "says"),
    [
        ("viewer", NEW, "times as fast"),
        ("viewer", BEST, "Not correct"),
        ("plugin", BEST, "type(x) is str says False"),
        ("plugin", experiment.LAZY, "all strings at once"),
        ("plugin", "a list", "choose"),
    ],
)
def test_the_choice_is_checked_by_the_run(program, choice, says):
    session = Golden("balm")
    lines = exercise.check_choice(session.timed("ways"), session.frame(WORKS), {program: choice})
    assert lines[-1] == "It does not pass yet."
    assert any(line.startswith(program) and says in line for line in lines)
