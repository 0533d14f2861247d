"""A5: the talk's way to measure, in one process. Standard library only.

`python talk_method.py LIBRARY FUNCTION LOADER...` prints samples of each loader, in ns.
"""

import ctypes
import itertools
import json
import sys
import time

LOADERS = {"CDLL": ctypes.CDLL, "PyDLL": ctypes.PyDLL}
SAMPLES = 200
DROPPED = 5


# [talk]
def samples(call):
    """One cold call, then 200 single calls, each timed alone through a lambda; the first five are dropped."""
    wrapped = lambda: call()  # noqa: E731
    wrapped()
    taken = []
    for _ in range(SAMPLES):
        started = time.perf_counter_ns()
        wrapped()
        taken.append(time.perf_counter_ns() - started)
    return taken[DROPPED:]


# [/talk]


if __name__ == "__main__":
    library, function, *loaders = sys.argv[1:]
    calls = [getattr(LOADERS[loader](library), function) for loader in loaders]
    empty = samples(lambda: None)
    ticks = [time.perf_counter_ns() for _ in range(2000)]
    steps = sorted({after - before for before, after in itertools.pairwise(ticks)} - {0})
    print(json.dumps({"samples": [samples(call) for call in calls], "empty": empty, "steps": steps[:5]}))
