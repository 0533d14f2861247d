"""What decides the talk's claims about times: ratios of two ways to make one call, by the timed plan "claims"; and what
the talk's own program says, run in many processes."""

import itertools

import numpy as np
import pandas as pd

from ffilab.judge import processes, statistics
from ffilab.judge.estimates import LEVEL, Estimate, Interval, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.questions import NO, OPEN, above
from ffilab.measure.record import Record, medians
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import description
from notebooks.boundary import experiment as e
from notebooks.boundary.costs import between_builds, cell, difference, if_measured, logs_of_builds, without_loop

number = Declarations()
# A build, a binding and a signature.
Way = tuple[str, str, str]
# A build and a binding.
Column = tuple[str, str]
# The p below which the talk's method calls a winner.
P_SMALL = 0.01
WITH_PYDLL = ("cffi ABI", "ctypes PyDLL", "pybind11", "PyO3")
# Ways to a C++ method that are no tool for C++.
BY_FUNCTIONS = e.WITH_THE_GIL[e.METHOD]


def answers() -> dict[str, tuple[Column, Column]]:
    """The ratios of calls that return an int, by name: what stands above the line and below it."""
    by_name = {}
    for a, b in itertools.pairwise(e.TALK):
        for build, where in ((GIL, ""), (FREE_THREADED, f" on {FREE_THREADED}"), (e.GIL_ON, f" on {e.GIL_ON}")):
            by_name[f"{a} / {b}{where}"] = (build, a), (build, b)
    for a, b in itertools.pairwise(WITH_PYDLL):
        by_name[f"{a} / {b}"] = (GIL, a), (GIL, b)
    for build in (FREE_THREADED, e.GIL_ON):
        for a in e.TALK:
            by_name[f"{a}: {build} / {GIL}"] = (build, a), (GIL, a)
        for a in e.TALK[:2]:
            by_name[f"{a} / ctypes PyDLL on {build}"] = (build, a), (build, "ctypes PyDLL")
    return by_name


def pairs() -> dict[str, dict[str, Way]]:
    """All ratios that decide claims about times, by name: the ways above the line (`slow`) and below it (`fast`)."""
    by_name = {name: {"slow": (*slow, e.ANSWER), "fast": (*fast, e.ANSWER)} for name, (slow, fast) in answers().items()}
    for a in (*e.CPP, *BY_FUNCTIONS):
        by_name[f"a method: {a} / PyO3"] = {"slow": (GIL, a, e.METHOD), "fast": (GIL, "PyO3", e.METHOD)}
    for a, thrown in itertools.product(e.THROWING[:-1], e.THROWN.values()):
        by_name[f"{thrown}: {a} / PyO3"] = {"slow": (GIL, a, thrown), "fast": (GIL, "PyO3", thrown)}
    detached = {"slow": (GIL, "cffi API", e.DETACHED), "fast": (GIL, e.FLOOR, e.DETACHED)}
    return {**by_name, "both detach: cffi API / C API": detached}


@number("{pair}", timed="claims", over={"pair": pairs()})
def comparison(record: Record, slow: Way, fast: Way) -> Estimate | str:
    """The ratio of two ways, without the loop if they are of two builds; or the reason why one of them could not be
    measured."""
    cells = cell(*slow), cell(*fast)
    if reason := record.lacking(*cells):
        return reason
    if slow[0] != fast[0]:
        return between_builds(record, *slow[1:], slow[0], fast[0])
    return statistics.ratio_over_units(record, *cells)


@number("{signature}, over int: {FREE_THREADED} / {GIL}", timed="claims", over={"signature": e.TAXED})
@number(f"{e.TEXT}, over int: {e.GIL_ON} / {GIL}", timed="claims", signature=e.TEXT, build=e.GIL_ON)
def text_surcharge(record: Record, signature: str, build: str = FREE_THREADED) -> Estimate | str:
    """A7: the surcharge of another build on a text over its surcharge on an int, through the C API; or why it was not
    measured."""
    cells = [cell(label, e.FLOOR, one) for label in (build, GIL) for one in (signature, e.INT)]
    if reason := record.lacking(*cells):
        return reason
    text, integer = (logs_of_builds(record, e.FLOOR, one, build, GIL) for one in (signature, e.INT))
    return statistics.over_units(record, text - integer, log=True)


@number("str in, é, first / ASCII: {label}", timed="claims", over={"label": (GIL, FREE_THREADED, e.GIL_ON)})
def translated(record: Record, label: str) -> Estimate | str:
    """A7: the first conversion of a text over a call with an ASCII one, through the C API, without the loop; or why it
    was not measured."""
    if reason := record.lacking(*(cell(label, e.FLOOR, one) for one in (e.TEXT, e.TEXTS[0]))):
        return reason
    text, ascii_text = (without_loop(record, label, e.FLOOR, one) for one in (e.TEXT, e.TEXTS[0]))
    with np.errstate(invalid="ignore", divide="ignore"):
        return statistics.over_units(record, np.log(text / ascii_text), log=True)


@number("the fastest other of the talk's four / PyO3", timed="claims", others=("pybind11", *BY_FUNCTIONS))
@number("the fastest other / PyO3", timed="claims", others=(*e.CPP, *BY_FUNCTIONS))
def fastest_other(record: Record, others: tuple[str, ...]) -> Estimate | str:
    """A23: the ratio to PyO3 of the fastest of the other ways to a C++ method; or why there is none.

    A superlative needs no more than one that beats it, and no less than all that do not.
    """
    ratios = [comparison(record, (GIL, one, e.METHOD), (GIL, "PyO3", e.METHOD)) for one in others]
    measured = [ratio for ratio in ratios if not isinstance(ratio, str)]
    return min(measured, key=lambda ratio: ratio.centre, default=ratios[0])


# ---- what C++ throws ----


@number("{thrown} through {binding}: ns", timed="claims", over={"thrown": [*e.THROWN.values()], "binding": e.THROWING})
def ns_thrown(record: Record, thrown: str, binding: str) -> Interval | None:
    """Nanoseconds of a call whose C++ exception becomes one of Python, with the GIL; None if it was not measured."""
    return if_measured(record, statistics.per_call, [cell(GIL, binding, thrown)])


@number(
    "ns for each further call on the stack of a C++ exception: {binding}", timed="claims", over={"binding": e.THROWING}
)
def each_call(record: Record, binding: str) -> Interval | None:
    """What each further call below adds to an exception that C++ throws, with the GIL."""
    (least, first), (most, last) = e.THROWN.items()
    more = if_measured(record, difference, [cell(GIL, binding, one) for one in (last, first)])
    return more and more.map(lambda ns: ns / (most - least))


@number(
    "rate of C++ exceptions, two threads / one, {depth} deep: {binding}",
    frame=e.THROWS,
    two_cores=True,
    over={"depth": tuple(e.THROWN), "binding": e.THROWING},
)
def rate_of_two(runs: pd.DataFrame, depth: int, binding: str) -> Estimate | None:
    """Exceptions in a second of two threads without the GIL over those of one alone, process by process."""
    part = processes.chosen(runs, binding=binding, depth=depth)
    return processes.ratio(part.together.to_numpy(), part.alone.to_numpy())


# ---- what a call through ctypes is made of ----


WITHOUT_ARGUMENT, CALL, HELD = (
    cell(GIL, "ctypes CDLL", e.ANSWER),
    cell(GIL, "ctypes CDLL", e.INT),
    cell(GIL, "ctypes PyDLL", e.INT),
)
number(
    "{part}, ns",
    timed="claims",
    make=difference,
    over={
        "part": {
            "call with an int through CDLL over one by hand": {"cells": [CALL, cell(GIL, e.FLOOR, e.INT)]},
            "an int in a call through CDLL": {"cells": [CALL, WITHOUT_ARGUMENT]},
            "the hand-over in a call through CDLL": {"cells": [CALL, HELD]},
        }
    },
)(if_measured)


@number("an int argument / the hand-over of the GIL, ctypes CDLL", timed="claims")
def argument_over_hand_over(record: Record) -> Estimate | str:
    """A10: what an int argument adds to a ctypes call over what the hand-over of the GIL takes in it."""
    if reason := record.lacking(WITHOUT_ARGUMENT, CALL, HELD):
        return reason
    argument, hand_over = (medians(record.times(*CALL) - record.times(*less)) for less in (WITHOUT_ARGUMENT, HELD))
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(argument / hand_over)
    return statistics.over_units(record, logs, log=True)


# ---- its own program ----


def single_calls(runs: pd.DataFrame) -> pd.DataFrame:
    """What the talk prints of a process: the mean after Tukey's rule, by process (rows) and by build and binding
    (columns).

    The processes of a build are numbered as they ran, so that a row holds those that ran about the same time.
    """
    means = runs.assign(mean=[float(description.tukey(np.array(ns)).mean()) for ns in runs.ns])
    means["number"] = means.groupby("build").process.rank(method="dense").astype(int)
    return means.pivot(index="number", columns=["build", "binding"], values="mean")


def means(session: Session) -> pd.DataFrame:
    """The means of single calls of a session: see `single_calls`."""
    return single_calls(session.frame(e.PROGRAM))


AS_RUN = {f"{a[1]} on {a[0]} / {b[1]} on {b[0]}": {"slow": a, "fast": b} for a, b in answers().values()}


@number("as run: {pair}", of=means, over={"pair": AS_RUN})
def as_run(means: pd.DataFrame, slow: Column, fast: Column) -> Estimate | str:
    """Mean of single calls in one column over that in another, process by process; or why there is none."""
    for build, binding in (slow, fast):
        if (build, binding) not in means:
            return f"{binding} was not measured on {build}"
    both = means[[slow, fast]].dropna().to_numpy().T
    return processes.ratio(*both) or "no process brought both"


def faster_ones(record: Record) -> dict[str, str]:
    """By pair of the talk's four, the faster one, where the corrected experiment tells them apart."""
    faster, couples = {}, list(itertools.combinations(e.TALK, 2))
    for one, other in couples:
        ratio = comparison(record, (GIL, one, e.ANSWER), (GIL, other, e.ANSWER))
        if isinstance(ratio, str):
            continue
        # Told apart by chance, any of them would be held against the method.
        side = above(ratio.at(1 - (1 - LEVEL) / len(couples)), 1)
        if side != OPEN:
            faster[f"{one} vs {other}"] = one if side == NO else other
    return faster


def misranks(process: pd.DataFrame, faster: dict[str, str]) -> bool:
    """Whether the talk's method calls the dearer one of any pair the faster one, with a p below P_SMALL."""
    samples = {row.binding: np.array(row.ns) for row in process.itertuples()}
    pairs = description.pairs({binding: samples[binding] for binding in e.TALK if binding in samples})
    winners = pairs[(pairs["BH p"] < P_SMALL) & (pairs.faster != "neither") & pairs.pair.isin(faster)]
    return bool((winners.faster != winners.pair.map(faster)).any())


@number("processes of the talk's program that name another winner than the corrected experiment")
def misranked(session: Session) -> Share | str:
    """How many processes of the talk's program, with the GIL, rank any pair wrong; or that there is no right to hold
    against it."""
    runs, faster = session.frame(e.PROGRAM), faster_ones(session.timed("claims"))
    if not faster:
        return "the corrected experiment tells no two of the talk's four apart"
    each = [misranks(process, faster) for _, process in runs[runs.build == GIL].groupby("process")]
    return Share(sum(each), len(each))
