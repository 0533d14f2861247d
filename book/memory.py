import ctypes
import gc
import time

import mine


def say(what):
    with open("/proc/self/status") as status:
        print(f"{what}:", next(line.split()[1] for line in status if line.startswith("VmRSS")), "KiB")


say("at first")
mine.work()
say("after the work")
found = gc.collect()
time.sleep(0.3)
[bytes(100) for _ in range(1000)]
say(f"after gc.collect(), which found {found}")
ctypes.CDLL(None).malloc_trim(0)
say("after malloc_trim(0)")
