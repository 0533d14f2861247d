"""What the chapter "Where threads run" hands in to the ledger, from its records alone. The rules: claims.toml."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge.controls import Check, Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.pinning import results
from notebooks.pinning.experiment import AGAIN, APART, DECISIVE_LATENCY, DECISIVE_THROUGHPUT, FREE, NATIVE, PYTHON

NO_PINNING = (
    "threads cannot be pinned to cores of their own here: it takes Linux, and two cores that the process may use"
)


def copies(speeds: pd.DataFrame, lateness: pd.DataFrame) -> list[tuple[str, str, str, Measurement | None]]:
    """The A/A tests: column, interpreter, work, and the second copy of "not pinned" over the first."""
    return [
        (column, label, work, results.over(frame, column, AGAIN, FREE, interpreter=label, work=work, **which))
        for frame, column, which, cases in (
            (speeds, "per_s", {"threads": 2}, DECISIVE_THROUGHPUT),
            (lateness, "p99", {}, DECISIVE_LATENCY),
        )
        for label, work in cases
    ]


def controls(session: Session) -> list[Check | Control]:
    """The chapter's own A/A tests, and whether a thread that was pinned stayed where it was put."""
    speeds, lateness = session.frame("throughput"), session.frame("latency")
    found = [
        Control(
            "A/A of placements",
            f"{column} of {AGAIN} / {FREE}, {work} on {label}",
            "throughput" if column == "per_s" else "latency",
            one.estimate,
        )
        for column, label, work, one in copies(speeds, lateness)
        if one
    ]
    away = results.strayed(speeds)
    where = ", ".join(dict.fromkeys(away)) or "none was seen elsewhere"
    return [
        *found,
        Check("pinned threads stay", "threads on one core", where, not away, len(away), source="throughput"),
    ]


def measurements(session: Session) -> Handed:
    handed = Handed(session)

    def put(name: str, make: Callable[[], Measurement | None], claim: str = "A24a") -> None:
        handed.put(claim, name, lambda: make() or NO_PINNING)

    def faster(label: str, work: str) -> Measurement | None:
        which = {"interpreter": label, "work": work, "threads": 2}
        return results.over(session.frame("throughput"), "per_s", APART, FREE, **which)

    def sooner(label: str) -> Measurement | None:
        return results.over(session.frame("latency"), "p99", FREE, APART, interpreter=label, work=PYTHON)

    put("spread of a measurement, not pinned / pinned: {GIL}", lambda: results.steadier(session.frame("steadiness")))
    put(
        "processes that lose updates, a core each: {FREE_THREADED}",
        lambda: results.losing(session.frame("race"), FREE_THREADED, APART),
        "A24b",
    )
    for what, label, work in (("a native call", GIL, NATIVE), ("Python", FREE_THREADED, PYTHON)):
        name = f"throughput of {what} in two threads, a core each / not pinned: {label}"
        put(name, partial(faster, label, work))
    for label in (GIL, FREE_THREADED):
        put(f"p99 beside a Python thread, not pinned / a core each: {label}", partial(sooner, label))
    put(
        "share of updates lost, a core each minus one core: {FREE_THREADED}",
        lambda: results.lost_more(session.frame("race"), FREE_THREADED),
        "A24b",
    )
    return handed
