"""What the sentences of the chapter "Arenas" name and no form can say: lists by answer, and extremes of several
numbers."""

import math
from collections.abc import Callable
from functools import partial

import pandas as pd

from ffilab.judge import ledger
from ffilab.judge.processes import chosen
from ffilab.judge.questions import NO, YES, above
from ffilab.judge.sentences import NOTHING
from ffilab.judge.wording import listed
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.arenas import experiment as e
from notebooks.arenas import numbers

# What is said of the effects of allocators: those of this factor or more.
LARGE, SAID = 2.0, 4


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    here = partial(numbers.looked_at, session)
    return {
        "huge-pages-setting": lambda: here()["huge pages"],
        "small-huge-pages": lambda: here()["huge pages of 128 KiB"],
        "each-thread": partial(each_thread, session),
        "ratings": partial(ratings, session),
        "largest": partial(largest, session),
        "python-objects-small": partial(python_objects, session, "small"),
        "python-objects-large": partial(python_objects, session, "large"),
    }


def each_thread(session: Session) -> str:
    """MiB of huge pages without any native thread, over Python threads alive at once, by the number of them asked for:
    a pool starts no thread where one idles."""
    runs = chosen(numbers.talk(session.frame(numbers.TALK)), interpreter=FREE_THREADED)
    parts = {n: chosen(runs, condition=condition) for n, condition in numbers.FEWER.items()}
    found = {n: pd.to_numeric(part.huge / part.python_at_once) for n, part in parts.items() if len(part)}
    if not found:
        return NOTHING
    if max(max(values) for values in found.values()) < 0.2:
        return "No huge pages became resident for Python threads here."
    threads: dict[str, list[str]] = {}
    for number, values in found.items():
        threads.setdefault(numbers.middle(values), []).append(str(number))
    every = "; ".join(f"{mib} with {listed(of)} threads" for mib, of in threads.items())
    return f"Each Python thread brings huge pages of its own, in MiB for each: {every}."


def ratings(session: Session) -> str:
    """A21: what the rules answer, by program: is the order the one that the talk's ratings give?"""
    answers: dict[str, set[str]] = {}
    pairs = numbers.pairs()
    for (claim, rule), answer in ledger.answers(session).items():
        if claim == "A21" and rule.decides:
            answers.setdefault(pairs[rule.number][0].removesuffix(", all freed"), set()).add(answer.verdict)
    kinds: dict[str, list[str]] = {}
    for program, given in answers.items():
        if not given & {YES, NO}:
            kind = "too close to call, or not measured, in"
        elif given == {YES}:
            kind = "that of the ratings in"
        else:
            kind = "in part that of the ratings in" if YES in given else "not that of the ratings in"
        kinds.setdefault(kind, []).append(program)
    parts = [f"{kind} {len(programs)} ({'; '.join(programs)})" for kind, programs in kinds.items()]
    return f"Of {len(answers)} programs that the rules ask, the order is {', '.join(parts)}."


def largest(session: Session) -> str:
    """The largest differences to glibc's, by scenario and allocator; less is better in all of them."""
    runs = numbers.scenarios(session.frame("scenarios"))
    arms = [(name, arm) for name in numbers.DECIDES for arm in e.ARMS if arm != "glibc"]
    arms = [one for one in arms if one[0] != numbers.LATENCY or not numbers.too_coarse(runs, one[1])]
    found = {one: ratio.interval for one in arms if (ratio := numbers.over(runs, *one, "glibc"))}
    clear = {which: one for which, one in found.items() if above(one, LARGE) == YES or above(one, 1 / LARGE) == NO}
    if not clear:
        return f"No allocator differs from glibc's by a factor of {LARGE:g} or more, as far as this run can say."
    ordered = sorted(clear, key=lambda which: -abs(math.log(clear[which].value)))[:SAID]
    times = {(name, arm): clear[name, arm].value for name, arm in ordered}
    parts = [
        f"{arm} takes {factor:.2g} times as much in {name}"
        if factor > 1
        else f"{arm} takes 1/{1 / factor:.2g} of it in {name}"
        for (name, arm), factor in times.items()
    ]
    return f"The largest differences to glibc's: {'; '.join(parts)}."


def python_objects(session: Session, size: str) -> str:
    """Of requests of a size to PyObject_Malloc, the share that glibc serves, by interpreter; one process each."""
    found = chosen(session.frame("domains"), domain="PyObject_Malloc", size=size)
    kinds: dict[str, list[str]] = {"none": [], "all": [], "a part": []}
    for label, share in sorted(zip(found.interpreter, found.share, strict=True)):
        kinds["none" if share < 0.1 else "all" if share > 0.9 else "a part"].append(label)
    return " and ".join(f"{kind} on {listed(labels)}" for kind, labels in kinds.items() if labels) or NOTHING
