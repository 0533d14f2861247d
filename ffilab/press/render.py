"""Render executed chapters and prose with Jupyter Book: execution off, warnings are errors."""

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat

from ffilab.errors import UserError
from ffilab.judge import ledger
from ffilab.paths import BUILD, BY_PRODUCTS, HTML, LOGS, NATIVE, NOTEBOOKS, ROOT
from ffilab.press import status
from ffilab.press.chapters import Chapter, chapters
from ffilab.progress import say, step
from ffilab.subprocesses import explain_os_errors, logged


def render() -> Path:
    """Build `_build/html`; what stood there before is replaced only if all went well. Returns the index page.

    A chapter that was not measured yet has a page that says so. Raises UserError if none was, or if Jupyter Book warns.
    """
    if not any(chapter.is_executed for chapter in chapters()):
        raise UserError("Nothing was measured yet: run `make book`, or `make chapter NAME=…` for one chapter.")
    with explain_os_errors(str(BUILD)), step("render the book"):
        tree = assemble(BUILD / "source")
        log = LOGS / "jupyter-book.log"
        log.unlink(missing_ok=True)
        out = BUILD / "press"
        shutil.rmtree(out, ignore_errors=True)
        code = logged(
            [
                str(Path(sys.executable).with_name("jupyter-book")),
                "build",
                str(tree),
                "--path-output",
                str(out),
                "-W",
                "-n",
                "--keep-going",
            ],
            log,
            env={**os.environ, "PYTHONWARNINGS": "ignore", "JUPYTER_PATH": str(ROOT / "kernels")},
        )
        if code:
            raise UserError(f"Jupyter Book reported errors or warnings ({_warnings(log)}); read {log}.")
        shutil.rmtree(HTML, ignore_errors=True)
        (out / "_build" / "html").replace(HTML)
        shutil.rmtree(out)
    index = HTML / "index.html"
    say(f"  open {os.path.relpath(index)}")
    return index


def assemble(tree: Path) -> Path:
    """A source tree as in the repository, with executed notebooks in place of the stripped ones."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tree / name)
    shutil.copytree(ROOT / "book", tree / "book")
    built = shutil.ignore_patterns(*BY_PRODUCTS, "*.so", "*.egg-info", "__pycache__")
    shutil.copytree(NATIVE, tree / "native", ignore=built)
    shutil.copytree(ROOT / "ffilab", tree / "ffilab", ignore=shutil.ignore_patterns("__pycache__"))
    # The pages quote what is measured from the files beside them, and from the instrument.
    shutil.copytree(
        NOTEBOOKS, tree / "notebooks", ignore=shutil.ignore_patterns("*.ipynb", "__pycache__", ".ipynb_checkpoints")
    )
    for path in [*(tree / "notebooks").rglob("*.py"), *(tree / "native").rglob("*.py")]:
        path.write_text(without_tails(path.read_text()))
    for chapter in chapters():
        target = tree / f"{chapter.page}.ipynb"
        if chapter.is_executed:
            nbformat.write(with_banner(chapter), target)
        else:
            target.with_suffix(".md").write_text(not_measured(chapter))
    stale = {each.corner: each.changed() for each in chapters() if each.is_executed}
    status.write(tree / "book" / "_generated", ledger.collect(stale))
    return tree


def without_tails(source: str) -> str:
    """A source to be quoted, without the blank lines that the formatter wants before the marker of an end."""
    return re.sub(r"\n\n+(?=\s*# \[/)", "\n", source)


def with_banner(chapter: Chapter) -> nbformat.NotebookNode:
    """The executed page; if something that it was made from has changed since, with a word on that behind its heading."""
    notebook = nbformat.read(chapter.executed, as_version=4)
    if changed := chapter.changed():
        words = (
            ":::{warning}\nThis page is stale. Since it was made, this has changed: "
            f"{', '.join(changed)}. Measure again: `make chapter NAME={chapter.corner}`.\n:::"
        )
        notebook.cells.insert(1, nbformat.v4.new_markdown_cell(words, id="stale"))
    return notebook


def not_measured(chapter: Chapter) -> str:
    """The page of a chapter that was not measured yet: its heading, what it teaches, and how to measure it."""
    return (
        f"{chapter.opening}\n\n:::{{warning}}\nThis chapter was not measured on this machine yet: "
        f"`make chapter NAME={chapter.corner}`, or `make book` for all of them.\n:::\n"
    )


def _warnings(log: Path) -> str:
    lines = [
        line.strip() for line in log.read_text(errors="replace").splitlines() if "WARNING" in line or "ERROR" in line
    ]
    return "; ".join(lines[:3]) or "see the log"
