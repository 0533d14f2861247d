"""What the chapter "The GIL convoy" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import measured, ratio
from notebooks.convoy.experiment import CONVOY, DEFAULT_S, QUIET
from notebooks.convoy.results import added_intervals, long_waits, rates, seconds

NO_PINNING = "this system cannot pin a process to a core"


def measurements(session: Session) -> Handed:
    handed = Handed(session.corner)
    runs, counts, hashed = (session.frame(title) for title in ("echo server", "countdown", "SHA-256"))
    references = session.frame("reference counts")
    default, shortest = {"interval": [DEFAULT_S]}, {"interval": [1e-6]}

    handed.put(
        "C1", "countdown, 2 threads / 1: {GIL}", ratio(seconds(counts, 2, **default), seconds(counts, 1, **default))
    )
    handed.put("C2", "SHA-256, 1 thread / 2: {GIL}", ratio(seconds(hashed, 1), seconds(hashed, 2)))

    def rate_ratio(claim: str, what: str, case: str, other: str, lacking: str | None = None) -> None:
        handed.put(claim, f"requests/s {what}: {{GIL}}", ratio(rates(runs, case), rates(runs, other)) or lacking)

    rate_ratio("C3", "without / with one CPU thread", QUIET, CONVOY)
    rate_ratio("C3", "with one CPU process / with one CPU thread", "1 CPU process", CONVOY)
    rate_ratio("C4", "with one CPU thread, 1e-5 s / 0.005 s", f"{CONVOY}, 1e-05 s", CONVOY)
    handed.put(
        "C5",
        "countdown, 8 threads, 1e-6 s / 0.005 s: {GIL}",
        ratio(seconds(counts, 8, **shortest), seconds(counts, 8, **default)),
    )
    together, apart = f"{CONVOY}, one core", f"{CONVOY}, client apart"
    rate_ratio("C6", "with one CPU thread, one core / not pinned", together, CONVOY, NO_PINNING)
    rate_ratio("C6", "with one CPU thread, client apart / client on the same core", apart, together, NO_PINNING)
    waited = measured(long_waits(session.frame("timeline")), "switch intervals")
    handed.put("C8", "wait for the GIL / switch interval: {GIL}", waited)
    handed.put(
        "C9",
        "reference count, another thread's / the owner's: {FREE_THREADED}",
        ratio(references.foreign.to_numpy(), references.owner.to_numpy()),
    )
    added = measured(added_intervals(runs, DEFAULT_S), "switch intervals")
    handed.put("C10", "switch intervals added to a request by one CPU thread: {GIL}", added)
    return handed
