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


def opened(browser, folder, name, body, address=""):
    """A page of a book's folder with this body, in a tab; console errors fail the test."""
    (folder / "book").mkdir(exist_ok=True)
    shutil.copytree(STATIC, folder / "_static", dirs_exist_ok=True)
    matrix.copy_datatables(folder / "_static")
    path = folder / "book" / f"{name}.html"
    path.write_text(f'<!doctype html><html lang="en"><meta charset="utf-8"><title>x</title><body>{body}</body></html>')
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.on("pageerror", lambda error: pytest.fail(str(error)))
    tab.goto(path.as_uri() + address)
    tab.wait_for_function("!document.querySelector('.ffi-choose').hidden")
    return tab


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("site")


def matrix_page(browser, folder, address=""):
    frame = pd.DataFrame(
        [cell(label, f"tool {n}", f"call {n}", 10.0 + n) for label in ("3.14", "3.14t") for n in range(40)]
    )
    body = re.search(r"```\{raw\} html\n(.*?)```", matrix.table_page(tables.Table(frame, "n = 4", "")), re.S)[1]
    return opened(browser, folder, "matrix", body, address)


def shown(tab):
    return tab.text_content(".ffi-choose output")


def test_the_matrix_is_chosen_from_and_the_address_says_what(browser, folder):
    tab = matrix_page(browser, folder)
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
    tab.close()


def test_the_matrix_is_opened_as_its_address_says(browser, folder):
    tab = matrix_page(browser, folder, "?cpython=3.14t&sort=3")
    tab.wait_for_function("document.querySelector('.ffi-choose output').textContent.startsWith('40')")
    assert shown(tab) == "40 of 80 cells shown"
    assert tab.text_content("#ffi-matrix tbody tr td:nth-child(2)") == "tool 0"
    tab.close()


@pytest.mark.parametrize("address", ["", "?cpython=3.14"])
def test_a_row_of_the_matrix_is_found_on_whatever_page_it_is(browser, folder, address):
    tab = matrix_page(browser, folder, f"{address}#3-14t-tool-39-call-39")
    row = tab.locator('[id="3-14t-tool-39-call-39"].ffi-opened')
    row.wait_for()
    assert row.is_visible()
    assert "ffi-opened" in row.get_attribute("class")
    tab.close()


def ledger_html(browser, folder, address=""):
    claims = ((2.0, {}), (1.0, {"id": "A2"}), (1.0, {"id": "B1", "chapter": "races"}))
    rows = [made_claims.row(counted(value), **further) for value, further in claims]
    page = ledger_page.page(rows)
    cards = "".join(
        f'<section><section><div id="claim-{row["id"].lower()}" class="ffi-claim {classes}">'
        f'<a class="ffi-link" href="#claim-{row["id"].lower()}">link to {row["id"]}</a></div></section></section>'
        for row, classes in zip(rows, re.findall(r":class-card: ffi-claim (.*)", page), strict=True)
    )
    body = f'{re.search("<form.*</form>", page)[0]}{cards}<script src="../_static/ledger.js"></script>'
    return opened(browser, folder, "ledger", body, address)


def test_claims_are_chosen_and_the_address_says_what(browser, folder):
    tab = ledger_html(browser, folder)
    tab.select_option("select[name=verdict]", "does-not-hold")
    assert shown(tab) == "2 of 3 claims shown"
    tab.select_option("select[name=document]", "a")
    assert shown(tab) == "1 of 3 claims shown"
    assert not tab.locator("#claim-b1").is_visible()
    again = ledger_html(browser, folder, "?" + tab.url.partition("?")[2])
    assert shown(again) == "1 of 3 claims shown"
    again.close()
    tab.close()


def test_a_claim_by_its_address_is_shown_whatever_is_chosen(browser, folder):
    tab = ledger_html(browser, folder, "?document=a#claim-b1")
    assert tab.locator("#claim-b1").is_visible()
    assert "ffi-opened" in tab.locator("#claim-b1").get_attribute("class")
    assert shown(tab) == "3 of 3 claims shown"
    tab.close()


def test_a_link_is_copied_or_shown_to_be_copied(browser, folder):
    tab = ledger_html(browser, folder)
    tab.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    tab.click("#claim-a1 button")
    field = tab.locator("#claim-a1 input")
    assert field.input_value().endswith("ledger.html#claim-a1")
    tab.close()
