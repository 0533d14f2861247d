"""What the sentences of the chapter "Critical sections" list, and no form can say."""

import itertools
import math
from collections.abc import Callable
from functools import partial

from ffilab.judge.numbers import of
from ffilab.judge.questions import NO, OPEN, YES, larger
from ffilab.judge.wording import capital, listed, number, text
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary.experiment import ANSWER, TALK
from notebooks.critical_sections import numbers, results
from notebooks.critical_sections.experiment import PIECES

# More cases than these need not be listed: they stand in the table.
MANY = 3
# What two builds may differ by, and are as dear: a twentieth.
CLOSE = 1.05
PAIR = f"{FREE_THREADED} / {GIL}"


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    made = {f"gains-{group}": partial(gains, session, group) for group in numbers.COMPANY}
    return made | {
        "calibrated": lambda: capital("; ".join(f"{one.what}: {one.found}" for one in numbers.controls(session))),
        "failed": lambda: listed([one.what for one in numbers.controls(session) if not one.passed]),
        "lost-texts": lambda: listed([*numbers.by_gain(session, "texts")["less"]]),
        "gained-gil": lambda: listed([*numbers.by_gain(session, "objects-gil")["more"]]),
        "below": partial(below, session),
        "tax-kinds": partial(kinds, session),
        "boundary-mean": partial(bindings, session),
        "prediction-2": partial(order, session),
        "two-classes": partial(two_classes, session),
    }


def gains(session: Session, group: str) -> str:
    """`two threads together did more than one in 2 of 3 cases (A; B), and less than one in 1 of 3 cases (C)`."""
    found = numbers.by_gain(session, group)
    n = sum(map(len, found.values()))
    if not n:
        return "nothing was measured"

    def cases(gain: str) -> str:
        names = found[gain]
        if len(names) == n > 1:
            return f"in all {n} cases"
        return f"in {len(names)} of {n} cases" + (f" ({'; '.join(names)})" if len(names) <= MANY else "")

    parts = [f"{gain} than one {cases(gain)}" for gain in ("more", "less") if found[gain]]
    if found["no more"]:
        most = max(rate.high for rate in found["no more"].values())
        parts.append(f"at most {math.ceil((most - 1) * 100 - 1e-9)} % more than one {cases('no more')}")
    said = [f"two threads together did {', and '.join(parts)}"] if parts else []
    if found["open"]:
        said.append(f"whether two threads did more than one is undecided {cases('open')}")
    return ". ".join([said[0], *map(capital, said[1:])])


def below(session: Session) -> str:
    """The bindings that gained less than two threads of the calibration."""
    threads = of(session)["two threads of the calibration / one"].measurement.interval
    rates = {name: rate.interval for name, rate in numbers.rates(session, "bindings").items()}
    names = [f"{name} {text(rate)}" for name, rate in rates.items() if larger(threads, rate) == YES]
    said = f" Beyond doubt {listed(names)} gained less than two threads of the calibration, {text(threads)}."
    return said if names else ""


def kinds(session: Session) -> str:
    """On what kinds of operations is the tax?"""
    found = {kind: of(session)[f"{kind}, {PAIR}"].measurement for kind in results.KINDS if kind != "interpreter"}
    found = {kind: tax for kind, tax in found.items() if tax and tax.interval.is_known}
    if not found:
        return "By kinds of operations the tax is not known here."
    times = listed([f"{kind} takes {text(tax.interval)}" for kind, tax in found.items()])
    paid = {
        YES: "more than 5 % is paid for",
        NO: "less than 5 % is paid for",
        OPEN: "whether it is more than 5 % is undecided for",
    }
    said = grouped({kind: numbers.above(tax, CLOSE) for kind, tax in found.items()}, paid)
    return f"Over the same with the GIL, without it {times} times as long: {said}."


def bindings(session: Session) -> str:
    """A6: which of the talk's bindings got dearer without the GIL, and which cheaper?"""
    mean = of(session)[f"boundary, {PAIR}"].measurement
    if mean is None or not mean.interval.is_known:
        return "What each binding pays without the GIL was not measured here."
    answers = {}
    for binding in TALK:
        if ratio := of(session)[f"{binding}, {ANSWER}: {PAIR}"].measurement:
            is_close = (numbers.above(ratio, 1 / CLOSE), numbers.above(ratio, CLOSE)) == (YES, NO)
            answers[f"{binding} ({text(ratio.interval)} times)"] = "close" if is_close else numbers.above(ratio, 1.0)
    hows = {
        YES: "dearer through",
        NO: "cheaper through",
        "close": "as dear, to within a twentieth, through",
        OPEN: "not told from the one with it through",
    }
    shown, hides = text(mean.interval), {YES, NO} <= set(answers.values())
    end = f"The mean of all, {shown}, hides that." if hides else f"The mean of all is {shown}."
    return f"Without the GIL this call is {grouped(answers, hows)}. {end}"


def grouped(answers: dict[str, str], hows: dict[str, str]) -> str:
    """`dearer through A and B; cheaper through C`, of the answer for each name and how to say it."""
    groups = {how: [name for name, one in answers.items() if one == answer] for answer, how in hows.items()}
    return "; ".join(f"{how} {listed(names)}" for how, names in groups.items() if names)


def order(session: Session) -> str:
    """Prediction 2: locks from the cheapest to the dearest, and their prices."""
    found = {name: of(session)[f"{name}, ns on {FREE_THREADED}"].measurement for name in numbers.LOCKS}
    prices = {name: one.interval for name, one in found.items() if one}
    if len(prices) < 2:
        return "Here: not measured."
    said, *dearer = names = sorted(prices, key=lambda name: prices[name].value)
    for cheap, dear in zip(names, dearer):
        told = numbers.above(of(session)[f"{dear} / {cheap}"].measurement, 1.0) == YES
        said += f", then {dear}" if told else f", not told apart from {dear}"
    listing = "; ".join(f"{name} {text(prices[name], 'ns')}" for name in names)
    return f"Here, from the cheapest: {said} ({listing})."


def two_classes(session: Session) -> str:
    """Loops whose layouts fall into two classes: the two that take longest."""
    record = session.timed("single")
    cells = itertools.product((GIL, FREE_THREADED), PIECES)
    found = {f"{name} on {label}": results.piece_classes(record, label, name) for label, name in cells}
    longest = sorted((item for item in found.items() if item[1]), key=lambda item: -item[1][1][0])
    if not longest:
        return "No loop has layouts of two classes in this run."
    said = "; ".join(
        f"{name} takes {number(low, low / 30)} ns on {few} layouts and {number(high, high / 30)} ns on {more}"
        for name, ((low, few), (high, more)) in longest[:2]
    )
    others = f" ({len(longest) - 2} more in the table)" if len(longest) > 2 else ""
    return (
        f"Not every loop has one time: {said}{others}. The machine code is the same, and lies at other addresses: "
        "where the linker puts a loop can be worth a large factor, and a mean of the two classes is a time that nobody sees."
    )
