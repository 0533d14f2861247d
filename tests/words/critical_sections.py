"""Arguments for every sentence that a run of the chapter "Critical sections" chooses: see tests/test_words.py."""

import math

import pandas as pd

from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.critical_sections.experiment import KNOWN_NAME, NEW_NAME, ONE, OWN


def made(value: float, low: float, high: float) -> Interval:
    return Interval(value, low, high)


def check(how: str, found: str, passed: bool) -> Check:
    return Check("two at once", f"two {how}", found, passed, 0.1)


NONE = Interval(1.5, math.nan, math.nan)
MORE, LESS, SAME = made(1.93, 1.85, 2.01), made(0.62, 0.58, 0.66), made(1.02, 0.88, 1.18)
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
THREE = {"agrees": (MORE, PASSED), "contradicts": (LESS, PASSED), "undecided": (SAME, PASSED)}
THREE |= {"withheld": (MORE, FAILED), "missing": (None, PASSED), "no interval": (NONE, PASSED)}
CALLS = "calls across the boundary"
RANGE = (1.05, 1.10)

CASES = {
    "calibration": {"agrees": (PASSED,), "contradicts": (FAILED,), "undecided": (SHORT,)},
    "calibration_note": {"agrees": (PASSED,), "contradicts": (FAILED,), "undecided": ([],)},
    "ceiling": {
        "agrees": (TWO, rows(PyMutex=MORE), PASSED),
        "contradicts": (TWO, rows(PyMutex=made(2.4, 2.2, 2.6), dict=MORE), PASSED),
        "undecided": (NONE, rows(PyMutex=MORE), PASSED),
        "withheld": (TWO, rows(PyMutex=MORE), FAILED),
    },
    "in_company": {
        "agrees": (rows(OWN, dict=MORE, list=MORE), OWN, PASSED),
        "contradicts": (rows(OWN, dict=LESS, list=LESS), OWN, PASSED),
        "undecided": (rows(OWN, dict=SAME, list=SAME), OWN, PASSED),
        "mixed": (rows(OWN, dict=MORE, list=LESS, set=SAME), OWN, PASSED),
        "many": (rows(a=LESS, b=LESS, c=LESS, d=LESS), ONE, PASSED),
        "nothing": (rows(), ONE, PASSED),
        "withheld": (rows(OWN, dict=MORE), OWN, FAILED),
    },
    "with_the_gil": {
        "agrees": (rows(dict=SAME, list=LESS), PASSED),
        "contradicts": (rows(dict=MORE), PASSED),
        "undecided": (rows(dict=NONE), PASSED),
        "withheld": (rows(dict=MORE), FAILED),
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
    "once_and_often": {
        "agrees": (LOCK, CHEAPER),
        "contradicts": (CHEAPER, DEARER),
        "undecided": (SAME, SAME),
        "no turn": (LOCK, DEARER),
        "missing": (None, None),
        "half": (LOCK, NONE),
    },
    "started_threads": {
        "agrees": (made(3.33, 3.26, 3.40), made(12.7, 12.5, 12.8)),
        "contradicts": (made(12.7, 12.5, 12.8), made(3.33, 3.26, 3.40)),
        "undecided": (NS, LIKE_NS),
        "missing": (None, NS),
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
    "how_built": {
        "agrees": ("'--enable-optimizations' '--with-lto'",),
        "contradicts": ("'--disable-gil'",),
        "undecided": (None,),
    },
    "texts": {
        "agrees": (texts(LESS), PASSED),
        "contradicts": (texts(MORE), PASSED),
        "undecided": (texts(SAME), PASSED),
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
    "bindings": {
        "agrees": (rows(Cython=MORE, PyO3=MORE), TWO, PASSED),
        "contradicts": (rows(Cython=LESS, PyO3=LESS), TWO, PASSED),
        "undecided": (rows(Cython=SAME, PyO3=SAME), TWO, PASSED),
        "below": (rows(Cython=MORE, pybind11=made(1.4, 1.3, 1.5)), TWO, PASSED),
        "withheld": (rows(Cython=MORE), TWO, FAILED),
    },
    "api_against_cython": {
        "agrees": (made(1.28, 1.07, 1.33), MORE, PASSED),
        "contradicts": (MORE, made(1.28, 1.07, 1.33), PASSED),
        "undecided": (MORE, MORE, PASSED),
        "missing": (None, MORE, PASSED),
        "withheld": (LESS, MORE, FAILED),
    },
    "own_functions": {
        "agrees": ({"C API": MORE}, PASSED),
        "contradicts": ({"C API": LESS}, PASSED),
        "undecided": ({"C API": SAME}, PASSED),
        "mixed": ({"C API": SAME, "cffi ABI": LESS, "ctypes CDLL": MORE}, PASSED),
        "missing": ({"C API": None}, PASSED),
        "withheld": ({"C API": MORE}, FAILED),
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
    "prediction_3": THREE,
    "prediction_4": {
        "agrees": (CHEAPER,),
        "contradicts": (DEARER,),
        "undecided": (SAME,),
        "missing": (None,),
    },
    "prediction_5": {
        "agrees": (DEARER,),
        "contradicts": (CHEAPER,),
        "undecided": (SAME,),
        "missing": (None,),
    },
    "prediction_6": THREE,
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
