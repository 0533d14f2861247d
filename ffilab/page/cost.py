"""The page of the study of what a wheel costs: its table, a figure, and what it says of nanobind's benchmark."""

import statistics
from functools import partial
from pathlib import Path

import pandas as pd

from ffilab.judge.estimates import Interval
from ffilab.judge.wording import listed, text
from ffilab.page import draw, files, plots
from ffilab.page.evidence import STUDY
from ffilab.page.player import digits
from ffilab.page.templates import filled

PANELS = {"s, clean": "seconds of a processor, clean", "KiB, stripped": "KiB, stripped"}


def spread(found: list[float]) -> str:
    """Median and range, with two digits; the median alone, where all values look alike."""
    middle, low, high = (digits(one) for one in (statistics.median(found), min(found), max(found)))
    return middle if low == high else f"{middle} [{low}, {high}]"


def plot(figure, frame: pd.DataFrame) -> None:
    """Draw seconds and KiB over the number of functions, a line for each tool."""
    panels, sizes = figure.subplots(1, 2, sharex=True), sorted(set(frame.functions))
    for axes, (column, title) in zip(panels, PANELS.items()):
        for place, (tool, part) in enumerate(sorted(frame.groupby("tool"), key=lambda one: one[0].casefold())):
            middle = part.groupby("functions")[column].median()
            look = {"marker": plots.MARKERS[place], "color": plots.PALETTE[place], "label": tool}
            axes.plot(middle.index, middle, **look)
        axes.set(xscale="log", yscale="log", xlabel="functions", title=title)
        axes.set_xticks(sizes, sizes)
        axes.minorticks_off()
        plots.plain_ticks(axes.yaxis)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False, fontsize=9
    )


def page(found: dict | list, tree: Path) -> str:
    """The answer, the figure, and the tables. found: what the study keeps; empty if it was not run."""
    if not found:
        return filled("wheel_cost.md", most=0, study=STUDY)
    most, ways, by_speed = str(found["most"]), found["needed"], found["tools"]["clean"]

    def middle(tool: str, name: str) -> str:
        return digits(statistics.median(found["values"][tool][most][name]))

    frame = pd.DataFrame(found["drawn"], columns=["tool", "functions", *PANELS])
    caption = "What bound functions of six arguments cost, by their number"
    alt = f"{most} functions, clean: " + "; ".join(f"{tool} {middle(tool, 'clean')} s" for tool in by_speed)
    counts = sorted({len(way["chosen"]) for way in ways})
    return filled(
        "wheel_cost.md",
        **found,
        study=STUDY,
        forms_of=max(found["forms"].values(), default=0),
        middle=middle,
        spread=spread,
        figure=draw.framed(partial(plot, frame=frame), caption, alt, (7.2, 3.6)),
        csv=files.csv_link(frame, "figure", tree),
        by_wheels=[(count, [way for way in ways if len(way["chosen"]) == count]) for count in counts],
        interval=lambda bounds: text(Interval(*bounds)),
        listed=listed,
    )
