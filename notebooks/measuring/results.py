"""What the records of the chapter "Measuring on a noisy machine" say: the talk's tables, spreads, and both
intervals."""

import dataclasses
import functools
import math
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.judge import statistics
from ffilab.judge.controls import NEGLIGIBLE
from ffilab.judge.estimates import LEVEL, MIN_VALUES, Counted, Estimate, Interval, Location, Share, difference
from ffilab.judge.questions import NO, OPEN, above, equal
from ffilab.judge.statistics import Comparison
from ffilab.measure import neighbour, profile
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.setup.catalogue import GIL
from notebooks.boundary import description
from notebooks.measuring import variances
from notebooks.measuring.experiment import BINDINGS, COPIES, KEPT, OF_EACH, ON, REFERENCE

LOADERS_OF_COPIES = (GIL, COPIES[0]), (GIL, "PyDLL")
LAYOUT, BELOW = "layout", "restart, with the noise of its blocks"
# The level at which the talk calls a difference significant.
TALK_LEVEL = 0.05
# The p of its test for two samples of the 195 values that it sees, without ties or overlap, however far they lie apart.
APART = float(stats.mannwhitneyu(np.arange(195), 195 + np.arange(195)).pvalue)
SHUFFLES = 1000


def talk_tables(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The talk's two tables of one process: moments of what Tukey's rule leaves, and the pairs, from all values."""
    samples = {name: np.array(values) for name, values in zip(runs.bindings.iloc[0], runs.samples.iloc[0])}
    return description.moments({name: description.tukey(v) for name, v in samples.items()}), description.pairs(samples)


def p_value(p: float) -> str:
    """A p-value in digits that tell something; one that a float cannot hold is below the smallest that it can."""
    if p == 0:
        return "below 10⁻³⁰⁰"
    if p >= 1e-4:
        return f"{p:.2g}"
    digits, power = f"{p:.1e}".split("e")
    return f"{digits} · 10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def clock(runs: pd.DataFrame) -> dict[str, float]:
    """The smallest difference of two readings in a row, and the median time (ns) of a sample that calls an empty
    lambda."""
    return {"step": float(runs.steps[0][0]), "empty sample": float(np.median(runs["empty"][0]))}


@functools.cache
def compared(samples: tuple[tuple[int, ...], ...], names: tuple[str, ...] = ("first", "second")) -> pd.DataFrame:
    """What the talk's test says of every pair of the samples of one process."""
    return description.pairs({name: np.array(values) for name, values in zip(names, samples)})


def pairs(runs: pd.DataFrame) -> pd.DataFrame:
    """What the talk's test says of two copies in each process, in the order in which they ran.

    measured_first: the number of the copy that was measured first.
    """
    ordered = runs.sort_values("process")
    found = pd.concat([compared(tuple(map(tuple, samples))) for samples in ordered.samples], ignore_index=True)
    return found.assign(measured_first=list(ordered.measured_first) if "measured_first" in ordered else 0)


def of_bindings(runs: pd.DataFrame) -> pd.DataFrame:
    """Every pair of bindings in each process: the columns of description.pairs, and process."""
    found = [
        compared(tuple(map(tuple, row.samples)), tuple(row.bindings)).assign(process=row.process)
        for row in runs.itertuples()
    ]
    return pd.concat(found, ignore_index=True)


def all_separated(found: pd.DataFrame) -> Estimate | str:
    """Share of processes in which every pair of the talk's four bindings is called different; or why there is none."""
    by_process = found.groupby("process")["BH p"]
    if by_process.size().min() < math.comb(len(BINDINGS), 2):
        return "not all of the four bindings could be loaded"
    return Share(int((by_process.max() < TALK_LEVEL).sum()), len(by_process))


def by_pair(found: pd.DataFrame) -> pd.DataFrame:
    """Over processes: how often a pair is called different, how often each is called the faster one, and the median
    shift.

    Columns pair, different, faster (a dictionary of counts), shift, n.
    """
    rows = [
        {
            "pair": pair,
            "different": int((part["BH p"] < TALK_LEVEL).sum()),
            "faster": part.faster.value_counts().to_dict(),
            "shift": float(part["shift"].median()),
            "n": len(part),
        }
        for pair, part in found.groupby("pair", sort=False)
    ]
    return pd.DataFrame(rows)


def apart(found: pd.DataFrame) -> pd.Series:
    """How far the two of each pair lie apart, over the faster one (a fraction): the same whichever comes first."""
    return np.expm1(np.abs(np.log1p(found["shift"])))


def yardstick(copies: pd.DataFrame) -> dict[float, float]:
    """How far apart so many of all pairs of copies lie at most, each in one process."""
    return {share: float(np.quantile(apart(copies), share)) for share in (0.95, LEVEL)}


def beyond(found: pd.DataFrame, reach: float) -> dict[str, Share]:
    """By pair: the processes in which its two lie further apart than this, of all. Single processes, as the copies'
    are."""
    further = (apart(found) > reach).groupby(found.pair, sort=False)
    return {pair: Share(int(part.sum()), len(part)) for pair, part in further}


def significant(pairs: pd.DataFrame) -> pd.Series:
    """Which pairs the talk's method calls significant, one to a process."""
    return pairs["U p"] < TALK_LEVEL


def share_significant(pairs: pd.DataFrame) -> Estimate:
    """Share of processes in which the talk's method calls two copies different."""
    return Share(int(significant(pairs).sum()), len(pairs))


def tiny(pairs: pd.DataFrame) -> Share | None:
    """Of the significant pairs: those that lie less than what is negligible apart. None if no pair is significant."""
    found = apart(pairs[significant(pairs)])
    return Share(int((found < NEGLIGIBLE).sum()), len(found)) if len(found) else None


def leaning(pairs: pd.DataFrame) -> dict[str, Share]:
    """Of the significant pairs: in how many the copy that was measured first has the longer times (`measured`), and in
    how many the copy that was loaded first (`loaded`). Empty if no pair is significant."""
    found = pairs[significant(pairs)]
    delta = found["Cliff's delta"]
    if not len(found):
        return {}
    measured = delta.where(found.measured_first == 0, -delta)
    return {
        "measured": Share(int((measured > 0).sum()), len(found)),
        "loaded": Share(int((delta > 0).sum()), len(found)),
    }


def times_of(timings: list[list], which: int) -> np.ndarray:
    """Logarithms of one copy's timings, in the order of measuring."""
    return np.log([ns for copy, ns in timings if copy == which])


def one_after_the_other(timings: list[list]) -> Location:
    """Step 1: copy 1 over copy 0, every timing an independent value (Welch)."""
    one, other = (Location.of(times_of(timings, which), log=True) for which in (1, 0))
    return difference(one, other)


def interleaved(timings: list[list]) -> Location:
    """Step 2: the same, every turn an independent value."""
    return Location.of(times_of(timings, 1) - times_of(timings, 0), log=True)


def of_process(timings: list[list]) -> float:
    """What one process stands for in step 3: the median over its turns (log)."""
    return float(np.median(times_of(timings, 1) - times_of(timings, 0)))


def restarted(processes: list[list[list]]) -> Location:
    """Step 3: the same, every process an independent value."""
    values = [of_process(timings) for timings in processes]
    return Location.of(np.array(values), log=True)


def benchmarks(in_one: pd.DataFrame, restarts: pd.DataFrame) -> pd.DataFrame:
    """What each benchmark says of two copies of one call. Columns step (1, 2, 3), value, low, high."""
    rows = [
        {"step": number, **vars(say(timings).at())}
        for number, name, say in ((1, "one_after_the_other", one_after_the_other), (2, "interleaved", interleaved))
        for timings in in_one[in_one.step == name].sort_values("process").timings
    ]
    timings = list(restarts.sort_values("process").timings)
    for first in range(0, len(timings) - OF_EACH + 1, OF_EACH):
        rows.append({"step": 3, **vars(restarted(timings[first : first + OF_EACH]).at())})
    return pd.DataFrame(rows, columns=["step", "value", "low", "high"])


def false_alarms(found: pd.DataFrame) -> dict[int, Share]:
    """By step: the benchmarks whose interval excludes 1, of all. A step of which none was completed is left out."""
    alarms = pd.Series([above(Interval.of(row), 1) != OPEN for row in found.itertuples()], found.index, dtype=bool)
    return {int(step): Share(int(part.sum()), len(part)) for step, part in alarms.groupby(found.step)}


def restart_medians(record: Record) -> pd.DataFrame:
    """Time of one call over that of the kept reference, by restart, in the process that is restarted and in the kept
    one.

    Median over blocks, over its own median of all restarts with one layout. Core, moment and drift are those of the
    reference, and cancel.
    """
    rows = []
    for process, arm in (("restarted", COPIES[0]), ("kept", KEPT)):
        for number, value in enumerate(np.exp(within_layouts(record, arm))):
            rows.append({"process": process, "restart": number, "ratio": value})
    return pd.DataFrame(rows).dropna()


def within_layouts(record: Record, arm: str) -> np.ndarray:
    """Logarithms of a call's time over the kept reference's, one for each restart, less the median of its layout.

    A link of its own is more than a new process: what restarts alone do is left.
    """
    logs = pd.Series(statistics.log_ratios_by_restart(record, (GIL, arm), (GIL, REFERENCE)))
    drawn = [record.units[number] for number in record.noise.restarts]
    if any(unit.layout is None for unit in drawn):
        return (logs - logs.median()).to_numpy()
    return (logs - logs.groupby(pd.factorize(pd.Series(drawn))[0]).transform("median")).to_numpy()


def log_spread(values: np.ndarray) -> np.ndarray:
    """Logarithm of the mean absolute deviation from the median, along the last axis."""
    return np.log(np.abs(values - np.median(values, axis=-1, keepdims=True)).mean(axis=-1))


def ratio_of_spreads(one: np.ndarray, other: np.ndarray) -> Location:
    """Spread of one number over that of another, of independent pairs; the interval is the jackknife's of the
    logarithm.

    Miller 1968 (Ann. Math. Stat. 39, no. 2) shows it for variances. The mean absolute deviation, here in their place,
    is changed less by one restart that goes wrong. It holds without normality, and also where the two of a pair go
    together.
    """
    n = len(one)
    if n < MIN_VALUES:
        return Location(math.nan, math.nan, math.nan, n, log=True)
    others = ~np.eye(n, dtype=bool)
    without_one = [np.broadcast_to(values, (n, n))[others].reshape(n, n - 1) for values in (one, other)]
    jackknifed = log_spread(without_one[0]) - log_spread(without_one[1])
    error = math.sqrt((n - 1) * float(jackknifed.var()))
    return Location(float(log_spread(one) - log_spread(other)), error, n - 1, n, log=True)


def restarted_over_kept(record: Record) -> Estimate:
    """Spread of a call's time over restarts: in processes that are restarted, over the same in one that is kept.

    Above 1, new processes differ from each other more than one process differs from itself. Core offsets and drift are
    in both numbers, and cancel, as each is taken over the reference of its own block.
    """
    logs = np.array([within_layouts(record, arm) for arm in (COPIES[0], KEPT)])
    known = np.isfinite(logs).all(axis=0)
    found = ratio_of_spreads(*logs[:, known])
    # A median was taken off for each layout, and not for all together: so many fewer restarts are free.
    drawn = [record.units[number] for number, kept in zip(record.noise.restarts, known) if kept]
    free = found.n - (1 if any(unit.layout is None for unit in drawn) else len(set(drawn)))
    if free < MIN_VALUES:
        return dataclasses.replace(found, error=math.nan, freedom=math.nan)
    error = found.error * math.sqrt((found.n - 1) / free)
    looks = len({unit.session for unit in drawn})
    return dataclasses.replace(found, error=error, freedom=free, sessions=looks)


def half_width(values: np.ndarray) -> float:
    """Half-width of the interval of what was measured, over its centre."""
    interval = Location.of(values[np.isfinite(values)]).interval
    return interval.half_width / interval.value


def pseudo_replication(record: Record) -> tuple[dict[str, float], Interval]:
    """Half-widths (fractions) of one call's time: over all blocks as if independent, and over restarts. And what
    restarts have where the same blocks are dealt out to them by chance: the middle of SHUFFLES, and where LEVEL of them
    lie."""
    times = record.by_restart(GIL, COPIES[0])
    widths = {"blocks": half_width(times), "restarts": half_width(medians(times))}
    rng, there, dealt = np.random.default_rng(0), np.isfinite(times), times.copy()
    found = []
    for _ in range(SHUFFLES):
        dealt[there] = rng.permutation(times[there])
        found.append(half_width(medians(dealt)))
    return widths, Interval(*np.quantile(found, (0.5, (1 - LEVEL) / 2, (1 + LEVEL) / 2)).tolist())


def company(record: Record) -> float:
    """Share of the work during which something else ran on the core."""
    return float(np.mean(list(record.company.values())))


def by_company(record: Record, cell: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of one cell's times, (restarts, blocks): batches that had company all the time, and batches that had
    none."""
    share = record.company["/".join(cell)]
    return tuple(
        np.log(record.rows(*cell, discarded)) for discarded in (share < 1 - neighbour.MOST, share > neighbour.MOST)
    )


def slowdowns(record: Record) -> pd.DataFrame:
    """By what company on the core multiplies the time of each of these arms, over restarts that had both.

    Columns arm, company (share of the work that had some), n, value, low, high; NaN bounds if too few restarts had
    both.
    """
    rows = []
    for arm in (COPIES[0], "PyDLL", EMPTY):
        busy, quiet = (medians(times) for times in by_company(record, (GIL, arm)))
        found = (busy - quiet)[np.isfinite(busy - quiet)]
        interval = Location.of(found, log=True).interval
        rows.append({"arm": arm, "company": record.company[f"{GIL}/{arm}"].mean(), "n": len(found), **vars(interval)})
    return pd.DataFrame(rows)


def moved_by_company(record: Record) -> Location:
    """CDLL over PyDLL in blocks in which both had company, over the same ratio where neither had; NaN bounds if too
    few."""
    (busy, quiet), (other_busy, other_quiet) = (by_company(record, cell) for cell in LOADERS_OF_COPIES)
    found = medians(busy - other_busy) - medians(quiet - other_quiet)
    return Location.of(found[np.isfinite(found)], log=True)


def copies_compared(record: Record) -> list[Comparison]:
    """Every pair of copies that was measured; by this session alone, as in the controls: to copies another adds
    nothing."""
    pairs = list(combinations([(GIL, arm) for arm in COPIES if record.has(GIL, arm)], 2))
    found = [statistics.explained(record, statistics.log_ratios(record, *pair), log=True, of=0) for pair in pairs]
    return [dataclasses.replace(statistics.compare(record, *pair), estimate=one) for pair, one in zip(pairs, found)]


def alarms_among(pairs: list[Comparison]) -> int | None:
    """How many pairs of copies certainly differ by more than is negligible, as in the controls of every run; None if
    that is not known. The level is the family's: one false alarm in any of them is as rare as one in a single pair."""
    intervals = [pair.estimate.at(1 - (1 - LEVEL) / len(pairs)) for pair in pairs]
    if not pairs or not all(interval.is_known for interval in intervals):
        return None
    return sum(equal(interval, 1, NEGLIGIBLE) == NO for interval in intervals)


def loaders_compared(record: Record) -> Comparison:
    """CDLL over PyDLL."""
    return statistics.compare(record, (GIL, COPIES[0]), (GIL, "PyDLL"))


def by_layout(record: Record) -> pd.DataFrame:
    """CDLL over PyDLL for each layout, from its own restarts alone: what a benchmark of one binary would print.

    Columns layout, value, low, high. No rows where no layouts were drawn.
    """
    logs = pd.Series(statistics.log_ratios_by_restart(record, *LOADERS_OF_COPIES))
    units = [record.units[number].layout for number in record.noise.restarts]
    rows = [
        {"layout": layout, **vars(Location.of(part.to_numpy(), log=True).interval)}
        for layout, part in logs.dropna().groupby(pd.Series(units, dtype="Int64"))
        if len(part) >= MIN_VALUES
    ]
    return pd.DataFrame(rows, columns=["layout", "value", "low", "high"])


def levels(record: Record, cells=LOADERS_OF_COPIES) -> pd.DataFrame:
    """Standard deviation (log scale) that a layout adds to the ratio of two cells, and what is left within layouts: a
    restart, and the noise of its blocks. With 95 % intervals.

    One-way random effects by the method of moments; layouts with unequal numbers of restarts count by their harmonic
    mean. Columns level, value, low, high. No rows where no layouts were drawn.
    """
    logs = pd.Series(statistics.log_ratios_by_restart(record, *cells))
    units = pd.Series([record.units[number].layout for number in record.noise.restarts], dtype="Int64")
    groups = [part.to_numpy() for _, part in logs.dropna().groupby(units) if len(part) >= 2]
    if len(groups) < MIN_VALUES:
        return pd.DataFrame(columns=["level", "value", "low", "high"])
    freedom = sum(len(group) - 1 for group in groups)
    within = sum(float(group.var(ddof=1)) * (len(group) - 1) for group in groups) / freedom
    times = len(groups) / sum(1 / len(group) for group in groups)
    of_means = times * float(np.var([group.mean() for group in groups], ddof=1))
    found = {
        LAYOUT: variances.between((of_means, len(groups) - 1), (within, freedom), times),
        BELOW: variances.alone(within, freedom),
    }
    return pd.DataFrame([{"level": level, **vars(interval)} for level, interval in found.items()])


def levels_and_zero(record: Record) -> pd.DataFrame:
    """The levels of CDLL over PyDLL, and of two copies of one call in one process, which have nothing to differ by."""
    found = [
        levels(record, cells).assign(pair=pair)
        for pair, cells in (
            ("CDLL / PyDLL", LOADERS_OF_COPIES),
            ("a call / itself", ((GIL, COPIES[0]), (GIL, COPIES[1]))),
        )
        if record.has(*cells[1])
    ]
    return pd.concat(found, ignore_index=True)


def collector_compared(record: Record) -> dict[str, Location]:
    """Time with the collector on over time without it, by what is done."""
    names = [cell.partition("/")[2] for cell in record.loops]
    done = [name.removesuffix(ON) for name in names if name.endswith(ON)]
    return {what: statistics.ratio_over_units(record, (GIL, f"{what}{ON}"), (GIL, what)) for what in done}


def instruction_ratio(counts: list[dict] | str) -> Counted | str:
    """Instructions of a pass with CDLL over those of one with PyDLL, on the GIL build; or why they were not counted."""
    if isinstance(counts, str):
        return counts
    found = {one["arm"]: one["instructions"] for one in counts if one["interpreter"] == GIL}
    return Counted(found["CDLL"] / found["PyDLL"])


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
