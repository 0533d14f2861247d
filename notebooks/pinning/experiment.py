"""What the chapter "Where threads run" measures (claims A24a, A24b). The page quotes all of it."""

import pandas as pd

from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.run.machine import cores_to_pin
from ffilab.run.paths import BUILT
from ffilab.setup.catalogue import FREE_THREADED, GIL

# [setting]
EXPERIMENTS = "native/pinning/experiments.py"
PAIR = (GIL, FREE_THREADED)
# Where threads may run. The second copy of the first placement is the A/A test.
FREE, AGAIN, APART, ONE_CORE, ALONE = "not pinned", "not pinned, again", "a core each", "one core", "alone"
NATIVE, PYTHON = "native call", "Python"
# What claims are judged by gets all repetitions of the budget, the rest half of them.
DECISIVE_THROUGHPUT = ((GIL, NATIVE), (FREE_THREADED, PYTHON))
DECISIVE_LATENCY = ((GIL, PYTHON), (FREE_THREADED, PYTHON))
TITLE_CORES = "cores that a process may be pinned to"


def placements(session: Session) -> list[str]:
    """Those that this system has: to pin two threads apart takes two cores, and a call that pins."""
    return [FREE, AGAIN, APART, ONE_CORE] if len(session.observe(TITLE_CORES, cores_to_pin)) > 1 else [FREE, AGAIN]


def many(session: Session) -> int:
    """Repetitions where one takes less than a second."""
    return session.budget.shares if session.budget.is_result else session.budget.repeats


def in_processes(session: Session, title: str, function: str, decisive: tuple, fixed: dict) -> pd.DataFrame:
    """A case for each interpreter and kind of work, in processes of their own."""

    def cases(chosen: bool) -> list[Case]:
        return [
            Case.of(label, EXPERIMENTS, function, {"work": work}, {**fixed, "seed": "{seed}"}, timeout_s=30)
            for label in PAIR
            for work in (NATIVE, PYTHON)
            if ((label, work) in decisive) == chosen
        ]

    runs = [
        session.run(title, cases(True), session.budget.repeats),
        session.run(f"{title}, further cases", cases(False), session.budget.few),
    ]
    return pd.concat(runs, ignore_index=True)


# [/setting]


# [steadiness]
MEASURED, TURNS = (GIL, PYTHON), 30
MEASURED_S = {"smoke": 0.002, "room": 0.01, "quick": 0.01, "full": 0.01}


def steadiness(session: Session) -> pd.DataFrame:
    """What one thread that measures finds in each turn, pinned and not."""
    label, work = MEASURED
    fixed = {
        "folder": f"{BUILT}/convoy",
        "placements": [one for one in (FREE, APART) if one in placements(session)],
        "turns": TURNS,
        "seconds": MEASURED_S[session.budget.name],
        "seed": "{seed}",
    }
    return session.run("steadiness", [Case.of(label, EXPERIMENTS, "steadiness", {"work": work}, fixed)], many(session))


# [/steadiness]


# [throughput]
TURN_S, ROUNDS = {"smoke": 0.005, "room": 0.03, "quick": 0.03, "full": 0.1}, 3


def throughput(session: Session) -> pd.DataFrame:
    """Chunks of work a second, moves a second and cores, by placement and number of threads."""
    known = placements(session)
    fixed = {
        "folder": f"{BUILT}/convoy",
        # A thread alone: whether it is pinned, and no more.
        "cells": [(one, 2) for one in known] + [(one, 1) for one in (FREE, APART) if one in known],
        "seconds": TURN_S[session.budget.name],
        "rounds": ROUNDS,
    }
    return in_processes(session, "throughput", "throughput", DECISIVE_THROUGHPUT, fixed)


# [/throughput]


# [latency]
TICKS = 150
# Beside a thread that has the GIL for 5 ms, a hundred ticks take more than half a second.
AT_MOST_S = {"smoke": 0.02, "room": 0.7, "quick": 0.7, "full": 1.5}


def latency(session: Session) -> pd.DataFrame:
    """How late a thread answers beside one that computes (µs), by placement."""
    fixed = {
        "folder": f"{BUILT}/convoy",
        "placements": [*placements(session), ALONE],
        "ticks": TICKS,
        "seconds": AT_MOST_S[session.budget.name],
    }
    return in_processes(session, "latency", "latency", DECISIVE_LATENCY, fixed)


# [/latency]


# [race]
INCREMENTS = {"smoke": 100_000, "room": 10_000_000, "quick": 10_000_000, "full": 30_000_000}


def race(session: Session) -> pd.DataFrame:
    """Share of updates that two threads lose in native code, by placement."""
    fixed = {
        "folder": f"{BUILT}/races",
        "placements": [one for one in placements(session) if one != AGAIN],
        "each": INCREMENTS[session.budget.name],
        "seed": "{seed}",
    }
    cases = [Case.of(label, EXPERIMENTS, "race", fixed=fixed, timeout_s=30) for label in PAIR]
    return session.run("race", cases, many(session))


# [/race]
