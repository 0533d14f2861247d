"""The kinds of tests that a part of a claim can have, each with three answers: yes, no, open.

Laws, tested with hypothesis: a narrower interval inside a wider one never turns an answer into its opposite, and a
wider one never decides what a narrower one left open. Ignorance is no refutation, and width is no agreement.
"""

import math
from dataclasses import dataclass, fields
from typing import ClassVar, cast

from ffilab.judge.estimates import LEVEL, Counted, Estimate, Interval, Location, Share

YES, NO, OPEN = "yes", "no", "open"
DIRECTIONS = ("above", "below")
# Which experiment decides: the one that its author ran, run again, or the corrected one. What stands beside the claim,
# another experiment or a question of ours, is answered and shown, and counts for no word and no size.
CORRECTED, BESIDE = "corrected", "beside"
EXPERIMENTS = ("as run", CORRECTED, BESIDE)


@dataclass(frozen=True)
class Answer:
    """What a test says of a number, and why.

    runs: how many runs (restarts, processes) it had. takes: how many times as many would probably decide it; NaN if
    that cannot be said, infinity if no number of runs in these sessions does. sessions: how many of them would.
    """

    verdict: str
    reason: str
    runs: float = 0
    takes: float = math.nan
    sessions: float = math.nan


@dataclass(frozen=True)
class Rule:
    """What all kinds have.

    number: its name among those of its chapter. part: the part of the claim that it decides, in words. experiment: one
    of EXPERIMENTS. hard: why `quick` seldom decides it, or why its margin is narrow, where that is so
    (tests/test_characteristics.py).
    """

    number: str
    part: str = ""
    experiment: str = CORRECTED
    hard: str = ""
    # Does its answer rest on an interval, which may err?
    by_interval: ClassVar[bool] = True
    # What must be handed in: an estimate with an interval, or counted runs.
    counts: ClassVar[bool] = False

    @property
    def decides(self) -> bool:
        """Is it a part of the claim, and does not only stand beside it?"""
        return self.experiment != BESIDE

    @property
    def key(self) -> str:
        """The name of its answer: a side and a size may speak of one number."""
        return self.number

    def problem(self) -> str | None:
        """What is wrong with this test as it was written, or None."""
        return None if self.experiment in EXPERIMENTS else f"an experiment: {', '.join(EXPERIMENTS)}"

    def answer(self, estimate: Estimate, level: float = LEVEL) -> Answer:
        """The answer at a level. Raises TypeError if the estimate is of another kind than the test."""
        if self.counts and not isinstance(estimate, Share):
            handed = type(estimate).__name__
            raise TypeError(f"{self.number}: counts of runs with an event are to be handed in, not a {handed}")
        interval = estimate.at(level)
        if not interval.is_known:
            return Answer(OPEN, f"{estimate.n} runs are too few for an interval", estimate.n)
        return self.of(estimate, interval)

    def of(self, estimate: Estimate, interval: Interval) -> Answer:
        raise NotImplementedError

    def is_proof(self, estimate: Estimate) -> bool:
        """Return whether the number proves its answer whatever else ran: an event that was seen, something counted."""
        return isinstance(estimate, Counted) or (isinstance(estimate, Share) and self.counts and estimate.events > 0)

    @property
    def bounds(self) -> tuple[float, ...]:
        """Where its answer turns, in the unit of its number; the first one is the null."""
        return ()

    def bearable(self, log: bool) -> float:
        """Return the bias that an answer can bear: half of the smallest effect of interest, or of the margin.

        log: the number is a ratio, and the bias is that of its logarithm. 0 for a rule without bounds.
        """
        null, *others = self.bounds or (1.0,)
        if log and min(null, *others, math.inf) <= 0:
            return 0.0
        apart = [abs(math.log(other / null)) if log else abs(other - null) for other in others]
        return min(apart, default=0.0) / 2


def _open(estimate: Estimate, reason: str, *bounds: float) -> Answer:
    """No answer yet; with how many times as many runs, or how many sessions, would probably tell the estimate from all
    bounds."""
    gap = math.nan
    value, is_log = estimate.at().value, isinstance(estimate, Location) and estimate.log
    if not is_log or min(bounds) > 0:
        gap = min(abs(math.log(value / bound) if is_log else value - bound) for bound in bounds)
    sessions = estimate.sessions_for(gap) if isinstance(estimate, Location) else math.nan
    return Answer(OPEN, reason, estimate.n, estimate.factor(gap), sessions=sessions)


@dataclass(frozen=True)
class Side(Rule):
    """The number lies on one side of `null`, by the smallest effect of interest or more.

    It holds if the whole interval lies beyond null + interest (null - interest for `below`), does not hold if it lies
    wholly before that, and is undecided else. A negative interest is a margin: so far the number may lie on the wrong
    side (a test of non-inferiority).
    """

    direction: str = ""
    null: float = math.nan
    interest: float = math.nan

    def problem(self) -> str | None:
        if self.direction not in DIRECTIONS:
            return f"a direction: {', '.join(DIRECTIONS)}"
        if wrong := _finite(self, "null", "interest"):
            return wrong
        if self.null and -self.interest >= abs(self.null):
            return "an `interest` that leaves something which it refuses: as a margin, less than `null`"
        return super().problem()

    @property
    def bounds(self) -> tuple[float, ...]:
        return self.null, self.bound

    @property
    def bound(self) -> float:
        return self.null + self.interest if self.direction == "above" else self.null - self.interest

    def of(self, estimate: Estimate, interval: Interval) -> Answer:
        above, n = self.direction == "above", estimate.n
        if interval.low > self.bound if above else interval.high < self.bound:
            where = f"{self.direction} {self.bound:g}"
            return Answer(YES, _whole(interval, where) + ", the margin" * (self.interest < 0), n)
        if interval.high < self.bound if above else interval.low > self.bound:
            return Answer(NO, self._before(interval), n)
        return _open(estimate, self._across(interval), self.bound)

    def _before(self, interval: Interval) -> str:
        """Is it the other way round, or is it too little to matter, or may there be nothing at all?"""
        other = DIRECTIONS[self.direction == "above"]
        if self.interest < 0:
            return f"the other way round, beyond the margin: {_whole(interval, f'{other} {self.bound:g}')}"
        if _is_point(interval) and interval.value == self.null:
            return f"no effect of interest: it is {self.null:g}"
        if not interval.excludes(self.null):
            return f"no effect of interest: the interval contains {self.null:g}, and does not reach {self.bound:g}"
        if (interval.low > self.null) == (self.direction == "above"):
            return f"less than is of interest: {_whole(interval, f'between {self.null:g} and {self.bound:g}')}"
        return f"the other way round: {_whole(interval, f'{other} {self.null:g}')}"

    def _across(self, interval: Interval) -> str:
        if self.interest <= 0:
            return f"the interval contains {self.bound:g}{', the margin' * (self.interest < 0)}"
        smallest = f"{self.bound:g}, the smallest effect of interest"
        if not interval.excludes(self.null):
            return f"the interval contains {self.null:g}, no effect, and {smallest}"
        return f"there is an effect, of open size: the interval contains {smallest}"


@dataclass(frozen=True)
class Size(Rule):
    """The number has the published size: within `margin` (a fraction of the published effect) of `published`, and
    `rounding` more (absolute), by which the print may be off.

    It agrees if the whole interval lies within, differs if it lies wholly outside, and is not resolved else. A width
    that reaches the margin is not agreement.
    """

    null: float = math.nan
    published: float = math.nan
    margin: float = math.nan
    rounding: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.number}, in the published size"

    def problem(self) -> str | None:
        if wrong := _finite(self, "null", "published", "margin", "rounding"):
            return wrong
        if self.margin >= 1:
            return "a `margin` below 1: a fraction of the published effect, beyond which no effect would agree as well"
        return super().problem()

    @property
    def bounds(self) -> tuple[float, ...]:
        slack = self.margin * abs(self.published - self.null) + self.rounding
        return self.published, self.published - slack, self.published + slack

    def of(self, estimate: Estimate, interval: Interval) -> Answer:
        _, low, high = self.bounds
        share = f"{self.margin * 100:.0f} % of its effect{' and the rounding of its print' * bool(self.rounding)}"
        where = f"the published {self.published:g} ± {high - self.published:.2g} ({share})"
        return _within(estimate, interval, low, high, where)


@dataclass(frozen=True)
class Equal(Rule):
    """The number is `null` to within `margin` (absolute): two one-sided tests."""

    null: float = math.nan
    margin: float = math.nan

    def problem(self) -> str | None:
        if wrong := _finite(self, "null", "margin"):
            return wrong
        if self.null and self.margin > abs(self.null):
            return "a `margin` no larger than `null` itself"
        return super().problem()

    @property
    def bounds(self) -> tuple[float, ...]:
        return self.null, self.null - self.margin, self.null + self.margin

    def of(self, estimate: Estimate, interval: Interval) -> Answer:
        where = f"{self.null:g} ± {self.margin:g}" if self.margin else f"{self.null:g}, the one value that agrees"
        return _within(estimate, interval, self.null - self.margin, self.null + self.margin, where)


def _within(estimate: Estimate, interval: Interval, low: float, high: float, where: str) -> Answer:
    n = estimate.n
    if low == high == interval.low == interval.high:
        return Answer(YES, f"it is {interval.value:g}, as claimed", n)
    if low <= interval.low and interval.high <= high:
        return Answer(YES, _whole(interval, f"within {where}"), n)
    if interval.low > high or interval.high < low:
        return Answer(NO, _whole(interval, f"outside {where}"), n)
    return _open(estimate, f"the interval crosses the edge of {where}", low, high)


def _is_point(interval: Interval) -> bool:
    """Was it counted, or are all values alike? Then there is no interval to speak of."""
    return interval.low == interval.high


def _whole(interval: Interval, where: str) -> str:
    return f"it is {interval.value:.3g}, {where}" if _is_point(interval) else f"the whole interval lies {where}"


@dataclass(frozen=True)
class Event(Rule):
    """What `occurs` and `never` share: one event among the runs decides, and none bounds the share of all runs.

    rate: none in N decides as well if the share's interval (Clopper and Pearson) ends at `rate` or below.
    """

    rate: float = math.nan
    by_interval: ClassVar[bool] = False
    counts: ClassVar[bool] = True
    # The answers to an event that was seen, and to none in enough runs; what was not seen then.
    seen: ClassVar[str] = ""
    unseen: ClassVar[str] = ""
    none: ClassVar[str] = ""

    def problem(self) -> str | None:
        if wrong := _finite(self, "rate"):
            return wrong
        if not 0 < self.rate < 1:
            return "a `rate` between 0 and 1: what is rarer counts as not happening"
        return super().problem()

    def of(self, estimate: Estimate, interval: Interval) -> Answer:
        share = cast(Share, estimate)
        if share.events:
            return Answer(self.seen, f"it happened in {share} runs", share.trials)
        none = f"{self.none} not seen in {share.trials} runs, so rarer than {share.at().high:.1%}".lstrip()
        if share.at().high <= self.rate:
            return Answer(self.unseen, none, share.trials)
        needed = math.ceil(math.log((1 - LEVEL) / 2) / math.log(1 - self.rate))
        reason = f"{none}; to exclude {self.rate:.1%} takes {needed} runs"
        return Answer(OPEN, reason, share.trials, needed / share.trials)


@dataclass(frozen=True)
class Occurs(Event):
    """It happens: one event proves it. None in N says no if all rates above `rate` are excluded: not seen, rarer than
    that."""

    seen: ClassVar[str] = YES
    unseen: ClassVar[str] = NO


@dataclass(frozen=True)
class Never(Event):
    """It does not happen: one event refutes it. None in N says yes if all rates above `rate` are excluded."""

    seen: ClassVar[str] = NO
    unseen: ClassVar[str] = YES
    none: ClassVar[str] = "the contrary was"


@dataclass(frozen=True)
class Conformance(Rule):
    """True by construction if our code is right: the number is 1 (all checks passed). Nothing about the claim is
    tested."""

    by_interval: ClassVar[bool] = False

    def of(self, estimate: Estimate, interval: Interval) -> Answer:
        value, n = interval.value, estimate.n
        if value == 1:
            return Answer(YES, "true by construction: all checks of our own code passed", n)
        return Answer(NO, f"it should be true by construction, and {value:.3g} of the checks passed", n)


KINDS = {kind.__name__.lower(): kind for kind in (Side, Size, Equal, Occurs, Never, Conformance)}
# No number of a claim is as large.
LARGEST = 1e15


def _finite(rule: Rule, *keys: str) -> str | None:
    for key in keys:
        value = getattr(rule, key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            return f"a finite number for `{key}`"
        if key in ("margin", "rate", "rounding") and value < 0:
            return f"a `{key}` that is not negative"
    return None


def rule_of(entry: dict) -> Rule:
    """Make a rule from a table of a file, with its kind. Raises ValueError, with what the table needs."""
    given = dict(entry)
    kind = KINDS.get(given.pop("kind"))
    if kind is None:
        raise ValueError(f"needs a kind: {', '.join(KINDS)}")
    if unknown := set(given) - {field.name for field in fields(kind)}:
        raise ValueError(f"has a key that its kind does not know: {', '.join(sorted(unknown))}")
    rule = kind(**given)
    if problem := rule.problem():
        raise ValueError(f"needs {problem}")
    return rule
