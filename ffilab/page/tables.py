"""Tables that a chapter handed to the pages that are no chapter: the matrix, the front page, the decision guide.

A chapter's cell keeps one with `draw.table(frame, caption, keep="name")`; it lies beside the executed page.
"""

import json
from dataclasses import dataclass

import pandas as pd

from ffilab.page.chapters import Chapter

TABLES = "tables"


@dataclass(frozen=True)
class Table:
    """A table as its page shows it. mark: why it is no result (a smoke test); empty if it is one."""

    frame: pd.DataFrame
    caption: str
    mark: str


def read(corner: str, name: str) -> Table | None:
    """Read a table that the chapter of a corner keeps; None if it is missing or damaged."""
    chapter = Chapter(corner)
    try:
        kept = json.loads((chapter.executed.parent / TABLES / f"{name}.json").read_text())
        frame = pd.DataFrame(kept["data"], columns=kept["columns"])
        kept["caption"], kept["mark"]
    except (OSError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return Table(frame, kept["caption"], kept["mark"])
