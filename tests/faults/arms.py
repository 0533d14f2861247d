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


def floods(marker):
    def action():
        for _ in range(200):
            os.write(1, b"x" * 65536)

    return Once(marker, action)


class Still(Once):
    """Its clock stands still from one batch on, until its process ends."""

    still = False

    def timeit(self, loops):
        took = super().timeit(loops)
        return 0 if self.still else took


def stands_still(marker):
    arm = Still(marker, lambda: setattr(arm, "still", True))
    return arm


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


def together(threads):
    """Seconds in which so many threads each do the same work."""
    import threading

    def work():
        for _ in range(3_000_000):
            pass

    started = time.perf_counter()
    each = [threading.Thread(target=work) for _ in range(threads)]
    for one in each:
        one.start()
    for one in each:
        one.join()
    return {"s": time.perf_counter() - started}
