"""Every word of the book is English, or stands in `book/words.txt`, the project's own dictionary.

Code, roles, links, addresses, citations and names of files are left out. A word that is new and right is added to the
dictionary, in its place of the alphabet.
"""

import json
import re
import tomllib
from functools import cache

import pytest
from spellchecker import SpellChecker

from ffilab.paths import NOTEBOOKS, ROOT

DICTIONARY = ROOT / "book" / "words.txt"
# Fenced blocks that hold prose; all others hold code, options or data.
PROSE = re.compile(
    r"\{(note|tip|warning|important|admonition|dropdown|exercise|exercise-start|solution-start|glossary|card|hint)\}"
)
NO_WORDS = re.compile(
    r"`[^`]*`"  # code, and what a role names
    r"|\{[\w:-]+\}"  # the role itself
    r"|<[^>]+>|https?://\S+|\]\([^)]*\)|\(\S+\)=|^:[\w-]+:.*$|\$[^$]*\$"
    r"|\b\w+(?:[._/]\w+)+\b",  # names of files and modules
    re.M,
)
WORD = re.compile(r"[A-Za-z]+(?:['’][a-z]+)?")


@cache
def checker():
    return SpellChecker(language="en", distance=1)


def prose(markdown):
    """A text without its code: fenced blocks that hold none are kept."""
    kept, open_ = [], []
    for line in markdown.splitlines():
        if fence := re.match(r"\s*(`{3,}|~{3,}|:{3,})(.*)$", line):
            mark, rest = fence.groups()
            if not rest.strip() and open_ and open_[-1][0] == mark:
                open_.pop()
            else:
                open_.append((mark, bool(PROSE.match(rest)) or mark[0] == ":"))
                kept.append(PROSE.sub("", rest) if open_[-1][1] else "")
        elif all(readable for _, readable in open_):
            kept.append(line)
    return NO_WORDS.sub(" ", "\n".join(kept))


def unknown(text, known):
    """Words of a text that neither English nor the dictionary knows. Names in capitals and short marks are no words."""
    words = {found for found in WORD.findall(text) if len(found) > 2 and not re.search(r"[A-Z]", found[1:])}
    plain = {re.sub(r"(n['’]t|['’](s|re|ve|ll|d|ing))$", "", word).lower() for word in words}
    return sorted(word for word in checker().unknown(plain) if word not in known and len(word) > 2)


def texts():
    """All prose, by file: pages, chapters, claims, what the press puts in."""
    found = {path: path.read_text() for path in [*ROOT.glob("*.md"), *(ROOT / "book").glob("*.md")]}
    for path in NOTEBOOKS.glob("*/*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        found[path] = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for path in [*NOTEBOOKS.glob("*/claims.toml"), *(ROOT / "book").glob("*.toml")]:
        found[path] = "\n".join(strings(tomllib.loads(path.read_text())))
    return {str(path.relative_to(ROOT)): text for path, text in found.items()}


def strings(value):
    """All strings with a space in them, however deep: names and keys are no prose."""
    if isinstance(value, str):
        return [value] if " " in value else []
    return [
        text
        for part in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
        for text in strings(part)
    ]


def dictionary():
    return DICTIONARY.read_text().split()


@pytest.mark.parametrize("file", sorted(texts()))
def test_spelling(file):
    assert unknown(prose(texts()[file]), set(dictionary())) == []


def test_the_dictionary_is_sorted_and_holds_nothing_that_no_page_uses():
    words = dictionary()
    assert words == sorted(set(words))
    used = {
        re.sub(r"(n['’]t|['’](s|re|ve|ll|d|ing))$", "", word).lower()
        for text in texts().values()
        for word in WORD.findall(prose(text))
    }
    assert [word for word in words if word not in used] == []


def test_a_misspelt_word_is_found_and_code_is_not_read():
    assert unknown(prose("The lock is recieved, as `recieve` says.\n\n```c\nint recieev;\n```\n"), set()) == [
        "recieved"
    ]
    assert unknown(prose(":::{note}\nA misspeling.\n:::"), set()) == ["misspeling"]
