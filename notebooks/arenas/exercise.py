"""The exercises of the chapter "Arenas": pairs of conditions to choose, and a service to change. Their self-checks."""

from ffilab.judge.processes import chosen, ratio
from ffilab.judge.rules import Side
from ffilab.judge.selfcheck import correct_then_fast, faults
from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.arenas import numbers
from notebooks.arenas.experiment import AMOUNT, CONDITIONS, FOLDER, WORK, growth
from notebooks.arenas.numbers import AS_RUN, HUGE_NONE, MEET, NONE, RELEASED

# Which two conditions differ in nothing but what is asked about.
PAIRS = {
    "What do the native threads add?": {AS_RUN, NONE},
    "What do huge pages add, without any native thread?": {HUGE_NONE, NONE},
    "What does letting the other calls in add?": {RELEASED, MEET},
}
LESS_THAN_HALF = Side("MiB grown", direction="below", null=0.5, interest=0.0)


def check_pairs(pairs: dict[str, tuple[str, str]]) -> list[str]:
    """Does each pair answer its question? Returns what to say, a line for each question."""
    lines = []
    for question, right in PAIRS.items():
        chosen = set(pairs.get(question, ()))
        if unknown := sorted(chosen - set(CONDITIONS)):
            lines.append(f"{question} There is no condition {unknown[0]!r}.")
        elif len(chosen) < 2:
            lines.append(f"{question} Not there: a difference takes two conditions that are not the same.")
        elif chosen != right:
            lines.append(f"{question} Not there: these two do not differ in this, or in more than this.")
        else:
            lines.append(f"{question} Right.")
    return lines


def check_service(session: Session, mine: str) -> list[str]:
    """Does the service, built from the reader's copy, hold less than half of what the original holds, and is it as
    fast?

    mine: what `mine.build` returned. Returns what to say, one line each.
    """
    # Many rounds: in the first one both have to get their memory.
    service = {"way": WORK["by turns"], **AMOUNT, "rounds": 50, "keep": True}
    hint = "Does each of your calls return?"
    cases = [
        Case(FREE_THREADED, growth, service, {"folder": folder}, {"whose": whose}, hint=hint)
        for whose, folder in (("yours", mine), ("the original", FOLDER["folder"]))
    ]
    runs = session.run("my service", cases, session.budget.repeats, may_fail=True)
    if len(died := runs[runs.ended != "ok"]):
        return [f"Not correct: a process of {died.whose.iloc[0]} ended so: {died.ended.iloc[0]}."]
    found = numbers.grown(runs)
    ours, theirs = (chosen(found, whose=whose) for whose in ("yours", "the original"))
    held = ratio(ours.grown.to_numpy(), theirs.grown.to_numpy())
    time = ratio(theirs.blocks_per_second.to_numpy(), ours.blocks_per_second.to_numpy())
    print(f"MiB that stay: {numbers.middle(ours.grown)}; without your change {numbers.middle(theirs.grown)}.")
    what = "{found} of the memory stays that stays of the original, and less than half is asked"
    wrong, undecided = faults(LESS_THAN_HALF, held, what)
    return correct_then_fast(wrong, time, undecided=undecided)
