"""What the records of the chapter "Where threads run" say: its numbers by name, and its own controls. The rules:
claims.toml, sentences.toml."""

import math

import numpy as np
import pandas as pd

from ffilab.judge.claims import declared
from ffilab.judge.controls import Check, Control
from ffilab.judge.estimates import Counted, Estimate, Interval, Location, Share
from ffilab.judge.numbers import Declarations, numbers_of
from ffilab.judge.processes import chosen, location, log_spread, ratio
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.pinning import experiment as e

PAIR = (GIL, FREE_THREADED)
WORKS = {"a native call": e.NATIVE, "Python": e.PYTHON}
PLACED = {"a core each": e.APART, "one core": e.ONE_CORE}
MOVING = {"not pinned": e.FREE, "a core each": e.APART}
DECISIVE = {"throughput": e.DECISIVE_THROUGHPUT, "latency": e.DECISIVE_LATENCY}
# Where two threads that nobody pinned had to do with one core: there they had less than this share of the CPU time that
# they have with a core each, the middle between one core and two.
SHARED, OF_A_CORE_EACH = "not pinned, one core shared", 0.75
COPY_SHARED = f"{e.AGAIN}, one core shared"
LEFT_ALONE = {"each with a core": e.FREE, "one core shared": SHARED}
NO_PINNING = (
    "threads cannot be pinned to cores of their own here: it takes Linux, and two cores that the process may use"
)
number = Declarations(missing=NO_PINNING)


def with_added(frame: pd.DataFrame, *known: str) -> list[str]:
    """These placements, and those that a reader has added."""
    ours = {e.FREE, SHARED, e.AGAIN, COPY_SHARED, e.APART, e.ONE_CORE, e.ALONE}
    return [*known, *sorted(set(frame.placement.dropna()) - ours)]


def by_class(speeds: pd.DataFrame) -> pd.DataFrame:
    """Give two threads that nobody pinned, and that shared a core, a placement of their own in these rows. What one
    of them gets done then is about half, so that the mean of all processes would be the value of none. With the GIL two
    threads of Python have one core's time anyway. Where nothing could be pinned there is nothing to tell it by."""
    if speeds.empty or e.APART not in set(speeds.placement):
        return speeds
    of_process = pd.MultiIndex.from_frame(speeds[["interpreter", "work", "process"]])
    apart = (speeds.placement == e.APART) & (speeds.threads == 2)
    most = speeds.had.set_axis(of_process)[apart.to_numpy()].reindex(of_process).to_numpy()
    at_once = (speeds.threads == 2) & ~((speeds.interpreter == GIL) & (speeds.work == e.PYTHON))
    shared = at_once & (speeds.had < OF_A_CORE_EACH * most)
    names = {e.FREE: SHARED, e.AGAIN: COPY_SHARED}
    return speeds.assign(placement=speeds.placement.mask(shared, speeds.placement.replace(names)))


def column(frame: pd.DataFrame, name: str, **which) -> pd.Series:
    """A column of the processes that brought a result, by process."""
    found = chosen(frame[frame.ended == "ok"], **which)
    if name not in found or not len(found):
        return pd.Series(dtype=float)
    return pd.to_numeric(found.set_index("process")[name])


def over(frame: pd.DataFrame, name: str, one: str, other: str, **which) -> Estimate | None:
    """A column at one placement over that at another, process by process; None if one of them is missing."""
    pair = _pairs(frame, name, one, other, **which)
    return ratio(pair.one.to_numpy(), pair.other.to_numpy()) if len(pair) else None


def _pairs(frame: pd.DataFrame, name: str, one: str, other: str, **which) -> pd.DataFrame:
    sides = {"one": column(frame, name, placement=one, **which), "other": column(frame, name, placement=other, **which)}
    return pd.DataFrame(sides).dropna()


def centre(frame: pd.DataFrame, name: str, **which) -> Interval | None:
    """Geometric mean over processes with its interval; None if nothing is there, or not everywhere above 0."""
    values = column(frame, name, **which).dropna().to_numpy()
    return Location.of(np.log(values), log=True).at() if len(values) and values.min() > 0 else None


def moves(speeds: pd.DataFrame, placement: str, **which) -> Interval | None:
    """Moves a second of a thread, over processes; None if none is there."""
    values = column(speeds, "moves", placement=placement, **({"threads": 2} | which)).dropna().to_numpy()
    return location(values).interval if len(values) else None


def spreads(runs: pd.DataFrame) -> pd.DataFrame:
    """Logarithms of the spread of what one thread measures over its turns, which is the mean absolute deviation of
    logarithms from their median: a row for each process, a column for each placement."""
    well = runs[runs.ended == "ok"]
    spread = well.rates.map(lambda rates: log_spread(np.log(rates)))
    return well.assign(spread=spread).pivot(index="process", columns="placement", values="spread")


@number("spread of a measurement, not pinned / pinned: {GIL}", frame="steadiness")
def steadier(runs: pd.DataFrame, placement: str = e.FREE) -> Estimate | None:
    """The spread at a placement over that where it is pinned, process by process; None if it was not pinned."""
    if e.APART not in (logs := spreads(runs)):
        return None
    return Location.of((logs[placement] - logs[e.APART]).to_numpy(), log=True)


@number("share of updates lost, a core each minus one core: {FREE_THREADED}", frame="race", label=FREE_THREADED)
def lost_more(races: pd.DataFrame, label: str) -> Estimate | None:
    """Expected share of updates lost with a core for each thread, less that on one core, process by process."""
    pair = _pairs(races, "lost", e.APART, e.ONE_CORE, interpreter=label)
    return Location.mean((pair.one - pair.other).to_numpy()) if len(pair) else None


@number(
    "share of updates lost, {placement}: {interpreter}", frame="race", over={"interpreter": PAIR, "placement": PLACED}
)
def lost(races: pd.DataFrame, interpreter: str, placement: str) -> Interval | None:
    """Expected share of updates that a process loses; None if nothing is there."""
    values = column(races, "lost", interpreter=interpreter, placement=placement).dropna().to_numpy()
    return Location.mean(values, signed=False).at() if len(values) else None


@number(
    "processes that lose updates, {placement}: {FREE_THREADED}",
    frame="race",
    over={"placement": PLACED},
    interpreter=FREE_THREADED,
)
def losing(races: pd.DataFrame, interpreter: str, placement: str) -> Estimate | None:
    """Processes that lose any update."""
    return Share.of(column(races, "any", interpreter=interpreter, placement=placement))


def frame(session: Session, title: str, label: str, work: str) -> pd.DataFrame:
    """The processes of an experiment, in which a case that no claim asks for has fewer."""
    return session.frame(title if (label, work) in DECISIVE[title] else f"{title}, further cases")


@number(
    "throughput of {work} in two threads, a core each / not pinned, {other}: {label}",
    over={"work": WORKS, "label": PAIR, "other": LEFT_ALONE},
    placement=e.APART,
)
@number(
    "throughput of {work} in two threads, one core / a core each: {label}",
    over={"work": WORKS, "label": PAIR},
    placement=e.ONE_CORE,
    other=e.APART,
)
@number(
    "throughput of Python in two threads, one core / not pinned: {GIL}",
    work=e.PYTHON,
    label=GIL,
    placement=e.ONE_CORE,
    other=e.FREE,
)
def throughput(session: Session, label: str, work: str, placement: str, other: str) -> Estimate | None:
    speeds = by_class(frame(session, "throughput", label, work))
    return over(speeds, "per_s", placement, other, interpreter=label, work=work, threads=2)


@number("processes in which two threads share a core, {work}, not pinned: {label}", over={"work": WORKS, "label": PAIR})
def sharing(session: Session, label: str, work: str) -> Share | None:
    """Processes in which two threads that nobody pinned shared a core, where there was one for each of them."""
    speeds = by_class(frame(session, "throughput", label, work))
    which = {"interpreter": label, "work": work, "threads": 2}
    shared, each = (len(column(speeds, "per_s", placement=placement, **which)) for placement in (SHARED, e.FREE))
    can_pin = len(column(speeds, "per_s", placement=e.APART, **which))
    return Share(shared, shared + each) if can_pin and shared + each else None


@number("p99 beside a Python thread, not pinned / a core each: {label}", over={"label": PAIR})
def tail(session: Session, label: str) -> Estimate | None:
    lateness = frame(session, "latency", label, e.PYTHON)
    return over(lateness, "p99", e.FREE, e.APART, interpreter=label, work=e.PYTHON)


@number("moves/s of a thread, {placement}", over={"placement": MOVING})
def moves_of_all(session: Session, placement: str) -> Interval | None:
    return moves(pd.concat([session.frame("throughput"), session.frame("throughput, further cases")]), placement)


@number("cores", seen=e.TITLE_CORES)
def cores(numbers: list[int]) -> Counted:
    return Counted(max(1, len(numbers)))


@number("smallest gain in {what} to be found, in per cent", over={"what": {"throughput": "throughput", "tails": "p99"}})
def smallest_gain(session: Session, what: str) -> Counted | None:
    """The smallest effect that the run finds in four cases of five, the largest of several."""
    (claim,) = (claim for claim in declared("pinning").claims if claim.id == "A24a")
    tested = [numbers_of(session)[test.number].estimate for test in claim.tests if test.number.startswith(what)]
    effects = [estimate.mde for estimate in tested if estimate]
    return Counted(100 * max(effects)) if effects and not any(map(math.isnan, effects)) else None


def copies(speeds: pd.DataFrame, lateness: pd.DataFrame) -> list[tuple[str, str, str, Estimate | None]]:
    """The A/A tests: column, interpreter, work, and the second copy of "not pinned" over the first; of two threads that
    compute, where each had a core both times."""
    speeds = by_class(speeds)
    return [
        (column, label, work, over(frame, column, e.AGAIN, e.FREE, interpreter=label, work=work, **which))
        for frame, column, which, cases in (
            (speeds, "per_s", {"threads": 2}, e.DECISIVE_THROUGHPUT),
            (lateness, "p99", {}, e.DECISIVE_LATENCY),
        )
        for label, work in cases
    ]


def controls(session: Session) -> list[Check | Control]:
    """The chapter's own A/A tests, and whether a thread that was pinned stayed where it was put."""
    speeds, lateness = session.frame("throughput"), session.frame("latency")
    found = [
        Control(
            "A/A of placements",
            f"{column} of {e.AGAIN} / {e.FREE}, {work} on {label}",
            "throughput" if column == "per_s" else "latency",
            one,
        )
        for column, label, work, one in copies(speeds, lateness)
        if one
    ]
    on_one = chosen(speeds[speeds.ended == "ok"], placement=e.ONE_CORE) if "placement" in speeds else speeds[:0]
    away = [f"{row.interpreter}, {row.work}" for row in on_one.itertuples() if len(row.cores) > 1]
    where = ", ".join(dict.fromkeys(away)) or "none was seen elsewhere"
    return [
        *found,
        Check("pinned threads stay", "threads on one core", where, not away, len(away), source="throughput"),
    ]
