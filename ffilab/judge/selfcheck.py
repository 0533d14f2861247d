"""What the check of an exercise says: which answers are right; and of code, correct first, then fast, by the rules that
judge the book's own claims."""

from collections.abc import Collection, Mapping

from ffilab.judge.estimates import Estimate
from ffilab.judge.rules import NO, OPEN, YES, Rule, Side
from ffilab.judge.statistics import Comparison
from ffilab.judge.wording import text

FAST = {
    YES: "Fast enough: it takes {ratio} times as long as the other.",
    NO: "Not yet fast: it takes {ratio} times as long as the other, and {most:g} times is the limit.",
    OPEN: "Whether it is fast enough is open: it takes {ratio} times as long as the other ({why}).",
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


def correct_then_fast(wrong: list[str], found: Comparison | Estimate | None, most: float = 1.1) -> list[str]:
    """What to say, one line each: all that is `wrong`; if nothing is, whether the time is no more than `most` times the
    other's.

    found: a comparison of arms, or the ratio of times of two cases; None only where something is wrong.
    """
    if wrong:
        return [f"Not correct: {line}" for line in wrong]
    ratio = found if isinstance(found, Estimate) else found.estimate
    answer = Side("time", direction="below", null=1.0, interest=1 - most).answer(ratio)
    return ["Correct.", FAST[answer.verdict].format(ratio=text(ratio.interval), most=most, why=answer.reason)]


def fault(rule: Rule, estimate: Estimate, what: str) -> list[str]:
    """One line if a rule does not say yes of a number, and why; else none."""
    answer = rule.answer(estimate)
    return [] if answer.verdict == YES else [f"{what}: {answer.reason}."]
