"""The statistics on data whose truth is known. Seeds are fixed; tolerances are those of the number of simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ffilab.judge import statistics

SIMULATIONS = 1000


def coverage(draw, truth, n, seed):
    """Share of intervals that contain the truth, over simulations of n restarts."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(SIMULATIONS):
        interval = statistics.location_interval(draw(rng, n), seed=int(rng.integers(1 << 32)))
        hits += interval.low <= truth <= interval.high
    return hits / SIMULATIONS


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch):
    # The simulation's own error (0.7 %) hides what more resamples would change.
    monkeypatch.setattr(statistics, "RESAMPLES", 999)


@pytest.mark.parametrize("n", [10, 20, 40])
def test_interval_covers_the_centre_of_normal_restarts(n):
    assert 0.93 <= coverage(lambda rng, n: rng.normal(0.1, 0.02, n), 0.1, n, seed=n) <= 0.97


def test_interval_covers_under_heavy_tails():
    """Student's t with three degrees of freedom: restarts that go wrong now and then."""
    assert 0.93 <= coverage(lambda rng, n: 0.1 + 0.02 * rng.standard_t(3, n), 0.1, 20, seed=7) <= 0.97


def test_interval_covers_the_trimmed_mean_under_skew():
    rng = np.random.default_rng(9)
    truth = float(statistics.centre(rng.lognormal(0, 0.5, 2_000_000)))
    assert 0.93 <= coverage(lambda rng, n: rng.lognormal(0, 0.5, n), truth, 20, seed=8) <= 0.97


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
        seed = int(rng.integers(1 << 32))
        interval = statistics.location_interval(values + np.log(1.02), seed).map(np.exp)
        hits += interval.low <= 1.02 <= interval.high
        alarms += statistics.location_interval(values, seed).excludes(0)
    assert 0.93 <= hits / SIMULATIONS <= 0.97
    assert alarms / SIMULATIONS <= 0.07


def test_expanded_level_exceeds_the_nominal_one_and_vanishes():
    levels = [statistics.expanded_level(n) for n in (5, 20, 1000)]
    assert levels == sorted(levels, reverse=True)
    assert all(level > 0.95 for level in levels)
    assert levels[-1] == pytest.approx(0.95, abs=1e-3)


def test_false_positives_of_the_signed_rank_test():
    rng = np.random.default_rng(3)
    alarms = [stats.wilcoxon(rng.normal(0, 1, 20)).pvalue < 0.05 for _ in range(SIMULATIONS)]
    assert np.mean(alarms) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / SIMULATIONS)


def test_minimum_detectable_effect_is_found_with_its_power():
    """An effect of the size that runs of this noise call detectable is detected in about four of five such runs."""
    rng = np.random.default_rng(4)
    n, sigma = 20, 0.01
    quiet = [statistics.location_interval(rng.normal(0, sigma, n), seed) for seed in range(SIMULATIONS)]
    effect = np.mean([statistics.minimum_detectable_effect(interval, n) for interval in quiet])
    found = [statistics.location_interval(rng.normal(effect, sigma, n), seed).low > 0 for seed in range(SIMULATIONS)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def test_too_few_restarts_give_no_interval():
    interval = statistics.location_interval(np.array([1.0, 2.0]))
    assert interval.value == 1.5
    assert np.isnan(interval.low)
    assert np.isnan(interval.high)
    assert np.isnan(statistics.minimum_detectable_effect(interval, 2))


@given(st.integers(1, 60), st.data())
def test_share_interval_contains_the_share(trials, data):
    hits = data.draw(st.integers(0, trials))
    interval = statistics.share_interval(hits, trials)
    assert 0 <= interval.low <= hits / trials <= interval.high <= 1


@given(st.lists(st.floats(-1e3, 1e3), min_size=5, max_size=30), st.floats(-1e3, 1e3))
def test_interval_moves_with_its_values(values, shift):
    one = statistics.location_interval(np.array(values))
    other = statistics.location_interval(np.array(values) + shift)
    assert other.value == pytest.approx(one.value + shift, abs=1e-6)
    assert min(values) - 1e-6 <= one.low <= one.high <= max(values) + 1e-6


def test_difference_of_shares_covers():
    """Newcombe's interval covers the true difference about as often as it says, also near 0 and 1."""
    rng = np.random.default_rng(11)
    for p, q in ((0.5, 0.3), (0.95, 0.1), (1.0, 0.4)):
        hits = rng.binomial(30, p, 1000), rng.binomial(30, q, 1000)
        covered = 0
        for k, m in zip(*hits, strict=True):
            found = statistics.share_difference(int(k), 30, int(m), 30)
            covered += found.low <= p - q <= found.high
        assert covered > 920


def test_smallest_share_to_be_seen():
    rng = np.random.default_rng(12)
    smallest = statistics.share_mde(30)
    assert (rng.binomial(30, smallest, 20_000) > 0).mean() == pytest.approx(statistics.POWER, abs=0.01)
