"""The chapter on where threads run: pinning is what it says, what is lacking is said, the exercises check."""

import os

import pandas as pd
import pytest

from ffilab.judge import controls, verdicts
from ffilab.judge.claims import declared
from ffilab.judge.controls import settled
from ffilab.judge.numbers import numbers_of
from ffilab.judge.rules import OPEN
from ffilab.setup.catalogue import GIL
from notebooks.pinning import exercise, experiment, numbers
from tests.helpers.of_chapter import Golden, result_of

PINS, BUGS = declared("pinning").claims
CAN_PIN = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="threads cannot be pinned apart here",
)


def test_no_thread_is_put_beyond_what_the_process_may_use(monkeypatch):
    for allowed in ({0, 1}, {3, 7}, {5}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, allowed=allowed: allowed, raising=False)
        cores = experiment.drawn(1)
        for placement in (experiment.APART, experiment.ONE_CORE):
            assert {experiment.core_for(placement, number, cores) for number in range(4)} <= allowed
        assert {experiment.core_for(one, 0, cores) for one in (experiment.FREE, experiment.AGAIN)} == {None}
        assert len({experiment.core_for(experiment.ONE_CORE, number, cores) for number in range(2)}) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 7}, raising=False)
    orders = [experiment.drawn(seed) for seed in range(20)]
    found = {tuple(experiment.core_for(experiment.APART, n, cores) for n in range(2)) for cores in orders}
    assert found == {(3, 7), (7, 3)}


@CAN_PIN
def test_pinning_one_thread_leaves_the_others_as_they_are():
    before, seen, cores = os.sched_getaffinity(0), [], experiment.drawn(1)

    def body(number):
        experiment.pin(experiment.APART, number, cores)
        seen.append(frozenset(os.sched_getaffinity(0)))

    experiment.together([lambda number=number: body(number) for number in range(2)])
    assert set(seen) <= {frozenset({core}) for core in before}
    assert len(set(seen)) == 2
    assert os.sched_getaffinity(0) == before


PLACES = [experiment.FREE, experiment.APART, experiment.ONE_CORE]
CONVOY = {"library": experiment.LIBRARY, "seconds": 0.02, "seed": 1}


@CAN_PIN
@pytest.mark.parametrize("work", [experiment.NATIVE, experiment.PYTHON])
def test_the_experiments_bring_a_row_for_each_placement(label, work):
    cells = {**CONVOY, "work": work, "cells": [(place, 2) for place in PLACES], "rounds": 1}
    speeds = result_of(label, experiment.throughput, cells)
    assert {row["placement"] for row in speeds} == set(PLACES)
    assert {row["placement"]: len(row["cores"]) for row in speeds}[experiment.ONE_CORE] == 1
    placements = {**CONVOY, "work": work, "placements": [*PLACES, experiment.ALONE], "ticks": 20}
    answers = result_of(label, experiment.latency, placements)
    measured = {**CONVOY, "work": work, "placements": PLACES, "turns": 3, "seconds": 0.002}
    turns = result_of(label, experiment.steadiness, measured)
    assert {row["placement"]: len(row["rates"]) for row in turns} == dict.fromkeys(PLACES, 3)
    assert all(row["p50"] > 0 and row["p99"] is None for row in answers)
    assert {row["placement"]: row["work_per_s"] for row in answers}[experiment.ALONE] == 0


# ---- the analysis ----


def test_where_nothing_can_be_pinned_every_test_says_so():
    session = Golden("pinning")
    for line in session.record.children:
        line["result"] = [row for row in line["result"] if row["placement"] in (experiment.FREE, experiment.AGAIN)]
    found = numbers_of(session)
    for claim in (PINS, BUGS):
        assert {found[rule.number].missing for rule in claim.tests} == {numbers.NO_PINNING}
        assert verdicts.of_claim(claim, found).word == OPEN


def test_processes_in_which_two_threads_shared_a_core_are_told_apart_by_cpu_time():
    """Also beside a load that takes a part of every core; of threads that have the GIL's one core nothing is told."""
    base = {"interpreter": GIL, "work": experiment.NATIVE, "threads": 2, "ended": "ok"}
    had = {0: (1.9, 2.0), 1: (1.0, 2.0), 2: (1.3, 1.4), 3: (0.7, 1.4)}
    rows = [
        base | {"process": process, "placement": placement, "had": cores, "per_s": 100 * cores}
        for process, both in had.items()
        for placement, cores in zip((experiment.FREE, experiment.APART), both)
    ]
    found = numbers.by_class(pd.DataFrame(rows))
    assert list(found.process[found.placement == numbers.SHARED]) == [1, 3]
    one, other = (
        numbers.over(found, "per_s", experiment.APART, placement, threads=2)
        for placement in (experiment.FREE, numbers.SHARED)
    )
    assert (one.n, other.n, other.interval.value) == (2, 2, pytest.approx(2))
    python = numbers.by_class(pd.DataFrame(rows).assign(work=experiment.PYTHON))
    assert not (python.placement == numbers.SHARED).any()


def of_speeds(change):
    """The golden session with every two threads that were not pinned as fast the second time, and with a core each;
    `change` gets each row of them."""
    session = Golden("pinning")
    for line in session.record.children:
        first = next(row for row in line["result"] if row["placement"] == experiment.FREE)
        for row in line["result"] if line["title"] == "throughput" else []:
            row["had"] = 2.0
            if row["placement"] == experiment.AGAIN:
                row["per_s"] = first["per_s"]
            change(row)
    return session


def faster_again(row):
    row["per_s"] *= 1.2 if row["placement"] == experiment.AGAIN else 1.0


def strayed(row):
    row["cores"] = [0, 1] if row["placement"] == experiment.ONE_CORE else row["cores"]


def test_copies_that_differ_and_threads_that_stray_withhold():
    assert not any(check.is_off for check in settled(numbers.controls(of_speeds(lambda row: None))))
    session = of_speeds(faster_again)
    failed = [check for check in settled(numbers.controls(session)) if check.is_off]
    assert [check.source for check in failed] == ["throughput"] * 2
    # The numbers that rest on it, and no others.
    withheld = controls.withheld(failed, numbers_of(session))["A24a"]
    assert {name.partition(" ")[0] for name in withheld} == {"throughput"}
    assert len(withheld) == 2
    failed = [check.kind for check in settled(numbers.controls(of_speeds(strayed))) if check.is_off]
    assert failed == ["pinned threads stay"]


# ---- the exercises ----


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (lambda number, allowed: {number}, "Not correct"),
        (lambda number, allowed: {min(allowed)}, "Not a core each"),
        (lambda number, allowed: None, "Not a core each"),
        (lambda number, allowed: {sorted(allowed)[number % len(allowed)]}, "further ones stay free"),
        (lambda number, allowed: {sorted(allowed)[number]} if number < len(allowed) else None, "Correct"),
    ],
)
def test_the_exercise_on_places_knows_right_from_wrong(place, says):
    (line,) = exercise.check_places(place)
    assert says in line


AS_GIVEN = """
def run(start, measure, stay_on, cores):
    stay_on({cores[0]})
    start()
    start()
    return measure()
"""
REPAIRED = AS_GIVEN.replace("stay_on({cores[0]})", "stay_on(set(cores[1:]))").replace(
    "    return", "    stay_on({cores[0]})\n    return"
)


@CAN_PIN
@pytest.mark.parametrize(
    ("program", "says"),
    [
        (REPAIRED, ""),
        (AS_GIVEN, "a thread that computes may run on"),
        (AS_GIVEN.replace("cores[0]", "*cores"), "give it one core"),
        (AS_GIVEN.replace("    start()\n    start()", "    start()"), "has to start two threads"),
        (AS_GIVEN.replace("return measure()", "measure()"), "return what measure returned"),
        (AS_GIVEN.replace("return measure()", "1 / 0"), "it raised ZeroDivisionError"),
    ],
)
def test_the_exercise_on_a_quiet_core_knows_right_from_wrong(program, says):
    arguments = {"program": program, "library": experiment.LIBRARY, "seconds": 0.02, "rounds": 1, "seed": 1}
    rows = result_of(GIL, exercise.quiet, arguments)
    faults = {row["placement"]: exercise.fault(**row) for row in rows}
    assert says in faults[exercise.MINE] if says else not faults[exercise.MINE]
    assert "give it one core" in faults[experiment.FREE]
    assert all(row["per_s"] >= 0 for row in rows if row["answered"])
