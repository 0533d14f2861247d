"""The page of the ledger: what a card says in each case, what stands behind a claim, and the files to take away."""

import json
import re

import pandas as pd
import pytest

from ffilab.judge import ledger, verdicts
from ffilab.judge.claims import Claim, all_claims
from ffilab.judge.numbers import Number
from ffilab.judge.rules import Conformance, Side, Size
from ffilab.page import ledger_figure, ledger_page
from ffilab.page.draw import plain
from ffilab.page.files import slug
from ffilab.run.paths import ROOT
from tests.helpers.of_chapter import counted
from tests.helpers.prose import faults_of_markdown as faults
from tests.helpers.source_pages import anchors, golden_rows, source_tree

ABOVE = Side("a / b", direction="above", null=1.0, interest=0.05)
SIZE = Size("a / b", null=1.0, published=2.0, margin=0.25)


def row_of(value, *rules, **further):
    said = {"saw": "2 in one run.", "differs": "Another machine.", "section": "loaders#key-points"}
    claim = Claim("A1", "loaders", "A, a slide", "One is slower.", "2", rules or (ABOVE, SIZE), **said)
    number = Number(counted(value))
    provenance = {"is_result": further.pop("is_result", True)}
    given = ledger.Given({"a / b": number}, provenance, further.pop("withheld", {}))
    return {**ledger.judge(claim, given), "provenance": {}, "stale": []} | further


def card(row):
    """The card of a claim, cut out of the page."""
    return re.search(r"^::::::\{card\}\n.*?^::::::$", ledger_page.page([row]), re.M | re.S)[0]


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


@pytest.mark.parametrize(("value", "verdict"), [(2.0, verdicts.HOLDS), (1.2, verdicts.HOLDS), (1.0, verdicts.FAILS)])
def test_each_card_tells_what_differs_and_what_this_run_refutes(value, verdict):
    row = row_of(value)
    text = card(row)
    assert row["verdict"] == verdict
    assert "2 in one run." in text
    assert "Another machine." in text
    assert ("*This run.* No:" in text) == (f"with {value:.3g}" in text) == (verdict == verdicts.FAILS)
    assert faults(card(row)) == []


def test_cards_of_the_golden_records_read_well():
    for row in golden_rows():
        text = card(row)
        assert faults(text) == [], (row["id"], faults(text))
        # As many folds opened as closed.
        assert len(re.findall(r"^:::::\{dropdown", text, re.M)) == len(re.findall(r"^:::::$", text, re.M)), row["id"]


def test_the_link_leads_to_the_section(tmp_path):
    shown = ledger_page.page([row_of(1.2)], source_tree(tmp_path))
    assert "([Key points](../notebooks/loaders/loaders.ipynb#key-points))" in shown


def test_cards_carry_what_they_are_chosen_by():
    rows = [row_of(2.0), row_of(1.0, id="B1")]
    text = ledger_page.page(rows)
    for row in rows:
        wanted = (
            f"ffi-verdict-{slug(row['verdict'])} ffi-document-{row['id'][0].lower()} "
            f"ffi-size-{row['size']} ffi-chapter-loaders"
        )
        assert wanted in text
        assert f'<option value="{slug(row["verdict"])}">{row["verdict"]} (1)</option>' in text
        assert f'<option value="{row["size"]}">{row["size"]} (1)</option>' in text
    assert '<option value="loaders">loaders (2)</option>' in text
    assert 'aria-live="polite"' in text


def test_the_figure_says_its_numbers():
    rows = [row_of(2.0), row_of(2.0, id="A2"), row_of(1.0, id="B1")]
    assert ledger_figure.summary_for_alt(rows) == "Verdicts on 3 claims by document. A: 2 holds. B: 1 does not hold."
    assert ledger_figure.by_document(rows).to_numpy().sum() == 3
    # Each word has a colour of its own, and a hatching; and each verdict that a claim can get is among them.
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


def test_a_number_that_is_withheld_says_so_where_it_stands():
    row = row_of(1.2) | {"counted": []}
    row["parts"][0] |= {"verdict": verdicts.WITHHELD, "reason": "disturbed"}
    shown = card(row)
    assert "**1.2 (all values alike) (withheld)**" in shown
    assert "*withheld*; disturbed" in shown
    assert "1 of 2 answers are withheld" in ledger_page.page([row])


def test_the_head_says_how_many_wrong_answers_to_expect_and_keeps_kinds_apart():
    exact = ledger.Given({"x": Number(counted(1))}, {"is_result": True})
    kinds = [
        ledger.judge(Claim("B4", "balm", "w", "c", "p", (Conformance("x"),)), exact),
        ledger.judge(Claim("C9", "convoy", "w", "c", "p", not_measurable="A text."), None),
    ]
    rows = [row_of(2.0), *({**row, "stale": [], "provenance": {}} for row in kinds)]
    said = ledger_page.page(rows)
    assert "Of 3 claims this run tested 1." in said
    assert "0.00 wrong answers are to be expected" in said
    assert "98%" in said
    assert "true by construction (1) or not measurable (1)" in said
    assert "no verdict" in ledger_page.page(rows)
    assert "*Kind:* not measurable: A text." in ledger_page.page(rows)


def test_the_ledger_can_be_taken_away(tmp_path):
    odd = row_of(2.0, id="X1") | {"interval": {"a / b": [float("nan"), float("inf")]}}
    rows = [*golden_rows(), odd]
    static = tmp_path / "static"
    ledger_page.write_files(static, rows)
    table = pd.read_csv(static / "ledger.csv")
    assert len(table) == sum(max(1, len(row["parts"])) for row in rows)
    assert set(table.id) == {row["id"] for row in rows}
    kept = json.loads((static / "ledger.json").read_text(), parse_constant=lambda what: pytest.fail(what))
    assert [row["id"] for row in kept] == [row["id"] for row in rows]
    assert kept[-1]["interval"] == {"a / b": [None, None]}
    for mode in ("light", "dark"):
        assert (static / f"ledger-{mode}.svg").read_text().startswith("<?xml")
