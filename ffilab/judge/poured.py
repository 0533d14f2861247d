"""What is poured into the forms of sentences: numbers, other sentences, lists. The head of sentences.py explains it."""

import re
from collections.abc import Callable, Iterable

from ffilab.judge.estimates import Interval
from ffilab.judge.numbers import NOT_MEASURED as NOT_MADE
from ffilab.judge.numbers import Number
from ffilab.judge.wording import NOT_MEASURED, capital, joins, listed, text

NOTHING = "Too little was measured here to say."
# As the end of a sentence.
WAS_NOT = {NOT_MADE: "it was not measured"}
TOO_FEW = "there are too few values for an interval"


class Text(str):
    """A sentence that is poured into another one."""

    @property
    def capital(self) -> str:
        return capital(self)


class Digits(float):
    """A number of which a form asks so many digits: `{x.value:.2g}` is 140, and never 1.4e+02. Of 1.04 it is 1.04:
    "1 times as fast" would take back what the sentence says."""

    def __format__(self, spec: str) -> str:
        said = super().__format__(spec)
        if spec.endswith(("g", "f")) and float(self) != 1 == float(said.replace(",", "")):
            return f"{float(self):.3g}"
        return f"{float(said):,.0f}" if spec.endswith("g") and "e+" in said else said


# What a form may ask of a number: `{x.inverse}`.
CHANGES: dict[str, Callable[[Interval], Interval]] = {
    "inverse": lambda interval: interval.inverse,
    "negative": lambda interval: -interval,
    "excess": lambda interval: interval.map(lambda value: value - 1),
    "percent": lambda interval: interval.map(lambda value: 100 * value),
}


class Poured:
    """A number as a form shows it; see the head of this file."""

    def __init__(self, number: Number, interval: Interval | None = None):
        self._number = number
        self.missing = WAS_NOT.get(number.missing, number.missing).rstrip(".") or TOO_FEW
        self._estimate = number.estimate
        self._interval = interval or (number.estimate and number.estimate.interval)

    def __format__(self, spec: str) -> str:
        if self._interval is None:
            return NOT_MEASURED
        unit = spec.lstrip("+")
        sign = "+" if spec.startswith("+") and self._interval.value > 0 else ""
        return sign + text(self._interval, unit, 100 if unit == "%" else 1)

    def __getattr__(self, name: str):
        if name in CHANGES:
            return Poured(self._number, self._interval and CHANGES[name](self._interval))
        shown = self._interval if name in ("value", "low", "high") else self._estimate
        if shown is None:
            return self
        value = getattr(shown, name)
        return Digits(value) if isinstance(value, float) else value


def grouped(said: Iterable[str], between: str = "") -> str:
    """What holds for several items, once with its items; see the head of this file. (s) and (es) are a verb's, of one
    item."""
    kinds: dict[str, list[str]] = {}
    for one in said:
        head, _, item = one.partition("|")
        kinds.setdefault(head, []).append(item)
    each = [
        re.sub(r"\((e?s)\)", r"\1" if len(items) == 1 else "", head).replace("…", listed(items))
        for head, items in kinds.items()
    ]
    return (between or joins()[2]).join(each) or NOTHING.lower().rstrip(".")
