"""What the records of the chapter "Arrays in and out" say, its numbers by name: prices without the loop, and what
became of each array. The rules: claims.toml, sentences.toml."""

from collections.abc import Callable, Collection
from functools import partial

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Counted, Estimate, Interval, Location, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record
from notebooks.arrays import experiment as e

NOT_HERE, DIED = "not here", "died"
# What has a price: arms.
PRICED = {
    **{f"{tool}, in": f"{tool}, in, {e.SMALL}" for tool in e.TOOLS},
    **{f"{tool}, large, in": f"{tool}, in, {e.LARGE}" for tool in e.CONVERTS},
    **{f"{tool} {e.SINGLE}, in": f"{tool} {e.SINGLE}, in, {e.LARGE}" for tool in e.CONVERTS},
    **{f"{way}, out": f"{way}, out" for way in e.WAYS_OUT},
}
# What is compared with what: two arms.
COMPARED = {
    **{f"{tool}, 1 MiB / 1 KiB": (f"{tool}, in, {e.LARGE}", f"{tool}, in, {e.SMALL}") for tool in e.TOOLS},
    "nanobind, array / memoryview": (f"nanobind, in, {e.SMALL}", f"{e.BUFFER}, in, {e.SMALL}"),
    "array in, pybind11 / nanobind": (f"pybind11, in, {e.SMALL}", f"nanobind, in, {e.SMALL}"),
}
number = Declarations()


@number("{arm}, ns on {label}", timed="ways", over={"label": e.PAIR, "arm": PRICED})
def price(record: Record, label: str, arm: str) -> Interval | str:
    """ns of a call without the loop, or why it is not known."""
    why = record.lacking((label, arm)).removeprefix("ImportError: ")
    return why or statistics.compare(record, (label, arm), (label, EMPTY)).difference


@number("{arms} on {label}", timed="ways", over={"label": e.PAIR, "arms": COMPARED})
def over(record: Record, label: str, arms: tuple[str, str]) -> Interval | str:
    """Time of one arm over that of another, both without the loop."""
    one, other = ((label, arm) for arm in arms)
    return record.lacking(one, other).removeprefix("ImportError: ") or statistics.compare(record, one, other).net_ratio


def fate_grid(rows: pd.DataFrame) -> pd.DataFrame:
    """What became of each array (rows) through each tool (columns), on both builds and in all processes: one fate, or
    several. A process that was killed does not say by which array."""
    well = chosen(rows, ended="ok")
    found = well.groupby(["given", "tool"]).fate.agg(lambda fates: " or ".join(sorted(set(fates))))
    tools = [tool for tool in e.CHECKED if tool in set(rows.tool)] or sorted(set(rows.tool))
    grid = found.unstack("tool").reindex(index=list(dict.fromkeys(well.given)), columns=tools).astype(object)
    for tool in set(rows.tool[rows.ended.str.startswith("killed")]):
        grid[tool] = [DIED if pd.isna(fate) else f"{fate} or {DIED}" for fate in grid[tool]]
    return grid.fillna(NOT_HERE)


def by_fate(rows: pd.DataFrame, fate: str) -> dict[str, list[str]]:
    """Tools by the array that met this fate, in any process."""
    met = chosen(rows, ended="ok", fate=fate)
    tools = {given: sorted(set(met.tool[met.given == given])) for given in dict.fromkeys(rows.given.dropna())}
    return {given: names for given, names in tools.items() if names}


def by_tool(rows: pd.DataFrame, fate: str) -> dict[str, list[str]]:
    """Kinds of arrays that met this fate, by tool."""
    met = chosen(rows, ended="ok", fate=fate)
    return {tool: list(dict.fromkeys(part.given)) for tool, part in met.groupby("tool", sort=True)}


def not_always(owners: pd.DataFrame, *columns: str) -> list[str]:
    """Ways out of which one of these properties did not hold in some process."""
    well = chosen(owners, ended="ok")
    return sorted(set(well.way[~well[list(columns)].astype(bool).all(axis=1)]))


def faulty(owners: pd.DataFrame) -> list[str]:
    """Ways out whose memory is not freed, or freed under a view."""
    return not_always(owners, "freed", "outlives")


@number("tools that read wrongly", frame="fates", find=partial(by_tool, fate=e.WRONG))
@number("tools that copy", frame="fates", find=partial(by_tool, fate=e.COPIED))
@number("ways in", frame="fates", find=lambda rows: set(rows.tool))
@number("ways out that lose memory", frame="ownership", find=faulty)
@number("tools that keep what came in", frame="ownership", find=lambda owners: not_always(owners, "lets go"))
def count(rows: pd.DataFrame, find: Callable[[pd.DataFrame], Collection]) -> Counted | str:
    """How many are found in the processes that brought a result."""
    well = chosen(rows, ended="ok")
    return Counted(len(find(well))) if len(well) else "no process brought a result"


@number("{tool}, mixtures on {FREE_THREADED}", frame="a writer beside", over={"tool": list(e.TOOLS)})
def mixtures(rows: pd.DataFrame, tool: str) -> Estimate | str:
    """Processes in which a tool read some of the old and some of the new."""
    well = chosen(rows, ended="ok", tool=tool)
    if not len(well):
        return f"{tool} is {NOT_HERE}"
    return Share(int((well.mixed.astype(int) > 0).sum()), len(well))


@number(
    "roots of {elements} elements on {label}: two threads / one",
    frame="roots by two",
    two_cores=True,
    over={"label": e.PAIR, "elements": e.ELEMENTS},
)
def two_over_one(rows: pd.DataFrame, label: str, elements: int) -> Location:
    """Work of two threads over that of one, over processes."""
    part = chosen(rows, interpreter=label, elements=elements)
    return Location.of(np.log((part.together / part.alone).to_numpy(float)), log=True)
