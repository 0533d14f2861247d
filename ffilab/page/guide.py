"""The decision guide: six cards, each with a recommendation, what this run found, its price, and when it is wrong; the
checklist; and questions with short answers.

`book/decision_guide.toml` holds the cards (`[[card]]`, with their `[[card.tables]]`) and the advice (`[[advice]]`, see
advice.py; its `part` names the card). `book/free_threading.toml` holds the points of the checklist (`[[check]]`), and
`book/questions.toml` the questions (`[[question]]`, advice whose `part` is the question).
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

FILE, CHECKS, QUESTIONS = advice.FILE, ROOT / "book" / "free_threading.toml", ROOT / "book" / "questions.toml"
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


def advised(entries: list[advice.Advice], tree: Path, copy: advice.Copy) -> dict:
    """What a page of advice is filled with."""
    return {
        "entries": entries,
        "unmeasured": advice.unmeasured(entries, copy, partial(link, tree)),
        "evidence": lambda entry: advice.evidence(entry, copy),
        "link": partial(link, tree),
    }


def cards_page(tree: Path, copy: advice.Copy) -> str:
    """Show every card, its advice with what this run found, and the tables behind it."""
    # Tables are those of the English pages.
    shown_again = {"again": lambda shown: "" if settings.language() else again(shown, tree)}
    return filled("guide.md", cards=cards(), **shown_again, **advised(advice.entries(), tree, copy))


def questions_page(tree: Path, copy: advice.Copy) -> str:
    """Answer what people ask, with what this run found."""
    return filled("questions.md", **advised(advice.entries(QUESTIONS, "question"), tree, copy))


def checklist_page(tree: Path) -> str:
    """List the points of the checklist with their code and links to the places that do them."""
    return filled("checklist.md", points=points(), link=partial(link, tree))
