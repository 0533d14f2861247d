"""What the records of the chapter "Where threads run" say: ratios of placements within each process."""

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Estimate, Interval, Location, Share
from ffilab.judge.processes import chosen, location, ratio
from notebooks.pinning.experiment import AGAIN, ALONE, APART, FREE, ONE_CORE


def with_added(frame: pd.DataFrame, *known: str) -> list[str]:
    """These placements, and those that a reader has added."""
    return [*known, *sorted(set(frame.placement.dropna()) - {FREE, AGAIN, APART, ONE_CORE, ALONE})]


def column(frame: pd.DataFrame, name: str, **which) -> pd.Series:
    """A column of the processes that brought a result, by process."""
    found = chosen(frame[frame.ended == "ok"], **which)
    if name not in found or not len(found):
        return pd.Series(dtype=float)
    return pd.to_numeric(found.set_index("process")[name])


def over(frame: pd.DataFrame, name: str, one: str, other: str, **which) -> Estimate | None:
    """A column at one placement over that at another, process by process; None if one of them is missing."""
    pair = _pairs(frame, name, one, other, **which)
    return ratio(pair.one.to_numpy(), pair.other.to_numpy()) if len(pair) else None


def _pairs(frame: pd.DataFrame, name: str, one: str, other: str, **which) -> pd.DataFrame:
    sides = {"one": column(frame, name, placement=one, **which), "other": column(frame, name, placement=other, **which)}
    return pd.DataFrame(sides).dropna()


def centre(frame: pd.DataFrame, name: str, **which) -> Interval | None:
    """Geometric mean over processes with its interval; None if nothing is there, or not everywhere above 0."""
    values = column(frame, name, **which).dropna().to_numpy()
    return Location.of(np.log(values), log=True).at() if len(values) and values.min() > 0 else None


def moves(speeds: pd.DataFrame, placement: str, **which) -> Interval | None:
    """Moves a second of a thread, over processes; None if none is there. What lies below 0 is no part of the interval
    of a count."""
    values = column(speeds, "moves", placement=placement, **({"threads": 2} | which)).dropna().to_numpy()
    return location(values).interval.map(lambda bound: max(0.0, bound)) if len(values) else None


def spreads(runs: pd.DataFrame) -> pd.DataFrame:
    """Logarithms of the spread of what one thread measures over its turns, which is the mean absolute deviation of
    logarithms from their median: a row for each process, a column for each placement."""

    def log_spread(rates: list[float]) -> float:
        logs = np.log(rates)
        return float(np.log(np.abs(logs - np.median(logs)).mean()))

    well = runs[runs.ended == "ok"].set_index("process")
    return pd.DataFrame({placement: part.rates.map(log_spread) for placement, part in well.groupby("placement")})


def steadier(runs: pd.DataFrame, placement: str = FREE) -> Estimate | None:
    """The spread at a placement over that where it is pinned, process by process; None if it was not pinned."""
    if APART not in (logs := spreads(runs)):
        return None
    return Location.of((logs[placement] - logs[APART]).to_numpy(), log=True)


def lost_more(races: pd.DataFrame, label: str) -> Estimate | None:
    """Expected share of updates lost with a core for each thread, less that on one core, process by process."""
    pair = _pairs(races, "lost", APART, ONE_CORE, interpreter=label)
    return Location.mean((pair.one - pair.other).to_numpy()) if len(pair) else None


def lost(races: pd.DataFrame, interpreter: str, placement: str) -> Interval | None:
    """Expected share of updates that a process loses; None if nothing is there."""
    values = column(races, "lost", interpreter=interpreter, placement=placement).dropna().to_numpy()
    return Location.mean(values).at() if len(values) else None


def losing(races: pd.DataFrame, interpreter: str, placement: str) -> Estimate | None:
    """Processes that lose any update."""
    events = column(races, "any", interpreter=interpreter, placement=placement)
    return Share(int(events.sum()), len(events)) if len(events) else None
