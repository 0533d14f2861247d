"""Ways into the native code of the chapter on races, and threads that are started together. Standard library only."""

import ctypes
import itertools
import os
import statistics
import sys
import sysconfig
import threading

LOADERS = {"ctypes PyDLL": ctypes.PyDLL, "ctypes CDLL": ctypes.CDLL}
VARIANTS = ("unsafe", "mutex", "atomic")


def library(folder, loader="ctypes CDLL", **options):
    """libraces.so through CDLL, which releases the GIL, or PyDLL, which keeps it."""
    native = LOADERS[loader](os.path.join(folder, "libraces.so"), **options)
    native.counter_value.restype = native.bank_balance.restype = ctypes.c_long
    return native


def extension(folder):
    """The module shared_state. Raises ImportError if it was not built."""
    place = os.path.join(folder, sysconfig.get_config_var("SOABI"))
    if place not in sys.path:
        sys.path.insert(0, place)
    import shared_state

    return shared_state


class Visit(ctypes.Structure):
    """What a thread notes of its work: see Visit in library/races.h."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("begin_ns", "end_ns", "preempted")),
        *((name, ctypes.c_int32) for name in ("first_core", "last_core", "met")),
    ]


def increment(folder, way):
    """A function of (variant, iterations, parties, patience_ns) that returns its Visit, with reset and value."""
    if way in LOADERS:
        native = library(folder, way)
        functions = {variant: getattr(native, f"{variant}_together") for variant in VARIANTS}
        for function in functions.values():
            function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.POINTER(Visit)]

        def call(variant, *numbers, visit):
            functions[variant](*numbers, visit)

        reset, value = native.counter_reset, native.counter_value
    else:
        module = extension(folder)
        function = module.increment_releasing if way == "C API, releasing" else module.increment_keeping

        def call(variant, *numbers, visit):
            function(variant, *numbers, visit)

        reset, value = module.reset, module.value

    def add(variant, iterations, parties, patience_ns):
        visit = Visit()
        call(variant, iterations, parties, patience_ns, visit=visit)
        return visit

    return add, reset, value


def start_all(count, work, *arguments):
    """Start `count` threads one after the other, each for `work(*arguments)`; wait for all; what they returned."""
    returned = []
    threads = [threading.Thread(target=lambda: returned.append(work(*arguments))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return returned


def behind_barrier(count, work, *arguments):
    """What threads return that wait for each other at a barrier in Python before they work."""
    barrier = threading.Barrier(count)

    def wait_and_work():
        barrier.wait()
        return work(*arguments)

    return start_all(count, wait_and_work)


def make_room(count):
    """Have as many threads once. Where there is no GIL, CPython keeps a table of its threads, which doubles when it is
    full (Python/qsbr.c:202 in 3.14.7): the 8th, 16th and 32nd thread start only when all others are detached or look
    up from their work. A thread that waits attached inside of a C call does neither, and would keep out those for whom
    it waits."""
    everyone = threading.Barrier(count)
    start_all(count, everyone.wait)


def meeting(visits):
    """Did they all meet, and how much did they overlap?

    pairs: share of all pairs of threads whose work overlapped in time. overlapped: share of the time in which anybody
    worked that at least two did. cores: how many they were seen on. preempted: how often one of them lost its core
    while it worked.
    """
    spans = [(visit.begin_ns, visit.end_ns) for visit in visits]
    pairs = [one[0] < other[1] and other[0] < one[1] for one, other in itertools.combinations(spans, 2)]
    changes = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    working = alone = several = 0
    for (moment, change), (following, _) in itertools.pairwise(changes):
        working += change
        alone += (following - moment) * (working == 1)
        several += (following - moment) * (working > 1)
    seen = {core for visit in visits for core in (visit.first_core, visit.last_core)}
    return {
        "met": sum(visit.met for visit in visits) / len(visits),
        "pairs": sum(pairs) / len(pairs),
        "overlapped": several / (alone + several),
        "cores": None if -1 in seen else len(seen),
        "preempted": sum(visit.preempted for visit in visits),
        "work_us": statistics.median(end - begin for begin, end in spans) / 1000,
    }
