"""What the records of the chapter "Code placement" say: what fits into a cache, the lottery's spread, the story's
ratios."""

import dataclasses
import math
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.judge import estimates, processes
from ffilab.judge.estimates import Estimate, Interval, Location, Share, Spread
from ffilab.judge.processes import centres, exact, extremes, range_without_noise
from ffilab.judge.questions import NO, YES, above
from notebooks.placement.counting import Cache
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, SPREAD
from notebooks.placement.lottery import BENCHMARKS, DEFAULT
from notebooks.placement.story import CHANGE_CODE, HISTORIES

# Functions keep their time while a call takes no more than this many times as long as in the packed layout.
TOO_SLOW = 1.1
# Numbers of functions in the table of three distances.
NAMED = (4, 6, 8, 10, 12, 16, 32, 64, 128, MANY)
# Misses of a call below which functions are said to fit.
FEW_MISSES = 0.05
CALL_BYTES = 5  # of the caller, for each function that it calls
# What somebody might call a regression.
THRESHOLDS = (1.02, 1.05)
# The document's slow binary over its fast one.
PUBLISHED = 1.72
# Of bisections in which nothing but noise differs, the part that stands: of two new times of equal programs, the first
# on the fast side of the limit and the second on the slow one.
BY_A_COIN = 0.2
# The range of orders is meant of so many, however many a run has drawn.
ORDERS = 30
# The same functions in another order execute the same instructions but for some of the linker's own: by so much they
# may be off.
SAME_WORK = 0.002
# Two orders differ by more than so many standard deviations of an order in one pair of twenty, if orders are normal.
ONE_IN_TWENTY = float(stats.norm.ppf(1 - 1 / 40)) * math.sqrt(2)
HOTTEST = 5


def table(found: list[dict] | str) -> pd.DataFrame | str:
    """Rows as a frame; the reason why there are none stays as it is."""
    return found if isinstance(found, str) else pd.DataFrame(found)


def fits(runs: pd.DataFrame, distance: int) -> tuple[float, float]:
    """How many functions keep their time beyond doubt, 0 if none; and from which on all take too long, infinity if none
    do. Or NaN."""
    numbers = sorted(int(n) for n in runs[runs.distance == distance].n.unique())
    found = {n: slower_than(runs, distance, PACKED, n) for n in numbers}
    if not all(one.is_known for one in found.values()):
        return float("nan"), float("nan")
    slow = float("inf")
    for n in reversed(numbers):
        if above(found[n], TOO_SLOW) != YES:
            break
        slow = float(n)
    return float(max((n for n in numbers if above(found[n], TOO_SLOW) == NO), default=0)), slow


def slower_than(runs: pd.DataFrame, distance: int, other: int, n: int) -> Interval:
    """Time of a call at one distance over that at another, with as many functions, process by process."""
    wide = runs[runs.n == n].pivot(index="process", columns="distance", values="ns")
    return Location.of(np.log(wide[distance] / wide[other]).to_numpy(), log=True).interval


# A page for each function over few pages, as many lines and all sets in both; and one set over all of them.
price_of_pages = partial(slower_than, distance=SPREAD, other=DENSE, n=MANY)
price_of_sets = partial(slower_than, distance=APART, other=SPREAD, n=MANY)


def sets_met(cache: Cache, distance: int) -> int:
    """In how many sets functions lie that are so far apart."""
    return cache.sets // math.gcd(max(1, distance // cache.line), cache.sets)


def lines_by_set(cache: Cache, distance: int, n: int) -> np.ndarray:
    """How many of n functions fall into each set, the first into set 0."""
    return np.bincount(np.arange(n) * distance // cache.line % cache.sets, minlength=cache.sets)


def pages_met(distance: int, n: int) -> int:
    """On how many pages n functions lie."""
    return len(set(np.arange(n) * distance // 4096))


def offsets_apart(runs: pd.DataFrame) -> Interval:
    """The slowest fifth of all offsets over the fastest, not biased by the choice."""
    return extremes(np.log(runs.pivot(index="offset", columns="process", values="ns").to_numpy()))


def environments_apart(runs: pd.DataFrame) -> dict[bool, Interval]:
    """The slowest fifth of all sizes of the environment over the fastest: with random addresses (True) and without,
    where measured."""
    return {
        bool(random): extremes(np.log(part.pivot(index="bytes", columns="round", values="ns").to_numpy()))
        for random, part in runs.groupby("random")
    }


def matters(found: Interval | None) -> bool:
    """Do they differ, and not surely by less than what would matter? Then there is something to draw."""
    return found is not None and above(found, 1) == YES and above(found, THRESHOLDS[0]) != NO


def of_build(runs: pd.DataFrame, label: str) -> pd.DataFrame:
    """The duels of one build: what the functions below take. No rows where it was not linked."""
    return runs[runs.interpreter == label]


def centre_by_program(runs: pd.DataFrame, benchmark: str, kind: str) -> pd.Series:
    """Mean of the logs of its duels by program of a kind (`order`, `copy`, or one of D6); trimmed, from fifteen duels
    on."""
    chosen = runs[(runs.benchmark == benchmark) & (runs.kind == kind)]
    return chosen.groupby("name").log.agg(lambda logs: centres(logs.to_numpy())).astype(float)


def ratios(runs: pd.DataFrame, benchmark: str, kind: str) -> pd.Series:
    """Ratio to the median of the default's copies by program of a kind; to 1 where there are no copies."""
    copies = centre_by_program(runs, benchmark, "copy")
    return np.exp(centre_by_program(runs, benchmark, kind) - (copies.median() if len(copies) else 0.0))


def over(runs: pd.DataFrame, benchmark: str, kind: str, other: str) -> Estimate | None:
    """Time of one kind of program over that of another. Each link is a value, on both sides."""
    links = (centre_by_program(runs, benchmark, of).to_numpy() for of in (kind, other))
    return processes.ratio_of_groups(*links)


def itself(runs: pd.DataFrame, benchmark: str) -> Location:
    """Time of the linker's own order over that of the same program, over all duels of the copies: 1, but for noise."""
    copies = runs[(runs.benchmark == benchmark) & (runs.kind == "copy")]
    return Location.of(copies.log.to_numpy(), log=True)


def by_round(runs: pd.DataFrame, benchmark: str, kind: str) -> np.ndarray:
    """Logs of the programs of a kind, shape (programs, rounds that all have); without those that lost half of theirs,
    or more."""
    chosen = runs[(runs.benchmark == benchmark) & (runs.kind == kind)]
    # Counted for each program: another session has other orders, in rounds that go on from the first.
    counted = chosen.assign(round=chosen.groupby("name").cumcount())
    rows = counted.pivot(index="name", columns="round", values="log").to_numpy()
    rounds = np.isfinite(rows).sum(axis=1)
    enough = 2 * rounds > rounds.max(initial=0)
    return rows[enough, : rounds[enough].min(initial=rows.shape[1])]


def true_spread(runs: pd.DataFrame, benchmark: str) -> Spread:
    """Slowest over fastest of ORDERS orders with the noise taken out: see `estimates.Spread`."""
    return range_without_noise(by_round(runs, benchmark, "order"), ORDERS)


def of_pairs(runs: pd.DataFrame, benchmark: str) -> Spread:
    """How far one pair of random orders in twenty differs, or further, with the noise taken out."""
    return dataclasses.replace(true_spread(runs, benchmark), span=ONE_IN_TWENTY)


def passing(runs: pd.DataFrame, benchmark: str, kind: str, threshold: float) -> Share:
    """Programs of a kind that are slower than the copies' centre by the threshold or more."""
    found = ratios(runs, benchmark, kind)
    return Share(int((found >= threshold).sum()), len(found))


def passing_by_noise(runs: pd.DataFrame, benchmark: str, threshold: float) -> float:
    """Of as many programs that do not differ, how many would pass, by the noise of the orders' duels. NaN with too few
    duels."""
    spread = true_spread(runs, benchmark)
    return spread.n * float(stats.norm.sf(np.log(threshold), scale=np.sqrt(spread.noise)))


def missed(found: list[dict] | str, benchmark: str) -> pd.Series | str:
    """Misses of a thousand instructions by name of the order; or why there are none."""
    if isinstance(found, str):
        return found
    rows = by_order(found, benchmark)
    return 1000 * rows.misses / rows.instructions


def times_and_misses(runs: pd.DataFrame, misses: pd.Series, benchmark: str) -> pd.DataFrame:
    """One row for each order that was timed and counted: name, log (of its ratio to the copies), misses of a
    thousand."""
    chosen = np.log(ratios(runs, benchmark, "order"))
    return pd.DataFrame({"log": chosen, "misses": misses.drop(DEFAULT, errors="ignore")}).dropna().reset_index()


# Of orders that cannot be told apart, which half is the slower one is chance.
NO_SLOW_ONES = "no order can be told from another here, so that none is known to be slow"
# Of a thousand instructions: one costs a per cent or so of the time.
MISSES_THAT_MATTER = 1.0
NO_MISSES = "no order misses once in a thousand instructions: what fits into the cache has no misses to lose"


def more_misses(runs: pd.DataFrame, found: list[dict] | str, benchmark: str) -> Estimate | str | None:
    """Misses of a thousand instructions in the slower half of the orders less those in the faster half; or why there is
    none."""
    counted = missed(found, benchmark)
    if not isinstance(counted, str) and counted.max() < MISSES_THAT_MATTER:
        return NO_MISSES
    halves = halves_of(runs, counted, benchmark)
    if not isinstance(halves, tuple):
        return halves
    fast, slow = map(Location.of, halves)
    return estimates.difference(slow, fast)


def more_stalls(runs: pd.DataFrame, found: list[dict] | str, benchmark: str) -> Estimate | str | None:
    """Stalled front-end cycles in the slower half of the orders over those in the faster half; or why there is none."""
    counted = found if isinstance(found, str) else by_order(found, benchmark).stalls
    halves = halves_of(runs, counted, benchmark)
    return processes.ratio_of_groups(*map(np.log, halves[::-1])) if isinstance(halves, tuple) else halves


def as_many_instructions(found: dict[str, list[dict] | str]) -> Estimate | str:
    """Share of random orders, of all builds and benchmarks, that execute as many instructions as the linker's own
    order."""
    same = []
    for rows in found.values():
        if isinstance(rows, str):
            return rows
        for benchmark in BENCHMARKS:
            counted = by_order(rows, benchmark).instructions
            same += list(abs(counted.drop(DEFAULT) / counted[DEFAULT] - 1) <= SAME_WORK)
    return exact(float(np.mean(same)))


def by_order(found: list[dict], benchmark: str) -> pd.DataFrame:
    """What was counted of a benchmark, by name of the order."""
    rows = pd.DataFrame(found)
    return rows[rows.benchmark == benchmark].set_index("name")


def halves_of(
    runs: pd.DataFrame, counted: pd.Series | str, benchmark: str
) -> tuple[np.ndarray, np.ndarray] | str | None:
    """What was counted of the faster half of the orders, and of the slower half; or why there are none."""
    if isinstance(counted, str):
        return counted
    if above(true_spread(runs, benchmark).at(), 1) != YES:
        return NO_SLOW_ONES
    both = times_and_misses(runs, counted, benchmark).sort_values("log").misses.to_numpy()
    half = len(both) // 2
    return (both[:half], both[-half:]) if half else None


def five_hottest(found: dict | str) -> Estimate | str:
    """Share of the five hottest functions, a value for each process that was sampled; or why there is none.

    Which are the hottest, the other processes say: chosen and measured by the same samples, they would come out too
    hot.
    """
    if isinstance(found, str):
        return found
    taken = found["processes"]
    if found["what"] != "samples":
        return exact(share_of(taken[0], hottest(taken)))
    shares = [share_of(one, hottest(taken[:number] + taken[number + 1 :])) for number, one in enumerate(taken)]
    return processes.location(np.array(shares))


def hottest(profiles: list[dict]) -> list[str]:
    """The five hottest functions of several profiles together."""
    counted = Counter()
    for one in profiles:
        counted.update(one["hottest"])
    return [name for name, _ in counted.most_common(HOTTEST)]


def share_of(profile: dict, functions: list[str]) -> float:
    return sum(profile["hottest"].get(name, 0) for name in functions) / profile["total"]


def ratio(times: pd.DataFrame, slow: str, fast: str) -> Estimate | None:
    """Time of one program over that of another, paired by round."""
    ordered = times.sort_values("round")
    return processes.ratio(*(ordered[ordered.program == name].ns.to_numpy() for name in (slow, fast)))


def counted_ratio(counts: pd.DataFrame | str, what: str) -> Estimate | str:
    """`instructions` or `misses` of the slow program over those of the fast one; or why there is none."""
    if isinstance(counts, str):
        return counts
    column = counts.set_index("program")[what]
    if not column["fast"]:
        return f"the fast program has no {what}"
    return exact(column["slow"] / column["fast"])


# What the small machine was built for, told by its counts, and by no clock.
AS_BUILT = {
    "the same instructions": lambda of: abs(of.instructions["slow"] / of.instructions["fast"] - 1) <= SAME_WORK,
    "twice the misses": lambda of: of.misses["slow"] >= 2 * of.misses["fast"],
    "misses gone": lambda of: of.misses["slow"] - of.misses["hot"] >= 0.9 * (of.misses["slow"] - of.misses["fast"]),
}


def as_built(counts: pd.DataFrame | str, what: str) -> Estimate | str:
    """Is it so? 1 or 0; or why it was not counted."""
    return counts if isinstance(counts, str) else exact(float(AS_BUILT[what](counts.set_index("program"))))


TRAP, NO_TRAP = HISTORIES


def of_history(bisections: pd.DataFrame, history: str) -> pd.DataFrame:
    return bisections[bisections.history == history]


def share_of_bisections(bisections: pd.DataFrame, history: str, column: str) -> Share:
    """Bisections of a history of which a column is 1: `found`, `stands`."""
    chosen = of_history(bisections, history)
    return Share(int(chosen[column].sum()), len(chosen))


# With the trap, those that blame the commit that moved the operations; without one, those whose blamed commit is slow
# again, and its parent fast again, when both are measured anew.
blaming = partial(share_of_bisections, history=TRAP, column="found")
standing = partial(share_of_bisections, history=NO_TRAP, column="stands")


def unrelated(bisections: pd.DataFrame) -> Share:
    """Bisections without a trap that blame a commit which changes no machine code: it cannot have changed the time."""
    innocent = ~of_history(bisections, NO_TRAP).message.isin(CHANGE_CODE)
    return Share(int(innocent.sum()), len(innocent))
