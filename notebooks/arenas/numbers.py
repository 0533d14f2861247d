"""The numbers of the chapter "Arenas", by name, and its own controls. The rules: claims.toml, sentences.toml."""

import math
from collections.abc import Callable
from functools import partial

import pandas as pd

from ffilab.judge.controls import Control
from ffilab.judge.estimates import Counted, Estimate, Interval, Share
from ffilab.judge.numbers import Made, Makers
from ffilab.judge.processes import chosen, difference, location, ratio
from ffilab.judge.questions import NO, equal
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.arenas import experiment as e
from notebooks.arenas import results
from notebooks.arenas.results import (
    AS_RUN,
    ASKED,
    EQUAL,
    HUGE,
    HUGE_KEPT,
    HUGE_NONE,
    HUGE_NONE_KEPT,
    KEPT,
    MEET,
    NO_HUGE,
    NONE,
    ONE_ARENA,
    RELEASED,
    WIDE_MEET,
)

TALK, GRID, GROWTH = "the talk's experiment", "Python × native threads", "growth over time"
NO_HUGE_PAGES = "this system gave no huge pages to a program that asked for them"
# By claim and scenario: what is compared with glibc's. The talk rates jemalloc and glibc equal for latency.
RATED = {(f"A21{letter}", name): arm for letter, (name, arm) in zip("abcdefg", e.PREFERRED.items(), strict=True)}
LATENCY, PEAK = "latency-critical, multi-threaded", "tight memory limit"
SERVER = "long-lived server, RSS-sensitive"
# Which of two values is compared with which, in which case.
HELD_BACK = {e.SET[:2]: "large, pinned", (e.SET[3], e.SET[2]): "small"}


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the talk's condition twice. An alarm withholds what rests on this experiment."""
    return [
        Control(
            "A/A of the talk's experiment",
            f"{column} in MiB, the same − the same, on {label}",
            TALK,
            found,
            truth=0.0,
        )
        for (label, column), found in results.twins(talk(session)).items()
    ]


def numbers(session: Session) -> Makers:
    made: Makers = {}

    def put(name: str, make: Callable, *arguments) -> None:
        made[name] = partial(make, session, *arguments)

    def split(name: str, other: str, make: Callable, *arguments) -> None:
        """Processes to which something happened, and the others."""
        put(name, share, True, make, *arguments)
        put(other, share, False, make, *arguments)

    put("arenas at most", lambda session: Counted(looked_at(session)["arenas at most"]))
    for what in ("", " that raised a false alarm", " that are off by what would matter"):
        put(f"A/A tests{what}", twins, what)
    of_the_talk(put)
    for label in (GIL, FREE_THREADED):
        split(*(f"processes {one} the cap of arenas: {label}" for one in ("at", "below")), at_the_cap, label)
    for whose, published in (("the talk's worker", True), ("our worker", False)):
        split(f"processes that ended well with {whose}", f"processes that died with {whose}", ended_well, published)
    put(f"amplification at 24 × 200 / at 2 × 10: {e.KEEPING}", of_grid, results.amplified, e.KEEPING)
    by = "RSS grown by the native threads at 24 × 200"
    cells = [
        (FREE_THREADED, results.SMALLEST),
        *((label, (24, n)) for label in (GIL, FREE_THREADED) for n in (10, 200)),
    ]
    for label, (python, native) in cells:
        name = f"RSS grown by the native threads at {python} × {native}: {label}"
        put(
            name,
            of_grid,
            lambda cells, *cell: location(results.native_part(cells, *cell)),
            label,
            python,
            native,
        )
    put(f"{by} minus 2 × 200: {FREE_THREADED}", of_grid, by_more_callers)
    put(f"{by} − 2 × 200 − 24 × 10 + 2 × 10: {FREE_THREADED}", of_grid, results.interaction)
    put(f"{by} minus 120 times that at 2 × 10: {FREE_THREADED}", of_grid, results.in_half_proportion)
    for way in e.WORK.values():
        for state, keep in (("all freed", False), ("a small entry left by each", True)):
            put(f"MiB that stay, {way}, {state}", of_growth, way, keep, lambda part: results.positive(part, "grown"))
            # A ratio, as growth differs many times over between processes.
            left = f"left by malloc_trim / what stayed, {way}, {state}"
            put(left, of_growth, way, keep, lambda part: ratio(part.trimmed.to_numpy(), part.grown.to_numpy()))
        in_use = f"KiB in use, more than before, {way}"
        put(in_use, of_growth, way, True, lambda part: location(1024 * part.more_in_use.to_numpy(dtype=float)))
        later = f"processes that grew later, {way}", f"processes that grew no more, {way}"
        split(*later, lambda session, way: results.grew_later(session.frame(GROWTH), way, True), way)
    for (_, name), arm in RATED.items():
        put(f"{name}: {arm} / glibc", over_glibc, name, arm)
    for arm in e.ARMS:
        put(f"{SERVER}: {arm} / glibc", over_glibc, SERVER, arm)
        put(f"{SERVER}, MiB: {arm}", of_server, arm)
    put("many short-lived threads, all freed: jemalloc / glibc", over_glibc, PEAK, "jemalloc", "end")
    put(f"{LATENCY}: jemalloc / glibc", over_glibc, LATENCY, "jemalloc")
    for work in e.WORK:
        for name, column in (("MiB grown", "grown"), ("blocks/s", "blocks_per_second")):
            for remedy in (*e.SETTINGS, *e.ALLOCATORS[1:]):
                other = "glibc" if remedy in e.ALLOCATORS else "nothing"
                put(f"{name}, {work}: {remedy} / {other}", over_nothing, remedy, work, column)
    for (setting, other), case in HELD_BACK.items():
        put(f"MiB held, {case}: {setting} minus {other}", held_back, setting, other, case)
    return made


def of_the_talk(put: Callable) -> None:
    """The numbers of the talk's experiment under its conditions."""
    free, gil = FREE_THREADED, GIL
    pair, kept = f"{free} − {gil}", f"{free}, GIL on − {gil}"
    none, meet = "grown without native threads, huge pages for all", "touched blocks, 8 × 50"

    def less(name: str, column: str, one: results.Which, other: results.Which) -> None:
        put(name, against, difference, column, one, other)

    def over(name: str, column: str, one: results.Which, other: results.Which) -> None:
        put(name, against, ratio, column, one, other)

    less(f"VmRSS grown, as the talk ran it: {kept}", "vmrss", (free, KEPT), (gil, AS_RUN))
    over(f"VmRSS grown, as the talk ran it: {free}, GIL on / {gil}", "vmrss", (free, KEPT), (gil, AS_RUN))
    less(f"VmRSS grown, huge pages for all: {kept}", "vmrss", (free, HUGE_KEPT), (gil, HUGE))
    less(f"VmRSS {none}: {kept}", "vmrss", (free, HUGE_NONE_KEPT), (gil, HUGE_NONE))
    less(f"RSS {none}: {pair}", "rss", (free, HUGE_NONE), (gil, HUGE_NONE))
    rss, held = ("RSS grown", "rss"), ("held by glibc", "held")
    for (name, column), condition in ((rss, AS_RUN), (rss, NONE), (rss, HUGE), (held, HUGE)):
        less(f"{name}, {condition}: {pair}", column, (free, condition), (gil, condition))
    for condition in (AS_RUN, NONE):
        for label in (gil, free):
            put(f"RSS grown, {condition}: {label}", alone, "rss", label, condition)
    for condition, without in ((HUGE, HUGE_NONE), (ASKED, NONE)):
        by = f"RSS grown by the native threads, {condition}: {free}"
        less(by, "rss", (free, condition), (free, without))
    threads = e.TALK["python_threads"] * e.TALK["native_threads"]

    def by_each(*rss) -> Estimate | None:
        """For each of the native threads of all calls, where their blocks are asked for."""
        return location(results.less(*rss) * 1024 / threads)

    put(f"KiB by each native thread, {ASKED}: {free}", against, by_each, "rss", (free, ASKED), (free, NONE))
    for condition in (KEPT, NO_HUGE, ONE_ARENA):
        less(f"RSS grown, {condition} − {AS_RUN}: {free}", "rss", (free, condition), (free, AS_RUN))
    inside = f"MiB inside the calls, huge pages for all: {free}"
    put(f"{inside}, GIL off", alone, "inside", free, HUGE)
    put(f"{inside}, GIL on", alone, "inside", free, HUGE_KEPT)
    over(f"{inside}, GIL off / on", "inside", (free, HUGE), (free, HUGE_KEPT))
    put(f"how much farther from the talk's print the calls are: {free}, GIL off − on", farther)
    objects = f"huge pages where objects are − all of them, {NONE}: {free}"
    put(objects, in_objects)
    over(f"native threads at once, {meet}: {free} / {gil}", "at_once", (free, MEET), (gil, MEET))
    over(f"held by glibc, {meet}: {free} / {gil}", "held", (free, MEET), (gil, MEET))
    over(f"held by glibc, 400 native threads at once: {free} / {gil}", "held", (free, EQUAL), (gil, EQUAL))
    over(f"native threads at once, {meet}, GIL released / kept: {gil}", "at_once", (gil, RELEASED), (gil, MEET))
    for label in (gil, free):
        name = f"held by glibc, {meet}, 64 arenas allowed / as many as here: {label}"
        over(name, "held", (label, WIDE_MEET), (label, MEET))


def looked_at(session: Session) -> dict:
    """What the chapter found here: see system.look."""
    return session.observed("this system", session.interpreters)


def not_built(session: Session, *labels: str) -> str | None:
    """Why the extension in Rust is absent on one of these interpreters; None if it is there on all."""
    absent = looked_at(session)["absent extension"]
    return next((absent[label] for label in labels if label in absent), None)


def talk(session: Session) -> pd.DataFrame:
    return results.talk(session.frame(TALK))


def twins(session: Session, what: str) -> Counted | None:
    """How many A/A tests of the talk's experiment there are, and how many are off."""
    found = [one.interval for one in results.twins(talk(session)).values() if one.interval.is_known]
    least = results.ALARM if "matter" in what else 0.0
    off = [one for one in found if not what or equal(one, 0, least) == NO]
    return Counted(len(off)) if found else None


def alone(session: Session, column: str, label: str, condition: str) -> Estimate | None:
    return location(results.of_condition(talk(session), label, condition, column))


def against(session: Session, compare: Callable, column: str, *pair: results.Which) -> Estimate | str | None:
    """Two conditions of the talk's experiment; where the system gave no huge pages, those with them say nothing."""
    runs, labels = talk(session), [label for label, _ in pair]
    if pair[0][1].startswith(HUGE) and not results.huge_pages(runs):
        return not_built(session, *labels) or NO_HUGE_PAGES
    return results.against(runs, compare, column, *pair) or not_built(session, *labels)


def in_objects(session: Session) -> Estimate | None:
    """Of the huge pages that came, those in mappings where Python threads keep their objects: MiB of them less MiB of
    all."""
    found = (results.of_condition(talk(session), FREE_THREADED, HUGE_NONE, column) for column in ("in_objects", "huge"))
    return difference(*found)


def farther(session: Session) -> Interval | None:
    """In logarithms: how much farther the talk's print is from what the calls saw grow with the GIL off than with it
    on."""
    off, on = (alone(session, "inside", FREE_THREADED, condition) for condition in (HUGE, HUGE_KEPT))
    if not (off and on):
        return None
    off, on = distance(off.interval), distance(on.interval)
    return Interval(off.value - on.value, off.low - on.high, off.high - on.low)


def distance(seen: Interval) -> Interval:
    """From what the talk's calls saw grow, which is its growth over its amplification."""
    grown, factor = results.TERMINAL["3.14.0rc1"][2:]
    return seen.map(lambda mib: math.log(max(mib, 0.01))).distance(math.log(grown / factor))


def share(session: Session, happened: bool, make: Callable, *arguments) -> Share | None:
    events, trials = make(session, *arguments)
    return Share(events if happened else trials - events, trials) if trials else None


def at_the_cap(session: Session, label: str) -> tuple[int, int]:
    """glibc made as many arenas as it may: one, the main one, was there before."""
    arenas = chosen(talk(session), interpreter=label, condition=AS_RUN).arenas
    return int((arenas >= looked_at(session)["arenas at most"] - 1).sum()), len(arenas)


def ended_well(session: Session, published: bool) -> tuple[int, int]:
    """With less room than one block."""
    runs = session.frame("is the block asked for")
    ended = runs[runs.published == published].ended if len(runs) else []
    return sum(one == "ok" for one in ended), len(ended)


def of_growth(session: Session, way: str, keep: bool, make: Callable) -> Made:
    found = results.grown(session.frame(GROWTH))
    return make(found[(found.way == way) & (found.keep == keep)])


def of_grid(session: Session, make: Callable, build: str = FREE_THREADED, *cell: int) -> Estimate | str | None:
    return make(results.grid(session.frame(GRID)), build, *cell) or not_built(session, FREE_THREADED)


def by_more_callers(cells: pd.DataFrame, build: str) -> Estimate | None:
    (few, _), (many, native) = results.SMALLEST, results.LARGEST
    return difference(*(results.native_part(cells, build, number, native) for number in (many, few)))


def of_scenarios(session: Session, arm: str, make: Callable) -> Estimate | str | None:
    """A number of an allocator, or why it is absent. make: of results.scenarios."""
    found = make(results.scenarios(session.frame("scenarios")))
    return found or looked_at(session)["absent allocators"].get(arm.partition(",")[0])


def over_glibc(session: Session, scenario: str, arm: str, column: str = "value") -> Estimate | str | None:
    return of_scenarios(session, arm, lambda runs: results.over_glibc(runs, scenario, arm, column))


def of_server(session: Session, arm: str) -> Interval | str | None:
    """What a server holds after a second without work."""
    part = partial(chosen, scenario=SERVER, arm=arm)
    return of_scenarios(session, arm, lambda runs: results.positive(part(runs), "value"))


def over_nothing(session: Session, remedy: str, work: str, column: str) -> Estimate | str | None:
    """A remedy over none, under one kind of work."""
    runs = chosen(results.grown(session.frame("remedies")), work=work)
    found = ratio(*(chosen(runs, remedy=one)[column].to_numpy() for one in (remedy, "nothing")))
    return found or looked_at(session)["absent allocators"].get(remedy)


def held_back(session: Session, setting: str, other: str, case: str) -> Estimate | None:
    runs = session.frame("thresholds")
    return difference(*(chosen(runs, setting=one, case=case).held.to_numpy() for one in (setting, other)))
