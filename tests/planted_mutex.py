"""A counter of the chapter on races with a bug planted in its remedy: now and then the mutex loses one update.

Standard library only: `ffilab/bench/worker.py case` calls it, as it calls the chapter's own experiments.
"""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "native", "races"))

from experiments import arms, start_all

# In how many processes the mutex loses its update.
RATE = 1 / 20


def planted_counter(folder, way, threads, iterations, seed):
    """The safe counters of `crossed_counter`. By its seed, the mutex of one process in twenty loses exactly one update."""
    add, reset, value = arms.increment(folder, way)
    forgets = random.Random(seed).random() < RATE
    rows = []
    for variant in ("mutex", "atomic"):
        reset()
        start_all(threads, lambda: add(variant, iterations))  # noqa: B023
        # The last update comes from the main thread, if it is not forgotten.
        add(variant, 0 if forgets and variant == "mutex" else 1)
        rows.append({"threads": threads, "variant": variant, "lost": 1 - value() / (threads * iterations + 1)})
    return rows
