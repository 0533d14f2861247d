"""What a chapter holds for who teaches it: its notes for instructors, and the parts of its head.

The notes stand beside the notebook, in `notebooks/<chapter>/instructors.md`: expected answers, one for each prediction;
laptops; what may be skipped. Nothing of it is typed twice: the instructor's page and the speaker notes of the slides
are made of it.
"""

import re

from ffilab.page.contents import Chapter
from ffilab.page.templates import filled

NOTES = "instructors.md"
EXPECTED, LAPTOPS, SHORT = PARTS = ("Expected answers", "On laptops", "If time is short")
IN_NOTEBOOK = re.compile(r"```\{admonition\} For instructors\n:class: [^\n]+\n(.*?)\n```", re.S)


def notes(chapter: Chapter) -> dict[str, str]:
    """Read the notes of a chapter, by part; empty if it has none."""
    try:
        text = (chapter.source.parent / NOTES).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    parts = re.findall(r"^## ([^\n]+)\n+(.*?)(?=^## |\Z)", text, re.M | re.S)
    return {name.strip(): body.strip() for name, body in parts}


def expected(chapter: Chapter) -> dict[str, str]:
    """Return by the number of a prediction which wrong model to expect, and what to ask then."""
    return dict(re.findall(r"^(\d+)\. (.+(?:\n   .+)*)", notes(chapter).get(EXPECTED, ""), re.M))


def general(chapter: Chapter) -> str:
    """Return what the speaker needs to know before the lesson begins."""
    text_by_part = notes(chapter)
    return "\n\n".join(f"**{part}**\n\n{text_by_part[part]}" for part in (LAPTOPS, SHORT) if part in text_by_part)


def listed(head: str, what: str) -> str:
    """Return the list of questions or of objectives in the head of a page; empty if there is none."""
    match = re.search(rf"\*\*{what}\*\*\n\n((?:- .+\n)+)", head)
    return match[1] if match else ""


def in_notebook(chapter: Chapter) -> list[str]:
    """Return the notes in the notebook itself, without those that the run fills in."""
    cells = chapter.notebook.cells
    return [text for cell in cells for text in IN_NOTEBOOK.findall(cell.source) if "{glue" not in text]


def notes_page(chapters: list[Chapter]) -> str:
    """Write a section for each chapter, with links to it and to its slides."""
    titles = {chapter.name: re.match(r"# (.+)", chapter.openings[0])[1] for chapter in chapters}
    return filled("lessons.md", chapters=chapters, titles=titles, in_notebook=in_notebook, notes=notes)
