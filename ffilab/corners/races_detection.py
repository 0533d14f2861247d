"""Chapter "Races", part two: what finds a race without waiting for it, and the exercise's self-check."""

import json
import os
import platform
import shutil
import tempfile
from pathlib import Path

import pandas as pd

from ffilab.bench import child
from ffilab.corners.races import KERNEL, LIBRARIES, SOURCES, WITH_GIL
from ffilab.errors import UserError
from ffilab.kernels import load, soabi
from ffilab.machine import compiler
from ffilab.provision.catalogue import BY_LABEL

# Variant of stress.c: (is there a data race?, can it give a wrong answer?). A test compares with stress.c.
STRESS = {
    "counter, unsafe": (True, True),
    "counter, mutex": (False, False),
    "counter, atomic": (False, False),
    "bank, unsafe": (True, True),
    "bank, mutex": (False, False),
    "bank, atomic load and store": (False, True),
    "bank, compare and exchange": (False, False),
    "lazy table, unsafe": (True, True),
    "lazy table, mutex": (False, False),
    "output buffer, shared": (True, True),
    "output buffer, thread-local": (False, False),
    "last error, global": (True, True),
    "last error, thread-local": (False, False),
    "publication, plain flag": (True, True),
    "publication, release and acquire": (False, False),
}
TSAN_EXIT, HELGRIND_EXIT = 66, 9
LOOM = ("load then store", "fetch_add", "Mutex", "publish, Relaxed", "publish, Release and Acquire")
REFUSED = {"static_mut.rs": "2024", "not_sync.rs": "2021"}
RACE, CLEAN = "race reported", "nothing reported"


def thread_sanitizer(command: list, timeout_s: float = 60) -> tuple[str, str]:
    """Run a program built with -fsanitize=thread; RACE, CLEAN or why it cannot run here, and the report."""
    options = {"TSAN_OPTIONS": f"exitcode={TSAN_EXIT}"}
    ended, out, err = child.program(command, timeout_s, options, memory_bytes=None)
    if "unexpected memory mapping" in err and shutil.which("setarch"):
        # Its shadow memory does not fit this kernel's address randomisation: run it without.
        without = ["setarch", platform.machine(), "-R", *command]
        ended, out, err = child.program(without, timeout_s, options, memory_bytes=None)
    words = {"ok": CLEAN, f"exit code {TSAN_EXIT}": RACE}
    return words.get(ended, f"cannot run here: {ended}, {first_line(err)}"), out + err


def helgrind(command: list) -> tuple[str, str]:
    """Run a plain program under helgrind; RACE, CLEAN or why it cannot run here, and the report."""
    if not shutil.which("valgrind"):
        return "cannot run here: there is no valgrind (`make doctor` says how to get it)", ""
    ended, out, err = child.program(
        ["valgrind", "--tool=helgrind", f"--error-exitcode={HELGRIND_EXIT}", *command], 120, memory_bytes=None
    )
    words = {"ok": CLEAN, f"exit code {HELGRIND_EXIT}": RACE}
    return words.get(ended, f"cannot run here: {ended}, {first_line(err)}"), out + err


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")


def stress(variant: str) -> tuple[str, str]:
    """One variant of the library under ThreadSanitizer."""
    program = LIBRARIES / "stress-tsan"
    if not program.exists() or program.stat().st_size == 0:
        return "cannot run here: this compiler has no ThreadSanitizer", ""
    return thread_sanitizer([program, variant])


def detected() -> pd.DataFrame:
    """Every variant of the library under both tools."""
    rows = []
    for variant, (race, wrong) in STRESS.items():
        rows.append(
            {
                "variant": variant,
                "data race": race,
                "can be wrong": wrong,
                "ThreadSanitizer": stress(variant)[0],
                "helgrind": helgrind([LIBRARIES / "stress", variant])[0],
            }
        )
    return pd.DataFrame(rows)


def report_excerpt(variant: str, lines: int = 10) -> str:
    """The beginning of ThreadSanitizer's report, without paths and process numbers of this machine."""
    found, report = stress(variant)
    if found != RACE:
        return found
    kept = [line.replace(str(SOURCES) + "/", "").rstrip() for line in report.splitlines() if line.strip("= ")]
    return "\n".join(line.split(" (stress-tsan")[0].split(" (pid=")[0] for line in kept[:lines])


def missing(project: str) -> str | None:
    """Why a project of this corner was not built; None if it was."""
    note = LIBRARIES / f"missing-{project}.txt"
    return note.read_text() if note.exists() else None


def explored() -> pd.DataFrame | str:
    """What loom finds in the Rust counters and in publication; why not, if it was not built."""
    if reason := missing("loom_model"):
        return reason
    rows = []
    for case in LOOM:
        ended, out, err = child.program([LIBRARIES / "cargo" / "loom_model" / "release" / "loom_model", case])
        if ended != "ok":
            raise UserError(f"loom ended with {ended}: {first_line(err)}")
        rows.append({"case": case, **json.loads(out)})
    return pd.DataFrame(rows)


def refusal(name: str) -> str:
    """What rustc says to a file of `rust_counter/refused`; why not, if there is no rustc."""
    if not shutil.which("rustc"):
        return "There is no rustc here: `make doctor` says how to get it."
    with tempfile.TemporaryDirectory() as folder:
        file = SOURCES / "rust_counter" / "refused" / name
        ended, _, err = child.program(
            ["rustc", "--edition", REFUSED[name], "--crate-type", "lib", "--out-dir", folder, file]
        )
    if ended == "ok":
        raise UserError(f"rustc accepts {name}; this chapter says that it does not.")
    return err.replace(str(file.parent) + "/", "").strip()


def run_parallel(label: str, test: str) -> tuple[str, str]:
    """One test of the dispenser under pytest-run-parallel, 8 threads: `passed` or `failed`, and pytest's output."""
    kernel = load(BY_LABEL[label])
    ended, out, err = child.program(
        [
            kernel.python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--parallel-threads=8",
            f"{SOURCES / 'shared_state' / 'tests' / 'test_tickets.py'}::{test}",
        ],
        environment={"PYTHONPATH": str(LIBRARIES / soabi(kernel)), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    words = {"ok": "passed", "exit code 1": "failed"}
    if ended not in words:
        raise UserError(f"pytest on CPython {label} ended with {ended}: {(err or out)[-300:]}")
    return words[ended], out


def parallel_tests() -> pd.DataFrame:
    """The safe and the unsafe dispenser under pytest-run-parallel, on both builds."""
    rows = []
    for test in ("test_unsafe_ticket", "test_ticket"):
        rows.append(
            {"test": test, **{f"CPython {label}": run_parallel(label, test)[0] for label in (WITH_GIL, KERNEL)}}
        )
    return pd.DataFrame(rows)


EXERCISE = SOURCES / "exercise"


def racy_tally() -> str:
    """The exercise's source: a histogram with a race."""
    return (EXERCISE / "tally.c").read_text()


def check_tally(source: str) -> list[str]:
    """The self-check: does it compile, is it exact under stress, does ThreadSanitizer accept it, and is it fast?"""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tally.c"
        file.write_text(source)
        plain, sanitized, naive = (Path(folder) / name for name in ("plain", "sanitized", "naive"))
        if error := _compile(file, plain):
            return [f"It does not compile: {error}"]
        ended, out, err = child.program([plain])
        if ended != "ok":
            return [f"Not correct: the stress run ended with {ended}. {first_line(err)}".strip()]
        mine = json.loads(out)
        if mine["lost"]:
            return [f"Not correct: {mine['lost']:,} of {mine['bytes']:,} bytes were not counted."]
        lines = [f"Exact this time: all {mine['bytes']:,} bytes were counted."]
        if _compile(file, sanitized, "-fsanitize=thread", "-DSHORT"):
            lines.append("This compiler has no ThreadSanitizer, so that nobody looked for a race that did not happen.")
        else:
            found, report = thread_sanitizer([sanitized])
            if found == RACE:
                place = next((line.strip() for line in report.splitlines() if "#0" in line), "")
                return [*lines, f"Not correct: ThreadSanitizer found a data race, {place.split(folder)[0].strip()}"]
            lines.append("ThreadSanitizer found nothing." if found == CLEAN else f"ThreadSanitizer {found}.")
        _compile(EXERCISE / "mutex_per_byte.c", naive)
        theirs = json.loads(child.program([naive])[1])
    lines.append(
        f"{mine['ns_per_byte']:.2f} ns a byte with {mine['threads']} threads; a mutex for each byte takes "
        f"{theirs['ns_per_byte']:.2f}."
    )
    faster = theirs["ns_per_byte"] / mine["ns_per_byte"]
    lines.append("Fast." if faster > GOAL else f"Not yet fast: aim at more than {GOAL} times the mutex for each byte.")
    return lines


# Far above the noise: counting into memory of one's own needs no lock in the loop.
GOAL = 5


def _compile(file: Path, program: Path, *flags: str) -> str | None:
    """Build `file` with the exercise's main function; None, or the compiler's first error."""
    command = [compiler(), "-O2", "-g", "-pthread", *flags, file, EXERCISE / "check.c", "-o", program]
    ended, _, err = child.program(command, environment={"TMPDIR": os.path.dirname(program)})
    if ended == "ok":
        return None
    return next((line.split("tally.c:")[-1] for line in err.splitlines() if "error" in line), first_line(err))
