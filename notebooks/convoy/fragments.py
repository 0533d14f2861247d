"""What the sentences of the chapter "The GIL convoy" name and no form can say: lists by answer."""

from collections.abc import Callable
from functools import partial

from ffilab.judge import ledger, numbers
from ffilab.judge.rules import NO, OPEN, YES, Side
from ffilab.judge.wording import capital, listed
from ffilab.measure.session import Session
from ffilab.setup.catalogue import GIL

# Of section "What helps", by the rate over that with one CPU thread.
REMEDIES = {
    "requests/s with one CPU thread, 1e-5 s / 0.005 s": "a switch interval of 10 µs",
    "requests/s with one CPU thread, one core / not pinned": "everything on one core",
    "requests/s with one CPU process / with one CPU thread": "the work in a process",
    "requests/s with CPU work in a sub-interpreter / in a thread": "the work in a sub-interpreter",
    "requests/s with CPU work in native code / in a thread": "the work in native code",
    "requests/s of an asyncio server / of threads, one CPU thread": "an asyncio server",
}
# Of C10: what the model says which calls do.
CALLS = {
    "share of calls of recv that wait, threads on different cores": "recv on different cores",
    "share of calls of send that wait, threads on different cores": "send on different cores",
    "share of calls of send that wait, threads on one core": "send on one core",
}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    return {"remedies": partial(remedies, session), "model-parts": partial(model_parts, session)}


def remedies(session: Session) -> str:
    """What brings more requests than the convoy, fewer, and what is not told apart from it."""
    found, more = numbers.of(session), Side("", direction="above", null=1.0, interest=0.0)
    answers = {
        what: more.answer(measurement).verdict if (measurement := found[f"{name}: {GIL}"].measurement) else OPEN
        for name, what in REMEDIES.items()
    }
    lists = {
        YES: "more requests than beside the CPU thread came with:",
        NO: "fewer with:",
        OPEN: "not told apart from it:",
    }
    return f"{capital(grouped(answers, lists))}."


def model_parts(session: Session) -> str:
    """What the rules say of each call of the model."""
    answers = {what: ledger.sides(session)["C10", f"{name}: {GIL}"] for name, what in CALLS.items()}
    return grouped(answers, {YES: "is right about", NO: "is not right about", OPEN: "is undecided about"})


def grouped(answers: dict[str, str], lists: dict[str, str]) -> str:
    """`is right about a and b; is undecided about c`: lists, each with its head, by answer."""
    named = {head: [what for what, given in answers.items() if given == answer] for answer, head in lists.items()}
    return "; ".join(f"{head} {listed(whats)}" for head, whats in named.items() if whats)
