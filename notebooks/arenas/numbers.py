"""The numbers of the chapter "Arenas", by name, and its own controls. The rules: claims.toml."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import chosen, difference, measured, ratio
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.arenas import experiment as e
from notebooks.arenas import results

NO_HUGE_PAGES = "this system gave no huge pages to a program that asked for them"
# By claim and scenario: what is compared with glibc's. The talk rates jemalloc and glibc equal for latency.
RATED = {(f"A21{letter}", name): arm for letter, (name, arm) in zip("abcdefg", e.PREFERRED.items(), strict=True)}
LATENCY, PEAK = "latency-critical, multi-threaded", "tight memory limit"
# Which of two values is compared with which, in which case.
HELD_BACK = {e.SET[:2]: "large, pinned", (e.SET[3], e.SET[2]): "small"}


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the talk's condition twice. An alarm withholds what rests on this experiment."""
    return [
        Control(
            "A/A of the talk's experiment",
            f"{column} in MiB, the same − the same, on {label}",
            "the talk's experiment",
            found.estimate,
            truth=0.0,
        )
        for (label, column), found in results.twins(results.talk(session.frame("the talk's experiment"))).items()
    ]


def numbers(session: Session) -> Makers:
    made = {}

    def put(name: str, make: Callable, *arguments) -> None:
        made[name] = partial(make, session, *arguments)

    pair, kept = f"{FREE_THREADED} − {GIL}", f"{FREE_THREADED}, GIL on − {GIL}"
    put(f"VmRSS grown, as the talk ran it: {kept}", apart, "vmrss", e.KEPT, e.AS_RUN)
    put(f"VmRSS grown, as the talk ran it: {FREE_THREADED}, GIL on / {GIL}", times_as_run)
    put(f"VmRSS grown, huge pages for all: {kept}", apart, "vmrss", e.HUGE_KEPT, e.HUGE)
    none = "grown without native threads, huge pages for all"
    put(f"VmRSS {none}: {kept}", apart, "vmrss", e.HUGE_NONE_KEPT, e.HUGE_NONE)
    put(f"RSS {none}: {pair}", apart, "rss", e.HUGE_NONE, e.HUGE_NONE)
    put(f"held by glibc, huge pages for all: {pair}", apart, "held", e.HUGE, e.HUGE)
    put(f"RSS grown by the native threads, huge pages for all: {FREE_THREADED}", by_native_threads)
    put(f"MiB inside the calls, huge pages for all: {FREE_THREADED}, GIL off / on", calls_that_overlap)
    for name, column in (("held by glibc", "held"), ("native threads at once", "at_once")):
        put(f"{name}, touched blocks, 8 × 50: {FREE_THREADED} / {GIL}", times_of_touched, column)
    put(f"amplification at 24 × 200 / at 2 × 10: {e.KEEPING}", of_grid, results.amplified, e.KEEPING)
    by = "RSS grown by the native threads at 24 × 200"
    put(f"{by}: {FREE_THREADED}", of_grid, by_most)
    put(f"{by} minus 2 × 200: {FREE_THREADED}", of_grid, by_more_callers)
    put(f"{by} − 2 × 200 − 24 × 10 + 2 × 10: {FREE_THREADED}", of_grid, results.interaction)
    put(f"{by} minus 120 times that at 2 × 10: {FREE_THREADED}", of_grid, results.in_half_proportion)
    for (_, name), arm in RATED.items():
        put(f"{name}: {arm} / glibc", over_glibc, name, arm)
    put("many short-lived threads, all freed: jemalloc / glibc", over_glibc, PEAK, "jemalloc", "end")
    put(f"{LATENCY}: jemalloc / glibc", over_glibc, LATENCY, "jemalloc")
    for allocator in e.ALLOCATORS[1:]:
        put(f"MiB grown, by turns: {allocator} / glibc", over_nothing, allocator, "by turns", "grown")
    for name, work, column in (("MiB grown", "by turns", "grown"), ("blocks/s", "all at once", "blocks_per_second")):
        put(f"{name}, {work}: arena_max=1 / nothing", over_nothing, "arena_max=1", work, column)
    for (setting, other), case in HELD_BACK.items():
        put(f"MiB held, {case}: {setting} minus {other}", held_back, setting, other, case)
    return made


def looked_at(session: Session) -> dict:
    """What the chapter found here: see experiment.this_system."""
    return session.observed("this system", session.interpreters)


def not_built(session: Session, *labels: str) -> str | None:
    """Why the extension in Rust is absent on one of these interpreters; None if it is there on all."""
    absent = looked_at(session)["absent extension"]
    return next((absent[label] for label in labels if label in absent), None)


def apart(session: Session, column: str, condition: str, with_gil: str) -> Measurement | str | None:
    runs = results.talk(session.frame("the talk's experiment"))
    if condition in (e.HUGE, e.HUGE_KEPT, e.HUGE_NONE, e.HUGE_NONE_KEPT) and not results.huge_pages(runs):
        return not_built(session, GIL, FREE_THREADED) or NO_HUGE_PAGES
    return results.apart(runs, column, condition, with_gil) or not_built(session, GIL, FREE_THREADED)


def times_as_run(session: Session) -> Measurement | str | None:
    return results.as_run(results.talk(session.frame("the talk's experiment"))) or not_built(
        session, GIL, FREE_THREADED
    )


def by_native_threads(session: Session) -> Measurement | str | None:
    runs = results.talk(session.frame("the talk's experiment"))
    found = results.by_native_threads(runs, FREE_THREADED, e.HUGE, e.HUGE_NONE)
    return not_built(session, FREE_THREADED) or (found if results.huge_pages(runs) else NO_HUGE_PAGES)


def calls_that_overlap(session: Session) -> Measurement | str | None:
    runs = results.talk(session.frame("the talk's experiment"))
    found = results.calls_that_overlap(runs)
    return not_built(session, FREE_THREADED) or (found if results.huge_pages(runs) else NO_HUGE_PAGES)


def times_of_touched(session: Session, column: str) -> Measurement | str | None:
    runs = results.talk(session.frame("the talk's experiment"))
    found = ratio(*(results.of_condition(runs, label, e.MEET, column) for label in (FREE_THREADED, GIL)))
    return found or not_built(session, GIL, FREE_THREADED)


def of_grid(session: Session, make: Callable, build: str = FREE_THREADED) -> Measurement | str | None:
    return make(results.grid(session.frame("Python × native threads")), build) or not_built(session, FREE_THREADED)


def by_most(cells: pd.DataFrame, build: str) -> Measurement | None:
    return measured(results.native_part(cells, build, *results.LARGEST), "MiB")


def by_more_callers(cells: pd.DataFrame, build: str) -> Measurement | None:
    (few, _), (many, native) = results.SMALLEST, results.LARGEST
    return difference(*(results.native_part(cells, build, number, native) for number in (many, few)), "MiB")


def over_glibc(session: Session, scenario: str, arm: str, column: str = "value") -> Measurement | str | None:
    found = results.over_glibc(results.scenarios(session.frame("scenarios")), scenario, arm, column)
    return found or looked_at(session)["absent allocators"].get(arm.partition(",")[0])


def over_nothing(session: Session, remedy: str, work: str, column: str) -> Measurement | str | None:
    found = results.over_nothing(results.grown(session.frame("remedies")), remedy, work, column)
    return found or looked_at(session)["absent allocators"].get(remedy)


def held_back(session: Session, setting: str, other: str, case: str) -> Measurement | None:
    runs = session.frame("thresholds")
    return difference(*(chosen(runs, setting=one, case=case).held.to_numpy() for one in (setting, other)), "MiB")
