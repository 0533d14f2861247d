"""The exercises of the chapter "CDLL and PyDLL": their self-checks, from the page's own measurements."""

import ctypes
import sys
import threading
import time
from _ctypes import FUNCFLAG_PYTHONAPI as KEEPS_ATTACHED

import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.processes import chosen
from ffilab.judge.questions import OPEN, YES, above
from ffilab.judge.selfcheck import correct_then_fast
from ffilab.measure.case import Case
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import GIL
from notebooks.loaders import numbers
from notebooks.loaders.experiment import LIBRARY, LOADERS, SLEEP_MS, bring_about, call

FUNCTIONS = ("noop", "sleep_ms", "PyList_New")
WHY = {
    "wait": "The call waits for another Python thread, and that thread waits for what the call keeps.",
    "halve": "Without its types, ctypes takes the result for an int, and does not know how to pass a float.",
    "new_list": "A function of Python's C API needs an attached thread state, and its result has to be declared as an "
    "object.",
}


def check_choice(choice: dict[str, str], record: Record, shares: pd.DataFrame, ends: pd.DataFrame) -> list[str]:
    """With the GIL: correct first, then fast.

    choice: loader for `noop`, `sleep_ms` and `PyList_New`. Returns what to say, one line each.
    """
    if open_ := [name for name in FUNCTIONS if choice.get(name) not in LOADERS]:
        return [f"Still open: {', '.join(open_)}. Choose 'CDLL' or 'PyDLL' for each."]
    wrong = []
    if choice["PyList_New"] == "CDLL":
        crashes = numbers.crashes(ends, GIL, "CDLL")
        wrong.append(
            f"Not correct: PyList_New needs an attached thread state, and CDLL detaches it. Of {crashes.trials} "
            f"processes here that did this, {crashes.events} crashed."
        )
    if choice["sleep_ms"] == "PyDLL":
        kept = chosen(shares, interpreter=GIL, loader="PyDLL").value.item()
        wrong.append(
            "Not good enough: PyDLL keeps the GIL while sleep_ms sleeps. Here another thread kept "
            f"{kept:.1%} of its speed meanwhile."
        )
    return wrong or ["Correct.", speed("noop", choice["noop"], record)]


def speed(function: str, loader: str, record: Record) -> str:
    """Is this the cheaper loader for the function?"""
    difference = numbers.price(record, GIL, function).interval
    dearer = above(difference, 0)
    if dearer == OPEN:
        return f"Either loader will do for {function}: too close to call."
    if loader == ("PyDLL" if dearer == YES else "CDLL"):
        return f"Fast: {function} goes through the cheaper loader."
    return f"Not yet fast: each call of {function} costs {abs(difference.value):.0f} ns more than it needs to."


def check_program(session: Session, program: str, record: Record) -> list[str]:
    """Runs the program's `load(library)` with the GIL, one process for each task. Returns what to say, one line
    each."""
    # It is looked at and not measured: who else uses the machine meanwhile does not matter.
    found = {row["task"]: row for row in session.observe("the exercise's program", tried, program)}
    wrong = [line for task in TASKS if (line := fault(task, found[task]))]
    if wrong:
        return wrong
    loader = "PyDLL" if found["halve"]["attached"] else "CDLL"
    return ["Correct: all three tasks end as they should.", speed("halve", loader, record)]


def tried(program: str) -> list[dict]:
    """What becomes of each task with the reader's program, with the GIL: a process for each, which may hang or die."""
    rows = []
    for task in TASKS:
        outcome = Case(GIL, repaired, {"task": task}, {"program": program, "library": LIBRARY}, timeout_s=5).run()
        rows.append({"task": task, "ended": outcome.ended, **(outcome.result or {})})
    return rows


def check_sleep(session: Session, mine: str) -> list[str]:
    """Is the reader's `sleep_ms` safe to be called through PyDLL, and their library as fast as the original?

    mine: what `mine.build` returned. Safe: another thread runs meanwhile.
    """
    library = f"{mine}/libloaders.so"
    hint = "Does your sleep_ms come back, and is the thread state attached again before it does?"
    case = Case(GIL, meanwhile, {}, {"library": library, "milliseconds": SLEEP_MS}, timeout_s=4, hint=hint)
    runs = session.run("my sleep_ms", [case], session.budget.repeats, may_fail=True, events=True)
    if len(failed := runs[runs.ended != "ok"]):
        how = f"a process that called your sleep_ms ended so: {failed.ended.iloc[0]}"
        return [f"Not correct: {how}. Is the thread state attached again before it comes back?"]
    if (runs.elapsed < SLEEP_MS * 1e6).any():
        return ["Not correct: your sleep_ms comes back too early."]
    if not runs.times.any():
        how = f"at the end of its sleep another thread never ran, in any of {len(runs)} processes"
        return [f"Not correct: your sleep_ms keeps the thread state: {how}."]
    ours, theirs = call("PyDLL", "noop"), call("PyDLL", "noop", library, more=", mine")
    record = session.time("my library", [ours, theirs], [GIL])
    draw.arms(record)
    return correct_then_fast([], statistics.compare(record, (GIL, theirs.name), (GIL, ours.name)))


def meanwhile(library, milliseconds):
    """How often another thread of Python ran in the last fifth of the time that a C call was to sleep, and how long
    the call took (ns)."""
    # Nobody takes the GIL from the caller: who runs meanwhile was let in by the call, however busy the machine is.
    sys.setswitchinterval(60)
    sleep_ms = ctypes.PyDLL(library).sleep_ms
    times, asleep, over, started = 0, False, False, 0

    def run():
        nonlocal times
        while not over:
            times += asleep and time.perf_counter_ns() > started + 0.8e6 * milliseconds
            time.sleep(0.001)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.01)
    started, asleep = time.perf_counter_ns(), True
    sleep_ms(milliseconds)
    elapsed, asleep = time.perf_counter_ns() - started, False
    over = True
    thread.join()
    return {"times": times, "elapsed": elapsed}


def fault(task: str, row: dict) -> str:
    """What is wrong with one task, and why; empty if nothing is."""
    if row["ended"] == "timeout":
        return f"{task}: it did not end within five seconds. {WHY[task]}"
    if row["ended"] != "ok":
        return f"{task}: its process ended so: {row['ended']}. {WHY[task]}"
    if not row["same"]:
        return f"{task}: this is not the C function that the task names. Load it; do not replace it."
    return "" if row["right"] else f"{task}: {row['said']}. {WHY[task]}"


# [repaired]
C_NAMES = {"wait": "wait_for_announcement", "halve": "halve", "new_list": "PyList_New"}


def repaired(task, program, library):
    """One task of the exercise, through the function that the reader's `load(library)` returns for it."""
    names = {}
    try:
        exec(program, names)
        found = names["load"](library)[task]
        ours = getattr(ctypes.PyDLL(None if task == "new_list" else library), C_NAMES[task])
        if address(found) != address(ours):
            return {"same": False, "attached": False, "right": False, "said": ""}
        row = {"same": True, "attached": bool(found._flags_ & KEEPS_ATTACHED)}
        right, correct_then_fast = TASKS[task](found, library)
    except Exception as error:
        return {"same": True, "attached": False, "right": False, "said": f"{type(error).__name__}: {error}"}
    return {**row, "right": right, "said": correct_then_fast}


def address(function):
    """Where a function of ctypes begins; None for anything else."""
    return ctypes.cast(function, ctypes.c_void_p).value if isinstance(function, ctypes._CFuncPtr) else None


def wait(found, library):
    """Half a second is time enough for the other Python thread."""
    thread = threading.Thread(target=bring_about, args=(ctypes.CDLL(library),))
    thread.start()
    value = found(500)
    thread.join()
    return value == 1, f"wait(500) returned {value!r}"


def halve(found, library):
    value = found(5.0)
    return value == 2.5, f"halve(5.0) returned {value!r}"


def new_list(found, library):
    value = found(0)
    return value == [], f"new_list(0) returned {value!r}"


TASKS = {"wait": wait, "halve": halve, "new_list": new_list}
# [/repaired]
