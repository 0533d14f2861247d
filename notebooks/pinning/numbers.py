"""The numbers of the chapter "Where threads run", by name, and its own controls. The rules: claims.toml,
sentences.toml."""

import math
from collections.abc import Callable

import pandas as pd

from ffilab.judge.claims import declared
from ffilab.judge.controls import Check, Control
from ffilab.judge.estimates import Counted, Estimate
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import chosen
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.pinning import experiment as e
from notebooks.pinning import results

NO_PINNING = (
    "threads cannot be pinned to cores of their own here: it takes Linux, and two cores that the process may use"
)


def copies(speeds: pd.DataFrame, lateness: pd.DataFrame) -> list[tuple[str, str, str, Estimate | None]]:
    """The A/A tests: column, interpreter, work, and the second copy of "not pinned" over the first."""
    return [
        (column, label, work, results.over(frame, column, e.AGAIN, e.FREE, interpreter=label, work=work, **which))
        for frame, column, which, cases in (
            (speeds, "per_s", {"threads": 2}, e.DECISIVE_THROUGHPUT),
            (lateness, "p99", {}, e.DECISIVE_LATENCY),
        )
        for label, work in cases
    ]


def controls(session: Session) -> list[Check | Control]:
    """The chapter's own A/A tests, and whether a thread that was pinned stayed where it was put."""
    speeds, lateness = session.frame("throughput"), session.frame("latency")
    found = [
        Control(
            "A/A of placements",
            f"{column} of {e.AGAIN} / {e.FREE}, {work} on {label}",
            "throughput" if column == "per_s" else "latency",
            one,
        )
        for column, label, work, one in copies(speeds, lateness)
        if one
    ]
    on_one = chosen(speeds[speeds.ended == "ok"], placement=e.ONE_CORE) if "placement" in speeds else speeds[:0]
    away = [f"{row.interpreter}, {row.work}" for row in on_one.itertuples() if len(row.cores) > 1]
    where = ", ".join(dict.fromkeys(away)) or "none was seen elsewhere"
    return [
        *found,
        Check("pinned threads stay", "threads on one core", where, not away, len(away), source="throughput"),
    ]


def numbers(session: Session) -> Makers:
    made: Makers = {}

    def throughput(what: str, label: str, work: str, one: str, other: str) -> None:
        which = {"interpreter": label, "work": work, "threads": 2}
        made[f"throughput of {what} in two threads, {named(one)} / {named(other)}: {label}"] = lambda: results.over(
            frame(session, "throughput", label, work), "per_s", one, other, **which
        )

    made[f"spread of a measurement, not pinned / pinned: {GIL}"] = lambda: results.steadier(session.frame("steadiness"))
    for what, work in (("a native call", e.NATIVE), ("Python", e.PYTHON)):
        for label in (GIL, FREE_THREADED):
            for placement in (e.APART, e.ONE_CORE):
                throughput(what, label, work, placement, e.FREE)
    for label in (GIL, FREE_THREADED):
        made[f"p99 beside a Python thread, not pinned / a core each: {label}"] = lambda label=label: results.over(
            frame(session, "latency", label, e.PYTHON), "p99", e.FREE, e.APART, interpreter=label, work=e.PYTHON
        )
        for placement in (e.APART, e.ONE_CORE):
            made[f"share of updates lost, {named(placement)}: {label}"] = lambda label=label, placement=placement: (
                results.lost(session.frame("race"), label, placement)
            )
    made[f"processes that lose updates, a core each: {FREE_THREADED}"] = lambda: results.losing(
        session.frame("race"), FREE_THREADED, e.APART
    )
    made[f"share of updates lost, a core each minus one core: {FREE_THREADED}"] = lambda: results.lost_more(
        session.frame("race"), FREE_THREADED
    )
    for placement in (e.FREE, e.APART):
        made[f"moves/s of a thread, {named(placement)}"] = lambda placement=placement: results.moves(
            pd.concat([session.frame("throughput"), session.frame("throughput, further cases")]), placement
        )
    made["cores"] = lambda: Counted(max(1, len(session.observed(e.TITLE_CORES))))
    (claim,) = (claim for claim in declared("pinning").claims if claim.id == "A24a")
    asked = {test.number: made[test.number] for test in claim.tests}
    for what, begins in (("throughput", "throughput"), ("tails", "p99")):
        of_it = [make for name, make in asked.items() if name.startswith(begins)]
        made[f"smallest gain in {what} to be found, in per cent"] = lambda of_it=of_it: smallest(of_it)
    return {name: lambda make=make: make() or NO_PINNING for name, make in made.items()}


def frame(session: Session, title: str, label: str, work: str) -> pd.DataFrame:
    """The processes of an experiment, in which a case that no claim asks for has fewer."""
    decisive = {"throughput": e.DECISIVE_THROUGHPUT, "latency": e.DECISIVE_LATENCY}[title]
    return session.frame(title if (label, work) in decisive else f"{title}, further cases")


def named(placement: str) -> str:
    return {e.FREE: "not pinned", e.APART: "a core each", e.ONE_CORE: "one core"}[placement]


def smallest(makers: list[Callable[[], Estimate | None]]) -> Counted | None:
    """The smallest effect that the run finds in four cases of five, the largest of several."""
    found = [number.mde for make in makers if (number := make())]
    return Counted(100 * max(found)) if found and not any(map(math.isnan, found)) else None
