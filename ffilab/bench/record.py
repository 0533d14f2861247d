"""Records on disk: one JSON line per event, written as the run goes, so that nothing is lost.

Line kinds: `run` (plan, machine, kernels), `loops` (calibrated counts), `restart`
(facts of its workers), `block` (one randomised block), `failure` (a restart that
was given up, with the reason), `child` (one process of its own), `end`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
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

    @cached_property
    def noise(self) -> Noise:
        """Which blocks and restarts the plan's noise rule discards. The rule never looks at a time."""
        return discard(self.blocks, self.run["plan"]["blocks"])

    def times(self, kernel: str, arm: str) -> np.ndarray:
        """Nanoseconds per loop, shape (restarts, blocks); NaN in blocks that the noise rule discards.

        Only complete restarts count: every cell of every block is there. Raises KeyError if the
        arm was not measured on this kernel.
        """
        if (kernel, arm) in self.missing:
            raise KeyError(f"{arm} on {kernel}: {self.missing[kernel, arm]}")
        if not self.noise.restarts:
            raise UserError(f"The record {self.path and self.path.name} holds no complete restart: measure again.")
        key = f"{kernel}/{arm}"
        rows = {restart: [] for restart in self.noise.restarts}
        for number, block in enumerate(self.blocks):
            if block["restart"] in rows:
                kept = number not in self.noise.blocks
                rows[block["restart"]].append(block["ns"][key] / block["loops"][key] if kept else np.nan)
        return np.array(list(rows.values()))


# The noise rule, fixed before any time is seen. A tick of the steal clock is 10 ms.
MAX_STEAL_SHARE = 0.01
MAX_INVOLUNTARY_PER_S = 100


@dataclass(frozen=True)
class Noise:
    """What the noise rule decided. `blocks`: indices discarded; `restarts`: numbers kept; `report`: in words."""

    blocks: set[int]
    restarts: list[int]
    report: str


def noisy(block: dict) -> bool:
    """Did the hypervisor or other processes take a noticeable part of this block? Old records know no noise."""
    seconds = sum(block["ns"].values()) / 1e9
    return block.get("steal_s", 0) > MAX_STEAL_SHARE * seconds or block.get("involuntary", 0) > max(
        1, MAX_INVOLUNTARY_PER_S * seconds
    )


def discard(blocks: list[dict], blocks_per_restart: int) -> Noise:
    """Apply the noise rule.

    A noisy block is discarded. A restart that loses half of its blocks is discarded whole. If half of the restarts
    would go, the noise is the machine's normal state: then nothing is discarded, and the report says so.
    """
    if not blocks:
        return Noise(set(), [], "nothing: each run had a process of its own, and all of them count")
    members: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        members.setdefault(block["restart"], []).append(number)
    complete = {r: numbers for r, numbers in members.items() if len(numbers) == blocks_per_restart}
    bad = {n for numbers in complete.values() for n in numbers if noisy(blocks[n])}
    kept = [r for r, numbers in complete.items() if 2 * sum(n in bad for n in numbers) < len(numbers)]
    total = sum(map(len, complete.values()))
    if 2 * len(kept) <= len(complete):
        words = (
            f"{len(bad)} of {total} blocks were noisy; as this is the machine's normal state here, none was discarded"
        )
        return Noise(set(), list(complete), words)
    words = (
        f"{len(bad)} of {total} blocks and {len(complete) - len(kept)} of {len(complete)} restarts discarded as noisy"
    )
    return Noise(bad, kept, words)


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
