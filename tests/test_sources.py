"""The page of the four documents; and no text of a claim reaches a page as markup."""

import re

import pandas as pd
import yaml
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

from ffilab.judge import verdicts
from ffilab.page import advice, corners, draw, front, guide, ledger_page, matrix, sources, tables
from ffilab.page.places import headings
from ffilab.run.paths import ROOT
from tests.helpers.made_up import matrix_cell
from tests.helpers.source_pages import copy_of


def test_each_document_stands_in_the_bibliography():
    bibliography = (ROOT / "book" / "references.bib").read_text()
    assert not [key for key in sources.KEYS.values() if f"{{{key}," not in bibliography]


def test_anchors_are_those_of_the_renderer():
    cells = ["# One, `two`: three?\n", "```python\n# no heading\n```\n", "## Again\n\n## Again\n"]
    assert headings(cells) == {"one-two-three": "One, `two`: three?", "again": "Again", "again-1": "Again"}
    assert yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["myst_heading_anchors"] == 3


HOSTILE = "<script>alert(1)</script> <img src=x onerror=alert(1)> **x** [x](javascript:alert(1)) | `x` ::: {raw} html"


RAW = re.compile(r"^```\{raw\} html\n(.*?)^```$", re.M | re.S)


def as_html(text: str) -> BeautifulSoup:
    """A page in MyST as a browser gets it: raw HTML as it is, directives as their content."""
    prose = re.sub(r"^:{3,}.*$|^:[\w-]+:.*$", "", RAW.sub("", text), flags=re.M)
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(prose)
    return BeautifulSoup(html + "\n".join(RAW.findall(text)), "html.parser")


def test_a_hostile_claim_reaches_no_page_as_markup(source_tree, displayed):
    texts = ("claim", "where", "published", "saw", "differs", "reason", "takes")
    hostile = [
        {
            **row,
            **{name: HOSTILE for name in texts},
            "untested": [HOSTILE],
            "parts": [{**part, "reason": HOSTILE} for part in row["parts"]],
            "provenance": {**row["provenance"], "cpu": HOSTILE, "system": HOSTILE},
        }
        for row in copy_of().ledger
    ]
    parts = {row["id"]: [{**part, "verdict": verdicts.WITHHELD} for part in row["parts"]] for row in hostile}
    withheld = advice.Copy({row["id"]: {**row, "parts": parts[row["id"]]} for row in hostile})
    cell = matrix_cell(HOSTILE, HOSTILE, HOSTILE, 1.5, **dict.fromkeys(("why", "section", "code", "record"), HOSTILE))
    for row in hostile:
        draw.verdict(row)
    pages = {
        "ledger": ledger_page.page(hostile, source_tree),
        "sources": sources.page(source_tree, hostile),
        "guide": guide.cards_page(source_tree, withheld),
        "questions": "\n".join(front.questions(source_tree, withheld, part) for part in ("safe", "quick")),
        "corners": corners.page(hostile),
        "matrix": matrix.table_page(tables.Table(pd.DataFrame([cell]), "a caption", "")),
        "cards": "\n\n".join(card.data for card, _ in displayed),
    }
    for name, text in pages.items():
        page = as_html(text)
        markup = page.select("script:not([src]), img[onerror], a[href^=javascript]")
        assert not markup, (name, markup[:2])
        assert not [tag for tag in page.select("strong, code") if tag.text == "x"], name
    assert "alert(1)" in pages["ledger"]
