"""README's finding and picture are those of today's golden records. `--renew` draws the picture anew."""

import base64
import re

from ffilab.page.contents import glued
from ffilab.page.draw import GLUE_PREFIX
from ffilab.run.paths import ROOT
from tests.helpers import golden_pages

README = (ROOT / "README.md").read_text(encoding="utf-8")
PICTURE = "book/_static/convoy.svg"
# What the text that stands for it on the page has in it, and no other.
ALT = "Gantt chart of three requests"
MAX_BYTES = 60_000


def test_finding_and_picture_are_those_of_the_golden_records(held):
    notebook = golden_pages.page("convoy").executed_notebook
    assert glued(notebook)["convoy"] in README.replace("\n", " ")
    shown = [output.data.get(f"{GLUE_PREFIX}text/html", "") for cell in notebook.cells for output in outputs(cell)]
    (figure,) = [html for html in shown if "<figure" in html and ALT in html]
    drawn = base64.b64decode(re.search(r'class="ffi-light"[^>]* src="data:image/svg\+xml;base64,([^"]+)"', figure)[1])
    # A page of a code host may be dark.
    held(f"../../{PICTURE}", drawn.decode().replace("<svg ", '<svg style="background: white" ', 1))
    assert len(drawn) < MAX_BYTES
    assert f"]({PICTURE})" in README


def outputs(cell):
    """Those of a cell that hand something to the page."""
    return [output for output in cell.get("outputs", []) if "data" in output]
