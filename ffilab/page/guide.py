"""The decision guide: steps, each a question with the measured tables behind its answers, and what this run found on the advice.

`book/decision_guide.toml` holds the steps (`[[step]]`, with their `[[step.table]]`), the advice (`[[advice]]`, see advice.py; its `part`
names the step) and the points of the checklist (`[[check]]`).
"""

import tomllib
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

from ffilab.page import advice
from ffilab.page.places import Shown, again, link
from ffilab.page.templates import filled
from ffilab.run.errors import UserError

FILE = advice.FILE


@dataclass(frozen=True)
class Step:
    """name: what advice calls it as its `part`. short: the answer in a line. answers: the choices, each with when it is one."""

    name: str
    title: str
    question: str
    short: str
    answers: tuple[str, ...] = ()
    tables: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Point:
    """A point of the checklist, and the places of this book that do it."""

    say: str
    links: tuple[str, ...]


def steps(path: Path = FILE) -> list[Step]:
    """Read the steps in order. Raises UserError for advice that belongs to none of them."""
    declared = [
        Step(**{**entry, "tables": tuple(Shown(**table) for table in entry.pop("tables", ()))})
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["step"]
    ]
    if homeless := {advised.part for advised in advice.read(path)} - {step.name for step in declared}:
        raise UserError(f"{path.name}: advice for steps that are not there: {', '.join(sorted(homeless))}.")
    return declared


def points(path: Path = FILE) -> list[Point]:
    """Read the checklist."""
    keys = {field.name for field in fields(Point)}
    return [
        Point(**{key: entry[key] for key in keys}) for entry in tomllib.loads(path.read_text(encoding="utf-8"))["check"]
    ]


def steps_page(tree: Path, rows: list[dict]) -> str:
    """Show every step: question, the short answer, the choices, its advice with what this run found, and the tables behind it."""
    by_claim = {row["id"]: row for row in rows}
    return filled(
        "guide.md",
        steps=steps(),
        entries=advice.read(),
        evidence=lambda advised: advice.evidence(advised, by_claim),
        link=partial(link, tree),
        again=lambda shown: again(shown, tree),
    )


def checklist_page(tree: Path) -> str:
    """List the points of the checklist with links to the places that do them."""
    return filled("checklist.md", points=points(), link=partial(link, tree))


def write(tree: Path, rows: list[dict]) -> None:
    """Write the generated parts of the page."""
    folder = tree / "book" / "_generated"
    (folder / "decision_guide.md").write_text(steps_page(tree, rows))
    (folder / "checklist.md").write_text(checklist_page(tree))
