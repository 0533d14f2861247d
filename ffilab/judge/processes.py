"""Statistics of experiments whose unit is a process: frames with one row for each process and case.

Shares of bad runs get exact intervals (Clopper and Pearson), means a trimmed mean with its bootstrap interval, and two
cases are compared process by process, in the order in which they ran.
"""

import functools

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.judge import statistics
from ffilab.judge.statistics import Interval, Measurement


def chosen(frame: pd.DataFrame, **which) -> pd.DataFrame:
    """The rows in which each column has the value given (a text or an int), or one of the values given."""
    keep = pd.Series(True, index=frame.index)
    for name, value in which.items():
        keep &= frame[name].isin([value] if isinstance(value, str | int) else list(value))
    return frame[keep]


def bad_runs(frame: pd.DataFrame, column: str, **which) -> tuple[int, int]:
    """Runs in which something went wrong (`column` is not zero), and all runs, of the rows that `which` chooses."""
    rows = chosen(frame, **which)
    return int((rows[column] != 0).sum()), len(rows)


def share_of_bad_runs(frame: pd.DataFrame, column: str, **which) -> Measurement | None:
    """The same as a share, with its exact interval; None if there are no such rows."""
    hits, trials = bad_runs(frame, column, **which)
    if not trials:
        return None
    return Measurement(statistics.share_interval(hits, trials), statistics.share_mde(trials), "share of runs")


def interval_of(frame: pd.DataFrame, column: str, **which) -> Interval | None:
    """Trimmed mean of a column with its interval, leaving out what is missing; None if nothing is there."""
    values = pd.to_numeric(chosen(frame, **which)[column]).dropna().to_numpy()
    return statistics.location_interval(values) if len(values) else None


def measured(values: np.ndarray, unit: str) -> Measurement | None:
    """Values of independent processes as a measurement with its minimum detectable effect; None if there are none."""
    if not len(values):
        return None
    found = statistics.location_interval(values)
    return Measurement(found, statistics.minimum_detectable_effect(found, len(values)), unit)


def exact(value: float, unit: str) -> Measurement:
    """Something that was counted, simulated or looked at, and not sampled: it has no uncertainty of its own."""
    return Measurement(Interval(value, value, value), 0.0, unit)


def difference(left: np.ndarray, right: np.ndarray, unit: str) -> Measurement | None:
    """Difference of two cases, process by process; None if one is missing."""
    n = min(len(left), len(right))
    return measured(left[:n] - right[:n], unit)


def ratio(left: np.ndarray, right: np.ndarray) -> Measurement | None:
    """Ratio of two cases, process by process; None if one is missing or not positive."""
    n = min(len(left), len(right))
    if not n or min(left[:n].min(), right[:n].min()) <= 0:
        return None
    log = statistics.location_interval(np.log(left[:n] / right[:n]))
    mde = float(np.expm1(statistics.minimum_detectable_effect(log, n)))
    return Measurement(log.map(np.exp), mde, "ratio")


# Of many cases, the share that is called the slowest, or the fastest.
FIFTH = 0.2
DRAWS = 20_000


def extremes(logs: np.ndarray) -> Interval:
    """The slowest fifth of many cases over the fastest fifth, chosen in one half of the rounds, measured in the other.

    logs: logarithms, shape (cases, rounds), paired within a round. The largest of many is too large, as noise has a part
    in the choice; here it has none, so that noise alone gives 1. NaN with fewer than two rounds.
    """
    count = max(1, round(FIFTH * len(logs)))
    halves = (slice(0, None, 2), slice(1, None, 2))
    found = []
    for choose, measure in (halves, halves[::-1]):
        if not logs[:, choose].size or not logs[:, measure].size:
            return Interval(*[float("nan")] * 3)
        ranked = np.argsort(np.median(logs[:, choose], axis=1))
        slow, fast = logs[ranked[-count:], measure], logs[ranked[:count], measure]
        found.append(slow.mean(axis=0) - fast.mean(axis=0))
    return statistics.location_interval(np.concatenate(found)).map(np.exp)


@functools.cache
def expected_range(cases: int, seed: int = 0) -> float:
    """Expected largest minus smallest of so many standard normal values, by simulation."""
    return float(np.ptp(np.random.default_rng(seed).normal(size=(DRAWS, cases)), axis=1).mean())


def range_without_noise(logs: np.ndarray) -> Interval:
    """Expected largest over smallest of so many cases if each were measured without noise.

    logs: logarithms, shape (cases, rounds). One-way random effects: the variance between cases is that of their means,
    less what the scatter within cases explains; its exact F interval (Searle, Casella and McCulloch, Variance
    Components, 1992, section 3.6). The root times the expected range of as many normal values is the logarithm of the
    ratio. 1 if noise explains all. NaN with fewer than MIN_RESTARTS rounds or cases.
    """
    cases, rounds = logs.shape
    if rounds < statistics.MIN_RESTARTS or cases < statistics.MIN_RESTARTS:
        return Interval(*[float("nan")] * 3)
    within = logs.var(axis=1, ddof=1).mean()
    found = rounds * logs.mean(axis=1).var(ddof=1) / within
    freedom = cases - 1, cases * (rounds - 1)

    def ratio_of(f: float) -> float:
        return float(np.exp(np.sqrt(max(f - 1, 0) / rounds * within) * expected_range(cases)))

    low, high = (ratio_of(found / stats.f.ppf(quantile, *freedom)) for quantile in (0.975, 0.025))
    return Interval(ratio_of(found), low, high)
