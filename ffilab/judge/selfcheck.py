"""What the check of an exercise says: which answers are right; and of code, correct first, then fast, by the rules that
judge the book's own claims."""

from collections.abc import Collection, Mapping

from ffilab.judge.estimates import Estimate
from ffilab.judge.rules import NO, OPEN, YES, Rule, Side
from ffilab.judge.statistics import Comparison
from ffilab.judge.wording import text

FAST = {
    YES: "Fast enough: {what} takes {ratio} times as long as {beside}.",
    NO: "Not yet fast: {what} takes {ratio} times as long as {beside}, and {most:g} times is the limit.",
    OPEN: "Whether it is fast enough is too close to call here: {what} takes {ratio} times as long as {beside} "
    "({why}). Run it again.",
}


def answered(given: dict, asked: Mapping[str, tuple[object, str]], choices: Collection) -> list[str]:
    """What to say of answers that were chosen, one line for each question: right or not so, and what stands behind it.

    asked: by question, the right answer (None: this run knows of none), and what is said beside it.
    """
    lines = []
    for question, (right, why) in asked.items():
        answer = given.get(question)
        if answer not in choices:
            lines.append(f"{question}: still open. Choose from {', '.join(map(str, choices))}.")
        else:
            verdict = "open" if right is None else "right" if answer == right else "not so"
            lines.append(f"{question}: {verdict}; {why}")
    return lines


def correct_then_fast(
    wrong: list[str],
    found: Comparison | Estimate | None,
    most: float = 1.1,
    pair: tuple[str, str] = ("yours", "the original"),
    undecided: Collection[str] = (),
) -> list[str]:
    """What to say, one line each: all that is `wrong`; if nothing is, what is `undecided`; if nothing is, whether the
    time is no more than `most` times the other's.

    found: a comparison of arms, which has their names, or the ratio of times of two cases, whose names are the `pair`;
    None only where something is wrong or undecided.
    """
    if wrong:
        return [f"Not correct: {line}" for line in wrong]
    if undecided:
        return [f"Too close to call here: {line} Run it again." for line in undecided]
    if isinstance(found, Comparison):
        pair, found = (found.slow[1], found.fast[1]), found.estimate
    assert found is not None
    answer = Side("time", direction="below", null=1.0, interest=1 - most).answer(found)
    told = FAST[answer.verdict]
    said = told.format(what=pair[0], beside=pair[1], ratio=text(found.interval), most=most, why=answer.reason)
    return ["Correct.", said]


def faults(rule: Rule, estimate: Estimate, what: str) -> tuple[list[str], list[str]]:
    """What is wrong, and what is undecided, if a rule does not say yes of a number: a line each, with the number in the
    place of `{found}`."""
    answer = rule.answer(estimate)
    line = f"{what.format(found=text(estimate.interval))} ({answer.reason})."
    return [line] * (answer.verdict == NO), [line] * (answer.verdict == OPEN)
