"""Render executed chapters and prose with Jupyter Book: execution off, warnings are errors."""

import filecmp
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import click
import nbformat

from ffilab.judge import ledger
from ffilab.page import draw, files, fold, ledger_page, matrix, parts, translation, words
from ffilab.page.advice import Copy
from ffilab.page.contents import PROOF, Chapter, chapters, split, tags
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, BY_PRODUCTS, HTML, LOGS, NATIVE, NOTEBOOKS, ROOT, swap
from ffilab.run.progress import say, step
from ffilab.run.subprocesses import explain_os_errors, logged

SEARCH = "search.toml"
# A link to a page without words of its own, inside a sentence: in front of it stands more than the beginning of a line,
# an item or a cell.
LINK = re.compile(r"(?<![-|\"\n] )(?<![|\"\n]){doc}`([^<`]+)`")
VERSION = re.compile(r"\{\{ (\w+) \}\}")
# The name before the question in the title of a page, in Markdown or in a notebook.
TITLE = re.compile(r'^[ "]*# ([^:\n"]+): ', re.M)


def render(again: bool = False) -> Path:
    """Build `_build/html`; what stood there before is replaced once there is a whole book. Returns the index page.

    again: only what has changed since the last time, so that warnings of other pages are not seen again.
    A chapter that was not measured yet has a page that says so. Raises UserError if none was, or if Jupyter Book warns:
    a page with a warning costs no other page, and the book is there all the same.
    """
    if not any(chapter.is_executed for chapter in chapters()):
        raise UserError("Nothing was measured yet: run `make book`, or `make chapter NAME=…` for one chapter.")
    # Pages are English, whatever the reader speaks; a translated one has its own.
    with explain_os_errors(str(BUILD)), step("render the book"), words.speaking(""):
        tree, out = BUILD / "source", BUILD / "press"
        if not again:
            shutil.rmtree(tree, ignore_errors=True)
            shutil.rmtree(out, ignore_errors=True)
        refresh(assemble(BUILD / "source-new"), tree)
        warned = press(tree, out)
        pages = BUILD / "html-new"
        shutil.rmtree(pages, ignore_errors=True)
        shutil.copytree(out / "_build" / "html", pages)
        for chapter in chapters():
            if chapter.is_executed:
                downloads(chapter, pages)
        swap(pages, HTML)
    index = HTML / "index.html"
    say(f"  open {os.path.relpath(index)}")
    if warned:
        raise warned
    return index


def press(tree: Path, out: Path) -> UserError | None:
    """Make pages of a source tree with Jupyter Book, in `out/_build/html`. Returns what it warned of; raises it, if
    there are no pages."""
    log = LOGS / "jupyter-book.log"
    log.unlink(missing_ok=True)
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", str(tree), "--path-output", str(out)]
    environment = {"PYTHONWARNINGS": "ignore", "PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(ROOT / "kernels")}
    if not logged([*command, "-W", "-n", "--keep-going"], log, env={**os.environ, **environment}):
        return None
    lines = [click.unstyle(line).strip() for line in log.read_text(errors="replace").splitlines()]
    said = "; ".join([line for line in lines if "WARNING" in line or "ERROR" in line][:3]) or "see the log"
    warned = UserError(f"Jupyter Book reported errors or warnings ({said}); read {log}.")
    if not (out / "_build" / "html" / "index.html").exists():
        raise warned
    return warned


def refresh(new: Path, tree: Path) -> None:
    """Make `tree` hold what `new` holds; files that are the same keep their times, by which Sphinx knows them. `new` is
    removed."""
    if tree.exists():
        for path in new.rglob("*"):
            before = tree / path.relative_to(new)
            if path.is_file() and before.is_file() and filecmp.cmp(path, before, shallow=False):
                shutil.copystat(before, path)
        shutil.rmtree(tree)
    new.rename(tree)


def assemble(tree: Path) -> Path:
    """Make a source tree as in the repository, with executed notebooks in place of the stripped ones."""
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tree / name)
    left_out = shutil.ignore_patterns(
        *BY_PRODUCTS, "*.so", "*.egg-info", "__pycache__", "*.ipynb", ".ipynb_checkpoints"
    )
    # The pages quote what is measured from the files beside them, from the instrument, and from studies.
    for folder in (ROOT / "book", NATIVE, ROOT / "ffilab", ROOT / "studies", NOTEBOOKS):
        shutil.copytree(folder, tree / folder.name, ignore=left_out)
    for path in [path for name in ("notebooks", "native", "studies") for path in (tree / name).rglob("*.py")]:
        path.write_text(without_tails(path.read_text()))
    for chapter in chapters():
        folder = tree / "notebooks" / chapter.name
        measured = with_banner(chapter) if chapter.is_executed else {}
        languages = [language for language in translation.LANGUAGES if translation.cells(chapter.name, language)]
        # A page of an older version may lack a part, or quote what is no longer there.
        for name, text in not_measured(chapter).items():
            if name in measured and not gone(measured[name], folder):
                for cell in [cell for cell in measured[name].cells if PROOF in tags(cell)]:
                    cell.source = f"```{{rst-class}} {fold.PROOF}\n```\n\n{cell.source}"
                files.set_apart(measured[name], tree / "book" / "_static", "../../_static")
                for language in languages if name == chapter.name else ():
                    translation.switch(measured[name], name, language)
                nbformat.write(measured[name], folder / f"{name}.ipynb")
            else:
                (folder / f"{name}.md").write_text(text)
        for language in languages:
            write_translated(chapter, language, folder, tree)
    (tree / "book" / "_static" / files.STYLE).write_text(files.style())
    stale = {chapter.name: chapter.changed() for chapter in chapters() if chapter.is_executed}
    sessions = {chapter.name: chapter.session for chapter in chapters() if chapter.is_executed}
    rows = ledger.collect(sessions, stale)
    ledger_page.write_files(tree / "book" / "_static", rows)
    matrix.copy_datatables(tree / "book" / "_static")
    parts.write(tree, Copy({row["id"]: row for row in rows}, sessions))
    findable(tree)
    finish_sentences(tree)
    return tree


def below(heading: re.Pattern, text: str, entries: str) -> str:
    """A text with entries behind the first line that is this heading."""
    return heading.sub(lambda found: found[0] + entries, text, count=1)


def findable(tree: Path) -> None:
    """Put what readers type into the pages that answer it, as entries of the index, which the search field shows first;
    pages for who changes the book are not searched."""
    search = tomllib.loads((ROOT / "book" / SEARCH).read_text(encoding="utf-8"))
    for place, typed in search["words"].items():
        page, _, section = place.partition("#")
        # The heading of a section, or the page's own.
        heading = re.compile(rf"^#+ {re.escape(section) or '.+'}$", re.M)
        entries = f"\n\n```{{index}} {', '.join(f'! {text}' for text in typed)}\n```\n"
        path, made = tree / f"{page}.md", tree / f"{page}.ipynb"
        written = tree / "book" / "_generated" / path.name
        if path.exists():
            # A section may stand in the part of the page that a run wrote, or nowhere: a chapter that was not measured.
            for part in [part for part in (path, written) if part.exists() and heading.search(part.read_text())][:1]:
                part.write_text(below(heading, part.read_text(), entries))
        elif made.exists():
            notebook = nbformat.read(made, as_version=4)
            for cell in [cell for cell in notebook.cells if heading.search(cell.source)][:1]:
                cell.source = below(heading, cell.source, entries)
            nbformat.write(notebook, made)
    for path in [path for page in search["left_out"] for path in tree.glob(f"{page}.md")]:
        path.write_text(f"---\nnosearch: true\n---\n{path.read_text()}")


def finish_sentences(tree: Path) -> None:
    """Let a link in a sentence say the name of a page, and not its question too: *Arenas*, of *Arenas: why does …?* And
    let `{{ pybind11 }}` stand for the version for which that sentence was last read: MyST's own substitutions are
    programs, and a page may show what somebody else's record says."""
    versions = tomllib.loads((ROOT / "book" / "versions.toml").read_text())
    texts = {path: path.read_text() for ending in ("*.md", "*.ipynb") for path in tree.rglob(ending)}
    names = {path.with_suffix("").resolve(): found[1] for path, text in texts.items() if (found := TITLE.search(text))}
    for page, text in texts.items():
        # A part stands in a page of the folder above its own.
        folder = tree / "book" if "_generated" in page.parts else page.parent

        def short(link, folder=folder):
            name = names.get((folder / link[1]).resolve())
            return f"{{doc}}`{name} <{link[1]}>`" if name else link[0]

        finished = VERSION.sub(lambda tool: versions.get(tool[1], tool[0]), LINK.sub(short, text))
        if finished != text:
            page.write_text(finished)


def write_translated(chapter: Chapter, language: str, folder: Path, tree: Path) -> None:
    """Write the page of a chapter in another language, with a line that leads to its English one. Where that was not
    made, or its records are of another version, there is the heading alone."""
    path = folder / f"{translation.named(chapter.name, language)}.ipynb"
    try:
        made = (folder / f"{chapter.name}.ipynb").exists() and translation.made(chapter, language)
    except UserError as error:
        say(f"  {chapter.name} in {translation.LANGUAGES[language][0]} could not be made: {error}")
        made = None
    if not made:
        path.with_suffix(".md").write_text(next(iter(translation.cells(chapter.name, language).values())))
        return
    page = translation.page(made.executed_notebook, chapter.name, language)
    translation.switch(page, chapter.name)
    files.set_apart(page, tree / "book" / "_static", "../../_static")
    nbformat.write(page, path)


def downloads(chapter: Chapter, html: Path) -> None:
    """Put the executed notebook, with its figures in itself, behind the download button of its page."""
    for name, page in with_banner(chapter).items():
        target = html / "_sources" / "notebooks" / chapter.name / f"{name}.ipynb"
        if target.exists():
            nbformat.write(page, target)


def without_tails(source: str) -> str:
    """Drop the blank lines that the formatter puts before the marker that ends a quote."""
    return re.sub(r"\n\n+(?=\s*# \[/)", "\n", source)


def with_banner(chapter: Chapter) -> dict[str, nbformat.NotebookNode]:
    """Return the executed pages by name; a banner behind the heading says what has changed since."""
    pages = split(chapter.executed_notebook, chapter.name)
    changed, texts = chapter.changed(), []
    if changed:
        texts.append(f"This page is stale. Since it was made, this has changed: {', '.join(changed)}.")
    if chapter.failure:
        texts.append(f"This page is from an earlier run. The last one failed: {draw.literal(chapter.failure)}")
    if texts:
        text = " ".join([*texts, f"Measure again: `make chapter NAME={chapter.name}`."])
        for page in pages.values():
            page.cells.insert(1, nbformat.v4.new_markdown_cell(f":::{{warning}}\n{text}\n:::", id="stale"))
    return pages


def gone(page: nbformat.NotebookNode, folder: Path) -> list[str]:
    """List the files and markers that a page quotes and that are no longer there."""
    missing = []
    for file, options in re.findall(
        r"\{literalinclude\} (\S+)\n((?::.*\n)*)", "\n".join(cell.source for cell in page.cells)
    ):
        path = folder / file
        text = path.read_text() if path.is_file() else ""
        markers = re.findall(r"^:(?:start-after|start-at|end-before): \"?(.*?)\"?$", options, re.M)
        missing += [f"{file}: {marker}" for marker in markers or [""] if marker not in text or not text]
    return missing


def not_measured(chapter: Chapter) -> dict[str, str]:
    """Return placeholders for the pages of a chapter, by name: heading, what it teaches, why it failed, how to measure
    it."""
    why = f" The last try failed: {draw.literal(chapter.failure)}" if chapter.failure else ""
    return {
        name: f"{page.cells[0].source}\n\n:::{{warning}}\nThis chapter was not measured on this machine yet.{why} "
        f"Measure it: `make chapter NAME={chapter.name}`, or `make book` for all.\n:::\n"
        for name, page in split(chapter.notebook, chapter.name).items()
    }
