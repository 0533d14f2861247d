"""Claims that nobody made, judged on numbers that nobody measured; and what a chapter's sentences say of these."""

from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace

from ffilab.judge import ledger, sentences
from ffilab.judge import numbers as judge_numbers
from ffilab.judge.chapter import numbers_module
from ffilab.judge.claims import Claim, in_words
from ffilab.judge.estimates import Estimate
from ffilab.judge.numbers import Number, Numbers
from ffilab.judge.rules import Side, Size
from ffilab.run.budget import BUDGETS

NAME = "a / b"
ABOVE = Side(NAME, "the part", direction="above", null=1.0, interest=0.05)
SIZE = Size(NAME, "the part", null=1.0, published=1.4, margin=0.25)


def claim(*rules, **further) -> Claim:
    """A claim that these rules decide. further: fields of Claim."""
    said = {"id": "A1", "chapter": "loaders", "where": "A, a slide", "claim": "One is slower.", "published": "1.4"}
    return Claim(**said | further, tests=rules)


def numbers(found: dict[str, Estimate | str]) -> dict[str, Number]:
    """Numbers by name, each of an estimate or of the reason why there is none."""
    return {name: Number(None, one) if isinstance(one, str) else Number(one) for name, one in found.items()}


def row(found: Estimate | str, *rules, withheld: str = "", is_result: bool = True, rests_on=None, **further) -> dict:
    """The ledger's row of a claim that these rules decide, by default a side and a size, on one number of this estimate
    or without one. withheld: why no answer is given. rests_on: sessions, builds and layouts. further: fields of
    Claim."""
    rules = rules or (ABOVE, SIZE)
    reasons = {rule.key: withheld for rule in rules} if withheld else {}
    provenance = {"is_result": is_result, "minutes": 2.0, "budget": "quick"}
    provenance |= {"rests_on": rests_on} if rests_on else {}
    given = ledger.Given(numbers({NAME: found}), provenance, reasons)
    return {**ledger.judge(claim(*rules, **further), given), "stale": []}


def said_of(monkeypatch, chapter: str, found: dict, **further) -> Mapping[str, str]:
    """The sentences of a chapter in a session of which these numbers are known, and no others. further: of the
    session."""
    session = SimpleNamespace(chapter=chapter, reads=set(), earlier=[], machine={}, budget=BUDGETS["smoke"], **further)
    session.once = cache(lambda make: make(session))
    made = dict.fromkeys(numbers_module(chapter).number.makers(session), lambda: None)
    known = {in_words(name): lambda one=one: one for name, one in found.items()}
    assert known.keys() <= made.keys()
    monkeypatch.setattr(judge_numbers, "numbers_of", lambda _: Numbers(session, made | known))
    return sentences.sentences_of(session)
