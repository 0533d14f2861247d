"""The exercises of the chapter "The GIL convoy": who waits for a switch interval, and a server to save."""

import pandas as pd

from ffilab.judge.processes import ratio
from ffilab.judge.selfcheck import answered, correct_then_fast
from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.setup.catalogue import GIL
from notebooks.convoy.experiment import DEFAULT_S, FOLDER, WAITS_S, served_in_c
from notebooks.convoy.numbers import APART, COROUTINE, INTERPRETER, NATIVE, PROCESS, done

# The cases of the first exercise.
ASKED = (APART, PROCESS, INTERPRETER, NATIVE, COROUTINE)
# So many times as long as with the original a request may take on average: in a server that still queues, if seldom, it
# takes more.
A_FIFTH = 0.2
# So much of the speed that it has beside the original the CPU thread has to keep: beside a server that keeps the GIL it
# has next to none.
KEPT = 0.5
PROCESSES = 10
ORIGINAL, YOURS = "the original", "yours"


def check_waits(waits: dict[str, bool | None], runs: pd.DataFrame) -> list[str]:
    """Does a request wait for a switch interval? True or False by case, against this run: the median over processes of
    p50, at least half an interval or not.

    Returns what to say, one line for each case.
    """
    asked = {}
    for case in ASKED:
        medians = pd.to_numeric(done(runs, interpreter=GIL, case=case).p50).dropna()
        if medians.empty:
            asked[case] = None, "this run has no median for it."
            continue
        took_s = medians.median() / 1e6
        why = f"its median request takes {took_s * 1e3:.3g} ms, and the switch interval is {DEFAULT_S * 1e3:g} ms."
        asked[case] = took_s >= DEFAULT_S / 2, why
    return answered(waits, asked, (True, False))


HINT = "Does your server end when the client closes the connection, and attach its thread state again?"


def check_server(session: Session, mine: str) -> list[str]:
    """Does the reader's server in C answer and note every byte, does the CPU thread go on computing, and does a request
    take on average less than a fifth of what it takes with the original?

    mine: what `mine.build` returned. Returns what to say, one line each.
    """
    fixed = {"interval": DEFAULT_S, "seconds": WAITS_S}
    cases = [
        Case(GIL, tried, fixed={**fixed, "folder": folder}, named={"who": who}, timeout_s=15, hint=HINT)
        for who, folder in ((ORIGINAL, FOLDER), (YOURS, mine))
    ]
    return judged(session.run("my server", cases, max(PROCESSES, session.budget.repeats), may_fail=True))


def tried(interval, seconds, folder):
    """Requests of the client, what the server noted of them, how long one took on average (µs), and the CPU thread's
    speed meanwhile."""
    waits, asked, spans, speed = served_in_c(interval, seconds, folder)
    mean = sum(end - begin for begin, end in spans) / len(spans) / 1e3
    return {"asked": asked, "noted": sum(wait >= 0 for wait in waits), "mean": mean, "work": speed}


def judged(runs: pd.DataFrame) -> list[str]:
    """What to say of the servers that were tried: correct first, then fast."""
    failed = runs[(runs.who == YOURS) & (runs.ended != "ok")]
    if len(failed):
        return [f"Not correct: your server did not come back ({failed.ended.iloc[0]})."]
    theirs, ours = (done(runs, who=who) for who in (YOURS, ORIGINAL))
    wrong = theirs[theirs.noted != theirs.asked]
    if len(wrong):
        return [f"Not correct: of {wrong.asked.iloc[0]:.0f} requests your list has {wrong.noted.iloc[0]:.0f}."]
    kept = theirs.work.median() / ours.work.median()
    if kept < KEPT:
        return [f"Not correct: the CPU thread has {kept:.0%} of the speed that it has beside the original."]
    times = ratio(theirs["mean"].to_numpy(), ours["mean"].to_numpy())
    if times is None:
        return ["The original did not come back: run the cell again."]
    return correct_then_fast([], times, A_FIFTH, ("a request of your server", "one of the original"))
