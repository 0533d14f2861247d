"""Experiments of the chapter on where threads run: throughput, latency and a race, by the cores that threads may run on.

Standard library only: `ffilab/measure/worker.py case` calls one of these functions and prints what it returns. Linux only, as far
as threads are pinned.
"""

import ctypes
import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]

from threads import together  # noqa: E402

now = time.perf_counter_ns


# [pin]
# The cores that this process may use, in an order that is drawn for each process: no placement has the same core always.
CORES = []


def draw_cores(seed):
    """Draw the order of the cores, where threads can be pinned."""
    if hasattr(os, "sched_getaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        CORES[:] = random.Random(seed).sample(allowed, len(allowed))


def cores_for(placement, number):
    """The cores on which thread `number` may run; None: all that the process may use. Never one beyond those."""
    if placement == "a core each":
        return {CORES[number % len(CORES)]}
    if placement == "one core":
        return {CORES[0]}
    return None


def pin(placement, number):
    """Pin the calling thread. For Linux, 0 is the thread that calls; threads that it starts later inherit its cores."""
    if cores := cores_for(placement, number):
        os.sched_setaffinity(0, cores)


# [/pin]


# [work]
PYTHON_STEPS, NATIVE_STEPS = 1_000, 20_000


def chunk_of(work, folder):
    """A small piece of work, some 20 to 50 µs: in Python, or in native code that runs without the GIL."""
    if work == "native call":
        count = ctypes.CDLL(os.path.join(folder, "libconvoy.so")).count_up_and_down
        steps = ctypes.c_long(NATIVE_STEPS)
        return lambda: count(steps)

    def count_in_python():
        n = 0
        for _ in range(PYTHON_STEPS):
            n += 1
            n -= 1

    return count_in_python


def core_now():
    """A function that returns the number of the core that the caller runs on. It keeps the GIL, so that asking changes nothing."""
    try:
        return ctypes.PyDLL(None).sched_getcpu
    except AttributeError:
        return lambda: -1


# [/work]


# [throughput]
def throughput(folder, work, cells, seconds, rounds, seed):
    """Chunks per second of all threads together, by cell, a placement and a number of threads; moves: how often a thread was seen on another
    core than one chunk before, per second of a thread. Medians of `rounds`, all in one process, in random order."""
    draw_cores(seed)
    chunk, core = chunk_of(work, folder), core_now()
    found = {tuple(cell): [] for cell in cells}
    for placement, count in random.Random(seed).sample(cells * rounds, len(cells) * rounds):
        found[placement, count].append(turn(chunk, core, placement, count, seconds))
    return [
        {
            "placement": placement,
            "threads": count,
            "per_s": statistics.median(rate for rate, _, _ in turns),
            "moves": statistics.median(moves for _, moves, _ in turns),
            "cores": sorted(set().union(*(seen for _, _, seen in turns))),
        }
        for (placement, count), turns in found.items()
    ]


def turn(chunk, core, placement, count, seconds):
    """One go: chunks per second, moves per second of a thread, and the cores that were seen."""
    done, moves, seen = [0] * count, [0] * count, [set() for _ in range(count)]

    def body(number):
        pin(placement, number)
        chunks, moved, last = 0, 0, core()
        until = now() + seconds * 1e9
        while now() < until:
            chunk()
            chunks += 1
            here = core()
            moved += here != last
            last = here
            seen[number].add(here)
        done[number], moves[number] = chunks, moved

    took = together([lambda number=number: body(number) for number in range(count)]) / 1e9
    return sum(done) / took, sum(moves) / count / took, set().union(*seen)


# [/throughput]


# [steadiness]
def steadiness(folder, work, placements, turns, seconds, seed):
    """Chunks per second of one thread that measures, by placement: one value for each turn, all in one process, in random order."""
    draw_cores(seed)
    chunk, core = chunk_of(work, folder), core_now()
    found = {placement: [] for placement in placements}
    for placement in random.Random(seed).sample(placements * turns, len(placements) * turns):
        rate, _, _ = turn(chunk, core, placement, 1, seconds)
        found[placement].append(rate)
    return [{"placement": placement, "rates": rates} for placement, rates in found.items()]


# [/steadiness]


# [latency]
PAUSE_S = 0.0005
ENOUGH = 100  # ticks for a p99


def latency(folder, work, placements, ticks, seconds, seed):
    """How late a thread answers that wakes up by a timer, in µs: p50, p99 and geometric mean by placement. Beside it one thread
    computes, but for the placement "alone". work_per_s: chunks of that thread."""
    draw_cores(seed)
    chunk = chunk_of(work, folder)
    return [
        {"placement": placement, **answers(chunk, placement, ticks, seconds)}
        for placement in random.Random(seed).sample(placements, len(placements))
    ]


def answers(chunk, placement, ticks, seconds):
    late, chunks, running = [], [0], [True]

    def answer():
        pin(placement, 0)
        until = now() + seconds * 1e9
        while not late or (len(late) < ticks and now() < until):
            due = now() + PAUSE_S * 1e9
            time.sleep(PAUSE_S)
            sum(range(100))  # what it answers
            late.append(max(1.0, now() - due) / 1e3)
        running[0] = False

    def compute():
        pin(placement, 1)
        while running[0]:
            chunk()
            chunks[0] += 1

    took = together([answer] if placement == "alone" else [answer, compute]) / 1e9
    late.sort()
    return {
        "ticks": len(late),
        "p50": late[len(late) // 2],
        "p99": late[int(0.99 * len(late))] if len(late) >= ENOUGH else None,
        "mean": statistics.geometric_mean(late),
        "work_per_s": chunks[0] / took,
    }


# [/latency]


# [race]
def race(folder, placements, each, seed):
    """Two threads count in one place of memory, in native code, without a lock and without the GIL: share of updates that are lost."""
    draw_cores(seed)
    library = ctypes.CDLL(os.path.join(folder, "libraces.so"))
    library.counter_value.restype = ctypes.c_long
    found = []
    for placement in random.Random(seed).sample(placements, len(placements)):
        library.counter_reset()

        def count(number, placement=placement):
            pin(placement, number)
            library.unsafe_increment(each)

        together([lambda number=number: count(number) for number in range(2)])
        lost = 2 * each - library.counter_value()
        found.append({"placement": placement, "lost": lost / (2 * each), "any": lost > 0})
    return found


# [/race]
