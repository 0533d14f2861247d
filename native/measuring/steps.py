"""A benchmark of two calls in some 25 lines, as the chapter grows it step by step.

Standard library only: `ffilab/measure/worker.py case` calls a step in a fresh process and prints what it returns.
"""

import ctypes
import random
import time

# [timing]
CALLS, TIMINGS = 2_000, 30


def loaded_twice(library, function):
    """Two copies of one call."""
    return [getattr(ctypes.CDLL(library), function) for _ in range(2)]


def timing(call):
    """Time of one call in ns, from a batch of them."""
    started = time.perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (time.perf_counter_ns() - started) / CALLS


# [/timing]


# [one after the other]
def one_after_the_other(library, function):
    """Step 1: all timings of one copy, then all of the other."""
    copies, timings = loaded_twice(library, function), []
    for which in (0, 1):
        for _ in range(TIMINGS):
            timings.append((which, timing(copies[which])))
    return {"timings": timings}


# [/one after the other]


# [interleaved]
def interleaved(library, function, seed):
    """Step 2: in turns, in random order; who is copy 0 is drawn, too."""
    lots = random.Random(seed)
    copies, timings = loaded_twice(library, function), []
    lots.shuffle(copies)
    for _ in range(TIMINGS):
        for which in lots.sample((0, 1), 2):
            timings.append((which, timing(copies[which])))
    return {"timings": timings}


# [/interleaved]
