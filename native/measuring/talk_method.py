"""A5: the talk's way to measure, in one process. The chapter on the boundary has its program; here it runs on two copies, too.

Standard library only: `ffilab/measure/worker.py case` calls `four_bindings` or `copies` and prints what it returns.
"""

import ctypes
import itertools
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "boundary"))
import talk_loop
import talk_loop as boundary


# [one process]
def four_bindings(folder, bindings):
    """All bindings loaded into one process, then one after the other. And what a sample is made of besides the call: samples of
    an empty lambda, and the clock's smallest steps."""
    rows = boundary.original(folder, bindings)
    ticks = [time.perf_counter_ns() for _ in range(2000)]
    steps = sorted({after - before for before, after in itertools.pairwise(ticks)} - {0})
    taken = {"bindings": [row["binding"] for row in rows], "samples": [row["ns"] for row in rows]}
    return {**taken, "empty": boundary.single_calls(lambda: None), "steps": steps[:5]}


def copies(library, function, measured_first):
    """The same for two copies of one call through CDLL. measured_first: the number of the copy that is measured first."""
    loaded = [getattr(ctypes.CDLL(library), function) for _ in range(2)]
    calls = [talk_loop.Implementation(call).return_int for call in loaded]
    taken = {number: boundary.single_calls(calls[number]) for number in (measured_first, 1 - measured_first)}
    return {"samples": [taken[0], taken[1]]}


# [/one process]
