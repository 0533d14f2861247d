"""What the records of the chapter "Races" say: what was lost, made from nothing, or found, and how often."""

import math

import numpy as np
import pandas as pd

from ffilab.judge import estimates
from ffilab.judge.controls import Check
from ffilab.judge.estimates import LEVEL, Interval, Location, Share
from ffilab.judge.processes import chosen, interval_of
from ffilab.judge.questions import OPEN, above
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races import experiment as e
from notebooks.races.detection import CLEAN, RACE, TOOLS

COPIES = [("atomic", e.AGAIN)]
UNSAFE, SAFE = e.VARIANTS[:1], e.VARIANTS[1:]
KEEPING, RELEASING = ([way for way, releases in e.WAYS.items() if releases == which] for which in (False, True))
PYDLL, CDLL = e.LOADERS
DOLLARS = 1000
# The kinds of runs of the crossed counter, by their number of threads. They are never pooled.
TEAM_SIZES = (e.TWO["threads"], e.THREADS)
# Of the runs whose call lets others in, so many should have met.
MUST_MEET = 0.9
# Two of WINDOWS_NS, one ten times as wide as the other: at both, the model's share is well above what check and act
# take.
NARROW_NS, WIDE_NS = 1_000, 10_000


def labels(runs: pd.DataFrame) -> list[str]:
    """The interpreters of an experiment, in order."""
    return sorted(runs.interpreter.unique())


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


def by_process(runs: pd.DataFrame, column: str, **which) -> np.ndarray:
    """The mean of a column in each process, over the rows that `which` chooses."""
    return chosen(runs, **which).groupby("process")[column].mean().to_numpy()


def counter_trials(trials: pd.DataFrame, label: str, way: str, variant: str) -> pd.DataFrame:
    """The trials of one counter. Threads that did not meet cannot try a lock: of locks only those count in which all
    met."""
    rows = chosen(trials, interpreter=label, way=way, variant=variant)
    return rows[rows.met == 1] if variant in SAFE else rows


def difference(one: Location | None, other: Location | None, level: float = LEVEL) -> Interval | None:
    """One expectation less another one, of independent runs; None if one is missing or has no interval."""
    if one is None or other is None or not (math.isfinite(one.error) and math.isfinite(other.error)):
        return None
    if one.error == other.error == 0:
        return Interval(*[one.centre - other.centre] * 3)
    return estimates.difference(one, other).at(level)


def met(runs: pd.DataFrame, every: bool = True, **which) -> Share | None:
    """Processes in which all threads of a team were inside of the call at one time: in every one of the rows that
    `which` chooses, or in any of them. None if there are none of the kind."""
    rows = chosen(runs, **which)
    if rows.empty:
        return None
    of_process = (rows.met == 1).groupby(rows.process)
    return Share(int((of_process.all() if every else of_process.any()).sum()), rows.process.nunique())


def worked_at_once(crossed: pd.DataFrame, **which) -> Share | None:
    """Processes in which two or more threads of the unsafe counter worked at the same time: who met need not have."""
    return bad_processes(crossed, "pairs", variant="unsafe", **which)


def calibrated(crossed: pd.DataFrame) -> list[Check]:
    """Did the threads meet where nothing keeps them apart? Who never met cannot have lost anything."""
    found = []
    for label in labels(crossed):
        ways = [way for way in e.WAYS if e.lets_others_in(label, way)]
        for threads in TEAM_SIZES:
            share = met(crossed, interpreter=label, way=ways, threads=threads)
            if share is None:
                continue
            worked = worked_at_once(crossed, interpreter=label, way=ways, threads=threads)
            said = (
                f"all were inside of the call together in {share} runs, and two or more of the unsafe "
                f"counter's at work at once in {worked}"
            )
            passed = share.events >= MUST_MEET * share.trials
            what = f"{threads} threads on {label}"
            # It is shown, and withholds nothing: the rules ask trials of their own, and of a lock those that met.
            found.append(Check("threads meet", what, said, passed, 1 - share.events / share.trials))
    return found


def situations(crossed: pd.DataFrame, bank: pd.DataFrame) -> dict[str, Share]:
    """Bad runs in the situations of the first exercise: of the counter with fifty threads, and of the bank."""
    found = {}
    for variant, way, label, where in (
        ("unsafe", PYDLL, GIL, "with"),
        ("unsafe", CDLL, GIL, "with"),
        ("unsafe", PYDLL, FREE_THREADED, "without"),
        ("atomic", CDLL, FREE_THREADED, "without"),
    ):
        share = bad_processes(crossed, "lost", interpreter=label, way=way, variant=variant, threads=e.THREADS)
        found[f"{variant} counter, {way.removeprefix('ctypes ')}, {where} the GIL"] = share
    for what, label, where in (
        ("atomic load and store", GIL, "with"),
        ("compare and exchange", FREE_THREADED, "without"),
    ):
        share = bad_processes(bank, "created", interpreter=label, loader=CDLL, case=what)
        found[f"bank of {what}, CDLL, {where} the GIL"] = share
    return found


def lossy_apart(crowds: pd.DataFrame) -> Share | None:
    """Runs that lost updates, among those in which no two threads worked at the same time; None if there were none of
    these."""
    lost = crowds.lost[crowds.pairs == 0]
    return Share(int((lost != 0).sum()), len(lost)) if len(lost) else None


def crowd_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each build, length of work and number of threads: the expected loss, and the median of the
    overlap."""
    of = runs.groupby(["interpreter", "iterations", "threads"], as_index=False)
    return of.agg(lost=("lost", "mean"), overlapped=("overlapped", "median"))


def of_fifty(runs: pd.DataFrame, label: str, column: str, factor: float = 1) -> Location | None:
    """Of fifty threads with the talk's work: the mean of a column over the runs."""
    part = chosen(runs, interpreter=label, threads=e.THREADS, iterations=e.SHORT)
    return Location.mean(factor * part[column].to_numpy(dtype=float)) if len(part) else None


def calls(label: str) -> dict[str, list[str]]:
    """The ways of calling, by what they do with a GIL."""
    if BY_LABEL[label].free_threaded:
        return {"no GIL": list(e.WAYS)}
    return {"GIL kept": KEEPING, "GIL released": RELEASING}


def model_of_payments(window_ns: np.ndarray) -> np.ndarray:
    """Share of rounds in which two threads, each at a random moment within SPREAD_NS, are closer than the window."""
    return 1 - (1 - np.minimum(np.asarray(window_ns, dtype=float) / e.SPREAD_NS, 1)) ** 2


def payments(runs: pd.DataFrame) -> pd.DataFrame:
    """Share of rounds with two payments by width of the window, beside a model that knows the window alone."""
    level = 1 - (1 - LEVEL) / runs.window_ns.nunique()
    return pd.DataFrame(
        {
            "window_ns": int(window),
            **vars(Location.of(part.share.to_numpy()).at(level)),
            "n": len(part),
            "model": float(model_of_payments(window)),
        }
        for window, part in runs.groupby("window_ns")
    )


def missed(found: pd.DataFrame) -> int:
    """At how many windows the model lies outside of the interval. All intervals hold together."""
    return sum(above(Interval.of(row), row.model) != OPEN for row in found.itertuples())


def hand_overs_between(instructions: pd.DataFrame) -> int:
    """How many instructions between reading and writing `total` may hand over the GIL, or call what may."""
    read, write = (instructions.index[instructions.race == what][0] for what in ("reads total", "writes total"))
    return int((instructions["may hand over the GIL"][read:write] != "").sum())


def operation(rivals: pd.DataFrame, remedy: str, threads: int) -> Interval | None:
    """One operation of a remedy every so many nanoseconds, by so many threads together."""
    return interval_of(rivals.assign(ns=1e9 / rivals.together), "ns", remedy=remedy, threads=threads)


def report(found: pd.DataFrame, variant: str) -> str:
    """The beginning of ThreadSanitizer's report on a variant, or what it says instead."""
    row = found[(found.variant == variant) & (found.tool == "ThreadSanitizer")].iloc[0]
    return row.report if row.found == RACE else row.found


def verdict_on_tool(said: str, race: bool) -> str:
    """What a tool said, and whether that is right."""
    if said not in (RACE, CLEAN) or (said == RACE) == race:
        return said
    return said + (" (false alarm)" if said == RACE else " (missed)")


def tool_score(found: pd.DataFrame) -> dict[str, dict[str, int]]:
    """By tool: on how many variants it was right, missed a race, or raised a false alarm. What it could not run is in
    none."""
    score = {tool: {"right": 0, "missed": 0, "false alarms": 0} for tool in TOOLS}
    for row in found.itertuples():
        said = verdict_on_tool(row.found, e.STRESS[row.variant][0])
        what = "missed" if said.endswith("(missed)") else "false alarms" if said.endswith("(false alarm)") else "right"
        score[row.tool][what] += row.found in (RACE, CLEAN)
    return score
