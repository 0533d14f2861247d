"""Where things are. Nothing here is specific to one machine."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from ffilab.run import settings
from ffilab.run.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels" / "kernels"
NATIVE = ROOT / "native"
NOTEBOOKS = ROOT / "notebooks"
# Tests measure into a folder of their own, so that they never overwrite a reader's results.
BUILD = Path(os.environ.get(settings.BUILD) or ROOT / "_build")
NATIVE_OUT = ROOT / "_build" / "native"
# Stands for NATIVE_OUT in the arguments of arms and cases, so that no record holds a path of one machine.
BUILT = "{built}"
# And this one for NATIVE.
SOURCES = "{native}"
RECORDS = BUILD / "records"
RESULTS = BUILD / "results"
EXECUTED = BUILD / "executed"
HTML = BUILD / "html"
LOGS = BUILD / "logs"


def cache() -> Path:
    """The folder that outlives a clone: downloads and built interpreters. Raises UserError where there can be none."""
    base = os.environ.get("XDG_CACHE_HOME")
    if base and not Path(base).is_absolute():
        raise UserError(f"XDG_CACHE_HOME is {base!r}, which is no absolute path: name a folder from / on.")
    if not base and home() is None:
        raise UserError("You have no home folder (HOME is not set): set XDG_CACHE_HOME to a folder for interpreters.")
    return Path(base or home() / ".cache") / "ffi-hidden-corners"


def read_json(path: Path):
    """What a file of this repository holds. Raises UserError if it is damaged, as after a merge."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read ({error}): take it back with git.") from None


def home() -> Path | None:
    """The user's home folder, or None where the system knows of none."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def has_space(path: Path) -> bool:
    """Does the path contain whitespace?"""
    return len(str(path).split()) > 1


def swap(new: Path, place: Path) -> None:
    """Put a new folder in the place of an old one, which is removed."""
    old = new.with_name(f"{new.name}-old")
    if place.exists():
        shutil.rmtree(old, ignore_errors=True)
        place.rename(old)
    new.rename(place)
    shutil.rmtree(old, ignore_errors=True)


# What build tools leave in a native project's folder when someone builds it by hand.
BY_PRODUCTS = {"build", "target", "Cargo.lock"}


def resolved(value, seed: int | None = None, built: str | None = None) -> Any:
    """Arguments as a process gets them: BUILT and SOURCES filled in everywhere, and a lone "{seed}" replaced by the
    number.

    built: the folder for BUILT, if it is that of a layout.
    """
    if isinstance(value, dict):
        return {key: resolved(item, seed, built) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolved(item, seed, built) for item in value]
    if not isinstance(value, str):
        return value
    return seed if value == "{seed}" else value.replace(BUILT, built or str(NATIVE_OUT)).replace(SOURCES, str(NATIVE))


def why_not_built(path: Path) -> str:
    """Why a library or program below `{built}/<chapter>/` is not there, as the build noted it; empty if it is, or
    nothing was noted."""
    folder = NATIVE_OUT / path.parent.name
    notes = () if (folder / path.name).exists() else sorted(folder.glob("missing-*.txt"))
    return " ".join(note.read_text() for note in notes)


def with_reason(said: str) -> str:
    """What a process said; if it could not open a library that was not built, with the reason for that."""
    named = re.search(r"\w+/lib\w+\.so", said)
    why = why_not_built(Path(named[0])) if named else ""
    return f"{said.rstrip('.')}. {why}" if why else said


def without_paths(text: str) -> str:
    """What a process said, without the folders of this machine: the clone's is left out, the others get a name."""
    text = text.replace(f"{ROOT}{os.sep}", "")
    try:
        text = text.replace(str(cache()), "CACHE")
    except UserError:
        pass
    # Of a user without one it is the root of all folders.
    if home() not in (None, Path("/")):
        text = text.replace(str(home()), "~")
    return re.sub(rf"(?<![\w.-]){re.escape(tempfile.gettempdir())}/[\w.-]+", "TEMPORARY", text)
