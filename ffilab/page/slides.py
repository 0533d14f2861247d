"""Slides of the chapters, made of the executed pages: questions, predictions, figures, the run's answers, key points,
verdicts.

A deck is one page of reveal.js, which is copied beside it; nothing is loaded from elsewhere. What is marked on the page
as a smoke test is marked here.
"""

import ast
import base64
import html
import re
import shutil
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from markdown_it import MarkdownIt

from ffilab.page import lessons
from ffilab.page.contents import Chapter
from ffilab.page.draw import GLUE_PREFIX
from ffilab.page.templates import TEMPLATES, filled

FOLDER = "slides"
# Of the copy of reveal.js that sphinx-revealjs brings.
BUNDLED = ("dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js", "LICENSE")
FIGURE = re.compile(r'<figure class="ffi-figure">(.*?)</figure>', re.S)
IMAGE = re.compile(r'<img class="ffi-(light|dark)" alt="([^"]*)" src="data:image/svg\+xml;base64,([^"]+)"')
PREDICTED = re.compile(r"^\*\*You predicted \((\d+)\)\.\*\* (.+?)(?:\n\n|\Z)", re.M | re.S)
VERDICT = re.compile(r"\*\*[A-Z]\d+: .*")
markdown = MarkdownIt("commonmark").enable("table")


@dataclass
class Slide:
    """title and body: markdown; picture: HTML under them; notes: markdown for the speaker."""

    title: str
    body: str = ""
    picture: str = ""
    notes: str = ""


@dataclass
class Deck:
    """The slides of a chapter, and the pictures that they show, by file name."""

    name: str
    title: str
    slides: list[Slide] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)


def glued(notebook) -> dict[str, str]:
    """Return the glued texts of a notebook by name."""
    texts = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if text := output.get("data", {}).get(f"{GLUE_PREFIX}text/plain"):
                texts[output["metadata"]["scrapbook"]["name"]] = ast.literal_eval(text)
    return texts


def plain(text: str, glued_texts: dict[str, str]) -> str:
    """Turn Markdown of a page into that of a slide: glue filled in, other roles as their text, no citations."""
    text = re.sub(r"\{glue:text\}`([^`]+)`", lambda role: html.escape(glued_texts[role[1]], quote=False), text)
    text = re.sub(r" ?\{cite\}`[^`]*`", "", text)
    text = re.sub(r"\{\w+\}`([^`<]+?) *<[^`]*>`", r"\1", text)
    return re.sub(r"\{\w+\}`([^`]+)`", lambda role: role[1].rpartition("/")[2].replace("_", " "), text)


def deck(chapter: Chapter) -> Deck:
    """Make the slides of an executed chapter."""
    notebook = chapter.executed_notebook
    glued_texts = glued(notebook)
    title = re.match(r"# (.+)", notebook.cells[0].source)[1]
    new = Deck(chapter.name, title)
    # Where the numbers come from, and which marks apply to all of them.
    standing = filled("standing.md", facts=chapter.facts, changed=chapter.changed()).strip()
    new.slides.append(Slide(title, standing, notes=lessons.general(chapter)))
    heading, asked, expected, verdicts = "", {}, lessons.expected(chapter), []
    for cell in notebook.cells:
        text = cell.source if cell.cell_type == "markdown" else ""
        for part in re.split(r"(?m)^(?=#{1,3} )", text):
            if named := re.match(r"#{1,3} (.+)", part):
                heading = plain(named[1], glued_texts)
            if questions := lessons.listed(part, "Questions"):
                new.slides.append(Slide(f"{heading}: questions", plain(questions, glued_texts)))
            if heading == "Your prediction":
                asked |= dict(re.findall(r"^(\d+)\. (.+(?:\n   .+)*)", part, re.M))
                new.slides += [
                    Slide(f"Your prediction ({number})", plain(question, glued_texts), notes=expected.get(number, ""))
                    for number, question in asked.items()
                    if re.search(rf"^{number}\. ", part, re.M)
                ]
            for number, answer in PREDICTED.findall(part):
                question = f"> {plain(asked.get(number, ''), glued_texts)}".replace("\n", " ")
                body = f"{question}\n\n{plain(answer, glued_texts)}"
                new.slides.append(Slide(f"You predicted ({number})", body, notes=expected.get(number, "")))
            if heading == "Key points" and (points := re.search(r"(?:^- .+\n?)+", part, re.M)):
                new.slides.append(Slide("Key points", plain(points[0], glued_texts)))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for figure in FIGURE.findall(data.get("text/html", "")):
                new.slides.append(pictured(new, heading, figure))
            if match := VERDICT.match(data.get("text/markdown", "")):
                verdicts.append(f"- {match[0]}")
    # A slide holds so many that they can be read from the last row.
    new.slides += [Slide("Verdicts of this run", "\n".join(verdicts[n : n + 5])) for n in range(0, len(verdicts), 5)]
    return new


def pictured(deck: Deck, heading: str, figure: str) -> Slide:
    """Make a slide with a figure for light and dark; its alt text goes to the speaker's notes."""
    number, images, text = len(deck.pictures) // 2 + 1, [], ""
    for mode, alt, drawn in IMAGE.findall(figure):
        name, text = f"{deck.name}-{number}-{mode}.svg", html.unescape(alt)
        deck.pictures[name] = base64.b64decode(drawn)
        images.append((mode, name))
    # What is drawn; the numbers, which a picture shows better than a list, are in its alternative text and in the
    # notes.
    picture = filled("picture.html", images=images, alt=text, caption=text.partition(": ")[0])
    return Slide(heading, picture=picture, notes=html.escape(text, quote=False))


def page(deck: Deck) -> str:
    """Return a deck as HTML."""
    slides = [
        {
            "level": "h2" if number else "h1",
            "heading": markdown.renderInline(slide.title),
            "html": markdown.render(slide.body),
            "picture": slide.picture,
            "notes": markdown.render(slide.notes) if slide.notes else "",
        }
        for number, slide in enumerate(deck.slides)
    ]
    return filled("slides.html", title=deck.title, chapter=deck.name, slides=slides)


def write(folder: Path, chapters: list[Chapter]) -> list[Path]:
    """Write a deck for every chapter that was measured, and what they need, into a folder of their own. Returns the
    decks."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "figures").mkdir(parents=True)
    reveal = Path(find_spec("sphinx_revealjs").origin).parent / "_static" / "revealjs"
    for name in BUNDLED:
        shutil.copy(reveal / name, folder)
    for name in ("slides.css", "slides.js"):
        shutil.copy(TEMPLATES / name, folder)
    decks = []
    for chapter in chapters:
        if chapter.is_executed:
            new = deck(chapter)
            for name, picture in new.pictures.items():
                (folder / "figures" / name).write_bytes(picture)
            decks.append(folder / f"{chapter.name}.html")
            decks[-1].write_text(page(new), encoding="utf-8")
    return decks
