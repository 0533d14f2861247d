"""The figures and tables of the chapter "Calls from outside"."""

import itertools

import pandas as pd

from ffilab.judge.estimates import Location
from ffilab.judge.numbers import of
from ffilab.judge.processes import chosen, interval_of
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from native.outside.ways import TOOLS
from notebooks.outside import states
from notebooks.outside.crossings import ACTIONS, SCENES, told
from notebooks.outside.experiment import ALONE, BRIDGES, BUSY, CODE, OTHERS, THREADS
from notebooks.outside.results import NO_TRIAL

# ---- states ----


def prices(session: Session) -> pd.DataFrame:
    """What the first picture draws: ns of a way in and out by what happened before, of both builds."""
    shown = {
        "nothing happened": ("made", 0, THREADS, "own"),
        "1 thread left an object": ("made", 1, THREADS, "own"),
        "2 threads did": ("made", 2, THREADS, "own"),
        "8 threads did": ("made", 8, THREADS, "own"),
        "a callback ran Python": ("made", 1, CODE, "own"),
        "… PYTHON_TLBC=0": ("made", 1, CODE, "shared"),
        "1,000 other states": ("made", 1000, OTHERS, "own"),
        "a kept state": ("kept", 1, THREADS, "own"),
    }
    rows = []
    for (what, (state, count, event, copy)), label in itertools.product(shown.items(), (GIL, FREE_THREADED)):
        values = states.ends(session, label, event, count, state, copy)
        if len(values):
            rows.append({"before": what, "CPython": label, **vars(Location.of(values).at())})
    return pd.DataFrame(rows)


def plot_prices(figure, found: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, found, "before", "CPython")
    axes.set(xscale="log", xlabel="ns for one way in and out, from a thread of C", ylabel="")
    draw.plain_ticks(axes.xaxis)


def by_build(session: Session, rows: dict[tuple[str, str], str], heads: tuple[str, str], unit: str) -> pd.DataFrame:
    """A table of numbers with a column for each build; rows: the name of a number without its label, by its two heads."""
    found = of(session)
    return pd.DataFrame(
        [
            dict(zip(heads, head))
            | {f"{label}, {unit}": draw.words(found[f"{name}{label}"].measurement) for label in (GIL, FREE_THREADED)}
            for head, name in rows.items()
        ]
    )


def ways(session: Session) -> pd.DataFrame:
    """A callback of each tool, by what becomes of the state."""
    rows = {(tool, state): f"way in: {tool}, {state}, ns on " for tool in TOOLS for state in states.STATES}
    return by_build(session, rows, ("tool", "state"), "ns")


def bridges(session: Session) -> pd.DataFrame:
    """An answer for a coroutine, by its way, alone and beside a busy thread."""
    rows = {(way, beside): f"answer by {way}, {beside}: µs on " for beside in (ALONE, BUSY) for way in BRIDGES}
    return by_build(session, rows, ("way", "the loop is"), "µs")


# ---- who waits for whom ----

# The columns of the chapter pair, which are in sight; others are in the whole table.
COLUMNS = (f"CPython {GIL}", f"CPython {FREE_THREADED}")


# Who waits for whom, by build: from, to, for what, and where that is written.
MAIN, HOLDER, THIRD = "main,\nattached", "thread of C,\nholds lock", "third thread"
PLACES = {MAIN: (-0.15, 0.0), HOLDER: (1.15, 0.0), THIRD: (0.5, 1.0)}
LOCK = (MAIN, HOLDER, "the lock", (0.5, 0.06))
CIRCLES = {
    "With the GIL": [LOCK, (HOLDER, MAIN, "the GIL", (0.5, -0.4))],
    "Without the GIL": [LOCK],
    "Without it; the third stops the world": [
        LOCK,
        (HOLDER, THIRD, "the world\nto go on", (1.18, 0.68)),
        (THIRD, MAIN, "main to\ndetach", (-0.18, 0.68)),
    ],
}
CIRCLES_ALT = "; ".join(
    f"{title}: " + ", ".join(f"{one} waits for {other}: {what}" for one, other, what, _ in waits).replace("\n", " ")
    for title, waits in CIRCLES.items()
)


def plot_circles(figure) -> None:
    """Three threads, and an arrow for each wait. A circle of arrows never ends. A phone shows the left of a figure first."""
    arrow = {"arrowstyle": "->", "shrinkA": 2, "shrinkB": 4, "connectionstyle": "arc3,rad=-0.3"}
    arrow["color"] = draw.INK["light"]
    box = {"boxstyle": "round", "fc": "none", "ec": draw.INK["light"]}
    left, _ = figure.subfigures(1, 2, width_ratios=[3.7, 2.3])
    rows = left.subplots(len(CIRCLES), 1, height_ratios=[2, 2, 3])
    for axes, (title, waits) in zip(rows, CIRCLES.items(), strict=True):
        boxes = {
            name: axes.text(*place, name, ha="center", va="center", size=11, bbox=box)
            for name, place in PLACES.items()
            if name != THIRD or len(waits) == len(PLACES)
        }
        for one, other, what, where in waits:
            ends = {"patchA": boxes[one].get_bbox_patch(), "patchB": boxes[other].get_bbox_patch()}
            axes.annotate("", PLACES[other], PLACES[one], arrowprops={**arrow, **ends})
            axes.text(*where, what, ha="center", va="center", size=11)
        axes.set(xlim=(-0.5, 1.5), ylim=(-0.6, 1.15 if len(boxes) == len(PLACES) else 0.4))
        axes.set_title(title, size=12)
        axes.axis("off")


def endings_table(runs: pd.DataFrame, factors: dict[str, str], ms: bool = False) -> pd.DataFrame:
    """How the children of each case ended, by interpreter. factors: columns of `runs`, with their headings. ms: with their trimmed mean, as in `waiting`."""
    runs = runs[runs.outcome != NO_TRIAL[0]]
    # The build without a GIL has all cases.
    cases = runs.sort_values("interpreter", kind="stable", ascending=False)[list(factors)].drop_duplicates()
    rows = []
    for which in cases.to_dict("records"):
        row = {heading: which[name] for name, heading in factors.items()}
        for label in sorted(runs.interpreter.unique()):
            row[f"CPython {label}"] = endings(chosen(runs, interpreter=label, **which), ms)
        rows.append(row)
    return pd.DataFrame(rows)


def endings(children: pd.DataFrame, ms: bool) -> str:
    """How many ended how, and what became of a thread of theirs."""
    if children.empty:
        return "–"
    fates = children.get("fate", pd.Series(index=children.index, dtype=object))
    ended = [
        f"process {outcome}"
        if outcome == "hangs"
        else outcome
        if pd.isna(fate)
        else f"thread {fate}, process {outcome}"
        for outcome, fate in zip(children.outcome, fates, strict=True)
    ]
    words = "; ".join(f"{one}: {ended.count(one)} of {len(ended)}" for one in sorted(set(ended)))
    if not ms or children.ms.isna().all():
        return words
    typical = interval_of(children, "ms").value
    return f"{words}; {typical:{'.0f' if typical >= 10 else '.2g'}} ms"


# ---- what may cross ----


def may_i_table(session: Session) -> pd.DataFrame:
    """Every action of the three pages: how its children ended, and what to do instead where they did not all end well."""
    rows = []
    for action, title, which, instead in ACTIONS:
        frame = session.frame(title, disturbed=True)
        frame = told(frame) if title in SCENES and len(frame) else frame
        found = {
            heading: endings(chosen(frame, interpreter=label, **which), False) if len(frame) else "–"
            for label, heading in zip((GIL, FREE_THREADED), COLUMNS, strict=True)
        }
        rows.append({"may I …": action, **found, "instead": instead})
    return pd.DataFrame(rows)
