"""What the records of the chapter "Critical sections" say: its numbers by name, and its own controls. The rules:
claims.toml, sentences.toml."""

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.claims import declared
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Counted, Estimate, Interval, Location
from ffilab.judge.numbers import Declarations, numbers_of
from ffilab.judge.processes import chosen, positive, ratio_of_groups
from ffilab.judge.questions import NO, YES, above
from ffilab.judge.rules import Size
from ffilab.judge.wording import listed
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians, once
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL, SOURCES
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections import experiment as e

PAIR = (GIL, FREE_THREADED)
VERSIONS = tuple(SOURCES)
BUILDS = "{version}t / {version}"
# The free-threaded build with its GIL off, and on, in the names of numbers.
SWITCHED = {"": False, f", {e.GIL_ON}": True}
COPIES = [("function call", "function call again")]
# The call of the talk through its four bindings, and through the floor.
TALK = {binding: boundary.name(binding, boundary.ANSWER) for binding in boundary.TALK}
BOUNDARY_ARMS = [boundary.name(boundary.FLOOR, boundary.ANSWER), *TALK.values()]
# The geometric means of the talk's public data, by version.
PUBLISHED = {
    test.number.rpartition(" / ")[2]: test.published
    for claim in declared("critical_sections").claims
    for test in claim.tests
    if claim.id == "A6" and isinstance(test, Size)
}
# The interpreter's operations by what they do with an object: walk over it, write to it, or neither.
ITERATING = tuple(name for name in e.OPERATIONS if "iterate" in name or "comprehension" in name)
WRITING = ("attribute, write", "dict, write", "list, append and pop", "set, add")
KINDS = {
    "interpreter": tuple(e.OPERATIONS),
    "iterating": ITERATING,
    "writing": WRITING,
    "the rest": tuple(name for name in e.OPERATIONS if name not in (*ITERATING, *WRITING)),
}
PIECES = (*e.PIECES, e.FOREIGN, e.NO_THREAD)
LOCKS = ("atomic increment", "PyMutex", "pthread mutex", "critical section")
# A8, our own cases: the slow piece, and the fast one. Then pairs that no claim names.
PAIRS = (
    ("100 atomic increments", "100 increments under one PyMutex"),
    ("100 increments under one PyMutex", "one atomic addition of 100"),
    ("PyMutex", "atomic increment"),
    ("critical section", "PyMutex"),
    (e.FOREIGN, "reference count"),
    ("pthread mutex", e.NO_THREAD),
)
# Group of headers: the word in their names.
HEADERS = {"atomics": "atomic", "mutexes": "lock", "critical sections": "critical_section"}
number = Declarations()


# ---- can this machine do two things at once? ----

AT_ONCE = "two at once"
# Two cores do twice the work of one. Below: others took more than a tenth of it. Above: no two cores can, so the one
# alone was held up.
LEAST, MOST = 1.8, 2.1


def controls(session: Session) -> list[Check]:
    """Did two processes, and two threads that share nothing, do the work of two? Half of the runs or more must say so:
    one that had company says nothing of the cores."""
    runs, cores = session.frame(AT_ONCE), session.machine["cores_usable"]
    where = f"in {len(runs)} runs on {cores} cores" if cores > 1 else "on one core"
    checks = []
    for how in ("processes", "threads"):
        median = float(runs[how].median())
        words = f"{median:.2f} times the work of one, {where}"
        passed = LEAST <= median <= MOST
        checks.append(Check(AT_ONCE, f"two {how}", words, passed, abs(2 - median), AT_ONCE))
    return checks


@once
def not_at_once(session: Session) -> str:
    """Why nothing can be said of two threads here; empty if something can. Whatever asks for it rests on that run."""
    failed = [f"{check.what} did {check.found}" for check in controls(session) if not check.passed]
    return f"this machine did not do two things at once ({listed(failed)})" if failed else ""


def of_threads(title: str) -> Callable[[Session], pd.DataFrame | str]:
    """What reads an experiment with threads, for `Declarations`: its processes, or why they say nothing."""
    return lambda session: not_at_once(session) or session.frame(title)


@number("failures of the calibration")
def failures(session: Session) -> Counted:
    return Counted(sum(not check.passed for check in controls(session)))


@number("two threads of the calibration / one", frame=AT_ONCE, two_cores=True)
def two_that_share_nothing(runs: pd.DataFrame) -> Counted:
    return Counted(float(runs.threads.median()))


# ---- what one thread pays ----


def net(record: Record, label: str, arm: str) -> np.ndarray:
    """ns of an arm without its loop, one value for each layout. Between two builds the loop's own tax is no part of the
    arm's."""
    empty = f"{EMPTY} ({e.GIL_ON})" if arm.endswith(e.GIL_ON) else EMPTY
    return medians(record.times(label, arm) - record.times(label, empty))


def net_logs(record: Record, version: str, arm: str, gil_on: bool = False) -> np.ndarray | None:
    """Logarithms of the time of an arm on the free-threaded build of a version over that with the GIL, both without
    their loops, by layout: NaN where nothing is left of one. None if one was not timed.

    gil_on: of the free-threaded build with the GIL switched on.
    """
    slow, fast = (f"{version}t", f"{arm}, {e.GIL_ON}" if gil_on else arm), (version, arm)
    if not (record.has(*slow) and record.has(*fast)):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(net(record, *slow) / net(record, *fast))


@number(f"{{arm}}, {boundary.ANSWER}: {FREE_THREADED} / {GIL}", timed="single", over={"arm": TALK}, version=GIL)
@number(
    f"{e.LOCK_FREE}, {e.NO_ARGUMENT}: {FREE_THREADED} / {GIL}",
    timed="single",
    version=GIL,
    arm=boundary.name(e.LOCK_FREE, e.NO_ARGUMENT),
)
def net_ratio(record: Record, version: str, arm: str) -> Location | None:
    """An arm on the free-threaded build over the same with the GIL, over layouts; None if one was not timed."""
    logs = net_logs(record, version, arm)
    return None if logs is None else statistics.over_units(record, logs, log=True)


def tax(record: Record, version: str, arms: Iterable[str], gil_on: bool = False) -> Location | None:
    """Geometric mean over arms of time on the free-threaded build over time with the GIL; None if none was timed."""
    logs = [log for arm in arms if (log := net_logs(record, version, arm, gil_on)) is not None]
    if not logs:
        return None
    # Where a layout lacks an arm, as its core had company, the others of the layout stand for it: arms differ in their
    # level.
    frame = pd.DataFrame(logs).replace([np.inf, -np.inf], np.nan)
    centres = medians(frame.to_numpy())
    return statistics.over_units(record, centres.mean() + frame.sub(centres, axis=0).mean().to_numpy(), log=True)


def lacking(labels: list[str], version: str) -> str:
    """Why two builds of a version are no pair among these interpreters."""
    absent = [label for label in (version, f"{version}t") if label not in labels]
    if not absent:
        return f"no binding was built alike for {version} and {version}t"
    return f"CPython {' and '.join(absent)} (KERNELS=all compiles every interpreter of the book, and measures on it)"


@number(f"{{kind}}, {BUILDS}", timed="single", over={"version": VERSIONS, "kind": KINDS})
def tax_of_kind(record: Record, version: str, kind: Iterable[str]) -> Location | str:
    return tax(record, version, kind) or lacking(record.interpreters, version)


def alike(session: Session, version: str) -> list[str]:
    """The talk's bindings that are the same on both builds of a version."""
    stand_ins = session.observed("bindings by a stand-in")
    others = {binding for label in (version, f"{version}t") for binding in stand_ins.get(label, {})}
    return [binding for binding in boundary.TALK if binding not in others]


@number(f"boundary{{gil_on}}, {BUILDS}", over={"version": VERSIONS, "gil_on": SWITCHED})
def tax_of_calls(session: Session, version: str, gil_on: bool) -> Location | str:
    record, arms = session.timed("single"), [TALK[binding] for binding in alike(session, version)]
    return tax(record, version, arms, gil_on) or lacking(record.interpreters, version)


@number(f"as the talk ran it{{gil_on}}, {BUILDS}", over={"version": VERSIONS, "gil_on": SWITCHED})
def as_the_talk_ran_it(session: Session, version: str, gil_on: bool) -> Location | str:
    """A6 by the talk's method: the geometric mean over its bindings of mean over mean, process by process."""
    runs = session.frame("single calls, as the talk ran them")
    slow = chosen(runs, interpreter=f"{version}t", gil=e.GIL_ON if gil_on else e.AS_BUILT)
    fast = chosen(runs, interpreter=version)
    used = [binding for binding in alike(session, version) if binding in runs]
    n = min(len(slow), len(fast))
    logs = np.log(slow[used].to_numpy(float)[:n] / fast[used].to_numpy(float)[:n])
    logs = logs[:, ~np.isnan(logs).all(axis=0)]
    return Location.of(logs.mean(axis=1), log=True) if logs.size else lacking(session.interpreters, version)


@number(f"published, {BUILDS}", over={"version": VERSIONS})
def published(_: Session, version: str) -> Counted | None:
    return Counted(PUBLISHED[version]) if version in PUBLISHED else None


@number(
    f"published is farther from the GIL off than on, {{how}}, {BUILDS}",
    over={"version": VERSIONS, "how": ("boundary", "as the talk ran it")},
)
def farther(session: Session, version: str, how: str) -> Counted | None:
    """A6: by how much the published number is farther from what was measured with the GIL off than with it on: of
    logarithms."""
    names = (how, f"{how}, {e.GIL_ON}", "published")
    estimates = [numbers_of(session)[f"{name}, {version}t / {version}"].estimate for name in names]
    if not all(estimates):
        return None
    off, on, published = (math.log(estimate.interval.value) for estimate in estimates)
    return Counted(abs(off - published) - abs(on - published))


# ---- pieces of C, alone ----


def piece(name: str, label: str = FREE_THREADED) -> tuple[str, str]:
    """The cell of a piece."""
    return label, f"{name}, in C"


@number("{name}, ns on {label}", timed="single", over={"label": PAIR, "name": PIECES})
def piece_cost(record: Record, label: str, name: str) -> Interval | None:
    """Nanoseconds of one loop of a piece, from which no loop is to be taken off, as no Python is in it; None if
    missing."""
    return statistics.per_call(record, piece(name, label)) if record.has(*piece(name, label)) else None


@number("{pair}", timed="single", over={"pair": {f"{slow} / {fast}": (slow, fast) for slow, fast in PAIRS}})
def pieces_compared(record: Record, pair: tuple[str, str]) -> Location | None:
    """Time of one piece over that of another, each for one loop of it; None if one is missing.

    Where layouts fall into two classes no centre of them is one that a reader will see: then it is their mean, with its
    error.
    """
    cells = [piece(name) for name in pair]
    if not all(record.has(*cell) for cell in cells):
        return None
    found, values = statistics.ratio_over_units(record, *cells), statistics.log_ratios(record, *cells)
    if not two_classes(np.exp(values)):
        return found
    plain = Location.mean(values[np.isfinite(values)], log=True)
    return replace(
        found, centre=plain.centre, error=max(found.error, plain.error), freedom=min(found.freedom, plain.freedom)
    )


# Two classes are layouts with nothing in between: a gap of so many of the typical distance within a class, and of so
# much of the number itself. One layout alone is no class.
APART, WORTH_A_CLASS = 5, 0.2


def two_classes(values: np.ndarray) -> list[tuple[float, int]]:
    """Median and number of the values of each of two classes, the lower first; empty if the values are one class."""
    ordered = np.sort(np.log(values[np.isfinite(values)]))
    if len(ordered) < 6:
        return []
    cut = int(np.argmax(np.diff(ordered)[1:-1])) + 2
    low, high = ordered[:cut], ordered[cut:]
    within = float(np.median(np.abs(np.concatenate([low - np.median(low), high - np.median(high)]))))
    if high[0] - low[-1] <= max(APART * within, math.log1p(WORTH_A_CLASS)):
        return []
    return [(math.exp(float(np.median(part))), len(part)) for part in (low, high)]


# ---- two threads at once ----

LOCKS_IN_COMPANY = of_threads("locks in company")


@number(
    "{name}, {shared}: ns of each of two threads",
    of=LOCKS_IN_COMPANY,
    two_cores=True,
    over={"name": LOCKS, "shared": (e.OWN, e.ONE)},
)
def of_each(runs: pd.DataFrame, threads: int = 2, **which) -> Interval | None:
    """ns of one operation of each thread while all run, in the processes that `which` chooses; None if there are
    none."""
    return positive(1e9 * threads / chosen(runs, threads=threads, **which).together)


@number(f"PyMutex / atomic increment, two threads on {e.ONE}", of=LOCKS_IN_COMPANY, two_cores=True)
def rivals(runs: pd.DataFrame) -> Estimate | None:
    """ns of an increment of each of two threads on one object, under one lock over another, in processes of their
    own."""
    rates = [chosen(runs, name=name, shared=e.ONE, threads=2).together for name in ("PyMutex", "atomic increment")]
    return ratio_of_groups(*(-np.log(of_lock.to_numpy(dtype=float)) for of_lock in rates))


def company(what: str, label: str, names: Iterable[str], *sharing: str) -> dict[str, dict]:
    """Cases that two threads run at once, by the names of their numbers."""
    where = {"title": f"{what} in company", "interpreter": label}
    return {
        f"{name}, {shared}: two threads / one on {label}": {**where, "name": name, "shared": shared}
        for name, shared in itertools.product(names, sharing)
    }


SHARED = {"own": e.OWN, "foreign": e.MADE_ELSEWHERE, "one": e.ONE}
COMPANY = {
    **{f"locks-{who}": company("locks", FREE_THREADED, e.IN_COMPANY, shared) for who, shared in SHARED.items()},
    **{f"objects-{who}": company("objects", FREE_THREADED, e.OBJECTS, shared) for who, shared in SHARED.items()},
    "objects-gil": company("objects", GIL, e.OBJECTS, e.ONE, e.OWN),
    "bindings": company("bindings", FREE_THREADED, boundary.BINDINGS, e.ONE),
    "texts": company("texts", FREE_THREADED, [name for name in e.TEXTS if name != e.KNOWN_NAME], e.ONE),
}
# And the control of the texts.
CASES = company("texts", FREE_THREADED, [e.KNOWN_NAME], e.ONE)
CASES |= {name: case for cases in COMPANY.values() for name, case in cases.items()}
# A second thread that brings less than a fifth of a thread brings nothing of interest.
WORTH = 1.2


@number("{case}", two_cores=True, over={"case": CASES})
def in_company(session: Session, title: str, **which) -> Location | str | None:
    return not_at_once(session) or gain(session.frame(title), **which)


@number(
    "ctypes, {name}: two threads / one on {FREE_THREADED}",
    of=of_threads("ctypes, apart"),
    two_cores=True,
    over={"name": tuple(e.CTYPES)},
    interpreter=FREE_THREADED,
)
def gain(runs: pd.DataFrame, threads: int = 2, **which) -> Location | None:
    """Rate of several threads over that of one, in the processes that `which` chooses; None if there are none."""
    part = chosen(runs, threads=threads, **which)
    return Location.of(np.log(part.together / part.alone).to_numpy(), log=True) if len(part) else None


def by_gain(session: Session, group: str) -> dict[str, dict[str, Interval]]:
    """Cases by what a second thread brings: more in total, less, nothing of interest, or what the interval leaves open;
    each by how a sentence calls it."""
    cases: dict[str, dict[str, Interval]] = {"more": {}, "less": {}, "no more": {}, "open": {}}
    for name, case in COMPANY[group].items():
        if estimate := numbers_of(session)[name].estimate:
            rate = estimate.interval
            brings = {YES: "more", NO: "less"}.get(above(rate, 1.0), "no more" if above(rate, WORTH) == NO else "open")
            words = f"{case['name']} ({case['shared']})" if group == "objects-gil" else case["name"]
            cases[brings][words] = rate
    return cases


@number(
    "share of {group}: {brings}", two_cores=True, over={"group": tuple(COMPANY), "brings": ("more", "less", "open")}
)
def share(session: Session, group: str, brings: str) -> Counted | str | None:
    """Of the cases of a group, to how many a second thread brings that; None if there are none."""
    cases = by_gain(session, group)
    n = sum(map(len, cases.values()))
    return Counted(len(cases[brings]) / n) if n else not_at_once(session)


# ---- A9: instructions of locks ----


def code_in(code: list[dict], label: str, what: str) -> dict[str, float] | str:
    """Instructions of a call or operation by the group of their header, and of all of it; or why they are not known.

    Without those of the loop, whose own atomics would pass for the call's.
    """
    counted = {}
    for row in code:
        if row["interpreter"] == label and row["what"] in (what, EMPTY):
            if "reason" in row:
                return row["reason"]
            files = row["by_file"].items()
            counted[row["what"]] = {"all": sum(n for _, n in files)} | {
                group: sum(n for file, n in files if word in file and "clock" not in file)
                for group, word in HEADERS.items()
            }
    # A difference of averages over loops: what is below a hundredth of an instruction is none.
    left = {group: round(counted[what][group] - n, 2) + 0.0 for group, n in counted[EMPTY].items()}
    return {**left, "locks": left["mutexes"] + left["critical sections"]}


COUNTS = {
    "instructions of": "all",
    "instructions of atomics in": "atomics",
    "instructions of locks in": "locks",
    "share of atomics in": "share",
}
# The call, and what the talk's loop does beside it.
LOOKED_AT = (e.PYO3_CALL, "dict, write", "list, append and pop")


@number("{group} {what} on {label}", seen="code of locks", over={"label": PAIR, "what": LOOKED_AT, "group": COUNTS})
@number(
    f"{{group}} {e.PYO3_CALL_GIL_ON} on {FREE_THREADED}",
    seen="code of locks",
    over={"group": COUNTS},
    label=FREE_THREADED,
    what=e.PYO3_CALL_GIL_ON,
)
def instructions(code: list[dict], label: str, what: str, group: str) -> Counted | str:
    """Of a call or operation, without its loop; or why they are not known."""
    counted = code_in(code, label, what)
    if isinstance(counted, str):
        return counted
    return Counted(counted["atomics"] / counted["all"] if group == "share" else counted[group])
