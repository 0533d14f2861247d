"""Every sentence of the chapter "Arenas" that a run chooses, with data that agree, contradict, and leave it open."""

import math

from ffilab.judge.estimates import Interval
from ffilab.judge.rules import NO, OPEN, YES
from notebooks.arenas.words import NO_EFFECT, PERHAPS_NONE


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
        "agrees": (YES, YES, MUCH, 32.01),
        "contradicts": (NO, NO, FALLS, 32.01),
        "undecided": (OPEN, OPEN, made(4.0, 2.0, 6.0), 32.01),
        "another size": (YES, NO, made(16.0), 32.01),
        "size open": (YES, OPEN, made(25.0), 32.01),
        "missing": (OPEN, OPEN, None, 32.01),
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
    "amplification": {"agrees": (ABOVE,), "contradicts": (BELOW,), "undecided": (AROUND,), "missing": (None,)},
    "pages_by_thread": {
        "agrees": ({"3.13t": made(1.0), "3.14t": made(2.0)},),
        "contradicts": ({"3.14t": made(0.0, 0.0, 0.05)},),
        "undecided": ({"3.14t": UNKNOWN},),
        "one": ({"3.14t": made(2.0)},),
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
        "agrees": (builds(ABOVE, BELOW), STRADDLES, STRADDLES, 16, 64),
        "contradicts": (builds(BELOW, ABOVE), FALLS, FALLS, 16, 64),
        "undecided": (builds(AROUND, AROUND), STRADDLES, STRADDLES, 16, 64),
        "one": (builds(ABOVE, None), STRADDLES, STRADDLES, 16, 64),
        "missing": (builds(None, None), None, None, 16, 64),
    },
    "control": {
        "agrees": ("one arena", "3.14t", STRADDLES, BELOW),
        "contradicts": ("one arena", "3.14t", FALLS, ABOVE),
        "undecided": ("one arena", "3.14t", UNKNOWN, AROUND),
        "more": ("one arena", "3.14t", MUCH, AROUND),
        "RSS alone": ("one arena", "3.14t", STRADDLES, None),
    },
    "steps": {
        "agrees": (STEP, of_each(SMALL, SMALL, MUCH)),
        "contradicts": (STEP, of_each(-SMALL, -SMALL, FALLS)),
        "undecided": (STEP, of_each(STRADDLES, STRADDLES, UNKNOWN)),
        "each its own": (STEP, of_each(SMALL, -SMALL, STRADDLES)),
        "missing": (STEP, {}),
    },
    "product": {
        "agrees": ("3.14t", SMALL, made(2.0), 240.0),
        "contradicts": ("3.14t", made(0.01), MUCH, 240.0),
        "undecided": ("3.14t", NOTHING, made(2.0), 240.0),
        "nothing": ("3.14t", NOTHING, FALLS, 240.0),
        "largest open": ("3.14t", SMALL, made(0.3, -0.2, 0.8), 240.0),
        "missing": ("3.14t", None, None, 240.0),
    },
    "in_use": {
        "agrees": ("thread pool", made(0.16), 12.0),
        "contradicts": ("thread pool", made(0.001), 12.0),
        "undecided": ("thread pool", made(0.012, 0.005, 0.019), 12.0),
        "missing": ("thread pool", None, 12.0),
    },
    "held": {
        "agrees": ("thread pool, all freed", MUCH, made(30.0)),
        "contradicts": ("thread pool, all freed", MUCH, FALLS),
        "undecided": ("thread pool, all freed", MUCH, STRADDLES),
        "nothing": ("thread pool, all freed", NOTHING, STRADDLES),
        "wide": ("thread pool, all freed", made(61.0, 6.0, 115.0), made(59.0, 5.0, 114.0)),
        "unknown": ("thread pool, all freed", UNKNOWN, UNKNOWN),
    },
    "still_growing": {
        "agrees": ({"a pool": STRADDLES, "short-lived threads": STRADDLES},),
        "contradicts": ({"a pool": MUCH, "short-lived threads": MUCH},),
        "undecided": ({"a pool": UNKNOWN, "short-lived threads": None},),
        "shrinks": ({"a pool": FALLS, "short-lived threads": STRADDLES},),
    },
    "threshold": {
        "agrees": ("mmap_threshold", YES, FALLS),
        "contradicts": ("mmap_threshold", NO, MUCH),
        "undecided": ("mmap_threshold", OPEN, made(-9.0, -12.0, -6.0)),
        "missing": ("mmap_threshold", OPEN, None),
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
        "no effect": (rated(NO_EFFECT, PERHAPS_NONE, OPEN),),
    },
    "limits": {
        "agrees": (64, {"glibc": (0, 5), "jemalloc": (5, 5)}),
        "contradicts": (64, {"glibc": (5, 5), "jemalloc": (0, 5)}),
        "undecided": (64, {"glibc": (2, 5), "jemalloc": (3, 5)}),
        "missing": (64, {}),
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
        "agrees": (NOTHING, SMALL, 400),
        "contradicts": (-SMALL, MUCH, 400),
        "undecided": (UNKNOWN, None, 400),
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
