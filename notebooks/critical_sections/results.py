"""What the records of the chapter "Critical sections" say: taxes, prices, rates in company, and their intervals."""

import numpy as np
import pandas as pd

from ffilab.bench.record import Record, medians
from ffilab.judge import processes, statistics
from ffilab.judge.estimates import Interval, Location
from ffilab.provision.catalogue import both_builds
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections.experiment import BOUNDARY, OPERATIONS

COPIES = [("function call", "function call again")]
BOUNDARY_ARMS = [boundary.name(binding, boundary.INT) for binding in BOUNDARY]
# Group of headers: the word in their names.
HEADERS = {"atomics": "atomic", "mutexes": "lock", "critical sections": "critical_section"}


def from_headers(by_file: dict[str, float]) -> dict[str, float]:
    """Instructions from the headers of atomics, mutexes and critical sections, of instructions by file."""
    return {
        group: sum(n for file, n in by_file.items() if word in file and "clock" not in file)
        for group, word in HEADERS.items()
    }


def lock_share(code: list[dict] | str, label: str, what: str) -> float | str:
    """A9: share of all three groups in the instructions of a call or operation, or the reason why it is not known."""
    if isinstance(code, str):
        return code
    row = next(row for row in code if (row["interpreter"], row["what"]) == (label, what))
    if "reason" in row:
        return row["reason"]
    return sum(from_headers(row["by_file"]).values()) / sum(row["by_file"].values())


def boundary_arms(version: str, stand_ins: dict[str, dict[str, str]]) -> list[str]:
    """The calls that the tax on the boundary of a version is computed from: through bindings that are the same on both builds."""
    others = {binding for label in (version, f"{version}t") for binding in stand_ins.get(label, {})}
    return [boundary.name(binding, boundary.INT) for binding in BOUNDARY if binding not in others]


def tax(record: Record, version: str, names: list[str]) -> Location | None:
    """Geometric mean over arms of time on the free-threaded build over time with the GIL; None if neither was timed."""
    pair = (f"{version}t", version)
    logs = [
        statistics.log_ratios(record, *((label, name) for label in pair))
        for name in names
        if all(record.measured(label, name) for label in pair)
    ]
    if not logs:
        return None
    # Where a layout lacks an arm, as its core had company, the others of the layout stand for it: arms differ in their level.
    centres = medians(np.array(logs))
    values = centres.mean() + pd.DataFrame(logs).sub(centres, axis=0).mean().to_numpy()
    return statistics.over_units(record, values, log=True)


def taxes(record: Record, stand_ins: dict[str, dict[str, str]]) -> pd.DataFrame:
    """The tax of every version of which both builds were timed, on the interpreter's own operations and the boundary."""
    rows = []
    for version in both_builds(record.interpreters):
        for what, names in (("interpreter", list(OPERATIONS)), ("boundary", boundary_arms(version, stand_ins))):
            if found := tax(record, version, names):
                rows.append({"version": version, "what": what, **vars(found.at())})
    return pd.DataFrame(rows, columns=["version", "what", "value", "low", "high"])


def operation_ratios(record: Record, version: str) -> pd.DataFrame:
    """Each operation on the free-threaded build over the same with the GIL, of one version."""
    rows = []
    for arm in [*OPERATIONS, *BOUNDARY_ARMS]:
        cells = (f"{version}t", arm), (version, arm)
        if all(record.measured(*cell) for cell in cells):
            rows.append({"operation": arm, **vars(statistics.ratio(record, *cells))})
    return pd.DataFrame(rows)


def piece_cost(record: Record, label: str, name: str) -> Interval | None:
    """Nanoseconds of one loop of a piece, from which no loop is to be taken off, as no Python is in it; None if missing."""
    cell = (label, f"{name}, in C")
    return statistics.per_call(record, cell) if record.measured(*cell) else None


def per_operation(runs: pd.DataFrame, **which) -> Interval | None:
    """Nanoseconds of one operation, all threads together, of the processes that `which` chooses; None if there are none."""
    return processes.interval_of(runs.assign(ns=1e9 / runs.together), "ns", **which)


def scaling(runs: pd.DataFrame, label: str, names: tuple[str, ...]) -> pd.DataFrame:
    """Rate of several threads over that of one in the same process, by name and case, with intervals."""
    rows = []
    cases = runs[["threads", "shared"]].drop_duplicates().sort_values(["threads", "shared"])
    for name in names:
        for threads, shared in cases.itertuples(index=False):
            part = processes.chosen(runs, interpreter=label, name=name, shared=shared, threads=threads)
            if len(part):
                found = np.log((part.together / part.alone).to_numpy())
                interval = statistics.ratio_interval(found)
                rows.append({"name": name, "threads": threads, "shared": shared, **vars(interval)})
    return pd.DataFrame(rows)
