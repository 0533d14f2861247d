"""The scenes of the chapter's player: two threads that append to a list, and when each of them ran."""

import pandas as pd

from ffilab.page import draw
from ffilab.page.player import RUNS, Row, Scenes, digits, first_of_each, interval_over, recorded, threads  # noqa: F401
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.critical_sections.experiment import ONE, OWN

SETTINGS = "CPython", "both threads append to"
LISTS = {ONE: "one list", OWN: "a list each"}
# So many ns, or so many gaps, are shown.
SHOWN, GAPS = 25e6, 60
PLAIN = "Two threads append to a list: who runs, from moment to moment."
FOUND = (
    "Two threads append to a list. With the GIL one of them stands still for up to {gil} ms at a time; without it for "
    "up to {own} ms with a list each, and {one} ms with one list for both."
)


def processes(noted: pd.DataFrame) -> dict[tuple[str, ...], dict]:
    """The first process of each build, with a list for each thread and with one for both."""
    return first_of_each(noted, "interpreter", "shared")


def scenes(noted: pd.DataFrame) -> Scenes:
    made = {(label, LISTS[shared]): of_process(row) for (label, shared), row in processes(noted).items()}
    return {key: scene for key, scene in made.items() if scene}


def of_process(row: dict) -> list[Row]:
    """When each thread ran. With the GIL one of them has it; without, both may run, and a gap is a wait for the list,
    or for a core."""
    begin, is_free = row["began"], row["interpreter"].endswith("t")
    gaps = sorted(gap for of_thread in row["gaps"] for gap in of_thread if gap[1] > begin)
    end = min([begin + SHOWN, row["until"], *(gap[1] for gap in gaps[GAPS : GAPS + 1])])
    of_threads = {f"thread {number}": found for number, found in enumerate(row["gaps"], 1)}
    rows = threads(of_threads, begin, end, RUNS, longer=0) if is_free else threads(of_threads, begin, end)
    return [*rows, *interval_over(rows)]


def alt_text(noted: pd.DataFrame) -> str:
    """The finding, for the caption: how long one thread stood still, over all that was noted."""
    names = {"gil": (GIL, OWN), "own": (FREE_THREADED, OWN), "one": (FREE_THREADED, ONE)}
    found = processes(noted)
    if not set(names.values()) <= set(found):
        return draw.translated(PLAIN)
    gaps = {name: [b - a for of_thread in found[key]["gaps"] for a, b in of_thread] for name, key in names.items()}
    return draw.translated(FOUND).format(**{name: digits(max(those, default=0) / 1e6) for name, those in gaps.items()})
