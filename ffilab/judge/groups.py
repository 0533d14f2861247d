"""What a session and a build add to an interval that is made of layouts or processes.

Three builds or two sessions know next to nothing of their own scatter: with two degrees of freedom t is 6.96, and ten
times the work bought a *wider* interval. So the variance ratio (between groups, over what the values within them
explain) is moderated, as in Smyth 2004 (Stat. Appl. Genet. Mol. Biol. 3, no. 1): what is known of other ratios counts
as PRIOR_FREEDOM degrees of freedom, and the groups at hand count with their own. What is known is the kept study
`book/evidence/coverage.json`: 17 ratios, 12 sessions, 3 builds. Pooled over its ratios and not over those of the plan
at hand: that is plainer, a number then depends on its own values alone, and simulated coverage is the same
(tests/test_groups.py).
"""

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from ffilab.judge.estimates import MIN_VALUES, Location

# Standard deviation that a session adds to the logarithm of a ratio of two times. In the kept study the variance of a
# ratio's centres over sessions, divided by its own mean squared error plus SESSION², has a 20 % trimmed mean over the
# ratios of 1 at
# 0.37 %, and at 0.46 % without the two pairs of copies, to which a session adds nothing. On the scale of each ratio's
# own error, as the noisy ones would decide a sum (`study`, in tests/test_groups.py, works it out again).
SESSION = 0.004
# Degrees of freedom of what is known beforehand. Of builds, and of sessions where SESSION is not known: by Smyth's
# estimate the study's ratios scatter as with 3 about builds (one of 17 has an effect); with 6 three builds make
# narrower intervals than one. Of SESSION itself: they scatter as with more than 100; the study's own sessions, less
# one, are taken.
PRIOR_FREEDOM, SESSION_FREEDOM = 6, 11
# A scatter that is no scatter: made-up values without any, but for rounding.
NOTHING = 1e-9


def over_groups(values: np.ndarray, groups: list, log: bool = False, adds: float = 0.0) -> Location:
    """The centre of values that come in groups (sessions), each of them as `Location.of` has it. See `combined`.

    A group with fewer values than an interval takes says nothing of groups: then all are taken together.
    """
    values, of_value = np.asarray(values, dtype=float), np.asarray(groups)
    parts = [Location.of(values[of_value == group], log) for group in dict.fromkeys(of_value.tolist())]
    if not parts or any(part.n < MIN_VALUES for part in parts):
        parts = [replace(Location.of(values, log), sessions=max(1, len(parts)))]
    return combined(parts, adds)


def over_layouts(values: np.ndarray, sessions: list, builds: list, log: bool = False, adds: float = 0.0) -> Location:
    """The centre of values, one for each layout, with what sessions and builds add, and with the spread of layouts.

    sessions, builds: of each layout. adds: see `combined`.
    """
    spread, freedom = pooled(values, sessions)
    location = with_builds(over_groups(values, sessions, log, adds), values, sessions, builds)
    return replace(location, spread=spread, spread_freedom=freedom)


def pooled(values: np.ndarray, groups: list) -> tuple[float | None, int]:
    """Standard deviation of values within their groups, and its degrees of freedom; None if no group has two."""
    by_group: dict = {}
    for value, group in zip(values.tolist(), groups):
        if not math.isnan(value):
            by_group.setdefault(group, []).append(value)
    freedom = sum(map(len, by_group.values())) - len(by_group)
    squares = sum(float(((group - np.mean(group)) ** 2).sum()) for group in map(np.array, by_group.values()))
    return (math.sqrt(squares / freedom), freedom) if freedom else (None, 0)


def is_whole(estimate) -> bool:
    """Can it stand for one session in `combined`?"""
    return isinstance(estimate, Location) and math.isfinite(estimate.error)


def combined(parts: list[Location], adds: float = 0.0) -> Location:
    """One estimate from one of each session: the mean of their centres.

    adds: standard deviation that a session is known to add (SESSION, of ratios of times; 0 where nothing is known). The
    error of one session's centre is its own and `adds`, with Satterthwaite's (1946) degrees of freedom; of several
    their scatter counts beside it, see the head of this file.
    """
    own = float(np.mean([part.error**2 for part in parts]))
    freedom = sum(part.freedom for part in parts)
    if len(parts) == 1:
        (alone,) = parts
        if not own > NOTHING**2:
            return alone
        return _with(alone, [(own, freedom), (adds**2 / alone.sessions, SESSION_FREEDOM)], adds)
    centres = np.array([part.centre for part in parts])
    found, between, known = float(centres.var(ddof=1)), len(parts) - 1, own + adds**2
    prior = SESSION_FREEDOM if adds else PRIOR_FREEDOM
    # Less than what is known of a session's error is luck.
    moderated = max(known, (prior * known + between * found) / (prior + between))
    error, n = math.sqrt(moderated / len(parts)), sum(part.n for part in parts)
    freedom = min(freedom, prior + between)
    whole = Location(float(centres.mean()), error, freedom, n, parts[0].log, sessions=len(parts))
    return replace(whole, floor=adds / math.sqrt(len(parts)), signed=parts[0].signed)


def with_builds(location: Location, values: np.ndarray, sessions: list, builds: list) -> Location:
    """An estimate with what builds add to it, if its layouts were linked from several: see the head of this file.

    values, sessions, builds: of each layout. Another session has the same builds: they do not become more with it.
    """
    session_of, build_of = np.asarray(sessions), np.asarray(builds)
    centred = np.array(values, dtype=float)
    for session in set(session_of.tolist()):
        centred[session_of == session] -= np.median(centred[session_of == session])
    parts = [centred[build_of == build] for build in sorted(set(build_of.tolist()))]
    if len(parts) < 2 or min(map(len, parts)) < 2 or not location.error > NOTHING:
        return location
    return wider_by_builds(location, float(stats.f_oneway(*parts).statistic), len(parts))


def wider_by_builds(location: Location, ratio: float, builds: int) -> Location:
    """An estimate, wider by what builds add. ratio: variance between so many builds over that within them."""
    between = builds - 1
    more = (PRIOR_FREEDOM + between * ratio) / (PRIOR_FREEDOM + between)
    if more <= 1:
        return location
    own = location.error**2 - location.floor**2
    wider = _with(location, [(own * more, PRIOR_FREEDOM + between), (location.floor**2, SESSION_FREEDOM)])
    # What builds add is lowered by neither layouts nor sessions.
    stays = math.sqrt(own * (more - 1))
    return replace(wider, floor=math.hypot(location.floor, stays), stays=stays)


def _with(location: Location, variances: list[tuple[float, float]], adds: float | None = None) -> Location:
    """The estimate with an error from independent variances, each with its degrees of freedom (Satterthwaite 1946)."""
    square = sum(variance for variance, _ in variances)
    freedom = square**2 / sum(variance**2 / of for variance, of in variances if variance)
    found = replace(location, error=math.sqrt(square), freedom=freedom)
    return found if adds is None else replace(found, floor=adds / math.sqrt(location.sessions))
