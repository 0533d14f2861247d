"""The chapters of the book as the press sees them: where each stands, and what its page was made from.

With every executed page goes a file of facts, `page.json`: how and where it was measured, and digests of all that it
was made from. A page of which one has changed since is stale, and is never shown as fresh.
"""

import ast
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import nbformat

from ffilab.measure.reading import Reading
from ffilab.page.cells import FILE, exported
from ffilab.page.draw import GLUE_PREFIX, KEPT
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, BY_PRODUCTS, EXECUTED, NATIVE, NOTEBOOKS, ROOT, without_paths
from ffilab.setup.catalogue import BY_LABEL, CHAPTER_PAIR
from ffilab.setup.chapters import notebook_of, with_uses
from ffilab.setup.installed import load

FACTS = "page.json"
# Without these nothing is known of how a page was made.
OF_FACTS = {"digests", "records", "read"}
# A cell with this tag and a name begins another page of the chapter: `page:choosing`. Its source begins with the
# heading.
NEW_PAGE = "page:"
# Tags of the cell that glues what the run says, and of the one where the proof of a page begins.
SAID, PROOF = "said", "proof"


@dataclass(frozen=True)
class Chapter:
    """A chapter: `notebooks/<chapter>/<chapter>.ipynb`, and after execution the same below `_build/executed`."""

    name: str
    folder: Path = NOTEBOOKS
    executed_folder: Path = EXECUTED

    @property
    def source(self) -> Path:
        return self.folder / self.name / f"{self.name}.ipynb"

    @property
    def executed(self) -> Path:
        return self.executed_folder / self.name / self.source.name

    @property
    def is_executed(self) -> bool:
        return self.executed.exists()

    @property
    def _failure(self) -> Path:
        return self.executed_folder / f"{self.name}-failed.txt"

    @property
    def failure(self) -> str:
        """Return why it could not be measured the last time; empty if it could."""
        return self._failure.read_text() if self._failure.exists() else ""

    def note_failure(self, reason: str) -> None:
        """Keep for its page why it could not be measured; an empty reason removes that."""
        self._failure.parent.mkdir(parents=True, exist_ok=True)
        self._failure.write_text(without_paths(reason)) if reason else self._failure.unlink(missing_ok=True)

    @property
    def page(self) -> str:
        """Return its page as the table of contents names it."""
        return f"notebooks/{self.name}/{self.name}"

    @property
    def facts(self) -> dict:
        """Return the facts kept with the executed page; empty if there are none or the file is damaged."""
        try:
            facts = json.loads((self.executed.parent / FACTS).read_text())
        except (OSError, ValueError, RecursionError):
            return {}
        return facts if isinstance(facts, dict) else {}

    @property
    def session(self) -> Reading | None:
        """The session that the executed page was made from; None if there is none, or its records are gone."""
        records = self.facts.get("records")
        try:
            return Reading(self.name, (BUILD / records[-1]).parent) if records else None
        except UserError:
            return None

    @property
    def notebook(self) -> nbformat.NotebookNode:
        """Read its source. Raises UserError if it is damaged."""
        return read_notebook(self.source, f"take it back (`git checkout {os.path.relpath(self.source)}`)", True)

    @property
    def executed_notebook(self) -> nbformat.NotebookNode:
        """Read its executed page. Raises UserError if it is damaged."""
        return read_notebook(self.executed, f"make it again (`make chapter NAME={self.name}`)")

    @property
    def jupyter_kernel(self) -> str:
        """The Jupyter kernel that it runs on. Raises UserError if that is none of the pair: an editor may have noted
        another."""
        name, ours = self.notebook.metadata.kernelspec.name, [interpreter.name for interpreter in CHAPTER_PAIR]
        if name not in ours:
            path = os.path.relpath(self.source)
            raise UserError(
                f"The notebook {path} names the Jupyter kernel {name!r}, and chapters run on {' or '.join(ours)}: "
                f"take it back (`git checkout {path}`)."
            )
        return name

    @property
    def openings(self) -> list[str]:
        """Return the first cell of each page: the heading, and what the reader will learn."""
        return [page.cells[0].source for page in split(self.notebook, self.name).values()]

    @property
    def minutes(self) -> dict[str, dict[str, int]]:
        """Return the minutes of teaching and of exercises, by page: metadata of its first cell; empty if it has
        none."""
        openings = (page.cells[0] for page in split(self.notebook, self.name).values())
        return dict(zip(self.pages, [opening.metadata.get("minutes", {}) for opening in openings]))

    @property
    def pages(self) -> list[str]:
        """Return its pages as the table of contents names them, in order: see `split`."""
        return [f"notebooks/{self.name}/{name}" for name in split(self.notebook, self.name)]

    def changed(self) -> list[str]:
        """Name what has changed since the page was made; empty if the page is fresh."""
        facts = self.facts
        if not facts.keys() >= OF_FACTS:
            return ["everything: nothing is known of how it was made"]
        now = digests(self.name, facts)
        return [what for what, digest in facts["digests"].items() if now.get(what) != digest]


def read_notebook(path: Path, mend: str, with_kernel: bool = False) -> nbformat.NotebookNode:
    """Read a notebook that has cells and, with_kernel, names a Jupyter kernel. Raises UserError, with `mend`, if it is
    damaged."""
    try:
        notebook = nbformat.read(path, as_version=4)
        _ = notebook.cells[0].source, notebook.metadata.kernelspec.name if with_kernel else None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0][:80]
        raise UserError(f"The notebook {os.path.relpath(path)} is damaged ({why}): {mend}.") from None
    return notebook


def kept(notebook: nbformat.NotebookNode) -> dict:
    """Return what the cells of an executed notebook keep for the press, by name: see draw.keep."""
    outputs = (output for cell in notebook.cells for output in cell.get("outputs", []))
    return {name: what for one in outputs for name, what in one.get("metadata", {}).get(KEPT, {}).items()}


def glued(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Return the glued texts of an executed notebook by name."""
    texts = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if text := output.get("data", {}).get(f"{GLUE_PREFIX}text/plain"):
                texts[output["metadata"]["scrapbook"]["name"]] = ast.literal_eval(text)
    return texts


def tags(cell: nbformat.NotebookNode) -> list[str]:
    """Return the tags of a cell."""
    return cell.metadata.get("tags", [])


def split(notebook: nbformat.NotebookNode, first: str) -> dict[str, nbformat.NotebookNode]:
    """Split a notebook into its pages, by name: a long chapter is measured in one session and read in several pages.

    What a run says is glued in one cell; each page gets a copy, as none knows what is glued on another.
    """
    parts, said = {first: []}, [cell for cell in notebook.cells if SAID in tags(cell)]
    for cell in notebook.cells:
        named = [tag.removeprefix(NEW_PAGE) for tag in tags(cell) if tag.startswith(NEW_PAGE)]
        if named:
            parts[named[0]] = []
        if cell not in said:
            parts[list(parts)[-1]].append(cell)
    for name, cells in parts.items():
        cells += [nbformat.NotebookNode({**cell, "id": f"said-{name}"[:64]}) for cell in said]
    return {name: nbformat.NotebookNode({**notebook, "cells": cells}) for name, cells in parts.items()}


def chapters() -> list[Chapter]:
    """Return all chapters in the order of their names."""
    return [Chapter(path.stem) for path in sorted(NOTEBOOKS.glob("*/*.ipynb")) if path.stem == path.parent.name]


def chapter(name: str) -> Chapter:
    """Return one chapter. Raises UserError with the list of chapters if there is none of that name."""
    return Chapter(notebook_of(name).stem)


def digests(chapter: str, facts: dict) -> dict[str, str]:
    """Digest all that a page is made from, by name. facts: those kept with the page, see chapter.described."""
    return {**source_digests(chapter), **record_digests(facts)}


def source_digests(chapter: str) -> dict[str, str]:
    """Digest a chapter's own files, and those of the chapters that it uses."""
    folders = [NOTEBOOKS / name for name in with_uses(chapter)]
    native = [path for name in with_uses(chapter) for path in sources(NATIVE / name)]
    others = [exported(notebook) for folder in folders[1:] for notebook in folder.glob("*.ipynb")]
    found = [path for folder in folders for kind in ("*.py", "*.toml") for path in folder.glob(kind)]
    # What is made from the cells is no source.
    files = [path for path in found if path.name != FILE]
    return {
        "the notebook": digest(list(folders[0].glob("*.ipynb"))),
        "the experiment": digest(files, "".join(others)),
        "its native source": digest([*NATIVE.glob("*.py"), *native]),
    }


def record_digests(facts: dict) -> dict[str, str]:
    """Digests of the records of a page and, if it was measured in this clone, of its interpreters; what is gone counts
    as changed."""
    by_name = {"its records": digest([BUILD / path for path in facts["records"]])}
    if not facts["read"]:
        by_name["an interpreter"] = hashlib.sha256(
            json.dumps({label: stamp(label) for label in facts.get("interpreters", [])}).encode()
        ).hexdigest()
    return by_name


def stamp(label: str) -> str | None:
    """Return what identifies the interpreter of that label now; None if it is no longer set up."""
    try:
        return load(BY_LABEL[label]).facts["stamp"]
    except (UserError, KeyError):
        return None


def sources(folder: Path) -> list[Path]:
    """Return the files of a chapter's native folder, without what build tools leave there."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and not {*BY_PRODUCTS, "__pycache__"} & set(path.relative_to(folder).parts)
    ]


def digest(paths: list[Path], text: str = "") -> str:
    """Return the SHA-256 of the names and contents of files, and of a text; a missing file counts as such."""
    combined = hashlib.sha256(text.encode())
    for path in sorted(paths):
        relative = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
        combined.update(f"{relative}\0".encode() + (path.read_bytes() if path.is_file() else b"gone") + b"\0")
    return combined.hexdigest()
