"""The exercise of the chapter "Sharing": threads that share a configuration. Its self-check."""

import time
import timeit

from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED
from native.threads import rate
from notebooks.sharing.experiment import MILLISECONDS

SECONDS, WANTED = 20, 1.5


def served(source, milliseconds):
    """A reader's worker: are its answers right, and what do two threads do over one?"""
    names = {}
    exec(source, names)
    work = names["worker"]()
    right = (work(100.0), work(100.5), work(101.0)) == (True, False, False)

    def make(number):
        its = {"work": names["worker"](), "given": 100 + number}
        return timeit.Timer("f(given)", "f = work", time.perf_counter_ns, its).timeit

    found = rate(make, 2, milliseconds, made_by_worker=True)
    return {"right": right, "gain": found["together"] / found["alone"]}


def tried(source: str) -> dict:
    """What becomes of the reader's code in a process of its own."""
    case = Case(FREE_THREADED, served, {"source": source}, {"milliseconds": MILLISECONDS}, timeout_s=SECONDS)
    outcome = case.run()
    return {"ended": outcome.ended, "error": outcome.error.strip(), "result": outcome.result}


def check(source: str, session: Session) -> list[str]:
    """What to say of the reader's code."""
    try:
        found = session.observe("exercise: a shared configuration", tried, source)
    except UserError:
        return ["Not run: this page is made from records, and they hold no run of this code. Try it in JupyterLab."]
    if found["ended"] == "timeout":
        return [f"No end within {SECONDS} s."]
    if found["result"] is None:
        return [f"It stopped with an error: {(found['error'].splitlines() or [found['ended']])[-1]}"]
    if not found["result"]["right"]:
        return ["Not correct: the answers for 100, 100.5 and 101 are to be True, False, False."]
    gain = found["result"]["gain"]
    lines = ["Correct.", f"Two threads did {gain:.2f} times the work of one, in one run."]
    if gain < WANTED:
        lines.append("They still share something, or the machine was busy. What does each pass fetch?")
    return lines
