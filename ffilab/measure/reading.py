"""The records of a chapter, as a page reads them: sessions that measure nothing.

`session.jsonl` holds the processes and observations of a session, `<plan>.jsonl` beside it the timed arms of a plan.
"""

import copy
import dataclasses
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ffilab.measure import noise
from ffilab.measure.children import by_place, mostly_lost
from ffilab.measure.noise import Disturbed
from ffilab.measure.plan import Arm
from ffilab.measure.record import MAIN, Record, merged, read_record
from ffilab.run import settings
from ffilab.run.budget import BUDGETS, Budget
from ffilab.run.errors import UserError


def watched(session: "Session", make: Callable) -> tuple[Any, frozenset[str]]:
    """What `make()` returns, and the plans and titles of the session that were read for it."""
    outside, session.reads = session.reads, set()
    try:
        return make(), frozenset(session.reads)
    finally:
        session.reads = outside


class Session:
    """The records of one chapter, by name. It measures nothing; `Measuring` (session.py) does."""

    def __init__(self, chapter: str, folder: Path, record: Record):
        # record: processes and observations, `session.jsonl`.
        self.chapter, self.folder, self.record = chapter, folder, record
        self._timed: dict[str, Record] = {}
        self._merged: dict[str, Record] = {}
        # The plans and titles that were asked for: see ffilab/judge/numbers.py.
        self.reads: set[str] = set()
        self._once: dict[Callable, tuple[Any, frozenset[str]]] = {}
        # Sessions on top of which this one was measured, the oldest first (`make more`): their folders lie beside its
        # own.
        names = record.run["plan"]["earlier"]
        self.earlier: Sequence[Session] = [Reading(chapter, folder.parent / name, alone=True) for name in names]

    def time(self, name: str, arms: list[Arm], *_, **__) -> Record:
        """Read how arms were timed. Returns the record."""
        return self.timed(name)

    def run(self, title: str, *_, **__) -> pd.DataFrame:
        """Read how an experiment in processes ended. Returns the frame."""
        return self.frame(title)

    def observe(self, title: str, look: Callable, *arguments):
        """Read what was seen when something was looked at once. Returns that."""
        return self.observed(title, *arguments, whole=True)

    def close(self) -> None:
        """Write that the session is complete, if it is one that measures."""

    def once(self, make: Callable):
        """Return `make(self)`: worked out once, and again when the session has measured more."""
        if make not in self._once:
            self._once[make] = watched(self, lambda: make(self))
        found, reads = self._once[make]
        self.reads |= reads
        return found

    @property
    def each(self) -> list["Session"]:
        """The sessions that count, the oldest first, each by itself."""
        return [*self.earlier, Reading(self.chapter, self.folder, alone=True)]

    @property
    def had_company(self) -> bool:
        """Was anything left out for a neighbour on the core?"""
        batches = (left_out for name in self.plans for left_out in self.timed(name).discarded.values())
        processes = (record.processes(title) for title in self.record.titles for record in self._holding(title))
        return any(left_out.any() for left_out in batches) or any(
            noise.disturbed(line) == noise.NEIGHBOUR for lines in processes for line in lines
        )

    def with_company(self) -> "Session":
        """Return this session with nothing left out for a neighbour on the core: what its numbers would be then."""
        other = copy.copy(self)
        other.record = dataclasses.replace(self.record, sifted=False)
        other.earlier = [session.with_company() for session in self.earlier]
        other.reads, other._timed, other._merged, other._once = set(), {}, {}, {}
        return other

    @property
    def interpreters(self) -> list[str]:
        """Labels of the interpreters that the session measures on."""
        return self.record.interpreters

    @property
    def budget(self) -> Budget:
        return BUDGETS[self.record.run["plan"]["budget"]]

    @property
    def seed(self) -> int:
        return self.record.run["plan"]["seed"]

    @property
    def machine(self) -> dict:
        """Facts about the machine that measured."""
        return self.record.run["machine"]

    @property
    def provenance(self) -> dict:
        """What stands with every number: machine, method, builds, seeds, records."""
        builds = self.record.run["interpreters"]
        return {
            **self.machine,
            "budget": self.budget.name,
            "is_result": self.budget.is_result,
            "minutes": self.minutes,
            "seeds": [session.seed for session in (*self.earlier, self)],
            "records": [name for session in (*self.earlier, self) for name in session.names],
            "rests_on": self.rests_on,
            "kernels": {
                label: f"{build['version']}; {build['route']}; `{build['config_args']}`"
                for label, build in builds.items()
            },
        }

    @property
    def rests_on(self) -> dict:
        """What was varied: sessions, and by interpreter the number of builds and of layouts; a layout alone is one
        binary."""
        drawn: dict[str, set] = {}
        for session in (*self.earlier, self):
            for label, layouts in session.record.run["layouts"].items():
                drawn.setdefault(label, set()).update((layout["build"], layout["id"]) for layout in layouts)
        return {
            "sessions": 1 + len(self.earlier),
            "builds": {label: len({build for build, _ in identities}) for label, identities in drawn.items()},
            "layouts": {label: len(identities) for label, identities in drawn.items()},
        }

    @property
    def minutes(self) -> float | None:
        """How long its processes and blocks took; None if no time was recorded."""
        lines = [*self.record.children, *(block for name in self.plans for block in self._own(name).blocks)]
        own = sum(line.get("wall_s", 0.0) for line in lines) / 60
        return own + sum(session.minutes or 0 for session in self.earlier) or None

    @property
    def names(self) -> list[str]:
        """The records that were written or read so far, by chapter, session and file."""
        return [f"{self.chapter}/{self.record.run['plan']['session']}/{path.name}" for path in self.files]

    @property
    def plans(self) -> list[str]:
        """The names of the timed plans that the session holds, whether they were read or not."""
        return sorted(
            path.stem for path in self.folder.glob("*.jsonl") if path.name != MAIN and ".superseded-" not in path.name
        )

    @property
    def files(self) -> list[Path]:
        """The records that were written or read so far."""
        return [self.folder / MAIN, *(record.path for record in self._timed.values())]

    def timed(self, name: str) -> Record:
        """The record of a timed plan, with those of earlier sessions. Raises UserError if there is none, or if it was
        interrupted."""
        self.reads.add(name)
        own = self._own(name)
        if not self.earlier:
            return own
        # Put together once, and again if it was measured again.
        if name not in self._merged or self._merged[name].sessions[-1] is not own:
            self._merged[name] = merged([*(session.timed(name) for session in self.earlier), own])
        return self._merged[name]

    def _own(self, name: str) -> Record:
        if name not in self._timed:
            path = self.folder / f"{name}.jsonl"
            if not path.is_file():
                raise self._lacks(f"the timed plan {name!r}")
            record = dataclasses.replace(read_record(path), sifted=self.record.sifted)
            if record.cut_off:
                raise self._lacks(f"the timed plan {name!r}, which was interrupted")
            self._timed[name] = record
        return self._timed[name]

    def disturbed(self, name: str) -> Disturbed:
        """Count what was disturbed of a timed plan, in blocks, or of an experiment, in processes: over all sessions
        that count.

        Raises UserError if there is no such plan or experiment.
        """
        if name in self.plans:
            return self.timed(name).disturbed()
        return Disturbed(*map(sum, zip(*(record.disturbed(name) for record in self._holding(name)))))

    def said(self, name: str) -> str:
        """What was disturbed of a plan or an experiment, in words for the page. Raises UserError as `disturbed`
        does."""
        if name in self.plans:
            return self.timed(name).noise.report
        processes = [line for record in self._holding(name) for line in record.processes(name)]
        if not any("strangers_s" in line for line in processes):
            return f"{len(processes)} processes, in which events are counted: they hold whatever else ran"
        told = noise.disturbed_in_words(self.disturbed(name), self.disturbed_by(name), "processes")
        # Did anything probe its cores?
        return told if any(line.get("cores") for line in processes) else f"{told}; not watched for a neighbour"

    def disturbed_by(self, name: str) -> str:
        """Return the word for what disturbed most of a plan or an experiment, in its newest session that was disturbed;
        empty if none was."""
        if name in self.plans:
            return self.timed(name).disturbed_by()
        return next(filter(None, (record.disturbed_by(name) for record in reversed(self._holding(name)))), "")

    def mostly_lost(self, title: str) -> set[str]:
        """The cases of an experiment that are shown though more than half of their processes stayed disturbed."""
        return mostly_lost([place for record in self._holding(title) for place in by_place(record.processes(title))])

    def frame(self, title: str) -> pd.DataFrame:
        """The processes of an experiment, one tidy frame: see Record.frame. Raises UserError if there are none.

        Of several sessions the processes stand one behind the other, and are numbered through; the column `session`
        says which of them (0 is the oldest) each comes from. What ran once, as its author ran it, is an example and no
        sample: of that the newest session's is shown.
        """
        self.reads.add(title)
        records = self._holding(title)
        whole = self.mostly_lost(title)
        try:
            frames = [record.frame(title, whole) for record in records]
        except KeyError as lacking:
            raise self._lacks(f"the experiment {lacking}") from None
        for number, frame in enumerate(frames):
            frame["session"] = number
        # One of which nothing is left would change the kinds of columns.
        frames = [frame for frame in frames if len(frame)] or frames[-1:]
        for before, frame in itertools.pairwise(frames):
            for column in ("process", "round"):
                frame[column] += 1 + before[column].max()
        return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]

    def _holding(self, title: str) -> list[Record]:
        """The records whose processes count for an experiment. What ran once, as its author ran it, is an example and
        no
        sample: of that the newest session's is shown. Raises UserError if one lacks it."""
        records = [session.record for session in (*self.earlier, self)]
        try:
            once = all(line["round"] == 0 for line in [record.processes(title) for record in records][-1])
        except KeyError as lacking:
            raise self._lacks(f"the experiment {lacking}") from None
        return records[-1:] if once else records

    def observed(self, title: str, *arguments, whole: bool = False):
        """What was seen when something was looked at, the last time with arguments that begin with these.

        whole: with these arguments and no further ones. Raises UserError if it was not looked at."""
        key = json.loads(json.dumps(arguments))
        for line in reversed(self.record.observations):
            asked = line["arguments"] if whole else line["arguments"][: len(key)]
            if (line["title"], asked) == (title, key):
                return line["value"]
        raise self._lacks(f"the observation {title!r}" + (f" of {key}" if key else ""))

    def _lacks(self, what: str) -> UserError:
        if settings.told("lab") and settings.told("source"):
            return UserError(
                "Stored results do not hold what this cell asks for: a line that you change is not measured here. "
                f"`make lab NAME={self.chapter}` measures."
            )
        return UserError(
            f"The records of the chapter {self.chapter!r} do not hold {what}: they were made by another version of it, "
            f"or not to the end. Measure again: `make chapter NAME={self.chapter}`."
        )


class Reading(Session):
    """A session from its folder: what it is asked for is in its records, or cannot be had."""

    def __init__(self, chapter: str, folder: Path, alone: bool = False):
        record = read_record(folder / MAIN)
        if alone:
            # One of several that another session rests on: that one names them all.
            record.run["plan"]["earlier"] = []
        super().__init__(chapter, folder, record)
