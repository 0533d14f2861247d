"""Comparison of timed arms. The layout is the unit of analysis; the restart, where no layouts were drawn.

Method: log-ratio per block, median per layout, then the 20 % trimmed mean over layouts with its t interval (see
`estimates.Location`). Why not the mean: on restarts that go wrong now and then (Student's t with three degrees of
freedom, 20 restarts) its interval is wider. `tests/test_statistics.py` holds the simulations.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ffilab.judge import groups
from ffilab.judge.estimates import Interval, Location
from ffilab.measure.plan import EMPTY, TWINS, control_pair
from ffilab.measure.record import Record, medians


@dataclass(frozen=True)
class Comparison:
    """Two arms of one run.

    estimate: time of `slow` over time of `fast`, loop overhead included; with it, where another session will come out.
    net_ratio: the same after the empty loop is taken off both.
    difference: slow - fast, ns per call; the empty loop cancels.
    """

    slow: tuple[str, str]
    fast: tuple[str, str]
    estimate: Location
    net_ratio: Interval
    difference: Interval

    @property
    def ratio(self) -> Interval:
        """The estimate with its interval."""
        return self.estimate.at()

    @property
    def mde(self) -> float:
        """The smallest |ratio - 1| that this run could have found with a power of 0.8."""
        return self.estimate.mde


def log_ratios(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> np.ndarray:
    """Median over blocks of log(slow / fast), one value per layout (per restart, where none were drawn)."""
    return medians(np.log(record.times(*slow) / record.times(*fast)))


def log_ratios_by_restart(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> np.ndarray:
    """Median over blocks of log(slow / fast), one value per restart."""
    return medians(np.log(record.by_restart(*slow) / record.by_restart(*fast)))


def among_lots(record: Record, beside: str = control_pair(1)[0]) -> tuple[int, int, int]:
    """Count the arms that the default link was timed with, those for which it is faster than all layouts, and slower
    than all.

    An arm's time counts over that of another one in the same blocks (`beside`), so that no drift of the machine is in
    it.
    """
    faster = slower = arms = 0
    for label, _, arm in (key.partition("/") for key in record.loops):
        default, yardstick = record.default_link(label, arm), record.default_link(label, beside)
        if arm == beside or not len(default) or not record.has(label, beside):
            continue
        ratios, lots = np.log(default / yardstick), log_ratios(record, (label, arm), (label, beside))
        if np.isnan(ratios).all() or np.isnan(lots).all():
            continue  # all of its batches were left out
        own = np.nanmedian(ratios)
        arms, faster, slower = arms + 1, faster + bool(own < np.nanmin(lots)), slower + bool(own > np.nanmax(lots))
    return arms, faster, slower


def over_units(record: Record, values: np.ndarray, log: bool = False, of: float | None = None) -> Location:
    """The centre of values over layouts, sessions and builds (`explained`), with an error as much larger as equal arms
    ask for."""
    return explained(record, values, log, of).widened(unexplained(record))


def explained(record: Record, values: np.ndarray, log: bool = False, of: float | None = None) -> Location:
    """The centre of values, one for each row of `record.times`, over all that the record rests on: layouts, and what
    sessions and builds add to them (see groups.py).

    of: on which scale a session adds what it does: 1 for logarithms of ratios, for a difference of times the larger of
    them (ns); 0 where it adds nothing that is known, or nothing that is asked for.
    """
    finite = np.isfinite(values)
    # A unit of which nothing was kept says nothing.
    units, values = [unit for unit, is_finite in zip(record.kept, finite) if is_finite], values[finite]
    sessions, builds = ([getattr(unit, level) for unit in units] for level in ("session", "build"))
    scale = float(log) if of is None else of
    adds = scale * groups.SESSION
    if any(unit.layout is None for unit in units):
        return groups.over_groups(values, sessions, log, adds)
    return groups.over_layouts(values, sessions, builds, log, adds)


def ratio_over_units(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> Location:
    """Time of one cell over that of another, over layouts and sessions."""
    asked = "ratio", slow, fast
    if asked not in record.worked_out:
        record.worked_out[asked] = over_units(record, log_ratios(record, slow, fast), log=True)
    return record.worked_out[asked]


def unexplained(record: Record) -> float:
    """By which factor equal arms of a plan scatter more than their errors explain, and chance does in one plan of
    twenty.

    At least 1. It widens every interval of the plan: what moves equal arms moves others as well.
    """
    if (known := record.worked_out.get("unexplained")) is not None:
        return known
    # The A/A tests, which each plan has: ratios of two arms that do not differ.
    twins = [((label, arm), (label, twin)) for label in record.interpreters for arm, twin in TWINS]
    measured = [log_ratios(record, one, other) for one, other in twins if record.has(*one) and record.has(*other)]
    equal = [explained(record, logs, log=True) for logs in measured]
    away = [(found.centre / found.error) ** 2 for found in equal if found.error > 0]
    more = sum(away) / stats.chi2.ppf(0.95, len(away)) if away else 1.0
    return record.worked_out.setdefault("unexplained", math.sqrt(max(1.0, more)))


def compare(record: Record, slow: tuple[str, str], fast: tuple[str, str], empty: str = EMPTY) -> Comparison:
    """Compare two cells (interpreter label, arm name) of one record.

    Raises KeyError if one of them was not measured.
    """
    slow_ns, fast_ns = record.times(*slow), record.times(*fast)
    difference = medians(slow_ns - fast_ns)
    net_slow = medians(slow_ns - record.times(slow[0], empty))
    net_fast = medians(fast_ns - record.times(fast[0], empty))
    with np.errstate(invalid="ignore", divide="ignore"):
        net = np.log(net_slow / net_fast)
    positive = np.isfinite(net[np.isfinite(net_slow) & np.isfinite(net_fast)]).all()
    of = float(max(np.nanmedian(slow_ns), np.nanmedian(fast_ns)))
    return Comparison(
        slow,
        fast,
        estimate=ratio_over_units(record, slow, fast),
        net_ratio=over_units(record, net, log=True).at() if positive else Interval(*[math.nan] * 3),
        difference=over_units(record, difference, of=of).at(),
    )


def per_call(record: Record, cell: tuple[str, str]) -> Interval:
    """Nanoseconds per loop of one cell: centre over layouts of the median over blocks."""
    return over_units(record, medians(record.times(*cell))).at().from_zero()


def ratio_of_ratios(
    record: Record,
    numerator: tuple[tuple[str, str], tuple[str, str]],
    denominator: tuple[tuple[str, str], tuple[str, str]],
) -> Interval:
    """(a / b) over (c / d), paired by layout: is one ratio larger than another of the same run?"""
    difference = log_ratios(record, *numerator) - log_ratios(record, *denominator)
    return over_units(record, difference, log=True).at()


def false_alarms(record: Record, copies: list[tuple[str, str]]) -> list[tuple[str, str, Comparison]]:
    """The running A/A test: each (arm, copy of it) on every interpreter, as (label, arm, comparison); missing ones left
    out."""
    return [
        (label, arm, compare(record, (label, copy), (label, arm)))
        for label in record.interpreters
        for arm, copy in copies
        if record.has(label, arm) and record.has(label, copy)
    ]


def ratio(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> Interval:
    """Time of one cell (interpreter label, arm name) over that of another, paired by block."""
    return ratio_over_units(record, slow, fast).at()
