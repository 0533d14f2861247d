"""Statistics whose unit is a process, on data whose truth is known."""

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import processes
from ffilab.judge.estimates import LEVEL, Ranked
from ffilab.judge.interval import Interval
from ffilab.judge.rules import NO, YES, Side
from ffilab.page import draw


def test_what_is_missing_is_left_out():
    found = pd.DataFrame({"case": ["a"] * 5, "p99.9": [1.0, None, 1.2, 1.1, None]})
    assert 1 < processes.interval_of(found, "p99.9", case="a").value < 1.2
    assert processes.interval_of(found, "p99.9", case="b") is None
    assert processes.location(np.array([])) is None
    assert processes.ratio(np.array([1.0, 2]), np.array([])) is None
    assert processes.ratio(np.array([1.0, 2, 3]), np.array([1.0, -1, 1])) is None
    assert processes.ratio(np.zeros(3), np.zeros(3)) is None
    assert processes.difference(np.array([]), np.array([1.0])) is None


def test_ratio_and_difference_cover_the_truth():
    """In 300 made-up runs of ten processes the interval misses the truth about as seldom as it says."""
    rng = np.random.default_rng(21)
    missed = 0
    for _ in range(300):
        slow, fast = 3 * np.exp(rng.normal(0, 0.05, 10)), np.exp(rng.normal(0, 0.05, 10))
        excluded = processes.ratio(slow, fast).interval.excludes(3)
        missed += excluded
        # On a log scale: the spread of a ratio is multiplicative.
        assert processes.difference(np.log(slow), np.log(fast)).interval.excludes(np.log(3)) == excluded
    assert missed < 30


# ---- zero, classes, sessions ----


def test_a_server_that_was_starved_is_a_result():
    """One process of ten without a single answer, and then all of them: the ratio has no upper end, and is a large
    one."""
    rates = np.linspace(29_000, 31_000, 10)
    starved = processes.ratio(rates, np.array([100.0] * 9 + [0.0]))
    assert starved.interval.is_known
    assert 290 <= starved.interval.low <= 310
    assert starved.interval.high == np.inf
    rule = Side("x", direction="above", null=1.0, interest=1.0)
    assert rule.answer(starved).verdict == YES
    assert draw.text(starved.interval) == "290 or more"
    assert rule.answer(processes.ratio(rates, np.zeros(10))).verdict == YES
    assert rule.answer(processes.ratio(np.zeros(10), rates)).verdict == NO
    # Of five nothing can be said at this level.
    assert not processes.ratio(rates[:5], np.zeros(5)).interval.is_known


@pytest.mark.parametrize("n", [7, 10, 18, 30])
def test_the_interval_of_ranks_covers(n):
    rng = np.random.default_rng(n)
    covered = [not Ranked.of(rng.lognormal(0.3, 1, n)).at().excludes(np.exp(0.3)) for _ in range(2000)]
    assert np.mean(covered) >= LEVEL - 0.01


def two_classes(rng, n):
    """Rates with one wait a request, or in a third of the processes with two; and rates without waits."""
    waits = np.where(rng.random(n) < 0.35, 2, 1)
    return 20 * np.exp(rng.normal(0, 0.02, n)), np.exp(rng.normal(0, 0.05, n)) / waits


@pytest.mark.parametrize("n", [10, 30])
def test_classes_have_an_expected_value_and_a_trimmed_mean_is_the_centre_of_none(n):
    rng, truth = np.random.default_rng(n), 20 / (0.65 + 0.35 / 2)
    truth *= np.exp((0.02**2 - 0.05**2) / 2)
    hits, trimmed = [], []
    for _ in range(1500):
        plain, waiting = two_classes(rng, n)
        hits.append(not processes.ratio(plain, waiting, classes=True).interval.excludes(truth))
        trimmed.append(not processes.ratio(plain, waiting).interval.excludes(truth))
    assert np.mean(hits) >= LEVEL - 0.025
    if n == 30:
        assert np.mean(trimmed) < LEVEL - 0.04
    zero = processes.ratio(plain, np.r_[waiting[1:], 0], classes=True).interval
    assert 20 < zero.value < 40
    assert zero.high < np.inf


def test_sessions_of_processes_are_groups():
    """Half of a process's standard deviation comes with each session: to take all as independent covers too seldom."""
    rng, which, hits, together = np.random.default_rng(3), np.repeat(np.arange(4), 10), [], []
    for _ in range(600):
        values = rng.normal(0, 0.1, 40) + rng.normal(0, 0.05, 4)[which]
        frame = pd.DataFrame({"case": "a", "ns": values, "session": which})
        hits.append(not processes.interval_of(frame, "ns").excludes(0))
        together.append(not processes.location(values).interval.excludes(0))
    assert np.mean(hits) > 0.96
    assert np.mean(together) < 0.92
    assert processes.interval_of(frame.drop(columns="session"), "ns") == processes.location(values).interval


def test_a_ratio_that_may_be_nothing_has_no_end_the_other_way_round():
    assert Interval(0.2, 0.0, 0.8).inverse == Interval(5.0, 1.25, float("inf"))
