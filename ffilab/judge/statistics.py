"""Intervals and tests for paired arms. The restart is the unit of analysis.

Method: log-ratio per block, median per restart, then the 20 % trimmed mean over restarts
(Tukey and McLaughlin 1963; Wilcox, Introduction to Robust Estimation) with a BCa bootstrap
interval (Efron 1987, DOI 10.1080/01621459.1987.10478410). Bootstrap intervals of few values
are too narrow; the level is widened as Hesterberg proposes (2015, DOI
10.1080/00031305.2015.1089789, section 3.2, the "expanded" interval).

Why not the mean: on restarts that go wrong now and then (Student's t with three degrees of
freedom, 20 restarts) its BCa interval covers about 90 % instead of 95 %; this one covers.
Why not Hodges-Lehmann, which covers as well: its cost grows with the square of the number of
restarts. `tests/test_statistics.py` holds the simulations.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
from scipy import stats

from ffilab.bench.plan import EMPTY
from ffilab.bench.record import Record

LEVEL = 0.95
TRIM = 0.2
RESAMPLES = 4_999
MIN_RESTARTS = 3
POWER = 0.8


@dataclass(frozen=True)
class Interval:
    """An estimate with its interval, in the unit of the estimate."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    def excludes(self, point: float) -> bool:
        return self.high < point or self.low > point

    @classmethod
    def of(cls, row) -> "Interval":
        """The interval in a row of a table with the columns value, low and high."""
        return cls(row.value, row.low, row.high)

    def map(self, function) -> "Interval":
        """Apply an increasing function to all three numbers."""
        return Interval(function(self.value), function(self.low), function(self.high))


@dataclass(frozen=True)
class Measurement:
    """One measured number of a claim. `mde`: smallest distance from the null that the run could find."""

    interval: Interval
    mde: float
    unit: str


def expanded_level(n: int, level: float = LEVEL) -> float:
    """Nominal level at which a bootstrap interval of n values covers as a t interval does."""
    shrink = np.sqrt(n / (n - 1))
    z = shrink * stats.t.ppf(0.5 - level / 2, n - 1)
    return 1 - 2 * stats.norm.cdf(z)


def centre(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """20 % trimmed mean along an axis."""
    return stats.trim_mean(values, TRIM, axis=axis)


def location_interval(values: np.ndarray, seed: int = 0, resamples: int | None = None) -> Interval:
    """Trimmed mean of independent values with its BCa interval. NaN bounds below MIN_RESTARTS values."""
    values = np.asarray(values, dtype=float)
    middle = float(centre(values))
    if len(values) < MIN_RESTARTS:
        return Interval(middle, float("nan"), float("nan"))
    if np.ptp(values) == 0:
        return Interval(middle, middle, middle)
    for method in ("BCa", "percentile"):
        with np.errstate(invalid="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", stats.DegenerateDataWarning)
            result = stats.bootstrap(
                (values,),
                centre,
                method=method,
                n_resamples=resamples or RESAMPLES,
                confidence_level=expanded_level(len(values)),
                rng=np.random.default_rng(seed),
                vectorized=True,
            ).confidence_interval
        # BCa has no acceleration when leaving out any one value changes nothing: nearly all values equal.
        if np.isfinite([result.low, result.high]).all():
            break
    return Interval(middle, float(result.low), float(result.high))


def minimum_detectable_effect(interval: Interval, n: int, power: float = POWER) -> float:
    """Smallest effect that a run with an interval of this width finds with the given power.

    From the half-width h of a 95 % interval over n restarts: h (1 + t[power] / t[0.975]), t with n - 1
    degrees of freedom. Same unit as the interval; NaN if that has no bounds.
    """
    return interval.half_width * float(1 + stats.t.ppf(power, n - 1) / stats.t.ppf(0.5 + LEVEL / 2, n - 1))


@dataclass(frozen=True)
class Comparison:
    """Two arms of one run.

    ratio: time of `slow` over time of `fast`, loop overhead included.
    net_ratio: the same after the empty loop is taken off both.
    difference: slow - fast, ns per call; the empty loop cancels.
    p: two-sided Wilcoxon signed-rank over restarts.
    mde: smallest |ratio - 1| that this run could have found (power 0.8).
    """

    slow: tuple[str, str]
    fast: tuple[str, str]
    ratio: Interval
    net_ratio: Interval
    difference: Interval
    p: float
    mde: float
    restarts: int


def restart_log_ratios(record: Record, slow: tuple[str, str], fast: tuple[str, str]) -> np.ndarray:
    """Median over blocks of log(slow / fast), one value per restart."""
    return np.nanmedian(np.log(record.times(*slow) / record.times(*fast)), axis=1)


def compare(record: Record, slow: tuple[str, str], fast: tuple[str, str], empty: str = EMPTY) -> Comparison:
    """Compare two cells (interpreter label, arm name) of one record.

    Raises KeyError if one of them was not measured.
    """
    seed = record.run["plan"]["seed"]
    slow_ns, fast_ns = record.times(*slow), record.times(*fast)
    log_ratio = restart_log_ratios(record, slow, fast)
    difference = np.nanmedian(slow_ns - fast_ns, axis=1)
    net_slow = np.nanmedian(slow_ns - record.times(slow[0], empty), axis=1)
    net_fast = np.nanmedian(fast_ns - record.times(fast[0], empty), axis=1)
    log_interval = location_interval(log_ratio, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        net = np.log(net_slow / net_fast)
    return Comparison(
        slow,
        fast,
        ratio=log_interval.map(np.exp),
        net_ratio=location_interval(net, seed).map(np.exp) if np.isfinite(net).all() else Interval(*[float("nan")] * 3),
        difference=location_interval(difference, seed),
        p=float(stats.wilcoxon(log_ratio).pvalue) if np.any(log_ratio) else 1.0,
        mde=float(np.expm1(minimum_detectable_effect(log_interval, len(log_ratio)))),
        restarts=len(log_ratio),
    )


def per_call(record: Record, cell: tuple[str, str]) -> Interval:
    """Nanoseconds per loop of one cell: centre over restarts of the median over blocks."""
    return location_interval(np.nanmedian(record.times(*cell), axis=1), record.run["plan"]["seed"])


def share_interval(hits: int, trials: int) -> Interval:
    """Share of trials with an event, with its exact (Clopper-Pearson) interval."""
    bounds = stats.binomtest(hits, trials).proportion_ci(LEVEL, method="exact")
    return Interval(hits / trials, float(bounds.low), float(bounds.high))


def share_mde(trials: int, power: float = POWER) -> float:
    """The smallest share of which at least one case in `trials` is seen with probability `power`."""
    return 1 - (1 - power) ** (1 / trials)


def share_difference(hits: int, trials: int, other_hits: int, other_trials: int) -> Interval:
    """Difference of two independent shares, with Newcombe's hybrid score interval (Statist. Med. 17, 1998, no. 10)."""
    shares, bounds = [], []
    for k, n in ((hits, trials), (other_hits, other_trials)):
        shares.append(k / n)
        bounds.append(stats.binomtest(k, n).proportion_ci(LEVEL, method="wilson"))
    (p, q), (a, b) = shares, bounds
    return Interval(p - q, p - q - math.hypot(p - a.low, b.high - q), p - q + math.hypot(a.high - p, q - b.low))


def ratio_of_ratios(
    record: Record,
    numerator: tuple[tuple[str, str], tuple[str, str]],
    denominator: tuple[tuple[str, str], tuple[str, str]],
) -> Interval:
    """(a / b) over (c / d), paired by restart: is one ratio larger than another of the same run?"""
    difference = restart_log_ratios(record, *numerator) - restart_log_ratios(record, *denominator)
    return location_interval(difference, record.run["plan"]["seed"]).map(np.exp)


def widest(record: Record, pairs: list[tuple[tuple[str, str], tuple[str, str]]]) -> float:
    """Half-width of the widest ratio interval among pairs of cells, as a fraction of the ratio.

    What an adaptive run looks at; it says nothing about sign or significance. Infinity if there is no interval yet.
    """
    widths = []
    for slow, fast in pairs:
        interval = location_interval(restart_log_ratios(record, slow, fast), resamples=999)
        widths.append(interval.half_width if np.isfinite(interval.half_width) else float("inf"))
    return max(widths)


def adjusted(p_values: list[float]) -> list[float]:
    """Benjamini-Hochberg over the family of a chapter: adjusted p-values in the same order."""
    return [float(p) for p in stats.false_discovery_control(p_values, method="bh")] if p_values else []


def finding(comparison: Comparison) -> str | None:
    """`slower` or `faster` (the first arm against the second), or None: the interval contains 1, or the effect is below the MDE."""
    effect = comparison.ratio.value - 1
    if not comparison.ratio.excludes(1) or abs(effect) < comparison.mde:
        return None
    return "slower" if effect > 0 else "faster"


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
    return location_interval(restart_log_ratios(record, slow, fast), record.run["plan"]["seed"]).map(np.exp)
