"""What JupyterLab adds to a chapter: a reader's mistake ends in one sentence at the cell, before anything is measured;
what the reader changed (ffilab/measure/changed.py) is measured first, and shown first."""

import ast
import json
import math
import random
import re
import sys
import tempfile
import traceback
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pandas as pd
from IPython.core.getipython import get_ipython

from ffilab.measure import runner
from ffilab.measure.case import Case, Outcome, Program, Step
from ffilab.measure.changed import books_longest, books_own, changed
from ffilab.measure.plan import Arm, plan
from ffilab.measure.record import Record
from ffilab.measure.session import Measuring
from ffilab.measure.workers import Worker, WorkerFailed
from ffilab.page import draw
from ffilab.run.budget import Budget
from ffilab.run.errors import UserError
from ffilab.run.paths import LOGS, NOTEBOOKS, with_reason, without_paths
from ffilab.setup import layouts
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load
from ffilab.setup.layouts import Layout

# So long may the setup and the first pass of one arm take.
TRIAL_S = 4
# A process hangs that takes longer than that, and than so many times the longest of the book's own run.
SLOWER = 5
# What was changed is measured alone for so long, before all of the plan.
FIRST_S = 12
AGAIN = "Correct it, and run the cell again."
ABOVE = "run the cells above this one first (menu Run, Run All Above Selected Cell)"


class Laboratory(Measuring):
    """A session that measures in JupyterLab."""

    def time(self, name: str, arms: list[Arm], interpreters: list[str] | None = None, budget=None, **further) -> Record:
        """As `Measuring.time`; raises UserError in a moment for an arm of the reader that cannot be timed."""
        self._must_be_open()
        labels = interpreters or self.interpreters
        yours = changed(arms, books_own(self.chapter, name))
        try_out(yours, labels)
        if 0 < len(yours) < len(arms):
            self._first(name, arms, yours, labels)
        return super().time(name, arms, interpreters, budget, **further)

    def run(self, title: str, cases: list[Case | Program | Step], repeats: int, *how, **further) -> pd.DataFrame:
        """As `Measuring.run`, also its further arguments; raises UserError in some seconds for a case that hangs where
        the book's own do not."""
        self._must_be_open()
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
        return cls(**vars(case) | {"timeout_s": limit}) if limit < case.timeout_s else case

    def run(self, seed: int = 0, layout: Layout | None = None) -> Outcome:
        outcome = super().run(seed, layout)
        if outcome.ended == "timeout":
            raise UserError(self.hung)
        return outcome

    @property
    def hung(self) -> str:
        """What is said of it."""
        code = getattr(self.function, "__code__", None)
        where = f" (line {code.co_firstlineno} of its cell)" if code else ""
        given = ", ".join(f"{name}={value!r}" for name, value in self.factors.items())
        return (
            f"{self.what[1]}({given}) on {self.interpreter}{where} had not come back after {self.timeout_s:g} s: look "
            "for a loop or a wait without an end. Correct it, run its cell again, and then this one. (If you changed "
            "nothing, the machine is very busy: run it again.)"
        )


def try_out(arms: list[Arm], labels: list[str]) -> None:
    """Make each arm and run it once. Raises UserError for one that hangs, or that can be made on no interpreter."""
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
            except WorkerFailed as failure:
                raise UserError(f"{arm.name!r} cannot be timed{line_of(arm)}: {failure}. {AGAIN}") from None
            finally:
                worker.close()
    for arm in arms:
        if len(found := reasons.get(arm.name, [])) == len(tries[arm.name]) > 0:
            reason = found[0].rstrip(".")
            raise UserError(f"{arm.name!r} cannot be timed{line_of(arm, reason)}: {reason}. {AGAIN}")


def cell_now() -> str:
    """The source of the cell that runs."""
    shell = get_ipython()
    return shell.user_ns["In"][-1] if shell and shell.user_ns.get("In") else ""


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


def forgive(chapter: str) -> None:
    """From here on a cell that fails says so in one sentence, without the lines of the book's own code."""

    def tell(shell, kind, error, trace, tb_offset=None):
        sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
        shell._showtraceback(kind, error, [in_a_sentence(chapter, error, trace)])

    if shell := get_ipython():
        shell.set_custom_exc((Exception,), tell)


def in_a_sentence(chapter: str, error: BaseException, trace) -> str:
    """What went wrong, in which line of the cell, and what to do."""
    if isinstance(error, UserError):
        return str(error)
    told = traceback.TracebackException(type(error), error, trace).format_exception_only()
    said = "".join(told).strip().rpartition("\n")[2]
    name = getattr(error, "name", None)
    if isinstance(error, NameError) and name in names_of(chapter):
        return f"{name} is not there yet: {ABOVE}."
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename.startswith("<ipython-input")]
    frames = frames or [frame for frame in traceback.extract_tb(trace) if "ipykernel_" in frame.filename]
    at, line = (frames[-1].lineno, frames[-1].line) if frames else (0, "")
    if isinstance(error, SyntaxError) and error.text and not frames:
        at, line = error.lineno, error.text
    where = f"Line {at} of this cell, `{line.strip()}`: " if line else ""
    hint = f"If you changed nothing, {ABOVE}." if isinstance(error, KeyError) else AGAIN
    return f"{where}{said}{'' if said.endswith(('.', '?', '!')) else '.'} {hint} (%tb shows where it came from.)"


def names_of(chapter: str) -> set[str]:
    """All names that the cells of a chapter define."""
    cells = json.loads((NOTEBOOKS / chapter / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]
    found: set[str] = set()
    for cell in cells:
        try:
            nodes = list(ast.walk(ast.parse("".join(cell["source"])))) if cell["cell_type"] == "code" else []
        except SyntaxError:
            # What the reader is about to correct.
            continue
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found
