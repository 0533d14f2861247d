"""Statistics of experiments whose unit is a process: frames with one row for each process and case.

Shares of bad runs get exact intervals (Clopper and Pearson), means a trimmed mean with its interval, and two
cases are compared process by process, in the order in which they ran.
"""

import functools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import integrate
from scipy.stats import norm

from ffilab.judge import estimates, groups
from ffilab.judge.estimates import Counted, Estimate, Interval, Location, Ranked, Spread


def chosen(frame: pd.DataFrame, **which) -> pd.DataFrame:
    """The rows in which each column has the value given (a text or a number), or one of the values given."""
    keep = pd.Series(True, index=frame.index)
    for name, value in which.items():
        keep &= frame[name].isin([value] if pd.api.types.is_scalar(value) else list(value))
    return frame[keep]


def interval_of(frame: pd.DataFrame, column: str, **which) -> Interval | None:
    """Trimmed mean of a column with its interval, leaving out what is missing; None if nothing is there. Its sessions
    are groups."""
    rows = chosen(frame, **which)
    values = pd.to_numeric(rows[column])
    sessions = rows["session"][values.notna()].tolist() if "session" in rows else [0] * values.count()
    if not values.count():
        return None
    interval = groups.over_groups(values.dropna().to_numpy(), sessions).at()
    return interval if values.min() < 0 else interval.from_zero()


def location(values: np.ndarray, signed: bool = False) -> Location | None:
    """The centre of independent processes' values; None if there are none. signed: whether they are differences; times,
    shares and counts are not, and neither does their interval go below zero."""
    return Location.of(values, signed=signed or min(values) < 0) if len(values) else None


def exact(value: float) -> Counted:
    """Something that was counted, simulated or looked at, and not sampled: it has no uncertainty of its own."""
    return Counted(float(value))


def difference(left: np.ndarray, right: np.ndarray) -> Location | None:
    """Difference of two cases, process by process; None if one is missing."""
    n = min(len(left), len(right))
    return location(left[:n] - right[:n], signed=True)


def ratio(left: np.ndarray, right: np.ndarray, *, classes: bool = False) -> Estimate | None:
    """Ratio of two cases, process by process; None if one is missing, negative, or nothing but zeros on both sides.

    classes: the values fall into classes (one wait a request or two), of which a trimmed mean is the centre of none:
    then it is the ratio of their expected values. A value of zero is a result, such as a server that was starved: then
    pairs are compared by rank, and the interval may have no end (`estimates.Ranked`).
    """
    n = min(len(left), len(right))
    left, right = np.asarray(left[:n], dtype=float), np.asarray(right[:n], dtype=float)
    if not n or min(left.min(), right.min()) < 0 or not (left.any() or right.any()):
        return None
    if classes and left.any() and right.any():
        return ratio_of_means(left, right)
    if min(left.min(), right.min()) == 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            return Ranked.of(left / right)
    return Location.of(np.log(left / right), log=True)


def ratio_of_means(left: np.ndarray, right: np.ndarray) -> Location:
    """Expected value of one group over that of another, process by process, with the error of a ratio of means: the
    scatter of what is left of each pair (Cochran, Sampling Techniques, 1977, section 6.4)."""
    one, other = left.mean(), right.mean()
    return replace(Location.mean(left / one - right / other), centre=math.log(one / other), log=True)


def log_spread(values: np.ndarray) -> np.ndarray:
    """Logarithm of the mean absolute deviation from the median, along the last axis."""
    return np.log(np.abs(values - np.median(values, axis=-1, keepdims=True)).mean(axis=-1))


# Of many cases, the share that is called the slowest, or the fastest.
FIFTH = 0.2


def extremes(logs: np.ndarray) -> Interval:
    """The slowest fifth of many cases over the fastest fifth, chosen in one half of the rounds, measured in the other.

    logs: logarithms, shape (cases, rounds), paired within a round. The largest of many is too large, as noise has a
    part in the choice; here it has none, so that noise alone gives 1. NaN with fewer than two rounds.
    """
    count = max(1, round(FIFTH * len(logs)))
    halves = (slice(0, None, 2), slice(1, None, 2))
    differences = []
    for choose, measure in (halves, halves[::-1]):
        if not logs[:, choose].size or not logs[:, measure].size:
            return Interval(*[float("nan")] * 3)
        ranked = np.argsort(np.median(logs[:, choose], axis=1))
        slow, fast = logs[ranked[-count:], measure], logs[ranked[:count], measure]
        differences.append(slow.mean(axis=0) - fast.mean(axis=0))
    return Location.of(np.concatenate(differences), log=True).interval


@functools.cache
def expected_range(cases: int) -> float:
    """Expected largest minus smallest of so many standard normal values."""
    return integrate.quad(lambda x: 1 - norm.cdf(x) ** cases - norm.sf(x) ** cases, -math.inf, math.inf)[0]


def centres(values: np.ndarray) -> np.ndarray:
    """Trimmed mean over the last axis, the centre of `estimates.Location`: one value that is far off does not move
    it."""
    n = values.shape[-1]
    cut = estimates.trimmed(n)
    return np.sort(values, axis=-1)[..., cut : n - cut].mean(axis=-1)


def range_without_noise(logs: np.ndarray, span_of: int | None = None) -> Spread:
    """Expected largest over smallest of so many cases if each were measured without noise: see `estimates.Spread`.

    logs: logarithms, shape (cases, rounds). span_of: of how many cases the range is meant; of as many as there are, if
    not given. A case counts by its trimmed mean, and its noise is that of a trimmed mean (winsorised, see
    `estimates.Location`): a single round may be off by a fifth, and would pass for a difference between cases, or drown
    one. Rounds that were trimmed give no degrees of freedom.
    """
    cases, rounds = logs.shape
    by_case = [estimates.Location.of(row) for row in logs]
    noise = float(np.mean([location.error**2 for location in by_case])) if rounds > 1 else float("nan")
    of_means = float(np.var([location.centre for location in by_case], ddof=1)) if cases > 1 else float("nan")
    return Spread(of_means, noise, cases, rounds - 2 * estimates.trimmed(rounds), expected_range(span_of or cases))


def ratio_of_groups(left: np.ndarray, right: np.ndarray) -> Estimate | None:
    """Centre of one group of values over that of another, independent one, from their logarithms; None if one is
    missing."""
    first, second = Location.of(left, log=True), Location.of(right, log=True)
    if not min(first.n, second.n):
        return None
    return estimates.difference(first, second)


def positive(values: np.ndarray | pd.Series) -> Interval | None:
    """Centre of rates or times over processes: the interval is that of the logarithms, so it ends above 0, and the
    centre is their geometric mean. None if there are none."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return None
    if min(values) <= 0:
        return Location.of(values, signed=False).interval
    return Location.of(np.log(values), log=True).interval
