"""The page of the matrix: every cell stands there, with its numbers or with the reason why it has none."""

import re

import numpy as np
import pandas as pd
import pytest

from ffilab.page import matrix, tables


def cell(label, binding, signature, ns=None, **further):
    known = ns is not None
    return {
        "CPython": label,
        "binding": binding,
        "signature": signature,
        **{f"ns{end}": ns * by if known else None for end, by in (("", 1), (", low", 0.9), (", high", 1.1))},
        **{f"over the floor{end}": by if known else None for end, by in (("", 5.0), (", low", 4.0), (", high", 6.0))},
        **{
            f"ratio to the floor{end}": by if known else None
            for end, by in (("", 1.5), (", low", 1.4), (", high", 1.6))
        },
        "instructions": None,
        "n": 4,
        "section": "notebooks/x/x.html#there",
        "code": "notebooks/x/y.html#binding-pyo3",
        "record": "x/1/matrix.jsonl",
        "why": "" if known else "no compiler <here>",
        **further,
    }


def page(*rows, mark=""):
    return matrix.table_page(tables.Table(pd.DataFrame(rows), "n = 4, 98% intervals", mark))


def test_a_row_has_its_address_numbers_and_links():
    text = page(cell("3.14t", "PyO3", "str in, ASCII", 20.0, instructions=1234.0))
    assert '<tr id="3-14t-pyo3-str-in-ascii">' in text
    assert "20.0 [18.0, 22.0]" in text
    assert "1.50 [1.40, 1.60]" in text
    assert "1,234" in text
    assert 'href="../notebooks/x/x.html#there"' in text
    assert 'href="../notebooks/x/y.html#binding-pyo3"' in text
    assert "x/1/matrix.jsonl" in text
    assert "1 cells, all" not in text.replace("1 cells, all of them measured", "")


def test_a_cell_without_a_number_says_why():
    text = page(cell("3.14", "A", "x", 20.0), cell("3.14", "B", "x"))
    assert "2 cells, 1 of them measured" in text
    assert "not here: no compiler &lt;here&gt;" in text
    assert not re.search(r"\b(nan|None)\b", text)


@pytest.mark.parametrize("missing", [None, np.nan])
def test_an_interval_that_too_few_runs_leave_open_is_not_printed_as_one(missing):
    row = cell("3.14", "A", "x", 20.0) | {"ns, low": missing, "ns, high": missing}
    assert "20 (no interval)" in page(row)


def test_what_is_no_result_is_marked_at_every_number():
    text = page(cell("3.14", "A", "x", 20.0), mark="smoke test: no result")
    assert "{warning}" in text
    assert "smoke test: no result" in text
    assert text.count("(no result)</small></td>") == len(matrix.NUMBERS)
    assert "(no result)" not in page(cell("3.14", "A", "x", 20.0))


def test_a_chapter_that_was_not_measured_has_no_matrix_and_a_page_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(tables, "kept_table", lambda chapter, name: None)
    assert "not measured" in matrix.page(tmp_path)


def test_datatables_comes_as_a_plain_script_with_its_licence(tmp_path):
    """A module would not be loaded from a page that was opened as a file."""
    matrix.copy_datatables(tmp_path)
    script = (tmp_path / "datatables.js").read_text()
    assert "window.DataTable = " in script
    assert not re.search(r"^export\b|export\{", script, re.M)
    licence = (tmp_path / "datatables-licence.txt").read_text()
    assert "MIT" in licence
    assert "Permission is hereby granted" in licence
