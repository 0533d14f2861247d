"""The numbers of the chapter "Code placement", by name, and its own controls. The rules: claims.toml."""

import itertools
from collections.abc import Callable
from functools import partial

import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.numbers import Makers
from notebooks.placement import results
from notebooks.placement.experiment import Cache
from notebooks.placement.lottery import (
    ANYWHERE,
    BENCHMARKS,
    BUILDS,
    TOGETHER,
    linked_how,
    missed_how,
    profiled_how,
    stalled_how,
)
from notebooks.placement.story import PROGRAMS


def controls(session: Session) -> list[Control]:
    """The lottery's own A/A test: the linker's own order against itself. An alarm withholds what random orders are asked for."""
    duels = session.frame("relink lottery")
    found = []
    for label in BUILDS:
        of_it = results.of_build(duels, label)
        if not (of_it.kind == "copy").any():
            continue
        for benchmark in BENCHMARKS:
            own = results.itself(of_it, benchmark)
            what = f"{benchmark}: the linker's own order / itself on {label}"
            found.append(Control("A/A of the lottery", what, "relink lottery", own))
    return found


def numbers(session: Session) -> Makers:
    def counted(what: str) -> Measurement | str:
        found = session.observed("instructions and misses of the small machine", list(PROGRAMS))
        return results.as_built(results.table(found), what)

    def planted_stalls() -> Measurement | str | None:
        counters = "hardware counters of the small machine"
        return results.stalls_ratio(session.observed(counters, list(PROGRAMS), session.budget.repeats))

    def bisections(share: Callable) -> Measurement:
        return Measurement(share(session.frame("git bisect")), "share of bisections")

    def profile() -> Measurement | str:
        return results.five_hottest(session.observed("profiles of call_method", *profiled_how(session)))

    def as_many() -> Measurement | str:
        return results.as_many_instructions({label: simulated(session, label) for label in BUILDS})

    made = {
        "slow / fast, a change that never runs": lambda: results.ratio(
            session.frame("the small machine"), "slow", "fast"
        ),
        "the small machine: the same instructions (simulated)": lambda: counted("the same instructions"),
        "share of random orders with the instructions of the linker's own (simulated)": as_many,
        "stalled front-end cycles, slow / fast (counted)": planted_stalls,
        "the small machine: twice the misses (simulated)": lambda: counted("twice the misses"),
        "share of the five hottest functions, call_method": profile,
        "the small machine: misses gone with its hot functions together (simulated)": lambda: counted("misses gone"),
        "bisections without a trap that blame a commit which changes no machine code": lambda: bisections(
            results.unrelated
        ),
        "share of bisections that blame the unrelated commit": lambda: bisections(results.blaming),
        "share of blamed commits that stand, without a trap": lambda: bisections(results.standing),
    }
    for (name, find), label, benchmark in itertools.product(BY_LOT.values(), BUILDS, BENCHMARKS):
        made[f"{name}, {benchmark} on {label}"] = partial(find, session, label, benchmark)
    return made


def linked(session: Session, label: str) -> dict:
    """What came of linking a build again."""
    return session.observed("linking", *linked_how(session, label))


def duels(session: Session, label: str) -> pd.DataFrame:
    """The duels of a build."""
    return results.of_build(session.frame("relink lottery"), label)


def simulated(session: Session, label: str) -> list[dict] | str:
    """What a simulator counted of the orders of a build, or why there is nothing."""
    of_it, cache = linked(session, label), Cache(**session.observed("instruction cache"))
    return of_it["lacking"] or session.observed("simulated misses of the orders", *missed_how(label, of_it, cache))


def apart(session: Session, label: str, benchmark: str) -> Measurement | str:
    lacking = linked(session, label)["lacking"]
    return lacking or Measurement(results.of_pairs(duels(session, label), benchmark), "ratio")


def stalls(session: Session, label: str, benchmark: str) -> Measurement | str | None:
    of_it = linked(session, label)
    counted = of_it["lacking"] or session.observed("stalled cycles of the orders", *stalled_how(session, label, of_it))
    return results.more_stalls(duels(session, label), counted, benchmark)


def misses(session: Session, label: str, benchmark: str) -> Measurement | str | None:
    return results.more_misses(duels(session, label), simulated(session, label), benchmark)


def hot(session: Session, label: str, benchmark: str) -> Measurement | str | None:
    of_it = linked(session, label)
    lacking = of_it["lacking"] or of_it["absent"]
    return lacking or results.over(duels(session, label), benchmark, TOGETHER, ANYWHERE)


# What random orders of each build are asked for, with each benchmark.
BY_LOT = {
    "D1": ("how far one pair of random orders in twenty differs", apart),
    "D2": ("stalled front-end cycles, slower / faster orders", stalls),
    "D3": ("misses of a thousand instructions, slower less faster orders", misses),
    "D6": ("hot functions together / anywhere", hot),
}
