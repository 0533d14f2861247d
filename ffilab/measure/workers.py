"""Measured processes: start one, ask it, end it."""

import contextlib
import json
import mmap
import os
import random
import re
import select
import signal
import subprocess
import time
from pathlib import Path

from ffilab.measure.plan import Arm
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT, resolved
from ffilab.run.subprocesses import kill_group, measured, refused
from ffilab.setup.installed import Installed
from ffilab.setup.layouts import Layout, as_installed

WORKER = Path(__file__).with_name("start_worker.py")
# To make arms, and for a batch; longer where a run may last longer.
TIMEOUT_S = 60
# Of what a process prints so much is kept.
MOST_PRINTED = 10_000_000
PAGE_BYTES = mmap.PAGESIZE
# Some two objects of each size that CPython keeps pools of.
SMALL, SMALL_BYTES = 64, 480
PADDING = "PADDING"


class WorkerFailed(Exception):
    """A worker died, hung or answered nonsense; the text says which."""


class Worker:
    """One measured process. layout: what it runs, see layouts.py. padding: bytes by which its environment is longer.
    gil: with the GIL switched on in a free-threaded build. limit_s: it is waited for so long, or for TIMEOUT_S."""

    def __init__(
        self,
        interpreter: Installed,
        group: str,
        log: Path,
        layout: Layout | None = None,
        padding: int = 0,
        gil: bool = False,
        limit_s: float = 0,
    ):
        self.name = f"{interpreter.label}/{group}"
        self.limit_s = max(TIMEOUT_S, limit_s)
        self.log = log
        # CPU seconds that it has used, as it says itself.
        self.cpu_s = 0.0
        # What it answered when its arms were loaded.
        self.loaded: dict = {}
        self._layout = layout or as_installed(interpreter)
        log.parent.mkdir(parents=True, exist_ok=True)
        self._orders = 0
        # A GIL forced from outside would hide what a module does to it.
        environment = measured()
        if gil:
            environment["PYTHON_GIL"] = "1"
        # Where the stack begins depends on it (Mytkowicz et al. 2009).
        environment[PADDING] = "x" * padding
        try:
            # What is the worker's is closed here in any case, and what is ours if it does not start.
            with contextlib.ExitStack() as its, contextlib.ExitStack() as undo:
                to_worker, self._commands = _pipe(its, undo)
                from_worker, self._answers = reversed(_pipe(undo, its))
                sink = its.enter_context(log.open("ab"))
                # -I would ignore the variable.
                command = [self._layout.python, *(["-s", "-P"] if gil else ["-I"]), str(WORKER), "serve"]
                # As long in one process as in another: one short string more shifts what lies behind it in the heap.
                command += [f"{to_worker:04}", f"{from_worker:04}"]
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    env=environment,
                    pass_fds=(to_worker, from_worker),
                    start_new_session=True,
                )
                undo.pop_all()
        except OSError as error:
            if sentence := refused(error):
                raise sentence from None
            raise UserError(
                f"{interpreter.name} does not start ({error}): run `python3 ffilab/bootstrap.py kernels`."
            ) from None
        self._buffer = b""

    def ask(self, **order) -> dict:
        """Send one order, wait for its answer. Raises WorkerFailed."""
        what = order.get("arm", "")
        self._orders += 1
        try:
            os.write(self._commands, (json.dumps({"number": self._orders, **order}) + "\n").encode())
        except BrokenPipeError:
            raise WorkerFailed(self._death(what)) from None
        deadline = time.monotonic() + self.limit_s
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                doing = f"a batch of {what!r}" if what else "its setup and first pass"
                raise WorkerFailed(f"on {self.name} {doing} took longer than {self.limit_s:g} s")
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                raise WorkerFailed(self._death(what))
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(line)
            number = answer["number"]
        except (ValueError, KeyError, TypeError):
            raise WorkerFailed(f"worker {self.name} answered nonsense: {line[:80]!r}") from None
        if number != self._orders:
            raise WorkerFailed(
                f"on {self.name} somebody else answered, as the child of a fork does: end it by os._exit"
            )
        return answer

    def load(self, arms: list[Arm], cpu: int | None, order: random.Random) -> None:
        """Have the arms made, in random order and with gaps between them: one of random size, and small objects of
        random sizes.

        Where an arm lies in the heap, against the pages and the lines of the cache, may cost it a third, and a
        process's address randomisation does not change that: small objects come from pools that every process fills
        alike. In a fixed place the same arm would pay in every restart, and no interval would show it.
        """
        shuffled = order.sample(arms, len(arms))
        gaps = [[order.randrange(PAGE_BYTES), *(order.randrange(SMALL_BYTES) for _ in range(SMALL))] for _ in shuffled]
        described_arms = {arm.name: described(arm, self._layout) for arm in shuffled}
        self.loaded = self.ask(op="load", cpu=cpu, arms=described_arms, gaps=gaps)
        self._must_stay_on(cpu, self.loaded)

    def move(self, cpu: int | None) -> None:
        self._must_stay_on(cpu, self.ask(op="pin", cpu=cpu))

    def _must_stay_on(self, cpu: int | None, answer: dict) -> None:
        if "error" in answer:
            raise WorkerFailed(f"worker {self.name} could not be kept on core {cpu} ({answer['error']})")

    def time(self, arm: str, loops: int) -> dict:
        asked = time.perf_counter_ns()
        answer = self.ask(op="time", arm=arm, loops=loops)
        passed = time.perf_counter_ns() - asked
        # It is open for appending: what comes later begins anew.
        if self.log.stat().st_size > MOST_PRINTED:
            os.truncate(self.log, 0)
        if "error" in answer:
            raise WorkerFailed(f"{arm} on {self.name} ended in {answer['error']}")
        if answer["gil_enabled"] and not self.loaded["facts"]["gil_enabled"]:
            raise WorkerFailed(f"{arm} on {self.name} turned the GIL back on{self.culprit()}")
        ns = answer.get("ns")
        if not isinstance(ns, int) or ns <= 0:
            raise WorkerFailed(
                f"worker {self.name} reported {ns!r} ns for {arm}: its clock stepped back or it is broken"
            )
        if ns > passed:
            raise WorkerFailed(
                f"worker {self.name} reported {ns / 1e9:.3g} s for {arm}, and {passed / 1e9:.3g} s passed: its clock "
                "jumped forward or it is broken"
            )
        self.cpu_s = answer["cpu_s"]
        return answer

    def culprit(self) -> str:
        """The module that turned the GIL on, as CPython's warning names it: `, by importing 'mine'`, or nothing."""
        named = re.findall(r"has been enabled to load module '(.*?)'", self.log.read_text(errors="replace"))
        return f", by importing {named[-1]!r}" if named else ""

    def _death(self, what: str) -> str:
        try:
            code = self._process.wait(timeout=5)
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        except subprocess.TimeoutExpired:
            how = "closed its end, and has not ended"
        kept = f"; what it printed is in {self.log}" if self.log.stat().st_size else ""
        return f"the process {f'of {what!r} ' if what else ''}on {self.name} {how}{kept}"

    def close(self) -> None:
        os.close(self._commands)
        os.close(self._answers)
        kill_group(self._process)


def _pipe(reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[int, int]:
    """The ends of a pipe, which these close."""
    ends = os.pipe()
    for stack, end in zip((reader, writer), ends):
        stack.callback(os.close, end)
    return ends


def described(arm: Arm, layout: Layout | None = None) -> dict:
    """An arm as a worker gets it, `worker.make`: paths filled in."""
    if arm.file:
        form = {"file": str(ROOT / arm.file), "function": arm.function, "arguments": arm.arguments}
    else:
        form = {"statement": arm.statement, "setup": arm.setup, "uses": arm.uses, "own_loop": arm.own_loop}
    return resolved(form, built=layout and layout.native)
