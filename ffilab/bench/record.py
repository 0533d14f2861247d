"""Records on disk: one JSON line per event, written as the run goes, so that nothing is lost.

Line kinds: `run` (plan, machine, kernels), `loops` (calibrated counts), `restart`
(facts of its workers), `block` (one randomised block), `failure` (a restart that
was given up, with the reason), `end`.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ffilab.errors import UserError


class Writer:
    """Appends lines to one record and flushes each."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._file = path.open("x", encoding="utf-8")

    def write(self, kind: str, **fields) -> None:
        self._file.write(json.dumps({"kind": kind, **fields}) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@dataclass(frozen=True)
class Record:
    """One run, read back. `cut_off` is true if the run was interrupted."""

    path: Path
    run: dict
    restarts: list[dict]
    blocks: list[dict]
    failures: list[dict]
    cut_off: bool

    @property
    def kernels(self) -> list[str]:
        return self.run["plan"]["kernels"]

    @property
    def missing(self) -> dict[tuple[str, str], str]:
        """(kernel, arm) to the reason why it could not be measured."""
        return {
            (kernel, arm): reason
            for restart in self.restarts
            for kernel, arms in restart["missing"].items()
            for arm, reason in arms.items()
        }

    def times(self, kernel: str, arm: str) -> np.ndarray:
        """Nanoseconds per loop, shape (restarts, blocks). Raises KeyError if it was not measured.

        Only complete restarts count: every cell of every block is there.
        """
        if (kernel, arm) in self.missing:
            raise KeyError(f"{arm} on {kernel}: {self.missing[kernel, arm]}")
        key = f"{kernel}/{arm}"
        rows: dict[int, list[float]] = {}
        for block in self.blocks:
            rows.setdefault(block["restart"], []).append(block["ns"][key] / block["loops"][key])
        complete = [row for row in rows.values() if len(row) == self.run["plan"]["blocks"]]
        if not complete:
            raise UserError(f"The record {self.path.name} holds no complete restart: measure again.")
        return np.array(complete)


def read(path: Path) -> Record:
    """Read a record; a last line that was cut off in the middle of a write is left out.

    Raises UserError if the file is no record.
    """
    lines, cut_off = [], False
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            lines.append(json.loads(text))
        except json.JSONDecodeError:
            if number == 1:
                break
            cut_off = True
    if not lines or lines[0].get("kind") != "run":
        raise UserError(f"{path} is not a record of a measurement.")
    by_kind = {
        kind: [line for line in lines if line["kind"] == kind] for kind in ("restart", "block", "failure", "end")
    }
    cut_off = cut_off or not by_kind["end"]
    return Record(path, lines[0], by_kind["restart"], by_kind["block"], by_kind["failure"], cut_off)
