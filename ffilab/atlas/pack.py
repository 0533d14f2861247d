"""A pack: one file with a run's records, its ledger, and the facts of its machine, to be given away.

It names no person, no host and no folder. What others made is checked before anything is taken from it, and nothing is
written: the two files at its head are read in memory. `make book FROM=pack` reads the records as of any bundle.
"""

import copy
import functools
import getpass
import gzip
import json
import re
import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from ffilab.judge import claims, ledger
from ffilab.judge.estimates import Location
from ffilab.judge.numbers import Numbers, numbers_of
from ffilab.measure import foreign
from ffilab.measure.lines import Writer, whole
from ffilab.measure.reading import Reading, Session
from ffilab.page.contents import chapters, digest
from ffilab.page.files import slug
from ffilab.page.ledger_page import finite
from ffilab.run.archives import DAMAGED, tarfile
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS, ROOT, without_paths
from ffilab.run.progress import say, step

FORMAT = 1
FACTS, LEDGER, RECORDS = "machine.json", "ledger.json", "records"
MEMBER = re.compile(rf"{FACTS}|{LEDGER}|{RECORDS}(/[0-9A-Za-z_]+){{2}}/[0-9A-Za-z_ .,()+-]+\.jsonl")
# A run of `full` packs to some ten megabytes, and its ledger is half of one.
MOST_PACKED, MOST_WHOLE, MOST_HEAD, MOST_MEMBERS = 256 << 20, 2 << 30, 16 << 20, 10_000
SCHEMA = Path(__file__).with_name("pack.schema.json")
# What a run found. The words of a claim are those of the reader's own clone.
OF_ROW = ("id", "chapter", "verdict", "qualifier", "size", "reason", "numbers", "interval", "counted")
OF_PART = ("number", "kind", "experiment", "verdict")
# The folders before a file, where they are not those of each system.
FOLDERS = re.compile(r"(?:(?<=-[ILB])|(?<![\w./~}]))/(?!(?:usr|lib\w*|s?bin|etc|proc|sys|dev)/)(?:[\w.+@-]+/)+")
# Of two sessions, that they were measured on one machine.
SAME_MACHINE = ("cpu", "cores", "memory_gib")


@dataclass(frozen=True)
class Pack:
    """One that was read. facts, rows: as in pack.schema.json; rows by claim. light: it has no records."""

    path: Path
    facts: dict
    rows: Mapping[str, dict]
    light: bool

    @property
    def machine(self) -> dict:
        return self.facts["machine"]

    def is_result(self, row: dict) -> bool:
        """Was its chapter measured with a budget that gives results?"""
        chapter = self.facts["chapters"].get(row["chapter"])
        return bool(chapter) and BUDGETS[chapter["budget"]].is_result


def sessions(source: Path | None) -> dict[str, Session]:
    """By chapter what is packed: the sessions that the pages here were made from, or the newest ones in a folder of
    records. Raises UserError if there is none, or if they come from several machines."""
    found: dict[str, Session] = {}
    if source is None:
        found = {one.name: session for one in chapters() if one.is_executed and (session := one.session)}
    else:
        for name in claims.chapter_names():
            with suppress(foreign.NoSession):
                found[name] = Reading(name, foreign.find(source, name))
    if not found:
        where = source or "_build/records"
        raise UserError(f"There is nothing to pack in {where}: run `make book`, or name records with FROM=.")
    machines = {tuple(one.machine[fact] for fact in SAME_MACHINE) for one in found.values()}
    if len(machines) > 1:
        said = "; ".join(sorted(f"{cpu}, {cores} cores, {memory} GiB" for cpu, cores, memory in machines))
        raise UserError(f"These records come from more than one machine ({said}): pack those of each by themselves.")
    return found


@functools.cache
def rules() -> str:
    """What identifies how this clone judges: another one may give other verdicts to the same records."""
    judging = [*(ROOT / "ffilab" / "judge").glob("*.py"), *NOTEBOOKS.glob("*/claims.toml")]
    return digest([*judging, *NOTEBOOKS.glob("*/numbers.py")])[:16]


def written(found: dict[str, Session], folder: Path, called: str = "", light: bool = False) -> Path:
    """Write a pack of these sessions into a folder. Returns its path.

    called: what a person says of it. light: leave out the records, so that it has the ledger and the facts alone.
    """
    with step("judge what is packed"):
        judged = {name: rows for name, session in sorted(found.items()) if (rows := findings(session)) is not None}
    if not (found := {name: session for name, session in found.items() if name in judged}):
        raise UserError("All of these records are of another version: pack them with the version that wrote them.")
    rows = [row for of_chapter in judged.values() for row in of_chapter]
    newest = max(found.values(), key=lambda session: session.machine["date"])
    about = {
        "format": FORMAT,
        "rules": rules(),
        "called": called,
        "machine": newest.machine,
        "interpreters": {
            label: {key: build[key] for key in ("version", "route", "config_args", "stamp")}
            for session in found.values()
            for label, build in session.record.run["interpreters"].items()
        },
        "chapters": {name: described(session) for name, session in sorted(found.items())},
    }
    try:
        valid({"facts": about, "ledger": rows})
    except Refused as why:
        raise UserError(f"This cannot be packed: {why}.") from None
    when = re.sub(r"[^0-9T]", "", newest.machine["date"][:16])
    path = folder / f"{slug(newest.machine['cpu'], str(newest.machine['cores']), 'cores', when)}.tar.gz"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        inside = Path(scratch) / "pack"
        inside.mkdir()
        for name, what in ((FACTS, about), (LEDGER, rows)):
            (inside / name).write_text(json.dumps(without_names(what), indent=1, allow_nan=False))
        for session in () if light else found.values():
            copy_records(session, inside / RECORDS / session.chapter)
        compress(inside, Path(scratch) / "packed")
        (Path(scratch) / "packed").replace(path)
    return path


def findings(session: Session) -> list[dict] | None:
    """What a session says of its claims; None, with a line for the reader, if this version cannot judge its records."""
    try:
        found = numbers_of(session)
        return [slim(row, errors(found, row)) for row in ledger.judged(session)]
    except (UserError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        say(f"  left out: {session.chapter}, whose records this version cannot judge ({type(error).__name__})")
        return None


def described(session: Session) -> dict[str, Any]:
    """What is said of one chapter's session, and with their dates which ones before it are in its numbers."""
    plan = session.record.run["plan"]
    about = {key: session.machine[key] for key in ("date", "commit")}
    earlier = {one.folder.name: one.machine["date"] for one in session.earlier}
    return {"session": session.folder.name, "earlier": earlier, **about, "budget": plan["budget"]}


def errors(found: Numbers, row: dict) -> dict[str, float]:
    """The standard errors of a row's ratios, on the logarithmic scale, by number: an interval of few layouts does not
    give them away."""
    estimates = {name: found[name].estimate for name in row["numbers"]}
    return {name: one.error for name, one in estimates.items() if isinstance(one, Location) and one.log}


def slim(row: dict, of_errors: dict[str, float]) -> dict:
    """What a run found of a claim."""
    parts = [{key: part[key] for key in OF_PART} for part in row["parts"]]
    return cast(dict, finite({**{key: row[key] for key in OF_ROW}, "errors": of_errors, "parts": parts}))


def copy_records(session: Session, target: Path) -> None:
    """Write the records of a session, and of those before it, without the names of this machine."""
    for folder in [session.folder, *(earlier.folder for earlier in session.earlier)]:
        for path in sorted(folder.glob("*.jsonl")):
            lines, _ = whole(path.read_bytes(), path)
            if ".superseded-" in path.name:
                continue
            writer = Writer(target / folder.name / path.name)
            for line in lines:
                writer.write(**without_names(line))
            writer.close()


def without_names(value, prose: bool = True) -> Any:
    """The value without a person's folders and, in prose, without the names of this machine's host and user.

    Only sentences are searched for names: a case may be called as a host is, and a processor too.
    """
    if isinstance(value, dict):
        return {
            key: without_names(item, prose and key not in ("machine", "interpreters")) for key, item in value.items()
        }
    if isinstance(value, list):
        return [without_names(item, prose) for item in value]
    if not isinstance(value, str):
        return value
    value = FOLDERS.sub(".../", without_paths(value))
    return names().sub("NAME", value) if prose and " " in value else value


@functools.cache
def names() -> re.Pattern:
    """What finds the names of this host and its user. Short and common ones say nothing, and are words of the book."""
    found = {socket.gethostname(), socket.gethostname().partition(".")[0]}
    with suppress(KeyError, OSError):
        found.add(getpass.getuser())
    telling = [name for name in found if len(name) > 2 and name not in ("root", "localhost", "user", "debian")]
    return re.compile("|".join(rf"\b{re.escape(name)}\b" for name in telling) or r"(?!)", re.IGNORECASE)


def compress(inside: Path, target: Path) -> None:
    """Write a folder as a compressed archive that says nothing of who made it, and when; the head comes first."""

    def neutral(member):
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        member.mode = 0o644
        return member

    files = sorted(path for path in inside.rglob("*") if path.is_file())
    files.sort(key=lambda path: path.parent != inside)
    with target.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in files:
                archive.add(path, path.relative_to(inside).as_posix(), filter=neutral)


# ---- what others made ----


def opened(path: Path) -> Pack:
    """Read a pack. Raises UserError, with one sentence, if it is damaged, or is not as `written` makes it."""
    try:
        heads, members = _heads(path)
        about, rows = (_read(heads[name], name) for name in (FACTS, LEDGER))
        valid({"facts": about, "ledger": rows})
    except Refused as why:
        raise UserError(f"The pack {path} is refused ({why}): copy it anew, or have it made again.") from None
    return Pack(path, about, {row["id"]: row for row in rows}, members == len(heads))


class Refused(Exception):
    """Why a pack is none."""


def _heads(path: Path) -> tuple[dict[str, bytes], int]:
    """The two files at the head of a pack, after a look at the name, kind and size of all that is in it; and how many
    files these are."""
    try:
        # A pipe or a device would never end.
        if not path.is_file():
            raise Refused("there is no such file")
        if path.stat().st_size > MOST_PACKED:
            raise Refused(f"it has more than {MOST_PACKED >> 20} MB")
        with tempfile.TemporaryFile() as archive:
            with gzip.open(path) as packed:
                while block := packed.read(1 << 20):
                    archive.write(block)
                    if archive.tell() > MOST_WHOLE:
                        raise Refused(f"it unpacks to more than {MOST_WHOLE >> 20} MB")
            archive.seek(0)
            heads, seen = {}, set()
            with tarfile.open(fileobj=archive, mode="r:") as members:
                for member in members:
                    if not member.isfile() or not MEMBER.fullmatch(member.name) or member.name in seen:
                        raise Refused(f"it holds {member.name[:80]!a}, which is no part of a pack")
                    seen.add(member.name)
                    if len(seen) > MOST_MEMBERS or (member.name in (FACTS, LEDGER) and member.size > MOST_HEAD):
                        raise Refused("it holds too much")
                    if member.name in (FACTS, LEDGER) and (content := members.extractfile(member)):
                        heads[member.name] = content.read()
    except (OSError, MemoryError, *DAMAGED) as error:
        raise Refused((str(error).splitlines() or ["it is cut off"])[0]) from None
    for name in (FACTS, LEDGER):
        if name not in heads:
            raise Refused(f"it has no {name}")
    return heads, len(seen)


def _read(content: bytes, name: str) -> Any:
    def refuse(constant: str):
        raise Refused(f"{name} holds {constant}, which is no number")

    try:
        return json.loads(content.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Refused(f"{name} is no JSON") from None


def valid(heads: Mapping[str, Any]) -> None:
    """Raise Refused, with the field, if the head of a pack is not as pack.schema.json wants it."""
    from fastjsonschema import JsonSchemaValueException

    for kind, content in heads.items():
        try:
            # It fills in what a schema gives as a default.
            validators()[kind](copy.deepcopy(content))
        except JsonSchemaValueException as error:
            rule = "be short text without markup" if error.rule in ("pattern", "maxLength") else error.message[:160]
            raise Refused(
                f"{ascii(error.name)[1:-1].replace('data', kind, 1)[:80]} must {rule.rpartition(' must ')[2]}"
            ) from None
        try:
            # JSON Schema does not know infinity, nor half a character.
            json.dumps(content, allow_nan=False, ensure_ascii=False).encode()
        except ValueError:
            raise Refused(f"{kind} holds a number that is not finite, or text that is none") from None


@functools.cache
def validators() -> dict[str, Callable]:
    """Return a function for each file of the head, and one for a name, that raises if it is not as pack.schema.json
    wants it."""
    import fastjsonschema

    schema, records = (json.loads(path.read_text()) for path in (SCHEMA, foreign.SCHEMA))
    schema["definitions"] = {**records["definitions"], **schema["definitions"]}
    kinds = ("facts", "ledger", "label")
    return {kind: fastjsonschema.compile({**schema, "$ref": f"#/definitions/{kind}"}) for kind in kinds}


def judged_here(found: Pack) -> Pack:
    """The pack with its records judged by the rules of this clone, if it was judged by others and has records.

    What cannot be judged here, since another version wrote it, stays as it was judged there; the pack then counts as
    judged by others.
    """
    if found.facts["rules"] == rules() or found.light:
        return found
    try:
        with step(f"judge {found.path.name} by the rules of this clone"):
            read = sessions(foreign.unpacked(str(found.path)))
            anew = {name: rows for name, session in read.items() if (rows := findings(session)) is not None}
    except UserError as error:
        say(f"  {found.path.name} is shown as it was judged where it was made ({error})")
        return found
    rows = {name: row for name, row in found.rows.items() if row["chapter"] not in anew}
    rows |= {row["id"]: row for of_chapter in anew.values() for row in of_chapter}
    whole_of_it = found.facts["chapters"].keys() <= anew.keys()
    return replace(found, facts={**found.facts, "rules": rules() if whole_of_it else found.facts["rules"]}, rows=rows)
