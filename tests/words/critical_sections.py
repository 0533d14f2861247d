"""Arguments for every sentence that a run of the chapter "Critical sections" chooses: see tests/test_words.py."""

import math

import pandas as pd

from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.critical_sections.experiment import BOTH, IN, KNOWN_NAME, NEW_NAME, ONE, OUT, OUT_OWN, OWN


def made(value: float, low: float, high: float) -> Interval:
    return Interval(value, low, high)


def check(how: str, found: str, passed: bool) -> Check:
    return Check("two at once", f"two {how}", found, passed, 0.1)


NONE = Interval(1.5, math.nan, math.nan)
MORE, LESS, SAME = made(1.93, 1.85, 2.01), made(0.62, 0.58, 0.66), made(1.02, 0.88, 1.18)
OPEN = made(1.02, 0.72, 1.43)
PASSED = [
    check("processes", "1.95 [1.80, 2.05] times the work of one, in 10 runs on 2 cores", True),
    check("threads", "1.93 [1.70, 2.08] times the work of one, in 10 runs on 2 cores", True),
]
FAILED = [check("processes", "1.02 [0.90, 1.15] times the work of one, in 10 runs on 2 cores", False), PASSED[1]]
SHORT = [check("processes", "1.95 times the work of one, on one core", False), PASSED[1]]
TWO = made(1.93, 1.80, 2.05)


def rows(shared: str = ONE, **found: Interval) -> pd.DataFrame:
    """Rows as `results.scaling` gives them, by name."""
    names = {name.replace("_", " "): one for name, one in found.items()}
    return pd.DataFrame(
        [{"name": name, "threads": 2, "shared": shared, **vars(one), "n": 5} for name, one in names.items()],
        columns=["name", "threads", "shared", "value", "low", "high", "n"],
    )


def operations(*found: Interval) -> pd.DataFrame:
    return pd.DataFrame([{"operation": f"operation {'ABC'[n]}", **vars(one)} for n, one in enumerate(found)])


def builds(gil: Interval, free: Interval) -> pd.DataFrame:
    return pd.concat([rows(dict=gil).assign(interpreter=GIL), rows(dict=free).assign(interpreter=FREE_THREADED)])


def texts(new: Interval) -> pd.DataFrame:
    return rows(**{"UTF-8 of one text": MORE, NEW_NAME: new, KNOWN_NAME: MORE})


LOCK, DEARER, CHEAPER = made(2.05, 2.03, 2.07), made(17.0, 16.8, 17.3), made(0.0587, 0.0577, 0.0597)
NS, MORE_NS, LIKE_NS = made(5.5, 5.4, 5.6), made(16.0, 14.9, 17.1), made(5.55, 5.45, 5.7)
CALLS = "calls across the boundary"
RANGE = (1.05, 1.10)

CASES = {
    "calibration": {"agrees": (PASSED,), "contradicts": (FAILED,), "undecided": (SHORT,)},
    "calibration_note": {"agrees": (PASSED,), "contradicts": (FAILED,), "undecided": ([],)},
    "in_company": {
        "agrees": (rows(OWN, dict=MORE, list=MORE), OWN, PASSED),
        "contradicts": (rows(OWN, dict=LESS, list=LESS), OWN, PASSED),
        "undecided": (rows(OWN, dict=OPEN, list=OPEN), OWN, PASSED),
        "no more": (rows(OWN, dict=SAME, list=SAME), OWN, PASSED),
        "mixed": (rows(OWN, dict=MORE, list=LESS, set=SAME), OWN, PASSED),
        "many": (rows(a=LESS, b=LESS, c=LESS, d=LESS), ONE, PASSED),
        "nothing": (rows(), ONE, PASSED),
        "withheld": (rows(OWN, dict=MORE), OWN, FAILED),
    },
    "one_against_own": {
        "agrees": ("an atomic increment", NS, MORE_NS, PASSED),
        "contradicts": ("an atomic increment", MORE_NS, NS, PASSED),
        "undecided": ("an atomic increment", NS, LIKE_NS, PASSED),
        "missing": ("an atomic increment", None, NS, PASSED),
        "withheld": ("an atomic increment", NS, MORE_NS, FAILED),
    },
    "against": {
        "agrees": ("a critical section", "a PyMutex", made(1.12, 1.11, 1.13)),
        "contradicts": ("a critical section", "a PyMutex", made(0.577, 0.571, 0.583)),
        "undecided": ("a critical section", "a PyMutex", made(1.003, 0.992, 1.014)),
        "missing": ("a critical section", "a PyMutex", None),
        "no interval": ("a critical section", "a PyMutex", NONE),
    },
    "against_documentation": {
        "agrees": (CALLS, "3.14t / 3.14", made(1.07, 1.06, 1.08), RANGE),
        "contradicts": (CALLS, "3.14t / 3.14", made(1.25, 1.24, 1.27), RANGE),
        "below": (CALLS, "3.14t / 3.14", made(0.98, 0.97, 0.99), RANGE),
        "undecided": (CALLS, "3.14t / 3.14", made(1.099, 1.078, 1.121), RANGE),
        "one number": (CALLS, "3.13t / 3.13", made(1.3, 1.2, 1.35), (1.4, 1.4)),
        "no number": (CALLS, "3.15t / 3.15", made(1.07, 1.06, 1.08), None),
        "missing": (CALLS, "3.14t / 3.14", None, RANGE),
    },
    "texts": {
        "agrees": (texts(LESS), PASSED),
        "contradicts": (texts(MORE), PASSED),
        "undecided": (texts(OPEN), PASSED),
        "nothing": (rows(), PASSED),
        "withheld": (texts(LESS), FAILED),
    },
    "new_name": {
        "agrees": (LESS, MORE, PASSED),
        "contradicts": (MORE, LESS, PASSED),
        "undecided": (SAME, SAME, PASSED),
        "missing": (LESS, None, PASSED),
        "withheld": (LESS, MORE, FAILED),
    },
    "with_the_gil": {
        "agrees": (rows(dict=SAME, list=LESS), PASSED),
        "contradicts": (rows(dict=MORE), PASSED),
        "undecided": (rows(dict=NONE), PASSED),
        # An interval that reaches a gain of thirty times is no "no gain above 2996 %".
        "wide": (rows(dict=SAME, list=made(1.8, 0.1, 31.0)), PASSED),
        "withheld": (rows(dict=MORE), FAILED),
    },
    "more_than_one": {
        "agrees": (MORE, PASSED),
        "contradicts": (LESS, PASSED),
        "undecided": (OPEN, PASSED),
        "no more": (SAME, PASSED),
        "withheld": (MORE, FAILED),
        "missing": (None, PASSED),
        "no interval": (NONE, PASSED),
    },
    "once_and_often": {
        "agrees": (LOCK, DEARER, DEARER),
        "contradicts": (CHEAPER, CHEAPER, CHEAPER),
        "undecided": (SAME, SAME, SAME),
        "missing": (None, None, None),
        "half": (LOCK, NONE, None),
    },
    "bindings": {
        "agrees": (rows(Cython=MORE, PyO3=MORE), TWO, PASSED),
        "contradicts": (rows(Cython=LESS, PyO3=LESS), TWO, PASSED),
        "undecided": (rows(Cython=OPEN, PyO3=OPEN), TWO, PASSED),
        # What gains nothing that can be seen gains less than two threads of the calibration, too.
        "no gain": (rows(ctypes_CDLL=SAME, Cython=MORE), TWO, PASSED),
        "below": (rows(Cython=MORE, pybind11=made(1.4, 1.3, 1.5)), TWO, PASSED),
        "withheld": (rows(Cython=MORE), TWO, FAILED),
    },
    "ctypes_apart": {
        "agrees": ({BOTH: SAME, OUT: LESS, OUT_OWN: MORE, IN: LESS}, PASSED),
        "contradicts": ({BOTH: MORE, OUT: MORE, OUT_OWN: MORE, IN: MORE}, PASSED),
        "undecided": ({BOTH: OPEN, OUT: SAME, OUT_OWN: SAME, IN: OPEN}, PASSED),
        "slower": ({BOTH: LESS}, PASSED),
        "missing": ({}, PASSED),
        "withheld": ({BOTH: SAME}, FAILED),
    },
    "two_classes": {
        "agrees": ({"a loop on 3.14t": [(29.3, 13), (55.6, 4)]},),
        "contradicts": ({},),
        "undecided": (None,),
    },
    "locks_in_call": {
        "agrees": ({"locks": 9.0, "atomics": 20.0, "all": 500.0}, {}),
        "contradicts": ({"locks": 0.0, "atomics": 23.0, "all": 500.0}, {"dict, write": {"locks": 15.0}}),
        "undecided": (None, {}),
        "nowhere": ({"locks": 0.0, "atomics": 23.0, "all": 500.0}, {"dict, write": {"locks": 0.0}}),
    },
    "hidden_by_the_mean": {
        "agrees": ({"PyO3": made(1.03, 1.01, 1.04), "pybind11": made(1.26, 1.2, 1.3), "cffi ABI": LESS}, SAME),
        "contradicts": ({"pybind11": MORE}, MORE),
        "undecided": ({"pybind11": SAME}, SAME),
        "missing": ({}, None),
    },
    "nearer": {
        "agrees": ("3.14t / 3.14", "in loops", 1.12, made(1.1, 1.05, 1.15), made(1.4, 1.3, 1.5)),
        "contradicts": ("3.14t / 3.14", "in loops", 1.12, made(0.8, 0.75, 0.85), made(1.1, 1.05, 1.15)),
        "undecided": ("3.14t / 3.14", "in loops", 1.12, made(1.1, 1.0, 1.2), made(1.2, 1.1, 1.3)),
        "missing": ("3.14t / 3.14", "in loops", 1.12, None, NONE),
    },
    "kinds": {
        "agrees": ({"iterating": MORE, "the rest": made(1.0, 0.98, 1.02)},),
        "contradicts": ({"iterating": LESS},),
        "undecided": ({"iterating": SAME},),
        "missing": ({"iterating": None},),
    },
    "prediction_1": {
        "agrees": (made(1.08, 1.07, 1.09),),
        "contradicts": (made(0.94, 0.93, 0.95),),
        "half": (made(1.5, 1.4, 1.6),),
        "undecided": (made(1.3, 1.2, 1.4),),
        "missing": (None,),
    },
    "prediction_2": {
        "agrees": ([("atomic increment", NS), ("PyMutex", MORE_NS)], [True]),
        "contradicts": ([("PyMutex", NS), ("atomic increment", MORE_NS)], [True]),
        "undecided": ([("atomic increment", NS), ("PyMutex", LIKE_NS)], [False]),
        "missing": ([], []),
    },
    "prediction_5": {
        "agrees": (DEARER,),
        "contradicts": (CHEAPER,),
        "undecided": (SAME,),
        "missing": (None,),
    },
    "operations_for_alt": {
        "agrees": (operations(made(1.2, 1.1, 1.3), made(1.4, 1.3, 1.5)),),
        "contradicts": (operations(made(0.8, 0.7, 0.9), made(0.7, 0.6, 0.8)),),
        "undecided": (operations(SAME, SAME),),
    },
    "objects_for_alt": {
        "agrees": (builds(SAME, MORE),),
        "contradicts": (builds(MORE, LESS),),
        "undecided": (builds(SAME, SAME),),
    },
}
