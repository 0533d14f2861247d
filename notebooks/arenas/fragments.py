"""What the sentences of the chapter "Arenas" name and no form can say: lists by answer, and extremes of several numbers."""

import math
from collections.abc import Callable
from functools import partial

from ffilab.judge import ledger
from ffilab.judge.numbers import of
from ffilab.judge.processes import chosen, location
from ffilab.judge.questions import NO, OPEN, YES, above, larger
from ffilab.judge.sentences import NOTHING, said
from ffilab.judge.wording import listed, text
from ffilab.measure.session import Session
from notebooks.arenas import experiment as e
from notebooks.arenas import numbers, results

# What is said of the effects of allocators: those of this factor or more.
LARGE, SAID = 2.0, 6
LESS = "less than is of interest"
KINDS = {YES: "grew", NO: "fell", OPEN: "is not seen to change"}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    here = partial(numbers.looked_at, session)
    return {
        "huge-pages-setting": lambda: here()["huge pages"],
        "small-huge-pages": lambda: here()["huge pages of 128 KiB"],
        "each-thread": partial(each_thread, session),
        "grid-first": partial(step, session, results.SMALLEST[1]),
        "grid-most": partial(step, session, results.LARGEST[1]),
        "prediction-4": partial(best_setting, session),
        "ratings": partial(ratings, session),
        "largest": partial(largest, session),
        "python-objects-small": partial(python_objects, session, "small"),
        "python-objects-large": partial(python_objects, session, "large"),
    }


def each_thread(session: Session) -> str:
    """MiB of huge pages without any native thread, over Python threads alive at once, by the number of them asked for."""
    found = results.for_each_python_thread(numbers.talk(session))
    if not found:
        return NOTHING
    if max(max(values) for values in found.values()) < 0.2:
        return "No huge pages became resident for Python threads here."
    every = listed([f"{results.middle(values)} with {threads}" for threads, values in found.items()])
    return f"MiB of huge pages for each Python thread that was alive at once, by how many were asked for: {every}."


def step(session: Session, native: int) -> str:
    """From none to so many native threads: on which builds memory grew, fell, and on which neither is told."""
    cells, python = results.grid(session.frame(numbers.GRID)), results.LARGEST[0]
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS.values()}
    for build in sorted(set(cells.build)):
        if found := location(results.native_part(cells, build, python, native), "MiB"):
            one = found.interval
            kinds[KINDS[above(one, 0)]].append(f"{build} ({text(one, 'MiB')})")
    found = "; ".join(f"{kind} on {listed(builds)}" for kind, builds in kinds.items() if builds)
    where = f"From 0 to {native} native threads a call, at {python} Python threads"
    return f"{where}, memory {found}." if found else f"{where}: not measured here."


def best_setting(session: Session) -> str:
    """Which setting of glibc makes the work by turns smallest, which others may, and what it does to the work all at once."""
    every = {name: of(session)[f"MiB grown, by turns: {name} / nothing"].measurement for name in e.SETTINGS}
    helps = {name: one.interval for name, one in every.items() if one and above(one.interval, 1) == NO}
    if not helps:
        return "No setting of glibc is seen to make this work's memory smaller here, or nothing is known of it."
    best = min(helps, key=lambda name: helps[name].value)
    rivals = [name for name, one in helps.items() if name != best and larger(one, helps[best]) != YES]
    beside = f" {listed(rivals)} cannot be told from it." if rivals else ""
    turns, once = (said(session)[f"with {best}, {work}"] for work in ("by turns", "all at once"))
    return f"{turns}{beside} {once}"


def ratings(session: Session) -> str:
    """A21: how the rules answer, by scenario: is the allocator that the talk prefers the better one?"""
    names = {YES: "with the talk", NO: "against it"}
    part, no_effect, unknown = "with it in part", "no effect of interest", "undecided or not measured"
    kinds: dict[str, list[str]] = {kind: [] for kind in (*names.values(), part, LESS, no_effect, unknown)}
    for claim, scenario in numbers.RATED:
        found = {
            no_effect if a.no_effect else LESS if a.reason.startswith(LESS) else names.get(a.verdict, unknown)
            for (one, rule), a in ledger.answers(session).items()
            if one == claim and rule.decides
        }
        kinds[found.pop() if len(found) == 1 else part if names[YES] in found else unknown].append(scenario)
    parts = [f"{kind} {len(found)} ({'; '.join(found)})" for kind, found in kinds.items() if found]
    return f"Of {len(numbers.RATED)} scenarios the rules decide so: {', '.join(parts)}."


def largest(session: Session) -> str:
    """The largest differences to glibc's, by scenario and allocator; less is better in all of them."""
    runs = results.scenarios(session.frame("scenarios"))
    arms = [(name, arm) for name in e.SCENARIOS for arm in (*e.ALLOCATORS[1:], e.PURGING)]
    found = {f"{name}, {arm}": one.interval for name, arm in arms if (one := results.over_glibc(runs, name, arm))}
    clear = {which: one for which, one in found.items() if above(one, LARGE) == YES or above(one, 1 / LARGE) == NO}
    if not clear:
        return f"No allocator differs from glibc's by a factor of {LARGE:g} or more, as far as this run tells."
    parts = [
        f"{which}: {'larger' if clear[which].value > 1 else 'smaller'} by a factor of "
        f"{text(clear[which] if clear[which].value > 1 else clear[which].inverse)}"
        for which in sorted(clear, key=lambda which: -abs(math.log(clear[which].value)))[:SAID]
    ]
    return f"The largest differences to glibc's that are a factor of {LARGE:g} or more: {'; '.join(parts)}."


def python_objects(session: Session, size: str) -> str:
    """Of requests of a size to PyObject_Malloc, the share that glibc serves, by interpreter; one process each."""
    found = chosen(session.frame("domains"), domain="PyObject_Malloc", size=size)
    kinds: dict[str, list[str]] = {"none": [], "all": [], "a part": []}
    for label, share in sorted(zip(found.interpreter, found.share, strict=True)):
        kinds["none" if share < 0.1 else "all" if share > 0.9 else "a part"].append(label)
    parts = "; ".join(f"{kind} of them on {listed(labels)}" for kind, labels in kinds.items() if labels)
    return f"Of {size} requests for Python objects, glibc serves {parts}." if parts else NOTHING
