"""What the records of the chapter "CDLL and PyDLL" say: comparisons, shares and their intervals."""

import pandas as pd

from ffilab.bench.plan import EMPTY
from ffilab.bench.record import Record, medians
from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Location, Share
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.loaders.experiment import LOADERS

FUNCTIONS = ("noop", "getpid")
COPIES = [("CDLL noop", "CDLL noop again")]


def comparison(record: Record, label: str, function: str) -> statistics.Comparison:
    """CDLL over PyDLL for `noop` or `getpid` on one interpreter."""
    return statistics.compare(record, (label, f"CDLL {function}"), (label, f"PyDLL {function}"))


def comparisons(record: Record) -> pd.DataFrame:
    """One row per interpreter and function: the ratio CDLL / PyDLL, and the whole comparison."""
    return pd.DataFrame(
        [
            {"interpreter": label, "function": function, "comparison": found, **vars(found.ratio)}
            for label in record.interpreters
            for function in FUNCTIONS
            for found in [comparison(record, label, function)]
        ]
    )


def gain_with_gil_over_without(record: Record, function: str) -> Interval:
    """(CDLL / PyDLL on the GIL build) over (CDLL / PyDLL on the t-build): above 1, the GIL build gains more."""
    pairs = [((label, f"CDLL {function}"), (label, f"PyDLL {function}")) for label in (GIL, FREE_THREADED)]
    return statistics.ratio_of_ratios(record, *pairs)


def detach_attach_cost(record: Record) -> pd.DataFrame:
    """Nanoseconds for one detach and attach: alone in a C loop, and as the difference CDLL - PyDLL.

    An interpreter on which the extension could not be loaded is left out; `record.missing` says why.
    """
    rows = []
    for label in record.interpreters:
        if not record.measured(label, "detach and attach"):
            continue
        alone = statistics.per_call(record, (label, "detach and attach"))
        rows.append({"interpreter": label, "how": "alone, in a C loop", **vars(alone)})
        difference = comparison(record, label, "noop").difference
        rows.append({"interpreter": label, "how": "CDLL minus PyDLL", **vars(difference)})
    return pd.DataFrame(rows)


def cycle_shares(record: Record, cost: pd.DataFrame) -> dict[str, Interval]:
    """The bare cycle as a share of the loaders' difference, by interpreter."""
    shares = {}
    for label in cost.interpreter.unique():
        cycle = medians(record.times(label, "detach and attach"))
        loaders = medians(record.times(label, "CDLL noop") - record.times(label, "PyDLL noop"))
        shares[label] = statistics.over_units(record, cycle / loaders).at()
    return shares


def audit_cost(record: Record) -> dict[str, Interval]:
    """Nanoseconds that one idle audit hook adds to a CDLL call. The two arms run in different processes."""
    costs = {}
    for label in record.interpreters:
        audited = record.times(label, "CDLL noop, audited") - record.times(label, f"{EMPTY} (audited)")
        plain = record.times(label, "CDLL noop, not audited") - record.times(label, f"{EMPTY} (not audited)")
        costs[label] = statistics.over_units(record, medians(audited - plain)).at()
    return costs


def shares_kept(runs: pd.DataFrame) -> pd.DataFrame:
    """Share of its own rate that the counting thread keeps (centre over processes) with interval, and the median of its
    longest pauses (ms), per interpreter and loader."""
    rate = {phase: runs[f"counts.{phase}"] / runs[f"elapsed.{phase}"] for phase in ("call", "reference")}
    runs = runs.assign(share=rate["call"] / rate["reference"], pause_ms=runs["pauses.call"] / 1e6)
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


def ends(runs: pd.DataFrame) -> pd.DataFrame:
    """Processes that crashed on a Python C API call, or deadlocked in a handshake, and how the first ended.

    A handshake that crashed or hung counts as one that did not end.
    """
    rows = []
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


def of(frame: pd.DataFrame, label: str, loader: str):
    """The row of one interpreter and loader."""
    return frame[(frame.interpreter == label) & (frame.loader == loader)].iloc[0]
