"""Advice and questions about mechanisms, and beside each what this run found, in the words of its answer.

Files beside the pages hold them: `book/decision_guide.toml` (advice), `book/front.toml` (questions, surprises). Each entry names the
`corner` behind it, may lead to a place in the book (`link`), and says what names no outcome (`say`). What a run can contradict
rests on a test of the ledger (`claim`, and the name that is `measured`), and has a sentence for each of its answers: `holds`,
`fails`, `undecided`. {value} in a sentence stands for the number with its interval, {why} for the answer's reason. A number
that is not there, is of a smoke test, or is withheld, is said to be so.
"""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from ffilab import draw
from ffilab.errors import UserError
from ffilab.judge import derived, verdicts
from ffilab.judge.claims import in_words
from ffilab.judge.estimates import Interval
from ffilab.judge.rules import NO, OPEN, YES, Occurs, Rule
from ffilab.paths import NOTEBOOKS, ROOT

FILE = ROOT / "book" / "decision_guide.toml"


@dataclass(frozen=True)
class Advice:
    """One piece of advice, or one question, in MyST; see above. part: of the page, in which it stands."""

    corner: str
    say: str
    part: str = ""
    link: str = ""
    claim: str = ""
    measured: str = ""
    holds: str = ""
    fails: str = ""
    undecided: str = ""
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
        advice = Advice(**{**entry, "measured": in_words(entry.get("measured", ""))})
        if not (NOTEBOOKS / advice.corner).is_dir():
            raise UserError(f"{path.name}: there is no corner {advice.corner!r}.")
        if problem := _problem(advice, rules):
            raise UserError(f"{path.name}: {advice.say[:40]!r} {problem}.")
        entries.append(advice)
    return entries


def _problem(advice: Advice, rules: dict[tuple[str, str], Rule]) -> str:
    forms = (advice.holds, advice.fails, advice.undecided)
    if not advice.claim:
        return "has answers, and names no claim" if any(forms) or advice.measured else ""
    rule = rules.get((advice.claim, advice.measured))
    if rule is None:
        return f"rests on {advice.claim}: {advice.measured!r}, which the ledger does not test"
    # That it never happens cannot be seen.
    needed = (advice.holds, advice.undecided) if isinstance(rule, Occurs) else forms
    return "" if all(needed) else "lacks a sentence for one of the answers"


def answer(advice: Advice, row: dict | None) -> str | None:
    """What this run answers to the test behind it: holds, does not hold, or undecided; None without a number that counts."""
    if row is None or row["verdict"] == verdicts.WITHHELD:
        return None
    part = next((part for part in row["parts"] if part["measured"] == advice.measured), None)
    return None if part is None or part["verdict"] == verdicts.NO_NUMBER else part["verdict"]


def evidence(advice: Advice, row: dict | None) -> str:
    """What this run found, as the ledger's row says; nothing for what rests on no claim."""
    if not advice.claim:
        return ""
    verdict = answer(advice, row)
    if row and row["verdict"] == verdicts.WITHHELD:
        return f"What this run found on it (claim {advice.claim}) is withheld: a control failed."
    if verdict is None:
        smoke = row is not None and row.get("provenance", {}).get("is_result") is False
        return f"This run has no number on it (claim {advice.claim}){': it was a smoke test' * smoke}."
    part = next(part for part in row["parts"] if part["measured"] == advice.measured)
    form = {YES: advice.holds, NO: advice.fails, OPEN: advice.undecided}[verdict]
    sentence = form.format(value=value_of(row, advice.measured), why=draw.plain(part["reason"]))
    return sentence + " The page of this number is stale." * bool(row.get("stale"))


def value_of(row: dict, name: str) -> str:
    """A measured number of a row with its interval: `1.13 [1.12, 1.15]`; without one where there is none."""
    value, (low, high) = row["measured"][name], row["interval"][name]
    if low == high:
        return f"{value:,.3g}" + ("" if name in row["counted"] else " (all values alike)")
    interval = Interval(value, low, high)
    return draw.text(interval) if interval.is_known else f"{value:.3g} (too few runs for an interval)"
