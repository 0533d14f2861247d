"""What the chapter "Where threads run" hands in to the ledger, from its records alone. The rules: claims.toml."""

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
# Two copies of one case that differ by more than what the rules ask for, for certain, are an alarm.
ALIKE = {"per_s": 1.05, "p99": 1.25}


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
    speeds, lateness, races = (session.frame(title) for title in ("throughput", "latency", "race"))

    def faster(label: str, work: str) -> Measurement | str:
        return results.over(speeds, "per_s", APART, FREE, interpreter=label, work=work, threads=2) or NO_PINNING

    def sooner(label: str) -> Measurement | str:
        return results.over(lateness, "p99", FREE, APART, interpreter=label, work=PYTHON) or NO_PINNING

    handed.put(
        "A24", "throughput of a native call in two threads, a core each / not pinned: {GIL}", faster(GIL, NATIVE)
    )
    name = "throughput of Python in two threads, a core each / not pinned: {FREE_THREADED}"
    handed.put("A24", name, faster(FREE_THREADED, PYTHON))
    handed.put("A24", "p99 beside a Python thread, not pinned / a core each: {GIL}", sooner(GIL))
    handed.put("A24", "p99 beside a Python thread, not pinned / a core each: {FREE_THREADED}", sooner(FREE_THREADED))
    losing = results.losing(races, FREE_THREADED, APART) or NO_PINNING
    handed.put("A24", "processes that lose updates, a core each: {FREE_THREADED}", losing)
    more = results.lost_more(races, FREE_THREADED) or NO_PINNING
    handed.put("A24", "share of updates lost, a core each minus one core: {FREE_THREADED}", more)
    return handed
