"""What the records of the chapter "Measuring on a noisy machine" say: its numbers by name, and its own controls. The
rules: claims.toml, sentences.toml."""

import dataclasses
import functools
import math
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.judge import statistics
from ffilab.judge.controls import NEGLIGIBLE, Control
from ffilab.judge.estimates import LEVEL, MIN_VALUES, Counted, Interval, Location, Share, ShareDifference, difference
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import log_spread
from ffilab.judge.questions import NO, OPEN, above, equal
from ffilab.judge.statistics import Comparison
from ffilab.measure import neighbour
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians, once
from ffilab.measure.session import Session
from ffilab.setup.catalogue import GIL
from notebooks.boundary import description
from notebooks.measuring import experiment as e
from notebooks.measuring import variances

SEPARATED = "share of processes in which all six pairs of the four bindings are called different"
CTYPES, CFFI = e.BINDINGS[:2]
LOADERS_OF_COPIES = (GIL, e.COPIES[0]), (GIL, "PyDLL")
# Two copies of one call in one process have nothing to differ by.
LOADERS_AND_NOTHING = {"CDLL / PyDLL": LOADERS_OF_COPIES, "a call / itself": ((GIL, e.COPIES[0]), (GIL, e.COPIES[1]))}
LAYOUT, BELOW = "layout", "restart, with the noise of its blocks"
# The level at which the talk calls a difference significant.
TALK_LEVEL = 0.05
# The p of its test for two samples of the 195 values that it sees, without ties or overlap, however far they lie apart.
APART = float(stats.mannwhitneyu(np.arange(195), 195 + np.arange(195)).pvalue)
SHUFFLES = 1000
BY_CHANCE = "blocks dealt out by chance"
WIDTHS = ("blocks", "restarts", f"restarts, of {BY_CHANCE}", f"restarts / of {BY_CHANCE}")
number = Declarations()
number("level of the book")(lambda session: Counted(LEVEL))


# ---- the talk's method ----


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


@once
def first_process(session: Session) -> pd.DataFrame:
    """The talk's test of the pairs of one process."""
    return talk_tables(session.frame(e.TALK))[1]


@number("pairs of the first process", of=first_process)
def pairs_compared(pairs: pd.DataFrame) -> Counted:
    return Counted(len(pairs))


@number("pairs that the first process calls {answer}", of=first_process, over={"answer": ("different", "alike")})
def called(pairs: pd.DataFrame, answer: str) -> Counted:
    different = int((pairs["BH p"] < TALK_LEVEL).sum())
    return Counted(different if answer == "different" else len(pairs) - different)


@number("difference of two readings of the clock, in ns", frame=e.TALK)
def clock_step(runs: pd.DataFrame) -> Counted:
    """The smallest difference of two readings in a row."""
    return Counted(float(runs.steps[0][0]))


@number("time of an empty sample, in ns", frame=e.TALK)
def empty_sample(runs: pd.DataFrame) -> Counted:
    """The median time of a sample that calls an empty lambda."""
    return Counted(float(np.median(runs["empty"][0])))


@functools.cache
def compared(samples: tuple[tuple[int, ...], ...], names: tuple[str, ...] = ("first", "second")) -> pd.DataFrame:
    """What the talk's test says of every pair of the samples of one process."""
    return description.pairs({name: np.array(values) for name, values in zip(names, samples)})


def pairs(runs: pd.DataFrame) -> pd.DataFrame:
    """What the talk's test says of two copies in each process, in the order in which they ran.

    measured_first: the number of the copy that was measured first.
    """
    ordered = runs.sort_values("process")
    tests = pd.concat([compared(tuple(map(tuple, samples))) for samples in ordered.samples], ignore_index=True)
    return tests.assign(measured_first=list(ordered.measured_first) if "measured_first" in ordered else 0)


def of_bindings(runs: pd.DataFrame) -> pd.DataFrame:
    """Every pair of bindings in each process: the columns of description.pairs, and process."""
    tests = [
        compared(tuple(map(tuple, row.samples)), tuple(row.bindings)).assign(process=row.process)
        for row in runs.itertuples()
    ]
    return pd.concat(tests, ignore_index=True)


@once
def bindings(session: Session) -> pd.DataFrame:
    return of_bindings(session.frame(e.TALK))


@once
def copies(session: Session) -> pd.DataFrame:
    return pairs(session.frame(e.ITSELF))


@number(SEPARATED, of=bindings)
def all_separated(tests: pd.DataFrame) -> Share | str:
    """Share of processes in which every pair of the talk's four bindings is called different; or why there is none."""
    by_process = tests.groupby("process")["BH p"]
    if by_process.size().min() < math.comb(len(e.BINDINGS), 2):
        return "not all of the four bindings could be loaded"
    return Share(int((by_process.max() < TALK_LEVEL).sum()), len(by_process))


@number("processes that call ctypes faster than cffi", of=bindings, binding=CTYPES)
@number("processes that call cffi faster than ctypes", of=bindings, binding=CFFI)
def faster(tests: pd.DataFrame, binding: str) -> Share | None:
    """Of the processes that compare ctypes and cffi, those that call this one the faster one; None if none does."""
    return Share.of(tests[tests.pair == f"{CTYPES} vs {CFFI}"].faster == binding)


@number("share of ctypes, where ctypes or cffi is called the faster one", of=bindings)
def share_of_ctypes(tests: pd.DataFrame) -> Share | None:
    return faster(tests[tests.faster.isin((CTYPES, CFFI))], CTYPES)


def by_pair(tests: pd.DataFrame) -> pd.DataFrame:
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
        for pair, part in tests.groupby("pair", sort=False)
    ]
    return pd.DataFrame(rows)


def apart(tests: pd.DataFrame) -> pd.Series:
    """How far the two of each pair lie apart, over the faster one (a fraction): whichever comes first."""
    return np.expm1(np.abs(np.log1p(tests["shift"])))


@number(
    "how far {share} of the A/A pairs lie apart at most",
    of=copies,
    over={"share": {f"{share:.0%}": share for share in (0.95, LEVEL)}},
)
def yardstick(copies: pd.DataFrame, share: float = LEVEL) -> Counted:
    """How far apart so many of all pairs of copies lie at most, each in one process."""
    return Counted(float(np.quantile(apart(copies), share)))


def beyond(tests: pd.DataFrame, reach: float) -> dict[str, Share]:
    """By pair: the processes in which its two lie further apart than this, of all. Single processes, as the copies'
    are."""
    further = (apart(tests) > reach).groupby(tests.pair, sort=False)
    return {pair: Share(int(part.sum()), len(part)) for pair, part in further}


def significant(pairs: pd.DataFrame) -> pd.Series:
    """Which pairs the talk's method calls significant, one to a process."""
    return pairs["U p"] < TALK_LEVEL


@number("share of A/A pairs that the talk's method calls significant", of=copies)
def share_significant(pairs: pd.DataFrame) -> Share:
    """Share of processes in which the talk's method calls two copies different."""
    return Share(int(significant(pairs).sum()), len(pairs))


@number("share of significant A/A pairs that are hardly apart", of=copies)
def tiny(pairs: pd.DataFrame) -> Share | None:
    """Of the significant pairs: those that lie less than what is negligible apart. None if no pair is significant."""
    return Share.of(apart(pairs[significant(pairs)]) < NEGLIGIBLE)


@number(
    "share of significant A/A pairs, the copy {first} first is slower",
    of=copies,
    over={"first": ("measured", "loaded")},
)
def leaning(pairs: pd.DataFrame, first: str) -> Share | None:
    """Of the significant pairs: in how many the copy that was `measured` first, or `loaded` first, has the longer
    times. None if no pair is significant."""
    told = pairs[significant(pairs)]
    delta = told["Cliff's delta"]
    longer = delta if first == "loaded" else delta.where(told.measured_first == 0, -delta)
    return Share.of(longer > 0)


# ---- a benchmark, step by step ----


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
    for first in range(0, len(timings) - e.OF_EACH + 1, e.OF_EACH):
        rows.append({"step": 3, **vars(restarted(timings[first : first + e.OF_EACH]).at())})
    return pd.DataFrame(rows, columns=["step", "value", "low", "high"])


def false_alarms(found: pd.DataFrame) -> dict[int, Share]:
    """By step: the benchmarks whose interval excludes 1, of all. A step of which none was completed is left out."""
    alarms = pd.Series([above(Interval.of(row), 1) != OPEN for row in found.itertuples()], found.index, dtype=bool)
    return {int(step): Share(int(part.sum()), len(part)) for step, part in alarms.groupby(found.step)}


@once
def steps(session: Session) -> dict[int, Share]:
    in_one, restarts = (session.frame(f"a benchmark{how}") for how in (" of one process", ", restarted"))
    return false_alarms(benchmarks(in_one, restarts))


@number("share of false alarms in step {step}", of=steps, over={"step": (1, 2, 3)})
def alarms_in(shares: dict[int, Share], step: int) -> Share | None:
    return shares.get(step)


@number(
    "share of false alarms in step {pair}",
    of=steps,
    over={"pair": {f"{one} less that in step {other}": (one, other) for one, other in combinations((1, 2, 3), 2)}},
)
def fallen(shares: dict[int, Share], pair: tuple[int, int]) -> ShareDifference | None:
    """How many false alarms the later one of two steps mends."""
    if not set(pair) <= set(shares):
        return None
    one, other = (shares[step] for step in pair)
    return ShareDifference(one.events, one.trials, other.events, other.trials)


# ---- one process, many processes, many layouts ----


def restart_medians(record: Record) -> pd.DataFrame:
    """Time of one call over that of the kept reference, by restart, in the process that is restarted and in the kept
    one.

    Median over blocks, over its own median of all restarts with one layout. Core, moment and drift are those of the
    reference, and cancel.
    """
    rows = []
    for process, arm in (("restarted", e.COPIES[0]), ("kept", e.KEPT)):
        for number, value in enumerate(np.exp(within_layouts(record, arm))):
            rows.append({"process": process, "restart": number, "ratio": value})
    return pd.DataFrame(rows).dropna()


@number("restarts of the copies", timed="copies")
def restarts_of_copies(record: Record) -> Counted:
    return Counted(restart_medians(record).restart.nunique())


def within_layouts(record: Record, arm: str) -> np.ndarray:
    """Logarithms of a call's time over the kept reference's, one for each restart, less the median of its layout.

    A link of its own is more than a new process: what restarts alone do is left.
    """
    logs = pd.Series(statistics.log_ratios_by_restart(record, (GIL, arm), (GIL, e.REFERENCE)))
    drawn = [record.units[number] for number in record.noise.restarts]
    if any(unit.layout is None for unit in drawn):
        return (logs - logs.median()).to_numpy()
    return (logs - logs.groupby(pd.factorize(pd.Series(drawn))[0]).transform("median")).to_numpy()


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


@number("spread of restarted processes over that of a kept one", timed="copies")
def restarted_over_kept(record: Record) -> Location:
    """Spread of a call's time over restarts: in processes that are restarted, over the same in one that is kept.

    Above 1, new processes differ from each other more than one process differs from itself. Core offsets and drift are
    in both numbers, and cancel, as each is taken over the reference of its own block.
    """
    logs = np.array([within_layouts(record, arm) for arm in (e.COPIES[0], e.KEPT)])
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


def pseudo_replication(record: Record) -> dict[str, Counted | Interval | None]:
    """Half-widths (fractions) of one call's time: over all blocks as if independent, and over restarts. And what
    restarts have where the same blocks are dealt out to them by chance: the middle of SHUFFLES, and where LEVEL of them
    lie; by WIDTHS."""
    times = record.by_restart(GIL, e.COPIES[0])
    over_restarts = half_width(medians(times))
    rng, there, dealt = np.random.default_rng(0), np.isfinite(times), times.copy()
    widths = []
    for _ in range(SHUFFLES):
        dealt[there] = rng.permutation(times[there])
        widths.append(half_width(medians(dealt)))
    by_chance = Interval(*np.quantile(widths, (0.5, (1 - LEVEL) / 2, (1 + LEVEL) / 2)).tolist())
    wider = Counted(over_restarts / by_chance.value) if by_chance.value else None
    return dict(zip(WIDTHS, (Counted(half_width(times)), Counted(over_restarts), by_chance, wider)))


@once
def half_widths(session: Session) -> dict[str, Counted | Interval | None]:
    return pseudo_replication(session.timed("copies"))


@number("half-width over {which}", of=half_widths, over={"which": WIDTHS})
def width(widths: dict[str, Counted | Interval | None], which: str) -> Counted | Interval | None:
    return widths[which]


@number("share of the work with company on the core", timed="copies")
def company(record: Record) -> Counted:
    """Share of the work during which something else ran on the core."""
    return Counted(float(np.mean(list(record.company.values()))))


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
    for arm in (e.COPIES[0], "PyDLL", EMPTY):
        busy, quiet = (medians(times) for times in by_company(record, (GIL, arm)))
        found = (busy - quiet)[np.isfinite(busy - quiet)]
        interval = Location.of(found, log=True).interval
        rows.append({"arm": arm, "company": record.company[f"{GIL}/{arm}"].mean(), "n": len(found), **vars(interval)})
    return pd.DataFrame(rows)


@number("CDLL / PyDLL with company / without", timed="copies")
def moved_by_company(record: Record) -> Location:
    """CDLL over PyDLL in blocks in which both had company, over the same ratio where neither had; NaN bounds if too
    few."""
    (busy, quiet), (other_busy, other_quiet) = (by_company(record, cell) for cell in LOADERS_OF_COPIES)
    found = medians(busy - other_busy) - medians(quiet - other_quiet)
    return Location.of(found[np.isfinite(found)], log=True)


def copies_compared(record: Record) -> list[Comparison]:
    """Every pair of copies that was measured; by this session alone, as in the controls: to copies another adds
    nothing."""
    pairs = list(combinations([(GIL, arm) for arm in e.COPIES if record.has(GIL, arm)], 2))
    estimates = [statistics.explained(record, statistics.log_ratios(record, *pair), log=True, of=0) for pair in pairs]
    return [dataclasses.replace(statistics.compare(record, *pair), estimate=own) for pair, own in zip(pairs, estimates)]


@number("pairs of copies", timed="copies")
def pairs_of_copies(record: Record) -> Counted:
    return Counted(len(copies_compared(record)))


@number("pairs of copies that certainly differ", timed="copies")
def alarms(record: Record) -> Counted | None:
    """How many pairs of copies certainly differ by more than is negligible, as in the controls of every run; None if
    that is not known. The level is the family's: one false alarm in any of them is as rare as one in a single pair."""
    pairs = copies_compared(record)
    intervals = [pair.estimate.at(1 - (1 - LEVEL) / len(pairs)) for pair in pairs]
    if not pairs or not all(interval.is_known for interval in intervals):
        return None
    return Counted(sum(equal(interval, 1, NEGLIGIBLE) == NO for interval in intervals))


def loaders_compared(record: Record) -> Comparison:
    """CDLL over PyDLL."""
    return statistics.compare(record, *LOADERS_OF_COPIES)


number("CDLL / PyDLL in the run of the copies", timed="copies")(lambda record: loaders_compared(record).estimate)
number("CDLL / PyDLL in the next build", timed="copies")(lambda record: loaders_compared(record).estimate.next_build)


@number("layouts that were drawn", timed="copies")
def drawn(record: Record) -> Counted | None:
    layouts = {unit.layout for unit in record.kept} - {None}
    return Counted(len(layouts)) if layouts else None


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


@number(
    "intervals of one layout {holding} the mean of all",
    timed="copies",
    over={"holding": {"with": True, "without": False}},
)
def alone(record: Record, holding: bool) -> Share | None:
    """Of layouts that had enough restarts for an interval of their own, if there are enough of these: those that hold
    the mean over all layouts, or do not."""
    each = by_layout(record)
    if each.empty or not levels(record):
        return None
    mean = loaders_compared(record).ratio.value
    hold = sum(interval.is_known and above(interval, mean) == OPEN for interval in map(Interval.of, each.itertuples()))
    return Share(hold if holding else len(each) - hold, len(each))


def levels(record: Record, cells=LOADERS_OF_COPIES) -> dict[str, Interval]:
    """Standard deviation (log scale) that a layout adds to the ratio of two cells, and what is left within layouts: a
    restart, and the noise of its blocks. With 95 % intervals; empty where no layouts were drawn.

    One-way random effects by the method of moments; layouts with unequal numbers of restarts count by their harmonic
    mean.
    """
    logs = pd.Series(statistics.log_ratios_by_restart(record, *cells))
    units = pd.Series([record.units[number].layout for number in record.noise.restarts], dtype="Int64")
    groups = [part.to_numpy() for _, part in logs.dropna().groupby(units) if len(part) >= 2]
    if len(groups) < MIN_VALUES:
        return {}
    freedom = sum(len(group) - 1 for group in groups)
    within = sum(float(group.var(ddof=1)) * (len(group) - 1) for group in groups) / freedom
    times = len(groups) / sum(1 / len(group) for group in groups)
    of_means = times * float(np.var([group.mean() for group in groups], ddof=1))
    return {
        LAYOUT: variances.between((of_means, len(groups) - 1), (within, freedom), times),
        BELOW: variances.alone(within, freedom),
    }


@number("what a layout adds to CDLL / PyDLL", timed="copies", cells=LOADERS_OF_COPIES, level=LAYOUT)
@number("scatter within a layout of {cells}", timed="copies", over={"cells": LOADERS_AND_NOTHING}, level=BELOW)
def added(record: Record, cells: tuple, level: str) -> Interval | None:
    """Only where single layouts have intervals."""
    if by_layout(record).empty or not record.has(*cells[1]):
        return None
    return levels(record, cells).get(level)


def collector_compared(record: Record) -> dict[str, Location]:
    """Time with the collector on over time without it, by what is done."""
    names = [cell.partition("/")[2] for cell in record.loops]
    done = [name.removesuffix(e.ON) for name in names if name.endswith(e.ON)]
    return {what: statistics.ratio_over_units(record, (GIL, f"{what}{e.ON}"), (GIL, what)) for what in done}


@number("time of {what}, collector on / off", timed="copies", over={"what": [*e.COLLECTED]})
def collector(record: Record, what: str) -> Location:
    return collector_compared(record)[what]


@number("instructions of CDLL / PyDLL", seen="instructions")
def instruction_ratio(counts: list[dict]) -> Counted:
    """Instructions of a pass with CDLL over those of one with PyDLL, on the GIL build."""
    of_arm = {count["arm"]: count["instructions"] for count in counts if count["interpreter"] == GIL}
    return Counted(of_arm["CDLL"] / of_arm["PyDLL"])


def controls(session: Session) -> list[Control]:
    """Are the copies of one call alike? D7 rests on the same run."""
    return [
        Control("A/A of copies", f"{pair.slow[1]} / {pair.fast[1]} on {pair.slow[0]}", "copies", pair.estimate)
        for pair in copies_compared(session.timed("copies"))
    ]
