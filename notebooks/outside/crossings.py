"""The records of the page on what may cross: from rows to numbers."""

from collections import Counter
from functools import partial
from itertools import product

import pandas as pd

from ffilab.judge.estimates import Share
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import chosen
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.outside.experiment import CALLBACKS, WALLS, WHOSE

PAIR = (GIL, FREE_THREADED)
ENDS, NOT_HERE = "ends", "not here"
# The experiments of this page, and what stands before the name of a scene in the names of its numbers.
SCENES = {
    "exceptions": ("", WALLS),
    "exceptions in callbacks": ("callback of ", CALLBACKS),
    "interpreters": ("elsewhere, ", WHOSE),
}


def numbers(session: Session) -> Makers:
    """Shares of children, by what they did; an event counts, whatever else ran."""
    made: Makers = {}
    for (title, (before, scenes)), label in product(SCENES.items(), PAIR):
        for what in scenes:
            share = partial(share_of, session, title, label, what)
            made[f"children that end well: {before}{what}, {label}"] = partial(share, is_well)
            made[f"children killed: {before}{what}, {label}"] = partial(share, is_killed)
    for label in PAIR:
        of_walls = partial(share_of, session, "exceptions", label)
        of_callbacks = partial(share_of, session, "exceptions in callbacks", label)
        elsewhere = partial(share_of, session, "interpreters", label)
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
            f"threads of C in another interpreter than their caller's: PyThreadState_New, {label}": partial(
                elsewhere, "PyThreadState_New", lambda rows: ~is_at_home(rows)
            ),
        }
    return made


def share_of(session: Session, title: str, label: str, what: str, event) -> Share | str | None:
    """Children of one scene in which `event(rows)` is true; why there are none."""
    rows = session.frame(title, disturbed=True)
    if not len(rows):
        return None
    rows = chosen(rows, interpreter=label, what=what)
    rows = rows[rows.outcome != NOT_HERE]
    return Share(int(event(rows).sum()), len(rows)) if len(rows) else "what it needs was not built here"


def is_well(rows: pd.DataFrame) -> pd.Series:
    return rows.outcome == ENDS


def is_killed(rows: pd.DataFrame) -> pd.Series:
    return rows.outcome.str.startswith("killed")


def is_unseen(rows: pd.DataFrame) -> pd.Series:
    return ~rows.hooked.astype(bool)


def is_garbage(rows: pd.DataFrame) -> pd.Series:
    return rows.answer != "0"


def is_at_home(rows: pd.DataFrame) -> pd.Series:
    """Of an answer such as "1 0": the interpreter of the caller, and the one that the thread found."""
    both = rows.answer.str.split(" ", expand=True)
    return both[0] == both[1]


def answered(text: str):
    return lambda rows: rows.answer == text


def ended(rows: pd.DataFrame) -> str:
    """How children ended, the most frequent first: `30 of 30 end`; `20 of 30 end, 10 killed by SIGSEGV`."""
    rows = rows[rows.outcome != NOT_HERE]
    if rows.empty:
        return NOT_HERE
    (first, events), *others = Counter(rows.outcome).most_common()
    verbs = {ENDS: "end", "hangs": "hang", "exits with 1": "raise"}
    said = [
        f"{events} of {len(rows)} {verbs.get(first, first)}",
        *(f"{n} {verbs.get(what, what)}" for what, n in others),
    ]
    return ", ".join(said)


# The table "May I do this?": an action, the experiment with its children, which of them, and what to do instead.
ACTIONS = (
    (
        "let a C++ exception out of C++",
        "exceptions",
        {"what": "C++, not caught"},
        "catch it in the function that C calls",
    ),
    ("catch it in C++ behind noexcept", "exceptions", {"what": "C++, noexcept between"}, "catch it inside"),
    ("catch it in C++ behind Python", "exceptions", {"what": "C++, through Python 1000 times"}, "catch it inside"),
    ("catch it where it is thrown", "exceptions", {"what": "C++, caught where it is thrown"}, ""),
    ('let a panic out of extern "C"', "exceptions", {"what": "Rust, extern C between"}, "catch_unwind inside"),
    ('let a panic out of "C-unwind"', "exceptions", {"what": "Rust, not caught"}, "catch_unwind inside"),
    ("catch a panic where it starts", "exceptions", {"what": "Rust, caught where it panics"}, ""),
    (
        "raise in a callback: ctypes",
        "exceptions in callbacks",
        {"what": "ctypes"},
        "catch all, return an error of your own",
    ),
    ("raise in a callback: cffi", "exceptions in callbacks", {"what": "cffi"}, "onerror"),
    ("raise in a callback: pybind11", "exceptions in callbacks", {"what": "pybind11"}, "catch error_already_set"),
    ("raise in a callback: nanobind", "exceptions in callbacks", {"what": "nanobind"}, "catch python_error"),
    ("raise in a callback: PyO3", "exceptions in callbacks", {"what": "PyO3"}, ""),
    ("call back into a sub-interpreter: ctypes", "interpreters", {"what": "ctypes"}, "a state for your interpreter"),
    ("attach to your own interpreter", "interpreters", {"what": "PyThreadState_New"}, ""),
)
