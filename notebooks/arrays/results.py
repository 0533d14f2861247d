"""What the records of the chapter "Arrays in and out" say: prices without the loop, and what became of each array."""

import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Estimate, Interval, Share
from ffilab.judge.processes import chosen
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record
from notebooks.arrays.experiment import CHECKED

NOT_HERE, DIED = "not here", "died"


def missing(record: Record, label: str, arm: str) -> str:
    """Why an arm was not timed; empty if it was."""
    if record.has(label, arm):
        return ""
    return record.missing.get((label, arm), f"{arm} was not measured on {label}").removeprefix("ImportError: ")


def price(record: Record, label: str, arm: str) -> Interval | str:
    """ns of a call without the loop, or why it is not known."""
    return missing(record, label, arm) or statistics.compare(record, (label, arm), (label, EMPTY)).difference


def over(record: Record, label: str, one: str, other: str) -> Interval | str:
    """Time of one arm over that of another, both without the loop."""
    return (
        missing(record, label, one)
        or missing(record, label, other)
        or statistics.compare(record, (label, one), (label, other)).net_ratio
    )


def fate_grid(rows: pd.DataFrame) -> pd.DataFrame:
    """What became of each array (rows) through each tool (columns), on both builds and in all processes: one fate, or
    several. A process that was killed does not say by which array."""
    well = chosen(rows, ended="ok")
    found = well.groupby(["given", "tool"]).fate.agg(lambda fates: " or ".join(sorted(set(fates))))
    tools = [tool for tool in CHECKED if tool in set(rows.tool)] or sorted(set(rows.tool))
    grid = found.unstack("tool").reindex(index=list(dict.fromkeys(well.given)), columns=tools).astype(object)
    for tool in set(rows.tool[rows.ended.str.startswith("killed")]):
        grid[tool] = [DIED if pd.isna(fate) else f"{fate} or {DIED}" for fate in grid[tool]]
    return grid.fillna(NOT_HERE)


def by_fate(rows: pd.DataFrame, fate: str) -> dict[str, list[str]]:
    """Tools by the array that met this fate, in any process."""
    met = chosen(rows, ended="ok", fate=fate)
    tools = {given: sorted(set(met.tool[met.given == given])) for given in dict.fromkeys(rows.given.dropna())}
    return {given: found for given, found in tools.items() if found}


def by_tool(rows: pd.DataFrame, fate: str) -> dict[str, list[str]]:
    """Kinds of arrays that met this fate, by tool."""
    met = chosen(rows, ended="ok", fate=fate)
    return {tool: list(dict.fromkeys(part.given)) for tool, part in met.groupby("tool", sort=True)}


def not_always(owners: pd.DataFrame, column: str) -> list[str]:
    """Ways out of which a property did not hold in some process."""
    well = chosen(owners, ended="ok")
    return sorted(set(well.way[~well[column].astype(bool)]))


def mixtures(rows: pd.DataFrame, tool: str) -> Estimate | str:
    """Processes in which a tool read some of the old and some of the new."""
    well = chosen(rows, ended="ok", tool=tool)
    if not len(well):
        return f"{tool} is {NOT_HERE}"
    return Share(int((well.mixed.astype(int) > 0).sum()), len(well))
