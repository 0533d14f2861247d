"""Chapter "GIL Balm": strings that CPython did not allocate (claims B1-B6)."""

import dataclasses
import json
import platform
import runpy
import subprocess

import numpy as np
import pandas as pd

from ffilab import kernels, machine
from ffilab.bench import child, instructions, runner
from ffilab.bench.plan import Arm, plan
from ffilab.bench.record import Record
from ffilab.budget import current
from ffilab.judge import statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import chosen, exact, ratio
from ffilab.judge.statistics import Interval
from ffilab.paths import NATIVE, NATIVE_OUT
from ffilab.provision.catalogue import BY_LABEL

SOURCES = NATIVE / "balm"
LIBRARIES = NATIVE_OUT / "balm"
ARMS, NANOARROW, EXPERIMENTS = SOURCES / "arms.py", SOURCES / "nanoarrow_arm.py", SOURCES / "experiments.py"
LINES: int = runpy.run_path(str(SOURCES / "corpus.py"))["LINES"]
KERNEL, WITHOUT_GIL = "3.14", "3.14t"
PAIR = (KERNEL, WITHOUT_GIL)
NEW, POOLED, BLOCK, BEST = "new", "pooled", "block", "pages and tuple"
OURS = (POOLED, "compact", BLOCK, "pages", BEST)
# The original's three columns.
ORIGINAL = (NEW, POOLED, BLOCK)
# A block is so fast that 16 threads need the original's number of tuples to forget their start. The other two take
# long: outside `full` they make a fifth. What is measured is a time for each string.
THREADS = 16
PUBLISHED_TUPLES, FEWER_TUPLES, GRID_TUPLES = 10_000, 2_000, 200
AGAIN = "new, again"
RELEASED = ", released"
EVERY = {"all": 1, "one in ten": 10, "one in a hundred": 100}
SANITIZED_STRINGS = 10_000_000
MISUSE = (
    "a hash of 0",
    "no NUL at the end",
    "bytes that are not ASCII",
    "a borrowed reference",
    "another interpreter",
    "the maker's thread is gone",
    "alive at exit",
)
LAZY, ARROW = "lazy sequence", "Arrow array (nanoarrow)"


def arms(labels: list[str]) -> list[Arm]:
    """Every way to make the strings of the text, ours and the rivals."""
    folder = str(LIBRARIES)

    def strings(name: str, method: str, released: bool = False, **options) -> Arm:
        return Arm(name, str(ARMS), "strings", {"folder": folder, "method": method, "released": released}, **options)

    with_writer = tuple(label for label in labels if not label.startswith("3.13"))
    found = [strings(name, name) for name in (NEW, "from string", *OURS)]
    found += [strings(AGAIN, NEW), strings("writer", "writer", kernels=with_writer)]
    found += [strings(method + RELEASED, method, True) for method in (POOLED, BLOCK, BEST)]
    found += [
        Arm("one decode, then splitlines", str(ARMS), "one_decode"),
        Arm("memoryviews", str(ARMS), "views"),
        Arm("made once, tuple again", str(ARMS), "made_once", {"folder": folder}),
    ]
    for share, every in EVERY.items():
        for method in (NEW, BEST):
            arguments = {"folder": folder, "method": method, "every": every}
            found.append(Arm(f"{method}, {share} read", str(ARMS), "read", arguments))
        found.append(Arm(f"{LAZY}, {share} read", str(ARMS), "lazy", {"folder": folder, "every": every}))
    # On free-threaded builds nanoarrow turns the GIL on; elsewhere than on the chapter's kernel it is not installed.
    for share, read in (("none", False), ("all", True)):
        name = f"{ARROW}, {share} read"
        found.append(Arm(name, str(NANOARROW), "array", {"read": read}, group="nanoarrow", kernels=(KERNEL,)))
    return found


def measure(labels: list[str]) -> Record:
    """One thread: all ways on all kernels, interleaved."""
    budget = dataclasses.replace(current(), seconds=current().seconds / 2)
    return runner.run(plan("balm.one_thread", arms(labels), labels, budget))


def was_measured(record: Record, label: str, arm: str) -> bool:
    """Arms are missing where they could not be made, or were not asked for on that kernel."""
    return f"{label}/{arm}" in record.blocks[0]["ns"]


def cost(record: Record, label: str, arm: str) -> Interval | None:
    """Nanoseconds for each string, made and dropped; None if it was not measured."""
    if not was_measured(record, label, arm):
        return None
    return statistics.per_call(record, (label, arm)).map(lambda ns: ns / LINES)


def faster(record: Record, label: str, arm: str, than: str = NEW) -> Measurement | None:
    """How many times as fast `arm` is as `than`, in one run; None if one of them was not measured."""
    if not was_measured(record, label, arm) or not was_measured(record, label, than):
        return None
    found = statistics.compare(record, (label, than), (label, arm))
    return Measurement(found.ratio, found.mde, "ratio of times")


def outcomes(session: child.Session, title: str, jobs: list[tuple], repeats: int, **limits) -> list[tuple]:
    """(kernel, case, result) of each process. A job is (kernel, case, experiment, *arguments).

    Raises UserError if one brought nothing.
    """
    found = []
    for job, outcome in session.repeat(
        title, jobs, repeats, lambda job: child.run(job[0], EXPERIMENTS, job[2], LIBRARIES, *job[3:], **limits)
    ):
        found.append((job[0], job[1], outcome.needed(f"{title}, {job[1]} on CPython {job[0]}")))
    return found


def original(session: child.Session) -> pd.DataFrame:
    """B1-B3 as the author ran them, by one thread and by 16, our strings made without the GIL.

    Columns method, threads, ns (for each string), faults (page faults for each tuple).
    """
    jobs = [
        (
            KERNEL,
            f"{method}|{threads}",
            "churn",
            method,
            threads,
            tuples(method),
            "kept" if method == NEW else "original",
        )
        for threads in (1, THREADS)
        for method in ORIGINAL
    ]
    rows = []
    for _, case, result in outcomes(session, "as the author ran it", jobs, current().few, timeout_s=300):
        method, threads = case.split("|")
        rows.append({"method": method, "threads": int(threads), **result})
    return pd.DataFrame(rows)


def tuples(method: str) -> int:
    """How many tuples one process of `original` makes in this budget."""
    most = FEWER_TUPLES if method != BLOCK and current().name != "full" else PUBLISHED_TUPLES
    return max(THREADS, round(most * current().scale))


def grid(session: child.Session) -> pd.DataFrame:
    """B3 on both builds, from one thread to four times the cores; all numbers of threads in each process.

    Columns kernel, method, how, threads, ns.
    """
    each = max(THREADS, round(GRID_TUPLES * current().scale))
    jobs = []
    for label in PAIR:
        for method in (NEW, POOLED, BLOCK, BEST):
            # A free-threaded build has nothing to release.
            for how in ("kept",) if method == NEW or label == WITHOUT_GIL else ("kept", "released"):
                jobs.append((label, f"{method}|{how}", "over_threads", method, each, how, *thread_counts()))
    rows = []
    for label, case, result in outcomes(session, "threads", jobs, current().few, timeout_s=120):
        method, how = case.split("|")
        for threads, ns in result.items():
            rows.append({"kernel": label, "method": method, "how": how, "threads": int(threads), "ns": ns})
    return pd.DataFrame(rows)


def thread_counts() -> list[int]:
    """1, 2, the number of cores, and four times as many."""
    cores = machine.cores_usable()
    return sorted({1, 2, cores, 4 * cores})


def memory(session: child.Session) -> pd.DataFrame:
    """Bytes for each string. Columns kernel, method, alive, after (all were dropped), peak (MiB); empty without /proc."""
    columns = ["kernel", "method", "alive", "after", "peak"]
    if platform.system() != "Linux":
        return pd.DataFrame(columns=columns)
    jobs = [(label, method, "memory", method, 20) for label in PAIR for method in (NEW, *OURS)]
    return pd.DataFrame(
        [
            {"kernel": label, "method": method, **result}
            for label, method, result in outcomes(session, "memory", jobs, current().few)
        ],
        columns=columns,
    )


def behaviour(session: child.Session, labels: list[str]) -> dict[str, dict]:
    """B4, B6: by kernel, probe and kind of string, what Python answered."""
    jobs = [(label, "probes", "behaviour") for label in labels]
    return {label: result for label, _, result in outcomes(session, "what works", jobs, 1)}


def layouts(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """B5: strings that differ from CPython's. Columns kernel, method, text, wrong."""
    jobs = [(label, "lines", "layouts") for label in labels]
    rows = []
    for label, _, result in outcomes(session, "layouts", jobs, 1):
        for name, wrong in result.items():
            method, text = name.split(", ")
            rows.append({"kernel": label, "method": method, "text": text, "wrong": wrong})
    return pd.DataFrame(rows)


def misuse(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """B6: what must not be done, each in a process that may die of it. Columns kernel, what, ended, result (dict)."""
    jobs = [(label, what, "misuse", what) for label in labels for what in MISUSE]
    rows = []
    for job, outcome in session.repeat(
        "what must not be done", jobs, 1, lambda job: child.run(job[0], EXPERIMENTS, job[2], LIBRARIES, *job[3:])
    ):
        rows.append({"kernel": job[0], "what": job[1], "ended": outcome.ended, "result": outcome.result or {}})
    return pd.DataFrame(rows)


# Sanitizer: (build of the module, kernels that it serves).
SANITIZERS = {"AddressSanitizer": ("balm_asan", PAIR), "ThreadSanitizer": ("balm_tsan", (WITHOUT_GIL,))}
RUNTIME = {"balm_asan": "libasan.so", "balm_tsan": "libtsan.so"}


def sanitized(label: str, module: str, strings: int, folder=LIBRARIES) -> tuple[child.Outcome | None, str]:
    """Run our code under a sanitizer; the outcome (None if it cannot run here) and what was said about our code.

    CPython itself is not instrumented: what it does without us is seen at its calls of the C library only.
    """
    kernel = kernels.load(BY_LABEL[label])
    note = folder / kernels.soabi(kernel) / f"missing-{module}.txt"
    if note.exists():
        return None, note.read_text()
    runtime = subprocess.run(
        [machine.compiler(), f"-print-file-name={RUNTIME[module]}"], capture_output=True, text=True
    ).stdout.strip()
    environment = {
        "TSAN_OPTIONS": "exitcode=0 history_size=4",
        "LSAN_OPTIONS": "use_poisoned=1",
        # Objects of CPython that we must not touch come from malloc too, where that can be asked for.
        **({} if kernel.interpreter.free_threaded else {"PYTHONMALLOC": "malloc"}),
    }
    # ThreadSanitizer's shadow memory does not fit every address layout.
    fixed = instructions.fixed_addresses() if module == "balm_tsan" else []
    # Preloaded for Python only: setarch must be able to run before addresses are as the sanitizer needs them.
    program = [kernel.python, "-I", EXPERIMENTS, "sanitized", folder, module, strings]
    command = [*fixed, "env", f"LD_PRELOAD={runtime}", *program]
    ended, out, err = child.program(command, 600, environment, memory_bytes=None)
    if "unexpected memory mapping" in err:
        return (
            None,
            "its shadow memory does not fit this system's address randomisation, which cannot be switched off here",
        )
    files = [path.name for path in (SOURCES / "balm").glob("*.[ch]")]
    ours = [line.strip() for line in err.splitlines() if any(f"/{name}" in line for name in (f"{module}.", *files))]
    # ThreadSanitizer ends a process that crashed with the code for its own reports, which is 0 here.
    lines = out.splitlines() if ended == "ok" else []
    result = json.loads(lines[-1]) if lines else None
    return child.Outcome(result, ended, err[-500:]), "\n".join(ours)


def all_sanitized() -> pd.DataFrame:
    """Columns sanitizer, kernel, strings, verdict."""
    strings = max(100_000, round(SANITIZED_STRINGS * current().scale))
    rows = []
    for sanitizer, (module, labels) in SANITIZERS.items():
        for label in labels:
            outcome, said = sanitized(label, module, strings)
            if outcome is None:
                verdict, made = f"not here: {said}", 0
            elif outcome.result is None:
                verdict, made = f"no result, {outcome.ended}: {said or outcome.error[-200:]}", 0
            else:
                verdict = "a report about our code" if said else "nothing about our code"
                made = outcome.result["strings"]
            rows.append({"sanitizer": sanitizer, "kernel": label, "strings": made, "verdict": verdict})
    return pd.DataFrame(rows)


def per_string(runs: pd.DataFrame, **which) -> np.ndarray:
    """Nanoseconds for each string, one value per process."""
    return chosen(runs, **which).ns.to_numpy()


def claim_measurements(
    record: Record, runs: pd.DataFrame, answers: dict[str, dict], lines: pd.DataFrame, wrongs: pd.DataFrame
) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger, by claim id."""
    handed = {f"B{number}": {} for number in range(1, 7)}

    def put(claim: str, name: str, measurement: Measurement | None) -> None:
        if measurement is not None:
            handed[claim][name] = measurement

    # As the original had it: its strings are made without the GIL.
    put("B1", "new / pooled, one thread: 3.14", faster(record, KERNEL, POOLED + RELEASED))
    put("B2", "new / block, one thread: 3.14", faster(record, KERNEL, BLOCK + RELEASED))

    def at(method: str, threads: int = THREADS) -> np.ndarray:
        return per_string(runs, method=method, threads=[threads])

    put("B3", "pooled / new, 16 threads: 3.14", ratio(at(POOLED), at(NEW)))
    put("B3", "new / block, 16 threads: 3.14", ratio(at(NEW), at(BLOCK)))
    put("B3", "block, 16 threads / one thread: 3.14", ratio(at(BLOCK), at(BLOCK, 1)))
    forged = [
        (kinds["isinstance(x, str)"][kind], kinds["type(x) is str"][kind]) == ("True", "False")
        for kinds in answers.values()
        for kind in (*OURS, COPIED)
    ]
    put("B4", "share of forgeries that are instances of str and not of exact type str", exact(np.mean(forged), "share"))
    put("B5", "share of layouts whose strings all equal CPython's", exact((lines.wrong == 0).mean(), "share"))
    misread = [
        "ValueError" in row.result.get("int(x)", "") and row.result["x == '12'"]
        for row in wrongs[wrongs.what == "no NUL at the end"].itertuples()
    ]
    put("B6", "share of CPythons that misread a number without a NUL", exact(np.mean(misread), "share"))
    return handed


COPIED = "block, copied type"


def check_forgery(data: bytes, length: int, unknown_hash: int) -> list[str]:
    """The exercise's self-check, in a process of its own: does the forged `12` do all that a `12` must do?"""
    outcome = child.run(KERNEL, EXPERIMENTS, "forged", LIBRARIES, data.hex(), length, unknown_hash)
    if outcome.result is None:
        return [f"The process did not survive your string: {outcome.ended}. {outcome.error.strip()}"]
    lines = [f"{what}: {'right' if right else 'wrong'}" for what, right in outcome.result.items()]
    return [*lines, "It passes." if all(outcome.result.values()) else "It does not pass yet."]
