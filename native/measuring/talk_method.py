"""A5: the talk's way to measure, in one process.

Standard library only: `ffilab/bench/worker.py case` calls `talk` and prints what it returns.
"""

import ctypes
import itertools
import time

LOADERS = {"CDLL": ctypes.CDLL, "PyDLL": ctypes.PyDLL}

# [talk]
SAMPLES = 200
DROPPED = 5


def samples(call):
    """One cold call, then 200 single calls, each timed alone through a lambda; the first five are dropped. In ns."""
    wrapped = lambda: call()  # noqa: E731
    wrapped()
    taken = []
    for _ in range(SAMPLES):
        started = time.perf_counter_ns()
        wrapped()
        taken.append(time.perf_counter_ns() - started)
    return taken[DROPPED:]


# [/talk]


# [one process]
def talk(library, function, loaders, measured_first=0):
    """Samples of one C function for each loader, of an empty lambda, and the clock's smallest steps. All in ns.

    measured_first: the number of the loader whose call is measured before the other's.
    """
    calls = [getattr(LOADERS[loader](library), function) for loader in loaders]
    empty = samples(lambda: None)
    ticks = [time.perf_counter_ns() for _ in range(2000)]
    steps = sorted({after - before for before, after in itertools.pairwise(ticks)} - {0})
    taken = {number: samples(calls[number]) for number in sorted((0, 1), key=lambda number: number != measured_first)}
    return {"samples": [taken[0], taken[1]], "empty": empty, "steps": steps[:5]}


# [/one process]
