"""Tables that a chapter keeps for the pages that are no chapter: the matrix, the front page, the decision guide.

A chapter's cell keeps one with `draw.table(frame, caption, keep="name")`; it lies in the executed notebook.
"""

import functools
from dataclasses import dataclass

import pandas as pd

from ffilab.page.contents import Chapter, kept
from ffilab.page.draw import Quantity
from ffilab.run.errors import UserError


@dataclass(frozen=True)
class Table:
    """A table as its page shows it. mark: why it is no result (a smoke test); empty if it is one."""

    frame: pd.DataFrame
    caption: str
    mark: str


def kept_table(of: str, name: str) -> Table | None:
    """Read a table that a chapter keeps; None if it is missing or damaged."""
    chapter = Chapter(of)
    if not chapter.is_executed:
        return None
    try:
        table = _kept(chapter, chapter.executed.stat().st_mtime_ns)[f"table {name}"]
        rows = [[Quantity.read(cell) for cell in row] for row in table["data"]]
        return Table(pd.DataFrame(rows, columns=table["columns"]), table["caption"], table["mark"])
    except (UserError, KeyError, TypeError, ValueError):
        return None


@functools.lru_cache(maxsize=32)
def _kept(chapter: Chapter, _: int) -> dict:
    return kept(chapter.executed_notebook)
