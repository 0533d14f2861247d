"""What the records of the chapter "Races" say: what was lost, made from nothing, or found, and how often."""

import math

import numpy as np
import pandas as pd

from ffilab.judge import estimates
from ffilab.judge.controls import Check
from ffilab.judge.estimates import LEVEL, MIN_VALUES, Interval, Location, Share
from ffilab.judge.processes import chosen, interval_of
from ffilab.judge.questions import OPEN, above
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races.detection import CLEAN, RACE, TOOLS
from notebooks.races.experiment import (
    AGAIN,
    LOADERS,
    SHORT,
    SPREAD_NS,
    STRESS,
    THREADS,
    TWO,
    VARIANTS,
    WAYS,
    lets_others_in,
)

COPIES = [("atomic", AGAIN)]
UNSAFE, SAFE = VARIANTS[:1], VARIANTS[1:]
KEEPING, RELEASING = ([way for way, releases in WAYS.items() if releases == which] for which in (False, True))
PYDLL, CDLL = LOADERS
DOLLARS = 1000
# The kinds of runs of the crossed counter, by their number of threads. They are never pooled.
TEAM_SIZES = (TWO["threads"], THREADS)
# Of the runs whose call lets others in, so many should have met.
MUST_MEET = 0.9
# Two of WINDOWS_NS, one ten times as wide as the other: at both, the model's share is well above what check and act take.
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


def conditions(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """Each build of the talk's own program, with its GIL on or off."""
    return sorted(
        set(runs[["interpreter", "gil"]].itertuples(index=False, name=None)), key=lambda one: (one[0], one[1] == "off")
    )


def by_process(runs: pd.DataFrame, column: str, **which) -> np.ndarray:
    """The mean of a column in each process, over the rows that `which` chooses."""
    return chosen(runs, **which).groupby("process")[column].mean().to_numpy()


def counter_trials(trials: pd.DataFrame, label: str, way: str, variant: str) -> pd.DataFrame:
    """The trials of one counter. Threads that did not meet cannot try a lock: of locks only those count in which all met."""
    rows = chosen(trials, interpreter=label, way=way, variant=variant)
    return rows[rows.met == 1] if variant in SAFE else rows


def expected(values: np.ndarray) -> Location:
    """The expected value of a run: the mean over all runs, with its t interval. Nothing is trimmed: where runs fall into two
    clusters, a trimmed mean is the centre of neither, and the mean is at least what many runs lose on average."""
    values = np.asarray(values, dtype=float)
    if len(values) < MIN_VALUES:
        return Location.of(values)
    return Location(
        float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values)), len(values) - 1, len(values)
    )


def difference(one: Location | None, other: Location | None, level: float = LEVEL) -> Interval | None:
    """One expectation less another one, of independent runs; None if one is missing or has no interval."""
    if one is None or other is None or not (math.isfinite(one.error) and math.isfinite(other.error)):
        return None
    if one.error == other.error == 0:
        return Interval(*[one.centre - other.centre] * 3)
    return estimates.difference(one, other).at(level)


def typical_bad(runs: pd.DataFrame, column: str, **which) -> tuple[float, float, float] | None:
    """Of the runs that lost (or made) anything: median, smallest and largest; None if there is no such run."""
    rows = chosen(runs, **which)
    bad = rows[column][rows[column] != 0]
    return (float(bad.median()), float(bad.min()), float(bad.max())) if len(bad) else None


def met(runs: pd.DataFrame, every: bool = True, **which) -> Share | None:
    """Processes in which all threads of a team were inside of the call at one time: in every one of the rows that `which`
    chooses, or in any of them. None if there are none of the kind."""
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
        ways = [way for way in WAYS if lets_others_in(label, way)]
        for threads in TEAM_SIZES:
            share = met(crossed, interpreter=label, way=ways, threads=threads)
            if share is None:
                continue
            worked = worked_at_once(crossed, interpreter=label, way=ways, threads=threads)
            said = (
                f"all were inside of the call together in {share.events} of {share.trials} runs, and two or more of the unsafe "
                f"counter's at work at once in {worked.events} of {worked.trials}"
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
        share = bad_processes(crossed, "lost", interpreter=label, way=way, variant=variant, threads=THREADS)
        found[f"{variant} counter, {way.removeprefix('ctypes ')}, {where} the GIL"] = share
    for what, label, where in (
        ("atomic load and store", GIL, "with"),
        ("compare and exchange", FREE_THREADED, "without"),
    ):
        share = bad_processes(bank, "created", interpreter=label, loader=CDLL, case=what)
        found[f"bank of {what}, CDLL, {where} the GIL"] = share
    return found


def overlap_and_loss(runs: pd.DataFrame, **which) -> dict[bool, Share]:
    """Runs that lost updates, among those in which no two threads worked at the same time, and among those in which some did."""
    runs = chosen(runs, **which)
    together = runs.pairs > 0
    return {
        some: Share(int((runs.lost[together == some] != 0).sum()), int((together == some).sum()))
        for some in (False, True)
    }


def crowd_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each build, number of threads and length of work: the expected loss, and how the threads overlapped."""
    rows = []
    for label in labels(runs):
        for iterations in sorted(runs.iterations.unique()):
            for threads in sorted(runs.threads.unique().tolist()):
                which = {"interpreter": label, "threads": threads, "iterations": int(iterations)}
                part = chosen(runs, **which)
                if part.empty:
                    continue
                loss = expected(part.lost.to_numpy())
                rows.append(
                    {
                        **which,
                        "n": len(part),
                        "loss": loss,
                        **vars(loss.at()),
                        "pairs": float(part.pairs.mean()) * threads * (threads - 1) / 2,
                        "overlapped": float(part.overlapped.median()),
                        "cores": float(part.cores.median()),
                        "preempted": float(part.preempted.mean()),
                        "work_us": float(part.work_us.median()),
                    }
                )
    return pd.DataFrame(rows)


def loss_of_fifty(runs: pd.DataFrame, label: str) -> Location | None:
    """Of fifty threads with the talk's work: the share of updates that a run lost, on average."""
    part = chosen(runs, interpreter=label, threads=THREADS, iterations=SHORT)
    return expected(part.lost.to_numpy()) if len(part) else None


def pairs_at_once(runs: pd.DataFrame, label: str) -> Location | None:
    """How many pairs of them were at work at once in a run, on average."""
    part = chosen(runs, interpreter=label, threads=THREADS, iterations=SHORT)
    return expected(part.pairs.to_numpy() * THREADS * (THREADS - 1) / 2) if len(part) else None


def loss_of_a_pair(runs: pd.DataFrame, label: str) -> Location | None:
    """The share of its own updates that each of those pairs lost, on average over the runs that had one, if all others lost
    nothing."""
    part = chosen(runs, interpreter=label, threads=THREADS, iterations=SHORT)
    part = part[part.pairs > 0]
    return expected((part.lost / part.pairs / (THREADS - 1)).to_numpy()) if len(part) else None


def safety_matrix(crossed: pd.DataFrame, label: str) -> list[tuple[str, str, dict[int, Share]]]:
    """A18: of a build the kinds of calls, with the bad and all processes by number of threads: `function`, `call`, shares."""
    found = []
    for function, variants in (("thread-safe", SAFE), ("unsafe", UNSAFE)):
        for call, ways in calls(label).items():
            which = {"interpreter": label, "way": ways, "variant": variants}
            shares = {threads: bad_processes(crossed, "lost", threads=threads, **which) for threads in TEAM_SIZES}
            if all(shares.values()):
                found.append((function, call, shares))
    return found


def calls(label: str) -> dict[str, list[str]]:
    """The ways of calling, by what they do with a GIL."""
    if BY_LABEL[label].free_threaded:
        return {"there is no GIL": list(WAYS)}
    return {"GIL kept": KEEPING, "GIL released": RELEASING}


def model_of_payments(window_ns: np.ndarray, spread_ns: float = SPREAD_NS) -> np.ndarray:
    """Share of rounds in which two threads, each at a random moment within `spread_ns`, are closer than the window."""
    return 1 - (1 - np.minimum(np.asarray(window_ns, dtype=float) / spread_ns, 1)) ** 2


def payments(runs: pd.DataFrame) -> pd.DataFrame:
    """Share of rounds with two payments by width of the window, beside two models: the window alone, and with the time added
    that check and act take themselves. That time is what the window of no width shows, with the bounds of its interval."""
    level = 1 - (1 - LEVEL) / runs.window_ns.nunique()
    found = {int(window): Location.of(part.share.to_numpy()).at(level) for window, part in runs.groupby("window_ns")}
    own = own_window(found[0])
    return pd.DataFrame(
        [
            {
                "window_ns": window,
                **vars(share),
                "n": int((runs.window_ns == window).sum()),
                "model": float(model_of_payments(window)),
                "with check": Interval(*(float(model_of_payments(window + ns)) for ns in vars(own).values())),
            }
            for window, share in found.items()
        ]
    )


def own_window(zero: Interval, spread_ns: float = SPREAD_NS) -> Interval:
    """What check and act take themselves, in ns: the width that explains the share of a window of none."""
    return zero.map(lambda share: spread_ns * (1 - math.sqrt(1 - min(max(share, 0.0), 1.0))))


def misses(found: pd.DataFrame) -> dict[str, list[float]]:
    """At which windows (ns) each model fails: it lies outside of the interval. All intervals hold together; the one that
    fixed the second model is not asked again."""
    rows = found.assign(added=[model.value for model in found["with check"]])
    return {
        name: [row.window_ns for row in asked.itertuples() if above(Interval.of(row), getattr(row, model)) != OPEN]
        for name, model, asked in (("window", "model", rows), ("with check", "added", rows[rows.window_ns > 0]))
    }


def nearer(found: pd.DataFrame) -> int:
    """At how many windows above zero the second model is nearer to what was measured than the first one."""
    later = found[found.window_ns > 0]
    added = np.array([model.value for model in later["with check"]])
    return int((np.abs(added - later.value) < np.abs(later.model - later.value)).sum())


def hand_overs_between(instructions: pd.DataFrame) -> int:
    """How many instructions between reading and writing `total` may hand over the GIL, or call what may."""
    read, write = (instructions.index[instructions.race == what][0] for what in ("reads total", "writes total"))
    return int((instructions["may hand over the GIL"][read:write] != "").sum())


def with_rivals(runs: pd.DataFrame) -> pd.DataFrame:
    """Remedies with rivals, with the `ns` for one operation of all threads together."""
    return runs.assign(ns=1e9 / runs.together)


def operation(rivals: pd.DataFrame, remedy: str, threads: int) -> Interval | None:
    """One operation of a remedy every so many nanoseconds, by so many threads together."""
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


def tool_score(found: pd.DataFrame) -> dict[str, dict[str, int]]:
    """By tool: on how many variants it was right, missed a race, or raised a false alarm. What it could not run is in none."""
    score = {tool: {"right": 0, "missed": 0, "false alarms": 0} for tool in TOOLS}
    for row in found.itertuples():
        said = verdict_on_tool(row.found, STRESS[row.variant][0])
        what = "missed" if said.endswith("(missed)") else "false alarms" if said.endswith("(false alarm)") else "right"
        score[row.tool][what] += row.found in (RACE, CLEAN)
    return score
