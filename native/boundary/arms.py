"""Benchmark bodies of the chapter on marshaling. Standard library only: workers import this file.

Each function makes one arm: an object whose `timeit(loops)` runs the statement
`loops` times and returns nanoseconds.
"""

import importlib
import os
import sys
import sysconfig
import time
import timeit
from array import array

# Binding: (project that builds it, module, part of the module that holds the functions).
BINDINGS = {
    "C API": ("c_api", "boundary_c_api", None),
    "Cython": ("cython", "boundary_cython", None),
    "nanobind": ("nanobind", "boundary_nanobind", None),
    "pybind11": ("pybind11", "boundary_pybind11", None),
    "PyO3": ("pyo3", "boundary_pyo3", None),
    "cffi API": ("cffi_api", "boundary_cffi_api", None),
    "cffi ABI": ("cffi_abi", "boundary_cffi_abi", None),
    "ctypes PyDLL": ("ctypes", "boundary_ctypes", "pydll"),
    "ctypes CDLL": ("ctypes", "boundary_ctypes", "cdll"),
}
# A project that stands in for another on some kernel.
STANDS_IN = {"pyo3": "pyo3_0_27"}

# Made once: the setup of an arm runs before every batch.
BUFFERS = {"few_doubles": array("d", bytes(8 * 1_000)), "many_doubles": array("d", bytes(8 * 1_000_000))}

# [signatures]
# Signature: (statement that is timed, setup). `m` holds the functions of one binding.
SIGNATURES = {
    "no-op": ("f()", "f = m.noop"),
    "→ int": ("f()", "f = m.answer"),
    "int → int": ("f(7)", "f = m.add_one"),
    "five ints": ("f(1, 2, 3, 4, 5)", "f = m.add_five"),
    "float → float": ("f(2.5)", "f = m.halve"),
    "str in, ASCII": ("f(s)", "f, s = m.code_points, 'mind the gap'"),
    "str in, é, first": ("f(a + b)", "f, a, b = m.code_points, 'mind th', 'é gap'"),
    "str in, é, again": ("f(s)", "f, s = m.code_points, 'mind thé gap'"),
    "str out": ("f()", "f = m.motto"),
    "bytes in": ("f(b)", "f, b = m.checksum, b'mind the gap'"),
    "bytes out": ("f(12, 7)", "f = m.make_bytes"),
    "1,000 doubles": ("f(x)", "f, x = m.ends, few_doubles"),
    "1,000,000 doubles": ("f(x)", "f, x = m.ends, many_doubles"),
    "list of 1,000 ints": ("f(x)", "f, x = m.sum_list, list(range(1_000))"),
    "struct by value": ("f(p)", "f, p = m.dot, m.Point(3.0, 4.0)"),
    "struct by pointer": ("f(p, 1.0)", "f, p = m.scale, m.Point(3.0, 4.0)"),
    "callback": ("f(c, 7)", "f, c = m.apply, m.callback(lambda x: x)"),
    "error → exception": ("try:\n    f(-1.0)\nexcept ValueError:\n    pass", "f = m.root"),
    "no-op, detached": ("f()", "f = m.noop_detached"),
    "new C++ object": ("C(5)", "C = m.Counter"),
    "C++ method": ("c.add(1)", "c = m.Counter(5)"),
}
# [/signatures]


def place(folder):
    """Where the extensions for this interpreter are."""
    return os.path.join(folder, sysconfig.get_config_var("SOABI"))


def load(folder, binding):
    """The functions of one binding. Raises ImportError with the reason that the build left, if it left one."""
    project, module, part = BINDINGS[binding]
    here = place(folder)
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        loaded = importlib.import_module(module)
    except ImportError:
        note = os.path.join(here, f"missing-{project}.txt")
        if os.path.exists(note):
            with open(note, encoding="utf-8") as text:
                raise ImportError(text.read()) from None
        raise
    return getattr(loaded, part) if part else loaded


# [arm]
def call(folder, binding, signature):
    """One signature through one binding."""
    statement, setup = SIGNATURES[signature]
    names = {"m": load(folder, binding), **BUFFERS}
    timer = timeit.Timer(statement, setup, time.perf_counter_ns, names)
    timer.timeit(1)  # a signature that this binding lacks shows here
    return timer


# [/arm]


def work(folder, binding, iterations):
    """A C function that takes about `iterations` ns."""
    names = {"m": load(folder, binding), "n": iterations}
    return timeit.Timer("f(n)", "f = m.work", time.perf_counter_ns, names)


class WorkInC:
    """The same function called in a C loop: no boundary."""

    def __init__(self, folder, iterations):
        self._run = load(folder, "C API").work_in_c
        self._iterations = iterations

    def timeit(self, loops):
        started = time.perf_counter_ns()
        self._run(self._iterations, loops)
        return time.perf_counter_ns() - started


def work_in_c(folder, iterations):
    return WorkInC(folder, iterations)
