"""Benchmark bodies of the chapter on measuring. Standard library only."""

import ctypes
import time
import timeit


# [spin]
def spin(library, iterations):
    """Call spin(iterations): a C loop of a chosen length."""
    foreign = ctypes.PyDLL(library).spin
    foreign.argtypes = [ctypes.c_int]
    names = {"foreign": foreign, "iterations": iterations}
    return timeit.Timer("f(n)", "f, n = foreign, iterations", time.perf_counter_ns, names)


# [/spin]
