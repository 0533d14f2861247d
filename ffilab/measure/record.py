"""Records on disk: one JSON line per event, written as the run goes, so that nothing is lost.

Line kinds: `run` (plan, machine, interpreters), `loops` (calibrated counts), `restart` (its layout, how many blocks it
is to have, facts of its workers), `block` (one randomised block: ns by cell, in the order in which they were timed),
`failure` (a restart that was given up, with the reason), `experiment` (title, number of the run, how many processes it
is to have), `child` (one process of its own, with the factors of its case), `observation` (something looked at once),
`end`. What takes the place of something disturbed says `again`, and a child the number of the process that it replaces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ffilab.measure import neighbour, noise
from ffilab.measure.children import HOW, by_place, chosen, mostly_lost, rows_of, with_company
from ffilab.measure.lines import FORMAT, whole
from ffilab.measure.noise import Disturbed, Noise
from ffilab.run.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("loops", "restart", "block", "failure", "experiment", "child", "observation", "end")
# What a record calls the lines of a kind.
PLURAL = {kind: f"{kind}s" for kind in KINDS[1:-1]} | {"child": "children"}
# The main record of a session; the others are named after their plan.
MAIN = "session.jsonl"


def once(make: Callable) -> Callable:
    """A function of a session that is worked out once for each: see `Session.once` (reading.py, which needs pandas)."""
    return wraps(make)(lambda session: session.once(make))


@dataclass(frozen=True)
class Unit:
    """What a comparison counts as one: a session's layout, linked from one of the builds; or one restart, if it drew
    none.

    build: its number; where the interpreters' builds differ, their digits in the order of the labels: 23 is a 2 beside
    a 3.
    """

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
        builds = [layout["build"] for _, layout in sorted(drawn.items())] or [1]
        build = builds[0] if len(set(builds)) == 1 else int("".join(map(str, builds)))
        return cls(session, build, line["layout"])


@dataclass(frozen=True, eq=False)
class Record:
    """One run, read back. `cut_off` is true if the run was interrupted."""

    path: Path
    run: dict
    loops: dict[str, int] = field(default_factory=dict)
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
    # Is what had a neighbour on its core left out? See `Session.with_company`.
    sifted: bool = True
    # The restarts on the default link, the interpreters as they are installed: no draw, and so no unit.
    default: Record | None = None

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

    def lacking(self, *cells: tuple[str, str]) -> str:
        """Why the first of these cells that is missing was not measured; empty if none is."""
        absent = [(label, arm) for label, arm in cells if not self.has(label, arm)]
        return self.missing.get(absent[0], f"{absent[0][1]} was not measured on {absent[0][0]}") if absent else ""

    @property
    def titles(self) -> list[str]:
        """The experiments in processes."""
        return list(dict.fromkeys(line["title"] for line in self.experiments))

    @cached_property
    def worked_out(self) -> dict:
        """What was worked out of it so far, by what was asked: figures, tables, sentences and claims ask for the
        same."""
        return {}

    @cached_property
    def noise(self) -> Noise:
        """Which blocks are left out as they were disturbed, and which restarts count. It never looks at a block's own
        time."""
        decided = noise.discard(self.blocks, self._complete)
        about_company = neighbour.company_in_words(self.blocks, self.company)
        return replace(decided, report=f"{decided.report}; {about_company}") if about_company else decided

    @cached_property
    def _complete(self) -> list[int]:
        """Numbers of the restarts that have all their blocks."""
        if self.sessions:
            return [
                restart + number * SESSION
                for number, session in enumerate(self.sessions)
                for restart in session._complete
            ]
        planned = {line["restart"]: line["blocks"] for line in self.restarts if "blocks" in line}
        return [
            restart
            for restart, count in Counter(block["restart"] for block in self.blocks).items()
            if count == planned.get(restart, self.run["plan"]["blocks"])
        ]

    def processes(self, title: str) -> list[dict]:
        """The processes of the last run of an experiment, in the order of running, each with its `company`. Raises
        KeyError if there is none."""
        run = self._last(title)["run"]
        # Judging asks for them once for each number and each check; a process more changes the company of all.
        asked = "processes", title, run, len(self.children)
        if asked not in self.worked_out:
            lines = [line for line in self.children if (line["title"], line["run"]) == (title, run)]
            self.worked_out[asked] = with_company(lines) if self.sifted else lines
        return self.worked_out[asked]

    def _last(self, title: str) -> dict:
        runs = [line for line in self.experiments if line["title"] == title]
        if not runs:
            raise KeyError(title)
        return runs[-1]

    def disturbed(self, title: str | None = None) -> Disturbed:
        """Count what was disturbed: measured again, left out, planned. In blocks; with a title in processes of that
        experiment."""
        return noise.counted(self.blocks) if title is None else noise.of_places(by_place(self.processes(title)))

    def disturbed_by(self, title: str | None = None) -> str:
        """The word for what disturbed most of them; empty if nothing did."""
        return noise.most_frequent(self.blocks if title is None else self.processes(title))

    @property
    def unequal(self) -> list[neighbour.Unequal]:
        """How unequally the cells lost batches to a neighbour: see neighbour.unequal."""
        return neighbour.unequal(self.discarded, np.array([block["restart"] for block in self.blocks]))

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
        """Nanoseconds per loop of one cell, shape (units, blocks); NaN in blocks that were disturbed (noise.py), in
        batches whose core had company (neighbour.py), and where a unit has fewer blocks than another.

        The unit is the layout: the blocks of all restarts with it stand in one row. Without layouts it is the restart.
        Raises KeyError if the arm was not measured on this interpreter.
        """
        rows: dict[Unit, list] = {unit: [] for unit in self.kept}
        for number, row in zip(self.noise.restarts, self.by_restart(interpreter, arm)):
            rows[self.units[number]].extend(row)
        return padded(rows.values())

    def by_restart(self, interpreter: str, arm: str) -> np.ndarray:
        """Nanoseconds per loop of one cell, shape (restarts, blocks): a row for each restart of `noise.restarts`.

        Only complete restarts count. Raises KeyError as `times` does.
        """
        if (interpreter, arm) in self.missing:
            raise KeyError(f"{arm} on {interpreter}: {self.missing[interpreter, arm]}")
        if not self.noise.restarts:
            why = f" (the last one failed: {self.failures[-1]['reason']})" if self.failures else ""
            raise UserError(f"The record {self.path and self.path.name} holds no complete restart{why}: measure again.")
        return self.rows(interpreter, arm, self.discarded[f"{interpreter}/{arm}"])

    def rows(self, interpreter: str, arm: str, discarded: np.ndarray) -> np.ndarray:
        """Nanoseconds per loop of one cell, shape (restarts, blocks), NaN in the blocks that are `discarded` and in
        those that were disturbed."""
        key = f"{interpreter}/{arm}"
        rows = {restart: [] for restart in self.noise.restarts}
        for number, block in enumerate(self.blocks):
            if block["restart"] in rows:
                kept = number not in self.noise.blocks and not discarded[number]
                rows[block["restart"]].append(block["ns"][key] / self.loops[key] if kept else np.nan)
        return padded(rows.values())

    @cached_property
    def discarded(self) -> dict[str, np.ndarray]:
        """Of each cell: which batches are left out, as their core had a neighbour."""
        return neighbour.discarded(self.company)

    @cached_property
    def company(self) -> dict[str, np.ndarray]:
        """Of each cell ("interpreter/arm"): the share of its work, in each block, during which the core had a
        neighbour."""
        if not self.sifted:
            return {cell: np.zeros(len(self.blocks)) for cell in self.loops}
        cores = {line["restart"]: line.get("cpu") for line in self.restarts}
        return neighbour.shares(self.blocks, list(self.loops), cores)

    def default_link(self, interpreter: str, arm: str) -> np.ndarray:
        """Nanoseconds per loop of one cell on the default link, a value for each block, as in a row of `times`; none,
        if it was not measured, or only disturbed."""
        default = self.default
        if default is None or default.disturbed().is_most or not default.noise.restarts:
            return np.array([])
        return default.times(interpreter, arm).ravel()

    def has(self, interpreter: str, arm: str) -> bool:
        """Was this cell timed? Not if the arm could not be made there, or was not asked for."""
        return f"{interpreter}/{arm}" in self.loops

    def frame(self, title: str, whole: set[str] | None = None) -> pd.DataFrame:
        """The processes of one experiment, tidy: a row for each process, or for each row that a process brought back.

        Columns: interpreter, the named factors of the case, the values of the result (nested ones with a dot between
        the names), process (their number, in the order of running), round, ended. A process that brought nothing has
        one row, with its factors and how it ended. Of an experiment that was run again, the last run counts.
        Of an experiment without a case there is no row, and the columns are those that it named.
        Processes that stayed disturbed are left out, unless that would be more than half of all, or of those of one
        case; what was measured again stands in the place of what it replaces.

        whole: the cases that keep what stayed disturbed; by the rule above, if not given.
        Raises KeyError if there is no complete experiment of that title.
        """
        import pandas as pd

        lines, experiment = self.processes(title), self._last(title)
        # Judging asks for one frame once for each number; a process more is another frame.
        asked = "frame", title, str(whole), experiment["run"], len(self.children)
        if asked in self.worked_out:
            return self.worked_out[asked].copy()
        places = by_place(lines)
        if len(places) < experiment["processes"]:
            raise KeyError(f"{title}, which was interrupted")
        kept = chosen(places, mostly_lost(places) if whole is None else whole)
        rows = [row for line in kept for row in rows_of(line)]
        without_rows = ["interpreter", *experiment.get("columns", []), *HOW]
        frame = self.worked_out[asked] = pd.DataFrame(rows, columns=None if rows else without_rows)
        return frame.copy()


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


# Restarts of the next session count from here.
SESSION = 100_000


def merged(records: list[Record]) -> Record:
    """The records of one plan from several sessions, the newest last, as one: each of its units knows its session.

    Each session calibrated its own loops; the times of all are those of the last. A cell that one of them lacks is not
    there.
    """
    *_, last = records
    loops = {key: count for key, count in last.loops.items() if all(key in record.loops for record in records)}
    restarts, blocks, failures = [], [], []
    for number, record in enumerate(records):
        numbered = [
            [{**line, "restart": line["restart"] + number * SESSION, "session": number} for line in lines]
            for lines in (record.restarts, record.blocks, record.failures)
        ]
        for block in numbered[1]:
            block["ns"] = {key: ns * loops[key] / record.loops[key] for key, ns in block["ns"].items() if key in loops}
        for all_of_them, lines in zip((restarts, blocks, failures), numbered):
            all_of_them += lines
    return replace(
        last,
        loops=loops,
        restarts=restarts,
        blocks=blocks,
        failures=failures,
        sessions=tuple(records),
        default=merged(defaults) if (defaults := [record.default for record in records if record.default]) else None,
    )


def read_record(path: Path) -> Record:
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
            f"{path} has the format {lines[0].get('format')!r}, and this version reads {FORMAT}: read it with the "
            "version that wrote it."
        )
    by_kind = {kind: [line for line in lines if line["kind"] == kind] for kind in KINDS}
    end = by_kind["end"][-1] if by_kind["end"] else {}
    loops = by_kind["loops"][0]["loops"] if by_kind["loops"] else {}
    many: dict[str, Any] = {PLURAL[kind]: of_kind for kind, of_kind in by_kind.items() if kind in PLURAL}
    record = Record(path, lines[0], loops, **many, end=end, cut_off=cut_off or not end)
    apart = {line["restart"] for line in record.restarts if line.get("default")}
    drawn, default = (
        {
            kind: [line for line in getattr(record, kind) if (line["restart"] in apart) == inside]
            for kind in ("restarts", "blocks")
        }
        for inside in (False, True)
    )
    return replace(record, **drawn, default=replace(record, **default)) if apart else record
