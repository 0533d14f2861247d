"""The figures and tables of the chapter "Calls from outside"."""

import itertools

import pandas as pd

from ffilab.judge.numbers import every, numbers_of
from ffilab.judge.processes import chosen, interval_of
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from native.outside.ways import TOOLS
from notebooks.outside import experiment as e
from notebooks.outside import states
from notebooks.outside.crossings import ACTIONS, SCENES, may_i, told
from notebooks.outside.waiting import NO_TRIAL

# ---- states ----

SAID = {"made": "created", "kept": "kept", "nested": "nested"}


def column(label: str, threads: int) -> str:
    return f"{label}, {threads} thread{'s' * (threads > 1)}"


# What is in sight of the table on several threads.
SHOWN_TOGETHER = tuple(column(FREE_THREADED, threads) for threads in e.TOGETHER[:2])


def prices(session: Session) -> pd.DataFrame:
    """What the first picture draws: µs to attach and detach by what happened before, of both builds."""
    ends = session.frame(states.END)
    counts = chosen(ends, event=e.THREADS)["count"]
    shown = {
        "nothing happened": ("ns", 0, e.THREADS, "own"),
        "a thread ended": ("ns", 1, e.PYTHON_ENDED, "own"),
        "… PYTHON_TLBC=0": ("ns", 1, e.PYTHON_ENDED, "shared"),
        "… and left an object": ("ns", 1, e.THREADS, "own"),
        **{f"{count} threads did": ("ns", count, e.THREADS, "own") for count in sorted(set(counts)) if count > 1},
        "a callback ran Python": ("ns", 1, e.CODE, "own"),
        "…, PYTHON_TLBC=0": ("ns", 1, e.CODE, "shared"),
        "a kept state": ("kept", 1, e.THREADS, "own"),
    }
    found = {}
    for (what, (kind, count, event, bytecode)), label in itertools.product(shown.items(), states.PAIR):
        case = {"interpreter": label, "event": event, "count": count, "bytecode": bytecode}
        found[what, label] = states.mean(ends, kind, 1000, **case)
    return draw.points(found, "before", "CPython")


def plot_prices(figure, found: pd.DataFrame) -> None:
    said = "µs to attach and detach, in a thread of C"
    axes = draw.intervals(figure, found, "before", "CPython", xscale="log", xlabel=said)
    axes.set_xticks((0.1, 1, 10, 100))


def versions(session: Session) -> pd.DataFrame:
    """To attach and detach on every interpreter of the session, and why one has no numbers."""
    found, runs = numbers_of(session), session.frame(states.END)
    columns = {
        "at first": f"a state made: 0 {e.THREADS}, µs on ",
        "after a thread": f"a state made: 1 {e.THREADS}, µs on ",
        "times as long": f"1 {e.THREADS} / none, ",
    }
    rows = []
    for label in every(session):
        how = ", ".join(map(str, chosen(runs, interpreter=label).ended.unique()))
        row = {"CPython": label}
        for heading, name in columns.items():
            seen = found[f"{name}{label}"].estimate
            row[heading] = draw.Quantity(seen) if seen else f"{draw.NOT_MEASURED}: {how or 'disturbed'}"
        visits = states.mean(session.frame(states.VISITS), "readings", interpreter=label, event=e.THREADS, count=1)
        none = "did not run" if BY_LABEL[label].free_threaded else "no such lists"
        rows.append(row | {"visits, after a thread": f"{visits.at().value:,.0f}" if visits else none})
    return pd.DataFrame(rows)


def together(session: Session) -> pd.DataFrame:
    """To attach and detach, by threads at once and by what a process has behind it."""
    rows = []
    for state, before in itertools.product(e.HOW, (e.NOTHING, e.OTHERS_THERE, e.OBJECT_LEFT)):
        row = {"state": SAID[state], "before": before}
        for label, threads in itertools.product(states.PAIR, e.TOGETHER):
            name = f"{state} by {threads}, before it {before}: ns on {label}"
            row[column(label, threads)] = draw.quantity(session, name)
        rows.append(row)
    return pd.DataFrame(rows)


def ways(session: Session) -> pd.DataFrame:
    """A callback of each tool, by what becomes of the state."""
    rows = []
    for tool, state in itertools.product(TOOLS, states.STATES):
        us = {
            f"{label}, µs": draw.quantity(session, f"way in: {tool}, {state}, µs on {label}") for label in states.PAIR
        }
        rows.append({"tool": tool, "state": SAID[state], **us})
    return pd.DataFrame(rows)


def bridges(session: Session) -> pd.DataFrame:
    """An answer for a coroutine, by its way, alone and beside a busy thread."""
    rows = []
    for beside, way in itertools.product((e.ALONE, e.BUSY), e.BRIDGES):
        us = {
            f"{label}, µs": draw.quantity(session, f"answer by {way}, {beside}: µs on {label}") for label in states.PAIR
        }
        rows.append({"way": way, "the loop is": beside} | us)
    return pd.DataFrame(rows)


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
    "Without it, and the world stops": [
        LOCK,
        (HOLDER, THIRD, "the world\nto go on", (1.18, 0.68)),
        (THIRD, MAIN, "main to\ndetach", (-0.18, 0.68)),
    ],
}
CIRCLES_ALT = "; ".join(
    f"{title}: " + ", ".join(f"{one} waits for {other}: {what}" for one, other, what, _ in waits).replace("\n", " ")
    for title, waits in CIRCLES.items()
)


CIRCLES_DATA = pd.DataFrame(
    [(title, one, other, what) for title, waits in CIRCLES.items() for one, other, what, _ in waits],
    columns=["build", "waits", "for", "what"],
)


def plot_circles(figure) -> None:
    """Three threads, and an arrow for each wait. A circle of arrows never ends. A phone shows the left of a figure
    first."""
    arrow = {"arrowstyle": "->", "shrinkA": 2, "shrinkB": 4, "connectionstyle": "arc3,rad=-0.3"}
    arrow["color"] = draw.INK["light"]
    box = {"boxstyle": "round", "fc": "none", "ec": draw.INK["light"]}
    left, _ = figure.subfigures(1, 2, width_ratios=[3.2, 2.8])
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
    """How the children of each case ended, by interpreter. factors: columns of `runs`, with their headings. ms: with
    their trimmed mean, as in `waiting`."""
    runs = runs[runs.outcome != NO_TRIAL[0]]
    # The pair's build without a GIL has most cases, in their order.
    cases = runs.sort_values("interpreter", key=lambda labels: labels != FREE_THREADED, kind="stable")
    cases = cases[list(factors)].drop_duplicates()
    rows = []
    for which in cases.to_dict("records"):
        row = {heading: which[name] for name, heading in factors.items()}
        for label in sorted(runs.interpreter.unique()):
            row[f"CPython {label}"] = endings(chosen(runs, interpreter=label, **which), ms)
        rows.append(row)
    return pd.DataFrame(rows)


def with_guards(session: Session) -> list[str]:
    """The columns of interpreters that have guards; those of the pair if the session has none."""
    return [f"CPython {label}" for label in states.NEWER if label in session.interpreters] or list(COLUMNS)


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
    """Every action of the three pages: may it be done, and how the children ended that did it."""
    rows = []
    for action, title, cases, instead, cure in ACTIONS:
        frame = session.frame(title)
        frame = told(frame) if title in SCENES and len(frame) else frame

        def children(cases: list[dict], frame: pd.DataFrame = frame, **which: str) -> pd.DataFrame:
            found = pd.concat([chosen(frame, **case, **which) for case in cases]) if cases and len(frame) else frame[:0]
            found = found[found.outcome != NO_TRIAL[0]] if len(found) else found
            return found if "fate" in found else found.assign(fate=None)

        row = {"may I …": action, "answer": may_i(children(cases), instead, children(cure))}
        pair = zip((GIL, FREE_THREADED), COLUMNS, strict=True)
        rows.append(row | {heading: endings(children(cases, interpreter=label), False) for label, heading in pair})
    return pd.DataFrame(rows)
