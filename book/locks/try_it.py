"""Two threads call a function whose lock is held while Python runs: do both come through, and is one alone inside?"""

import gc
import sys
import threading

import locked

sys.setswitchinterval(1e-5)


def write():
    """Stop the world where there is no GIL, and run for long enough to lose it where there is one."""
    gc.collect(0)
    for _ in range(10_000):
        pass


def work():
    together.wait()
    for _ in range(200):
        locked.report(write)


together = threading.Barrier(2)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("came through, one alone inside" if locked.most_inside() == 1 else "came through, two inside at once")
