"""Experiments in processes of their own, with limits on time and memory.

Whatever crashes, hangs or eats memory does so there, and its end is a result. A case says what runs, and under which
named factors its outcome is filed; `ffilab.measure.session` runs cases in random order and writes every outcome down.
"""

import json
import resource
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from ffilab.measure.source import source_of
from ffilab.measure.workers import WORKER
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT, resolved, why_not_built, without_paths
from ffilab.run.subprocesses import group, measured
from ffilab.setup.layouts import Layout, as_installed

MEMORY_BYTES = 8 << 30
# The end of what a process said, as kept with its outcome.
KEPT_CHARACTERS = 500


@dataclass(frozen=True)
class Outcome:
    """How a process ended.

    result: a row (an object of named values) or a list of rows; None if it brought nothing.
    ended: `ok`, `timeout`, `killed by SIGSEGV` and the like, `exit code 1`, or `printed no result`.
    error: the end of its standard error.
    gil_enabled: whether the GIL was on when a `Case` had done its work; None for everything else.
    """

    result: dict | list | None
    ended: str
    error: str = ""
    gil_enabled: bool | None = None


class Repeated:
    """What is repeated, in processes of its own. What a kind of it does not have is empty."""

    fixed: ClassVar[dict] = {}
    named: ClassVar[dict] = {}
    environment: ClassVar[dict] = {}

    @property
    def columns(self) -> dict:
        """What it is filed under in the frame."""
        return {**self.factors, **self.named}


@dataclass(frozen=True)
class Case(Repeated):
    """A function, called in a fresh process of an interpreter.

    interpreter: its label. function: called with `factors` and `fixed` as keyword arguments; it returns a row or a list
    of rows. Its source goes to the process, with what it names (source.py); or it is the name of one in `file`, a path
    below the repository.
    factors: the arguments that vary from case to case; they become columns of the frame.
    fixed: the arguments that do not. BUILT in one stands for the folder of what was built, "{seed}" for a number of its
    own for each process.
    named: further columns, for what varies and is no argument, such as the environment.
    environment: variables to set. memory_bytes: limit on the address space.
    hint: where to look if it hangs, for a reader in JupyterLab whose code it calls.
    """

    interpreter: str
    function: Callable | str
    factors: dict = field(default_factory=dict)
    fixed: dict = field(default_factory=dict)
    named: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)
    timeout_s: float = 60
    memory_bytes: int | None = MEMORY_BYTES
    file: str = ""
    hint: str = ""

    @property
    def what(self) -> list[str]:
        """What runs, for the record."""
        return [self.file, self.function if self.file else self.function.__name__]

    def command(self, seed: int = 0, layout: Layout | None = None) -> list:
        """The command line of its process, on a layout of its interpreter, or on the interpreter as it is installed."""
        layout = layout or as_installed(self.interpreter)
        arguments = json.dumps(resolved({**self.factors, **self.fixed}, seed, layout.native))
        # -I would ignore the variables of Python that a case sets; -s and -P isolate as well, once no other is
        # inherited.
        apart = ["-s", "-P"] if any(name.startswith("PYTHON") for name in self.environment) else ["-I"]
        file = ROOT / self.file if self.file else source_of(**{self.what[1]: self.function})
        return [layout.python, *apart, WORKER, "case", file, self.what[1], arguments]

    def run(self, seed: int = 0, layout: Layout | None = None) -> Outcome:
        layout = layout or as_installed(self.interpreter)
        environment = resolved(self.environment, built=layout.native)
        outcome = answer(self.command(seed, layout), self.timeout_s, environment, self.memory_bytes)
        # A worker says both; who brought nothing says neither.
        return replace(outcome, **(outcome.result or {}))


@dataclass(frozen=True)
class Program(Repeated):
    """A program that is not Python, and prints one row, or a list of rows, as the last line of its output.

    command: its words; BUILT and a lone "{seed}" as in Case. factors: columns of the frame.
    """

    command: tuple[str, ...]
    factors: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)
    interpreter: ClassVar[str] = ""

    @property
    def what(self) -> list[str]:
        return [without_paths(str(word)) for word in self.command]

    def run(self, seed: int = 0) -> Outcome:
        return answer(resolved(list(self.command), seed), environment=resolved(self.environment))


@dataclass(frozen=True)
class Step(Repeated):
    """Anything else that is repeated: `call(seed)` returns an Outcome, and starts and ends its own processes."""

    call: Callable[[int], Outcome]
    factors: dict = field(default_factory=dict)
    interpreter: str = ""

    @property
    def what(self) -> list[str]:
        return [getattr(self.call, "__qualname__", type(self.call).__name__)]

    def run(self, seed: int = 0) -> Outcome:
        return self.call(seed)


def answer(command: list, *limits, **further) -> Outcome:
    """Run any program that prints JSON as its last line; limits and environment as of `program`."""
    ended, out, err = program(command, *limits, **further)
    # Before it is cut: a path that has lost its front would not be found.
    out, err = without_paths(out), without_paths(err)
    if ended != "ok":
        return Outcome(None, ended, last_lines(err))
    try:
        return Outcome(json.loads(out.splitlines()[-1]), "ok", last_lines(err))
    except (IndexError, json.JSONDecodeError):
        return Outcome(None, "printed no result", last_lines(out + err))


def last_lines(said: str) -> str:
    """The end of what a process said, as it is kept: whole lines, unless one is too long."""
    end = said[-KEPT_CHARACTERS:]
    return end if len(said) == len(end) or not end.strip().count("\n") else end.partition("\n")[2]


def program(
    command: list, timeout_s: float = 60, environment: dict | None = None, memory_bytes: int | None = MEMORY_BYTES
) -> tuple[str, str, str]:
    """Run any program within limits; returns how it ended (as in Outcome), its output and its errors, whole.

    memory_bytes: limit on its address space; None for a sanitizer, which reserves terabytes and uses little.
    Raises UserError if there is no such program.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    own = {**measured(), **(environment or {})}
    try:
        with group([str(part) for part in command], text=True, errors="replace", env=own, **pipes) as process:
            _limit(process.pid, memory_bytes)
            try:
                out, err = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                return "timeout", "", f"no end within {timeout_s:g} s"
    except FileNotFoundError as error:
        path = Path(error.filename or command[0])
        why = why_not_built(path) or "`python3 ffilab/bootstrap.py native` builds ours, `make doctor` names others."
        raise UserError(f"There is no program {path.name} here: {why}") from None
    if process.returncode < 0:
        return f"killed by {signal.Signals(-process.returncode).name}", out, err
    return f"exit code {process.returncode}" if process.returncode else "ok", out, err


def _limit(pid: int, memory_bytes: int | None) -> None:
    """Set the limits of a program that was just started; Linux only.

    From outside: a `preexec_fn` makes it a fork, before which hooks of anyone run, and IPython's waits for a thread of
    its own that may have missed the word to end (`HistorySavingThread.stop`, IPython/core/history.py): a cell then
    stands still.
    """
    if not hasattr(resource, "prlimit"):
        return
    limits = {resource.RLIMIT_CORE: 0, **({} if memory_bytes is None else {resource.RLIMIT_AS: memory_bytes})}
    for limit, value in limits.items():
        # It may have ended, or be held to less already.
        with suppress(ValueError, OSError):
            # The soft limit alone: AddressSanitizer sets what it read a moment before, and could not raise the hard one
            # again.
            resource.prlimit(pid, limit, (value, resource.getrlimit(limit)[1]))
