"""What the lottery of CPython's functions shows: how far orders differ, by the clock and by counts, and how many look
like a regression; and the profiles of `call_method`."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.judge import estimates, processes
from ffilab.judge.estimates import Counted, Estimate, Location, Share, Spread
from ffilab.judge.numbers import Declarations, Made
from ffilab.judge.poured import TOO_FEW
from ffilab.judge.processes import centres, chosen, exact, range_without_noise
from ffilab.judge.questions import YES, above
from ffilab.measure.session import Session
from notebooks.placement.geometry import THRESHOLDS
from notebooks.placement.lottery import ANYWHERE, BENCHMARKS, BUILDS, DEFAULT, TOGETHER

number = Declarations()
# Each build has a lottery of its own, with each benchmark: the functions below take such a lot, as keywords.
LOTS = {"benchmark": [*BENCHMARKS], "interpreter": BUILDS}
# The document's slow binary over its fast one.
PUBLISHED = 1.72
# The range of orders is meant of so many, however many a run has drawn.
ORDERS = 30
# The same functions in another order execute the same instructions but for some of the linker's own: by so much they
# may be off.
SAME_WORK = 0.002
# Two orders differ by more than so many standard deviations of an order in one pair of twenty, if orders are normal.
ONE_IN_TWENTY = float(stats.norm.ppf(1 - 1 / 40)) * math.sqrt(2)
HOTTEST = 5
# Of orders that cannot be told apart, which half is the slower one is chance.
NO_SLOW_ONES = "no order can be told from another here, so that none is known to be slow"
# Of a thousand instructions: one costs a per cent or so of the time.
MISSES_THAT_MATTER = 1.0
NO_MISSES = "no order misses once in a thousand instructions: what fits into the cache has no misses to lose"


def share(events: pd.Series) -> Share | str:
    """How many of them it happened to; of nothing, that it is too little."""
    return Share.of(events) or TOO_FEW


# ---- orders by the clock ----


def centre_by_program(runs: pd.DataFrame, kind: str, **lot) -> pd.Series:
    """Mean of the logs of its duels by program of a kind (`order`, `copy`, or one of D6); trimmed, from fifteen duels
    on."""
    by_program = chosen(runs, kind=kind, **lot).groupby("name")
    return by_program.log.agg(lambda logs: centres(logs.to_numpy())).astype(float)


def ratios(runs: pd.DataFrame, kind: str, **lot) -> pd.Series:
    """Ratio to the median of the default's copies by program of a kind; to 1 where there are no copies."""
    copies = centre_by_program(runs, "copy", **lot)
    return np.exp(centre_by_program(runs, kind, **lot) - (copies.median() if len(copies) else 0.0))


def over(runs: pd.DataFrame, kind: str, other: str, **lot) -> Estimate | None:
    """Time of one kind of program over that of another. Each link is a value, on both sides."""
    return processes.ratio_of_groups(*(centre_by_program(runs, of, **lot).to_numpy() for of in (kind, other)))


def itself(runs: pd.DataFrame, **lot) -> Location:
    """Time of the linker's own order over that of the same program, over all duels of the copies: 1, but for noise."""
    return Location.of(chosen(runs, kind="copy", **lot).log.to_numpy(), log=True)


def by_round(runs: pd.DataFrame, kind: str, **lot) -> np.ndarray:
    """Logs of the programs of a kind, shape (programs, rounds that all have); without those that lost half of theirs,
    or more."""
    duels = chosen(runs, kind=kind, **lot)
    # Counted for each program: another session has other orders, in rounds that go on from the first.
    counted = duels.assign(round=duels.groupby("name").cumcount())
    rows = counted.pivot(index="name", columns="round", values="log").to_numpy()
    rounds = np.isfinite(rows).sum(axis=1)
    enough = 2 * rounds > rounds.max(initial=0)
    return rows[enough, : rounds[enough].min(initial=rows.shape[1])]


def true_spread(runs: pd.DataFrame, **lot) -> Spread:
    """Slowest over fastest of ORDERS orders with the noise taken out: see `estimates.Spread`."""
    return range_without_noise(by_round(runs, "order", **lot), ORDERS)


def of_pairs(runs: pd.DataFrame, **lot) -> Spread:
    """How far one pair of random orders in twenty differs, or further, with the noise taken out."""
    return dataclasses.replace(true_spread(runs, **lot), span=ONE_IN_TWENTY)


def slower(runs: pd.DataFrame, threshold: float = 1.0, **lot) -> Share | str:
    """Orders that are slower than the copies' centre by the threshold or more."""
    return share(ratios(runs, "order", **lot) >= threshold)


def faster(runs: pd.DataFrame, **lot) -> Share | str:
    """Orders that are faster than the copies' centre."""
    return share(ratios(runs, "order", **lot) < 1.0)


def slower_by_noise(runs: pd.DataFrame, threshold: float, **lot) -> Counted:
    """Of as many programs that do not differ, how many would be slower by the threshold, by the noise of the orders'
    duels. NaN with too few duels."""
    spread = true_spread(runs, **lot)
    return Counted(spread.n * float(stats.norm.sf(np.log(threshold), scale=np.sqrt(spread.noise))))


def linked(session: Session, interpreter: str) -> dict:
    """What came of linking a build again."""
    return session.observed("linking", interpreter)


def duels(session: Session) -> pd.DataFrame:
    """The duels of all builds."""
    return session.frame("relink lottery")


OF_ORDERS = {
    "how far one pair of random orders in twenty differs": of_pairs,
    "slowest / fastest of random orders": true_spread,
    "random orders / the linker's own": partial(over, kind="order", other="copy"),
    "random orders that are slower": slower,
    "random orders that are faster": faster,
    "random orders that are slower by 2 %": partial(slower, threshold=THRESHOLDS[0]),
    "random orders that are slower by 2 % by noise alone": partial(slower_by_noise, threshold=THRESHOLDS[0]),
}


@number("{make}, {benchmark} on {interpreter}", over={"make": OF_ORDERS, **LOTS})
def of_orders(session: Session, make: Callable[..., Made], **lot) -> Made:
    """What is made of the duels of one lot; or why its build was not linked."""
    return linked(session, lot["interpreter"])["lacking"] or make(duels(session), **lot)


@number("hot functions together / anywhere, {benchmark} on {interpreter}", over=LOTS)
def hot(session: Session, **lot) -> Estimate | str | None:
    """D6: time of links with the hot functions together over that of links with them anywhere; or why not."""
    build = linked(session, lot["interpreter"])
    return build["lacking"] or build["absent"] or over(duels(session), TOGETHER, ANYWHERE, **lot)


@number("random orders as slow as the slow binary of 2016, call_method")
def as_slow(session: Session) -> Share | str:
    """How many orders of all builds are as slow in call_method as the slow binary of 2016; or why none was linked."""
    lacking = [linked(session, label)["lacking"] for label in BUILDS]
    if all(lacking):
        return lacking[0]
    runs = duels(session)
    each = [ratios(runs, "order", benchmark="call_method", interpreter=label) for label in BUILDS]
    return share(pd.concat(each) >= PUBLISHED)


# ---- orders by counts ----


def counted(session: Session, title: str, interpreter: str) -> list[dict] | str:
    """What was counted of the orders of a build, or why there is nothing."""
    return linked(session, interpreter)["lacking"] or session.observed(title, interpreter)


simulated = partial(counted, title="simulated misses of the orders")


def by_order(rows: list[dict], benchmark: str) -> pd.DataFrame:
    """What was counted of a benchmark, by name of the order."""
    return chosen(pd.DataFrame(rows), benchmark=benchmark).set_index("name")


def missed(rows: list[dict] | str, benchmark: str) -> pd.Series | str:
    """Misses of a thousand instructions by name of the order; or why there are none."""
    if isinstance(rows, str):
        return rows
    counts = by_order(rows, benchmark)
    return 1000 * counts.misses / counts.instructions


def times_and_misses(runs: pd.DataFrame, misses: pd.Series, **lot) -> pd.DataFrame:
    """One row for each order that was timed and counted: name, log (of its ratio to the copies), misses of a
    thousand."""
    logs = np.log(ratios(runs, "order", **lot))
    return pd.DataFrame({"log": logs, "misses": misses.drop(DEFAULT, errors="ignore")}).dropna().reset_index()


def halves_of(runs: pd.DataFrame, counts: pd.Series | str, **lot) -> tuple[np.ndarray, np.ndarray] | str | None:
    """What was counted of the faster half of the orders, and of the slower half; or why there are none."""
    if isinstance(counts, str):
        return counts
    if above(true_spread(runs, **lot).at(), 1) != YES:
        return NO_SLOW_ONES
    both = times_and_misses(runs, counts, **lot).sort_values("log").misses.to_numpy()
    half = len(both) // 2
    return (both[:half], both[-half:]) if half else None


def more_misses(runs: pd.DataFrame, rows: list[dict] | str, **lot) -> Estimate | str | None:
    """Misses of a thousand instructions in the slower half of the orders less those in the faster half; or why there is
    none."""
    counts = missed(rows, lot["benchmark"])
    if not isinstance(counts, str) and counts.max() < MISSES_THAT_MATTER:
        return NO_MISSES
    halves = halves_of(runs, counts, **lot)
    if not isinstance(halves, tuple):
        return halves
    fast, slow = map(Location.of, halves)
    return estimates.difference(slow, fast)


@number("misses of a thousand instructions, slower less faster orders, {benchmark} on {interpreter}", over=LOTS)
def misses(session: Session, **lot) -> Estimate | str | None:
    """D3: misses of a thousand instructions in the slower half of the orders of a lot less those in the faster half; or
    why there is no number."""
    return more_misses(duels(session), simulated(session, interpreter=lot["interpreter"]), **lot)


@number("stalled front-end cycles, slower / faster orders, {benchmark} on {interpreter}", over=LOTS)
def stalls(session: Session, **lot) -> Estimate | str | None:
    """D2: stalled front-end cycles in the slower half of the orders of a lot over those in the faster half; or why
    there is no number."""
    rows = counted(session, "stalled cycles of the orders", lot["interpreter"])
    counts = rows if isinstance(rows, str) else by_order(rows, lot["benchmark"]).stalls
    halves = halves_of(duels(session), counts, **lot)
    return processes.ratio_of_groups(*map(np.log, halves[::-1])) if isinstance(halves, tuple) else halves


@number("most misses of a thousand instructions, {benchmark} on {interpreter}", over=LOTS)
def most_misses(session: Session, benchmark: str, interpreter: str) -> Counted | str:
    """Misses of a thousand instructions of the random order that misses most; or why they were not counted."""
    counts = missed(simulated(session, interpreter=interpreter), benchmark)
    return counts if isinstance(counts, str) else Counted(counts.drop(DEFAULT).max())


@number("share of random orders with the instructions of the linker's own (simulated)")
def as_many_instructions(session: Session) -> Estimate | str:
    """Share of random orders of all builds and benchmarks that execute as many instructions as the linker's own order;
    or why they were not counted."""
    same = []
    for label in BUILDS:
        rows = simulated(session, interpreter=label)
        if isinstance(rows, str):
            return rows
        for benchmark in BENCHMARKS:
            instructions = by_order(rows, benchmark).instructions
            same += list(abs(instructions.drop(DEFAULT) / instructions[DEFAULT] - 1) <= SAME_WORK)
    return exact(float(np.mean(same)))


# ---- profiles ----


# What was counted while call_method ran, by process.
PROFILES = "profiles of call_method"


@number("share of the five hottest functions, call_method", seen=PROFILES)
def five_hottest(profiles: dict) -> Estimate:
    """Share of the samples in the five hottest functions, a value for each process.

    Which are the hottest, the other processes say: chosen and measured by the same samples, they would come out too
    hot.
    """
    taken = profiles["processes"]
    if profiles["what"] != "samples":
        return exact(share_of(taken[0], hottest(taken)))
    shares = [share_of(one, hottest(taken[:number] + taken[number + 1 :])) for number, one in enumerate(taken)]
    return processes.location(np.array(shares))


@number("processes of which samples were taken, call_method", seen=PROFILES)
def sampled(profiles: dict) -> Counted | str:
    """How many processes of call_method were sampled; or what was counted instead."""
    return Counted(len(profiles["processes"])) if profiles["what"] == "samples" else f"{profiles['what']} were counted"


def together(profiles: list[dict]) -> Counter:
    """What several profiles counted, by function."""
    counted = Counter()
    for one in profiles:
        counted.update(one["hottest"])
    return counted


def hottest(profiles: list[dict]) -> list[str]:
    """The five hottest functions of several profiles together."""
    return [name for name, _ in together(profiles).most_common(HOTTEST)]


def share_of(profile: dict, functions: list[str]) -> float:
    """The share of some functions in one profile."""
    return sum(profile["hottest"].get(name, 0) for name in functions) / profile["total"]
