"""Prose that was typed claims no outcome: what a run can contradict is written by the run.

A lint over the markdown of all notebooks and of the book. It reads sentences without a {glue} in them, outside of code,
quotations, exercises, solutions and predictions, and stops at words of outcome (faster, loses, three times as …) beside a number,
beside "here", or beside the name of what the book measures. What is right to be typed stands in `typed_prose_allowed.toml`
with the reason: it is about the mechanism, or quotes what a source published.
"""

import json
import re
import tomllib
from pathlib import Path

import pytest

from ffilab.paths import NOTEBOOKS, ROOT

ALLOWED = Path(__file__).with_name("typed_prose_allowed.toml")

OUTCOME = re.compile(
    r"\b(faster|slower|cheaper|dearer|quicker|fastest|slowest|cheapest|dearest|wins?|beats?|outperforms?|scales?|loses?|lost|gains?"
    r"|costs? (more|less|nothing|little|as much|the same|about)|takes? (longer|less|more|as long|half|about)|as (fast|much|dear) as|as long as (with|without|on|in|a|the|[A-Z])"
    r"|times (as|more|the)|(twice|thrice) (as|the)|half (as|the)|most of|hardly|negligible|shrinks?|shrunk|grows?|grew|collapses?|speeds? up"
    r"|slows?( down)?|no (cost|difference|effect)|(?<!at )the same (cost|time|speed)|per cent of)(?!\w)|% of\b",
    re.I,
)
# In key points and instructors' notes, where sentences conclude, these say an outcome too, whatever stands beside them.
CONCLUDES = re.compile(
    r"\b(differs?|cheap|dear|larger|smaller|more than|less than|shrunk|blocks other|avoids?|is the price|are the price|exact"
    r"|changes? (the order|sides|nothing)|no cure|of the two wins)\b",
    re.I,
)
NUMBER = r"\b\d[\d.,]*\s*(%|x|×|times|ns|µs|us|ms|s|MiB|KiB|GiB)(?!\w)|\b(two|three|four|five|ten|hundred|thousand) times\b|\btwice\b|\bhalf\b"
HERE = r"\bhere\b|\b(this|your|our) (machine|run|figure|table|measurement)\b|\bin (this|the) (figure|table)\b"
NAMES = (
    r"\b(ctypes|cffi|pybind11|nanobind|Cython|PyO3|CDLL|PyDLL|PyMutex|mutex|atomics?|jemalloc|tcmalloc|glibc|pymalloc|pooled|"
    r"blocks?|GIL|free-threaded|asyncio|threads?|process(es)?)\b|\b3\.1[3-5]t?\b"
)
BESIDE = re.compile(f"{NUMBER}|{HERE}|{NAMES}", re.I)
# What somebody else said or published, a question, an instruction what to look for, or a condition.
SAID = re.compile(
    r"\{cite|\b(the talk|talk's|the post|the document|its author|the author|authors?'|published|claims?|claimed|reports?|promised?)\b|\?$"
    r"|^(\W*)(if|suppose|say|ask|compare|predict|count|look|try|write|make|let|choose|whether)\b|\b(whether|would|could|might|should)\b",
    re.I,
)


def without_code(markdown):
    """Fenced blocks left out, but for those that hold prose; their fences left out too. They may stand in one another."""
    kept, open_ = [], []
    for line in markdown.splitlines():
        if fence := re.match(r"(`{3,}|~{3,})(.*)$", line):
            mark, rest = fence.groups()
            if open_ and not rest.strip() and open_[-1][0] == mark:
                open_.pop()
            else:
                open_.append((mark, re.match(r"\{(glossary|note|tip|warning|admonition|dropdown)\}", rest)))
        elif all(prose for _, prose in open_):
            kept.append(line)
    return "\n".join(kept)


def readable(markdown):
    """The text without what is no prose of ours: code, quotations, exercises, solutions, predictions, comments."""
    markdown = without_code(markdown)
    for pattern in (
        r"^(:{3,})\{exercise-start\}.*?^:{3,}\{exercise-end\}.*?^:{3,}\s*$",
        r"^(:{3,})\{solution-start\}.*?^:{3,}\{solution-end\}.*?^:{3,}\s*$",
        r"^(:{3,})\{(exercise|solution|epigraph)\}.*?^\1\s*$",
        r"<!--.*?-->",
    ):
        markdown = re.sub(pattern, "\n", markdown, flags=re.M | re.S)
    lines = [line for line in markdown.splitlines() if not re.match(r"\s*(>|:\w[\w-]*:|%|:{3,}|\(\S+\)=)", line)]
    return "\n".join(lines)


def sentences(markdown):
    """Its sentences, each on one line without marks of emphasis and code."""
    kept, in_prediction = [], False
    for line in readable(markdown).splitlines():
        if line.startswith("#"):
            in_prediction = "prediction" in line.lower()
        if not in_prediction:
            # A heading, a row of a table and a point of a list begin anew.
            kept.append(f"\n\n{line}" if re.match(r"\s*([#|*-]|\d+\.) ?", line) else line)
    for paragraph in re.split(r"\n\s*\n", "\n".join(kept)):
        flat = re.sub(r"\s+", " ", paragraph).strip()
        for sentence in re.split(r"(?<=[.!?:])\)?\*{0,2} (?=[\"'(*_`{\[]*[A-Z`{*])", flat):
            yield sentence.strip()


def unquoted(sentence):
    """Without what it quotes or refers to, and without marks."""
    return re.sub(r"\"[^\"]*\"|“[^”]*”|\{\w+\}`[^`]*`|[`*]", " ", sentence)


def is_typed_outcome(sentence):
    """Does it claim what a run finds out, with no part written by the run?"""
    if "{glue" in sentence or SAID.search(sentence):
        return False
    plain = unquoted(sentence)
    return bool(OUTCOME.search(plain) and BESIDE.search(plain))


def concluding(markdown):
    """From the key points on, with the notes for instructors."""
    return re.sub(r"^.*^## Key points$", "", markdown, flags=re.M | re.S) if "## Key points" in markdown else ""


def concludes(sentence):
    return "{glue" not in sentence and not SAID.search(sentence) and bool(CONCLUDES.search(unquoted(sentence)))


def markdown_of(path):
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    exercise, kept = False, []
    for cell in cells:
        text = "".join(cell["source"])
        exercise = (exercise or "-start}" in text) and "-end}" not in text
        if cell["cell_type"] == "markdown" and not exercise:
            kept.append(text)
    return "\n\n".join(kept)


def pages():
    """Name to path: a corner's pages under the corner's name, the book's under their own."""
    found = {path.stem: path for path in sorted((ROOT / "book").glob("*.md"))}
    found |= {path.stem: path for path in sorted(NOTEBOOKS.glob("*/*.ipynb"))}
    beside = sorted(NOTEBOOKS.glob("*/*.md"))
    return found | {f"{path.parent.name}/{path.stem}" if path.stem in found else path.stem: path for path in beside}


PAGES = pages()


def flagged(name):
    text = markdown_of(PAGES[name])
    found = [sentence for sentence in sentences(text) if is_typed_outcome(sentence)]
    return list(dict.fromkeys(found + [sentence for sentence in sentences(concluding(text)) if concludes(sentence)]))


def allowed():
    """The reviewed sentences: page, how the sentence begins, and why it may be typed."""
    return tomllib.loads(ALLOWED.read_text(encoding="utf-8"))["allowed"]


@pytest.mark.parametrize("name", PAGES)
def test_typed_prose_claims_no_outcome(name):
    known = [entry["begins"] for entry in allowed() if entry["page"] == name]
    found = [sentence for sentence in flagged(name) if not sentence.startswith(tuple(known) or "\0")]
    assert not found, "\n".join(["typed, and a run may contradict it:", *found])


def test_what_is_allowed_is_still_there_and_says_why():
    for entry in allowed():
        assert set(entry) == {"page", "begins", "why"}
        assert entry["why"]
        assert any(sentence.startswith(entry["begins"]) for sentence in flagged(entry["page"])), entry


@pytest.mark.parametrize(
    ("sentence", "is_one"),
    [
        ("`PyO3` is 3.2 times as fast as ctypes.", True),
        ("Without the GIL, threads gain from objects of their own only.", True),
        ("Here the pooled strings are slower.", True),
        ("A buffer crosses for 20 % of the price.", True),
        ("Atomic operations take longer here.", True),
        ("PyO3 is {glue:text}`ratio` times as fast as ctypes.", False),
        ("The talk found PyO3 faster than ctypes.", False),
        ("Is PyO3 faster than ctypes?", False),
        ("A detach hands over the GIL.", False),
        ("If PyO3 is faster, the loader matters.", False),
    ],
)
def test_the_lint_knows_an_outcome(sentence, is_one):
    assert is_typed_outcome(sentence) == is_one


def test_what_concludes_is_read_more_strictly():
    text = "# H\n\nPrices differ.\n\n## Key points\n\n- `PyDLL` blocks other threads only where there is a GIL.\n- Measure it.\n"
    assert [one for one in sentences(concluding(text)) if concludes(one)] == [
        "- `PyDLL` blocks other threads only where there is a GIL."
    ]
    assert concluding("# H\n\nPrices differ.") == ""


def test_the_lint_reads_on_behind_a_box():
    text = "```{admonition} A box\nPyO3 is twice as fast.\n```\n\nctypes is twice as slow.\n\n```python\nx = 1\n```\n"
    assert "PyO3 is twice as fast." in readable(text)
    assert "ctypes is twice as slow." in readable(text)
    assert "x = 1" not in readable(text)


def test_the_lint_reads_prose_and_nothing_else():
    text = (
        "# H\n\nPyO3 is faster here.\n\n```python\nctypes is slower here.\n```\n\n> PyO3 wins here.\n\n## Your prediction\n\n"
        "1. PyO3 is slower here.\n\n## Then\n\n:::{exercise-start}\n:label: x\n:::\nPyO3 loses here.\n:::{exercise-end}\n:::\n"
        "- cffi is\n  cheaper here. It is.\n"
    )
    assert [one for one in sentences(text) if is_typed_outcome(one)] == [
        "PyO3 is faster here.",
        "- cffi is cheaper here.",
    ]


@pytest.mark.parametrize("name", PAGES)
def test_no_article_stands_before_a_title_that_has_one(name):
    """`The {doc}`ledger`` is printed "The The ledger of claims"."""
    for target in re.findall(r"\b[Tt]he \{doc\}`([\w./-]+)`", readable(markdown_of(PAGES[name]))):
        path = (PAGES[name].parent / target).with_suffix(".md")
        opening = path.read_text() if path.exists() else markdown_of(path.with_suffix(".ipynb"))
        assert not re.match(r"#\s+The\b", opening), target
