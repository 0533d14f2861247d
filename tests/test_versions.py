"""Sentences that are bound to a version: which to read again after a bump of a lock, and the lines of CPython that they
name."""

import json
import re
import tarfile
import tomllib
from functools import cache

import pytest

from ffilab.run.paths import NATIVE, ROOT
from ffilab.run.progress import step
from ffilab.setup import sources
from ffilab.setup.catalogue import GIL, SOURCES
from tests.helpers.snapshots import SNAPSHOTS

READ = tomllib.loads((ROOT / "book" / "versions.toml").read_text())
# The names that sentences use.
NAMES = {tool: tool for tool in READ} | {"cpython": "CPython", "cython": "Cython", "pyo3": "PyO3"}
LINES = "cpython_lines.txt"
FOLDERS = "Doc|Include|Lib|Modules|Objects|Parser|Programs|Python|Tools"
NAMED = re.compile(
    rf"(?:CPython (3[\w.]+), )?\b((?:{FOLDERS})/[\w/.-]+?\.(?:c|h|py|rst|toml)):(\d+)(?:-(\d+))?`?(?: in (3[\w.]+))?"
    rf"|lines? (\d+)(?:-(\d+))? of `((?:{FOLDERS})/[\w/.-]+)`(?: in (3[\w.]+))?"
)


def locked():
    """The version of each tool that the locks hold."""
    python = (ROOT / "kernels" / "kernels" / f"cpython-{GIL}" / "requirements.txt").read_text()
    crates = tomllib.loads((NATIVE / "boundary" / "pyo3" / "crates.lock").read_text())["package"]
    versions = dict(re.findall(r"^(\w+)==([\w.]+)", python, re.M))
    versions |= {crate["name"]: crate["version"] for crate in crates} | {"cpython": SOURCES[GIL].release}
    return {name: versions[name] for name in READ}


@cache
def sentences():
    """(file, line number, text) of everything that is written for readers."""
    found = []
    for folder in ("book", "notebooks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if "zh_TW" in path.name or path.name == "versions.toml":
                continue
            if path.suffix in (".md", ".toml") and "evidence" not in path.parts:
                text = path.read_text()
            elif path.suffix == ".ipynb":
                cells = json.loads(path.read_text())["cells"]
                text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
            else:
                continue
            found += [(str(path.relative_to(ROOT)), n, line) for n, line in enumerate(text.splitlines(), 1)]
    return found


def bound_to(tool):
    """Sentences that name a version of this tool."""
    version = re.escape(READ[tool])
    names = re.compile(rf"\{{\{{ {tool} \}}\}}|\b{NAMES[tool]} {version}\b|\b{NAMES[tool]}'s {version}\b")
    return [f"{file}:{n}: {line.strip()[:150]}" for file, n, line in sentences() if names.search(line)]


@pytest.mark.parametrize("tool", READ)
def test_sentences_were_read_for_the_locked_version(tool):
    version = locked()[tool]
    again = "\n".join(bound_to(tool))
    assert version == READ[tool], f"read these for {version}, then write it into book/versions.toml:\n{again}"


def test_every_version_binds_a_sentence():
    assert [tool for tool in READ if not bound_to(tool)] == []


def lines_named():
    """(version, file, first, last) of each line of CPython that a page names, in order."""
    found = set()
    for _, _, text in sentences():
        for before, file, first, last, behind, begins, ends, other, of in NAMED.findall(text):
            begin, end = first or begins, last or ends or first or begins
            found.add((before or behind or of or READ["cpython"], file or other, int(begin), int(end)))
    return sorted(found)


def place(version, file, first, last):
    return f"{version} {file}:{first}{f'-{last}' if last != first else ''}"


def test_lines_of_cpython_were_read():
    """The snapshot has each line that a page names. A person has read it beside the sentence."""
    kept = [line.partition(" | ")[0] for line in (SNAPSHOTS / LINES).read_text().splitlines()]
    assert [place(*line) for line in lines_named()] == kept


@pytest.mark.full
def test_lines_of_cpython_say_what_they_said(held):
    """Of another version than the chapter pair's the place alone is known."""
    told = []
    with step("the source of CPython") as bar, tarfile.open(sources.fetch(SOURCES[GIL], bar)) as archive:
        for version, file, first, last in lines_named():
            text = ""
            if version == READ["cpython"]:
                lines = archive.extractfile(f"Python-{version}/{file}").read().decode().splitlines()
                text = next(filter(None, map(str.strip, lines[first - 1 : last])), "")
            told.append(place(version, file, first, last) + (f" | {text}" if text else ""))
    held(LINES, "\n".join(told) + "\n")
