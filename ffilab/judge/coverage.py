"""How often intervals hold what another session or build says: from the layouts of kept sessions, by the estimator of
now.

Sessions are as `book/evidence/sessions.json` keeps them: of each ratio the logarithms of its layouts by build, and of
the restarts of one binary.
"""

import itertools
import math
import statistics as stdlib_statistics
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ffilab.judge import groups
from ffilab.judge.estimates import LEVEL, MIN_VALUES, Interval, Location

# What is counted, and the title of each. The first two are intervals at LEVEL for the centre, the third and the fourth
# predictions.
KINDS = {
    "another_session": "another session, same build",
    "another_build": "another session and build",
    "expected": "another session, where it was expected",
    "next_build": "next build, one link",
    "this_binary": "one binary",
}


@dataclass(frozen=True)
class One:
    """What one session says of a ratio on one build. layouts: logarithms. binary: the estimate of one binary, if it is
    of this build."""

    session: int
    build: str
    over: Location
    layouts: list[float]
    binary: Location | None


def over_layouts(logs: list[float]) -> Location:
    """The estimate of one session on one build, as a page would give it."""
    alike = [0] * len(logs)
    return groups.over_layouts(np.array(logs), alike, alike, log=True, adds=groups.SESSION)


def of_ratio(sessions: list[dict], name: str) -> list[One]:
    """All that the sessions say of a ratio; builds with too few layouts are left out."""
    found = []
    for number, session in enumerate(sessions):
        ratio = session["ratios"][name]
        for build, logs in ratio["layouts"].items():
            if len(logs) >= MIN_VALUES:
                binary = Location.of(np.array(ratio["binary"]), log=True) if build == str(session["binary"]) else None
                found.append(One(number, build, over_layouts(logs), logs, binary))
    return found


def holds(interval: Interval, log: float) -> bool:
    """Is the ratio of this logarithm inside the interval?"""
    return interval.low <= math.exp(log) <= interval.high


def honest(freedom: float) -> float:
    """In how many cases an honest t interval at LEVEL holds another estimate that is as uncertain as its own."""
    return float(2 * stats.t.cdf(stats.t.ppf(0.5 + LEVEL / 2, freedom) / math.sqrt(2), freedom) - 1)


def inside(found: list[One]) -> dict[str, list[bool]]:
    """For each kind: was what the second of two sessions says inside the interval of the first? Over all ordered
    pairs."""
    held: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    bounds = [(one.over.at(), one.over.another_session, one.over.next_build) for one in found]
    binaries = [one.binary.at() if one.binary else None for one in found]
    for (one, (at, expected, next_build)), other in itertools.product(zip(found, bounds), found):
        if one.session == other.session:
            continue
        same = one.build == other.build
        held["another_session" if same else "another_build"].append(holds(at, other.over.centre))
        if same:
            held["expected"].append(holds(expected, other.over.centre))
        else:
            held["next_build"] += [holds(next_build, log) for log in other.layouts]
    for one, binary in zip(found, binaries):
        others = [other.binary.centre for other in found if other.binary and other.session != one.session]
        held["this_binary"] += [holds(binary, centre) for centre in others] if binary and binary.is_known else []
    return held


def rows(sessions: list[dict]) -> list[dict]:
    """A row for each ratio: shares of each kind (None if there is no pair), the honest share, and the median
    half-widths of an interval over layouts and of one binary (fractions)."""
    known = []
    for name in sessions[0]["ratios"] if sessions else ():
        found = of_ratio([session for session in sessions if name in session["ratios"]], name)
        if not found:
            continue
        shares = {kind: sum(held) / len(held) if held else None for kind, held in inside(found).items()}
        binaries = [one.binary.at() for one in found if one.binary and one.binary.at().is_known]
        widths = [
            stdlib_statistics.median(one.half_width / one.value for one in intervals) if intervals else math.nan
            for intervals in ([one.over.at() for one in found], binaries)
        ]
        known.append(
            {"ratio": name, **shares, "honest": stdlib_statistics.mean(honest(one.over.freedom) for one in found)}
            | {"half_width": widths[0], "half_width_binary": widths[1]}
        )
    return known
