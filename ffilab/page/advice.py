"""Advice and questions about mechanisms, and beside each what this run found, in the words of its answer.

Files beside the pages hold them: `book/decision_guide.toml` (advice), `book/front.toml` (questions, surprises). Each entry names the
`chapter` behind it, may lead to a place in the book (`link`), and says what names no outcome (`say`). What a run can contradict
rests on a test of the ledger (`claim`, and the name of its `number`), and has a sentence for each of its answers: `yes`,
`no`, `open`. {value} in a sentence stands for the number with its interval, {why} for the answer's reason. A number
that is not there, is of a smoke test, or is withheld, is said to be so.
"""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from ffilab.judge import derived, verdicts
from ffilab.judge.claims import in_words
from ffilab.judge.estimates import Interval
from ffilab.judge.rules import NO, OPEN, YES, Rule
from ffilab.page import draw
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS, ROOT

FILE = ROOT / "book" / "decision_guide.toml"


@dataclass(frozen=True)
class Advice:
    """One piece of advice, or one question, in MyST; see above. part: of the page, in which it stands."""

    chapter: str
    say: str
    part: str = ""
    link: str = ""
    claim: str = ""
    number: str = ""
    yes: str = ""
    no: str = ""
    open: str = ""
    # Of a question: rows of a kept table that answer it, or a claim whose verdict does.
    table: dict | None = None
    verdict_of: str = ""


def read(path: Path = FILE, kind: str = "advice") -> list[Advice]:
    """All entries of a kind, in the order of the file. Raises UserError, with what is wrong, for what the ledger does not know."""
    keys = {field.name for field in fields(Advice)}
    rules = derived.rules()
    entries = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))[kind]:
        if unknown := set(entry) - keys:
            raise UserError(f"{path.name}: a key that is not known: {', '.join(sorted(unknown))}.")
        advice = Advice(**{**entry, "number": in_words(entry.get("number", ""))})
        if not (NOTEBOOKS / advice.chapter).is_dir():
            raise UserError(f"{path.name}: there is no chapter {advice.chapter!r}.")
        if problem := _problem(advice, rules):
            raise UserError(f"{path.name}: {advice.say[:40]!r} {problem}.")
        entries.append(advice)
    return entries


def _problem(advice: Advice, rules: dict[tuple[str, str], Rule]) -> str:
    forms = (advice.yes, advice.no, advice.open)
    if not advice.claim:
        return "has answers, and names no claim" if any(forms) or advice.number else ""
    if (advice.claim, advice.number) not in rules:
        return f"rests on {advice.claim}: {advice.number!r}, which the ledger does not test"
    return "" if all(forms) else "lacks a sentence for one of the answers"


def answer(advice: Advice, row: dict | None) -> str | None:
    """What this run answers to the test behind it: yes, no or open; None without a number that is given."""
    part = part_of(advice, row)
    return part["verdict"] if part and part["verdict"] in (YES, NO, OPEN) else None


def part_of(advice: Advice, row: dict | None) -> dict | None:
    """The part of a claim's row that the entry rests on; None if the row has none."""
    parts = row["parts"] if row else []
    return next((part for part in parts if part["number"] == advice.number and part.get("kind") != "size"), None)


def evidence(advice: Advice, row: dict | None) -> str:
    """What this run found, as the ledger's row says; nothing for what rests on no claim."""
    if not advice.claim:
        return ""
    verdict, part = answer(advice, row), part_of(advice, row)
    if part and part["verdict"] == verdicts.WITHHELD:
        return f"What this run found on it (claim {advice.claim}) is withheld: {draw.plain(part['reason'])}."
    if verdict is None:
        smoke = row is not None and row.get("provenance", {}).get("is_result") is False
        return f"This run has no number on it (claim {advice.claim}){': it was a smoke test' * smoke}."
    form = getattr(advice, verdict)
    sentence = form.format(value=value_of(row, advice.number), why=draw.plain(part["reason"]))
    return sentence + " The page of this number is stale." * bool(row.get("stale"))


def value_of(row: dict, name: str) -> str:
    """A measured number of a row with its interval: `1.13 [1.12, 1.15]`; without one where there is none."""
    value, (low, high) = row["numbers"][name], row["interval"][name]
    if low == high:
        return f"{value:,.3g}" + ("" if name in row["counted"] else " (all values alike)")
    interval = Interval(value, low, high)
    return draw.text(interval) if interval.is_known else f"{draw.number(value, 0)} (too few runs for an interval)"
