"""Statistics of experiments whose unit is a process: frames with one row for each process and case.

Shares of bad runs get exact intervals (Clopper and Pearson), means a trimmed mean with its bootstrap interval, and two
cases are compared process by process, in the order in which they ran.
"""

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.statistics import Interval


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


def extremes(logs: np.ndarray) -> Interval:
    """The largest over the smallest of many cases, chosen in one half of the rounds and measured in the other.

    logs: logarithms, shape (cases, rounds), paired within a round. The largest of many is too large, as noise has a part
    in the choice; here it has none, so that noise alone gives 1. What is found is a little small if the true extremes
    are not the chosen ones. NaN with fewer than two rounds.
    """
    halves = (slice(0, None, 2), slice(1, None, 2))
    found = []
    for choose, measure in (halves, halves[::-1]):
        if not logs[:, choose].size or not logs[:, measure].size:
            return Interval(*[float("nan")] * 3)
        medians = np.median(logs[:, choose], axis=1)
        found.append(logs[np.argmax(medians), measure] - logs[np.argmin(medians), measure])
    return statistics.location_interval(np.concatenate(found)).map(np.exp)
