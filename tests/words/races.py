"""Every sentence of the chapter "Races" that a run chooses, with data that agree, contradict, and leave it open."""

import math

from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval, Share
from notebooks.races.detection import CLEAN, RACE

GIL, FREE = "with the GIL released", "without the GIL"
ALL, SOME, NONE, FEW, ONE_OF_FEW = Share(30, 30), Share(12, 30), Share(0, 30), Share(0, 5), Share(1, 5)
UNKNOWN = Interval(1.2, math.nan, math.nan)


def made(value, low=None, high=None):
    """An interval; around the value if its bounds are not given."""
    reach = abs(value) * 0.05
    return Interval(value, value - reach if low is None else low, value + reach if high is None else high)


MORE, LESS, OPEN = made(0.18, 0.12, 0.24), made(-0.18, -0.24, -0.12), made(0.01, -0.04, 0.06)
LARGE, SMALL = made(0.2, 0.14, 0.26), made(0.018, 0.016, 0.02)
# Two builds, and the first less the second.
LARGER, SMALLER, ALIKE = (LARGE, SMALL, MORE), (SMALL, LARGE, LESS), (made(0.21), made(0.2), OPEN)
MORE_PAIRS = (made(14.0), made(1.0), made(13.0))
FEWER_PAIRS = (made(1.0), made(14.0), made(-13.0, -14.0, -12.0))


def both(share, other=None):
    return {"ctypes CDLL": share, "C API, releasing": other or share}


def check(passed):
    share = "30 of 30" if passed else "3 of 30"
    return Check("threads meet", "50 threads on 3.14", f"all were inside of the call together in {share} runs", passed)


def score(right, missed=0, alarms=0):
    return {"right": right, "missed": missed, "false alarms": alarms}


BANKS = {"ctypes CDLL on 3.14": ALL, "ctypes PyDLL on 3.14t": SOME}

CASES = {
    "as_run": {
        "agrees": (ALL, made(0.35)),
        "contradicts": (NONE, made(0.0, 0.0, 0.0)),
        "undecided": (FEW, UNKNOWN),
        "a little": (ONE_OF_FEW, made(0.002, -0.001, 0.005)),
    },
    "gil_was_off": {
        "agrees": ({"unsafe counter": Share(0, 30), "bank": Share(0, 30)},),
        "contradicts": ({"unsafe counter": Share(3, 30), "bank": Share(0, 30)},),
        "undecided": ({"unsafe counter": FEW, "bank": FEW},),
    },
    "lives": {
        "agrees": (made(62_000.0), made(232_000.0), made(170_000.0)),
        "contradicts": (made(232_000.0), made(62_000.0), made(-170_000.0, -180_000.0, -160_000.0)),
        "undecided": (made(62_000.0), made(65_000.0), made(3_000.0, -9_000.0, 15_000.0)),
        "missing": (None, made(62_000.0), None),
    },
    "bank_as_run": {
        "agrees": (ALL, made(297.0)),
        "contradicts": (NONE, Interval(20.0, 20.0, 20.0)),
        "undecided": (FEW, UNKNOWN),
        "in part": (ALL, made(205.0)),
    },
    "fast_bank": {
        "agrees": (ALL, made(0.4)),
        "contradicts": (NONE, Interval(0.0, 0.0, 0.0)),
        "undecided": (FEW, UNKNOWN),
        "seldom": (ONE_OF_FEW, made(0.04, -0.05, 0.13)),
    },
    "prediction_1": {"agrees": (ALL,), "contradicts": (NONE,), "undecided": (SOME,)},
    "prediction_2": {"agrees": (ALL, SOME), "contradicts": (NONE, NONE), "undecided": (FEW, FEW)},
    "start_and_call": {
        "agrees": (made(76_900.0), made(3_500.0)),
        "contradicts": (made(3_500.0), made(76_900.0)),
        "undecided": (made(76_900.0), made(60_000.0, 20_000.0, 100_000.0)),
        "unknown": (UNKNOWN, UNKNOWN),
    },
    "meeting": {"agrees": ([check(True)],), "contradicts": ([check(True), check(False)],), "undecided": ([],)},
    "met_and_worked": {
        "agrees": (ALL, ALL),
        "contradicts": (NONE, NONE),
        "undecided": (None, None),
        "met only": (ALL, SOME),
    },
    "kept_apart": {"agrees": (NONE,), "contradicts": (SOME,), "undecided": (FEW,)},
    "protection": {
        "agrees": (2, both(NONE), both(ALL)),
        "contradicts": (2, both(SOME), both(NONE)),
        "undecided": (2, both(NONE), both(NONE)),
        "too few": (2, both(FEW), both(ALL)),
    },
    "unprotected": {
        "agrees": (2, both(ALL), both(ALL)),
        "contradicts": (2, both(NONE), both(ALL)),
        "undecided": (2, both(NONE, SOME), both(ALL)),
        "too few": (2, both(FEW), both(FEW)),
    },
    "lossy_runs": {
        "agrees": (GIL, SOME, (0.31, 0.08, 0.5)),
        "contradicts": (GIL, NONE, None),
        "undecided": (GIL, FEW, None),
        "all": (GIL, ALL, (0.31, 0.08, 0.5)),
    },
    "overlap_decides": {
        "agrees": (NONE, ALL, Share(0, 30)),
        "contradicts": (SOME, ALL, SOME),
        "undecided": (Share(0, 1), ALL, NONE),
        "few apart": (Share(0, 3), ALL, NONE),
        "no overlap helps": (NONE, NONE, NONE),
        "none apart": (Share(0, 0), ALL, Share(0, 0)),
        "apart elsewhere": (NONE, ALL, Share(3, 30)),
    },
    "factor_between_builds": {
        "agrees": (LARGER, MORE_PAIRS, ALIKE, NONE),
        "contradicts": (SMALLER, MORE_PAIRS, ALIKE, NONE),
        "undecided": (ALIKE, MORE_PAIRS, ALIKE, NONE),
        "missing": ((None,) * 3, (None,) * 3, (None,) * 3, NONE),
        "pairs alike": (LARGER, ALIKE, ALIKE, NONE),
        "each adds": (LARGER, MORE_PAIRS, LARGER, NONE),
        "each takes": (LARGER, MORE_PAIRS, SMALLER, NONE),
        "less, and fewer pairs": (SMALLER, FEWER_PAIRS, ALIKE, NONE),
        "without an overlap": (LARGER, MORE_PAIRS, ALIKE, SOME),
    },
    "certain": {
        "agrees": ([NONE, NONE], [ALL, SOME]),
        "contradicts": ([SOME, NONE], [ALL, ALL]),
        "undecided": ([NONE, NONE], [NONE, NONE]),
        "too few": ([FEW, FEW], [ALL, ALL]),
    },
    "bank_asleep": {
        "agrees": (ALL, NONE, made(2_400.0)),
        "contradicts": (NONE, ALL, made(0.0, 0.0, 0.0)),
        "undecided": (FEW, FEW, None),
    },
    "atomic_bank": {
        "agrees": (BANKS,),
        "contradicts": (dict.fromkeys(BANKS, NONE),),
        "undecided": (dict.fromkeys(BANKS, FEW),),
    },
    "no_window": {
        "agrees": (made(0.0045, 0.003, 0.006),),
        "contradicts": (Interval(0.0, 0.0, 0.0),),
        "undecided": (made(0.0014, -0.0002, 0.0031),),
        "unknown": (UNKNOWN,),
    },
    "model_of_window": {
        "agrees": (6, {"window": [0, 100, 1_000], "with check": []}, made(45.0), 5),
        "contradicts": (6, {"window": [0, 100, 1_000], "with check": [100, 1_000]}, made(45.0), 2),
        "undecided": (6, {"window": [], "with check": []}, UNKNOWN, 0),
        "nothing to add": (6, {"window": [100], "with check": [100]}, Interval(0.0, 0.0, 0.0), 0),
        "the window alone": (6, {"window": [], "with check": []}, made(5.0), 3),
    },
    "python_with_gil": {"agrees": (NONE, ALL), "contradicts": (SOME, ALL), "undecided": (NONE, NONE)},
    "python_without_gil": {"agrees": (ALL, ALL), "contradicts": (NONE, NONE), "undecided": (FEW, FEW)},
    "last_error": {"agrees": (SOME,), "contradicts": (NONE,), "undecided": (FEW,)},
    "sharing": {
        "agrees": (made(18.0), made(0.9)),
        "contradicts": (made(0.9), made(18.0)),
        "undecided": (made(18.0), made(17.5)),
        "missing": (None, made(18.0)),
        "unknown": (UNKNOWN, made(18.0)),
    },
    "reading": {
        "agrees": (made(38.0), made(0.4)),
        "contradicts": (made(0.4), made(38.0)),
        "undecided": (made(38.0), made(37.5)),
        "missing": (None, None),
    },
    "tools": {
        "agrees": ({"ThreadSanitizer": score(15), "helgrind": score(13, 1, 1)},),
        "contradicts": ({"ThreadSanitizer": score(9, 6), "helgrind": score(15)},),
        "undecided": ({"ThreadSanitizer": score(0), "helgrind": score(0)},),
        "one of them": ({"ThreadSanitizer": score(15), "helgrind": score(0)},),
    },
    "atomic_bank_under_tools": {
        "agrees": ({"ThreadSanitizer": CLEAN, "helgrind": CLEAN},),
        "contradicts": ({"ThreadSanitizer": CLEAN, "helgrind": RACE},),
        "undecided": ({"ThreadSanitizer": "cannot run here: none", "helgrind": "cannot run here: none"},),
    },
    "rust": {"agrees": (SOME, NONE), "contradicts": (SOME, SOME), "undecided": (NONE, NONE), "missing": (None, None)},
    "prediction_3": {"agrees": (NONE,), "contradicts": (SOME,), "undecided": (FEW,)},
    "prediction_4": {
        "agrees": (BANKS,),
        "contradicts": (dict.fromkeys(BANKS, NONE),),
        "undecided": (dict.fromkeys(BANKS, FEW),),
    },
    "takeaway": {
        "agrees": ([NONE, NONE], [ALL, SOME]),
        "contradicts": ([SOME, NONE], [ALL, ALL]),
        "undecided": ([FEW, FEW], [FEW, FEW]),
    },
    "left_open": {"agrees": (50, NONE, ALL), "contradicts": (50, SOME, ALL), "undecided": (50, NONE, NONE)},
    "overlap_for_alt": {
        "agrees": ([("3.14", 50, 10_000, 0.2, 0.67)],),
        "contradicts": ([("3.14", 50, 10_000, 0.02, 0.07)],),
        "undecided": ([],),
    },
}
