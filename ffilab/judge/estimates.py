"""What a number is known by: an estimate that gives its interval at any level.

One level serves the whole book: of some fifty verdicts at the usual 95 %, more than one would be expected to be wrong.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

import numpy as np
from scipy import special, stats

from ffilab.judge.interval import LEVEL, Estimate, Interval, known  # noqa: F401

POWER = 0.8
# Trimming leaves so few degrees of freedom that below fifteen values it makes wider intervals than it mends.
TRIM, TRIMMED_FROM = 0.2, 15
MIN_VALUES = 3
# Of the value that the next build will show; a verdict never rests on it.
PREDICTION_LEVEL = 0.95


def _squared(effect: float, gap: float) -> float:
    """(effect / gap)², infinity where the gap is next to nothing."""
    return math.inf if gap <= 1e-9 * effect else (effect / gap) ** 2


def trimmed(n: int) -> int:
    """How many of n values are left out on each side."""
    return int(TRIM * n) if n >= TRIMMED_FROM else 0


# A page asks for the same few some ten thousand times, and checks of arguments take the longest.
t_quantile = cache(lambda probability, freedom: float(special.stdtrit(freedom, probability)))
beta_quantile = cache(lambda probability, a, b: float(stats.beta.ppf(probability, a, b)))


@dataclass(frozen=True)
class Location(Estimate):
    """Centre of independent values (restarts, processes): 20 % trimmed mean with its t interval.

    Tukey and McLaughlin 1963; Wilcox, Introduction to Robust Estimation, section 4.3: the standard error is that of the
    winsorised values over 1 - 2 TRIM, with the number of values left after trimming, less one, as degrees of freedom.
    Below TRIMMED_FROM values nothing is trimmed: there it would cover too seldom. A bootstrap's bounds cannot leave the
    values, and of five values cannot reach this level at all; this one does, and needs no resampling. Each side errs in
    1.0 to 1.5 % of simulated normal runs instead of 1 % (tests/test_statistics.py).
    log: the values are logarithms, and the interval is that of a ratio.
    sessions: how many the values come from. So often somebody looked, and could have stopped: the chance to err is
    shared out among the looks. floor: the part of the error that no further run of these sessions can lower. stays: the
    part of that which no further session lowers either: what builds add. spread, spread_freedom: standard deviation of
    layouts within a session. signed: False for what cannot be negative, such as a time, a share or a count.
    """

    centre: float
    error: float
    freedom: float
    n: int
    log: bool = False
    sessions: int = 1
    floor: float = 0.0
    stays: float = 0.0
    spread: float | None = None
    spread_freedom: float = 0
    signed: bool = True

    @classmethod
    def of(cls, values: np.ndarray, log: bool = False, signed: bool = True) -> "Location":
        """From the values. NaN bounds below MIN_VALUES of them."""
        values = np.asarray(values, dtype=float)
        n = len(values)
        if n < MIN_VALUES:
            return cls(float(np.mean(values)) if n else math.nan, math.nan, math.nan, n, log, signed=signed)
        cut = trimmed(n)
        ordered = np.sort(values)
        winsorised = np.clip(values, ordered[cut], ordered[n - 1 - cut])
        if np.ptp(winsorised) == 0:
            # What most values agree on is all that trimming sees. It must not look certain: then the plain mean counts.
            cut, winsorised = 0, values
        error = float(winsorised.std(ddof=1) / ((1 - 2 * cut / n) * math.sqrt(n)))
        return cls(float(ordered[cut : n - cut].mean()), error, n - 2 * cut - 1, n, log, signed=signed)

    @classmethod
    def mean(cls, values: np.ndarray, log: bool = False, signed: bool = True) -> "Location":
        """Plain mean with its t interval: of values that fall into classes, where a trimmed mean is the centre of
        none."""
        n = len(values)
        if n < MIN_VALUES:
            return cls.of(values, log, signed)
        error = float(np.std(values, ddof=1)) / math.sqrt(n)
        return cls(float(np.mean(values)), error, n - 1, n, log, signed=signed)

    def at(self, level: float = LEVEL) -> Interval:
        """The interval at a level, shared out among the looks."""
        return self._around(self._shared(level), self.freedom, self.error)

    @property
    def another_session(self) -> Interval:
        """Where another session like one of these will come out with a chance of PREDICTION_LEVEL: √2 errors away, of
        one session.

        NaN bounds if nothing is known of what a session adds.
        """
        is_known = self.floor > self.stays or self.sessions > 1
        scatter = self.error * math.sqrt(1 + self.sessions) if is_known else math.nan
        return self._around(PREDICTION_LEVEL, self.freedom, scatter)

    @property
    def next_build(self) -> Interval:
        """Where one more layout, of a build by the same recipe, will come out with a chance of PREDICTION_LEVEL,
        measured once.

        NaN bounds if no layouts were drawn: then nothing is known of the next build.
        """
        scatter = math.nan if self.spread is None else math.hypot(self.spread, self.error)
        return self._around(PREDICTION_LEVEL, self.spread_freedom, scatter)

    def widened(self, factor: float) -> "Location":
        """The estimate with an error so many times as large."""
        return self if factor == 1 or math.isnan(self.error) else replace(self, error=self.error * factor)

    def _shared(self, level: float) -> float:
        return 1 - (1 - level) / self.sessions

    def _around(self, level: float, freedom: float, error: float) -> Interval:
        reach = t_quantile(0.5 + level / 2, freedom) * error if error != 0 else 0.0
        interval = Interval(self.centre, self.centre - reach, self.centre + reach)
        if self.log:
            return interval.map(math.exp)
        return interval if self.signed else interval.from_zero()

    @property
    def _errors_away(self) -> float:
        """How many errors large an effect is that an interval at LEVEL tells from none with a power of 0.8."""
        return sum(t_quantile(part, self.freedom) for part in (0.5 + self._shared(LEVEL) / 2, POWER))

    @property
    def mde(self) -> float:
        """The smallest effect (for a ratio: distance from 1) that an interval at LEVEL excludes with a power of 0.8."""
        effect = self.error * self._errors_away
        return math.expm1(effect) if self.log else effect

    def factor(self, gap: float) -> float:
        """How many times as many values of these sessions would tell a distance of `gap` with a power of 0.8; infinity
        if none would."""
        return self._times(gap, self.floor)

    def sessions_for(self, gap: float) -> float:
        """How many sessions like these, all in all, would tell a distance of `gap` with a power of 0.8; infinity if
        none would."""
        return self.sessions * self._times(gap, self.stays)

    def _times(self, gap: float, stays: float) -> float:
        room = (gap / self._errors_away) ** 2 - stays**2
        return math.inf if room <= 1e-9 * self.error**2 else (self.error**2 - stays**2) / room


def difference(first: Location, second: Location) -> Location:
    """The centre of one group of values less that of another, independent one: of ratios the quotient.

    The degrees of freedom are Welch's (1947).
    """
    both = {name: math.hypot(getattr(first, name), getattr(second, name)) for name in ("error", "floor", "stays")}
    parts = sum(group.error**4 / group.freedom for group in (first, second) if group.error)
    freedom = both["error"] ** 4 / parts if parts else first.freedom + second.freedom
    n, sessions = first.n + second.n, max(first.sessions, second.sessions)
    return Location(first.centre - second.centre, freedom=freedom, n=n, log=first.log, sessions=sessions, **both)


@dataclass(frozen=True)
class Share(Estimate):
    """Runs with an event among all runs, with the exact interval (Clopper and Pearson)."""

    events: int
    trials: int

    @classmethod
    def of(cls, events: Iterable) -> "Share | None":
        """From what each run says of itself: did it happen? What says nothing is a no. None without a run."""
        happened = np.equal(list(events), True)
        return cls(int(happened.sum()), len(happened)) if len(happened) else None

    def __str__(self) -> str:
        return f"{self.events} of {self.trials}"

    def at(self, level: float = LEVEL) -> Interval:
        # As scipy.stats.binomtest(...).proportion_ci(method="exact") says, which searches for it.
        k, n, tail = self.events, self.trials, (1 - level) / 2
        low = beta_quantile(tail, k, n - k + 1) if k else 0.0
        high = beta_quantile(1 - tail, k + 1, n - k) if k < n else 1.0
        return Interval(k / n, low, high)

    @property
    def mde(self) -> float:
        """The smallest share of which at least one event is seen with a power of 0.8."""
        return 1 - (1 - POWER) ** (1 / self.trials)

    @property
    def n(self) -> int:
        return self.trials

    def factor(self, gap: float) -> float:
        """As for a location, by the normal approximation at the share that was seen."""
        share = (self.events + 1) / (self.trials + 2)
        reach = float(stats.norm.ppf([0.5 + LEVEL / 2, POWER]).sum())
        return _squared(reach * math.sqrt(share * (1 - share) / self.trials), gap)


@dataclass(frozen=True)
class ShareDifference(Estimate):
    """Difference of two independent shares, with Newcombe's hybrid score interval (Statist. Med. 17, 1998, no. 10)."""

    events: int
    trials: int
    other_events: int
    other_trials: int

    def at(self, level: float = LEVEL) -> Interval:
        shares, bounds = [], []
        for k, n in ((self.events, self.trials), (self.other_events, self.other_trials)):
            shares.append(k / n)
            bounds.append(stats.binomtest(k, n).proportion_ci(level, method="wilson"))
        (p, q), (a, b) = shares, bounds
        return Interval(p - q, p - q - math.hypot(p - a.low, b.high - q), p - q + math.hypot(a.high - p, q - b.low))

    @property
    def n(self) -> int:
        return min(self.trials, self.other_trials)

    @property
    def mde(self) -> float:
        """Half of the interval's width, and what a power of 0.8 needs on top, by the normal approximation."""
        half, quantiles = self.at().half_width, stats.norm.ppf([POWER, 0.5 + LEVEL / 2])
        return half * float(1 + quantiles[0] / quantiles[1])

    def factor(self, gap: float) -> float:
        return _squared(self.mde, gap)


@dataclass(frozen=True)
class Counted(Estimate):
    """Something that was counted or looked at once, and not sampled: it has no uncertainty of its own."""

    value: float
    n: ClassVar[int] = 1
    mde: ClassVar[float] = 0.0

    def at(self, level: float = LEVEL) -> Interval:
        return Interval(self.value, self.value, self.value)


@dataclass(frozen=True)
class Ranked(Estimate):
    """The median of independent ratios, some of them zero or infinite, with the interval of the sign test: it ends at a
    ratio, and may have no end. At LEVEL it takes seven of them, in all sessions.

    ratios: in rising order.
    """

    ratios: tuple[float, ...]

    def __post_init__(self):
        object.__setattr__(self, "ratios", tuple(self.ratios))

    @classmethod
    def of(cls, ratios: np.ndarray) -> "Ranked":
        """From the ratios; NaN, as of two zeros, says nothing and is left out."""
        return cls(tuple(sorted(float(ratio) for ratio in ratios if not math.isnan(ratio))))

    def at(self, level: float = LEVEL) -> Interval:
        # Of an even number the lower one of the two in the middle.
        middle = self.ratios[(self.n - 1) // 2]
        bounds = stats.quantile_test(self.ratios, p=0.5).confidence_interval(level)
        return Interval(middle, float(bounds.low), float(bounds.high))

    @property
    def n(self) -> int:
        return len(self.ratios)

    mde: ClassVar[float] = math.nan


@dataclass(frozen=True)
class Spread(Estimate):
    """Largest over smallest of so many cases drawn from many, each measured without noise: a ratio, 1 if all are equal.

    One-way random effects of logarithms: the variance between cases is that of their means, less what the scatter
    within cases explains, with its exact F interval (Searle, Casella and McCulloch, Variance Components, 1992, section
    3.6). The cases are the units: the interval is about all cases that could have been drawn.
    of_means: variance of the cases' means. noise: the part of it that the scatter within explains. rounds: how many of
    a case count, without those that were trimmed (Yuen 1974 gives their degrees of freedom). span: expected range of so
    many standard normal values.
    """

    of_means: float
    noise: float
    cases: int
    rounds: int
    span: float

    @property
    def freedom(self) -> tuple[int, int]:
        return self.cases - 1, self.cases * (self.rounds - 1)

    def at(self, level: float = LEVEL) -> Interval:
        if self.cases < MIN_VALUES or self.rounds < MIN_VALUES:
            return Interval(*[math.nan] * 3)

        def ratio(f: float) -> float:
            return math.exp(math.sqrt(max(self.of_means / f - self.noise, 0.0)) * self.span)

        high, low = (float(stats.f.ppf(0.5 + side * level / 2, *self.freedom)) for side in (-1, 1))
        return Interval(ratio(1.0), ratio(low), ratio(high))

    @property
    def n(self) -> int:
        return self.cases

    @property
    def mde(self) -> float:
        """The smallest ratio, less 1, that an interval at LEVEL tells from 1 with a power of 0.8."""
        high, low = (float(stats.f.ppf(quantile, *self.freedom)) for quantile in (0.5 + LEVEL / 2, 1 - POWER))
        return math.expm1(math.sqrt((high / low - 1) * self.noise) * self.span)

    def factor(self, gap: float) -> float:
        return _squared(self.at().half_width, gap)
