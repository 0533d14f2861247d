"""What the records of the chapter "Measuring on a noisy machine" say: the talk's tables, spreads, and both intervals."""

import functools
import math
from itertools import combinations

import numpy as np
import pandas as pd

from ffilab.bench import profile
from ffilab.bench.record import Record
from ffilab.judge import description, statistics
from ffilab.judge.estimates import MIN_VALUES, Location, Measurement, Share
from ffilab.judge.statistics import Comparison
from ffilab.provision.catalogue import GIL
from notebooks.measuring.experiment import COPIES, KEPT, LOADERS, REFERENCE

# The level at which the talk calls a difference significant.
TALK_LEVEL = 0.05


def filtered(samples: list[list[int]], names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The samples (ns) of one process by name, after Tukey's filter."""
    return {name: description.tukey(np.array(values)) for name, values in zip(names, samples)}


def talk_tables(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The talk's two tables, for CDLL and PyDLL in one process: moments, and the pair."""
    samples = filtered(runs.samples[0], LOADERS)
    return description.moments(samples), description.pairs(samples)


def clock(runs: pd.DataFrame) -> dict[str, float]:
    """The smallest difference of two readings in a row, and the median time (ns) of a sample that calls an empty lambda."""
    return {"step": float(runs.steps[0][0]), "empty sample": float(np.median(runs["empty"][0]))}


@functools.cache
def pair(one: tuple[int, ...], other: tuple[int, ...]) -> dict:
    """What the talk's test says of the samples of one process."""
    return description.pairs(filtered((one, other), ("first", "second"))).iloc[0].to_dict()


def pairs(runs: pd.DataFrame) -> pd.DataFrame:
    """The same for each process, in the order in which they ran."""
    return pd.DataFrame([pair(*map(tuple, samples)) for samples in runs.sort_values("process").samples])


def significant(pairs: pd.DataFrame) -> pd.Series:
    """Which pairs the talk's method calls significant, one to a process."""
    return pairs["U p"] < TALK_LEVEL


def share_significant(pairs: pd.DataFrame) -> Measurement:
    """Share of processes in which the talk's method calls the pair significant."""
    return Measurement(Share(int(significant(pairs).sum()), len(pairs)), "share of processes")


def restart_medians(record: Record) -> pd.DataFrame:
    """Time of one call over that of the kept reference, by restart, in the process that is restarted and in the kept one.

    Median over blocks, over its own median of all restarts. Core, moment and drift are those of the reference, and cancel.
    """
    rows = []
    for process, arm in (("restarted", COPIES[0]), ("kept", KEPT)):
        logs = statistics.restart_log_ratios(record, (GIL, arm), (GIL, REFERENCE))
        for number, value in enumerate(np.exp(logs - np.median(logs))):
            rows.append({"process": process, "restart": number, "ratio": value})
    return pd.DataFrame(rows)


def log_spread(values: np.ndarray) -> np.ndarray:
    """Logarithm of the mean absolute deviation from the median, along the last axis."""
    return np.log(np.abs(values - np.median(values, axis=-1, keepdims=True)).mean(axis=-1))


def ratio_of_spreads(one: np.ndarray, other: np.ndarray) -> Location:
    """Spread of one number over that of another, of independent pairs; the interval is the jackknife's of the logarithm.

    Miller 1968 (Ann. Math. Stat. 39, no. 2) shows it for variances. The mean absolute deviation, here in their place, is
    changed less by one restart that goes wrong. It holds without normality, and also where the two of a pair go together.
    """
    n = len(one)
    if n < MIN_VALUES:
        return Location(math.nan, math.nan, math.nan, n, log=True)
    others = ~np.eye(n, dtype=bool)
    without_one = [np.broadcast_to(values, (n, n))[others].reshape(n, n - 1) for values in (one, other)]
    jackknifed = log_spread(without_one[0]) - log_spread(without_one[1])
    error = math.sqrt((n - 1) * float(jackknifed.var()))
    return Location(float(log_spread(one) - log_spread(other)), error, n - 1, n, log=True)


def restarted_over_kept(record: Record) -> Measurement:
    """Spread of a call's time over restarts: in processes that are restarted, over the same in one that is kept.

    Above 1, new processes differ from each other more than one process differs from itself. Core offsets and drift are in
    both numbers, and cancel, as each is taken over the reference of its own block.
    """
    logs = [statistics.restart_log_ratios(record, (GIL, arm), (GIL, REFERENCE)) for arm in (COPIES[0], KEPT)]
    return Measurement(ratio_of_spreads(*logs), "ratio of spreads")


def pseudo_replication(record: Record) -> dict[str, float]:
    """Half-widths (fractions) of one call's time by the same estimator: over all blocks as if independent, and over
    restarts."""
    times = record.times(GIL, COPIES[0])
    values = {"blocks": times[np.isfinite(times)], "restarts": np.nanmedian(times, axis=1)}
    intervals = {unit: statistics.location_interval(found) for unit, found in values.items()}
    return {unit: interval.half_width / interval.value for unit, interval in intervals.items()}


def copies_compared(record: Record) -> list[Comparison]:
    """Every pair of copies."""
    return [statistics.compare(record, (GIL, one), (GIL, other)) for one, other in combinations(COPIES, 2)]


def loaders_compared(record: Record) -> Comparison:
    """CDLL over PyDLL."""
    return statistics.compare(record, (GIL, COPIES[0]), (GIL, "PyDLL"))


def time_shares(seen: list[dict]) -> pd.DataFrame:
    """Where the time of a call goes: a row for each interpreter and group of symbols, with its share."""
    rows = []
    for one in seen:
        groups = profile.grouped(one)
        total = sum(groups.values())
        rows += [
            {"interpreter": one["interpreter"], "group": name, "share": cost / total} for name, cost in groups.items()
        ]
    return pd.DataFrame(rows)
