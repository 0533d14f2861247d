"""From the answers of a claim's tests to its word.

Each part is answered at the book's level, the one that its interval is printed at: yes, no, open, or no number. A claim
has a word of its own only where all its parts agree; where those that are answered do, it is so "so far". The published
size is no part: it has a column beside the word. Parts that no experiment tests are scope, and lower no word. How many
wrong answers to expect stands at the head of the ledger.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ffilab.judge.claims import Claim
from ffilab.judge.estimates import LEVEL
from ffilab.judge.numbers import Number
from ffilab.judge.rules import NO, OPEN, YES, Answer, Conformance, Never, Rule, Size

# A claim's words, with OPEN as of a part. So far: the other parts are open, or have no number.
HOLDS, FAILS, MIXED = "holds", "does not hold", "mixed"
HOLDS_SO_FAR, FAILS_SO_FAR = f"{HOLDS} so far", f"{FAILS} so far"
# Where nothing is said of it, and why.
WITHHELD = "withheld"
NO_RESULT = "no result"
NOT_MEASURED = "not measured yet"
NOT_WRITTEN = "not written yet"
# That say something about the claim, from this run.
TESTED = (HOLDS, HOLDS_SO_FAR, MIXED, FAILS_SO_FAR, FAILS, OPEN)
# Kinds of claims. Of those that are not measured there is no verdict.
MEASURED = "measured"
BY_CONSTRUCTION = "true by construction"
NOT_MEASURABLE = "not measurable"
CODE_FAILED = "our own code failed its checks"
# Of a part, beside the answers of rules.py: there is no number, or there is one that is not given, for a reason.
NO_NUMBER = "no number"
# The published size.
AGREES, DIFFERS = "agrees", "differs"
SIZES = {YES: AGREES, NO: DIFFERS, OPEN: OPEN}
# One side of an interval errs so often.
ALPHA = (1 - LEVEL) / 2
# Nobody is advised to measure more often than that.
MOST_TIMES, MOST_SESSIONS = 100, 10


@dataclass(frozen=True)
class Verdict:
    """word: one of those above. qualifier: the counts behind `mixed` and `so far`, and the like. size: whether the
    published size agrees, or nothing if none is asked for. parts: each test with its answer."""

    word: str
    qualifier: str
    size: str
    parts: tuple[tuple[Rule, Answer], ...]


def kind(claim: Claim) -> str:
    """Return what kind of claim it is: measured, true by construction, or not measurable."""
    if claim.not_measurable:
        return NOT_MEASURABLE
    conforms = [isinstance(rule, Conformance) for rule in claim.tests]
    return BY_CONSTRUCTION if conforms and all(conforms) else MEASURED


def answers(claim: Claim, numbers: Mapping[str, Number], withheld: dict[str, str]) -> list[tuple[Rule, Answer]]:
    """Return the answer of each test. withheld: by `Rule.key`, why it is not given."""
    given = []
    for rule in claim.tests:
        number = numbers[rule.number]
        if (estimate := number.estimate) is None:
            given.append((rule, Answer(NO_NUMBER, number.missing)))
        else:
            why = "" if rule.is_proof(estimate) else withheld.get(rule.key, "")
            given.append((rule, Answer(WITHHELD, why) if why else rule.answer(estimate)))
    return given


def of_claim(claim: Claim, numbers: Mapping[str, Number], withheld: dict[str, str] | None = None) -> Verdict:
    """Return the verdict of a claim with tests."""
    given = answers(claim, numbers, withheld or {})
    of_our_code = [answer.verdict for rule, answer in given if isinstance(rule, Conformance)]
    if NO in of_our_code:
        return Verdict(NO_RESULT, CODE_FAILED, "", tuple(given))
    if kind(claim) == BY_CONSTRUCTION and set(of_our_code) == {YES}:
        return Verdict(BY_CONSTRUCTION, "", "", tuple(given))
    deciding = [(rule, answer.verdict) for rule, answer in given if rule.decides]
    parts = [(rule, answer) for rule, answer in deciding if not isinstance(rule, Size)]
    sizes = [answer for rule, answer in deciding if isinstance(rule, Size)]
    return Verdict(*word(parts), size(sizes), tuple(given))


def word(parts: list[tuple[Rule, str]]) -> tuple[str, str]:
    """Return a claim's word and what counts stand behind it, from the answers to its parts."""
    count = Counter(answer for _, answer in parts)
    # What must never happen is not safe in part: nobody should read "mixed" above a lock that loses updates.
    unsafe = any(isinstance(rule, Never) and answer == NO for rule, answer in parts)
    if count[YES] and count[NO] and not unsafe:
        what = MIXED
    elif count[NO]:
        what = FAILS if unsafe or set(count) == {NO} else FAILS_SO_FAR
    elif count[YES]:
        what = HOLDS if set(count) == {YES} else HOLDS_SO_FAR
    else:
        what = WITHHELD if count[WITHHELD] and not count[OPEN] else OPEN
    # Where all parts agree, the word says so.
    return what, "" if len(count) == 1 and NO_NUMBER not in count else counts(list(count.elements()))


def counts(given: list[str]) -> str:
    """Return how many parts were answered how: `3 yes, 1 no, 1 open`."""
    count = Counter(given)
    return ", ".join(f"{count[what]} {what}" for what in (YES, NO, OPEN, NO_NUMBER, WITHHELD) if count[what])


def size(answers_to_sizes: list[str]) -> str:
    """Return whether the published sizes agree, in one word: all do, one differs, or it is open. Empty if none is asked
    for."""
    if NO in answers_to_sizes:
        return DIFFERS
    if not answers_to_sizes:
        return ""
    return AGREES if set(answers_to_sizes) == {YES} else OPEN


def what_it_takes(verdict: Verdict, minutes: float | None) -> str:
    """Say what would probably decide what is open; empty if nothing is, or nothing is known.

    minutes: how long the chapter measured. As long as a part is open, nobody asks for sizes.
    """
    deciding = [(rule, answer) for rule, answer in verdict.parts if rule.decides]
    lacks = any(answer.verdict == NO_NUMBER for _, answer in deciding)
    words = ["It would take what is missing here."] if lacks else []
    if any(answer.verdict == WITHHELD for _, answer in deciding):
        words.append("What is withheld takes another run.")
    undecided = [(rule, answer) for rule, answer in deciding if answer.verdict == OPEN]
    sides = [pair for pair in undecided if not isinstance(pair[0], Size)]
    known = [answer for _, answer in sides or undecided if not math.isnan(answer.takes)]
    if known:
        most = max(known, key=lambda answer: answer.takes)
        times, likely = max(most.takes, 1.1), "would probably take"
        if math.isinf(most.takes) and most.sessions <= MOST_SESSIONS:
            # What a session adds does not become less by runs in it.
            many = f"it {likely} {math.ceil(most.sessions)} sessions (`make more`)"
            words.append(f"No number of runs in one session decides it: {many}.")
        elif most.takes > MOST_TIMES:
            words.append(f"Even {MOST_TIMES} times as many runs would not do: the number lies too close to the limit.")
        else:
            now, then = math.ceil(minutes or 0), math.ceil(times * (minutes or 0))
            long = f", {then} minutes instead of {now}" if then > now else ""
            words.append(f"It {likely} {math.ceil(times * most.runs):,} runs instead of {most.runs:,}{long}.")
    return " ".join(words)
