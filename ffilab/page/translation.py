"""Pages in a second language: the same records, cells and figures, with other prose.

`notebooks/<chapter>/<chapter>.zh_TW.md` holds the Markdown cells of a page, each under a line `<!-- its id -->`;
sentences.zh_TW.toml what the run chooses; words.zh_TW.toml the captions and heads of tables, by their English text. The
page is made again from the records of the English one, with LANGUAGE set. Its proof is left out: it stands on the
English page.
"""

import re
from copy import deepcopy

import nbformat

from ffilab.page.contents import PROOF, SAID, Chapter, tags
from ffilab.page.execute import execute
from ffilab.page.fold import LANGUAGES
from ffilab.page.templates import filled
from ffilab.run.paths import BUILD, EXECUTED, NOTEBOOKS

CELL = re.compile(r"^<!-- ([\w-]+) -->\n", re.M)
LABEL = re.compile(r"(?<=^:label: )\S+|(?<={solution-start} )\S+", re.M)
FOLDED = re.compile(r"<details.*</details>", re.S)


def cells(chapter: str, language: str) -> dict[str, str]:
    """Return the translated Markdown cells of a chapter by id; empty if it is not translated."""
    path = NOTEBOOKS / chapter / f"{chapter}.{language}.md"
    parts = CELL.split(path.read_text(encoding="utf-8"))[1:] if path.exists() else []
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2])}


def made(chapter: Chapter, language: str) -> Chapter:
    """Return the chapter with a page in that language, made from the records of its English page if that was not done
    yet."""
    translated = Chapter(chapter.name, executed_folder=chapter.executed_folder.with_name(f"{EXECUTED.name}_{language}"))
    own, facts = translated.facts, chapter.facts
    if not translated.is_executed or own.get("records") != facts.get("records") or translated.changed():
        execute(translated, facts["budget"], (BUILD / facts["records"][-1]).parent, language=language)
    return translated


def switch(page: nbformat.NotebookNode, name: str, language: str = "") -> None:
    """Put a line below a page's heading that leads to the same page in another language; by default, English."""
    leads = f"{{doc}}`{LANGUAGES[language][0] if language else 'English'} <{named(name, language)}>`"
    page.cells.insert(1, nbformat.v4.new_markdown_cell(f":::{{div}} ffi-language\n{leads}\n:::", id="language"))


def named(name: str, language: str) -> str:
    """Return the name of a page in a language: English pages have none in theirs."""
    return f"{name}_{language}" if language else name


def page(notebook: nbformat.NotebookNode, chapter: str, language: str) -> nbformat.NotebookNode:
    """Return an executed page with its prose in that language: without the proof, and without what is folded in
    outputs."""
    translated, kept, is_proof, is_exercise = cells(chapter, language), [], False, False
    for cell in deepcopy(notebook.cells):
        is_proof = is_proof or PROOF in tags(cell)
        if cell.cell_type == "markdown":
            is_exercise = is_exercise or "{exercise}" in cell.source
            source = translated.get(cell.id, cell.source)
            # Both pages have the same exercises, and a label is one in the whole book.
            cell.source = LABEL.sub(rf"\g<0>-{language}", source)
        elif is_exercise and SAID not in tags(cell):
            # What a check prints is English.
            cell.outputs = []
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = FOLDED.sub("", output.data["text/html"])
        if not is_proof or SAID in tags(cell):
            kept.append(cell)
    kept.append(nbformat.v4.new_markdown_cell(filled(f"proof.{language}.md", chapter=chapter), id=f"proof-{language}"))
    return nbformat.NotebookNode({**notebook, "cells": kept})
