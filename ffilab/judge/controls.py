"""What a run says of itself before any effect is looked at: arms without a difference, or with a known one, and who
else ran.

A control withholds a number only if it shows a bias: equal arms that differ, or one per cent of work that is measured
as another. It says nothing of precision, as an interval says that itself; but one that could have found nothing has not
passed. What was disturbed has been measured again, or is left out (measure/noise.py); a number of which more than half
stayed disturbed is withheld, unless by a neighbour. All controls of a chapter share one level.
"""

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ffilab.judge.chapter import WithControls, numbers_module
from ffilab.judge.estimates import LEVEL, Estimate, Interval, t_quantile
from ffilab.judge.statistics import explained, log_ratios
from ffilab.measure import noise
from ffilab.measure.noise import Disturbed
from ffilab.measure.plan import PAIRS, STEPS, STEPS_MORE, TWINS, control_pair
from ffilab.measure.record import Record, medians, once

if TYPE_CHECKING:
    import pandas as pd

# A difference between equal arms that no effect of interest is smaller than.
NEGLIGIBLE = 0.01
# Equal arms whose interval reaches further than this to a side could have shown nothing that is of interest.
MUST_FIND = 0.1
# The chance that any control of a sound chapter fails.
ALARMS = 0.01
# An arm of which so much more than of the others is left out, for a neighbour on its core, may have been measured at
# other moments.
MUCH_MORE = 0.1


@dataclass(frozen=True)
class Check:
    """What kind of check, of what, what was found, and whether it passed. size: how far it went, to name the worst of a
    kind.

    source: the plan or the title of the experiment whose numbers rest on it; empty if it is shown only. bias: by how
    much these are off for certain, on their scale (log: that of the logarithm, of ratios); infinity for "whatever it
    is".
    """

    kind: str
    what: str
    found: str
    passed: bool
    size: float = 0.0
    source: str = ""
    bias: float = math.inf
    log: bool = False

    @property
    def is_off(self) -> bool:
        """Does it show a bias? One that could have found nothing has not passed, and is not off."""
        return not self.passed and self.bias > 0

    def concerns(self, log: bool) -> bool:
        """Can its bias be that of a number on this scale? One in MiB says nothing of a ratio."""
        return math.isinf(self.bias) or self.log == log


@dataclass(frozen=True)
class Control:
    """An estimate whose true value is known; `settled` makes a check of it. Of equal arms the truth is a ratio of 1, or
    a difference of 0."""

    kind: str
    what: str
    source: str
    estimate: Estimate
    truth: float = 1.0


def settled(found: list[Check | Control]) -> list[Check]:
    """Make checks of all controls, at the level that they share (Bonferroni): a sound chapter fails in ALARMS of all
    runs."""
    several = sum(isinstance(control, Control) for control in found)
    level = 1 - ALARMS / max(1, several)
    return [_settled(control, level) if isinstance(control, Control) else control for control in found]


def _settled(control: Control, level: float) -> Check:
    interval = control.estimate.at(level)
    if not interval.is_known:
        return Check(control.kind, control.what, "too few values for an interval", False, 0.0, control.source, bias=0.0)
    log = getattr(control.estimate, "log", False)
    bias = off(interval, control.truth, log)
    shown = f"{interval.value:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
    if control.truth not in (0, 1):
        known = f"{control.estimate.at().half_width:.1%} at the book's level"
        shown += f", built in: {control.truth:g}; known to ± {known}"
    size = abs(math.log(interval.value / control.truth)) if log else abs(interval.value - control.truth)
    reach = max(math.log(interval.high / interval.value), math.log(interval.value / interval.low)) if log else 0.0
    if reach > MUST_FIND:
        shown += f", too wide to find {MUST_FIND:.0%}"
    return Check(control.kind, control.what, shown, bias == 0 and reach <= MUST_FIND, size, control.source, bias, log)


def off(interval: Interval, truth: float, log: bool = True) -> float:
    """Return by how much an interval certainly misses the truth; 0 if it holds it. log: of ratios, as a logarithm."""
    if log:
        interval, truth = interval.map(math.log), math.log(truth)
    return max(0.0, interval.low - truth, truth - interval.high)


@once
def everything(session) -> list[Check]:
    """What every session is asked, and what the chapter asks of its own: `controls` of
    notebooks/<chapter>/numbers.py."""
    module = numbers_module(session.chapter)
    of_chapter = module.controls(session) if isinstance(module, WithControls) else []
    return settled([*checks(session), *of_chapter])


def checks(session) -> list[Check | Control]:
    """What every session is asked."""
    return [
        *disturbances(session),
        *(check for name in session.plans for check in of_record(name, session.timed(name))),
    ]


def of_record(name: str, record: Record) -> list[Check | Control]:
    """What one timed run is asked."""
    twins = [same(name, record, label, pair) for label in record.interpreters for pair in TWINS]
    return [lost(name, record), *unequal(name, record), *twins, *more(name, record)]


def disturbed(session, name: str) -> Check:
    """How much of a plan or an experiment was measured again, and how much stayed disturbed: more than half of it, or
    of a case?

    A neighbour that stays is said, and withholds nothing: the cases of a round had it alike.
    """
    counts = session.disturbed(name)
    is_most = counts.is_most or (name not in session.plans and bool(session.mostly_lost(name)))
    is_most = is_most and session.disturbed_by(name) != noise.NEIGHBOUR
    share = counts.left_out / max(1, counts.planned)
    return Check("disturbed", repr(name), session.said(name), not is_most, share, name)


@once
def disturbances(session) -> list[Check]:
    """What was disturbed of every experiment and every plan."""
    return [disturbed(session, name) for name in (*session.record.titles, *session.plans)]


@once
def mostly_disturbed(session) -> dict[str, str]:
    """What no sentence tells a number of, and why: plans and titles of which most stayed disturbed. Nothing of a smoke
    test, which says nothing anyhow."""
    if not session.budget.is_result:
        return {}
    return {check.source: check_in_words(check) for check in disturbances(session) if check.is_off}


def repaired(session) -> str:
    """Say in one line what was measured again and what is left out: "12 of 400 processes were measured again, 1 left
    out: other load"."""
    reports = []
    for what, names in (("processes", session.record.titles), ("blocks", session.plans)):
        if names:
            counts = Disturbed(*map(sum, zip(*(session.disturbed(name) for name in names))))
            words = Counter(filter(None, map(session.disturbed_by, names)))
            most = max(words, key=lambda word: words[word], default="")
            reports.append(noise.disturbed_in_words(counts, most, what))
    return "; ".join(reports)


def unequal(name: str, record: Record) -> list[Check]:
    """Are batches of all arms left out alike, where a neighbour on the core disturbed them? The worst arm; it is shown,
    and withholds nothing."""
    found = record.unequal
    if not found:
        return []
    level = 1 - (1 - LEVEL) / len(found)
    sure = {one: one.more - t_quantile(0.5 + level / 2, one.n - 1) * one.error for one in found}
    worst = max(sure, key=lambda one: sure[one])
    shown = f"{worst.cell}: {worst.more:+.0%} of its batches, beside the others"
    return [Check("left out alike", f"arms of {name!r}", shown, sure[worst] <= MUCH_MORE, worst.more)]


def lost(name: str, record: Record) -> Check:
    """How many restarts failed? It is shown, and withholds nothing: whoever fails does so before its time is known."""
    failed = len({line["restart"] for line in record.failures})
    all_of_them = len({line["restart"] for line in [*record.restarts, *record.failures]})
    return Check("lost restarts", repr(name), f"{failed} of {all_of_them}", True, failed)


def same(name: str, record: Record, label: str, twins: tuple[str, str]) -> Check | Control:
    """A/A: two arms that do not differ."""
    arm, twin = twins
    what = f"{arm} / {twin}, in {name!r} on {label}"
    if lacking := [name for name in twins if not record.has(label, name)]:
        return Check("A/A", what, record.missing.get((label, lacking[0]), "this record holds no such control"), True)
    # To copies a session adds nothing, and what is asked is whether this one was biased.
    found = explained(record, log_ratios(record, (label, arm), (label, twin)), log=True, of=0)
    return Control("A/A", what, name, found)


def more(name: str, record: Record) -> list[Control]:
    """The check of bias: is one per cent more work measured as that, by all pairs together? That one per cent would be
    found is another question, which each interval answers."""
    pairs = [
        log_ratios(record, (label, longer), (label, shorter))
        for label in record.interpreters
        for shorter, longer in map(control_pair, range(1, PAIRS + 1))
        if record.has(label, shorter)
    ]
    if not pairs:
        return []
    # The median: where the arms of one pair happen to lie may cost it a third, in a restart or two.
    found = explained(record, medians(np.transpose(pairs)), log=True, of=0)
    return [Control("bias", f"1 % more work, in {name!r}", name, found, STEPS_MORE / STEPS)]


def withheld(checks: list[Check], numbers) -> dict[str, dict[str, str]]:
    """Say which answers are withheld, by claim and `Rule.key`, and why: those on numbers made from what a failed check
    speaks of, where the bias is more than the answer can bear. numbers: of a session, as `numbers.of` has them."""
    from ffilab.judge.claims import declared

    failed = [check for check in checks if check.is_off and check.source]
    reasons: dict[str, dict[str, str]] = {}
    for claim in declared(numbers.session.chapter).claims if failed else ():
        for rule in claim.tests:
            number = numbers[rule.number]
            if number.estimate is None:
                continue
            log = getattr(number.estimate, "log", False)
            bearable = rule.bearable(log)
            for check in failed:
                if check.source in number.rests_on and check.concerns(log) and check.bias > bearable:
                    reasons.setdefault(claim.id, {}).setdefault(rule.key, check_in_words(check))
    return reasons


def check_in_words(check: Check) -> str:
    """Say what a check found, in one line."""
    return f"{check.kind}, {check.what}: {check.found}"


def table(results: list[Check]) -> "pd.DataFrame":
    """For the page, a row for each kind: how many passed, and the worst of them; those that did not pass each have
    their own."""
    import pandas as pd

    rows = []
    for kind in dict.fromkeys(check.kind for check in results):
        of_kind = [check for check in results if check.kind == kind]
        passed = sum(check.passed for check in of_kind)
        shown = [check for check in of_kind if not check.passed] or [max(of_kind, key=lambda check: check.size)]
        rows += [(kind, f"{passed} of {len(of_kind)}", check.what, check.found) for check in shown]
    return pd.DataFrame(rows, columns=["check", "passed", "of", "found"])
