"""Benchmark bodies of the chapter on measuring. Standard library only."""

import ctypes
import gc
import time
import timeit


# [spin]
def spin(library, iterations, loader="PyDLL"):
    """Call spin(iterations): a C loop of a chosen length."""
    foreign = getattr(ctypes, loader)(library).spin
    foreign.argtypes = [ctypes.c_int]
    names = {"foreign": foreign, "iterations": iterations}
    return timeit.Timer("f(n)", "f, n = foreign, iterations", time.perf_counter_ns, names)


# [/spin]


# [statement]
def nothing():
    """What a call costs, and no more."""


def statement(statement, collector):
    """A statement as `timeit` runs it, which switches the garbage collector off, or with the collector on."""
    names = {"f": nothing, "gc": gc}
    return timeit.Timer(statement, "gc.enable()" if collector else "pass", time.perf_counter_ns, names)


# [/statement]
