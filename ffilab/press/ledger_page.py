"""The page of the ledger: a figure, a card for each claim, and the same rows as files to take away.

Which cards are shown is chosen by `book/_static/ledger.js`, from the classes of the cards; without it all are.
"""

import html
import json
import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import pandas as pd

from ffilab import draw
from ffilab.draw import plain
from ffilab.judge import basis, ledger, verdicts
from ffilab.judge.estimates import LEVEL
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.press import advice, places
from ffilab.press.files import slug

# Of a claim with more lines than this, they are folded; with more than the second, by subjects.
MOST_UNFOLDED, MOST_IN_ONE_FOLD = 2, 12
# Of what does not hold, so much is said again beside what the author saw.
MOST_SAID = 3
# How a verdict is marked: a badge of sphinx-design.
BADGES = {
    YES: "success",
    verdicts.IN_DIRECTION: "success",
    verdicts.IN_PART: "info",
    verdicts.REFUTED: "danger",
    verdicts.WITHHELD: "warning",
    verdicts.CONFORMS: "primary",
}
# How it is drawn: Okabe and Ito's colours, and a hatching for those who see none.
DRAWN = {
    YES: ("#009E73", ""),
    verdicts.IN_DIRECTION: ("#56B4E9", "//"),
    verdicts.IN_PART: ("#0072B2", "\\\\"),
    verdicts.UNDECIDED_HERE: ("#F0E442", "||"),
    verdicts.REFUTED: ("#D55E00", "xx"),
    verdicts.WITHHELD: ("#CC79A7", "--"),
    verdicts.CONFORMS: ("#E69F00", "++"),
}
NOT_TESTED = ("#999999", "")
DOCUMENTS = {
    "A": "A: a talk on the Python FFI",
    "B": "B: a post on forged strings",
    "C": "C: a post on the GIL",
    "D": "D: a post on code placement",
}
# Verdicts beside which it is told what the author saw and what differs here: of claims that were tested and do not simply hold.
COMPARED = tuple(verdict for verdict in verdicts.TESTED if verdict != YES)


def since(row: dict) -> str:
    """Return a sentence, with a space before it, if the page of a verdict is stale."""
    return f" Its page is stale: {', '.join(row['stale'])} changed since." if row["stale"] else ""


def page(rows: list[dict], tree: Path | None = None) -> str:
    """Say how far to trust the verdicts and which claims got which; then show every claim on a card, by documents.

    tree: the assembled sources, in which the sections are looked up; without it a card links to its chapter.
    """
    lines = [trust(rows), "", summary(rows), ""]
    for verdict in _verdicts(rows):
        claims = [f"[{row['id']}](#claim-{row['id'].lower()})" for row in rows if row["verdict"] == verdict]
        lines.append(f"- {badge(verdict)} {', '.join(claims)}")
    lines += ["", "```{raw} html", TO_TAKE, choosers(rows), "```"]
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


TO_TAKE = (
    '<p class="ffi-take">The ledger of this run, to take away: <a download href="../_static/ledger.csv">CSV</a>, a line for each test; '
    '<a download href="../_static/ledger.json">JSON</a>, an entry for each claim.</p>'
)


def _verdicts(rows: list[dict]) -> list[str]:
    """List the verdicts that were given: first those on claims that were tested."""
    given = dict.fromkeys(row["verdict"] for row in rows)
    return sorted(given, key=lambda verdict: verdicts.TESTED.index(verdict) if verdict in verdicts.TESTED else 99)


def by_document(rows: list[dict]) -> pd.DataFrame:
    """Count the claims of each document (rows) by verdict (columns)."""
    counts = pd.crosstab([row["id"][0] for row in rows], [row["verdict"] for row in rows])
    return counts.reindex(columns=_verdicts(rows))


def summary_for_alt(rows: list[dict]) -> str:
    """Put the figure into words, with its numbers."""
    documents = [
        f"{document}: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
        for document, counts in by_document(rows).iterrows()
    ]
    return f"Verdicts on {len(rows)} claims by document. {'. '.join(documents)}."


def summary(rows: list[dict]) -> str:
    """Show the figure: of the two files that `write` makes, the page's theme chooses one."""
    alt = html.escape(summary_for_alt(rows))
    images = "".join(f'<img class="ffi-{mode}" alt="{alt}" src="../_static/ledger-{mode}.svg">' for mode in draw.INK)
    style = f'{draw.SWITCH}\n<link rel="stylesheet" href="../_static/ledger.css">'
    return f'```{{raw}} html\n{style}\n<figure class="ffi-figure" tabindex="0">{images}</figure>\n```'


def plot_summary(figure, rows: list[dict]) -> None:
    """Draw a bar for each document, divided by verdicts, with the number of claims in each part."""
    table = by_document(rows)
    axes, left = figure.subplots(), pd.Series(0, index=table.index)
    for verdict, counts in table.items():
        colour, hatch = DRAWN.get(verdict, NOT_TESTED)
        bars = axes.barh(table.index, counts, left=left, color=colour, hatch=hatch, edgecolor="white", label=verdict)
        for text in axes.bar_label(bars, [count or "" for count in counts], label_type="center", color="black", size=9):
            if text.get_text():
                text.set_bbox({"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"})
        left = left + counts
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="claims", ylabel="document")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=9)


def choosers(rows: list[dict]) -> str:
    """Make select boxes for verdict, document and chapter, with the number of claims; hidden without JavaScript."""
    boxes = []
    for name, values in (
        ("verdict", [row["verdict"] for row in rows]),
        ("document", [row["id"][0] for row in rows]),
        ("chapter", [row["chapter"] for row in rows if row["chapter"]]),
    ):
        options = "".join(
            f'<option value="{slug(value)}">{html.escape(DOCUMENTS.get(value, value).replace("_", " "))} ({count})</option>'
            for value, count in Counter(values).items()
        )
        boxes.append(f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>')
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
    verdict = f"*Verdict:* {ledger.verdict_of(row)}"
    lines += [f"{verdict}." if row["parts"] else f"{verdict}: {plain(row['reason']).rstrip('.')}.", ""]
    if len(points) <= MOST_UNFOLDED:
        lines += [line for _, line in points]
    elif len(points) <= MOST_IN_ONE_FOLD:
        title = f"What was measured here, and why: {len(points)} lines"
        lines += [f":::::{{dropdown}} {title}", *(line for _, line in points), ":::::"]
    else:
        lines += by_subject(row, points)
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


def findings(row: dict) -> list[tuple[str, str]]:
    """List (subject, lines) of each number that was handed in, with the answers that rest on it; then what has no test.

    The subject is what the title of an answer says before its colon.
    """
    points = []
    for name in dict.fromkeys([*(part["measured"] for part in row["parts"]), *row["measured"]]):
        number = advice.value_of(row, name) if name in row["measured"] else "no number here"
        answers = [part for part in row["parts"] if part["measured"] == name]
        lines = [f"- {plain(name)}: **{number}**"]
        lines += [
            f"  - {plain(_without(name, part))}: *{part['verdict']}*; {plain(part['reason'])}" for part in answers
        ]
        subject = answers[0]["part"].partition(": ")[0] if answers else ""
        points.append((subject, "\n".join(lines)))
    return points + [("not tested", f"- Not tested: {plain(part)}") for part in row["untested"]]


def by_subject(row: dict, points: list[tuple[str, str]]) -> list[str]:
    """Put the findings into a fold for each subject; its title counts the answers."""
    folds, lines = defaultdict(list), []
    for subject, line in points:
        folds[subject].append(line)
    for subject, listed in folds.items():
        answers = Counter(part["verdict"] for part in row["parts"] if part["part"].partition(": ")[0] == subject)
        counts = ", ".join(f"{count} {answer}" for answer, count in answers.items())
        title = plain(draw.capital(subject or "further numbers")) + (f": {counts}" if counts else "")
        lines += [f":::::{{dropdown}} {title}", *listed, ":::::"]
    return lines


def _without(name: str, part: dict) -> str:
    """Title a part that stands under its number, without repeating the number's name."""
    return ledger.part_title(
        part | {"part": "the side" if part["kind"] == "side" else "the claim"} if part["part"] == name else part
    )


def beside(row: dict) -> str:
    """Tell what the author saw, what this run found, and what differs, if the claim was tested and does not simply hold."""
    if row["verdict"] not in COMPARED or not row["saw"]:
        return ""
    paragraphs = (
        ("What the author saw.", plain(row["saw"])),
        ("This run.", here(row)),
        ("What differs.", plain(row["differs"])),
    )
    return "\n\n".join(f"*{title}* {text}" for title, text in paragraphs)


def here(row: dict) -> str:
    """Say in a sentence or two how the tests were answered; those that do not hold with their numbers."""
    answers = Counter(part["verdict"] for part in row["parts"])
    names = {YES: "holds", NO: "does not hold", OPEN: "is undecided"}
    several = {YES: "hold", NO: "do not hold", OPEN: "are undecided"}
    counts = [
        f"{answers[answer]} {(names if answers[answer] == 1 else several).get(answer, 'cannot be tested')}"
        for answer in sorted(answers, key=lambda answer: list(names).index(answer) if answer in names else 9)
    ]
    total = len(row["parts"])
    words = [
        f"Of {total} tests {draw.listed(counts)}."
        if total > 1
        else f"The one test {names.get(next(iter(answers)), 'has no number')}."
    ]
    refuted = [
        f"Not held: {plain(ledger.part_title(part))}, with {advice.value_of(row, part['measured'])}: {plain(part['reason'])}."
        for part in row["parts"]
        if part["verdict"] == NO and part["measured"] in row["measured"]
    ]
    words += refuted[:MOST_SAID]
    words += ["The other tests that do not hold are listed above."] * (len(refuted) > MOST_SAID)
    return " ".join(words)


def published(text: str) -> str:
    """Say what a source published, and if so that it is no number."""
    return plain(text) if re.search(r"\d", text) else f"no number ({plain(text)})"


def trust(rows: list[dict]) -> str:
    """Say how many claims were tested, how many wrong verdicts to expect at most, and what was withheld."""
    given = Counter(row["verdict"] for row in rows)
    tested = sum(given[verdict] for verdict in verdicts.TESTED)
    words = [
        f"Of {len(rows)} claims this run tested {tested}. All intervals are {LEVEL:.0%} intervals; at this level one has to expect "
        f"{ledger.expected_wrong(rows):.2f} wrong verdicts among them at most, as far as the intervals cover what they say."
    ]
    others = [f"{verdict}: {count}" for verdict, count in given.items() if verdict not in verdicts.TESTED]
    if others:
        words.append(f"Not tested: {', '.join(others)}.")
    if withheld := sorted({row["chapter"] for row in rows if row["verdict"] == verdicts.WITHHELD}):
        words.append(f"Controls failed in {', '.join(withheld)}: the verdicts that depend on them are withheld.")
    return " ".join(words)


OF_CLAIM = ("id", "where", "claim", "published", "verdict", "qualifier", "chapter", "section")


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
                    "kind": part.get("kind", ""),
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
