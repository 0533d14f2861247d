"""The sentences of the chapter "Critical sections" that a run chooses: from intervals and checks to plain text.

Nothing here looks at a session, draws or glues. A gain or a loss is named where the interval says so, and nowhere else.
"""

import functools
import math

import pandas as pd

from ffilab import draw
from ffilab.judge import estimates
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.critical_sections.experiment import BOTH, IN, KNOWN_NAME, MADE_ELSEWHERE, ONE, OUT, OUT_OWN, OWN

WHERE = {
    OWN: "With an object for each thread, made by it,",
    MADE_ELSEWHERE: "With an object for each thread, made by the main thread,",
    ONE: "On one object,",
}
# More cases than these need not be listed: they stand in the table.
MANY = 3
# What a second thread brings is of interest from here on: a fifth of a thread. And what two builds may differ by, a twentieth.
WORTH, CLOSE = 1.2, 1.05
# Closest of what prediction 1 offers: up to this ratio.
OFFERED = {"1 %": 1.055, "10 %": 1.3, "50 %": float("inf")}


def _shown(found: Interval | None, unit: str = "") -> str:
    """With its interval, if it has one that is wider than nothing."""
    if found is None:
        return draw.NOT_MEASURED
    if found.is_known and found.low < found.high:
        return draw.text(found, unit)
    return f"{draw.number(found.value, 0)} {unit}".strip()


def _longer(ratio: Interval) -> str:
    """`1.73 [1.70, 1.77] times`, of a ratio or of its inverse: never below 1."""
    if ratio.value < 1:
        ratio = ratio.inverse
    return f"{_shown(ratio)} times"


def _withheld(checks: list[Check]) -> str | None:
    """What stands in place of a sentence on threads if the calibration failed."""
    if not checks:
        return "Withheld: this run has no calibration."
    failed = [check.what for check in checks if not check.passed]
    return f"Withheld: the calibration of this run failed ({draw.listed(failed)})." if failed else None


def _on_threads(sentence):
    """A sentence on threads, whose last argument are the checks of the calibration: withheld if one of them failed."""

    @functools.wraps(sentence)
    def said(*given):
        return _withheld(given[-1]) or sentence(*given)

    return said


def _by_gain(rows: dict[str, Interval]) -> dict[str, list[str]]:
    """Names by what a second thread brings: more in total, less, nothing of interest, or what the interval leaves open."""
    groups: dict[str, list[str]] = {"more": [], "less": [], "no more": [], "open": []}
    for name, found in rows.items():
        if found.is_known and found.excludes(1):
            groups["more" if found.low > 1 else "less"].append(name)
        else:
            groups["no more" if found.is_known and found.high <= WORTH else "open"].append(name)
    return groups


def _percent(bound: float) -> str:
    """`7 %`, of a ratio above 1, rounded up."""
    return f"{math.ceil((bound - 1) * 100 - 1e-9)} %"


def _gains(rows: dict[str, Interval]) -> str:
    """`two threads together did more than one in 2 of 3 cases (A; B), less than one in 1 of 3 cases (C)`."""
    if not rows:
        return "nothing was measured"
    groups = _by_gain(rows)

    def cases(names: list[str]) -> str:
        if len(names) == len(rows) > 1:
            return f"in all {len(rows)} cases"
        return f"in {len(names)} of {len(rows)} cases" + (f" ({'; '.join(names)})" if len(names) <= MANY else "")

    parts = [f"{what} than one {cases(groups[what])}" for what in ("more", "less") if groups[what]]
    if groups["no more"]:
        most = max(rows[name].high for name in groups["no more"])
        parts.append(f"at most {_percent(most)} more than one {cases(groups['no more'])}")
    said = [f"two threads together did {', and '.join(parts)}"] if parts else []
    if groups["open"]:
        said.append(f"whether two threads did more than one is undecided {cases(groups['open'])}")
    return ". ".join([said[0], *(each[0].upper() + each[1:] for each in said[1:])])


def calibration(checks: list[Check]) -> str:
    """Can this machine do two things at once? If not, what is withheld."""
    found = "; ".join(f"{check.what}: {check.found}" for check in checks)
    found = found[:1].upper() + found[1:]
    if all(check.passed for check in checks):
        return f"The calibration passed. {found}."
    return (
        f"The calibration failed. {found}. So this run cannot tell what threads do to each other, "
        "and every sentence below that would rest on it is withheld."
    )


def calibration_note(checks: list[Check]) -> str:
    """For the captions of tables of threads."""
    if not checks:
        return "There was no calibration: draw no conclusion."
    return "The calibration passed." if not _withheld(checks) else "The calibration failed: draw no conclusion."


@_on_threads
def in_company(found: pd.DataFrame, shared: str, checks: list[Check]) -> str:
    """What a second thread brings, by lock or object. found: rows with name, threads, shared, value, low, high."""
    rows = found[(found.threads == 2) & (found.shared == shared)]
    return f"{WHERE[shared]} {_gains({row['name']: Interval.of(row) for _, row in rows.iterrows()})}."


@_on_threads
def one_against_own(name: str, own: Interval | None, one: Interval | None, checks: list[Check]) -> str:
    """Each of two threads on one object, against each on its own: ns of an operation of one thread."""
    if not (estimates.known(own) and estimates.known(one)):
        return f"What sharing costs for {name} cannot be told here."
    times = (
        f"{_shown(one, 'ns')} for each of two threads on one object, and {_shown(own, 'ns')} on objects of their own"
    )
    if one.low > own.high:
        return f"Sharing costs: {name} takes {times}."
    if one.high < own.low:
        return f"Sharing was cheaper here: {name} takes {times}."
    return f"Whether sharing costs anything for {name} is undecided here: it takes {times}."


def against(one: str, other: str, ratio: Interval | None) -> str:
    """Does one thing take longer than another? ratio: time of one over time of the other."""
    if not estimates.known(ratio):
        return f"Whether {one} takes longer than {other} cannot be told here."
    if not ratio.excludes(1):
        return f"Whether {one} takes longer than {other} is undecided here: the ratio is {_shown(ratio)}."
    longer, shorter = (one, other) if ratio.low > 1 else (other, one)
    text = f"{longer} takes {_longer(ratio)} as long as {shorter}."
    return text[0].upper() + text[1:]


def against_documentation(
    what: str, version: str, found: Interval | None, documented: tuple[float, float] | None
) -> str:
    """A tax beside the range that the version's documentation names (ratios)."""
    subject = f"On {what}, {version}"
    if not estimates.known(found):
        return f"{subject}: the tax is not known here."
    if documented is None:
        return f"{subject}: {_shown(found)}; the documentation of this version names no number."
    low, high = documented
    named = f"the documentation's {low:.2f}" + (f" to {high:.2f}" if high > low else "")
    if found.low > high:
        place = "is above"
    elif found.high < low:
        place = "is below"
    elif low <= found.low and found.high <= high:
        place = "is within"
    else:
        return f"{subject}: {_shown(found)} straddles an end of {named}, so which side it is on is undecided here."
    return f"{subject}: {_shown(found)} {place} {named}."


@_on_threads
def new_name(new: Interval | None, known: Interval | None, checks: list[Check]) -> str:
    """Is it the new text? An attribute by a new name, and the same one by a known name: rates of two threads over one."""
    if not (estimates.known(new) and estimates.known(known)):
        return "Whether it is the new name, or the object that is looked into, cannot be told here."
    rates = f"by a known name the rate is {_shown(known)} times that of one thread, by a new one {_shown(new)}"
    if known.low > new.high:
        return f"The gain goes with the name: {rates}."
    if known.high < new.low:
        return f"It is not the new name: {rates}."
    return f"Whether it is the new name is undecided here: {rates}."


def prediction_1(tax: Interval | None) -> str:
    """1 %, 10 % or 50 %?"""
    if not estimates.known(tax):
        return "Here: not known."
    fits, below = [], 0.0
    for name, up_to in OFFERED.items():
        if tax.low < up_to and tax.high >= below:
            fits.append(name)
        below = up_to
    if len(fits) > 1:
        return f"Here: {_shown(tax)} times as long; the run does not decide between {' and '.join(fits)}."
    if tax.high < 1:
        return f"Here: {_shown(tax)}; it is no slower at all, and 1 % is the closest."
    return f"Here: {_shown(tax)} times as long; {fits[0]} is the closest."


def prediction_2(order: list[tuple[str, Interval]], told: list[bool]) -> str:
    """Locks from the cheapest to the dearest. told: for each but the last, whether the next one is dearer beyond doubt."""
    if len(order) < 2:
        return "Here: not measured."
    text = order[0][0]
    for (name, _), is_told in zip(order[1:], told):
        text += f", then {name}" if is_told else f", not told apart from {name}"
    prices = "; ".join(f"{name} {_shown(found, 'ns')}" for name, found in order)
    return f"Here, from the cheapest: {text} ({prices})."


def prediction_5(ratio: Interval | None) -> str:
    """A reference count of a foreign object over one of an own object: 1, 2 or 10 times?"""
    if not estimates.known(ratio):
        return "Here: not known."
    if not ratio.excludes(1):
        return f"Here: {_shown(ratio)}; no difference is beyond doubt."
    if ratio.high < 1:
        return f"Here: the own one takes {_longer(ratio)} as long."
    nearest = min((1, 2, 10), key=lambda offered: abs(math.log(ratio.value / offered)))
    return f"Here: the foreign one takes {_longer(ratio)} as long; of the three, {nearest} is the closest."


def operations_for_alt(ratios: pd.DataFrame) -> str:
    """The dearest and the cheapest operation, for the figure's alt text."""
    if ratios.empty:
        return draw.NOT_MEASURED
    top, bottom = ratios.loc[ratios.value.idxmax()], ratios.loc[ratios.value.idxmin()]
    longer = {FREE_THREADED: sum(ratios.low > 1), GIL: sum(ratios.high < 1)}
    said = [
        f"{number} of {len(ratios)} take longer on {label} beyond doubt" for label, number in longer.items() if number
    ]
    return f"from {bottom.operation} {_shown(Interval.of(bottom))} to {top.operation} {_shown(Interval.of(top))}; " + (
        ", ".join(said) or "no difference is beyond doubt"
    )


@_on_threads
def more_than_one(found: Interval | None, checks: list[Check]) -> str:
    """Predictions 3 and 6: do two threads get more done than one?"""
    if not estimates.known(found):
        return "Here: not known."
    if found.low > 1:
        return f"Here: yes, {_shown(found)} times as much as one thread."
    if found.high < 1:
        return f"Here: no; one thread alone does {_longer(found)} as much as the two together."
    if found.high <= WORTH:
        return f"Here: no; two threads do {_shown(found)} times the work of one, at most {_percent(found.high)} more."
    return f"Here: undecided; two threads do {_shown(found)} times the work of one."


def objects_for_alt(rows: pd.DataFrame) -> str:
    """Python objects under two threads, for the figure's alt text. rows: with name, shared, interpreter and an interval."""
    said = []
    for label in dict.fromkeys(rows.interpreter):
        part = rows[rows.interpreter == label]
        groups = _by_gain({f"{row['name']}, {row.shared}": Interval.of(row) for _, row in part.iterrows()})
        words = {"more": "gained by a second thread", "less": "lost by it", "no more": "gained nothing of interest"}
        counts = ", ".join(f"{len(names)} {words.get(group, 'undecided')}" for group, names in groups.items() if names)
        said.append(f"on {label}: {counts} of {len(part)}")
    return "; ".join(said) or draw.NOT_MEASURED


@_on_threads
def with_the_gil(found: pd.DataFrame, checks: list[Check]) -> str:
    """The same Python objects in the build with the GIL."""
    rows = {f"{row['name']} ({row.shared})": Interval.of(row) for _, row in found[found.threads == 2].iterrows()}
    if not rows or not all(one.is_known for one in rows.values()):
        return "Whether anything gained with the GIL cannot be told here."
    if gained := [name for name, one in rows.items() if one.low > 1]:
        return f"With the GIL too, two threads did more than one for {draw.listed(gained)}."
    return f"With the GIL, {_gains(rows)}."


@_on_threads
def texts(found: pd.DataFrame, checks: list[Check]) -> str:
    """Is the UTF-8 cache or the table of interned texts a bottleneck? found: rows with name, value, low, high."""
    rows = {row["name"]: Interval.of(row) for _, row in found.iterrows() if row["name"] != KNOWN_NAME}
    if not rows:
        return "Cannot be told here: nothing was measured."
    groups = _by_gain(rows)
    if groups["less"]:
        return f"Two threads get in each other's way with {draw.listed(groups['less'])}: {_gains(rows)}."
    if len(groups["open"]) == len(rows):
        return "Undecided here, in all cases."
    return f"{'Undecided here' if groups['open'] else 'No'}: {_gains(rows)}."


@_on_threads
def bindings(found: pd.DataFrame, threads: Interval, checks: list[Check]) -> str:
    """Which bound functions scale as two threads of the calibration do. found: rows with name, value, low, high."""
    rows = {row["name"]: Interval.of(row) for _, row in found.iterrows()}
    text = f"With one function for both threads, {_gains(rows)}."
    below = [f"{name} {_shown(one)}" for name, one in rows.items() if one.is_known and one.high < threads.low]
    if not below:
        return text
    return (
        f"{text} Beyond doubt {draw.listed(below)} gained less than two threads of the calibration, {_shown(threads)}."
    )


@_on_threads
def ctypes_apart(found: dict[str, Interval | None], checks: list[Check]) -> str:
    """ctypes, a function for each thread: does a second thread bring anything, and what do they share? found: by what is handed over."""
    both, out, own, into = (found.get(name) for name in (BOTH, OUT, OUT_OWN, IN))
    if not estimates.known(both):
        return "Whether ctypes scales cannot be told here."
    rate = f"two threads do {_shown(both)} times the work of one with int → int, each through a function of its own"
    if both.low > 1:
        said = [f"A second thread speeds calls through ctypes up: {rate}."]
    elif both.high < 1:
        said = [f"A second thread slows calls through ctypes down: {rate}. So it is not the function that they share."]
    elif both.high < WORTH:
        most = _percent(both.high)
        said = [
            f"A second thread speeds calls through ctypes up by {most} at most: {rate}. It is not the function that they share."
        ]
    else:
        said = [f"Whether a second thread speeds calls through ctypes up is undecided here: {rate}."]
    if estimates.known(out) and estimates.known(own) and out.low < WORTH:
        rates = f"→ int gives {_shown(own)} with a type of the result for each thread, and {_shown(out)} with c_int for both"
        meet = own.low > out.high
        said.append(
            f"They meet at the type of the result: {rates}."
            if meet
            else f"Whether they meet at the type of the result was not resolved here: {rates}."
        )
    if estimates.known(into):
        same = ", a conversion that threads share as well" if into.high < WORTH else ""
        said.append(f"An argument alone, without a result, gives {_shown(into)}{same}.")
    return " ".join(said)


def once_and_often(once: Interval | None, often: Interval | None, equal: Interval | None) -> str:
    """PyMutex over an atomic increment; a hundred atomic ones over a hundred under one lock; that lock over one atomic addition of 100."""

    def winner(ratio: Interval | None, slow: str, fast: str) -> str:
        if not estimates.known(ratio) or not ratio.excludes(1):
            return f"undecided, {_shown(ratio)}"
        slow, fast = (slow, fast) if ratio.low > 1 else (fast, slow)
        return f"{fast}; {slow} takes {_longer(ratio)} as long"

    if not any(estimates.known(ratio) for ratio in (once, often, equal)):
        return "Whether the number of steps decides was not measured here."
    return (
        f"Faster for one step: {winner(once, 'the PyMutex', 'the atomic increment')}. For a hundred steps, one by one or under one lock: "
        f"{winner(often, 'one by one', 'under one PyMutex')}. And the lock-free equal of that lock, one atomic addition of a hundred: "
        f"{winner(equal, 'the PyMutex', 'the atomic addition')}."
    )


def two_classes(found: dict[str, list[tuple[float, int]]] | None) -> str:
    """Loops whose layouts fall into two classes. found: by loop the two (ns, number of layouts); None if not measured."""
    if found is None:
        return "Whether layouts fall into two classes was not measured here."
    if not found:
        return "No loop has layouts of two classes in this run."
    longest = sorted(found.items(), key=lambda item: -item[1][1][0])
    said = "; ".join(
        f"{name} takes {draw.number(low, low / 30)} ns on {few} layouts and {draw.number(high, high / 30)} ns on {more}"
        for name, ((low, few), (high, more)) in longest[:2]
    )
    others = f" ({len(longest) - 2} more in the table)" if len(longest) > 2 else ""
    return (
        f"Not every loop has one time: {said}{others}. The machine code is the same, and lies at other addresses: "
        "where the linker puts a loop can be worth a large factor, and a mean of the two classes is a time that nobody sees."
    )


def locks_in_call(call: dict[str, float] | None, others: dict[str, dict[str, float]]) -> str:
    """A9: are there locks in the call? Counts by group of headers, of the call and of operations that may stand beside one."""
    if call is None:
        return "What the call holds was not counted here."
    if call["locks"] >= 0.5:
        return (
            f"Locks are in this call: {call['locks']:.0f} of {call['all']:.0f} instructions come from mutexes and critical "
            f"sections, and {call['atomics']:.0f} from atomics."
        )
    text = (
        f"No lock is in this call: without its loop {call['atomics']:.0f} of its {call['all']:.0f} instructions come from atomics, "
        "and none from a mutex or a critical section."
    )
    locked = [f"{what} ({counts['locks']:.0f})" for what, counts in others.items() if counts["locks"] >= 0.5]
    if not locked:
        return text
    return (
        f"{text} Locks are in {draw.listed(locked)}. So the talk's lock most likely came from something beside the call, such "
        "as the dict that its loop wrote to, or from its version of CPython: an explanation, not tested."
    )


def hidden_by_the_mean(ratios: dict[str, Interval], mean: Interval | None) -> str:
    """A6: which of the talk's bindings got dearer without the GIL, and which cheaper? ratios: without the loop, by binding."""
    if not ratios or not estimates.known(mean):
        return "What each binding pays without the GIL was not measured here."
    close = "as dear, to within a twentieth,"
    groups: dict[str, list[str]] = {"dearer": [], "cheaper": [], close: [], "not told from the one with it": []}
    for name, one in ratios.items():
        if one.is_known and one.high < CLOSE and one.low > 1 / CLOSE:
            group = close
        elif one.is_known and one.excludes(1):
            group = "dearer" if one.low > 1 else "cheaper"
        else:
            group = "not told from the one with it"
        groups[group].append(f"{name} ({_shown(one)} times)")
    said = "; ".join(f"{group} through {draw.listed(names)}" for group, names in groups.items() if names)
    if groups["dearer"] and groups["cheaper"]:
        return f"Without the GIL this call is {said}. The mean of all, {_shown(mean)}, hides that."
    return f"Without the GIL this call is {said}. The mean of all is {_shown(mean)}."


def nearer(builds: str, how: str, published: float, off: Interval | None, on: Interval | None) -> str:
    """A6: is the talk's number nearer to the build with the GIL off, or to the same one with the GIL on? how: the method of ours."""
    if not (estimates.known(off) and estimates.known(on)):
        return f"{builds}, {how}: with the GIL off and on not known here; published {published:.2f}."
    found = f"{builds}, {how}: {_shown(off)} with the GIL off and {_shown(on)} with it on; published {published:.2f}"
    if off.low <= on.high and on.low <= off.high:
        return f"{found}. This run does not tell the two apart."
    away = {name: abs(math.log(one.value / published)) for name, one in (("off", off), ("on", on))}
    return f"{found}. That is nearer to the GIL {min(away, key=away.get)}."


def kinds(found: dict[str, Interval | None]) -> str:
    """On what is the tax? found: by kind of operation, time without the GIL over time with it."""
    known = {name: one for name, one in found.items() if estimates.known(one)}
    if not known:
        return "By kinds of operations the tax is not known here."
    times = draw.listed([f"{name} takes {_shown(one)}" for name, one in known.items()])
    paid = {
        "more than 5 % is paid for": [name for name, one in known.items() if one.low > CLOSE],
        "less than 5 % is paid for": [name for name, one in known.items() if one.high < CLOSE],
        "whether it is more than 5 % is undecided for": [n for n, one in known.items() if one.low <= CLOSE <= one.high],
    }
    said = "; ".join(f"{how} {draw.listed(names)}" for how, names in paid.items() if names)
    return f"Over the same with the GIL, without it {times} times as long: {said}."
