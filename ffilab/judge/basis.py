"""Describe what a number rests on: which levels were varied, and which were not and are unknown.

A verdict speaks of a version of CPython only if the layouts of its interpreters were drawn. Where an interpreter has
one layout, its own, the run knows this binary and no other.
"""

import statistics
from functools import cache

from ffilab.judge.estimates import Estimate, Location
from ffilab.run.paths import ROOT, read_json
from ffilab.setup.catalogue import CHAPTER_PAIR

ONE_BINARY = "of this binary alone"


def one_binary(rests_on: dict) -> list[str]:
    """Return the labels of the chapter pair that were measured with one layout, their own.

    Other interpreters decide no claim. rests_on: as in Session.rests_on.
    """
    layouts = rests_on["layouts"]
    return [one.label for one in CHAPTER_PAIR if layouts.get(one.label) == 1]


def qualifier(rests_on: dict) -> str:
    """Return the limit that a verdict is printed with: "of this binary alone", and how often such a number holds for
    another session; or nothing."""
    if not one_binary(rests_on):
        return ""
    return f"{ONE_BINARY}: {holds_again():.0%} of such intervals hold another session's number"


@cache
def holds_again() -> float:
    """Return the share of the intervals of one binary that hold the estimate of another session, with a binary of its
    own: of the kept study `calibration`."""
    rows = read_json(ROOT / "book" / "evidence" / "calibration.json")
    return statistics.fmean(row["this_binary"] for row in rows if row["this_binary"] is not None)


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def in_words(rests_on: dict) -> str:
    """Describe the sessions, builds and layouts of a run, and what was not varied."""
    drawn = [
        f"{label}: {counted(layouts, 'layout')} of {counted(rests_on['builds'][label], 'build')}"
        for label, layouts in rests_on["layouts"].items()
    ]
    unknown = {
        "another build": max(rests_on["builds"].values()) < 2,
        "another layout": bool(one_binary(rests_on)),
        "another machine": True,
    }
    not_varied = ", ".join(what for what, is_unknown in unknown.items() if is_unknown)
    known = "; what another adds to a ratio of times is that of a kept study" if rests_on["sessions"] < 2 else ""
    return (
        f"{counted(rests_on['sessions'], 'session')}{known}; {'; '.join(drawn)}. Not varied, and so unknown: "
        f"{not_varied}"
    )


ANOTHER_SESSION, NOTHING_LEFT_OUT = "another session", "nothing left out"


def beside(estimate: Estimate, whole: Estimate | None = None) -> dict[str, list[float]]:
    """Return what stands beside the interval of a number, as bounds: of a comparison over layouts where another session
    will come out, if that is known; and the interval of `whole`, the estimate with nothing left out for a neighbour, if
    it is another one."""
    bounds = {}
    if isinstance(estimate, Location) and estimate.spread is not None and estimate.another_session.is_known:
        bounds[ANOTHER_SESSION] = [estimate.another_session.low, estimate.another_session.high]
    if whole and whole.interval.is_known and whole.interval != estimate.interval:
        bounds[NOTHING_LEFT_OUT] = [whole.interval.low, whole.interval.high]
    return bounds
