"""Arms that go wrong in every way, for the tests of the runner. Standard library only."""

import ctypes
import itertools
import os
import resource
import signal
import sys
import time
import timeit
from types import SimpleNamespace


def fine():
    return timeit.Timer("pass", timer=time.perf_counter_ns)


def missing():
    raise ImportError("no such tool on this interpreter")


def missing_once(marker):
    if not os.path.exists(marker):
        open(marker, "w").close()
        raise ImportError("not yet")
    return fine()


def turns_the_gil_on():
    if hasattr(sys, "_is_gil_enabled"):
        sys._is_gil_enabled = lambda: True
    return fine()


def out_of_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
    bytearray(1 << 30)


def forks():
    """From one batch on there are two of it, and both answer."""
    os.fork()


# What a batch does; an answer is given in the place of its time.
ACTIONS = {
    "dies": lambda: os._exit(7),
    "hangs": lambda: time.sleep(1000),
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "stopped": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "segfaults": lambda: ctypes.string_at(0),
    "out_of_memory": out_of_memory,
    "forks": forks,
    "prints": lambda: print("this must not be taken for an answer", flush=True),
    # By five minutes, as after a pause of which the runner's clock knows nothing.
    "jumps": lambda: 300 * 10**9,
    "clock_steps_back": lambda: -5,
    "nonsense": lambda: "many",
}


def once(marker, action, after=3):
    """Works while it is calibrated in the first restart, then misbehaves in the restart whose turn it is."""
    calls = itertools.count(1)

    def timed(loops):
        started = time.perf_counter_ns()
        for _ in range(loops):
            pass
        if next(calls) > after and not os.path.exists(marker):
            open(marker, "w").close()
            answer = ACTIONS[action]()
            if answer is not None:
                return answer
        return time.perf_counter_ns() - started

    return SimpleNamespace(timeit=timed)


def always_dies():
    return SimpleNamespace(timeit=lambda loops: os._exit(9))


def passes(ns):
    """So many nanoseconds, after as many: a time that is made up, and no longer than what passed."""
    started = time.perf_counter_ns()
    while time.perf_counter_ns() - started < ns:
        pass
    return ns


def hiccups():
    """Takes 50 ns a loop, and 20 ms more in its third batch."""
    calls = itertools.count(1)
    return SimpleNamespace(timeit=lambda loops: passes(50 * loops + 20_000_000 * (next(calls) == 3)))


# What stands here instead of a time comes once for each part of a batch: see worker.py.


def core():
    """The number of the core to which its process is pinned, and one more."""

    def number(loops):
        (only,) = os.sched_getaffinity(0)
        return 1 + only

    return SimpleNamespace(timeit=number)


def padding():
    """By how many bytes its environment is longer, and one more."""
    return SimpleNamespace(timeit=lambda loops: passes(1 + len(os.environ["PADDING"])))


def program():
    """The inode of the program that runs, as far as it fits into one."""
    return SimpleNamespace(timeit=lambda loops: passes(1 + os.stat("/proc/self/exe").st_ino % 99_991))
