"""The map of corners: level by cost, each corner with its verdict and a link to the section that measured it.

An SVG whose texts are texts, drawn with the colours of the page; the same as a table beneath, which takes its place on a phone.
The level is the talk's sorting; the verdict is that of the corner's test in the ledger.
"""

from collections import Counter
from dataclasses import dataclass

from ffilab.judge import derived, ledger, verdicts
from ffilab.judge.derived import COSTS, LEVELS, Corner
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.judge.verdicts import NOT_MEASURED, WITHHELD
from ffilab.page.templates import filled

NOT_TESTED, SHOWN = "not tested here", "shown, and not judged"
NO_NUMBER = "no number here"
# The column asks: costs memory, time or correctness?
SAID = {YES: "yes, here", NO: "not here", OPEN: "too close to call here"}
# How each state is marked: its class and a sign, so that no colour is needed; the template has the shapes. Colours: book/_static/verdicts.css.
MARKS = {YES: ("holds", "●"), NO: ("fails", "✕"), OPEN: ("open", "◆"), WITHHELD: ("withheld", "▲")}
PLAIN = ("dim", "·")
# Measures of the picture, in its own units.
COLUMN, LINE, HEAD, ROW, PAD = 233, 40, 30, 26, 14
COLUMNS = {**{cost: f"costs {cost}?" for cost in COSTS}, "": "neither judged here"}


@dataclass(frozen=True)
class Place:
    """A corner with its state: one of those above or of rules.py, and why."""

    corner: Corner
    state: str
    why: str = ""
    stale: bool = False

    @property
    def word(self) -> str:
        """Return the state in words, with a note if the page is stale."""
        said = SAID.get(self.state, self.state)
        return f"{said} (page is stale)" if self.stale else said

    @property
    def link(self) -> str:
        """Return the address of the section, seen from a page in `book/`."""
        page, _, anchor = self.corner.page.partition("#")
        return f"../{page}.html{'#' * bool(anchor)}{anchor}" if page else ""

    @property
    def mark(self) -> tuple[str, str]:
        return MARKS.get(self.state, PLAIN)


def places(corners: list[Corner], rows: list[dict], identifier: str) -> list[Place]:
    """Return every corner with its state. Corners that the talk sorts by cost have the state that the claim on corners gave them."""
    by_claim = {row["id"]: row for row in rows}

    def place(corner: Corner) -> Place:
        if not corner.claim:
            return Place(corner, SHOWN if corner.page else NOT_TESTED)
        row = by_claim.get(corner.claim, {})
        part = ledger.part_of(*(by_claim.get(identifier), corner.test) if corner.bold else (row, corner.number))
        if not part:
            measured = row.get("verdict", NOT_MEASURED) not in (NOT_MEASURED, verdicts.NOT_WRITTEN)
            return Place(corner, NO_NUMBER if measured else NOT_MEASURED, row.get("reason", ""))
        if part["verdict"] == verdicts.NO_NUMBER:
            return Place(corner, NO_NUMBER, part["reason"])
        return Place(corner, part["verdict"], part["reason"], bool(row.get("stale")))

    return list(map(place, corners))


def laid_out(shown: list[Place]) -> dict:
    """Where everything of the picture stands: its size, a band for each level, and each corner in its cell."""
    top, bands, entries = HEAD, [], []
    for level in LEVELS:
        of_level, first = [place for place in shown if place.corner.level == level], top + ROW + PAD + 9
        cells = [[place for place in of_level if place.corner.costs == cost] for cost in COLUMNS]
        height = PAD + LINE * max(1, *map(len, cells))
        bands.append({"level": level, "top": top, "height": height})
        for x, cell in enumerate(cells):
            entries += [{"place": one, "x": x * COLUMN + PAD, "y": first + y * LINE} for y, one in enumerate(cell)]
        top += ROW + height
    return {"width": len(COLUMNS) * COLUMN, "height": top, "bands": bands, "entries": entries, "column": COLUMN}


def page(rows: list[dict]) -> str:
    """Write the map for a page of `book/`: the picture, or the list on a phone; and the table, folded."""
    identifier, corners = derived.read()
    shown = places(corners, rows, identifier)
    states = Counter(SAID.get(place.state, place.state) for place in shown if place.corner.claim)
    return filled(
        "map.md", shown=shown, claim=identifier, states=states, columns=COLUMNS, pad=PAD, row=ROW, **laid_out(shown)
    )
