"""What the chapter "The GIL convoy" hands in to the ledger, from its records alone. The rules: claims.toml."""

from functools import partial

from ffilab.bench.session import Session
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import measured, ratio
from notebooks.convoy.experiment import APART, CONVOY, DEFAULT_S, ONE_CORE, PROCESS, QUIET, RELIEVED, SHORTEST_S
from notebooks.convoy.results import gil_waits, rates, seconds, shares_waiting, steps

NO_PINNING = "this system cannot pin a process to a core"


def measurements(session: Session) -> Handed:
    handed = Handed(session)

    def put(claim: str, name: str, make, *arguments) -> None:
        handed.put(claim, f"{name}: {{GIL}}", partial(make, session, *arguments))

    one, two, eight, shortest = (1, DEFAULT_S), (2, DEFAULT_S), (8, DEFAULT_S), (8, SHORTEST_S)
    put("C1", "countdown, 2 threads / 1", times_of_steps, two, one)
    put("C2", "SHA-256, 1 thread / 2", times_of_hashes, 1, 2)
    put("C3", "requests/s without / with one CPU thread", ratio_of_rates, QUIET, CONVOY)
    put("C3", "requests/s with one CPU process / with one CPU thread", ratio_of_rates, PROCESS, CONVOY)
    put("C4", "requests/s with one CPU thread, 1e-5 s / 0.005 s", ratio_of_rates, RELIEVED, CONVOY)
    put("C5", "countdown, 8 threads, 1e-6 s / 0.005 s", times_of_steps, shortest, eight)
    put("C6", "requests/s with one CPU thread, one core / not pinned", ratio_of_rates, ONE_CORE, CONVOY, NO_PINNING)
    places = "requests/s with one CPU thread, client on the same core / client apart"
    put("C6", places, ratio_of_rates, ONE_CORE, APART, NO_PINNING)
    put("C8", "wait for the GIL / switch interval", waits)
    for number, times in ((1, "one wait"), (2, "two waits")):
        put("C10", f"share of requests with {times} or more", share_waiting, number)
    return handed


def times_of_steps(session: Session, *cells: tuple[int, float]) -> Measurement | None:
    """One cell of the countdown over another; a cell is a number of threads and a switch interval."""
    counts = session.frame("countdown")
    return ratio(*(steps(counts, *cell) for cell in cells))


def times_of_hashes(session: Session, *threads: int) -> Measurement | None:
    """SHA-256 with one number of threads over another."""
    hashed = session.frame("SHA-256")
    return ratio(*(seconds(hashed, number) for number in threads))


def ratio_of_rates(session: Session, case: str, other: str, lacking: str | None = None) -> Measurement | str | None:
    """Requests a second in one case over those in another."""
    runs = session.frame("echo server")
    return ratio(rates(runs, case), rates(runs, other)) or lacking


def waits(session: Session) -> Measurement | None:
    """The median wait of each process for the GIL."""
    return measured(gil_waits(session.frame("waits for the GIL")), "switch intervals")


def share_waiting(session: Session, times: int) -> Measurement | None:
    """Requests beside one CPU thread that wait so often, or more often."""
    return measured(shares_waiting(session.frame("echo server"), CONVOY, times), "share of requests")
