"""Every sentence of the chapter "Arenas" that a run chooses, with data that agree, contradict, and leave it open."""

import math

from ffilab.judge.estimates import Interval
from ffilab.judge.rules import NO, OPEN, YES
from notebooks.arenas.words import IN_PART, NO_EFFECT, TOO_LITTLE


def made(value, low=None, high=None):
    """An interval; around the value if its bounds are not given."""
    reach = abs(value) * 0.05
    return Interval(value, value - reach if low is None else low, value + reach if high is None else high)


UNKNOWN = Interval(1.2, math.nan, math.nan)
# MiB.
MUCH, FALLS, STRADDLES = made(31.9, 31.0, 32.8), made(-31.9, -32.8, -31.0), made(0.1, -0.3, 0.5)
SMALL, NOTHING = made(0.4, 0.3, 0.5), made(0.01, -0.2, 0.22)
# Ratios.
ABOVE, BELOW, AROUND = made(1.5, 1.35, 1.65), made(0.6, 0.55, 0.65), made(1.01, 0.9, 1.12)
LABELS = ("3.13", "3.14", "3.14t")
TWO = ("mmap_threshold=131072", "mmap_threshold=4194304")
STEP = "From 0 to 10 native threads a call"
SCENARIOS = ("many short-lived threads", "high thread count", "fork-heavy")


def of_each(*found):
    return dict(zip(LABELS, found))


def rated(*verdicts):
    return dict(zip(SCENARIOS, verdicts))


def builds(free_threaded, gil):
    return {"3.14t": free_threaded, "3.14": gil}


def settings(memory, other, rate=AROUND):
    return {"arena_max=1": (memory, rate), "arena_max=2": (other, rate)}


CASES = {
    "grew": {
        "agrees": ("As the talk ran it", made(0.5), made(32.4), MUCH),
        "contradicts": ("As the talk ran it", made(32.4), made(0.5), FALLS),
        "undecided": ("As the talk ran it", SMALL, SMALL, STRADDLES),
        "unknown": ("As the talk ran it", UNKNOWN, UNKNOWN, UNKNOWN),
        "missing": ("As the talk ran it", None, None, None),
    },
    "published_number": {
        "agrees": ("With huge pages for all", YES, YES, MUCH, 32.01),
        "contradicts": ("With huge pages for all", NO, NO, FALLS, 32.01),
        "undecided": ("With huge pages for all", OPEN, OPEN, made(4.0, 2.0, 6.0), 32.01),
        "another size": ("With huge pages for all", YES, NO, made(16.0), 32.01),
        "size open": ("With huge pages for all", YES, OPEN, made(25.0), 32.01),
        "as run": ("As the talk ran it", YES, NO, made(1.8), 32.01, made(4.0)),
        "missing": ("With huge pages for all", OPEN, OPEN, None, 32.01),
    },
    "nearer": {
        "agrees": (0.52, made(0.6), made(40.0)),
        "contradicts": (0.52, made(40.0), made(0.6)),
        "undecided": (0.52, made(0.6, 0.1, 1.1), made(1.0, -0.2, 2.2)),
        "missing": (0.52, None, None),
    },
    "blocks": {
        "agrees": ((2, 2), (0, 2)),
        "contradicts": ((0, 2), (0, 2)),
        "undecided": ((1, 2), (1, 2)),
        "missing": ((0, 0), (0, 0)),
    },
    "arenas_account": {
        "agrees": (YES, MUCH, MUCH),
        "contradicts": (NO, STRADDLES, MUCH),
        "undecided": (OPEN, made(1.0, 0.5, 1.5), MUCH),
        "missing": (OPEN, None, None),
    },
    "native_threads": {
        "agrees": ("With the GIL", SMALL),
        "contradicts": ("With the GIL", -SMALL),
        "undecided": ("With the GIL", STRADDLES),
        "unknown": ("With the GIL", UNKNOWN),
    },
    "for_each_python_thread": {
        "agrees": ({1: [4.0, 4.0], 8: [4.0, 4.0, 3.9]},),
        "contradicts": ({1: [0.0, 0.0], 8: [0.0]},),
        "undecided": ({},),
    },
    "objects": {
        "agrees": (made(0.0, 0.0, 0.0),),
        "contradicts": (FALLS,),
        "undecided": (None,),
    },
    "cap": {
        "agrees": ("On 3.14", 10, 10, 16),
        "contradicts": ("On 3.14", 0, 10, 16),
        "undecided": ("On 3.14", 4, 10, 16),
        "missing": ("On 3.14", 0, 0, 16),
    },
    "equal_concurrency": {"agrees": (AROUND,), "contradicts": (ABOVE,), "undecided": (UNKNOWN,), "less": (BELOW,)},
    "reached": {
        "agrees": (YES, YES, ABOVE, ABOVE),
        "contradicts": (NO, NO, BELOW, BELOW),
        "undecided": (OPEN, OPEN, AROUND, AROUND),
        "missing": (OPEN, OPEN, None, None),
    },
    "released": {"agrees": (ABOVE,), "contradicts": (BELOW,), "undecided": (AROUND,), "missing": (None,)},
    "risk": {
        "agrees": (ABOVE, YES),
        "contradicts": (BELOW, NO),
        "undecided": (AROUND, OPEN),
        "one of them": (AROUND, YES),
    },
    "more_arenas": {
        "agrees": (builds((ABOVE, BELOW), (BELOW, ABOVE)), 16, 64),
        "contradicts": (builds((BELOW, BELOW), (ABOVE, ABOVE)), 16, 64),
        "undecided": (builds((AROUND, AROUND), (AROUND, AROUND)), 16, 64),
        "one": (builds((ABOVE, ABOVE), (None, None)), 16, 64),
        "missing": (builds((None, None), (None, None)), 16, 64),
    },
    "control": {
        "agrees": ("one arena", "3.14t", STRADDLES),
        "contradicts": ("one arena", "3.14t", FALLS),
        "undecided": ("one arena", "3.14t", UNKNOWN),
        "more": ("one arena", "3.14t", MUCH),
    },
    "steps": {
        "agrees": (STEP, of_each(SMALL, SMALL, MUCH)),
        "contradicts": (STEP, of_each(-SMALL, -SMALL, FALLS)),
        "undecided": (STEP, of_each(STRADDLES, STRADDLES, UNKNOWN)),
        "each its own": (STEP, of_each(SMALL, -SMALL, STRADDLES)),
        "missing": (STEP, {}),
    },
    "together": {
        "agrees": ("3.14t", YES, made(2.1)),
        "contradicts": ("3.14t", NO, NOTHING),
        "undecided": ("3.14t", OPEN, made(1.0)),
        "missing": ("3.14t", OPEN, None),
    },
    "product": {
        "agrees": (YES, SMALL, made(90.0), 240),
        "contradicts": (NO, SMALL, made(2.0), 240),
        "undecided": (OPEN, NOTHING, made(2.0), 240),
        "missing": (OPEN, None, None, 240),
    },
    "amplified": {
        "agrees": (YES, made(3.0)),
        "contradicts": (NO, BELOW),
        "undecided": (OPEN, ABOVE),
        "too little": (NO, AROUND),
        "missing": (OPEN, None),
    },
    "in_use": {
        "agrees": ("thread pool", made(0.16), 12.0),
        "contradicts": ("thread pool", made(0.001), 12.0),
        "undecided": ("thread pool", made(0.012, 0.005, 0.019), 12.0),
        "missing": ("thread pool", None, 12.0),
    },
    "held": {
        "agrees": ("thread pool, all freed", MUCH, made(0.05)),
        "contradicts": ("thread pool, all freed", MUCH, ABOVE),
        "undecided": ("thread pool, all freed", MUCH, AROUND),
        "nothing": ("thread pool, all freed", NOTHING, AROUND),
        "wide": ("thread pool, all freed", made(61.0, 6.0, 115.0), made(0.04, 0.01, 0.14)),
        "unknown": ("thread pool, all freed", UNKNOWN, UNKNOWN),
    },
    "still_growing": {
        "agrees": ({"a pool": (0, 5), "short-lived threads": (0, 5)},),
        "contradicts": ({"a pool": (5, 5), "short-lived threads": (5, 5)},),
        "undecided": ({"a pool": (0, 5), "short-lived threads": (2, 5)},),
        "missing": ({"a pool": (0, 0), "short-lived threads": (0, 0)},),
    },
    "threshold": {
        "agrees": (*TWO, YES, FALLS),
        "contradicts": (*TWO, NO, MUCH),
        "undecided": (*TWO, OPEN, made(-9.0, -12.0, -6.0)),
        "missing": (*TWO, OPEN, None),
    },
    "remedy": {
        "agrees": ("arena_max=1", "by turns", BELOW, BELOW),
        "contradicts": ("arena_max=1", "by turns", ABOVE, ABOVE),
        "undecided": ("arena_max=1", "by turns", AROUND, AROUND),
        "wide": ("arena_max=64", "all at once", made(1.8, 0.3, 9.4), made(0.77, 0.31, 1.92)),
        "missing": ("arena_max=1", "by turns", None, None),
    },
    "ratings": {
        "agrees": (rated(YES, YES, YES),),
        "contradicts": (rated(NO, NO, NO),),
        "undecided": (rated(OPEN, OPEN, OPEN),),
        "mixed": (rated(YES, NO, "no number"),),
        "no effect": (rated(NO_EFFECT, TOO_LITTLE, IN_PART),),
    },
    "order": {
        "agrees": (YES, made(1.1, 1.02, 1.18)),
        "contradicts": (NO, BELOW),
        "undecided": (OPEN, AROUND),
        "large": (YES, ABOVE),
        "missing": (OPEN, None),
    },
    "largest": {
        "agrees": ({("fork-heavy", "jemalloc"): made(0.05), ("high thread count", "jemalloc"): ABOVE},),
        "contradicts": ({("latency-critical, multi-threaded", "jemalloc"): made(9.6)},),
        "undecided": ({("fork-heavy", "jemalloc"): AROUND},),
    },
    "python_objects": {
        "agrees": ("small", {"3.14": 0.0, "3.14t": 0.0}),
        "contradicts": ("small", {"3.14": 1.0, "3.14t": 1.0}),
        "undecided": ("small", {"3.14": 0.5, "3.14t": 0.4}),
        "missing": ("small", {}),
    },
    "alarms": {
        "agrees": ([STRADDLES, NOTHING],),
        "contradicts": ([STRADDLES, MUCH],),
        "undecided": ([UNKNOWN],),
        "small alarm": ([made(0.05, 0.02, 0.08)],),
    },
    "prediction_1": {
        "agrees": (NOTHING, 400),
        "contradicts": (MUCH, 400),
        "undecided": (None, 400),
    },
    "prediction_2": {
        "agrees": (made(2.4), made(2.2), STRADDLES),
        "contradicts": (made(2.4), NOTHING, made(2.3)),
        "undecided": (None, None, None),
        "a part": (made(2.4), made(1.9), made(0.5)),
        "more": (made(2.4), made(3.0), made(-0.6)),
    },
    "prediction_3": {
        "agrees": ({"All freed": (made(2.5), MUCH), "A small block left by each": (MUCH, made(31.0))},),
        "contradicts": ({"All freed": (MUCH, made(2.5)), "A small block left by each": (MUCH, made(2.5))},),
        "undecided": ({"All freed": (MUCH, made(31.0))},),
        "missing": ({"All freed": (None, None)},),
    },
    "prediction_4": {
        "agrees": (settings(made(0.1), made(0.2)), settings(ABOVE, AROUND, BELOW)),
        "contradicts": (settings(ABOVE, ABOVE), settings(BELOW, BELOW)),
        "undecided": (settings(BELOW, made(0.62), BELOW), settings(AROUND, AROUND)),
        "missing": (settings(None, None), settings(None, None)),
    },
    "both_works": {
        "agrees": ("arena_max=1", (BELOW, ABOVE), (ABOVE, BELOW)),
        "contradicts": ("arena_max=1", (ABOVE, BELOW), (BELOW, ABOVE)),
        "undecided": ("arena_max=1", (AROUND, AROUND), (None, None)),
    },
}
