"""The session of a chapter: it measures through this, and reads what was measured.

A page is a function of its records. While a session measures, it writes everything into one folder,
`_build/records/<chapter>/<stamp>/`, and the page gets what was written, read back. With FROM, a folder of records,
nothing is measured: the same calls return what the records hold (reading.py).
"""

import dataclasses
import functools
import json
import math
import random
import secrets
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from ffilab.measure import neighbour, noise, runner
from ffilab.measure.alone import alone
from ffilab.measure.case import Case, Outcome, Program, Step
from ffilab.measure.children import by_place, rows_of
from ffilab.measure.foreign import newest
from ffilab.measure.lines import Writer
from ffilab.measure.plan import Arm, plan
from ffilab.measure.reading import Reading, Session
from ffilab.measure.record import MAIN, PLURAL, Record
from ffilab.measure.reporting import Reporter
from ffilab.run import machine, settings
from ffilab.run.budget import current
from ffilab.run.errors import UserError
from ffilab.run.paths import RECORDS, with_reason, without_paths
from ffilab.setup import layouts
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load
from ffilab.setup.layouts import Layout

LONGEST_KEPT = 200


@dataclass(frozen=True, eq=False)
class Planned:
    """A process that an experiment is to have: its case, its round, the layout it runs on, its number."""

    case: Case | Program | Step
    round: int
    layout: Layout | None
    process: int


class Measuring(Session):
    """A session that measures now."""

    def __init__(self, chapter: str, interpreters: list[str]):
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
        folder = RECORDS / chapter / stamp
        budget = current()
        named = {
            "name": chapter,
            "session": stamp,
            "seed": secrets.randbits(32),
            "budget": budget.name,
            "interpreters": interpreters,
            "earlier": settings.told("earlier", []),
        }
        self._writer = Writer(folder / MAIN)
        run = {
            "plan": {**named, "blocks": 0},
            "machine": machine.facts(chapter),
            "interpreters": {label: load(BY_LABEL[label]).facts for label in interpreters},
            "layouts": {
                label: [layout.described for layout in of_label]
                for label, of_label in layouts.current(interpreters).items()
            },
        }
        self._writer.write("run", **run)
        self._runs: dict[str, int] = {}
        super().__init__(chapter, folder, Record(folder / MAIN, {"kind": "run", **run}, cut_off=True))

    def time(self, name: str, arms: list[Arm], interpreters: list[str] | None = None, budget=None, **further) -> Record:
        """Time arms on all interpreters of the session (or on some), interleaved in one run; returns its record.

        budget: another than the session's. further: `pin`, `wall_s` and `kept` as in Plan.
        """
        self._must_be_open()
        path = self.folder / f"{name}.jsonl"
        seed = self._next_seed(name)
        if path.exists():
            # A cell that runs again, in JupyterLab: what it measured before is kept, under another name.
            self._timed.pop(name, None)
            path.rename(path.with_name(f"{name}.superseded-{datetime.now(UTC):%H%M%S%f}.jsonl"))
        planned = plan(name, arms, interpreters or self.interpreters, budget or self.budget, seed, **further)
        runner.run(planned, self.folder)
        return self.timed(name)

    @alone()
    def run(
        self,
        title: str,
        cases: list[Case | Program | Step],
        repeats: int,
        may_fail: bool | Collection[str] = False,
        columns: Collection[str] = (),
        events: bool = False,
    ) -> pd.DataFrame:
        """Run every case `repeats` times, each round in a fresh random order; write every outcome; return the frame.

        Processes that were disturbed (noise.py) run again at the end, half as many as were planned at most.

        may_fail: whether a process may bring nothing, or the interpreters on which it may. Where it must not, UserError
        is raised, with the case and how it ended. An experiment that is run again, in JupyterLab, takes the place of
        the first.
        columns: where a machine may have no case at all, the factors and values that readers of the frame look at.
        events: whether nothing is timed, and only what happened is counted: that holds whatever else ran, so that
        nobody watches, and nothing runs again.
        Raises ValueError if there is no case, and no column is named.
        """
        if not cases and not columns:
            raise ValueError(f"{title}: there is no case, and columns say what a frame without rows has")
        order = random.Random(self._next_seed(title))
        # All processes of a round share the layout of their interpreter.
        pool = layouts.current(sorted({case.interpreter for case in cases if isinstance(case, Case)}))
        given = runner.turns(pool, repeats, order) if pool else [None] * repeats
        named = ({} if cases else {"columns": list(columns)}) | ({"events": True} if events else {})
        self._write("experiment", title=title, run=self._runs[title], processes=repeats * len(cases), **named)
        planned: list[Planned] = []
        with Reporter(title, repeats * len(cases)) as reporter:
            for number in range(repeats):
                for case in order.sample(cases, len(cases)):
                    of_label = pool.get(case.interpreter) if isinstance(case, Case) else None
                    layout = of_label[(given[number] or 0) % len(of_label)] if of_label else None
                    planned.append(Planned(case, number, layout, len(planned)))
            attempt = functools.partial(self._one, title, order, may_fail, events, reporter)
            for one in planned:
                attempt(one, one.process)
            process, most = len(planned), len(planned) + math.ceil(len(planned) / 2)
            # What stays disturbed is tried once more, behind the others.
            while lost := self._lost(title, planned, order)[: most - process]:
                reporter.add(len(lost))
                for one in lost:
                    attempt(one, process)
                    process += 1
        return self.frame(title)

    def _lost(self, title: str, planned: list[Planned], order: random.Random) -> list[Planned]:
        """The processes of an experiment that were disturbed each time, in random order; none if it was by a neighbour
        who is there most of the time."""
        places = by_place(self.record.processes(title))
        lost = [planned[tries[0]["process"]] for tries in places if all(map(noise.disturbed, tries))]
        if 2 * len(lost) > len(planned) and self.record.disturbed_by(title) == noise.NEIGHBOUR:
            # Whoever is there most of the time would be met again.
            return []
        order.shuffle(lost)
        return lost

    def _one(
        self,
        title: str,
        order: random.Random,
        may_fail,
        events: bool,
        reporter: Reporter,
        planned: Planned,
        process: int,
    ) -> None:
        """Run a planned process, for the first time or again, and write down how it went."""
        case, layout, seed = planned.case, planned.layout, order.getrandbits(32)
        watch = machine.Watch()
        with nullcontext({}) if events else neighbour.beside() as cores:
            outcome: Outcome = case.run(seed, layout) if layout else case.run(seed)
        ended = watch.end()
        others = {"wall_s": ended["wall_s"]} if events else {**ended, "cores": cores}
        child = {
            "title": title,
            "run": self._runs[title],
            "process": process,
            "round": planned.round,
            "seed": seed,
            "interpreter": case.interpreter,
            "layout": layout and layout.described,
            "what": case.what,
            "factors": case.columns,
            "fixed": case.fixed,
            # What only fills it is counted, and not kept.
            "environment": {
                key: value if len(value) <= LONGEST_KEPT else f"{value[:20]}… ({len(value)} characters)"
                for key, value in case.environment.items()
            },
            **vars(outcome),
            "error": without_paths(outcome.error),
            **others,
        }
        if process != planned.process:
            child |= {"again": True, "replaces": planned.process}
        self._write("child", **child)
        # Raises ValueError where a frame could not be made of it.
        rows_of(child)
        what = f"{title}, {', '.join(f'{key} {value}' for key, value in case.columns.items())} on {case.interpreter}"
        asked = case.environment.get("PYTHON_GIL") == "1"
        if outcome.gil_enabled and not asked and case.interpreter and BY_LABEL[case.interpreter].free_threaded:
            raise UserError(
                f"{what}: the GIL was on at the end of this process. Something that it imports does not declare itself "
                "GIL-free, and its results would not be those of a free-threaded build."
            )
        fails = may_fail if isinstance(may_fail, bool) else case.interpreter in may_fail
        if outcome.result is None and not fails:
            how = outcome.ended if outcome.ended != "ok" else "its function has to return a row, such as {'ns': 1}"
            raise UserError(f"{what} brought no result: {how}. {with_reason(raised(outcome.error))}")
        reporter.advance(f"round {planned.round + 1}")

    def observe(self, title: str, look: Callable, *arguments):
        """Look at something once, `look(*arguments)`, and write down what was seen; returns it as it was written.

        For what is not repeated: counts of instructions, reports of a tool, facts about this system. `look` returns
        what JSON can hold; the arguments are written down beside it.
        """
        self._write("observation", title=title, arguments=list(arguments), value=look(*arguments))
        return self.observed(title, *arguments, whole=True)

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
        """Before anything is measured or written."""
        self._once.clear()
        if self.record.end:
            raise UserError("This session is closed: run the cell with `chapter.begin` again, and all that follow.")

    def _write(self, kind: str, **fields) -> None:
        self._must_be_open()
        self._writer.write(kind, **fields)
        line = json.loads(json.dumps({"kind": kind, **fields}))
        if kind == "end":
            self.record = dataclasses.replace(self.record, end=line, cut_off=False)
        else:
            getattr(self.record, PLURAL[kind]).append(line)


def raised(error: str) -> str:
    """What a process ended with, of the end of its errors: what stands behind the lines of a traceback, else all."""
    lines = error.strip().splitlines()
    behind = max((number for number, line in enumerate(lines[:-1], 1) if line.startswith(" ")), default=0)
    return " ".join(lines[behind:])


def source() -> Path | None:
    """The folder of records that FROM names, as the press handed it on; None if the chapter is to measure."""
    return Path(folder) if (folder := settings.told("source")) else None


def open_session(chapter: str, interpreters: list[str]) -> Measuring | Reading:
    """A session that measures, or that reads where FROM names records."""
    if folder := source():
        return Reading(chapter, newest(folder, chapter))
    return Measuring(chapter, interpreters)
