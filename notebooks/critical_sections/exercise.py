"""The exercises of the chapter "Critical sections": a counter in C, and one in Python. Their self-checks."""

import time
import timeit

import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.selfcheck import correct_then_fast
from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED
from native.threads import rate, together
from notebooks.critical_sections.experiment import CONTENTION_MS, extension, piece

STRESS_THREADS, STRESS_LOOPS, LONG_LOOP = 8, 2_000_000, 10_000_000
# What takes next to no time may be over before another thread has begun: it is tried for so long.
STRESS_S = 1
COUNTS, COUNTER_SECONDS = 100_000, 20
# What may count one at a time, and be called by any extension.
SAFE = ("atomic increment", "PyMutex", "pthread mutex", "critical section", "critical section, two objects")


def stress(name, folder, threads, loops):
    """Many threads run one piece on one object, again and again for STRESS_S, or until it goes wrong: what is there at
    the end, and what should be."""
    locks = extension(folder)
    increments = next(n for piece, n, _ in locks.pieces() if piece == name)
    expected, until = increments * threads * loops, time.monotonic() + STRESS_S
    while True:
        cell, other = locks.Cell(), locks.Cell()
        together([lambda its=(cell, other): locks.run(name, *its, loops) for _ in range(threads)])
        if cell.value != expected or time.monotonic() > until:
            return {"value": cell.value, "expected": expected}


def in_between(name, folder, loops):
    """A thread runs a piece in one long loop, and another one again and again for one step: how many of these began and
    ended while the loop was under way? None does where the whole loop holds a lock, or is one step itself. A few tries:
    the other thread may come late."""
    locks = extension(folder)

    def met():
        cell, other = locks.Cell(), locks.Cell()
        ended, found = [], []

        def one_long_loop():
            locks.run(name, cell, other, loops)
            ended.append(True)

        def single_steps():
            own = 0
            while not ended:
                before = cell.value - own
                locks.run(name, cell, other, 1)
                own += 1
                found.append(0 < before <= cell.value - own < loops)

        together([one_long_loop, single_steps])
        return sum(found)

    return {"in_between": next((steps for steps in (met() for _ in range(5)) if steps), 0)}


def tried_in_c(name, folder, threads, loops, long):
    """Is it exact, and do others get in between?"""
    return stress(name, folder, threads, loops) | in_between(name, folder, long)


def fault(found: pd.DataFrame) -> str:
    """What is wrong with the counter in C that was tried; empty if nothing is."""
    if len(failed := found[found.ended != "ok"]):
        return f"a process that ran your function did not come back ({failed.ended.iloc[0]})."
    expected = int(found.expected.iloc[0])
    off = found.value - found.expected
    worst = int(off[off.abs().idxmax()])
    if worst < 0:
        return f"{-worst:,} of {expected:,} increments were lost: two threads read the same number."
    if worst > 0:
        return f"there are {worst:,} more than the {expected:,} increments. Something is counted twice."
    if not found.in_between.any():
        return "no other thread ever counted in the middle of your loop: each increment has to stand alone."
    return ""


def check_counter_in_c(session: Session, built: str) -> list[str]:
    """Without the GIL: is the reader's `no_lock` exact, can others get in between, and is it no slower than the
    cheapest safe piece?
    Returns what to say.

    built: what `mine.build` returned.
    """
    fixed = {"folder": built, "threads": STRESS_THREADS, "loops": STRESS_LOOPS, "long": LONG_LOOP}
    hint = "Is every lock that your function takes released again, and does its loop end?"
    case = Case(FREE_THREADED, tried_in_c, factors={"name": "no lock"}, fixed=fixed, hint=hint)
    if wrong := fault(session.run("my counter", [case], session.budget.repeats, may_fail=True)):
        return [f"Not correct: {wrong}"]
    # Two modules of one name need a process each.
    ours = piece("no lock", "my counter", folder=built, beside="safe", group="mine")
    theirs = [piece(name, beside="safe") for name in SAFE]
    record = session.time("my counter, alone", [ours, *theirs], [FREE_THREADED])
    draw.arms(record)
    cells = [(FREE_THREADED, arm.name) for arm in theirs]
    cheapest = min(cells, key=lambda cell: statistics.per_call(record, cell).value)
    times = statistics.ratio_over_units(record, (FREE_THREADED, ours.name), cheapest)
    return correct_then_fast([], times, pair=(ours.name, cheapest[1]))


def check_counter(source: str, session: Session) -> list[str]:
    """Does the reader's class count right under eight threads, in a process of its own? Returns what to say."""
    try:
        found = session.observe("exercise: a counter for many threads", tried, source)
    except UserError:
        return ["Not run: this page is made from records, and they hold no run of this class. Try it in JupyterLab."]
    if found["ended"] == "timeout":
        return [f"No end within {COUNTER_SECONDS} s. Does a thread wait for a lock that it holds itself?"]
    if found["result"] is None:
        last = found["error"].strip().splitlines()[-1:] or [found["ended"]]
        return [f"It stopped with an error: {last[0]}", "The class is called Counter, with adder() and total()."]
    result = found["result"]
    lines = []
    for when, total, expected in zip(("after eight threads", "after eight more"), result["totals"], result["expected"]):
        if total == expected:
            lines.append(f"Correct {when}: {total:,}.")
        elif isinstance(total, int) and total > expected:
            return [*lines, f"Not correct {when}: {total:,} for {expected:,} calls. Something is counted twice."]
        else:
            lost = "Two threads wrote the same place, or what a thread counted went with it"
            return [*lines, f"Not correct {when}: {total} for {expected:,} calls. {lost}."]
    lines.append(f"Two threads did {result['gain']:.2f} times the work of one, in one run.")
    if result["gain"] <= 1:
        lines.append("They get in each other's way, or the machine was busy. What do both threads still write to?")
    return lines


def tried(source: str) -> dict:
    """What becomes of the reader's class in a process of its own: `ended`, `error`, and `result` if it came to one."""
    fixed = {"threads": STRESS_THREADS, "counts": COUNTS, "milliseconds": CONTENTION_MS}
    case = Case(FREE_THREADED, counted, factors={"source": source}, fixed=fixed, timeout_s=COUNTER_SECONDS)
    outcome = case.run()
    return {"ended": outcome.ended, "error": outcome.error.strip(), "result": outcome.result}


def counted(source, threads, counts, milliseconds):
    """A reader's class Counter under many threads, which it cannot change: what it counted, and how two threads do
    against one.

    Two rounds with threads of their own: what a thread has counted must outlive it.
    """
    names = {}
    exec(source, names)
    # One to see whether its methods are there: what a thread raises would not end the process.
    trial = names["Counter"]()
    trial.adder()()
    trial.total()
    one, totals = names["Counter"](), []

    def count():
        add = one.adder()
        for _ in range(counts):
            add()

    for _ in range(2):
        together([count] * threads)
        totals.append(one.total())

    def make(number):
        return timeit.Timer("add()", "add = given.adder()", time.perf_counter_ns, {"given": one}).timeit

    found = rate(make, 2, milliseconds)
    return {
        "totals": totals,
        "expected": [counts * threads, 2 * counts * threads],
        "gain": found["together"] / found["alone"],
    }
