"""The chapter on critical sections: every safe lock is exact on every interpreter; the analysis copes with what golden
records do not hold."""

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import ledger, sentences
from ffilab.judge.claims import declared
from ffilab.judge.numbers import numbers_of
from ffilab.measure import instructions
from ffilab.measure.plan import EMPTY
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import experiment as boundary
from notebooks.boundary import looks
from notebooks.critical_sections import exercise, experiment, figures, numbers
from notebooks.critical_sections.experiment import extension
from tests.helpers.of_chapter import Golden, outcome_of, result_of, rows_of

FOLDER, LIBRARIES = {"folder": experiment.LIBRARIES}, {"libraries": boundary.LIBRARIES}
RATES = {"alone", "together"}
SAFE = [name for name, increments in experiment.PIECES.items() if increments and name != "no lock"]


# ---- the experiments ----

COUNTER = """
import threading
class Counter:
    def __init__(self):
        self.value, self.cells, self.lock = 0, [], threading.Lock()

    def adder(self):
        cell = [0]
        self.cells.append(cell)

        def add():
            {add}

        return add

    def total(self):
        return {total}
"""
OF_CELLS = "sum(cell[0] for cell in self.cells)"


def source(add, total="self.value"):
    return COUNTER.format(add=add, total=total)


TWO = {"threads": 2, **LIBRARIES}
# What each brings back.
EXPERIMENTS = [
    (experiment.contended_piece, {"name": "PyMutex", "shared": experiment.ONE, "threads": 2, **FOLDER}, RATES),
    (experiment.contended_object, {"name": "dict", "shared": experiment.OWN, "threads": 2}, RATES),
    (experiment.contended_binding, {"module": "boundary_c_api", "part": None, **TWO}, RATES),
    *((experiment.contended_ctypes, {"name": name, **TWO}, RATES) for name in experiment.CTYPES),
    *((experiment.contended_text, {"name": name, **TWO}, RATES) for name in experiment.TEXTS),
    (experiment.two_at_once, FOLDER, {"processes", "threads"}),
    (
        exercise.counted,
        {"source": source("with self.lock: self.value += 1"), "threads": 2, "counts": 100},
        {"totals", "expected", "gain"},
    ),
]


@pytest.mark.parametrize(("function", "arguments", "columns"), EXPERIMENTS)
def test_each_experiment_answers(function, arguments, columns):
    rows = rows_of(FREE_THREADED, function, {**arguments, "milliseconds": 1})
    assert all(set(row) == columns for row in rows)


@pytest.mark.parametrize("switched", [{}, {"PYTHON_GIL": "1"}])
def test_single_calls_are_timed_with_the_gil_off_and_on(switched):
    fixed = {"bindings": {name: experiment.place(name) for name in boundary.TALK}, **LIBRARIES}
    outcome = outcome_of(FREE_THREADED, experiment.means_of_single_calls, fixed, environment=switched)
    assert outcome.gil_enabled == bool(switched)
    absent = looks.looked_up([FREE_THREADED], False)[FREE_THREADED]
    assert set(outcome.result) == set(boundary.TALK) - set(absent)
    assert min(outcome.result.values()) > 0


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_lock_loses_nothing(label, name):
    loops = 40_000 // experiment.PIECES[name]
    if label == "3.13t" and "recursive" in name:
        loops //= 20  # no shortcut before 3.14: it suspends and resumes each time
    arguments = {**FOLDER, "name": name, "threads": 8, "loops": loops}
    counted = result_of(label, exercise.stress, arguments, timeout_s=120)
    assert counted["value"] == counted["expected"] == 8 * loops * experiment.PIECES[name]


def pieces(folder):
    return extension(folder).pieces()


def test_the_extension_is_what_the_chapter_says(label):
    """It has the pieces of the chapter, and its import leaves the GIL off on t-builds."""
    outcome = outcome_of(label, pieces, FOLDER)
    assert {name: increments for name, increments, _ in outcome.result} == experiment.PIECES
    assert [name for name, increments, safe in outcome.result if safe and increments] == SAFE
    assert outcome.gil_enabled != label.endswith("t")


@pytest.mark.full
@pytest.mark.tool("valgrind")
def test_inlined_atomics_are_seen_by_their_source_file():
    def atomics(label):
        counts = instructions.by_file(label, experiment.operation("dict, write"))
        if set(counts) == {"???"}:
            pytest.skip("this interpreter has no debugging information")
        return sum(n for file, n in counts.items() if "atomic" in file)

    assert atomics(FREE_THREADED) > atomics(GIL) + 5


# ---- the plan ----


def test_locks_are_timed_where_a_thread_was_and_nothing_else_is():
    """The first thread changes what a mutex of glibc costs, and on 3.13t what counting references does, for the rest of
    the process."""
    arms = {arm.name: arm for arm in experiment.arms()}
    had_one = {name for name, arm in arms.items() if "had_a_thread()" in arm.setup}
    assert had_one == {f"{name}, in C" for name in numbers.PIECES} - {f"{experiment.NO_THREAD}, in C"}
    assert not {arms[name].group for name in had_one} & {arms[name].group for name in set(arms) - had_one}


def test_a_binding_of_another_version_on_one_build_is_no_pair():
    """PyO3 has an older version of itself on 3.13t: the tax of that version is computed without it."""
    stand_ins = {"3.13": {}, "3.13t": {"PyO3": "another version stands in"}, "3.14": {}}
    took = {"3.13": {"ctypes CDLL": 100.0, "PyO3": 50.0}, "3.13t": {"ctypes CDLL": 200.0, "PyO3": 50.0}}
    rows = [{"interpreter": label, "gil": experiment.AS_BUILT, **means} for label, means in took.items()]
    session = SimpleNamespace(
        observed=lambda _: stand_ins, frame=lambda *_, **__: pd.DataFrame(rows * 4), interpreters=list(took)
    )
    assert numbers.alike(session, "3.14") == list(boundary.TALK)
    assert set(boundary.TALK) - set(numbers.alike(session, "3.13")) == {"PyO3"}
    ratio = numbers.as_the_talk_ran_it(session, "3.13", gil_on=False)
    assert ratio.interval.value == pytest.approx(2)
    assert ratio.n == 4
    assert numbers.as_the_talk_ran_it(session, "3.14", gil_on=False).startswith("CPython 3.14 and 3.14t (")


# ---- the analysis ----


def test_an_arm_that_was_not_timed_is_left_out_of_the_tax():
    """The loop takes 6 ns on one build and 7 on the other, and calls 100 and 108 besides."""
    record = copy.deepcopy(Golden("critical_sections").timed("single"))
    arms = list(numbers.TALK.values())
    for block in record.blocks:
        for label, empty, ns in ((GIL, 6, 106), (FREE_THREADED, 7, 115)):
            cells = {f"{label}/{arm}": ns for arm in arms} | {f"{label}/{EMPTY}": empty}
            block["ns"] |= {cell: ns * record.loops[cell] for cell, ns in cells.items()}
    assert numbers.tax(record, "3.14", arms).interval.value == pytest.approx(1.08)
    del record.loops[f"{FREE_THREADED}/{arms[0]}"]
    assert arms[0] not in set(figures.operation_ratios(record, "3.14", ()).operation)
    assert numbers.tax(record, "3.14", arms).interval.value == pytest.approx(1.08)
    assert numbers.tax(record, "3.15", ["function call"]) is None


def test_layouts_in_two_classes_are_told():
    """As seen in a loop of a hundred increments: 29 ns on thirteen layouts, 55.6 on four."""
    rng = np.random.default_rng(4)
    one, other = (centre * np.exp(rng.normal(0, 0.005, n)) for centre, n in ((29, 13), (55.6, 4)))
    (low, many), (high, few) = numbers.two_classes(np.concatenate([other, one]))
    assert (many, few) == (13, 4)
    assert (low, high) == pytest.approx((29, 55.6), rel=0.01)
    assert numbers.two_classes(one) == []
    assert numbers.two_classes(np.append(one, 55.6)) == []  # one layout is no class
    assert numbers.two_classes(np.exp(rng.normal(3, 0.2, 18))) == []


def test_locks_are_told_from_other_instructions_by_their_header_and_from_those_of_the_loop():
    def found(**counts):
        loop = {"interpreter": GIL, "what": EMPTY, "by_file": {"pyatomic_gcc.h": 12.0, "ceval.c": 88.0}}
        return numbers.code_in([loop, {"interpreter": GIL, "what": "a call", **counts}], GIL, "a call")

    counts = {"pyatomic_gcc.h": 23.0, "clock.h": 7.0, "ceval.c": 470.0}  # a clock is no lock
    assert found(by_file=counts) == {"atomics": 11, "mutexes": 0, "critical sections": 0, "locks": 0, "all": 400}
    assert found(by_file={**counts, "pycore_lock.h": 2.0})["locks"] == 2
    assert str(found(by_file={**counts, "pyatomic_gcc.h": 12.0 - 4e-19})["atomics"]) == "0.0"  # not one less than none
    assert found(by_file=None, reason="it failed") == "it failed"


def calibrated(processes, threads, cores=2):
    """Of which two the calibration passes, with what two do in each run over the work of one."""
    runs = pd.DataFrame({"processes": processes, "threads": threads})
    session = SimpleNamespace(frame=lambda *_, **__: runs, machine={"cores_usable": cores})
    return [check.what for check in numbers.controls(session) if check.passed]


def test_a_calibration_that_fails_is_known_as_such():
    scatter = np.exp(np.random.default_rng(1).normal(0, 0.02, 10))
    assert calibrated(1.95 * scatter, 1.9 * scatter) == ["two processes", "two threads"]
    assert calibrated(1.0 * scatter, 1.9 * scatter) == ["two threads"]  # two processes do no more than one
    assert calibrated(1.95 * scatter, 1.5 * scatter) == ["two processes"]
    assert calibrated(3.0 * scatter, 1.9 * scatter) == ["two threads"]  # beyond what two can do
    assert calibrated(1.0 * scatter, 1.0 * scatter, cores=1) == []
    # One run that had company, and one whose first half had, say nothing of the cores.
    assert calibrated([1.1, 1.9, 1.95, 2.0, 7.0], [0.1, 1.85, 1.9, 2.0, 2.0]) == ["two processes", "two threads"]


def test_a_failed_calibration_leaves_no_number_of_two_threads_and_all_others():
    together = pd.DataFrame({"processes": [1.0, 1.01, 0.99, 1.0], "threads": [1.9, 1.91, 1.92, 1.9]})
    found = "two processes did 1.00 times the work of one, in 4 runs on 2 cores"
    why = f"this machine did not do two things at once ({found})"
    golden = Golden("critical_sections")
    failed, passed = (numbers_of(one) for one in (Golden("critical_sections", {"two at once": together}), golden))
    gone = {name for name in passed if passed[name].estimate and not failed[name].estimate}
    experiments = {line["title"] for line in golden.record.experiments} - {"two at once"}
    of_threads = {title for title in experiments if "company" in title} | {"ctypes, apart"}
    rest_on = {name for name in passed if passed[name].estimate and passed[name].rests_on & of_threads}
    assert gone == rest_on
    assert all("two at once" in passed[name].rests_on for name in gone)
    assert {failed[name].missing for name in gone} == {why}
    said = sentences.sentences_of(failed.session)
    for name in ("locks-own", "objects-gil", "bindings", "texts"):
        assert said[name] == f"Too little was measured here to say: {why}."
    for name in ("sharing", "sharing-PyMutex", "ctypes-apart", "texts-control", "prediction-2"):
        assert said[name].endswith(f"not known here: {why}.")
    rows = {row["id"]: row for row in ledger.judged(failed.session)}
    (a8,) = (claim for claim in declared("critical_sections").claims if claim.id == "A8")
    without = [part["number"] for part in rows["A8"]["parts"] if part["reason"] == why]
    assert without == [rule.number for rule in a8.tests if "two threads" in rule.number]


# ---- the exercises ----


@pytest.mark.parametrize("name", ["atomic increment", "PyMutex", "critical section, recursive entry"])
def test_others_get_in_between_two_steps_unless_the_whole_loop_is_locked(name):
    given, unlocked = {**FOLDER, "name": name, "loops": 5_000_000}, "recursive" not in name
    # Beside other load one process may have no luck.
    tries = (result_of(FREE_THREADED, exercise.in_between, given)["in_between"] for _ in range(5 if unlocked else 1))
    assert any(tries) == unlocked


@pytest.mark.parametrize(
    ("yours", "says"),
    [
        ({}, ""),
        ({"value": 997}, "3 of 1,000 increments were lost"),
        ({"value": 1_003}, "there are 3 more than the 1,000 increments"),
        ({"in_between": 0}, "no other thread ever counted in the middle"),
        (
            {"ended": "killed by SIGSEGV", "value": np.nan},
            "a process that ran your function did not come back (killed by",
        ),
    ],
)
def test_what_is_wrong_with_a_counter_in_c(yours, says):
    row = {"ended": "ok", "value": 1_000, "expected": 1_000, "in_between": 7}
    found = exercise.fault(pd.DataFrame([row | yours, row | {"in_between": yours.get("in_between", 7)}]))
    assert found.startswith(says)
    assert bool(found) == bool(says)


def looking(look):
    """A session that answers what it is asked to observe."""
    return SimpleNamespace(observe=look, interpreters=[GIL, FREE_THREADED])


def test_records_that_hold_no_such_answer_are_said_to():
    def lacking(*_):
        raise UserError("the records do not hold it")

    assert exercise.check_counter("", looking(lacking))[0].startswith("Not run: this page is made from records")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (source("cell[0] += 1", OF_CELLS), "Correct after eight more: 1,600,000"),
        (source("cell[0] += 2", OF_CELLS), "counted twice"),
        (source("cell[0] += 1", f"{OF_CELLS} if self.cells.clear() else 0"), "Not correct"),
        (source("self.lock.acquire()"), "No end within"),
        (source("pass", "no_such_name"), "NameError"),
        ("", "It stopped with an error"),
        ("class Counter: pass", "AttributeError"),
        ("class Counter:", "IndentationError"),
    ],
)
def test_a_counter_of_the_readers_is_checked(monkeypatch, answer, says):
    monkeypatch.setattr(exercise, "COUNTER_SECONDS", 2 if says.startswith("No end") else 60)
    assert says in " ".join(exercise.check_counter(answer, looking(lambda title, look, *given: look(*given))))
