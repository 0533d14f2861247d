"""Sessions of a study that are kept in the repository, to which further ones are added on any day."""

import json
import re
from pathlib import Path

from ffilab.run.budget import BUDGETS
from ffilab.run.paths import RESULTS, ROOT, read_json

EVIDENCE = ROOT / "book" / "evidence"


def file(name: str, budget: str) -> Path:
    """Where a study keeps its sessions; those of a smoke test are no evidence, and go to _build/results."""
    return (EVIDENCE if BUDGETS[budget].is_result else RESULTS) / f"{name}.json"


def read_sessions(path: Path) -> list[dict]:
    """The sessions of a file; none, if there is no file."""
    return read_json(path) if path.exists() else []


def write_sessions(path: Path, sessions: list[dict]) -> None:
    """Put all sessions into a file, one in a line, in one step: who is interrupted keeps what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.new")
    new.write_text("[\n" + ",\n".join(json.dumps(one) for one in sessions) + "\n]\n")
    new.replace(path)


def without_folders(text: str) -> str:
    """A line of an error is kept for all to read: without the folders of this machine."""
    return re.sub(r"[^\s'\"=]*/(?=\S)", "", text)
