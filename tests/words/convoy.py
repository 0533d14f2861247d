"""Every sentence of the chapter "The GIL convoy" that a run chooses, with data that agree, contradict, and leave it open."""

import math

from ffilab.judge.estimates import Interval
from ffilab.judge.rules import NO, OPEN, YES

UP, DOWN, AROUND = Interval(3.0, 2.5, 3.6), Interval(0.4, 0.35, 0.45), Interval(1.02, 0.9, 1.15)
UNKNOWN = Interval(1.2, math.nan, math.nan)
MOST, HALF, FEW = Interval(0.97, 0.955, 0.985), Interval(0.5, 0.4, 0.6), Interval(0.02, 0.01, 0.03)
STRADDLES = Interval(0.85, 0.6, 0.99)
TWO, ONE, BETWEEN = Interval(2.02, 1.95, 2.09), Interval(1.04, 1.0, 1.08), Interval(1.7, 1.2, 2.2)
MICROSECONDS, LESS, NONE = Interval(52.0, 48.0, 56.0), Interval(-20.0, -25.0, -15.0), Interval(1.0, -5.0, 7.0)


def side(**further):
    """Of a ratio alone."""
    return {
        "agrees": (UP,),
        "contradicts": (DOWN,),
        "undecided": (AROUND,),
        "unknown": (UNKNOWN,),
        "none": (None,),
        **further,
    }


def judged(agrees=UP, contradicts=AROUND, undecided=STRADDLES):
    """Of a ratio and what its rule says."""
    return {
        "agrees": (agrees, YES),
        "contradicts": (contradicts, NO),
        "undecided": (undecided, OPEN),
        "none": (None, OPEN),
    }


CASES = {
    "divided": judged(AROUND, DOWN),
    "hashed": judged(),
    "short_intervals": {
        "agrees": (AROUND, UP, YES, 12.02),
        "contradicts": (AROUND, AROUND, NO, 12.02),
        "undecided": (UNKNOWN, STRADDLES, OPEN, 12.02),
        "none": (None, None, OPEN, 12.02),
    },
    "awake": {
        "agrees": ([UP, UP, UP], UP, AROUND),
        "contradicts": ([UP, UP, UP], DOWN, UP),
        "undecided": ([UP, UP, UP], AROUND, DOWN),
        "none": ([UP, None, UP], None, None),
    },
    "baselines": {
        "agrees": ([9_000.0, 64_000.0], [14_000.0, 15_000.0], UP),
        "contradicts": ([9_000.0, 64_000.0], [14_000.0, 15_000.0], DOWN),
        "undecided": ([9_000.0, 64_000.0], [14_000.0, 15_000.0], AROUND),
        "unknown": ([9_000.0, 64_000.0], [14_000.0, 15_000.0], UNKNOWN),
        "not pinned": ([9_000.0, 64_000.0], [], None),
        "none": ([], [], None),
    },
    "convoy": {
        "agrees": (UP, UP, UP, YES),
        "contradicts": (UP, AROUND, AROUND, NO),
        "undecided": (None, AROUND, STRADDLES, OPEN),
        "none": (None, None, None, OPEN),
    },
    "strangers": side(),
    "model": {
        "agrees": ({"recv": MOST, "send": MOST}, FEW, [YES, YES, YES]),
        "contradicts": ({"recv": MOST, "send": FEW}, MOST, [YES, NO, NO]),
        "undecided": ({"recv": STRADDLES, "send": HALF}, HALF, [OPEN, OPEN, OPEN]),
        "of each": ({"recv": MOST, "send": STRADDLES}, HALF, [YES, OPEN, NO]),
        "none": ({"recv": None, "send": UNKNOWN}, None, [OPEN, OPEN, OPEN]),
    },
    "as_run": {
        "agrees": (TWO, TWO),
        "contradicts": (ONE, BETWEEN),
        "undecided": (BETWEEN, BETWEEN),
        "none": (None, UNKNOWN),
    },
    "one_wait": judged(ONE, UP, BETWEEN),
    "forced": {
        "agrees": (MOST, FEW, YES),
        "contradicts": (HALF, HALF, NO),
        "undecided": (STRADDLES, HALF, OPEN),
        "all alike": (Interval(1.0, 1.0, 1.0), MOST, YES),
        "never free": (Interval(1.0, 1.0, 1.0), Interval(0.0, 0.0, 0.0), YES),
        "none": (None, None, OPEN),
    },
    "slack": {
        "agrees": (MICROSECONDS, NONE, MICROSECONDS),
        "contradicts": (NONE, MICROSECONDS, LESS),
        "undecided": (MICROSECONDS, MICROSECONDS, NONE),
        "none": (None, None, None),
    },
    "polling": {
        "agrees": (MICROSECONDS, Interval(34_000.0, 30_000.0, 38_000.0)),
        "contradicts": (MICROSECONDS, MICROSECONDS),
        "undecided": (MICROSECONDS, NONE),
        "none": (None, UNKNOWN),
    },
    "relief": {case: (*found, 110.0, HALF if case != "none" else None) for case, found in judged().items()},
    "one_core": {
        "agrees": (UP, UP, AROUND, YES, NO),
        "contradicts": (AROUND, AROUND, UP, NO, YES),
        "undecided": (STRADDLES, STRADDLES, DOWN, OPEN, OPEN),
        "something is left": (UP, UP, Interval(1.36, 1.08, 1.7), YES, NO),
        "none": (None, None, None, OPEN, OPEN),
    },
    "without_gil": side(),
    "remedies": {
        "agrees": ({"1 CPU process": UP, "native code": UP},),
        "contradicts": ({"1 CPU process": DOWN, "native code": DOWN},),
        "undecided": ({"1 CPU process": AROUND, "native code": None},),
        "of each": ({"1 CPU process": UP, "native code": DOWN, "asyncio": AROUND},),
    },
    "references": side(),
    "prediction_1": side(contains=(Interval(108.0, 30.0, 390.0),), more=(Interval(500.0, 400.0, 600.0),)),
    "prediction_2": side(),
    "prediction_3": {
        "agrees": ({"On different cores": [FEW, FEW, MOST]},),
        "contradicts": ({"On different cores": [FEW, MOST, FEW], "On one core": [MOST, FEW, FEW]},),
        "undecided": ({"On different cores": [HALF, HALF, STRADDLES]},),
        "none": ({},),
    },
    "prediction_4": {
        "agrees": (UP, AROUND),
        "contradicts": (DOWN, DOWN),
        "undecided": (AROUND, AROUND),
        "none": (None, UNKNOWN),
    },
    "prediction_5": {
        "agrees": (Interval(20_000.0, 19_000.0, 21_000.0), UP),
        "contradicts": (Interval(20_000.0, 19_000.0, 21_000.0), DOWN),
        "undecided": (Interval(20_000.0, 19_000.0, 21_000.0), AROUND),
        "none": (None, None),
    },
    "objection_sample": {
        "agrees": (200, 10, Interval(100.0, 90.0, 110.0)),
        "contradicts": (20, 10, Interval(100.0, 40.0, 160.0)),
        "undecided": (20, 2, UNKNOWN),
        "wide": (200, 10, Interval(100.0, 40.0, 160.0)),
    },
    "objection_slack": {
        "agrees": (Interval(0.8, 0.7, 0.9),),
        "contradicts": (Interval(0.2, 0.1, 0.3),),
        "undecided": (HALF,),
        "none": (None,),
    },
}
