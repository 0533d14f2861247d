"""How every figure of the book looks: one style and palette, for light and for dark pages."""

import io
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import ticker

from ffilab.judge.estimates import Estimate

INK = {"light": "#1f2328", "dark": "#e6e6e6"}
GRID = {"light": "#d0d7de", "dark": "#4a4f57"}
# Okabe and Ito's palette, told apart with every kind of colour vision.
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
# A shape for each colour: no group is told by its colour alone.
MARKERS = ["o", "s", "^", "D", "v", "P"]


def pictures(plot, size: tuple[float, float], marked: str) -> dict[str, bytes]:
    """Draw `plot(figure)` as SVG for light and for dark pages, by mode. marked: why it is no result, written across
    it."""
    with plt.rc_context(_style()):
        # The same records, the same picture: jitter is drawn from here.
        np.random.seed(0)
        drawing = plt.figure(figsize=size, layout="constrained")
        plot(drawing)
        if marked:
            drawing.text(0.5, 0.5, marked, rotation=20, size=22, alpha=0.35, ha="center", va="center")
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
        plt.close(drawing)
    light = dark = buffer.getvalue()
    for colour in (INK, GRID):
        dark = dark.replace(colour["light"].encode(), colour["dark"].encode())
    return {"light": light, "dark": dark}


def _style() -> dict:
    ink, grid = INK["light"], GRID["light"]
    return {
        **sns.axes_style("whitegrid", {"axes.edgecolor": grid, "grid.color": grid}),
        **sns.plotting_context("notebook"),
        "text.color": ink,
        "axes.labelcolor": ink,
        "axes.titlecolor": ink,
        "xtick.color": ink,
        "ytick.color": ink,
        "axes.facecolor": "none",
        "figure.facecolor": "none",
        "legend.facecolor": "none",
        "legend.edgecolor": grid,
        "axes.prop_cycle": plt.cycler(color=PALETTE),
        "svg.fonttype": "path",
        "svg.hashsalt": "ffilab",
        "legend.framealpha": 0,
    }


def intervals(figure, rows: pd.DataFrame, label: str, hue: str | None = None, line: float | None = None, **look):
    """Draw points with their intervals, one row each, and return the axes.

    rows: columns `label`, value, low, high and maybe `hue`. line: a value to compare with. look: what the axes' `set`
    takes.
    """
    axes = figure.subplots()
    groups = list(dict.fromkeys(rows[hue])) if hue else [None]
    labels = list(dict.fromkeys(rows[label]))
    for place, group in enumerate(groups):
        part = rows if hue is None else rows[rows[hue] == group]
        offset = (place - (len(groups) - 1) / 2) * 0.22
        positions = [labels.index(name) + offset for name in part[label]]
        drawn = {"fmt": MARKERS[place], "color": PALETTE[place]}
        axes.errorbar(part.value, positions, xerr=reach(part), capsize=4, label=group, **drawn)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    if hue:
        legend_above(axes, len(groups))
    if line is not None:
        axes.axvline(line, linestyle=":", color="gray")
    axes.set(**look)
    if axes.get_xscale() == "log":
        plain_ticks(axes.xaxis)
    return axes


def reach(rows: pd.DataFrame) -> np.ndarray:
    """How far the interval of each row reaches below its value and above it, as error bars want it."""
    return np.array([rows.value - rows.low, rows.high - rows.value])


def points(found: Mapping[Any, Estimate | None], *names: str) -> pd.DataFrame:
    """A row for `intervals` of each number that there is, by what it is of. names: of the columns that say so."""
    rows = [(*which, *astuple(one.interval)) for which, one in found.items() if one]
    return pd.DataFrame(rows, columns=[*names, "value", "low", "high"])


def legend_above(axes, columns: int = 2) -> None:
    """Put the legend above the axes, where no point can lie."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, borderaxespad=0)


def plain_ticks(axis) -> None:
    """Put ticks of a log axis at 1, 2 and 5, as plain numbers."""
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(ticker.StrMethodFormatter("{x:,.12g}"))
    axis.set_minor_formatter(ticker.NullFormatter())
