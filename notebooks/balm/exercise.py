"""The exercises of the chapter "GIL Balm": their self-checks, by what this run measured and by a string that is forged for it."""

import pandas as pd

from ffilab.judge.questions import YES, above
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import GIL
from notebooks.balm import experiment, results
from notebooks.balm.experiment import BEST, LAZY, NEW

# What the check of each exercise prints when it is solved.
SOLVED = {
    "choose-what-to-hand-over": r"^It passes\.\n\Z",
    "forge-a-twelve": r"^It passes\.\n\Z",
}

# [choice]
# Program: how much of the text is read, and what would be correct.
PROGRAMS = {
    "viewer": ("one in a hundred", (NEW, LAZY)),
    "plugin": ("all", (NEW,)),
    "demonstration": ("all", (NEW, LAZY, BEST)),
}


def check_choice(record: Record, answers: pd.DataFrame, choice: dict[str, str]) -> list[str]:
    """Is what each program hands over correct, and is nothing that would be correct certainly faster?"""
    said = [_of(record, answers, program, choice.get(program, "")) for program in PROGRAMS]
    return [*said, "It passes." if all(line.endswith(": right.") for line in said) else "It does not pass yet."]


def _of(record: Record, answers: pd.DataFrame, program: str, chosen: str) -> str:
    share, correct = PROGRAMS[program]
    if chosen not in (NEW, LAZY, BEST):
        return f"{program}: choose {NEW!r}, {LAZY!r} or {BEST!r}."
    if chosen == BEST and chosen not in correct:
        exact = results.answers(answers).loc[(GIL, "type(x) is str"), BEST]
        return f"{program}: others run it, with CPythons that you do not know, and type(x) is str says {exact}. Not correct."
    if chosen not in correct:
        return f"{program}: it needs a tuple, and all strings at once. Not correct."
    for rival in correct:
        gain = results.faster(record, GIL, f"{rival}, {share} read", than=f"{chosen}, {share} read")
        # Nothing is faster than the rule by less than two copies of it can be told apart.
        least = results.least(record, GIL) if NEW in (rival, chosen) else 0.0
        if rival != chosen and gain and above(gain.interval, 1) == YES and gain.interval.value > 1 + least:
            return f"{program}: correct, and {rival!r} is {draw.words(gain)} times as fast."
    return f"{program}: right."


# [/choice]


# [check]
def check_forgery(session: Session, data: bytes, length: int, unknown_hash: int) -> list[str]:
    """Does the forged `12` do all that a `12` must do? Returns what to say, one line each."""
    found = experiment.forgery(session, data, length, unknown_hash)
    if found["answers"] is None:
        return [f"The process did not survive your string: {found['ended']}. {found['error'].strip()}"]
    lines = [f"{what}: {'right' if right else 'wrong'}" for what, right in found["answers"].items()]
    return [*lines, "It passes." if all(found["answers"].values()) else "It does not pass yet."]


# [/check]
