"""The scenes of the chapter's player: a call that sleeps, and a thread that counts beside it, drawn from their recorded
durations."""

import pandas as pd

from ffilab.page import draw
from ffilab.page.player import ASLEEP, HAS, HOLDING, RUNS, WAITS, Row, Scenes, digits, first_of_each, interval_over
from ffilab.setup.catalogue import GIL
from notebooks.loaders.experiment import SLEEP_MS
from notebooks.loaders.numbers import by_condition

SETTINGS = "CPython", "loader"
MAIN, COUNTING = "main thread", "thread that counts"
PLAIN = "Who has the GIL while the main thread sleeps in C for {asleep} ms."
FOUND = (
    "With the GIL, the thread that counts beside a call of {asleep} ms stands still for {PyDLL} ms through PyDLL, and "
    "for {CDLL} ms at most through CDLL."
)


def processes(counted: pd.DataFrame) -> dict[tuple[str, ...], dict]:
    """The first process of each build and loader."""
    return first_of_each(by_condition(counted), "interpreter", "loader")


def scenes(counted: pd.DataFrame) -> Scenes:
    return {key: of_process(row) for key, row in processes(counted).items()}


def alt_text(counted: pd.DataFrame) -> str:
    """The finding, for the caption."""
    pauses = {
        loader: digits(row["pauses.call"] / 1e6) for (label, loader), row in processes(counted).items() if label == GIL
    }
    return draw.translated(FOUND if len(pauses) > 1 else PLAIN).format(asleep=SLEEP_MS, **pauses)


def of_process(row: dict) -> list[Row]:
    """What is known is how long the call took, and the longest pause of the thread that counts: as long as the call, or
    nothing."""
    took, pause, asleep = row["elapsed.call"] / 2, row["pauses.call"], SLEEP_MS * 1e6
    if row["interpreter"].endswith("t"):
        return [(MAIN, RUNS, 0, took), (COUNTING, RUNS, 0, took)]
    if pause > asleep / 2:
        rows = [(MAIN, HOLDING, 0, asleep), (COUNTING, WAITS, 0, pause), (COUNTING, HAS, pause, max(pause, took))]
    else:
        rows = [(MAIN, ASLEEP, 0, asleep), (COUNTING, HAS, 0, took)]
    rows += [(MAIN, WAITS, asleep, max(asleep, took)), (MAIN, HAS, took, took)]
    return [*rows, *interval_over(rows)]
