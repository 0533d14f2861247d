"""What the chapter "Code placement" hands in to the ledger, from its records alone. The rules: claims.toml."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from notebooks.placement import results
from notebooks.placement.experiment import Cache
from notebooks.placement.lottery import BENCHMARKS, BUILDS, BY_PROFILE, linked_how, missed_how, profiled_how
from notebooks.placement.story import PROGRAMS

# The benchmark of the document.
BENCHMARK = "call_method"


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


def measurements(session: Session) -> Handed:
    handed = Handed(session)

    def machine(slow: str, fast: str) -> Measurement | None:
        return results.ratio(session.frame("the small machine"), slow, fast)

    def counted(what: str) -> Measurement | str:
        found = session.observed("instructions and misses of the small machine", list(PROGRAMS))
        return results.counted_ratio(results.table(found), what)

    def stalls() -> Measurement | str | None:
        counters = "hardware counters of the small machine"
        return results.stalls_ratio(session.observed(counters, list(PROGRAMS), session.budget.repeats))

    def bisections(share: Callable) -> Measurement:
        return Measurement(share(session.frame("git bisect")), "share of bisections")

    def profile() -> Measurement | str:
        return results.five_hottest(session.observed("profiles of call_method", *profiled_how(session)))

    handed.put("D1", "slow / fast, a change that never runs", lambda: machine("slow", "fast"))
    handed.put("D2", "instructions, slow / fast (simulated)", lambda: counted("instructions"))
    handed.put("D2", "stalled front-end cycles, slow / fast (counted)", stalls)
    handed.put("D3", "misses of the instruction cache, slow / fast (simulated)", lambda: counted("misses"))
    handed.put("D4", "share of the five hottest functions, call_method", profile)
    for name, share in (
        ("bisections without a trap that blame a commit which changes no machine code", results.unrelated),
        ("share of bisections that blame the unrelated commit", results.blaming),
        ("share of blamed commits that stand, without a trap", results.standing),
    ):
        handed.put("D5", name, partial(bisections, share))
    handed.put("D6", "slow / hot, the same commit with hot functions together", lambda: machine("slow", "hot"))
    for label in BUILDS:
        lottery = f"{BENCHMARK} on {label}"
        handed.put(
            "D1", f"how far one pair of random orders in twenty differs, {lottery}", partial(apart, session, label)
        )
        handed.put("D2", f"instructions, slower / faster orders, {lottery}", partial(instructions, session, label))
        more = f"misses of a thousand instructions, slower less faster orders, {lottery}"
        handed.put("D3", more, partial(misses, session, label))
        handed.put("D6", f"hot functions together / the middle random order, {lottery}", partial(hot, session, label))
    return handed


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


def apart(session: Session, label: str) -> Measurement | str:
    lacking = linked(session, label)["lacking"]
    return lacking or Measurement(results.of_pairs(duels(session, label), BENCHMARK), "ratio")


def instructions(session: Session, label: str) -> Measurement | str | None:
    return results.more_instructions(duels(session, label), simulated(session, label), BENCHMARK)


def misses(session: Session, label: str) -> Measurement | str | None:
    return results.more_misses(duels(session, label), simulated(session, label), BENCHMARK)


def hot(session: Session, label: str) -> Measurement | str | None:
    of_it = linked(session, label)
    lacking = of_it["lacking"] or of_it["absent"].get(BY_PROFILE)
    return lacking or results.over_orders(duels(session, label), BENCHMARK, BY_PROFILE)
