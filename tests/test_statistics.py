"""The statistics on data whose truth is known. Seeds are fixed; tolerances are those of the number of simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ffilab.judge.estimates import LEVEL, MIN_VALUES, POWER, TRIM, TRIMMED_FROM, Location, Share, ShareDifference
from ffilab.judge.questions import above
from ffilab.judge.rules import YES
from ffilab.run.budget import BUDGETS

SIMULATIONS = 4000


def coverage(draw, truth, n, seed):
    """Share of intervals that contain the truth, over simulations of n restarts."""
    rng = np.random.default_rng(seed)
    return np.mean([not Location.of(draw(rng, n)).interval.excludes(truth) for _ in range(SIMULATIONS)])


def about_the_level(share):
    """What the book states is 98 %; the trimmed mean's interval covers 97 to 98 %."""
    return LEVEL - 0.015 <= share <= LEVEL + 0.012


@pytest.mark.parametrize("n", [3, 5, 10, 14, 15, 20, 40])
def test_interval_covers_the_centre_of_normal_restarts(n):
    assert about_the_level(coverage(lambda rng, n: rng.normal(0.1, 0.02, n), 0.1, n, seed=n))


# As many values as the budgets that are results make an interval of.
OF_BUDGETS = sorted({n for one in BUDGETS.values() if one.is_result for n in (one.few, one.repeats, one.layouts)})


@pytest.mark.full
@pytest.mark.parametrize("n", OF_BUDGETS)
def test_every_budget_makes_intervals_that_cover(n):
    """Of well-behaved values, of heavy tails, and of values that are a little skewed."""
    assert min(OF_BUDGETS) >= MIN_VALUES
    assert about_the_level(coverage(lambda rng, n: rng.normal(0.1, 0.02, n), 0.1, n, seed=n))
    assert coverage(lambda rng, n: 0.1 + 0.02 * rng.standard_t(3, n), 0.1, n, seed=n) >= LEVEL - 0.015
    truth = (
        float(np.exp(0.02))
        if n < TRIMMED_FROM
        else float(stats.trim_mean(np.random.default_rng(9).lognormal(0, 0.2, 500_000), TRIM))
    )
    assert coverage(lambda rng, n: rng.lognormal(0, 0.2, n), truth, n, seed=n) >= LEVEL - 0.02


def test_standard_error_is_that_of_scipy():
    """`scipy.stats.mstats.trimmed_mean_ci` computes the same interval, slowly."""
    values = np.random.default_rng(3).normal(5, 2, 25)
    interval = Location.of(values).interval
    known = stats.mstats.trimmed_mean_ci(values, (TRIM, TRIM), alpha=1 - LEVEL)
    assert (interval.low, interval.high) == pytest.approx(tuple(known))


def test_what_most_values_agree_on_is_not_certain():
    """A trimmed mean sees nothing of a minority: then the plain mean counts, and its interval contains the minority's
    part."""
    interval = Location.of(np.array([0.0] * 27 + [0.5] * 3)).interval
    assert interval.value == pytest.approx(0.05)
    assert interval.low < 0.05 < interval.high


def test_whole_chain_covers_under_process_effects_drift_and_heavy_tails():
    """Blocks of two arms with everything that a noisy machine does to them; the truth is a ratio of 1.02."""
    rng = np.random.default_rng(10)
    restarts, blocks, hits, alarms = 20, 20, 0, 0
    for _ in range(SIMULATIONS):
        process = rng.normal(0, 0.05, (restarts, 1))
        drift = np.cumsum(rng.normal(0, 0.01, (restarts, blocks)), axis=1)
        own = rng.normal(0, 0.004, (2, restarts, 1))  # layout that favours one arm in this restart
        noise = 0.01 * rng.standard_t(2, (2, restarts, blocks))
        slow, fast = (process + drift + own[i] + noise[i] for i in range(2))
        values = np.median(slow - fast, axis=1)
        hits += not Location.of(values + np.log(1.02), log=True).interval.excludes(1.02)
        alarms += Location.of(values).interval.excludes(0)
    assert about_the_level(hits / SIMULATIONS)
    assert alarms / SIMULATIONS <= 1 - LEVEL + 0.015


def test_minimum_detectable_effect_is_found_with_its_power():
    """An effect of the size that runs of this noise call detectable is detected in about four of five such runs."""
    rng = np.random.default_rng(4)
    n, sigma = 20, 0.01
    effect = np.mean([Location.of(rng.normal(0, sigma, n)).mde for _ in range(SIMULATIONS)])
    logs = [Location.of(rng.normal(effect, sigma, n), log=True) for _ in range(SIMULATIONS)]
    assert np.mean([above(one.at(), 1) == YES for one in logs]) == pytest.approx(0.8, abs=0.06)


@given(st.integers(1, 60), st.data())
def test_share_interval_contains_the_share(trials, data):
    hits = data.draw(st.integers(0, trials))
    interval = Share(hits, trials).at()
    assert 0 <= interval.low <= hits / trials <= interval.high <= 1
    known = stats.binomtest(hits, trials).proportion_ci(LEVEL, method="exact")
    assert (interval.low, interval.high) == pytest.approx((known.low, known.high), abs=1e-9)


# Their sums are exact: a shift makes no ties.
EIGHTHS = st.integers(-8000, 8000).map(lambda n: n / 8)


@given(st.lists(EIGHTHS, min_size=5, max_size=30), EIGHTHS)
def test_interval_moves_with_its_values(values, shift):
    one = Location.of(np.array(values)).interval
    other = Location.of(np.array(values) + shift).interval
    assert other.value == pytest.approx(one.value + shift, abs=1e-6)
    assert one.low <= one.value <= one.high


def test_difference_of_shares_covers():
    """Newcombe's interval covers the true difference about as often as it says, also near 0 and 1."""
    rng = np.random.default_rng(11)
    for p, q in ((0.5, 0.3), (0.95, 0.1), (1.0, 0.4)):
        hits = zip(rng.binomial(30, p, 1000).tolist(), rng.binomial(30, q, 1000).tolist(), strict=True)
        covered = [not ShareDifference(k, 30, m, 30).at().excludes(p - q) for k, m in hits]
        assert np.mean(covered) > LEVEL - 0.02


def test_smallest_share_to_be_seen():
    rng = np.random.default_rng(12)
    smallest = Share(0, 30).mde
    assert (rng.binomial(30, smallest, 20_000) > 0).mean() == pytest.approx(POWER, abs=0.01)
