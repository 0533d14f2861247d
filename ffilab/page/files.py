"""What pages load: figures and tables as files beside the book.

An executed notebook holds its figures and CSV tables in itself, so that JupyterLab shows them. In the book each becomes
a file that is named by its content: a browser fetches a figure when it comes into sight, and only the one of light and
dark.
"""

import hashlib
import re
from base64 import b64decode
from pathlib import Path

import nbformat
import pandas as pd

from ffilab.page import draw

FOLDER = "files"
STYLE = "figures.css"
# As a cell shows it, and as it hands it to the page.
HTML = {"text/html", f"{draw.GLUE_PREFIX}text/html"}
IMAGE = re.compile(r'<img ([^>]*?)\s*src="data:image/svg\+xml;base64,([^"]+)">')
CSV = re.compile(r'href="data:text/csv;base64,([^"]+)"')
SWITCH = re.compile(r"<style>\s*\.ffi-dark .*?</style>", re.S)


def set_apart(page: nbformat.NotebookNode, static: Path, address: str) -> None:
    """Move the figures and tables of an executed page to files below `static`, which pages reach as `address`."""
    for cell in page.cells:
        for output in cell.get("outputs", []):
            for kind in HTML & set(output.get("data", {})):
                output.data[kind] = apart("".join(output.data[kind]), static, address)


def apart(text: str, static: Path, address: str) -> str:
    """Return HTML whose figures and tables are files below `static`."""
    text = SWITCH.sub("", text)
    text = IMAGE.sub(lambda match: image(match[1], b64decode(match[2]).decode(), static, address), text)
    return CSV.sub(lambda match: f'href="{keep(b64decode(match[1]), "csv", static, address)}"', text)


def image(attributes: str, drawing: str, static: Path, address: str) -> str:
    """Return an element that loads a drawing from a file when it comes into sight; its place is kept free until
    then."""
    source = keep(lighter(drawing).encode(), "svg", static, address)
    points = (re.search(rf'<svg[^>]*?\s{side}="([\d.]+)pt"', drawing)[1] for side in ("width", "height"))
    width, height = (round(float(each) * 4 / 3) for each in points)
    return f'<img {attributes} width="{width}" height="{height}" loading="lazy" decoding="async" src="{source}">'


def keep(content: bytes, kind: str, static: Path, address: str) -> str:
    """Save the content as a file named by its digest. Returns its address."""
    name = f"{hashlib.sha256(content).hexdigest()[:16]}.{kind}"
    (static / FOLDER).mkdir(parents=True, exist_ok=True)
    (static / FOLDER / name).write_bytes(content)
    return f"{address}/{FOLDER}/{name}"


def csv_link(frame: pd.DataFrame, name: str, tree: Path) -> str:
    """Save a table as a CSV file. Returns a link to it for a page in `book/`."""
    content = draw.spread_out(frame).to_csv(index=False).encode()
    address = keep(content, "csv", tree / "book" / "_static", "../_static")
    return f'<p class="ffi-csv"><a download="{name}.csv" href="{address}">CSV</a></p>'


def slug(*names: str) -> str:
    """Turn names into a part of an address or class: lower case, a hyphen for anything but letters and digits."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(names).lower()).strip("-")


def lighter(drawing: str) -> str:
    """Round coordinates to a hundredth of a point, and drop comments and metadata."""
    drawing = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", drawing, flags=re.S)

    def rounded(text: re.Match) -> str:
        return re.sub(r"-?[0-9]+[.][0-9]+", lambda each: f"{float(each[0]):.2f}".rstrip("0").rstrip("."), text[0])

    return re.sub(r"\s*\n\s*", "\n", re.sub(r' (d|x|y|points)="[^"]*"', rounded, drawing))


def style() -> str:
    """Return the style rules of all figures, once for all pages."""
    return re.sub(r"</?style>", "", draw.SWITCH).strip() + "\n"
