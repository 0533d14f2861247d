"""What a form for `no` says under each of its three reasons: the other way round, less than is of interest, no effect.

A page shows one of them. Here the number that a sentence asks about is moved, in a golden session, and the sentence is
kept for a person to read beside its rule.
"""

import numpy as np

from ffilab.judge import claims, ledger, sentences
from ffilab.judge.estimates import Location, Share
from ffilab.judge.numbers import Number, numbers_of
from ffilab.judge.rules import NO, Side
from tests.helpers.of_chapter import Golden

# How far from the null, in smallest effects of interest, in the direction that the rule asks for.
REASONS = {"the other way round": -1.0, "less than is of interest": 0.5, "no effect": 0.0}
# The error, in the same unit: an interval of some ± 0.13.
ERROR = 0.05


class Moved(dict):
    """Numbers of a session, of which some are moved."""

    def __init__(self, session):
        super().__init__()
        self._numbers = numbers_of(session)

    def __missing__(self, name):
        return self._numbers[name]

    def told(self, name):
        return self[name]


def moved(rule: Side, away: float) -> Location:
    """An estimate that lies so far from the rule's null, in smallest effects of interest."""
    sign = 1 if rule.direction == "above" else -1
    if rule.null > 0:
        step = np.log1p(rule.interest / rule.null)
        return Location(np.log(rule.null) + sign * away * step, ERROR * step, 30, 31, log=True)
    return Location(rule.null + sign * away * rule.interest, ERROR * rule.interest, 30, 31)


def rule_of(question: sentences.Question):
    """The rule that a question asks by, of the sentence or of the ledger."""
    return claims.by_number(question.size)[question.claim, question.number] if question.claim else question.rule


class Sides(dict):
    """What the ledger's tests answer to a chapter's numbers, as far as they are asked."""

    def __init__(self, numbers, sizes):
        super().__init__()
        self._numbers, self._rules = numbers, claims.by_number(sizes)

    def __missing__(self, key):
        estimate = self._numbers[key[1]].estimate
        return self._rules[key].answer(estimate).verdict if estimate else None


def test_a_form_for_no_is_kept_under_each_of_its_reasons(chapter, held, monkeypatch):
    session = Golden(chapter)
    said, shown = sentences.Said(session), []
    monkeypatch.setattr(ledger, "sides", lambda _, sizes=False: Sides(said._numbers, sizes))
    for name, sentence in sentences.read_sentences(chapter).items():
        for question in sentence.questions:
            rule, estimate = rule_of(question), numbers_of(session)[question.number].estimate
            # What was counted has events, which a moved number has not.
            if not isinstance(rule, Side) or rule.interest <= 0 or isinstance(estimate, Share | None):
                continue
            told = {}
            for reason, away in REASONS.items():
                said._numbers, said._made = Moved(session), {}
                said._numbers[question.number] = Number(moved(rule, away))
                assert rule.answer(said._numbers[question.number].estimate).verdict == NO
                told.setdefault(said._say(sentence), []).append(reason)
            shown.append(f"## {name}\n\n{rule.number}: {rule.direction} {rule.null:g} by {rule.interest:g}\n")
            shown += [*(f"- {'; '.join(reasons)}: {text}" for text, reasons in told.items()), ""]
    if shown:
        held(f"forms/{chapter}.md", "\n".join(shown))
