"""Pages in a second language say what the English ones say: every cell, every sentence of the run, the same numbers and
names."""

import re
from collections import Counter

import pytest

from ffilab.judge.claims import chapter_names
from ffilab.page import render, translation
from ffilab.page.contents import chapters, glued
from ffilab.page.places import markdown
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT
from tests.helpers.golden_pages import page
from tests.helpers.notebooks import asked, shown

LANGUAGE = "zh_TW"
TRANSLATED = [chapter for chapter in chapter_names() if translation.cells(chapter, LANGUAGE)]
# Four words of a Latin alphabet in a row are a sentence that was left, or a piece of one.
LEFT = re.compile(r"(?:[A-Za-z][a-z’']+[ ,]+){3,}[A-Za-z][a-z’']+")
PAGES = ("preface", "decision_guide")
# Code, and what is glued; links have words of their own.
NAMES = re.compile(r"(?<!`)`(?:[^`\n]* <[^`\n]*>|([^`\n]+))`(?!`)")


def prose(text: str) -> str:
    """A text without code, quoted sources, titles of works, options, roles and links' addresses."""
    text = re.sub(r"^```(?!\{(?:admonition|exercise))[^\n]*\n.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"^(`{3,}|:{3,}).*$|^:.*$|^\(.*\)=$", "", text, flags=re.M)
    return re.sub(r"「[^」]*」|\{[\w:-]+\}`[^`]*`|`[^`]*`|\]\([^)]*\)|<[^>]*>", " 、", text)


def numbers(text: str) -> Counter:
    return Counter(number.rstrip(".,") for number in re.findall(r"\d[\d.,]*", text))


@pytest.fixture(scope="module", params=TRANSLATED)
def pages(request):
    """The English page and the translated one, both made from the golden records."""
    chapter = request.param
    english = page(chapter).executed_notebook
    return chapter, english, page(chapter, language=LANGUAGE).executed_notebook


def test_every_cell_is_translated_and_none_is_left_over(pages):
    chapter, english, _ = pages
    cells = translation.cells(chapter, LANGUAGE)
    typed = [cell.id for cell in english.cells if cell.cell_type == "markdown"]
    on_page = [cell.id for cell in translation.page(english, chapter, LANGUAGE).cells if cell.cell_type == "markdown"]
    assert set(on_page) - {f"proof-{LANGUAGE}"} <= set(cells), "cells that are not translated"
    assert set(cells) <= set(typed), "translations of cells that are gone"


def test_no_sentence_is_left_in_english(pages):
    chapter, _, executed = pages
    translated = translation.page(executed, chapter, LANGUAGE)
    typed = markdown(translated)
    texts = [*typed, *shown(translated)]
    texts += [text for name, text in glued(executed).items() if name in asked("\n".join(typed))]
    no_prose = re.compile(r"<style>.*?</style>|<code>.*?</code>", re.S)
    texts += [no_prose.sub("", html) for html in shown(translated, "text/html")]
    left = [found[0] for text in texts for found in LEFT.finditer(prose(text))]
    assert not left, left


def test_numbers_and_names_are_the_same(pages):
    chapter, english, executed = pages
    # The glossary is in English: a translation links no word to it.
    originals = {cell.id: re.sub(r"\{term\}`[^`]*`", "", cell.source) for cell in english.cells}
    cells = translation.cells(chapter, LANGUAGE)
    for name, text in cells.items():
        assert numbers(text) == numbers(originals[name]), name
        assert Counter(NAMES.findall(text)) == Counter(NAMES.findall(originals[name])), name
    ours, theirs = glued(executed), glued(english)
    for name in set(re.findall(r"\{glue:text\}`([^`]+)`", "".join(cells.values()))):
        assert numbers(ours[name]) == numbers(theirs[name]), (name, ours[name], theirs[name])


def test_records_of_another_version_cost_the_translated_page_alone(tmp_path, monkeypatch, capsys):
    def made(chapter, language):
        raise UserError("The records are of another version.")

    monkeypatch.setattr(translation, "made", made)
    chapter = next(chapter for chapter in chapters() if chapter.name in TRANSLATED)
    (tmp_path / f"{chapter.name}.ipynb").touch()
    render.write_translated(chapter, LANGUAGE, tmp_path, tmp_path)
    assert "could not be made: The records are of another version." in capsys.readouterr().err
    page = tmp_path / f"{translation.named(chapter.name, LANGUAGE)}.md"
    assert page.read_text() == next(iter(translation.cells(chapter.name, LANGUAGE).values()))


@pytest.fixture(scope="module")
def book(golden_book):
    """The generated parts of the front page and the guide, in English and translated, by name."""
    folder = golden_book.with_name("generated")
    texts = [(ROOT / "book" / f"{page}_{LANGUAGE}.md").read_text() for page in PAGES]
    used = {name for text in texts for name in re.findall(rf"_generated/{LANGUAGE}/(\S+)", text)}
    return {name: tuple((place / name).read_text() for place in (folder, folder / LANGUAGE)) for name in sorted(used)}


def test_the_front_page_and_the_guide_are_translated(book):
    texts = {page: (ROOT / "book" / f"{page}_{LANGUAGE}.md").read_text() for page in PAGES}
    texts |= {name: translated for name, (_, translated) in book.items()}
    links = re.compile(r"\[[^\]]*\]\([^)]*\)|alt=\"[^\"]*\"|<title>.*?</title>|<style>.*?</style>", re.S)
    left = [(name, found[0]) for name, text in texts.items() for found in LEFT.finditer(prose(links.sub("", text)))]
    assert not left, left


def test_the_front_page_and_the_guide_have_the_same_numbers(book):
    for name, (english, translated) in book.items():
        if name not in ("ways.md", "chooser.md"):
            assert numbers(prose(translated)) <= numbers(prose(english)), name
