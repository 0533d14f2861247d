"""Experiments of the chapter on races: all of them may lose, lie or crash, so each runs in a process of its own.

Standard library only: `ffilab/measure/worker.py case` calls one of these functions and prints what it returns.
"""

import ctypes
import itertools
import os
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import arms  # noqa: E402
from threads import rate, together  # noqa: E402


# [start_all]
def start_all(count, work):
    """Start `count` threads one after the other, and wait for all."""
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# [/start_all]


# [as_run]
# Of the talk's program (demo_race_condition.py): each counter's function, and each bank's, with the dollars of a withdrawal, the
# attempts of a thread, and what else the function takes.
COUNTERS = {
    "unsafe counter": "unsafe_increment",
    "mutex counter": "mutex_once_increment",
    "atomic counter": "atomic_increment",
}
ACCOUNTS = {
    "fast bank": ("unsafe_withdraw_window", 20, 5, [100]),
    "bank": ("reread_withdraw", 50, 3, []),
    "safe bank": ("exchange_withdraw", 50, 3, [0]),
}


def behind_barrier(count, work):
    """Start `count` threads that wait for each other at a barrier in Python, and then work."""
    barrier = threading.Barrier(count)
    start_all(count, lambda: (barrier.wait(), work()))


def as_run(folder, rounds):
    """A15 to A17 as the talk ran them: so many rounds of the fast bank, then of the unsafe counter, as its program does with
    --json; then every other counter and bank once, as it does without."""
    library = arms.library(folder, "ctypes PyDLL")
    rows = []
    once = ["mutex counter", "atomic counter", "bank", "safe bank"]
    for what in ["fast bank"] * rounds + ["unsafe counter"] * rounds + once:
        if what in COUNTERS:
            rows.append({"what": what, "lost": counter_as_run(library, COUNTERS[what], 50, 10_000)})
        else:
            rows.append({"what": what, **bank_as_run(library, *ACCOUNTS[what], threads=100)})
    return rows


def counter_as_run(library, function, threads, increments):
    """Share of the updates that were lost."""
    increment, library.counter_value.restype = getattr(library, function), ctypes.c_long
    increment.argtypes, increment.restype = [ctypes.c_int], ctypes.c_long
    library.counter_reset()
    behind_barrier(threads, lambda: increment(increments))
    return 1 - library.counter_value() / (threads * increments)


def bank_as_run(library, function, dollars, attempts, further, threads):
    """Withdrawals that were paid, and the dollars that were made from nothing."""
    withdraw, library.bank_balance.restype = getattr(library, function), ctypes.c_long
    withdraw.argtypes = [ctypes.c_long] * (1 + len(further))
    paid = []

    def customer():
        for _ in range(attempts):
            if withdraw(dollars, *further):
                paid.append(dollars)

    library.bank_open(ctypes.c_long(1000))
    behind_barrier(threads, customer)
    return {"withdrawals": len(paid), "created": library.bank_balance() + sum(paid) - 1000}


# [/as_run]


# [crossed_counter]
# How long the first one inside waits for the others: so long, and so much more for each of them.
PATIENCE_NS, FOR_EACH_NS = 5_000_000, 2_000_000


def crossed_counter(folder, way, teams):
    """A15 crossed: all threads meet inside of the call. Share of updates lost, and how they met, by team and variant.

    teams: each a number of threads, the iterations of each of them, the variants to run, and for how long (ns) the first one
    inside waits, if not for as long as usual.
    """
    add, reset, value = arms.increment(folder, way)
    make_room(max(team["threads"] for team in teams))
    rows = []
    for team in teams:
        threads, iterations = team["threads"], team["iterations"]
        patience_ns = team.get("patience_ns", PATIENCE_NS + threads * FOR_EACH_NS)
        for variant in team["variants"]:
            visits = []
            reset()
            start_all(threads, lambda: visits.append(add(variant, iterations, threads, patience_ns)))  # noqa: B023
            lost = 1 - value() / (threads * iterations)
            rows.append(
                {"threads": threads, "iterations": iterations, "variant": variant, "lost": lost, **meeting(visits)}
            )
    return rows


# [/crossed_counter]


# [make_room]
def make_room(count):
    """Have as many threads once. Where there is no GIL, CPython keeps a table of its threads, which doubles when it is full
    (Python/qsbr.c:202 in 3.14.7): the 8th, 16th and 32nd thread start only when all others are detached or look up from
    their work. A thread that waits attached inside of a C call does neither, and would keep out those for whom it waits."""
    everyone = threading.Barrier(count)
    start_all(count, everyone.wait)


# [/make_room]


# [meeting]
def meeting(visits):
    """Did they all meet, and how much did they overlap?

    pairs: share of all pairs of threads whose work overlapped in time. overlapped: share of the time in which anybody worked
    that at least two did. cores: how many they were seen on. preempted: how often one of them lost its core while it worked.
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


# [/meeting]


# [start_and_work]
def start_and_work(folder, iterations):
    """Nanoseconds that it takes to start a thread, that one call with `iterations` increments takes, and that a thread which
    does nothing takes from its start to its end: medians."""
    increment = arms.library(folder).unsafe_increment
    taken = {"start": [], "call": [], "life": []}
    for _ in range(50):
        thread = threading.Thread(target=lambda: None)
        begun = time.perf_counter_ns()
        thread.start()
        taken["start"].append(time.perf_counter_ns() - begun)
        thread.join()
        taken["life"].append(time.perf_counter_ns() - begun)
        begun = time.perf_counter_ns()
        increment(iterations)
        taken["call"].append(time.perf_counter_ns() - begun)
    return {what: statistics.median(times) for what, times in taken.items()}


# [/start_and_work]


# [rust_counter]
def rust_counter(folder, loader, threads, iterations):
    """The counters in Rust: share of updates lost, by variant."""
    library, meet = arms.rust(folder, loader), arms.library(folder).meet
    rows = []
    for variant, symbol in arms.RUST.items():
        function = getattr(library, symbol)
        function.restype = ctypes.c_int64

        def work():
            meet(threads)
            function(iterations)  # noqa: B023

        start_all(threads, work)
        rows.append({"variant": variant, "lost": 1 - function(0) / (threads * iterations)})
    return rows


# [/rust_counter]

# [bank]
# Case: the function. Each thread withdraws $50, with 100 us between check and act.
BANKS = {
    "unsafe": "unsafe_withdraw",
    "safe": "safe_withdraw",
    "atomic load and store": "atomic_withdraw",
    "compare and exchange": "exchange_withdraw",
}


def bank(folder, loader, threads, attempts, cases=tuple(BANKS)):
    """A16 corrected: withdrawals and what is left of $1000, by case."""
    library = arms.library(folder, loader)
    library.bank_balance.restype = ctypes.c_long
    rows = []
    for case in cases:
        withdraw = getattr(library, BANKS[case])
        withdraw.argtypes = [ctypes.c_long, ctypes.c_long]
        paid = []  # append is atomic on every build

        def customer():
            for _ in range(attempts):
                if withdraw(50, 100):  # noqa: B023
                    paid.append(50)  # noqa: B023

        library.bank_open(ctypes.c_long(1000))
        start_all(threads, customer)
        outcome = {"withdrawals": len(paid), "withdrawn": sum(paid), "balance": library.bank_balance()}
        rows.append({"case": case, **outcome})
    return rows


# [/bank]


# [double_payments]
def double_payments(folder, rounds, spread_ns, windows_ns):
    """Share of rounds in which both of two threads were paid, by width of the window in ns."""
    library = arms.library(folder)
    library.double_payments.restype = ctypes.c_long
    library.double_payments.argtypes = [ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_uint]
    rows = []
    for window in windows_ns:
        paid = []
        seeds = list(os.urandom(2))
        start_all(
            2,
            lambda: paid.append(library.double_payments(rounds, window, spread_ns, seeds.pop() + 1)),  # noqa: B023
        )
        rows.append({"window_ns": window, "share": sum(paid) / rounds - 1})
    return rows


# [/double_payments]

# [statements]
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


# [/statements]


# [python_race]
STATEMENTS = {"total += 1": add_constant, "total += one()": add_call}


def python_race(threads, loops, intervals, statements=tuple(STATEMENTS)):
    """C7: share of updates lost in Python code, by switch interval and statement.

    intervals: seconds, by name.
    """
    global total
    rows = []
    for interval, seconds in intervals.items():
        sys.setswitchinterval(seconds)
        for statement in statements:
            total, function = 0, STATEMENTS[statement]
            together([lambda: function(loops) for _ in range(threads)])  # noqa: B023
            lost = 1 - total / (threads * loops)
            rows.append({"interval": interval, "statement": statement, "loops": loops, "lost": lost})
    return rows


# [/python_race]


# [trial]
def trial(folder, counters, account, python):
    """One trial of each: arguments of crossed_counter (several), of bank, and of python_race (several, or none)."""
    return [
        *({"way": one["way"], **row} for one in counters for row in crossed_counter(folder, **one)),
        *bank(folder, **account),
        # Last, as the switch interval stays.
        *(row for one in python for row in python_race(**one)),
    ]


# [/trial]


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


def kinds(folder, loader, slots, loops):
    """The share of wrong answers of each kind, unsafe and safe."""
    library = arms.library(folder, loader, use_errno=True)
    library.folder = folder
    wrong = {
        "lazy table, unsafe": lazy(library, "lazy_unsafe", range(slots)),
        "lazy table, mutex": lazy(library, "lazy_locked", range(slots, 2 * slots)),
        "output buffer, shared": output_buffer(library, "describe_shared", loops),
        "output buffer, thread-local": output_buffer(library, "describe_thread_local", loops),
        "last error, global": last_error(library, library.fail_global, library.why_global, loops),
        "last error, thread-local": last_error(library, library.fail_thread_local, library.why_thread_local, loops),
        "last error, errno": last_error(library, library.fail_errno, ctypes.get_errno, loops),
    }
    return [{"kind": kind, "wrong": share} for kind, share in wrong.items()]


# [/kinds]


# [borrowed]
def borrowed(folder, function, reads):
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
        for _ in range(reads):
            read(data)
    finally:
        done.set()
        thread.join()
    return {"reads": reads}


# [/borrowed]


# [remedy_together]
def remedy_together(folder, remedy, milliseconds, threads):
    """Operations per second of a remedy: one thread alone, and all together, by number of threads."""
    module = arms.load(folder)
    guarded = module.Guarded()

    def body(number):
        return lambda loops: module.run(remedy, guarded, loops)

    return [{"threads": count, **rate(body, count, milliseconds)} for count in threads]


# [/remedy_together]


def stress(folder, remedy, threads, loops):
    """Is a remedy exact? For counters what is there and what should be; for reads how many of them were torn."""
    module = arms.load(folder)
    guarded = module.Guarded()
    if remedy.startswith("read"):
        torn = []
        together(
            [
                lambda: module.pairs(remedy, loops // 4, True),
                lambda: torn.append(module.pairs(remedy, loops, False)),
            ]
        )
        return {"value": sum(torn), "expected": 0}
    before = module.total(remedy, guarded)
    together([lambda: module.run(remedy, guarded, loops) for _ in range(threads)])
    return {"value": module.total(remedy, guarded) - before, "expected": threads * loops}
