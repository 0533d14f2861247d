"""The records of the page on thread states, and the way in: from rows to numbers."""

import itertools
from functools import partial

import numpy as np

from ffilab.judge.estimates import Location, Measurement, Share
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import chosen, ratio
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from native.outside.ways import TOOLS
from notebooks.outside.experiment import ALONE, BRIDGES, BUSY, CODE, EVENTS, THREADS

BOTH = (GIL, FREE_THREADED)
STATES = {"made": False, "kept": True}
COPIES = {"own": "", "shared": ", PYTHON_TLBC=0"}


def numbers(session: Session) -> Makers:
    made: Makers = {}
    for label, (event, counts) in itertools.product(BOTH, EVENTS.items()):
        for count in counts:
            for state in STATES:
                made[f"a state {state}: {count} {event}, ns on {label}"] = partial(
                    centre, partial(ends, session, label, event, count, state)
                )
        for count in counts[1:]:
            made[f"{count} {event} / none, {label}"] = partial(times_as_long, session, label, event, count)
        made[f"a state made / kept: {counts[1]} {event}, {label}"] = partial(made_or_kept, session, label, event)
    made[f"1 {CODE} / none, {FREE_THREADED}, PYTHON_TLBC=0"] = partial(
        times_as_long, session, FREE_THREADED, CODE, 1, "shared"
    )
    for count in (0, 1):
        made[f"a state made: {count} {THREADS}, {FREE_THREADED} / {GIL}"] = partial(between_builds, session, count)
    for count in EVENTS[THREADS]:
        made[f"readings of the clock in one end: {count} {THREADS}"] = partial(readings, session, count)
    for label, tool in itertools.product(BOTH, TOOLS):
        for state in STATES:
            made[f"way in: {tool}, {state}, ns on {label}"] = partial(centre, partial(way, session, label, tool, state))
        made[f"way in: {tool}, made / kept, {label}"] = partial(tool_made_or_kept, session, label, tool)
    for label, tool, state, outcome in (
        *((label, "ctypes", "made", "survived") for label in BOTH),
        *((label, "ctypes", "kept", "lost") for label in BOTH),
        *((label, "cffi", "made", "lost") for label in BOTH),
    ):
        made[f"processes in which a threading.local {outcome}: {tool}, {state}, {label}"] = partial(
            local, session, label, tool, state, outcome
        )
    for label, beside in itertools.product(BOTH, (ALONE, BUSY)):
        for bridge in BRIDGES:
            made[f"answer by {bridge}, {beside}: µs on {label}"] = partial(
                centre, partial(answer, session, label, beside, bridge)
            )
        made[f"answer by call_soon_threadsafe / eventfd, {beside}, {label}"] = partial(
            by_call_or_eventfd, session, label, beside
        )
    return made


def centre(values) -> Location | None:
    """The mean over processes."""
    found = values()
    return Location.of(found) if len(found) else None


def ends(session: Session, label: str, event: str, count: int, state: str, copy: str = "own") -> np.ndarray:
    """ns of a way in and out, one value for each process, after so many of an event."""
    rows = chosen(session.frame("end of a state"), interpreter=label, event=event, count=count, bytecode=copy)
    return rows["kept" if state == "kept" else "ns"].to_numpy(float)


def times_as_long(session: Session, label: str, event: str, count: int, copy: str = "own") -> Measurement | None:
    """A state that is made, after so many of an event over before any, in the same processes."""
    return ratio(*(ends(session, label, event, one, "made", copy) for one in (count, 0)))


def made_or_kept(session: Session, label: str, event: str) -> Measurement | None:
    """A state that is made each time over one that is kept, after the first of an event."""
    return ratio(*(ends(session, label, event, EVENTS[event][1], state) for state in STATES))


def between_builds(session: Session, count: int) -> Measurement | None:
    """A state that is made, without the GIL over with it."""
    return ratio(*(ends(session, label, THREADS, count, "made") for label in (FREE_THREADED, GIL)))


def readings(session: Session, count: int) -> Location:
    """Readings of the clock in one way in and out, without the two of the measurement."""
    return Location.of(chosen(session.frame("visits"), count=count).readings.to_numpy(float))


def way(session: Session, label: str, tool: str, state: str) -> np.ndarray:
    """ns of a callback of a tool, one value for each process."""
    rows = chosen(session.frame("ways in"), interpreter=label, tool=tool, kept=STATES[state])
    return rows.ns.to_numpy(float)


def tool_made_or_kept(session: Session, label: str, tool: str) -> Measurement | None:
    return ratio(*(way(session, label, tool, state) for state in STATES))


def local(session: Session, label: str, tool: str, state: str, outcome: str) -> Share | None:
    """Processes with this outcome of a value in a threading.local over five callbacks, among all."""
    rows = chosen(session.frame("threading.local"), interpreter=label, tool=tool, kept=STATES[state])
    return Share(int((rows.outcome == outcome).sum()), len(rows)) if len(rows) else None


def answer(session: Session, label: str, beside: str, bridge: str) -> np.ndarray:
    """µs from an answer in C to its coroutine, the median of each process."""
    return chosen(session.frame("bridge"), interpreter=label, beside=beside, way=bridge).us.to_numpy(float)


def by_call_or_eventfd(session: Session, label: str, beside: str) -> Measurement | None:
    return ratio(*(answer(session, label, beside, bridge) for bridge in ("call_soon_threadsafe", "eventfd")))
