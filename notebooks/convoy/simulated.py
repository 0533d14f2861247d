"""Made-up records of the chapter "The GIL convoy", by what is true of its claims: see ffilab/judge/simulation.py."""

import numpy as np

from ffilab.judge.simulation import Simulated
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.convoy.experiment import DEFAULT_S, SHORTEST_S
from notebooks.convoy.results import APART, CONVOY, ONE_CORE, PROCESS, QUIET, RELIEVED, SAME_CORE, TWO_CORES

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
# Of the shares of calls that wait, and of the speed of the CPU thread.
WAITING, WORK = 0.07, 0.05
# Requests of a timeline, and between two of them, ns.
REQUESTS, APART_NS = 40, 100_000_000
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

    divided = max(SMALLEST, session.true("C1", "one countdown divided, 2 threads / 1: {GIL}"))
    pairs = zip(rows("seconds", 1.0, COUNTDOWN[1]), rows("seconds", divided, COUNTDOWN[2]), strict=True)
    processes("one countdown", [[{"threads": 1, **one}, {"threads": 2, **two}] for one, two in pairs])

    faster = session.true("C2", "SHA-256, 1 thread / 2: {GIL}")
    pairs = zip(rows("seconds", 0.02, HASHES[1]), rows("seconds", 0.02 / faster, HASHES[2]), strict=True)
    processes("SHA-256", [[{"threads": 1, **one}, {"threads": 2, **two}] for one, two in pairs])

    cases = {case: rows("rate", rate, RATES[case]) for case, rate in rates(session).items()}
    slower = session.true("C4", "speed of the CPU thread, 1e-5 s / 0.005 s: {GIL}")
    for case, speed in ((CONVOY, 1.0), (RELIEVED, slower)):
        cases[case] = [{**row, **more} for row, more in zip(cases[case], rows("work", speed, WORK), strict=True)]
    session.add_processes("echo server", [(GIL, {"case": case}, found) for case, found in cases.items()])

    wait = session.true("C8", "wait for the GIL / switch interval: {GIL}") * DEFAULT_S * 1e9
    processes("waits for the GIL", [{"waits": [row["ns"]]} for row in rows("ns", wait, WAIT)])
    first = session.true("C8", "share of demanded releases after which the other thread is first: {GIL}")
    processes("forced switching", [{"demanded": one, "free": 0.0} for one in shares(session, first, n)])

    session.add_processes(
        "timeline", [(GIL, {"pinning": place}, timelines(session, place, n)) for place in (TWO_CORES, SAME_CORE)]
    )


def shares(session: Simulated, true: float, n: int) -> list[float]:
    return np.clip(true + session.rng.normal(0, WAITING * session.noise, n), 0, 1).tolist()


def timelines(session: Simulated, place: str, n: int) -> list[dict]:
    """Of each of n processes: requests whose calls wait for one switch interval, or not at all, in the shares of C10."""

    def waiting(call: str, where: str) -> list[float]:
        return shares(session, session.true("C10", f"share of calls of {call} that wait, {where}: {{GIL}}"), n)

    if place == SAME_CORE:
        both = zip([1.0] * n, waiting("send", "threads on one core"), strict=True)
    else:
        both = zip(*(waiting(call, "threads on different cores") for call in ("recv", "send")), strict=True)
    found = []
    for parts in both:
        spans, notes = [], []
        for number in range(REQUESTS + 1):
            # The first request is not counted.
            late = [DEFAULT_S * 1e9 * ((number - 0.5) / REQUESTS < part) for part in parts]
            sent = number * APART_NS
            received = sent + late[0] + 1000
            notes += [received, received + late[1] + 1000]
            spans.append((sent, received + 500))
        found.append({"spans": spans, "server": notes, "gaps": []})
    return found


def rates(session: Simulated) -> dict[str, float]:
    """Requests per second by case."""

    def true(claim: str, what: str) -> float:
        return session.true(claim, f"requests/s {what}: {{GIL}}")

    beside_one = 1 / DEFAULT_S / max(SMALLEST, session.true("C10", "time of a request, in switch intervals: {GIL}"))
    return {
        CONVOY: beside_one,
        QUIET: beside_one * true("C3", "without / with one CPU thread"),
        PROCESS: beside_one * true("C3", "with one CPU process / with one CPU thread"),
        RELIEVED: beside_one * true("C4", "with one CPU thread, 1e-5 s / 0.005 s"),
        ONE_CORE: beside_one * max(SMALLEST, true("C6", "with one CPU thread, one core / not pinned")),
        APART: beside_one * max(SMALLEST, true("C6", "with one CPU thread, client apart / not pinned")),
    }
