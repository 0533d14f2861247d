"""The pages of the book as the press assembles them before rendering, without measuring."""

import re
from functools import cache
from pathlib import Path

import nbformat

from ffilab.judge import again
from ffilab.measure.foreign import find
from ffilab.measure.reading import Reading
from ffilab.page import advice, front, guide
from ffilab.page.contents import chapters, split
from ffilab.page.fold import LANGUAGES
from ffilab.page.places import headings, markdown
from ffilab.run.paths import ROOT
from tests.helpers.golden_pages import MEASURED, chapters_of, records


@cache
def anchors() -> dict[str, dict[str, str]]:
    """By page of the table of contents, its anchors with their headings."""
    listed = re.findall(r"(?:file|root): (\S+)", (ROOT / "_toc.yml").read_text())
    found = {name: headings([path.read_text()]) for name in listed if (path := ROOT / f"{name}.md").exists()}
    for chapter in chapters():
        for name, page in split(nbformat.read(chapter.source, as_version=4), chapter.name).items():
            found[f"notebooks/{chapter.name}/{name}"] = headings(markdown(page))
    translated = {name for name in listed if name.startswith("notebooks/") and name.endswith(tuple(LANGUAGES))}
    assert found.keys() == set(listed) - translated
    return found


def source_tree(folder: Path) -> Path:
    """Make a tree in which loaders was measured, and the other pages have no headings to link to yet."""
    for page in anchors():
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{page}.md").write_text("# A page: its title\n")
    for name in ("_static", "_generated"):
        (folder / "book" / name).mkdir()
    (folder / "notebooks/loaders/loaders.md").unlink()
    source = ROOT / "notebooks/loaders/loaders.ipynb"
    (folder / "notebooks/loaders/loaders.ipynb").write_text(source.read_text())
    return folder


def resting() -> list[advice.Advice]:
    """The entries of the front page, of the decision guide and of the questions that rest on a number."""
    kinds = ((guide.FILE, "advice"), (front.FILE, "question"), (front.FILE, "surprise"), (guide.QUESTIONS, "question"))
    return [one for path, kind in kinds for one in advice.entries(path, kind) if one.found]


@cache
def copy_of(variant: str = MEASURED) -> advice.Copy:
    """What a copy of the book with the records of a variant found, as if their controls had passed."""
    rows = again.rows(records(variant), whatever_the_controls=True)
    sessions = {name: Reading(name, find(records(variant), name)) for name in chapters_of(variant)}
    return advice.Copy({row["id"]: {**row, "stale": []} for row in rows}, sessions)
