"""The page of the documents: the claims of each with their verdicts, and the sections that measure them."""

from functools import partial
from pathlib import Path

from ffilab.judge import ledger
from ffilab.page.draw import literal
from ffilab.page.ledger_page import DOCUMENTS, since
from ffilab.page.places import link
from ffilab.page.templates import filled

# The documents by their letters in the ledger, with their keys in book/references.bib.
POSTS = {"B": "gamberini_balm", "C": "skvortsov_gil", "D": "stinner_placement"}
KEYS = {"A": "scc2025", **POSTS, "E": "documented", "F": "free_threading"}


def page(tree: Path, rows: list[dict]) -> str:
    """Return a table of claims for each document, in MyST. tree: the assembled sources; rows: of the ledger."""
    return filled(
        "sources.md",
        rows=rows,
        keys=KEYS,
        titles=DOCUMENTS,
        cell=literal,
        since=since,
        verdict_of=ledger.verdict_of,
        link=partial(link, tree),
    )
