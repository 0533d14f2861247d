"""Links from pages that are no chapter to the section that measured, and tables that a chapter keeps, shown there
again."""

from dataclasses import dataclass
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from myst_parser.mdit_to_docutils.base import compute_unique_slug

from ffilab.judge.claims import in_words
from ffilab.page import draw, files, tables
from ffilab.page.contents import Chapter
from ffilab.page.templates import filled
from ffilab.run import settings


def headings(cells: list[str]) -> dict[str, str]:
    """Return the headings of a page's Markdown cells in order, by their anchors as myst-parser makes them."""
    by_anchor = {}
    for cell in cells:
        for node in SyntaxTreeNode(MarkdownIt().parse(cell)).children:
            if node.type == "heading":
                by_anchor[compute_unique_slug(node, by_anchor)] = node.children[0].content
    return by_anchor


def markdown(notebook: nbformat.NotebookNode) -> list[str]:
    """Return the Markdown cells of a notebook."""
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def target(tree: Path, place: str) -> tuple[str, dict[str, str], str]:
    """Find a place (`page#anchor`, as _toc.yml names pages) in an assembled source tree.

    Returns the page's address seen from `book/`, its headings by anchor, and the anchor; the anchor is empty if the
    page has no such heading: a page that was not measured yet has none but its title.
    """
    page, _, anchor = place.partition("#")
    path = tree / f"{page}.ipynb"
    if path.exists():
        cells = markdown(nbformat.read(path, as_version=4))
    else:
        path = path.with_suffix(".md")
        cells = [path.read_text("utf-8")]
    titles = headings(cells)
    return f"../{path.relative_to(tree)}", titles, anchor if anchor in titles else ""


def title(titles: dict[str, str]) -> str:
    """Return a page's title, up to its colon, from its headings."""
    return next(iter(titles.values())).split(":")[0]


def link(tree: Path, place: str, text: str = "") -> str:
    """Link to a place, from a page in `book/`: to its page in the language that is spoken, if there is one. text: by
    default the heading."""
    page = f"{place.partition('#')[0]}_{settings.language()}"
    if settings.language() and ((tree / f"{page}.ipynb").exists() or (tree / f"{page}.md").exists()):
        place = page
    address, titles, anchor = target(tree, place)
    text = text or (titles[anchor] if anchor else title(titles))
    return f"[{text}]({address}{'#' * bool(anchor)}{anchor})"


def section(tree: Path, place: str) -> str:
    """Link to the page of a place and, in brackets, to its heading: `[Title](page.md) ([Heading](page.md#heading))`."""
    if not place:
        return ""
    address, titles, anchor = target(tree, place)
    return f"[{title(titles)}]({address})" + (f" ([{titles[anchor]}]({address}#{anchor}))" if anchor else "")


def since(name: str) -> str:
    """Return a sentence, with a space before it, if the page of a chapter is stale; otherwise nothing."""
    chapter = Chapter(name)
    changed = chapter.changed() if chapter.is_executed else []
    return f" Its page is stale: {', '.join(changed)} changed since." if changed else ""


@dataclass(frozen=True)
class Shown:
    """A table that a chapter keeps, as a page shows it again. heading: what it answers. where: values of columns of the
    rows to show; columns: those to show; without them all. optional: a chapter may not be there yet."""

    chapter: str
    table: str
    heading: str
    link: str = ""
    where: dict | None = None
    columns: tuple[str, ...] = ()
    optional: bool = False

    def read(self) -> tables.Table | None:
        """Read the kept table with the rows and columns to show; None without one."""
        kept = tables.kept_table(self.chapter, in_words(self.table))
        if kept is None:
            return None
        frame = kept.frame
        for column, value in (self.where or {}).items():
            frame = frame[frame[column].astype(str) == in_words(value)]
        frame = frame[[in_words(column) for column in self.columns]] if self.columns else frame
        return tables.Table(frame, kept.caption, kept.mark)


def again(shown: Shown, tree: Path) -> str:
    """Show the table in MyST, folded under its heading, with its mark and a link; a line says so if it was not
    measured."""
    kept, heading = shown.read(), in_words(shown.heading)
    if kept is None:
        return "" if shown.optional else f"- {heading}: not measured here.\n"
    return filled(
        "again.md",
        kept=kept,
        heading=heading,
        short=draw.short(kept.mark),
        rows=draw.bare(kept.frame, absent=""),
        where=link(tree, shown.link) if shown.link else "",
        since=since(shown.chapter),
        csv=files.csv_link(kept.frame, "table", tree),
    )
