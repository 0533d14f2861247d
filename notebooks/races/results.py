"""What the records of the chapter "Races" say: what was lost, made from nothing, or found, and how often."""

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.processes import chosen, interval_of
from notebooks.races.detection import CLEAN, RACE, STRESS, TOOLS
from notebooks.races.experiment import AGAIN, ITERATIONS, LOADERS, SPREAD_NS, THREADS, WAYS

COPIES = [("atomic", AGAIN)]
VARIANTS = ("unsafe", "mutex", "atomic")
UNSAFE, SAFE = VARIANTS[:1], VARIANTS[1:]
KEEPING, RELEASING = ([way for way, releases in WAYS.items() if releases == which] for which in (False, True))
PYDLL = LOADERS[0]
DOLLARS = 1000


def labels(runs: pd.DataFrame) -> list[str]:
    """The interpreters of an experiment, in order."""
    return sorted(runs.interpreter.unique())


def lost_updates(original: pd.DataFrame) -> pd.DataFrame:
    """The talk's counter, with the share of updates that each run `lost`."""
    return original.assign(lost=1 - original.left / (THREADS * ITERATIONS))


def money(bank: pd.DataFrame) -> pd.DataFrame:
    """The bank, with the dollars that each run `created` from nothing."""
    return bank.assign(created=bank.balance + bank.withdrawn - DOLLARS)


def bad_processes(runs: pd.DataFrame, column: str, **which) -> Share | None:
    """Processes in which something went wrong (`column` is not zero), among all; None if there are none of the kind.

    A process is one trial: several of its rows that `which` chooses are bad once, and not several times.
    """
    rows = chosen(runs, **which)
    processes = rows.process.nunique()
    return Share(rows.process[rows[column] != 0].nunique(), processes) if processes else None


def safety_matrix(crossed: pd.DataFrame, label: str) -> pd.DataFrame:
    """A18: bad and all processes, for safe and unsafe functions by the way of calling. All numbers of threads."""
    rows = []
    for safe, variants in ((True, SAFE), (False, UNSAFE)):
        for way, releases in WAYS.items():
            bad = bad_processes(crossed, "lost", interpreter=label, way=way, variant=variants)
            rows.append({"interpreter": label, "safe": safe, "way": way, "releases": releases, **vars(bad)})
    return pd.DataFrame(rows)


def model_of_payments(window_ns: np.ndarray, spread_ns: float = SPREAD_NS) -> np.ndarray:
    """Share of rounds in which two threads, each at a random moment within `spread_ns`, are closer than the window."""
    return 1 - (1 - np.minimum(np.asarray(window_ns, dtype=float) / spread_ns, 1)) ** 2


def payments(runs: pd.DataFrame) -> pd.DataFrame:
    """Share of rounds with two payments by width of the window, beside the model."""
    return pd.DataFrame(
        [
            {
                "window_ns": window,
                **vars(statistics.location_interval(part.share.to_numpy())),
                "model": float(model_of_payments(window)),
            }
            for window, part in runs.groupby("window_ns")
        ]
    )


def hand_overs_between(instructions: pd.DataFrame) -> int:
    """How many instructions between reading and writing `total` may hand over the GIL."""
    read, write = (instructions.index[instructions.race == what][0] for what in ("reads total", "writes total"))
    return int((instructions["may hand over the GIL"][read:write] == "yes").sum())


def with_rivals(runs: pd.DataFrame) -> pd.DataFrame:
    """Remedies with rivals, with the `ns` for one operation of all threads together."""
    return runs.assign(ns=1e9 / runs.together)


def operation(rivals: pd.DataFrame, remedy: str, threads: int) -> Interval | None:
    """Nanoseconds for one operation of a remedy with so many threads."""
    return interval_of(rivals, "ns", remedy=remedy, threads=threads)


def detected(found: pd.DataFrame) -> pd.DataFrame:
    """One row for each variant of the library: what is true of it, and what each tool found."""
    said = found.pivot(index="variant", columns="tool", values="found")
    return pd.DataFrame(
        [
            {
                "variant": variant,
                "data race": race,
                "can be wrong": wrong,
                **{tool: said[tool][variant] for tool in TOOLS},
            }
            for variant, (race, wrong) in STRESS.items()
        ]
    )


def report(found: pd.DataFrame, variant: str) -> str:
    """The beginning of ThreadSanitizer's report on a variant, or what it says instead."""
    row = found[(found.variant == variant) & (found.tool == "ThreadSanitizer")].iloc[0]
    return row.report if row.found == RACE else row.found


def verdict_on_tool(said: str, race: bool) -> str:
    """What a tool said, and whether that is right."""
    if said not in (RACE, CLEAN) or (said == RACE) == race:
        return said
    return said + (" (false alarm)" if said == RACE else " (missed)")
