"""The arms by which a run judges itself: see `ffilab.measure.plan.controls`. Standard library only: workers import this file."""

import time
import timeit


def control(steps):
    """A loop of so many empty steps in Python: work that can be made longer by a known amount."""
    return timeit.Timer("for _ in steps: pass", "steps = given", time.perf_counter_ns, {"given": range(steps)})
