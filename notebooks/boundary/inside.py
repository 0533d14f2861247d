"""What one call through ctypes and PyO3 is made of: instructions in call trees, for a call with an int (A11), and
samples of profilers (A10). Which functions: facts.toml."""

import re
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Counted, Estimate, Location
from ffilab.judge.numbers import Declarations
from ffilab.judge.questions import NO, YES, above
from ffilab.measure import profile
from ffilab.measure.instructions import Node
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary.looks import COMPARED, WITHOUT_HAND_OVER

number = Declarations()
FACTS = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))
PLACES = FACTS["places"]
CDLL, PYO3 = COMPARED
SHARE = "share of the instructions of a call through ctypes"
# By binding; and for a profile, by interpreter and binding, each of its processes.
Trees = dict[str, list[dict]]
# What one looks for in a tree.
Look = Callable[[list[Node]], float]


def nodes(lines: list[dict]) -> list[Node]:
    """A call tree as it was recorded."""
    return [Node(**line) for line in lines]


def below(tree: list[Node], pattern: str) -> float:
    """Share of a call's instructions below the functions whose name has `pattern` in it; the outermost counts."""
    total, inside = 0.0, None
    for node in tree:
        if inside is not None and node.depth > inside:
            continue
        inside = None
        if re.search(pattern, node.function):
            total, inside = total + node.share, node.depth
    return total


def leads(tree: list[Node], outer: str, inner: str) -> bool:
    """Is there a function with `inner` in its name anywhere below one with `outer`?"""
    above: list[str] = []
    for node in tree:
        del above[node.depth :]
        if re.search(inner, node.function) and any(re.search(outer, function) for function in above):
            return True
        above.append(node.function)
    return False


def links(tree: list[Node], binding: str) -> pd.DataFrame:
    """A11: the links of a binding's call path as columns link, met, and share (of the instructions, below what the link
    leads to)."""
    return pd.DataFrame(
        {"link": what, "met": leads(tree, outer, inner) != bool(absent), "share": below(tree, inner)}
        for what, outer, inner, *absent in FACTS["links"][binding]
    )


def steps(tree: list[Node], binding: str) -> list[tuple[str, float]]:
    """The steps of a call in order, each with its instructions in the call tree; NaN if the tree does not show it."""
    total = tree[0].instructions
    shares = [(what, below(tree, pattern)) for what, pattern in FACTS["steps"][binding]]
    return [(what, total * share if share else np.nan) for what, share in shares]


def links_shown(tree: list[Node], binding: str) -> float:
    """Share of a call path's links that the tree shows."""
    return links(tree, binding).met.mean()


def largest_less_next(tree: list[Node]) -> float:
    """By how much the largest of the three places of a call has a larger share than the next."""
    return np.diff(sorted(below(tree, pattern) for pattern in PLACES.values()))[-1]


SEEN = {
    **{
        f"{binding}: share of its links that the call tree shows": {
            "binding": binding,
            "look": partial(links_shown, binding=binding),
        }
        for binding in COMPARED
    },
    # The general entry of a call, which the talk's diagram puts into PyO3's path.
    "PyO3: PyObject_Vectorcall in its call tree": {
        "binding": PYO3,
        "look": partial(leads, outer="_PyEval_EvalFrameDefault", inner="PyObject_Vectorcall"),
    },
    **{
        f"instructions of a call: {binding}": {"binding": binding, "look": lambda tree: tree[0].instructions}
        for binding in COMPARED
    },
    **{f"{SHARE}: {place}": {"look": partial(below, pattern=pattern)} for place, pattern in PLACES.items()},
    f"{SHARE}: from_param": {"look": partial(below, pattern="PyObject_CallOneArg")},
    f"{SHARE}: largest place less the next": {"look": largest_less_next},
}


@number("{seen}", seen="call trees", over={"seen": SEEN})
def in_tree(trees: Trees, look: Look, binding: str = CDLL) -> Counted | str:
    """What one looks for in the call tree of a binding, as a number; or that it was not built."""
    return Counted(float(look(nodes(trees[binding])))) if binding in trees else f"{binding} was not built"


@number(f"instructions of a call: {' / '.join(COMPARED)}")
def instructions_ratio(session: Session) -> Counted | None:
    """Instructions of a call through ctypes over those through PyO3; None if one was not counted."""
    trees = session.observed("call trees")
    if isinstance(trees, str) or not set(COMPARED) <= set(trees):
        return None
    one, other = (nodes(trees[binding])[0].instructions for binding in COMPARED)
    return Counted(one / other)


# ---- profiles ----

# By interpreter and binding, what was seen of each process; and where that is recorded.
Profiles = dict[str, dict[str, list[dict]]]
PROFILES = "where the time goes, by process"
# Symbols of our own bindings, beside those that the profile knows.
OURS = (("code of the binding", re.compile("boundary_")),)
HAND_OFF, LIBFFI = profile.HAND_OFF, "libffi"
# What a call through ctypes adds beside libffi and the hand-over, and so what may be next; the interpreter's loop and
# the function that is called are no part of it.
OTHERS = (profile.CONVERSION, profile.CALLING, "locks of objects")
BY_FILE, BY_STEP, BY_FUNCTION = "by file", "by step", "by function"
NEXT = "libffi among libffi and the largest of the others, PyDLL"
# drop_gil is inlined there.
LOCK, HAND_OVER = "pthread_mutex_lock", "take_gil|drop_gil|_PyEval_ReleaseLock"


def no_time(profiles: Profiles, label: str, binding: str) -> str:
    """Why these profiles say nothing about time; empty if they do."""
    looks = profiles[label].get(binding)
    if not looks:
        return f"{binding} was not profiled"
    if not looks[0]["how"].startswith("perf"):
        return "perf may not sample here: instructions were counted instead, and the claim is about time"
    return ""


@number("share of the hand-off in a CDLL call", seen=PROFILES, label=GIL, group=HAND_OFF)
@number("share of the hand-off in a CDLL call on {FREE_THREADED}", seen=PROFILES, label=FREE_THREADED, group=HAND_OFF)
@number("share of libffi in a CDLL call", seen=PROFILES, label=GIL, group=LIBFFI)
def own_time(profiles: Profiles, label: str, group: str) -> Estimate | str:
    """Share of one group of symbols among all of them. Instructions are no shares of time."""
    if reason := no_time(profiles, label, CDLL):
        return reason
    each = [profile.grouped(look, OURS) for look in profiles[label][CDLL]]
    return Location.of(
        np.array([groups[group] / total for groups in each if (total := sum(groups.values()))]), signed=False
    )


@number("profiles of ctypes CDLL on {FREE_THREADED}", seen=PROFILES, label=FREE_THREADED)
def processes(profiles: Profiles, label: str) -> Counted | str:
    """How many processes of ctypes CDLL were profiled; or why that says nothing about time."""
    return no_time(profiles, label, CDLL) or Counted(len(profiles[label][CDLL]))


def groupings(look: dict) -> dict[str, Counter]:
    """What PyDLL leaves of one process, grouped in three ways: libffi and the others."""
    files = profile.grouped(look, OURS)
    by_file = Counter({group: files[group] for group in (LIBFFI, *OTHERS)})
    by_step, by_function = Counter({LIBFFI: files[LIBFFI]}), Counter({LIBFFI: files[LIBFFI]})
    for symbol, _, cost in look["costs"]:
        if step := next((step for step, pattern in FACTS["left"].items() if re.search(pattern, symbol)), None):
            by_step[step] += cost
            by_function[re.split(r"@|\.cold", symbol.removeprefix("[.] "))[0]] += cost
    return {BY_FILE: by_file, BY_STEP: by_step, BY_FUNCTION: by_function}


@number(f"{NEXT}, {{grouping}}", seen=PROFILES, over={"grouping": (BY_FILE, BY_STEP, BY_FUNCTION)})
def share_of_two(profiles: Profiles, grouping: str) -> Estimate | str | None:
    """A10: libffi's share of itself and the largest of what else PyDLL leaves, over all processes, by one grouping."""
    if reason := no_time(profiles, *WITHOUT_HAND_OVER):
        return reason
    label, binding = WITHOUT_HAND_OVER
    each = [groupings(look)[grouping] for look in profiles[label][binding]]
    both = sum(each, Counter())
    other = max((group for group in both if group != LIBFFI), key=both.get, default=None)
    if other is None:
        return None
    return Location.of(
        np.array([one[LIBFFI] / total for one in each if (total := one[LIBFFI] + one[other])]), signed=False
    )


@number(NEXT, seen=PROFILES)
def next_bottleneck(profiles: Profiles) -> Estimate | str:
    """A10: libffi's share by step. Where two groupings say the contrary of each other, the grouping is what varies:
    then it is the mean over groupings, and its interval is as wide as they make it."""
    shares = {grouping: share_of_two(profiles, grouping) for grouping in (BY_FILE, BY_STEP, BY_FUNCTION)}
    known = [share for share in shares.values() if isinstance(share, Location)]
    if {YES, NO} <= {above(share.interval, 0.5) for share in known}:
        among = Location.of(np.array([share.centre for share in known]))
        # No number of runs makes the groupings agree.
        return replace(among, floor=among.error, stays=among.error)
    return shares[BY_STEP] or "nothing of ctypes was seen"


@number("as run: pthread_mutex_lock below take_gil and drop_gil", seen="the talk's loop, profiled")
def lock(graphs: dict[str, list[dict]]) -> Estimate | None:
    """Share of the samples of the talk's loop that are in the lock of the hand-over; a value for each process."""
    if CDLL not in graphs:
        return None
    shares = []
    for look in graphs[CDLL]:
        total = sum(n for _, n in look["stacks"])
        in_lock = [(outer, n) for (first, *outer), n in look["stacks"] if re.search(LOCK, first)]
        inside = sum(n for outer, n in in_lock if any(re.search(HAND_OVER, function) for function in outer))
        shares.append(inside / total if total else np.nan)
    return Location.of(np.array(shares), signed=False)
