"""The exercises of the chapter "Races": their self-checks, in words."""

import tempfile
from pathlib import Path

import pandas as pd

from ffilab.judge import selfcheck, statistics
from ffilab.judge.estimates import Share
from ffilab.measure.case import Case, program
from ffilab.measure.plan import Arm
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.run.machine import compiler_command
from ffilab.setup import mine
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.races.detection import RACE, SOURCES, first_line, thread_sanitizer
from notebooks.races.experiment import FOLDER, TWO, crossed_counter

SAFE, UNSAFE = "safe", "can go wrong"
# Situation: (the right answer, and why). The answers follow from the code; what a run shows is told beside them.
SITUATIONS = {
    "unsafe counter, PyDLL, with the GIL": (SAFE, "the call keeps the GIL, and no second thread can be in it"),
    "unsafe counter, CDLL, with the GIL": (UNSAFE, "the call releases the GIL, and a second thread can be in it"),
    "unsafe counter, PyDLL, without the GIL": (UNSAFE, "where there is no GIL, nothing keeps the second thread out"),
    "atomic counter, CDLL, without the GIL": (SAFE, "the addition is one step for all other threads"),
    "bank of atomic load and store, CDLL, with the GIL": (UNSAFE, "between the two steps another thread may act"),
    "bank of compare and exchange, CDLL, without the GIL": (SAFE, "it acts only if what it saw is still true"),
}
# Rounds of one process, in each of which two threads meet in the reader's function.
ROUNDS = 20


def check_choice(choice: dict[str, str], seen: dict[str, Share]) -> list[str]:
    """One line for each situation: is the answer right, why, and in how many runs of this page it went wrong."""
    asked = {
        situation: (right, f"{why}. It went wrong in {seen[situation]} runs of this page.")
        for situation, (right, why) in SITUATIONS.items()
    }
    return selfcheck.answered(choice, asked, (SAFE, UNSAFE))


def check_counter(session: Session, folder: str) -> list[str]:
    """Is the reader's `unsafe_increment` exact in every round and without a data race; and does it take at most half
    the time of the original's atomic one?

    folder: what `mine.build` returned.
    """
    fixed = {"folder": folder, "way": "ctypes CDLL", "teams": [{**TWO, "variants": ["unsafe"] * ROUNDS}]}
    hint = "Does your increment wait for what never comes, or retry for ever?"
    case = Case(FREE_THREADED, crossed_counter, fixed=fixed, hint=hint)
    rounds = session.run("my counter", [case], session.budget.repeats, may_fail=True, events=True)
    if len(died := rounds[rounds.ended != "ok"]):
        return [f"Not correct: a process that called yours ended so: {died.ended.iloc[0]}."]
    seen = session.observe("my counter under ThreadSanitizer", sanitized, "counter, unsafe")
    wrong = faults(rounds, seen)
    undecided = [] if (rounds.met == 1).any() else ["the threads never met, so that nothing was tried."]
    if wrong or undecided:
        return selfcheck.correct_then_fast(wrong, None, undecided=undecided)
    ours, theirs = thousand("atomic_increment", FOLDER, "the atomic one"), thousand("unsafe_increment", folder, "mine")
    record = session.time("my counter and the atomic one", [ours, theirs], [FREE_THREADED])
    draw.arms(record)
    found = statistics.compare(record, (FREE_THREADED, theirs.name), (FREE_THREADED, ours.name))
    return [*selfcheck.correct_then_fast([], found, most=0.5), f"ThreadSanitizer: {seen['found']}."]


def faults(rounds: pd.DataFrame, seen: dict) -> list[str]:
    """What is wrong with a counter after these rounds (`lost`, `met`), or by what ThreadSanitizer has seen."""
    lost, gained, met = ((rounds.lost > 0).sum(), (rounds.lost < 0).sum(), (rounds.met == 1).sum())
    wrong = []
    if lost:
        wrong.append(f"updates were lost in {lost} of {len(rounds)} rounds; in {met} all threads met.")
    if gained:
        wrong.append(f"in {gained} of {len(rounds)} rounds the counter is larger than what was added.")
    if seen["found"] == RACE:
        place = next((line.strip() for line in seen["report"].splitlines() if "#0" in line), "")
        wrong.append(f"ThreadSanitizer found a data race, {place}")
    return wrong


def sanitized(variant: str) -> dict:
    """A variant of the reader's library under ThreadSanitizer."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "stress"
        sources = [mine.copy("races/library") / "races.c", SOURCES / "sanitizers" / "stress.c"]
        ended, _, err = program(
            [*compiler_command(), "-O1", "-g", "-fsanitize=thread", "-pthread", *sources, "-o", built]
        )
        if ended != "ok":
            return {"found": f"cannot run here: {first_line(err)}", "report": ""}
        return thread_sanitizer([built, variant])


def thousand(function: str, folder: str, name: str) -> Arm:
    """A call with a thousand increments, by one thread."""
    return Arm(name, "f(1000)", f"import ctypes; f = ctypes.CDLL({folder!r} + '/libraces.so').{function}")
