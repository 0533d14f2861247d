"""What readers look for, and where it is: the words of book/search.toml, for the index and for the order of what is found."""

import json
import tomllib
from pathlib import Path

import nbformat

FILE = "search.toml"
SCRIPT = "search.js"


def keywords(folder: Path) -> dict[str, str]:
    """Words by page, as the table of contents names it: what a reader may call what the page is about."""
    return tomllib.loads((folder / FILE).read_text())["pages"]


def index(tree: Path) -> None:
    """Give the pages of a source tree their words, for the index."""
    words = keywords(tree / "book")
    for page, said in words.items():
        notebook, prose = tree / f"{page}.ipynb", tree / f"{page}.md"
        if notebook.exists():
            text = nbformat.read(notebook, as_version=4)
            text.metadata["myst"] = {"html_meta": {"keywords": said}}
            nbformat.write(text, notebook)
        elif prose.exists():
            prose.write_text(f'---\nmyst:\n  html_meta:\n    keywords: "{said}"\n---\n{prose.read_text()}')


def order(html: Path, folder: Path) -> None:
    """Give the search of a rendered book its order and its excerpts: book/search.js, with the words of book/search.toml."""
    script = (
        (folder / SCRIPT).read_text().replace("const WORDS = {};", f"const WORDS = {json.dumps(keywords(folder))};")
    )
    # The last script that the search page loads; Sphinx puts a scorer there, too.
    target = html / "_static" / "language_data.js"
    target.write_text(f"{target.read_text()}\n{script}")
