"""Experiments of the chapter on races: all of them may lose, lie or crash, so each runs in a process of its own.

Standard library only. `python experiments.py NAME ARGUMENT...` prints one JSON object.
"""

import ctypes
import json
import os
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import arms  # noqa: E402
from threads import rate, together  # noqa: E402


def start_all(count, work):
    """Start `count` threads one after the other, as the talk does, and wait for all."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# [original_counter]
def original_counter(folder, loader, threads, iterations):
    """A15 as the talk ran it: what is left of threads x iterations increments, by variant."""
    library = arms.library(folder, loader)
    library.counter_value.restype = ctypes.c_long
    values = {}
    for variant in arms.VARIANTS:
        increment = getattr(library, f"{variant}_increment")
        library.counter_reset()
        start_all(int(threads), lambda: increment(int(iterations)))  # noqa: B023
        values[variant] = library.counter_value()
    return values


# [/original_counter]


def increment(folder, way):
    """A function of (variant, iterations), with reset and value."""
    if way.startswith("ctypes"):
        library = arms.library(folder, way)
        library.counter_value.restype = ctypes.c_long
        functions = {variant: getattr(library, f"{variant}_increment") for variant in arms.VARIANTS}
        return (lambda variant, n: functions[variant](n)), library.counter_reset, library.counter_value
    module = arms.load(folder)
    function = module.increment_releasing if way == "C API, releasing" else module.increment_keeping
    return function, module.reset, module.value


# [crossed_counter]
def crossed_counter(folder, way, *pairs):
    """A15 crossed: all threads set off together. Share of updates lost, by number of threads and variant.

    pairs: number of threads, increments of each, number of threads, ...
    """
    add, reset, value = increment(folder, way)
    meet = arms.library(folder).meet  # through CDLL: it must not keep the GIL
    lost = {}
    for count, iterations in zip(map(int, pairs[::2]), map(int, pairs[1::2])):

        def work():
            meet(count)  # noqa: B023
            add(variant, iterations)  # noqa: B023

        for variant in arms.VARIANTS:
            reset()
            start_all(count, work)
            lost[f"{count} {variant}"] = 1 - value() / (count * iterations)
    return lost


# [/crossed_counter]


def start_and_work(folder, iterations):
    """Nanoseconds that it takes to start a thread, and that one call with `iterations` increments takes: medians."""
    increment = arms.library(folder).unsafe_increment
    starts, calls = [], []
    for _ in range(50):
        thread = threading.Thread(target=lambda: None)
        before = time.perf_counter_ns()
        thread.start()
        between = time.perf_counter_ns()
        increment(int(iterations))
        after = time.perf_counter_ns()
        thread.join()
        starts.append(between - before)
        calls.append(after - between)
    return {"start": statistics.median(starts), "call": statistics.median(calls)}


def rust_counter(folder, loader, threads, iterations):
    """The counters in Rust: share of updates lost by name; an empty object if they were not built."""
    library = arms.rust(folder, loader)
    lost = {}
    for name, symbol in arms.RUST.items() if library else ():
        function = getattr(library, symbol)
        function.restype = ctypes.c_int64
        meet = arms.library(folder).meet

        def work():
            meet(int(threads))  # noqa: B023
            function(int(iterations))  # noqa: B023

        start_all(int(threads), work)
        lost[name] = 1 - function(0) / (int(threads) * int(iterations))
    return lost


# Case: (function, dollars, sleep in us between check and act). The talk prints the dollars, not the sleep.
# Fifty withdrawals of the fast bank, as the talk counts them, are $1000 in steps of $20.
BANKS = {
    "unsafe, sleep": ("unsafe_withdraw", 50, 100),
    "safe, sleep": ("safe_withdraw", 50, 100),
    "unsafe, fast": ("unsafe_withdraw", 20, 0),
    "safe, fast": ("safe_withdraw", 20, 0),
    "atomic load and store, sleep": ("atomic_withdraw", 50, 100),
    "compare and exchange, sleep": ("exchange_withdraw", 50, 100),
}


# [bank]
def bank(folder, loader, threads, attempts):
    """A16, A17 as the talk ran them: withdrawals and what is left of $1000, by case."""
    library = arms.library(folder, loader)
    library.bank_balance.restype = ctypes.c_long
    outcomes = {}
    for case, (function, dollars, sleep_us) in BANKS.items():
        withdraw = getattr(library, function)
        withdraw.argtypes = [ctypes.c_long, ctypes.c_long]
        paid = []  # append is atomic on every build

        def customer():
            for _ in range(int(attempts)):
                if withdraw(dollars, sleep_us):  # noqa: B023
                    paid.append(dollars)  # noqa: B023

        library.bank_open(ctypes.c_long(1000))
        start_all(int(threads), customer)
        outcomes[case] = {"withdrawals": len(paid), "withdrawn": sum(paid), "balance": library.bank_balance()}
    return outcomes


# [/bank]


def double_payments(folder, rounds, spread_ns, *windows_ns):
    """Share of rounds in which both of two threads were paid, by width of the window in ns."""
    library = arms.library(folder)
    library.double_payments.restype = ctypes.c_long
    library.double_payments.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_uint]
    shares = {}
    for window in map(int, windows_ns):
        paid = []
        seeds = iter(os.urandom(2))
        start_all(
            2,
            lambda: paid.append(library.double_payments(int(rounds), window, int(spread_ns), next(seeds) + 1)),  # noqa: B023
        )
        shares[window] = sum(paid) / int(rounds) - 1
    return shares


# [python_race]
total = 0


def one():
    return 1


def add_constant(loops):
    global total
    for _ in range(loops):
        total += 1


def add_call(loops):
    global total
    for _ in range(loops):
        total += one()


# [/python_race]
STATEMENTS = {"total += 1": add_constant, "total += one()": add_call}


def python_race(threads, loops, *intervals):
    """C7: share of updates lost in Python code, by statement and switch interval in seconds."""
    global total
    lost = {}
    for interval in intervals:
        sys.setswitchinterval(float(interval))
        for statement, function in STATEMENTS.items():
            total = 0
            together([lambda: function(int(loops)) for _ in range(int(threads))])  # noqa: B023
            lost[f"{interval} {statement}"] = 1 - total / (int(threads) * int(loops))
    return lost


# [kinds]
def lazy(library, function, slots):
    """Share of slots of which more than one table was made."""
    make = getattr(library, function)
    make.restype = ctypes.c_void_p
    meet = arms.library(library.folder).meet
    before = library.tables_built()

    def work():
        for slot in slots:
            meet(2)
            make(slot)

    start_all(2, work)
    return (library.tables_built() - before) / len(slots) - 1


def wrong_share(loops, body):
    """Share of loops, in two threads, in which `body(thread, loop)` says that something is wrong."""
    wrong = [0, 0]

    def work(thread):
        wrong[thread] = sum(body(thread, loop) for loop in range(loops))

    together([lambda t=t: work(t) for t in range(2)])
    return sum(wrong) / (2 * loops)


def output_buffer(library, function, loops):
    """Share of texts that are not of the number that was asked for."""
    describe = getattr(library, function)
    describe.restype = ctypes.c_char_p

    def body(thread, loop):
        n = 10**8 * (thread + 1) + loop
        return describe(ctypes.c_long(n)) != b"%d %d %d %d" % (n, n, n, n)

    return wrong_share(loops, body)


def last_error(library, fail, why, loops):
    """Share of failures whose reason is then another one's."""

    def body(thread, loop):
        fail(thread + 1)
        return why() != thread + 1

    return wrong_share(loops, body)


# [/kinds]


def kinds(folder, loader, slots, loops):
    """The share of wrong answers of each kind, unsafe and safe."""
    library = arms.library(folder, loader, use_errno=True)
    library.folder = folder
    slots, loops = int(slots), int(loops)
    return {
        "lazy table, unsafe": lazy(library, "lazy_unsafe", range(slots)),
        "lazy table, mutex": lazy(library, "lazy_locked", range(slots, 2 * slots)),
        "output buffer, shared": output_buffer(library, "describe_shared", loops),
        "output buffer, thread-local": output_buffer(library, "describe_thread_local", loops),
        "last error, global": last_error(library, library.fail_global, library.why_global, loops),
        "last error, thread-local": last_error(library, library.fail_thread_local, library.why_thread_local, loops),
        "last error, errno": last_error(library, library.fail_errno, ctypes.get_errno, loops),
    }


# [borrowed]
def borrowed(folder, function, loops):
    """One thread reads a list or dict in C while another one changes it. May crash; returns how often it read."""
    read = getattr(arms.load(folder), function)
    data = [0.5] if function.startswith("first") else dict.fromkeys(range(8), 0.5)
    done = threading.Event()

    def change():
        number = 0
        while not done.is_set():
            number += 1
            data[number % len(data)] = number * 0.5  # a new object: the old one is freed

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(int(loops)):
            read(data)
    finally:
        done.set()
        thread.join()
    return {"reads": int(loops)}


# [/borrowed]


def remedy_together(folder, name, milliseconds, *threads):
    """Operations per second of a remedy: one thread alone, and all together, by number of threads."""
    module = arms.load(folder)
    guarded = module.Guarded()
    return {
        count: rate(lambda number: lambda loops: module.run(name, guarded, loops), int(count), int(milliseconds))
        for count in threads
    }


def stress(folder, name, threads, loops):
    """Is a remedy exact? For counters what is there and what should be; for reads how many of them were torn."""
    module = arms.load(folder)
    guarded, threads, loops = module.Guarded(), int(threads), int(loops)
    if name.startswith("read"):
        torn = []
        together(
            [
                lambda: module.pairs(name, loops // 4, True),
                lambda: torn.append(module.pairs(name, loops, False)),
            ]
        )
        return {"value": sum(torn), "expected": 0}
    before = module.total(name, guarded)
    together([lambda: module.run(name, guarded, loops) for _ in range(threads)])
    return {"value": module.total(name, guarded) - before, "expected": threads * loops}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
