"""`python3 ffilab/bootstrap.py study contest`: timeit, pyperf and our instrument on the same calls.

What is asked, and how it is answered, was written down before the first run: book/contest.md. Every run is kept as soon
as it is there, in book/evidence/contest.json; what is kept there stands in the chapter. A study that was stopped loses
the run that it was in the middle of, and the next one goes on with a new session.
"""

import json
import os
import random
import secrets
import statistics as stdlib_statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyperf

from ffilab.judge import statistics
from ffilab.judge.estimates import Location, difference
from ffilab.measure import instructions, runner
from ffilab.measure.alone import alone
from ffilab.measure.plan import Arm, plan
from ffilab.measure.record import Record
from ffilab.measure.workers import described
from ffilab.run import machine, settings
from ffilab.run.budget import BUDGETS, Budget
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, NATIVE, RECORDS
from ffilab.run.progress import say, step
from ffilab.run.subprocesses import group
from ffilab.setup import layout_pool, relink
from ffilab.setup.catalogue import GIL
from ffilab.setup.layouts import Layout, Pool
from notebooks.measuring.contest_results import AGAIN, CALL, MEASURED_AS, MORE, OTHER, PAIRS, TITLES
from studies import kept

PYPERF_ARM, TIMEIT_ARM = (NATIVE / "measuring" / f"{tool}_arm.py" for tool in ("pyperf", "timeit"))
SPIN = f"{BUILT}/measuring/libspin.so"
# Of the C loop that is called; the longer ones are chosen by counted instructions.
ITERATIONS = 300
# In each session, each on a layout of its own; and sessions by budget, about seven minutes each.
ROUNDS = 2
# It takes twice as long as the others: once in a session.
ONCE = "pyperf"
SESSIONS = {"smoke": 1, "room": 1, "quick": 2, "full": 8}


# [size]
@dataclass(frozen=True)
class Size:
    """How much a row measures in each round.

    least_ns: of one timing of timeit. default, fast, turn: pyperf's options. turns: of pyperf in turns. paired: blocks
    in one process. restarts, blocks: of ours on one binary. layouts: of ours over layouts, each with one restart.
    """

    least_ns: float = 2e8
    default: tuple[str, ...] = ()
    fast: tuple[str, ...] = ("--fast",)
    turn: tuple[str, ...] = ("-p1", "-w1", "-n1")
    turns: int = 8
    paired: int = 1200
    restarts: int = 20
    blocks: int = 40
    layouts: int = 12


# [/size]
QUICKEST = ("-p2", "-w1", "-n2", "--min-time=0.005")
SMALLEST = Size(1e5, QUICKEST, QUICKEST, ("-p1", "-w1", "-n1", "--min-time=0.005"), 3, 8, 3, 4, 3)


@dataclass(frozen=True)
class At:
    """One round of a session. layout: the binary of all rows but the last. core: where all rows run that do not choose
    one."""

    layout: Layout
    core: int | None
    arms: list[Arm]
    size: Size
    draw: random.Random
    folder: Path

    def drawn(self) -> list[Arm]:
        """The arms in another random order."""
        return self.draw.sample(self.arms, len(self.arms))


# [arms]
def spin(name: str, iterations: int, loader: str = "PyDLL") -> Arm:
    """A call of a C loop of a chosen length."""
    setup = f"import ctypes; f, n = ctypes.{loader}({SPIN!r}).spin, {iterations}; f.argtypes = [ctypes.c_int]"
    return Arm(name, "f(n)", setup, beside="call")


def arms(iterations: dict[str, int]) -> list[Arm]:
    """The call, the same again, longer ones, and the call through the other loader. iterations: of the C loop, by
    name."""
    return [
        spin(name, iterations.get(name, iterations[CALL]), "CDLL" if name == OTHER else "PyDLL")
        for name in (CALL, AGAIN, *MORE, OTHER)
    ]


# [/arms]


def counted() -> tuple[dict[str, int], dict[str, float]]:
    """Iterations of the arms, so that the longer ones take so much more; and their instructions over those of the
    call."""
    twice = {CALL: ITERATIONS, **dict.fromkeys(MORE, 2 * ITERATIONS)}
    found = instructions.per_call([GIL], arms(twice))
    one, longer = found[GIL, CALL], found[GIL, next(iter(MORE))]
    each = (longer - one) / ITERATIONS
    chosen = {CALL: ITERATIONS} | {name: ITERATIONS + max(1, round(more * one / each)) for name, more in MORE.items()}
    found = instructions.per_call([GIL], arms(chosen))
    return chosen, {name: round(found[GIL, name] / found[GIL, CALL], 5) for name in (AGAIN, *MORE, OTHER)}


@contextmanager
def on_core(core: int | None):
    """Confine this process, and what it starts, to one core, where the system can."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def answer(command: list, **environment: str) -> str:
    """What a tool printed. Raises UserError."""
    with group(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment}
    ) as process:
        out, err = process.communicate()
    if process.returncode:
        raise UserError(f"{Path(command[1]).name} failed: {err.strip()[-200:]}")
    return out


# [rows]
Found = dict[str, Location | np.ndarray]


def best_of_five(at: At) -> Found:
    """timeit: the best of five timings, a process for each arm. It states no interval: the t interval of its five
    stands for one."""
    timings = {}
    for arm in at.drawn():
        out = answer([at.layout.python, TIMEIT_ARM, json.dumps(described(arm, at.layout)), str(at.size.least_ns)])
        timings[arm.name] = np.log(json.loads(out))
    found = {}
    for name, (slow, fast) in PAIRS.items():
        one, other = timings[slow], timings[fast]
        of_five = difference(Location.of(one, log=True), Location.of(other, log=True))
        found[name] = Location(float(one.min() - other.min()), of_five.error, of_five.freedom, 5, log=True)
    return found


def pyperf_run(at: At, arm: Arm, *options: str) -> pyperf.Benchmark:
    """Measure one arm with pyperf; what was measured before in this round is kept in the same file."""
    at.folder.mkdir(parents=True, exist_ok=True)
    out = at.folder / f"{arm.name}.json"
    affinity = () if at.core is None else (f"--affinity={at.core}",)
    inherited = ("--quiet", "--inherit-environ", "ARM", "--append", out)
    command = [at.layout.python, PYPERF_ARM, *inherited, *affinity, *options]
    answer(command, ARM=json.dumps(described(arm, at.layout)))
    return pyperf.Benchmark.load(str(out))


def as_used(at: At, options: tuple[str, ...]) -> Found:
    """pyperf, one arm after the other, with the test that it makes itself: Student's, all values as if independent."""
    values = {arm.name: np.array(pyperf_run(at, arm, *options).get_values()) for arm in at.drawn()}
    return {name: students(values[slow], values[fast]) for name, (slow, fast) in PAIRS.items()}


def students(slow: np.ndarray, fast: np.ndarray) -> Location:
    """Student's t of two samples, as pyperf's `is_significant` computes it, as an interval for the ratio of their
    means."""
    n, m = len(slow), len(fast)
    pooled = (slow.var(ddof=1) * (n - 1) + fast.var(ddof=1) * (m - 1)) / (n + m - 2)
    error = float(np.sqrt(pooled * (1 / n + 1 / m)) / np.mean([slow.mean(), fast.mean()]))
    return Location(float(np.log(slow.mean() / fast.mean())), error, n + m - 2, n + m, log=True)


def in_turns(at: At) -> Found:
    """pyperf, one process of each arm at a time; the unit is a turn, its value the ratio of the means of two
    processes."""
    loops = {}
    for _ in range(at.size.turns):
        for arm in at.drawn():
            known = (f"--loops={loops[arm.name]}",) if arm.name in loops else ()
            loops[arm.name] = int(pyperf_run(at, arm, *at.size.turn, *known).get_loops())
    means = {}
    for arm in at.arms:
        runs = pyperf.Benchmark.load(str(at.folder / f"{arm.name}.json")).get_runs()
        means[arm.name] = np.log([stdlib_statistics.mean(run.values) for run in runs if run.values])
    return {name: means[slow] - means[fast] for name, (slow, fast) in PAIRS.items()}


def ours(at: At, restarts: int, blocks: int, pool: Pool) -> Record:
    """Our instrument for a fixed number of restarts. Without controls: the contest is one itself, and pays no time for
    them."""
    budget = Budget("contest", restarts, blocks, seconds=1e9, batch_ms=2, scale=1, repeats=1)
    made = plan("contest", at.arms, [GIL], budget, seed=at.draw.getrandbits(32), with_controls=False)
    return runner.run(made, at.folder, pool=pool)


def in_one_process(at: At) -> Found:
    """All arms in one process, in random order in each block: every block an independent value."""
    record = ours(at, 1, at.size.paired, {GIL: [at.layout]})
    found = {}
    for name, (slow, fast) in PAIRS.items():
        logs = np.log(record.by_restart(GIL, slow) / record.by_restart(GIL, fast)).ravel()
        found[name] = Location.of(logs[np.isfinite(logs)], log=True)
    return found


def by_unit(record: Record) -> Found:
    """A value for each restart; for each layout, where there are several."""
    logs = {name: statistics.log_ratios(record, (GIL, slow), (GIL, fast)) for name, (slow, fast) in PAIRS.items()}
    return {name: values[np.isfinite(values)] for name, values in logs.items()}


def on_one_binary(at: At) -> Found:
    """Ours with many restarts of one binary."""
    return by_unit(ours(at, at.size.restarts, at.size.blocks, {GIL: [at.layout]}))


def on_layouts(at: At) -> Found:
    """Ours as the book has it: its layouts are linked first, and that is part of its seconds."""
    links = at.folder / "layouts"
    try:
        pool = layout_pool.make(links, [GIL], at.size.layouts, at.draw.getrandbits(32))
        return by_unit(ours(at, at.size.layouts, at.size.blocks, pool))
    finally:
        layout_pool.remove(links)


# Whether a row is confined to the round's core, and what it does.
ROWS: dict[str, tuple[bool, Callable[[At], Found]]] = {
    "timeit": (True, best_of_five),
    "pyperf": (True, lambda at: as_used(at, at.size.default)),
    "pyperf --fast": (True, lambda at: as_used(at, at.size.fast)),
    "in turns": (True, in_turns),
    "one process": (True, in_one_process),
    "one binary, one core": (True, on_one_binary),
    "one binary": (False, on_one_binary),
    "layouts": (False, on_layouts),
}
# [/rows]
assert [*ROWS, *MEASURED_AS] == list(TITLES)


def as_json(found: Location | np.ndarray) -> dict:
    """What stands in the evidence: the values of the units, so that another estimator can judge them; else the
    estimate."""
    if isinstance(found, Location):
        return {name: getattr(found, name) for name in ("centre", "error", "freedom", "n")}
    return {"logs": [round(float(value), 6) for value in found]}


def session(size: Size, keep: Callable[[dict], None]) -> None:
    """One session: two rounds on two layouts, in each round all rows in random order. keep: gets all that is there
    after each run."""
    iterations, counts = counted()
    stamp, draw = time.strftime("%Y%m%dT%H%M%S", time.gmtime()), random.Random(secrets.randbits(32))
    found = {
        "machine": machine.facts("measuring"),
        "size": asdict(size),
        "iterations": iterations,
        "instructions": counts,
        "runs": [],
    }
    layout_pool.POOLS.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=layout_pool.POOLS.parent) as scratch, alone():
        pool = layout_pool.make(Path(scratch) / "rounds", [GIL], ROUNDS, draw.getrandbits(32))[GIL]
        turn_of_once = draw.randrange(ROUNDS)
        for number, layout in enumerate(pool):
            core = draw.choice(machine.cores_to_pin() or [None])
            rows = [row for row in ROWS if row != ONCE or number == turn_of_once]
            for row in draw.sample(rows, len(rows)):
                confined, measure = ROWS[row]
                folder = RECORDS / "contest" / f"{stamp}-{number}-{row.replace(' ', '-')}"
                at = At(layout, core, arms(iterations), size, draw, folder)
                watch, began = machine.Watch(), time.monotonic()
                with step(f"round {number + 1} of {ROUNDS}: {TITLES[row]}"), on_core(core if confined else None):
                    ratios = measure(at)
                run = {
                    "round": number,
                    "row": row,
                    "layout": layout.id,
                    "core": core if confined else None,
                    "seconds": round(time.monotonic() - began, 1),
                    "strangers_s": watch.end()["strangers_s"],
                    "ratios": {name: as_json(one) for name, one in ratios.items()},
                }
                found["runs"].append(run)
                keep(found)


def main(budget: str, sessions: int | None = None) -> None:
    """Add sessions to those that are kept. Those of a smoke test are no evidence, and go to _build/results."""
    if lacking := relink.missing(GIL):
        raise UserError(f"The contest needs layouts: {lacking}.")
    if reason := instructions.available():
        raise UserError(f"The contest counts instructions: {reason}.")
    size, path = Size() if BUDGETS[budget].is_result else SMALLEST, kept.file("contest", budget)
    count = sessions or SESSIONS[budget]
    with tempfile.TemporaryDirectory() as folder:
        # One line for each run: what the instrument says of itself goes where nobody reads it.
        settings.tell(progress=str(Path(folder) / "progress.json"))
        for number in range(count):
            say(f"  session {number + 1} of {count}")
            earlier = kept.read_sessions(path)
            session(size, lambda now, earlier=earlier: kept.write_sessions(path, [*earlier, now]))
    say(f"  kept in {path.name}")
