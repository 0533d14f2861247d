"""Every sentence of the chapter "Code placement" that a run chooses, with data that agree, contradict, and leave it open."""

import math

from ffilab.judge.estimates import Interval, Share
from ffilab.judge.rules import NO, OPEN, YES
from notebooks.placement.experiment import APART, DENSE, USUAL

GIL, FREE = "with the GIL", "without the GIL"
INFINITE = float("inf")
NO_VALGRIND = "there is no valgrind here"
UNKNOWN = Interval(1.2, math.nan, math.nan)
ABOVE, BELOW, AROUND = Interval(1.5, 1.45, 1.55), Interval(0.6, 0.55, 0.65), Interval(1.01, 0.9, 1.12)
FAR = Interval(9.0, 8.0, 10.1)
MORE, FEWER, AS_MANY = Interval(3.0, 2.0, 4.0), Interval(-3.0, -4.0, -2.0), Interval(0.1, -2.0, 2.2)
NONE, SOME, ALL = Share(0, 20), Share(9, 20), Share(20, 20)
ROWS = [{"distance": 64, "instructions": 3.0, "L1-icache-load-misses": 0.01}]
MESSAGES = {"Shorter messages": 3, "README: how to bisect": 17}


def passing(*shares):
    return {threshold: {"call_method": one, "containers": one} for threshold, one in zip((1.02, 1.05), shares)}


CASES = {
    "share_fragment": {"agrees": (ALL,), "contradicts": (NONE,), "undecided": (SOME,)},
    "stay_fast": {
        "agrees": (8.0, 10.0, {}, USUAL),
        "contradicts": (4.0, 6.0, {}, USUAL),
        "undecided": (256.0, INFINITE, {}, USUAL),
        "more": (24.0, 32.0, {6: ABOVE}, USUAL),
        "none": (0.0, 4.0, {}, USUAL),
        "mixed": (16.0, 8.0, {}, USUAL),
        "unknown": (math.nan, math.nan, {}, USUAL),
    },
    "two_sets": {
        "agrees": (Interval(2.0, 1.5, 2.5),),
        "contradicts": (Interval(1.3, 1.0, 1.6),),
        "undecided": (Interval(1.5, 0.9, 2.1),),
        "unknown": (Interval(*[math.nan] * 3),),
    },
    "pages": {"agrees": (ABOVE,), "contradicts": (BELOW,), "undecided": (AROUND,), "unknown": (UNKNOWN,)},
    "sets": {"agrees": (FAR,), "contradicts": (BELOW,), "undecided": (AROUND,), "unknown": (UNKNOWN,)},
    "pages_or_sets": {
        "agrees": (ABOVE, FAR),
        "contradicts": (FAR, ABOVE),
        "undecided": (AROUND, UNKNOWN),
        "sets alone": (AROUND, FAR),
        "pages alone": (ABOVE, BELOW),
        "alike": (ABOVE, ABOVE),
    },
    "simulated_geometry": {
        "agrees": ({DENSE: 448, APART: 8}, USUAL),
        "contradicts": ({DENSE: 448, APART: 4}, USUAL),
        "undecided": (NO_VALGRIND, USUAL),
    },
    "agreement": {
        "agrees": ({DENSE: 0.0, APART: 1.0}, FAR),
        "contradicts": ({DENSE: 0.0, APART: 1.0}, BELOW),
        "undecided": ({DENSE: 0.0, APART: 1.0}, AROUND),
        "not simulated": (NO_VALGRIND, FAR),
    },
    "counters": {
        "agrees": (ROWS,),
        "contradicts": ([{"distance": 64, "instructions": 3.0}],),
        "undecided": ("this machine shows no hardware counters to us",),
    },
    "loops": {"agrees": (ABOVE, 10), "contradicts": (BELOW, 10), "undecided": (AROUND, 10), "unknown": (UNKNOWN, 2)},
    "environment": {
        "none": ("fixed", Interval(1.001, 0.995, 1.007)),
        "agrees": ("fixed", ABOVE),
        "contradicts": ("fixed", BELOW),
        "undecided": ("fixed", AROUND),
        "not measured": ("fixed", None),
        "unknown": ("random", UNKNOWN),
    },
    "environments": {
        "agrees": (AROUND, ABOVE),
        "contradicts": (ABOVE, AROUND),
        "undecided": (AROUND, AROUND),
        "both": (ABOVE, ABOVE),
        "not measured": (ABOVE, None),
    },
    "orders_differ": {
        "agrees": (GIL, "call_method", ABOVE, YES),
        "contradicts": (GIL, "call_method", Interval(1.005, 1.0, 1.01), NO),
        "undecided": (GIL, "call_method", Interval(1.03, 1.0, 1.1), OPEN),
        "unknown": (GIL, "call_method", UNKNOWN, OPEN),
        "not linked": (GIL, "call_method", "no objects", ""),
    },
    "luck": {
        "agrees": (GIL, passing(ALL, SOME), passing(2.04, 0.1), SOME),
        "contradicts": (GIL, passing(NONE, NONE), passing(2.04, 0.1), NONE),
        "undecided": (GIL, passing(SOME, NONE), passing(math.nan, math.nan), NONE),
    },
    "expected_fragment": {"agrees": (2.04,), "contradicts": (14.2,), "undecided": (math.nan,)},
    "no_lottery": {
        "agrees": (GIL, "no objects"),
        "contradicts": (FREE, "there is no linker that orders functions"),
        "undecided": (GIL, "CPython 3.14 was not compiled here, and its objects are not known"),
    },
    "linking": {"agrees": (2.1,), "contradicts": (91.0,), "undecided": (0.0,)},
    "hot_together": {
        "agrees": (GIL, "containers", BELOW, Share(1, 15), YES),
        "contradicts": (GIL, "containers", ABOVE, Share(14, 15), NO),
        "undecided": (GIL, "containers", AROUND, Share(7, 15), OPEN),
        "absent": (GIL, "containers", None, None, "", "mold shuffles by a seed and takes no order"),
    },
    "miss_more": {
        "agrees": (GIL, "containers", MORE, 2.1, 9.2, YES),
        "contradicts": (GIL, "containers", FEWER, 2.1, 9.2, NO),
        "undecided": (GIL, "containers", AS_MANY, 2.1, 9.2, OPEN),
        "no matter": (GIL, "containers", Interval(0.1, -0.2, 0.4), 2.1, 9.2, NO),
        "none": (GIL, "call_method", Interval(0.001, -0.002, 0.004), 0.037, 0.041, NO),
        "unknown": (GIL, "containers", UNKNOWN, 2.1, 9.2, OPEN),
        "not counted": (GIL, "containers", NO_VALGRIND, 0.0, 0.0, ""),
    },
    "own_order": {
        "agrees": (GIL, "containers", ALL),
        "contradicts": (FREE, "containers", NONE),
        "undecided": (GIL, "containers", SOME),
        "not counted": (GIL, "containers", NO_VALGRIND),
    },
    "five_hottest": {
        "agrees": (Interval(0.9, 0.88, 0.92), "share of samples", YES),
        "contradicts": (Interval(0.5, 0.48, 0.52), "share of samples", NO),
        "undecided": (Interval(0.64, 0.6, 0.68), "share of samples", OPEN),
        "counted": (Interval(0.9, 0.9, 0.9), "share of instructions", YES),
        "not measured": (NO_VALGRIND, "", ""),
    },
    "lottery_for_alt": {
        "agrees": ({("3.14", "call_method"): (0.98, 1.09, 0.99, 1.02)},),
        "contradicts": ({("3.14", "call_method"): (0.99, 1.02, 0.95, 1.06)},),
        "undecided": ({},),
    },
    "planted": {"agrees": (FAR,), "contradicts": (BELOW,), "undecided": (AROUND,), "not measured": (None,)},
    "mended": {"agrees": (FAR,), "contradicts": (BELOW,), "undecided": (AROUND,), "unknown": (UNKNOWN,)},
    "as_before": {"agrees": (ABOVE,), "contradicts": (BELOW,), "undecided": (AROUND,), "not measured": (None,)},
    "aligned": {"agrees": (ABOVE,), "contradicts": (BELOW,), "undecided": (AROUND,), "unknown": (UNKNOWN,)},
    "same_work": {
        "agrees": (1.00001, 110.2, YES),
        "contradicts": (1.4, 1.1, NO),
        "undecided": (1.0, 110.2, OPEN),
        "not counted": (NO_VALGRIND, NO_VALGRIND, ""),
    },
    "stalls": {
        "agrees": (ABOVE,),
        "contradicts": (BELOW,),
        "undecided": (AROUND,),
        "no counters": ("this machine shows no hardware counters to us",),
    },
    "blamed": {
        "agrees": (ALL, {}, YES),
        "contradicts": (NONE, {"report.h: who calls it": 20}, NO),
        "undecided": (SOME, {"report.h: who calls it": 1, "Shorter messages": 10}, OPEN),
    },
    "blamed_by_chance": {
        "agrees": (MESSAGES, NONE, 0, YES),
        "contradicts": ({"Shorter messages": 20}, ALL, 0, NO),
        "undecided": (MESSAGES, SOME, 7, OPEN),
        "one": (MESSAGES, Share(1, 20), 1, YES),
    },
    "limits": {
        "agrees": (True, None, "this machine shows no hardware counters to us", "AMD EPYC"),
        "contradicts": (False, "performance", ROWS, "Intel Xeon"),
        "undecided": (None, None, "perf is not installed", None),
    },
    "objection_planted": {
        "agrees": ([YES, YES], NONE),
        "contradicts": ([NO, NO], NONE),
        "undecided": ([YES, OPEN], SOME, 6),
        "one build": ([YES, NO], NONE),
        "not linked": ([], None),
    },
    "objection_pages": {"agrees": (AROUND, FAR), "contradicts": (FAR, AROUND), "undecided": (AROUND, UNKNOWN)},
    "objection_simulated": {
        "agrees": ({f"containers {GIL}": (MORE, YES)}, "no counters"),
        "contradicts": ({f"containers {GIL}": (FEWER, NO)}, ROWS),
        "undecided": ({f"containers {GIL}": (AS_MANY, OPEN)}, "no counters"),
        "all three": (
            {"a": (MORE, YES), "b": (FEWER, NO), "c": (AS_MANY, OPEN), "d": (NO_VALGRIND, "")},
            "no counters",
        ),
        "nothing": ({"a": (NO_VALGRIND, "")}, "no counters"),
    },
    "prediction_1": {"agrees": (FAR,), "contradicts": (BELOW,), "undecided": (AROUND,), "unknown": (UNKNOWN,)},
    "prediction_2": {
        "agrees": ({GIL: (ABOVE, YES), FREE: (ABOVE, YES)},),
        "contradicts": ({build: (Interval(1.0, 1.0, 1.01), NO) for build in (GIL, FREE)},),
        "undecided": ({GIL: (AROUND, OPEN), FREE: (UNKNOWN, OPEN)},),
        "not linked": ({GIL: (ABOVE, YES), FREE: ("no objects", "")},),
    },
    "prediction_3": {
        "agrees": ({GIL: (SOME, NONE, 2.04), FREE: (SOME, Share(0, 4), 0.1)},),
        "contradicts": ({GIL: (NONE, NONE, 2.04), FREE: (NONE, NONE, 2.04)},),
        "undecided": ({GIL: (SOME, NONE, math.nan), FREE: "no objects"},),
    },
    "prediction_4": {
        "agrees": ("With the trap, all.", "Without, none."),
        "contradicts": ("With the trap, none.", "Without, all."),
        "undecided": ("With the trap, some.", "Without, some."),
    },
    "takeaway": {
        "agrees": ({f"containers {GIL}": ABOVE, f"containers {FREE}": AROUND},),
        "contradicts": ({f"containers {GIL}": AROUND, f"containers {FREE}": ABOVE},),
        "undecided": ({f"containers {GIL}": AROUND, f"containers {FREE}": "no objects"},),
    },
}
