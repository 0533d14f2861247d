"""The page of the study of what a wheel costs: from its kept sessions to tables, a figure and verdicts on nanobind's
benchmark."""

import itertools
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Interval, Location
from ffilab.judge.questions import above
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.judge.wording import listed, text
from ffilab.page import draw, files, plots
from ffilab.page.evidence import STUDY
from ffilab.page.player import digits
from ffilab.page.templates import filled
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
clean, again, kib = (NUMBERS[name] for name in ("clean", "again", "kib"))


def spread(found: list[float]) -> str:
    """Median and range, with two digits; the median alone, where all values look alike."""
    middle, low, high = (digits(one) for one in (statistics.median(found), min(found), max(found)))
    return middle if low == high else f"{middle} [{low}, {high}]"


def ratio(over: Sequence[float], under: Sequence[float], is_exact: bool) -> Interval:
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
            rows.append({**named, "found": text(here), "verdict": verdict(here, low, high)})
    return rows


def fewest(wheels: list[dict], labels: list[str]) -> list[dict]:
    """The fewest of these wheels that serve all the interpreters that any of them serves."""
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
        chosen = fewest(sorted(made, key=lambda wheel: forms.index(wheel["row"])), labels)
        left = [label for label in labels if not any(label in wheel["loads"] for wheel in made)]
        said = f"{name} without {listed(left)}" if left else name
        rows.append({"name": name, "said": said, "each": len(fewest(usual, labels)), "chosen": chosen, "left": left})
    return rows


def tried_on(wheels: list[dict]) -> list[str]:
    """The interpreters that wheels were built on."""
    return [one.label for one in ALL if one.label in {wheel["on"] for wheel in wheels}]


def plot(figure, sessions: list[dict]) -> None:
    """Draw seconds and KiB over the number of functions, a line for each tool."""
    panels = figure.subplots(1, 2, sharex=True)
    for axes, (title, number) in zip(panels, {"seconds of a processor, clean": clean, "KiB, stripped": kib}.items()):
        for place, tool in enumerate(TOOLS):
            found = {count: values(sessions, tool, count, number) for count in SIZES}
            middle = {count: statistics.median(values) for count, values in found.items() if values}
            look = {"marker": plots.MARKERS[place], "color": plots.PALETTE[place], "label": tool}
            axes.plot(list(middle), list(middle.values()), **look)
        axes.set(xscale="log", yscale="log", xlabel="functions", title=title)
        axes.set_xticks(SIZES, SIZES)
        axes.minorticks_off()
        plots.plain_ticks(axes.yaxis)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False, fontsize=9
    )


def drawn(sessions: list[dict]) -> pd.DataFrame:
    """What the figure shows: of each session."""
    runs = [run for one in sessions for run in one["runs"] if run["row"] in TOOLS]
    rows = [(run["row"], run["functions"], clean(run), kib(run)) for run in runs]
    return pd.DataFrame(rows, columns=["tool", "functions", "s, clean", "KiB, stripped"])


def largest(sessions: list[dict]) -> int:
    """The most functions that every tool was built with; 0, if there is no such number."""
    return max((size for size in SIZES if all(values(sessions, tool, size, clean) for tool in TOOLS)), default=0)


def like(machine: dict) -> list:
    """What two sessions must share to be put together."""
    return [machine.get(name) for name in ("cpu", "cores", "compiler")]


def page(sessions: list[dict], tree: Path) -> str:
    """The answer, the figure, and the tables, of the machine that was measured last."""
    sessions = [one for one in sessions if like(one["machine"]) == like(sessions[-1]["machine"])]
    most, wheels = largest(sessions), next((one["wheels"] for one in reversed(sessions) if one.get("wheels")), [])
    if not most:
        return filled("wheel_cost.md", most=most, study=STUDY)
    ways = needed(wheels)
    counts = sorted({len(way["chosen"]) for way in ways})

    def middle(count: int, name: str, row: str) -> str:
        return digits(statistics.median(values(sessions, row, count, NUMBERS[name])))

    def ordered(number: Callable[[dict], float]) -> list[str]:
        return sorted(TOOLS, key=lambda tool: statistics.median(values(sessions, tool, most, number)))

    by_speed, by_change = ordered(clean), ordered(again)
    caption = "What bound functions of six arguments cost, by their number"
    alt = f"{most} functions, clean: " + "; ".join(f"{tool} {middle(most, 'clean', tool)} s" for tool in by_speed)
    runs = [run for one in sessions for run in one["runs"]]
    forms = {run["row"]: run["functions"] for run in runs if run["row"] not in TOOLS}
    return filled(
        "wheel_cost.md",
        study=STUDY,
        sessions=sessions,
        machine=sessions[-1]["machine"],
        packages=sessions[-1]["packages"],
        loads=[run["load"] for run in runs],
        most=most,
        tools=by_speed,
        by_change=by_change,
        by_size=ordered(kib),
        forms=sorted(forms),
        forms_of=max(forms.values(), default=0),
        tool_of=lambda form: form.partition(",")[0],
        of=partial(values, sessions),
        numbers=NUMBERS,
        middle=middle,
        spread=spread,
        figure=draw.framed(partial(plot, sessions=sessions), caption, alt, (7.2, 3.6)),
        csv=files.csv_link(drawn(sessions), "figure", tree),
        published=published(sessions),
        pybind_most=max(PUBLISHED[0][-1].values()),
        needed=ways if wheels else [],
        by_wheels=[(count, [way for way in ways if len(way["chosen"]) == count]) for count in counts],
        labels=tried_on(wheels),
        listed=listed,
    )
