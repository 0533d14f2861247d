"""A5: the talk's way to measure, in one process. By the code that it published beside the slides.

Standard library only: `ffilab/bench/worker.py case` calls `four_bindings` or `copies` and prints what it returns.
"""

import ctypes
import gc
import itertools
import os
import sys
import time

# [talk]
SAMPLES = 200
DROPPED = 5


def samples(call):
    """One cold call, then 200 single calls, each timed alone through a lambda, and its answer looked at; without the first
    five. In ns."""
    wrapped = lambda: call()  # noqa: E731
    gc.collect()
    first, taken = wrapped(), []
    time.sleep(0.001)
    for _ in range(SAMPLES):
        started = time.perf_counter_ns()
        answer = wrapped()
        taken.append(time.perf_counter_ns() - started)
        if answer != first:
            raise ValueError(f"the call answered {first!r}, and then {answer!r}")
    return taken[DROPPED:]


class Method:
    """A call behind a method in Python, as the talk has every binding."""

    def __init__(self, call):
        self.call = call

    def return_int(self):
        return self.call()


def behind_methods(call, binding=""):
    """The method that the talk times. Its class for cffi hands on to another one: two methods."""
    method = Method(call).return_int
    return Method(method).return_int if binding.startswith("cffi") else method


# [/talk]


def taken_apart():
    """What a sample is made of besides the call: samples of an empty lambda, and the clock's smallest steps."""
    ticks = [time.perf_counter_ns() for _ in range(2000)]
    steps = sorted({after - before for before, after in itertools.pairwise(ticks)} - {0})
    return {"empty": samples(lambda: None), "steps": steps[:5]}


# [one process]
def four_bindings(folder, bindings):
    """All bindings loaded into one process, then one after the other. One that was not built is left out."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "boundary"))
    import arms

    loaded = {}
    for binding in bindings:
        try:
            loaded[binding] = behind_methods(arms.load(folder, binding).answer, binding)
        except ImportError:
            continue
    return {"bindings": list(loaded), "samples": [samples(call) for call in loaded.values()], **taken_apart()}


def copies(library, function, measured_first):
    """The same for two copies of one call through CDLL. measured_first: the number of the copy that is measured first."""
    calls = [behind_methods(getattr(ctypes.CDLL(library), function)) for _ in range(2)]
    taken = {number: samples(calls[number]) for number in (measured_first, 1 - measured_first)}
    return {"samples": [taken[0], taken[1]]}


# [/one process]
