"""The chapter on where threads run: pinning is what it says, the analysis finds what was put in, the exercises check."""

import importlib.util
import os
import sys
from dataclasses import replace

import pandas as pd
import pytest

from ffilab.bench.case import Case
from ffilab.judge import ledger, verdicts
from ffilab.judge.characteristics import rows
from ffilab.judge.claims import declared
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, Occurs
from ffilab.judge.simulation import simulate
from ffilab.paths import BUILT, NATIVE, ROOT
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.pinning import claims, exercise, experiment, figures, results

A24 = declared("pinning").claims[0]
CAN_PIN = hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1


@pytest.fixture
def native(monkeypatch):
    """The worker-side file, imported here."""
    monkeypatch.setattr(sys, "path", [str(NATIVE), *sys.path])
    spec = importlib.util.spec_from_file_location("pinning_experiments", ROOT / experiment.EXPERIMENTS)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_no_thread_is_put_beyond_what_the_process_may_use(native, monkeypatch):
    for allowed in ({0, 1}, {3, 7}, {5}):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, allowed=allowed: allowed, raising=False)
        for placement in (experiment.APART, experiment.ONE_CORE):
            assert all(native.cores_for(placement, number) <= allowed for number in range(4))
        assert native.cores_for(experiment.FREE, 0) is None
        assert native.cores_for(experiment.AGAIN, 0) is None
        assert native.cores_for(experiment.ONE_CORE, 0) == native.cores_for(experiment.ONE_CORE, 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 7}, raising=False)
    assert [native.cores_for(experiment.APART, number) for number in range(2)] == [{3}, {7}]


def test_pinning_one_thread_leaves_the_others_as_they_are(native):
    if not CAN_PIN:
        pytest.skip("threads cannot be pinned apart here")
    before, seen = os.sched_getaffinity(0), []

    def body(number):
        native.pin(experiment.APART, number)
        seen.append(frozenset(os.sched_getaffinity(0)))

    native.together([lambda number=number: body(number) for number in range(2)])
    assert set(seen) == {frozenset({core}) for core in sorted(before)[:2]}
    assert os.sched_getaffinity(0) == before


@pytest.mark.slow
@pytest.mark.parametrize("work", [experiment.NATIVE, experiment.PYTHON])
def test_the_experiments_bring_a_row_for_each_placement(labels, work):
    if not CAN_PIN:
        pytest.skip("threads cannot be pinned apart here")
    places = [experiment.FREE, experiment.APART, experiment.ONE_CORE]
    for label in labels:
        fixed = {"folder": f"{BUILT}/convoy", "seconds": 0.02, "seed": 1}
        cells = [(place, 2) for place in places]
        given = {**fixed, "cells": cells, "rounds": 1}
        found = Case(label, experiment.EXPERIMENTS, "throughput", {"work": work}, given).run()
        assert found.ended == "ok", found.error
        assert {row["placement"]: len(row["cores"]) for row in found.result}[experiment.ONE_CORE] == 1
        given = {**fixed, "placements": [*places, experiment.ALONE], "ticks": 20}
        found = Case(label, experiment.EXPERIMENTS, "latency", {"work": work}, given).run()
        assert found.ended == "ok", found.error
        assert all(row["p50"] > 0 and row["p99"] is None for row in found.result)
        assert all((row["work_per_s"] == 0) == (row["placement"] == experiment.ALONE) for row in found.result)


@pytest.mark.slow
def test_the_race_counts_what_is_lost(labels):
    for label in labels:
        fixed = {"folder": f"{BUILT}/races", "placements": [experiment.FREE], "each": 100_000, "seed": 1}
        found = Case(label, experiment.EXPERIMENTS, "race", fixed=fixed).run()
        assert found.ended == "ok", found.error
        assert 0 <= found.result[0]["lost"] < 1
        assert found.result[0]["any"] == (found.result[0]["lost"] > 0)


@pytest.mark.parametrize("truth", ["as published", "no effect", "the wrong sign"])
def test_the_rules_find_what_was_put_in(truth):
    row = rows("pinning", truth, "quick", 0, noise=0)["A24"]
    for part in row["parts"]:
        if part["kind"] == "occurs":
            assert (part["verdict"] == HOLDS) == (truth == "as published")
        else:
            assert part["verdict"] == (HOLDS if truth == "as published" else DOES_NOT_HOLD), part
    assert row["untested"]


def test_numbers_are_what_was_put_in():
    session = simulate("pinning", "as published", "quick", noise=0)
    handed = ledger.measured(session)
    for rule in A24.tests:
        found = handed.measurements["A24"][rule.measured].interval.value
        assert found == pytest.approx(session.true("A24", rule.measured)), rule.measured
        assert rule.by_interval != isinstance(rule, Occurs)


def test_where_nothing_can_be_pinned_every_test_says_so():
    session = simulate("pinning", "as published", "quick")
    for line in session.record.children:
        line["result"] = [row for row in line["result"] if row["placement"] in (experiment.FREE, experiment.AGAIN)]
    handed = ledger.measured(session)
    assert not handed.measurements["A24"]
    assert set(handed.missing["A24"].values()) == {claims.NO_PINNING}
    assert verdicts.of_claim(A24, {}, handed.missing["A24"]).verdict == verdicts.CANNOT_TEST
    assert figures.effects(session.frame("throughput"), session.frame("latency")).empty


def test_copies_that_differ_withhold():
    session = simulate("pinning", "as published", "quick", noise=0)
    assert all(check.passed for check in claims.controls(session))
    for line in session.record.children:
        for row in line["result"]:
            if row["placement"] == experiment.AGAIN and "per_s" in row:
                row["per_s"] *= 1.2
    failed = [check for check in claims.controls(session) if not check.passed]
    assert len(failed) == 2
    assert all(check.claims == ("A24",) for check in failed)


def test_a_thread_that_strays_withholds():
    session = simulate("pinning", "as published", "quick", noise=0)
    for line in session.record.children[:1]:
        for row in line["result"]:
            row["cores"] = [0, 1]
    assert [check.kind for check in claims.controls(session) if not check.passed] == ["pinned threads stay"]


def test_a_p99_that_some_processes_lack_is_not_shown():
    frame = pd.DataFrame(
        [
            {
                "interpreter": GIL,
                "work": "Python",
                "placement": experiment.FREE,
                "ended": "ok",
                "process": n,
                "p99": p99,
            }
            for n, p99 in enumerate((10.0, 11.0, None))
        ]
    )
    which = {"interpreter": GIL, "work": "Python", "placement": experiment.FREE}
    assert figures.p99(frame, **which) == figures.NO_P99
    assert "µs" in figures.p99(frame[:2], **which)


def test_pairs_are_of_one_process():
    frame = pd.DataFrame(
        [
            {"placement": placement, "ended": ended, "process": n, "per_s": value}
            for n, placement, ended, value in (
                (0, "a", "ok", 2.0),
                (0, "b", "ok", 1.0),
                (1, "b", "ok", 100.0),
                (2, "a", "timeout", None),
                (2, "b", "ok", 50.0),
            )
        ]
    )
    found = results.over(frame, "per_s", "a", "b")
    assert (found.estimate.n, found.interval.value) == (1, 2.0)


def test_the_exercise_on_sides_knows_right_from_wrong():
    session = simulate("pinning", "as published", "quick", noise=0.01)
    speeds = session.frame("throughput")
    asked = "a native call, a core each"
    for answer, said in (("faster", "right"), ("slower", "not so"), ("", "choose from")):
        line = next(line for line in exercise.check_sides({asked: answer}, speeds) if line.startswith(asked))
        assert said in line
    assert any("no interval" in line for line in exercise.check_sides(dict.fromkeys(exercise.ASKED, "faster"), speeds))


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (lambda number, allowed: {number}, "Not correct"),
        (lambda number, allowed: {min(allowed)}, "Not a core each"),
        (lambda number, allowed: None, "Not a core each"),
        (lambda number, allowed: {sorted(allowed)[number % len(allowed)]}, "further ones should stay free"),
        (lambda number, allowed: {sorted(allowed)[number]} if number < len(allowed) else None, "Correct"),
    ],
)
def test_the_exercise_on_places_knows_right_from_wrong(place, said):
    (line,) = exercise.check_places(place)
    assert said in line


def test_the_chapter_is_within_its_time():
    """Seconds at most of `quick`, by what each process may take."""
    from ffilab.budget import BUDGETS

    budget = BUDGETS["quick"]
    throughput = 6 * experiment.ROUNDS * experiment.TURN_S["quick"]
    slow = 4 * experiment.AT_MOST_S["quick"]
    quick = 5 * experiment.TICKS * 0.0007
    start = 0.15
    spent = (2 * budget.repeats + 2 * budget.few) * (throughput + start)
    spent += budget.repeats * (slow + start) + (budget.repeats + 2 * budget.few) * (quick + start) + 20 * (0.1 + start)
    assert spent < 75
    assert replace(budget, name="smoke").is_result is False
    assert FREE_THREADED in experiment.PAIR
