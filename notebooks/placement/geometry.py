"""What functions at a distance cost by the clock, in a simulation and by counters; a loop's place, and the size of an
environment."""

import itertools
import math

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Counted, Interval, Location
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import extremes, interval_of
from ffilab.judge.questions import NO, YES, above
from ffilab.measure.session import Session
from notebooks.placement.counting import Cache
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, SIMULATED, SPREAD

number = Declarations()
# Functions keep their time while a call takes no more than this many times as long as in the packed layout.
TOO_SLOW = 1.1
# Misses of a call below which functions are said to fit.
FEW_MISSES = 0.05
CALL_BYTES = 5  # of the caller, for each function that it calls
# What somebody might call a regression.
THRESHOLDS = (1.02, 1.05)


# ---- by the clock ----


@number(f"price of pages, {MANY} functions", frame="distances", distance=SPREAD, other=DENSE, n=MANY)
@number(f"price of sets, {MANY} functions", frame="distances", distance=APART, other=SPREAD, n=MANY)
@number(
    f"a call at {APART} bytes / at {{other}}, {MANY} functions",
    frame="distances",
    over={"other": (PACKED, DENSE)},
    distance=APART,
    n=MANY,
)
def slower_than(runs: pd.DataFrame, distance: int, other: int, n: int) -> Interval:
    """Time of a call at one distance over that at another, with as many functions, process by process.

    A page for each function over few pages, as many lines and all sets in both, is the price of pages; one set over all
    of them, that of sets.
    """
    wide = runs[runs.n == n].pivot(index="process", columns="distance", values="ns")
    return Location.of(np.log(wide[distance] / wide[other]).to_numpy(), log=True).interval


KEPT, SLOW = "that keep their time", "from which on all take longer"


@number(f"functions at {APART} bytes {{which}}", frame="distances", over={"which": (KEPT, SLOW)})
def fits(runs: pd.DataFrame, which: str) -> Counted | str:
    """How many functions in one set keep their time beyond doubt, 0 if none; or from which on all take too long. NaN if
    a ratio has no interval."""
    numbers = sorted(int(n) for n in runs[runs.distance == APART].n.unique())
    ratios = {n: slower_than(runs, APART, PACKED, n) for n in numbers}
    if not all(ratio.is_known for ratio in ratios.values()):
        return Counted(math.nan)
    if which == KEPT:
        return Counted(float(max((n for n in numbers if above(ratios[n], TOO_SLOW) == NO), default=0)))
    slow = list(itertools.takewhile(lambda n: above(ratios[n], TOO_SLOW) == YES, reversed(numbers)))
    return Counted(float(slow[-1])) if slow else "none is beyond doubt"


number(
    f"ns of a call at {{distance}} bytes, {MANY} functions",
    frame="distances",
    over={"distance": (PACKED, DENSE, SPREAD, APART)},
    column="ns",
    n=MANY,
)(interval_of)


@number("slowest / fastest fifth of the places of a loop", frame="alignment of a loop")
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


@number(
    "slowest / fastest fifth of the sizes of the environment, {how} addresses",
    frame="size of the environment",
    over={"how": {"random": True, "fixed": False}},
)
def environment_apart(runs: pd.DataFrame, how: bool) -> Interval | None:
    """The slowest fifth of all sizes of the environment over the fastest, with random or with fixed addresses; None if
    it was not measured."""
    return environments_apart(runs).get(how)


@number("ways to choose addresses", frame="size of the environment")
def ways_to_choose(runs: pd.DataFrame) -> Counted:
    """In how many ways, random or fixed, addresses were chosen for the sizes of the environment."""
    return Counted(runs.random.nunique())


def matters(ratio: Interval | None) -> bool:
    """Do they differ, and not surely by less than what would matter? Then there is something to draw."""
    return ratio is not None and above(ratio, 1) == YES and above(ratio, THRESHOLDS[0]) != NO


# ---- the cache ----


def cache(session: Session) -> Cache:
    """The instruction cache that the system reports."""
    return Cache(**session.observed("instruction cache"))


def sets_met(cache: Cache, distance: int) -> int:
    """In how many sets functions lie that are so far apart."""
    return cache.sets // math.gcd(max(1, distance // cache.line), cache.sets)


def lines_by_set(cache: Cache, distance: int, n: int) -> np.ndarray:
    """How many of n functions fall into each set, the first into set 0."""
    return np.bincount(np.arange(n) * distance // cache.line % cache.sets, minlength=cache.sets)


def pages_met(distance: int, n: int) -> int:
    """On how many pages n functions lie."""
    return len(set(np.arange(n) * distance // 4096))


@number("ways of the instruction cache", of=cache)
def ways(cache: Cache) -> Counted:
    """Ways of the instruction cache, as the system reports them."""
    return Counted(cache.ways)


@number("KiB of the instruction cache", of=cache)
def kib(cache: Cache) -> Counted:
    """Size of the instruction cache in KiB, as the system reports it."""
    return Counted(cache.size / 1024)


def simulation(session: Session) -> pd.DataFrame | str:
    """Simulated misses in the system's cache: columns distance, n, misses (of a call); or why there are none."""
    rows = session.observed("simulated misses of the functions")
    if isinstance(rows, str):
        return rows
    misses = pd.DataFrame(rows)
    return misses[misses.cache == cache(session).name]


@number("functions at {distance} bytes without a miss (simulated)", of=simulation, over={"distance": [*SIMULATED]})
def edge(simulated: pd.DataFrame, distance: int) -> Counted:
    """The largest number of functions that the cache runs without a miss; 0 if none."""
    few = simulated[(simulated.distance == distance) & (simulated.misses < FEW_MISSES)]
    return Counted(int(few.n.max()) if len(few) else 0)


@number(
    f"misses of a call at {{distance}} bytes, {MANY} functions (simulated)",
    of=simulation,
    over={"distance": [*SIMULATED]},
)
def misses(simulated: pd.DataFrame, distance: int) -> Counted:
    """Simulated misses of a call of so many functions that no cache holds them in one set."""
    return Counted(simulated[simulated.n == MANY].set_index("distance").misses[distance])


@number("ways of the instruction cache (simulated)")
def simulated_ways(session: Session) -> Counted | str:
    """Ways of the simulated cache, read off how many functions in one set run without a miss."""
    simulated = session.once(simulation)
    if isinstance(simulated, str):
        return simulated
    return Counted(edge(simulated, APART).value // sets_met(cache(session), APART))


@number("KiB of the instruction cache (simulated)", of=simulation)
def simulated_kib(simulated: pd.DataFrame) -> Counted:
    """Size of the simulated cache in KiB, read off how many functions a line apart run without a miss. Each call in the
    caller takes some bytes of the cache as well."""
    return Counted(edge(simulated, DENSE).value * (DENSE + CALL_BYTES) / 1024)


@number(
    "{event} of a call at {distance} bytes (counted)",
    seen="hardware counters of the functions",
    over={"event": {"misses": "L1-icache-load-misses", "instructions": "instructions"}, "distance": [*SIMULATED]},
)
def counted(rows: list[dict], event: str, distance: int) -> Counted | str:
    """Events of a call that the processor counts; or why they are not known."""
    (row,) = (row for row in rows if row["distance"] == distance)
    return Counted(row[event]) if event in row else "this processor does not count them for us"


@number("virtual machine")
def virtual(session: Session) -> Counted | str:
    """1 if this machine is a virtual one, 0 if not; or that the system does not say."""
    answer = session.machine.get("virtual_machine")
    return "the system does not say" if answer is None else Counted(answer)
