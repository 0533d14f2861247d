"""What the records of the chapter "Arenas" say: growth of memory by process, and its differences."""

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Measurement
from ffilab.judge.processes import chosen, difference
from notebooks.arenas.experiment import AGAIN, AS_RUN, HUGE, NONE, SCENARIOS

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


def grown(runs: pd.DataFrame) -> pd.DataFrame:
    """Rounds of allocation, one row for each process with its state after the last round, and MiB resident more than
    before: grown at the end, trimmed after malloc_trim, peak at the most."""
    before, end, trimmed = (
        runs[runs.state == state].groupby("process").last() for state in ("before", "worked", "trimmed")
    )
    return end.assign(
        grown=end.rss - before.rss, trimmed=trimmed.rss - before.rss, peak=end.peak - before.rss
    ).reset_index()


def scenarios(runs: pd.DataFrame) -> pd.DataFrame:
    """The value of each process that decides its scenario. Columns scenario, allocator, value."""
    parts = []
    for name, scenario in SCENARIOS.items():
        part = chosen(runs, scenario=name)
        part = grown(part) if scenario.function == "growth" else part
        parts.append(part.assign(value=part[scenario.value])[["scenario", "allocator", "value"]])
    return pd.concat(parts, ignore_index=True)
