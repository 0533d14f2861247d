"""The exercises of the chapter "Where threads run": what pinning does here, a function that hands out cores, a quiet
core."""

import os
import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence

import pandas as pd

from ffilab.judge.estimates import Interval, known
from ffilab.judge.questions import NO, OPEN, YES, above
from ffilab.judge.selfcheck import answered, correct_then_fast
from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.measure.source import source_of
from ffilab.page.draw import text
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.pinning import numbers
from notebooks.pinning.experiment import APART, FREE, LIBRARY, NATIVE, ONE_CORE, PYTHON, chunk_of, drawn

# By question: interpreter and work of two threads, on one core and with a core each.
ASKED = {
    "a native call": (GIL, NATIVE),
    "Python with the GIL": (GIL, PYTHON),
    "Python without the GIL": (FREE_THREADED, PYTHON),
}
ANSWERS = ("faster", "slower", "cannot be told")


def over_apart(question: str, speeds: pd.DataFrame) -> Interval | None:
    """Throughput on one core over that with a core each; None if it is not known."""
    label, work = ASKED[question]
    found = numbers.over(speeds, "per_s", ONE_CORE, APART, interpreter=label, work=work, threads=2)
    return found.interval if found is not None and known(found.interval) else None


def told(question: str, speeds: pd.DataFrame) -> str:
    """What this run tells to a question: one of ANSWERS."""
    one = over_apart(question, speeds)
    return "cannot be told" if one is None else dict(zip((YES, NO, OPEN), ANSWERS))[above(one, 1)]


def check_sides(said: dict[str, str], speeds: pd.DataFrame) -> list[str]:
    """Are two threads faster or slower on one core than with a core each? Against this run, one line for each
    question."""
    asked = {}
    for question in ASKED:
        ratio = over_apart(question, speeds)
        why = "this run has no interval for it" if ratio is None else f"throughput over a core each {text(ratio)}"
        asked[question] = told(question, speeds), f"{why}."
    return answered(said, asked, ANSWERS)


def check_places(place: Callable[[int, set[int]], set[int] | None]) -> list[str]:
    """Does `place(number, allowed)` hand out cores as it should? Returns what to say, one line each; nothing is
    pinned."""
    for allowed in ({0, 1}, {2, 5, 7}, {3}, {8, 9, 10, 11}):
        given = [place(number, set(allowed)) for number in range(2 * len(allowed))]
        for number, cores in enumerate(given):
            if cores is not None and (not cores or not set(cores) <= allowed):
                return [f"Not correct: of {sorted(allowed)}, thread {number} is put on {sorted(cores)}."]
        first = [frozenset(cores or ()) for cores in given[: len(allowed)]]
        if len(allowed) > 1 and (len(set(first)) < len(first) or any(len(cores) != 1 for cores in first)):
            return [f"Not a core each: of {sorted(allowed)}, the first threads get {[sorted(one) for one in first]}."]
        if any(cores is not None for cores in given[len(allowed) :]):
            return [f"With more threads than {len(allowed)} cores, the further ones stay free: return None for them."]
    return ["Correct: a core each while there are cores, none that is not allowed, and the rest left to the system."]


MINE = "mine"
QUIET_S, ROUNDS = 0.1, 5


def check_quiet(session: Session, run: Callable) -> list[str]:
    """Does the reader's `run` keep the core that measures to itself, and lose no work? Returns what to say, one line
    each."""
    fixed = {"program": source_of(run=run), "library": LIBRARY, "seconds": QUIET_S, "rounds": ROUNDS, "seed": "{seed}"}
    # Native code, so that no thread waits for another one's GIL.
    case = Case(GIL, quiet, fixed=fixed, hint="Does your run wait for each thread that it starts, and stop it?")
    runs = session.run("a quiet core", [case], session.budget.repeats, may_fail=True)
    if ended := [row for row in runs.to_dict("records") if row["ended"] != "ok"]:
        return [f"Not correct: a process of it ended so: {ended[0]['ended']}."]
    mine = runs[runs.placement == MINE]
    wrong = [line for row in mine.to_dict("records") if (line := fault(**row))]
    if wrong:
        return correct_then_fast(wrong[:1], None)
    gain = numbers.over(runs, "measures_per_s", MINE, FREE).interval
    return [
        *correct_then_fast(
            [], numbers.over(runs, "per_s", FREE, MINE), pair=("a pass of yours", "one of nothing pinned")
        ),
        f"The thread that measures does {text(gain)} times what it does where nothing is pinned.",
    ]


def fault(answered: bool, raised: str, computes: list, allowed: list, measures: Sequence = (), **_) -> str:
    """What is wrong with where the threads may run; empty if nothing is."""
    if len(allowed) < 2:
        return "this process may use one core only, so that none can be kept quiet."
    if raised:
        return f"it raised {raised}."
    if not answered or len(computes) != 2:
        return "run has to start two threads, then measure, and to return what measure returned."
    if len(measures) != 1:
        return f"the thread that measures may run on {measures}: give it one core."
    others = sorted(set(allowed) - set(measures))
    if wrong := [places for places in computes if places != others]:
        return f"a thread that computes may run on {wrong[0]}, where all but the core that measures are {others}."
    return ""


# [beside]
def quiet(program, library, seconds, rounds, seed):
    """The reader's program, and the same with nothing pinned, in turns: where its threads may run, and what they get
    done."""
    names = {}
    exec(program, names)
    cores, chunk = drawn(seed), chunk_of(NATIVE, library)
    turns = {MINE: [], FREE: []}
    for placement in random.Random(seed).sample([MINE, FREE] * rounds, 2 * rounds):
        os.sched_setaffinity(0, cores)  # what the turn before has pinned
        run = names["run"] if placement == MINE else nothing_pinned
        turns[placement].append(three_threads(run, chunk, cores, seconds))
    speeds = [name for name in ("per_s", "measures_per_s") if name in turns[MINE][0]]
    return [
        {"placement": placement, **found[0]}
        | {name: statistics.median(turn[name] for turn in found) for name in speeds}
        for placement, found in turns.items()
    ]


def nothing_pinned(start, measure, stay_on, cores):
    start()
    start()
    return measure()


def three_threads(run, chunk, cores, seconds):
    """One turn of `run`: the cores of its threads, and pieces of work per second while the first one measures."""
    places, threads, running = [], [], True

    def compute(done):
        while running:
            chunk()
            done[0] += 1
        places.append(sorted(os.sched_getaffinity(0)))

    def start():
        done = [0]
        threads.append((threading.Thread(target=compute, args=(done,)), done))
        threads[-1][0].start()

    def measure():
        before = sum(done[0] for _, done in threads)
        chunks, began = 0, time.perf_counter()
        while (took := time.perf_counter() - began) < seconds:
            chunk()
            chunks += 1
        beside = sum(done[0] for _, done in threads) - before
        return {
            "measures": sorted(os.sched_getaffinity(0)),
            "measures_per_s": chunks / took,
            "per_s": (chunks + beside) / took,
        }

    found, raised = None, ""
    try:
        found = run(start, measure, lambda chosen: os.sched_setaffinity(0, chosen), cores)
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
    finally:
        running = False
        for thread, _ in threads:
            thread.join()
    answered = isinstance(found, dict) and "per_s" in found
    places = {"computes": places, "allowed": sorted(cores)}
    return {**(found if answered else {}), **places, "answered": answered, "raised": raised}


# [/beside]
