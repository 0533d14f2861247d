"""Arms of which one batch goes wrong, after the restart that calibrates. Standard library only."""

import ctypes
import os
import resource
import signal
import time


class Once:
    def __init__(self, marker, action):
        self.marker, self.action, self.calls = marker, action, 0

    def timeit(self, loops):
        started = time.perf_counter_ns()
        self.calls += 1
        for _ in range(loops):
            pass
        if self.calls > 3 and not os.path.exists(self.marker):
            open(self.marker, "w").close()
            result = self.action()
            if result is not None:
                return result
        return time.perf_counter_ns() - started


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


def plain():
    return Once(os.devnull, lambda: None)
