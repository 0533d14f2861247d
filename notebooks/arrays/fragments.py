"""What the sentences of the chapter "Arrays in and out" list, and no form can say."""

from collections.abc import Callable

from ffilab.judge.numbers import numbers_of
from ffilab.judge.wording import listed
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.arrays import numbers
from notebooks.arrays.experiment import COPIED, IN_PLACE, REFUSED, TOOLS, WRONG


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    builds = {"gil": GIL, "free-threaded": FREE_THREADED}
    made = {
        f"prices-{way}-{name}": lambda way=way, label=label: prices(session, way, label)
        for way in ("in", "out")
        for name, label in builds.items()
    }
    made |= {
        f"what-{name}": lambda given=given: fates_of(session, given)
        for name, given in (("float32", "float32"), ("fortran", "Fortran order"), ("misaligned", "misaligned"))
    }
    return made | {
        "misread": lambda: by_tool(session, WRONG),
        "copied": lambda: by_tool(session, COPIED),
        "faulty": lambda: listed(numbers.faulty(session.frame("ownership"))),
    }


def prices(session: Session, way: str, label: str) -> str:
    """`nanobind 60, pybind11 70`: ns of the tools that are here, in rising order."""
    found, known = numbers_of(session), {}
    for tool in TOOLS:
        cost = found[f"{tool}, {way}, ns on {label}"].estimate
        if cost and cost.interval.is_known:
            known[tool] = cost.interval.value
    said = listed([f"{tool} {known[tool]:,.0f}" for tool in sorted(known, key=known.get)])
    unknown = listed([tool for tool in TOOLS if tool not in known])
    return "; ".join(filter(None, [said, unknown and f"not known of {unknown}"]))


def by_tool(session: Session, fate: str) -> str:
    """`A (float32 and int64); B (float32)`: what met a fate, by tool."""
    met = numbers.by_tool(session.frame("fates"), fate)
    return "; ".join(f"{tool} ({listed(kinds)})" for tool, kinds in met.items())


def fates_of(session: Session, given: str) -> str:
    """`refused by A; copied by B`, for one kind of array."""
    rows = session.frame("fates")
    met = {fate: numbers.by_fate(rows, fate).get(given, []) for fate in (REFUSED, COPIED, WRONG, IN_PLACE)}
    return "; ".join(f"{fate} by {listed(tools)}" for fate, tools in met.items() if tools) or "not measured"
