"""The generated parts of pages, letter by letter: made from the golden records, as in a copy whose pages are not
executed yet.

To change one on purpose, run `python3 ffilab/bootstrap.py test tests/test_parts.py --renew`, and look at `git diff
tests/snapshots`.
"""

import re
from pathlib import Path

import pytest

from ffilab.page import advice, parts, words
from ffilab.page.contents import Chapter
from ffilab.page.fold import LANGUAGES
from tests.helpers.source_pages import copy_of

EVERY = [
    *(("", name) for name in (*parts.PARTS, *parts.IN_EACH_LANGUAGE)),
    *((language, name) for language in LANGUAGES for name in parts.IN_EACH_LANGUAGE),
]
# Of a figure's bytes, and so of its library.
NAME_OF_FILE = re.compile(r"-[0-9a-f]{8,}(?=[-.])")


def made(tree: Path, language: str, name: str, copy: advice.Copy) -> str:
    with words.speaking(language):
        part = (parts.PARTS | parts.IN_EACH_LANGUAGE)[name]
        return NAME_OF_FILE.sub("", part(tree, copy))


@pytest.fixture(autouse=True)
def nothing_executed(monkeypatch):
    """Whatever other tests left, and wherever this clone is from."""
    monkeypatch.setattr(parts, "origin", lambda: "")
    monkeypatch.setattr(Chapter, "is_executed", False)
    monkeypatch.setattr(Chapter, "facts", {})


@pytest.mark.parametrize(("language", "name"), EVERY, ids=lambda value: value or "English")
def test_a_part_says_what_it_said(source_tree, language, name, held):
    held(f"parts/{language}/{name}.md", made(source_tree, language, name, copy_of()))


@pytest.mark.parametrize("name", [*parts.PARTS, *parts.IN_EACH_LANGUAGE])
def test_a_part_is_made_where_nothing_was_measured(source_tree, name):
    assert made(source_tree, "", name, advice.Copy({})).strip()


def test_the_pages_say_where_to_clone_the_book():
    assert "git clone" not in parts.get_it_page("")
    assert "git clone https://code.example/book book\n" in parts.get_it_page("https://code.example/book")


def test_every_part_is_written_and_every_page_finds_what_it_includes(source_tree):
    parts.write(source_tree, advice.Copy({}))
    root = Path(__file__).parent.parent / "book"
    asked = {
        found for page in root.glob("*.md") for found in re.findall(r"\{include\} (_generated/\S+)", page.read_text())
    }
    assert asked
    assert not [path for path in asked if not (source_tree / "book" / path).exists()]
