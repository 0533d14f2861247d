"""The chapter on loaders: what is certain is so on every interpreter; the analysis copes with what golden records do
not hold."""

import subprocess
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import controls, verdicts
from ffilab.judge.claims import declared
from ffilab.judge.estimates import Share
from ffilab.judge.rules import NO, Event, Never, Occurs
from ffilab.measure.case import Case
from ffilab.measure.plan import plan
from ffilab.measure.runner import Restart
from ffilab.run.budget import BUDGETS
from ffilab.run.paths import resolved
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.installed import load
from notebooks.loaders import exercise, experiment, numbers
from tests.helpers.made_up import timed
from tests.helpers.of_chapter import PAIR, Golden, judged, outcome_of, result_of

LIBRARY = {"library": experiment.LIBRARY}


# ---- the experiments ----


def test_what_is_certain_about_loaders(label):
    """Not a race and not a speed: these follow from the source, on every interpreter."""
    gil = not label.endswith("t")
    assert result_of(label, experiment.python_api, {"loader": "PyDLL"}) == {"made": "[]"}
    crashed = Case(label, experiment.python_api, fixed={"loader": "CDLL"}).run()
    assert crashed.ended.startswith("killed by")
    for loader in experiment.LOADERS:
        meets = not (gil and loader == "PyDLL")
        # Where they meet they do, on a busy machine late.
        arguments = {"loader": loader, "milliseconds": 30_000 if meets else 400, **LIBRARY}
        outcome = outcome_of(label, experiment.handshake, arguments)
        assert outcome.result == {"met": meets}
        assert outcome.gil_enabled == gil


def test_detach_attach_leaves_the_gil_off(smoke):
    arms = [arm for arm in experiment.arms() if arm.own_loop]
    made = plan("test", arms, PAIR, smoke)
    with closing(Restart(made, {label: load(BY_LABEL[label]) for label in PAIR})) as restart:
        assert restart.missing == {}
        assert restart.facts[f"{FREE_THREADED}/shared"]["gil_enabled"] is False


def test_functions_with_an_argument_return_what_they_should(library):
    expected = {"add_one": 8, "halve": 1.25, "first_byte": ord("m")}
    assert list(experiment.DECLARED) == list(expected)
    for loader in experiment.LOADERS:
        for function, value in expected.items():
            names = {}
            exec(resolved(experiment.declared_call(loader, function).setup, built=str(library.parents[1])), names)
            assert names["f"](names["x"]) == value


@pytest.mark.parametrize(("budget", "safe", "others"), [("smoke", 2, 1), ("quick", 228, 30), ("full", 228, 30)])
def test_what_should_be_safe_runs_as_often_as_its_rule_takes_and_every_case_runs(budget, safe, others):
    runs = {}

    def run(title, cases, repeats, may_fail, events):
        for case in cases:
            runs[case.interpreter, case.factors["loader"], case.named["what"]] = title, repeats

    labels = [GIL, FREE_THREADED, "3.13"]
    experiment.hazards(SimpleNamespace(budget=BUDGETS[budget], interpreters=labels, run=run))
    assert len(runs) == 3 * 2 * 2
    for case, run_as in runs.items():
        is_safe = case in experiment.SHOULD_BE_SAFE
        assert run_as == ((experiment.SAFE, safe) if is_safe else (experiment.RISKY, others))
    if budget != "smoke":
        (a14,) = (claim for claim in declared("loaders").claims if claim.id == "A14")
        rates = {type(rule): rule.rate for rule in a14.tests if isinstance(rule, Event)}
        assert Share(0, safe).at().high <= rates[Never]
        assert Share(0, others).at().high <= rates[Occurs]


# ---- the analysis ----


def record_of(ns):
    """A record of twelve restarts with four blocks each in which an arm takes so many ns with the GIL, the loop 5."""
    rng = np.random.default_rng(6)
    arms = {"empty loop": 5.0, **ns}
    return timed({arm: np.log(taken) + rng.normal(0, 0.001, (12, 4)) for arm, taken in arms.items()}, ns=1)


def test_no_price_carries_nothing():
    arms = {f"{loader} {name}": 80.0 for loader in experiment.LOADERS for name in ("noop", *numbers.OTHERS)}
    assert numbers.largest_miss(record_of(arms), GIL, "difference") == "none is seen"


@pytest.mark.parametrize(("again", "passed"), [(80.0, True), (96.0, False)])
def test_an_alarm_of_the_chapters_own_a_a_test_withholds_the_claim_that_rests_on_it(again, passed):
    record = record_of({"CDLL noop": 80.0, "PyDLL noop": 80.0, "CDLL noop again": again})
    (check,) = controls.settled(numbers.controls(SimpleNamespace(timed={"calls": record}.get)))
    assert check.passed == passed
    assert check.source == "calls"


@pytest.mark.parametrize("carries_over", ["difference", "ratio"])
def test_which_number_carries_over_is_found(carries_over):
    arms = {}
    for function, attached in {"noop": 50.0, **dict.fromkeys(numbers.OTHERS, 200.0)}.items():
        extra = 20.0 if carries_over == "difference" else 0.4 * attached
        arms |= {f"PyDLL {function}": 5 + attached, f"CDLL {function}": 5 + attached + extra}
    miss = {way: numbers.largest_miss(record_of(arms), GIL, way) for way in ("difference", "ratio")}
    assert {way for way, interval in miss.items() if interval.high < 1} == {carries_over}
    assert {way for way, interval in miss.items() if interval.low > 1} == {"difference", "ratio"} - {carries_over}


def test_a_process_that_died_did_not_meet_and_one_that_crashed_is_counted():
    ends = [("C API", "killed by SIGSEGV", None), ("C API", "ok", None), ("handshake", "timeout", None)]
    ends += [("handshake", "ok", met) for met in (True, False, True)]
    runs = pd.DataFrame(ends, columns=["what", "ended", "met"]).assign(interpreter=GIL, loader="CDLL")
    assert numbers.crashes(runs, GIL, "CDLL") == Share(1, 2)
    assert numbers.deadlocks(runs, GIL, "CDLL") == Share(2, 4)


def test_one_crash_in_a_safe_case_refutes_its_part_and_no_other():
    session = Golden("loaders")
    case = experiment.SAFE, {"loader": "PyDLL", "what": "C API"}
    crashed = next(child for child in session.record.children if (child["title"], child["factors"]) == case)
    crashed |= {"result": None, "ended": "killed by SIGSEGV"}
    row = judged(session)["A14"]
    refuted = [part["part"] for part in row["parts"] if part["verdict"] == NO]
    assert refuted == ["through PyDLL none does"]
    # It stands beside: the talk calls PyDLL safe nowhere.
    assert row["verdict"] == verdicts.HOLDS


# ---- the exercises ----


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({}, "Still open"),
        ({"noop": "PyDLL", "sleep_ms": "CDLL", "PyList_New": "CDLL"}, "Not correct"),
        ({"noop": "PyDLL", "sleep_ms": "PyDLL", "PyList_New": "PyDLL"}, "Not good enough"),
        ({"noop": "CDLL", "sleep_ms": "CDLL", "PyList_New": "PyDLL"}, "Not yet fast"),
        ({"noop": "PyDLL", "sleep_ms": "CDLL", "PyList_New": "PyDLL"}, "Fast"),
    ],
)
def test_the_choice_of_loaders_is_checked(choice, says):
    record = record_of({"PyDLL noop": 80.0, "CDLL noop": 120.0})
    ends = pd.DataFrame({"interpreter": GIL, "loader": "CDLL", "what": "C API", "ended": ["killed by SIGSEGV"]})
    shares = pd.DataFrame({"interpreter": GIL, "loader": "PyDLL", "value": [0.05]})
    assert any(line.startswith(says) for line in exercise.check_choice(choice, record, shares, ends))


DETACHES = """
#include <unistd.h>
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
void sleep_ms(int ms) { void *state = PyEval_SaveThread(); usleep(1000 * ms); PyEval_RestoreThread(state); }
"""


def test_who_runs_during_a_call_was_let_in_by_it(tmp_path):
    """However busy the machine is: nobody during a call that keeps the GIL."""
    (tmp_path / "detaches.c").write_text(DETACHES)
    library = tmp_path / "libdetaches.so"
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "detaches.c", "-o", library], check=True)
    kept = result_of(GIL, exercise.meanwhile, {"milliseconds": 50, **LIBRARY})
    let_in = result_of(GIL, exercise.meanwhile, {"milliseconds": 500, "library": str(library)})
    assert kept["times"] == 0
    assert let_in["times"] > 0
    # A call that lets others in at its beginning alone.
    whole, first = "usleep(1000 * ms); PyEval_RestoreThread(state);", "usleep(5000); PyEval_RestoreThread(state);"
    early = DETACHES.replace(whole, f"{first} usleep(1000 * ms);")
    (tmp_path / "early.c").write_text(early)
    subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "early.c", "-o", library], check=True)
    assert result_of(GIL, exercise.meanwhile, {"milliseconds": 500, "library": str(library)})["times"] == 0


def test_where_the_loaders_are_not_told_apart_either_will_do():
    record = record_of({"PyDLL noop": 80.0, "CDLL noop": 80.0})
    assert exercise.speed("noop", "CDLL", record).startswith("Either")


SOLUTION = """
import ctypes
def load(library):
    native, short = ctypes.CDLL(library), ctypes.PyDLL(library)
    short.halve.argtypes, short.halve.restype = [ctypes.c_double], ctypes.c_double
    new_list = ctypes.pythonapi.PyList_New
    new_list.argtypes, new_list.restype = [ctypes.c_ssize_t], ctypes.py_object
    return {"wait": native.wait_for_announcement, "halve": short.halve, "new_list": new_list}
"""
# What of the solution is replaced, by what, and what is said then.
PROGRAMS = [
    ("", "", ["Correct", "Fast"]),
    ("= ctypes.CDLL(library), ctypes.PyDLL(library)", "= [ctypes.CDLL(library)] * 2", ["Correct", "Not yet fast"]),
    ("= ctypes.CDLL", "= ctypes.PyDLL", ["wait: wait(500) returned 0. The call waits for"]),
    ("ctypes.pythonapi.", "ctypes.CDLL(None).", ["new_list: its process ended so: killed by"]),
    ("short.halve.argtypes", "short.add_one.argtypes", ["halve: ArgumentError"]),
    (": short.halve,", ": lambda value: value / 2,", ["halve: this is not the C function"]),
    (SOLUTION, "", ["wait: KeyError", "halve: KeyError", "new_list: KeyError"]),
]


@pytest.mark.parametrize(("stands", "instead", "says"), PROGRAMS)
def test_the_repaired_program_is_checked(monkeypatch, library, stands, instead, says):
    monkeypatch.setattr(exercise, "LIBRARY", str(library))
    session = SimpleNamespace(observe=lambda title, look, *arguments: look(*arguments))
    program, record = SOLUTION.replace(stands, instead), record_of({"PyDLL halve": 80.0, "CDLL halve": 100.0})
    lines = exercise.check_program(session, program, record)
    assert len(lines) == len(says)
    assert all(line.startswith(start) for line, start in zip(lines, says)), lines
