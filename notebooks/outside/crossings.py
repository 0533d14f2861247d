"""The numbers of the page on what may cross: from rows to numbers."""

import pandas as pd

from ffilab.judge.estimates import Share
from ffilab.judge.numbers import Declarations
from ffilab.measure.session import Session
from notebooks.outside.experiment import CALLBACKS, FORKS, WALLS, WHOSE
from notebooks.outside.states import OF_PAIR
from notebooks.outside.waiting import NO_TRIAL, Event, is_killed, trials

ENDS = "ends"
OFTEN, ENSURE, NEW = "C++, through Python 1000 times", "PyGILState_Ensure", "PyThreadState_New"
WALL, CALL, ELSE = "exceptions", "exceptions in callbacks", "interpreters"
# The experiments of this page, and what stands before the name of a scene in the names of its numbers.
SCENES = {
    WALL: ("", WALLS),
    CALL: ("callback of ", CALLBACKS),
    ELSE: ("elsewhere, ", WHOSE),
}
OF_SCENES = OF_PAIR | {
    "scene": {
        f"{before}{what}": {"title": title, "what": what}
        for title, (before, scenes) in SCENES.items()
        for what in scenes
    }
}


def is_at_home(rows: pd.DataFrame) -> pd.Series:
    """Of an answer such as "1 0": are the interpreter of the caller and the one that the thread found the same?"""
    return rows.answer.map(lambda both: len(set(both.split())) == 1).astype(bool)


# Shares of children that lived to tell, on each build: the experiment, the scene, and what is counted.
TOLD = {
    "threads whose destructor ran: ": (WALL, "thread ended in C++", lambda rows: rows.answer == "1"),
    "ctypes callbacks that sys.unraisablehook did not see: ": (CALL, "ctypes", lambda rows: ~rows.hooked.astype(bool)),
    "ctypes callbacks after which C had another number than 0: ": (CALL, "ctypes", lambda rows: rows.answer != "0"),
    "cffi callbacks that printed nothing, or gave C another number than 0: ": (
        CALL,
        "cffi",
        lambda rows: ~rows.printed | (rows.answer != "0"),
    ),
    "cffi callbacks with error=7 that gave C another number: ": (
        CALL,
        "cffi, error=7",
        lambda rows: rows.answer != "7",
    ),
    "cffi callbacks with onerror that printed: ": (CALL, "cffi, onerror", lambda rows: rows.printed),
    f"threads of C in their caller's interpreter: {ENSURE}, ": (ELSE, ENSURE, is_at_home),
    "ctypes callbacks that came to their caller's interpreter: ": (ELSE, "ctypes", is_at_home),
    f"threads of C in another interpreter than their caller's: {NEW}, ": (ELSE, NEW, lambda rows: ~is_at_home(rows)),
}
number = Declarations()


@number("children that end well: {scene}, {interpreter}", over=OF_SCENES, event=lambda rows: rows.outcome == ENDS)
@number("children killed: {scene}, {interpreter}", over=OF_SCENES, event=is_killed)
@number(
    "children that raise a RecursionError: {what}, {interpreter}",
    over=OF_PAIR | {"what": (OFTEN,)},
    title=WALL,
    event=lambda rows: rows.raised == "RecursionError",
)
@number(
    "{told}{interpreter}",
    over=OF_PAIR | {"told": {name: dict(zip(("title", "what", "event"), row)) for name, row in TOLD.items()}},
    lived=True,
)
def child(session: Session, title: str, event: Event, lived: bool = False, **which) -> Share | str | None:
    """Children of one scene in which `event(rows)` is true; why there are none. lived: of those that lived to tell."""
    runs = session.frame(title)
    if runs.empty:
        return None
    rows = trials(runs, **which)
    if rows.empty:
        return "what it needs was not built here"
    rows = rows[rows.outcome == ENDS] if lived else rows
    return Share.of(event(rows)) or "no child lived to tell"


def told(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with what C got in their outcome, or with where the thread attached as its fate."""

    def outcome(row) -> str:
        if row.refused:
            return "does not import"
        if row.raised:
            return f"raises {row.raised}"
        if row.outcome != ENDS or not row.what.startswith(("ctypes", "cffi")) or " " in row.answer:
            return row.outcome
        got = row.answer if row.answer in ("0", "7") else "another number"
        return f"{'printed' if row.printed else 'not printed'}, C gets {got}"

    home = is_at_home(rows).map({True: "in its caller's interpreter", False: "in the main interpreter"})
    told = rows.assign(outcome=[outcome(row) for row in rows.itertuples()])
    return told.assign(fate=home.where(rows.answer.str.contains(" ")))


# The table "May I do this?": an action, the experiment and which of its children; what to do else, and children that
# did it.
EARLIER, INSIDE = "end threads in atexit", "catch inside"
WAIT, HELD, LATE = "lock order", "critical sections", "shutdown"


def waits(way: str) -> list[dict]:
    """Children that waited for a lock, alone and while somebody collects."""
    return [{"way": way, "stop": stop} for stop in ("nothing", "gc.collect()")]


def played(*names: str) -> list[dict]:
    return [{"what": name} for name in names]


ACTIONS = (
    ("wait for a lock of C", WAIT, waits("attached"), "detach", waits("detached")),
    ("… detached", WAIT, waits("detached"), "", []),
    ("… for a PyMutex", WAIT, waits("PyMutex"), "", []),
    ("… in a critical section", HELD, [{"inside": "a mutex, attached"}], "detach", [{"inside": "a mutex, detached"}]),
    ("attach at shutdown", LATE, [{"thread": "a kept state"}], EARLIER, []),
    ("… with a new state", LATE, [{"thread": "a new state"}, {"thread": "new states, in a loop"}], EARLIER, []),
    ("… holding a lock", LATE, [{"thread": "a kept state, and a lock"}], EARLIER, []),
    ("… at the very end", LATE, [{"thread": "a new state, at the very end"}], EARLIER, []),
    ("… with a guard (3.15)", "guards", [{"by": "a guard, closed"}], "", []),
    ("end threads in atexit", LATE, [{"thread": "a loop, joined by atexit"}], "", []),
    ("rely on signals, in C", "signals", [{"how": "attached"}], "call PyErr_CheckSignals", [{"how": "checks"}]),
    ("… on pending calls", "pending calls", [{"main": "sleeps in a system call"}], "attach in your thread", []),
    ("fork, a lock held", "fork", [{"how": FORKS[0]}], "use pthread_atfork", [{"how": FORKS[1]}]),
    ("… with its handlers", "fork", [{"how": FORKS[1]}], "", []),
    ("throw out of noexcept", WALL, played("C++, noexcept between"), INSIDE, []),
    ("… out of C++", WALL, played("C++, not caught"), INSIDE, []),
    ("… through Python", WALL, played("C++, through Python", OFTEN), INSIDE, []),
    ('panic out of extern "C"', WALL, played("Rust, extern C between"), "catch_unwind inside", []),
    ("… into Rust that catches", WALL, played("Rust, caught by its caller"), "", []),
    (INSIDE, WALL, played("C++, caught where it is thrown", "Rust, caught where it panics"), "", []),
    ("raise in a ctypes callback", CALL, played("ctypes"), "catch all, return an error", []),
    ("… in one of cffi", CALL, played("cffi"), "give error= or onerror=", played("cffi, error=7", "cffi, onerror")),
    ("… in one of pybind11", CALL, played("pybind11"), "catch error_already_set", played("pybind11, caught")),
    ("… in one of nanobind", CALL, played("nanobind"), "catch python_error", played("nanobind, caught")),
    ("call back a subinterpreter", ELSE, played(ENSURE, "ctypes"), "make its state", played(NEW)),
    ("… by a state made for it", ELSE, played(NEW), "", []),
)
# What a child did whose action may be done: its outcome, or what became of its thread.
DID_WELL = (
    ENDS,
    "during the call",
    "while it lasts",
    "printed, C gets 7",
    "not printed, C gets 7",
    *("came through", "in its caller's interpreter"),
)


def may_i(children: pd.DataFrame, instead: str, cured: pd.DataFrame) -> str:
    """yes: each child did well, on both builds; only if: each that did `instead` did; no: some did not. "–": none
    tried."""

    def well(rows: pd.DataFrame) -> bool:
        return rows.fate.fillna(rows.outcome).isin(DID_WELL).all()

    children, cured = (rows[~rows.outcome.isin(NO_TRIAL)] if len(rows) else rows for rows in (children, cured))
    if children.empty:
        return "–"
    if well(children):
        return "yes"
    return f"only if you {instead}" if len(cured) and well(cured) else f"no: {instead}" if instead else "no"
