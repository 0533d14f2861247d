"""The records of the page on thread states, and on how tools attach: from rows to numbers."""

import itertools
from functools import partial

import numpy as np

from ffilab.judge.estimates import Estimate, Location, Ranked, Share
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import chosen, ratio
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from native.outside.ways import TOOLS
from notebooks.outside.experiment import (
    ALONE,
    BRIDGES,
    BUSY,
    EVENTS,
    HOW,
    NOTHING,
    OBJECT_LEFT,
    OTHERS,
    OTHERS_THERE,
    ROWS,
    THREADS,
    TOGETHER,
    VISITED,
)
from notebooks.outside.results import NEWER, PAIR

STATES = {"made": False, "kept": True}
THREAD_BESIDE = {0: "beside others", 1: "after others"}
UNITS = {"ns": 1, "µs": 1000}
# The builds of E8, by the columns of its records.
RUN_AS = {
    GIL: {"interpreter": GIL, "gil": "as built"},
    FREE_THREADED: {"interpreter": FREE_THREADED, "gil": "as built"},
    f"{FREE_THREADED}, PYTHON_GIL=1": {"interpreter": FREE_THREADED, "gil": "on"},
}
OPPOSITE = {"survived": "lost", "lost": "survived"}


def numbers(session: Session) -> Makers:
    made: Makers = {}
    # What a sentence asks of a later version has a name, measured or not.
    labels = dict.fromkeys((*every(session), *NEWER))
    for label, (event, counts) in itertools.product(labels, EVENTS.items()):
        for count in counts:
            for state, unit in (("made", "µs"), ("kept", "ns")):
                made[f"a state {state}: {count} {event}, {unit} on {label}"] = partial(
                    centre, partial(ends, session, label, event, count, state), UNITS[unit]
                )
        for count in counts[1:]:
            made[f"{count} {event} / none, {label}"] = partial(times_as_long, session, label, event, count)
        made[f"a state made / kept: {counts[1]} {event}, {label}"] = partial(made_or_kept, session, label, event)
    for label, count in itertools.product(NEWER, (0, 1)):
        by_view = partial(ends, session, label, THREADS, count, "by_view")
        made[f"a state made by a view: {count} {THREADS}, µs on {label}"] = partial(centre, by_view, 1000)
        made[f"a state made by a view / by PyGILState_Ensure: {count} {THREADS}, {label}"] = partial(
            ensure_or_view, session, label, count
        )
    for event in EVENTS:
        made[f"1 {event} / none, {FREE_THREADED}, PYTHON_TLBC=0"] = partial(
            times_as_long, session, FREE_THREADED, event, 1, "shared"
        )
    for label in PAIR:
        made[f"ns longer beside {OTHERS[1]} newer states, {label}"] = partial(longer, session, label)
    for count in (0, 1):
        made[f"a state made: {count} {THREADS}, {FREE_THREADED} / {GIL}"] = partial(between_builds, session, count)
    for event in VISITED:
        for count in EVENTS[event]:
            made[f"readings of the clock in one end: {count} {event}"] = partial(readings, session, event, count)
    for label in PAIR:
        for after, others in THREAD_BESIDE.items():
            made[f"a Thread, {others}: µs on {label}"] = partial(centre, partial(thread, session, label, after), 1000)
        made[f"a Thread, after others / beside, {label}"] = partial(after_or_beside, session, label)
    for label, state in itertools.product(PAIR, HOW):
        for before, threads in itertools.product((NOTHING, OTHERS_THERE, OBJECT_LEFT), TOGETHER):
            made[f"{state} by {threads}, before it {before}: ns on {label}"] = partial(
                centre, partial(together, session, label, before, state, threads), 1
            )
            made[f"{state} by {threads} / by 1, before it {before}: rate on {label}"] = partial(
                rate_together, session, label, before, state, threads
            )
        made[f"{state} by 1, other states / nothing before it, {label}"] = partial(beside_states, session, label, state)
    for build, rows in itertools.product(RUN_AS, ROWS):
        made[f"rows per second, {rows} in a callback, kept / made on {build}"] = partial(
            rows_kept_or_made, session, build, rows
        )
    for label, tool in itertools.product(PAIR, TOOLS):
        for state, (unit, ns) in itertools.product(STATES, UNITS.items()):
            made[f"way in: {tool}, {state}, {unit} on {label}"] = partial(
                centre, partial(way, session, label, tool, state), ns
            )
        made[f"way in: {tool}, made / kept, {label}"] = partial(tool_made_or_kept, session, label, tool)
    for label, tool, state, outcome in (
        *((label, "ctypes", "made", "survived") for label in PAIR),
        *((label, "ctypes", "kept", "lost") for label in PAIR),
        *((label, "cffi", "made", "lost") for label in PAIR),
    ):
        made[f"processes in which a threading.local {outcome}: {tool}, {state}, {label}"] = partial(
            local, session, label, tool, state, outcome
        )
    for label, beside in itertools.product(PAIR, (ALONE, BUSY)):
        for bridge in BRIDGES:
            for unit, us in (("µs", 1), ("ms", 1000)):
                made[f"answer by {bridge}, {beside}: {unit} on {label}"] = partial(
                    middle, session, label, beside, bridge, us
                )
            if bridge != "eventfd":
                made[f"answer by {bridge} / eventfd, {beside}, {label}"] = partial(
                    over_eventfd, session, label, beside, bridge
                )
    return made


def every(session: Session) -> list[str]:
    """The pair, and the other interpreters of a session."""
    return list(dict.fromkeys((*PAIR, *session.interpreters)))


def centre(values, ns: float) -> Location | None:
    """The mean over processes, in a unit of so many ns."""
    found = values()
    return Location.of(found / ns) if len(found) else None


def ends(session: Session, label: str, event: str, count: int, state: str, copy: str = "own") -> np.ndarray:
    """ns to attach and detach, one value for each process, after so many of an event."""
    rows = chosen(session.frame("end of a state"), interpreter=label, event=event, count=count, bytecode=copy)
    column = "ns" if state == "made" else state
    return rows[column].to_numpy(float) if column in rows else np.array([])


def times_as_long(session: Session, label: str, event: str, count: int, copy: str = "own") -> Estimate | None:
    """A state that is made, after so many of an event over before any, in the same processes."""
    return ratio(*(ends(session, label, event, one, "made", copy) for one in (count, 0)))


def made_or_kept(session: Session, label: str, event: str) -> Estimate | None:
    """A state that is made each time over one that is kept, after the first of an event."""
    return ratio(*(ends(session, label, event, EVENTS[event][1], state) for state in STATES))


def ensure_or_view(session: Session, label: str, count: int) -> Estimate | None:
    """A state that is made by a view of PEP 788 over one that PyGILState_Ensure makes."""
    return ratio(*(ends(session, label, THREADS, count, state) for state in ("by_view", "made")))


def between_builds(session: Session, count: int) -> Estimate | None:
    """A state that is made, without the GIL over with it."""
    return ratio(*(ends(session, label, THREADS, count, "made") for label in (FREE_THREADED, GIL)))


def longer(session: Session, label: str) -> Estimate | None:
    """ns that PyThreadState_Delete takes longer with many states before it in the list than with one, in the same
    processes."""
    few, many = (
        chosen(session.frame("end beside others"), interpreter=label, others=one).ns.to_numpy(float) for one in OTHERS
    )
    return Location.of(many - few) if len(few) else None


def readings(session: Session, event: str, count: int, label: str = FREE_THREADED) -> Location | None:
    """Readings of the clock in one end of a state, without the two of the measurement."""
    rows = chosen(session.frame("visits"), interpreter=label, event=event, count=count)
    return Location.of(rows.readings.to_numpy(float)) if len(rows) else None


def thread(session: Session, label: str, after: int) -> np.ndarray:
    """ns to start and join a Thread, one value for each process."""
    return chosen(session.frame("a thread of Python"), interpreter=label, after=after).ns.to_numpy(float)


def after_or_beside(session: Session, label: str) -> Estimate | None:
    """A Thread after others have ended over one while they wait."""
    return ratio(*(thread(session, label, after) for after in (1, 0)))


def together(session: Session, label: str, before: str, state: str, threads: int) -> np.ndarray:
    """ns to attach and detach, the time by the passes of so many threads, one value for each process."""
    of_threads = session.frame("several threads")
    return chosen(of_threads, interpreter=label, before=before, state=state, threads=threads).ns.to_numpy(float)


def rate_together(session: Session, label: str, before: str, state: str, threads: int) -> Estimate | None:
    """Passes of so many threads over those of one, in the same time and the same processes."""
    return ratio(*(together(session, label, before, state, count) for count in (1, threads)))


def beside_states(session: Session, label: str, state: str) -> Estimate | None:
    """One thread in a process with other states, over one without."""
    return ratio(*(together(session, label, before, state, 1) for before in (OTHERS_THERE, NOTHING)))


def rows_kept_or_made(session: Session, build: str, rows: int) -> Estimate | None:
    """Rows per second with a kept state, over those with one made for each callback of so many rows."""
    of_build = chosen(session.frame("rows per second"), rows=rows, **RUN_AS[build])
    return ratio(*(chosen(of_build, kept=STATES[state]).rows_per_s.to_numpy(float) for state in ("kept", "made")))


def way(session: Session, label: str, tool: str, state: str) -> np.ndarray:
    """ns of a callback of a tool, one value for each process."""
    rows = chosen(session.frame("ways in"), interpreter=label, tool=tool, kept=STATES[state])
    return rows.ns.to_numpy(float)


def tool_made_or_kept(session: Session, label: str, tool: str) -> Estimate | None:
    return ratio(*(way(session, label, tool, state) for state in STATES))


def local(session: Session, label: str, tool: str, state: str, outcome: str) -> Share | None:
    """Processes in which a value in a threading.local, over five callbacks, did anything but the opposite, among
    all."""
    rows = chosen(session.frame("threading.local"), interpreter=label, tool=tool, kept=STATES[state])
    return Share(int((rows.outcome != OPPOSITE[outcome]).sum()), len(rows)) if len(rows) else None


def answer(session: Session, label: str, beside: str, bridge: str) -> np.ndarray:
    """µs from an answer in C to its coroutine, the median of each process."""
    return chosen(session.frame("bridge"), interpreter=label, beside=beside, way=bridge).us.to_numpy(float)


def middle(session: Session, label: str, beside: str, bridge: str, us: float) -> Estimate | None:
    """The median over processes: an answer waits for one switch interval, or for two."""
    found = answer(session, label, beside, bridge)
    return Ranked.of(found / us) if len(found) else None


def over_eventfd(session: Session, label: str, beside: str, bridge: str) -> Estimate | None:
    return ratio(*(answer(session, label, beside, one) for one in (bridge, "eventfd")))
