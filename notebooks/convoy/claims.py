"""What the chapter "The GIL convoy" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Interval, known
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import measured, ratio
from notebooks.convoy.experiment import AGAIN, APART, CONVOY, DEFAULT_S, ONE_CORE, PROCESS, QUIET, RELIEVED, SHORTEST_S
from notebooks.convoy.results import added_intervals, gil_waits, rates, seconds, steps

# Two copies of one case that differ by more than this, for certain, are an alarm. What is claimed of the case are factors of two.
ALIKE = 1.1
NO_PINNING = "this system cannot pin a process to a core"


def alarming(found: Interval | None) -> bool:
    """Do the copies differ by more than what is negligible beside the claims' factors?"""
    return known(found) and (found.low > ALIKE or found.high < 1 / ALIKE)


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the server with one CPU thread twice. An alarm withholds what rests on that case."""
    runs = session.frame("echo server")
    found = ratio(rates(runs, AGAIN), rates(runs, CONVOY))
    if found is None:
        return []
    return [Control("A/A of the convoy", f"{AGAIN} / {CONVOY}", "echo server", found.estimate)]


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    runs, counts, hashed = (session.frame(title) for title in ("echo server", "countdown", "SHA-256"))

    handed.put("C1", "countdown, 2 threads / 1: {GIL}", ratio(steps(counts, 2, DEFAULT_S), steps(counts, 1, DEFAULT_S)))
    handed.put("C2", "SHA-256, 1 thread / 2: {GIL}", ratio(seconds(hashed, 1), seconds(hashed, 2)))

    def rate_ratio(claim: str, what: str, case: str, other: str, lacking: str | None = None) -> None:
        handed.put(claim, f"requests/s {what}: {{GIL}}", ratio(rates(runs, case), rates(runs, other)) or lacking)

    rate_ratio("C3", "without / with one CPU thread", QUIET, CONVOY)
    rate_ratio("C3", "with one CPU process / with one CPU thread", PROCESS, CONVOY)
    rate_ratio("C4", "with one CPU thread, 1e-5 s / 0.005 s", RELIEVED, CONVOY)
    handed.put(
        "C5",
        "countdown, 8 threads, 1e-6 s / 0.005 s: {GIL}",
        ratio(steps(counts, 8, SHORTEST_S), steps(counts, 8, DEFAULT_S)),
    )
    rate_ratio("C6", "with one CPU thread, one core / not pinned", ONE_CORE, CONVOY, NO_PINNING)
    rate_ratio("C6", "with one CPU thread, client on the same core / client apart", ONE_CORE, APART, NO_PINNING)
    waited = measured(gil_waits(session.frame("waits for the GIL")), "switch intervals")
    handed.put("C8", "wait for the GIL / switch interval: {GIL}", waited)
    added = measured(added_intervals(runs), "switch intervals")
    handed.put("C10", "switch intervals added to a request by one CPU thread: {GIL}", added)
    return handed
