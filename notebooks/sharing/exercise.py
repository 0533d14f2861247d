"""The exercises of the chapter "Sharing": a configuration, a log and an iterator that threads share. Their
self-checks."""

import functools
import time
import timeit
from collections.abc import Callable

from ffilab.judge.selfcheck import correct_then_fast
from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED
from native.threads import rate, together
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


# ---- who waits for whom ----

# Rounds in which the threads have met, and how many are played at most until there are so many.
ROUNDS, MOST_ROUNDS = 5, 50
LINES, NUMBERS = 5_000, 100_000


def rounds(play):
    """Play until the threads have met in ROUNDS rounds. Returns how much was wrong; None if nothing was, and they never
    met, so that nothing was tried.

    play: a round, which returns how much was wrong, and whether each thread began before the other one had ended.
    """
    wrong = met = 0
    for _ in range(MOST_ROUNDS):
        of_round, crossed = play()
        wrong, met = wrong + of_round, met + crossed
        if met == ROUNDS:
            break
    return wrong if wrong or met else None


def grown(source):
    """A reader's log: does who reads keep what it saw, and are the lines of two threads all there?"""
    names, kept = {}, []
    exec(source, names)

    def play():
        log = names["Log"]()
        seen = memoryview(log.data)
        before = bytes(seen)

        def adding(mark):
            return lambda: [names["add"](log, mark) for _ in range(LINES)]

        names["add"](log, b"more;")
        together([adding(b"a;"), adding(b"b;")])
        text = bytes(log.data)
        kept.append(bytes(seen) == before)
        lost = 2 * LINES - text.count(b"a;") - text.count(b"b;") + (not text.startswith(before + b"more;"))
        return lost, text.find(b"a;") < text.rfind(b"b;") and text.find(b"b;") < text.rfind(b"a;")

    lost = rounds(play)
    return {"kept": all(kept), "lost": lost}


def shared_out(source):
    """A reader's way to share an iterator: how many numbers came twice or never?"""
    names = {}
    exec(source, names)

    def play():
        numbers, got = iter([*range(NUMBERS)]), []
        # Taken there: what comes only when it is asked for would be taken by one thread, after the other.
        together(2 * [lambda: got.append([*names["share_out"](numbers)])])
        one, other = got
        different = len({*one, *other})
        wrong = len(one) + len(other) - different + NUMBERS - different
        return wrong, bool(one and other) and min(one) < max(other) and min(other) < max(one)

    return {"wrong": rounds(play)}


# ---- what is said ----


def tried(source: str, function: Callable, fixed: dict) -> dict:
    """What becomes of the reader's code in a process of its own."""
    outcome = Case(FREE_THREADED, function, {"source": source}, fixed, timeout_s=SECONDS).run()
    return {"ended": outcome.ended, "error": outcome.error.strip(), "result": outcome.result}


def run(source: str, session: Session, title: str, function: Callable, **fixed) -> tuple[dict, list[str]]:
    """What a process says of the reader's code; or what to say if it says nothing."""
    try:
        found = session.observe(f"exercise: {title}", functools.partial(tried, function=function, fixed=fixed), source)
    except UserError:
        said = "Not run: this page is made from records, and they hold no run of this code. Try it in JupyterLab."
        return {}, [said]
    if found["ended"] == "timeout":
        return {}, [f"No end within {SECONDS} s."]
    if found["result"] is None:
        return {}, [f"It stopped with an error: {(found['error'].splitlines() or [found['ended']])[-1]}"]
    return found["result"], []


def counted(wrong: int | None, what: str) -> list[str]:
    """What to say of so much that was wrong. what: it was, with `{}` in the place of the number."""
    if wrong == 0:
        return ["Correct."]
    faults = [what.format(wrong)] if wrong else []
    return correct_then_fast(faults, None, undecided=["the two threads were never at work at once."])


def check_growing(source: str, session: Session) -> list[str]:
    """What to say of the reader's log."""
    found, said = run(source, session, "a log that grows", grown)
    if not found:
        return said
    if not found["kept"]:
        return ["Not correct: what the reader held has changed."]
    return counted(found["lost"], "lines are missing or out of place, {} in all.")


def check_once(source: str, session: Session) -> list[str]:
    """What to say of the reader's way to share an iterator."""
    found, said = run(source, session, "each number once", shared_out)
    return counted(found["wrong"], "{} numbers came twice or never.") if found else said


def check(source: str, session: Session) -> list[str]:
    """What to say of the reader's configuration."""
    result, said = run(source, session, "a shared configuration", served, milliseconds=MILLISECONDS)
    if not result:
        return said
    if not result["right"]:
        return ["Not correct: the answers for 100, 100.5 and 101 are to be True, False, False."]
    gain = result["gain"]
    lines = ["Correct.", f"Two threads did {gain:.2f} times the work of one, in one run."]
    if gain < WANTED:
        lines.append("They still share something, or the machine was busy. What does each pass fetch?")
    return lines
