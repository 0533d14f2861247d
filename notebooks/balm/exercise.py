"""The exercises of the chapter "GIL Balm": their self-checks, by what this run measured and by strings that are made
for them."""

from itertools import accumulate

import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.questions import YES, above
from ffilab.judge.selfcheck import correct_then_fast
from ffilab.measure.case import Case
from ffilab.measure.plan import Arm
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.measure.source import source_of
from ffilab.page import draw
from ffilab.run.paths import without_paths
from ffilab.setup.catalogue import GIL
from native.balm.corpus import ascii_text, mixed_text
from notebooks.balm import numbers, outcomes
from notebooks.balm.experiment import BEST, BLOCK_TUPLE, FOLDER, LAZY, NEW, answer, load, text

# Program: how much of the text is read, and what would be correct.
PROGRAMS = {
    "viewer": ("one in a hundred", (NEW, LAZY)),
    "plugin": ("all", (NEW,)),
    "demonstration": ("all", (NEW, LAZY, BEST)),
}


def check_choice(record: Record, answers: pd.DataFrame, choice: dict[str, str]) -> list[str]:
    """Is what each program hands over correct, and is nothing that would be correct certainly faster?"""
    lines = [_of(record, answers, program, choice.get(program, "")) for program in PROGRAMS]
    return [*lines, "It passes." if all(line.endswith(": right.") for line in lines) else "It does not pass yet."]


def _of(record: Record, answers: pd.DataFrame, program: str, chosen: str) -> str:
    share, correct = PROGRAMS[program]
    if chosen not in (NEW, LAZY, BEST):
        return f"{program}: choose {NEW!r}, {LAZY!r} or {BEST!r}."
    if chosen == BEST and chosen not in correct:
        exact = outcomes.answers(answers).loc[(GIL, "type(x) is str"), BEST]
        return f"{program}: others run it, on any CPython, and type(x) is str says {exact}. Not correct."
    if chosen not in correct:
        return f"{program}: it needs a tuple, and all strings at once. Not correct."
    for rival in correct:
        gain = numbers.faster(record, GIL, f"{rival}, {share} read", than=f"{chosen}, {share} read")
        # Nothing is faster than the rule by less than two copies of it can be told apart.
        least = numbers.least(record, GIL) if NEW in (rival, chosen) else 0.0
        if rival != chosen and gain and above(gain.interval, 1) == YES and gain.interval.value > 1 + least:
            return f"{program}: correct, and {rival!r} is {draw.words(gain)} times as fast."
    return f"{program}: right."


def check_forgery(session: Session, data: bytes, length: int, unknown_hash: int) -> list[str]:
    """Does the forged `12` do all that a `12` must do? Returns what to say, one line each."""
    found = session.observe("exercise: forge a twelve", forged, data.hex(), length, unknown_hash)
    if found["answers"] is None:
        return [f"The process did not survive your string: {found['ended']}. {found['error'].strip()}"]
    lines = [f"{what}: {'right' if right else 'wrong'}" for what, right in found["answers"].items()]
    return [*lines, "It passes." if all(found["answers"].values()) else "It does not pass yet."]


def forged(data: str, length: int, unknown_hash: int) -> dict:
    """How the process ended, and what was right; no answers if it died."""
    string = {"data": data, "length": length, "unknown_hash": unknown_hash}
    outcome = Case(GIL, twelve, string, FOLDER, timeout_s=4).run()
    return {"answers": outcome.result, "ended": outcome.ended, "error": without_paths(outcome.error)}


# [twelve]
def twelve(folder, data, length, unknown_hash):
    """A counterfeit of `12`, and what a `12` must do."""
    x = load(folder).counterfeit(bytes.fromhex(data), length, hash=unknown_hash)
    return {
        "x == '12'": x == "12",
        "x in {'12'}": x in {"12"},
        "{x: 1}['12']": {x: 1}.get("12") == 1,
        "int(x) == 12": answer("int(x)", x) == "12",
    }


# [/twelve]


# How much of the original's time a block may take.
MOST = 0.9


def check_block(session: Session, mine: str) -> list[str]:
    """Are the strings of the reader's blocks right, and do they take so much less time than the original's?

    mine: what `mine.build` returned.
    """
    fixed = {"folder": mine, "method": BLOCK_TUPLE}
    looked = Case(GIL, beaten, fixed=fixed, hint="Does every loop over strings in your block come to its end?")
    (row,) = session.run("the strings of my block", [looked], repeats=1, may_fail=True).to_dict("records")
    died = row["ended"] != "ok"
    wrong = [f"the process that made your strings ended so: {row['ended']}"] if died else row["wrong"].splitlines()
    if wrong:
        return [f"Not correct: {line}." for line in wrong]
    record = session.time("my block", [tuples("original", FOLDER["folder"]), tuples("mine", mine)], [GIL])
    draw.arms(record)
    return correct_then_fast([], statistics.compare(record, (GIL, "mine"), (GIL, "original")), MOST)


def tuples(name: str, folder: str) -> Arm:
    """Tuples of a module's own, made and dropped."""
    return Arm(name, "make(method)", f"make, method = text({folder!r}).strings, {BLOCK_TUPLE!r}", source_of(text=text))


# [beaten]
def beaten(folder, method):
    """What is wrong with strings that are made in one way, a line each: one text after the other, in the memory of the
    last one."""
    module, texts, wrong = load(folder), [], {}
    for lines in (5, 100, 3000):
        data, lengths = ascii_text(lines)
        # Other characters of the same lengths, other lengths, and lines that are left to CPython.
        for each in ((data, lengths), (data.swapcase(), lengths), (data, lengths[::-1]), mixed_text(lines)):
            texts.append((*each, cut_by_python(*each)))
    kept = []
    for keep in (False, True):
        for data, lengths, cut in texts:
            text = module.Text(data, lengths)
            for _ in range(2):
                made = text.strings(method)
                if list(made) != cut:
                    wrong["a string is not what str.splitlines cuts"] = True
                if list(map(hash, made)) != list(map(hash, cut)):
                    wrong["a string has not the hash of its characters"] = True
                kept += [(made[0], cut[0])] * keep
                del made
            del text
    if any(one != real or hash(one) != hash(real) for one, real in kept):
        wrong["a string that somebody has does not outlive its text"] = True
    kept.clear()
    if module.buffers_alive():
        wrong["a text is never given back"] = True
    return {"wrong": "\n".join(wrong)}


def cut_by_python(data, lengths):
    """The lines of a text, with a line break put behind each, cut by Python."""
    lines = [data[end - length : end] for end, length in zip(accumulate(lengths), lengths)]
    return b"\n".join(lines).decode().splitlines()


# [/beaten]
