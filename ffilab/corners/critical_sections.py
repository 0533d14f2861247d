"""Chapter "Critical sections": what the locks that replaced the GIL cost (claims A6, A8, A9)."""

import dataclasses
import random
import runpy
import secrets

import numpy as np
import pandas as pd

from ffilab import machine
from ffilab.bench import child, instructions, runner
from ffilab.bench.plan import Arm, plan
from ffilab.bench.record import Record
from ffilab.budget import current
from ffilab.corners import marshaling
from ffilab.errors import UserError
from ffilab.judge import statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import exact
from ffilab.judge.statistics import Interval
from ffilab.paths import NATIVE, NATIVE_OUT

SOURCES = NATIVE / "critical_sections"
LIBRARIES = NATIVE_OUT / "critical_sections"
ARMS = SOURCES / "arms.py"
EXPERIMENTS = SOURCES / "experiments.py"
OPERATIONS: tuple[str, ...] = tuple(runpy.run_path(str(ARMS))["OPERATIONS"])
KERNEL, WITH_GIL = "3.14t", "3.14"
# Name: increments per loop. The same list as in lock_pieces.c; a test compares the two.
PIECES = {
    "no lock": 1,
    "atomic increment": 1,
    "PyMutex": 1,
    "pthread mutex": 1,
    "critical section": 1,
    "critical section, inlined": 1,
    "critical section, two objects": 1,
    "critical section, recursive entry": 1,
    "reference count": 0,
    "100 increments under one PyMutex": 100,
    "100 atomic increments": 100,
}
FOREIGN = "reference count, foreign object"
WHEN = {
    "no lock": "never, if two threads can meet there",
    "atomic increment": "one number, and nothing else has to agree with it",
    "PyMutex": "data of your own, in C; a byte in size; lets go of the thread state while it waits",
    "pthread mutex": "threads that Python does not know; detach before you wait for it",
    "critical section": "the state of one Python object; cannot deadlock with others, may be suspended",
    "critical section, two objects": "an operation on two objects at once",
    "critical section, inlined": "the interpreter's own code only: its header is internal",
    "critical section, recursive entry": "a function that locks, called by one that has locked; from 3.14 on",
    "reference count": "an object that another thread made: nothing to choose, it is what sharing costs",
    "100 increments under one PyMutex": "many steps that may wait for each other as a whole",
    "100 atomic increments": "many steps, if others must get in between",
}
BATCH_MS = 2
# Bindings whose call the tax on the boundary is computed from.
BOUNDARY = ("C API", "Cython", "nanobind", "pybind11", "PyO3", "ctypes CDLL")
OBJECTS = ("dict", "list", "counter object")
CONTENDED_TEXTS = ("UTF-8 of one text", "UTF-8 of new texts", "interning one text", "attribute by a new name")
CONTENTION_MS = 8
DOCUMENTED = {"3.13": "about 40 %", "3.14": "5 to 10 %", "3.15": "none of its own"}
AGAIN = " again"


def arms() -> list[Arm]:
    """Operations of the interpreter, calls across the boundary, the pieces in C, and two second copies."""
    folder = str(LIBRARIES)
    operations = [Arm(name, str(ARMS), "operation", {"name": name}) for name in OPERATIONS]
    copies = [Arm("function call" + AGAIN, str(ARMS), "operation", {"name": "function call"})]
    crossing = [marshaling.call(binding, marshaling.INT) for binding in BOUNDARY]
    texts = [marshaling.call(marshaling.FLOOR, signature) for signature in marshaling.TEXTS]
    pieces = [Arm(f"{name}, in C", str(ARMS), "piece", {"folder": folder, "name": name}) for name in PIECES]
    foreign = Arm(f"{FOREIGN}, in C", str(ARMS), "foreign_reference_count", {"folder": folder})
    return [*operations, *copies, *crossing, *texts, *pieces, foreign]


def measure(labels: list[str]) -> Record:
    """Time all of it on one thread, on all kernels, interleaved in one run."""
    budget = dataclasses.replace(current(), batch_ms=min(BATCH_MS, current().batch_ms), seconds=current().seconds / 2)
    return runner.run(plan("critical_sections.single", arms(), labels, budget))


def tax(record: Record, version: str, names: list[str]) -> Interval | None:
    """Geometric mean over arms of time on the t-build over time on the GIL build; None if one of them is missing."""
    pair = (f"{version}t", version)
    usable = [n for n in names if not {(label, n) for label in pair} & set(record.missing)]
    if not set(pair) <= set(record.kernels) or not usable:
        return None
    logs = [statistics.restart_log_ratios(record, (pair[0], n), (pair[1], n)) for n in usable]
    return statistics.location_interval(np.mean(logs, axis=0), record.run["plan"]["seed"]).map(np.exp)


def boundary_arms() -> list[str]:
    return [marshaling.name(binding, marshaling.INT) for binding in BOUNDARY]


def taxes(record: Record) -> pd.DataFrame:
    """The tax of every version present, on the interpreter's own operations and on the boundary."""
    rows = []
    for version in DOCUMENTED:
        for what, names in (("interpreter", list(OPERATIONS)), ("boundary", boundary_arms())):
            if interval := tax(record, version, names):
                rows.append({"version": version, "what": what, **vars(interval)})
    return pd.DataFrame(rows, columns=["version", "what", "value", "low", "high"])


def operation_ratios(record: Record, version: str) -> pd.DataFrame:
    """Each operation on the t-build over the same on the GIL build of one version."""
    rows = []
    for arm in [*OPERATIONS, *boundary_arms()]:
        cells = (f"{version}t", arm), (version, arm)
        if not set(cells) & set(record.missing):
            rows.append({"operation": arm, **vars(marshaling.ratio(record, *cells))})
    return pd.DataFrame(rows)


def piece_cost(record: Record, label: str, name: str) -> Interval:
    """Nanoseconds of one loop of a piece: no Python is in it, so there is no loop to take off."""
    return statistics.per_call(record, (label, f"{name}, in C"))


def jobs() -> list[tuple]:
    """Every contended case: kernel, experiment, and its arguments."""
    many = 2 * machine.cores_usable()
    found = []
    for name in PIECES:
        for shared, threads in (("one object", 2), ("own objects", 2), ("one object", many)):
            found.append((KERNEL, EXPERIMENTS, "contended_piece", LIBRARIES, name, shared, threads, CONTENTION_MS))
    for label in (KERNEL, WITH_GIL):
        for kind in OBJECTS:
            for shared, threads in (("one object", 2), ("own objects", 2), ("one object", many)):
                found.append((label, EXPERIMENTS, "contended_object", kind, shared, threads, CONTENTION_MS))
    for binding in marshaling.BINDINGS:
        if not marshaling.why_not_built(KERNEL, binding):
            found.append((KERNEL, EXPERIMENTS, "contended_binding", marshaling.LIBRARIES, binding, 2, CONTENTION_MS))
    for which in CONTENDED_TEXTS:
        found.append((KERNEL, EXPERIMENTS, "contended_text", marshaling.LIBRARIES, which, 2, CONTENTION_MS))
    return [*found, (KERNEL, EXPERIMENTS, "calibration", LIBRARIES, CONTENTION_MS)]


def case(job: tuple) -> tuple[str, str, int, int]:
    """Name, what is shared, threads and milliseconds of a contended job."""
    _, _, experiment, *arguments = job
    if experiment != "contended_object":
        arguments = arguments[1:]  # the folder of the libraries
    name, *shared, threads, milliseconds = arguments
    return name, shared[0] if shared else "one object", threads, milliseconds


def contention() -> pd.DataFrame:
    """Rates of all contended cases, one row per fresh process."""
    rows = []
    for job, outcome in child.repeat("threads", jobs(), current().few, random.Random(secrets.randbits(32))):
        label, _, experiment, *arguments = job
        result = outcome.needed(f"{experiment} {arguments} on {label} brought no result")
        if experiment == "calibration":
            rows += [{"kernel": label, "what": experiment, "name": k, "scaling": v} for k, v in result.items()]
            continue
        name, shared, threads, _ = case(job)
        rows.append(
            {
                "kernel": label,
                "what": experiment.removeprefix("contended_"),
                "name": name,
                "shared": shared,
                "threads": threads,
                "per_second": result["together"],
                "scaling": result["together"] / result["alone"],
            }
        )
    return pd.DataFrame(rows)


def chosen(runs: pd.DataFrame, column: str, **which) -> np.ndarray:
    """`per_second` or `scaling` of one case, one value per process."""
    rows = np.logical_and.reduce([runs[key] == value for key, value in which.items()])
    return runs[rows][column].to_numpy()


def scaling(runs: pd.DataFrame, label: str, what: str) -> pd.DataFrame:
    """Rate of several threads over that of one in the same process, by name and case, with intervals."""
    rows = []
    for job in jobs():
        if (job[0], job[2]) == (label, f"contended_{what}"):
            name, shared, threads, _ = case(job)
            found = chosen(runs, "scaling", kernel=label, what=what, name=name, shared=shared, threads=threads)
            interval = statistics.location_interval(np.log(found)).map(np.exp)
            rows.append({"name": name, "case": f"{threads} threads, {shared}", **vars(interval)})
    return pd.DataFrame(rows)


def calibration(runs: pd.DataFrame) -> dict[str, Interval]:
    """What two processes, and two threads that share nothing, do at once, over what one does alone."""
    return {
        how: statistics.location_interval(chosen(runs, "scaling", what="calibration", name=how))
        for how in ("processes", "threads")
    }


def lock_code(labels: tuple[str, ...] = (WITH_GIL, KERNEL)) -> pd.DataFrame | str:
    """A9: share of a call's instructions that come from the headers of atomics, mutexes and critical sections."""
    if reason := instructions.available():
        return reason
    looked_at = [
        ("a PyO3 call", marshaling.call("PyO3", marshaling.INT)),
        *(
            (name, Arm(name, str(ARMS), "operation", {"name": name}))
            for name in ("dict, write", "list, append and pop")
        ),
    ]
    rows = []
    for label in labels:
        for what, arm in looked_at:
            try:
                found = instructions.by_file(label, arm)
            except UserError:
                continue
            if set(found) == {"???"}:
                return f"CPython {label} has no debugging information, so inlined code cannot be told apart"
            total = sum(found.values())
            row = {"CPython": label, "what": what, "instructions": total}
            for group, word in (("atomics", "atomic"), ("mutexes", "lock"), ("critical sections", "critical_section")):
                row[group] = sum(n for file, n in found.items() if word in file and "clock" not in file)
            rows.append(row)
    return pd.DataFrame(rows)


def lock_share(code: pd.DataFrame | str, label: str, what: str) -> float | None:
    """Share of all three groups in one row; None if it is not there."""
    if isinstance(code, str):
        return None
    row = code[(code.CPython == label) & (code.what == what)]
    if row.empty:
        return None
    return float(row[["atomics", "mutexes", "critical sections"]].sum(axis=1).iloc[0] / row.instructions.iloc[0])


def claim_measurements(record: Record, code: pd.DataFrame | str) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger, by claim id."""
    restarts = len(record.noise.restarts)
    handed = {"A6": {}, "A8": {}, "A9": {}}
    for version in ("3.13", "3.14"):
        if interval := tax(record, version, boundary_arms()):
            log = statistics.Interval(*(np.log(x) for x in (interval.value, interval.low, interval.high)))
            mde = float(np.expm1(statistics.minimum_detectable_effect(log, restarts)))
            handed["A6"][f"boundary, {version}t / {version}"] = Measurement(interval, mde, "ratio of times")
    for slow, fast in (
        ("100 atomic increments", "100 increments under one PyMutex"),
        ("PyMutex", "atomic increment"),
    ):
        cells = [(KERNEL, f"{name}, in C") for name in (slow, fast)]
        if not set(cells) & set(record.missing):
            result = statistics.compare(record, *cells)
            handed["A8"][f"{slow} / {fast}"] = Measurement(result.ratio, result.mde, "ratio of times")
    for label in (KERNEL, WITH_GIL):
        share = lock_share(code, label, "a PyO3 call")
        if share is not None:
            name = f"share of atomics and locks in a PyO3 call on {label}"
            handed["A9"][name] = exact(share, "share of instructions")
    return handed


def check_lock(lock: str, record: Record) -> list[str]:
    """The exercise's self-check: a stress test in a process of its own first, then the price. One line each."""
    if lock not in PIECES or not PIECES[lock]:
        known = [name for name, increments in PIECES.items() if increments]
        return [f"Still open. Choose one of: {'; '.join(known)}."]
    found = child.result(KERNEL, EXPERIMENTS, "stress", LIBRARIES, lock, 8, 2_000_000 // PIECES[lock])
    if found["value"] != found["expected"]:
        lost = found["expected"] - found["value"]
        return [f"Not correct: {lost:,} of {found['expected']:,} increments were lost."]
    safe = [name for name, increments in PIECES.items() if increments and name != "no lock"]
    if lock not in safe:
        return ["Nothing was lost this time. That proves nothing: run it again, and look at the code."]
    price = {name: piece_cost(record, KERNEL, name).value / PIECES[name] for name in safe}
    best = min(safe, key=price.get)
    lines = [f"Correct: all {found['expected']:,} increments are there."]
    if price[lock] <= 1.1 * price[best]:
        return [*lines, f"Fast: {price[lock]:.2f} ns an increment; nothing safe is cheaper here."]
    return [*lines, f"Not yet the cheapest: {price[lock]:.2f} ns an increment; {price[best]:.2f} ns can be had."]
