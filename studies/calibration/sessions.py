"""Intervals against what other sessions and builds say: `study calibration --sessions 12`.

A session links new layouts of every build, and measures each ratio on all of them, and on one binary beside them. It
takes four minutes, and is put behind those that are kept in book/evidence/sessions.json: on any day, as often as one
likes; one that was interrupted leaves nothing. Of each ratio the logarithms of its layouts are kept, by build, and of
the restarts of one binary. What the estimator of now says of all sessions is kept beside them, in calibration.json.
"""

import itertools
import math
import secrets
import statistics as stdlib_statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

from ffilab.judge import groups, statistics
from ffilab.judge.estimates import LEVEL, MIN_VALUES, Interval, Location
from ffilab.run import machine
from ffilab.run.budget import BUDGETS
from ffilab.run.progress import say, step
from ffilab.setup import layout_pool
from studies import kept
from studies.calibration.arms import BUILDS, PAIR, compiled, ratios, timed

# What is counted; their titles are in ffilab/page/evidence.py. The first two are intervals at LEVEL for the centre, the
# third and the fourth predictions.
KINDS = ("another_session", "another_build", "expected", "next_build", "this_binary")
SESSIONS = {"smoke": 1, "room": 1, "quick": 1, "full": 12}


@dataclass(frozen=True)
class Size:
    """How much a session measures. layouts: of each build. restarts: of one binary. blocks: of each restart."""

    builds: int = BUILDS
    layouts: int = 16
    restarts: int = 12
    blocks: int = 6


SMALLEST = Size(builds=1, layouts=3, restarts=3, blocks=4)


def session(folder: Path, number: int, size: Size) -> dict:
    """Measure one session. number: of the session; the binary is linked from another build each time."""
    began, builds = time.monotonic(), list(range(1, size.builds + 1))
    pool = layout_pool.make(folder / "layouts", list(PAIR), size.builds * size.layouts, secrets.randbits(32), builds)
    linked = time.monotonic()
    binary = {label: [layouts[number % size.builds]] for label, layouts in pool.items()}
    over = timed(folder, "over-layouts", PAIR, pool, size.builds * size.layouts, size.blocks)
    alone = timed(folder, "one-binary", PAIR, binary, size.restarts, size.blocks)
    found = {}
    for name, cells in ratios(PAIR).items():
        logs = statistics.log_ratios(over, *cells)
        by_build = {build: [log for log, unit in zip(logs, over.kept) if unit.build == build] for build in builds}
        found[name] = {
            "layouts": {str(build): finite(values) for build, values in by_build.items()},
            "binary": finite(statistics.log_ratios(alone, *cells)),
            "company": round(float(np.mean([over.company["/".join(cell)].mean() for cell in cells])), 3),
        }
    seconds = {"linking": round(linked - began), "measuring": round(time.monotonic() - linked)}
    return {"machine": machine.facts(), "binary": number % size.builds + 1, "seconds": seconds, "ratios": found}


def finite(logs) -> list[float]:
    """What was measured, to six digits: a layout all of whose batches had company says nothing."""
    return [round(float(log), 6) for log in logs if np.isfinite(log)]


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
    half-widths of an interval over layouts and of one binary (fractions; None if there is none)."""
    known = []
    for name in sessions[0]["ratios"] if sessions else ():
        found = of_ratio([session for session in sessions if name in session["ratios"]], name)
        if not found:
            continue
        shares = {kind: sum(held) / len(held) if held else None for kind, held in inside(found).items()}
        binaries = [one.binary.at() for one in found if one.binary and one.binary.at().is_known]
        widths = [
            stdlib_statistics.median(one.half_width / one.value for one in intervals) if intervals else None
            for intervals in ([one.over.at() for one in found], binaries)
        ]
        known.append(
            {"ratio": name, **shares, "honest": stdlib_statistics.mean(honest(one.over.freedom) for one in found)}
            | {"half_width": widths[0], "half_width_binary": widths[1]}
        )
    return known


def main(budget: str, sessions: int | None = None) -> None:
    """Add sessions to those that are kept; the builds that are not there are compiled first, five minutes each."""
    size = Size() if BUDGETS[budget].is_result else SMALLEST
    compiled(size.builds)
    path, count = kept.file("sessions", budget), sessions or SESSIONS[budget]
    for number in range(count):
        before = kept.read_sessions(path)
        layout_pool.POOLS.parent.mkdir(parents=True, exist_ok=True)
        with (
            step(f"session {number + 1} of {count}"),
            tempfile.TemporaryDirectory(dir=layout_pool.POOLS.parent) as scratch,
        ):
            known = [*before, session(Path(scratch), len(before), size)]
            kept.write_sessions(path, known)
            kept.write_sessions(kept.file("calibration", budget), rows(known))
        say(f"  {len(before) + 1} sessions are kept in {path.name}")
