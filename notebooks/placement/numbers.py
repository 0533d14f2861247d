"""The numbers of the chapter "Code placement", by name, and its own controls. The rules: claims.toml,
sentences.toml."""

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from ffilab.judge.controls import Control
from ffilab.judge.estimates import Counted, Estimate, Interval, Share
from ffilab.judge.numbers import Made, Makers
from ffilab.judge.poured import TOO_FEW
from ffilab.judge.processes import interval_of, ratio
from ffilab.measure.session import Session
from notebooks.placement import lottery, results
from notebooks.placement.counting import WESTMERE, Cache
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, PROGRAMS, SIMULATED, SPREAD, simulated_how
from notebooks.placement.results import NO_TRAP, THRESHOLDS


def controls(session: Session) -> list[Control]:
    """The lottery's own A/A test: the linker's own order against itself. An alarm withholds what random orders are
    asked for."""
    duels = session.frame("relink lottery")
    found = []
    for label in lottery.BUILDS:
        of_it = results.of_build(duels, label)
        if not (of_it.kind == "copy").any():
            continue
        for benchmark in lottery.BENCHMARKS:
            own = results.itself(of_it, benchmark)
            what = f"{benchmark}: the linker's own order / itself on {label}"
            found.append(Control("A/A of the lottery", what, "relink lottery", own))
    return found


def numbers(session: Session) -> Makers:
    made = of_functions(session) | of_programs(session) | of_lots(session)
    return {name: partial(known, make) for name, make in made.items()}


def known(make: Callable[[], Made]) -> Made:
    """What is made; of nothing, that it is too little."""
    made = make()
    return TOO_FEW if isinstance(made, Share) and not made.trials else made


def number_of(session: Session, title: str, make: Callable, *given, **which) -> Callable[[], Made]:
    """A number of one experiment."""
    return lambda: make(session.frame(title), *given, **which)


def of_functions(session: Session) -> Makers:
    """Functions at a distance, by the clock, simulated and counted; a loop, an environment, and the machine."""

    clock = partial(number_of, session, "distances")

    def longer(runs: pd.DataFrame) -> Counted | str:
        _, slow = results.fits(runs, APART)
        return "none is beyond doubt" if math.isinf(slow) else Counted(slow)

    def simulation(make: Callable) -> Callable[[], Made]:
        def of_it() -> Counted | str:
            found = session.observed(
                "simulated misses of the functions", *simulated_how(session, cache(session), WESTMERE)
            )
            return found if isinstance(found, str) else Counted(make(pd.DataFrame(found)))

        return of_it

    def edge(found: pd.DataFrame, distance: int) -> int:
        """The largest number of functions at a distance that the system's cache runs without a miss; 0 if none."""
        part = found[(found.cache == cache(session).name) & (found.distance == distance)]
        return int(part.n[part.misses < results.FEW_MISSES].max()) if (part.misses < results.FEW_MISSES).any() else 0

    def misses_of(found: pd.DataFrame, distance: int) -> float:
        of_it = found[(found.cache == cache(session).name) & (found.n == MANY)]
        return of_it.set_index("distance").misses[distance]

    def counter(event: str, distance: int) -> Counted | str:
        found = session.observed("hardware counters of the functions")
        if isinstance(found, str):
            return found
        (row,) = (row for row in found if row["distance"] == distance)
        return Counted(row[event]) if event in row else "this processor does not count them for us"

    def environments() -> dict[bool, Interval]:
        return results.environments_apart(session.frame("size of the environment"))

    def virtual() -> Counted | str:
        found = session.machine.get("virtual_machine")
        return "the system does not say" if found is None else Counted(found)

    made: Makers = {
        f"functions at {APART} bytes that keep their time": clock(lambda runs: Counted(results.fits(runs, APART)[0])),
        f"functions at {APART} bytes from which on all take longer": clock(longer),
        f"price of pages, {MANY} functions": clock(results.price_of_pages),
        f"price of sets, {MANY} functions": clock(results.price_of_sets),
        f"a call at {APART} bytes / at {PACKED}, {MANY} functions": clock(results.slower_than, APART, PACKED, MANY),
        f"a call at {APART} bytes / at {DENSE}, {MANY} functions": clock(results.slower_than, APART, DENSE, MANY),
        "ways of the instruction cache": lambda: Counted(cache(session).ways),
        "KiB of the instruction cache": lambda: Counted(cache(session).size / 1024),
        "ways of the instruction cache (simulated)": simulation(
            lambda found: edge(found, APART) // results.sets_met(cache(session), APART)
        ),
        # Each call in the caller takes some bytes of the cache as well.
        "KiB of the instruction cache (simulated)": simulation(
            lambda found: edge(found, DENSE) * (DENSE + results.CALL_BYTES) / 1024
        ),
        "slowest / fastest fifth of the places of a loop": number_of(
            session, "alignment of a loop", results.offsets_apart
        ),
        "slowest / fastest fifth of the sizes of the environment, random addresses": lambda: environments().get(True),
        "slowest / fastest fifth of the sizes of the environment, fixed addresses": lambda: environments().get(False),
        "ways to choose addresses": lambda: Counted(len(environments())),
        "virtual machine": virtual,
    }
    for distance in (PACKED, DENSE, SPREAD, APART):
        which = {"distance": [distance], "n": [MANY]}
        made[f"ns of a call at {distance} bytes, {MANY} functions"] = clock(interval_of, "ns", **which)
    for distance in SIMULATED:
        made[f"functions at {distance} bytes without a miss (simulated)"] = simulation(partial(edge, distance=distance))
        made[f"misses of a call at {distance} bytes, {MANY} functions (simulated)"] = simulation(
            partial(misses_of, distance=distance)
        )
        made[f"misses of a call at {distance} bytes (counted)"] = partial(counter, "L1-icache-load-misses", distance)
        made[f"instructions of a call at {distance} bytes (counted)"] = partial(counter, "instructions", distance)
    return made


def of_programs(session: Session) -> Makers:
    """The small machine, and its bisections."""

    machine, bisections = (partial(number_of, session, title) for title in ("the small machine", "git bisect"))
    timed = partial(machine, results.ratio)

    def counted(make: Callable, what: str) -> Callable[[], Made]:
        title = "instructions and misses of the small machine"
        return lambda: make(results.table(session.observed(title, list(PROGRAMS))), what)

    def stalled() -> Estimate | str | None:
        """Run by run."""
        title = "hardware counters of the small machine"
        found = session.observed(title, list(PROGRAMS), session.budget.repeats)
        if isinstance(found, str):
            return found
        if not all(lottery.STALLED in row for rows in found.values() for row in rows):
            return "this processor does not count stalled front-end cycles for us"
        return ratio(*(np.array([row[lottery.STALLED] for row in found[name]]) for name in ("slow", "fast")))

    def of_bisections(make: Callable) -> Callable[[], Counted]:
        return bisections(lambda found: Counted(make(found)))

    made = {f"ns of an operation: {name}": machine(interval_of, "ns", program=name) for name in PROGRAMS}
    return made | {
        "slow / fast, a change that never runs": timed("slow", "fast"),
        "slow / hot functions together": timed("slow", "hot"),
        "hot functions together / fast": timed("hot", "fast"),
        "hot functions together, aligned / not aligned": timed("hot, aligned", "hot"),
        "the small machine: the same instructions (simulated)": counted(results.as_built, "the same instructions"),
        "the small machine: twice the misses (simulated)": counted(results.as_built, "twice the misses"),
        "the small machine: misses gone with its hot functions together (simulated)": counted(
            results.as_built, "misses gone"
        ),
        "instructions, slow / fast (simulated)": counted(results.counted_ratio, "instructions"),
        "misses, slow / fast (simulated)": counted(results.counted_ratio, "misses"),
        "stalled front-end cycles, slow / fast (counted)": stalled,
        "bisections without a trap that blame a commit which changes no machine code": bisections(results.unrelated),
        "share of bisections that blame the unrelated commit": bisections(results.blaming),
        "share of blamed commits that stand, without a trap": bisections(results.standing),
        "commits blamed without a trap": of_bisections(
            lambda found: results.of_history(found, NO_TRAP).message.nunique()
        ),
        "blamed commits that stand": of_bisections(lambda found: results.standing(found).events),
        "blamed commits that stand by noise alone": of_bisections(
            lambda found: results.BY_A_COIN * results.standing(found).trials
        ),
        "blamed commits that stand and change no machine code": of_bisections(
            lambda found: results.unrelated(found[found.stands == 1]).events
        ),
    }


def of_lots(session: Session) -> Makers:
    """The lottery of CPython's functions, and the profiles."""

    def profiles(make: Callable) -> Callable[[], Made]:
        return lambda: make(session.observed("profiles of call_method", *lottery.profiled_how(session)))

    def as_many() -> Estimate | str:
        return results.as_many_instructions({label: simulated(session, label) for label in lottery.BUILDS})

    made = {
        "share of random orders with the instructions of the linker's own (simulated)": as_many,
        "share of the five hottest functions, call_method": profiles(results.five_hottest),
        "processes of which samples were taken, call_method": profiles(sampled),
        "random orders as slow as the slow binary of 2016, call_method": partial(as_slow, session),
    }
    most_misses = ("most misses of a thousand instructions", most)
    for label, benchmark in itertools.product(lottery.BUILDS, lottery.BENCHMARKS):
        for name, find in (*BY_LOT.values(), *OF_ORDERS.items(), most_misses):
            made[f"{name}, {benchmark} on {label}"] = partial(find, session, label, benchmark)
    return made


def cache(session: Session) -> Cache:
    """The instruction cache that the system reports."""
    return Cache(**session.observed("instruction cache"))


def linked(session: Session, label: str) -> dict:
    """What came of linking a build again."""
    return session.observed("linking", *lottery.linked_how(session, label))


def duels(session: Session, label: str) -> pd.DataFrame:
    """The duels of a build."""
    return results.of_build(session.frame("relink lottery"), label)


def simulated(session: Session, label: str) -> list[dict] | str:
    """What a simulator counted of the orders of a build, or why there is nothing."""
    of_it = linked(session, label)
    return of_it["lacking"] or session.observed(
        "simulated misses of the orders", *lottery.missed_how(label, of_it, cache(session))
    )


def of_orders(session: Session, label: str, benchmark: str, make: Callable) -> Made:
    return linked(session, label)["lacking"] or make(duels(session, label), benchmark)


def apart(runs: pd.DataFrame, benchmark: str) -> Estimate:
    return results.of_pairs(runs, benchmark)


def stalls(session: Session, label: str, benchmark: str) -> Estimate | str | None:
    of_it = linked(session, label)
    counted = of_it["lacking"] or session.observed(
        "stalled cycles of the orders", *lottery.stalled_how(session, label, of_it)
    )
    return results.more_stalls(duels(session, label), counted, benchmark)


def misses(session: Session, label: str, benchmark: str) -> Estimate | str | None:
    return results.more_misses(duels(session, label), simulated(session, label), benchmark)


def hot(session: Session, label: str, benchmark: str) -> Estimate | str | None:
    of_it = linked(session, label)
    lacking = of_it["lacking"] or of_it["absent"]
    return lacking or results.over(duels(session, label), benchmark, lottery.TOGETHER, lottery.ANYWHERE)


# What random orders of each build are asked for, with each benchmark.
BY_LOT = {
    "D1": ("how far one pair of random orders in twenty differs", partial(of_orders, make=apart)),
    "D2": ("stalled front-end cycles, slower / faster orders", stalls),
    "D3": ("misses of a thousand instructions, slower less faster orders", misses),
    "D6": ("hot functions together / anywhere", hot),
}


def faster(runs: pd.DataFrame, benchmark: str) -> Share:
    slower = results.passing(runs, benchmark, "order", 1.0)
    return Share(slower.trials - slower.events, slower.trials)


# The same of random orders, against the linker's own, whatever is claimed of them.
SMALL = THRESHOLDS[0]
MADE_OF_ORDERS = {
    "slowest / fastest of random orders": results.true_spread,
    "random orders / the linker's own": partial(results.over, kind="order", other="copy"),
    "random orders that are slower": partial(results.passing, kind="order", threshold=1.0),
    "random orders that are faster": faster,
    "random orders that are slower by 2 %": partial(results.passing, kind="order", threshold=SMALL),
    "random orders that are slower by 2 % by noise alone": lambda runs, benchmark: Counted(
        results.passing_by_noise(runs, benchmark, SMALL)
    ),
}
OF_ORDERS = {name: partial(of_orders, make=make) for name, make in MADE_OF_ORDERS.items()}


def most(session: Session, label: str, benchmark: str) -> Counted | str:
    """Misses of the random order that misses most."""
    counted = results.missed(simulated(session, label), benchmark)
    return counted if isinstance(counted, str) else Counted(counted.drop(lottery.DEFAULT).max())


def as_slow(session: Session) -> Share | str:
    """Of the orders of all builds that were linked; or why none was."""
    lacking = {label: linked(session, label)["lacking"] for label in lottery.BUILDS}
    if all(lacking.values()):
        return next(iter(lacking.values()))
    found = [
        results.passing(duels(session, label), "call_method", "order", results.PUBLISHED)
        for label in lottery.BUILDS
        if not lacking[label]
    ]
    return Share(sum(one.events for one in found), sum(one.trials for one in found))


def sampled(found: dict | str) -> Counted | str:
    if isinstance(found, str):
        return found
    return Counted(len(found["processes"])) if found["what"] == "samples" else f"{found['what']} were counted"
