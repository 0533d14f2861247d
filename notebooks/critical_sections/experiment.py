"""What the chapter "Critical sections" measures (claims A6, A8, A9). The page quotes all of it."""

import dataclasses
import itertools
import os
import runpy
from concurrent.futures import ThreadPoolExecutor

import pandas as pd

from ffilab.measure import instructions
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm, empty_loop
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, ROOT, without_paths
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.boundary import experiment as boundary
from notebooks.boundary import looks

# [setting]
ARMS, EXPERIMENTS = "native/critical_sections/arms.py", "native/critical_sections/experiments.py"
LIBRARIES = f"{BUILT}/critical_sections"
OPERATIONS = tuple(runpy.run_path(str(ROOT / ARMS))["OPERATIONS"])
# [/setting]


# [code of locks]
def operation(name: str, title: str | None = None) -> Arm:
    """The arm of one operation of the interpreter."""
    return Arm.of(title or name, ARMS, "operation", {"name": name})


PYO3_CALL, PYO3_CALL_GIL_ON = "a PyO3 call", "a PyO3 call with its GIL"


def by_file(label: str, arm: Arm) -> dict:
    """Instructions of one call or operation by the source file that they come from; or why they cannot be counted."""
    row = {"interpreter": label, "what": arm.name}
    try:
        return {**row, "by_file": instructions.by_file(label, arm)}
    except UserError as error:
        return {**row, "reason": without_paths(str(error))}


def instructions_by_file() -> list[dict] | str:
    """The same of the loop alone, a call and two operations on both builds, several at once: a count does not depend on company."""
    if reason := instructions.available():
        return reason
    call = boundary.call("PyO3", boundary.INT, PYO3_CALL)
    looked_at = [empty_loop(), call, operation("dict, write"), operation("list, append and pop")]
    cells = [*itertools.product((GIL, FREE_THREADED), looked_at)]
    cells.append((FREE_THREADED, dataclasses.replace(call, name=PYO3_CALL_GIL_ON, gil=True)))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(by_file, *zip(*cells)))
    if without := [row["interpreter"] for row in rows if set(row.get("by_file", ())) == {"???"}]:
        return f"CPython {without[0]} has no debugging information, so inlined code cannot be told apart"
    return rows


def code_of_locks(session: Session) -> list[dict] | str:
    """A9: look once at the instructions of a PyO3 call and of two operations, on both builds."""
    return session.observe("code of locks", instructions_by_file)


# [/code of locks]

# [single]
# Name: increments per loop. The same list as in lock_pieces.c; a test compares the two.
PIECES = {
    "no lock": 1,
    "atomic increment": 1,
    "PyMutex": 1,
    "pthread mutex": 1,
    "critical section": 1,
    "critical section, inlined": 1,
    "critical section, two objects": 1,
    "critical section, recursive entry": 1,
    "reference count": 0,
    "100 increments under one PyMutex": 100,
    "100 atomic increments": 100,
    "one atomic addition of 100": 100,
}
FOREIGN = "reference count, foreign object"
BATCH_MS = 2
# The same calls on the free-threaded build with the GIL on: no source of the talk keeps it off, and bindings of its time switched
# it on when they were imported.
AS_BUILT, GIL_ON = "as built", "GIL on"
FREE_THREADED_BUILDS = tuple(label for label, entry in BY_LABEL.items() if entry.free_threaded)


def stand_ins(session: Session) -> dict[str, dict[str, str]]:
    """Bindings that another version of themselves stands in for, by interpreter. The two builds are then no pair."""
    return looks.stand_ins(session)


def with_gil(binding: str) -> Arm:
    """The call of the talk through a binding, on a free-threaded build with the GIL on."""
    arm = boundary.call(binding, boundary.ANSWER)
    return dataclasses.replace(
        arm, name=f"{arm.name}, {GIL_ON}", group=GIL_ON, interpreters=FREE_THREADED_BUILDS, gil=True
    )


def arms() -> list[Arm]:
    """Operations of the interpreter, the call of the talk, the pieces in C, a second copy for the A/A test."""
    folder = {"folder": LIBRARIES}
    return [
        *(operation(name) for name in OPERATIONS),
        operation("function call", "function call again"),
        *(boundary.call(binding, boundary.ANSWER) for binding in (boundary.FLOOR, *boundary.TALK)),
        *(with_gil(binding) for binding in boundary.TALK),
        *(boundary.call(boundary.FLOOR, signature) for signature in boundary.TEXTS),
        *(Arm.of(f"{name}, in C", ARMS, "piece", {**folder, "name": name}) for name in PIECES),
        # It starts a thread. From then on, 3.13t counts no references of functions and the like: calls of them are cheaper.
        Arm.of(f"{FOREIGN}, in C", ARMS, "foreign_reference_count", folder, group="another thread was there"),
    ]


def single(session: Session) -> Record:
    """Time all of it on one thread, on all interpreters, interleaved in one run."""
    budget = session.budget
    shorter = dataclasses.replace(budget, batch_ms=min(BATCH_MS, budget.batch_ms), seconds=budget.seconds / 2)
    return session.time("single", arms(), budget=shorter)


# [/single]


# [as run]
def single_calls(session: Session) -> pd.DataFrame:
    """A6 as the talk ran it: means of 195 single calls, four bindings in one process, on every build, and with the GIL on."""
    fixed = {"bindings": list(boundary.TALK), "libraries": boundary.LIBRARIES}
    cases = [
        Case.of(label, EXPERIMENTS, "means_of_single_calls", {}, fixed, {"gil": AS_BUILT})
        for label in session.interpreters
    ]
    cases += [
        Case.of(label, EXPERIMENTS, "means_of_single_calls", {}, fixed, {"gil": GIL_ON}, {"PYTHON_GIL": "1"})
        for label in session.interpreters
        if label in FREE_THREADED_BUILDS
    ]
    return session.run("single calls, as the talk ran them", cases, 2 * session.budget.repeats)


# [/as run]

# [company]
CONTENTION_MS = 8
# One for all threads; one for each, which its thread has made; one for each, which the main thread has made.
ONE, OWN, MADE_ELSEWHERE = "one object", "own objects", "foreign objects"


def sharing(session: Session) -> list[dict]:
    """Two threads on one object, two on an object each (their own or another thread's), and many on one: two for each core."""
    many = 2 * session.machine["cores_usable"]
    return [
        {"shared": ONE, "threads": 2},
        {"shared": OWN, "threads": 2},
        {"shared": MADE_ELSEWHERE, "threads": 2},
        {"shared": ONE, "threads": many},
    ]


# [/company]


# [calibration]
def calibration(session: Session) -> pd.DataFrame:
    """What two processes, and two threads that share nothing, do at once, over what one does alone."""
    fixed = {"folder": LIBRARIES, "milliseconds": CONTENTION_MS}
    case = Case.of(FREE_THREADED, EXPERIMENTS, "calibration", fixed=fixed)
    return session.run("two at once", [case], 2 * session.budget.repeats)


# [/calibration]


# [locks]
# An extension cannot use the inlined form. Entering again holds the object all along, so that nobody else gets in.
ALONE_ONLY = ("critical section, inlined", "critical section, recursive entry")
IN_COMPANY = tuple(name for name in PIECES if name not in ALONE_ONLY)


def locks(session: Session) -> pd.DataFrame:
    """Operations per second of the pieces in C, by one thread and by several, each case in fresh processes."""
    fixed = {"folder": LIBRARIES, "milliseconds": CONTENTION_MS}
    cases = [
        Case.of(FREE_THREADED, EXPERIMENTS, "contended_piece", {"name": name, **how}, fixed)
        for name in IN_COMPANY
        for how in sharing(session)
        # What a hundred at a time cost is asked of two rivals on one object alone.
        if PIECES[name] < 100 or how == {"shared": ONE, "threads": 2}
    ]
    return session.run("locks in company", cases, session.budget.few)


# [/locks]

# [objects]
OBJECTS = ("dict", "list", "counter object")


def objects(session: Session) -> pd.DataFrame:
    """The same of Python objects, and with the GIL, where it does not matter who made one, of two threads only."""
    hows = {FREE_THREADED: sharing(session), GIL: [{"shared": shared, "threads": 2} for shared in (ONE, OWN)]}
    cases = [
        Case.of(label, EXPERIMENTS, "contended_object", {"name": name, **how}, {"milliseconds": CONTENTION_MS})
        for label in (FREE_THREADED, GIL)
        for name in OBJECTS
        for how in hows[label]
    ]
    return session.run("objects in company", cases, session.budget.few)


# [/objects]

# [bindings]
BOUND = {"libraries": boundary.LIBRARIES, "milliseconds": CONTENTION_MS}


def bindings(session: Session) -> pd.DataFrame:
    """The same of one bound function, called by two threads, for every binding that was built."""
    missing = looks.not_built(session)[FREE_THREADED]
    cases = [
        Case.of(FREE_THREADED, EXPERIMENTS, "contended_binding", {"name": name, "threads": 2}, BOUND, {"shared": ONE})
        for name in boundary.BINDINGS
        if name not in missing
    ]
    return session.run("bindings in company", cases, session.budget.repeats)


# [/bindings]

# [ctypes]
# What a function of ctypes hands over, and what is left to share once each thread has a function of its own.
NOTHING, OUT, OUT_OWN = "nothing in, nothing out", "→ int", "→ int, a type for each"
IN, BOTH, BOTH_OWN = "int →", "int → int", "int → int, a type for each"
CTYPES = (NOTHING, OUT, OUT_OWN, IN, BOTH, BOTH_OWN)


def ctypes_apart(session: Session) -> pd.DataFrame:
    """Two threads that each call a function of their own through ctypes.CDLL, by what it hands over."""
    cases = [
        Case.of(FREE_THREADED, EXPERIMENTS, "contended_ctypes", {"name": name, "threads": 2}, BOUND, {"shared": OWN})
        for name in CTYPES
    ]
    return session.run("ctypes, apart", cases, session.budget.repeats)


# [/ctypes]

# [texts]
NEW_NAME, KNOWN_NAME = "attribute by a new name", "attribute by a known name"
TEXTS = ("UTF-8 of one text", "UTF-8 of new texts", "interning one text", NEW_NAME, KNOWN_NAME)


def texts(session: Session) -> pd.DataFrame:
    """The same of texts that two threads convert or intern."""
    cases = [
        Case.of(FREE_THREADED, EXPERIMENTS, "contended_text", {"name": name, "threads": 2}, BOUND, {"shared": ONE})
        for name in TEXTS
    ]
    return session.run("texts in company", cases, session.budget.few)


# [/texts]

# [stress]
STRESS_THREADS = 8
STRESS_INCREMENTS = 2_000_000


def answered(function: str, factors: dict, fixed: dict, seconds: float) -> dict:
    """What an answer to an exercise does, once, in a process of its own: `ended`, `error`, and `result` if it came to one."""
    outcome = Case.of(FREE_THREADED, EXPERIMENTS, function, factors, fixed, timeout_s=seconds).run()
    return {"ended": outcome.ended, "error": outcome.error.strip(), "result": outcome.result}


def stressed(lock: str) -> dict:
    """Eight threads increment one number, one increment at a time: what is there, and what should be.

    Raises UserError if that process brings no result.
    """
    fixed = {"folder": LIBRARIES, "threads": STRESS_THREADS, "loops": STRESS_INCREMENTS // PIECES[lock]}
    found = answered("stress", {"name": lock}, fixed, 60)
    if found["result"] is None:
        raise UserError(f"The stress test of {lock!r} brought no result: {found['ended']}. {found['error']}")
    return found["result"]


def stress(session: Session, lock: str) -> dict:
    """The first exercise: does this lock keep the number exact?"""
    return session.observe("exercise: does the lock count right", stressed, lock)


# [/stress]

# [counter]
COUNTS, COUNTER_SECONDS = 100_000, 20


def counted(source: str) -> dict:
    """A reader's class Counter, used by eight threads, twice, and by two against one: how the process ended, and its result."""
    fixed = {"threads": STRESS_THREADS, "counts": COUNTS, "milliseconds": CONTENTION_MS}
    return answered("counter", {"source": source}, fixed, COUNTER_SECONDS)


def counter(session: Session, source: str) -> dict:
    """The second exercise: does this class count right, and do its threads get in each other's way?"""
    return session.observe("exercise: a counter for many threads", counted, source)


# [/counter]
