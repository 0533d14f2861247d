"""The corners that the talk lists, as a table: level and cost by the talk, and what this run says of each, with
links."""

import tomllib
from dataclasses import dataclass
from functools import cache

from ffilab.judge import ledger
from ffilab.judge.claims import in_words
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.judge.verdicts import NO_NUMBER, WITHHELD
from ffilab.page.templates import filled
from ffilab.run.paths import ROOT

FILE = ROOT / "book" / "corners.toml"
# By answer: a class (its colour stands in book/_static/corners.css), a sign, so that no colour is needed, and what is
# said of it.
SAID = {
    YES: ("holds", "●", "yes, here"),
    NO: ("fails", "✕", "not here"),
    OPEN: ("open", "◆", "too close to call here"),
    WITHHELD: ("withheld", "▲", "withheld"),
    NO_NUMBER: ("dim", "·", "no number here"),
}
SHOWN, NOT_TESTED = ("dim", "·", "shown, and not judged"), ("dim", "·", "not tested here")


@dataclass(frozen=True)
class Corner:
    """A corner of the talk: see book/corners.toml."""

    name: str
    level: str
    bold: bool = False
    costs: str = ""
    page: str = ""
    claim: str = ""
    number: str = ""
    shows: str = ""

    @property
    def link(self) -> str:
        """The address of its section, seen from a page in `book/`; empty if it has none."""
        page, hash_sign, anchor = self.page.partition("#")
        return f"../{page}.html{hash_sign}{anchor}" if page else ""


@cache
def corners() -> list[Corner]:
    """All corners, in the order of the file."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["corner"]
    return [Corner(**{**entry, "number": in_words(entry.get("number", ""))}) for entry in entries]


def table(rows: list[dict]) -> list[dict]:
    """A row for each corner: the corner, the class, sign and words for what the ledger says of it, and why."""
    by_claim = {row["id"]: row for row in rows}
    shown = []
    for corner in corners():
        row = by_claim.get(corner.claim, {})
        part = ledger.part_of(row, corner.number)
        untested = SHOWN if corner.page else NOT_TESTED
        look, sign, words = SAID[part.get("verdict", NO_NUMBER)] if corner.claim else untested
        # Its claim may have no verdict, as a warning has none.
        words += ", beside the claim" * (part.get("experiment") == "beside")
        words += " (page is stale)" * bool(row.get("stale"))
        shown.append(
            {"corner": corner, "look": look, "sign": sign, "words": words, "why": (part or row).get("reason", "")}
        )
    return shown


def page(rows: list[dict]) -> str:
    """The table for a page of `book/`."""
    return filled("corners.md", shown=table(rows))
