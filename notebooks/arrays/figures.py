"""What the chapter "Arrays in and out" shows: tables and figures."""

import itertools
import textwrap
from collections.abc import Iterable

import matplotlib.pyplot as plt
import pandas as pd

from ffilab.judge.numbers import numbers_of
from ffilab.judge.processes import chosen
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import GIL
from notebooks.arrays import numbers
from notebooks.arrays.experiment import (
    BUFFER,
    COPIED,
    DLPACK,
    ELEMENTS,
    IN_PLACE,
    PAIR,
    REFUSED,
    SHAPES,
    TOOLS,
    WAYS_OUT,
    WRONG,
)

# A colour and a letter for each fate: none is told by its colour alone.
LOOK = {
    IN_PLACE: (draw.PALETTE[2], "in place"),
    COPIED: (draw.PALETTE[1], "copy"),
    REFUSED: (draw.GRID["light"], "refused"),
    WRONG: (draw.PALETTE[5], "wrong"),
}


def by_build(session: Session, name: str, what: str, each: Iterable[str]) -> pd.DataFrame:
    """What a figure draws: a number of the page on both builds, a row for each of them. name: with places for one of
    them and for the build."""
    found = {
        (one, label): numbers_of(session)[name.format(one, label)].estimate
        for label, one in itertools.product(PAIR, each)
    }
    return draw.points(found, what, "CPython").dropna()


def prices(session: Session) -> pd.DataFrame:
    """What the figure draws: ns in, by tool and build."""
    return by_build(session, "{}, in, ns on {}", "tool", TOOLS)


def plot_prices(figure, found: pd.DataFrame) -> None:
    first = found[found.CPython == GIL].sort_values("value").tool.tolist()
    ordered = found.sort_values("tool", key=lambda tools: tools.map({tool: n for n, tool in enumerate(first)}))
    ordered = ordered.sort_values("CPython", kind="stable")
    draw.intervals(figure, ordered, "tool", "CPython", xscale="log", xlabel="ns of a call with an array of 1 KiB")


def costs(session: Session) -> pd.DataFrame:
    """ns of a call, in by shape and out, by tool and build."""
    record, ways = session.timed("ways"), [*(f"in, {shape}" for shape in SHAPES), "out"]
    return pd.DataFrame(
        {"tool": tool, "CPython": label}
        | {way: cell(record, label, f"{tool}, {way}") for way in ways}
        | {"n": draw.behind(record, [(label, arm) for way in ways if record.has(label, arm := f"{tool}, {way}")])}
        for tool, label in itertools.product([*TOOLS, BUFFER, DLPACK], PAIR)
    )


def cell(record: Record, label: str, arm: str) -> draw.Quantity | str:
    """ns with their interval, or why there are none; a dash where nobody asked."""
    if not record.has(label, arm) and (label, arm) not in record.missing:
        return "–"
    return draw.cell(numbers.price(record, label, arm))


def plot_fates(figure, grid: pd.DataFrame) -> None:
    """The grid of arrays and tools; a cell with several fates has no colour."""
    axes = figure.subplots()
    for (row, given), (column, tool) in itertools.product(enumerate(grid.index), enumerate(grid.columns)):
        colour, word = LOOK.get(grid.loc[given, tool], ("none", grid.loc[given, tool]))
        axes.add_patch(plt.Rectangle((column - 0.47, row - 0.44), 0.94, 0.88, facecolor=colour, alpha=0.55))
        axes.text(column, row, word, ha="center", va="center", size=7, color=draw.INK["light"])
    axes.set(xlim=(-0.5, len(grid.columns) - 0.5), ylim=(len(grid.index) - 0.5, -0.5))
    axes.set_xticks(range(len(grid.columns)), [textwrap.fill(tool, 11) for tool in grid.columns], size=7)
    axes.set_yticks(range(len(grid.index)), grid.index, size=8)
    axes.xaxis.tick_top()
    axes.grid(visible=False)


def fate_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Which tools refuse, copy and misread each array."""
    heads = {"refused by": REFUSED, "copied by": COPIED, "read wrongly by": WRONG, "read in place by": IN_PLACE}
    found = {head: numbers.by_fate(rows, fate) for head, fate in heads.items()}
    well = chosen(rows, ended="ok")
    found["errors"] = chosen(well, fate=REFUSED).groupby("given").by.agg(lambda errors: sorted(set(errors)))
    return pd.DataFrame(
        {"given": given, **{head: ", ".join(each.get(given, [])) or "none" for head, each in found.items()}}
        for given in dict.fromkeys(well.given)
    )


def ownership_table(owners: pd.DataFrame) -> pd.DataFrame:
    """What comes out of each tool, on both builds and in all processes."""

    def row(owners: pd.DataFrame, **which) -> dict[str, str]:
        part = chosen(owners, **which)
        return {
            "base": " or ".join(sorted(set(part.base))),
            "a view keeps it": yes(part.outlives),
            "freed": yes(part.freed),
            "writable": yes(part.writable),
            "nothing kept on the way in": yes(part["lets go"]),
        }

    found = draw.summary(chosen(owners, ended="ok"), {"way": WAYS_OUT}, row, "n (processes)")
    return found.rename(columns={"way": "way out"})


def yes(column: pd.Series) -> str:
    """`yes`, `no`, or in how many."""
    held = int(column.astype(bool).sum())
    return {len(column): "yes", 0: "no"}.get(held, f"{held} of {len(column)}")


def mixture_table(beside: pd.DataFrame) -> pd.DataFrame:
    """Calls that read a mixture, by tool: over all processes."""

    def row(beside: pd.DataFrame, **which) -> dict[str, str]:
        part = chosen(beside, **which)
        met = f"{int((part.mixed.astype(int) > 0).sum())} of {len(part)}"
        return {
            "processes that met one": met,
            "calls that read a mixture": f"{part.mixed.sum() / part.reads.sum():.2%}",
        }

    return draw.summary(chosen(beside, ended="ok"), {"tool": TOOLS}, row, "")


def gains(session: Session) -> pd.DataFrame:
    """What the figure draws: work of two threads over that of one, by the size of their arrays and by build."""
    return by_build(session, "roots of {} elements on {}: two threads / one", "elements", ELEMENTS)


def plot_gains(figure, found: pd.DataFrame) -> None:
    look = {"xlabel": "work of two threads / work of one", "ylabel": "elements of an array"}
    draw.intervals(figure, found, "elements", "CPython", line=1.0, **look)
