"""What a reader changed: the arms of a plan that the book's own run does not have.

Its arms are those of tests/golden, its records cut down.
"""

import json
import math
from dataclasses import asdict

from ffilab.measure.plan import OURS, Arm
from ffilab.measure.record import MAIN, Record
from ffilab.run.paths import ROOT

# Of an arm: what makes it another one.
WHAT = ("name", "statement", "setup", "uses", "file", "function", "arguments", "own_loop")


def books_own(chapter: str, name: str) -> list[dict]:
    """The arms of the book's own run of a plan; none of a plan that it has not."""
    path = ROOT / "tests" / "golden" / chapter / f"{name}.jsonl"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as lines:
        return json.loads(next(lines))["plan"]["arms"]


def books_longest(chapter: str, title: str) -> float:
    """How long (s) a process of the book's own run of an experiment took at most; NaN of one that it has not."""
    path = ROOT / "tests" / "golden" / chapter / MAIN
    if not path.exists():
        return math.nan
    with path.open(encoding="utf-8") as lines:
        processes = [line for line in map(json.loads, lines) if line.get("title") == title and "wall_s" in line]
    return max((process["wall_s"] for process in processes), default=math.nan)


def changed(arms: list[Arm], own: list[dict]) -> list[Arm]:
    """Those that the book's own run does not have, or has otherwise."""
    known = [{key: arm.get(key) for key in WHAT} for arm in own]
    asked = [(arm, json.loads(json.dumps(asdict(arm)))) for arm in arms]
    return [arm for arm, what in asked if {key: what[key] for key in WHAT} not in known]


def changed_in(record: Record) -> list[str]:
    """The names of what the reader changed in a record of a chapter; none if all of it is the reader's."""
    arms = [Arm(**{key: arm[key] for key in WHAT}) for arm in record.run["plan"]["arms"]]
    arms = [arm for arm in arms if not arm.name.startswith(OURS)]
    yours = changed(arms, books_own(record.path.parent.parent.name, record.path.stem))
    return [arm.name for arm in yours] if len(yours) < len(arms) else []
