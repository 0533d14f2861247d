"""Runs a plan: starts workers, times randomised complete blocks, writes the record."""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from ffilab.measure import noise
from ffilab.measure.alone import alone
from ffilab.measure.lines import Writer
from ffilab.measure.plan import Arm, Plan
from ffilab.measure.record import Record, read_record
from ffilab.measure.reporting import Reporter
from ffilab.measure.workers import PAGE_BYTES, Worker, WorkerFailed
from ffilab.run import machine
from ffilab.run.errors import UserError
from ffilab.run.paths import LOGS, with_reason, without_paths
from ffilab.run.subprocesses import explain_os_errors
from ffilab.setup import layouts
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import Installed, load
from ffilab.setup.layouts import Layout, Pool

MAX_LOOPS = 1 << 40
# Of a run that its wall time ends: an interval needs no fewer.
LEAST_RESTARTS = 4
# Share of a layout's blocks that has to be lost before it is worth a restart of its own.
WORTH = 0.25
# That many failed restarts, and more than a third of those tried, end a run.
MAX_FAILURES = 3


# Workers by (interpreter label, group).
Workers = dict[tuple[str, str], Worker]


class Restart:
    """All workers of one restart, with their arms loaded.

    kept: the workers of `plan.kept`, from restart to restart; who made it closes them. order: what draws the order of
    arms.
    drawn: the layout of each interpreter; all its workers share it. logs: the folder for what they print.
    """

    def __init__(
        self,
        plan: Plan,
        interpreters: dict[str, Installed],
        cpu: int | None = None,
        kept: Workers | None = None,
        order: random.Random | None = None,
        drawn: dict[str, Layout] | None = None,
        logs: Path = LOGS,
    ):
        self._logs = logs
        self.cpu = cpu
        self.drawn = drawn or {}
        self._kept = {} if kept is None else kept
        self._order = order or random.Random(plan.seed)
        self.workers: Workers = {}
        self.facts, self.missing = {}, {}
        try:
            for label in plan.interpreters:
                arms = [arm for interpreter, arm in plan.cells() if interpreter == label]
                for group in dict.fromkeys(arm.group for arm in arms):
                    self._load(plan, interpreters[label], group, [arm for arm in arms if arm.group == group])
        except BaseException:
            self.close()
            raise
        self.cells = [(label, arm) for label, arm in plan.cells() if arm.name not in self.missing.get(label, {})]

    def _load(self, plan: Plan, interpreter: Installed, group: str, arms: list[Arm]) -> None:
        place = interpreter.label, group
        gil = arms[0].gil
        if place in self._kept:
            worker = self.workers[place] = self._kept[place]
            worker.move(self.cpu)
        else:
            log, padding = self._logs / f"workers-{plan.name}.log", self._order.randrange(PAGE_BYTES)
            layout = self.drawn.get(interpreter.label)
            worker = self.workers[place] = Worker(interpreter, group, log, layout, padding, gil, plan.wall_s or 0)
            worker.load(arms, self.cpu, self._order)
            if group in plan.kept:
                self._kept[place] = worker
        answer = worker.loaded
        self.facts[worker.name] = answer["facts"]
        if answer["missing"]:
            # A reason may be what a build left, with the path of a log in it.
            reasons = {arm: without_paths(with_reason(reason)) for arm, reason in answer["missing"].items()}
            self.missing.setdefault(interpreter.label, {}).update(reasons)
        facts = answer["facts"]
        if facts["free_threaded"] != interpreter.interpreter.free_threaded:
            raise UserError(
                f"{interpreter.name} runs another build than its name says: run `python3 ffilab/bootstrap.py kernels`."
            )
        if facts["free_threaded"] and facts["gil_enabled"] and not gil:
            which = repr(arms[0].name) if len(arms) == 1 else f"One of {len(arms)} arms"
            raise UserError(
                f"{which} turned the GIL of {interpreter.name} back on{worker.culprit()}: what it imports does not "
                "declare that it can do without, and its times would not be those of a free-threaded build. With the "
                "GIL on it can be measured (`--gil on`, or an arm's `gil=True`)."
            )

    def worker(self, label: str, arm: Arm) -> Worker:
        return self.workers[label, arm.group]

    def close(self) -> None:
        """End all workers but those that are kept."""
        for place, worker in self.workers.items():
            if place not in self._kept:
                worker.close()


def close(workers: Workers) -> None:
    """End these workers, and forget them."""
    while workers:
        workers.popitem()[1].close()


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


def turns(pool: Pool, restarts: int, order: random.Random) -> list[int | None]:
    """Which layout each restart gets, by its number in the pool: each in its turn, in another random order each time.

    Where there are fewer than two turns, the layouts that come again lie anywhere, and not at the end of the run.

    None where no interpreter has more than one: then there is nothing to draw.
    """
    count = max(map(len, pool.values()))
    if count == 1:
        return [None] * restarts
    cycles: list[list[int | None]] = [order.sample(range(count), count) for _ in range(-(-restarts // count))]
    given = [number for cycle in cycles for number in cycle][:restarts]
    return order.sample(given, restarts) if restarts < 2 * count else given


class Turn(NamedTuple):
    """One restart that is to come: the number of its layout, and how many blocks. again: they take the place of
    disturbed ones.
    default: on the interpreters as they are installed, beside the layouts that are drawn of them."""

    layout: int | None
    blocks: int
    again: bool = False
    default: bool = False


def all_turns(
    plan: Plan,
    given: list[int | None],
    done: list[dict],
    order: random.Random,
    default: int | None = None,
    enough: Callable[[], bool] = lambda: False,
) -> Iterator[Turn]:
    """The restarts of a run: those that were planned; then more on the layouts that lost a part of their blocks, as
    many as lost.

    default: the place among them of a restart on the default link, if there is one. enough: asked before each one of a
    run that its wall time ends whether it may end now.
    done: the blocks measured so far, each with its `layout`. Half as many as were planned are measured again at most.
    """
    began = time.monotonic()
    for number, layout in enumerate(given):
        ends = plan.wall_s is not None and number >= LEAST_RESTARTS
        if ends and (time.monotonic() - began >= plan.wall_s or enough()):
            return
        if number == default:
            yield Turn(None, plan.blocks, default=True)
        yield Turn(layout, plan.blocks)
    left = 0 if plan.wall_s is not None else len(done) // 2
    while repairs := lost(done, plan.blocks):
        for layout, blocks in order.sample(repairs, len(repairs)):
            blocks = min(blocks, left)
            if not blocks:
                return
            left -= blocks
            yield Turn(layout, blocks, again=True)


def lost(done: list[dict], blocks: int) -> list[tuple[int | None, int]]:
    """Layouts that a good part of their blocks was disturbed of, with the number of these, in restarts of so many
    blocks at most.

    Where no layouts are drawn, each restart stands for itself: then they are whole ones, as many as were lost in all.
    """
    planned = Counter(block["layout"] for block in done if not block["again"])
    clean = Counter(block["layout"] for block in done if not noise.disturbed(block))
    missing = {layout: count - clean[layout] for layout, count in planned.items()}
    if None in missing:
        return [(None, blocks)] * (missing[None] // blocks)
    return [
        (layout, min(count, blocks))
        for layout, count in missing.items()
        if count > 0 and count >= WORTH * planned[layout]
    ]


@alone()
@explain_os_errors("the folder of records")
def run(
    plan: Plan,
    folder: Path,
    pool: Pool | None = None,
    interpreters: dict[str, Installed] | None = None,
    logs: Path = LOGS,
    enough: Callable[[], bool] = lambda: False,
) -> Record:
    """Measure a plan; return its record, `folder/NAME.jsonl`, which is on disk from the first block on.

    pool: the layouts to draw from; those that the press made, if none are given. interpreters: by label, if they are
    not the book's. logs: see Restart. enough: see all_turns.

    Raises UserError if an interpreter is missing or too many restarts fail (MAX_FAILURES).
    """
    interpreters = interpreters or {label: load(BY_LABEL[label]) for label in plan.interpreters}
    order = random.Random(plan.seed)
    drawing = random.Random(f"{plan.seed}/layouts")
    # Of a chapter's plan; a study that brings its own layouts, or a run that its time ends, asks for nothing else.
    with_default = pool is None and plan.wall_s is None
    pool = pool or layouts.current(list(plan.interpreters))
    installed = {label: layouts.as_installed(interpreter) for label, interpreter in interpreters.items()}
    given = turns(pool, plan.restarts, drawing)
    # Not the first one, which calibrates.
    default = (
        drawing.randrange(1, plan.restarts) if with_default and given[0] is not None and plan.restarts > 1 else None
    )
    loops, failures = None, 0
    done: list[dict] = []
    kept: Workers = {}
    with closing(Writer(folder / f"{plan.name}.jsonl")) as writer, ExitStack() as at_the_end:
        at_the_end.callback(close, kept)
        writer.write(
            "run",
            plan=asdict(plan),
            # Records of a chapter lie in its folder, one folder for each session.
            machine=machine.facts(folder.parent.name),
            interpreters={label: interpreter.facts for label, interpreter in interpreters.items()},
        )
        restarts = plan.restarts + (default is not None)
        with Reporter(plan.name, restarts * plan.blocks, plan.wall_s) as reporter:
            cores = machine.Cores()
            for number, turn in enumerate(all_turns(plan, given, done, order, default, enough)):
                if turn.again:
                    reporter.add(turn.blocks)
                drawn = {label: lots[(turn.layout or 0) % len(lots)] for label, lots in pool.items()}
                drawn = installed if turn.default else drawn
                cpu = cores.next() if plan.pin else None
                try:
                    with closing(Restart(plan, interpreters, cpu, kept, order, drawn, logs)) as restart:
                        if loops is None:
                            loops = calibrate(restart, plan.batch_ns)
                            writer.write("loops", loops=loops)
                        for happened in _blocks(restart, number, turn, loops, order, writer):
                            if not turn.default:
                                done.append({"layout": turn.layout, "again": turn.again, **happened})
                            reporter.advance(f"{len(restart.cells)} arms, restart {number + 1}")
                except WorkerFailed as failure:
                    failures += 1
                    # It may have been one of these: the next restart begins with new ones.
                    close(kept)
                    writer.write("failure", restart=number, reason=str(failure))
                    if failures >= MAX_FAILURES and failures > (number + 1) / 3:
                        raise UserError(
                            f"{plan.name}: {failures} of {number + 1} restarts failed, the last because {failure}; "
                            f"what was measured is kept in {writer.path}."
                        ) from None
        writer.write("end", machine=machine.noise())
    return read_record(writer.path)


def _blocks(
    restart: Restart, number: int, turn: Turn, loops: dict[str, int], order: random.Random, writer: Writer
) -> Iterator[dict]:
    """Warm up, time the blocks of a restart, and write them; yield what happened during each."""
    # What could not be made in the first restart has no count, and is missing from the whole run.
    restart.cells = [cell for cell in restart.cells if cell_key(*cell) in loops]
    writer.write(
        "restart",
        restart=number,
        layouts={label: layout.described for label, layout in restart.drawn.items()},
        cpu=restart.cpu,
        **turn._asdict(),
        facts=restart.facts,
        missing=restart.missing,
    )
    for label, arm in restart.cells:
        restart.worker(label, arm).time(arm.name, max(1, loops[cell_key(label, arm)] // 5))
    for block in range(turn.blocks):
        happened, timed = _block(restart, loops, order)
        writer.write("block", restart=number, block=block, again=turn.again, **happened, **timed)
        yield happened


def side_by_side(cells: list[tuple[str, Arm]], order: random.Random) -> list[tuple[str, Arm]]:
    """All cells in random order, but what is compared next to each other, within milliseconds: one arm on all
    interpreters, and arms of one `beside`."""
    together: dict[str, list] = {}
    for label, arm in cells:
        together.setdefault(arm.beside or arm.name, []).append((label, arm))
    groups = order.sample(list(together.values()), len(together))
    return [cell for group in groups for cell in order.sample(group, len(group))]


def _block(restart: Restart, loops: dict[str, int], order: random.Random) -> tuple[dict, dict]:
    """Time every cell once, in random order; return what happened meanwhile, and the times with their probes."""
    watch, used = machine.Watch(restart.cpu), sum(worker.cpu_s for worker in restart.workers.values())
    ns, probes = {}, {}
    for label, arm in side_by_side(restart.cells, order):
        key = cell_key(label, arm)
        answer = restart.worker(label, arm).time(arm.name, loops[key])
        ns[key], probes[key] = answer["ns"], answer["probes"]
    others = watch.end(sum(worker.cpu_s for worker in restart.workers.values()) - used)
    return {**others, "load": machine.noise()["load"]}, {"ns": ns, "probes": probes}
