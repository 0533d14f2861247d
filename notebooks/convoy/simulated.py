"""Made-up records of the chapter "The GIL convoy", by what is true of its claims: see ffilab/judge/simulation.py."""

import numpy as np

from ffilab.judge.simulation import Simulated
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.convoy.experiment import (
    APART,
    CONVOY,
    DEFAULT_S,
    ONE_CORE,
    PROCESS,
    QUIET,
    RELIEVED,
    SHORTEST_S,
    SINGLES,
)

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviations of logarithms over processes, seen in a run of `quick`. The rate with one CPU thread falls into two
# groups, of one and of two waits a request.
RATES = {QUIET: 0.05, CONVOY: 0.25, PROCESS: 0.07, RELIEVED: 0.10, ONE_CORE: 0.08, APART: 0.02}
HASHES = {1: 0.05, 2: 0.13}
# Of the countdown by number of threads, against others of its process, in 13 processes that strangers did not disturb: the
# fewer threads, the shorter it is, and the more it feels that the speed of a core jumps.
COUNTDOWN = {1: 0.10, 2: 0.09, 8: 0.05}
# Of the median wait of a process.
WAIT = 0.02
# Requests a second beside one CPU thread.
BESIDE_ONE = 100.0
# Of the shares of requests with one wait or more, and with two.
WAITING = 0.07
# A ratio does not fall below this, however wrong the side of a claim is.
SMALLEST = 0.1


def simulated(session: Simulated) -> None:
    n = session.budget.repeats

    def rows(column: str, centre: float, scatter: float) -> list[dict]:
        return [{column: float(value)} for value in session.scattered(centre, scatter, n)]

    def processes(title: str, results: list) -> None:
        session.add_processes(title, [(GIL, {}, results)])

    cells = {(DEFAULT_S, 1): 1.0, (DEFAULT_S, 8): 1.0}
    cells[DEFAULT_S, 2] = max(SMALLEST, session.true("C1", "countdown, 2 threads / 1: {GIL}"))
    cells[SHORTEST_S, 8] = session.true("C5", "countdown, 8 threads, 1e-6 s / 0.005 s: {GIL}")
    columns = [
        [{"interval": interval, "threads": threads, **row} for row in rows("ns", 15 * cell, COUNTDOWN[threads])]
        for (interval, threads), cell in cells.items()
    ]
    processes("countdown", [list(process) for process in zip(*columns, strict=True)])

    faster = session.true("C2", "SHA-256, 1 thread / 2: {GIL}")
    pairs = zip(rows("seconds", 0.02, HASHES[1]), rows("seconds", 0.02 / faster, HASHES[2]), strict=True)
    processes("SHA-256", [[{"threads": 1, **one}, {"threads": 2, **two}] for one, two in pairs])

    cases = {case: rows("rate", rate, RATES[case]) for case, rate in rates(session).items()}
    for row, us in zip(cases[CONVOY], requests(session, n), strict=True):
        row["us"] = us
    session.add_processes("echo server", [(GIL, {"case": case}, found) for case, found in cases.items()])

    wait = session.true("C8", "wait for the GIL / switch interval: {GIL}") * DEFAULT_S * 1e9
    processes("waits for the GIL", [{"waits": [row["ns"]]} for row in rows("ns", wait, WAIT)])


def requests(session: Simulated, n: int) -> list[list[float]]:
    """Of each of n processes, how long its single requests took, in µs: no switch interval, one or two, in the shares of C10."""
    shares = [
        np.clip(share + session.scattered(0.0, WAITING, n), 0, 1)
        for share in (
            session.true("C10", f"share of requests with {waits} or more: {{GIL}}")
            for waits in ("one wait", "two waits")
        )
    ]
    interval_us = DEFAULT_S * 1e6
    return [
        [interval_us * (int(place < some) + int(place < two)) for place in np.arange(SINGLES) / SINGLES]
        for some, two in zip(*shares, strict=True)
    ]


def rates(session: Simulated) -> dict[str, float]:
    """Requests per second by case."""

    def true(claim: str, what: str) -> float:
        return session.true(claim, f"requests/s {what}: {{GIL}}")

    one_core = BESIDE_ONE * max(SMALLEST, true("C6", "with one CPU thread, one core / not pinned"))
    return {
        CONVOY: BESIDE_ONE,
        QUIET: BESIDE_ONE * true("C3", "without / with one CPU thread"),
        PROCESS: BESIDE_ONE * true("C3", "with one CPU process / with one CPU thread"),
        RELIEVED: BESIDE_ONE * true("C4", "with one CPU thread, 1e-5 s / 0.005 s"),
        ONE_CORE: one_core,
        APART: one_core / max(SMALLEST, true("C6", "with one CPU thread, client on the same core / client apart")),
    }
