"""The scripts of the matrix and of the ledger in a browser: choosing, the state in the address, a row and a claim by
address."""

import re
import shutil

import pandas as pd
import pytest

from ffilab.page import ledger_page, matrix, tables
from ffilab.run.paths import ROOT
from tests.helpers import made_claims
from tests.helpers.made_up import matrix_cell as cell
from tests.helpers.of_chapter import counted

pytestmark = pytest.mark.full

STATIC = ROOT / "book" / "_static"


@pytest.fixture
def opened(open_tab, tmp_path):
    """A function that opens a page of a book's folder with this body."""
    shutil.copytree(STATIC, tmp_path / "_static")
    matrix.copy_datatables(tmp_path / "_static")
    (tmp_path / "book").mkdir()

    def opened(name, body, address):
        path = tmp_path / "book" / f"{name}.html"
        path.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>x</title><body>{body}</body></html>'
        )
        tab = open_tab(path.as_uri() + address)
        tab.wait_for_function("!document.querySelector('.ffi-choose').hidden")
        return tab

    return opened


def matrix_page(opened, address=""):
    frame = pd.DataFrame(
        [cell(label, f"tool {n}", f"call {n}", 10.0 + n) for label in ("3.14", "3.14t") for n in range(40)]
    )
    body = re.search(r"```\{raw\} html\n(.*?)```", matrix.table_page(tables.Table(frame, "n = 4", "")), re.S)[1]
    return opened("matrix", body, address)


def shown(tab):
    return tab.text_content(".ffi-choose output")


def test_the_matrix_is_chosen_from_and_the_address_says_what(opened):
    tab = matrix_page(opened)
    assert shown(tab) == "80 of 80 cells shown"
    # Nobody has chosen yet: what sorts and searches is not fetched, and every row is there.
    assert tab.locator("#ffi-matrix tbody tr").count() == 80
    assert tab.evaluate("!window.DataTable")
    tab.select_option("select[name=cpython]", "3.14t")
    tab.wait_for_function("document.querySelector('.ffi-choose output').textContent.startsWith('40')")
    tab.fill("input[name=q]", '"tool 17"')
    assert shown(tab) == "1 of 80 cells shown"
    assert "cpython=3.14t" in tab.url
    tab.click("button[type=reset]")
    tab.wait_for_function("document.querySelector('.ffi-choose output').textContent.startsWith('80')")
    assert "?" not in tab.url
    # By keyboard.
    tab.focus("select[name=signature]")
    tab.keyboard.press("ArrowDown")
    assert shown(tab) == "2 of 80 cells shown"


def test_the_matrix_is_opened_as_its_address_says(opened):
    tab = matrix_page(opened, "?cpython=3.14t&sort=3")
    tab.wait_for_function("document.querySelector('.ffi-choose output').textContent.startsWith('40')")
    assert shown(tab) == "40 of 80 cells shown"
    assert tab.text_content("#ffi-matrix tbody tr td:nth-child(2)") == "tool 0"


@pytest.mark.parametrize("address", ["", "?cpython=3.14"])
def test_a_row_of_the_matrix_is_found_on_whatever_page_it_is(opened, address):
    tab = matrix_page(opened, f"{address}#3-14t-tool-39-call-39")
    tab.locator('[id="3-14t-tool-39-call-39"].ffi-opened').wait_for(state="visible")


def ledger_html(opened, address=""):
    claims = ((2.0, {}), (1.0, {"id": "A2"}), (1.0, {"id": "B1", "chapter": "races"}))
    rows = [made_claims.row(counted(value), **further) for value, further in claims]
    page = ledger_page.page(rows)
    cards = "".join(
        f'<section><section><div id="claim-{row["id"].lower()}" class="ffi-claim {classes}">'
        f'<a class="ffi-link" href="#claim-{row["id"].lower()}">link to {row["id"]}</a></div></section></section>'
        for row, classes in zip(rows, re.findall(r":class-card: ffi-claim (.*)", page), strict=True)
    )
    body = f'{re.search("<form.*</form>", page)[0]}{cards}<script src="../_static/ledger.js"></script>'
    return opened("ledger", body, address)


def test_claims_are_chosen_and_the_address_says_what(opened):
    tab = ledger_html(opened)
    tab.select_option("select[name=verdict]", "does-not-hold")
    assert shown(tab) == "2 of 3 claims shown"
    tab.select_option("select[name=document]", "a")
    assert shown(tab) == "1 of 3 claims shown"
    assert not tab.locator("#claim-b1").is_visible()
    again = ledger_html(opened, "?" + tab.url.partition("?")[2])
    assert shown(again) == "1 of 3 claims shown"


def test_a_claim_by_its_address_is_shown_whatever_is_chosen(opened):
    tab = ledger_html(opened, "?document=a#claim-b1")
    assert tab.locator("#claim-b1.ffi-opened").is_visible()
    assert shown(tab) == "3 of 3 claims shown"


def test_a_link_is_copied_or_shown_to_be_copied(opened):
    tab = ledger_html(opened)
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    tab.click("#claim-a1 button")
    field = tab.locator("#claim-a1 input")
    assert field.input_value().endswith("ledger.html#claim-a1")
