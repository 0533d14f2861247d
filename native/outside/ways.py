"""How each tool attaches a thread of C to Python. Standard library only."""

import contextlib
import ctypes
import importlib
import os
import sys
import sysconfig

TOOLS = ("C API", "nanobind", "pybind11", "PyO3", "Cython", "cffi", "ctypes")


def callback_of(function):
    """A Python function that takes an address, as C calls it. Keep it as long as C may."""
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)


def started(thread, *call):
    """What answer_later gave, if it is a thread."""
    if not thread:
        raise OSError("no thread could be created")
    return thread


def library(folder):
    """liboutside.so, declared."""
    place = os.path.join(folder, "liboutside.so")
    native = ctypes.CDLL(place)
    # Attached: whoever asks is back in its loop before a busy thread gets the GIL.
    native.answer_later = ctypes.PyDLL(place).answer_later
    pointer, number, times = ctypes.c_void_p, ctypes.c_long, ctypes.POINTER(ctypes.c_int64)
    native.call_from_threads.argtypes = [pointer, pointer, ctypes.c_int, number, times, pointer]
    native.answer_later.argtypes = [pointer, pointer, number, times]
    native.answer_later.restype, native.wait_for_answer.argtypes = pointer, [pointer]
    native.answer_later.errcheck = started
    native.answer_here.argtypes = [number, times]
    native.wait_for_answer.restype = native.answer_here.restype = None
    return native


def kept(run, what):
    """What a thread does around all of its callbacks, in ctypes: it is attached here, and detached while `run` runs."""
    run(what)


def by_ctypes(folder, around=kept):
    """call_from_thread as the modules have it, through ctypes."""
    native = library(folder)

    def call_from_thread(callback, threads, calls, keep):
        enter, ns = callback_of(lambda data: callback()), (ctypes.c_int64 * (threads * calls))()
        # `run` is a function pointer that ctypes calls detached.
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        stays = ctypes.CFUNCTYPE(None, run, ctypes.c_void_p)(around) if keep else None
        native.call_from_threads(enter, None, threads, calls, ns, stays)
        return list(ns)

    return call_from_thread


def module(folder, tool):
    """A tool's module, as it was built for this interpreter. Raises ImportError if it was not."""
    place = os.path.join(folder, sysconfig.get_config_var("SOABI"))
    if place not in sys.path:
        sys.path.insert(0, place)
    return importlib.import_module("outside_" + tool.lower().replace(" ", "_"))


def ways_in(folder):
    """By tool, its way in: of the tools whose modules were built here."""
    found = {}
    for tool in TOOLS:
        with contextlib.suppress(ImportError):
            found[tool] = way_in(folder, tool)
    return found


def way_in(folder, tool):
    """call_from_thread(callback, threads, calls, keep) -> ns of each call, by a tool's own way of attaching."""
    return by_ctypes(folder) if tool == "ctypes" else module(folder, tool).call_from_thread
