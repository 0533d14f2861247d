"""The talk's own programs: single calls (A1 to A4), and a loop at the level of the module, for a profiler (A10).

Standard library only. As a script: FOLDER BINDING SECONDS.
"""

import gc
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arms


# [methods]
class Implementation:
    """The talk's public code calls each binding in a method in Python, and cffi's in two."""

    def __init__(self, call):
        self._call = call

    def return_int(self):
        return self._call()


def implementation(folder, binding):
    made = Implementation(arms.load(folder, binding).answer)
    return Implementation(made.return_int) if binding.startswith("cffi") else made


def return_int(folder, binding):
    return implementation(folder, binding).return_int


# [/methods]


# [original]
SAMPLES, DROPPED = 200, 5


def single_calls(return_int):
    """One cold call, then 200 single calls, each timed alone through a lambda, and each answer looked at. In ns."""
    gc.collect()
    wrapped = lambda: return_int()  # noqa: E731
    expected = wrapped()
    time.sleep(0.001)
    taken = []
    for _ in range(SAMPLES):
        started = time.perf_counter_ns()
        answer = wrapped()
        taken.append(time.perf_counter_ns() - started)
        if answer != expected:
            raise ValueError(f"{answer} instead of {expected}")
    return taken[DROPPED:]


def original(folder, bindings):
    """A1 to A4 as the talk ran them: all bindings are loaded, then timed in a fixed order, in one process."""
    called = {}
    for binding in bindings:
        try:
            called[binding] = return_int(folder, binding)
        except ImportError:
            continue
    return [{"binding": binding, "ns": single_calls(return_int)} for binding, return_int in called.items()]


# [/original]

if __name__ == "__main__":
    # [loop]
    impl = implementation(sys.argv[1], sys.argv[2])
    count = 0
    end = time.time() + float(sys.argv[3])
    while time.time() < end:
        impl.return_int()
        count += 1
    # [/loop]
