"""The exercises of the chapter "Critical sections": a lock to choose, and a counter to repair. Their self-checks."""

import pandas as pd

from ffilab.judge.questions import YES, larger
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.run.errors import UserError
from notebooks.critical_sections import experiment, results
from notebooks.critical_sections.experiment import ONE, PIECES

# What the check of each exercise prints when it is solved.
SOLVED = {
    "cheapest-lock": r"^Cheap: |: too few runs to say what is cheapest\.\n\Z",
    "repair-counter": r"^Correct after eight more: ",
}

COUNTERS = [name for name, increments in PIECES.items() if increments]
SAFE = [name for name in COUNTERS if name != "no lock"]
# What may be chosen: each increment stands alone, and whoever waits waits for one increment.
CHOICES = (
    "no lock",
    "atomic increment",
    "PyMutex",
    "pthread mutex",
    "critical section",
    "critical section, two objects",
)
# Counting pieces that do something else, and what.
OTHER_TASKS = {
    "100 increments under one PyMutex": "it counts a hundred under one lock, and nobody can get in between",
    "100 atomic increments": "it counts a hundred for each call",
    "one atomic addition of 100": "it adds a hundred at once",
    "critical section, recursive entry": "its thread holds the object from the first increment to the last",
    "critical section, inlined": "its header is the interpreter's own, and an extension must not include it",
}


def check_lock(lock: str, session: Session, runs: pd.DataFrame) -> list[str]:
    """Without the GIL: correct first, then cheap under two threads. Returns what to say, one line each."""
    choose = f"Choose one of: {'; '.join(CHOICES)}."
    if lock in OTHER_TASKS:
        return [f"Not this task: {OTHER_TASKS[lock]}. Here each increment stands alone.", choose]
    if lock not in CHOICES:
        return [f"Still open: there is no piece {lock!r} to choose.", choose]
    try:
        found = experiment.stress(session, lock)
    except UserError as error:
        return [f"Not run: {error}"]
    if found["value"] != found["expected"]:
        lost = found["expected"] - found["value"]
        return [
            f"Not correct: {lost:,} of {found['expected']:,} increments were lost. Two threads read the same number.",
            choose,
        ]
    if lock == "no lock":
        return ["Nothing was lost this time. That proves nothing: run it again, and look at the code."]
    prices = {name: results.of_each(runs, name=name, shared=ONE, threads=2) for name in CHOICES if name != "no lock"}
    lines = [f"Correct: all {found['expected']:,} increments are there."]
    mine, best = prices[lock], min(prices, key=lambda name: prices[name].value)
    price = f"{draw.text(mine, 'ns')} an increment for each of two threads on one number"
    if not mine.is_known or not prices[best].is_known:
        return [*lines, f"{price}: too few runs to say what is cheapest."]
    if larger(mine, prices[best]) != YES:
        return [*lines, f"Cheap: {price}; nothing on the list is cheaper beyond doubt."]
    return [*lines, f"Not the cheapest: {price}; {draw.text(prices[best], 'ns')} can be had for the same task."]


def check_counter(source: str, session: Session) -> list[str]:
    """Does the reader's class count right under eight threads, in a process of its own? Returns what to say."""
    try:
        found = experiment.counter(session, source)
    except UserError:
        return ["Not run: this page is made from records, and they hold no run of this class. Try it in JupyterLab."]
    if found["ended"] == "timeout":
        return [f"No end within {experiment.COUNTER_SECONDS} s. Does a thread wait for a lock that it holds itself?"]
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
        lines.append(
            "They get in each other's way, or the machine was busy. What do two threads still write to together?"
        )
    return lines
