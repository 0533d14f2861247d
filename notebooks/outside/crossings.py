"""The records of the page on what may cross: from rows to numbers."""

from functools import partial
from itertools import product

import pandas as pd

from ffilab.judge.estimates import Share
from ffilab.judge.numbers import Makers
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.outside.experiment import CALLBACKS, WALLS, WHOSE
from notebooks.outside.results import share_of

PAIR = (GIL, FREE_THREADED)
ENDS = "ends"
WALL, CALL, ELSE = "exceptions", "exceptions in callbacks", "interpreters"
# The experiments of this page, and what stands before the name of a scene in the names of its numbers.
SCENES = {
    WALL: ("", WALLS),
    CALL: ("callback of ", CALLBACKS),
    ELSE: ("elsewhere, ", WHOSE),
}


def numbers(session: Session) -> Makers:
    """Shares of children, by what they did; an event counts, whatever else ran."""
    made: Makers = {}
    for (title, (before, scenes)), label in product(SCENES.items(), PAIR):
        for what in scenes:
            share = partial(child, session, title, label, what)
            made[f"children that end well: {before}{what}, {label}"] = partial(share, is_well)
            made[f"children killed: {before}{what}, {label}"] = partial(share, is_killed)
    for label in PAIR:
        of_walls = partial(child, session, WALL, label)
        of_callbacks = partial(child, session, CALL, label)
        elsewhere = partial(child, session, ELSE, label)
        made |= {
            f"threads whose destructor ran: {label}": partial(of_walls, "thread ended in C++", answered("1")),
            f"ctypes callbacks that sys.unraisablehook did not see: {label}": partial(
                of_callbacks, "ctypes", is_unseen
            ),
            f"ctypes callbacks after which C had another number than 0: {label}": partial(
                of_callbacks, "ctypes", is_garbage
            ),
            f"cffi callbacks that printed nothing, or gave C another number than 0: {label}": partial(
                of_callbacks, "cffi", lambda rows: ~rows.printed | (rows.answer != "0")
            ),
            f"cffi callbacks with error=7 that gave C another number: {label}": partial(
                of_callbacks, "cffi, error=7", lambda rows: rows.answer != "7"
            ),
            f"cffi callbacks with onerror that printed: {label}": partial(
                of_callbacks, "cffi, onerror", lambda rows: rows.printed
            ),
            f"threads of C in their caller's interpreter: PyGILState_Ensure, {label}": partial(
                elsewhere, "PyGILState_Ensure", is_at_home
            ),
            f"ctypes callbacks that came to their caller's interpreter: {label}": partial(
                elsewhere, "ctypes", is_at_home
            ),
            f"threads of C in another interpreter than their caller's: PyThreadState_New, {label}": partial(
                elsewhere, "PyThreadState_New", lambda rows: ~is_at_home(rows)
            ),
        }
    return made


def child(session: Session, title: str, label: str, what: str, event) -> Share | str | None:
    """Children of one scene in which `event(rows)` is true; why there are none."""
    return share_of(session, title, event, interpreter=label, what=what) or (
        "what it needs was not built here" if len(session.frame(title, disturbed=True)) else None
    )


def is_well(rows: pd.DataFrame) -> pd.Series:
    return rows.outcome == ENDS


def is_killed(rows: pd.DataFrame) -> pd.Series:
    return rows.outcome.str.startswith("killed")


def is_unseen(rows: pd.DataFrame) -> pd.Series:
    return ~rows.hooked.astype(bool)


def is_garbage(rows: pd.DataFrame) -> pd.Series:
    return rows.answer != "0"


def is_at_home(rows: pd.DataFrame) -> pd.Series:
    """Of an answer such as "1 0": are the interpreter of the caller and the one that the thread found the same?"""
    return rows.answer.map(lambda both: len(set(both.split())) == 1).astype(bool)


def answered(text: str):
    return lambda rows: rows.answer == text


def told(rows: pd.DataFrame) -> pd.DataFrame:
    """The same rows, with what C got in their outcome, or with where the thread attached as its fate."""

    def outcome(row) -> str:
        if row.refused:
            return "does not import"
        if row.outcome != ENDS or not row.what.startswith(("ctypes", "cffi")) or " " in row.answer:
            return row.outcome
        number = row.answer if row.answer in ("0", "7") else "another number"
        return f"{'printed' if row.printed else 'not printed'}, C gets {number}"

    home = is_at_home(rows).map({True: "in its caller's interpreter", False: "in the main interpreter"})
    told = rows.assign(outcome=[outcome(row) for row in rows.itertuples()])
    return told.assign(fate=home.where(rows.answer.str.contains(" ")))


# The table "May I do this?": an action, the experiment with its children, which of them, and what to do instead.
DETACH, INSIDE, EARLIER = "detach around it", "catch it inside", "end your threads in atexit"
WAIT, LATE = "lock order", "shutdown"
ACTIONS = (
    ("wait for a lock of C", WAIT, {"way": "attached", "stop": "nothing"}, DETACH),
    ("… while somebody collects", WAIT, {"way": "attached", "stop": "gc.collect()"}, DETACH),
    ("… the same, detached", WAIT, {"way": "detached", "stop": "gc.collect()"}, ""),
    ("… for a PyMutex", WAIT, {"way": "PyMutex", "stop": "gc.collect()"}, ""),
    ("attach while Python shuts down", LATE, {"thread": "a kept state"}, EARLIER),
    ("… holding a lock", LATE, {"thread": "a kept state, and a lock"}, EARLIER),
    ("… at the very end", LATE, {"thread": "a new state, at the very end"}, EARLIER),
    ("end threads in atexit", LATE, {"thread": "a loop, joined by atexit"}, ""),
    ("be interrupted, in C", "signals", {"how": "attached"}, "PyErr_CheckSignals"),
    ("… and run a pending call", "pending calls", {"main": "sleeps in a system call"}, "attach a thread"),
    ("fork, with a lock held", "fork", {"how": "os.fork()"}, "pthread_atfork"),
    ("… with pthread_atfork", "fork", {"how": "os.fork(), with pthread_atfork"}, ""),
    ("let an exception out of noexcept", WALL, {"what": "C++, noexcept between"}, INSIDE),
    ("… out of C++, into Python", WALL, {"what": "C++, not caught"}, INSIDE),
    ("… through Python, often", WALL, {"what": "C++, through Python 1000 times"}, INSIDE),
    ('let a panic out of extern "C"', WALL, {"what": "Rust, extern C between"}, "catch_unwind inside"),
    ("catch where it is thrown", WALL, {"what": "C++, caught where it is thrown"}, ""),
    ("raise in a ctypes callback", CALL, {"what": "ctypes"}, "catch all, return an error"),
    ("… in one of cffi", CALL, {"what": "cffi"}, "onerror"),
    ("… in one of pybind11", CALL, {"what": "pybind11"}, "catch error_already_set"),
    ("… in one of nanobind", CALL, {"what": "nanobind"}, "catch python_error"),
    ("call back by ctypes, elsewhere", ELSE, {"what": "ctypes"}, "a state of your interpreter"),
    ("attach to your interpreter", ELSE, {"what": "PyThreadState_New"}, ""),
)
