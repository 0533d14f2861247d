"""A benchmark of two calls in some 25 lines, as the chapter grows it step by step.

Standard library only: `ffilab/bench/worker.py case` calls a step in a fresh process and prints what it returns.
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
    """Step 1: all timings of one copy, then all of the other. Rows of (which copy, ns), in the order of measuring."""
    copies = loaded_twice(library, function)
    return {"timings": [(which, timing(copies[which])) for which in (0, 1) for _ in range(TIMINGS)]}


# [/one after the other]


# [interleaved]
def interleaved(library, function, seed):
    """Step 2: a timing of each copy in turn, in random order; which copy is called the first is drawn as well."""
    lots = random.Random(seed)
    copies = loaded_twice(library, function)
    lots.shuffle(copies)
    return {"timings": [(which, timing(copies[which])) for _ in range(TIMINGS) for which in lots.sample((0, 1), 2)]}


# [/interleaved]
