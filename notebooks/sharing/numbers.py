"""What the records of the chapter "Sharing" say: its numbers by name. The rules: claims.toml, sentences.toml."""

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Counted, Estimate, Interval, Location, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen, difference, interval_of, location, ratio
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections.numbers import controls, failures, of_threads, two_that_share_nothing
from notebooks.sharing import experiment as e
from notebooks.sharing import numbers_waiting

__all__ = ["controls", "number"]
PAIR = (GIL, FREE_THREADED)
AT_ONCE, ONE_ITEM, WHO, CALLS, CONSTANT = "two at once", "one item", "who counts how", "calls by two", "a constant"
SEVENS, LIBRARY, PUBLISHED = "seven objects", "a lock of the library", "CPython's own script"
APART, SIDE_BY_SIDE, READER = "numbers apart", "objects side by side", "a reader beside a count"
LINE_BREAK = "a line break"
FIRST, COPIES = "first calls", "copies of bytecode"
OF_BINDINGS = {"binding": tuple(boundary.BINDINGS)}
NO_LINUX = "the memory of a process is read on Linux alone"
ANSWERS = ("a tracked object", "again", "an untracked object", "freed when dropped", "freed by the collector")
number = Declarations(numbers_waiting.number)


# The calibration is that of critical sections, made here again.
number("failures of the calibration")(failures)
number("two threads of the calibration / one", frame=AT_ONCE, two_cores=True)(two_that_share_nothing)


# ---- two threads over one ----


@number("one item, {cured} cured: two threads / one", of=of_threads(ONE_ITEM), two_cores=True, over={"cured": e.CURED})
@number(
    "call of {binding}, {how}: two threads / one",
    of=of_threads(CALLS),
    two_cores=True,
    over={"binding": e.CALLED, "how": (e.AS_IT_IS,)},
    what="call",
)
@number(
    "call of {binding}, {how}: two threads / one",
    of=of_threads(CALLS),
    two_cores=True,
    over={"binding": e.PLAIN, "how": (e.DEFERRED,)},
    what="call",
)
@number(
    "new object of {binding}, {how}: two threads / one",
    of=of_threads(CALLS),
    two_cores=True,
    over={"binding": e.MAKERS, "how": (e.AS_IT_IS,)},
    what="new object",
)
@number(
    "new object of {binding}, {how}: two threads / one",
    of=of_threads(CALLS),
    two_cores=True,
    over={"binding": ("C API",), "how": (e.IMMORTAL,)},
    what="new object",
)
@number(
    "a constant, {which} import: two threads / one", of=of_threads(CONSTANT), two_cores=True, over={"which": e.IMPORTS}
)
@number(
    "a comprehension on {written}: two threads / one",
    of=of_threads(LINE_BREAK),
    two_cores=True,
    over={"written": tuple(e.LINES)},
)
@number(
    "ctypes, {cured} cured: two threads / one",
    of=of_threads(SEVENS),
    two_cores=True,
    over={"cured": (e.NONE, e.ALL, *(f"all but {name}" for name in e.SEVEN))},
)
@number(
    "srand, {cured} cured: two threads / one",
    of=of_threads(LIBRARY),
    two_cores=True,
    over={"cured": (e.NONE, "everything")},
)
@number(
    "{piece} writes {distance} bytes apart: two threads / one",
    of=of_threads(APART),
    two_cores=True,
    over={"piece": e.WRITES, "distance": e.APART},
)
@number(
    "counts of two objects on {where}: two threads / one",
    of=of_threads(SIDE_BY_SIDE),
    two_cores=True,
    over={"where": e.HEADS},
)
def two_over_one(runs: pd.DataFrame, **which) -> Location | None:
    """Work of two threads over that of one, in the processes that `which` chooses."""
    part = chosen(runs, **which)
    return Location.of(np.log((part.together / part.alone).to_numpy(float)), log=True) if len(part) else None


@number("a constant, second import / first: work of two threads", of=of_threads(CONSTANT), two_cores=True)
def imports_compared(runs: pd.DataFrame) -> Estimate | None:
    """What two threads do over one from bytecode, over the same of what was just compiled."""
    of_import = [chosen(runs, which=which) for which in reversed(e.IMPORTS)]
    return ratio(*(part.together.to_numpy(float) / part.alone.to_numpy(float) for part in of_import))


@number(
    "CPython's script, {benchmark}: two threads / one",
    of=of_threads(PUBLISHED),
    two_cores=True,
    over={"benchmark": (*e.SCALED, *e.DID_NOT)},
)
def as_published(runs: pd.DataFrame, benchmark: str) -> Location | str | None:
    """What the script said, over processes."""
    if runs.empty:
        return "the source of CPython is not here"
    return Location.of(np.log(chosen(runs, benchmark=benchmark).times.to_numpy(float)), log=True)


# ---- who counts how ----


@number(
    "{binding}, {what}: {way}",
    frame=WHO,
    over=OF_BINDINGS | {"what": (*e.READ, "enum", "enum member"), "way": e.WAYS},
)
def counted_so(runs: pd.DataFrame, binding: str, what: str, way: str) -> Counted | None:
    """Share of processes in which an object of a binding is counted in this way."""
    part = chosen(runs, interpreter=FREE_THREADED, binding=binding, what=what)
    return Counted(float((part.way == way).mean())) if len(part) else None


def ways_of(session: Session, what: str) -> dict[str, list[str]]:
    """The bindings by the way in which one of their objects is counted."""
    runs = chosen(session.frame(WHO), interpreter=FREE_THREADED, what=what)
    first = runs.drop_duplicates("binding")
    return {way: first.binding[first.way == way].tolist() for way in e.WAYS}


# ---- lines of memory ----


@number(
    "a number {field}: a reader beside a count / alone",
    of=of_threads(READER),
    two_cores=True,
    over={"field": tuple(e.FIELDS)},
)
def slowed(runs: pd.DataFrame, field: str) -> Estimate | None:
    """ns to read a number of an object while another thread counts the object, over the same alone."""
    part = chosen(runs, field=field)
    return ratio(part.beside.to_numpy(), part.alone.to_numpy())


@number(
    "a number {field}, {when}: ns to read it",
    of=of_threads(READER),
    two_cores=True,
    over={"field": tuple(e.FIELDS), "when": ("alone", "beside")},
)
def reading(runs: pd.DataFrame, field: str, when: str) -> Interval | None:
    return interval_of(runs, when, field=field)


# ---- what a thread brings ----


@number(
    "first call in a new thread / a later one, bytecode {bytecode}", frame=FIRST, over={"bytecode": tuple(e.BYTECODE)}
)
def first_over_later(runs: pd.DataFrame, bytecode: str) -> Estimate | None:
    part = chosen(runs, bytecode=bytecode)
    return ratio(part["first"].to_numpy(float), part.later.to_numpy(float))


@number(
    "{call} call in a new thread, bytecode {bytecode}: µs",
    frame=FIRST,
    over={"call": ("first", "later"), "bytecode": tuple(e.BYTECODE)},
)
def call_in_thread(runs: pd.DataFrame, call: str, bytecode: str) -> Interval | None:
    part = chosen(runs, bytecode=bytecode)
    return interval_of(part.assign(us=part[call] / 1000), "us")


@number("a later call without its own bytecode / with", frame=FIRST)
def unspecialised(runs: pd.DataFrame) -> Estimate | None:
    without, own = (chosen(runs, bytecode=bytecode).later.to_numpy(float) for bytecode in ("shared", "own"))
    return ratio(without, own)


@number(
    "bytes a function {when}, bytecode {copies}",
    frame=COPIES,
    over={"when": ("added", "left", "again", "bytecode"), "copies": tuple(e.BYTECODE)},
)
def bytes_a_function(runs: pd.DataFrame, when: str, copies: str) -> Interval | str | None:
    return interval_of(runs, when, copies=copies) if len(runs) else NO_LINUX


# ---- what the manual says ----


@number("literals immortal, {which} import", frame="literals", over={"which": e.IMPORTS})
def immortal(runs: pd.DataFrame, which: str) -> Counted | None:
    """Share of the kinds of literals that are immortal in every process."""
    part = chosen(runs, which=which)
    return Counted(float(part.immortal.astype(bool).mean())) if len(part) else None


@number("deferring {answer} on {label}", frame="deferring", over={"label": PAIR, "answer": ANSWERS})
def answered(runs: pd.DataFrame, label: str, answer: str) -> Counted | str | None:
    """What the function returned, or whether the object was freed: 1 or 0, over processes."""
    part = chosen(runs, interpreter=label)
    if answer not in part or part[answer].isna().all():
        return f"{label} has no such function"
    return Counted(float(part[answer].astype(float).mean()))


@number(
    "bytes of {kind} on {label}",
    frame="sizes",
    over={"label": PAIR, "kind": {"NoneType": {"what": "None"}, "list": {"what": "list"}, "dict": {"what": "dict"}}},
)
def size(runs: pd.DataFrame, label: str, what: str) -> Counted | None:
    part = chosen(runs, interpreter=label)
    return Counted(float(part[what].median())) if len(part) else None


@number("bytes of {what}, {FREE_THREADED} - {GIL}", frame="sizes", over={"what": ("list", "dict")})
def larger(runs: pd.DataFrame, what: str) -> Counted | None:
    one, other = (size(runs, label, what) for label in (FREE_THREADED, GIL))
    return Counted(one.interval.value - other.interval.value) if one and other else None


@number("interned strings that survive on {label}", frame="interned strings", over={"label": PAIR})
def survives(runs: pd.DataFrame, label: str) -> Counted | None:
    part = chosen(runs, interpreter=label)
    return Counted(float(part.survives.mean())) if len(part) else None


@number("kinds in the manual: {way}", frame="ways in the manual", over={"way": ("deferred", "per thread")})
def kinds_in_the_manual(runs: pd.DataFrame, way: str) -> Counted | None:
    """Share of the kinds of objects that the manual names for a way, which are counted so."""
    return Counted(float(runs[way].mean())) if len(runs) else None


@number(
    "share of freed memory kept, MIMALLOC_PURGE_DELAY {delay}", frame="purge delay", over={"delay": ("as it is", "0")}
)
def kept(runs: pd.DataFrame, delay: str) -> Location | str | None:
    return NO_LINUX if runs.empty else location(chosen(runs, delay=delay).kept.to_numpy(float))


@number("share of freed memory kept: as it is - purge delay 0", frame="purge delay")
def kept_longer(runs: pd.DataFrame) -> Location | str | None:
    return (
        NO_LINUX
        if runs.empty
        else difference(*(chosen(runs, delay=delay).kept.to_numpy(float) for delay in ("as it is", "0")))
    )


@number("ns of a block: purge delay 0 / as it is", frame="purge delay")
def purging_costs(runs: pd.DataFrame) -> Estimate | str | None:
    if runs.empty:
        return NO_LINUX
    none, as_it_is = (chosen(runs, delay=delay).ns.to_numpy(float) for delay in ("0", "as it is"))
    return ratio(none, as_it_is)


@number(
    "processes that keep the storage of {kind}, {when}",
    frame="storage of lists and dicts",
    over={"kind": e.KINDS, "when": ("cleared", "collected")},
)
def storage_kept(runs: pd.DataFrame, kind: str, when: str) -> Share | str:
    """Processes that keep more than half of what lists or dicts had stored."""
    if runs.empty:
        return NO_LINUX
    part = chosen(runs, kind=kind)
    return Share(int((part[when].astype(float) > 0.5).sum()), len(part))


@number(
    "an undeclared module, {setting}: {answer}",
    frame="an undeclared module",
    over={"setting": tuple(e.SETTINGS), "answer": {"the GIL is on": {"what": "gil"}, "warnings": {"what": "warnings"}}},
)
def undeclared(runs: pd.DataFrame, setting: str, what: str) -> Counted | None:
    """What was seen after its import: 1 or 0, over processes."""
    part = chosen(runs, setting=setting)
    return Counted(float(part[what].mean())) if len(part) else None
