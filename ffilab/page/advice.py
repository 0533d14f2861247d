"""What this copy found on a question, for pages that are no chapter: the front page and the decision guide.

`book/front.toml` and `book/decision_guide.toml` hold the entries. Each names the `chapter` behind it, may lead to a
place in the book (`link`), and says first what names no outcome, a mechanism (`say`). What a run can contradict is a
sentence as in a chapter's sentences.toml (ffilab/judge/sentences.py), poured from that chapter's numbers. `each`:
sentences of several items, poured in as {each}. A number that is not there, is of a smoke test, or is withheld, is said
to be so; what was said first stands all the same.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from ffilab.judge import ledger, numbers, verdicts
from ffilab.judge.estimates import Interval
from ffilab.judge.poured import Poured, Text, grouped
from ffilab.judge.sentences import ANSWERS, Question, Sentence, sentence
from ffilab.measure.reading import Session
from ffilab.page import draw, words
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS, ROOT

FILE = ROOT / "book" / "decision_guide.toml"
NOT_HERE, SMOKE = "Not measured in this copy: {chapters}.", "This copy has no number on it: it is a smoke test."


@dataclass(frozen=True)
class Copy:
    """What this copy of the book found: the ledger's rows by claim, and by chapter the session of its page, if its
    records are there."""

    rows: dict[str, dict]
    sessions: Mapping[str, Session | None] = field(default_factory=dict)

    @property
    def ledger(self) -> list[dict]:
        """The rows of the ledger in its order."""
        return list(self.rows.values())


@dataclass(frozen=True)
class Advice:
    """One entry, in MyST; see above. part: of the page, in which it stands. found: None if no run can contradict it."""

    chapter: str
    say: str = ""
    part: str = ""
    link: str = ""
    found: Sentence | None = None
    each: tuple[Sentence, ...] = ()


def entries(path: Path = FILE, kind: str = "advice") -> list[Advice]:
    """Return all entries of a kind, in the order of the file. Raises UserError, with what is wrong."""
    keys = {field.name for field in fields(Advice)} - {"found", "each"}
    entries = []
    for entry in words.translated(tomllib.loads(path.read_text(encoding="utf-8"))[kind]):
        own = {key: entry.pop(key) for key in keys & set(entry)}
        about = repr(own.get("say", own["chapter"])[:40])
        try:
            each = tuple(sentence("each", one) for one in entry.pop("each", ()))
            advice = Advice(**own, found=sentence("found", entry, {"each"}) if entry else None, each=each)
        except ValueError as error:
            raise UserError(f"{path.name}: {about} {error}.") from None
        if not (NOTEBOOKS / advice.chapter).is_dir():
            raise UserError(f"{path.name}: there is no chapter {advice.chapter!r}.")
        if not (advice.say or advice.found):
            raise UserError(f"{path.name}: {about} says nothing.")
        entries.append(advice)
    return entries


def is_decided(advice: Advice, copy: Copy) -> bool | None:
    """Return whether its first question has yes or no for an answer; None without an answer that is given."""
    answer = None if absent(advice, copy) else _answers(advice.found, advice.chapter, copy)[0]
    return None if answer is None else answer in ANSWERS[:2]


def evidence(advice: Advice, copy: Copy) -> str:
    """Return what this copy found; nothing for what rests on no number, and for what was not measured, which a page
    says once (`unmeasured`)."""
    if not advice.found or not is_measured(advice.chapter, copy):
        return ""
    if reason := absent(advice, copy):
        return reason
    each = Text(grouped(_poured(one, advice.chapter, copy) for one in advice.each))
    said = _poured(advice.found, advice.chapter, copy, each=each)
    asked = [question.claim for question in advice.found.questions if question.claim]
    return said + words.translated(" The page of this number is stale.") * any(
        copy.rows[claim].get("stale") for claim in asked
    )


def absent(advice: Advice, copy: Copy) -> str:
    """Return in a sentence why this copy gives no number; empty if it has all that the entry asks for."""
    found = advice.found
    asked = {*(question.number for question in found.questions), *found.poured.values()} if found else set()
    # What the ledger withholds, no page tells, nor what most of stayed disturbed.
    parts = [part for row in copy.ledger if row["chapter"] == advice.chapter for part in row["parts"]]
    reasons = [part["reason"] for part in parts if part["number"] in asked and part["verdict"] == verdicts.WITHHELD]
    withheld = words.translated("This run's number is withheld: {why}.")
    if reasons:
        return withheld.format(why=draw.plain(reasons[0]))
    if not is_measured(advice.chapter, copy):
        return words.translated(NOT_HERE).format(chapters=advice.chapter)
    session = copy.sessions[advice.chapter]
    if not session.budget.is_result:
        return words.translated(SMOKE)
    why = next(filter(None, map(numbers.numbers_of(session).disturbed, sorted(asked))), "")
    return withheld.format(why=draw.plain(why)) if why else ""


def is_measured(chapter: str, copy: Copy) -> bool:
    """Has this copy a session of the chapter, of which its claims, if it has any, were judged? Records of another
    version are not."""
    judged = [row["provenance"] for row in copy.rows.values() if row["chapter"] == chapter]
    return copy.sessions.get(chapter) is not None and (any(judged) or not judged)


def unmeasured(entries: Iterable[Advice], copy: Copy, link: Callable[[str], str]) -> str:
    """Say of which chapters this copy has no number for these entries; empty if it has all. link: to a place."""
    lacking = sorted({one.chapter for one in entries if one.found and not is_measured(one.chapter, copy)})
    chapters = ", ".join(link(f"notebooks/{chapter}/{chapter}") for chapter in lacking)
    return words.translated(NOT_HERE).format(chapters=chapters) if lacking else ""


def _answers(asked: Sentence, chapter: str, copy: Copy) -> tuple[str | None, ...]:
    """Return what the rules answer: those of the ledger as its rows say, the others from the chapter's numbers."""
    session = copy.sessions[chapter]

    def answer(question: Question) -> str | None:
        if not question.claim:
            return question.answer(session, numbers.numbers_of(session))
        part = ledger.part_of(copy.rows.get(question.claim), question.number)
        return part["verdict"] if part.get("verdict") in ANSWERS else None

    return tuple(map(answer, asked.questions))


def _poured(asked: Sentence, chapter: str, copy: Copy, **further: str) -> str:
    form = asked.form(_answers(asked, chapter, copy))
    found = numbers.numbers_of(copy.sessions[chapter])
    values = {alias: Poured(found.told(name)) for alias, name in asked.poured.items()}
    return (asked.few if form is None else form).format(**values, **further)


def value_of(row: dict, name: str) -> str:
    """Return a measured number of a row with its interval: `1.13 [1.12, 1.15]`; without one where there is none."""
    value, (low, high) = row["numbers"][name], row["interval"][name]
    if low == high:
        return f"{value:,.3g}" + ("" if name in row["counted"] else " (all values alike)")
    interval = Interval(value, low, high)
    return draw.text(interval) if interval.is_known else f"{draw.number(value, 0)} (too few runs for an interval)"
