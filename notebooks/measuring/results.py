"""What the records of the chapter "Measuring on a noisy machine" say: the talk's tables, spreads, and both intervals."""

from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.bench import profile
from ffilab.bench.record import Record
from ffilab.judge import description, statistics
from ffilab.judge.statistics import Comparison, Interval
from ffilab.provision.catalogue import GIL
from notebooks.measuring.experiment import COPIES, LOADERS

# The level at which the talk calls a difference significant.
LEVEL = 0.05


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


def pairs_of_copies(runs: pd.DataFrame) -> pd.DataFrame:
    """What the talk's test says of two copies of one call: a row for each process."""
    return pd.DataFrame(
        [
            description.pairs(filtered(samples, ("first", "second"))).iloc[0].to_dict()
            for samples in runs.sort_values("process").samples
        ]
    )


def significant(pairs: pd.DataFrame) -> pd.Series:
    """Which A/A pairs the talk's method calls significant."""
    return pairs["U p"] < LEVEL


def share_of_alarms(pairs: pd.DataFrame) -> Interval:
    """Share of A/A pairs that the talk's method calls significant."""
    return statistics.share_interval(int(significant(pairs).sum()), len(pairs))


def restart_medians(record: Record) -> pd.DataFrame:
    """Medians (ns) by restart for one copy and PyDLL: what a process brings along."""
    return pd.DataFrame(
        [
            {"arm": name, "restart": number, "ns": value}
            for name, arm in (("CDLL", COPIES[0]), ("PyDLL", "PyDLL"))
            for number, value in enumerate(np.nanmedian(record.times(GIL, arm), axis=1))
        ]
    )


def between_over_within(record: Record) -> Interval:
    """Spread of restarts' medians over what the noise inside restarts explains; above 1, processes differ for real.

    The expected spread of a median of n blocks is about 1.2533 sigma / sqrt(n). Bootstrap over restarts.
    """
    times = record.times(GIL, COPIES[0])
    medians = np.nanmedian(times, axis=1)
    blocks = np.isfinite(times).sum(axis=1)
    within = stats.median_abs_deviation(times, axis=1, scale="normal", nan_policy="omit") * 1.2533 / np.sqrt(blocks)

    def statistic(index, axis=-1):
        chosen = index.astype(int)
        spread = stats.median_abs_deviation(medians[chosen], axis=axis, scale="normal")
        return spread / np.sqrt(np.mean(within[chosen] ** 2, axis=axis))

    index = np.arange(len(medians))
    if len(medians) < statistics.MIN_RESTARTS:
        return Interval(float(statistic(index)), float("nan"), float("nan"))
    found = stats.bootstrap(
        (index,),
        statistic,
        n_resamples=1999,
        method="percentile",
        vectorized=True,
        confidence_level=statistics.expanded_level(len(medians)),
        rng=np.random.default_rng(record.run["plan"]["seed"]),
    ).confidence_interval
    return Interval(float(statistic(index)), float(found.low), float(found.high))


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
