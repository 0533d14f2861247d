"""Experiments of the chapter on arenas: each in a process of its own, as memory once taken is not given back.

Standard library only: `ffilab/measure/worker.py case` calls one of these functions and prints what it returns. Sizes are in
MiB unless named.
"""

import concurrent.futures
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import sysconfig
import threading
import time
import xml.etree.ElementTree as ElementTree

MIB = 1 << 20
PR_SET_THP_DISABLE = 41
MMAP_THRESHOLD = 128 * 1024


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


def load(folder):
    """The extension in Rust. Raises ImportError if it was not built."""
    sys.path.insert(0, os.path.join(folder, sysconfig.get_config_var("SOABI")))
    import arena_poc

    return arena_poc


# [memory]
def sizes():
    """All sizes that the kernel tells of this process, in MiB."""
    found = {}
    for path in ("/proc/self/smaps_rollup", "/proc/self/status"):
        with open(path) as file:
            for line in file:
                words = line.split()
                if words[-1] == "kB":
                    found[words[0].rstrip(":")] = int(words[1]) / 1024
    return found


def resident():
    """What the kernel says: MiB resident (RSS), this process's share of it (PSS), the peak, and what only we have."""
    found = sizes()
    return {
        "rss": found["Rss"],
        "pss": found["Pss"],
        "peak": found["VmHWM"],
        "private": found["Private_Dirty"],
        "huge": found["AnonHugePages"],
    }


def heap(lib):
    """What glibc says: the number of arenas, MiB held from the system, and MiB of it in use."""
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
    return {**resident(), **heap(lib)}


# [/memory]


# [talk]
def growth_of(before, after):
    return {name: after[name] - before[name] for name in ("rss", "pss", "huge", "held", "in_use", "arenas")}


def mappings():
    """Every mapping of this process: first address, last address, file, MiB of huge pages."""
    found = []
    with open("/proc/self/smaps") as file:
        for line in file:
            words = line.split()
            if not words[0].endswith(":"):
                found.append([*(int(end, 16) for end in words[0].split("-")), " ".join(words[5:]), 0])
            elif words[0] == "AnonHugePages:":
                found[-1][3] = int(words[1]) / 1024
    return found


def huge_where(addresses):
    """MiB of huge pages in the mappings that hold one of the addresses."""
    return sum(mib for low, high, _, mib in mappings() if any(low <= one < high for one in addresses))


def talk(folder, python_threads, native_threads, calls, pause, block_bytes, meet, release_gil, small_pages, together):
    """A19 as the talk's source has it: Python threads call and pause, each call starts native threads that take 64 MiB each.

    block_bytes: our worker in place of the talk's: a block of this size, which the optimiser cannot take away, and which is
    written to where its size is below the mmap threshold. meet: the threads of a call wait for each other before they free.
    release_gil: the call releases the GIL. small_pages: no huge ones, for this process. together: no Python thread
    calls before all of them are there.
    Returns what grew by the kernel's account and by glibc's; vmrss, as the talk reads it; inside, the sum of what the calls saw
    grow; in_objects, the huge pages in mappings where threads keep Python objects; the rest of it after malloc_trim; the native
    threads (ours alone count themselves), and the Python threads, that were alive at once.
    """
    if small_pages:
        ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)
    lib = library(folder)
    module = load(folder) if native_threads else None
    alive, most, objects = [0], [0], []
    lock, all_there = threading.Lock(), threading.Barrier(python_threads if together else 1)

    def ours():
        run = module.run_detached if release_gil else module.run_kept
        run(native_threads, block_bytes, block_bytes < MMAP_THRESHOLD, meet)
        return 0.0, 0.0

    def worker(_):
        with lock:
            alive[0] += 1
            most[0] = max(*most, *alive)
            objects.append(id(object()))
        all_there.wait()
        deltas = []
        for _ in range(calls):
            if native_threads:
                before, after = ours() if block_bytes else module.run_arena_test(native_threads)
                deltas.append(after - before)
            time.sleep(pause)
        with lock:
            alive[0] -= 1
        return sum(deltas)

    earlier, before, rss = huge_where([id(object())]), memory(lib), sizes()["VmRSS"]
    with concurrent.futures.ThreadPoolExecutor(max_workers=python_threads) as executor:
        futures = [executor.submit(worker, i) for i in range(python_threads)]
        inside = sum(future.result() for future in concurrent.futures.as_completed(futures))
    vmrss, after = sizes()["VmRSS"] - rss, memory(lib)
    lib.trim()
    left = growth_of(before, memory(lib))
    said = {"vmrss": vmrss, "inside": inside, "in_objects": huge_where(objects) - earlier, "python_at_once": most[0]}
    at_once = module.peak_threads() if block_bytes else None
    return {**growth_of(before, after), **said, "trimmed": left, "at_once": at_once}


# [/talk]


# [asked]
def asked(folder, published):
    """Does a native thread (the talk's worker, else ours) ask for its block of 64 MiB? With less room it ends well if not."""
    module = load(folder)
    for threads in (0, 1):
        if threads:
            most = int((sizes()["VmSize"] + 32) * MIB)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        module.run_arena_test(threads) if published else module.run_kept(threads, 64 * MIB, False, False)
    return {"worked": True}


# [/asked]


# [growth]
# The work of one thread in one round: blocks from 64 bytes to 100 KiB, all below the mmap threshold.
BLOCKS, SMALLEST, LARGEST = 100, 64, 100 * 1024


def growth(folder, way, threads, rounds, keep, trim=False, idle_s=0):
    """Rounds of allocation in native threads: memory before them, after each, and after malloc_trim; blocks per second.

    way: `short-lived threads`, `thread pool` or `thread pool, by turns` (one works at a time). keep: leave a small block
    behind in each thread and round. trim: call malloc_trim after each round as well. idle_s: seconds in which nothing happens, after the rounds.
    Returns a row for each state, with `done`, the rounds until then.
    """
    lib = library(folder)
    rows, ns = [{"state": "before", "done": 0, **memory(lib)}], 0
    pool = way.startswith("thread pool")
    if pool:
        lib.pool_start(threads, way.endswith("by turns"), 1)
    for number in range(rounds):
        if pool:
            ns += lib.pool_round(BLOCKS, SMALLEST, LARGEST, keep)
        else:
            ns += lib.short_lived_round(threads, BLOCKS, SMALLEST, LARGEST, keep, 1000 * number)
        if trim:
            began = time.perf_counter_ns()
            lib.trim()
            ns += time.perf_counter_ns() - began
        rows.append({"state": "worked", "done": number + 1, **memory(lib)})
    if idle_s:
        time.sleep(idle_s)
        rows.append({"state": "idle", "done": rounds, **memory(lib)})
    lib.trim()
    rows.append({"state": "trimmed", "done": rounds, **memory(lib)})
    if pool:
        lib.pool_stop()
    whole = {"blocks_per_second": threads * rounds * BLOCKS / ns * 1e9, "mapped": allocator()}
    return [{**row, **whole} for row in rows]


# [/growth]


# [allocator]
def allocator():
    """Whose `malloc` this process calls: the name of the file that the dynamic linker finds it in, or `glibc`."""
    malloc = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p).value
    name = os.path.basename(next(file for low, high, file, _ in mappings() if low <= malloc < high))
    return "glibc" if name.startswith("libc") else name


# [/allocator]


# [thresholds]
def thresholds(folder):
    """A22: MiB held after blocks were freed: large ones under a small pin, twice, and then small ones without a pin."""
    lib = library(folder)
    before = memory(lib)
    for _ in range(2):  # the first round teaches glibc its dynamic threshold
        lib.allocate_and_free(100, MIB, True)
    large = memory(lib)
    lib.allocate_and_free(1600, 64 * 1024, False)
    small = memory(lib)
    return [
        {"case": "large, pinned", "held": large["held"] - before["held"]},
        {"case": "small", "held": small["held"] - large["held"]},
    ]


# [/thresholds]


# [latency]
def latency(folder, threads, pairs, rounds):
    """ns of one malloc and free over all threads, each warmed up: median and 99.9 % quantile of a round, the median of all rounds.

    The quantile of one round is that of few slow pairs: it differs more from round to round than from process to process.
    """
    lib, found = library(folder), {"p50": [], "p99.9": []}
    for _ in range(rounds):
        ns = (ctypes.c_int64 * (threads * pairs))()
        lib.latencies(threads, pairs, ns)
        ordered = sorted(ns)
        found["p50"].append(ordered[len(ordered) // 2])
        found["p99.9"].append(ordered[len(ordered) * 999 // 1000])
    return {**{name: statistics.median(values) for name, values in found.items()}, "mapped": allocator()}


# [/latency]


# [startup]
def startup():
    """Milliseconds that an empty Python process takes from start to end."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
        times.append((time.perf_counter() - began) * 1e3)
    return {"ms": statistics.median(times), "mapped": allocator()}


# [/startup]


# [forks]
def forks(folder, children):
    """A parent with 50 MiB of small blocks forks; each child frees every other one. MiB that a child then has alone."""
    lib = library(folder)
    lib.populate(50 * 1024, 1024)
    private = []
    for _ in range(children):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            lib.free_every_other()
            os.write(write, json.dumps(resident()["private"]).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            private.append(json.loads(answer.read()))
        os.waitpid(child, 0)
    return {"private": statistics.median(private), "mapped": allocator()}


# [/forks]


# [domains]
SIZES = {"small": 100, "large": 4000}


def domains(folder):
    """Which share of the bytes asked of CPython's three domains of allocation comes from glibc's malloc."""
    lib, count, rows = library(folder), 500, []
    for domain in ("PyMem_RawMalloc", "PyMem_Malloc", "PyObject_Malloc"):
        allocate, free = getattr(ctypes.pythonapi, domain), getattr(ctypes.pythonapi, domain.replace("Malloc", "Free"))
        allocate.restype, allocate.argtypes, free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
        for size, bytes_ in SIZES.items():
            blocks = [None] * count
            before = heap(lib)["in_use"]
            for i in range(count):
                blocks[i] = allocate(bytes_)
            share = (heap(lib)["in_use"] - before) * MIB / (count * bytes_)
            rows.append({"domain": domain, "size": size, "share": share})
            for block in blocks:
                free(block)
    return rows


# [/domains]


# [arenas_now]
def arenas_now(folder, threads):
    """glibc's account by arena after one round of a pool whose threads take turns: number, MiB held, MiB free."""
    lib = library(folder)
    lib.pool_start(threads, True, 1)
    lib.pool_round(BLOCKS, SMALLEST, LARGEST, True)
    rows = []
    for arena in ElementTree.fromstring(lib.heap_report()).findall("heap"):
        free = sum(int(e.get("size")) for e in arena.findall("total"))
        held = next(int(e.get("size")) for e in arena.findall("system") if e.get("type") == "current")
        rows.append({"arena": int(arena.get("nr")), "held": held / MIB, "free": free / MIB})
    return rows


# [/arenas_now]
