"""Describe what a number rests on: which levels were varied, and which were not and are unknown.

A verdict speaks of a version of CPython only if the layouts of its interpreters were drawn. Where an interpreter has one
layout, its own, the run knows this binary and no other.
"""

from ffilab.judge.estimates import Interval, Location
from ffilab.provision.catalogue import CHAPTER_PAIR

ONE_BINARY = "of this binary alone"


def one_binary(rests_on: dict) -> list[str]:
    """Return the labels of the chapter pair that were measured with one layout, their own.

    Other interpreters decide no claim. rests_on: as in Session.rests_on.
    """
    layouts = rests_on["layouts"]
    return [one.label for one in CHAPTER_PAIR if layouts.get(one.label) == 1]


def qualifier(rests_on: dict) -> str:
    """Return the limit that a verdict is printed with: "of this binary alone", or nothing."""
    return ONE_BINARY if one_binary(rests_on) else ""


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def in_words(rests_on: dict) -> str:
    """Describe the sessions, builds and layouts of a run, and what was not varied."""
    drawn = [
        f"{label}: {counted(layouts, 'layout')} of {counted(rests_on['builds'][label], 'build')}"
        for label, layouts in rests_on["layouts"].items()
    ]
    unknown = {
        "what another session adds": rests_on["sessions"] < 3,
        "another build": max(rests_on["builds"].values()) < 2,
        "another layout": bool(one_binary(rests_on)),
        "another machine": True,
    }
    not_varied = ", ".join(what for what, is_unknown in unknown.items() if is_unknown)
    return f"{counted(rests_on['sessions'], 'session')}; {'; '.join(drawn)}. Not varied, and so unknown: {not_varied}"


def three(estimate) -> dict[str, Interval]:
    """Return the intervals of a comparison by name: over layouts, the next build, these binaries alone.

    Unknown ones are left out; without a comparison over layouts the answer is empty.
    """
    if not isinstance(estimate, Location):
        return {}
    intervals = {"the next build": estimate.next_build, "these binaries alone": estimate.these_binaries}
    drawn = {name: interval for name, interval in intervals.items() if interval.is_known}
    return {"over layouts": estimate.at(), **drawn} if "the next build" in drawn else {}
