"""What the chapter "Races" hands in to the ledger, from its records alone. The rules: claims.toml."""

import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Measurement, ShareDifference
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import chosen
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.races import results
from notebooks.races.experiment import THREADS, WAYS
from notebooks.races.results import PYDLL, SAFE, TEAM_SIZES


def measurements(session: Session) -> Handed:
    original = results.lost_updates(session.frame("counter, as the talk ran it"))
    bank = results.money(session.frame("bank"))
    return handed_in(session, original, session.frame("counter, crossed"), bank, session.frame("total += 1"))


def controls(session: Session) -> list[Check]:
    """Did the threads of the crossed counter meet, where they could?"""
    return results.calibrated(session.frame("counter, crossed"))


def handed_in(
    session: Session, original: pd.DataFrame, crossed: pd.DataFrame, bank: pd.DataFrame, python: pd.DataFrame
) -> Handed:
    """The same from the four experiments."""
    handed = Handed(session)
    session.reads |= {"counter, as the talk ran it", "counter, crossed", "bank", "total += 1"}
    pydll = {"loader": PYDLL}

    found = bad(original, "lost", interpreter=FREE_THREADED, variant="unsafe", **pydll)
    handed.put("A15", f"bad runs as the talk ran it: unsafe, PyDLL, {FREE_THREADED}", found)
    for variant, label in (
        ("unsafe", FREE_THREADED),
        ("mutex", FREE_THREADED),
        ("atomic", FREE_THREADED),
        ("unsafe", GIL),
    ):
        found = bad(crossed, "lost", interpreter=label, variant=variant, way=PYDLL, threads=THREADS)
        handed.put("A15", f"bad runs: {variant}, PyDLL, {label}", found)
    lost = results.expected_loss(crossed, interpreter=FREE_THREADED, variant="unsafe", way=PYDLL, threads=THREADS)
    name = f"updates lost, mean over all runs: unsafe, PyDLL, {FREE_THREADED}"
    handed.put("A15", name, Measurement(lost, "share of updates") if lost else None)

    for case, label in (("unsafe", FREE_THREADED), ("unsafe", GIL), ("safe", FREE_THREADED)):
        found = bad(bank, "created", interpreter=label, case=f"{case}, sleep", **pydll)
        handed.put("A16", f"bad runs: {case}, PyDLL, {label}", found)
    created = chosen(bank, interpreter=FREE_THREADED, case="unsafe, sleep", **pydll).created.to_numpy()
    found = Measurement(results.expected(created), "dollars") if len(created) else None
    handed.put("A16", f"dollars from nothing, mean over all runs: unsafe, PyDLL, {FREE_THREADED}", found)

    handed.put("A17", f"bad runs with the sleep minus without: PyDLL, {FREE_THREADED}", sleep_minus_fast(bank))
    found = bad(bank, "created", interpreter=GIL, case="unsafe, fast", **pydll)
    handed.put("A17", f"bad runs: unsafe without the sleep, PyDLL, {GIL}", found)

    for label in (GIL, FREE_THREADED):
        for threads in TEAM_SIZES:
            for way in WAYS:
                found = bad(crossed, "lost", interpreter=label, way=way, variant="unsafe", threads=threads)
                handed.put("A18", f"bad runs: unsafe, {way}, {threads} threads, {label}", found)
            for variant in SAFE:
                found = bad(crossed, "lost", interpreter=label, variant=variant, threads=threads)
                handed.put("A18", f"bad runs: {variant}, any way, {threads} threads, {label}", found)

    found = bad(python, "lost", interpreter=GIL, interval="1 µs", statement="total += 1")
    handed.put("C7", f"bad runs: total += 1, switch interval 1 µs, {GIL}", found)
    return handed


def bad(frame: pd.DataFrame, column: str, **which) -> Measurement | None:
    """Bad runs among all runs, by what `which` chooses; None if there are none of the kind."""
    share = results.bad_processes(frame, column, **which)
    return Measurement(share, "share of runs") if share else None


def sleep_minus_fast(bank: pd.DataFrame) -> Measurement | None:
    """Share of bad runs of the bank with the sleep, less that without it, through PyDLL and without the GIL."""
    slow, fast = (
        results.bad_processes(bank, "created", interpreter=FREE_THREADED, case=case, loader=PYDLL)
        for case in ("unsafe, sleep", "unsafe, fast")
    )
    if not (slow and fast):
        return None
    return Measurement(ShareDifference(slow.events, slow.trials, fast.events, fast.trials), "share of runs")
