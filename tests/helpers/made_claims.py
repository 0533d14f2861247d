"""Claims that nobody made, judged on numbers that nobody measured."""

from ffilab.judge import ledger
from ffilab.judge.claims import Claim
from ffilab.judge.estimates import Estimate
from ffilab.judge.numbers import Number
from ffilab.judge.rules import Side, Size

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


def row(found: Estimate | str, *rules, withheld: str = "", is_result: bool = True, **further) -> dict:
    """The ledger's row of a claim that these rules decide, by default a side and a size, on one number of this estimate
    or without one. withheld: why no answer is given. further: fields of Claim."""
    rules = rules or (ABOVE, SIZE)
    reasons = {rule.key: withheld for rule in rules} if withheld else {}
    provenance = {"is_result": is_result, "minutes": 2.0, "budget": "quick"}
    given = ledger.Given(numbers({NAME: found}), provenance, reasons)
    return {**ledger.judge(claim(*rules, **further), given), "stale": []}
