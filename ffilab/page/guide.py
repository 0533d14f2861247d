"""The decision guide: six cards, each with a recommendation, what this run found, its price, and when it is wrong; and
the checklist.

`book/decision_guide.toml` holds the cards (`[[card]]`, with their `[[card.tables]]`) and the advice (`[[advice]]`, see
advice.py; its `part` names the card). `book/free_threading.toml` holds the points of the checklist (`[[check]]`).
"""

import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ffilab.page import advice, words
from ffilab.page.places import Shown, again, link
from ffilab.page.templates import filled
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT

FILE, CHECKS = advice.FILE, ROOT / "book" / "free_threading.toml"
# What advice may be on a card: what this run found, and more on the price or on when it is wrong.
ON_CARDS = ("", " price", " wrong")


@dataclass(frozen=True)
class Card:
    """name: what advice calls it as its `part`. say: the recommendation. links: the pages behind it."""

    name: str
    title: str
    say: str
    price: str
    wrong: str
    links: tuple[str, ...] = ()
    tables: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Point:
    """A point of the checklist, code before and after, and the places of this book that do it."""

    say: str
    links: tuple[str, ...]
    before: str = ""
    after: str = ""
    language: str = "cpp"


def cards() -> list[Card]:
    """Read the cards in order. Raises UserError for advice that belongs to none of them."""
    declared = [
        Card(**{**entry, "tables": tuple(Shown(**table) for table in entry.pop("tables", ()))})
        for entry in words.translated(tomllib.loads(FILE.read_text(encoding="utf-8"))["card"])
    ]
    known = {card.name + place for card in declared for place in ON_CARDS}
    if homeless := {advised.part for advised in advice.entries(FILE)} - known:
        raise UserError(f"{FILE.name}: advice for cards that are not there: {', '.join(sorted(homeless))}.")
    return declared


def points() -> list[Point]:
    """Read the checklist."""
    return [Point(**entry) for entry in tomllib.loads(CHECKS.read_text(encoding="utf-8"))["check"]]


def cards_page(tree: Path, copy: advice.Copy) -> str:
    """Show every card, its advice with what this run found, and the tables behind it."""
    return filled(
        "guide.md",
        cards=cards(),
        entries=advice.entries(),
        unmeasured=advice.unmeasured(advice.entries(), copy, partial(link, tree)),
        evidence=lambda advised: advice.evidence(advised, copy),
        link=partial(link, tree),
        # Tables are those of the English pages.
        again=lambda shown: "" if settings.language() else again(shown, tree),
    )


def checklist_page(tree: Path) -> str:
    """List the points of the checklist with their code and links to the places that do them."""
    return filled("checklist.md", points=points(), link=partial(link, tree))
