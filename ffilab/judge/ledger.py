"""The ledger of claims: what was published, what was measured here, and the verdict of the rule.

Chapters name numbers (numbers.py); nobody names a verdict.
"""

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ffilab.judge import basis, controls, numbers, verdicts
from ffilab.judge.claims import Claim, all_claims, declared
from ffilab.judge.estimates import LEVEL, Counted
from ffilab.judge.numbers import Number
from ffilab.judge.rules import BESIDE, KINDS, NO, OPEN, YES, Answer, Event, Rule, Size
from ffilab.measure.reading import Session
from ffilab.measure.record import once
from ffilab.run.errors import UserError
from ffilab.run.paths import RESULTS


@dataclass(frozen=True)
class Given:
    """What one claim is judged by. numbers: of its chapter, or of several; None if none was measured. withheld: by
    `Rule.key`, which answers are not given, and why. whole: the numbers with nothing left out for a neighbour."""

    numbers: Mapping[str, Number]
    provenance: dict
    withheld: dict[str, str] = field(default_factory=dict)
    whole: Mapping[str, Number] | None = None


@once
def answers(session) -> dict[tuple[str, Rule], Answer]:
    """What the rules answer to a session's numbers, by claim and test, for a page that chooses its words by them.

    A sentence has a form for yes, no and open: what is withheld is open in it, and the reason says why.
    """
    withheld = _withheld(session)
    return {
        (claim.id, rule): Answer(OPEN, f"withheld: {answer.reason}") if answer.verdict == verdicts.WITHHELD else answer
        for claim in declared(session.chapter).claims
        for rule, answer in verdicts.answers(claim, numbers.numbers_of(session), withheld.get(claim.id, {}))
    }


@once
def _withheld(session) -> dict[str, dict[str, str]]:
    """What the controls withhold; nothing of a smoke test, which says nothing anyhow."""
    return (
        controls.withheld(controls.everything(session), numbers.numbers_of(session)) if session.budget.is_result else {}
    )


def sides(session, sizes: bool = False) -> dict[tuple[str, str], str]:
    """The answers of a session's tests in a word, by claim and number: without those on sizes, or those alone."""
    return {
        (claim, rule.number): answer.verdict
        for (claim, rule), answer in answers(session).items()
        if isinstance(rule, Size) == sizes
    }


def judge(claim: Claim, given: Given | None) -> dict:
    """One row of the ledger. given: None if its chapter was not measured. Raises ValueError if a test asks for a number
    of another name: a renamed or forgotten number is an error, and no weaker test."""
    row = {
        **{key: getattr(claim, key) for key in ("id", "chapter", "claim", "published", "where", "fact")},
        "numbers": {},
        "interval": {},
        # Of a comparison over layouts: where another session will come out, and the same with nothing left out.
        "beside": {},
        "kind": verdicts.kind(claim),
        "verdict": verdicts.NOT_MEASURED if claim.chapter else verdicts.NOT_WRITTEN,
        "qualifier": "",
        # Whether the published size agrees.
        "size": "",
        "reason": "its chapter was not measured yet" if claim.chapter else "its chapter is not written yet",
        "takes": "",
        "parts": [],
        # What was counted or looked at once has no interval.
        "counted": [],
        "untested": list(claim.untested),
        # Where it is measured; what its author saw, and what is otherwise here.
        "section": f"notebooks/{claim.chapter}/{claim.section}" if claim.section else "",
        "saw": claim.saw,
        "differs": claim.differs,
        "provenance": {},
    }
    if claim.not_measurable:
        row["verdict"], row["reason"] = row["kind"], claim.not_measurable
    if given is None:
        return row
    row["provenance"] = provenance = given.provenance
    for name in dict.fromkeys(rule.number for rule in claim.tests):
        if (estimate := given.numbers[name].estimate) is None:
            continue
        interval = estimate.interval
        row["numbers"][name], row["interval"][name] = interval.value, [interval.low, interval.high]
        if isinstance(estimate, Counted):
            row["counted"].append(name)
        if bounds := basis.beside(estimate, given.whole[name].estimate if given.whole else None):
            row["beside"][name] = bounds
    if not provenance["is_result"]:
        if not claim.not_measurable:
            row["verdict"], row["reason"] = verdicts.NO_RESULT, "smoke test: its figures are no result"
        return row
    verdict = verdicts.of_claim(claim, given.numbers, given.withheld)
    # A claim that follows from others has no layouts of its own.
    limit = basis.qualifier(provenance["rests_on"]) if "rests_on" in provenance else ""
    row["qualifier"] = "; ".join(filter(None, (verdict.qualifier, limit)))
    row["parts"] = [
        {
            "part": rule.part,
            "number": rule.number,
            "kind": type(rule).__name__.lower(),
            "experiment": rule.experiment,
            "verdict": answer.verdict,
            "reason": answer.reason,
        }
        for rule, answer in verdict.parts
    ]
    if claim.not_measurable:
        return row
    row["verdict"], row["size"] = verdict.word, verdict.size
    row["reason"] = "; ".join(part_in_words(part) for part in row["parts"])
    row["takes"] = verdicts.what_it_takes(verdict, provenance.get("minutes"))
    return row


def given_by(session, whatever_the_controls: bool = False) -> dict[Claim, Given]:
    """What a session gives to each claim of its chapter."""
    withheld = {} if whatever_the_controls else _withheld(session)
    own = numbers.numbers_of(session)
    whole = numbers.numbers_of(session.with_company()) if session.had_company else None
    return {
        claim: Given(own, session.provenance, withheld.get(claim.id, {}), whole)
        for claim in declared(session.chapter).claims
    }


def judged(session, whatever_the_controls: bool = False) -> list[dict]:
    """The rows of a session's chapter."""
    return list(itertools.starmap(judge, given_by(session, whatever_the_controls).items()))


def counts_of(row: dict) -> str:
    """How the parts of a row were answered, without its sizes and what stands beside it: `3 yes, 1 no`. Empty if it has
    none."""
    return verdicts.counts([part["verdict"] for part in row["parts"] if is_part(part)])


def is_part(part: dict) -> bool:
    """Does it count for the word of its claim? Neither a size does, nor what stands beside the claim."""
    return part["kind"] != "size" and part["experiment"] != BESIDE


def is_withheld(row: dict, name: str) -> bool:
    """Is what this number says of the claim withheld?"""
    return part_of(row, name).get("verdict") == verdicts.WITHHELD


def part_of(row: dict | None, name: str) -> dict:
    """The part of a row that asks on which side a number lies; empty if there is none, or no row."""
    parts = row.get("parts", []) if row else []
    return next((part for part in parts if part["number"] == name and part.get("kind") != "size"), {})


def part_title(part: dict) -> str:
    """What a part of a row is about: `ratio, in the published size`."""
    what = f"{part['part']}{', in the published size' * (part['kind'] == 'size')}"
    return what + {"as run": " (by the author's program)", BESIDE: " (beside the claim)"}.get(part["experiment"], "")


def part_in_words(part: dict) -> str:
    """A part of a row with why it is answered so: `ratio, in the published size: the whole interval lies outside …`."""
    return f"{part_title(part)}: {part['verdict']}, {part['reason']}"


def verdict_of(row: dict) -> str:
    """A row's verdict with what stands behind it: `mixed (3 yes, 1 open)`."""
    return row["verdict"] + (f" ({row['qualifier']})" if row["qualifier"] else "")


def in_lines(row: dict) -> list[str]:
    """A row in words: id, verdict and size; then each part, and what would decide what is open."""
    size = f"; published size: {row['size']}" if row["size"] else ""
    parts = [f"  {part_in_words(part)}" for part in row["parts"]] or [f"  {row['reason']}"]
    further = [f"  Not tested: {part}" for part in row["untested"]] + ([f"  {row['takes']}"] if row["takes"] else [])
    return [f"{row['id']}: {verdict_of(row)}{size}", *parts, *further]


def expected_wrong(rows: list[dict]) -> float:
    """How many wrong answers the book's level lets one expect in a ledger, at most: one chance for each part, and each
    size, that an interval answered."""
    by_interval = 0
    for part in [part for row in rows for part in row["parts"] if part["number"] not in row["counted"]]:
        rule = KINDS[part["kind"]]
        if issubclass(rule, Event):
            # An event that was seen is no interval's; that it is rarer than a rate is.
            by_interval += part["verdict"] == rule.unseen
        elif rule.by_interval:
            by_interval += part["verdict"] in (YES, NO)
    return verdicts.ALPHA * by_interval


def trusted(rows: list[dict]) -> str:
    """How many wrong answers are to be expected among those of the ledger, in a sentence."""
    answered = sum(part["verdict"] in (YES, NO) for row in rows for part in row["parts"])
    limits = [basis.qualifier(row["provenance"]["rests_on"]) for row in rows if "rests_on" in row["provenance"]]
    alone, limit = sum(map(bool, limits)), max(limits, default="")
    return (
        f"{answered} parts and sizes are answered, each by an interval of {LEVEL:.0%} or a count: if the intervals "
        f"keep their promise, {expected_wrong(rows):.1f} of these answers at most are wrong by chance, on average."
        + (f" {alone} verdicts are {limit}." if alone else "")
    )


def collect(sessions: Mapping[str, Session | None], stale: dict[str, list[str]] | None = None) -> list[dict]:
    """Judge every claim from the records of the chapters, write `ledger.json`, return its rows.

    sessions: by chapter the one that its page was made from; None if its records are gone. stale: by chapter, what has
    changed since its page was made; it becomes a field of the row. Records of another version, which lack what is asked
    for, are not judged.
    """
    stale, judged_rows, lacking = stale or {}, {}, {}
    for chapter, session in sessions.items():
        again = f"`make chapter NAME={chapter}` measures it again"
        if session is None:
            lacking[chapter] = f"its records are gone: {again}"
            continue
        try:
            judged_rows |= {claim.id: judge(claim, of_claim) for claim, of_claim in given_by(session).items()}
        except UserError as error:
            lacking[chapter] = str(error)
        except (LookupError, TypeError, ValueError, AttributeError):
            if not stale.get(chapter):
                raise
            lacking[chapter] = f"its records are of another version: {again}"
    rows = []
    for claim in all_claims():
        row = judged_rows.get(claim.id) or judge(claim, None)
        if claim.chapter in lacking and not claim.not_measurable:
            row["reason"] = lacking[claim.chapter]
        rows.append({**row, "stale": stale.get(claim.chapter, [])})
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "ledger.json").write_text(json.dumps(rows, indent=1))
    return rows
