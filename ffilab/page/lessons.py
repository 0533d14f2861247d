"""What a chapter holds for who teaches it: its notes for instructors, and the parts of its head.

The notes stand beside the notebook, in `notebooks/<chapter>/instructors.md`: expected answers, one for each prediction;
laptops; what may be skipped. The instructor's page is made of it.
"""

import re

from ffilab.page.contents import Chapter
from ffilab.page.templates import filled

NOTES = "instructors.md"
PREDICTIONS = re.compile(r"^## Your prediction\n+(?:Write down[^\n]*\n+)?((?:\d\. .*(?:\n   .*)*\n?)+)", re.M)
IN_NOTEBOOK = re.compile(r"```\{admonition\} For instructors\n:class: [^\n]+\n(.*?)\n```", re.S)


def notes(chapter: Chapter) -> dict[str, str]:
    """Read the notes of a chapter, by part; empty if it has none."""
    try:
        text = (chapter.source.parent / NOTES).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    parts = re.findall(r"^## ([^\n]+)\n+(.*?)(?=^## |\Z)", text, re.M | re.S)
    return {name.strip(): body.strip() for name, body in parts}


def in_notebook(chapter: Chapter) -> list[str]:
    """Return the notes in the notebook itself, without those that the run fills in."""
    cells = chapter.notebook.cells
    return [text for cell in cells for text in IN_NOTEBOOK.findall(cell.source) if "{glue" not in text]


def predictions(chapter: Chapter) -> str:
    """Return what a chapter asks its readers to predict: to be handed out, since its pages begin with the answers."""
    asked = [PREDICTIONS.search(cell.source) for cell in chapter.notebook.cells]
    return "\n".join(match[1].strip() for match in asked if match)


def notes_page(chapters: list[Chapter]) -> str:
    """Write a section for each chapter, with a link to it."""
    titles = {chapter.name: re.match(r"# (.+)", chapter.openings[0])[1] for chapter in chapters}
    return filled(
        "lessons.md", chapters=chapters, titles=titles, predictions=predictions, in_notebook=in_notebook, notes=notes
    )
