"""The map of corners: level by cost, each corner with its verdict and a link to the section that measured it.

An SVG whose texts are texts, drawn with the colours of the page; the same as a table beneath, which takes its place on a phone.
The level is the talk's sorting; the verdict is that of the corner's test in the ledger.
"""

import html
from dataclasses import dataclass

from ffilab.judge import derived, verdicts
from ffilab.judge.derived import COSTS, LEVELS, Corner
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.judge.verdicts import WITHHELD

NOT_TESTED, SHOWN = "not tested here", "shown, and not judged"
NOT_MEASURED, NO_NUMBER = "not measured yet", "no number here"
# How each state is marked: a shape beside the word, so that no colour is needed. Colours: book/_static/map.css.
SHAPES = {
    YES: '<circle cx="0" cy="0" r="6"/>',
    NO: '<path d="M-5-5 5 5M-5 5 5-5"/>',
    OPEN: '<path d="M0-6 6 0 0 6-6 0Z"/>',
    WITHHELD: '<path d="M0-6 6 5H-6Z"/>',
}
PLAIN = '<circle cx="0" cy="0" r="3"/>'
SIGNS = {YES: "●", NO: "✕", OPEN: "◆", WITHHELD: "▲"}
CLASSES = {YES: "holds", NO: "fails", OPEN: "open", WITHHELD: "withheld"}
# Measures of the picture, in its own units.
COLUMN, LINE, HEAD, ROW, PAD = 233, 40, 30, 26, 14
COLUMNS = (*COSTS, "")
TITLES = {"reliability": "costs reliability", "performance": "costs performance", "": "neither judged here"}


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
        return f"{self.state} (page is stale)" if self.stale else self.state

    @property
    def link(self) -> str:
        """Return the address of the section, seen from a page in `book/`."""
        page, _, anchor = self.corner.page.partition("#")
        return f"../{page}.html{'#' * bool(anchor)}{anchor}" if page else ""


def places(corners: list[Corner], rows: list[dict], identifier: str) -> list[Place]:
    """Return every corner with its state. Corners that the talk sorts by cost have the state that the claim on corners gave them."""
    by_claim = {row["id"]: row for row in rows}
    return [_place(corner, by_claim, by_claim.get(identifier, {})) for corner in corners]


def _place(corner: Corner, by_claim: dict[str, dict], judged: dict) -> Place:
    if not corner.claim:
        return Place(corner, SHOWN if corner.page else NOT_TESTED)
    row = by_claim.get(corner.claim, {})
    name, parts = (corner.test, judged.get("parts", [])) if corner.bold else (corner.measured, row.get("parts", []))
    part = next((part for part in parts if part["measured"] == name and part["kind"] != "size"), None)
    if part is None:
        measured = row.get("verdict", verdicts.NOT_MEASURED) not in (verdicts.NOT_MEASURED, verdicts.NOT_WRITTEN)
        return Place(corner, NO_NUMBER if measured else NOT_MEASURED, row.get("reason", ""))
    if part["verdict"] == verdicts.NO_NUMBER:
        return Place(corner, NO_NUMBER, part["reason"])
    return Place(corner, part["verdict"], part["reason"], bool(row.get("stale")))


def cells(shown: list[Place]) -> dict[tuple[str, str], list[Place]]:
    return {
        (level, cost): [place for place in shown if (place.corner.level, place.corner.costs) == (level, cost)]
        for level in LEVELS
        for cost in COLUMNS
    }


def picture(shown: list[Place]) -> str:
    """Draw the map as an SVG. For a screen reader it is a group of links with a title and a description."""
    by_cell = cells(shown)
    heights = {level: PAD + LINE * max(1, *(len(by_cell[level, cost]) for cost in COLUMNS)) for level in LEVELS}
    width, height = len(COLUMNS) * COLUMN, HEAD + sum(ROW + height for height in heights.values())
    lines = [
        f'<svg class="ffi-map" viewBox="0 0 {width} {height}" role="group" aria-labelledby="map-title map-desc">',
        '<title id="map-title">Map of corners</title>',
        f'<desc id="map-desc">{html.escape(described(shown))}</desc>',
    ]
    for number, cost in enumerate(COLUMNS):
        lines.append(f'<text class="head" x="{number * COLUMN + PAD}" y="20">{TITLES[cost]}</text>')
    top = HEAD
    for level in LEVELS:
        lines.append(f'<text class="level" x="2" y="{top + 18}">{level} level</text>')
        top += ROW
        for number, cost in enumerate(COLUMNS):
            x = number * COLUMN
            lines.append(f'<rect x="{x}" y="{top}" width="{COLUMN - 6}" height="{heights[level] - 6}" rx="6"/>')
            for line, place in enumerate(by_cell[level, cost]):
                lines.append(entry(place, x + PAD, top + PAD + 9 + line * LINE))
        top += heights[level]
    return "\n".join([*lines, "</svg>"])


def entry(place: Place, x: int, y: int) -> str:
    """Draw one corner: shape, name (a link, if the book looks at it), and the verdict in words."""
    name = html.escape(place.corner.name)
    bold = ' class="bold"' if place.corner.bold else ""
    mark = f'<g class="mark" transform="translate({x} {y - 5})">{SHAPES.get(place.state, PLAIN)}</g>'
    text = f'{mark}<text{bold} x="{x + 14}" y="{y}">{name}</text><text class="word" x="{x + 14}" y="{y + 16}">{place.word}</text>'
    state = CLASSES.get(place.state, "dim")
    if place.link:
        label = html.escape(f"{place.corner.name}: {place.word}")
        text = f'<a href="{html.escape(place.link)}" aria-label="{label}">{text}</a>'
    return f'<g class="{state}">{text}</g>'


def described(shown: list[Place]) -> str:
    """Describe the map in a sentence or two, with the states of this run."""
    tested = [place for place in shown if place.corner.claim]
    counts = {
        state: sum(place.state == state for place in tested) for state in dict.fromkeys(place.state for place in tested)
    }
    answers = ", ".join(f"{number} {state}" for state, number in counts.items())
    return (
        f"{len(shown)} corners by the level and the cost that the talk names. Of {len(tested)} that have a test here: {answers}. "
        "The same stands in the table below."
    )


def table(shown: list[Place]) -> str:
    """Show the map as a table."""
    rows = []
    for place in shown:
        name = html.escape(place.corner.name)
        name = f"<strong>{name}</strong>" if place.corner.bold else name
        name = f'<a href="{html.escape(place.link)}">{name}</a>' if place.link else name
        claim = (
            f'<a href="ledger.html#claim-{place.corner.claim.lower()}">{place.corner.claim}</a>'
            if place.corner.claim
            else ""
        )
        state = f'<span class="{CLASSES.get(place.state, "dim")}">{SIGNS.get(place.state, "·")} {place.word}</span>'
        cells_ = (
            name,
            place.corner.level,
            place.corner.costs,
            state,
            html.escape(place.corner.shows),
            claim,
            html.escape(place.why),
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells_) + "</tr>")
    heads = ("corner", "level", "cost", "here", "what is looked at", "claim", "why")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(rows) + "\n</tbody></table>"


def short(shown: list[Place]) -> str:
    """Show the map as a list, for screens on which the picture is too small to read."""
    points = []
    for place in shown:
        if place.link:
            state = f'<span class="{CLASSES.get(place.state, "dim")}">{SIGNS.get(place.state, "·")} {place.word}</span>'
            cost = f", {place.corner.costs}" if place.corner.costs else ""
            name = f'<a href="{html.escape(place.link)}">{html.escape(place.corner.name)}</a>'
            points.append(f"<li>{name} ({place.corner.level}{cost}): {state}</li>")
    rest = [html.escape(place.corner.name) for place in shown if not place.link]
    points += [f"<li>{NOT_TESTED}: {', '.join(rest)}</li>"] if rest else []
    return '<ul class="ffi-map-list">\n' + "\n".join(points) + "\n</ul>"


def page(rows: list[dict]) -> str:
    """Write the map for a page of `book/`: the picture, or the list on a phone; and the table, folded."""
    identifier, corners = derived.read()
    shown = places(corners, rows, identifier)
    body = "\n".join([picture(shown), short(shown)])
    folded = f'<details class="ffi-map-table"><summary>The map as a table</summary>\n{table(shown)}\n</details>'
    note = (
        "Bold: the corners that the talk sorts by what they cost. The level is the talk's judgement, and no measurement decides it; the verdict "
        f'is that of one named test for each corner, and all of them together decide <a href="ledger.html#claim-{identifier.lower()}">{identifier}</a>.'
    )
    return f"```{{raw}} html\n{body}\n```\n\n{note}\n\n```{{raw}} html\n{folded}\n```\n"
