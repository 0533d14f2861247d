"""Tools that find a data race without waiting for it: how each is started, and how its answer is read. The page quotes
all of it."""

import platform
import re
import shutil
from collections.abc import Iterable
from functools import partial
from itertools import product

from ffilab.measure.case import Outcome, Step, program
from ffilab.run.paths import NATIVE, NATIVE_OUT, without_paths

SOURCES, LIBRARIES = NATIVE / "races", NATIVE_OUT / "races"
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
    """What helgrind says of the program as it is."""
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


def steps(variants: Iterable[str]) -> list[Step]:
    """Every variant under both tools."""
    return [
        Step(partial(under, tool, variant), {"variant": variant, "tool": tool})
        for variant, tool in product(variants, TOOLS)
    ]


def under(tool: str, variant: str, seed: int) -> Outcome:
    """One variant under one tool: what it found, and its report."""
    return Outcome(TOOLS[tool](variant), "ok")


def why_not_built(project: str) -> str | None:
    """Why a project of this chapter was not built, as the build noted down; None if it was."""
    note = LIBRARIES / f"missing-{project}.txt"
    return without_paths(note.read_text()) if note.exists() else None
