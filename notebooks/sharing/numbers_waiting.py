"""The numbers of who waits for whom: sections, locks, buffers, collections, interpreters. From rows to numbers."""

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Estimate, Location, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen, difference, exact, location, ratio
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.sharing import experiment as e

NESTED, TWICE, FAIR, BUFFERS = "nested sections", "a section taken twice", "fairness", "buffers"
ARRAY, BORROWED, PAUSE, BESIDE = "one array", "borrowed references", "pause", "collections beside calls"
ATTACH, CYCLES, INTERPRETERS, MODULES = (
    "attach beside collections",
    "cycles through C",
    "interpreters",
    "standard modules",
)
ELSEWHERE = "bindings in another interpreter"
PAIR = (GIL, FREE_THREADED)
OF_PAIR, WITH_GIL, WITHOUT = ({"interpreter": labels} for labels in (PAIR, (GIL,), (FREE_THREADED,)))
OF_FAIR = {"lock": e.FAIR_LOCKS, "holder": e.HOLDERS}
number = Declarations()


def values(runs: pd.DataFrame, column: str, **which) -> np.ndarray:
    """The column of the processes' rows, in the order in which they ran."""
    if runs.empty or column not in runs:
        return np.array([])
    rows = chosen(runs, **which).sort_values("process") if "process" in runs else chosen(runs, **which)
    return pd.to_numeric(rows[column]).dropna().to_numpy(dtype=float)


WRONG = {"a borrowed reference": {"what": "borrowed"}, "a strong reference": {"what": "strong"}}
ELEMENTS = {"one element": {"elements": 1}, "two elements": {"elements": 2}}


@number(
    "processes that lose updates: {outer}, {interpreter}",
    frame=NESTED,
    over=WITHOUT | {"outer": [*e.OUTER]},
    column="lost",
)
@number(
    "processes that lose updates: {outer}, {interpreter}",
    frame=NESTED,
    over=WITH_GIL | {"outer": ["nested"]},
    column="lost",
)
@number(
    "processes that lose additions: {words}, {interpreter}",
    frame=ARRAY,
    over=WITHOUT | {"words": ELEMENTS},
    column="lost",
)
@number(
    "processes that see another object: {words}, {interpreter}",
    frame=BORROWED,
    over=OF_PAIR | {"words": WRONG},
    column="wrong",
)
@number(
    "processes with wrong elements of a shared iterator, {interpreter}",
    frame=BORROWED,
    over=OF_PAIR,
    what="iterator",
    column="wrong",
)
@number(
    "processes with cycles left: {kind}, {interpreter}",
    frame=CYCLES,
    over=OF_PAIR | {"kind": ("Plain", "Traversed")},
    column="left",
)
@number(
    "processes that see the other's write: memoryview, {interpreter}", frame=INTERPRETERS, over=OF_PAIR, column="shared"
)
@number("processes that get a copy: list, {interpreter}", frame=INTERPRETERS, over=OF_PAIR, column="copied")
def happening(runs: pd.DataFrame, column: str, **which) -> Share | None:
    """Processes in which it happened once or more: something was lost, or wrong, or left, or seen."""
    return Share.of(values(runs, column, **which) > 0)


@number("a section taken twice / a recursive pthread mutex, {interpreter}", frame=TWICE, over=WITHOUT)
def twice(runs: pd.DataFrame, interpreter: str) -> Estimate | None:
    return ratio(*(values(runs, column, interpreter=interpreter) for column in ("section", "recursive")))


@number(
    "a lock taken twice, ns: {column}, {interpreter}", frame=TWICE, over=WITHOUT | {"column": ("section", "recursive")}
)
@number(
    "ms of a collection: {live} alive, {interpreter}", frame=PAUSE, over=WITHOUT | {"live": e.LIVE}, column="collect"
)
@number("ms of a pause: {live} alive, {interpreter}", frame=PAUSE, over=WITHOUT | {"live": e.LIVE}, column="gap")
@number("ms of a pause: {live} alive, {interpreter}", frame=PAUSE, over=WITH_GIL | {"live": e.LIVE[-1:]}, column="gap")
@number("ms to create an interpreter, {interpreter}", frame=INTERPRETERS, over=OF_PAIR, column="create_ms")
@number("KiB of an interpreter, {interpreter}", frame=INTERPRETERS, over=OF_PAIR, column="kib")
@number("ms to start a thread, {interpreter}", frame=INTERPRETERS, over=OF_PAIR, column="thread_ms")
@number("KiB of a thread, {interpreter}", frame=INTERPRETERS, over=OF_PAIR, column="thread_kib")
@number("ms to start a process, {interpreter}", frame=INTERPRETERS, over=OF_PAIR, column="process_ms")
@number("KiB of a process, {interpreter}", frame=INTERPRETERS, over=OF_PAIR, column="process_kib")
@number("ns to pass: {column}, {interpreter}", frame=INTERPRETERS, over=OF_PAIR | {"column": e.CROSSING})
@number("share of the slower thread: {lock}, {holder}", frame=FAIR, two_cores=True, over=OF_FAIR, column="share")
def typical(runs: pd.DataFrame, column: str, **which) -> Location | None:
    """The centre of the processes' values, in the unit of the column."""
    return location(values(runs, column, **which))


@number(
    "two interpreters / one, {interpreter}", frame=INTERPRETERS, two_cores=True, over=OF_PAIR, column="interpreters"
)
@number(
    "two threads / one, calls of Python, {interpreter}",
    frame=INTERPRETERS,
    two_cores=True,
    over=OF_PAIR,
    column="threads",
)
@number("two event loops / one, {interpreter}", frame=INTERPRETERS, two_cores=True, over=OF_PAIR, column="loops")
@number("longest wait, µs: {lock}, {holder}", frame=FAIR, two_cores=True, over=OF_FAIR, column="longest")
@number("wait of one take in 1000, µs: {lock}, {holder}", frame=FAIR, two_cores=True, over=OF_FAIR, column="rare")
def of_logarithms(runs: pd.DataFrame, column: str, **which) -> Location | None:
    """The centre of positive values that scatter by factors: what two do over what one does, waits."""
    found = values(runs, column, **which)
    return Location.of(np.log(found), log=True) if len(found) else None


@number(
    "longest wait, {lock} / pthread mutex: {holder}",
    frame=FAIR,
    two_cores=True,
    over=OF_FAIR | {"lock": e.FAIR_LOCKS[:2]},
)
def wait_against(runs: pd.DataFrame, lock: str, holder: str) -> Estimate | None:
    return ratio(*(values(runs, "longest", lock=one, holder=holder) for one in (lock, "pthread mutex")))


def outcome(rows: pd.DataFrame) -> pd.Series:
    """What C saw: how the child ended, where it did not come to its end."""
    died = rows.ended.where(~rows.ended.str.startswith("killed"), "crash")
    return rows.seen.where(died == "ok", died) if "seen" in rows else died


HELD, BARE = e.HOLDINGS[::-1]
FREED = ("resized", "dropped")


@number(
    "children that read freed memory: {holding}, {kind}",
    frame=BUFFERS,
    over={"holding": e.HOLDINGS, "kind": e.EXPORTERS},
)
def freed(runs: pd.DataFrame, holding: str, kind: str) -> Share | None:
    """Children that crashed, or read other data, when the object was resized or dropped; both builds."""
    return seen(runs, ("crash", "other data"), holding=holding, kind=kind, meanwhile=FREED)


@number("children that are refused to resize: {kind}", frame=BUFFERS, over={"kind": e.EXPORTERS})
def refused(runs: pd.DataFrame, kind: str) -> Share | None:
    return seen(runs, ("BufferError",), holding=HELD, kind=kind, meanwhile="resized")


@number("children that resize what is held: {kind}", frame=BUFFERS, over={"kind": e.EXPORTERS})
def let(runs: pd.DataFrame, kind: str) -> Share | None:
    return seen(runs, ("crash", "other data", "same data"), holding=HELD, kind=kind, meanwhile="resized")


def seen(runs: pd.DataFrame, outcomes: tuple[str, ...], **which) -> Share | None:
    rows = runs if runs.empty else chosen(runs, **which)
    return Share.of(outcome(rows).isin(outcomes)) if len(rows) else None


STAYS = {f"{ms:g} ms": {"ms": ms} for ms in e.STAYS_MS}


def stayed(runs: pd.DataFrame, column: str, interpreter: str, ms: float, attached: bool) -> np.ndarray:
    if runs.empty:
        return np.array([])
    return values(runs[runs.attached == attached], column, interpreter=interpreter, stays=ms)


@number(
    "ms longer beside attached calls of {words}, {interpreter}",
    frame=BESIDE,
    two_cores=True,
    over=WITHOUT | {"words": STAYS},
)
def longer(runs: pd.DataFrame, interpreter: str, ms: float) -> Location | None:
    """What a collection takes beside calls that stay attached, less beside detached ones."""
    return difference(*(stayed(runs, "collect", interpreter, ms, attached) for attached in (True, False)))


@number(
    "ms of a collection beside calls of {words}, {how}, {interpreter}",
    frame=BESIDE,
    two_cores=True,
    over=WITHOUT | {"words": STAYS, "how": {"attached": {"attached": True}, "detached": {"attached": False}}},
)
def beside(runs: pd.DataFrame, **which) -> Location | None:
    return location(stayed(runs, "collect", **which))


@number("passes beside collections / alone, {interpreter}", frame=ATTACH, two_cores=True, over=WITHOUT)
def left(runs: pd.DataFrame, interpreter: str) -> Estimate | None:
    if runs.empty:
        return None
    return ratio(*(values(runs[runs.collecting == one], "passes", interpreter=interpreter) for one in (True, False)))


@number("ms of the longest attach beside collections, {interpreter}", frame=ATTACH, two_cores=True, over=WITHOUT)
def longest(runs: pd.DataFrame, interpreter: str) -> Location | None:
    return None if runs.empty else location(values(runs[runs.collecting], "longest", interpreter=interpreter))


@number("standard modules that another interpreter refuses, {interpreter}", frame=MODULES, over=OF_PAIR)
def modules(runs: pd.DataFrame, interpreter: str) -> Estimate | None:
    found = values(runs, "refused", interpreter=interpreter)
    return exact(found.max()) if len(found) else None


@number("bindings that answer in another interpreter, {interpreter}", frame=ELSEWHERE, over=OF_PAIR)
def elsewhere(runs: pd.DataFrame, interpreter: str) -> Share | None:
    """Bindings of this book that are imported there and answer, of those that were built."""
    return Share.of(chosen(runs, interpreter=interpreter).said == e.ANSWERS_THERE)
