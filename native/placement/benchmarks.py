"""Two small benchmarks for the relink lottery, run by every linked CPython. Built-in modules only.

`python benchmarks.py CORE` answers lines: `NAME LOOPS` with the ns of one loop of that benchmark.
"""

import os
import sys
import time


class Callee:
    def one(self, a, b, c):
        self.two(a, b)
        self.two(b, c)

    def two(self, a, b):
        self.three(a)
        self.three(b)

    def three(self, a):
        pass


def call_method(loops):
    """Methods that call methods, as in the benchmark of the original."""
    callee = Callee()
    for _ in range(loops):
        callee.one(1, 2, 3)


def containers(loops):
    """A dict, a list and slices."""
    words = ["mind", "the", "gap", "between", "train", "and", "platform"]
    for _ in range(loops):
        counts = {}
        for word in words:
            counts[word[:3]] = counts.get(word[:3], 0) + len(word)
        sorted(counts.values())


# Loops that take two milliseconds or so.
BENCHMARKS = {"call_method": (call_method, 16_000), "containers": (containers, 2_000)}


def main():
    """Answer each line `NAME LOOPS` with the ns of one loop of that benchmark."""
    core = int(sys.argv[1])
    if core >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    for line in sys.stdin:
        name, loops = line.split()
        function, loops = BENCHMARKS[name][0], int(loops)
        started = time.perf_counter_ns()
        function(loops)
        print((time.perf_counter_ns() - started) / loops, flush=True)


if __name__ == "__main__":
    main()
