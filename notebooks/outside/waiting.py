"""The numbers of the page on who waits for whom: from rows to numbers. A child is one trial."""

from collections.abc import Callable

import pandas as pd

from ffilab.judge.estimates import Interval, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen, interval_of
from ffilab.setup.catalogue import GIL
from notebooks.outside import experiment as e
from notebooks.outside.states import NEWER, OF_PAIR, OLDER, PAIR

LOCKS, SHUTDOWN, GUARDS, FORK = "lock order", "shutdown", "guards", "fork"
SIGNALS, CALLS, SECTIONS, TWICE = "signals", "pending calls", "critical sections", "a section twice"
# A child that never came to the point, or whose tool was not built, tried nothing.
NO_TRIAL = ("not at the point", "not here")
HANGS, ENDS, DURING, WHILE_BUSY, LOSES = (
    {"column": "outcome", "value": outcome}
    for outcome in ("hangs", "ends", "during the call", "while it lasts", "loses counts")
)
CAME_THROUGH = {"column": "fate", "value": "came through"}
# What the process says at its end of the thread that attached.
FATES = {"hang": "hangs", "come through": "came through", "are terminated": "terminated"}
# The last of FORKS, unless a reader adds another one.
BY_DEFAULT = {"how": "the default", "column": "method", "value": "forkserver"}
OF_LOCKS = OF_PAIR | {"way": e.WAYS, "stop": e.WORLD}
OF_THREADS = OF_PAIR | {"thread": [*e.MANNERS]}
OF_SIGNALS = OF_PAIR | {"how": e.HOWS}
OF_CALLS = OF_PAIR | {"main": [*e.MAINS]}
OF_GUARDS = {"interpreter": NEWER, "by": e.GUARDS}
# Of rows of children, which count.
Event = Callable[[pd.DataFrame], pd.Series]
number = Declarations()


def trials(runs: pd.DataFrame, **which) -> pd.DataFrame:
    """Children that tried."""
    rows = runs if runs.empty else chosen(runs, **which)
    return rows if rows.empty else rows[~rows.outcome.isin(NO_TRIAL)]


def is_killed(rows: pd.DataFrame) -> pd.Series:
    """By SIGSEGV, or by SIGABRT after a fatal error."""
    return rows.outcome.str.startswith("killed")


def is_late(rows: pd.DataFrame) -> pd.Series:
    """Finalization did not wait: the process ended, and the thread was not through."""
    return (rows.outcome == "ends") & (rows.fate != "came through")


@number("children killed: {thread}, {interpreter}", frame=SHUTDOWN, over=OF_THREADS, event=is_killed)
@number("threads that come too late: {by}, {interpreter}", frame=GUARDS, over=OF_GUARDS, event=is_late)
def share_of(runs: pd.DataFrame, event: Event, **which) -> Share | str | None:
    """Children for which `event(rows)` is true, among those that tried; if none did, why, or None."""
    rows = trials(runs, **which)
    if len(rows):
        return Share(int(event(rows).sum()), len(rows))
    label = which.get("interpreter", GIL)
    return None if label in PAIR else f"{label} was not measured here; KERNELS=all measures it as well"


@number("children that hang: {way}, {stop}, {interpreter}", frame=LOCKS, over=OF_LOCKS, **HANGS)
@number("children that hang: detached, or a PyMutex", frame=LOCKS, way=e.WAYS[1:], **HANGS)
@number("children that hang: {thread}, {interpreter}", frame=SHUTDOWN, over=OF_THREADS, **HANGS)
@number("children that end well: {thread}, {interpreter}", frame=SHUTDOWN, over=OF_THREADS, **ENDS)
@number(
    "threads that {value}: {thread}, {interpreter}", frame=SHUTDOWN, over=OF_THREADS | {"value": FATES}, column="fate"
)
@number(
    "threads that come through: {thread}, {interpreter}",
    frame=SHUTDOWN,
    over={"interpreter": NEWER, "thread": ("a new state",)},
    **CAME_THROUGH,
)
@number("handlers run during the call: {how}, {interpreter}", frame=SIGNALS, over=OF_SIGNALS, **DURING)
@number("handlers late: {how}, {interpreter}", frame=SIGNALS, over=OF_SIGNALS, column="late", value=True)
@number("pending calls run while main is busy: {main}, {interpreter}", frame=CALLS, over=OF_CALLS, **WHILE_BUSY)
@number("children that hang: {how}, {interpreter}", frame=FORK, over=OF_PAIR | {"how": e.FORKS}, **HANGS)
@number("children that start with forkserver: {interpreter}", frame=FORK, over=OF_PAIR, **BY_DEFAULT)
@number(
    "children that hang: in a section, {inside}, {interpreter}",
    frame=SECTIONS,
    over=OF_PAIR | {"inside": e.IN_SECTION[:2]},
    **HANGS,
)
@number(
    "children that lose counts: {inside}, {interpreter}",
    frame=TWICE,
    over={"interpreter": (*PAIR, *OLDER, *NEWER), "inside": e.IN_SECTION[2:]},
    **LOSES,
)
@number(
    "threads that come through: {by}, {interpreter}",
    frame=GUARDS,
    over=OF_GUARDS,
    fate=("came through", "refused"),
    **CAME_THROUGH,
)
@number("children that hang: {by}, {interpreter}", frame=GUARDS, over=OF_GUARDS, **HANGS)
def share(runs: pd.DataFrame, column: str, value, **which) -> Share | str | None:
    """Children whose `column` has this value; why, or None, if no child told it."""
    tellers = runs if column in runs else runs.iloc[:0]
    return share_of(tellers, lambda rows: rows[column] == value, **which)


@number("children that start otherwise than with forkserver: {interpreter}", frame=FORK, over=OF_PAIR)
def otherwise(runs: pd.DataFrame, interpreter: str) -> Share | str | None:
    """Children whose default start method is another than forkserver."""
    by_default = share(runs, interpreter=interpreter, **BY_DEFAULT)
    if not isinstance(by_default, Share):
        return by_default
    return Share(by_default.trials - by_default.events, by_default.trials)


@number("ms until a handler runs: {how}, {interpreter}", frame=SIGNALS, over=OF_SIGNALS, column="ms")
@number("ms until a pending call runs: {main}, {interpreter}", frame=CALLS, over=OF_CALLS, column="ms")
@number("ns of PyErr_CheckSignals: {interpreter}", frame="price of a check", over=OF_PAIR, column="ns")
def typical(runs: pd.DataFrame, column: str, **which) -> Interval | None:
    """Trimmed mean over the children, in the unit of the column."""
    return None if runs.empty else interval_of(runs, column, **which)
