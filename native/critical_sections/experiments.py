"""Experiments of the chapter on critical sections that start threads or processes. Standard library only.

`python experiments.py NAME ARGUMENT...` prints one JSON object.
"""

import json
import os
import statistics
import subprocess
import sys
import time
import timeit

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from threads import ROUNDS, rate, together  # noqa: E402


# [contention]
def contended_piece(folder, name, shared, threads, milliseconds):
    """A lock in C: all threads on one cell, or one cell for each."""
    locks = load(folder)
    one = locks.Cell(), locks.Cell()

    def make(number):
        cells = one if shared == "one object" else (locks.Cell(), locks.Cell())
        return lambda loops: locks.run(name, *cells, loops)

    return rate(make, int(threads), int(milliseconds))


SHARED = {
    "dict": ("d['k'] = 1", "dict"),
    "list": ("d.append(1); d.pop()", "list"),
    "counter object": ("d.x += 1", "Thing"),
}


def contended_object(kind, shared, threads, milliseconds):
    """A Python object: all threads use one, or each has its own."""
    statement, maker = SHARED[kind]
    make_object = {"dict": dict, "list": list, "Thing": Thing}[maker]
    one = make_object()

    def make(number):
        own = one if shared == "one object" else make_object()
        return timeit.Timer(statement, "d = given", time.perf_counter_ns, {"given": own}).timeit

    return rate(make, int(threads), int(milliseconds))


def contended_binding(libraries, binding, threads, milliseconds):
    """One bound function, called by all threads."""
    function = boundary().load(libraries, binding).add_one

    def make(number):
        return timeit.Timer("f(7)", "f = given", time.perf_counter_ns, {"given": function}).timeit

    return rate(make, int(threads), int(milliseconds))


# [/contention]


def contended_text(libraries, which, threads, milliseconds):
    """Texts across the boundary and into the table of interned texts, from many threads."""
    function = boundary().load(libraries, "C API").code_points
    statement, setup = {
        "UTF-8 of one text": ("f(s)", "s = given"),
        "UTF-8 of new texts": ("f(a + b)", "a, b = 'mind th', 'é gap'"),
        "interning one text": ("intern(s)", "import sys; intern, s = sys.intern, 'mind_the_gap'"),
        "attribute by a new name": ("getattr(o, a + b)", "o, a, b = thing, 'x', 'y'"),
    }[which]
    thing = Thing()
    thing.xy = 1
    names = {"f": function, "given": "mind thé gap", "thing": thing}

    def make(number):
        return timeit.Timer(statement, setup, time.perf_counter_ns, names).timeit

    return rate(make, int(threads), int(milliseconds))


def spin(folder, milliseconds):
    """Work that shares nothing, as long as asked: rounds per second."""
    locks = load(folder)
    cell, loops = locks.Cell(), int(milliseconds) * 500_000
    return loops / locks.run("no lock", cell, cell, loops) * 1e9


def calibration(folder, milliseconds):
    """How much two processes, and two threads that share nothing, do at once, over what one does alone."""
    command = [sys.executable, "-I", os.path.abspath(__file__), "spin", folder, milliseconds]
    ratios = []
    for _ in range(ROUNDS):
        alone = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        ratios.append(sum(float(process.communicate()[0]) for process in both) / alone)
    threads = contended_piece(folder, "no lock", "own objects", 2, milliseconds)
    return {"processes": statistics.median(ratios), "threads": threads["together"] / threads["alone"]}


def load(folder):
    import arms

    return arms.load(folder)


def boundary():
    """The module `arms` of the corner next door."""
    import importlib.util

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "boundary", "arms.py")
    spec = importlib.util.spec_from_file_location("boundary_arms", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Thing:
    def __init__(self):
        self.x = 0


def stress(folder, name, threads, loops):
    """Does a lock keep the number exact? Returns what is there and what should be."""
    locks = load(folder)
    cell, other = locks.Cell(), locks.Cell()
    increments = next(n for piece, n, _ in locks.pieces() if piece == name)
    together([lambda: locks.run(name, cell, other, int(loops)) for _ in range(int(threads))])
    return {"value": cell.value, "expected": increments * int(threads) * int(loops)}


def reference_counts(folder):
    """ns for one reference count up and down: by the thread that made the object, and by another one."""
    import arms

    loops, found = 200_000, {}
    for name, make in (
        ("owner", lambda: arms.piece(folder, "reference count")),
        ("foreign", lambda: arms.foreign_reference_count(folder)),
    ):
        piece = make()
        found[name] = min(piece.timeit(loops) for _ in range(20)) / loops
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
