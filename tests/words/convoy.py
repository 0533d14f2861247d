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
    "idle": side(),
    "baselines": {
        "agrees": ([9_000.0, 64_000.0], [14_000.0, 15_000.0], UP),
        "contradicts": ([9_000.0, 64_000.0], [14_000.0, 15_000.0], DOWN),
        "undecided": ([9_000.0, 64_000.0], [14_000.0, 15_000.0], AROUND),
        "unknown": ([9_000.0, 64_000.0], [14_000.0, 15_000.0], UNKNOWN),
        "not pinned": ([9_000.0, 64_000.0], [], None),
        "none": ([], [], None),
    },
    "convoy": {
        "agrees": (UP, UP, YES),
        "contradicts": (AROUND, AROUND, NO),
        "undecided": (AROUND, STRADDLES, OPEN),
        "none": (None, None, OPEN),
    },
    "strangers": side(),
    "model": {
        "agrees": (MOST, MOST, YES),
        "contradicts": (MOST, FEW, NO),
        "undecided": (MOST, STRADDLES, OPEN),
        "none": (None, None, OPEN),
    },
    "mixture": {
        "agrees": ("Where nothing is pinned", FEW, HALF, HALF),
        "contradicts": ("Where nothing is pinned", FEW, MOST, FEW),
        "undecided": ("Where nothing is pinned", FEW, HALF, FEW),
        "mostly": ("Where nothing is pinned", FEW, STRADDLES, FEW),
        "two": ("Where nothing is pinned", FEW, FEW, MOST),
        "no wait": ("Where nothing is pinned", MOST, FEW, FEW),
        "unknown": ("Where nothing is pinned", FEW, None, UNKNOWN),
    },
    "pooled": {
        "agrees": (TWO, [2.0, 2.01, 2.03]),
        "contradicts": (BETWEEN, [1.04, 2.05, 1.05]),
        "undecided": (TWO, [2.0, 1.04, 1.05]),
        "wide": (BETWEEN, [1.7, 1.71, 1.72]),
        "none": (None, []),
    },
    "calls": {
        "agrees": ({"recv": FEW, "send": MOST},),
        "contradicts": ({"recv": MOST, "send": FEW},),
        "undecided": ({"recv": HALF, "send": HALF},),
        "none": ({"recv": None, "send": UNKNOWN},),
    },
    "one_wait": judged(ONE, UP, BETWEEN),
    "forced": {
        "agrees": (MOST,),
        "contradicts": (HALF,),
        "undecided": (STRADDLES,),
        "none": (None,),
    },
    "slack": {
        "agrees": (MICROSECONDS, NONE, MICROSECONDS),
        "contradicts": (NONE, MICROSECONDS, LESS),
        "undecided": (MICROSECONDS, MICROSECONDS, NONE),
        "none": (None, None, None),
    },
    "starved": {
        "agrees": (UP, Interval(39_994.0, 39_979.0, 40_008.0)),
        "contradicts": (DOWN, MICROSECONDS),
        "undecided": (AROUND, MICROSECONDS),
        "wide": (UP, MICROSECONDS),
        "none": (None, None),
    },
    "relief": {case: (*found, 110.0) for case, found in judged().items()},
    "one_core": {
        "agrees": (UP, UP, YES, YES),
        "contradicts": (AROUND, AROUND, NO, NO),
        "undecided": (STRADDLES, STRADDLES, OPEN, OPEN),
        "none": (None, None, OPEN, OPEN),
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
        "agrees": (MOST, MOST, YES, TWO, [2.0, 2.01, 2.03]),
        "contradicts": (MOST, FEW, NO, ONE, [1.04, 2.05, 1.05]),
        "undecided": (MOST, STRADDLES, OPEN, BETWEEN, [1.04, 2.05, 1.05]),
        "none": (None, None, OPEN, None, []),
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
        "agrees": (Interval(0.8, 0.7, 0.9), Interval(0.9, 0.8, 1.0)),
        "contradicts": (Interval(0.2, 0.1, 0.3), Interval(0.3, 0.2, 0.4)),
        "undecided": (Interval(0.2, 0.1, 0.3), HALF),
        "none": (None, None),
    },
}
