"""Chapters by name, and what each of them builds on: read from files, without the libraries that pages need.

`make lab` begins with it, and is not to wait for these.
"""

import tomllib
from pathlib import Path

from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS


def chapter_names() -> list[str]:
    """The names of all chapters: the folders of `notebooks` that hold claims."""
    return sorted(path.parent.name for path in NOTEBOOKS.glob("*/claims.toml"))


def notebook_of(name: str) -> Path:
    """The notebook of a chapter. Raises UserError with the list of chapters if there is none of that name."""
    notebook = NOTEBOOKS / name / f"{name}.ipynb"
    if not notebook.exists():
        problem = f"There is no chapter {name!r}" if name else "Name a chapter"
        raise UserError(f"{problem}: NAME must be one of {', '.join(chapter_names())}.")
    return notebook


def with_uses(chapter: str) -> list[str]:
    """Return the chapter, those that it declares to use, and those that they use."""
    reached, left = [], [chapter]
    while left:
        name = left.pop(0)
        if name not in reached:
            reached.append(name)
            claims = NOTEBOOKS / name / "claims.toml"
            left += tomllib.loads(claims.read_text(encoding="utf-8")).get("uses", []) if claims.exists() else ()
    return reached
