"""What the chapter "Where threads run" shows: tables and a figure."""

import itertools

import pandas as pd

from ffilab.judge.estimates import Estimate, Location
from ffilab.page import draw
from notebooks.pinning import numbers, results
from notebooks.pinning.experiment import AGAIN, ALONE, APART, FREE, NATIVE, ONE_CORE, PAIR, PYTHON

NO_P99 = "too few ticks in a process"
SHOWN = (FREE, AGAIN, APART, ONE_CORE)
CASES = list(itertools.product(PAIR, (NATIVE, PYTHON)))


def over_free(ratio: Estimate | None, placement: str, itself: str = FREE) -> draw.Quantity | str:
    return "1 (itself)" if placement == itself else draw.Quantity(ratio)


def steadiness_table(steady: pd.DataFrame) -> pd.DataFrame:
    """How far one thread's turns spread in a process, by placement, and not pinned over pinned."""
    return pd.DataFrame(
        {
            "placement": "pinned" if placement == APART else placement,
            "spread of turns": draw.Quantity(Location.of(logs.to_numpy(), log=True).at(), "%", 100),
            "over pinned": over_free(results.steadier(steady, placement), placement, APART),
            "n (processes)": len(logs),
        }
        for placement, logs in results.spreads(steady).items()
    )


def throughput_table(speeds: pd.DataFrame) -> pd.DataFrame:
    """Pieces a second of all threads together, over not pinned, and how often a thread moved."""
    counts = sorted(set(speeds.threads.dropna()) - {1})
    cells = [(1, FREE), (1, APART), *itertools.product(counts, results.with_added(speeds, *SHOWN))]
    rows = []
    for (label, work), (threads, placement) in itertools.product(CASES, cells):
        which = {"interpreter": label, "work": work, "threads": threads}
        if not (n := len(results.column(speeds, "per_s", placement=placement, **which))):
            continue
        rows.append(
            {
                "CPython": label,
                "work": work,
                "threads": threads,
                "placement": "pinned" if (threads, placement) == (1, APART) else placement,
                "pieces of work/s": draw.Quantity(results.centre(speeds, "per_s", placement=placement, **which)),
                "over not pinned": over_free(results.over(speeds, "per_s", placement, FREE, **which), placement),
                "moves/s of a thread": draw.Quantity(results.moves(speeds, placement, **which)),
                "n (processes)": n,
            }
        )
    return pd.DataFrame(rows)


def p99(lateness: pd.DataFrame, **which) -> draw.Quantity | str:
    """In words; only if every process has one, as those with ticks enough are the quick ones."""
    if results.column(lateness, "p99", **which).isna().any():
        return NO_P99
    return draw.Quantity(results.centre(lateness, "p99", **which), "µs")


def latency_table(lateness: pd.DataFrame) -> pd.DataFrame:
    """How late the answers are, and what the thread beside them gets done."""
    rows = []
    for (label, work), placement in itertools.product(CASES, results.with_added(lateness, ALONE, *SHOWN)):
        which = {"interpreter": label, "work": work, "placement": placement}
        ticks = results.column(lateness, "ticks", **which)
        if not len(ticks):
            continue
        beside = results.centre(lateness, "work_per_s", **which)
        rows.append(
            {
                "CPython": label,
                "beside": work,
                "placement": placement,
                "p50, µs": draw.Quantity(results.centre(lateness, "p50", **which), "µs"),
                "p99, µs": p99(lateness, **which),
                "geometric mean, µs": draw.Quantity(results.centre(lateness, "mean", **which), "µs"),
                "pieces of work/s beside": "none" if placement == ALONE else draw.Quantity(beside),
                "n (processes × answers)": f"{len(ticks)} × {ticks.min():.0f}"
                + f" to {ticks.max():.0f}" * bool(ticks.max() > ticks.min()),
            }
        )
    return pd.DataFrame(rows)


def race_table(races: pd.DataFrame) -> pd.DataFrame:
    """Updates lost by placement."""
    rows = []
    for label, placement in itertools.product(PAIR, results.with_added(races, FREE, APART, ONE_CORE)):
        if lost := results.lost(races, label, placement):
            found = results.losing(races, label, placement)
            rows.append(
                {
                    "CPython": label,
                    "placement": placement,
                    "updates lost, %": draw.Quantity(lost, "%", 100),
                    "processes that lose any": f"{found.events} of {found.trials}",
                    "their share": draw.Quantity(found.interval),
                }
            )
    return pd.DataFrame(rows)


def summary(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """Both together, for those who have to choose: one row for each interpreter, kind of work and placement."""
    rows = []
    for (label, work), placement in itertools.product(CASES, results.with_added(speeds, FREE, APART, ONE_CORE)):
        which = {"interpreter": label, "work": work}
        late = {**which, "placement": placement}
        n = len(results.column(speeds, "per_s", placement=placement, threads=2, **which))
        answered = len(results.column(lateness, "p50", **late))
        if not n + answered:
            continue
        ratio = results.over(speeds, "per_s", placement, FREE, threads=2, **which)
        rows.append(
            {
                "CPython": label,
                "work": work,
                "pinning": placement,
                "throughput of two threads, over not pinned": over_free(ratio, placement),
                "p50 of an answer beside it, µs": draw.Quantity(results.centre(lateness, "p50", **late), "µs"),
                "p99 of an answer beside it, µs": p99(lateness, **late),
                "n (processes)": f"{n} and {answered}",
            }
        )
    return pd.DataFrame(rows)


def effects(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: gains of both placements over not pinned; above 1 is better."""
    rows = []
    for (label, work), placement in itertools.product(CASES, results.with_added(speeds, APART, ONE_CORE)):
        which = {"interpreter": label, "work": work}
        found = {
            "throughput": results.over(speeds, "per_s", placement, FREE, threads=2, **which),
            "median answer": results.over(lateness, "p50", FREE, placement, **which),
        }
        for what, one in found.items():
            if one and one.interval.is_known:
                rows.append({"case": f"{what}, {work}, {label}", "placement": placement, **vars(one.interval)})
    return pd.DataFrame(rows, columns=["case", "placement", "value", "low", "high"])


def plot_effects(figure, found: pd.DataFrame) -> None:
    axes = figure.subplots()
    if not len(found):
        axes.text(0.5, 0.5, "threads were not pinned here", ha="center")
        return
    draw.intervals(axes, found, "case", "placement")
    axes.axvline(1, linewidth=1, linestyle="--", color=draw.PALETTE[3])
    axes.set_xscale("log")
    draw.plain_ticks(axes.xaxis)
    axes.set_xlabel("times as good as left alone (to the right is better)")


def copies_table(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """The A/A tests."""
    return pd.DataFrame(
        {
            "CPython": label,
            "work": work,
            "of": {"per_s": "throughput", "p99": "p99"}[column],
            "same / same": draw.Quantity(one),
            "n (processes)": one.n,
            "smallest effect to be found": draw.percent(one.mde),
        }
        for column, label, work, one in numbers.copies(speeds, lateness)
        if one
    )
