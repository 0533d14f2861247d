"""A neighbour on the same core: something that runs on its other hardware thread, and that no clock of this system
counts.

On a virtual machine it is another machine's; on a machine of one's own it may be one's browser. It slows what lives on
the core's width more than what waits for one result after the other, and so it changes ratios too: what a run says
would depend on how busy the neighbour was in its minutes. A probe, always the same loop, before, between and behind the
parts of each batch tells how much of the batch had such company (worker.py). A batch that had company is left out.

What is quiet is found for each core, restart and arm: a slow core, a clock that falls and an arm that slows its own
probes are no company. A restart that had company from end to end is told by what the same core does later, once it is
quiet.

What runs in a process of its own is cut into no parts. So the probes come from beside it: a thread on each core, which
wakes now and then (`beside`). They are read as those of a batch are (`of_processes`).
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import psutil

from ffilab.measure.worker import probe
from ffilab.run import machine

# A probe that takes so many times as long as on a quiet core has company. Layouts and clock rates move it by less.
BUSY = 1.3
# This quantile of the probes of one arm in one restart counts as quiet.
QUIET = 0.05
# Share of its work that a batch may have had company: one end of its first or last part.
MOST = 1 / 8
# Seconds between two probes beside a process. Each is the best of three, as the first one finds cold caches: 30 µs.
EVERY_S, BEST_OF = 0.05, 3
# A core that was busy for less than this share of the busiest one's time is none of the process's own.
OWN = 0.1


def shares(blocks: list[dict], cells: list[str], cores: dict[int, int | None]) -> dict[str, np.ndarray]:
    """Of each cell ("interpreter/arm"): the share of its work in each block that had company. 0 where there are no
    probes.

    cores: the core of each restart, by its number, where it was kept on one.
    """
    busy_shares = {cell: np.zeros(len(blocks)) for cell in cells}
    # Session, core and cell to the numbers of its blocks; within a session all its batches have as many probes.
    where: dict[tuple, list[int]] = {}
    for number, block in enumerate(blocks):
        for cell in block.get("probes", {}):
            if cell in busy_shares:
                where.setdefault((block.get("session", 0), cores.get(block["restart"]), cell), []).append(number)
    for (_, _, cell), numbers in where.items():
        times = np.array([blocks[number]["probes"][cell] for number in numbers], dtype=float)
        busy = times > BUSY * levels(times, np.array([blocks[number]["restart"] for number in numbers]))[:, None]
        busy_shares[cell][numbers] = (busy[:, 1:].mean(axis=1) + busy[:, :-1].mean(axis=1)) / 2
    return busy_shares


def levels(times: np.ndarray, restarts: np.ndarray) -> np.ndarray:
    """What a probe takes on the quiet core, for each batch (row) of one arm on one core, in the order of measuring.

    In each restart its fastest twentieth; but not more than in any later one. Company at the very end cannot be told
    from a clock that fell.
    """
    known, each = np.unique(restarts, return_inverse=True)
    fastest = np.array([np.quantile(times[each == number], QUIET) for number in range(len(known))])
    return np.minimum.accumulate(fastest[::-1])[::-1][each]


@contextmanager
def beside() -> Iterator[dict[str, dict]]:
    """Probe the cores before, during and behind what runs in the body.

    Yields a dictionary that is filled at the end: the number of each core that was used, as text, to `busy_s`, the
    seconds that it was busy, and `probes`, ns each. It stays empty where no thread can be kept on a core.
    """
    probes: dict[int, list[int]] = {core: [] for core in machine.cores_to_pin()}
    ended, cores = threading.Event(), {}

    def watch(core: int) -> None:
        # A core may be taken away meanwhile.
        with suppress(OSError):
            os.sched_setaffinity(0, {core})
            is_last = False
            while not is_last:
                is_last = ended.is_set()
                probes[core].append(min(probe() for _ in range(BEST_OF)))
                ended.wait(0 if is_last else EVERY_S)

    threads = [threading.Thread(target=watch, args=[core]) for core in probes]
    before = busy_s()
    for thread in threads:
        thread.start()
    try:
        yield cores
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        used = {core: now - then for core, (then, now) in enumerate(zip(before, busy_s())) if core in probes}
        most = max(used.values(), default=0.0)
        cores |= {
            str(core): {"busy_s": round(busy, 3), "probes": probes[core]}
            for core, busy in used.items()
            if busy >= OWN * most
        }


def busy_s() -> list[float]:
    """Seconds that each core of this machine has worked so far."""
    times = psutil.cpu_times(percpu=True)
    return [sum(getattr(core, name, 0.0) for name in ("user", "nice", "system")) for core in times]


def of_processes(cases: list[str], cores: list[dict[str, dict]]) -> list[float]:
    """Of each process of an experiment, in the order of running: the share of its time in which the cores that it used
    had company. 0 where nothing probed them.

    cases: what each process is one of, as an arm is what a batch is of. cores: of each process as `beside` fills them.
    """
    company: list[list[tuple[float, float]]] = [[] for _ in cases]
    # Case and core to what lies between two probes, each with the number of its process.
    between: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for number, (case, of_process) in enumerate(zip(cases, cores)):
        for core, watched in of_process.items():
            between.setdefault((case, core), []).extend((number, *pair) for pair in pairwise(watched["probes"]))
    for (_, core), rows in between.items():
        if not rows:
            # Processes that ended at once met a single probe each.
            continue
        numbers, *pairs = np.array(rows).T
        times = np.array(pairs, dtype=float).T
        busy = (times > BUSY * levels(times, numbers)[:, None]).mean(axis=1)
        for number in np.unique(numbers):
            company[number].append((cores[number][core]["busy_s"], busy[numbers == number].mean()))
    # Of a process that ended within a tick of the clock nobody knows which core it used.
    return [
        float(np.average([share for _, share in shares], weights=[1e-3 + weight for weight, _ in shares]))
        if shares
        else 0.0
        for shares in company
    ]


def discarded(company: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Which batches of each cell count for nothing, as their core had company."""
    return {cell: share > MOST for cell, share in company.items()}


def company_in_words(blocks: list[dict], company: dict[str, np.ndarray]) -> str:
    """Describe what became of the batches; empty where nothing is known of company."""
    if not any("probes" in block for block in blocks):
        return ""
    left_out = float(np.mean(list(discarded(company).values()))) if company else 0.0
    return f"{left_out:.0%} of all batches left out, as something else ran on the same core"


class Unequal(NamedTuple):
    """How much more often one cell's batches are left out than those of the others in the same restarts.

    more: its share less theirs. error: standard error of that, over n restarts (blocks of one are not independent).
    """

    cell: str
    more: float
    error: float
    n: int


def unequal(left_out: dict[str, np.ndarray], restarts: np.ndarray) -> list[Unequal]:
    """Compare how often each cell is left out; empty where there is nothing to compare.

    left_out: as from `discarded`. restarts: the restart of each block. A cell that is left out more often than the
    others is not compared at the same moments as they are: its numbers may be biased.
    """
    known = np.unique(restarts)
    if len(left_out) < 2 or len(known) < 2:
        return []
    by_restart = np.array([[row[restarts == restart].mean() for restart in known] for row in left_out.values()])
    apart = by_restart - (by_restart.sum(axis=0) - by_restart) / (len(by_restart) - 1)
    errors = apart.std(axis=1, ddof=1) / np.sqrt(len(known))
    return [
        Unequal(cell, float(row.mean()), float(error), len(known)) for cell, row, error in zip(left_out, apart, errors)
    ]
