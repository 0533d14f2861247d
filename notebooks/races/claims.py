"""What the chapter "Races" hands in to the ledger, from its records alone. The rules: claims.toml."""

import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge import statistics
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import bad_runs, chosen, measured, share_of_bad_runs
from ffilab.judge.statistics import Measurement
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.races import results
from notebooks.races.experiment import THREADS, WAYS
from notebooks.races.results import KEEPING, PYDLL, RELEASING, SAFE, UNSAFE


def measurements(session: Session) -> Handed:
    bank = results.money(session.frame("bank"))
    return handed_in(session.corner, session.frame("counter, crossed"), bank, session.frame("total += 1"))


def handed_in(corner: str, crossed: pd.DataFrame, bank: pd.DataFrame, python: pd.DataFrame) -> Handed:
    """The same from the three experiments.

    A15 is judged by the threads that set off together: in the talk's own program they may never meet.
    """
    handed = Handed(corner)
    pydll, talk = {"loader": PYDLL}, {"way": PYDLL, "threads": THREADS}

    for variant, label in (
        ("unsafe", FREE_THREADED),
        ("mutex", FREE_THREADED),
        ("atomic", FREE_THREADED),
        ("unsafe", GIL),
    ):
        found = share_of_bad_runs(crossed, "lost", interpreter=label, variant=variant, **talk)
        handed.put("A15", f"bad runs: {variant}, PyDLL, {label}", found)
    lost = chosen(crossed, interpreter=FREE_THREADED, variant="unsafe", **talk).lost.to_numpy()
    handed.put("A15", f"updates lost: unsafe, PyDLL, {FREE_THREADED}", measured(lost, "share of updates"))

    for case, label in (("unsafe", FREE_THREADED), ("unsafe", GIL), ("safe", FREE_THREADED)):
        found = share_of_bad_runs(bank, "created", interpreter=label, case=f"{case}, sleep", **pydll)
        handed.put("A16", f"bad runs: {case}, PyDLL, {label}", found)
    created = chosen(bank, interpreter=FREE_THREADED, case="unsafe, sleep", **pydll).created.to_numpy()
    handed.put("A16", f"dollars from nothing: unsafe, PyDLL, {FREE_THREADED}", measured(created, "dollars"))

    handed.put("A17", f"bad runs with the sleep minus without: PyDLL, {FREE_THREADED}", sleep_minus_fast(bank))
    found = share_of_bad_runs(bank, "created", interpreter=GIL, case="unsafe, fast", **pydll)
    handed.put("A17", f"bad runs: unsafe without the sleep, PyDLL, {GIL}", found)

    for what, label, ways, variants in (
        ("unsafe, releasing the GIL", GIL, RELEASING, UNSAFE),
        ("unsafe, keeping the GIL", GIL, KEEPING, UNSAFE),
        ("unsafe, any way", FREE_THREADED, WAYS, UNSAFE),
        ("mutex and atomic, any way", GIL, WAYS, SAFE),
        ("mutex and atomic, any way", FREE_THREADED, WAYS, SAFE),
    ):
        found = share_of_bad_runs(crossed, "lost", interpreter=label, way=ways, variant=variants)
        handed.put("A18", f"bad runs: {what}, {label}", found)

    found = share_of_bad_runs(python, "lost", interpreter=GIL, interval="1 µs", statement="total += 1")
    handed.put("C7", f"bad runs: total += 1, switch interval 1 µs, {GIL}", found)
    return handed


def sleep_minus_fast(bank: pd.DataFrame) -> Measurement | None:
    """Share of bad runs of the bank with the sleep, less that without it, through PyDLL and without the GIL."""
    slow, fast = (
        bad_runs(bank, "created", interpreter=FREE_THREADED, case=case, loader=PYDLL)
        for case in ("unsafe, sleep", "unsafe, fast")
    )
    if not (slow[1] and fast[1]):
        return None
    difference = statistics.share_difference(*slow, *fast)
    return Measurement(difference, statistics.share_mde(slow[1]), "share of runs")
