"""What the records of the chapter "GIL Balm" say: costs, gains and their intervals, and what Python answered."""

import numpy as np
import pandas as pd

from ffilab.bench.record import Record
from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Measurement, Share
from ffilab.judge.processes import chosen, ratio
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.balm.experiment import AGAIN, BEST, BLOCK, LINES, NEW, OURS, PAIR, POOLED

COPIES = [(NEW, AGAIN)]
COPIED = "block, copied type"


def cost(record: Record, label: str, arm: str) -> Interval | None:
    """Nanoseconds for each string, made and dropped; None if it was not measured."""
    if not record.measured(label, arm):
        return None
    return statistics.per_call(record, (label, arm)).map(lambda ns: ns / LINES)


def faster(record: Record, label: str, arm: str, than: str = NEW) -> Measurement | None:
    """How many times as fast `arm` is as `than`, in one run; None if one of them was not measured."""
    if not record.measured(label, arm) or not record.measured(label, than):
        return None
    return statistics.compare(record, (label, than), (label, arm)).measurement


def change_without_gil(record: Record) -> Interval:
    """What the best of ours gains with the GIL, over what it gains without: above 1, it gains less without."""
    return statistics.ratio_of_ratios(record, *(((label, NEW), (label, BEST)) for label in (GIL, FREE_THREADED)))


def per_string(runs: pd.DataFrame, **which) -> np.ndarray:
    """Nanoseconds for each string, one value per process, by round."""
    return chosen(runs, **which).sort_values("round").ns.to_numpy()


def original_ratio(runs: pd.DataFrame, slow: tuple[str, int], fast: tuple[str, int]) -> Measurement | None:
    """As its author ran it: the time of one (method, number of threads) over that of another, paired by round."""
    return ratio(*(per_string(runs, method=method, threads=threads) for method, threads in (slow, fast)))


def series(runs: pd.DataFrame) -> pd.DataFrame:
    """ns for each string with its interval. Columns CPython, series, threads, value, low, high."""
    rows = []
    ways = [
        (label, method, how) for label in PAIR for method in (NEW, POOLED, BLOCK, BEST) for how in ("kept", "released")
    ]
    ordered = runs.set_index(["interpreter", "method", "how"])
    for label, method, how in (way for way in ways if way in ordered.index):
        for threads, part in ordered.loc[[(label, method, how)]].groupby("threads"):
            found = statistics.location_interval(part.ns.to_numpy())
            name = method if method == NEW or label == FREE_THREADED else f"{method}, GIL {how}"
            rows.append({"CPython": label, "series": name, "threads": int(threads), **vars(found)})
    return pd.DataFrame(rows)


def answers(runs: pd.DataFrame) -> pd.DataFrame:
    """What Python answered: a row for each interpreter and probe, a column for each kind of string."""
    return runs.pivot(index=["interpreter", "probe"], columns="kind", values="answer")


def forged_share(runs: pd.DataFrame) -> float:
    """B4: share of our strings, over kinds and interpreters, that are instances of str and not of exact type str."""
    given = answers(runs)[[*OURS, COPIED]]
    instance, exact = (given.xs(probe, level="probe") for probe in ("isinstance(x, str)", "type(x) is str"))
    return float((instance.eq("True") & exact.eq("False")).to_numpy().mean())


def misread(runs: pd.DataFrame) -> Share | None:
    """B6: interpreters that take a string without a NUL for `12`, and int() of it for no number.

    Of those whose process ended well; None if none did.
    """
    found = []
    for _, part in chosen(runs, what="no NUL at the end").groupby("interpreter"):
        if (part.ended == "ok").all():
            said = dict(zip(part.asked, part.answer))
            found.append("ValueError" in said["int(x)"] and said["x == '12'"] == "True")
    return Share(sum(found), len(found)) if found else None
