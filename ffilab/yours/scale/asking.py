"""Start the processes that measure and watch a statement, one job each, and read what they answer."""

import ast
import json
import os
import platform
import signal
import subprocess
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ffilab.run.errors import UserError
from ffilab.run.subprocesses import group, measured
from ffilab.yours.pythons import found
from ffilab.yours.scale.slices import Process, process_of

# Versions whose objects are known, and checked before anything is read or written.
KNOWN = ("3.13", "3.14", "3.15")
CHILD = "import sys; sys.path.insert(0, sys.argv.pop(1)); from ffilab_child.main import main; sys.path.pop(0); main()"
TIMEOUT_S = 60
# The number of the call in which a thread waits for a lock.
FUTEX = {"x86_64": 202, "aarch64": 98}


def python_of(word: str):
    """The one Python that a word names. Raises UserError if it is none whose threads run side by side, or none that is
    known."""
    ((label, python),) = found([word]).items()
    its = python.interpreter
    if not its.free_threaded:
        raise UserError(
            f"{word} is a build with the GIL, in which threads take turns: name a free-threaded one with --python, "
            "such as python3.14t."
        )
    if its.version not in KNOWN:
        raise UserError(
            f"{word} is {its.version}t, and how its objects are laid out is not known: name one of "
            f"{', '.join(f'{known}t' for known in KNOWN)}."
        )
    return label, python


def cores(threads: int) -> list[int]:
    """The cores for so many threads. Raises UserError where there are too few, or none can be chosen."""
    if not hasattr(os, "sched_getaffinity"):
        raise UserError("ffilab scale keeps each thread on its own core, which this system does not allow: use Linux.")
    ours = sorted(os.sched_getaffinity(0))
    if threads < 2:
        raise UserError(f"--threads is {threads}: say 2 or more.")
    if len(ours) < 2:
        raise UserError(
            "This process may use one core, on which threads take turns: run it where there are two or more."
        )
    if threads > len(ours):
        raise UserError(
            f"--threads is {threads}, and this process may use {len(ours)} cores: say {len(ours)} or fewer."
        )
    return ours[:threads]


@dataclass
class Asker:
    """Asks processes of one Python about one statement.

    folder: for their answers. hurry: whether they come before other work of the machine, where that is allowed.
    """

    python: Path
    statement: str
    setup: str
    file: str | None
    threads: int
    folder: Path
    hurry: bool = True
    # One arm's time in one process, in seconds.
    seconds: float = 0.2

    def __post_init__(self):
        self.cpus, self.numbers = cores(self.threads), count()
        # Behind the environment's: what stands there is what is measured.
        self.path = [*([str(Path(self.file).parent)] if self.file else []), os.getcwd()]

    def ask(self, do: str, *options: str, **how) -> dict:
        """What one process answers. Raises UserError if it refuses, ends or hangs."""
        answer, log = (self.folder / f"{next(self.numbers)}.{kind}" for kind in ("json", "log"))
        job = {
            "do": do,
            "statement": self.statement,
            "setup": self.setup,
            "file": self.file,
            "threads": self.threads,
            "seconds": self.seconds,
            "cpus": self.cpus,
            "path": self.path,
            "idle_share": 1,
            "hurry": self.hurry,
            "futex": FUTEX.get(platform.machine(), -1),
            "answer": str(answer),
            **how,
        }
        command = [self.python, "-I", *options, "-c", CHILD, Path(__file__).parent, json.dumps(job)]
        with (
            log.open("wb") as sink,
            group(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=measured()) as process,
        ):
            try:
                code = process.wait(TIMEOUT_S + 10 * job["seconds"])
            except subprocess.TimeoutExpired:
                raise UserError(f"{self.statement!r} did not end: give a smaller piece of the work.") from None
        if not answer.exists():
            how_ended = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            raise UserError(
                f"The process that ran {self.statement!r} {how_ended}: a statement may not end its process."
            )
        said = json.loads(answer.read_text())
        if "refused" in said:
            raise UserError(f"{self.statement!r} on {self.python.name}: {said['refused']}.")
        return said

    def measure(self, *options: str, **how) -> Process:
        """One arm in one process."""
        return process_of(self.ask("measure", *options, **how))

    def nodes(self) -> list[ast.AST]:
        """The nodes of the statement; none if it is no Python."""
        try:
            return list(ast.walk(ast.parse(self.statement)))
        except SyntaxError:
            return []

    def calls(self) -> str:
        """The function that the statement calls; empty if it calls none, or several."""
        calls = [node for node in self.nodes() if isinstance(node, ast.Call)]
        return ast.unparse(calls[0].func) if len(calls) == 1 else ""

    def names(self) -> set[str]:
        """The global names that the statement reads and does not bind."""
        nodes = self.nodes()
        names = [node for node in nodes if isinstance(node, ast.Name)]
        bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
        bound |= {name for node in nodes if isinstance(node, ast.Global) for name in node.names}
        bound |= {
            alias.asname or alias.name
            for node in nodes
            for alias in getattr(node, "names", ())
            if isinstance(alias, ast.alias)
        }
        return {node.id for node in names} - bound
