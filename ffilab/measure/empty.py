"""The arm that every plan has: the loop without a body. Standard library only."""

import time
import timeit


def empty_loop():
    """What every arm pays for being measured."""
    return timeit.Timer("pass", timer=time.perf_counter_ns)
