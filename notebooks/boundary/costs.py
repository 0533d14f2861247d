"""What calls of every kind take through every binding, by the timed plan "matrix": times, ranks, ratios of builds."""

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Counted, Interval, Location
from ffilab.judge.numbers import Declarations
from ffilab.judge.questions import NO, OPEN, YES, above
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import experiment as e
from notebooks.boundary.experiment import name

number = Declarations()
Cell = tuple[str, str]
COPIES = [(name(binding, e.INT), name(binding, e.INT) + e.AGAIN) for binding in (e.FLOOR, "ctypes CDLL")]
EVERY = {"signature": e.SIGNATURES, "binding": e.BINDINGS}
TEXT, MILLION, THOUSAND = "str in, ASCII", "1,000,000 doubles", "1,000 doubles"
# The cases of the reader: signature, and the tools in question.
CASES = {
    "cpp": {"signature": e.METHOD, "among": (*e.CPP, "PyO3")},
    "text": {"signature": TEXT, "among": tuple(b for b in e.BINDINGS if b not in (e.FLOOR, "C API, limited"))},
    "hot": {"signature": e.INT, "among": e.BINDINGS},
    "no-compiler": {
        "signature": e.INT,
        "among": tuple(b for b, one in e.DECLARED.items() if one.loads_at_run_time and b != "ctypes PyDLL"),
    },
}
# Which of them a sentence names.
PLACE = {"cheapest": 0, "next": 1, "dearest": -1}


def cell(build: str, binding: str, signature: str) -> Cell:
    """The interpreter and the arm of a call. build: an interpreter, or GIL_ON."""
    arm = name(binding, signature)
    return (FREE_THREADED, arm + e.ON) if build == e.GIL_ON else (build, arm)


def if_measured(record: Record, make: Callable, cells: list[Cell]):
    """What is made of some cells of a record; None if one of them was not measured."""
    return make(record, *cells) if all(record.has(*one) for one in cells) else None


def two_digits(interval: Interval | None) -> Interval | None:
    """As prose takes it; the tables have more."""
    return interval and interval.map(lambda ns: float(f"{ns:.2g}"))


def present(record: Record, label: str, signature: str = e.INT) -> list[str]:
    """The bindings that were measured on this interpreter with this signature."""
    return [binding for binding in e.BINDINGS if record.has(*cell(label, binding, signature))]


# ---- times ----


@number("{signature} through {binding}: ns", timed="matrix", over=EVERY)
def ns(record: Record, signature: str, binding: str) -> Interval | None:
    """Nanoseconds of a turn of the loop with the GIL, to two digits; None if it was not measured."""
    return two_digits(if_measured(record, statistics.per_call, [cell(GIL, binding, signature)]))


@number(
    "{signature} through {binding}: ns without the loop on {label}",
    timed="matrix",
    over={**EVERY, "label": (GIL, FREE_THREADED)},
)
def ns_without_loop(record: Record, signature: str, binding: str, label: str) -> Interval | None:
    """Nanoseconds of a call alone, to two digits; None if it was not measured."""
    if not record.has(*cell(label, binding, signature)):
        return None
    return two_digits(statistics.over_units(record, without_loop(record, label, binding, signature)).at())


@number("{signature} through {binding}: over the floor, ns", timed="matrix", over=EVERY)
def over_floor(record: Record, signature: str, binding: str, label: str = GIL) -> Interval | None:
    """Nanoseconds that a binding takes more than the C API for the same signature, paired by block."""
    return if_measured(record, difference, [cell(label, one, signature) for one in (binding, e.FLOOR)])


@number("{signature} through {binding}: ns over our C, two digits", timed="matrix", over=EVERY)
def rounded_over_floor(record: Record, signature: str, binding: str) -> Interval | None:
    """Nanoseconds that a binding takes more than the C API with the GIL, to two digits; None if not measured."""
    return two_digits(over_floor(record, signature, binding))


@number("letting go of the GIL through {binding}: ns", timed="matrix", over={"binding": e.BINDINGS})
def letting_go(record: Record, binding: str) -> Interval | None:
    """Nanoseconds that a call of an empty function takes more if it detaches, with the GIL and nobody waiting for it,
    to two digits; None if not measured."""
    cells = [cell(GIL, binding, signature) for signature in (e.DETACHED, "no-op")]
    return two_digits(if_measured(record, difference, cells))


def difference(record: Record, one: Cell, other: Cell) -> Interval:
    """Nanoseconds that a cell takes more than another one, paired by block."""
    return statistics.over_units(record, medians(record.times(*one) - record.times(*other))).at()


def net_ratio(record: Record, one: Cell, other: Cell) -> Interval:
    """Time of a cell over that of another one, without the loop."""
    return statistics.compare(record, one, other).net_ratio


def times_floor(record: Record, label: str, binding: str, signature: str) -> float:
    """Median over restarts of the time of a binding over that of the C API, paired by block; NaN if no pair was
    kept."""
    logs = statistics.log_ratios(record, cell(label, binding, signature), cell(label, e.FLOOR, signature))
    return float(np.exp(np.nanmedian(logs))) if np.isfinite(logs).any() else np.nan


def matrix(record: Record) -> pd.DataFrame:
    """One row per interpreter, signature and binding: ns of a turn of the loop, ns over the floor (both with interval),
    ratio."""
    return pd.DataFrame(
        {
            "interpreter": label,
            "signature": signature,
            "binding": binding,
            "ns": statistics.per_call(record, cell(label, binding, signature)),
            "over": over_floor(record, signature, binding, label),
            "times": times_floor(record, label, binding, signature),
        }
        for label in record.interpreters
        for signature in e.SIGNATURES
        for binding in present(record, label, signature)
    )


number("empty loop on {GIL}", timed="matrix", make=statistics.per_call, cells=[(GIL, EMPTY)])(if_measured)
number(
    "no-op: cffi API / C API on {GIL}",
    timed="matrix",
    make=statistics.ratio,
    cells=[cell(GIL, "cffi API", "no-op"), cell(GIL, e.FLOOR, "no-op")],
)(if_measured)
number(
    "str in, ASCII: pybind11 / PyO3 on {FREE_THREADED}",
    timed="matrix",
    make=statistics.ratio,
    cells=[cell(FREE_THREADED, binding, TEXT) for binding in ("pybind11", "PyO3")],
)(if_measured)
number(
    "→ int without the loop: ctypes CDLL / C API",
    timed="matrix",
    make=net_ratio,
    cells=[cell(GIL, "ctypes CDLL", e.ANSWER), cell(GIL, e.FLOOR, e.ANSWER)],
)(if_measured)


@number("a million doubles / a thousand: {binding}", timed="matrix", over={"binding": e.BINDINGS})
def growth(record: Record, binding: str) -> Interval | None:
    """Time of a call with a million doubles in a buffer over that with a thousand; None if one was not measured."""
    return if_measured(record, statistics.ratio, [cell(GIL, binding, one) for one in (MILLION, THOUSAND)])


@number("a million doubles / a thousand: largest", timed="matrix")
def largest_growth(record: Record) -> Interval | None:
    """The largest `growth` of all bindings; of the bounds, too, the largest."""
    ratios = [ratio for binding in e.BINDINGS if (ratio := growth(record, binding))]
    return Interval(*(max(getattr(one, end) for one in ratios) for end in ("value", "low", "high"))) if ratios else None


@number(f"{e.ERROR}, over the floor, ns: {{pick}}", timed="matrix", over={"pick": {"dearest": max, "cheapest": min}})
def extreme_error(record: Record, pick: Callable) -> Interval | None:
    """What an error takes over the C API, ns, through the dearest or the cheapest of three tools; None if fewer than
    two were measured."""
    errors = [ns for tool in ("nanobind", "pybind11", "PyO3") if (ns := over_floor(record, e.ERROR, tool))]
    return pick(errors, key=lambda interval: interval.value) if len(errors) > 1 else None


# ---- ranks ----


def ranked(record: Record, label: str, signature: str = e.INT) -> list[str]:
    """Bindings from cheapest to dearest.

    By the paired ratio, not by the times: what slows a block slows both of a pair.
    """
    return sorted(present(record, label, signature), key=lambda binding: times_floor(record, label, binding, signature))


@number(f"{e.INT} without the loop: dearest / cheapest", timed="matrix")
def widest(record: Record) -> Interval:
    """Time through the dearest binding over that through the cheapest, for an int, without the loop."""
    order = ranked(record, GIL)
    return net_ratio(record, *(cell(GIL, binding, e.INT) for binding in (order[-1], order[0])))


def dearest_cell(record: Record) -> tuple[float, str, str]:
    """With the GIL, the largest time over that of the C API, with its binding and its signature."""
    cells = [one for one in itertools.product(e.BINDINGS, e.SIGNATURES) if record.has(*cell(GIL, *one))]
    times = [(times_floor(record, GIL, *one), *one) for one in cells]
    return max(one for one in times if np.isfinite(one[0]))


@number("largest time over our C", timed="matrix")
def largest_time(record: Record) -> Counted:
    """The largest time over that of the C API, with the GIL."""
    return Counted(dearest_cell(record)[0])


def cheapest(record: Record, signature: str, among: tuple[str, ...]) -> list[str]:
    """The tools of a case with the GIL, from the cheapest to the dearest."""
    return [binding for binding in ranked(record, GIL, signature) if binding in among]


@number("cheapest / next: {case}", timed="matrix", over={"case": CASES})
def first_two(record: Record, signature: str, among: tuple[str, ...]) -> Interval | None:
    """Time through the cheapest tool of a case over that through the next."""
    two = [cell(GIL, binding, signature) for binding in cheapest(record, signature, among)[:2]]
    return statistics.ratio(record, *two) if len(two) == 2 else None


@number("{place}, ns: {case}", timed="matrix", over={"place": PLACE, "case": CASES})
def placed(record: Record, place: int, signature: str, among: tuple[str, ...]) -> Interval | None:
    """Nanoseconds of a turn of the loop through a tool of a case, by its place among them; None without one."""
    tools = cheapest(record, signature, among)[place:][:1]
    return statistics.per_call(record, cell(GIL, tools[0], signature)) if tools else None


def apart(record: Record) -> pd.DataFrame:
    """Every two bindings of one interpreter and signature: time of the first over that of the second, paired by block,
    with its interval, and which of the two took less."""
    rows = []
    for label, signature in itertools.product(record.interpreters, e.SIGNATURES):
        for one, other in itertools.combinations(present(record, label, signature), 2):
            cells = [cell(label, binding, signature) for binding in (one, other)]
            rows.append([label, signature, one, other, *cheaper(statistics.ratio(record, *cells))])
    return pd.DataFrame(
        rows, columns=["CPython", "signature", "binding a", "binding b", "ratio", "low", "high", "answer"]
    )


def cheaper(ratio: Interval) -> tuple[float, float, float, str]:
    """A ratio of times with the answer to "which of the two?"; one without bounds answers nothing."""
    return ratio.value, ratio.low, ratio.high, {NO: "first", YES: "second", OPEN: "undecided"}[above(ratio, 1)]


def order_changes(session: Session) -> dict[str, int]:
    """By signature, how many pairs of bindings stand the other way round than for an int with the GIL, each told apart
    both times."""
    record = session.timed("matrix")

    def sides(signature: str) -> dict[tuple[str, str], str]:
        answers = {}
        for couple in itertools.combinations(present(record, GIL, signature), 2):
            logs = statistics.log_ratios(record, *[cell(GIL, binding, signature) for binding in couple])
            answers[couple] = above(statistics.over_units(record, logs).at(), 0)
        return answers

    with_int = sides(e.INT)
    return {
        signature: sum({side, with_int.get(couple)} == {YES, NO} for couple, side in sides(signature).items())
        for signature in e.SIGNATURES
        if signature != e.INT
    }


@number("pairs that change places: {signature}", of=order_changes, over={"signature": e.SIGNATURES})
def changed(changes: dict[str, int], signature: str) -> Counted | None:
    """How many pairs of bindings stand the other way round for one kind of call than for an int."""
    return Counted(changes[signature]) if signature in changes else None


@number("kinds of call", of=order_changes, count=len)
@number("kinds of call in which pairs change places", of=order_changes, count=lambda pairs: len(pairs) - pairs.count(0))
@number("most pairs that change places", of=order_changes, count=max)
def changed_in_all(changes: dict[str, int], count: Callable[[list[int]], int]) -> Counted:
    """What is counted of the pairs that change places, over all kinds of call but an int."""
    return Counted(count([*changes.values()]))


# ---- builds, and forms ----


def without_loop(record: Record, build: str, binding: str, signature: str) -> np.ndarray:
    """Nanoseconds of a call without the loop around it, by layout. build: an interpreter, or GIL_ON.

    The loop of one build takes longer than that of the other: wherever builds are compared, it is taken off. From the
    first conversion of a text the making of that text is taken off, and with it the loop.
    """
    label, arm = cell(build, binding, signature)
    is_switched_on = build == e.GIL_ON
    made = e.TEXT_MADE + e.ON * is_switched_on
    loop = EMPTY + " (GIL on)" * is_switched_on
    less = made if signature == e.TEXT and record.has(label, made) else loop
    return medians(record.times(label, arm) - record.times(label, less))


def logs_of_builds(record: Record, binding: str, signature: str, build: str, other: str) -> np.ndarray:
    """Logarithms of the time of a call on one build over that on another, without the loop, by layout."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(without_loop(record, build, binding, signature) / without_loop(record, other, binding, signature))


def between_builds(record: Record, binding: str, signature: str, build: str, other: str) -> Location:
    """Time of a call on one build over that on another, without the loop."""
    return statistics.over_units(record, logs_of_builds(record, binding, signature, build, other), log=True)


@number("{signature} through {binding}: {FREE_THREADED} / {GIL}", timed="matrix", over=EVERY)
@number(
    "{signature} by hand: {FREE_THREADED} / {GIL}",
    timed="claims",
    over={"signature": (e.INT, *e.TAXED)},
    binding=e.FLOOR,
)
def free_over_gil(record: Record, signature: str, binding: str) -> Interval | None:
    """Time without the GIL over time with it, without the loop; None if one of the two was not measured."""
    if not all(record.has(*cell(label, binding, signature)) for label in (GIL, FREE_THREADED)):
        return None
    return between_builds(record, binding, signature, FREE_THREADED, GIL).at()


def without_gil(record: Record) -> pd.DataFrame:
    """Time without the GIL over time with it, by binding and signature, without the loop."""
    rows = [
        {"signature": signature, "binding": binding, **vars(ratio)}
        for signature, binding in itertools.product(e.SIGNATURES, e.BINDINGS)
        if (ratio := free_over_gil(record, signature, binding))
    ]
    return pd.DataFrame(rows, columns=["signature", "binding", "value", "low", "high"])


def variants(record: Record) -> pd.DataFrame:
    """Other forms of a tool over the form that the matrix has, by interpreter and signature."""
    rows = []
    for label in record.interpreters:
        for (form, binding), signature in itertools.product(e.VARIANTS.items(), e.SIGNATURES):
            cells = [cell(label, one, signature) for one in (form, binding)]
            if ratio := if_measured(record, statistics.ratio, cells):
                rows.append({"interpreter": label, "form": form, "signature": signature, "ratio": ratio})
    return pd.DataFrame(rows, columns=["interpreter", "form", "signature", "ratio"])
