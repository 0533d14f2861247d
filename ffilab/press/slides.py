"""Slides of the chapters, made of the executed pages: questions, predictions, figures, the run's answers, key points, verdicts.

A deck is one page of reveal.js, which is copied beside it; nothing is loaded from elsewhere. What is marked on the page as a
smoke test is marked here.
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

from ffilab.draw import GLUE_PREFIX
from ffilab.press import lessons
from ffilab.press.chapters import Chapter

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

    corner: str
    title: str
    slides: list[Slide] = field(default_factory=list)
    pictures: dict[str, bytes] = field(default_factory=dict)


def glued(notebook) -> dict[str, str]:
    """Return the glued texts of a notebook by name."""
    texts = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if name := output.get("metadata", {}).get("scrapbook", {}).get("name"):
                texts[name] = ast.literal_eval(output["data"][f"{GLUE_PREFIX}text/plain"])
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
    glued_texts, facts = glued(notebook), chapter.facts
    title = re.match(r"# (.+)", notebook.cells[0].source)[1]
    new = Deck(chapter.corner, title)
    new.slides.append(Slide(title, standing(chapter, facts), notes=lessons.general(chapter)))
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
                new.slides.append(
                    Slide(
                        f"You predicted ({number})",
                        f"{question}\n\n{plain(answer, glued_texts)}",
                        notes=expected.get(number, ""),
                    )
                )
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


def standing(chapter: Chapter, facts: dict) -> str:
    """Say where the numbers come from, and which marks apply to all of them."""
    lines = [
        f"Measured on {facts.get('machine', 'an unknown machine')}, {facts.get('measured', '')[:16].replace('T', ' ')}, "
        f"budget {facts.get('budget', 'not known')}."
    ]
    if facts.get("budget") == "smoke":
        lines.append("**This is a smoke test: none of its figures is a result.**")
    if changed := chapter.changed():
        lines.append(f"**Stale**: since it was measured, this has changed: {', '.join(changed)}.")
    return "\n\n".join(lines)


def pictured(deck: Deck, heading: str, figure: str) -> Slide:
    """Make a slide with a figure for light and dark; its alt text goes to the speaker's notes."""
    number, images, text = len(deck.pictures) // 2 + 1, [], ""
    for mode, alt, drawn in IMAGE.findall(figure):
        name, text = f"{deck.corner}-{number}-{mode}.svg", html.unescape(alt)
        deck.pictures[name] = base64.b64decode(drawn)
        images.append(f'<img class="ffi-{mode}" loading="lazy" alt="{alt}" src="figures/{name}">')
    # What is drawn; the numbers, which a picture shows better than a list, are in its alternative text and in the notes.
    caption = f"<figcaption>{html.escape(text.partition(': ')[0], quote=False)}</figcaption>"
    return Slide(heading, picture=f"<figure>{''.join(images)}{caption}</figure>", notes=html.escape(text, quote=False))


def page(deck: Deck) -> str:
    """Return a deck as HTML."""
    sections = []
    for number, slide in enumerate(deck.slides):
        level = "h2" if number else "h1"
        body = markdown.render(slide.body)
        notes = f'<aside class="notes">{markdown.render(slide.notes)}</aside>' if slide.notes else ""
        long = ' class="long"' if len(body) > 900 else ""
        sections.append(
            f"<section{long}>\n<{level}>{markdown.renderInline(slide.title)}</{level}>\n{body}{slide.picture}{notes}</section>"
        )
    address = f"../notebooks/{deck.corner}/{deck.corner}.html"
    return TEMPLATE.format(title=html.escape(deck.title), chapter=address, sections="\n".join(sections))


def write(folder: Path, chapters: list[Chapter]) -> list[Path]:
    """Write a deck for every chapter that was measured, and what they need, into a folder of their own. Returns the decks."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "figures").mkdir(parents=True)
    reveal = Path(find_spec("sphinx_revealjs").origin).parent / "_static" / "revealjs"
    for name in BUNDLED:
        shutil.copy(reveal / name, folder)
    (folder / "slides.css").write_text(STYLE)
    (folder / "slides.js").write_text(SCRIPT)
    decks = []
    for chapter in chapters:
        if chapter.is_executed:
            new = deck(chapter)
            for name, picture in new.pictures.items():
                (folder / "figures" / name).write_bytes(picture)
            decks.append(folder / f"{chapter.corner}.html")
            decks[-1].write_text(page(new), encoding="utf-8")
    return decks


TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: slides</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="reset.css">
<link rel="stylesheet" href="reveal.css">
<link rel="stylesheet" href="slides.css">
<noscript><link rel="stylesheet" href="data:text/css,html%2Cbody%7Boverflow%3Aauto%7D.reveal%20.slides%7Bposition%3Astatic%7D.reveal%20.slides%3Esection%7Bdisplay%3Ablock%3Bposition%3Astatic%7D"></noscript>
</head>
<body>
<main class="reveal"><div class="slides">
{sections}
</div></main>
<p class="back"><a href="{chapter}">chapter</a> <button type="button" id="theme">light or dark</button></p>
<script src="reveal.js"></script>
<script src="notes.js"></script>
<script src="slides.js"></script>
</body>
</html>
"""
SCRIPT = """// The keys of reveal.js: arrows, Esc for the overview, S for the speaker's notes, ? for the others.
const root = document.documentElement;
const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
root.dataset.theme = dark() ? "dark" : "light";
document.getElementById("theme").addEventListener("click", () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
});
Reveal.initialize({ hash: true, width: 1280, height: 720, center: false, transition: "none", plugins: [RevealNotes] });
"""
STYLE = """:root { --ink: #1f2328; --ground: #ffffff; --accent: #0a5ea8; }
html[data-theme="dark"] { --ink: #e6e6e6; --ground: #14181e; --accent: #79b8ff; }
body, .reveal-viewport { color: var(--ink); background: var(--ground); }
.reveal { font: 30px/1.4 system-ui, sans-serif; color: var(--ink); }
.reveal .slides { text-align: left; }
.reveal .slides section { box-sizing: border-box; padding: 20px 40px; }
.reveal h1 { font-size: 2em; line-height: 1.2; margin-bottom: 0.6em; font-weight: bold; }
.reveal h2 { font-size: 1.3em; line-height: 1.2; margin-bottom: 0.6em; font-weight: bold; color: var(--accent); }
.reveal p, .reveal ul, .reveal ol { margin-bottom: 0.6em; }
.reveal ul { list-style: disc; padding-left: 1.2em; }
.reveal ol { list-style: decimal; padding-left: 1.2em; }
.reveal li { margin-bottom: 0.3em; }
.reveal strong { font-weight: bold; }
.reveal em { font-style: italic; }
.reveal code { font-family: ui-monospace, monospace; font-size: 0.9em; }
.reveal blockquote { border-left: 4px solid var(--accent); padding-left: 0.6em; margin-bottom: 0.6em; }
.reveal .long { font-size: 0.72em; }
.reveal figure img { max-width: 100%; max-height: 470px; width: 1100px; object-fit: contain; object-position: left; }
.reveal figcaption { font-size: 0.65em; }
html[data-theme="dark"] .ffi-light, html:not([data-theme="dark"]) .ffi-dark { display: none !important; }
.reveal .controls, .reveal .progress { color: var(--accent); }
.back { position: fixed; left: 8px; bottom: 4px; z-index: 40; font: 14px system-ui, sans-serif; }
.back a { color: var(--accent); }
.back button { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--ink); border-radius: 3px; }
a:focus-visible, button:focus-visible { outline: 3px solid var(--accent); }
"""
