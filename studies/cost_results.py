"""What the study of cost found, from its kept sessions: a table, verdicts on nanobind's benchmark, and how many wheels
serve every Python (book/evidence/wheel_cost.json)."""

import itertools
import statistics
from collections.abc import Callable
from dataclasses import astuple

import numpy as np

from ffilab.judge.estimates import Interval, Location
from ffilab.judge.questions import above
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.judge.wording import listed
from ffilab.setup.catalogue import ALL

SIZES = (10, 100, 720)
TOOLS = ("C API", "cffi", "Cython", "nanobind", "pybind11", "PyO3")
# What nanobind's page says in words, and its pictures in numbers: over nanobind, optimised for size. (The words have
# 4.4 for pybind11 as well; its picture has 2.7 and 3.1, and 4.0 for the branch that became pybind11 3.)
PUBLISHED = [
    ("N1", "seconds to compile", "processor", "pybind11", (2.7, 4.4), {"functions": 2.7, "classes": 3.1}),
    ("N1", "bytes", "stripped", "pybind11", (3, 5), {"functions": 3.7, "classes": 3.3}),
    ("N4", "seconds to compile", "processor", "Cython", (1.6, 4.4), {"functions": 1.6, "classes": 4.4}),
    ("N4", "bytes", "stripped", "Cython", (3, 12), {"functions": 3.3, "classes": 12.5}),
]
SAID = {YES: "holds", OPEN: "too close to call here", None: "too few sessions"}


def values(sessions: list[dict], row: str, count: int, number: Callable[[dict], float]) -> list[float]:
    """A number of a row, one for each session."""
    return [number(run) for one in sessions for run in one["runs"] if (run["row"], run["functions"]) == (row, count)]


NUMBERS = {
    "clean": lambda run: run["clean"]["processor"],
    "again": lambda run: run["again"]["processor"],
    "mib": lambda run: run["clean"]["mib"],
    "kib": lambda run: run["stripped"] / 1024,
}


def ratio(over: list[float], under: list[float], is_exact: bool) -> Interval:
    """A ratio of what was measured in the same sessions, with its interval. is_exact: bytes, which are the same in all
    of them."""
    found = np.array(over) / np.array(under)
    if is_exact and np.ptp(found) == 0:
        return Interval(*[float(found[0])] * 3)
    return Location.of(np.log(found), log=True).at()


def verdict(found: Interval, low: float, high: float) -> str:
    """Does a ratio lie where it was published? Asked by the rules of the book: above the lower end, and not above the
    upper one."""
    if not found.is_known:
        return SAID[None]
    if above(found, low) == NO:
        return "less here"
    if above(found, high) == YES:
        return "more here"
    return SAID[YES] if (above(found, low), above(found, high)) == (YES, NO) else SAID[OPEN]


def published(sessions: list[dict]) -> list[dict]:
    """The claims, for functions and for classes, with what was found by the benchmark's own commands."""
    rows = []
    for claim, what, key, tool, (low, high), pictures in PUBLISHED:
        for kind, picture in pictures.items():
            done = [{run["row"]: run[key] for run in one["published"] if run["kind"] == kind} for one in sessions]
            both = [(numbers[tool], numbers["nanobind"]) for numbers in done if {tool, "nanobind"} <= numbers.keys()]
            if not both:
                continue
            here = ratio(*zip(*both), is_exact=key == "stripped")
            named = {"claim": f"{claim}: {tool}, {what}, {kind}", "range": f"{low:g} to {high:g}", "picture": picture}
            rows.append({**named, "found": [*astuple(here)], "verdict": verdict(here, low, high)})
    return rows


def fewest(wheels: list[dict], labels: list[str]) -> list[dict]:
    """The fewest of these wheels that serve all the interpreters that any of them serves; of several ways, that of the
    wheels that come first."""
    served = {label for wheel in wheels for label in wheel["loads"]} & set(labels)
    for count in range(len(wheels) + 1):
        for chosen in itertools.combinations(wheels, count):
            if served <= {label for wheel in chosen for label in wheel["loads"]}:
                return list(chosen)
    return []


def needed(wheels: list[dict]) -> list[dict]:
    """For each tool, and nanobind's split mode: how many wheels serve the interpreters that were here, by version and
    at best."""
    labels = tried_on(wheels)
    ways = {tool: (tool, f"{tool}, stable ABI") for tool in TOOLS} | {
        "nanobind, split": ("nanobind, split", "nanobind")
    }
    rows = []
    for name, forms in ways.items():
        made = [wheel for wheel in wheels if wheel["row"] in forms]
        if name not in TOOLS and not any(wheel["loads"] for wheel in made if wheel["row"] == name):
            continue  # Its library's package is not there.
        usual = [wheel for wheel in made if wheel["row"] == name.partition(",")[0]]
        chosen = fewest(sorted(made, key=lambda wheel: len(wheel["loads"]), reverse=True), labels)
        left = [label for label in labels if not any(label in wheel["loads"] for wheel in made)]
        said = f"{name} (without {listed(left)})" if left else name
        rows.append({"name": name, "said": said, "each": len(fewest(usual, labels)), "chosen": chosen, "left": left})
    return rows


def tried_on(wheels: list[dict]) -> list[str]:
    """The interpreters that wheels were built on."""
    return [one.label for one in ALL if one.label in {wheel["on"] for wheel in wheels}]


def largest(sessions: list[dict]) -> int:
    """The most functions that every tool was built with; 0, if there is no such number."""
    return max(
        (size for size in SIZES if all(values(sessions, tool, size, NUMBERS["clean"]) for tool in TOOLS)), default=0
    )


def like(machine: dict) -> list:
    """What two sessions must share to be put together."""
    return [machine.get(name) for name in ("cpu", "cores", "compiler")]


def table(sessions: list[dict]) -> dict:
    """What the page shows, of the machine that was measured last; empty, if no number of functions was built with every
    tool.

    values: by row and number of functions, of each number one value a session. tools: by number, the least first.
    """
    sessions = [one for one in sessions if like(one["machine"]) == like(sessions[-1]["machine"])]
    most = largest(sessions)
    if not most:
        return {}
    runs = [run for one in sessions for run in one["runs"]]
    by_row: dict[str, dict[str, dict]] = {}
    for row, count in sorted({(run["row"], run["functions"]) for run in runs}):
        numbers = {name: values(sessions, row, count, number) for name, number in NUMBERS.items()}
        by_row.setdefault(row, {})[str(count)] = numbers
    middle = {
        name: {tool: statistics.median(by_row[tool][str(most)][name]) for tool in TOOLS}
        for name in ("clean", "again", "kib")
    }
    wheels = next((one["wheels"] for one in reversed(sessions) if one.get("wheels")), [])
    return {
        "machine": sessions[-1]["machine"],
        "packages": sessions[-1]["packages"],
        "sessions": len(sessions),
        "loads": [run["load"] for run in runs],
        "most": most,
        "tools": {name: sorted(TOOLS, key=by_tool.get) for name, by_tool in middle.items()},
        "forms": {row: max(map(int, by_row[row])) for row in by_row if row not in TOOLS},
        "values": by_row,
        "drawn": [
            [run["row"], run["functions"], run["clean"]["processor"], run["stripped"] / 1024]
            for run in runs
            if run["row"] in TOOLS
        ],
        "published": published(sessions),
        "pybind_most": max(PUBLISHED[0][-1].values()),
        "needed": needed(wheels) if wheels else [],
        "labels": tried_on(wheels),
    }
