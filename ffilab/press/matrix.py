"""The page of the matrix: every cell that a chapter has kept, as one table that can be sorted, filtered and searched offline.

Which table it shows says `book/matrix.toml`. The table is whole without JavaScript; with it, DataTables takes it over
(`book/_static/matrix.js`). DataTables comes from the package itables, which bundles it for use without a network.
"""

import html
import math
import re
import tomllib
from importlib import metadata, resources
from pathlib import Path

import pandas as pd

from ffilab import draw
from ffilab.judge.estimates import Interval
from ffilab.paths import ROOT
from ffilab.press import files, tables

SHOWN = ROOT / "book" / "matrix.toml"
# What identifies a row; each has a select box.
KEYS = ("CPython", "binding", "signature")
# The numbers with an interval: column of the kept table to heading.
NUMBERS = {"ns": "ns, loop and call", "over the floor": "ns over the floor", "ratio to the floor": "ratio to the floor"}
HEADINGS = (*KEYS, *NUMBERS.values(), "instructions", "where", "record")


def page(tree: Path) -> str:
    """Show the table that `book/matrix.toml` names, or say why there is none. tree: of the sources; its CSV file is put there."""
    shown = tomllib.loads(SHOWN.read_text(encoding="utf-8"))
    table = tables.read(shown["corner"], shown["table"])
    if table is None:
        return f"The matrix was not measured on this machine yet: `make chapter NAME={shown['corner']}`.\n"
    return of(table, files.csv_link(table.frame, "matrix", tree))


def of(table: tables.Table, link: str = "") -> str:
    """Show a table: what it holds in a sentence, select boxes, the rows, a link to its CSV file."""
    frame = table.frame
    filled = int(frame["ns"].notna().sum())
    counts = (
        f"{len(frame):,} cells, {filled:,} of them measured ({table.caption})"
        if len(frame) - filled
        else f"{len(frame):,} cells, all of them measured ({table.caption})"
    )
    warning = f":::{{warning}}\nThese numbers are no result: {table.mark}\n:::\n\n" if table.mark else ""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in HEADINGS)
    rows = "\n".join(row(cell, bool(table.mark)) for cell in frame.to_dict("records"))
    return (
        f"{warning}{counts}.\n\n```{{raw}} html\n"
        f'<link rel="stylesheet" href="../_static/matrix.css">\n'
        f"<style>{labels()}</style>\n{choosers(frame)}\n"
        f'<div class="ffi-table ffi-matrix"><table id="ffi-matrix" aria-label="Every cell of the matrix">\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n{link}\n"
        '<script defer src="../_static/matrix.js"></script>\n```\n'
    )


def labels() -> str:
    """Return the rules by which, on a phone, each cell of a row begins with the heading of its column."""
    rules = "".join(
        f'.ffi-matrix td:nth-child({number})::before{{content:"{heading}: "}}'
        for number, heading in enumerate(HEADINGS, 1)
    )
    return f"@media screen and (max-width: 600px){{{rules}}}"


def choosers(frame: pd.DataFrame) -> str:
    """Make select boxes for the keys and the order, and a line with the number of rows shown; hidden without JavaScript."""
    boxes = []
    for key in KEYS:
        options = "".join(f"<option>{html.escape(value)}</option>" for value in dict.fromkeys(frame[key]))
        boxes.append(
            f'<label>{key} <select name="{key.lower()}"><option value="">all</option>{options}</select></label>'
        )
    order = "".join(f'<option value="{number}">{heading}</option>' for number, heading in enumerate(HEADINGS[:7]))
    boxes.append(
        f'<label>sorted by <select name="sort"><option value="">the chapter\'s order</option>{order}</select></label>'
    )
    boxes.append('<label>search <input type="search" name="q"></label>')
    boxes.append('<button type="reset">show all</button>')
    return (
        f'<form class="ffi-choose" hidden aria-label="Choose rows of the matrix">{"".join(boxes)}'
        '<output aria-live="polite"></output></form>'
    )


def address(cell: dict) -> str:
    """Return the address of a row on the page: `3-14t-pyo3-str-in-ascii`."""
    return files.slug(*(str(cell[key]) for key in KEYS))


def row(entry: dict, marked: bool) -> str:
    """Write a cell of the matrix as a row of the page. marked: the numbers are no result."""
    cells = [html.escape(str(entry[key])) for key in KEYS]
    cells[-1] = f'<a href="#{address(entry)}">{cells[-1]}</a>'
    columns = [f"<td>{cell}</td>" for cell in cells]
    if known(entry["ns"]):
        columns += [number(entry, column, marked) for column in NUMBERS]
    else:
        columns += [
            f'<td data-order="" class="ffi-why"><span>not here: {html.escape(entry["why"])}</span></td>',
            *['<td data-order=""></td>'] * (len(NUMBERS) - 1),
        ]
    counted = entry["instructions"]
    columns.append(
        f'<td data-order="{counted:.0f}">{counted:,.0f}</td>' if known(counted) else '<td data-order=""></td>'
    )
    where = (
        f'<a href="../{html.escape(entry["section"])}">section</a> · <a href="../{html.escape(entry["code"])}">code</a>'
    )
    note = f" · {html.escape(entry['why'])}" if entry["why"] and known(entry["ns"]) else ""
    columns += [f"<td>{where}{note}</td>", f"<td>{html.escape(entry['record'])}</td>"]
    return f'<tr id="{address(entry)}">{"".join(columns)}</tr>'


def number(cell: dict, column: str, marked: bool) -> str:
    """Write a number with its interval; it is sorted by the number alone."""
    value, low, high = (cell[name] for name in (column, f"{column}, low", f"{column}, high"))
    if not known(value):
        return '<td data-order=""></td>'
    if value == low == high and value in (0, 1):
        words = f"{value:.0f} (the floor)"
    else:
        words = draw.text(Interval(value, *(bound if known(bound) else math.nan for bound in (low, high))))
    return f'<td data-order="{value:.6g}">{words}{" <small>(no result)</small>" if marked else ""}</td>'


def known(value) -> bool:
    """Is there a number?"""
    return value is not None and math.isfinite(value)


def copy_datatables(folder: Path) -> None:
    """Put DataTables into a folder of static files, with its licences.

    The bundle is a module, and a browser loads no module from a page that was opened as a file; as a plain script it does.
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
