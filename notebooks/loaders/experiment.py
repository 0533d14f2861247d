"""What the chapter "CDLL and PyDLL" measures (claims A12 to A14). The page quotes all of it."""

import pandas as pd

from ffilab.measure.case import Case
from ffilab.measure.plan import Arm
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.run.paths import BUILT
from ffilab.setup.catalogue import FREE_THREADED, GIL

# [setting]
ARMS, EXPERIMENTS = "native/loaders/arms.py", "native/loaders/experiments.py"
LIBRARY = f"{BUILT}/loaders/libloaders.so"
LOADERS = ("CDLL", "PyDLL")
# [/setting]

# [conditions]
ON = ", GIL on"


def conditions(session: Session) -> list[dict]:
    """Each interpreter; and the free-threaded build with the GIL switched on, as a module does that does not declare itself
    GIL-free."""
    switched = {"interpreter": FREE_THREADED, "environment": {"PYTHON_GIL": "1"}, "named": {"condition": ON}}
    return [
        *({"interpreter": label} for label in session.interpreters),
        *([switched] if FREE_THREADED in session.interpreters else []),
    ]


# [/conditions]

# [getpid as run]
TALK_CALLS = 2_000_000
GETPID, BLOCKING = "getpid, as the talk ran it", "counting thread, as the talk ran it"


def original_getpid(session: Session) -> pd.DataFrame:
    """A12 as the talk ran it: seconds for 2,000,000 calls, CDLL first, in one process; and again in fresh ones."""
    fixed = {"calls": int(TALK_CALLS * session.budget.scale)}
    cases = [Case(**one, file=EXPERIMENTS, function="original_getpid", fixed=fixed) for one in conditions(session)]
    return session.run(GETPID, cases, session.budget.repeats)


# [/getpid as run]


# [calls]
DECLARED = ("add_one", "halve", "first_byte")


def arms() -> list[Arm]:
    """Both loaders on five functions and in three conditions, a copy for the A/A test, an audited call, the bare cycle."""

    def call(name, loader, function, library, group="shared", maker="call", labels=(), gil=False):
        named = {"loader": loader, "function": function, "library": library}
        # What is compared runs next to each other: calls of one function.
        return Arm.of(name, ARMS, maker, named, group, labels, beside=function, gil=gil)

    return [
        *(call(f"{loader} noop", loader, "noop", LIBRARY) for loader in LOADERS),
        *(call(f"{loader} getpid", loader, "getpid", None) for loader in LOADERS),
        # The free-threaded build, with the GIL switched on: a process of its own.
        *(
            call(f"{loader} {function}{ON}", loader, function, library, "GIL on", labels=(FREE_THREADED,), gil=True)
            for function, library in (("noop", LIBRARY), ("getpid", None))
            for loader in LOADERS
        ),
        call("CDLL noop again", "CDLL", "noop", LIBRARY),
        *(
            call(f"{loader} {function}", loader, function, LIBRARY, maker="declared_call")
            for function in DECLARED
            for loader in LOADERS
        ),
        # Two processes that differ in the hook only. With the GIL alone: five functions take the time.
        call("CDLL noop, audited", "CDLL", "noop", LIBRARY, "audited", "audited_call", (GIL,)),
        call("CDLL noop, not audited", "CDLL", "noop", LIBRARY, "not audited", labels=(GIL,)),
        Arm.of("detach and attach", ARMS, "detach_attach", {"folder": f"{BUILT}/loaders"}),
    ]


def calls(session: Session) -> Record:
    """Time all arms on all interpreters, interleaved in one run."""
    return session.time("calls", arms())


# [/calls]

# [blocking as run]
# The talk does not say how long its usleep took. This is long enough to count about as far as it did.
TALK_SLEEP_MS = 300


def original_blocking(session: Session) -> pd.DataFrame:
    """A13 as the talk ran it: iterations of a thread during one C call, CDLL first, in one process; and again in fresh ones."""
    fixed = {"library": LIBRARY, "milliseconds": TALK_SLEEP_MS}
    cases = [Case(**one, file=EXPERIMENTS, function="original_blocking", fixed=fixed) for one in conditions(session)]
    return session.run(BLOCKING, cases, session.budget.few)


# [/blocking as run]


# [counting]
SLEEP_MS = 100
# How long the thread counts for its reference, before and after the calls.
REFERENCE_MS = 70


def counting(session: Session) -> pd.DataFrame:
    """A13 corrected: counts, longest pauses and times of both phases, one process each, in random order."""
    fixed = {"library": LIBRARY, "milliseconds": SLEEP_MS, "reference_ms": REFERENCE_MS}
    cases = [
        Case(**one, file=EXPERIMENTS, function="counting", factors={"loader": loader}, fixed=fixed)
        for one in conditions(session)
        for loader in LOADERS
    ]
    return session.run("counting thread", cases, session.budget.repeats)


# [/counting]

# [hazards]
# Long enough to tell waiting from deadlock: the other thread needs a few ms.
DEADLOCK_MS = 300
SAFE, RISKY = ("what should be safe", "crashes and deadlocks")
SHOULD_BE_SAFE = ((GIL, "PyDLL", "C API"), (GIL, "CDLL", "handshake"))
# In how many processes each runs, by budget. None of 228 excludes that it happens in one of fifty, and none of thirty that it does in one
# of seven. A process takes a twentieth of a second; one that dies or hangs, a few of these.
SAFE_PROCESSES = {"smoke": 2, "room": 30, "quick": 228, "full": 228}
RISKY_PROCESSES = {"smoke": 1, "room": 10, "quick": 30, "full": 30}


def hazard(label: str, loader: str, what: str) -> Case:
    """A process that calls the C API through a loader, or waits in it for another thread. It may die."""
    factors, named = {"loader": loader}, {"what": what}
    if what == "C API":
        return Case(label, EXPERIMENTS, "python_api", factors, named=named)
    wait = {"library": LIBRARY, "milliseconds": DEADLOCK_MS}
    return Case(label, EXPERIMENTS, "handshake", factors, wait, named)


def hazards(session: Session) -> pd.DataFrame:
    """A14: both for each loader. One process shows that something can happen; that it does not takes many."""
    every = [
        (label, loader, what) for label in session.interpreters for loader in LOADERS for what in ("C API", "handshake")
    ]
    safe = [hazard(*case) for case in SHOULD_BE_SAFE]
    others = [hazard(*case) for case in every if case not in SHOULD_BE_SAFE]
    session.run(SAFE, safe, SAFE_PROCESSES[session.budget.name], may_fail=True)
    session.run(RISKY, others, RISKY_PROCESSES[session.budget.name], may_fail=True)
    # All processes count, also those that others disturbed: an event that was seen has happened.
    return pd.concat([session.frame(title, disturbed=True) for title in (SAFE, RISKY)], ignore_index=True)


# [/hazards]

# [repair]
TASKS = ("wait", "halve", "new_list")


def tried(program: str) -> list[dict]:
    """What becomes of each task with the reader's program, with the GIL: a process for each, which may hang or die."""
    rows = []
    for task in TASKS:
        fixed = {"program": program, "library": LIBRARY}
        outcome = Case(GIL, EXPERIMENTS, "repaired", {"task": task}, fixed, timeout_s=5).run()
        rows.append({"task": task, "ended": outcome.ended, **(outcome.result or {})})
    return rows


def repair(session: Session, program: str) -> list[dict]:
    """The same, written down. It is looked at and not measured: who else uses the machine meanwhile does not matter."""
    return session.observe("the exercise's program", tried, program)


# [/repair]
