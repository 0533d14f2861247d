"""What a number rests on, in words: which levels were varied, and which were not and are unknown.

A verdict speaks of a version of CPython only if the layouts of its interpreters were drawn. Where an interpreter has one
layout, its own, the run knows this binary and no other.
"""

from ffilab.judge.estimates import Interval, Location
from ffilab.provision.catalogue import CHAPTER_PAIR

ONE_BINARY = "of this binary alone"


def one_binary(rests_on: dict | None) -> list[str]:
    """Labels of the chapter pair that were measured with one layout, their own. Of records of an older version nothing is
    known, and none is named. The other interpreters decide no claim."""
    layouts = (rests_on or {}).get("layouts", {})
    return [one.label for one in CHAPTER_PAIR if layouts.get(one.label, 2) < 2]


def qualifier(rests_on: dict | None) -> str:
    """What a verdict needs to be read right: "of this binary alone", or nothing."""
    return ONE_BINARY if one_binary(rests_on) else ""


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def in_words(rests_on: dict | None) -> str:
    """Sessions, builds and layouts, and what was not varied."""
    if not rests_on or not rests_on.get("layouts"):
        return "not known: these records were made by an older version"
    each = [
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
    return f"{counted(rests_on['sessions'], 'session')}; {'; '.join(each)}. Not varied, and so unknown: {not_varied}"


def three(estimate) -> dict[str, Interval]:
    """The intervals of a comparison in plain words: over layouts, the next build, these binaries alone.

    Those that the run does not know are left out; empty for what is no comparison over layouts.
    """
    if not isinstance(estimate, Location):
        return {}
    found = {"the next build": estimate.next_build, "these binaries alone": estimate.these_binaries}
    drawn = {what: interval for what, interval in found.items() if interval.is_known}
    return {"over layouts": estimate.at(), **drawn} if "the next build" in drawn else {}
