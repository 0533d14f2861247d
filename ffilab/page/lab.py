"""What JupyterLab adds to a chapter: a reader's mistake ends in one sentence at the cell, before anything is measured;
what the reader changed (ffilab/measure/changed.py) is measured first, and shown first."""

import math
import random
import re
import tempfile
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import pandas as pd

from ffilab.measure import runner
from ffilab.measure.case import Case, Outcome, Program, Step
from ffilab.measure.changed import books_longest, books_own, changed
from ffilab.measure.plan import Arm, plan
from ffilab.measure.record import Record
from ffilab.measure.session import Measuring
from ffilab.measure.workers import Worker, WorkerFailed
from ffilab.page import asked, draw
from ffilab.page.forgiving import AGAIN, cell_now
from ffilab.run.budget import Budget
from ffilab.run.errors import UserError
from ffilab.run.paths import LOGS, with_reason, without_paths
from ffilab.setup import layouts
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load
from ffilab.setup.layouts import Layout

# So long may the setup and the first pass of one arm take.
TRIAL_S = 4
# So many passes are tried, and so long may one take: many fill a batch, and a batch is repeated.
TRIAL_PASSES, LONGEST_PASS_NS = 300, 50_000_000
# A process hangs that takes longer than that, and than so many times the longest of the book's own run.
SLOWER = 5
# What was changed is measured alone for so long, before all of the plan.
FIRST_S = 12


class Laboratory(Measuring):
    """A session that measures in JupyterLab."""

    def time(self, name: str, arms: list[Arm], interpreters: list[str] | None = None, budget=None, **further) -> Record:
        """As `Measuring.time`; raises UserError in a moment for an arm of the reader that cannot be timed."""
        self._must_be_open()
        labels = interpreters or self.interpreters
        asked.must_be_named(name)
        asked.must_be_labels(labels, self.interpreters)
        asked.must_be_arms(arms)
        yours = changed(arms, books_own(self.chapter, name))
        asked.must_call(yours)
        try_out(yours, labels)
        if 0 < len(yours) < len(arms):
            self._first(name, arms, yours, labels)
        return super().time(name, arms, interpreters, budget, **further)

    def run(self, title: str, cases: list[Case | Program | Step], repeats: int, *how, **further) -> pd.DataFrame:
        """As `Measuring.run`, also its further arguments; raises UserError in some seconds for a case that hangs where
        the book's own do not."""
        self._must_be_open()
        asked.must_be_named(title)
        asked.must_be_cases(cases)
        longest = books_longest(self.chapter, title)
        watched = [Watched.of(case, longest) if isinstance(case, Case) else case for case in cases]
        return super().run(title, watched, repeats, *how, **further)

    def _first(self, name: str, arms: list[Arm], yours: list[Arm], labels: list[str]) -> None:
        """Time what was changed with what it is compared with, for a short while, and show it."""
        beside = {arm.beside or arm.name for arm in yours}
        few = [arm for arm in arms if (arm.beside or arm.name) in beside]
        short = Budget("first", self.budget.restarts, 10, FIRST_S, self.budget.batch_ms, scale=1, repeats=1)
        with tempfile.TemporaryDirectory(prefix="ffilab-") as folder:
            planned = plan(f"{name}, what you changed", few, labels, short, wall_s=FIRST_S)
            record = runner.run(planned, Path(folder) / self.chapter / "first")
            draw.changed(record, [arm.name for arm in yours], "Measured first and in short. The whole run follows.")


@dataclass(frozen=True)
class Watched(Case):
    """A case that a reader may have changed. That it hangs is told at the cell, and counted by nobody."""

    @classmethod
    def of(cls, case: Case, longest: float) -> Case:
        """The case, with less time if the book's own need less. longest: what one of them took (s); NaN if there is
        none: then a limit that the case sets itself stays."""
        if math.isnan(longest):
            limit = case.timeout_s if case.timeout_s < Case.timeout_s else 2 * TRIAL_S
        else:
            limit = max(TRIAL_S, SLOWER * longest)
        if limit >= case.timeout_s and not case.hint:
            return case
        return replace(cls(**vars(case)), timeout_s=min(limit, case.timeout_s))

    def run(self, seed: int = 0, layout: Layout | None = None) -> Outcome:
        outcome = super().run(seed, layout)
        if outcome.ended == "timeout":
            raise UserError(self.hung)
        return outcome

    @property
    def hung(self) -> str:
        """What is said of it."""
        unchanged = "(If you changed nothing, the machine is very busy: run it again.)"
        if self.hint:
            return f"Not correct: there was no end after {self.timeout_s:g} s. {self.hint} {AGAIN} {unchanged}"
        code = getattr(self.function, "__code__", None)
        where = f" (line {code.co_firstlineno} of its cell)" if code else ""
        given = ", ".join(f"{name}={value!r}" for name, value in self.factors.items())
        return (
            f"{self.what[1]}({given}) on {self.interpreter}{where} had not come back after {self.timeout_s:g} s: look "
            f"for a loop or a wait without an end. Correct it, run its cell again, and then this one. {unchanged}"
        )


def try_out(arms: list[Arm], labels: list[str]) -> None:
    """Make each arm and run it some times. Raises UserError for one that hangs, that is slow, that can be made on no
    interpreter, or that works only once."""
    reasons: dict[str, list[str]] = {}
    tries = {arm.name: [label for label in labels if label in (arm.interpreters or labels)] for arm in arms}
    pool = layouts.current(labels)
    for label in labels:
        of_label = sorted((arm for arm in arms if label in tries[arm.name]), key=lambda arm: (arm.group, arm.gil))
        for (group, gil), together in groupby(of_label, key=lambda arm: (arm.group, arm.gil)):
            worker = Worker(load(BY_LABEL[label]), group, LOGS / "workers-trial.log", pool[label][0], gil=gil)
            worker.limit_s = TRIAL_S
            try:
                for arm in together:
                    worker.load([arm], None, random.Random(0))
                    if reason := worker.loaded["missing"].get(arm.name):
                        reasons.setdefault(arm.name, []).append(without_paths(with_reason(reason)))
                    else:
                        try_again(worker, arm)
            except WorkerFailed as failure:
                raise UserError(f"{arm.name!r} cannot be timed{line_of(arm)}: {failure}. {AGAIN}") from None
            finally:
                worker.close()
    for arm in arms:
        if len(found := reasons.get(arm.name, [])) == len(tries[arm.name]) > 0:
            reason = found[0].rstrip(".")
            raise UserError(f"{arm.name!r} cannot be timed{line_of(arm, reason)}: {reason}. {AGAIN}")


def try_again(worker: Worker, arm: Arm) -> None:
    """Run an arm that was made until it is known to go on, and not for long. Raises UserError."""
    passes = 10 if worker.loaded["first_ns"][arm.name] < LONGEST_PASS_NS else 1
    try:
        took_ns = worker.time(arm.name, passes)["ns"] / passes
        if took_ns < LONGEST_PASS_NS:
            worker.time(arm.name, min(TRIAL_PASSES, math.ceil(LONGEST_PASS_NS / took_ns)))
            return
    except WorkerFailed as failure:
        raise UserError(
            f"{arm.name!r} worked once, and not again{line_of(arm)}: {failure}. A statement is timed many times after "
            f"one setup. {AGAIN}"
        ) from None
    raise UserError(
        f"One pass of {arm.name!r} takes {took_ns / 1e9:.2g} s{line_of(arm)}: time a smaller piece of it, of at most "
        f"{LONGEST_PASS_NS // 1_000_000} ms. {AGAIN}"
    )


def line_of(arm: Arm, reason: str = "") -> str:
    """Where in the cell an arm has its mistake, as ` (line 3 of this cell: …)`; empty if it stands in another one."""
    named = re.findall(r"undefined symbol: (\w+)|'(\w+)'", reason)
    sought = [word for words in named for word in words if word]
    sought += [f'"{arm.statement}"', f"'{arm.statement}'", arm.statement.partition("\n")[0], arm.name]
    lines = cell_now().splitlines()
    for word in filter(None, sought):
        for number, line in enumerate(lines, 1):
            if word in line:
                return f" (line {number} of this cell: {line.strip()})"
    return ""
