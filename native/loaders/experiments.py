"""Experiments of the loaders chapter that need a process of their own.

Standard library only: `ffilab/measure/worker.py case` calls one of these functions and prints what it returns.
"""

import ctypes
import threading
import time
from _ctypes import FUNCFLAG_PYTHONAPI as KEEPS_ATTACHED

LOADERS = {"CDLL": ctypes.CDLL, "PyDLL": ctypes.PyDLL}


# [original_getpid]
def original_getpid(calls):
    """A12 as the talk ran it: one process, one run, CDLL first."""
    rows = []
    for name, loader in LOADERS.items():
        getpid = loader(None).getpid
        started = time.perf_counter()
        for _ in range(calls):
            getpid()
        rows.append({"loader": name, "seconds": time.perf_counter() - started})
    return rows


# [/original_getpid]


# [original_blocking]
def counted_beside(sleep_ms, milliseconds):
    """How far a thread counts from its start to the end of a C call that sleeps."""
    iterations, running = 0, True

    def count():
        nonlocal iterations
        while running:
            iterations += 1

    thread = threading.Thread(target=count)
    thread.start()
    sleep_ms(milliseconds)
    running = False
    thread.join()
    return iterations


def original_blocking(library, milliseconds):
    """A13 as the talk ran it: one process, one run, CDLL first."""
    return [
        {"loader": name, "iterations": counted_beside(loader(library).sleep_ms, milliseconds)}
        for name, loader in LOADERS.items()
    ]


# [/original_blocking]


# [counting]
def counting(loader, library, milliseconds, reference_ms):
    """A13 corrected: the same thread also counts during a sleep that surely lets it run.

    The order is reference, call, call, reference, so that a steady drift cancels.
    Returns iterations, the longest pause (ns) of the counting thread, and elapsed ns by phase.
    """
    sleep_ms = LOADERS[loader](library).sleep_ms
    rest = {"reference": lambda: time.sleep(reference_ms / 1000), "call": lambda: sleep_ms(milliseconds)}
    counts, pauses, elapsed = ({"reference": 0, "call": 0} for _ in range(3))
    current, stop = None, False

    def count():
        last = time.perf_counter_ns()
        while not stop:
            now = time.perf_counter_ns()
            if phase := current:
                counts[phase] += 1
                pauses[phase] = max(pauses[phase], now - last)
            last = now

    thread = threading.Thread(target=count)
    thread.start()
    for phase in ("reference", "call", "call", "reference"):
        # A pause caused by a blocking call is noticed only after it: let the counter get going again.
        time.sleep(0.01)
        started = time.perf_counter_ns()
        current = phase
        rest[phase]()
        current = None
        elapsed[phase] += time.perf_counter_ns() - started
    stop = True
    thread.join()
    return {"counts": counts, "pauses": pauses, "elapsed": elapsed}


# [/counting]


# [python_api]
def python_api(loader):
    """Call a function of Python's own C API, PyList_New(0), through a loader."""
    new_list = LOADERS[loader](None).PyList_New
    new_list.argtypes, new_list.restype = [ctypes.c_ssize_t], ctypes.py_object
    return {"made": repr(new_list(0))}


# [/python_api]


# [handshake]
def bring_about(native):
    """In a thread of its own: announce as soon as the main thread waits in C, within half a second."""
    for _ in range(500):
        if native.is_waiting():
            native.announce()
            return
        time.sleep(0.001)


def handshake(loader, library, milliseconds):
    """A C call waits for what only another Python thread can do."""
    native = LOADERS[loader](library)
    thread = threading.Thread(target=bring_about, args=(native,))
    thread.start()
    met = native.wait_for_announcement(milliseconds)
    thread.join()
    return {"met": bool(met)}


# [/handshake]


# [repaired]
C_NAMES = {"wait": "wait_for_announcement", "halve": "halve", "new_list": "PyList_New"}


def repaired(task, program, library):
    """One task of the exercise, through the function that the reader's `load(library)` returns for it."""
    names = {}
    try:
        exec(program, names)
        found = names["load"](library)[task]
        ours = getattr(ctypes.PyDLL(None if task == "new_list" else library), C_NAMES[task])
        if address(found) != address(ours):
            return {"same": False, "attached": False, "right": False, "said": ""}
        row = {"same": True, "attached": bool(found._flags_ & KEEPS_ATTACHED)}
        right, said = TASKS[task](found, library)
    except Exception as error:
        return {"same": True, "attached": False, "right": False, "said": f"{type(error).__name__}: {error}"}
    return {**row, "right": right, "said": said}


def address(function):
    """Where a function of ctypes begins; None for anything else."""
    return ctypes.cast(function, ctypes.c_void_p).value if isinstance(function, ctypes._CFuncPtr) else None


def wait(found, library):
    """Half a second is time enough for the other Python thread."""
    thread = threading.Thread(target=bring_about, args=(ctypes.CDLL(library),))
    thread.start()
    value = found(500)
    thread.join()
    return value == 1, f"wait(500) returned {value!r}"


def halve(found, library):
    value = found(5.0)
    return value == 2.5, f"halve(5.0) returned {value!r}"


def new_list(found, library):
    value = found(0)
    return value == [], f"new_list(0) returned {value!r}"


TASKS = {"wait": wait, "halve": halve, "new_list": new_list}
# [/repaired]
