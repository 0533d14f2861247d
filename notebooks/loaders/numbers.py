"""The numbers of the chapter "CDLL and PyDLL", by name, and its own control. The rules: claims.toml, sentences.toml."""

from functools import partial

import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Counted, Interval, Location, Share
from ffilab.judge.numbers import Made, Makers
from ffilab.judge.questions import OPEN, YES, above
from ffilab.measure.record import medians
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.loaders import results
from notebooks.loaders.experiment import BLOCKING, GETPID, RISKY, SAFE, SHOULD_BE_SAFE, SLEEP_MS
from notebooks.loaders.results import LOADERS

# The free-threaded build with the GIL switched on, in the names of numbers.
GIL_ON = f"{FREE_THREADED} with the GIL on"
CONDITIONS = {GIL: GIL, FREE_THREADED: FREE_THREADED, results.SWITCHED: GIL_ON}


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the same call twice, where the loaders are compared."""
    return [
        Control("A/A of the loaders", f"CDLL noop again / CDLL noop on {label}", "calls", found.estimate)
        for label, found in results.twins(session.timed("calls")).items()
    ]


def numbers(session: Session) -> Makers:
    made: Makers = {}

    def calls(name: str, make, *arguments) -> None:
        """A number of the timed calls."""
        made[name] = lambda: make(session.timed("calls"), *arguments)

    for label, where in CONDITIONS.items():
        for function in results.FUNCTIONS:
            calls(f"{function}: ratio on {where}", compared, label, function, "estimate")
        calls(f"noop: what CDLL costs more on {where}", compared, label, "noop", "difference")
        for loader in LOADERS:
            made[f"share kept by {loader} on {where}"] = partial(share, session, label, loader)
    for label in (GIL, FREE_THREADED):
        made[f"ratio as run on {label}"] = partial(as_run, session, GETPID, "seconds", "CDLL", label)
        made[f"count beside PyDLL over that beside CDLL on {label}"] = partial(
            as_run, session, BLOCKING, "iterations", "PyDLL", label
        )
        for loader in LOADERS:
            made[f"crashes of the C API through {loader} on {label}"] = partial(
                ends, session, label, loader, "C API", "crashes"
            )
            made[f"deadlocks of {loader} on {label}"] = partial(ends, session, label, loader, "handshake", "deadlocks")
        calls(f"detach and attach, alone: {label}", alone, label)
        calls(f"detach and attach / what CDLL costs more: {label}", cycle_share, label)
        for what in ("difference", "ratio"):
            calls(f"miss of noop's {what} / what is allowed: {label}", largest_miss, label, what)
            calls(f"miss of noop's {what}, in ns: {label}", largest_miss, label, what, False)
    calls(f"noop: price on {GIL} less on {FREE_THREADED}", results.gil_over_free_threaded)
    for function in results.FUNCTIONS:
        both = [results.cells(label, function) for label in (GIL, FREE_THREADED)]
        calls(f"{function}: ratio on {GIL} / on {FREE_THREADED}", statistics.ratio_of_ratios, *both)
    calls(f"idle hook on {GIL}", results.audit_cost)
    made[f"longest pause beside PyDLL, in ms: {GIL}"] = partial(pause, session, 1.0)
    made[f"longest pause beside PyDLL / the call: {GIL}"] = partial(pause, session, SLEEP_MS)
    for label in (GIL, FREE_THREADED):
        made[f"rounds with the larger ratio on {label}"] = partial(rounds, session, label)
    return made


def compared(record, label: str, function: str, how: str) -> Made:
    """CDLL and PyDLL: the ratio of their times, or what CDLL takes more, in ns."""
    measured = record.has(*results.cells(label, function)[0])
    return getattr(results.comparison(record, label, function), how) if measured else None


def share(session: Session, label: str, loader: str) -> Made:
    return value_of(results.shares_kept(session.frame("counting thread")), label, loader, "estimate")


def pause(session: Session, over_ms: float) -> Counted:
    """Median over processes."""
    return Counted(value_of(results.shares_kept(session.frame("counting thread")), GIL, "PyDLL", "pause_ms") / over_ms)


def as_run(session: Session, title: str, value: str, over: str, label: str) -> Location:
    return results.as_run(session.frame(title), value, over).set_index("interpreter").estimate[label]


def ends(session: Session, label: str, loader: str, what: str, kind: str) -> Share | None:
    """An event counts, whatever else ran."""
    title = SAFE if (label, loader, what) in SHOULD_BE_SAFE else RISKY
    return value_of(results.ends(session.frame(title, disturbed=True)), label, loader, kind)


def value_of(frame: pd.DataFrame, label: str, loader: str, column: str):
    rows = frame[(frame.interpreter == label) & (frame.loader == loader)]
    return rows.iloc[0][column] if len(rows) else None


def alone(record, label: str) -> Made:
    measured = record.has(label, "detach and attach")
    return statistics.per_call(record, (label, "detach and attach")) if measured else None


def cycle_share(record, label: str) -> Made:
    """The bare cycle as a share of the loaders' difference, where CDLL is known to cost more."""
    if not record.has(label, "detach and attach"):
        return None
    if above(results.comparison(record, label, "noop").difference, 0) != YES:
        return "CDLL is not known to cost more"
    cycle = medians(record.times(label, "detach and attach"))
    return statistics.over_units(record, cycle / results.extra(record, label, "noop"))


def largest_miss(record, label: str, what: str, over_allowed: bool = True) -> Interval | str:
    """By how much noop's number misses the price of the function where it is farthest off, over what the rule allows,
    or in ns: the bounds are those of the largest of several."""
    noop, missed = results.price(record, label, "noop").at(), results.misses(record, label)[what].values()
    unit = results.WITHIN * abs(noop.value) if over_allowed else 1.0
    if not all(one.is_known for one in (noop, *missed)):
        return "there are too few values for an interval"
    if above(noop, 0) == OPEN:
        return "none is seen"
    at_least = max(max(0.0, one.low, -one.high) for one in missed)
    at_most = max(max(abs(one.low), abs(one.high)) for one in missed)
    return Interval(max(abs(one.value) for one in missed), at_least, at_most).map(lambda ns: ns / unit)


def rounds(session: Session, label: str) -> Share:
    """In how many rounds the talk's program prints the larger ratio on this build. Equal ones are none of the
    free-threaded build's."""
    found = results.as_run(session.frame(GETPID), "seconds", "CDLL").set_index("interpreter").ratios
    ratios = pd.DataFrame({build: found[build] for build in (GIL, FREE_THREADED)}).dropna()
    gains_more = ratios[FREE_THREADED] > ratios[GIL]
    return Share(int((gains_more == (label == FREE_THREADED)).sum()), len(ratios))
