"""The texts of pages in the reader's language, each by its English text: `words.<language>.toml`.

What is not translated stays English.
"""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ffilab.run import settings
from ffilab.run.paths import ROOT

# Where words for all pages stand: those of the press, and those of the pages in `book/`.
SHARED = (Path(__file__).parent, ROOT / "book")
_spoken = {"language": "", "words": {}}


def speak(language: str, *folders: Path) -> None:
    """Use the words of a language from here on; of English, none. folders: where further words of it stand."""
    words: dict[str, str] = {}
    for folder in (*SHARED, *folders) if language else ():
        path = folder / f"words.{language}.toml"
        words |= tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    _spoken.update(language=language, words=words)
    # For what joins lists.
    os.environ[settings.LANGUAGE] = language


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Use the words of a language meanwhile."""
    before, chosen = dict(_spoken), os.environ.get(settings.LANGUAGE, "")
    speak(language)
    try:
        yield
    finally:
        _spoken.update(before)
        os.environ[settings.LANGUAGE] = chosen


def language() -> str:
    """Return the language that is spoken; empty for English."""
    return _spoken["language"]


def words() -> dict[str, str]:
    """Return all translations by their English text."""
    return _spoken["words"]


def translated(value):
    """Return a text, or all texts in lists and dictionaries, in the language that is spoken."""
    if isinstance(value, dict):
        return {key: translated(one) for key, one in value.items()}
    if isinstance(value, list):
        return [translated(one) for one in value]
    return words().get(value, value) if isinstance(value, str) else value
