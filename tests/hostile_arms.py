"""Arms that go wrong in every way, for the tests of the runner. Standard library only."""

import ctypes
import os
import resource
import signal
import sys
import time
import timeit


def fine():
    return timeit.Timer("pass", timer=time.perf_counter_ns)


def missing():
    raise ImportError("no such tool on this interpreter")


class Once:
    """Works while it is calibrated in the first restart, then misbehaves in the restart whose turn it is."""

    def __init__(self, marker, action, after=3):
        self.marker, self.action, self.after, self.calls = marker, action, after, 0

    def timeit(self, loops):
        started = time.perf_counter_ns()
        self.calls += 1
        for _ in range(loops):
            pass
        if self.calls > self.after and not os.path.exists(self.marker):
            open(self.marker, "w").close()
            result = self.action()
            if result is not None:
                return result
        return time.perf_counter_ns() - started


def dies(marker, after=3):
    return Once(marker, lambda: os._exit(7), after)


def hangs(marker):
    return Once(marker, lambda: time.sleep(1000))


def clock_steps_back(marker):
    return Once(marker, lambda: -5)


def nonsense(marker):
    return Once(marker, lambda: "many")


def prints(marker):
    return Once(marker, lambda: print("this must not be taken for an answer", flush=True))


def killed(marker):
    return Once(marker, lambda: os.kill(os.getpid(), signal.SIGKILL))


def stopped(marker):
    return Once(marker, lambda: os.kill(os.getpid(), signal.SIGSTOP))


def segfaults(marker):
    return Once(marker, lambda: ctypes.string_at(0))


def out_of_memory(marker):
    def action():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))
        bytearray(1 << 30)

    return Once(marker, action)


def jumps(marker):
    """Its clock jumps forward by five minutes, as after a pause of which the runner's clock knows nothing."""
    return Once(marker, lambda: 300 * 10**9)


def forks(marker):
    """From one batch on there are two of it, and both answer."""

    def action():
        os.fork()

    return Once(marker, action)


class Always:
    def timeit(self, loops):
        os._exit(9)


def always_dies():
    return Always()


def turns_the_gil_on():
    if hasattr(sys, "_is_gil_enabled"):
        sys._is_gil_enabled = lambda: True
    return fine()


def passes(ns):
    """So many nanoseconds, after as many: a time that is made up, and no longer than what passed."""
    started = time.perf_counter_ns()
    while time.perf_counter_ns() - started < ns:
        pass
    return ns


class Hiccup:
    """Takes 50 ns a loop, and 20 ms more in its third batch."""

    def __init__(self):
        self.calls = 0

    def timeit(self, loops):
        self.calls += 1
        return passes(50 * loops + (20_000_000 if self.calls == 3 else 0))


def hiccups():
    return Hiccup()


# What stands here instead of a time comes once for each part of a batch: see worker.py.


class Core:
    """Instead of a time: the number of the core to which its process is pinned, and one more."""

    def timeit(self, loops):
        (core,) = os.sched_getaffinity(0)
        return 1 + core


def core():
    return Core()


def missing_once(marker):
    if not os.path.exists(marker):
        open(marker, "w").close()
        raise ImportError("not yet")
    return fine()


class Padding:
    """Instead of a time: by how many bytes its environment is longer, and one more."""

    def timeit(self, loops):
        return passes(1 + len(os.environ["PADDING"]))


def padding():
    return Padding()


class Program:
    """Instead of a time: the inode of the program that runs, as far as it fits into one."""

    def timeit(self, loops):
        return passes(1 + os.stat("/proc/self/exe").st_ino % 99_991)


def program():
    return Program()
