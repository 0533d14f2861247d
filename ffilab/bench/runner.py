"""Runs a plan: starts workers, times randomised complete blocks, writes the record."""

import json
import os
import random
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ffilab import machine
from ffilab.bench import interoperation
from ffilab.bench.plan import MIN_RESTARTS, Arm, Plan
from ffilab.bench.record import Record, Writer, read
from ffilab.bench.reporting import Reporter
from ffilab.errors import UserError
from ffilab.paths import LOGS, ROOT, resolved, without_paths
from ffilab.provision.catalogue import BY_LABEL
from ffilab.provision.installed import Installed, load
from ffilab.subprocesses import kill_group

WORKER = Path(__file__).with_name("worker.py")
LOAD_TIMEOUT_S = 60
BATCH_TIMEOUT_S = 30
MAX_LOOPS = 1 << 40
# That many failed restarts, and more than a third of those tried, end a run.
MAX_FAILURES = 3


class WorkerFailed(Exception):
    """A worker died, hung or answered nonsense; the text says which."""


class Worker:
    """One measured process."""

    def __init__(self, interpreter: Installed, group: str, log: Path):
        self.name = f"{interpreter.label}/{group}"
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        to_worker, self._commands = os.pipe()
        self._answers, from_worker = os.pipe()
        # A GIL forced from outside would hide what a module does to it.
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHON_GIL", "PYTHONPATH")}
        try:
            with log.open("ab") as sink:
                self._process = subprocess.Popen(
                    [str(interpreter.python), "-I", str(WORKER), "serve", str(to_worker), str(from_worker)],
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=sink,
                    env=environment,
                    pass_fds=(to_worker, from_worker),
                    start_new_session=True,
                )
        except OSError as error:
            os.close(self._commands)
            os.close(self._answers)
            raise UserError(f"{interpreter.name} does not start ({error}): run `make kernels`.") from None
        finally:
            os.close(to_worker)
            os.close(from_worker)
        self._buffer = b""

    def ask(self, timeout_s: float, **order) -> dict:
        """Send one order, wait for its answer. Raises WorkerFailed."""
        try:
            os.write(self._commands, (json.dumps(order) + "\n").encode())
        except BrokenPipeError:
            raise WorkerFailed(self._death()) from None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise WorkerFailed(f"worker {self.name} did not answer within {timeout_s:g} s at {order}")
            chunk = os.read(self._answers, 1 << 16)
            if not chunk:
                raise WorkerFailed(self._death())
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return json.loads(line)
        except json.JSONDecodeError:
            raise WorkerFailed(f"worker {self.name} answered nonsense: {line[:80]!r}") from None

    def time(self, arm: str, loops: int) -> dict:
        answer = self.ask(BATCH_TIMEOUT_S, op="time", arm=arm, loops=loops)
        ns = answer.get("ns")
        if not isinstance(ns, int) or ns <= 0:
            raise WorkerFailed(
                f"worker {self.name} reported {ns!r} ns for {arm}: its clock stepped back or it is broken"
            )
        return answer

    def _death(self) -> str:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = "unknown"
        return f"worker {self.name} died with exit code {code}; its output is in {self.log}"

    def close(self) -> None:
        os.close(self._commands)
        os.close(self._answers)
        kill_group(self._process)


class Restart:
    """All workers of one restart, with their arms loaded."""

    def __init__(self, plan: Plan, interpreters: dict[str, Installed], cpu: int | None = None):
        self.cpu = cpu
        self.workers: dict[tuple[str, str], Worker] = {}
        self.facts, self.missing = {}, {}
        try:
            for label in plan.interpreters:
                arms = [arm for interpreter, arm in plan.cells() if interpreter == label]
                for group in dict.fromkeys(arm.group for arm in arms):
                    self._start(plan, interpreters[label], group, [arm for arm in arms if arm.group == group])
        except BaseException:
            self.close()
            raise
        self.cells = [(label, arm) for label, arm in plan.cells() if arm.name not in self.missing.get(label, {})]

    def _start(self, plan: Plan, interpreter: Installed, group: str, arms: list[Arm]) -> None:
        worker = Worker(interpreter, group, LOGS / f"workers-{plan.name}.log")
        self.workers[interpreter.label, group] = worker
        answer = worker.ask(
            LOAD_TIMEOUT_S,
            op="load",
            cpu=self.cpu,
            arms={a.name: described(a) for a in arms},
        )
        self.facts[worker.name] = answer["facts"]
        if answer["missing"]:
            # A reason may be what a build left, with the path of a log in it.
            reasons = {arm: without_paths(reason) for arm, reason in answer["missing"].items()}
            self.missing.setdefault(interpreter.label, {}).update(reasons)
        facts = answer["facts"]
        if facts["free_threaded"] != interpreter.interpreter.free_threaded:
            raise UserError(f"{interpreter.name} runs another build than its name says: run `make kernels`.")
        if facts["free_threaded"] and facts["gil_enabled"]:
            raise UserError(
                f"An arm of {plan.name!r} turned the GIL of {interpreter.name} back on: the module that it imports does "
                "not declare itself GIL-free, and its times would not be those of a free-threaded build."
            )

    def worker(self, label: str, arm: Arm) -> Worker:
        return self.workers[label, arm.group]

    def close(self) -> None:
        for worker in self.workers.values():
            worker.close()


def described(arm: Arm) -> dict:
    """An arm as a worker gets it: paths filled in."""
    return {"file": str(ROOT / arm.file), "function": arm.function, "arguments": resolved(arm.arguments)}


def cell_key(label: str, arm: Arm) -> str:
    return f"{label}/{arm.name}"


def calibrate(restart: Restart, batch_ns: float) -> dict[str, int]:
    """Loops per cell so that one batch lasts about `batch_ns`.

    The fastest of three batches counts: one hiccup would leave a cell with so few loops, for the whole run,
    that the fixed cost of a batch shows in its time.
    """
    loops = {}
    for label, arm in restart.cells:
        worker, count = restart.worker(label, arm), 1
        # The first batches are warm-up: specialisation, lazy binding, caches.
        while True:
            ns = worker.time(arm.name, count)["ns"]
            if ns >= batch_ns / 4:
                ns = min(ns, *(worker.time(arm.name, count)["ns"] for _ in range(2)))
            if ns >= batch_ns / 4 or count >= MAX_LOOPS:
                break
            count *= 2
        loops[cell_key(label, arm)] = max(1, round(count * batch_ns / ns))
    return loops


def run(plan: Plan, folder: Path, width: Callable[[Record, tuple], float] | None = None) -> Record:
    """Measure a plan; return its record, `folder/NAME.jsonl`, which is on disk from the first block on.

    width: for an adaptive plan, the function that tells how wide the intervals of `plan.watch` are by now
    (`ffilab.judge.statistics.widest`). Measuring itself knows no statistics.

    Raises UserError if an interpreter is missing or too many restarts fail (MAX_FAILURES).
    """
    interpreters = {label: load(BY_LABEL[label]) for label in plan.interpreters}
    writer = Writer(folder / f"{plan.name}.jsonl")
    order = random.Random(plan.seed)
    loops = None
    failures = 0
    try:
        writer.write(
            "run",
            plan=plan.as_json(),
            machine=machine.facts(),
            interpreters={label: one.facts for label, one in interpreters.items()},
        )
        with Reporter(plan.name, plan.restarts * plan.blocks) as reporter:
            began = time.monotonic()
            cores = machine.Cores()
            for number in range(plan.restarts):
                if number - failures >= MIN_RESTARTS and plan.target is not None:
                    now = width(read(writer.path), plan.watch)
                    spent = time.monotonic() - began
                    reporter.adapt(f"width ±{now:.2%} of ±{plan.target:.2%}", plan.seconds - spent)
                    if now <= plan.target or spent >= plan.seconds:
                        writer.write("stopped", restarts=number, width=now, seconds=round(spent, 2))
                        break
                try:
                    restart = Restart(plan, interpreters, cores.next() if plan.pin else None)
                    try:
                        if loops is None:
                            loops = calibrate(restart, plan.batch_ns)
                            writer.write("loops", loops=loops)
                        writer.write(
                            "restart", restart=number, cpu=restart.cpu, facts=restart.facts, missing=restart.missing
                        )
                        _blocks(plan, number, restart, loops, order, writer, reporter)
                    finally:
                        restart.close()
                except WorkerFailed as failure:
                    failures += 1
                    writer.write("failure", restart=number, reason=str(failure))
                    if failures >= MAX_FAILURES and failures > (number + 1) / 3:
                        raise UserError(
                            f"{plan.name}: {failures} of {number + 1} restarts failed, the last because {failure}; "
                            f"what was measured is kept in {writer.path}."
                        ) from None
        writer.write("end", machine=machine.noise())
    finally:
        writer.close()
    record = read(writer.path)
    interoperation.export(record)
    return record


def _blocks(plan, number, restart, loops, order, writer, reporter):
    for label, arm in restart.cells:
        restart.worker(label, arm).time(arm.name, max(1, loops[cell_key(label, arm)] // 5))
    for block in range(plan.blocks):
        cells = list(restart.cells)
        order.shuffle(cells)
        before = machine.noise()
        ns, involuntary = {}, 0
        for label, arm in cells:
            key = cell_key(label, arm)
            answer = restart.worker(label, arm).time(arm.name, loops[key])
            ns[key] = answer["ns"]
            involuntary += answer["involuntary"]
        after = machine.noise()
        writer.write(
            "block",
            restart=number,
            block=block,
            ns=ns,
            involuntary=involuntary,
            steal_s=round(after["steal_s"] - before["steal_s"], 4),
            load=after["load"],
            mhz=machine.frequency(),
        )
        most = "" if plan.target is not None else f" of {plan.restarts}"
        reporter.advance(f"{len(cells)} arms, restart {number + 1}{most}")
