"""What the records of the chapter "Arenas" say, its numbers by name: growth of memory by process, and its differences;
and its own controls. The rules: claims.toml, sentences.toml."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd

from ffilab.judge.controls import Control
from ffilab.judge.estimates import Counted, Estimate, Interval, Location, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen, difference, interval_of, location, ratio
from ffilab.judge.questions import NO, above, equal
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.arenas import experiment as e

TALK, GRID, GROWTH = "the talk's experiment", "Python × native threads", "growth over time"
NO_HUGE_PAGES = "this system gave no huge pages to a program that asked for them"
# Conditions of the talk's experiment that numbers speak of.
AS_RUN, NONE, AGAIN = "the talk's program", "no native threads", "the talk's program, again"
HUGE, HUGE_NONE = "huge pages for all", "huge pages for all, no native threads"
NO_HUGE, ONE_ARENA, ASKED = "huge pages off", "one arena", "the blocks asked for"
MEET, RELEASED, EQUAL = (
    "touched, a call's threads at once",
    "the same, GIL released",
    "one Python thread, 400 native at once",
)
WIDE_MEET = f"{MEET}, 64 arenas allowed"
# The free-threaded build with its GIL on: no public source of the talk keeps it off. As run is either.
ON = ", GIL on"
STATES = ("", ON)
KEPT, HUGE_KEPT = (name + ON for name in (AS_RUN, HUGE))
# How huge pages go with the number of Python threads.
FEWER = {number: f"{HUGE_NONE}, Python threads: {number}" for number in (1, 2, 4)} | {8: HUGE_NONE}
SERVER, LATENCY = e.LONG_LIVED, "latency-critical, multi-threaded"
# By program: the value of a process that decides it, in whatever unit, less being better; and a value shown beside it.
DECIDES = {
    "many short-lived threads": "grown",
    "many short-lived threads, all freed": "grown",
    SERVER: "idle",
    LATENCY: "p99.9",
    "short-lived processes": "ms",
    "tight memory limit": "peak",
    "high thread count": "grown",
    "fork-heavy": "private",
}
BESIDE = {LATENCY: "p50", SERVER: "soon"}
# What frees everything and ends is one program: its end and its peak decide two of the talk's.
SAME = {"many short-lived threads, all freed": "tight memory limit"}
# How the talk rates them, from ★ (best) over ○ and △ to ×, by program. Data to compare with.
SYMBOLS, RATED = "★○△×", ("glibc", "jemalloc", "tcmalloc")
RATINGS = {
    "many short-lived threads": "△ ★ ○",
    "many short-lived threads, all freed": "△ ★ ○",
    SERVER: "△ ★ △",
    LATENCY: "○ ○ ★",
    "short-lived processes": "★ ○ ○",
    "tight memory limit": "○ ★ △",
    "high thread count": "× ○ ○",
    "fork-heavy": "○ ★ ○",
}

# Two equal conditions that differ by more than this, in MiB, are an alarm: half of the smallest margin in claims.toml.
ALARM = 0.25

# What the talk's terminal shows: RSS grown in MiB, and its amplification. Data to compare with.
TERMINAL = {"3.13.5": (0.56, 1.09, 16.57, 32.38), "3.14.0rc1": (0.59, 1.18, 32.60, 62.28)}
# An interpreter and a condition.
Which = tuple[str, str]
# Cells of the grid: Python threads and native ones.
Corners = tuple[tuple[int, int], ...]

# MiB and arenas that a process has more of than before.
GROWN = ["rss", "pss", "huge", "held", "in_use", "arenas"]
PAIR = (GIL, FREE_THREADED)
number = Declarations()


def looked_at(session: Session) -> dict:
    """What the chapter found here: see system.look."""
    return session.observed("this system", session.interpreters)


@number("arenas at most")
def arenas_at_most(session: Session) -> Counted:
    return Counted(looked_at(session)["arenas at most"])


def not_built(session: Session, *labels: str) -> str | None:
    """Why the extension in Rust is absent on one of these interpreters; None if it is there on all."""
    absent = looked_at(session)["absent extension"]
    return next((absent[label] for label in labels if label in absent), None)


def absent(session: Session, arm: str) -> str | None:
    """Why an allocator is absent; None if it is here."""
    return looked_at(session)["absent allocators"].get(arm.partition(",")[0])


def middle(values: pd.Series | list) -> str:
    """What is counted: its median, with the smallest and the largest where they differ."""
    least, most = min(values), max(values)
    return f"{np.median(values):.3g}" + (f" ({least:.3g} to {most:.3g})" if most > least else "")


def positive(frame: pd.DataFrame, column: str) -> Interval | None:
    """Centre of what cannot fall below 0 and differs many times over between processes: the interval is that of the
    logarithms, so it ends above 0. Where a value is not above 0, the plain one."""
    values = pd.to_numeric(frame[column]).dropna().to_numpy()
    if not len(values) or values.min() <= 0:
        return interval_of(frame, column)
    return Location.of(np.log(values), log=True).interval


# ---- the talk's experiment


def talk(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment, one row for each process: GROWN, and what `talk` returns beside."""
    beside = ["vmrss", "inside", "in_objects", "python_at_once", "trimmed.rss", "at_once"]
    return runs.reindex(columns=["interpreter", "condition", "round", *GROWN, *beside])


def named(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's processes with the state of the GIL in the column `build`, and not in `condition`.

    What the talk's sources amount to is called as run.
    """
    kept = runs.condition.str.endswith(ON)
    on = kept | ~runs.interpreter.str.endswith("t")
    return runs.assign(
        condition=runs.condition.str.removesuffix(ON), build=runs.interpreter + np.where(on, ON, ", GIL off")
    )


def of_condition(runs: pd.DataFrame, label: str, condition: str, column: str) -> np.ndarray:
    """A column of all processes of one interpreter under one condition."""
    return chosen(runs, interpreter=label, condition=condition)[column].to_numpy(dtype=float)


INSIDE, TOUCHED = "MiB inside the calls, huge pages for all", "touched blocks, 8 × 50"
WITHOUT = "grown without native threads, huge pages for all"


@number("RSS grown, {condition}: {label}", over={"condition": (AS_RUN, NONE), "label": PAIR}, column="rss")
@number(f"native threads at once, {ASKED}: {FREE_THREADED}", label=FREE_THREADED, condition=ASKED, column="at_once")
@number(INSIDE + ": {FREE_THREADED}, GIL off", label=FREE_THREADED, condition=HUGE, column="inside")
@number(INSIDE + ": {FREE_THREADED}, GIL on", label=FREE_THREADED, condition=HUGE_KEPT, column="inside")
def alone(session: Session, column: str, label: str, condition: str) -> Estimate | None:
    return location(of_condition(talk(session.frame(TALK)), label, condition, column))


def against(session: Session, compare: Callable, column: str, one: Which, other: Which) -> Estimate | str | None:
    """A column of one interpreter under a condition less that of another, or over it, process by process. Where the
    system gave no huge pages, those with them say nothing."""
    runs = talk(session.frame(TALK))
    missing = not_built(session, one[0], other[0])
    if one[1].startswith(HUGE) and not (chosen(runs, condition=HUGE).huge > 0).any():
        return missing or NO_HUGE_PAGES
    return compare(*(of_condition(runs, *which, column) for which in (one, other))) or missing


@number("RSS grown, {condition}: {FREE_THREADED} − {GIL}", over={"condition": (AS_RUN, NONE, HUGE)}, column="rss")
@number(f"RSS {WITHOUT}: {FREE_THREADED} − {GIL}", condition=HUGE_NONE, column="rss")
@number(f"held by glibc, {HUGE}: {FREE_THREADED}{{gil}} − {GIL}", over={"gil": STATES}, condition=HUGE, column="held")
def builds_less(session: Session, column: str, condition: str, gil: str = "") -> Estimate | str | None:
    return against(session, difference, column, (FREE_THREADED, condition + gil), (GIL, condition))


# The condition, and the column.
OVER = {
    f"native threads at once, {TOUCHED}": {"condition": MEET, "column": "at_once"},
    f"held by glibc, {TOUCHED}": {"condition": MEET, "column": "held"},
    "held by glibc, 400 native threads at once": {"condition": EQUAL, "column": "held"},
}


@number("{held}: {FREE_THREADED} / {GIL}", over={"held": OVER})
@number(f"held by glibc, {TOUCHED}: {FREE_THREADED}, GIL on / {GIL}", condition=MEET, column="held", gil=ON)
def builds_over(session: Session, column: str, condition: str, gil: str = "") -> Estimate | str | None:
    return against(session, ratio, column, (FREE_THREADED, condition + gil), (GIL, condition))


AS_TALK = "VmRSS grown, as the talk ran it: {FREE_THREADED}{gil}"


@number(AS_TALK + " − {GIL}", over={"gil": STATES}, condition=AS_RUN)
@number("VmRSS grown, huge pages for all: {FREE_THREADED}, GIL on − {GIL}", condition=HUGE)
@number(f"VmRSS {WITHOUT}: {FREE_THREADED}, GIL on − {GIL}", condition=HUGE_NONE)
@number(AS_TALK + " / {GIL}", over={"gil": STATES}, condition=AS_RUN, compare=ratio)
def as_talk(session: Session, condition: str, compare: Callable = difference, gil: str = ON) -> Estimate | str | None:
    """The free-threaded build, with its GIL off or on, against the other one."""
    return against(session, compare, "vmrss", (FREE_THREADED, condition + gil), (GIL, condition))


BY_NATIVE = "RSS grown by the native threads"


@number(f"{BY_NATIVE}, {HUGE}: {FREE_THREADED}", condition=HUGE, other=HUGE_NONE)
@number(f"{BY_NATIVE}, {HUGE}: {FREE_THREADED}, GIL on", condition=HUGE_KEPT, other=HUGE_NONE + ON)
@number(f"{BY_NATIVE}, {ASKED}: {FREE_THREADED}", condition=ASKED, other=NONE)
@number(
    f"RSS grown, {{condition}} − {AS_RUN}: {FREE_THREADED}",
    over={"condition": (KEPT, NO_HUGE, ONE_ARENA)},
    other=AS_RUN,
)
def less_other(session: Session, condition: str, other: str) -> Estimate | str | None:
    return against(session, difference, "rss", (FREE_THREADED, condition), (FREE_THREADED, other))


@number(f"KiB by each native thread, {ASKED}: {FREE_THREADED}")
def by_each(session: Session) -> Estimate | str | None:
    """For each of the native threads of all calls, where their blocks are asked for."""
    threads = e.TALK["python_threads"] * e.TALK["native_threads"] * e.TALK["calls"]

    def each(*rss: np.ndarray) -> Estimate | None:
        return location(less(*rss) * 1024 / threads, signed=True)

    return against(session, each, "rss", (FREE_THREADED, ASKED), (FREE_THREADED, NONE))


@number(INSIDE + ": {FREE_THREADED}, GIL off / on")
def inside_over_kept(session: Session) -> Estimate | str | None:
    return against(session, ratio, "inside", (FREE_THREADED, HUGE), (FREE_THREADED, HUGE_KEPT))


@number(f"native threads at once, {TOUCHED}, GIL released / kept: {GIL}")
def at_once_released(session: Session) -> Estimate | str | None:
    return against(session, ratio, "at_once", (GIL, RELEASED), (GIL, MEET))


@number(f"held by glibc, {TOUCHED}, 64 arenas allowed / as many as here: {FREE_THREADED}")
def held_with_more_arenas(session: Session) -> Estimate | str | None:
    return against(session, ratio, "held", (FREE_THREADED, WIDE_MEET), (FREE_THREADED, MEET))


@number(f"huge pages where objects are − all of them, {NONE}: {FREE_THREADED}", frame=TALK)
def in_objects(runs: pd.DataFrame) -> Estimate | None:
    """Of the huge pages that came, those in mappings where Python threads keep their objects: MiB of them less MiB of
    all."""
    columns = ("in_objects", "huge")
    return difference(*(of_condition(talk(runs), FREE_THREADED, HUGE_NONE, column) for column in columns))


@number(f"how much farther from the talk's print the calls are: {FREE_THREADED}, GIL off − on")
def farther(session: Session) -> Interval | None:
    """In logarithms: how much farther the talk's print is from what the calls saw grow with the GIL off than with it
    on. What the talk's calls saw grow is its growth over its amplification."""
    grown, factor = TERMINAL["3.14.0rc1"][2:]
    seen = [alone(session, "inside", FREE_THREADED, condition) for condition in (HUGE, HUGE_KEPT)]
    if not all(seen):
        return None
    off, on = (
        one.interval.map(lambda mib: math.log(max(mib, 0.01))).distance(math.log(grown / factor)) for one in seen
    )
    return Interval(off.value - on.value, off.low - on.high, off.high - on.low)


CAP = {"at": True, "below": False}


@number("processes {reached} the cap of arenas: {label}", over={"reached": CAP, "label": PAIR})
def at_the_cap(session: Session, label: str, reached: bool) -> Share | None:
    """glibc made as many arenas as it may: one, the main one, was there before."""
    arenas = chosen(session.frame(TALK), interpreter=label, condition=AS_RUN).arenas
    return Share.of((arenas >= looked_at(session)["arenas at most"] - 1) == reached)


HOW, WHOSE = {"ended well": True, "died": False}, {"the talk's worker": True, "our worker": False}


@number(
    "processes that {well} with {published}", frame="is the block asked for", over={"well": HOW, "published": WHOSE}
)
def ended(runs: pd.DataFrame, published: bool, well: bool) -> Share | None:
    """With less room than one block."""
    return Share.of((chosen(runs, published=published).ended == "ok") == well) if len(runs) else None


def twins(runs: pd.DataFrame) -> dict[Which, Estimate]:
    """The running A/A test, by interpreter and column: the talk's condition against a second copy of itself."""
    tests = {
        (label, column): difference(*(of_condition(runs, label, condition, column) for condition in (AGAIN, AS_RUN)))
        for label in sorted(set(runs.interpreter))
        for column in ("rss", "held")
    }
    return {which: test for which, test in tests.items() if test}


@number("A/A tests", frame=TALK)
@number("A/A tests that raised a false alarm", frame=TALK, beyond=0.0)
@number("A/A tests that are off by what would matter", frame=TALK, beyond=ALARM)
def equal_conditions(runs: pd.DataFrame, beyond: float | None = None) -> Counted | None:
    """How many A/A tests of the talk's experiment there are, or how many are off by more than so many MiB."""
    known = [test.interval for test in twins(talk(runs)).values() if test.interval.is_known]
    off = [one for one in known if beyond is None or equal(one, 0, beyond) == NO]
    return Counted(len(off)) if known else None


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the talk's condition twice. An alarm withholds what rests on this experiment."""
    return [
        Control(
            "A/A of the talk's experiment",
            f"{column} in MiB, the same − the same, on {label}",
            TALK,
            test,
            truth=0.0,
        )
        for (label, column), test in twins(talk(session.frame(TALK))).items()
    ]


# ---- the talk's matrix: Python threads and native ones


def grid(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment over Python and native threads, one row for each process.

    amplification: growth of the process over the sum of what its calls saw grow, 0 where that is not above 0, as the
    talk has it.
    """
    factors = ["build", "together", "python_threads", "native_threads", "round"]
    runs = runs.reindex(columns=[*factors, *GROWN, "vmrss", "inside", "python_at_once"])
    factor = (pd.to_numeric(runs.vmrss) / pd.to_numeric(runs.inside)).where(pd.to_numeric(runs.inside) > 0, 0.0)
    return runs.assign(amplification=factor)


def less(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Difference process by process, as far as both go."""
    n = min(len(left), len(right))
    return left[:n] - right[:n]


# Fewest and most of both numbers in ours, and what the rules read of each cell: MiB that glibc holds more than before.
(FEWEST, FEW), (MOST, MANY) = e.TOGETHER[0], e.TOGETHER[-1]
# By the number that grows: the cells above the line, and below it.
GROWS = {
    "Python threads": (((MOST, FEW), (MOST, MANY)), ((FEWEST, FEW), (FEWEST, MANY))),
    "native threads": (((FEWEST, MANY), (MOST, MANY)), ((FEWEST, FEW), (MOST, FEW))),
}
OTHERS = {"the fewest others": slice(0, 1), "the most others": slice(1, 2)}
BY_FACTOR = {"Python threads": MOST / FEWEST, "native threads": MANY / FEW}


def held_in(cells: pd.DataFrame, corners: Corners) -> np.ndarray:
    """Mean logarithm of what glibc holds in two cells of ours, process by process."""
    ours = chosen(cells, together=True, build=FREE_THREADED)
    both = [np.log(chosen(ours, python_threads=p, native_threads=n).held.to_numpy(dtype=float)) for p, n in corners]
    return np.mean([one[: min(map(len, both))] for one in both], axis=0)


def times_held(cells: pd.DataFrame, grows: str, others: slice = slice(None)) -> Location | None:
    """What glibc holds with the most threads of a kind over that with the fewest, over both numbers of the other kind,
    or with one of them (OTHERS)."""
    logs = less(*(held_in(cells, corners[others]) for corners in GROWS[grows]))
    return Location.of(logs, log=True) if len(logs) else None


def exponent(cells: pd.DataFrame, grows: str, others: slice = slice(None)) -> Location | None:
    """By which power of a number of threads what glibc holds grows: 1 of each is a product."""
    times, by = times_held(cells, grows, others), math.log(BY_FACTOR[grows])
    return times and replace(times, centre=times.centre / by, error=times.error / by, log=False)


def amplified(cells: pd.DataFrame, build: str) -> Estimate | None:
    """What the talk's matrix draws: in the largest cell over the smallest, as run."""
    cells = chosen(cells, together=False, build=build)
    both = (chosen(cells, python_threads=python, native_threads=native) for python, native in (e.CELLS[-1], e.CELLS[0]))
    return ratio(*(cell.amplification.to_numpy() for cell in both))


KINDS = {"grows": tuple(GROWS)}


@number("amplification at 24 × 200 / at 2 × 10: {build}", make=amplified, over={"build": (FREE_THREADED, e.KEEPING)})
@number("power of {grows} by which what glibc holds grows: {FREE_THREADED}", make=exponent, over=KINDS)
@number(
    "power of {grows} by which what glibc holds grows, with {others}: {FREE_THREADED}",
    make=exponent,
    over={**KINDS, "others": OTHERS},
)
@number("held by glibc, most {grows} / fewest: {FREE_THREADED}", make=times_held, over=KINDS)
def of_grid(session: Session, make: Callable, **of_cells) -> Estimate | str | None:
    return make(grid(session.frame(GRID)), **of_cells) or not_built(session, FREE_THREADED)


# ---- growth over time


def proved(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs, if `malloc` of each that ended well was that of the allocator asked for. Raises UserError if not."""
    for run in runs[runs.ended == "ok"].itertuples():
        asked = run.allocator if run.allocator == "glibc" else f"lib{run.allocator}.so"
        if run.mapped != asked:
            raise UserError(f"{asked} was to be preloaded, and process {run.process} ran on {run.mapped}.")
    return runs


def grown(runs: pd.DataFrame) -> pd.DataFrame:
    """Rounds of allocation, one row for each process with its state after the last round, and MiB resident more than
    before: grown at the end, idle after some time without work, trimmed after malloc_trim, peak at the most. more_held,
    more_in_use, more_arenas: by glibc."""
    before, end, trimmed = (
        runs[runs.state == state].groupby("process").last() for state in ("before", "worked", "trimmed")
    )
    found = end.assign(grown=end.rss - before.rss, trimmed=trimmed.rss - before.rss, peak=end.peak - before.rss)
    if (runs.state == "idle").any():
        for column, idle in (("soon", "first"), ("idle", "last")):
            found[column] = runs[runs.state == "idle"].groupby("process").rss.agg(idle) - before.rss
    for column in ("held", "in_use", "arenas"):
        if column in runs:
            found[f"more_{column}"] = end[column] - before[column]
    return found.reset_index()


ROUNDS = e.AMOUNT["rounds"]
# MiB: what shows beside the process itself.
SHOWS = 1.0
WAYS = tuple(e.WORK.values())
LEFT = {"way": WAYS, "keep": {"all freed": False, "a small entry left by each": True}}
GIVEN_BACK, TESTED = "what gives it back", {"cause": tuple(e.CAUSES), "interpreter": e.PAIR}
LATER = {"later": {"grew later": True, "grew no more": False}, "way": WAYS}


@number("MiB that stay, {way}, {keep}", frame=GROWTH, over=LEFT)
def stays(runs: pd.DataFrame, way: str, keep: bool) -> Interval | None:
    return positive(chosen(grown(runs), way=way, keep=keep), "grown")


@number("left by malloc_trim / what stayed, {way}, {keep}", frame=GROWTH, over=LEFT)
def left_by_trim(runs: pd.DataFrame, way: str, keep: bool) -> Estimate | None:
    """A ratio, as growth differs many times over between processes."""
    part = chosen(grown(runs), way=way, keep=keep)
    return ratio(part.trimmed.to_numpy(), part.grown.to_numpy())


@number("KiB in use, more than before, {way}", frame=GROWTH, over={"way": WAYS})
def more_in_use(runs: pd.DataFrame, way: str) -> Estimate | None:
    return location(1024 * chosen(grown(runs), way=way, keep=True).more_in_use.to_numpy(dtype=float), signed=True)


@number("processes that {later}, {way}", frame=GROWTH, over=LATER)
def grew_later(runs: pd.DataFrame, way: str, later: bool) -> Share | None:
    """Processes in which the second half of the rounds made more than SHOWS resident, or did not."""
    worked = chosen(runs, state="worked", way=way, keep=True)
    half, end = (chosen(worked, done=done).set_index("process").rss for done in (ROUNDS // 2, ROUNDS))
    return Share.of((end - half > SHOWS) == later)


@number("MiB left: {cause}, {interpreter}", frame=GIVEN_BACK, over=TESTED, test="left")
@number("MiB given back by {test}: {cause}, {interpreter}", frame=GIVEN_BACK, over=TESTED | {"test": tuple(e.TESTS)})
def given_back(runs: pd.DataFrame, test: str, **which: str) -> Estimate | None:
    return location(chosen(runs, **which)[test].to_numpy(dtype=float))


# ---- allocators and settings


def scenarios(runs: pd.DataFrame) -> pd.DataFrame:
    """The value of each process that decides its program. Columns scenario, arm, value, beside (another one, or NaN);
    clock, of what is timed: the slowest 0.1 % of the clock's own readings over those with a malloc in them."""
    parts = []
    for name, value in DECIDES.items():
        part = chosen(runs, scenario=SAME.get(name, name))
        if value in ("grown", "idle", "peak"):
            part = grown(part)
        elif name == LATENCY:
            slow = part["p99.9"]
            part = part.assign(clock=part["clock p99.9"] / slow, **{"p99.9": slow - part["clock p50"]})
            part["p50"] -= part["clock p50"]
        part = part.assign(scenario=name, value=part[value], beside=part.get(BESIDE.get(name, "")))
        parts.append(part.reindex(columns=["scenario", "arm", "value", "beside", "clock"]))
    return pd.concat(parts, ignore_index=True).astype({"value": float, "beside": float, "clock": float})


def over(found: pd.DataFrame, scenario: str, arm: str, other: str) -> Estimate | None:
    """One allocator over another in what decides a program."""
    return ratio(*(chosen(found, scenario=scenario, arm=one).value.to_numpy() for one in (arm, other)))


def arm_of(scenario: str, allocator: str) -> str:
    """The allocator as the talk advises for a program: a server's are set to give memory back."""
    return e.TUNED.get(allocator, allocator) if scenario == SERVER else allocator


def pairs() -> dict[str, tuple[str, str, str]]:
    """By name of the ratio: a program, and which two allocators the talk tells apart there, the better one first: the
    best of the three against each that is worse, or all of them against the worst."""
    found = {}
    for scenario, symbols in RATINGS.items():
        rank = {name: SYMBOLS.index(symbol) for name, symbol in zip(RATED, symbols.split(), strict=True)}
        best = [name for name in RATED if rank[name] == min(rank.values())]
        for better in best:
            for worse in (name for name in RATED if rank[name] > rank[better]):
                one, other = arm_of(scenario, better), arm_of(scenario, worse)
                found[f"{scenario}: {one} / {other}"] = (scenario, one, other)
    return found


@number("{pair}", over={"pair": {name: {"pair": pair} for name, pair in pairs().items()}})
def rated(session: Session, pair: tuple[str, str, str]) -> Estimate | str | None:
    """The allocator that the talk rates better over the other one."""
    found = scenarios(session.frame("scenarios"))
    scenario, *arms = pair
    if scenario == LATENCY and any(too_coarse(found, arm) for arm in arms):
        return "too coarse here: it is not clear that the slowest pairs are slower than the clock's slowest readings"
    return over(found, *pair) or absent(session, arms[0]) or absent(session, arms[1])


@number(SERVER + ": {arm} / glibc", over={"arm": [arm for arm in e.ARMS if arm != "glibc"]})
def server_over_glibc(session: Session, arm: str) -> Estimate | str | None:
    """What a server holds after 0.6 s without work, over glibc as it comes."""
    return over(scenarios(session.frame("scenarios")), SERVER, arm, "glibc") or absent(session, arm)


@number(SERVER + ", MiB: {arm}", over={"arm": list(e.ARMS)})
def of_server(session: Session, arm: str) -> Interval | str | None:
    """What a server holds after 0.6 s without work."""
    part = chosen(scenarios(session.frame("scenarios")), scenario=SERVER, arm=arm)
    return positive(part, "value") or absent(session, arm)


# The slowest readings of the clock alone are at most so much of those with a malloc in them, or they are no malloc's.
CLOCK = 0.8


def too_coarse(found: pd.DataFrame, arm: str) -> bool:
    """Is it not clear that the slowest pairs of an allocator are slower than those of the clock alone?"""
    clock = chosen(found, scenario=LATENCY, arm=arm).clock.dropna().to_numpy()
    return bool(len(clock)) and above(Location.of(np.log(clock), log=True).interval, CLOCK) != NO


REMEDIES = {
    "work": list(e.WORK),
    "column": {"MiB grown": "grown", "blocks/s": "blocks_per_second"},
    "remedy": {
        **{f"{setting} / nothing": setting for setting in (*e.SETTINGS, e.TRIM)},
        **{f"{allocator} / glibc": allocator for allocator in e.ALLOCATORS[1:]},
    },
}


@number("{column}, {work}: {remedy}", over=REMEDIES)
def over_nothing(session: Session, remedy: str, work: str, column: str) -> Estimate | str | None:
    """A remedy over none, under one kind of work."""
    runs = chosen(grown(session.frame("remedies")), work=work)
    compared = ratio(*(chosen(runs, remedy=one)[column].to_numpy() for one in (remedy, "nothing")))
    return compared or absent(session, remedy)


# Which of two settings is compared with which, in which case.
HELD_BACK = {
    f"{case}: {setting} minus {other}": {"case": case, "settings": (setting, other)}
    for case, setting, other in (("large, pinned", *e.SET[:2]), ("small", e.SET[3], e.SET[2]))
}


@number("MiB held, {held_back}", frame="thresholds", over={"held_back": HELD_BACK})
def held_back(runs: pd.DataFrame, case: str, settings: tuple[str, str]) -> Estimate | None:
    return difference(*(chosen(runs, setting=one, case=case).held.to_numpy() for one in settings))
