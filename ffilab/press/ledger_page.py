"""The page of the ledger: a figure, a card for each claim, and the same rows as files to take away.

Which cards are shown is chosen by `book/_static/ledger.js`, from the classes of the cards; without it all are.
"""

import html
import json
import math
import re
from collections import Counter
from pathlib import Path

import pandas as pd

from ffilab import draw
from ffilab.draw import plain
from ffilab.judge import basis, ledger, verdicts
from ffilab.judge.rules import NO
from ffilab.press import advice, places
from ffilab.press.files import slug
from ffilab.press.ledger_figure import given, plot_summary, summary

# Of a claim with more lines than this, they are folded.
MOST_UNFOLDED = 2
# Of what does not hold, so much is said again beside what the author saw.
MOST_SAID = 3
# How a verdict is marked: a badge of sphinx-design.
BADGES = {
    verdicts.HOLDS: "success",
    verdicts.MIXED: "info",
    verdicts.FAILS: "danger",
    verdicts.WITHHELD: "warning",
    verdicts.AGREES: "success",
    verdicts.DIFFERS: "danger",
}
# What a card says of the published size where none is asked for.
NO_SIZE = "no size asked for"
DOCUMENTS = {
    "A": "A: a talk on the Python FFI",
    "B": "B: a post on forged strings",
    "C": "C: a post on the GIL",
    "D": "D: a post on code placement",
}


def since(row: dict) -> str:
    """Return a sentence, with a space before it, if the page of a verdict is stale."""
    return f" Its page is stale: {', '.join(row['stale'])} changed since." if row["stale"] else ""


def page(rows: list[dict], tree: Path | None = None) -> str:
    """Say how far to trust the verdicts and which claims got which; then show every claim on a card, by documents.

    tree: the assembled sources, in which the sections are looked up; without it a card links to its chapter.
    """
    lines = [trust(rows), "", summary(rows), "", *overview(rows), "", "```{raw} html", TO_TAKE, choosers(rows), "```"]
    for document in dict.fromkeys(row["id"][0] for row in rows):
        lines += ["", f"## Document {DOCUMENTS.get(document, document)}"]
        lines += [card(row, tree) for row in rows if row["id"].startswith(document)]
    provenance = {row["chapter"]: row["provenance"] for row in rows if row["provenance"]}
    lines += ["", "## Measured on", ""]
    lines += [
        f"- {{doc}}`{chapter} <../notebooks/{chapter}/{chapter}>`: {plain(facts['cpu'])}, {facts['cores']} cores, {plain(facts['system'])}, "
        f"{facts['date']}, commit {facts['commit']}, budget {facts['budget']}. Rests on {basis.in_words(facts.get('rests_on'))}."
        for chapter, facts in provenance.items()
    ]
    lines += ["", "```{raw} html", '<script defer src="../_static/ledger.js"></script>', "```"]
    return "\n".join(lines) + "\n"


def overview(rows: list[dict]) -> list[str]:
    """List the claims by verdict, with the answers to their parts and the published size; kinds without a verdict come last."""
    lines = ["| Verdict | Claims | Published size agrees | differs | open |", "|---|---|---|---|---|"]
    for verdict in given(rows):
        of_it = [row for row in rows if row["verdict"] == verdict]
        sizes = [
            ", ".join(row["id"] for row in of_it if row["size"] == size)
            for size in (verdicts.AGREES, verdicts.DIFFERS, verdicts.OPEN)
        ]
        claims = ", ".join(to_card(row) + f" ({ledger.counts_of(row)})" * (verdict == verdicts.MIXED) for row in of_it)
        lines.append(f"| {badge(verdict)} | {claims} | {' | '.join(sizes)} |")
    return lines


def to_card(row: dict) -> str:
    return f"[{row['id']}](#claim-{row['id'].lower()})"


TO_TAKE = (
    '<p class="ffi-take">The ledger of this run, to take away: <a download href="../_static/ledger.csv">CSV</a>, a line for each test; '
    '<a download href="../_static/ledger.json">JSON</a>, an entry for each claim.</p>'
)


def choosers(rows: list[dict]) -> str:
    """Make select boxes for verdict, document and chapter, with the number of claims; hidden without JavaScript."""
    boxes = []
    for name, values in (
        ("verdict", [row["verdict"] for row in rows]),
        ("size", [row["size"] or NO_SIZE for row in rows]),
        ("document", [row["id"][0] for row in rows]),
        ("chapter", [row["chapter"] for row in rows if row["chapter"]]),
    ):
        options = "".join(
            f'<option value="{slug(value)}">{html.escape(DOCUMENTS.get(value, value).replace("_", " "))} ({count})</option>'
            for value, count in Counter(values).items()
        )
        label = {"size": "published size"}.get(name, name)
        boxes.append(f'<label>{label} <select name="{name}"><option value="">all</option>{options}</select></label>')
    return (
        f'<form class="ffi-choose" hidden aria-label="Choose claims">{"".join(boxes)}<button type="reset">show all</button>'
        '<output aria-live="polite"></output></form>'
    )


def badge(verdict: str) -> str:
    return f"{{bdg-{BADGES.get(verdict, 'muted')}}}`{verdict}`"


def card(row: dict, tree: Path | None = None) -> str:
    """Show one claim: verdict, what was said and published, what was measured here, why the verdict is so, and where."""
    name = row["id"].lower()
    classes = [f"ffi-verdict-{slug(row['verdict'])}", f"ffi-document-{name[0]}"]
    classes += [f"ffi-size-{slug(row['size'] or NO_SIZE)}"]
    classes += [f"ffi-chapter-{slug(row['chapter'])}"] if row["chapter"] else []
    lines = [
        "",
        f"(claim-{name})=",
        "::::::{card}",
        f":class-card: ffi-claim {' '.join(classes)}",
        f'**{row["id"]}** {badge(row["verdict"])} <a class="ffi-link" href="#claim-{name}">link to {row["id"]}</a>',
        "",
        f"**{plain(row['claim'])}**",
        "",
        f"*Said in* {plain(row['where'])}.",
        "",
        f"*Published:* {published(row['published'])}.",
        "",
    ]
    points = findings(row)
    lines += [answered(row), ""]
    if len(points) > MOST_UNFOLDED:
        points = [f":::::{{dropdown}} What was measured here, and why: {len(points)} lines", *points, ":::::"]
    lines += points
    if ending := f"{plain(row['takes'])}{since(row)}".strip():
        lines += ["", ending]
    if fair := beside(row):
        lines += ["", fair]
    where = f"{{doc}}`../notebooks/{row['chapter']}/{row['chapter']}`" if row["chapter"] else ""
    if tree and row["section"]:
        where = places.section(tree, row["section"])
    if where:
        lines += ["", f"*{'See' if row['verdict'] == verdicts.NOT_MEASURABLE else 'Measured in'}* {where}"]
    return "\n".join([*lines, "::::::"])


def answered(row: dict) -> str:
    """Say the verdict with the answers that are behind it, and whether the published size agrees; or the kind of the claim."""
    if not row["parts"]:
        what = "Kind" if row["verdict"] == verdicts.NOT_MEASURABLE else "Verdict"
        return f"*{what}:* {row['verdict']}: {plain(row['reason']).rstrip('.')}."
    if row["verdict"] == verdicts.BY_CONSTRUCTION:
        return f"*Kind:* {row['verdict']}, so there is no verdict."
    qualified = f" ({row['qualifier']})" if row["qualifier"] else ""
    if not qualified and sum(map(ledger.is_part, row["parts"])) > 1:
        qualified = f" ({ledger.counts_of(row)})"
    size = f" *Published size:* {badge(row['size'])}." if row["size"] else ""
    return f"*Verdict:* {row['verdict']}{qualified}.{size}"


def findings(row: dict) -> list[str]:
    """List each number that was handed in, with the answers that rest on it; then what has no test."""
    points = []
    for name in dict.fromkeys([*(part["measured"] for part in row["parts"]), *row["measured"]]):
        number = advice.value_of(row, name) if name in row["measured"] else "no number here"
        number += " (withheld)" * ledger.is_withheld(row, name)
        further = "".join(f"; {what} {draw.bounds(*bounds)}" for what, bounds in row["beside"].get(name, {}).items())
        answers = [part for part in row["parts"] if part["measured"] == name]
        lines = [f"- {plain(name)}: **{number}**{further}"]
        lines += [
            f"  - {plain(_without(name, part))}: *{part['verdict']}*; {plain(part['reason'])}" for part in answers
        ]
        points.append("\n".join(lines))
    return points + [f"- Not tested: {plain(part)}" for part in row["untested"]]


def _without(name: str, part: dict) -> str:
    """Title a part that stands under its number, without repeating the number's name."""
    return ledger.part_title(
        part | {"part": "the side" if part["kind"] == "side" else "the claim"} if part["part"] == name else part
    )


def beside(row: dict) -> str:
    """Tell what the author saw, what this run refutes, and what differs."""
    paragraphs = (
        ("What the author saw.", plain(row["saw"])),
        ("This run.", refuted(row)),
        ("What differs.", plain(row["differs"])),
    )
    return "\n\n".join(f"*{title}* {text}" for title, text in paragraphs if text)


def refuted(row: dict) -> str:
    """Name the parts that are answered with no, with their numbers; empty if there are none."""
    words = [
        f"No: {plain(ledger.part_title(part))}, with {advice.value_of(row, part['measured'])}: {plain(part['reason'])}."
        for part in row["parts"]
        if part["verdict"] == NO and ledger.is_part(part) and part["measured"] in row["measured"]
    ]
    further = ["The other parts that are answered so are listed above."] * (len(words) > MOST_SAID)
    return " ".join(words[:MOST_SAID] + further)


def published(text: str) -> str:
    """Say what a source published, and if so that it is no number."""
    return plain(text) if re.search(r"\d", text) else f"no number ({plain(text)})"


def trust(rows: list[dict]) -> str:
    """Say how many claims were tested, how many wrong answers to expect at most, and what was withheld."""
    count = Counter(row["verdict"] for row in rows)
    tested = sum(count[verdict] for verdict in verdicts.TESTED)
    words = [f"Of {len(rows)} claims this run tested {tested}. {ledger.trusted(rows)}"]
    kinds = [kind for kind in (verdicts.BY_CONSTRUCTION, verdicts.NOT_MEASURABLE) if count[kind]]
    if kinds:
        words.append(
            f"No verdict is given where a claim is {' or '.join(f'{kind} ({count[kind]})' for kind in kinds)}."
        )
    others = [f"{verdict}: {number}" for verdict, number in count.items() if verdict not in (*verdicts.TESTED, *kinds)]
    if others:
        words.append(f"Not tested: {', '.join(others)}.")
    if withheld := [part for row in rows for part in row["parts"] if part["verdict"] == verdicts.WITHHELD]:
        words.append(
            f"{len(withheld)} of {sum(len(row['parts']) for row in rows)} answers are withheld; the cards say why."
        )
    return " ".join(words)


OF_CLAIM = ("id", "where", "claim", "published", "kind", "verdict", "qualifier", "size", "chapter", "section")


def as_table(rows: list[dict]) -> pd.DataFrame:
    """Return the ledger with a line for each test of each claim, and one for a claim without a test."""
    lines = []
    for row in rows:
        facts = row["provenance"]
        for part in row["parts"] or [{}]:
            name = part.get("measured", "")
            low, high = row["interval"].get(name, (None, None))
            lines.append(
                {key: row[key] for key in OF_CLAIM}
                | {
                    "test": part.get("part", ""),
                    "test_kind": part.get("kind", ""),
                    "experiment": part.get("experiment", ""),
                    "measured": name,
                    "value": row["measured"].get(name),
                    "low": low,
                    "high": high,
                    "answer": part.get("verdict", ""),
                    "why": part.get("reason", row["reason"]),
                    **{key: facts.get(key, "") for key in ("cpu", "system", "date", "commit", "budget")},
                }
            )
    return pd.DataFrame(lines)


def no_formula(cell):
    """Quote a text that a spreadsheet would compute: it may come from someone else's records."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell


def finite(value):
    """Replace numbers that JSON does not know, however deep, by None."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write(tree: Path, rows: list[dict]) -> None:
    """Write the generated part of the page into an assembled tree, and its figure and files beside it."""
    static, generated = tree / "book" / "_static", tree / "book" / "_generated"
    for folder in (static, generated):
        folder.mkdir(parents=True, exist_ok=True)
    (generated / "ledger.md").write_text(page(rows, tree))
    for mode, drawn in draw.pictures(lambda figure: plot_summary(figure, rows), (7.2, 3.2), "").items():
        (static / f"ledger-{mode}.svg").write_bytes(drawn)
    as_table(rows).map(no_formula).to_csv(static / "ledger.csv", index=False)
    (static / "ledger.json").write_text(json.dumps(finite(rows), indent=1, ensure_ascii=False, allow_nan=False))
