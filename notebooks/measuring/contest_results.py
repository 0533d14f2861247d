"""What the kept runs of the contest say: how often each row is wrong, what it finds, what it states and how far it
scatters.

The run is the unit: two runs are compared at most once for a level of truth, so that the comparisons share no run.
"""

import math
import statistics as stdlib_statistics

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.judge import groups
from ffilab.judge.estimates import LEVEL, Location, Share, difference
from ffilab.judge.questions import OPEN, YES, above
from ffilab.page import draw
from ffilab.run.paths import ROOT, read_json
from ffilab.setup.catalogue import GIL

CALL, AGAIN, OTHER = "a call", "the same call", "through CDLL"
MORE = {"1 % more": 0.01, "2 % more": 0.02}
# Of each run: the arm above the line and the one below it.
PAIRS = {name: (name, CALL) for name in (AGAIN, *MORE, OTHER)}
TITLES = {
    "timeit": "timeit, best of 5, one process",
    "pyperf": "pyperf, default",
    "pyperf --fast": "pyperf --fast",
    "in turns": "pyperf in turns, by process means",
    "one process": "paired, one process",
    "one binary, one core": "ours, one binary, on the core it is given",
    "one binary": "ours, one binary",
    "layouts": "ours, layouts",
    "book": "ours, layouts, with what a session adds",
}
# What the book prints: no runs of its own, but another interval from those over layouts.
OURS, MEASURED_AS = "book", {"book": "layouts"}
TRUTHS = ("same binary", "another layout", "another session")
# Enough values for a t quantile that says something.
MIN_PAIRS = 2
# With fewer sessions the contest ranks nothing.
ENOUGH = 3


def kept() -> list[dict]:
    """The sessions of the contest that are kept; none if it was not run yet."""
    path = ROOT / "book" / "evidence" / "contest.json"
    return read_json(path) if path.exists() else []


def estimate(found: dict, adds: float = 0.0) -> Location:
    """The estimate of one run for one pair of arms; from the values of its units by the estimator of now, where they
    were kept.

    adds: standard deviation (log) that a session is known to add.
    """
    if "logs" in found:
        return groups.over_groups(np.array(found["logs"]), [0] * len(found["logs"]), log=True, adds=adds)
    return Location(found["centre"], found["error"], found["freedom"], found["n"], log=True)


def runs(sessions: list[dict], row: str) -> dict[tuple[int, int], dict[str, Location]]:
    """The estimates of a row by (session, round)."""
    adds = groups.SESSION if row == OURS else 0.0
    return {
        (number, run["round"]): {name: estimate(found, adds) for name, found in run["ratios"].items()}
        for number, session in enumerate(sessions)
        for run in of_row(session, row)
    }


def of_row(session: dict, row: str) -> list[dict]:
    """The runs of a row in one session."""
    return [run for run in session["runs"] if run["row"] == MEASURED_AS.get(row, row)]


def compared(found: dict[tuple[int, int], dict[str, Location]]) -> dict[str, list[Location]]:
    """By level of truth: differences that are nothing but chance. Of the same call twice in each run; of CDLL over
    PyDLL between the rounds of a session; and between those of two sessions that lie half of the study apart."""
    rounds = {number: sorted(key for key in found if key[0] == number) for number in sorted({n for n, _ in found})}
    layouts = [keys for keys in rounds.values() if len(keys) == 2]
    half = len(rounds) // 2
    halves = list(rounds.values())[:half], list(rounds.values())[half:]
    apart = [pair for keys, others in zip(*halves) for pair in zip(keys, reversed(others))]
    between = [
        [difference(found[one][OTHER], found[other][OTHER]) for one, other in pairs] for pairs in (layouts, apart)
    ]
    return dict(zip(TRUTHS, [[run[AGAIN] for run in found.values()], *between]))


def alarms(differences: list[Location]) -> Share | None:
    """Of differences that are nothing but chance: those whose interval excludes 1. None if there is none with an
    interval."""
    return Share.of([above(one.at(), 1) != OPEN for one in differences if one.at().is_known])


def scatter(differences: list[Location], of_two: bool) -> float:
    """How far runs really lie from the truth, at LEVEL: the half-width (log) that the differences call for.

    of_two: each is the difference of two runs, whose scatter is twice that of one.
    """
    centres = np.array([one.centre for one in differences])
    if len(centres) < MIN_PAIRS:
        return math.nan
    reach = float(stats.t.ppf(0.5 + LEVEL / 2, len(centres)))
    return reach * math.sqrt(float((centres**2).mean()) / (2 if of_two else 1))


def stated(estimates: list[Location]) -> float:
    """The half-width (log) that a run states, the median of all."""
    reaches = [math.log(one.at().high / one.at().low) / 2 for one in estimates if one.at().is_known]
    return stdlib_statistics.median(reaches) if reaches else math.nan


def standing(sessions: list[dict]) -> pd.DataFrame:
    """A row for each row of the contest that ran.

    Columns row, title, runs, seconds (of a run, median), false alarms by level of truth, found by slowdown (Share or
    None); stated and scatter (log, half-widths at LEVEL): of the same call, and of CDLL over PyDLL between layouts and
    sessions.
    """
    rows = []
    for row, title in TITLES.items():
        found = runs(sessions, row)
        if not found:
            continue
        seconds = [run["seconds"] for session in sessions for run in of_row(session, row)]
        by_truth = compared(found)
        finds = {
            name: Share.of([above(run[name].at(), 1) == YES for run in found.values() if run[name].at().is_known])
            for name in MORE
        }
        rows.append(
            {"row": row, "title": title, "runs": len(found), "seconds": stdlib_statistics.median(seconds)}
            | {truth: alarms(differences) for truth, differences in by_truth.items()}
            | finds
            | {f"stated, {name}": stated([run[name] for run in found.values()]) for name in (AGAIN, OTHER)}
            | {f"scatter, {truth}": scatter(by_truth[truth], truth != TRUTHS[0]) for truth in TRUTHS}
        )
    return pd.DataFrame(rows)


def counted(found: Share | None) -> str:
    """A share as a count with its interval; None: nothing was compared, as in a single session or of what ran once in
    it."""
    if found is None:
        return "not compared"
    return f"{found} ({100 * found.at().low:.0f} to {100 * found.at().high:.0f} %)"


def decisions(found: pd.DataFrame) -> pd.DataFrame:
    """The table of what each row decides."""
    shown = {"row": found.title, "seconds": found.seconds.map("{:.0f}".format)}
    shown |= {f"false alarms, {truth}": found[truth].map(counted) for truth in TRUTHS}
    return pd.DataFrame(shown | {f"finds {name}": found[name].map(counted) for name in MORE})


def half_widths(found: pd.DataFrame, enough: bool = True) -> pd.DataFrame:
    """The table of what each row states, beside how far its runs really scatter; enough: whether there are ENOUGH
    sessions."""
    columns = {
        "same call: states": f"stated, {AGAIN}",
        "scatters": f"scatter, {TRUTHS[0]}",
        "CDLL / PyDLL: states": f"stated, {OTHER}",
        "scatters over layouts": f"scatter, {TRUTHS[1]}",
        "scatters over sessions": f"scatter, {TRUTHS[2]}",
    }
    shown = {
        name: ["too few runs" if math.isnan(reach) else f"±{math.expm1(reach):.2%}" for reach in found[column]]
        for name, column in columns.items()
    }
    shown |= {name: "too few sessions" for name in columns if "scatters" in name and not enough}
    return pd.DataFrame({"row": found.title, **shown})


def in_words(sessions: list[dict]) -> str:
    """What ran, which rows break their promise on which level of truth, and where others do better than what the book
    prints."""
    if not sessions:
        return "The contest was not run yet."
    found = standing(sessions)
    first, last = (sessions[number]["machine"]["date"][:10] for number in (0, -1))
    minutes = sum(run["seconds"] for session in sessions for run in session["runs"]) / 60
    counts = sessions[-1]["instructions"]
    more = ", ".join(f"{100 * (counts[name] - 1):.2f} %" for name in MORE)
    parts = [
        f"{len(sessions)} {'session' if len(sessions) == 1 else 'sessions'}, {first} to {last}, {minutes:.0f} minutes, "
        f"{sessions[-1]['machine']['cpu']}, CPython {GIL}. The slowdowns have {more} more instructions, counted."
    ]
    for truth in TRUTHS:
        if not any(found[truth]):
            parts.append(f"{truth.capitalize()}: nothing was compared yet.")
            continue
        broken = [row.title for _, row in found.iterrows() if row[truth] and above(row[truth].at(), 1 - LEVEL) == YES]
        said = (
            f"certainly more than {1 - LEVEL:.0%} false alarms: {'; '.join(broken)}"
            if broken
            else f"no row certainly has more than {1 - LEVEL:.0%} false alarms"
        )
        parts.append(f"{truth.capitalize()}: {said}.")
    if len(sessions) < ENOUGH:
        parts.append("So few sessions are an example, rank nothing, and judge nobody's scatter.")
    else:
        parts += [_better(found), "A row that scatters further than it states promises too much."]
    return " ".join(parts)


def _better(found: pd.DataFrame) -> str:
    """In which columns of the tables other rows have the better number: the numbers alone, which few runs cannot tell
    apart."""
    own = found.set_index("row").loc[OURS]
    others = found[[not title.startswith("ours") for title in found.title]]
    asked = {
        "take fewer seconds": others.seconds < own.seconds,
        **{f"scatter less ({truth})": others[f"scatter, {truth}"] < own[f"scatter, {truth}"] for truth in TRUTHS},
        **{f"find {name} more often": _value(others[name]) > _value([own[name]])[0] for name in MORE},
    }
    said = [f"{'; '.join(others.title[mask])} {what}" for what, mask in asked.items() if mask.any()]
    if not said:
        return "By the numbers of these tables no other row does better than what the book prints."
    return f"By the numbers of these tables alone, some do better than what the book prints: {'. '.join(said)}."


def _value(shares) -> np.ndarray:
    return np.array([one.at().value if one else math.nan for one in shares])


def show(sessions: list[dict]) -> None:
    """Both tables, if there is something yet."""
    if not sessions:
        return
    found = standing(sessions)
    draw.table(
        decisions(found),
        "What each row decides, at 2 % two-sided: false alarms, and slowdowns that it finds. A run is the unit.",
        columns=("row", "seconds", "false alarms, another layout", "finds 1 % more"),
    )
    caption = f"Half-widths at {LEVEL:.0%}: what a run states, and how far runs really scatter."
    draw.table(half_widths(found, len(sessions) >= ENOUGH), caption, fold=True)
