"""Shared by tests: an experiment in a process of its own, golden records to change, made-up measurements, records as
files."""

import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from ffilab.judge import ledger
from ffilab.judge.estimates import Counted, Location, Share
from ffilab.measure.case import Case, Outcome
from ffilab.measure.lines import Writer
from ffilab.measure.plan import Arm
from ffilab.measure.session import Reading
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.loaders import experiment as loaders

PAIR = (GIL, FREE_THREADED)
GOLDEN = Path(__file__).parents[1] / "golden"


def hostile(function: str, name: str = "", **arguments) -> Arm:
    """An arm of hostile_arms.py."""
    return Arm(name or function, file="tests/helpers/hostile_arms.py", function=function, arguments=arguments)


def noop(name: str, loader: str = "CDLL") -> Arm:
    """A call of a C function that does nothing."""
    return replace(loaders.call(loader, "noop"), name=name)


def outcome_of(label: str, *what, **options) -> Outcome:
    """How a function ended on an interpreter; it must end well. what: the function, or a worker-side file and its name
    there; then its arguments. Skips where it needs what was left out without Rust."""
    *file, function, arguments = what
    outcome = Case(label, function, fixed=arguments, file="".join(file), **options).run(seed=1)
    if without := re.search(r"\w+ is written in Rust, and there is no cargo here", outcome.error):
        pytest.skip(without[0])
    assert outcome.ended == "ok", (label, function, outcome.ended, outcome.error)
    return outcome


def result_of(label: str, *what, **options):
    """What it answers."""
    return outcome_of(label, *what, **options).result


def rows_of(label: str, *what, **options) -> list[dict]:
    """What it answers, as a list of rows."""
    result = result_of(label, *what, **options)
    return result if isinstance(result, list) else [result]


class Golden(Reading):
    """The golden records of a chapter, with other frames in place of some."""

    def __init__(self, chapter: str, frames: dict[str, pd.DataFrame] | None = None):
        super().__init__(chapter, GOLDEN / chapter)
        self._frames = frames or {}

    def frame(self, title: str) -> pd.DataFrame:
        return self._frames[title] if title in self._frames else super().frame(title)


def judged(session) -> dict[str, dict]:
    """The ledger's rows of a run that passed its controls, by claim."""
    return {row["id"]: row for row in ledger.judged(session, whatever_the_controls=True)}


def about(value, error=0.005, n=20):
    """A measurement with this centre."""
    return Location(value, error, n - 1, n)


def seen(events, trials=30):
    """An event that was seen in so many runs."""
    return Share(events, trials)


def counted(value):
    """What was counted, and has no width."""
    return Counted(value)


def write(record, path):
    """A record as a measurement leaves it on disk; returns the path."""
    writer = Writer(path)
    writer.write("run", **record.run)
    writer.write("loops", loops=record.loops)
    for kind, lines in (("restart", record.restarts), ("block", record.blocks)):
        for line in lines:
            writer.write(kind, **line)
    writer.write("end", **record.end)
    writer.close()
    return path
