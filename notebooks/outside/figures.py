"""The figures and tables of the chapter "Calls from outside"."""

import pandas as pd

from ffilab.judge.processes import chosen
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.outside.waiting import NO_TRIAL

# ---- states ----

# ---- who waits for whom ----

# The columns of the chapter pair, which are in sight; others are in the whole table.
COLUMNS = (f"CPython {GIL}", f"CPython {FREE_THREADED}")


# Who waits for whom, by build: from, to, for what, and where that is written.
MAIN, HOLDER, THIRD = "main, attached", "thread of C,\nholds the lock", "third thread"
PLACES = {MAIN: (-0.15, 0.0), HOLDER: (1.15, 0.0), THIRD: (0.5, 1.0)}
LOCK = (MAIN, HOLDER, "the lock", (0.5, 0.32))
CIRCLES = {
    "With the GIL": [LOCK, (HOLDER, MAIN, "the GIL", (0.5, -0.32))],
    "Without the GIL": [LOCK],
    "Without it; the third stops the world": [
        LOCK,
        (HOLDER, THIRD, "the world\nto go on", (1.2, 0.6)),
        (THIRD, MAIN, "main to\ndetach", (-0.2, 0.6)),
    ],
}
CIRCLES_ALT = "; ".join(
    f"{title}: " + ", ".join(f"{one} waits for {other}: {what}" for one, other, what, _ in waits).replace("\n", " ")
    for title, waits in CIRCLES.items()
)


def plot_circles(figure) -> None:
    """Three threads, and an arrow for each wait. A circle of arrows never ends."""
    arrow = {
        "arrowstyle": "->",
        "shrinkA": 24,
        "shrinkB": 30,
        "connectionstyle": "arc3,rad=-0.3",
        "color": draw.INK["light"],
    }
    for axes, (title, waits) in zip(figure.subplots(1, len(CIRCLES)), CIRCLES.items(), strict=True):
        for name, place in PLACES.items():
            axes.text(*place, name, ha="center", va="center", size=8, bbox={"boxstyle": "round", "fc": "none"})
        for one, other, what, where in waits:
            axes.annotate("", PLACES[other], PLACES[one], arrowprops=arrow)
            axes.text(*where, what, ha="center", va="center", size=8)
        axes.set(xlim=(-0.6, 1.6), ylim=(-0.5, 1.2))
        axes.set_title(title, size=9)
        axes.axis("off")


def endings_table(runs: pd.DataFrame, factors: dict[str, str], ms: bool = False) -> pd.DataFrame:
    """How the children of each case ended, by interpreter. factors: columns of `runs`, with their headings. ms: with their median."""
    runs = runs[runs.outcome != NO_TRIAL]
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
        outcome if pd.isna(fate) else f"thread {fate}" for outcome, fate in zip(children.outcome, fates, strict=True)
    ]
    words = ", ".join(f"{one}: {ended.count(one)} of {len(ended)}" for one in sorted(set(ended)))
    median = children.ms.median()
    return f"{words}; {median:{'.0f' if median >= 10 else '.1g'}} ms" if ms else words


# ---- what may cross ----
