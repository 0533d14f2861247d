"""What every page says, letter by letter: glued texts, descriptions of figures, tables and rows of the ledger.

Made from the golden records as measured, with their effects inverted, without effects, and of poor machines. To change
a page on purpose, run `python3 ffilab/bootstrap.py test tests/test_snapshots.py --renew`, look at `git diff
tests/snapshots`, and commit it with the reason.
"""

import ast
import base64
import html
import json
import re
from functools import cache

import pytest

from ffilab.judge import again
from ffilab.judge.claims import chapter_names
from ffilab.page.contents import Chapter
from ffilab.page.draw import GLUE_PREFIX, KEPT
from tests.helpers.golden_pages import PAGES, records

# What a row of the ledger says; the rest of it is where it comes from.
OF_ROW = (
    *("kind", "verdict", "qualifier", "size", "reason", "takes"),
    *("numbers", "interval", "beside", "parts", "counted", "untested"),
)
ALT = re.compile(r'<img class="ffi-light" alt="([^"]*)"')
CSV = re.compile(r'href="data:text/csv;base64,([^"]+)"')


def rounded(value):
    """A value with numbers of nine digits: the last ones differ between versions of numpy."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [rounded(part) for part in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def contents(notebook) -> dict:
    """Glued texts by name; descriptions of figures and CSV tables by the cell that shows them."""
    texts, figures, tables = {}, {}, {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            text = output.get("data", {}).get(f"{GLUE_PREFIX}text/plain")
            if text and KEPT not in output.metadata:
                texts[output["metadata"]["scrapbook"]["name"]] = ast.literal_eval(text)
            shown = output.get("data", {}).get("text/html", "")
            for alt in ALT.findall(shown):
                figures.setdefault(cell.id, []).append(html.unescape(alt))
            for csv in CSV.findall(shown):
                tables.setdefault(cell.id, []).append(base64.b64decode(csv).decode().splitlines())
    return {"texts": dict(sorted(texts.items())), "figures": figures, "tables": tables}


@cache
def ledger(variant: str) -> dict[str, dict]:
    """What the ledger says of each chapter's claims, whatever the controls of records that were cut down."""
    rows = {chapter: {} for chapter in chapter_names()}
    for row in again.rows(records(variant), whatever_the_controls=True):
        rows[row["chapter"]][row["id"]] = rounded({name: row[name] for name in OF_ROW})
    return rows


def snapshot(chapter: Chapter, rows: dict) -> str:
    said = {**contents(chapter.executed_notebook), "ledger": rows[chapter.name]}
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(("chapter", "variant"), PAGES)
def test_page_says_what_it_said(chapter, variant, executed, held):
    held(f"{chapter}-{variant}.json", snapshot(executed, ledger(variant)))
