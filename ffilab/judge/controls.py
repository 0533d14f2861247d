"""A run judges itself first: before any effect is looked at, these checks decide whether its verdicts are given at all.

Each reads nothing but controls: arms between which there is no difference, or one of known size, and who else used the
machine meanwhile. If one fails, every verdict of the session is withheld. A corner may add checks of its own, such as a
calibration; these withhold the claims that rest on them.
"""

import importlib
import itertools
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ffilab.bench.plan import APART, APART_AGAIN, STEPS, STEPS_MORE, control_pair
from ffilab.bench.record import Record, medians
from ffilab.judge.estimates import LEVEL, Interval
from ffilab.judge.statistics import log_ratios, over_units

# Two pieces of work that do not differ: in one process, in two processes.
TWINS = ((control_pair(2)[0], control_pair(1)[0]), (APART_AGAIN, APART))
# Of one core, on average over an experiment. An idle system needs a hundredth.
MAX_STRANGERS = 0.15
# Of the time that a plan measured.
MAX_STEAL = 0.05
MAX_LOST = 0.1
# Of one core, on average over a plan or an experiment: what a quota on CPU time took away.
MAX_THROTTLED = 0.02
# Fastest over slowest frequency that the system reported, by restart.
MAX_FREQUENCY = 1.25
# A difference between equal arms that no effect of interest is smaller than.
NEGLIGIBLE = 0.01
NO_CONTROL = "this record holds no such control"


@dataclass(frozen=True)
class Check:
    """What kind of check, of what, what was found, and whether it passed. size: how far it went, to name the worst of a kind.

    claims: ids of those that rest on it; None: all of the session's.
    """

    kind: str
    what: str
    found: str
    passed: bool
    size: float = 0.0
    claims: tuple[str, ...] | None = None


def checks(session) -> list[Check]:
    """All checks of a session, whether it measures or is read."""
    results = [
        check(f"processes of {title!r}", _of_title(part.record, title))
        for check in (strangers, throttled)
        for part in (*session.earlier, session)
        for title in dict.fromkeys(line["title"] for line in part.record.experiments)
    ]
    plans = [session.timed(name) for name in session.plans]
    # One family for each kind of control: the more pairs are looked at, the more it takes for an alarm.
    pairs = sum(len(record.interpreters) for record in plans)
    for record in plans:
        name = record.run["plan"]["name"]
        results += [check(f"blocks of {name!r}", record.blocks) for check in (strangers, throttled)]
        results += [lost(name, record), stolen(name, record), frequency(name, record)]
        for label in record.interpreters:
            for twins in TWINS:
                results.append(same(name, record, label, twins, 1 - (1 - LEVEL) / max(1, len(TWINS) * pairs)))
        results.append(more(name, record))
    return results


def of_corner(session) -> list[Check]:
    """The corner's own checks: `controls` of notebooks/<corner>/claims.py, if it has some."""
    handing_in = importlib.import_module(f"notebooks.{session.corner}.claims")
    return handing_in.controls(session) if hasattr(handing_in, "controls") else []


def everything(session) -> list[Check]:
    """What all sessions are asked, and what the corner asks of its own."""
    return [*checks(session), *of_corner(session)]


def reasons(results: list[Check], claim: str | None = None) -> list[str]:
    """Why verdicts are withheld: all of the session's, and with `claim` those of that one too; empty if all checks passed."""
    return [
        f"{check.kind}, {check.what}: {check.found}"
        for check in results
        if not check.passed and (check.claims is None or claim in check.claims)
    ]


def table(results: list[Check]) -> pd.DataFrame:
    """For the page, a row for each kind: how many passed, and the worst of them; those that did not pass each have their own."""
    rows = []
    for kind in dict.fromkeys(check.kind for check in results):
        of_kind = [check for check in results if check.kind == kind]
        passed = sum(check.passed for check in of_kind)
        shown = [check for check in of_kind if not check.passed] or [max(of_kind, key=lambda check: check.size)]
        rows += [
            {"check": kind, "passed": f"{passed} of {len(of_kind)}", "of": check.what, "found": check.found}
            for check in shown
        ]
    return pd.DataFrame(rows, columns=["check", "passed", "of", "found"])


def strangers(what: str, lines: list[dict]) -> Check:
    """Did others than the run use the cores while it measured? Lines: blocks, or processes."""
    cores = sum(line["strangers_s"] for line in lines) / max(1e-9, sum(line["wall_s"] for line in lines))
    found = f"others used {max(0.0, cores):.2f} cores on average (at most {MAX_STRANGERS:g} are accepted)"
    return Check("other load", what, found, cores <= MAX_STRANGERS, cores)


def throttled(what: str, lines: list[dict]) -> Check:
    """Did a quota on CPU time, as containers have it, keep the run from its cores? To threads that share a quota it looks like
    a lock. Lines: blocks, or processes. Those of tests/golden were recorded before this was watched."""
    watched = [line for line in lines if "throttled_s" in line]
    if not watched:
        return Check("quota", what, "not looked at by the version that measured", True)
    share = sum(line["throttled_s"] for line in watched) / max(1e-9, sum(line["wall_s"] for line in watched))
    found = f"a quota took {share:.2f} cores on average (at most {MAX_THROTTLED:g} are accepted)"
    return Check("quota", what, found, share <= MAX_THROTTLED, share)


def lost(name: str, record: Record) -> Check:
    """Were there restarts that failed?"""
    failed = len({line["restart"] for line in record.failures})
    all_of_them = len({line["restart"] for line in [*record.restarts, *record.failures]})
    return Check("lost restarts", repr(name), f"{failed} of {all_of_them}", failed <= MAX_LOST * all_of_them, failed)


def stolen(name: str, record: Record) -> Check:
    """How much of the time did the hypervisor give to others?"""
    seconds = sum(sum(block["ns"].values()) for block in record.blocks) / 1e9
    share = sum(block["steal_s"] for block in record.blocks) / max(1e-9, seconds)
    found = f"{share:.1%} of the time (at most {MAX_STEAL:.0%} is accepted)"
    return Check("stolen time", repr(name), found, share <= MAX_STEAL, share)


def frequency(name: str, record: Record) -> Check:
    """Did the processor keep its frequency, as far as the system shows it?"""
    blocks = pd.DataFrame(record.blocks, columns=["restart", "mhz"]).dropna()
    if blocks.empty:
        return Check("frequency", repr(name), "not visible here", True)
    by_restart = blocks.groupby("restart").mhz.median()
    spread = float(by_restart.max() / by_restart.min())
    found = f"fastest over slowest restart {spread:.2f} (at most {MAX_FREQUENCY:g} is accepted)"
    return Check("frequency", repr(name), found, spread <= MAX_FREQUENCY, spread)


def same(name: str, record: Record, label: str, twins: tuple[str, str], level: float) -> Check:
    """A/A: two arms that do not differ. An alarm is a difference that is certainly larger than NEGLIGIBLE."""
    arm, twin = twins
    what = f"{arm} / {twin}, in {name!r} on {label}"
    if lacking := [name for name in twins if (label, name) in record.missing or not record.measured(label, name)]:
        # A control that an interpreter cannot run is named, and is no alarm. A plan without controls is one.
        reasons_given = [record.missing[label, name] for name in lacking if (label, name) in record.missing]
        return Check("A/A", what, reasons_given[0] if reasons_given else NO_CONTROL, bool(reasons_given))
    interval = over_units(record, log_ratios(record, (label, arm), (label, twin)), log=True).at(level)
    alarm = not interval.is_known or differ(interval)
    found = f"{interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]"
    return Check("A/A", what, found, not alarm, abs(np.log(interval.value)))


def differ(ratio: Interval, negligible: float = NEGLIGIBLE) -> bool:
    """Is the difference between two equal arms certainly larger than what is negligible?"""
    return ratio.low > 1 + negligible or ratio.high < 1 - negligible


def twins(kind: str, what: str, ratio: Interval, claims: tuple[str, ...], negligible: float = NEGLIGIBLE) -> Check:
    """A corner's own A/A test: two equal arms in its main experiment. An alarm withholds the claims."""
    bounds = f" [{ratio.low:.4f}, {ratio.high:.4f}]" if ratio.is_known else ", too few values for an interval"
    return Check(kind, what, f"{ratio.value:.4f}{bounds}", not differ(ratio, negligible), abs(ratio.value - 1), claims)


def more(name: str, record: Record) -> Check:
    """The positive control: one per cent more work has to be found, by all pairs on all interpreters together."""
    what = f"1 % more work, in {name!r}"
    pairs = [
        log_ratios(record, (label, longer), (label, shorter))
        for label in record.interpreters
        for shorter, longer in pairs_of(record, label)
    ]
    if not pairs:
        return Check("positive control", what, NO_CONTROL, False)
    # The median: where the arms of one pair happen to lie may cost it a third, in a restart or two.
    interval = over_units(record, medians(np.transpose(pairs)), log=True).at()
    found = f"{interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}], built in: {STEPS_MORE / STEPS:.2f}"
    return Check("positive control", what, found, interval.low > 1, -interval.low)


def pairs_of(record: Record, label: str) -> list[tuple[str, str]]:
    """The pairs of controls that were timed on an interpreter."""
    pairs = itertools.takewhile(lambda pair: record.measured(label, pair[0]), map(control_pair, itertools.count(1)))
    return list(pairs)


def _of_title(record: Record, title: str) -> list[dict]:
    last = [line["run"] for line in record.experiments if line["title"] == title][-1]
    return [line for line in record.children if (line["title"], line["run"]) == (title, last)]
