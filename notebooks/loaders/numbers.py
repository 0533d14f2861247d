"""What the records of the chapter "CDLL and PyDLL" say: its numbers by name, and its own control. The rules:
claims.toml, sentences.toml."""

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.controls import Control
from ffilab.judge.estimates import LEVEL, Counted, Interval, Location, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen, location
from ffilab.judge.questions import OPEN, YES, above
from ffilab.judge.statistics import Comparison
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.loaders import experiment as e

PAIR = (GIL, FREE_THREADED)
LOADERS = tuple(e.LOADERS)
FUNCTIONS = ("noop", "getpid")
# To which the price of noop is carried over.
OTHERS = ("getpid", *e.DECLARED)
# A number carries over if it says the price of every other function to within this part of the price of noop.
WITHIN = 0.25
CYCLE = "detach and attach"
COPIES = [("CDLL noop", "CDLL noop again")]
# The free-threaded build with the GIL switched on, as the tables call it, and as the names of numbers do.
SWITCHED = f"{FREE_THREADED}{e.ON}"
CONDITIONS = {GIL: GIL, FREE_THREADED: FREE_THREADED, f"{FREE_THREADED} with the GIL on": SWITCHED}
number = Declarations()


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the same call twice, where the loaders are compared."""
    return [
        Control("A/A of the loaders", f"CDLL noop again / CDLL noop on {label}", "calls", twins.estimate)
        for label, _, twins in statistics.false_alarms(session.timed("calls"), COPIES)
    ]


# ---- the timed calls ----


def cells(label: str, function: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The two cells of a function: through CDLL, through PyDLL."""
    build, on = (FREE_THREADED, e.ON) if label == SWITCHED else (label, "")
    return tuple((build, f"{loader} {function}{on}") for loader in LOADERS)


def comparison(record: Record, label: str, function: str) -> Comparison:
    """CDLL over PyDLL for one function in one condition."""
    empty = f"{EMPTY} (GIL on)" if label == SWITCHED else EMPTY
    return statistics.compare(record, *cells(label, function), empty=empty)


@number("{function}: ratio on {label}", timed="calls", over={"label": CONDITIONS, "function": FUNCTIONS})
def ratio(record: Record, label: str, function: str) -> Location | None:
    """The time of a call through CDLL over that through PyDLL."""
    pair = cells(label, function)
    return statistics.ratio_over_units(record, *pair) if record.has(*pair[0]) else None


@number("{function}: ratio on {GIL} / on {FREE_THREADED}", timed="calls", over={"function": FUNCTIONS})
def ratio_of_builds(record: Record, function: str) -> Interval:
    return statistics.ratio_of_ratios(record, cells(GIL, function), cells(FREE_THREADED, function))


def extra(record: Record, label: str, function: str) -> np.ndarray:
    """Nanoseconds that a call takes longer through CDLL than through PyDLL, by layout."""
    through_cdll, through_pydll = (record.times(*cell) for cell in cells(label, function))
    return medians(through_cdll - through_pydll)


def attached(record: Record, label: str, function: str) -> np.ndarray:
    """Nanoseconds of a call through PyDLL without the loop, by layout."""
    return medians(record.times(label, f"PyDLL {function}") - record.times(label, EMPTY))


def scale(record: Record, label: str, function: str) -> float:
    """On which scale a session adds what it does to a price, in ns: that of the longer of its two times."""
    return float(max(np.nanmedian(record.times(*cell)) for cell in cells(label, function)))


@number("noop: what CDLL costs more on {label}", timed="calls", over={"label": CONDITIONS}, function="noop")
def price(record: Record, label: str, function: str) -> Location | None:
    """What CDLL takes more than PyDLL for a call, in ns, over layouts."""
    if not record.has(*cells(label, function)[0]):
        return None
    return statistics.over_units(record, extra(record, label, function), of=scale(record, label, function))


EDGES = {"edge": ("least", "most"), "label": PAIR}


@number("{edge} that CDLL costs more, of five functions, on {label}", timed="calls", over=EDGES)
def edge_of_prices(record: Record, edge: str, label: str) -> Location | None:
    """The price of the function to which CDLL adds least, or most, in ns."""
    prices = [found for function in ("noop", *OTHERS) if (found := price(record, label, function))]
    return {"least": min, "most": max}[edge](prices, key=lambda found: found.interval.value, default=None)


@number("noop: price on {GIL} less on {FREE_THREADED}", timed="calls")
def gil_over_free_threaded(record: Record) -> Interval:
    """The price of noop with the GIL less that without it, in ns, paired by layout."""
    less = extra(record, GIL, "noop") - extra(record, FREE_THREADED, "noop")
    return statistics.over_units(record, less, of=max(scale(record, label, "noop") for label in PAIR)).at()


def misses(record: Record, label: str) -> dict[str, dict[str, Interval]]:
    """By how many ns the price of noop fails to say that of each other function, carried over as a difference and as a
    ratio (without the loop): the price less what was carried over, paired by layout. The intervals hold together, for
    all functions.
    """
    level = 1 - (1 - LEVEL) / len(OTHERS)
    noop, of_noop = extra(record, label, "noop"), attached(record, label, "noop")
    missed = {"difference": {}, "ratio": {}}
    for function in OTHERS:
        carried = {"difference": noop, "ratio": attached(record, label, function) * noop / of_noop}
        for way, guess in carried.items():
            off = statistics.over_units(
                record, extra(record, label, function) - guess, of=scale(record, label, function)
            )
            missed[way][function] = off.at(level)
    return missed


WAYS = {"label": PAIR, "way": ("difference", "ratio")}


@number("miss of noop's {way} / what is allowed: {label}", timed="calls", over=WAYS)
@number("miss of noop's {way}, in ns: {label}", timed="calls", over=WAYS, over_allowed=False)
def largest_miss(record: Record, label: str, way: str, over_allowed: bool = True) -> Interval | str:
    """By how much noop's number misses the price of the function where it is farthest off, over what the rule allows,
    or in ns: the bounds are those of the largest of several."""
    noop, missed = price(record, label, "noop").interval, misses(record, label)[way].values()
    unit = WITHIN * abs(noop.value) if over_allowed else 1.0
    if not all(interval.is_known for interval in (noop, *missed)):
        return "there are too few values for an interval"
    if above(noop, 0) == OPEN:
        return "none is seen"
    at_least = max(max(0.0, miss.low, -miss.high) for miss in missed)
    at_most = max(max(abs(miss.low), abs(miss.high)) for miss in missed)
    return Interval(max(abs(miss.value) for miss in missed), at_least, at_most).map(lambda ns: ns / unit)


@number("detach and attach, alone: {label}", timed="calls", over={"label": PAIR})
def cycle(record: Record, label: str) -> Interval | None:
    """Nanoseconds of the bare cycle."""
    return statistics.per_call(record, (label, CYCLE)) if record.has(label, CYCLE) else None


@number("detach and attach / what CDLL costs more: {label}", timed="calls", over={"label": PAIR})
def cycle_share(record: Record, label: str) -> Location | str | None:
    """The bare cycle as a share of the loaders' difference, where CDLL is known to cost more."""
    if not record.has(label, CYCLE):
        return None
    if above(price(record, label, "noop").interval, 0) != YES:
        return "CDLL is not known to cost more"
    return statistics.over_units(record, medians(record.times(label, CYCLE)) / extra(record, label, "noop"))


@number("idle hook on {GIL}", timed="calls")
def audit_cost(record: Record) -> Interval | None:
    """Nanoseconds that one idle audit hook adds to a CDLL call, with the GIL. The two arms run in different
    processes."""
    if not record.has(GIL, "CDLL noop, audited"):
        return None
    audited, plain = (
        record.times(GIL, f"CDLL noop, {how}") - record.times(GIL, f"{EMPTY} ({how})")
        for how in ("audited", "not audited")
    )
    return statistics.over_units(record, medians(audited - plain)).at()


# ---- the counting thread ----


def by_condition(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the free-threaded build under another label where its GIL was on, as no column says any more."""
    if "condition" not in runs:
        return runs
    return runs.assign(interpreter=runs.interpreter + runs.condition.fillna("")).drop(columns="condition")


def in_condition(runs: pd.DataFrame, label: str, **which) -> pd.DataFrame:
    """The runs under one of these labels."""
    return chosen(by_condition(runs), interpreter=label, **which)


@number("share kept by {loader} on {label}", frame="counting thread", over={"label": CONDITIONS, "loader": LOADERS})
def share_kept(runs: pd.DataFrame, label: str, loader: str) -> Location | None:
    """Share of its own rate that the counting thread keeps beside a call, over processes."""
    runs = in_condition(runs, label, loader=loader)
    rate = {phase: runs[f"counts.{phase}"] / runs[f"elapsed.{phase}"] for phase in ("call", "reference")}
    return location((rate["call"] / rate["reference"]).to_numpy())


@number("longest pause beside PyDLL, in ms: {GIL}", frame="counting thread")
@number("longest pause beside PyDLL / the call: {GIL}", frame="counting thread", over_ms=e.SLEEP_MS)
def pause(runs: pd.DataFrame, label: str = GIL, loader: str = "PyDLL", over_ms: float = 1.0) -> Counted:
    """The longest pause of the counting thread beside a call, the median over processes."""
    pauses_ms = in_condition(runs, label, loader=loader)["pauses.call"] / 1e6
    return Counted(float(pauses_ms.median()) / over_ms)


# ---- crashes and deadlocks ----


def crashes(runs: pd.DataFrame, label: str, loader: str) -> Share:
    """Processes that crashed on a call of Python's C API."""
    ended = chosen(runs, interpreter=label, loader=loader, what="C API").ended
    return Share(int(ended.str.startswith("killed by").sum()), len(ended))


def deadlocks(runs: pd.DataFrame, label: str, loader: str) -> Share:
    """Handshakes that did not end, or whose process crashed or hung."""
    met = chosen(runs, interpreter=label, loader=loader, what="handshake").met
    return Share(int((~met.eq(True)).sum()), len(met))


ENDS = {"label": PAIR, "loader": LOADERS}


@number("crashes of the C API through {loader} on {label}", over=ENDS, what="C API", count=crashes)
@number("deadlocks of {loader} on {label}", over=ENDS, what="handshake", count=deadlocks)
def events(session: Session, label: str, loader: str, what: str, count) -> Share:
    """An event counts, whatever else ran."""
    title = e.SAFE if (label, loader, what) in e.SHOULD_BE_SAFE else e.RISKY
    return count(session.frame(title), label, loader)


# ---- as the talk ran it ----


# What the talk's program prints, and the loader whose value counts over that of the other one.
AS_RUN = {"seconds": ("CDLL", "PyDLL"), "iterations": ("PyDLL", "CDLL")}


def rounds(runs: pd.DataFrame, label: str, value: str) -> pd.DataFrame:
    """What the talk's program prints of both loaders, and their ratio: a row for each round."""
    printed = in_condition(runs, label).pivot(index="round", columns="loader", values=value).dropna()
    one, other = AS_RUN[value]
    return printed.assign(ratio=printed[one] / printed[other])


@number("ratio as run on {label}", frame=e.GETPID, over={"label": PAIR}, value="seconds")
@number(
    "count beside PyDLL over that beside CDLL on {label}", frame=e.BLOCKING, over={"label": PAIR}, value="iterations"
)
def as_run(runs: pd.DataFrame, label: str, value: str) -> Location:
    """The ratio of the loaders, over all rounds. That of times is one of logarithms; a count may be nearly nothing."""
    ratios, is_time = rounds(runs, label, value).ratio.to_numpy(), value == "seconds"
    return Location.of(np.log(ratios) if is_time else ratios, log=is_time, signed=False)


@number("rounds with the larger ratio on {label}", frame=e.GETPID, over={"label": PAIR})
def larger_ratios(runs: pd.DataFrame, label: str) -> Share:
    """In how many rounds the talk's program prints the larger ratio on this build. Equal ones are none of the
    free-threaded build's."""
    ratios = pd.DataFrame({build: rounds(runs, build, "seconds").ratio for build in PAIR}).dropna()
    gains_more = ratios[FREE_THREADED] > ratios[GIL]
    return Share(int((gains_more == (label == FREE_THREADED)).sum()), len(ratios))
