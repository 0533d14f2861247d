"""What a process of the chapter on arenas knows of its memory. Standard library only: its functions go to the workers.
MiB."""

import ctypes
import os
import sys
import sysconfig

MIB = 1 << 20


def library(folder):
    """libarenas.so."""
    found = ctypes.CDLL(os.path.join(folder, "libarenas.so"))
    size, long = ctypes.c_size_t, ctypes.c_int64
    found.heap_report.restype = ctypes.c_char_p
    found.short_lived_round.argtypes = [ctypes.c_int, ctypes.c_int, size, size, ctypes.c_int, ctypes.c_uint]
    found.short_lived_round.restype = found.pool_round.restype = long
    found.pool_round.argtypes = [ctypes.c_int, size, size, ctypes.c_int]
    found.allocate_and_free.argtypes = [ctypes.c_int, size, ctypes.c_int]
    found.populate.argtypes = [ctypes.c_int, size]
    return found


def extension(folder):
    """The extension in Rust. Raises ImportError if it was not built."""
    sys.path.insert(0, os.path.join(folder, sysconfig.get_config_var("SOABI")))
    import arena_poc

    return arena_poc


def sizes():
    """All sizes that the kernel tells of this process."""
    found = {}
    for path in ("/proc/self/smaps_rollup", "/proc/self/status"):
        with open(path) as file:
            for line in file:
                words = line.split()
                if words[-1] == "kB":
                    found[words[0].rstrip(":")] = int(words[1]) / 1024
    return found


def heap(lib):
    """What glibc says: the number of arenas, what it holds from the system, and how much of it is in use."""
    # Here, as it takes longer than many a process that does not need it.
    import xml.etree.ElementTree as ElementTree

    root = ElementTree.fromstring(lib.heap_report())
    totals = {e.get("type"): int(e.get("size")) for e in root.findall("total")}
    system = next((int(e.get("size")) for e in root.findall("system") if e.get("type") == "current"), 0)
    mapped = totals.get("mmap", 0)
    free = totals.get("fast", 0) + totals.get("rest", 0)
    return {
        "arenas": len(root.findall("heap")),
        "held": (system + mapped) / MIB,
        "in_use": (system + mapped - free) / MIB,
    }


def memory(lib):
    """What the kernel says is resident (RSS), this process's share of it (PSS), its peak, and what only we have; and
    `heap`."""
    found = sizes()
    resident = {
        "rss": found["Rss"],
        "pss": found["Pss"],
        "peak": found["VmHWM"],
        "private": found["Private_Dirty"],
        "huge": found["AnonHugePages"],
    }
    return {**resident, **heap(lib)}


def mappings():
    """Every mapping of this process: first address, last address, file, and how much of it are huge pages."""
    found = []
    with open("/proc/self/smaps") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                found.append([*(int(end, 16) for end in words[0].split("-")), " ".join(words[5:]), 0])
            elif words[0] == "AnonHugePages:":
                found[-1][3] = int(words[1]) / 1024
    return found


def whose_malloc():
    """Whose `malloc` this process calls: the name of the file that the dynamic linker finds it in, or `glibc`."""
    malloc = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
    name = os.path.basename(next(file for low, high, file, _ in mappings() if low <= malloc < high))
    return "glibc" if name.startswith("libc") else name
