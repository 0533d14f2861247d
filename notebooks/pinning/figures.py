"""What the chapter "Where threads run" shows: tables and a figure."""

import pandas as pd

from ffilab.judge.estimates import Interval, Location, Measurement
from ffilab.judge.processes import chosen
from ffilab.page import draw
from notebooks.pinning import numbers, results
from notebooks.pinning.experiment import (
    AGAIN,
    ALONE,
    APART,
    FREE,
    NATIVE,
    ONE_CORE,
    PAIR,
    PYTHON,
)

NO_P99 = "too few ticks in a process"
SHOWN = (FREE, AGAIN, APART, ONE_CORE)


def interval(found: Measurement | None) -> Interval | None:
    return found and found.interval


def steadiness_table(steady: pd.DataFrame) -> pd.DataFrame:
    """How far one thread's turns spread in a process, by placement, and not pinned over pinned."""
    rows = [
        {
            "placement": "pinned" if placement == APART else placement,
            "spread of turns": draw.words(
                Location.of(logs.to_numpy(), log=True).at().map(lambda share: 100 * share), "%"
            ),
            "over pinned": "1 (itself)"
            if placement == APART
            else draw.words(interval(results.steadier(steady, placement))),
            "n (processes)": len(logs),
        }
        for placement, logs in results.spreads(steady).items()
    ]
    return pd.DataFrame(rows)


def throughput_table(speeds: pd.DataFrame) -> pd.DataFrame:
    """Chunks a second of all threads together, over not pinned, and how often a thread moved."""
    cells = [(1, FREE), (1, APART)]
    cells += [
        (n, one) for n in sorted(set(speeds.threads.dropna()) - {1}) for one in results.with_added(speeds, *SHOWN)
    ]
    rows = []
    for label in PAIR:
        for work in (NATIVE, PYTHON):
            for threads, placement in cells:
                which = {"interpreter": label, "work": work, "threads": threads}
                n = len(results.column(speeds, "per_s", placement=placement, **which))
                ratio = interval(results.over(speeds, "per_s", placement, FREE, **which))
                rows.append(
                    {
                        "CPython": label,
                        "work": work,
                        "threads": threads,
                        "placement": "pinned" if (threads, placement) == (1, APART) else placement,
                        "pieces of work/s": draw.words(results.centre(speeds, "per_s", placement=placement, **which)),
                        "over not pinned": "1 (itself)" if placement == FREE else draw.words(ratio),
                        "moves/s of a thread": draw.words(results.moves(speeds, placement, **which)),
                        "n (processes)": n,
                    }
                )
    return pd.DataFrame([row for row in rows if row["n (processes)"]])


def p99(lateness: pd.DataFrame, **which) -> str:
    """In words; only if every process has one, as those with ticks enough are the quick ones."""
    values = results.column(lateness, "p99", **which)
    if values.isna().any():
        return NO_P99
    return draw.words(results.centre(lateness, "p99", **which), "µs")


def latency_table(lateness: pd.DataFrame) -> pd.DataFrame:
    """How late the answers are, and what the thread beside them gets done."""
    rows = []
    for label in PAIR:
        for work in (NATIVE, PYTHON):
            for placement in results.with_added(lateness, ALONE, *SHOWN):
                which = {"interpreter": label, "work": work, "placement": placement}
                ticks = results.column(lateness, "ticks", **which)
                if len(ticks):
                    rows.append(
                        {
                            "CPython": label,
                            "beside": work,
                            "placement": placement,
                            "p50, µs": draw.words(results.centre(lateness, "p50", **which), "µs"),
                            "p99, µs": p99(lateness, **which),
                            "geometric mean, µs": draw.words(results.centre(lateness, "mean", **which), "µs"),
                            "pieces of work/s beside": draw.words(results.centre(lateness, "work_per_s", **which))
                            if placement != ALONE
                            else "none",
                            "n (processes × answers)": f"{len(ticks)} × {ticks.min():.0f}"
                            + f" to {ticks.max():.0f}" * bool(ticks.max() > ticks.min()),
                        }
                    )
    return pd.DataFrame(rows)


def race_table(races: pd.DataFrame) -> pd.DataFrame:
    """Updates lost by placement."""
    rows = []
    for label in PAIR:
        for placement in results.with_added(races, FREE, APART, ONE_CORE):
            lost = results.lost(races, label, placement)
            found = results.losing(races, label, placement)
            if lost:
                rows.append(
                    {
                        "CPython": label,
                        "placement": placement,
                        "updates lost, %": draw.text(lost, "%", 100),
                        "processes that lose any": f"{found.estimate.events} of {found.estimate.trials}",
                        "their share": draw.text(found.interval),
                    }
                )
    return pd.DataFrame(rows)


def summary(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """Both together, for those who have to choose: one row for each interpreter, kind of work and placement."""
    rows = []
    for label in PAIR:
        for work in (NATIVE, PYTHON):
            for placement in results.with_added(speeds, FREE, APART, ONE_CORE):
                which = {"interpreter": label, "work": work}
                ratio = interval(results.over(speeds, "per_s", placement, FREE, threads=2, **which))
                n = len(results.column(speeds, "per_s", placement=placement, threads=2, **which))
                late = {**which, "placement": placement}
                answered = len(results.column(lateness, "p50", **late))
                rows.append(
                    {
                        "CPython": label,
                        "work": work,
                        "pinning": placement,
                        "throughput of two threads, over not pinned": "1 (itself)"
                        if placement == FREE
                        else draw.words(ratio),
                        "p50 of an answer beside it, µs": draw.words(results.centre(lateness, "p50", **late), "µs"),
                        "p99 of an answer beside it, µs": p99(lateness, **late),
                        "n (processes)": f"{n} and {answered}",
                    }
                )
    return pd.DataFrame([row for row in rows if row["n (processes)"] != "0 and 0"])


def effects(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: gains of both placements over not pinned; above 1 is better."""
    rows = []
    for label in PAIR:
        for work in (NATIVE, PYTHON):
            which = {"interpreter": label, "work": work}
            for placement in results.with_added(speeds, APART, ONE_CORE):
                found = {
                    "throughput": results.over(speeds, "per_s", placement, FREE, threads=2, **which),
                    "median answer": results.over(lateness, "p50", FREE, placement, **which),
                }
                rows += [
                    {
                        "case": f"{what}, {work}, {label}",
                        "placement": placement,
                        "value": one.interval.value,
                        "low": one.interval.low,
                        "high": one.interval.high,
                    }
                    for what, one in found.items()
                    if one and one.interval.is_known
                ]
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
    axes.set_xlabel("gain over not pinned (ratio; to the right is better)")


def copies_table(speeds: pd.DataFrame, lateness: pd.DataFrame) -> pd.DataFrame:
    """The A/A tests."""
    return pd.DataFrame(
        [
            {
                "CPython": label,
                "work": work,
                "of": {"per_s": "throughput", "p99": "p99"}[column],
                "same / same": draw.words(one),
                "n (processes)": one.estimate.n,
                "smallest effect to be found": f"{one.mde:.1%}",
            }
            for column, label, work, one in numbers.copies(speeds, lateness)
            if one
        ]
    )


def cores_table(speeds: pd.DataFrame) -> pd.DataFrame:
    """On which cores the threads were seen, over all processes."""
    found = chosen(speeds[speeds.ended == "ok"], threads=2)
    return pd.DataFrame(
        [
            {"placement": placement, "cores seen": ", ".join(map(str, sorted(set().union(*map(set, part.cores)))))}
            for placement, part in found.groupby("placement", sort=False)
        ]
    )
