"""What the records of the chapter "Critical sections" say: taxes, prices, rates in company, and their intervals."""

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from ffilab.judge import processes, statistics
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Estimate, Interval, Location
from ffilab.judge.questions import NO, YES, above
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections.experiment import GIL_ON, ONE, OPERATIONS

COPIES = [("function call", "function call again")]
# The call of the talk through its four bindings, and through the floor.
TALK_ARMS = [boundary.name(binding, boundary.ANSWER) for binding in boundary.TALK]
BOUNDARY_ARMS = [boundary.name(boundary.FLOOR, boundary.ANSWER), *TALK_ARMS]
# The interpreter's operations by what they do with an object: walk over it, write to it, or neither.
ITERATING = tuple(name for name in OPERATIONS if "iterate" in name or "comprehension" in name)
WRITING = ("attribute, write", "dict, write", "list, append and pop", "set, add")
KINDS = {
    "interpreter": tuple(OPERATIONS),
    "iterating": ITERATING,
    "writing": WRITING,
    "the rest": tuple(name for name in OPERATIONS if name not in (*ITERATING, *WRITING)),
}
# Group of headers: the word in their names.
HEADERS = {"atomics": "atomic", "mutexes": "lock", "critical sections": "critical_section"}


def code_in(code: list[dict] | str, label: str, what: str) -> dict[str, float] | str:
    """A9: instructions of a call or operation by the group of their header, and of all of it; or why they are not
    known.

    Without those of the loop, whose own atomics would pass for the call's.
    """
    if isinstance(code, str):
        return code
    counted = {}
    for row in code:
        if row["interpreter"] == label and row["what"] in (what, EMPTY):
            if "reason" in row:
                return row["reason"]
            files = row["by_file"].items()
            counted[row["what"]] = {"all": sum(n for _, n in files)} | {
                group: sum(n for file, n in files if word in file and "clock" not in file)
                for group, word in HEADERS.items()
            }
    # A difference of averages over loops: what is below a hundredth of an instruction is none.
    net = {group: round(counted[what][group] - n, 2) + 0.0 for group, n in counted[EMPTY].items()}
    return {**net, "locks": net["mutexes"] + net["critical sections"]}


def talk_arms(version: str, stand_ins: dict[str, dict[str, str]]) -> list[str]:
    """The talk's calls through those of its bindings that are the same on both builds of a version."""
    others = {binding for label in (version, f"{version}t") for binding in stand_ins.get(label, {})}
    return [arm for binding, arm in zip(boundary.TALK, TALK_ARMS) if binding not in others]


def net(record: Record, cell: tuple[str, str]) -> np.ndarray:
    """ns of an arm without its loop, one value for each layout. Between two builds the loop's own tax is no part of the
    arm's."""
    empty = f"{EMPTY} ({GIL_ON})" if cell[1].endswith(GIL_ON) else EMPTY
    return medians(record.times(*cell) - record.times(cell[0], empty))


def net_logs(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> np.ndarray:
    """Logarithms of the ratio of two arms without their loops; NaN where nothing is left of one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(net(record, slow) / net(record, fast))


def net_ratio(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> Location | None:
    """The ratio of two arms without their loops, over layouts; None if one was not timed."""
    if not (record.has(*slow) and record.has(*fast)):
        return None
    return statistics.over_units(record, net_logs(record, slow, fast), log=True)


def tax(record: Record, version: str, names: list[str], gil: bool = False) -> Location | None:
    """Geometric mean over arms of time on the free-threaded build over time with the GIL; None if none was timed.

    gil: of the free-threaded build with the GIL switched on.
    """
    pairs = [((f"{version}t", f"{name}, {GIL_ON}" if gil else name), (version, name)) for name in names]
    logs = [net_logs(record, *pair) for pair in pairs if all(record.has(*cell) for cell in pair)]
    if not logs:
        return None
    # Where a layout lacks an arm, as its core had company, the others of the layout stand for it: arms differ in their
    # level.
    frame = pd.DataFrame(logs).replace([np.inf, -np.inf], np.nan)
    centres = medians(frame.to_numpy())
    return statistics.over_units(record, centres.mean() + frame.sub(centres, axis=0).mean().to_numpy(), log=True)


def as_run(runs: pd.DataFrame, version: str, gil: str, stand_ins: dict[str, dict[str, str]]) -> Location | None:
    """A6 by the talk's method: the geometric mean over its bindings of mean over mean, process by process.

    gil: "as built", or the free-threaded build with the GIL on.
    """
    others = {binding for label in (version, f"{version}t") for binding in stand_ins.get(label, {})}
    slow = processes.chosen(runs, interpreter=f"{version}t", gil=gil)
    fast = processes.chosen(runs, interpreter=version)
    used = [name for name in boundary.TALK if name in runs and name not in others]
    n = min(len(slow), len(fast))
    logs = np.log(slow[used].to_numpy(float)[:n] / fast[used].to_numpy(float)[:n]) if used else np.empty((0, 0))
    logs = logs[:, ~np.isnan(logs).all(axis=0)] if n else logs
    return Location.of(logs.mean(axis=1), log=True) if logs.size else None


def operation_ratios(record: Record, version: str, operations: Iterable[str] = OPERATIONS) -> pd.DataFrame:
    """Each operation on the free-threaded build over the same with the GIL, of one version."""
    rows = []
    for arm in [*operations, *BOUNDARY_ARMS]:
        cells = (f"{version}t", arm), (version, arm)
        if found := net_ratio(record, *cells):
            rows.append({"operation": arm, **vars(found.at())})
    return pd.DataFrame(rows)


def piece(name: str, label: str = FREE_THREADED) -> tuple[str, str]:
    return label, f"{name}, in C"


def piece_cost(record: Record, label: str, name: str) -> Interval | None:
    """Nanoseconds of one loop of a piece, from which no loop is to be taken off, as no Python is in it; None if
    missing."""
    return statistics.per_call(record, piece(name, label)) if record.has(*piece(name, label)) else None


def pieces_compared(record: Record, slow: str, fast: str, label: str = FREE_THREADED) -> Location | None:
    """Time of one piece over that of another, each for one loop of it; None if one is missing.

    Where layouts fall into two classes no centre of them is one that a reader will see: then it is their mean, with its
    error.
    """
    cells = [piece(name, label) for name in (slow, fast)]
    if not all(record.has(*cell) for cell in cells):
        return None
    found, values = statistics.ratio_over_units(record, *cells), statistics.log_ratios(record, *cells)
    if not two_classes(np.exp(values)):
        return found
    plain = Location.mean(values[np.isfinite(values)], log=True)
    return replace(
        found, centre=plain.centre, error=max(found.error, plain.error), freedom=min(found.freedom, plain.freedom)
    )


# Two classes are layouts with nothing in between: a gap of so many of the typical distance within a class, and of so
# much of the number itself. One layout alone is no class.
APART, WORTH_A_CLASS = 5, 0.2


def two_classes(values: np.ndarray) -> list[tuple[float, int]]:
    """Median and number of the values of each of two classes, the lower first; empty if the values are one class."""
    ordered = np.sort(np.log(values[np.isfinite(values)]))
    if len(ordered) < 6:
        return []
    cut = int(np.argmax(np.diff(ordered)[1:-1])) + 2
    low, high = ordered[:cut], ordered[cut:]
    within = float(np.median(np.abs(np.concatenate([low - np.median(low), high - np.median(high)]))))
    if high[0] - low[-1] <= max(APART * within, math.log1p(WORTH_A_CLASS)):
        return []
    return [(math.exp(float(np.median(part))), len(part)) for part in (low, high)]


# Two must do so much more than one, at least. What two can do at most, how far an estimate may lie above it, and its
# interval.
FASTER, TWO, BEYOND, WIDE = 1.1, 2, 1.1, 1.5


def calibrated(runs: pd.DataFrame, cores: int) -> list[Check]:
    """Did two processes, and two threads that share nothing, do more than one, and no more than the cores can?

    No claim rests on it; every sentence of the page on threads does.
    """
    most = min(TWO, cores)
    checks = []
    for how in ("processes", "threads"):
        found = Location.of(runs[how].to_numpy()).interval
        passed = above(found, FASTER) == YES and found.value <= BEYOND * most and above(found, WIDE * most) == NO
        shown = f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]" if found.is_known else f"{found.value:.2f}"
        number = (
            f"the work of one, in {len(runs)} runs on {cores} cores" if cores > 1 else "the work of one, on one core"
        )
        words = f"{shown} times {number}"
        checks.append(Check("two at once", f"two {how}", words, passed, abs(most - found.value)))
    return checks


def alone(runs: pd.DataFrame, **which) -> Interval | None:
    """ns of one operation of one thread without a rival, in the processes that `which` chooses; None if there are
    none."""
    return positive(1e9 / processes.chosen(runs, **which).alone)


def of_each(runs: pd.DataFrame, **which) -> Interval | None:
    """ns of one operation of each thread while all run, of the processes that `which` chooses; None if there are
    none."""
    part = processes.chosen(runs, **which)
    return positive(1e9 * part.threads / part.together)


def positive(values: pd.Series) -> Interval | None:
    """Centre of durations, by their logarithms: no bound is below nothing. None if there are no values."""
    return Location.of(np.log(values.to_numpy(dtype=float)), log=True).interval if len(values) else None


COLUMNS = ["name", "threads", "shared", "value", "low", "high", "n"]


def scaling(runs: pd.DataFrame, label: str, names: Iterable[str]) -> pd.DataFrame:
    """Rate of several threads over that of one in the same process, by name and case, with intervals."""
    rows = []
    cases = runs[["threads", "shared"]].drop_duplicates().sort_values(["threads", "shared"])
    for name in names:
        for threads, shared in cases.itertuples(index=False):
            part = processes.chosen(runs, interpreter=label, name=name, shared=shared, threads=threads)
            if len(part):
                interval = Location.of(gains(part), log=True).interval
                rows.append({"name": name, "threads": threads, "shared": shared, **vars(interval), "n": len(part)})
    return pd.DataFrame(rows, columns=COLUMNS)


def rate_of_two(runs: pd.DataFrame, **which) -> Location | None:
    """Rate of two threads over that of one, in the processes that `which` chooses; None if there are none."""
    part = processes.chosen(runs, threads=2, **which)
    return Location.of(gains(part), log=True) if len(part) else None


def rivals(runs: pd.DataFrame, slow: str, fast: str) -> Estimate | None:
    """ns of an operation of each of two threads on one object: one piece over another, in processes of their own."""
    parts = [processes.chosen(runs, name=name, shared=ONE, threads=2).together for name in (slow, fast)]
    return (
        processes.ratio_of_groups(*(-np.log(part.to_numpy(dtype=float)) for part in parts))
        if all(map(len, parts))
        else None
    )


def gains(part: pd.DataFrame) -> np.ndarray:
    """Logarithms of the rate of several threads over that of one, by process."""
    return np.log((part.together / part.alone).to_numpy())
