"""The page of the ledger, what tests/snapshots/parts/ledger.md does not show: the words of claims, what is withheld,
colours, the files to take away."""

import json
import re

import pandas as pd
import pytest

from ffilab.judge import verdicts
from ffilab.judge.claims import all_claims
from ffilab.page import ledger_figure, ledger_page
from ffilab.page.draw import plain
from ffilab.page.files import slug
from ffilab.run.paths import ROOT
from tests.helpers.made_claims import row
from tests.helpers.of_chapter import about, counted
from tests.helpers.prose import faults_of_markdown as faults
from tests.helpers.source_pages import anchors, copy_of


@pytest.mark.parametrize("claim", [one for one in all_claims() if one.tests], ids=lambda one: one.id)
def test_each_measured_claim_says_what_its_author_saw_what_differs_and_where(claim):
    page, _, anchor = claim.section.partition("#")
    assert anchor in anchors()[f"notebooks/{claim.chapter}/{page}"], claim.section
    for text in (claim.saw, claim.differs):
        assert text
        assert faults(plain(text)) == []
    # Nobody is blamed.
    assert not re.search(r"\b(wrong(ly)?|mistakes?|naive|fails? to|forgot|failed|bad)\b", claim.differs, re.I)
    # What a run finds out is not typed.
    assert not re.search(r"\bhere\b[^.]*\b(faster|slower|cheaper|dearer|loses?|lost)\b", claim.differs), claim.differs


def test_cards_of_the_golden_records_read_well():
    page = ledger_page.page(copy_of().ledger)
    for card in re.findall(r"^::::::\{card\}\n.*?^::::::$", page, re.M | re.S):
        assert faults(card) == [], card
        # As many folds opened as closed.
        assert len(re.findall(r"^:::::\{dropdown", card, re.M)) == len(re.findall(r"^:::::$", card, re.M)), card


def test_what_no_golden_record_shows_stands_on_the_page(held):
    """A number that is withheld, a document that nobody foresaw, and more lines than are shown at once."""
    further = {"saw": "2 in one run.", "differs": "Another machine."}
    rows = [
        row(about(2.0), withheld="disturbed", **further),
        row(counted(1.0), **further, id="B1", untested=("x", "y", "z")),
        row(counted(2.0), id="X1"),
        row(counted(1.0), id="B2", fact=True),
    ]
    held("made_up/ledger.md", ledger_page.page(rows))


def test_each_verdict_has_a_colour_of_its_own_everywhere():
    """And a hatching; and each verdict that a claim can get is among them."""
    assert len(set(ledger_figure.DRAWN.values()) | {ledger_figure.NOT_TESTED}) == len(ledger_figure.DRAWN) + 1
    assert {*verdicts.TESTED, verdicts.WITHHELD} <= set(ledger_figure.DRAWN)
    # The same colours on cards, badges and the table of corners.
    styles = {
        name: (ROOT / "book" / "_static" / f"{name}.css").read_text().lower()
        for name in ("verdicts", "ledger", "corners")
    }
    for word, (colour, _) in ledger_figure.DRAWN.items():
        assert f"--ffi-{slug(word)}: {colour.lower()};" in styles["verdicts"]
        assert f".ffi-verdict-{slug(word)} {{ border-left-color: var(--ffi-{slug(word)}) " in styles["ledger"]
    assert not re.findall(r"#[0-9a-f]{6}", styles["ledger"].split(".ffi-claim[hidden]")[1] + styles["corners"])


def test_the_ledger_can_be_taken_away(tmp_path):
    odd = row(counted(2.0), id="X1") | {"interval": {"a / b": [float("nan"), float("inf")]}}
    rows = [*copy_of().ledger, odd]
    ledger_page.write_files(tmp_path, rows)
    table = pd.read_csv(tmp_path / "ledger.csv")
    assert len(table) == sum(max(1, len(each["parts"])) for each in rows)
    assert set(table.id) == {each["id"] for each in rows}
    kept = json.loads((tmp_path / "ledger.json").read_text(), parse_constant=lambda what: pytest.fail(what))
    assert [each["id"] for each in kept] == [each["id"] for each in rows]
    assert kept[-1]["interval"] == {"a / b": [None, None]}
    for mode in ("light", "dark"):
        assert (tmp_path / f"ledger-{mode}.svg").read_text().startswith("<?xml")
