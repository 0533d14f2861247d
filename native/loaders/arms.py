"""Benchmark bodies of the chapter on loaders. Standard library only: workers import this file.

Each function makes one arm: an object whose `timeit(loops)` runs the statement
`loops` times and returns nanoseconds. `timeit.Timer` compiles a loop of its own
for every arm, so no two arms share specialised bytecode.
"""

import ctypes
import os
import sys
import sysconfig
import time
import timeit

LOADERS = {"CDLL": ctypes.CDLL, "PyDLL": ctypes.PyDLL}


# [call]
def call(loader, function, library=None):
    """Call a C function without arguments. No library: the process itself."""
    foreign = getattr(LOADERS[loader](library), function)
    names = {"foreign": foreign}
    return timeit.Timer("f()", "f = foreign", time.perf_counter_ns, names)


# [/call]


# [declared_call]
# C function: what it returns, what it takes, and what it is called with.
DECLARED = {
    "add_one": (ctypes.c_int, [ctypes.c_int], 7),
    "halve": (ctypes.c_double, [ctypes.c_double], 2.5),
    "first_byte": (ctypes.c_int, [ctypes.c_char_p], b"mind the gap"),
}


def declared_call(loader, function, library):
    """Call a C function with one argument, its types declared."""
    foreign = getattr(LOADERS[loader](library), function)
    foreign.restype, foreign.argtypes, argument = DECLARED[function]
    names = {"foreign": foreign, "argument": argument}
    return timeit.Timer("f(x)", "f, x = foreign, argument", time.perf_counter_ns, names)


# [/declared_call]


# [audited_call]
def audited_call(loader, function, library=None):
    """The same call after one audit hook that does nothing. It stays until the process ends."""
    sys.addaudithook(lambda event, arguments: None)
    return call(loader, function, library)


# [/audited_call]


# [detach_attach]
class DetachAttach:
    """Detach and attach the thread state in a C loop: no ctypes, no bytecode."""

    def __init__(self, folder):
        sys.path.insert(0, folder)
        import detach_attach

        self._cycle = detach_attach.cycle

    def timeit(self, loops):
        started = time.perf_counter_ns()
        self._cycle(loops)
        return time.perf_counter_ns() - started


def detach_attach(folder):
    return DetachAttach(os.path.join(folder, sysconfig.get_config_var("SOABI")))


# [/detach_attach]
