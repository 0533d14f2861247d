"""Evaluates expressions on the bindings, inside a measured process. Standard library only.

The chapter asks for one expression in each process; `tests/boundary/test_conformance.py` for many, and uses the helpers
here.
"""

import ctypes
import itertools
import os
import sys
import threading
import time
from array import array

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arms
from threads import together


class Index:
    """An integer without being an int."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Other(int):
    """An int whose methods say that it is 99."""

    def __int__(self):
        return 99

    __index__ = __int__


class Twice:
    def __call__(self, x):
        return 2 * x


def caught(m, x):
    try:
        return m.root(x)
    except ValueError as error:
        return type(error)


def lets_others_run(sleep_ms):
    """Does another thread run while `sleep_ms` sleeps? Seen once, it does; a busy machine may take several looks."""
    return any(longest_wait_s(lambda: sleep_ms(200)) < 0.2 for _ in range(5))


def longest_wait_s(call):
    """The longest time between two turns of this thread while another one calls: no shorter than the call where that
    keeps the GIL."""
    looking = []

    def body():
        # `thread.start()` of a free-threaded build yields its core up to forty times before it waits in the kernel:
        # more than half a second where others want the core (MAX_SPIN_COUNT, Python/lock.c).
        while not looking:
            time.sleep(0.001)
        call()

    thread = threading.Thread(target=body)
    thread.start()
    turns = [time.perf_counter()]
    looking.append(True)
    while thread.is_alive():
        time.sleep(0.001)
        turns.append(time.perf_counter())
    return max(after - before for before, after in itertools.pairwise(turns))


def from_many_threads(m, threads, calls):
    """Every thread calls and checks; returns the number of wrong answers."""
    wrong = []

    def body():
        text, counter, callback = "mind thé gap", m.Counter(0), m.callback(Twice())
        point = m.Point(3.0, 4.0)
        try:
            for i in range(calls):
                if (m.add_one(i), m.code_points(text), m.apply(callback, i), m.dot(point)) != (i + 1, 12, 2 * i, 25.0):
                    wrong.append(i)
                counter.add(1)
        except Exception as error:
            wrong.append(error)
        if counter.add(0) != calls:
            wrong.append("counter")

    together([body] * threads)
    return len(wrong)


def moved(m, threads, calls):
    """Threads scale one point by 2 and by 1/2, and read it; returns the number of readings that are no power of two
    times 3 and 4.

    With 200 calls of each of four threads, no product leaves the range of a double.
    """
    point, wrong = m.Point(3.0, 4.0), []

    def body(by):
        try:
            for _ in range(calls):
                m.scale(point, by)
                x, y, square = point.x, point.y, m.dot(point)
                if (x / 3) not in POWERS or (y / 4) not in POWERS or square / 25 not in SQUARES:
                    wrong.append((x, y, square))
        except Exception as error:
            wrong.append(error)

    together([lambda by=by: body(by) for _ in range(threads // 2) for by in (2.0, 0.5)])
    return len(wrong)


POWERS = {2.0**n for n in range(-1000, 1000)}
SQUARES = {4.0**n for n in range(-500, 500)}


# [one object]
def one_object(m, threads, calls, method="add"):
    """All threads add to one object at the same time: additions that got lost, and additions that were refused."""
    counter, refused = m.Counter(0), []
    add = getattr(counter, method)

    def body():
        for _ in range(calls):
            try:
                add(1)
            except RuntimeError as error:
                refused.append(error)

    together([body] * threads)
    return threads * calls - len(refused) - counter.add(0), len(refused)


# [/one object]


# [evaluate]
class Emptying:
    """An item whose conversion empties the list that it is in."""

    def __init__(self, items):
        self.items = items

    def __index__(self):
        self.items.clear()
        return 1


def emptied(m):
    """The sum of a list that the conversion of its second item empties."""
    items = list(range(1_000, 1_100))
    items[1] = Emptying(items)
    return m.sum_list(items)


def fails(x):
    raise LookupError("from Python")


def evaluate(folder, binding, expression):
    """What a binding makes of one call: the value, or the name of the exception. `m` is the binding's functions."""
    try:
        names = {
            "m": arms.load(folder, binding),
            "array": array,
            "sys": sys,
            "nan": float("nan"),
            "inf": float("inf"),
            "Index": Index,
            "Other": Other,
            "Twice": Twice,
            "fails": fails,
            "caught": caught,
            "lets_others_run": lets_others_run,
            "from_many_threads": from_many_threads,
            "one_object": one_object,
            "emptied": emptied,
            "moved": moved,
        }
        return {"value": repr(eval(expression, names))}
    except Exception as error:
        return {"error": type(error).__name__}


# [/evaluate]


def declared(declaration, expression):
    """What C's `abs` makes of an argument that the class `Int` of a reader's code converts: the value, or the name of
    the exception."""
    names = {}
    exec(declaration, names)
    function = ctypes.CDLL(None).abs
    function.restype, function.argtypes = ctypes.c_int, [names["Int"]]
    try:
        return {"answer": repr(function(eval(expression)))}
    except ctypes.ArgumentError as error:
        # ctypes wraps what from_param raises: the message begins with its name.
        return {"answer": str(error).partition(": ")[2].partition(":")[0]}
    except Exception as error:
        return {"answer": type(error).__name__}
