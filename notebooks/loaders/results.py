"""What the records of the chapter "CDLL and PyDLL" say: comparisons, shares and their intervals."""

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import LEVEL, Interval, Location, Share
from ffilab.judge.statistics import Comparison
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.loaders import experiment
from notebooks.loaders.experiment import DECLARED, ON

LOADERS = tuple(experiment.LOADERS)
FUNCTIONS = ("noop", "getpid")
# To which the price of noop is carried over.
OTHERS = ("getpid", *DECLARED)
# A number carries over if it says the price of every other function to within this part of the price of noop.
WITHIN = 0.25
COPIES = [("CDLL noop", "CDLL noop again")]
# The free-threaded build with the GIL switched on, as the tables call it.
SWITCHED = f"{FREE_THREADED}{ON}"


def by_condition(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with the free-threaded build under another label where its GIL was on."""
    more = runs["condition"].fillna("") if "condition" in runs else ""
    return runs.assign(interpreter=runs.interpreter + more)


def as_run(runs: pd.DataFrame, value: str, over: str) -> pd.DataFrame:
    """What the talk's program prints, by interpreter: both loaders in the first run, and `over` over the other in all
    runs.

    Columns interpreter, CDLL, PyDLL (first run), ratios (by round), estimate.
    """
    rows = []
    for label, part in by_condition(runs).sort_values("round").groupby("interpreter"):
        table = part.pivot(index="round", columns="loader", values=value).dropna()
        ratios = table[over] / table[LOADERS[over == LOADERS[0]]]
        # A ratio of times is one of logarithms; a count may be nearly nothing.
        estimate = Location.of((np.log(ratios) if value == "seconds" else ratios).to_numpy(), log=value == "seconds")
        first = {loader: table[loader].iloc[0] for loader in LOADERS}
        rows.append({"interpreter": label, **first, "ratios": ratios, "estimate": estimate})
    return pd.DataFrame(rows)


def cells(label: str, function: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """The two cells of a function: through CDLL, through PyDLL."""
    build, on = (FREE_THREADED, ON) if label == SWITCHED else (label, "")
    return tuple((build, f"{loader} {function}{on}") for loader in LOADERS)


def comparison(record: Record, label: str, function: str) -> Comparison:
    """CDLL over PyDLL for one function in one condition."""
    group = f"{EMPTY} (GIL on)" if label == SWITCHED else EMPTY
    return statistics.compare(record, *cells(label, function), empty=group)


def comparisons(record: Record) -> list[tuple[str, str, Comparison]]:
    """CDLL over PyDLL for every condition and function."""
    switched = [SWITCHED] if record.has(*cells(SWITCHED, "noop")[0]) else []
    return [
        (label, function, comparison(record, label, function))
        for label in [*record.interpreters, *switched]
        for function in compared(record, label)
    ]


def compared(record: Record, label: str) -> list[str]:
    """The functions that are called without arguments: those of this page, and those that a reader has added."""
    names = {cell.partition("/")[2].partition(" ")[2] for cell in record.loops}
    added = sorted(
        name
        for name in names - {*FUNCTIONS, *DECLARED}
        if not name.endswith(ON) and all(record.has(*one) for one in cells(label, name))
    )
    return [*FUNCTIONS, *added]


def extra(record: Record, label: str, function: str) -> np.ndarray:
    """Nanoseconds that a call takes longer through CDLL than through PyDLL, by layout."""
    through_cdll, through_pydll = (record.times(*cell) for cell in cells(label, function))
    return medians(through_cdll - through_pydll)


def scale(record: Record, label: str, function: str) -> float:
    """On which scale a session adds what it does to a price, in ns: that of the longer of its two times."""
    return float(max(np.nanmedian(record.times(*cell)) for cell in cells(label, function)))


def price(record: Record, label: str, function: str) -> Location:
    """What CDLL takes more than PyDLL for a call, in ns, over layouts."""
    return statistics.over_units(record, extra(record, label, function), of=scale(record, label, function))


def prices(record: Record) -> pd.DataFrame:
    """What CDLL takes more for every interpreter and function, in ns; n is the number of layouts."""
    rows = []
    for label in record.interpreters:
        for function in ("noop", *OTHERS):
            found = price(record, label, function)
            rows.append({"interpreter": label, "function": function, **vars(found.at()), "n": found.n})
    return pd.DataFrame(rows)


def misses(record: Record, label: str) -> dict[str, dict[str, Interval]]:
    """By how many ns the price of noop fails to say that of each other function, carried over as a difference and as a
    ratio (without the loop): the price less what was carried over, paired by layout. The intervals hold together, for
    all functions.
    """
    level = 1 - (1 - LEVEL) / len(OTHERS)

    def attached(function: str):
        return medians(record.times(label, f"PyDLL {function}") - record.times(label, EMPTY))

    noop = extra(record, label, "noop")
    found = {"difference": {}, "ratio": {}}
    for function in OTHERS:
        carried = {"difference": noop, "ratio": attached(function) * noop / attached("noop")}
        for what, said in carried.items():
            missed = extra(record, label, function) - said
            found[what][function] = statistics.over_units(record, missed, of=scale(record, label, function)).at(level)
    return found


def gil_over_free_threaded(record: Record) -> Interval:
    """The price of noop with the GIL less that without it, in ns, paired by layout."""
    less = extra(record, GIL, "noop") - extra(record, FREE_THREADED, "noop")
    return statistics.over_units(
        record, less, of=max(scale(record, label, "noop") for label in (GIL, FREE_THREADED))
    ).at()


def twins(record: Record) -> dict[str, Comparison]:
    """A call against itself, by interpreter: a ratio that should be 1."""
    return {label: found for label, _, found in statistics.false_alarms(record, COPIES)}


def audit_cost(record: Record) -> Interval | None:
    """Nanoseconds that one idle audit hook adds to a CDLL call, with the GIL. The two arms run in different
    processes."""
    if not record.has(GIL, "CDLL noop, audited"):
        return None
    audited, plain = (
        record.times(GIL, f"CDLL noop, {how}") - record.times(GIL, f"{EMPTY} ({how})")
        for how in ("audited", "not audited")
    )
    return statistics.over_units(record, medians(audited - plain)).at()


def shares_kept(runs: pd.DataFrame) -> pd.DataFrame:
    """Share of its own rate that the counting thread keeps (centre over processes) with interval, and the median of its
    longest pauses (ms), per interpreter and loader."""
    rate = {phase: runs[f"counts.{phase}"] / runs[f"elapsed.{phase}"] for phase in ("call", "reference")}
    runs = by_condition(runs).assign(share=rate["call"] / rate["reference"], pause_ms=runs["pauses.call"] / 1e6)
    rows = []
    for (label, loader), part in runs.groupby(["interpreter", "loader"], sort=False):
        estimate = Location.of(part["share"].to_numpy())
        rows.append(
            {
                "interpreter": label,
                "loader": loader,
                "estimate": estimate,
                **vars(estimate.at()),
                "pause_ms": float(part["pause_ms"].median()),
                "runs": len(part),
            }
        )
    return pd.DataFrame(rows).sort_values(["interpreter", "loader"], ignore_index=True)


def ends(*frames: pd.DataFrame) -> pd.DataFrame:
    """Processes that crashed on a Python C API call, or deadlocked in a handshake, and how the first ended.

    A handshake that crashed or hung counts as one that did not end.
    """
    runs, rows = pd.concat(frames, ignore_index=True), []
    for label in dict.fromkeys(runs.sort_values("interpreter").interpreter):
        for loader in LOADERS:
            part = runs[(runs.interpreter == label) & (runs.loader == loader)]
            api, shake = part[part.what == "C API"], part[part.what == "handshake"]
            met = shake.met.eq(True)
            rows.append(
                {
                    "interpreter": label,
                    "loader": loader,
                    "crashes": Share(int(api.ended.str.startswith("killed by").sum()), len(api)),
                    "deadlocks": Share(int((~met).sum()), len(shake)),
                    "how": ", ".join(sorted(set(api.ended))),
                }
            )
    return pd.DataFrame(rows)


def row_of(frame: pd.DataFrame, label: str, loader: str):
    """The row of one interpreter and loader."""
    return frame[(frame.interpreter == label) & (frame.loader == loader)].iloc[0]
