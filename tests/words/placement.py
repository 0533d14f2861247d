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
LITTLE = Interval(1.01, 1.003, 1.018)


def answered(one, answer):
    """What lots say of two benchmarks, alike."""
    return {f"call_method {GIL}": (one, answer), f"containers {FREE}": (one, answer)}


ONE_OF_EACH = {
    f"call_method {GIL}": (LITTLE, NO),
    f"call_method {FREE}": (Interval(1.02, 1.004, 1.03), OPEN),
    f"containers {GIL}": (ABOVE, YES),
    f"containers {FREE}": ("no objects", ""),
}


CASES = {
    "share_fragment": {"agrees": (ALL,), "contradicts": (NONE,), "undecided": (SOME,)},
    "stay_fast": {
        "agrees": (8.0, 10.0, {}, USUAL),
        "contradicts": (4.0, 6.0, {}, USUAL),
        "undecided": (256.0, INFINITE, {}, USUAL),
        "more": (24.0, 32.0, {6: ABOVE}, USUAL),
        "none": (0.0, 4.0, {}, USUAL),
        "mixed": (16.0, 8.0, {}, USUAL),
        "all may": (0.0, 128.0, {}, USUAL),
        "unknown": (math.nan, math.nan, {}, USUAL),
    },
    "pages_or_sets": {
        "agrees": (ABOVE, FAR, {}),
        "contradicts": (FAR, ABOVE, {}),
        "undecided": (AROUND, UNKNOWN, {}),
        "sets alone": (LITTLE.inverse, FAR, {128: ABOVE}),
        "sets, and pages open": (Interval(2.2, 0.6, 8.0), FAR, {}),
        "pages alone": (ABOVE, BELOW, {}),
        "pages, and sets open": (ABOVE, AROUND, {}),
        "alike": (ABOVE, ABOVE, {}),
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
    "loops": {
        "agrees": (ABOVE, 10),
        "contradicts": (BELOW, 10),
        "undecided": (AROUND, 10),
        "unknown": (UNKNOWN, 2),
        "too little": (LITTLE, 10),
    },
    "environment": {
        "agrees": (AROUND, ABOVE),
        "contradicts": (ABOVE, AROUND),
        "undecided": (AROUND, AROUND),
        "flat": (LITTLE, LITTLE.inverse),
        "both": (ABOVE, ABOVE),
        "the other way": (BELOW, UNKNOWN),
        "not measured": (ABOVE, None),
    },
    "lots": {
        "agrees": (answered(ABOVE, YES), SOME),
        "contradicts": (answered(LITTLE, NO), NONE),
        "undecided": (answered(AROUND, OPEN), Share(0, 0)),
        "one of each": (ONE_OF_EACH, NONE),
    },
    "own_order": {
        "agrees": ({f"containers {FREE}": (ABOVE, [1.014, 1.2, 1.038])},),
        "contradicts": ({f"containers {FREE}": (BELOW, [0.9, 0.8, 1.1])},),
        "undecided": ({f"containers {FREE}": (AROUND, [0.9, 1.1])},),
        "both": ({f"containers {FREE}": (ABOVE, [1.014, 1.2]), f"call_method {GIL}": (None, [])},),
    },
    "expected_fragment": {"agrees": (2.04,), "contradicts": (14.2,), "undecided": (math.nan,)},
    "hot_together": {
        "agrees": (answered(BELOW, YES),),
        "contradicts": (answered(ABOVE, NO),),
        "undecided": (answered(AROUND, OPEN),),
        "one of each": (ONE_OF_EACH,),
        "absent": (answered("neither perf nor valgrind is at hand", ""),),
    },
    "miss_more": {
        "agrees": (answered(MORE, YES), {f"call_method {GIL}": 5.2}),
        "contradicts": (answered(FEWER, NO), {f"call_method {GIL}": 0.044}),
        "undecided": (answered(AS_MANY, OPEN), {}),
        "unknown": (answered(UNKNOWN, OPEN), {}),
        "one of each": (ONE_OF_EACH, {f"call_method {GIL}": 0.044, f"call_method {FREE}": 0.041}),
    },
    "stall_more": {
        "agrees": (answered(ABOVE, YES),),
        "contradicts": (answered(BELOW, NO),),
        "undecided": (answered(AROUND, OPEN),),
        "no counters": (answered("this machine shows no hardware counters to us", ""),),
        "one process": (answered(None, ""),),
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
        "agrees": (1.00001, 110.2),
        "contradicts": (1.4, 1.1),
        "undecided": (NO_VALGRIND, NO_VALGRIND),
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
        "all without code": (MESSAGES, Share(4, 20), 4, YES),
    },
    "limits": {
        "agrees": (True, None, "this machine shows no hardware counters to us", "AMD EPYC"),
        "contradicts": (False, "performance", ROWS, "Intel Xeon"),
        "undecided": (None, None, "perf is not installed", None),
    },
    "prediction_1": {"agrees": (FAR,), "contradicts": (BELOW,), "undecided": (AROUND,), "unknown": (UNKNOWN,)},
    "prediction_2": {
        "agrees": ({GIL: ABOVE, FREE: FAR},),
        "contradicts": ({GIL: Interval(1.0, 1.0, 1.01), FREE: LITTLE},),
        "undecided": ({GIL: ABOVE, FREE: "no objects"},),
    },
    "prediction_3": {
        "agrees": ({f"call_method {GIL}": (SOME, 2.04), f"call_method {FREE}": (SOME, 0.1)},),
        "contradicts": ({f"call_method {GIL}": (NONE, 2.04)},),
        "undecided": ({f"call_method {GIL}": (SOME, math.nan)},),
        "not linked": ({},),
    },
    "prediction_4": {
        "agrees": (ALL, MESSAGES),
        "contradicts": (NONE, {"Shorter messages": 20}),
        "undecided": (SOME, MESSAGES),
    },
    "takeaway": {
        "agrees": (ONE_OF_EACH,),
        "contradicts": (answered(LITTLE, NO),),
        "undecided": (answered(AROUND, OPEN),),
        "some": (answered(LITTLE, OPEN),),
    },
}
