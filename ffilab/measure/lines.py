"""The lines of a record as they lie on disk: written, and read back whole."""

import hashlib
import json
from pathlib import Path

from ffilab.run.errors import UserError

# Written into the first line; a record of another format is refused.
FORMAT = 1


class Writer:
    """Appends lines to one record and flushes each. The last one, `end`, holds a digest of all lines before it."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("x", encoding="utf-8")
        self._digest = hashlib.sha256()

    def write(self, kind: str, **fields) -> None:
        if kind == "run":
            fields["format"] = FORMAT
        if kind == "end":
            fields["sha256"] = self._digest.hexdigest()
        line = json.dumps({"kind": kind, **fields}) + "\n"
        self._file.write(line)
        self._file.flush()
        self._digest.update(line.encode())

    def close(self) -> None:
        self._file.close()


def damaged(path: Path, what: str) -> UserError:
    return UserError(
        f"The record {path} is damaged ({what}): copy it anew from where it was measured, or measure again."
    )


def whole(content: bytes, path: Path) -> tuple[list[dict], bool]:
    """The lines of a record, and whether the last one was cut off. Raises UserError if another one is broken, or if
    they are not those that were written: the digest in the last line says so."""
    lines, digest = [], hashlib.sha256()
    texts = content.split(b"\n")
    last = texts.pop()
    for number, text in enumerate([*texts, *([last] if last else [])], 1):
        try:
            line = json.loads(text.decode())
        except (ValueError, RecursionError):
            if number == 1 or number > len(texts):
                return lines, True
            raise damaged(path, f"line {number} is no JSON") from None
        if not isinstance(line, dict) or not isinstance(line.get("kind"), str):
            if number == 1:
                return lines, True
            raise damaged(path, f"line {number} is of no kind")
        if lines and lines[-1]["kind"] == "end":
            raise damaged(path, f"line {number} stands behind its end")
        if line["kind"] == "end" and line.get("sha256", digest.hexdigest()) != digest.hexdigest():
            raise damaged(path, "its lines are not those that were written")
        lines.append(line)
        digest.update(text + b"\n")
    return lines, False
