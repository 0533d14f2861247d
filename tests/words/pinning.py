"""Every sentence of the chapter "Where threads run" that a run chooses, with data that agree, contradict, and leave it open."""

import math

from ffilab.judge.estimates import Interval
from ffilab.judge.rules import NO, OPEN, YES

UP, DOWN, AROUND = Interval(1.6, 1.4, 1.8), Interval(0.55, 0.5, 0.6), Interval(1.01, 0.9, 1.12)
UNKNOWN = Interval(1.2, math.nan, math.nan)
MANY, FEW, SOME = Interval(12.0, 8.0, 16.0), Interval(0.2, 0.05, 0.35), Interval(1.5, 0.5, 2.5)
NONE = Interval(0.0, 0.0, 0.0)
HALF, LITTLE, NEITHER = Interval(0.5, 0.4, 0.6), Interval(0.02, 0.01, 0.03), Interval(0.01, -0.1, 0.12)

JUDGED = {
    "agrees": (UP, YES),
    "contradicts": (DOWN, NO),
    "undecided": (AROUND, OPEN),
    "no effect": (AROUND, NO),
    "unknown": (UNKNOWN, OPEN),
    "none": (None, OPEN),
}
SIDE = {"agrees": (UP,), "contradicts": (DOWN,), "undecided": (AROUND,), "unknown": (UNKNOWN,), "none": (None,)}
TWO = {"agrees": (UP, UP), "contradicts": (DOWN, DOWN), "undecided": (AROUND, AROUND), "none": (None, None)}

CASES = {
    "steadier": {**JUDGED, "a little": (UP, OPEN)},
    "native_gain": JUDGED,
    "python_gain": JUDGED,
    "one_core": {
        "agrees": (DOWN, DOWN, AROUND),
        "contradicts": (UP, UP, UP),
        "undecided": (AROUND, AROUND, AROUND),
        "none": (None, None, None),
    },
    "moves": {
        "agrees": (MANY, NONE),
        "contradicts": (FEW, NONE),
        "undecided": (SOME, NONE),
        "not pinned after all": (MANY, MANY),
        "none": (None, None),
    },
    "tail_gil": JUDGED,
    "tail_free": JUDGED,
    "tail_one_core": TWO,
    "race": {
        "agrees": (HALF, HALF, LITTLE, YES),
        "contradicts": (LITTLE, HALF, HALF, NO),
        "undecided": (NEITHER, HALF, HALF, OPEN),
        "none": (None, None, None, OPEN),
    },
    "race_gil": {
        "agrees": (HALF, LITTLE),
        "contradicts": (LITTLE, HALF),
        "undecided": (HALF, HALF),
        "none": (None, UNKNOWN),
    },
    "beside_alone": TWO,
    "bugs": {"agrees": (9, 10), "contradicts": (0, 10), "undecided": (0, 0)},
    "could_find": {"agrees": (0.03, 0.2), "contradicts": (0.2, 0.9), "undecided": (None, None), "nan": (math.nan, 0.1)},
    "same_again": {
        "agrees": ([AROUND, AROUND], 0),
        "contradicts": ([UP, AROUND], 1),
        "undecided": ([UP, AROUND], 0),
        "none": ([], 0),
    },
    "prediction_1": SIDE,
    "prediction_2": TWO,
    "prediction_3": SIDE,
    "prediction_4": {"agrees": (HALF,), "contradicts": (-HALF,), "undecided": (NEITHER,), "none": (None,)},
    "objection_machine": {
        "agrees": (2, FEW),
        "contradicts": (2, MANY),
        "undecided": (2, None),
        "more cores": (8, SOME),
        "from nothing up": (2, Interval(3.0, 0.0, 6.4)),
    },
    "takeaway": {
        "agrees": ({"throughput": YES, "tails": YES},),
        "contradicts": ({"throughput": NO, "tails": NO},),
        "undecided": ({"throughput": OPEN, "tails": OPEN},),
        "mixed": ({"throughput": YES, "tails": OPEN},),
    },
}
