"""The numbers of the page on thread states, and on how tools attach. One value stands for each process."""

import numpy as np
import pandas as pd

from ffilab.judge.controls import Control
from ffilab.judge.estimates import Estimate, Location, Ranked, Share
from ffilab.judge.numbers import Declarations, every
from ffilab.judge.processes import chosen, difference, location, ratio
from ffilab.measure.session import Session
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from native.outside.ways import TOOLS
from notebooks.outside import experiment as e

PAIR = (GIL, FREE_THREADED)
# What came after the pair, with the guards of PEP 788, and what came before.
NEWER = [label for label, one in BY_LABEL.items() if one.version > BY_LABEL[GIL].version]
OLDER = [label for label, one in BY_LABEL.items() if one.version < BY_LABEL[GIL].version]
END, SEVERAL, A_THREAD = "end of a state", "several threads", "a thread of Python"
BESIDE, VISITS, WAYS, BRIDGE, LOCAL = "end beside others", "visits", "ways in", "bridge", "threading.local"
STATES = {"made": False, "kept": True}
# What holds of processes, and what is read of them: at the end of a state each has a column for each kind.
ONCE, NEVER = {"count": 1}, {"count": 0}
MADE, KEPT, BY_VIEW = ({"column": column} for column in ("ns", "kept", "by_view"))
IS_MADE, IS_KEPT = ({"kept": is_kept} for is_kept in STATES.values())
AGAIN = {"column": "again"}
ROWS = "rows per second"
WITHOUT_GIL, WITH_GIL = {"interpreter": FREE_THREADED}, {"interpreter": GIL}
# What happened before, and how often; and how often it did over never.
BEFORE = {
    f"{count} {event}": {"event": event, "count": count} for event, counts in e.EVENTS.items() for count in counts
}
OVER_NONE = {
    name: {"event": before["event"], "one": {"count": before["count"]}, "other": NEVER}
    for name, before in BEFORE.items()
    if before["count"]
}
SEEN = {name: before for name, before in BEFORE.items() if before["event"] in e.VISITED}
# The builds of E8, by the columns of its records.
RUN_AS = {
    GIL: {"interpreter": GIL, "gil": "as built"},
    FREE_THREADED: {"interpreter": FREE_THREADED, "gil": "as built"},
    f"{FREE_THREADED}, PYTHON_GIL=1": {"interpreter": FREE_THREADED, "gil": "on"},
}
EVENTS = {"event": [*e.EVENTS]}
OF_PAIR = {"interpreter": PAIR}
MADE_BY_CTYPES = OF_PAIR | {"case": {"ctypes, made": {"tool": "ctypes", "kept": False}}}
OTHER_CASES = OF_PAIR | {
    "case": {"ctypes, kept": {"tool": "ctypes", "kept": True}, "cffi, made": {"tool": "cffi", "kept": False}}
}
OF_TOOLS = OF_PAIR | {"tool": TOOLS}
OF_THREADS = OF_PAIR | {"state": e.HOW, "before": (e.NOTHING, e.OTHERS_THERE, e.OBJECT_LEFT)}
OF_BRIDGES = OF_PAIR | {"beside": (e.ALONE, e.BUSY), "way": [*e.BRIDGES]}
AFTER_THREADS = {"event": (e.THREADS,), "count": (0, 1)}
OF_VIEWS = AFTER_THREADS | {"interpreter": NEWER}
number = Declarations()


def every_and_newer(session: Session) -> list[str]:
    """What a sentence asks of a later version has a name, measured or not."""
    return list(dict.fromkeys((*every(session), *NEWER)))


OF_EVERY = {"interpreter": every_and_newer}


def ends(session: Session) -> pd.DataFrame:
    """The ends of states where each thread has its own copy of the bytecode."""
    return chosen(session.frame(END), bytecode="own")


def ends_with_shared_bytecode(session: Session) -> pd.DataFrame:
    return chosen(session.frame(END), bytecode="shared", interpreter=FREE_THREADED)


def values(runs: pd.DataFrame, column: str, **which) -> np.ndarray:
    """One value for each process; none if the column is of another version."""
    rows = chosen(runs, **which)
    return rows[column].to_numpy(float) if column in rows else np.array([])


@number("a state made: {after}, µs on {interpreter}", of=ends, over=OF_EVERY | {"after": BEFORE}, unit=1000)
@number("a state kept: {after}, ns on {interpreter}", of=ends, over=OF_EVERY | {"after": BEFORE}, **KEPT)
@number("a state made by a view: {count} {event}, µs on {interpreter}", of=ends, over=OF_VIEWS, unit=1000, **BY_VIEW)
@number(
    "readings of the clock in one end: {after}", frame=VISITS, over={"after": SEEN}, column="readings", **WITHOUT_GIL
)
@number(
    "a Thread, {after} others: µs on {interpreter}",
    frame=A_THREAD,
    over=OF_PAIR | {"after": {"beside": 0, "after": 1}},
    unit=1000,
)
@number(
    "{state} by {threads}, before it {before}: ns on {interpreter}",
    frame=SEVERAL,
    over=OF_THREADS | {"threads": e.TOGETHER},
)
@number("way in: {tool}, {kept}, ns on {interpreter}", frame=WAYS, over=OF_TOOLS | {"kept": STATES})
@number("way in: {tool}, {kept}, µs on {interpreter}", frame=WAYS, over=OF_TOOLS | {"kept": STATES}, unit=1000)
def mean(runs: pd.DataFrame, column: str = "ns", unit: float = 1, **which) -> Location | None:
    """The mean over processes of a column, in a unit of so many of its own."""
    return location(values(runs, column, **which) / unit)


@number("{after} / none, {interpreter}", of=ends, over=OF_EVERY | {"after": OVER_NONE})
@number(
    "1 {event} / none, {FREE_THREADED}, PYTHON_TLBC=0", of=ends_with_shared_bytecode, over=EVENTS, one=ONCE, other=NEVER
)
@number("a state made / kept: 1 {event}, {interpreter}", of=ends, over=OF_EVERY | EVENTS, one=MADE, other=KEPT, count=1)
@number(
    "a state made by a view / by PyGILState_Ensure: {count} {event}, {interpreter}",
    of=ends,
    over=OF_VIEWS,
    one=BY_VIEW,
    other=MADE,
)
@number(
    "a state made: {count} {event}, {FREE_THREADED} / {GIL}",
    of=ends,
    over=AFTER_THREADS,
    one=WITHOUT_GIL,
    other=WITH_GIL,
)
@number(
    "a Thread, after others / beside, {interpreter}", frame=A_THREAD, over=OF_PAIR, one={"after": 1}, other={"after": 0}
)
@number(
    "{state} by {threads} / by 1, before it {before}: rate on {interpreter}",
    frame=SEVERAL,
    over=OF_THREADS | {"threads": {threads: {"other": {"threads": threads}} for threads in e.TOGETHER}},
    one={"threads": 1},
)
@number(
    "{state} by 1, other states / nothing before it, {interpreter}",
    frame=SEVERAL,
    over=OF_PAIR | {"state": e.HOW},
    one={"before": e.OTHERS_THERE},
    other={"before": e.NOTHING},
    threads=1,
)
@number(
    "rows per second, {rows} in a callback, kept / made on {build}",
    frame=ROWS,
    over={"rows": e.ROWS, "build": RUN_AS},
    one=IS_KEPT,
    other=IS_MADE,
    column="rows_per_s",
)
@number("way in: {tool}, made / kept, {interpreter}", frame=WAYS, over=OF_TOOLS, one=IS_MADE, other=IS_KEPT)
@number(
    "answer by {way} / eventfd, {beside}, {interpreter}",
    frame=BRIDGE,
    over=OF_BRIDGES | {"way": {way: {"one": {"way": way}} for way in e.BRIDGES if way != "eventfd"}},
    other={"way": "eventfd"},
    column="us",
)
def over(runs: pd.DataFrame, one: dict, other: dict, **both) -> Estimate | None:
    """A column, ns if none is named, of processes of which `one` holds over that of those of which `other` does, in the
    order of processes."""
    return ratio(*(values(runs, **{"column": "ns"} | both | which) for which in (one, other)))


@number(f"ns longer beside {e.OTHERS[1]} newer states, {{interpreter}}", frame=BESIDE, over=OF_PAIR)
def longer(runs: pd.DataFrame, interpreter: str) -> Estimate | None:
    """ns that PyThreadState_Delete takes longer with many states before it in the list than with one, in the same
    processes."""
    few, many = (values(runs, "ns", interpreter=interpreter, others=others) for others in e.OTHERS)
    return difference(many, few)


@number(
    "processes in which a threading.local survived: {case}, {interpreter}",
    frame=LOCAL,
    over=MADE_BY_CTYPES,
    opposite="lost",
)
@number(
    "processes in which a threading.local lost: {case}, {interpreter}",
    frame=LOCAL,
    over=OTHER_CASES,
    opposite="survived",
)
def local(runs: pd.DataFrame, opposite: str, **which) -> Share | None:
    """Processes in which a value in a threading.local, over five callbacks, did anything but the opposite, among
    all."""
    return Share.of(chosen(runs, **which).outcome != opposite)


@number("answer by {way}, {beside}: µs on {interpreter}", frame=BRIDGE, over=OF_BRIDGES)
@number("answer by {way}, {beside}: ms on {interpreter}", frame=BRIDGE, over=OF_BRIDGES, unit=1000)
def middle(runs: pd.DataFrame, unit: float = 1, **which) -> Estimate | None:
    """The median over processes: an answer waits for one switch interval, or for two."""
    us = values(runs, "us", **which)
    return Ranked.of(us / unit) if len(us) else None


def controls(session: Session) -> list[Control]:
    """Equal cases under two names: a state made and ended, and a state that is kept, at twenty rows in a callback."""
    found = {
        (END, f"a state made, again / made, on {label}"): over(
            ends(session), AGAIN, MADE, interpreter=label, event=e.THREADS, count=1
        )
        for label in PAIR
    }
    kept = IS_KEPT | {"rows": e.ROWS[-1]}
    for build, which in RUN_AS.items():
        name = f"rows per second with a kept state, again / kept, on {build}"
        found[ROWS, name] = over(session.frame(ROWS), AGAIN, {"column": "rows_per_s"}, **kept, **which)
    return [Control("A/A of cases", what, title, one) for (title, what), one in found.items() if one]
