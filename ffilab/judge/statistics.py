"""Comparison of timed arms. The restart is the unit of analysis.

Method: log-ratio per block, median per restart, then the 20 % trimmed mean over restarts with its t interval (see
`estimates.Location`). Why not the mean: on restarts that go wrong now and then (Student's t with three degrees of freedom, 20
restarts) its interval is wider. `tests/test_statistics.py` holds the simulations.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ffilab.bench.plan import EMPTY
from ffilab.bench.record import Record
from ffilab.judge.estimates import LEVEL, Interval, Location, Measurement

RESAMPLES = 4_999


def expanded_level(n: int, level: float = LEVEL) -> float:
    """Nominal level at which a bootstrap interval of n values covers as a t interval does (Hesterberg 2015, DOI
    10.1080/00031305.2015.1089789, section 3.2)."""
    shrink = np.sqrt(n / (n - 1))
    z = shrink * stats.t.ppf(0.5 - level / 2, n - 1)
    return 1 - 2 * stats.norm.cdf(z)


def location_interval(values: np.ndarray) -> Interval:
    """Trimmed mean of independent values with its interval. NaN bounds below MIN_VALUES values."""
    return Location.of(values).at()


def ratio_interval(logs: np.ndarray) -> Interval:
    """The same for the ratio whose logarithms these are."""
    return Location.of(logs, log=True).at()


@dataclass(frozen=True)
class Comparison:
    """Two arms of one run.

    estimate: time of `slow` over time of `fast`, loop overhead included.
    net_ratio: the same after the empty loop is taken off both.
    difference: slow - fast, ns per call; the empty loop cancels.
    p: two-sided Wilcoxon signed-rank over restarts.
    """

    slow: tuple[str, str]
    fast: tuple[str, str]
    estimate: Location
    net_ratio: Interval
    difference: Interval
    p: float

    @property
    def ratio(self) -> Interval:
        """The estimate with its interval."""
        return self.estimate.at()

    @property
    def mde(self) -> float:
        """The smallest |ratio - 1| that this run could have found with a power of 0.8."""
        return self.estimate.mde

    @property
    def measurement(self) -> Measurement:
        """The ratio as it is handed in for a claim."""
        return Measurement(self.estimate, "ratio of times")


def restart_log_ratios(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> np.ndarray:
    """Median over blocks of log(slow / fast), one value per restart."""
    return np.nanmedian(np.log(record.times(*slow) / record.times(*fast)), axis=1)


def compare(record: Record, slow: tuple[str, str], fast: tuple[str, str], empty: str = EMPTY) -> Comparison:
    """Compare two cells (interpreter label, arm name) of one record.

    Raises KeyError if one of them was not measured.
    """
    slow_ns, fast_ns = record.times(*slow), record.times(*fast)
    log_ratio = restart_log_ratios(record, slow, fast)
    difference = np.nanmedian(slow_ns - fast_ns, axis=1)
    net_slow = np.nanmedian(slow_ns - record.times(slow[0], empty), axis=1)
    net_fast = np.nanmedian(fast_ns - record.times(fast[0], empty), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        net = np.log(net_slow / net_fast)
    return Comparison(
        slow,
        fast,
        estimate=Location.of(log_ratio, log=True),
        net_ratio=ratio_interval(net) if np.isfinite(net).all() else Interval(*[float("nan")] * 3),
        difference=location_interval(difference),
        p=float(stats.wilcoxon(log_ratio).pvalue) if np.any(log_ratio) else 1.0,
    )


def per_call(record: Record, cell: tuple[str, str]) -> Interval:
    """Nanoseconds per loop of one cell: centre over restarts of the median over blocks."""
    return location_interval(np.nanmedian(record.times(*cell), axis=1))


def ratio_of_ratios(
    record: Record,
    numerator: tuple[tuple[str, str], tuple[str, str]],
    denominator: tuple[tuple[str, str], tuple[str, str]],
) -> Interval:
    """(a / b) over (c / d), paired by restart: is one ratio larger than another of the same run?"""
    difference = restart_log_ratios(record, *numerator) - restart_log_ratios(record, *denominator)
    return ratio_interval(difference)


def widest(record: Record, pairs: list[tuple[tuple[str, str], tuple[str, str]]]) -> float:
    """Half-width of the widest ratio interval among pairs of cells, as a fraction of the ratio.

    What an adaptive run looks at; it says nothing about sign or significance. Infinity if there is no interval yet.
    """
    widths = []
    for slow, fast in pairs:
        interval = location_interval(restart_log_ratios(record, slow, fast))
        widths.append(interval.half_width if np.isfinite(interval.half_width) else float("inf"))
    return max(widths)


def adjusted(p_values: list[float]) -> list[float]:
    """Benjamini-Hochberg over the family of a chapter: adjusted p-values in the same order."""
    return [float(p) for p in stats.false_discovery_control(p_values, method="bh")] if p_values else []


def finding(comparison: Comparison) -> str | None:
    """`slower` or `faster` (the first arm against the second), or None: the interval contains 1."""
    if not comparison.ratio.excludes(1):
        return None
    return "slower" if comparison.ratio.value > 1 else "faster"


def false_alarms(record: Record, copies: list[tuple[str, str]]) -> list[tuple[str, str, Comparison]]:
    """The running A/A test: each (arm, copy of it) on every interpreter, as (label, arm, comparison); missing ones left out."""
    return [
        (label, arm, compare(record, (label, copy), (label, arm)))
        for label in record.interpreters
        for arm, copy in copies
        if record.measured(label, arm) and record.measured(label, copy)
    ]


def ratio(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> Interval:
    """Time of one cell (interpreter label, arm name) over that of another, paired by block."""
    return ratio_interval(restart_log_ratios(record, slow, fast))
