"""What the records of the chapter "Arenas" say: growth of memory by process, and its differences."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from ffilab.judge import estimates
from ffilab.judge.estimates import Estimate, Interval, Location
from ffilab.judge.processes import chosen, difference, interval_of, ratio
from ffilab.run.errors import UserError
from notebooks.arenas import experiment as e

# Conditions of the talk's experiment that numbers speak of.
AS_RUN, NONE, AGAIN = "the talk's program", "no native threads", "the talk's program, again"
HUGE, HUGE_NONE = "huge pages for all", "huge pages for all, no native threads"
NO_HUGE, ONE_ARENA, ASKED = "huge pages off", "one arena", "the blocks asked for"
MEET, RELEASED, EQUAL = (
    "touched, a call's threads at once",
    "the same, GIL released",
    "one Python thread, 400 native at once",
)
WIDE_MEET = f"{MEET}, 64 arenas allowed"
# The free-threaded build with its GIL on: no public source of the talk keeps it off, so this is as run.
ON = ", GIL on"
KEPT, HUGE_KEPT, HUGE_NONE_KEPT, MEET_KEPT = (name + ON for name in (AS_RUN, HUGE, HUGE_NONE, MEET))
# How huge pages go with the number of Python threads.
FEWER = {number: f"{HUGE_NONE}, Python threads: {number}" for number in (1, 2, 4)} | {8: HUGE_NONE}
# By scenario: the value of a process that decides it, in whatever unit, less being better; and a value shown beside it.
DECIDES = {
    "many short-lived threads": "grown",
    "long-lived server, RSS-sensitive": "idle",
    "latency-critical, multi-threaded": "p99.9",
    "short-lived processes": "ms",
    "tight memory limit": "peak",
    "high thread count": "grown",
    "fork-heavy": "private",
}
BESIDE = {"latency-critical, multi-threaded": "p50"}

# Two equal conditions that differ by more than this, in MiB, are an alarm: half of the smallest margin in claims.toml.
ALARM = 0.25

# What the talk's terminal shows: RSS grown in MiB, and its amplification. Data to compare with.
TERMINAL = {"3.13.5": (0.56, 1.09, 16.57, 32.38), "3.14.0rc1": (0.59, 1.18, 32.60, 62.28)}
# An interpreter and a condition.
Which = tuple[str, str]

# MiB and arenas that a process has more of than before.
GROWN = ["rss", "pss", "huge", "held", "in_use", "arenas"]


def talk(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment, one row for each process: GROWN, and what `talk` returns beside."""
    beside = ["vmrss", "inside", "in_objects", "python_at_once", "trimmed.rss", "at_once"]
    return runs.reindex(columns=["interpreter", "condition", "round", *GROWN, *beside])


def grid(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment over Python and native threads, one row for each process.

    amplification: growth of the process over the sum of what its calls saw grow, 0 where that is not above 0, as the
    talk has it.
    """
    factors = ["build", "together", "python_threads", "native_threads", "round"]
    runs = runs.reindex(columns=[*factors, *GROWN, "vmrss", "inside", "python_at_once"])
    factor = (pd.to_numeric(runs.vmrss) / pd.to_numeric(runs.inside)).where(pd.to_numeric(runs.inside) > 0, 0.0)
    return runs.assign(amplification=factor)


def less(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Difference process by process, as far as both go."""
    n = min(len(left), len(right))
    return left[:n] - right[:n]


def of_condition(runs: pd.DataFrame, label: str, condition: str, column: str) -> np.ndarray:
    """A column of all processes of one interpreter under one condition."""
    return chosen(runs, interpreter=label, condition=condition)[column].to_numpy(dtype=float)


def against(runs: pd.DataFrame, compare: Callable, column: str, one: Which, other: Which) -> Estimate | None:
    """A column of one interpreter under a condition less that of another, or over it, process by process."""
    return compare(*(of_condition(runs, *which, column) for which in (one, other)))


def named(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's processes with the state of the GIL in the column `build`, and not in `condition`.

    What the talk's sources amount to is called as run.
    """
    kept = runs.condition.str.endswith(ON)
    on = kept | ~runs.interpreter.str.endswith("t")
    return runs.assign(
        condition=runs.condition.str.removesuffix(ON), build=runs.interpreter + np.where(on, ON, ", GIL off")
    )


def middle(values: pd.Series | list) -> str:
    """What is counted: its median, with the smallest and the largest where they differ."""
    least, most = min(values), max(values)
    return f"{np.median(values):.3g}" + (f" ({least:.3g} to {most:.3g})" if most > least else "")


def positive(frame: pd.DataFrame, column: str) -> Interval | None:
    """Centre of what cannot fall below 0 and differs many times over between processes: the interval is that of the
    logarithms, so it ends above 0. Where a value is not above 0, the plain one."""
    values = pd.to_numeric(frame[column]).dropna().to_numpy()
    if not len(values) or values.min() <= 0:
        return interval_of(frame, column)
    return Location.of(np.log(values), log=True).interval


def proved(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs, if `malloc` of each that ended well was that of the allocator asked for. Raises UserError if not."""
    for run in runs[runs.ended == "ok"].itertuples():
        asked = run.allocator if run.allocator == "glibc" else f"lib{run.allocator}.so"
        if run.mapped != asked:
            raise UserError(f"{asked} was to be preloaded, and process {run.process} ran on {run.mapped}.")
    return runs


def names(runs: pd.DataFrame, column: str, known: Iterable[str]) -> list[str]:
    """The names of the chapter's own, in its order, and behind them those that a reader has added."""
    return [*known, *sorted(set(runs[column].dropna()) - set(known))]


def huge_pages(runs: pd.DataFrame) -> bool:
    """Did the system give huge pages to any process that asked for them?"""
    return bool((chosen(runs, condition=HUGE).huge > 0).any())


def native_part(cells: pd.DataFrame, build: str, python: int, native: int) -> np.ndarray:
    """MiB of RSS in a cell of the grid, less what as many Python threads take without native ones, all of them there at
    once."""
    which = {"build": build, "python_threads": python}
    cells = cells[cells.together == True]  # noqa: E712
    return less(*(chosen(cells, **which, native_threads=number).rss.to_numpy(dtype=float) for number in (native, 0)))


# The smallest and the largest cell of the matrix, and the factor of the products of both numbers.
SMALLEST, LARGEST = e.CELLS[0], e.CELLS[-1]
PRODUCT = LARGEST[0] * LARGEST[1] // (SMALLEST[0] * SMALLEST[1])


def interaction(cells: pd.DataFrame, build: str) -> Estimate | None:
    """MiB that both numbers add together beyond what each adds alone, from the smallest cell to the largest."""
    (low, few), (high, many) = SMALLEST, LARGEST
    wider, narrow = (
        less(*(native_part(cells, build, python, native) for python in (high, low))) for native in (many, few)
    )
    return difference(wider, narrow)


def in_half_proportion(cells: pd.DataFrame, build: str) -> Estimate | None:
    """MiB by the native threads in the largest cell, less what there would be if growth followed half of the
    product."""
    half = PRODUCT / 2
    small, large = (Location.of(native_part(cells, build, *cell)) for cell in (SMALLEST, LARGEST))
    if not min(small.n, large.n):
        return None
    expected = replace(small, centre=half * small.centre, error=half * small.error)
    return estimates.difference(large, expected)


def amplified(cells: pd.DataFrame, build: str) -> Estimate | None:
    """What the talk's matrix draws: in the largest cell over the smallest, as run."""
    cells = chosen(cells[cells.together == False], build=build)  # noqa: E712
    both = (chosen(cells, python_threads=python, native_threads=native) for python, native in (LARGEST, SMALLEST))
    return ratio(*(cell.amplification.to_numpy() for cell in both))


def twins(runs: pd.DataFrame) -> dict[tuple[str, str], Estimate]:
    """The running A/A test, by interpreter and column: the talk's condition against a second copy of itself."""
    found = {
        (label, column): against(runs, difference, column, (label, AGAIN), (label, AS_RUN))
        for label in sorted(set(runs.interpreter))
        for column in ("rss", "held")
    }
    return {which: one for which, one in found.items() if one}


def grown(runs: pd.DataFrame) -> pd.DataFrame:
    """Rounds of allocation, one row for each process with its state after the last round, and MiB resident more than
    before: grown at the end, idle after some time without work, trimmed after malloc_trim, peak at the most. more_held,
    more_in_use, more_arenas: by glibc."""
    before, end, trimmed = (
        runs[runs.state == state].groupby("process").last() for state in ("before", "worked", "trimmed")
    )
    found = end.assign(grown=end.rss - before.rss, trimmed=trimmed.rss - before.rss, peak=end.peak - before.rss)
    if (runs.state == "idle").any():
        found["idle"] = runs[runs.state == "idle"].groupby("process").rss.last() - before.rss
    for column in ("held", "in_use", "arenas"):
        if column in runs:
            found[f"more_{column}"] = end[column] - before[column]
    return found.reset_index()


ROUNDS = e.AMOUNT["rounds"]
# MiB: what shows beside the process itself.
SHOWS = 1.0


def grew_later(runs: pd.DataFrame, way: str, keep: bool) -> tuple[int, int]:
    """Processes in which the second half of the rounds made more than SHOWS resident, and all."""
    worked = chosen(runs[(runs.state == "worked") & (runs.keep == keep)], way=way)
    half, end = (worked[worked.done == done].set_index("process").rss for done in (ROUNDS // 2, ROUNDS))
    return int((end - half > SHOWS).sum()), len(end)


def over_glibc(found: pd.DataFrame, scenario: str, arm: str, column: str = "value") -> Estimate | None:
    """An allocator over glibc's in what decides a scenario, or in another column."""
    return ratio(*(chosen(found, scenario=scenario, arm=one)[column].to_numpy() for one in (arm, "glibc")))


def scenarios(runs: pd.DataFrame) -> pd.DataFrame:
    """The value of each process that decides its scenario. Columns scenario, arm, value, beside (another one, or NaN),
    and end: MiB resident at the end, where memory is what is measured."""
    parts = []
    for name, value in DECIDES.items():
        part = chosen(runs, scenario=name)
        part = grown(part) if value in ("grown", "idle", "peak") else part
        part = part.assign(value=part[value], beside=part.get(BESIDE.get(name, "")), end=part.get("grown"))
        parts.append(part[["scenario", "arm", "value", "beside", "end"]].astype({"beside": float, "end": float}))
    return pd.concat(parts, ignore_index=True)
