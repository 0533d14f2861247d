"""The page of the ledger: a figure, a card for each claim, and the same rows as files to take away.

Which cards are shown is chosen by `book/_static/ledger.js`, from the classes of the cards; without it all are.
"""

import json
from collections import Counter
from pathlib import Path

import pandas as pd

from ffilab.judge import basis, ledger, rules, verdicts
from ffilab.judge.rules import NO
from ffilab.page import advice, draw, places
from ffilab.page.ledger_figure import given, plot_summary, summary_for_alt
from ffilab.page.templates import filled

# Of a claim with more lines than this, they are folded.
MOST_UNFOLDED = 2
# Of what does not hold, so much is said again beside what the author saw.
MOST_SAID = 3
# How a verdict is marked: a badge of sphinx-design.
BADGES = {
    verdicts.HOLDS: "success",
    verdicts.HOLDS_SO_FAR: "success-line",
    verdicts.MIXED: "info",
    verdicts.OPEN: "secondary",
    verdicts.FAILS_SO_FAR: "danger-line",
    verdicts.FAILS: "danger",
    verdicts.WITHHELD: "warning",
    verdicts.BY_CONSTRUCTION: "primary",
    verdicts.AGREES: "success",
    verdicts.DIFFERS: "danger",
}
# What a card says of the published size where none is asked for.
NO_SIZE = "no size asked for"
POSTS = {"B": "a post on forged strings", "C": "a post on the GIL", "D": "a post on code placement"}
KINDS = {"A": "a talk on the Python FFI", **POSTS, "E": "documentation of the tools", "F": "free threading"}
DOCUMENTS = {letter: f"{letter}: {what}" for letter, what in KINDS.items()}


def since(row: dict) -> str:
    """Return a sentence, with a space before it, if the page of a verdict is stale."""
    return f" Its page is stale: {', '.join(row['stale'])} changed since." if row["stale"] else ""


def page(rows: list[dict], tree: Path | None = None) -> str:
    """Say how far to trust the verdicts and which claims got which; then show every claim on a card, by documents, and
    the facts in a table.

    tree: the assembled sources, in which the sections are looked up; without it a card links to its chapter.
    """
    every, facts = rows, [row for row in rows if row["fact"]]
    rows = claims_of(rows)
    return filled(
        "ledger.md",
        rows=rows,
        facts=facts,
        trust=trust(rows),
        summary=summary_for_alt(rows),
        modes=draw.INK,
        style=draw.SWITCH,
        verdicts=given(rows),
        sizes=verdicts.SIZES.values(),
        documents={row["id"][0]: DOCUMENTS.get(row["id"][0], row["id"][0]) for row in rows},
        boxes=boxes(rows),
        measured_on={row["chapter"]: row["provenance"] for row in every if "cpu" in row["provenance"]},
        section=lambda row: places.section(tree, row["section"]) if tree else "",
        **FOR_CARDS,
    )


def claims_of(rows: list[dict]) -> list[dict]:
    """Return the rows that count: all but facts."""
    return [row for row in rows if not row["fact"]]


def boxes(rows: list[dict]) -> dict[str, dict[str, int]]:
    """By what claims can be chosen, and how many there are of each."""
    return {
        "verdict": Counter(row["verdict"] for row in rows),
        "size": Counter(row["size"] or NO_SIZE for row in rows),
        "document": Counter(row["id"][0] for row in rows),
        "chapter": Counter(row["chapter"] for row in rows if row["chapter"]),
    }


def names(row: dict) -> list[str]:
    """List the numbers of a claim, those first on which answers rest."""
    return list(dict.fromkeys([*(part["number"] for part in row["parts"]), *row["numbers"]]))


def refuted(row: dict) -> list[dict]:
    """Return the parts that are answered with no and have a number."""
    return [
        part
        for part in row["parts"]
        if part["verdict"] == NO and ledger.is_part(part) and part["number"] in row["numbers"]
    ]


def qualified(row: dict) -> str:
    """Return what stands behind a verdict: its qualifier, or how its parts were answered."""
    several = sum(map(ledger.is_part, row["parts"])) > 1
    return row["qualifier"] or (ledger.counts_of(row) if several else "")


# What the template of a card asks of a row.
FOR_CARDS = {
    "badges": BADGES,
    "no_size": NO_SIZE,
    "all_documents": DOCUMENTS,
    "most_unfolded": MOST_UNFOLDED,
    "most_said": MOST_SAID,
    "names": names,
    "refuted": refuted,
    "qualified": qualified,
    "since": since,
    "number": advice.value_of,
    "bounds": draw.bounds,
    "is_part": ledger.is_part,
    "is_withheld": ledger.is_withheld,
    "part_title": ledger.part_title,
    "counts_of": ledger.counts_of,
    "rests_on": basis.in_words,
    "kinds": {
        "not_measurable": verdicts.NOT_MEASURABLE,
        "by_construction": verdicts.BY_CONSTRUCTION,
        # Counts of runs say more than their share, 0 or 1.
        "events": [name for name, kind in rules.KINDS.items() if kind.counts],
        "counted": (verdicts.MIXED, verdicts.HOLDS_SO_FAR, verdicts.FAILS_SO_FAR),
    },
}


def trust(rows: list[dict]) -> dict:
    """Return what is said of all: how many claims were tested, how many wrong answers to expect at most, and what was
    withheld."""
    count = Counter(row["verdict"] for row in rows)
    kinds = {kind: count[kind] for kind in (verdicts.BY_CONSTRUCTION, verdicts.NOT_MEASURABLE) if count[kind]}
    return {
        "tested": sum(count[verdict] for verdict in verdicts.TESTED),
        "trusted": ledger.trusted(rows),
        "kinds": kinds,
        "others": {verdict: number for verdict, number in count.items() if verdict not in (*verdicts.TESTED, *kinds)},
        "withheld": sum(part["verdict"] == verdicts.WITHHELD for row in rows for part in row["parts"]),
        "answers": sum(len(row["parts"]) for row in rows),
    }


OF_CLAIM = ("id", "where", "claim", "published", "kind", "verdict", "qualifier", "size", "chapter", "section", "fact")


def as_table(rows: list[dict]) -> pd.DataFrame:
    """Return the ledger with a line for each test of each claim, and one for a claim without a test."""
    lines = []
    for row in rows:
        facts = row["provenance"]
        for part in row["parts"] or [{}]:
            name = part.get("number", "")
            low, high = row["interval"].get(name, (None, None))
            lines.append(
                {key: row[key] for key in OF_CLAIM}
                | {
                    "test": part.get("part", ""),
                    "test_kind": part.get("kind", ""),
                    "experiment": part.get("experiment", ""),
                    "number": name,
                    "value": row["numbers"].get(name),
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
    """A value with None for the numbers that JSON does not know, however deep."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)


def write_files(static: Path, rows: list[dict]) -> None:
    """Put the page's figure, and the ledger as files to take away, into a folder of static files."""
    static.mkdir(parents=True, exist_ok=True)
    for mode, drawn in draw.pictures(lambda figure: plot_summary(figure, claims_of(rows)), (7.2, 3.2), "").items():
        (static / f"ledger-{mode}.svg").write_bytes(drawn)
    as_table(rows).map(no_formula).to_csv(static / "ledger.csv", index=False)
    (static / "ledger.json").write_text(json.dumps(finite(rows), indent=1, ensure_ascii=False))
