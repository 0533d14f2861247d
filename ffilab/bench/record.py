"""Records on disk: one JSON line per event, written as the run goes, so that nothing is lost.

Line kinds: `run` (plan, machine, interpreters), `loops` (calibrated counts), `restart` (facts of its workers), `block`
(one randomised block: ns by cell, in the order in which they were timed), `failure` (a restart that was given up, with
the reason), `experiment` (title, number of the run, how many processes it is to have), `child` (one process of its own,
with the factors of its case), `observation` (something looked at once), `end`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from ffilab.bench import neighbour
from ffilab.bench.noise import Noise, discard
from ffilab.errors import UserError

KINDS = ("loops", "restart", "block", "failure", "experiment", "child", "observation", "end")


# The main record of a session; the others are named after their plan.
MAIN = "session.jsonl"
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


@dataclass(frozen=True)
class Unit:
    """What a comparison counts as one: a session's layout, linked from one of the builds; or one restart, if it drew none."""

    session: int
    build: int
    layout: int | None
    restart: int | None = None

    @classmethod
    def of(cls, line: dict) -> Unit:
        """From the line of a restart."""
        drawn, session = line.get("layouts") or {}, line.get("session", 0)
        if line.get("layout") is None:
            return cls(session, 1, None, line["restart"])
        return cls(session, max((layout["build"] for layout in drawn.values()), default=1), line["layout"])


@dataclass(frozen=True)
class Record:
    """One run, read back. `cut_off` is true if the run was interrupted. block_ns: how long a block lasts by the calibration."""

    path: Path | None
    run: dict
    loops: dict[str, int] = field(default_factory=dict)
    block_ns: float | None = None
    restarts: list[dict] = field(default_factory=list)
    blocks: list[dict] = field(default_factory=list)
    failures: list[dict] = field(default_factory=list)
    experiments: list[dict] = field(default_factory=list)
    children: list[dict] = field(default_factory=list)
    observations: list[dict] = field(default_factory=list)
    end: dict = field(default_factory=dict)
    cut_off: bool = False
    # What it was put together from: see `merged`.
    sessions: tuple[Record, ...] = ()

    @property
    def interpreters(self) -> list[str]:
        return self.run["plan"]["interpreters"]

    @property
    def missing(self) -> dict[tuple[str, str], str]:
        """(interpreter, arm) to the reason why it could not be measured."""
        return {
            (interpreter, arm): reason
            for restart in self.restarts
            for interpreter, arms in restart["missing"].items()
            for arm, reason in arms.items()
        }

    @cached_property
    def ratios(self) -> dict:
        """Of pairs of cells, as ffilab.judge has worked them out: figures, tables, sentences and claims ask for the same ones."""
        return {}

    @cached_property
    def noise(self) -> Noise:
        """Which blocks and restarts the plan's noise rule discards. The rule never looks at a block's own time."""
        if self.sessions:
            return _joined(
                [session.noise for session in self.sessions], [len(session.blocks) for session in self.sessions]
            )
        noise = discard(self.blocks, self.run["plan"]["blocks"], self.block_ns)
        about_company = neighbour.said(self.blocks, self.company)
        return replace(noise, report=f"{noise.report}; {about_company}") if about_company else noise

    @cached_property
    def units(self) -> dict[int, Unit]:
        """The unit to which each restart belongs: its session and layout, or itself where no layout was drawn."""
        alone = {block["restart"]: Unit(block.get("session", 0), 1, None, block["restart"]) for block in self.blocks}
        return alone | {line["restart"]: Unit.of(line) for line in self.restarts if "restart" in line}

    @cached_property
    def kept(self) -> list[Unit]:
        """The units of complete restarts, in the order of their first one: the rows of `times`."""
        return list(dict.fromkeys(self.units[number] for number in self.noise.restarts))

    def times(self, interpreter: str, arm: str) -> np.ndarray:
        """Nanoseconds per loop of one cell, shape (units, blocks); NaN in blocks that the noise rule discards, in batches whose
        core had company (see bench/neighbour.py), and where a unit has fewer blocks than another.

        The unit is the layout: the blocks of all restarts with it stand in one row. Without layouts it is the restart.
        Raises KeyError if the arm was not measured on this interpreter.
        """
        rows: dict[Unit, list] = {unit: [] for unit in self.kept}
        for number, row in zip(self.noise.restarts, self.by_restart(interpreter, arm)):
            rows[self.units[number]].extend(row)
        return padded(rows.values())

    def by_restart(self, interpreter: str, arm: str) -> np.ndarray:
        """The same, shape (restarts, blocks): a row for each restart of `noise.restarts`.

        Only complete restarts count: every cell of every block is there. Raises KeyError as `times` does.
        """
        if (interpreter, arm) in self.missing:
            raise KeyError(f"{arm} on {interpreter}: {self.missing[interpreter, arm]}")
        if not self.noise.restarts:
            raise UserError(f"The record {self.path and self.path.name} holds no complete restart: measure again.")
        return self.rows(interpreter, arm, self._discarded[f"{interpreter}/{arm}"])

    def rows(self, interpreter: str, arm: str, discarded: np.ndarray) -> np.ndarray:
        """Nanoseconds per loop of one cell, shape (restarts, blocks), NaN in the blocks that are `discarded` and in those that
        the noise rule discards."""
        key = f"{interpreter}/{arm}"
        rows = {restart: [] for restart in self.noise.restarts}
        for number, block in enumerate(self.blocks):
            if block["restart"] in rows:
                kept = number not in self.noise.blocks and not discarded[number]
                rows[block["restart"]].append(block["ns"][key] / self.loops[key] if kept else np.nan)
        return padded(rows.values())

    @cached_property
    def _discarded(self) -> dict[str, np.ndarray]:
        return neighbour.discarded(self.company)

    @cached_property
    def company(self) -> dict[str, np.ndarray]:
        """Of each cell ("interpreter/arm"): the share of its work, in each block, during which the core had a neighbour."""
        return neighbour.shares(self.blocks, list(self.loops))

    def disturbed(self, title: str | None = None) -> tuple[int, int, int]:
        """Return how many blocks (of a title: processes) were measured again, were left out as disturbed, and were planned."""
        lines = self.blocks if title is None else [line for line in self.children if line["title"] == title]
        return 0, 0, len(lines)

    def measured(self, interpreter: str, arm: str) -> bool:
        """Was this cell timed? Not if the arm could not be made there, or was not asked for."""
        return f"{interpreter}/{arm}" in self.loops

    def frame(self, title: str) -> pd.DataFrame:
        """The processes of one experiment, tidy: a row for each process, or for each row that a process brought back.

        Columns: interpreter, the named factors of the case, the values of the result (nested ones with a dot between
        the names), process (their number, in the order of running), round, ended. A process that brought nothing has
        one row, with its factors and how it ended. Of an experiment that was run again, the last run counts.
        Raises KeyError if there is no complete experiment of that title.
        """
        runs = [line for line in self.experiments if line["title"] == title]
        if not runs:
            raise KeyError(title)
        lines = [line for line in self.children if (line["title"], line["run"]) == (title, runs[-1]["run"])]
        if len(lines) < runs[-1]["processes"]:
            raise KeyError(f"{title}, which was interrupted")
        rows = [row for line in lines for row in rows_of(line)]
        return pd.DataFrame(rows, columns=None if rows else ["interpreter", *HOW])


def medians(rows: np.ndarray) -> np.ndarray:
    """The median of each row over what was kept of it; NaN if that is nothing."""
    # As numpy's nanmedian, which is slow for many short rows: NaN comes last.
    ordered, kept = np.sort(rows, axis=1), np.isfinite(rows).sum(axis=1)
    every = np.arange(len(rows))
    middle = ordered[every, np.maximum(kept - 1, 0) // 2] + ordered[every, np.minimum(kept // 2, rows.shape[1] - 1)]
    return np.where(kept, middle / 2, np.nan)


def padded(rows: Collection[list]) -> np.ndarray:
    """Rows of different lengths as one array, filled up with NaN."""
    widest = max(map(len, rows))
    return np.array([[*row, *[np.nan] * (widest - len(row))] for row in rows])


# Columns that say how a process went.
HOW = ("process", "round", "ended")


def rows_of(child: dict) -> list[dict]:
    """The rows of one process. Raises ValueError if a value has the name of a factor, or of what else is a column."""
    what = {"interpreter": child["interpreter"], **child["factors"]}
    how = {key: child[key] for key in HOW}
    rows = []
    for result in child["result"] if isinstance(child["result"], list) else [child["result"] or {}]:
        values = flat(result)
        if twice := set(values) & {*what, *how}:
            raise ValueError(f"{child['title']}: a result has a value of the name {', '.join(twice)}, which is taken")
        rows.append({**what, **values, **how})
    return rows


def flat(result: dict, above: str = "") -> dict:
    """A nested dictionary as one of depth one: {"a": {"b": 1}} becomes {"a.b": 1}."""
    flattened = {}
    for key, value in result.items():
        flattened |= flat(value, f"{above}{key}.") if isinstance(value, dict) else {f"{above}{key}": value}
    return flattened


# Restarts of the next session count from here.
SESSION = 100_000


def merged(records: list[Record]) -> Record:
    """The records of one plan from several sessions, the newest last, as one: each of its units knows its session.

    Each session calibrated its own loops; the times of all are those of the last. A cell that one of them lacks is not there.
    """
    *_, last = records
    loops = {key: count for key, count in last.loops.items() if all(key in record.loops for record in records)}
    restarts, blocks, failures = [], [], []
    for number, record in enumerate(records):
        numbered = [[{**line, "restart": line["restart"] + number * SESSION, "session": number} for line in lines]
                    for lines in (record.restarts, record.blocks, record.failures)]  # fmt: skip
        for block in numbered[1]:
            block["ns"] = {key: ns * loops[key] / record.loops[key] for key, ns in block["ns"].items() if key in loops}
        for all_of_them, lines in zip((restarts, blocks, failures), numbered):
            all_of_them += lines
    return replace(last, loops=loops, restarts=restarts, blocks=blocks, failures=failures, sessions=tuple(records))


def _joined(noises: list[Noise], blocks: list[int]) -> Noise:
    """What the noise rule decided of each session, with the numbers that `merged` gives."""
    offsets = [sum(blocks[:number]) for number in range(len(blocks))]
    return Noise(
        {index + offset for noise, offset in zip(noises, offsets) for index in noise.blocks},
        [restart + number * SESSION for number, noise in enumerate(noises) for restart in noise.restarts],
        "; ".join(dict.fromkeys(noise.report for noise in noises)),
    )


def read(path: Path) -> Record:
    """Read a record; a last line that was cut off in the middle of a write is left out.

    Raises UserError if the file is no record, or is not as it was written. What others made is checked in foreign.py.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder, and not a record: name a file in it that ends in .jsonl.")
    # A pipe or a device would never end.
    if not path.is_file():
        raise UserError(f"There is no record {path}: copy it from where it was measured, or measure again.")
    lines, cut_off = whole(path.read_bytes(), path)
    if not lines or lines[0].get("kind") != "run":
        raise UserError(f"{path} is not a record of a measurement.")
    if lines[0].get("format") != FORMAT:
        raise UserError(
            f"{path} has the format {lines[0].get('format')!r}, and this version reads {FORMAT}: read it with the version that "
            "wrote it."
        )
    by_kind = {kind: [line for line in lines if line["kind"] == kind] for kind in KINDS}
    end = by_kind["end"][-1] if by_kind["end"] else {}
    return Record(
        path,
        lines[0],
        loops=by_kind["loops"][0]["loops"] if by_kind["loops"] else {},
        block_ns=by_kind["loops"][0]["block_ns"] if by_kind["loops"] else None,
        restarts=by_kind["restart"],
        blocks=by_kind["block"],
        failures=by_kind["failure"],
        experiments=by_kind["experiment"],
        children=by_kind["child"],
        observations=by_kind["observation"],
        end=end,
        cut_off=cut_off or not end,
    )


def damaged(path: Path, what: str) -> UserError:
    return UserError(
        f"The record {path} is damaged ({what}): copy it anew from where it was measured, or measure again."
    )


def whole(content: bytes, path: Path) -> tuple[list[dict], bool]:
    """The lines of a record, and whether the last one was cut off. Raises UserError if another one is broken, or if they are
    not those that were written: the digest in the last line says so."""
    lines, digest = [], hashlib.sha256()
    texts = content.split(b"\n")
    last = texts.pop()
    for number, text in enumerate([*texts, *([last] if last else [])], 1):
        try:
            line = json.loads(text.decode())
        except (ValueError, RecursionError):
            if number > 1 and number > len(texts):
                return lines, True
            if number == 1:
                return [], True
            raise damaged(path, f"line {number} is no JSON") from None
        if not isinstance(line, dict) or not isinstance(line.get("kind"), str):
            if number == 1:
                return [], True
            raise damaged(path, f"line {number} is of no kind")
        if lines and lines[-1]["kind"] == "end":
            raise damaged(path, f"line {number} stands behind its end")
        if line["kind"] == "end" and line.get("sha256", digest.hexdigest()) != digest.hexdigest():
            raise damaged(path, "its lines are not those that were written")
        lines.append(line)
        digest.update(text + b"\n")
    return lines, False
