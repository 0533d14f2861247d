"""The page of the matrix: every cell stands there, with its numbers or with the reason why it has none."""

import re

import numpy as np
import pandas as pd
import pytest

from ffilab.page import matrix, tables
from tests.helpers.made_up import matrix_cell as cell

CELLS = [
    cell("3.14t", "PyO3", "str in, ASCII", 20.0, instructions=1234.0),
    cell("3.14", "A", "x", 20.0),
    cell("3.14", "B", "x"),
    # Too few runs.
    cell("3.14", "C", "x", 20.0) | {"ns, low": None, "ns, high": np.nan},
]


@pytest.mark.parametrize(("name", "mark"), [("matrix", ""), ("matrix_no_result", "smoke test: no result")])
def test_a_cell_has_its_address_numbers_and_links_or_says_why_not(name, mark, held):
    page = matrix.table_page(tables.Table(pd.DataFrame(CELLS), "n = 4, 98% intervals", mark))
    assert not re.search(r"\b(nan|None)\b", page)
    held(f"made_up/{name}.md", page)


def test_datatables_comes_as_a_plain_script_with_its_licence(tmp_path):
    """A module would not be loaded from a page that was opened as a file."""
    matrix.copy_datatables(tmp_path)
    script = (tmp_path / "datatables.js").read_text()
    assert "window.DataTable = " in script
    assert not re.search(r"^export\b|export\{", script, re.M)
    licence = (tmp_path / "datatables-licence.txt").read_text()
    assert "MIT" in licence
    assert "Permission is hereby granted" in licence
