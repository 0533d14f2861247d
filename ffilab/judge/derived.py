"""A claim that rests on other claims: the map of corners, judged by this book's own verdicts.

`book/corners.toml` lists the corners of the talk, with one test of the ledger for each that this book measures. The claim is a
conjunction of the corners that the talk sorts by their cost, and its parts are those tests again, with the numbers of their
chapters. So it is judged like every other claim, each part at the book's level. One test for a corner, named
beforehand: no corner gets a second chance. A test whose chapter was not measured, or whose tests have changed, has no number here
either; what is withheld there is withheld here. On which level a corner lies is the talk's judgement.
"""

import functools
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path

from ffilab.judge.claims import all_claims, in_words
from ffilab.judge.numbers import Number
from ffilab.judge.rules import CORRECTED, Rule, Size
from ffilab.judge.verdicts import NOT_MEASURED
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT

FILE = ROOT / "book" / "corners.toml"
LEVELS, COSTS = ("application", "system", "hardware"), ("reliability", "performance")


@dataclass(frozen=True)
class Corner:
    """One corner of the talk's map: see book/corners.toml."""

    name: str
    level: str
    bold: bool = False
    costs: str = ""
    page: str = ""
    claim: str = ""
    number: str = ""
    shows: str = ""

    @property
    def part(self) -> str:
        return f"{self.name}: {self.costs}"

    @property
    def test(self) -> str:
        """The name of its test among those of several claims."""
        return f"{self.claim}, {self.number}"


def read(path: Path = FILE) -> tuple[str, list[Corner]]:
    """Id of the claim, and all corners. Raises UserError, with what is wrong, for what the ledger does not know."""
    text = tomllib.loads(path.read_text(encoding="utf-8"))
    keys, tests, corners = {field.name for field in fields(Corner)}, rules(), []
    for entry in text["corner"]:
        if unknown := set(entry) - keys:
            raise UserError(f"{path.name}: a key that is not known: {', '.join(sorted(unknown))}.")
        corner = Corner(**{**entry, "number": in_words(entry.get("number", ""))})
        if corner.level not in LEVELS or (corner.costs or COSTS[0]) not in COSTS:
            raise UserError(f"{path.name}: {corner.name!r} needs a level of {LEVELS}, and a cost of {COSTS}.")
        if corner.claim and (corner.claim, corner.number) not in tests:
            raise UserError(f"{path.name}: {corner.name!r} rests on {corner.test!r}, which the ledger does not test.")
        if bool(corner.claim) != bool(corner.costs) or (corner.bold and not corner.claim):
            raise UserError(f"{path.name}: {corner.name!r} needs a cost with a test, or neither if it is not bold.")
        corners.append(corner)
    return text["claim"], corners


@functools.cache
def rules(sizes: bool = False) -> dict[tuple[str, str], Rule]:
    """Every test of the ledger but those on sizes, by claim and number; or those on sizes alone."""
    every = ((claim.id, rule) for claim in all_claims() for rule in claim.tests)
    return {(claim, rule.number): rule for claim, rule in every if isinstance(rule, Size) == sizes}


def numbers_of(
    corners: list[Corner], given: dict, rows: dict[str, dict]
) -> tuple[dict[str, Number], dict[str, str]] | None:
    """The numbers of the other claims, by test, and what is withheld of them; None if no chapter was measured.

    given: by claim, what the chapters gave (`ledger.Given`). rows: the claims' rows of the ledger.
    """
    bold = [corner for corner in corners if corner.bold]
    if not any(corner.claim in given for corner in bold):
        return None
    found, withheld = {}, {}
    for corner in bold:
        of_claim = given.get(corner.claim)
        if of_claim is None:
            found[corner.test] = Number(None, f"{corner.claim}: {rows[corner.claim]['reason']}")
        elif not of_claim.provenance["is_result"]:
            found[corner.test] = Number(None, f"{corner.claim} is no result")
        else:
            number = of_claim.numbers[corner.number]
            found[corner.test] = replace(number, missing=f"{corner.claim}: {number.missing}" * bool(number.missing))
            if why := of_claim.withheld.get(corner.number):
                withheld[corner.test] = why
    return found, withheld


def judged(rows: list[dict], given: dict, make: Callable, judge: Callable) -> list[dict]:
    """The rows of the ledger, with the derived claim judged by the others. make, judge: `Given` and `judge` of ffilab/judge/ledger.py."""
    identifier, corners = read()
    claim = next((claim for claim in all_claims() if claim.id == identifier), None)
    if claim is None:
        raise UserError(f"{FILE.name}: there is no claim {identifier}.")
    by_id, bold = {row["id"]: row for row in rows}, [corner for corner in corners if corner.bold]
    found = numbers_of(corners, given, by_id)
    is_result = any(given[corner.claim].provenance["is_result"] for corner in bold if corner.claim in given)
    # Each test decides, also one that stands beside the claim it is taken from.
    tests = [
        replace(rules()[one.claim, one.number], number=one.test, part=one.part, experiment=CORRECTED) for one in bold
    ]
    row = judge(replace(claim, tests=tuple(tests)), found and make(found[0], {"is_result": is_result}, found[1]))
    if found is None:
        row.update(verdict=NOT_MEASURED, reason="none of the chapters that it rests on was measured yet")
    # It is no chapter's, and its numbers come from several runs.
    row["provenance"] = {}
    stale = [change for corner in bold for change in by_id[corner.claim].get("stale", [])]
    row["stale"] = list(dict.fromkeys(stale))
    return [row if other["id"] == identifier else other for other in rows]
