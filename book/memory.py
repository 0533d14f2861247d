import ctypes
import gc
import time

import mine

FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS.split()]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Mallinfo2


def say(what):
    with open("/proc/self/status") as status:
        resident = next(line.split()[1] for line in status if line.startswith("VmRSS"))
    info = libc.mallinfo2()
    print(f"{what}: {resident} KiB; glibc has {(info.arena + info.hblkhd) >> 10}, free of it {info.fordblks >> 10}")


say("at first")
mine.work()
say("after the work")
found = gc.collect()
time.sleep(0.3)
[bytes(100) for _ in range(1000)]
say(f"after gc.collect(), which found {found}")
libc.malloc_trim(0)
say("after malloc_trim(0)")
