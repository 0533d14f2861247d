"""The session of a chapter: the one door through which it measures, and through which it reads what was measured.

A page is a function of its records. While a session measures, it writes everything into one folder,
`_build/records/<corner>/<stamp>/`: `session.jsonl` holds the processes and what was looked at, `<plan>.jsonl` the timed
arms of a plan. What a page gets is what was written, read back. With FROM, a folder of records, nothing is measured: the
same calls return what the records hold.
"""

import dataclasses
import errno
import hashlib
import itertools
import json
import lzma
import os
import random
import secrets
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from ffilab import machine
from ffilab.bench import layouts, runner
from ffilab.bench.alone import alone
from ffilab.bench.case import Case, Outcome, Program, Step
from ffilab.bench.layouts import Layout
from ffilab.bench.plan import Arm, plan
from ffilab.bench.record import BUILT_AS, Record, Writer, damaged, merged, read, rows_of
from ffilab.bench.reporting import Reporter
from ffilab.budget import BUDGETS, Budget, current
from ffilab.errors import UserError
from ffilab.paths import BUILD, RECORDS, without_paths
from ffilab.provision.catalogue import BY_LABEL
from ffilab.provision.installed import load

# A folder of records that a page is made from, instead of measuring.
FROM = "FFILAB_FROM"
# Names of the sessions on top of which a chapter measures another one, the oldest first, with commas between them.
EARLIER = "FFILAB_EARLIER"
MAIN = "session.jsonl"
LONGEST_KEPT = 200


class Session:
    """What both kinds have: the records of one chapter, by name."""

    def __init__(self, corner: str, folder: Path, record: Record):
        self.corner, self.folder, self._record = corner, folder, record
        self._timed: dict[str, Record] = {}
        self._merged: dict[str, Record] = {}
        # Sessions on top of which this one was measured, the oldest first (`make more`): their folders lie beside its own.
        names = record.run["plan"].get("earlier", [])
        self.earlier: list[Reading] = [Reading(corner, folder.parent / name, alone=True) for name in names]

    @property
    def record(self) -> Record:
        """Processes and observations: `session.jsonl`."""
        return self._record

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
            "seeds": [one.seed for one in (*self.earlier, self)],
            "records": [name for one in (*self.earlier, self) for name in one.names],
            "rests_on": self.rests_on,
            "kernels": {
                label: f"{one['version']}; {one['route']}; `{one['config_args']}`" for label, one in builds.items()
            },
        }

    @property
    def rests_on(self) -> dict:
        """What was varied: sessions, and by interpreter the number of builds and of layouts; a layout alone is one binary."""
        drawn: dict[str, set] = {}
        for one in (*self.earlier, self):
            for label, known in one.record.run.get("layouts", {}).items():
                drawn.setdefault(label, set()).update((each["build"], each["id"]) for each in known)
        return {
            "sessions": 1 + len(self.earlier),
            "builds": {label: len({build for build, _ in each}) for label, each in drawn.items()},
            "layouts": {label: len(each) for label, each in drawn.items()},
        }

    @property
    def minutes(self) -> float | None:
        """How long its processes and blocks took; None in records of an older version."""
        lines = [*self.record.children, *(block for name in self.plans for block in self._own(name).blocks)]
        if not lines or any("wall_s" not in line for line in lines):
            return None
        own = sum(line["wall_s"] for line in lines) / 60
        return own + sum(one.minutes or 0 for one in self.earlier)

    @property
    def names(self) -> list[str]:
        """The records that were written or read so far, by corner, session and file."""
        return [f"{self.corner}/{self.record.run['plan']['session']}/{path.name}" for path in self.files]

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
        own = self._own(name)
        if not self.earlier:
            return own
        # Put together once, and again if it was measured again.
        if name not in self._merged or self._merged[name].sessions[-1] is not own:
            self._merged[name] = merged([*(one.timed(name) for one in self.earlier), own])
        return self._merged[name]

    def _own(self, name: str) -> Record:
        if name not in self._timed:
            path = self.folder / f"{name}.jsonl"
            if not path.is_file():
                raise self._lacks(f"the timed plan {name!r}")
            record = read(path)
            if record.cut_off:
                raise self._lacks(f"the timed plan {name!r}, which was interrupted")
            self._timed[name] = record
        return self._timed[name]

    def frame(self, title: str) -> pd.DataFrame:
        """The processes of an experiment, one tidy frame: see Record.frame. Raises UserError if there are none.

        Of several sessions the processes stand one behind the other, and are numbered through. What ran once, as its author
        ran it, is an example and no sample: of that the newest session's is shown.
        """
        try:
            frames = [one.record.frame(title) for one in (*self.earlier, self)]
        except KeyError as lacking:
            raise self._lacks(f"the experiment {lacking}") from None
        if frames[-1]["round"].nunique() < 2:
            return frames[-1]
        for before, frame in itertools.pairwise(frames):
            for column in ("process", "round"):
                frame[column] += 1 + before[column].max() if len(before) else 0
        return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]

    def observed(self, title: str, *arguments):
        """What was seen when something was looked at. Raises UserError if it was not."""
        key = json.loads(json.dumps(arguments))
        for line in reversed(self.record.observations):
            if line.get("title") == title and line.get("arguments", []) == key and "value" in line:
                return line["value"]
        raise self._lacks(f"the observation {title!r}" + (f" of {key}" if key else ""))

    def _lacks(self, what: str) -> UserError:
        return UserError(
            f"The records of the chapter {self.corner!r} do not hold {what}: they were made by another version of it, or not to "
            f"the end. Measure again: `make chapter NAME={self.corner}`."
        )


class Measuring(Session):
    """A session that measures now."""

    def __init__(self, corner: str, interpreters: list[str]):
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        folder = RECORDS / corner / stamp
        budget = current()
        named = {
            "name": corner,
            "session": stamp,
            "seed": secrets.randbits(32),
            "budget": budget.name,
            "interpreters": interpreters,
            "earlier": [name for name in os.environ.get(EARLIER, "").split(",") if name],
        }
        self._writer = Writer(folder / MAIN)
        run = {
            "plan": {**named, "blocks": 0},
            "machine": machine.facts(corner),
            "interpreters": {label: load(BY_LABEL[label]).facts for label in interpreters},
            "layouts": {
                label: [one.described for one in known] for label, known in layouts.current(interpreters).items()
            },
        }
        self._writer.write("run", **run)
        self._runs: dict[str, int] = {}
        super().__init__(corner, folder, Record(folder / MAIN, {"kind": "run", **run}, cut_off=True))

    def time(self, name: str, arms: list[Arm], interpreters: list[str] | None = None, budget=None, **further) -> Record:
        """Time arms on all interpreters of the session (or on some), interleaved in one run; returns its record.

        budget: another than the session's. further: `pin`, `target`, `watch` as in Plan, and `width` as in runner.run.
        """
        width = further.pop("width", None)
        self._must_be_open()
        path = self.folder / f"{name}.jsonl"
        seed = self._next_seed(name)
        if path.exists():
            # A cell that runs again, in JupyterLab: what it measured before is kept, under another name.
            self._timed.pop(name, None)
            path.rename(path.with_name(f"{name}.superseded-{datetime.now(UTC):%H%M%S%f}.jsonl"))
        made = plan(name, arms, interpreters or self.interpreters, budget or self.budget, seed, **further)
        runner.run(made, self.folder, width)
        return self.timed(name)

    @alone()
    def run(
        self, title: str, cases: list[Case | Program | Step], repeats: int, may_fail: bool | Collection[str] = False
    ) -> pd.DataFrame:
        """Run every case `repeats` times, each round in a fresh random order; write every outcome; return the frame.

        may_fail: whether a process may bring nothing, or the interpreters on which it may. Where it must not, UserError is
        raised, with the case and how it ended. An experiment that is run again, in JupyterLab, takes the place of the first.
        """
        order = random.Random(self._next_seed(title))
        # All processes of a round share the layout of their interpreter.
        pool = layouts.current(sorted({case.interpreter for case in cases if isinstance(case, Case)}))
        given = runner.turns(pool, repeats, order) if pool else [None] * repeats
        self._write("experiment", title=title, run=self._runs[title], processes=repeats * len(cases))
        with Reporter(title, repeats * len(cases)) as reporter:
            process = 0
            for number in range(repeats):
                for case in order.sample(cases, len(cases)):
                    fails = may_fail if isinstance(may_fail, bool) else case.interpreter in may_fail
                    known = pool.get(case.interpreter) if isinstance(case, Case) else None
                    layout = known and known[(given[number] or 0) % len(known)]
                    self._one(title, case, number, process, order.getrandbits(32), fails, layout)
                    process += 1
                    reporter.advance(f"round {number + 1} of {repeats}")
        return self.frame(title)

    def _one(
        self, title: str, case, number: int, process: int, seed: int, may_fail: bool, layout: Layout | None
    ) -> None:
        watch = machine.Watch()
        outcome: Outcome = case.run(seed, layout) if layout else case.run(seed)
        others = watch.end()
        child = {
            "title": title,
            "run": self._runs[title],
            "process": process,
            "round": number,
            "seed": seed,
            "interpreter": case.interpreter,
            "layout": layout and layout.described,
            "what": case.what,
            "factors": case.columns,
            "fixed": getattr(case, "fixed", {}),
            "environment": {key: shortened(value) for key, value in getattr(case, "environment", {}).items()},
            "result": outcome.result,
            "ended": outcome.ended,
            "error": without_paths(outcome.error),
            "gil_enabled": outcome.gil_enabled,
            **others,
        }
        self._write("child", **child)
        rows_of(child)
        what = f"{title}, {', '.join(f'{key} {value}' for key, value in case.columns.items())} on {case.interpreter}"
        if outcome.gil_enabled and case.interpreter and BY_LABEL[case.interpreter].free_threaded:
            raise UserError(
                f"{what}: the GIL was on at the end of this process. Something that it imports does not declare itself "
                "GIL-free, and its results would not be those of a free-threaded build."
            )
        if outcome.result is None and not may_fail:
            raise UserError(f"{what} brought no result: {outcome.ended}. {outcome.error.strip()}")

    def observe(self, title: str, look: Callable, *arguments):
        """Look at something once, `look(*arguments)`, and write down what was seen; returns it as it was written.

        For what is not repeated: counts of instructions, reports of a tool, facts about this system. `look` returns what
        JSON can hold; the arguments are written down beside it.
        """
        self._write("observation", title=title, arguments=list(arguments), value=look(*arguments))
        return self.observed(title, *arguments)

    def close(self) -> None:
        """The session is complete; with it goes how noisy the machine is by now. Closing again changes nothing."""
        if not self.record.end:
            self._write("end", machine=machine.noise())
            self._writer.close()

    def _next_seed(self, name: str) -> int:
        """A seed of its own for each run of each experiment, which follows from the session's."""
        self._runs[name] = self._runs.get(name, 0) + 1
        return random.Random(f"{self.seed}/{name}/{self._runs[name]}").getrandbits(32)

    def _must_be_open(self) -> None:
        if self.record.end:
            raise UserError("This session is closed: run the cell with `chapter.begin` again, and all that follow.")

    def _write(self, kind: str, **fields) -> None:
        self._must_be_open()
        self._writer.write(kind, **fields)
        line = json.loads(json.dumps({"kind": kind, **fields}))
        if kind == "end":
            self._record = dataclasses.replace(self._record, end=line, cut_off=False)
        else:
            kinds = {"experiment": "experiments", "child": "children", "observation": "observations"}
            getattr(self._record, kinds[kind]).append(line)


def shortened(value: str) -> str:
    """A variable of the environment as it is kept: what only fills it is counted, and not kept."""
    return value if len(value) <= LONGEST_KEPT else f"{value[:20]}… ({len(value)} characters)"


class Reading(Session):
    """A session that measures nothing: what it is asked for is in its records, or cannot be had."""

    def __init__(self, corner: str, folder: Path, alone: bool = False):
        record = whole_session(folder / MAIN)
        if alone:
            # One of several that another session rests on: that one names them all.
            record.run["plan"]["earlier"] = []
        super().__init__(corner, folder, record)

    def time(self, name: str, arms: list[Arm], *_, **__) -> Record:
        return self.timed(name)

    def run(self, title: str, cases: list, repeats: int, may_fail: bool | Collection[str] = False) -> pd.DataFrame:
        return self.frame(title)

    def observe(self, title: str, look: Callable, *arguments):
        return self.observed(title, *arguments)

    def close(self) -> None:
        """Nothing to do: the records are as they were."""


def source() -> Path | None:
    """The folder of records that FROM names, as the press handed it on; None if the chapter is to measure."""
    return Path(os.environ[FROM]) if os.environ.get(FROM) else None


def open_session(corner: str, interpreters: list[str]) -> Measuring | Reading:
    """A session that measures, or that reads where FROM names records."""
    if folder := source():
        return Reading(corner, find(folder, corner))
    return Measuring(corner, interpreters)


class NoSession(UserError):
    """A folder of records holds no complete session of a corner."""


def find(folder: Path, corner: str) -> Path:
    """The newest complete session of a corner, anywhere in a folder of records: one dated in the future only if there is no
    other. Raises NoSession if there is none, and UserError if one is damaged: it may be the newest."""
    found = [record for path in folder.rglob(MAIN) if path.is_file() and (record := complete(path, corner))]
    if not found:
        raise NoSession(f"There is no complete session of the chapter {corner!r} among the records that FROM names.")
    now = datetime.now(UTC).isoformat()

    def age(record: Record) -> tuple:
        # A clock that went wrong once must not hide all that is measured after it was set right. Two may have begun in one
        # second; their folders are named more exactly.
        date = record.run["machine"]["date"]
        return date <= now, date, record.path.parent.name

    return max(found, key=age).path.parent


def complete(path: Path, corner: str) -> Record | None:
    """The record of a session if it is of this corner, and complete; of the others only the first line is read."""
    with path.open(encoding="utf-8") as file:
        try:
            if json.loads(file.readline())["plan"]["name"] != corner:
                return None
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
    record = whole_session(path)
    return None if record.cut_off else record


def whole_session(path: Path) -> Record:
    """The main record of a session. Raises UserError if it does not say what every session says."""
    record = read(path)
    plan, run = record.run["plan"], record.run
    lacking = [name for name in ("name", "session", "seed", "budget", "interpreters") if name not in plan]
    lacking += [name for name in ("interpreters",) if name not in run]
    lacking += [name for name in ("date",) if name not in run["machine"]]
    if lacking:
        raise damaged(path, f"no {lacking[0]!r}")
    for label, one in run["interpreters"].items():
        lacking += [f"{name} of {label}" for name in BUILT_AS if name not in one]
    lacking += [label for label in plan["interpreters"] if label not in run["interpreters"]]
    for label, drawn in run.get("layouts", {}).items():
        lacking += [
            f"{name} of a layout of {label}" for name in ("build", "id") if any(name not in one for one in drawn)
        ]
    if lacking:
        raise damaged(path, f"nothing of {lacking[0]}")
    if plan["budget"] not in BUDGETS:
        raise damaged(path, f"an unknown budget, {plan['budget']!r}")
    if outside := [name for name in plan.get("earlier", []) if Path(name).name != name or name == ".."]:
        raise damaged(path, f"an earlier session outside of its folder, {outside[0]!r}")
    return record


# A bundle of all chapters holds some hundred files, and some hundred megabytes.
MAX_FILES, MAX_BYTES = 20_000, 4 << 30


def unpacked(given: str) -> Path:
    """What the reader named with FROM, as a folder: a bundle (.tar.gz) is unpacked below `_build`.

    Raises UserError if it is neither a folder nor a bundle.
    """
    path, size = Path(given).resolve(), 0
    if path.is_dir():
        return path
    try:
        # A pipe or a device would never end.
        if path.exists() and not path.is_file():
            raise ValueError("no regular file")
        with path.open("rb") as file, tarfile.open(fileobj=file) as bundle:
            # By its content: two bundles of one name must not take each other's place.
            target = BUILD / "from" / digest_of(path)
            if target.is_dir():
                # Another run may be reading there.
                return target
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=BUILD) as scratch:
                whole = Path(scratch) / target.name
                whole.mkdir()
                for number, member in enumerate(bundle):
                    size += member.size
                    if number >= MAX_FILES or size > MAX_BYTES:
                        raise UserError(
                            f"The bundle {given} would unpack to more than records ever are: look at what is in it."
                        )
                    bundle.extract(member, whole, filter="data")
                try:
                    whole.rename(target)
                except OSError:
                    # Another run was faster, with the same.
                    if not target.is_dir():
                        raise
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, tarfile.TarError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        why = str(error).splitlines()[0].rstrip(":")
        raise UserError(f"FROM names {given}, which is neither a folder of records nor a bundle ({why}).") from None
    return target


def digest_of(path: Path) -> str:
    """What names an unpacked bundle."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
