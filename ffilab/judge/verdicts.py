"""From the answers of a claim's tests to its verdict.

A claim is a conjunction: all its parts are said to be true. It holds if every part does, each at the book's level: then the
chance that a false part slips through is that of one. That any part is refuted, or holds beside others that do not, is
controlled for their number (Holm 1979): then the chance to refute a true part is that of one part alone. So a claim gets a
wrong verdict in about (1 - LEVEL) / 2 of all runs at most, as far as its intervals cover what they say.
"""

import math
from dataclasses import dataclass, replace

from ffilab.judge.claims import Claim
from ffilab.judge.estimates import LEVEL, Measurement
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, UNDECIDED, Answer, Conformance, Never, Rule, Size

# Verdicts of a claim.
IN_DIRECTION = "holds in direction"
IN_PART = "holds in part"
UNDECIDED_HERE = "undecided here"
REFUTED = "does not hold here"
CANNOT_TEST = "cannot be tested here"
CONFORMS = "true by construction"
WITHHELD = "withheld"
NOT_MEASURABLE = "not a measurable claim"
NOT_MEASURED = "not measured yet"
NOT_WRITTEN = "not written yet"
# That say something about the claim, from this run.
TESTED = (HOLDS, IN_DIRECTION, IN_PART, UNDECIDED_HERE, REFUTED)
# Of an answer, beside those of rules.py: there is no number, for a reason.
NO_NUMBER = "cannot be tested"
# Of what does not hold, where the interval contains the null: that is no proof of the opposite.
NO_EFFECT = "no effect of interest"
ALPHA = (1 - LEVEL) / 2
MOST_TIMES = 100
# What is decided alone, and not among others, lacks little.
FEW_TIMES = 2.0


@dataclass(frozen=True)
class Verdict:
    """verdict: one of those above. qualifier: what it needs to be read right, such as `size differs` or `2 of 3`.
    parts: each test with its answer."""

    verdict: str
    qualifier: str
    parts: tuple[tuple[Rule, Answer], ...]


def holm(rules: list[Rule], measurements: dict[str, Measurement], what: str) -> set[Rule]:
    """Which of these are answered so (refuted, or held), with the chance of any wrong answer that one test alone has."""
    tested = [rule for rule in rules if rule.measured in measurements]
    given: set[Rule] = set()
    while True:
        left = sum(rule.by_interval for rule in tested) - sum(rule.by_interval for rule in given)
        level = 1 - (1 - LEVEL) / max(1, left)
        more = {
            rule
            for rule in tested
            if rule not in given
            and rule.answer(measurements[rule.measured], level if rule.by_interval else LEVEL).verdict == what
        }
        if not more:
            return given
        given |= more


def answers(claim: Claim, measurements: dict[str, Measurement], missing: dict[str, str]) -> list[tuple[Rule, Answer]]:
    """The answer of each test. Raises ValueError if nothing was handed in for one, neither a number nor a reason.

    What refutes a part has to do so for certain among all parts. So has what holds, unless all parts hold: then none of
    them may be false, and the chance that one slips through is that of one alone.
    """
    plain = {}
    for rule in claim.tests:
        if rule.measured in measurements:
            plain[rule] = rule.answer(measurements[rule.measured])
        elif rule.measured in missing:
            plain[rule] = Answer(NO_NUMBER, missing[rule.measured])
        else:
            raise ValueError(f"{claim.id}: nothing was handed in for {rule.measured!r}")
    certain: set[Rule] = set()
    for family in (
        [rule for rule in claim.tests if not isinstance(rule, Size)],
        [rule for rule in claim.tests if isinstance(rule, Size)],
    ):
        certain |= holm(family, measurements, DOES_NOT_HOLD)
        whole = all(plain[rule].verdict == HOLDS for rule in family)
        certain |= set(family) if whole else holm(family, measurements, HOLDS)
    return [(rule, answer if rule in certain else _open(answer, len(claim.tests))) for rule, answer in plain.items()]


def _open(answer: Answer, tests: int) -> Answer:
    """The same undecided, if it decided: among so many tests it may be chance."""
    if answer.verdict not in (HOLDS, DOES_NOT_HOLD):
        return answer
    return replace(
        answer,
        verdict=UNDECIDED,
        reason=f"{answer.reason}, which may be chance among {tests} tests",
        takes=FEW_TIMES,
    )


def of_claim(claim: Claim, measurements: dict[str, Measurement], missing: dict[str, str]) -> Verdict:
    """The verdict of a claim with tests. Raises ValueError for a test for which nothing was handed in."""
    given = answers(claim, measurements, missing)
    checks = [answer.verdict for rule, answer in given if isinstance(rule, Conformance)]
    parts = [answer for rule, answer in given if not isinstance(rule, Size | Conformance)]
    count = {what: sum(answer.verdict == what for answer in parts) for what in (HOLDS, DOES_NOT_HOLD, NO_NUMBER)}
    all_parts = len(parts) + len(claim.untested)
    none = sum(answer.verdict == DOES_NOT_HOLD and answer.no_effect for answer in parts)

    def verdict(what: str, qualifier: str = "") -> Verdict:
        return Verdict(what, qualifier, tuple(given))

    if DOES_NOT_HOLD in checks:
        return verdict(CANNOT_TEST, "our own code failed its checks")
    if checks and not parts:
        return verdict(CANNOT_TEST if NO_NUMBER in checks else CONFORMS)
    if count[NO_NUMBER] == len(parts):
        return verdict(CANNOT_TEST)
    if count[HOLDS] == all_parts:
        sizes = [answer.verdict for rule, answer in given if isinstance(rule, Size)]
        if DOES_NOT_HOLD in sizes:
            return verdict(IN_DIRECTION, "size differs")
        return verdict(IN_DIRECTION, "size not resolved") if set(sizes) - {HOLDS} else verdict(HOLDS)
    if any(isinstance(rule, Never) and answer.verdict == DOES_NOT_HOLD for rule, answer in given):
        # What must never happen is not safe in part: nobody should read "holds" above a lock that loses updates.
        return verdict(REFUTED, f"{count[DOES_NOT_HOLD]} of {all_parts} parts" if all_parts > 1 else "")
    if count[HOLDS]:
        others = {
            "refuted": count[DOES_NOT_HOLD] - none,
            f"with {NO_EFFECT}": none,
            "undecided": len(parts) - sum(count.values()),
            "without a number": count[NO_NUMBER],
            "not tested": len(claim.untested),
        }
        rest = ", ".join(f"{number} {what}" for what, number in others.items() if number)
        return verdict(IN_PART, f"{count[HOLDS]} of {all_parts}; {rest}")
    if count[DOES_NOT_HOLD]:
        of = (
            ""
            if count[DOES_NOT_HOLD] == all_parts
            else f"{count[DOES_NOT_HOLD]} of {all_parts} parts; the others are open"
        )
        return verdict(REFUTED, "; ".join(filter(None, (NO_EFFECT * (none == count[DOES_NOT_HOLD]), of))))
    return verdict(UNDECIDED_HERE)


def what_it_takes(verdict: Verdict, minutes: float | None) -> str:
    """In words, what would probably decide what is undecided; empty if nothing is, or nothing is known.

    minutes: how long the chapter measured. As long as a side is open, nobody asks for sizes.
    """
    lacks = any(answer.verdict == NO_NUMBER for _, answer in verdict.parts)
    words = ["It would take what is missing here."] if lacks else []
    undecided = [(rule, answer) for rule, answer in verdict.parts if answer.verdict == UNDECIDED]
    sides = [pair for pair in undecided if not isinstance(pair[0], Size)]
    known = [answer for _, answer in sides or undecided if not math.isnan(answer.takes)]
    if not known:
        return " ".join(words)
    most = max(known, key=lambda answer: answer.takes)
    if most.takes > MOST_TIMES:
        return " ".join(
            [
                *words,
                f"It would take more than {MOST_TIMES:,} times as many runs: what was found lies too close to the limit.",
            ]
        )
    times = max(most.takes, 1.1)
    long = (
        f", about {math.ceil(times * minutes)} minutes of this chapter instead of {math.ceil(minutes)}"
        if minutes
        else ""
    )
    return " ".join(
        [*words, f"It would probably take {math.ceil(times * most.runs):,} runs instead of {most.runs:,}{long}."]
    )
