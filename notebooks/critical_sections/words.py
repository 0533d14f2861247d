"""The sentences of the chapter "Critical sections" that a run chooses: from intervals and checks to plain text.

Nothing here looks at a session, draws or glues. A gain or a loss is named where the interval says so, and nowhere else.
"""

import math

import pandas as pd

from ffilab import draw
from ffilab.judge import estimates
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.critical_sections.experiment import KNOWN_NAME, MADE_ELSEWHERE, ONE, OWN

WHERE = {
    OWN: "With an object for each thread, made by it,",
    MADE_ELSEWHERE: "With an object for each thread, made by the main thread,",
    ONE: "On one object,",
}
ONE_LOCK = "a hundred increments under one lock"
# All of so many cases need not be listed.
MANY = 3
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


def _row(found: pd.DataFrame, **which) -> Interval | None:
    """The interval of the one row that `which` chooses; None if there is none."""
    for name, value in which.items():
        found = found[found[name] == value]
    return Interval.of(found.iloc[0]) if len(found) else None


def _by_gain(rows: dict[str, Interval]) -> dict[str, list[str]]:
    """Names by what a second thread brings: more in total, less, or what the interval leaves open."""
    groups: dict[str, list[str]] = {"more": [], "less": [], "open": []}
    for name, found in rows.items():
        known = found.is_known and found.excludes(1)
        groups[("more" if found.low > 1 else "less") if known else "open"].append(name)
    return groups


def _gains(rows: dict[str, Interval]) -> str:
    """`two threads together did more than one in 2 of 3 cases (A; B), less than one in 1 of 3 cases (C)`."""
    if not rows:
        return "nothing was measured"
    groups = _by_gain(rows)

    def cases(names: list[str]) -> str:
        if len(names) == len(rows) > MANY:
            return f"in all {len(rows)} cases"
        return f"in {len(names)} of {len(rows)} cases ({'; '.join(names)})"

    parts = [f"{what} than one {cases(groups[what])}" for what in ("more", "less") if groups[what]]
    said = [f"two threads together did {', and '.join(parts)}"] if parts else []
    if groups["open"]:
        said.append(f"whether two threads did more or less than one is undecided {cases(groups['open'])}")
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


def ceiling(threads: Interval, found: pd.DataFrame, checks: list[Check]) -> str:
    """Is any case above what two threads of the calibration do? found: rows with name, value, low, high."""
    if withheld := _withheld(checks):
        return withheld
    if not estimates.known(threads):
        return "The calibration of threads has no interval here, so it cannot serve as a ceiling."
    above = [row["name"] for _, row in found.iterrows() if row.low > threads.high]
    if above:
        return (
            f"{draw.listed(list(dict.fromkeys(above)))} came out above the two threads of the calibration, {_shown(threads)}: "
            "take that as a yardstick, and not as a ceiling."
        )
    return f"None of these cases came out above the two threads of the calibration, {_shown(threads)}, beyond doubt."


def in_company(found: pd.DataFrame, shared: str, checks: list[Check]) -> str:
    """What a second thread brings, by lock or object. found: rows with name, threads, shared, value, low, high."""
    if withheld := _withheld(checks):
        return withheld
    rows = found[(found.threads == 2) & (found.shared == shared)]
    return f"{WHERE[shared]} {_gains({row['name']: Interval.of(row) for _, row in rows.iterrows()})}."


def with_the_gil(found: pd.DataFrame, checks: list[Check]) -> str:
    """The same Python objects in the build with the GIL."""
    if withheld := _withheld(checks):
        return withheld
    rows = found[found.threads == 2]
    gained = [f"{row['name']} ({row.shared})" for _, row in rows.iterrows() if row.low > 1]
    if gained:
        return f"With the GIL too, two threads did more than one for {draw.listed(gained)}."
    if not len(rows) or not all(Interval.of(row).is_known for _, row in rows.iterrows()):
        return "Whether anything gained with the GIL cannot be told here."
    return "With the GIL, nothing gained by a second thread beyond doubt."


def one_against_own(name: str, own: Interval | None, one: Interval | None, checks: list[Check]) -> str:
    """Each of two threads on one object, against each on its own: ns of an operation of one thread."""
    if withheld := _withheld(checks):
        return withheld
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


def once_and_often(once: Interval | None, often: Interval | None) -> str:
    """The lock over the atomic increment, for one increment, and for a hundred of them (under one lock, one by one)."""

    def winner(ratio: Interval | None) -> str:
        if not estimates.known(ratio) or not ratio.excludes(1):
            return "undecided"
        return "the atomic increment is faster" if ratio.low > 1 else "PyMutex is faster"

    if not (estimates.known(once) or estimates.known(often)):
        return "Whether the number of steps decides was not measured here."
    found = winner(once), winner(often)
    shown = _shown(once), _shown(often)
    text = f"Of one increment: {found[0]} (PyMutex over atomic: {shown[0]}). Of a hundred: {found[1]} ({shown[1]})."
    if found == ("the atomic increment is faster", "PyMutex is faster"):
        return f"{text} Between these two, the number of steps under one lock decides."
    if "undecided" in found:
        return f"{text} Whether the number of steps decides cannot be told here."
    return f"{text} In this run the number of steps does not decide it."


def started_threads(single: Interval | None, started: Interval | None) -> str:
    """A pthread mutex in a process of one thread, and in one that has started another: ns, with nobody waiting."""
    if not (estimates.known(single) and estimates.known(started)):
        return "What the first thread of a process adds to a pthread mutex cannot be told here."
    times = f"{_shown(single, 'ns')} in a process that never started a thread, {_shown(started, 'ns')} in one that did"
    if single.high < started.low:
        return (
            f"A pthread mutex takes {times}: a process of one thread flatters it. An explanation, not tested here: glibc locks without "
            "an atomic operation while there is one thread."
        )
    if single.low > started.high:
        return f"A pthread mutex takes {times}: threads made it no dearer."
    return f"A pthread mutex takes {times}: no difference beyond doubt."


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


def how_built(arguments: str | None) -> str:
    """Which optimisations the builds of the pair have, by what was given to `configure`."""
    if not arguments:
        return "How the interpreters of this run were optimised is not known."
    profiled, linked = "--enable-optimizations" in arguments, "--with-lto" in arguments
    options = f"{'with' if profiled else 'without'} PGO and {'with' if linked else 'without'} LTO"
    return f"The free-threaded interpreter of this run was compiled {options}."


def texts(found: pd.DataFrame, checks: list[Check]) -> str:
    """Is the UTF-8 cache or the table of interned texts a bottleneck? found: rows with name, value, low, high."""
    if withheld := _withheld(checks):
        return withheld
    rows = {row["name"]: Interval.of(row) for _, row in found.iterrows() if row["name"] != KNOWN_NAME}
    if not rows:
        return "Cannot be told here: nothing was measured."
    groups = _by_gain(rows)
    if groups["less"]:
        answer = f"One of them holds threads up, or what goes with it, for {draw.listed(groups['less'])}"
    elif groups["open"]:
        answer = "Undecided here"
    else:
        answer = "No"
    return f"{answer}: {_gains(rows)}."


def new_name(new: Interval | None, known: Interval | None, checks: list[Check]) -> str:
    """Is it the new text? An attribute by a new name, and the same one by a known name: rates of two threads over one."""
    if withheld := _withheld(checks):
        return withheld
    if not (estimates.known(new) and estimates.known(known)):
        return "Whether it is the new name, or the object that is looked into, cannot be told here."
    rates = f"by a known name the rate is {_shown(known)} times that of one thread, by a new one {_shown(new)}"
    if known.low > new.high:
        return f"The gain goes with the name: {rates}."
    if known.high < new.low:
        return f"It is not the new name: {rates}."
    return f"Whether it is the new name is undecided here: {rates}."


def bindings(found: pd.DataFrame, threads: Interval, checks: list[Check]) -> str:
    """Which bound functions scale as two threads of the calibration do. found: rows with name, value, low, high."""
    if withheld := _withheld(checks):
        return withheld
    rows = {row["name"]: Interval.of(row) for _, row in found.iterrows()}
    below = [name for name, one in rows.items() if one.is_known and one.low > 1 and one.high < threads.low]
    text = f"With one function for both threads, {_gains(rows)}."
    if below:
        return f"{text} Here {draw.listed(below)} gained less than two threads of the calibration."
    return text


def api_against_cython(api: Interval | None, cython: Interval | None, checks: list[Check]) -> str:
    """Do both scale alike? Rates of two threads over one."""
    if withheld := _withheld(checks):
        return withheld
    if not (estimates.known(api) and estimates.known(cython)):
        return "Whether the C API and Cython scale alike cannot be told here."
    rates = f"C API {_shown(api)}, Cython {_shown(cython)}"
    if api.high < cython.low:
        return f"The C API gained less by a second thread than Cython ({rates})."
    if api.low > cython.high:
        return f"The C API gained more by a second thread than Cython ({rates})."
    return f"Between the C API and Cython no difference is beyond doubt ({rates})."


def own_functions(ratios: dict[str, Interval | None], checks: list[Check]) -> str:
    """Is it the shared function object? ratios: gain with a function for each thread over gain with one, by binding."""
    if withheld := _withheld(checks):
        return withheld
    known = {name: found for name, found in ratios.items() if estimates.known(found)}
    if not known:
        return "Whether the shared function is what holds threads up cannot be told here: no binding has both cases."
    better = [f"{name} ({_shown(found)})" for name, found in known.items() if found.low > 1]
    worse = [f"{name} ({_shown(found)})" for name, found in known.items() if found.high < 1]
    rest = [f"{name} ({_shown(found)})" for name, found in known.items() if not found.excludes(1)]
    said = []
    if better:
        said.append(
            f"A function for each thread helps {draw.listed(better)}: there the shared function, or what hangs on it, held threads up"
        )
    if worse:
        said.append(f"A function for each thread made it worse for {draw.listed(worse)}")
    if rest:
        said.append(
            f"With a function for each thread, over one for both, the gain is not told from the same for {draw.listed(rest)}"
        )
    return f"{'. '.join(said)}."


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


def prediction_3(found: Interval | None, checks: list[Check]) -> str:
    """Do two threads on one shared dict get more done than one?"""
    return _more_than_one(found, checks)


def prediction_4(often: Interval | None) -> str:
    """A hundred increments under one lock, or a hundred atomic ones? often: time of the lock over the atomics'."""
    if not estimates.known(often):
        return "Here: not known."
    if not often.excludes(1):
        return f"Here: undecided; the lock takes {_shown(often)} of the time of the atomic increments."
    slow, fast = (
        (ONE_LOCK, "a hundred atomic increments") if often.low > 1 else ("a hundred atomic increments", ONE_LOCK)
    )
    return f"Here: {slow} take {_longer(often)} as long as {fast}."


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


def prediction_6(found: Interval | None, checks: list[Check]) -> str:
    """Do two threads that look an attribute up by new texts get more done than one?"""
    return _more_than_one(found, checks)


def _more_than_one(found: Interval | None, checks: list[Check]) -> str:
    if withheld := _withheld(checks):
        return withheld
    if not estimates.known(found):
        return "Here: not known."
    if not found.excludes(1):
        return f"Here: undecided; two threads do {_shown(found)} times the work of one."
    if found.low > 1:
        return f"Here: yes, {_shown(found)} times as much as one thread."
    return f"Here: no; one thread alone does {_longer(found)} as much as the two together."


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


def objects_for_alt(rows: pd.DataFrame) -> str:
    """Python objects under two threads, for the figure's alt text. rows: with name, shared, interpreter and an interval."""
    said = []
    for label in dict.fromkeys(rows.interpreter):
        part = rows[rows.interpreter == label]
        groups = _by_gain({f"{row['name']}, {row.shared}": Interval.of(row) for _, row in part.iterrows()})
        words = {"more": "gained by a second thread", "less": "lost by it", "open": "undecided"}
        counts = ", ".join(f"{len(names)} {words[group]}" for group, names in groups.items() if names)
        said.append(f"on {label}: {counts} of {len(part)}")
    return "; ".join(said) or draw.NOT_MEASURED
