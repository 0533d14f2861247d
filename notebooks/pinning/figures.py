"""What the chapter "Where threads run" shows: tables and a figure."""

import itertools
from functools import partial

import pandas as pd

from ffilab.judge.estimates import Estimate, Interval, Location
from ffilab.judge.processes import chosen
from ffilab.page import draw
from notebooks.pinning import numbers
from notebooks.pinning.experiment import AGAIN, ALONE, APART, FREE, NATIVE, ONE_CORE, PAIR, PYTHON

ITSELF = "1 (itself)"
NO_P99 = "too few ticks in a process"
# The second copies, which are there for the A/A tests.
COPIES = (AGAIN, numbers.COPY_SHARED)
SHOWN = (FREE, numbers.SHARED, *COPIES, APART, ONE_CORE)
CASES = list(itertools.product(PAIR, (NATIVE, PYTHON)))
BY = {"interpreter": PAIR, "work": (NATIVE, PYTHON)}
N = "n (processes)"


def steadiness_table(steady: pd.DataFrame) -> pd.DataFrame:
    """How far one thread's turns spread in a process, by placement, and not pinned over pinned."""
    return pd.DataFrame(
        {
            "placement": "pinned" if placement == APART else placement,
            "spread of turns": draw.Quantity(Location.of(logs.to_numpy(), log=True), "%", 100),
            "over pinned": ITSELF if placement == APART else draw.Quantity(numbers.steadier(steady, placement)),
            N: len(logs),
        }
        for placement, logs in numbers.spreads(steady).items()
    )


def over_apart(speeds: pd.DataFrame, placement: str, **which) -> Estimate | str | None:
    """Throughput over that of threads with a core each."""
    return ITSELF if placement == APART else numbers.over(speeds, "per_s", placement, APART, **which)


def throughput_table(speeds: pd.DataFrame) -> pd.DataFrame:
    """Pieces a second of all threads together, over a core each, and how often a thread moved."""
    speeds = numbers.by_class(speeds)
    columns = {
        "pieces of work/s": partial(numbers.centre, name="per_s"),
        "over a core each": over_apart,
        "moves/s of a thread": numbers.moves,
    }
    found = draw.summary(chosen(speeds, ended="ok"), {**BY, "threads": (), "placement": SHOWN}, columns, N)
    # One thread has no other to keep a core from.
    found.placement = found.placement.mask((found.threads == 1) & (found.placement == APART), "pinned")
    return found


def late(lateness: pd.DataFrame, name: str, **which) -> draw.Quantity | str:
    """µs; p99 only if every process has one, as those with ticks enough are the quick ones."""
    if name == "p99" and numbers.column(lateness, name, **which).isna().any():
        return NO_P99
    return draw.Quantity(numbers.centre(lateness, name, **which), "µs")


def beside(lateness: pd.DataFrame, placement: str, **which) -> Interval | str | None:
    """What the thread beside an answer gets done."""
    return "none" if placement == ALONE else numbers.centre(lateness, "work_per_s", placement=placement, **which)


def latency_table(lateness: pd.DataFrame) -> pd.DataFrame:
    """How late the answers are, and what the thread beside them gets done."""
    columns = {
        "p50, µs": partial(late, name="p50"),
        "p99, µs": partial(late, name="p99"),
        "geometric mean, µs": partial(late, name="mean"),
        "pieces of work/s beside": beside,
        "n (processes × answers)": lambda runs, **which: draw.of_each(numbers.column(runs, "ticks", **which)),
    }
    found = draw.summary(chosen(lateness, ended="ok"), {**BY, "placement": (ALONE, *SHOWN)}, columns, "")
    return found.rename(columns={"work": "beside"})


def race_table(races: pd.DataFrame) -> pd.DataFrame:
    """Updates lost by placement."""

    def row(races: pd.DataFrame, **which) -> dict:
        losing, lost = numbers.losing(races, **which), draw.Quantity(numbers.lost(races, **which), "%", 100)
        return {"updates lost, %": lost, "processes that lose any": str(losing), "their share": losing}

    return draw.summary(chosen(races, ended="ok"), {"interpreter": PAIR, "placement": (FREE, APART, ONE_CORE)}, row, "")


def summary(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """Both together, for those who have to choose: one row for each interpreter, kind of work and placement."""

    def row(_, **which) -> dict:
        n, answered = (len(chosen(frame, **which)) for frame in (pairs, lateness))
        return {
            "throughput of two threads, over a core each": over_apart(pairs, **which),
            "p50 of an answer beside it, µs": late(lateness, "p50", **which),
            "p99 of an answer beside it, µs": late(lateness, "p99", **which),
            N: f"{n} and {answered}",
        }

    pairs, lateness = chosen(numbers.by_class(speeds), ended="ok", threads=2), chosen(lateness, ended="ok")
    placements = numbers.with_added(speeds, FREE, numbers.SHARED, APART, ONE_CORE)
    both = chosen(pd.concat([pairs, lateness]), placement=placements)
    return draw.summary(both, {**BY, "placement": placements}, row, "").rename(columns={"placement": "pinning"})


def effects(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: gains of both placements over not pinned; above 1 is better. Threads that shared a core
    when nobody pinned them have a row of their own."""
    gains, speeds = {}, numbers.by_class(speeds)
    for (label, work), placement in itertools.product(CASES, numbers.with_added(speeds, APART, ONE_CORE)):
        which = {"interpreter": label, "work": work}
        for free, more in ((FREE, ""), (numbers.SHARED, ", one core shared")):
            throughput = numbers.over(speeds, "per_s", placement, free, threads=2, **which)
            gains[f"throughput, {work}, {label}{more}", placement] = throughput
        gains[f"median answer, {work}, {label}", placement] = numbers.over(lateness, "p50", FREE, placement, **which)
    return draw.points(gains, "case", "placement").dropna()


def plot_effects(figure, found: pd.DataFrame) -> None:
    said = "times as good as left alone (to the right is better)"
    draw.intervals(figure, found, "case", "placement", xscale="log", line=1, xlabel=said)


def copies_table(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """The A/A tests."""
    return pd.DataFrame(
        {
            "CPython": label,
            "work": work,
            "of": {"per_s": "throughput", "p99": "p99"}[column],
            "same / same": draw.Quantity(one),
            N: one.n,
            "smallest effect to be found": draw.percent(one.mde),
        }
        for column, label, work, one in numbers.copies(speeds, lateness)
        if one
    )
