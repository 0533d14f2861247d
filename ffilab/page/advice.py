"""Advice and questions about mechanisms, and beside each what this run found, in the words of its answer.

Files beside the pages hold them: `book/decision_guide.toml` (advice), `book/front.toml` (questions, surprises). Each entry names the
`chapter` behind it, may lead to a place in the book (`link`), and says what names no outcome (`say`). What a run can contradict
is a sentence as in a chapter's sentences.toml (ffilab/judge/sentences.py): it asks a test of the ledger, and has a form for each answer.
{why} in a form stands for the answer's reason. A number that is not there, is of a smoke test, or is withheld, is said to be so.
"""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from ffilab.judge import ledger, verdicts
from ffilab.judge.estimates import Interval
from ffilab.judge.sentences import ANSWERS, Question, Sentence, sentence
from ffilab.page import draw
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS, ROOT

FILE = ROOT / "book" / "decision_guide.toml"


@dataclass(frozen=True)
class Advice:
    """One piece of advice, or one question, in MyST; see above. part: of the page, in which it stands. found: None if no run can
    contradict it."""

    chapter: str
    say: str
    part: str = ""
    link: str = ""
    found: Sentence | None = None
    # Of a question: rows of a kept table that answer it, or a claim whose verdict does.
    table: dict | None = None
    verdict_of: str = ""

    @property
    def ask(self) -> Question | None:
        return self.found.questions[0] if self.found else None


def read(path: Path = FILE, kind: str = "advice") -> list[Advice]:
    """All entries of a kind, in the order of the file. Raises UserError, with what is wrong."""
    keys = {field.name for field in fields(Advice)} - {"found"}
    entries = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))[kind]:
        own = {key: entry.pop(key) for key in keys & set(entry)}
        try:
            advice = Advice(**own, found=sentence(own["say"][:40], entry, {"why"}) if entry else None)
        except ValueError as error:
            raise UserError(f"{path.name}: {own['say'][:40]!r} {error}.") from None
        if not (NOTEBOOKS / advice.chapter).is_dir():
            raise UserError(f"{path.name}: there is no chapter {advice.chapter!r}.")
        if advice.found and [bool(question.claim) for question in advice.found.questions] != [True]:
            raise UserError(f"{path.name}: {advice.say[:40]!r} does not ask one claim.")
        entries.append(advice)
    return entries


def answer(advice: Advice, rows: dict[str, dict]) -> str | None:
    """What this run answers to the test behind it: yes, no or open; None without a number that is given."""
    verdict = ledger.part_of(rows.get(advice.ask.claim), advice.ask.number).get("verdict")
    return verdict if verdict in ANSWERS else None


def evidence(advice: Advice, rows: dict[str, dict]) -> str:
    """What this run found, as the ledger's rows say, by claim; nothing for what rests on no claim."""
    if not advice.ask:
        return ""
    claim, number = advice.ask.claim, advice.ask.number
    row, verdict = rows.get(claim, {}), answer(advice, rows)
    part = ledger.part_of(row, number)
    if part.get("verdict") == verdicts.WITHHELD:
        return f"What this run found on it (claim {claim}) is withheld: {draw.plain(part['reason'])}."
    if verdict is None:
        smoke = row.get("provenance", {}).get("is_result") is False
        return f"This run has no number on it (claim {claim}){': it was a smoke test' * smoke}."
    said = advice.found.form((verdict,)).format(value=value_of(row, number), why=draw.plain(part["reason"]))
    return said + " The page of this number is stale." * bool(row.get("stale"))


def value_of(row: dict, name: str) -> str:
    """A measured number of a row with its interval: `1.13 [1.12, 1.15]`; without one where there is none."""
    value, (low, high) = row["numbers"][name], row["interval"][name]
    if low == high:
        return f"{value:,.3g}" + ("" if name in row["counted"] else " (all values alike)")
    interval = Interval(value, low, high)
    return draw.text(interval) if interval.is_known else f"{draw.number(value, 0)} (too few runs for an interval)"
