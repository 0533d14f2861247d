"""What the records of the chapter "Critical sections" say: taxes, prices, rates in company, and their intervals."""

import itertools
import re

import numpy as np
import pandas as pd

from ffilab.bench.record import Record, medians
from ffilab.judge import processes, statistics
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval, Location
from ffilab.provision.catalogue import FREE_THREADED, SOURCES, both_builds
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections.experiment import BOUNDARY, FOREIGN, ONE, OPERATIONS, OWN

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
                rows.append({"version": version, "what": what, **vars(found.at()), "n": found.n})
    return pd.DataFrame(rows, columns=["version", "what", "value", "low", "high", "n"])


def documented(version: str) -> tuple[float, float] | None:
    """The tax that a version's documentation names, as ratios, lowest and highest; None if it names no number."""
    found = [1 + int(number) / 100 for number in re.findall(r"\d+", SOURCES[version].documented_tax)]
    return (min(found), max(found)) if found else None


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


def piece_ratio(record: Record, slow: str, fast: str, label: str = FREE_THREADED) -> Interval | None:
    """Time of one piece over that of another, each for one loop of it; None if one is missing."""
    cells = [(label, f"{name}, in C") for name in (slow, fast)]
    return statistics.ratio(record, *cells) if all(record.measured(*cell) for cell in cells) else None


LOCKS = ("atomic increment", "PyMutex", "pthread mutex", "critical section")


def order_of_locks(record: Record) -> tuple[list[tuple[str, Interval]], list[bool]]:
    """Locks with their ns, the cheapest first; and whether each next one is dearer beyond doubt."""
    prices = {name: found for name in LOCKS if (found := piece_cost(record, FREE_THREADED, name))}
    order = sorted(prices.items(), key=lambda item: item[1].value)
    pairs = itertools.pairwise(order)
    return order, [piece_ratio(record, dear, cheap).low > 1 for (cheap, _), (dear, _) in pairs]


def foreign_over_own(record: Record) -> Interval | None:
    """A reference count of an object that another thread made over one of an object of the thread's own."""
    return piece_ratio(record, FOREIGN, "reference count")


# Two must do so much more than one, at least. What two can do at most, how far an estimate may lie above it, and its interval.
FASTER, TWO, BEYOND, WIDE = 1.1, 2, 1.1, 1.5


def calibrated(runs: pd.DataFrame, cores: int) -> list[Check]:
    """Did two processes, and two threads that share nothing, do more than one, and no more than the cores can?

    No claim rests on it; every sentence of the page on threads does.
    """
    most = min(TWO, cores)
    checks = []
    for how in ("processes", "threads"):
        found = statistics.location_interval(runs[how].to_numpy())
        passed = found.is_known and found.low > FASTER and found.value <= BEYOND * most and found.high <= WIDE * most
        shown = f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]" if found.is_known else f"{found.value:.2f}"
        number = (
            f"the work of one, in {len(runs)} runs on {cores} cores" if cores > 1 else "the work of one, on one core"
        )
        words = f"{shown} times {number}"
        checks.append(Check("two at once", f"two {how}", words, passed, abs(most - found.value)))
    return checks


def two_threads(calibration: pd.DataFrame) -> Interval:
    """What two threads that share nothing do, over what one does."""
    return statistics.location_interval(calibration.threads.to_numpy())


def alone(runs: pd.DataFrame, **which) -> Interval | None:
    """ns of one operation of one thread without a rival, in the processes that `which` chooses; None if there are none."""
    return positive(1e9 / processes.chosen(runs, **which).alone)


def of_each(runs: pd.DataFrame, **which) -> Interval | None:
    """ns of one operation of each thread while all run, of the processes that `which` chooses; None if there are none."""
    part = processes.chosen(runs, **which)
    return positive(1e9 * part.threads / part.together)


def positive(values: pd.Series) -> Interval | None:
    """Centre of durations, by their logarithms: no bound is below nothing. None if there are no values."""
    return statistics.ratio_interval(np.log(values.to_numpy(dtype=float))) if len(values) else None


COLUMNS = ["name", "threads", "shared", "value", "low", "high", "n"]


def scaling(runs: pd.DataFrame, label: str, names: tuple[str, ...]) -> pd.DataFrame:
    """Rate of several threads over that of one in the same process, by name and case, with intervals."""
    rows = []
    cases = runs[["threads", "shared"]].drop_duplicates().sort_values(["threads", "shared"])
    for name in names:
        for threads, shared in cases.itertuples(index=False):
            part = processes.chosen(runs, interpreter=label, name=name, shared=shared, threads=threads)
            if len(part):
                interval = statistics.ratio_interval(gains(part))
                rows.append({"name": name, "threads": threads, "shared": shared, **vars(interval), "n": len(part)})
    return pd.DataFrame(rows, columns=COLUMNS)


def gains(part: pd.DataFrame) -> np.ndarray:
    """Logarithms of the rate of several threads over that of one, by process."""
    return np.log((part.together / part.alone).to_numpy())


def gain(found: pd.DataFrame, name: str, shared: str = ONE, threads: int = 2) -> Interval | None:
    """The interval of one row of `scaling`; None if there is none."""
    row = found[(found["name"] == name) & (found.shared == shared) & (found.threads == threads)]
    return Interval.of(row.iloc[0]) if len(row) else None


def own_over_shared(runs: pd.DataFrame, names: tuple[str, ...]) -> dict[str, Interval | None]:
    """By binding: the gain by a second thread with a function for each, over the gain with one function for both."""
    found = {}
    for name in names:
        own, one = (gains(processes.chosen(runs, name=name, shared=shared)) for shared in (OWN, ONE))
        measurement = processes.ratio_of_groups(own, one) if len(own) and len(one) else None
        found[name] = measurement.interval if measurement else None
    return found
