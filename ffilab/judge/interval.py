"""What a number is known by, and the interval that it gives."""

import math
from dataclasses import dataclass
from typing import ClassVar

# Of every interval of the book: of some fifty verdicts at the usual 95 %, more than one would be expected to be wrong.
LEVEL = 0.98


class Estimate:
    """What a number is known by.

    n: how many units it comes from. mde: the smallest effect that it tells from none with a power of 0.8.
    """

    n: float
    mde: float

    def at(self, level: float = LEVEL) -> "Interval":
        """The interval at a level."""
        raise NotImplementedError

    @property
    def interval(self) -> "Interval":
        """The interval at the book's level."""
        return self.at()

    def factor(self, gap: float) -> float:
        """How many times as many units would tell a distance of `gap` with a power of 0.8; NaN if none would."""
        return math.nan


@dataclass(frozen=True)
class Interval(Estimate):
    """A number with its bounds, in its own unit. As an estimate: one that was worked out at one level, and is known at
    no other."""

    value: float
    low: float
    high: float
    n: ClassVar[float] = math.nan
    mde: ClassVar[float] = math.nan

    def at(self, level: float = LEVEL) -> "Interval":
        return self

    @property
    def half_width(self) -> float:
        return (self.high - self.low) / 2

    @property
    def is_known(self) -> bool:
        """False if there were too few values for bounds. An infinite one is a bound."""
        return not (math.isnan(self.low) or math.isnan(self.high))

    def excludes(self, point: float) -> bool:
        return self.high < point or self.low > point

    @classmethod
    def of(cls, row) -> "Interval":
        """The interval in a row of a table with the columns value, low and high."""
        return cls(row.value, row.low, row.high)

    def distance(self, point: float) -> "Interval":
        """How far a point lies from the number, and how far at least and at most."""
        value, *ends = (abs(bound - point) for bound in (self.value, self.low, self.high))
        return Interval(value, min(ends) if self.excludes(point) else 0.0, max(ends))

    def map(self, function) -> "Interval":
        """Apply an increasing function to all three numbers."""
        return Interval(function(self.value), function(self.low), function(self.high))

    def from_zero(self) -> "Interval":
        """Of what cannot be negative, such as a time or a share: no bound of it lies below zero."""
        return self.map(lambda bound: max(bound, 0.0))

    def __neg__(self) -> "Interval":
        """The difference the other way round."""
        return Interval(-self.value, -self.high, -self.low)

    @property
    def reach(self) -> float:
        """Its upper bound over its lower one; infinite where that is not above zero."""
        return self.high / self.low if self.low > 0 else math.inf

    @property
    def inverse(self) -> "Interval":
        """The ratio the other way round; where a bound is zero it has no end."""
        value, high, low = (1 / bound if bound else math.inf for bound in (self.value, self.low, self.high))
        return Interval(value, low, high)


def known(interval: Interval | None) -> bool:
    """Is there an estimate, and an interval with it?"""
    return interval is not None and interval.is_known
