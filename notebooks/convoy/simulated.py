"""Made-up records of the chapter "The GIL convoy", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.convoy.experiment import APART, CONVOY, DEFAULT_S, ONE_CORE, PROCESS, QUIET, RELIEVED, SHORTEST_S

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
# Seconds for a request beside one CPU thread where nothing is lost by it, or less than nothing.
PLAIN_S = 0.01
# Both claims of C6 are about a side; a ratio does not fall below this, however wrong the side is.
SMALLEST = 0.1


def simulated(session: Simulated) -> None:
    n = session.budget.repeats

    def rows(column: str, centre: float, scatter: float) -> list[dict]:
        return [{column: float(value)} for value in session.scattered(centre, scatter, n)]

    def processes(title: str, results: list) -> None:
        session.add_processes(title, [(GIL, {}, results)])

    cells = {(DEFAULT_S, 1): 1.0, (DEFAULT_S, 8): 1.0}
    cells[DEFAULT_S, 2] = session.true("C1", "countdown, 2 threads / 1: {GIL}")
    cells[SHORTEST_S, 8] = session.true("C5", "countdown, 8 threads, 1e-6 s / 0.005 s: {GIL}")
    columns = [
        [{"interval": interval, "threads": threads, **row} for row in rows("ns", 15 * cell, COUNTDOWN[threads])]
        for (interval, threads), cell in cells.items()
    ]
    processes("countdown", [list(process) for process in zip(*columns, strict=True)])

    faster = session.true("C2", "SHA-256, 1 thread / 2: {GIL}")
    pairs = zip(rows("seconds", 0.02, HASHES[1]), rows("seconds", 0.02 / faster, HASHES[2]), strict=True)
    processes("SHA-256", [[{"threads": 1, **one}, {"threads": 2, **two}] for one, two in pairs])

    session.add_processes(
        "echo server",
        [(GIL, {"case": case}, rows("rate", rate, RATES[case])) for case, rate in rates(session).items()],
    )

    wait = session.true("C8", "wait for the GIL / switch interval: {GIL}") * DEFAULT_S * 1e9
    processes("waits for the GIL", [{"waits": [row["ns"]]} for row in rows("ns", wait, WAIT)])


def rates(session: Simulated) -> dict[str, float]:
    """Requests per second by case. What C10 says and what C3 says of a process are tied: both tell what a CPU thread adds."""

    def true(claim: str, what: str) -> float:
        return session.true(claim, f"requests/s {what}: {{GIL}}")

    process = true("C3", "with one CPU process / with one CPU thread")
    added = session.true("C10", "switch intervals added to a request by one CPU thread: {GIL}") * DEFAULT_S
    convoy = (1 - 1 / process) / added if process > 1 else 1 / PLAIN_S
    one_core = convoy * max(SMALLEST, true("C6", "with one CPU thread, one core / not pinned"))
    return {
        CONVOY: convoy,
        QUIET: convoy * true("C3", "without / with one CPU thread"),
        PROCESS: convoy * process,
        RELIEVED: convoy * true("C4", "with one CPU thread, 1e-5 s / 0.005 s"),
        ONE_CORE: one_core,
        APART: one_core / max(SMALLEST, true("C6", "with one CPU thread, client on the same core / client apart")),
    }
