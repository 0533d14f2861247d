"""What the records of the chapter "Arenas" say: growth of memory by process, and its differences."""

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Measurement
from ffilab.judge.processes import chosen, difference, interval_of, measured, ratio
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.arenas.experiment import (
    AGAIN,
    AS_RUN,
    HUGE,
    HUGE_NONE,
    NONE,
    PREFERRED,
    ROUNDS,
    SCENARIOS,
    SETTINGS,
    TALK,
    WORK,
)

# Two equal conditions that differ by more than this, in MiB, are an alarm: half of the smallest margin in claims.toml.
ALARM = 0.25
HUGE_PAGE_MIB = 2

# MiB and arenas that a process has more of than before.
GROWN = ["rss", "pss", "huge", "held", "in_use", "arenas"]


def talk(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's experiment, one row for each process: GROWN, trimmed.rss, at_once. Empty where there is no Rust."""
    return runs.reindex(columns=["interpreter", "condition", "round", *GROWN, "trimmed.rss", "at_once"])


def grid(runs: pd.DataFrame) -> pd.DataFrame:
    """The same over Python and native threads."""
    return runs.reindex(columns=["interpreter", "python_threads", "native_threads", "round", *GROWN])


def less(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Difference process by process, as far as both go."""
    n = min(len(left), len(right))
    return left[:n] - right[:n]


def grown_by_native_threads(runs: pd.DataFrame, label: str) -> np.ndarray:
    """MiB of RSS as the talk ran it, less what grows without any native thread."""
    return less(*(chosen(runs, interpreter=label, condition=condition).rss.to_numpy() for condition in (AS_RUN, NONE)))


def _interval(found: Measurement | None) -> Interval | None:
    return found.interval if found else None


def positive(frame: pd.DataFrame, column: str) -> Interval | None:
    """Centre of what cannot fall below 0 and differs many times over between processes: the interval is that of the logarithms,
    so it ends above 0. Where a value is not above 0, the plain one."""
    values = pd.to_numeric(frame[column]).dropna().to_numpy()
    if not len(values) or values.min() <= 0:
        return interval_of(frame, column)
    return statistics.ratio_interval(np.log(values))


def without_gil(runs: pd.DataFrame, condition: str, column: str) -> tuple[Interval | None, ...]:
    """A column under a condition: with the GIL, without it, and how much more without it."""
    values = [chosen(runs, interpreter=label, condition=condition)[column].to_numpy() for label in (GIL, FREE_THREADED)]
    alone = (interval_of(runs, column, interpreter=label, condition=condition) for label in (GIL, FREE_THREADED))
    return *alone, _interval(difference(values[1], values[0], "MiB"))


def times_without_gil(runs: pd.DataFrame, condition: str, column: str) -> Interval | None:
    """A column under a condition: without the GIL over with it."""
    return _interval(
        ratio(
            *(chosen(runs, interpreter=label, condition=condition)[column].to_numpy() for label in (FREE_THREADED, GIL))
        )
    )


def between(
    runs: pd.DataFrame, label: str, conditions: tuple[str, str], column: str, compare=difference
) -> Interval | None:
    """A column on one interpreter: the first condition less the second, or over it (compare=ratio)."""
    values = [chosen(runs, interpreter=label, condition=one)[column].to_numpy() for one in conditions]
    return _interval(compare(*values, "MiB") if compare is difference else compare(*values))


def at_the_cap(runs: pd.DataFrame, label: str, condition: str, most: int) -> tuple[int, int]:
    """Processes in which glibc made as many arenas as it may, and all: one arena, the main one, was there before."""
    arenas = chosen(runs, interpreter=label, condition=condition).arenas
    return int((arenas >= most - 1).sum()), len(arenas)


def pages_by_thread(runs: pd.DataFrame) -> dict[str, Interval]:
    """Huge pages that a Python thread came to, on each interpreter without the GIL, without any native thread."""
    factor = 1 / (TALK["python_threads"] * HUGE_PAGE_MIB)
    labels = [label for label in dict.fromkeys(runs.interpreter) if label.endswith("t")]
    found = {label: interval_of(runs, "huge", interpreter=label, condition=HUGE_NONE) for label in sorted(labels)}
    return {label: one.map(lambda mib: mib * factor) for label, one in found.items() if one}


def huge_pages(runs: pd.DataFrame) -> bool:
    """Did the system give huge pages to any process that asked for them?"""
    return bool((chosen(runs, condition=HUGE).huge > 0).any())


def native_part(cells: pd.DataFrame, label: str, python: int, native: int) -> np.ndarray:
    """MiB of RSS in a cell of the grid, less what the same Python threads take without native ones."""
    which = {"interpreter": label, "python_threads": python}
    return less(*(chosen(cells, **which, native_threads=number).rss.to_numpy() for number in (native, 0)))


def same_minus_same(runs: pd.DataFrame, label: str, column: str) -> Measurement | None:
    """The running A/A test: the talk's condition against a second copy of itself."""
    return difference(
        *(chosen(runs, interpreter=label, condition=condition)[column].to_numpy() for condition in (AGAIN, AS_RUN)),
        "MiB",
    )


def twins(runs: pd.DataFrame) -> dict[tuple[str, str], Measurement]:
    """The same of every interpreter that ran it, by interpreter and column."""
    found = {
        (label, column): same_minus_same(runs, label, column)
        for label in sorted(set(runs.interpreter))
        for column in ("rss", "held")
    }
    return {which: one for which, one in found.items() if one}


def grown(runs: pd.DataFrame) -> pd.DataFrame:
    """Rounds of allocation, one row for each process with its state after the last round, and MiB resident more than
    before: grown at the end, trimmed after malloc_trim, peak at the most. more_held, more_in_use, more_arenas: by glibc."""
    before, end, trimmed = (
        runs[runs.state == state].groupby("process").last() for state in ("before", "worked", "trimmed")
    )
    found = end.assign(grown=end.rss - before.rss, trimmed=trimmed.rss - before.rss, peak=end.peak - before.rss)
    for column in ("held", "in_use", "arenas"):
        if column in runs:
            found[f"more_{column}"] = end[column] - before[column]
    return found.reset_index()


def last_round(runs: pd.DataFrame, way: str, keep: bool) -> Interval | None:
    """MiB resident that the second half of the rounds added."""
    worked = chosen(runs[(runs.state == "worked") & (runs.keep == keep)], way=way)
    half, end = (worked[worked.done == done].sort_values("process").rss.to_numpy() for done in (ROUNDS // 2, ROUNDS))
    return _interval(difference(end, half, "MiB"))


def given_back(grown: pd.DataFrame, way: str, keep: bool) -> Interval | None:
    """MiB resident that malloc_trim gave back."""
    part = chosen(grown[grown.keep == keep], way=way)
    return _interval(measured((part.grown - part.trimmed).to_numpy(), "MiB"))


def native_parts(cells: pd.DataFrame, python: int, native: int) -> dict[str, Interval]:
    """By interpreter: MiB of RSS in a cell of the grid, less what the same Python threads take without native ones."""
    found = {
        label: measured(native_part(cells, label, python, native), "MiB") for label in sorted(set(cells.interpreter))
    }
    return {label: one.interval for label, one in found.items() if one}


def more_callers(cells: pd.DataFrame, callers: tuple[int, int], native: int) -> dict[str, Interval]:
    """By interpreter: the native part with more Python threads less that with fewer."""
    found = {}
    for label in sorted(set(cells.interpreter)):
        parts = (native_part(cells, label, number, native) for number in reversed(callers))
        if one := difference(*parts, "MiB"):
            found[label] = one.interval
    return found


def against_nothing(remedies: pd.DataFrame, name: str, work: str) -> tuple[Interval | None, Interval | None]:
    """A remedy over none, under one kind of work: MiB grown, and blocks a second."""
    return tuple(
        _interval(ratio(*(chosen(remedies, remedy=one, work=work)[column].to_numpy() for one in (name, "nothing"))))
        for column in ("grown", "blocks_per_second")
    )


def settings(remedies: pd.DataFrame) -> dict[str, dict[str, tuple[Interval | None, Interval | None]]]:
    """By kind of work and setting of glibc: memory and speed against no setting."""
    return {work: {name: against_nothing(remedies, name, work) for name in SETTINGS} for work in WORK}


def rated(found: pd.DataFrame) -> dict[str, Interval | None]:
    """By scenario: the allocator that the talk compares with glibc, over glibc."""
    return {
        name: _interval(
            ratio(*(chosen(found, scenario=name, allocator=one)["value"].to_numpy() for one in (allocator, "glibc")))
        )
        for name, allocator in PREFERRED.items()
    }


def scenarios(runs: pd.DataFrame) -> pd.DataFrame:
    """The value of each process that decides its scenario. Columns scenario, allocator, value."""
    parts = []
    for name, scenario in SCENARIOS.items():
        part = chosen(runs, scenario=name)
        part = grown(part) if scenario.function == "growth" else part
        parts.append(part.assign(value=part[scenario.value])[["scenario", "allocator", "value"]])
    return pd.concat(parts, ignore_index=True)
