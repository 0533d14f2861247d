"""The page of the four documents: the claims of each with their verdicts, and the sections that measure them."""

import re
from pathlib import Path

from ffilab.draw import plain
from ffilab.judge import ledger
from ffilab.press.ledger_page import DOCUMENTS, since
from ffilab.press.places import link

# The documents by their letters in the ledger, with their keys in book/references.bib.
KEYS = {"A": "scc2025", "B": "gamberini_balm", "C": "skvortsov_gil", "D": "stinner_placement"}


def page(tree: Path, rows: list[dict]) -> str:
    """Return a table of claims for each document, in MyST. tree: the assembled sources; rows: of the ledger."""
    lines = []
    for letter, key in KEYS.items():
        lines += [
            f"## Document {DOCUMENTS[letter]}",
            "",
            f"{{cite:t}}`{key}`",
            "",
            "| Claim | Where in the document | What it says | Verdict | Measured in |",
            "|---|---|---|---|---|",
        ]
        for row in rows:
            if row["id"].startswith(letter):
                claim = f"[{row['id']}](#claim-{row['id'].lower()})"
                verdict = f"{ledger.verdict_of(row)}{since(row)}"
                texts = [cell(text) for text in (row["where"], row["claim"], verdict)]
                lines.append(f"| {claim} | {' | '.join(texts)} | {row['section'] and link(tree, row['section'])} |")
        lines.append("")
    return "\n".join(lines)


def cell(text: str) -> str:
    """Escape a text for a cell of a table."""
    return re.sub(r"([|>~{}#])", r"\\\1", plain(text))
