"""The page of the matrix: every cell that a chapter has kept, as one table that can be sorted, filtered and searched
offline.

Which table it shows says `book/matrix.toml`. The table is whole without JavaScript; with it, DataTables takes it over
(`book/_static/matrix.js`). DataTables comes from the package itables, which bundles it for use without a network.
"""

import math
import re
import tomllib
from importlib import metadata, resources
from pathlib import Path

from ffilab.judge.estimates import Interval
from ffilab.page import draw, files, tables
from ffilab.page.templates import filled
from ffilab.run.paths import ROOT

SHOWN = ROOT / "book" / "matrix.toml"
# What identifies a row; each has a select box.
KEYS = ("CPython", "binding", "signature")
# The numbers with an interval: column of the kept table to heading.
NUMBERS = {
    "ns": "ns, with the loop",
    "over the floor": "ns more than C",
    "ratio to the floor": "times C",
}
HEADINGS = (*KEYS, *NUMBERS.values(), "instructions", "where")


def page(tree: Path) -> str:
    """Show the table that `book/matrix.toml` names, or say why there is none. tree: of the sources; its CSV file is put
    there."""
    shown = tomllib.loads(SHOWN.read_text(encoding="utf-8"))
    table = tables.kept_table(shown["chapter"], shown["table"])
    if table is None:
        return f"The matrix was not measured on this machine yet: `make chapter NAME={shown['chapter']}`.\n"
    return table_page(table, files.csv_link(table.frame, "matrix", tree))


def table_page(table: tables.Table, link: str = "") -> str:
    """Show a table: what it holds in a sentence, select boxes, the rows, a link to its CSV file."""
    return filled(
        "matrix.md",
        table=table,
        filled=int(table.frame["ns"].notna().sum()),
        cells=table.frame.to_dict("records"),
        keys={key: list(dict.fromkeys(table.frame[key])) for key in KEYS},
        numbers=NUMBERS,
        headings=HEADINGS,
        link=link,
        address=address,
        known=known,
        number=number,
    )


def address(cell: dict) -> str:
    """Return the address of a row on the page: `3-14t-pyo3-str-in-ascii`."""
    return files.slug(*(str(cell[key]) for key in KEYS))


def number(cell: dict, column: str) -> str:
    """Write a number with its interval."""
    value, low, high = (cell[name] for name in (column, f"{column}, low", f"{column}, high"))
    if value == low == high and value in (0, 1):
        return f"{value:.0f} (itself)"
    return draw.text(Interval(value, *(bound if known(bound) else math.nan for bound in (low, high))))


def known(value) -> bool:
    """Is there a number?"""
    return value is not None and math.isfinite(value)


def copy_datatables(folder: Path) -> None:
    """Put DataTables into a folder of static files, with its licences.

    The bundle is a module, and a browser loads no module from a page that was opened as a file; as a plain script it
    does.
    """
    bundled = resources.files("itables") / "html"
    script = (bundled / "dt_bundle.js").read_text(encoding="utf-8")
    exported = re.search(r"export\s*\{([^}]*)\}\s*;?", script)
    names = dict(reversed(pair.split(" as ")) for pair in exported[1].split(","))
    body, notices = script[: exported.start()], script[exported.end() :]
    plain = f'(() => {{\n"use strict";\n{body}\nwindow.DataTable = {names["default"].strip()};\n}})();\n{notices}'
    (folder / "datatables.js").write_text(plain, encoding="utf-8")
    (folder / "datatables.css").write_text((bundled / "dt_bundle.css").read_text(encoding="utf-8"), encoding="utf-8")
    licences = [path.read_text() for path in metadata.files("itables") or () if path.name == "LICENSE"]
    (folder / "datatables-licence.txt").write_text(
        "datatables.js and datatables.css are those of the package itables, under this licence:\n\n"
        + "\n".join(licences)
        + "\nThey bundle DataTables and its extensions (MIT, https://datatables.net/license/mit), and what else is named here:\n"
        + notices,
        encoding="utf-8",
    )
