"""Chapter "Races": native globals when the GIL is gone, and when it only seems to be there (claims A15-A18, C7)."""

import dataclasses
import runpy

import numpy as np
import pandas as pd

from ffilab import machine
from ffilab.bench import child, runner
from ffilab.bench.plan import Arm, plan
from ffilab.bench.record import Record
from ffilab.budget import current
from ffilab.judge import statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import bad_runs, chosen, measured, share_of_bad_runs
from ffilab.judge.statistics import Interval
from ffilab.paths import NATIVE, NATIVE_OUT

SOURCES = NATIVE / "races"
LIBRARIES = NATIVE_OUT / "races"
ARMS = SOURCES / "arms.py"
EXPERIMENTS = SOURCES / "experiments.py"
KERNEL, WITH_GIL = "3.14t", "3.14"
# Way of calling: does it release the GIL?
WAYS: dict[str, bool] = runpy.run_path(str(ARMS))["WAYS"]
LOADERS = ("ctypes PyDLL", "ctypes CDLL")
VARIANTS = ("unsafe", "mutex", "atomic")
# With thirty runs and no hit, the share of bad runs is below 12 % (Clopper and Pearson, 95 %).
RUNS = 30
# The talk's parameters.
THREADS, ITERATIONS = 50, 10_000
CUSTOMERS, ATTEMPTS = 100, 3
# Ours: threads that set off together, and increments of each. Two of them work long enough to meet for sure.
CROSSED = {2: 100_000, THREADS: ITERATIONS}
WINDOWS_NS = (0, 100, 300, 1_000, 3_000, 10_000)
SPREAD_NS, PAYMENT_ROUNDS = 20_000, 500
# Seconds, as CPython's switch interval.
INTERVALS = {"5 ms (the default)": "0.005", "100 µs": "1e-4", "1 µs": "1e-6"}
PYTHON_LOOPS = 300_000
SLOTS, KIND_LOOPS = 300, 10_000
READS = 300_000
# It reads for less than a second: a corrupted heap that goes on for longer hangs.
HANG_S = 10
BORROWED = {
    "PyList_GetItem (borrowed)": "first_borrowed",
    "PyList_GetItemRef (strong)": "first_strong",
    "PyDict_Next without a lock": "sum_unlocked",
    "PyDict_Next in a critical section": "sum_locked",
}
REMEDIES = {
    "no protection": "never, if two threads can meet there",
    "PyMutex": "several values that must agree; lets go of the thread state while it waits",
    "atomic": "one number that stands alone",
    "critical section": "the state of one Python object; no lock at all in a build with the GIL",
    "sharded, 16 atomics": "many writers, few readers: the reader adds up",
    "per-thread state": "the same, cheaper still, and it costs memory for each thread that ever counted",
    "read in place": "never, if someone may write meanwhile",
    "read under a PyMutex": "few readers, or values that change often",
    "read an immutable snapshot": "many readers, few writers; someone must decide when an old one is freed",
}
UNSAFE = ("no protection", "read in place")
AGAIN = "atomic, again"
BATCH_MS = 2
TOGETHER_MS = 5


def repeats() -> int:
    """Processes for each case: at least RUNS, except in a smoke test."""
    return max(RUNS, current().repeats) if current().is_result else current().repeats


def collect(
    session: child.Session, title: str, jobs: list[tuple], times: int | None = None, timeout_s: float = 60
) -> list[tuple[tuple, child.Outcome]]:
    """Run every job in fresh processes, in random order. A job is (label, experiment, *arguments)."""
    full = [(label, EXPERIMENTS, *rest) for label, *rest in jobs]
    found = session.repeat(title, full, times or repeats(), lambda job: child.run(*job, timeout_s=timeout_s))
    return [((job[0], *job[2:]), outcome) for job, outcome in found]


def values(
    session: child.Session, title: str, jobs: list[tuple], case: int, columns: tuple[str, ...], times: int | None = None
) -> pd.DataFrame:
    """One row for each process and entry of its result, sorted by kernel.

    case: which part of a job names the case; columns: names for kernel, case, entry and value.
    Raises UserError if a process brought nothing: these experiments lose updates, they do not crash.
    """
    rows = []
    for job, outcome in sorted(collect(session, title, jobs, times), key=lambda pair: pair[0][0]):
        result = outcome.needed(f"{job[1]} on CPython {job[0]} brought no result")
        rows += [(job[0], job[case], entry, value) for entry, value in result.items()]
    return pd.DataFrame(rows, columns=columns)


def original_counter(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """A15 as the talk ran it. Columns kernel, loader, variant, left, lost (a share)."""
    jobs = [(k, "original_counter", LIBRARIES, loader, THREADS, ITERATIONS) for k in labels for loader in LOADERS]
    found = values(session, "counter, as the talk ran it", jobs, 3, ("kernel", "loader", "variant", "left"))
    return found.assign(lost=1 - found.left / (THREADS * ITERATIONS))


def start_and_work(session: child.Session) -> pd.DataFrame:
    """ns to start a thread, and of one call of the talk's counter, on the t-build. Columns kernel, case, what, ns."""
    jobs = [(KERNEL, "start_and_work", LIBRARIES, ITERATIONS)]
    return values(session, "starting a thread", jobs, 1, ("kernel", "case", "what", "ns"))


def crossed_counter(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """A15 crossed with the way of calling. Columns kernel, way, threads, variant, lost."""
    pairs = [number for pair in CROSSED.items() for number in pair]
    jobs = [(k, "crossed_counter", LIBRARIES, way, *pairs) for k in labels for way in WAYS]
    found = values(session, "counter, crossed", jobs, 3, ("kernel", "way", "entry", "lost"))
    split = found.entry.str.split(" ", n=1)
    return found.assign(threads=split.str[0].astype(int), variant=split.str[1]).drop(columns="entry")


def rust_counter(session: child.Session) -> pd.DataFrame:
    """The counters in Rust on the t-build. Columns kernel, loader, variant, lost; empty without cargo."""
    jobs = [(KERNEL, "rust_counter", LIBRARIES, "ctypes CDLL", 2, CROSSED[2])]
    return values(session, "counter in Rust", jobs, 3, ("kernel", "loader", "variant", "lost"))


def banks(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """A16, A17. Columns kernel, loader, case, withdrawals, created (dollars made from nothing)."""
    jobs = [(k, "bank", LIBRARIES, loader, CUSTOMERS, ATTEMPTS) for k in labels for loader in LOADERS]
    found = values(session, "bank", jobs, 3, ("kernel", "loader", "case", "outcome"))
    outcome = pd.DataFrame(list(found.outcome))
    created = outcome.balance + outcome.withdrawn - 1000
    return found.drop(columns="outcome").assign(withdrawals=outcome.withdrawals, created=created)


def double_payments(session: child.Session) -> pd.DataFrame:
    """How often two threads hit a window, by its width. Columns kernel, spread, window_ns, share."""
    jobs = [(KERNEL, "double_payments", LIBRARIES, PAYMENT_ROUNDS, SPREAD_NS, *WINDOWS_NS)]
    found = values(session, "width of the window", jobs, 4, ("kernel", "spread_ns", "window_ns", "share"))
    return found.assign(window_ns=found.window_ns.astype(int))


def model_of_payments(window_ns: np.ndarray, spread_ns: float = SPREAD_NS) -> np.ndarray:
    """Share of rounds in which two threads, each at a random moment within `spread_ns`, are closer than the window."""
    return 1 - (1 - np.minimum(np.asarray(window_ns, dtype=float) / spread_ns, 1)) ** 2


def python_races(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """C7. Columns kernel, interval, statement, lost."""
    loops = round(PYTHON_LOOPS * current().scale) or 1
    jobs = [(k, "python_race", 2, loops, *INTERVALS.values()) for k in labels]
    found = values(session, "total += 1", jobs, 2, ("kernel", "threads", "entry", "lost"))
    split = found.entry.str.split(" ", n=1)
    names = {seconds: name for name, seconds in INTERVALS.items()}
    return found.assign(interval=split.str[0].map(names), statement=split.str[1]).drop(columns=["entry", "threads"])


def kinds(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """More kinds of shared state. Columns kernel, loader, kind, wrong (a share)."""
    jobs = [(k, "kinds", LIBRARIES, loader, SLOTS, KIND_LOOPS) for k in labels for loader in LOADERS]
    return values(session, "more kinds", jobs, 3, ("kernel", "loader", "kind", "wrong"))


def borrowed(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """References that nobody holds. Columns kernel, function, ended: `ok`, or how the process died; `timeout` if it hung."""
    jobs = [(k, "borrowed", LIBRARIES, function, READS) for k in labels for function in BORROWED.values()]
    names = {function: name for name, function in BORROWED.items()}
    rows = [
        {"kernel": job[0], "function": names[job[3]], "ended": outcome.ended}
        for job, outcome in collect(session, "borrowed references", jobs, current().repeats, HANG_S)
    ]
    return pd.DataFrame(rows).sort_values("kernel")


def safety_matrix(crossed: pd.DataFrame, label: str) -> pd.DataFrame:
    """A18: bad runs and all runs, for safe and unsafe functions by the way of calling. All numbers of threads."""
    rows = []
    for safe, variants in ((True, VARIANTS[1:]), (False, VARIANTS[:1])):
        for way, releases in WAYS.items():
            hits, trials = bad_runs(crossed, "lost", kernel=label, way=way, variant=variants)
            rows.append({"kernel": label, "safe": safe, "way": way, "releases": releases, "hits": hits, "runs": trials})
    return pd.DataFrame(rows)


def arms() -> list[Arm]:
    """Every remedy alone in a C loop, and a second copy of one."""
    found = [Arm(name, str(ARMS), "remedy", {"folder": str(LIBRARIES), "name": name}) for name in REMEDIES]
    return [*found, Arm(AGAIN, str(ARMS), "remedy", {"folder": str(LIBRARIES), "name": "atomic"})]


def measure(labels: list[str]) -> Record:
    """Time the remedies on one thread, on the pair."""
    budget = dataclasses.replace(current(), batch_ms=min(BATCH_MS, current().batch_ms), seconds=current().seconds / 5)
    return runner.run(plan("races.remedies", arms(), [k for k in labels if k in (WITH_GIL, KERNEL)], budget))


def remedy_together(session: child.Session) -> pd.DataFrame:
    """Remedies with rivals, on the t-build. Columns remedy, threads, ns (for one operation, all together), scaling."""
    many = 2 * machine.cores_usable()
    jobs = [(KERNEL, "remedy_together", LIBRARIES, name, TOGETHER_MS, 2, many) for name in REMEDIES]
    found = values(
        session, "remedies with rivals", jobs, 3, ("kernel", "remedy", "threads", "rates"), current().repeats
    )
    return found.assign(
        threads=found.threads.astype(int),
        ns=[1e9 / rates["together"] for rates in found.rates],
        scaling=[rates["together"] / rates["alone"] for rates in found.rates],
    ).drop(columns="rates")


def claim_measurements(
    crossed: pd.DataFrame, bank: pd.DataFrame, python: pd.DataFrame
) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger, by claim id.

    A15 is judged by the threads that set off together: in the talk's own program they may never meet.
    """
    pydll, talk = {"loader": "ctypes PyDLL"}, {"way": "ctypes PyDLL", "threads": [THREADS]}
    handed = {"A15": {}, "A16": {}, "A17": {}, "A18": {}, "C7": {}}

    def put(claim: str, what: str, measurement: Measurement | None) -> None:
        if measurement:
            handed[claim][what] = measurement

    for variant, label in (("unsafe", KERNEL), ("mutex", KERNEL), ("atomic", KERNEL), ("unsafe", WITH_GIL)):
        put(
            "A15",
            f"bad runs: {variant}, PyDLL, {label}",
            share_of_bad_runs(crossed, "lost", kernel=label, variant=variant, **talk),
        )
    put(
        "A15",
        f"updates lost: unsafe, PyDLL, {KERNEL}",
        measured(chosen(crossed, kernel=KERNEL, variant="unsafe", **talk).lost.to_numpy(), "share of updates"),
    )

    for case, label in (("unsafe", KERNEL), ("unsafe", WITH_GIL), ("safe", KERNEL)):
        put(
            "A16",
            f"bad runs: {case}, PyDLL, {label}",
            share_of_bad_runs(bank, "created", kernel=label, case=f"{case}, sleep", **pydll),
        )
    put(
        "A16",
        f"dollars from nothing: unsafe, PyDLL, {KERNEL}",
        measured(chosen(bank, kernel=KERNEL, case="unsafe, sleep", **pydll).created.to_numpy(), "dollars"),
    )

    slow, fast = (
        bad_runs(bank, "created", kernel=KERNEL, case=case, **pydll) for case in ("unsafe, sleep", "unsafe, fast")
    )
    if slow[1] and fast[1]:
        difference = statistics.share_difference(*slow, *fast)
        put(
            "A17",
            f"bad runs with the sleep minus without: PyDLL, {KERNEL}",
            Measurement(difference, statistics.share_mde(slow[1]), "share of runs"),
        )
    put(
        "A17",
        f"bad runs: unsafe without the sleep, PyDLL, {WITH_GIL}",
        share_of_bad_runs(bank, "created", kernel=WITH_GIL, case="unsafe, fast", **pydll),
    )

    keeping, releasing = ([way for way, releases in WAYS.items() if releases == r] for r in (False, True))
    for what, label, ways, variants in (
        ("unsafe, releasing the GIL", WITH_GIL, releasing, VARIANTS[:1]),
        ("unsafe, keeping the GIL", WITH_GIL, keeping, VARIANTS[:1]),
        ("unsafe, any way", KERNEL, WAYS, VARIANTS[:1]),
        ("mutex and atomic, any way", WITH_GIL, WAYS, VARIANTS[1:]),
        ("mutex and atomic, any way", KERNEL, WAYS, VARIANTS[1:]),
    ):
        put(
            "A18",
            f"bad runs: {what}, {label}",
            share_of_bad_runs(crossed, "lost", kernel=label, way=ways, variant=variants),
        )

    put(
        "C7",
        f"bad runs: total += 1, switch interval 1 µs, {WITH_GIL}",
        share_of_bad_runs(python, "lost", kernel=WITH_GIL, interval="1 µs", statement="total += 1"),
    )
    return handed


def piece_cost(record: Record, label: str, name: str) -> Interval:
    """Nanoseconds of one loop of a remedy: no Python is in it, so there is no loop to take off."""
    return statistics.per_call(record, (label, name))
