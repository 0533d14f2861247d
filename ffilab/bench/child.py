"""Experiments in fresh child processes, with limits on time and memory.

Whatever crashes, hangs or eats memory does so there, and its end is a result. A Session keeps
every outcome on disk, with the seed of the order, as the runner does for timed arms.
"""

import json
import os
import random
import resource
import secrets
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ffilab import machine
from ffilab.bench.record import Record, Writer, read
from ffilab.bench.reporting import Reporter
from ffilab.budget import current
from ffilab.errors import UserError
from ffilab.kernels import load
from ffilab.paths import RECORDS
from ffilab.provision.catalogue import BY_LABEL
from ffilab.subprocesses import group

MEMORY_BYTES = 8 << 30


@dataclass(frozen=True)
class Outcome:
    """How a child ended.

    result: the JSON object or list that it printed, or None.
    ended: `ok`, `timeout`, `killed by SIGSEGV` and the like, or `exit code 1`.
    error: the end of its standard error.
    """

    result: dict | list | None
    ended: str
    error: str

    def needed(self, what: str) -> dict:
        """The result of an experiment that must not fail. Raises UserError, with `what` it was, if there is none."""
        if self.result is None:
            raise UserError(f"{what}: {self.ended}. {self.error.strip()}")
        return self.result


def run(
    label: str,
    file: Path,
    *arguments,
    timeout_s: float = 60,
    environment: dict | None = None,
    memory_bytes: int | None = MEMORY_BYTES,
) -> Outcome:
    """Run `python -I file arguments...` on the kernel `label` in a process group of its own."""
    kernel = load(BY_LABEL[label])
    return answer([kernel.python, "-I", file, *arguments], timeout_s, environment, memory_bytes)


def answer(
    command: list, timeout_s: float = 60, environment: dict | None = None, memory_bytes: int | None = MEMORY_BYTES
) -> Outcome:
    """Run any program that prints one JSON object as its last line."""
    ended, out, err = program(command, timeout_s, environment, memory_bytes)
    if ended != "ok":
        return Outcome(None, ended, err[-500:])
    try:
        return Outcome(json.loads(out.splitlines()[-1]), "ok", err[-500:])
    except (IndexError, json.JSONDecodeError):
        return Outcome(None, "printed no result", out[-500:] + err[-500:])


def program(
    command: list, timeout_s: float = 60, environment: dict | None = None, memory_bytes: int | None = MEMORY_BYTES
) -> tuple[str, str, str]:
    """Run any program within limits; returns how it ended (as in Outcome), its output and its errors, whole.

    memory_bytes: limit on its address space; None for a sanitizer, which reserves terabytes and uses little.
    """
    inherited = {k: v for k, v in os.environ.items() if k not in ("PYTHON_GIL", "PYTHONPATH")}
    with group(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**inherited, **(environment or {})},
        preexec_fn=lambda: _limits(memory_bytes),
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return "timeout", "", f"no end within {timeout_s:g} s"
    if process.returncode < 0:
        return f"killed by {signal.Signals(-process.returncode).name}", out, err
    return f"exit code {process.returncode}" if process.returncode else "ok", out, err


def result(label: str, file: Path, *arguments, timeout_s: float = 60) -> dict:
    """What `run` brought back, for experiments that must not fail. Raises UserError if the child brought nothing."""
    outcome = run(label, file, *arguments, timeout_s=timeout_s)
    return outcome.needed(f"{file.name} {arguments[0]} on {label} brought no result")


def _limits(memory_bytes):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes is None:
        return
    try:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (ValueError, OSError):
        pass  # macOS has no such limit


def repeat(
    title: str, jobs: list[tuple], repeats: int, order, one: Callable | None = None
) -> list[tuple[tuple, Outcome]]:
    """Run every job `repeats` times, each round in a fresh random order (`order`: random.Random).

    A job is (label, file, *arguments); `one` runs a job that is something else or needs other limits.
    Returns (job, outcome) in the order of running: all of a round, then all of the next one.
    """
    one = one or (lambda job: run(*job))
    outcomes = []
    with Reporter(title, repeats * len(jobs)) as reporter:
        for number in range(repeats):
            for job in order.sample(jobs, len(jobs)):
                outcomes.append((job, one(job)))
                reporter.advance(f"round {number + 1} of {repeats}")
    return outcomes


class Session:
    """All child processes of one chapter: their order from one recorded seed, their outcomes in one record."""

    def __init__(self, name: str, labels: list[str]):
        self.seed = secrets.randbits(32)
        self._order = random.Random(self.seed)
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        self._writer = Writer(RECORDS / name / f"{stamp}.jsonl")
        plan = {"name": name, "seed": self.seed, "budget": current().name, "kernels": labels, "blocks": 0}
        self._writer.write(
            "run", plan=plan, machine=machine.facts(), kernels={label: load(BY_LABEL[label]).facts for label in labels}
        )

    def repeat(self, title: str, jobs: list[tuple], repeats: int, one: Callable | None = None) -> list:
        """As `repeat`, with the session's order; writes each outcome down as it comes."""
        one = one or (lambda job: run(*job))

        def recorded(job):
            outcome = one(job)
            self._writer.write("child", title=title, job=[str(part) for part in job], **vars(outcome))
            return outcome

        return repeat(title, jobs, repeats, self._order, recorded)

    def record(self) -> Record:
        """What is on disk so far, for the page's provenance."""
        return read(self._writer.path)
