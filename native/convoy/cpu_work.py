"""CPU work that counts itself in a shared file: the same in a thread, a process or another interpreter."""

import contextlib
import mmap
import os
import time

CHUNK = 1000


@contextlib.contextmanager
def counters(path):
    """The numbers of a shared file. Number 0 says stop; each worker counts its chunks in its own place, and as far from
    the end the ns for which its thread had a core."""
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory, memoryview(memory).cast("Q") as shared:
        yield shared


def compute(path, place, folder=""):
    """The author's CPU work, in chunks."""
    with counters(path) as shared:
        n = 0
        while not shared[0]:
            for _ in range(CHUNK):
                n += 1
                n -= 1
            shared[place] += 1
            shared[-place] = time.thread_time_ns()


def spin(path, place):
    """Keep one core awake, at the priority that gives way to everybody (Linux)."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[(place - 1) % len(cores)]})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    compute(path, place)
