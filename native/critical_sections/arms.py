"""Benchmark bodies of the chapter on critical sections. Standard library only: workers import this file."""

import os
import sys
import sysconfig
import threading
import time
import timeit

# [operations]
# Operation of the interpreter: (statement that is timed, setup).
OPERATIONS = {
    "global name": ("len", "pass"),
    "attribute, read": ("o.x", "o = Thing()"),
    "attribute, write": ("o.x = 1", "o = Thing()"),
    "method call": ("o.method()", "o = Thing()"),
    "function call": ("f()", "f = function"),
    "dict, read": ("d['k']", "d = {'k': 1}"),
    "dict, write": ("d['k'] = 1", "d = {'k': 1}"),
    "dict, iterate 100": ("for k in d: pass", "d = dict.fromkeys(range(100))"),
    "list, read": ("a[7]", "a = list(range(10))"),
    "list, append and pop": ("a.append(1); a.pop()", "a = []"),
    "list, iterate 100": ("for v in a: pass", "a = [None] * 100"),
    "list comprehension of 100": ("[v for v in a]", "a = [None] * 100"),
    "set, add": ("s.add(1)", "s = set()"),
    "tuple, make": ("(i, i)", "i = 1"),
    "object, make": ("C()", "C = object"),
    "instance, make": ("C()", "C = Thing"),
    "int, add": ("i + i", "i = 300"),
    "int, large": ("i * i", "i = 1 << 64"),
    "float, add": ("x + x", "x = 1.5"),
    "str, join": ("a + b", "a, b = 'mind', 'the gap'"),
    "str, format": ("f'{i}'", "i = 42"),
    "str, intern": ("intern(s)", "import sys; intern, s = sys.intern, 'mind_the_gap'"),
    "attribute by a new name": ("getattr(o, a + b)", "o, a, b = Thing(), 'met', 'hod'"),
    "str, hash of a new one": ("hash(a + b)", "a, b = 'mind', 'the gap'"),
}
# [/operations]


# [operation]
class Thing:
    def __init__(self):
        self.x = 1

    def method(self):
        pass


def function():
    pass


def operation(name):
    """One operation of the interpreter."""
    statement, setup = OPERATIONS[name]
    return timeit.Timer(statement, setup, time.perf_counter_ns, {"Thing": Thing, "function": function})


# [/operation]


# [load]
def load(folder):
    """The extension with the locks. Raises ImportError if it was not built."""
    place = os.path.join(folder, sysconfig.get_config_var("SOABI"))
    if place not in sys.path:
        sys.path.insert(0, place)
    import lock_pieces

    return lock_pieces


# [/load]


# [piece]
class Piece:
    """One lock in a C loop, without a rival."""

    def __init__(self, folder, name, cells):
        self._run, self._name, self._cells = load(folder).run, name, cells

    def timeit(self, loops):
        return self._run(self._name, *self._cells, loops)


def piece(folder, name):
    """One of the pieces, on cells that this thread made."""
    return Piece(folder, name, [load(folder).Cell() for _ in range(2)])


def foreign_reference_count(folder):
    """The thread that made an object owns it: for every other one its count is shared."""
    make, cells = load(folder).Cell, []
    maker = threading.Thread(target=lambda: cells.extend(make() for _ in range(2)))
    maker.start()
    maker.join()
    return Piece(folder, "reference count", cells)


# [/piece]
