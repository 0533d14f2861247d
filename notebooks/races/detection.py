"""What finds a race without waiting for it: sanitizers, a pytest plugin, compilers. The page quotes all of it."""

import os
import platform
import re
import shutil
import tempfile
from functools import partial
from pathlib import Path

import pandas as pd

from ffilab.measure.case import Case, Outcome, Program, Step, answer, program
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.run.machine import compiler
from ffilab.run.paths import BUILT, NATIVE, NATIVE_OUT, without_paths
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.installed import load, soabi
from notebooks.races.experiment import EXPERIMENTS, FOLDER, TWO, repeats

# [sanitizers]
SOURCES, LIBRARIES = NATIVE / "races", NATIVE_OUT / "races"
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
RACE, CLEAN = "race reported", "nothing reported"
TSAN_EXIT, HELGRIND_EXIT = 66, 9


def sanitized(variant: str) -> dict:
    """One variant of the library under ThreadSanitizer."""
    built = LIBRARIES / "stress-tsan"
    if not built.exists() or built.stat().st_size == 0:
        return {"found": "cannot run here: this compiler has no ThreadSanitizer", "report": ""}
    return thread_sanitizer([built, variant])


def thread_sanitizer(command: list) -> dict:
    """Run a program built with -fsanitize=thread: what it `found` (RACE, CLEAN or why it cannot run) and its report."""
    options = {"TSAN_OPTIONS": f"exitcode={TSAN_EXIT}"}
    ended, out, err = program(command, 60, options, memory_bytes=None)
    if "unexpected memory mapping" in err and shutil.which("setarch"):
        # Its shadow memory does not fit this system's address randomisation: run it without.
        without = ["setarch", platform.machine(), "-R", *command]
        ended, out, err = program(without, 60, options, memory_bytes=None)
    return judged(TSAN_EXIT, ended, out + err, err)


def helgrind(variant: str) -> dict:
    """The same for the same program as it is, under helgrind."""
    if not shutil.which("valgrind"):
        return {"found": "cannot run here: there is no valgrind (`make doctor` says how to get it)", "report": ""}
    command = ["valgrind", "--tool=helgrind", f"--error-exitcode={HELGRIND_EXIT}", LIBRARIES / "stress", variant]
    ended, out, err = program(command, 120, memory_bytes=None)
    return judged(HELGRIND_EXIT, ended, out + err, err)


def judged(exit_code: int, ended: str, report: str, err: str) -> dict:
    """What a tool found, by how it ended."""
    words = {"ok": CLEAN, f"exit code {exit_code}": RACE}
    return {"found": words.get(ended, f"cannot run here: {ended}, {first_line(err)}"), "report": cleaned(report)}


def cleaned(report: str, lines: int = 10) -> str:
    """The beginning of a tool's report, without the folders, process numbers and offsets of this machine."""
    kept = [line.rstrip() for line in report.splitlines() if line.strip("= ")][:lines]
    return "\n".join(re.sub(r" \(pid=.*| \(\S+\+0x.*|[^\s(]*/", "", line) for line in kept)


def first_line(text: str) -> str:
    """The first line that is not empty."""
    return next((without_paths(line).strip() for line in text.splitlines() if line.strip()), "no message")


TOOLS = {"ThreadSanitizer": sanitized, "helgrind": helgrind}


def detected(session: Session) -> pd.DataFrame:
    """Every variant of the library under both tools, once: what each one found, and its report."""
    steps = [
        Step(partial(under, tool, variant), {"variant": variant, "tool": tool}) for variant in STRESS for tool in TOOLS
    ]
    return session.run("tools", steps, repeats=1)


def under(tool: str, variant: str, seed: int) -> Outcome:
    """One variant under one tool."""
    return Outcome(TOOLS[tool](variant), "ok")


# [/sanitizers]

# [parallel_tests]
TESTS = ("test_unsafe_ticket", "test_ticket")


def parallel_tests(session: Session) -> pd.DataFrame:
    """The unsafe and the safe dispenser under pytest-run-parallel, once with the GIL and once without it."""
    steps = [
        Step(partial(run_parallel, label, test), {"test": test}, label)
        for label in (GIL, FREE_THREADED)
        for test in TESTS
    ]
    return session.run("parallel tests", steps, repeats=1)


def run_parallel(label: str, test: str, seed: int) -> Outcome:
    """One test in 8 threads: `passed` or `failed`, and what pytest said."""
    installed = load(BY_LABEL[label])
    file = SOURCES / "shared_state" / "tests" / "test_tickets.py"
    options = ["-q", "-p", "no:cacheprovider", "--parallel-threads=8"]
    ended, out, err = program(
        [installed.python, "-m", "pytest", *options, f"{file}::{test}"],
        environment={"PYTHONPATH": str(LIBRARIES / soabi(installed)), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    words = {"ok": "passed", "exit code 1": "failed"}
    if ended not in words:
        return Outcome(None, ended, (err or out)[-300:])
    return Outcome({"outcome": words[ended], "said": without_paths(out)}, "ok")


# [/parallel_tests]


# [missing]
def missing(session: Session, project: str) -> str | None:
    """Why a project of this chapter was not built; None if it was."""
    return session.observe("not built", why_not_built, project)


def why_not_built(project: str) -> str | None:
    """What the build noted down."""
    note = LIBRARIES / f"missing-{project}.txt"
    return without_paths(note.read_text()) if note.exists() else None


# [/missing]

# [refusal]
# File of rust_counter/refused: the edition of Rust in which it is refused.
REFUSED = {"static_mut.rs": "2024", "not_sync.rs": "2021"}


def refusal(session: Session, name: str) -> str:
    """What rustc says to a file of `rust_counter/refused`; why not, if there is no rustc."""
    return session.observe("refused by rustc", refused, name)


def refused(name: str) -> str:
    """Ask rustc. Raises UserError if it accepts the file."""
    if not shutil.which("rustc"):
        return "There is no rustc here: `make doctor` says how to get it."
    file = SOURCES / "rust_counter" / "refused" / name
    with tempfile.TemporaryDirectory() as folder:
        options = ["--edition", REFUSED[name], "--crate-type", "lib", "--out-dir", folder]
        ended, _, err = program(["rustc", *options, file])
    if ended == "ok":
        raise UserError(f"rustc accepts {name}; this chapter says that it does not.")
    return without_paths(err.replace(f"{file.parent}{os.sep}", "")).strip()


# [/refusal]


# [rust_counter]
def rust_counter(session: Session) -> pd.DataFrame:
    """The counters in Rust without the GIL: share of updates lost by two threads, by variant; empty if not built."""
    fixed = {"folder": FOLDER, "loader": "ctypes CDLL", **TWO}
    built = missing(session, "rust_counter") is None
    cases = [Case.of(FREE_THREADED, EXPERIMENTS, "rust_counter", fixed=fixed)] if built else []
    return session.run("counter in Rust", cases, repeats(session))


# [/rust_counter]

# [explored]
LOOM = f"{BUILT}/races/cargo/loom_model/release/loom_model"
MODELS = ("load then store", "fetch_add", "Mutex", "publish, Relaxed", "publish, Release and Acquire")


def explored(session: Session) -> pd.DataFrame:
    """What loom finds in the Rust counters and in publication; empty if it was not built."""
    built = missing(session, "loom_model") is None
    programs = [Program((LOOM, model), {"case": model}) for model in MODELS if built]
    return session.run("interleavings", programs, repeats=1)


# [/explored]

# [tally]
EXERCISE = SOURCES / "exercise"


def tally(session: Session, source: str) -> dict:
    """Try an answer to the exercise; what was seen, up to the first mistake."""
    return session.observe("exercise: tally", tried, source)


def tried(source: str) -> dict:
    """Does it compile, does it lose anything under stress, what does ThreadSanitizer say, and how long does it take?"""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tally.c"
        file.write_text(source)
        plain, instrumented, naive = (Path(folder) / name for name in ("plain", "instrumented", "naive"))
        if error := compiled(file, plain):
            return {"compiler": error}
        mine = answer([plain])
        if mine.ended != "ok":
            return {"ended": mine.ended, "error": first_line(mine.error)}
        seen = {"mine": mine.result}
        if mine.result["lost"]:
            return seen
        # None: this compiler has no ThreadSanitizer.
        absent = compiled(file, instrumented, "-fsanitize=thread", "-DSHORT")
        seen["sanitizer"] = None if absent else thread_sanitizer([instrumented])
        compiled(EXERCISE / "mutex_per_byte.c", naive)
        seen["mutex per byte"] = answer([naive]).result
    return seen


def compiled(file: Path, target: Path, *flags: str) -> str | None:
    """Build `file` with the exercise's main function; None, or the compiler's first error."""
    command = [compiler(), "-O2", "-g", "-pthread", *flags, file, EXERCISE / "check.c", "-o", target]
    ended, _, err = program(command, environment={"TMPDIR": os.path.dirname(target)})
    if ended == "ok":
        return None
    errors = (line.split("tally.c:")[-1] for line in err.splitlines() if "error" in line)
    return cleaned(next(errors, first_line(err)))


# [/tally]
