"""The claims of the book and the rules that judge them, read from files and checked as they are read.

A chapter's claims stand in `notebooks/<chapter>/claims.toml`, those that no chapter tests yet in `book/claims.toml`.
"""

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from ffilab.judge.rules import KINDS, Rule, Size
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS, ROOT
from ffilab.setup.catalogue import FREE_THREADED, GIL

UNWRITTEN = ROOT / "book" / "claims.toml"


@dataclass(frozen=True)
class Claim:
    """One claim of a document: where it was said, what was published, and the tests that decide.

    untested: parts of the claim that no experiment here tests, in words. not_measurable: why no measurement can decide
    the claim, if none can. section: where it is measured, as page of its chapter and anchor of a heading,
    `loaders#takeaways`.
    saw: what its author saw, with the published numbers. differs: what is otherwise here in method, setting or version,
    as far as no run can contradict it.
    """

    id: str
    chapter: str
    where: str
    claim: str
    published: str
    tests: tuple[Rule, ...] = ()
    untested: tuple[str, ...] = ()
    not_measurable: str = ""
    section: str = ""
    saw: str = ""
    differs: str = ""


@dataclass(frozen=True)
class Declared:
    """What a chapter's claims.toml says beside its claims.

    uses: chapters whose experiments or native code this one takes over.
    """

    claims: tuple[Claim, ...] = ()
    uses: tuple[str, ...] = ()


def read_claims(path: Path, chapter: str) -> Declared:
    """One file of claims. Raises UserError, with what is wrong and where, for anything that it does not know."""
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{_name(path)} cannot be read: {error}") from None
    _known(path, "the file", text, {"uses", "claim"})
    entries = _tables(path, "the file", "claim", text.get("claim", []))
    uses = text.get("uses", [])
    if not isinstance(uses, list) or not all(isinstance(name, str) for name in uses):
        raise UserError(f"{_name(path)}: `uses` needs a list of the names of chapters.")
    for name in uses:
        if not (path.parent.parent / name / "claims.toml").is_file():
            raise UserError(f"{_name(path)}: `uses` names {name!r}, and there is no such chapter.")
    return Declared(tuple(_claim(path, entry, chapter) for entry in entries), tuple(uses))


def declared(chapter: str) -> Declared:
    """What a chapter of the book declares. Raises UserError if there is no such chapter."""
    return read_claims(NOTEBOOKS / chapter / "claims.toml", chapter)


def chapter_names() -> list[str]:
    """The names of all chapters: the folders of `notebooks` that hold claims."""
    return sorted(path.parent.name for path in NOTEBOOKS.glob("*/claims.toml"))


def all_claims() -> list[Claim]:
    """Every claim, in the order of the documents: A1, A2, … D7. Raises UserError for an id that stands twice."""
    claims = [claim for chapter in chapter_names() for claim in declared(chapter).claims]
    claims += read_claims(UNWRITTEN, "").claims if UNWRITTEN.exists() else ()
    identifiers = set()
    for claim in claims:
        if claim.id in identifiers:
            raise UserError(f"The claim {claim.id} stands twice in the files of claims.")
        identifiers.add(claim.id)
    return sorted(claims, key=lambda claim: place(claim.id))


def place(identifier: str) -> tuple[str, int, str]:
    """Where a claim stands in the ledger, for sorting: A2 before A10, and A12 before A12b."""
    document, number, part = re.fullmatch("([A-Z])([0-9]+)([a-z]?)", identifier).groups()
    return document, int(number), part


def _claim(path: Path, entry: dict, chapter: str) -> Claim:
    what = f"the claim {entry.get('id', '?')}"
    texts = ("section", "saw", "differs")
    _known(path, what, entry, {"id", "where", "claim", "published", "test", "untested", "not_measurable", *texts})
    missing = {"id", "where", "claim", "published"} - set(entry)
    if missing or not all(isinstance(entry[key], str) for key in ("id", "where", "claim", "published")):
        raise UserError(f"{_name(path)}: {what} needs the texts id, where, claim and published.")
    if not re.fullmatch("[A-Z][0-9]+[a-z]?", entry["id"]):
        raise UserError(f"{_name(path)}: {what} has no id such as A1.")
    tests = tuple(_rule(path, what, test) for test in _tables(path, what, "test", entry.get("test", [])))
    untested, not_measurable = entry.get("untested", []), entry.get("not_measurable", "")
    if (
        not isinstance(not_measurable, str)
        or not isinstance(untested, list)
        or not all(isinstance(part, str) and part for part in untested)
    ):
        raise UserError(f"{_name(path)}: {what} needs texts in `untested` and a text as `not_measurable`.")
    section, saw, differs = (entry.get(key, "") for key in texts)
    if not all(isinstance(text, str) for text in (section, saw, differs)) or bool(saw) != bool(differs):
        raise UserError(
            f"{_name(path)}: {what} needs texts as `section`, `saw` and `differs`, and the last two together."
        )
    if section and not re.fullmatch(r"[\w-]+#[\w-]+", section):
        raise UserError(f"{_name(path)}: {what} needs a `section` such as loaders#takeaways.")
    if any(text and not text.endswith(".") for text in (saw, differs)):
        raise UserError(f"{_name(path)}: {what} needs whole sentences in `saw` and `differs`.")
    if chapter and not (tests or not_measurable):
        raise UserError(f"{_name(path)}: {what} needs tests, or `not_measurable` with the reason.")
    if not_measurable and any(test.decides for test in tests):
        raise UserError(f"{_name(path)}: {what} is not measurable, so that its tests can only stand beside it.")
    for kind in (Size, None):
        names = [test.number for test in tests if isinstance(test, Size) == (kind is Size)]
        if len(set(names)) != len(names):
            raise UserError(f"{_name(path)}: {what} tests one measured number twice.")
    if tests and not not_measurable and all(isinstance(test, Size) or not test.decides for test in tests):
        raise UserError(f"{_name(path)}: {what} tests nothing of the claim itself.")
    where, says, published = (entry[key] for key in ("where", "claim", "published"))
    return Claim(
        entry["id"], chapter, where, says, published, tests, tuple(untested), not_measurable, section, saw, differs
    )


def _rule(path: Path, what: str, entry: dict) -> Rule:
    where = f"a test of {what}"
    if str(entry.get("kind")) not in KINDS:
        raise UserError(f"{_name(path)}: {where} needs a kind: {', '.join(KINDS)}.")
    kind = KINDS[entry["kind"]]
    given: dict[str, Any] = {key: value for key, value in entry.items() if key != "kind"}
    _known(path, where, given, {field.name for field in fields(kind)})
    texts = [key for key in ("number", "part", "experiment", "direction", "hard") if key in given]
    if not given.get("number") or not all(isinstance(given[key], str) for key in texts):
        raise UserError(f"{_name(path)}: {where} needs the name of a `number`, and texts where texts belong.")
    given |= {key: in_words(given[key]) for key in ("number", "part") if key in given}
    rule = kind(**given)
    if problem := rule.problem():
        raise UserError(f"{_name(path)}: {where} needs {problem}.")
    return rule


def _tables(path: Path, what: str, key: str, value) -> list[dict]:
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise UserError(f"{_name(path)}: {what} needs a list of tables as `{key}`.")
    return value


@cache
def by_number(sizes: bool = False) -> dict[tuple[str, str], Rule]:
    """Every test of the ledger but those on sizes, by claim and number; or those on sizes alone."""
    every = ((claim.id, rule) for claim in all_claims() for rule in claim.tests)
    return {(claim, rule.number): rule for claim, rule in every if isinstance(rule, Size) == sizes}


def in_words(name: str) -> str:
    """The name of a measurement, with the labels of the chapter pair in place of {GIL} and {FREE_THREADED}."""
    return name.replace("{GIL}", GIL).replace("{FREE_THREADED}", FREE_THREADED)


def _known(path: Path, what: str, entry: dict, keys: set[str]) -> None:
    if unknown := set(entry) - keys:
        raise UserError(f"{_name(path)}: {what} has a key that no rule knows: {', '.join(sorted(unknown))}.")


def _name(path: Path) -> str:
    return "/".join(path.parts[-3:])
