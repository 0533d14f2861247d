"""Records from elsewhere: unpack a bundle, find the newest session of a chapter, check what the files hold.

They are checked once, in the book's own environment, before any page is made from them. A chapter's interpreter, which
may lack fastjsonschema, reads its own records and checked ones.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from ffilab.measure.lines import damaged, whole
from ffilab.measure.record import MAIN, Record, read_record
from ffilab.run.archives import DAMAGED, tarfile
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD

SCHEMA = Path(__file__).with_name("record.schema.json")
# A bundle of all chapters holds some hundred megabytes.
MAX_BYTES = 4 << 30


class NoSession(UserError):
    """A folder of records holds no complete session of a chapter."""


def unpacked(given: str) -> Path:
    """Return what FROM names as a folder; a bundle (.tar.gz) is unpacked below `_build`.

    Raises UserError if it is neither a folder nor a bundle, or if the bundle is far too large.
    """
    path = Path(given).resolve()
    if path.is_dir():
        return path
    try:
        # A pipe or a device would never end.
        if not path.is_file():
            raise tarfile.ReadError("there is no such file")
        # By its content: two bundles may have one name.
        with path.open("rb") as file:
            target = BUILD / "from" / hashlib.file_digest(file, "sha256").hexdigest()[:16]
        if not target.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            with tarfile.open(path, "r:gz") as bundle, tempfile.TemporaryDirectory(dir=BUILD) as scratch:
                size = 0
                for member in bundle:
                    size += member.size
                    if size > MAX_BYTES:
                        raise UserError(
                            f"The bundle {given} would unpack to more than {MAX_BYTES >> 30} GiB: it holds no records."
                        )
                bundle.extractall(Path(scratch) / "all", filter="data")
                (Path(scratch) / "all").rename(target)
    except DAMAGED as error:
        why = str(error).splitlines()[0].rstrip(":") if str(error) else "it is cut off"
        raise UserError(f"FROM names {given}, which is neither a folder of records nor a bundle ({why}).") from None
    if not any(target.rglob("*.jsonl")):
        raise UserError(f"{given} holds no records; a light pack has none. Name a folder or a bundle that has some.")
    return target


def find(folder: Path, chapter: str) -> Path:
    """Return the newest complete session of a chapter in a folder of records, after a check of all its records.

    Raises NoSession if there is none, and UserError if a record is damaged.
    """
    folder_of_session = newest(folder, chapter, checked=True)
    main = read_record(folder_of_session / MAIN)
    for session in [folder_of_session, *(folder_of_session.parent / name for name in main.run["plan"]["earlier"])]:
        for path in sorted(session.glob("*.jsonl")):
            check(path)
    return folder_of_session


def newest(folder: Path, chapter: str, checked: bool = False) -> Path:
    """Return the newest complete session of a chapter in a folder of records. checked: look at what all of them hold.

    One dated in the future counts only if there is no other: a clock that went wrong once must not hide what is
    measured later. Raises NoSession if there is none, and UserError if one cannot be read, as it may be the newest.
    """
    records = [
        record for path in folder.rglob(MAIN) if path.is_file() and (record := _complete(path, chapter, checked))
    ]
    if not records:
        raise NoSession(f"There is no complete session of the chapter {chapter!r} among the records that FROM names.")
    now = datetime.now(UTC).isoformat()
    dated = [(record.run["machine"]["date"], record.path.parent) for record in records]
    # Two may have begun in one second; the names of their folders are more exact.
    return max(dated, key=lambda one: (one[0] <= now, one[0], one[1].name))[1]


def _complete(path: Path, chapter: str, checked: bool) -> Record | None:
    """Read a session if it is of this chapter and complete; of others only the first line is read."""
    with path.open(encoding="utf-8", errors="replace") as file:
        try:
            if json.loads(file.readline())["plan"]["name"] != chapter:
                return None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
    record = read_record(path)
    if checked:
        check(path)
    return None if record.cut_off else record


def check(path: Path) -> None:
    """Raise UserError, with file, line and field, if a record holds what no measurement writes."""
    # Only here: an environment that just reads its own records need not have it.
    from fastjsonschema import JsonSchemaValueException

    lines, _ = whole(path.read_bytes(), path)
    for number, line in enumerate(lines, 1):
        kind = ("session" if path.name == MAIN else "plan") if line["kind"] == "run" else line["kind"]
        if kind not in validators() or (number > 1) == (line["kind"] == "run"):
            raise damaged(path, f"line {number} is of the kind {line['kind'][:40]!r}")
        try:
            validators()[kind](line)
            if kind not in ("child", "observation"):
                # JSON Schema does not know NaN and infinity.
                json.dumps(line, allow_nan=False)
        except JsonSchemaValueException as error:
            rule = "be text without markup" if error.rule == "pattern" else error.message.removeprefix(error.name)[:120]
            raise damaged(
                path, f"line {number}: {error.name.removeprefix('data.')} must {rule.removeprefix(' must ')}"
            ) from None
        except ValueError:
            raise damaged(path, f"line {number} holds a number that is not finite") from None
    for number, field, problem in _contradictions(lines):
        raise damaged(path, f"line {number}: {field}: {problem}")


@cache
def validators() -> dict[str, Callable]:
    """Return a function for each kind of line that raises if the line is not as record.schema.json wants it."""
    import fastjsonschema

    schema = json.loads(SCHEMA.read_text())
    return {kind: fastjsonschema.compile({**schema, "$ref": f"#/lines/{kind}"}) for kind in schema["lines"]}


def _contradictions(lines: list[dict]) -> Iterator[tuple[int, str, str]]:
    """Yield line, field and problem where two lines do not fit: counts twice, a block twice, times that are not those
    of the calibrated arms."""
    loops, missing, blocks = None, set(), set()
    for number, line in enumerate(lines, 1):
        if line["kind"] == "loops":
            if loops is not None:
                yield number, "loops", "is there twice"
            loops = line["loops"].keys()
        elif line["kind"] == "restart":
            missing |= {f"{label}/{arm}" for label, arms in line["missing"].items() for arm in arms}
        elif line["kind"] == "block":
            place = line["restart"], line["block"]
            if place in blocks:
                yield number, "block", f"{place[1]} of restart {place[0]} is there twice"
            blocks.add(place)
            timed = line["ns"].keys()
            if wrong := (timed - (loops or set())) | ((loops or set()) - timed - missing):
                yield number, "ns", f"the times are not those of the calibrated arms ({min(wrong)})"
