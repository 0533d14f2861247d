"""Experiments of the chapter on critical sections that start threads or processes.

Standard library only: `ffilab/measure/worker.py case` calls one of these functions and prints what it returns.
"""

import ctypes
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
import timeit

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import arms  # noqa: E402
from threads import ROUNDS, rate, together  # noqa: E402


# [contended_piece]
def contended_piece(name, shared, threads, folder, milliseconds):
    """A lock in C. Operations per second alone and together.

    shared: all threads on one cell; or a cell for each, which its thread has made, or the main thread.
    """
    locks = arms.load(folder)
    one = locks.Cell(), locks.Cell()

    def make(number):
        cells = one if shared == "one object" else (locks.Cell(), locks.Cell())
        return lambda loops: locks.run(name, *cells, loops)

    return rate(make, threads, milliseconds, made_by_worker=shared == "own objects")


# [/contended_piece]


# [contended_object]
class Thing:
    def __init__(self):
        self.x = 0


OBJECTS = {
    "dict": ("d['k'] = 1", dict),
    "list": ("d.append(1); d.pop()", list),
    "counter object": ("d.x += 1", Thing),
}


def contended_object(name, shared, threads, milliseconds):
    """A Python object: all threads use one, or each has its own, made by itself or by the main thread."""
    statement, make_object = OBJECTS[name]
    one = make_object()

    def make(number):
        own = one if shared == "one object" else make_object()
        return timeit.Timer(statement, "d = given", time.perf_counter_ns, {"given": own}).timeit

    return rate(make, threads, milliseconds, made_by_worker=shared == "own objects")


# [/contended_object]


# [boundary]
def boundary():
    """The module `arms` of the chapter next door."""
    spec = importlib.util.spec_from_file_location(
        "boundary_arms", os.path.join(os.path.dirname(HERE), "boundary", "arms.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# [/boundary]


# [contended_binding]
def contended_binding(name, threads, libraries, milliseconds):
    """One bound function for all threads."""
    function = boundary().load(libraries, name).add_one

    def make(number):
        return timeit.Timer("f(7)", "f = given", time.perf_counter_ns, {"given": function}).timeit

    return rate(make, threads, milliseconds)


# [/contended_binding]


# [contended_ctypes]
def int_type():
    """One that ctypes treats as c_int, whose references nobody else counts."""
    return type("Int", (ctypes._SimpleCData,), {"_type_": "i"})


# How each thread declares its function: (name in C, call, types of the argument and of the result).
DECLARED = {
    "nothing in, nothing out": ("noop", "f()", lambda: ((), None)),
    "→ int": ("answer", "f()", lambda: ((), ctypes.c_int)),
    "→ int, a type for each": ("answer", "f()", lambda: ((), int_type())),
    "int →": ("add_one", "f(7)", lambda: ((ctypes.c_int,), None)),
    "int → int": ("add_one", "f(7)", lambda: ((ctypes.c_int,), ctypes.c_int)),
    "int → int, a type for each": ("add_one", "f(7)", lambda: ((kind := int_type(),), kind)),
}


def contended_ctypes(name, threads, libraries, milliseconds):
    """Two threads, each with a function that it loaded and declared itself: what do they still write to together?"""
    boundary().load(libraries, "ctypes CDLL")
    path = str(sys.modules["boundary_ctypes.binding"].LIBRARY)

    def make(number):
        symbol, statement, types = DECLARED[name]
        function = getattr(ctypes.CDLL(path), symbol)
        function.argtypes, function.restype = types()
        return timeit.Timer(statement, "f = given", time.perf_counter_ns, {"given": function}).timeit

    return rate(make, threads, milliseconds, made_by_worker=True)


# [/contended_ctypes]


# [single_calls]
class Implementation:
    """The talk's classes: a method around the function of a binding, around cffi's a second one."""

    def __init__(self, function):
        self._function = function

    def direct(self):
        return self._function()

    def by_another(self):
        return self.direct()


SINGLE_CALLS, DROPPED = 200, 5


def means_of_single_calls(bindings, libraries):
    """Mean ns of single calls that return an int, the clock around each, one binding after the other in one process."""
    arms_of_boundary, means = boundary(), {}
    for binding in bindings:
        try:
            one = Implementation(arms_of_boundary.load(libraries, binding).answer)
        except ImportError:
            continue
        method = one.by_another if binding.startswith("cffi") else one.direct
        call = lambda: method()  # noqa: B023, E731
        gc.collect()
        call()
        time.sleep(0.001)
        taken = []
        for _ in range(SINGLE_CALLS):
            started = time.perf_counter_ns()
            call()
            taken.append(time.perf_counter_ns() - started)
        means[binding] = statistics.fmean(taken[DROPPED:])
    return means


# [/single_calls]


# [contended_text]
def contended_text(name, threads, libraries, milliseconds):
    """Texts across the boundary and into the table of interned texts, from many threads."""
    function = boundary().load(libraries, "C API").code_points
    statement, setup = {
        "UTF-8 of one text": ("f(s)", "s = given"),
        "UTF-8 of new texts": ("f(a + b)", "a, b = 'mind th', 'é gap'"),
        "interning one text": ("intern(s)", "import sys; intern, s = sys.intern, 'mind_the_gap'"),
        "attribute by a new name": ("getattr(o, a + b)", "o, a, b = thing, 'x', 'y'"),
        # The control: the same object and attribute, and no text is made or interned.
        "attribute by a known name": ("getattr(o, name)", "o, name = thing, 'xy'"),
    }[name]
    thing = Thing()
    thing.xy = 1
    names = {"f": function, "given": "mind thé gap", "thing": thing}

    def make(number):
        return timeit.Timer(statement, setup, time.perf_counter_ns, names).timeit

    return rate(make, threads, milliseconds)


# [/contended_text]


# [calibration]
def spin(folder, milliseconds):
    """Work that shares nothing, about as long as asked: rounds per second."""
    locks = arms.load(folder)
    cell, loops = locks.Cell(), milliseconds * 500_000
    return {"per_second": loops / locks.run("no lock", cell, cell, loops) * 1e9}


def calibration(folder, milliseconds):
    """How much two processes, and two threads that share nothing, do at once, over what one does alone."""
    arguments = json.dumps({"folder": folder, "milliseconds": milliseconds})
    command = [sys.executable, "-I", sys.argv[0], "case", os.path.abspath(__file__), "spin", arguments]

    def spinning(number):
        """Rounds per second of so many processes at once, summed."""
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(number)]
        return sum(json.loads(process.communicate()[0])["result"]["per_second"] for process in started)

    ratios = []
    for _ in range(ROUNDS):
        alone = spinning(1)
        ratios.append(spinning(2) / alone)
    threads = contended_piece("no lock", "own objects", 2, folder, milliseconds)
    return {"processes": statistics.median(ratios), "threads": threads["together"] / threads["alone"]}


# [/calibration]


# [stress]
def stress(name, folder, threads, loops):
    """Does a lock keep the number exact? Returns what is there and what should be."""
    locks = arms.load(folder)
    cell, other = locks.Cell(), locks.Cell()
    increments = next(n for piece, n, _ in locks.pieces() if piece == name)
    together([lambda: locks.run(name, cell, other, loops) for _ in range(threads)])
    return {"value": cell.value, "expected": increments * threads * loops}


# [/stress]


# [counter]
def counter(source, threads, counts, milliseconds):
    """A reader's class Counter under many threads, which it cannot change: what it counted, and how two threads do against one.

    Two rounds with threads of their own: what a thread has counted must outlive it.
    """
    names = {}
    exec(source, names)
    # One to see whether its methods are there: what a thread raises would not end the process.
    trial = names["Counter"]()
    trial.adder()()
    trial.total()
    one, totals = names["Counter"](), []

    def count():
        add = one.adder()
        for _ in range(counts):
            add()

    for _ in range(2):
        together([count] * threads)
        totals.append(one.total())

    def make(number):
        return timeit.Timer("add()", "add = given.adder()", time.perf_counter_ns, {"given": one}).timeit

    found = rate(make, 2, milliseconds)
    return {
        "totals": totals,
        "expected": [counts * threads, 2 * counts * threads],
        "gain": found["together"] / found["alone"],
    }


# [/counter]


# [reference_counts]
def reference_counts(folder):
    """ns for one reference count up and down: by the thread that made the object, and by another one."""
    loops, found = 200_000, {}
    for name, make in (
        ("owner", lambda: arms.piece(folder, "reference count")),
        ("foreign", lambda: arms.foreign_reference_count(folder)),
    ):
        piece = make()
        found[name] = min(piece.timeit(loops) for _ in range(20)) / loops
    return found


# [/reference_counts]
