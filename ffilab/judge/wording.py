"""Numbers with their intervals in words."""

import math

from ffilab.judge.estimates import Estimate, Interval
from ffilab.run import settings

NOT_MEASURED = "not measured here"


def number(value: float, uncertainty: float) -> str:
    """Format a value with as many digits as its uncertainty justifies (two digits of the uncertainty)."""
    if not math.isfinite(value):
        return "not known"
    if not math.isfinite(uncertainty) or uncertainty <= 0:
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    digits = max(0, 1 - math.floor(math.log10(uncertainty)))
    return f"{value:,.{min(digits, 6)}f}"


def text(interval: Interval, unit: str = "", factor: float = 1) -> str:
    """Format value, unit and interval for prose: `1.532 ns [1.489, 1.576]`.

    An interval without width is not printed as one: `0.814 ns (all values alike)`; neither is one that too few values
    leave
    open: `0.814 ns (no interval)`. One without an end, as of ratios to zero, is `120 or more`; one that begins at zero,
    as of a time that may be next to none, is `at most 120 ns`.
    """
    width = interval.half_width * abs(factor)
    alone = f"{number(interval.value * factor, 0)}{' ' if unit else ''}{unit}"
    if interval.high == math.inf > interval.low:
        return f"{number(interval.low * factor, 0)}{' ' if unit else ''}{unit} or more"
    if not math.isfinite(interval.value):
        return number(interval.value, width)
    if not math.isfinite(width):
        return f"{alone} (no interval)"
    if width == 0:
        return f"{alone} (all values alike)"
    if interval.low == 0 < interval.value:
        return f"at most {number(interval.high * factor, width)}{' ' if unit else ''}{unit}"
    for finer in (1, 10, 100, 1000):
        value, low, high = (number(x * factor, width / finer) for x in (interval.value, interval.low, interval.high))
        # A bound that lies beyond 0 or 1 must not be printed as if it lay there.
        ends = ((interval.low * factor, low), (interval.high * factor, high))
        # Is one that differs from them printed as if it were there?
        if not any(
            end != null and math.isfinite(end) and float(shown.replace(",", "")) == null
            for end, shown in ends
            for null in (0, factor)
        ):
            break
    if low == high:
        return f"{alone} (all values alike, to the last digit)"
    return f"{value}{' ' if unit else ''}{unit} [{low}, {high}]"


def bounds(low: float, high: float) -> str:
    """Format bounds with as many digits as the width justifies: `[1.489, 1.576]`."""
    width = (high - low) / 2
    return f"[{number(low, width)}, {number(high, width)}]"


def words(value: Estimate | None, unit: str = "", factor: float = 1) -> str:
    """Format a number like `text`; `not measured here` for None."""
    if value is None:
        return NOT_MEASURED
    return text(value.interval, unit, factor)


# Between items, before the last one, and between groups of them, by language.
JOINS = {"zh_TW": ("、", "、", "；")}


def joins() -> tuple[str, str, str]:
    """What stands between items, before the last one, and between groups of them, in the reader's language."""
    return JOINS.get(settings.language(), (", ", " and ", "; "))


def listed(items: list[str]) -> str:
    """Join items: `a, b and c`."""
    comma, last, _ = joins()
    return last.join([comma.join(items[:-1]), items[-1]] if len(items) > 1 else items)


def capital(sentence: str) -> str:
    """Capitalize the first letter; the rest stays."""
    return sentence[:1].upper() + sentence[1:]
