"""The texts of pages in the reader's language, each by its English text: `words.<language>.toml`.

What is not translated stays English.
"""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ffilab.run import settings
from ffilab.run.paths import ROOT

# Where words stand: those of the press, those of the pages in `book/`, and in a Jupyter kernel those of its chapter.
_folders = [Path(__file__).parent, ROOT / "book"]


def look_in(folder: Path) -> None:
    """Use the words of a chapter, too, from here on."""
    _folders.append(folder)


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Speak a language meanwhile; empty for English."""
    chosen = os.environ.get(settings.LANGUAGE, "")
    os.environ[settings.LANGUAGE] = language
    try:
        yield
    finally:
        os.environ[settings.LANGUAGE] = chosen


def words() -> dict[str, str]:
    """Return all translations by their English text; none of English."""
    return _words(settings.language(), *_folders)


@cache
def _words(language: str, *folders: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in (folder / f"words.{language}.toml" for folder in folders if language):
        found |= tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def translated(value: Any) -> Any:
    """Return a text, or all texts in lists and dictionaries, in the language that is spoken."""
    if isinstance(value, dict):
        return {key: translated(one) for key, one in value.items()}
    if isinstance(value, list):
        return [translated(one) for one in value]
    return words().get(value, value) if isinstance(value, str) else value
