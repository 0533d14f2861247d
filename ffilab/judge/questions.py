"""Questions on an interval that code asks for a picture, a list or an exercise, answered by the rules. A sentence asks
by itself."""

from ffilab.judge.estimates import Interval
from ffilab.judge.rules import NO, OPEN, YES, Equal, Side


def above(interval: Interval, limit: float) -> str:
    """Does the number lie above a limit? No if it lies below; open if its interval contains the limit, or is not
    known."""
    return Side("", direction="above", null=limit, interest=0.0).answer(interval).verdict


def equal(interval: Interval, value: float, margin: float) -> str:
    """Is the number a value to within a margin? Open if its interval crosses an edge of that, or is not known."""
    return Equal("", null=value, margin=margin).answer(interval).verdict


def larger(one: Interval, other: Interval) -> str | None:
    """Does one interval lie wholly above the other one, or below it? None if one of them is not known."""
    if not (one.is_known and other.is_known):
        return None
    return YES if one.low > other.high else NO if one.high < other.low else OPEN
