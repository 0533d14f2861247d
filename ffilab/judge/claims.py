"""The claims of the book and the rules that judge them, read from files and checked as they are read.

A corner's claims stand in `notebooks/<corner>/claims.toml`, those that no chapter tests yet in `book/claims.toml`.
"""

import math
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from ffilab.errors import UserError
from ffilab.paths import NOTEBOOKS, ROOT
from ffilab.provision.catalogue import FREE_THREADED, GIL

UNWRITTEN = ROOT / "book" / "claims.toml"
DIRECTIONS = ("above", "below", "equal")


@dataclass(frozen=True)
class Rule:
    """One test of a claim, on the number that its chapter hands in under the name `measured`.

    direction `above` or `below`: the value must lie on that side of `null`; it holds if its interval also meets
    `published` within `tolerance` (relative to the published effect), or if there is no `published` number.
    direction `equal`: the whole interval must lie within `tolerance` (absolute) of `null`.
    """

    measured: str
    direction: str
    null: float
    published: float | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class Claim:
    """One claim of the four documents: where it was said, what was published, and the tests that decide."""

    id: str
    corner: str
    where: str
    claim: str
    published: str
    tests: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Declared:
    """What a corner's claims.toml says beside its claims.

    uses: corners whose experiments or native code this one takes over. needs: what must be provided beside interpreters
    and native projects, by name (see `press.book.PROVIDERS`).
    """

    claims: tuple[Claim, ...] = ()
    uses: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def read(path: Path, corner: str) -> Declared:
    """One file of claims. Raises UserError, with what is wrong and where, for anything that it does not know."""
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{_name(path)} cannot be read: {error}") from None
    _known(path, "the file", text, {"uses", "needs", "claim"})
    claims = [_claim(path, entry, corner) for entry in text.get("claim", [])]
    return Declared(tuple(claims), tuple(text.get("uses", [])), tuple(text.get("needs", [])))


def declared(corner: str) -> Declared:
    """What a corner of the book declares. Raises UserError if there is no such corner."""
    return read(NOTEBOOKS / corner / "claims.toml", corner)


def corners() -> list[str]:
    """The names of all corners: the folders of `notebooks` that hold claims."""
    return sorted(path.parent.name for path in NOTEBOOKS.glob("*/claims.toml"))


def all_claims() -> list[Claim]:
    """Every claim, in the order of the documents: A1, A2, … D7. Raises UserError for an id that stands twice."""
    found = [claim for corner in corners() for claim in declared(corner).claims]
    found += read(UNWRITTEN, "").claims if UNWRITTEN.exists() else ()
    seen = set()
    for claim in found:
        if claim.id in seen:
            raise UserError(f"The claim {claim.id} stands twice in the files of claims.")
        seen.add(claim.id)
    return sorted(found, key=lambda claim: place(claim.id))


def place(identifier: str) -> tuple[str, int]:
    """Where a claim stands in the ledger, for sorting: A2 before A10."""
    return identifier[:1], int(identifier[1:])


def _claim(path: Path, entry: dict, corner: str) -> Claim:
    what = f"the claim {entry.get('id', '?')}"
    _known(path, what, entry, {"id", "where", "claim", "published", "test"})
    missing = {"id", "where", "claim", "published"} - set(entry)
    if missing or not all(isinstance(entry[key], str) for key in ("id", "where", "claim", "published")):
        raise UserError(f"{_name(path)}: {what} needs the texts id, where, claim and published.")
    if not (entry["id"][:1].isalpha() and entry["id"][1:].isdigit()):
        raise UserError(f"{_name(path)}: {what} has no id such as A1.")
    tests = tuple(_rule(path, what, test) for test in entry.get("test", []))
    names = [test.measured for test in tests]
    if len(set(names)) != len(names):
        raise UserError(f"{_name(path)}: {what} tests one measured number twice.")
    return Claim(entry["id"], corner, entry["where"], entry["claim"], entry["published"], tests)


def _rule(path: Path, what: str, entry: dict) -> Rule:
    where = f"a test of {what}"
    _known(path, where, entry, {field.name for field in fields(Rule)})
    if not isinstance(entry.get("measured"), str) or entry.get("direction") not in DIRECTIONS:
        raise UserError(f"{_name(path)}: {where} needs the name `measured` and a direction: {', '.join(DIRECTIONS)}.")
    for key in ("null", "published", "tolerance"):
        value = entry.get(key)
        if value is None and key != "null":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UserError(f"{_name(path)}: {where} needs a finite number for `{key}`.")
    if ("tolerance" in entry) != ("published" in entry or entry["direction"] == "equal"):
        raise UserError(
            f"{_name(path)}: {where} needs a tolerance with a published number or for `equal`, and else none."
        )
    return Rule(**{**entry, "measured": in_words(entry["measured"])})


def in_words(name: str) -> str:
    """The name of a measurement, with the labels of the chapter pair in place of {GIL} and {FREE_THREADED}."""
    return name.replace("{GIL}", GIL).replace("{FREE_THREADED}", FREE_THREADED)


def _known(path: Path, what: str, entry: dict, keys: set[str]) -> None:
    if unknown := set(entry) - keys:
        raise UserError(f"{_name(path)}: {what} has a key that no rule knows: {', '.join(sorted(unknown))}.")


def _name(path: Path) -> str:
    return "/".join(path.parts[-3:])
