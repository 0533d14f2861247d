"""The claims of the book and the rules that judge them, read from files and checked as they are read.

A chapter's claims stand in `notebooks/<chapter>/claims.toml`, those that no chapter tests yet in `book/claims.toml`.
"""

import json
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ffilab.judge.rules import Rule, Size, rule_of
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS, ROOT
from ffilab.setup.catalogue import FREE_THREADED, GIL
from ffilab.setup.chapters import chapter_names

UNWRITTEN = ROOT / "book" / "claims.toml"


@dataclass(frozen=True)
class Claim:
    """One claim of a document: where it was said, what was published, and the tests that decide.

    untested: parts of the claim that no experiment here tests, in words. not_measurable: why no measurement can decide
    the claim, if none can. section: where it is measured, as page of its chapter and anchor of a heading,
    `loaders#takeaways`.
    fact: quickly looked up, and no result: it is answered as a claim is, and is a row of a table that no count holds.
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
    fact: bool = False
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
    # The interpreters of the chapters lack the library; the press has read the file by then.
    if find_spec("fastjsonschema"):
        check(path, text)
    uses = text.get("uses", [])
    for name in uses:
        if not (path.parent.parent / name / "claims.toml").is_file():
            raise UserError(f"{_name(path)}: `uses` names {name!r}, and there is no such chapter.")
    return Declared(tuple(_claim(path, entry, chapter) for entry in text.get("claim", [])), tuple(uses))


def check(path: Path, text: dict) -> None:
    """Raise UserError, with file, claim and field, if the text is not as claims.schema.json wants it."""
    from fastjsonschema import JsonSchemaValueException

    try:
        validator()(text)
    except JsonSchemaValueException as error:
        names, where = [part for part in error.path[1:] if not part.isdigit()], "the file"
        if names[:1] == ["claim"] and len(error.path) > 2:
            claim = text["claim"][int(error.path[2])]
            where = f"the claim {claim.get('id', '?') if isinstance(claim, dict) else '?'}"
            where = f"a test of {where}" if "test" in names else where
        raise UserError(f"{_name(path)}: {where} {_needed(error, names)}.") from None


def _needed(error, names: list[str]) -> str:
    """What an entry needs, in the words of the schema's descriptions. names: of the fields that lead to it."""
    properties = error.definition.get("properties", {})
    if error.rule == "additionalProperties":
        return f"has a key that no rule knows: {', '.join(sorted(set(error.value) - set(properties)))}"
    if error.rule == "required":
        missing = [name for name in error.rule_definition if name not in error.value]
        return "needs " + "; ".join(f"`{name}`: {properties[name]['description']}" for name in missing)
    return f"needs `{names[-1]}`: {error.definition['description']}"


@cache
def validator() -> Callable[[dict], dict]:
    """Return a function that raises if a file of claims is not as claims.schema.json wants it."""
    import fastjsonschema

    return fastjsonschema.compile(json.loads(Path(__file__).with_name("claims.schema.json").read_text()))


def declared(chapter: str) -> Declared:
    """What a chapter of the book declares. Raises UserError if there is no such chapter."""
    return read_claims(NOTEBOOKS / chapter / "claims.toml", chapter)


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
    where, test_of = f"{_name(path)}: the claim {entry['id']}", f"{_name(path)}: a test of the claim {entry['id']}"
    lists = {
        "tests": tuple(_rule(test_of, test) for test in entry.pop("test", [])),
        "untested": tuple(entry.pop("untested", [])),
    }
    claim = Claim(chapter=chapter, **entry, **lists)
    if chapter and not (claim.tests or claim.not_measurable):
        raise UserError(f"{where} needs tests, or `not_measurable` with the reason.")
    if claim.not_measurable and any(test.decides for test in claim.tests):
        raise UserError(f"{where} is not measurable, so that its tests can only stand beside it.")
    for kind in (Size, None):
        names = [test.number for test in claim.tests if isinstance(test, Size) == (kind is Size)]
        if len(set(names)) != len(names):
            raise UserError(f"{where} tests one measured number twice.")
    parts = [test for test in claim.tests if test.decides and not isinstance(test, Size)]
    if claim.tests and not claim.not_measurable and not parts:
        raise UserError(f"{where} tests nothing of the claim itself.")
    return claim


def _rule(where: str, entry: dict) -> Rule:
    try:
        return rule_of(entry | {key: in_words(entry[key]) for key in ("number", "part") if key in entry})
    except ValueError as error:
        raise UserError(f"{where} {error}.") from None


@cache
def by_number(sizes: bool = False) -> dict[tuple[str, str], Rule]:
    """Every test of the ledger but those on sizes, by claim and number; or those on sizes alone."""
    every = ((claim.id, rule) for claim in all_claims() for rule in claim.tests)
    return {(claim, rule.number): rule for claim, rule in every if isinstance(rule, Size) == sizes}


def in_words(name: str) -> str:
    """The name of a measurement, with the labels of the chapter pair in place of {GIL} and {FREE_THREADED}."""
    return name.replace("{GIL}", GIL).replace("{FREE_THREADED}", FREE_THREADED)


def _name(path: Path) -> str:
    return "/".join(path.parts[-3:])
