"""The appendix on the four documents: each part of them, its claims with their verdicts, where it stands, what was left out.

The list is `book/sources.toml`; how it is written stands there.
"""

import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from myst_parser.mdit_to_docutils.base import compute_unique_slug

from ffilab.judge import ledger
from ffilab.paths import ROOT
from ffilab.press.ledger_page import since

LIST = ROOT / "book" / "sources.toml"
# How the ledger calls the documents, by their keys in the bibliography.
LETTERS = {"scc2025": "A", "gamberini_balm": "B", "skvortsov_gil": "C", "stinner_placement": "D"}


@dataclass(frozen=True)
class Part:
    """A figure, table, slide, section or statement of a document. pages: `page` or `page#anchor`, as _toc.yml names pages."""

    place: str
    what: str
    claims: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    left_out: str = ""


def parts() -> dict[str, list[Part]]:
    """The parts of each document, in its order, by its key in the bibliography. Raises TypeError for a key of a part that is not known."""
    return {key: [Part(**part) for part in found] for key, found in tomllib.loads(LIST.read_text("utf-8")).items()}


def headings(cells: list[str]) -> dict[str, str]:
    """Anchor to heading, in order, of a page's cells (Markdown); anchors as myst-parser makes them."""
    found = {}
    for cell in cells:
        for node in SyntaxTreeNode(MarkdownIt().parse(cell)).children:
            if node.type == "heading":
                found[compute_unique_slug(node, found)] = node.children[0].content
    return found


def markdown(notebook: nbformat.NotebookNode) -> list[str]:
    """Its Markdown cells."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def links(tree: Path, pages: tuple[str, ...]) -> str:
    """Links to pages of an assembled source tree, and to their headings. A page that was not measured yet has no headings to link to."""
    anchors = defaultdict(list)
    for page in pages:
        name, _, anchor = page.partition("#")
        anchors[name] += [anchor] if anchor else []
    found = []
    for name, wanted in anchors.items():
        path = tree / f"{name}.ipynb"
        if path.exists():
            cells = markdown(nbformat.read(path, as_version=4))
        else:
            path = path.with_suffix(".md")
            cells = [path.read_text("utf-8")]
        known, target = headings(cells), f"../{path.relative_to(tree)}"
        title = next(iter(known.values())).split(":")[0]
        below = " / ".join(f"[{known[anchor]}]({target}#{anchor})" for anchor in wanted if anchor in known)
        found.append(f"[{title}]({target})" + (f" ({below})" if below else ""))
    return "; ".join(found)


def page(tree: Path, rows: list[dict]) -> str:
    """The generated part of the appendix. tree: assembled, with all other pages in it; rows: of the ledger."""
    documents, verdicts = parts(), {row["id"]: f"{ledger.verdict_of(row)}{since(row)}" for row in rows}
    every = [part for found in documents.values() for part in found]
    lines = [
        f"{len(every)} parts. {sum(bool(part.pages) and not part.left_out for part in every)} stand in this book whole, "
        f"{sum(bool(part.pages and part.left_out) for part in every)} with something left out, and "
        f"{sum(not part.pages for part in every)} do not stand in it."
    ]
    of_claims = defaultdict(list)
    for key, found in documents.items():
        lines += ["", f"## Document {LETTERS[key]}", "", f"{{cite:t}}`{key}`", ""]
        for number, part in enumerate(found, 1):
            lines.append(f"- **{number}. {part.place}.** {part.what}")
            if part.pages:
                lines.append(f"  - *Here:* {links(tree, part.pages)}")
            if part.claims:
                lines.append(f"  - *Claims:* {'; '.join(f'{claim}, {verdicts[claim]}' for claim in part.claims)}")
            if part.left_out:
                lines.append(f"  - *Left out:* {part.left_out}")
            for claim in part.claims:
                of_claims[claim].append(str(number))
    lines += ["", "## By claim", "", "Each claim with the parts of its document that it belongs to.", ""]
    lines += [
        f"- **{row['id']}.** {row['claim']} *Parts:* {', '.join(of_claims[row['id']])}"
        for row in rows
        if row["id"] in of_claims
    ]
    return "\n".join(lines) + "\n"
