"""For each sentence of the chapter "The boundary": data that agree, data that contradict, and data that cannot tell."""

import pandas as pd

from ffilab.judge.estimates import Interval
from notebooks.boundary import results


def made(value: float, low: float, high: float) -> Interval:
    return Interval(value, low, high)


LONGER, SHORTER, EITHER = made(1.5, 1.4, 1.6), made(0.7, 0.6, 0.8), made(1.0, 0.9, 1.12)
MORE, LESS, NEITHER = made(12.0, 10.0, 14.0), made(-3.0, -4.0, -2.0), made(0.5, -1.0, 2.0)
FEW = made(1.2, float("nan"), float("nan"))
BEYOND, HALF_BEYOND = made(*[float("inf")] * 3), made(800.0, 700.0, float("inf"))
THRESHOLD = made(500.0, 400.0, 600.0)


def each(one: Interval) -> dict[str, Interval]:
    return {"Cython": one, "C API, limited": one}


def ordered(*apart: str) -> pd.DataFrame:
    return pd.DataFrame({"binding": ["Cython", "PyO3", "pybind11"], "told apart": ["", *apart]})


def forms(low: float, high: float) -> pd.DataFrame:
    row = {"interpreter": "3.14", "form": "nanobind, NOMINSIZE", "signature": "no-op"}
    return pd.DataFrame([row | {"value": (low + high) / 2, "low": low, "high": high}])


def called(*winners: str) -> pd.DataFrame:
    rows = [
        {
            "pair": f"{one} vs cffi ABI",
            "process": n,
            "p": 6e-8,
            "called": one,
            "right": "cffi ABI",
            "printed": "cffi ABI",
        }
        for n, one in enumerate(winners or ["x"])
    ]
    return pd.DataFrame(rows)


def near(which: str) -> pd.DataFrame:
    return pd.DataFrame([{"binding": "pybind11", "nearer": which}])


def left(one: Interval) -> dict[str, tuple[str, Interval]]:
    return {"by file": ("conversion, by name", one), "by step": ("_ctypes_callproc", one)}


COSTS = {
    "excess": made(225.0, 217.0, 233.0),
    "argument": made(134.0, 128.0, 140.0),
    "hand-over, int": made(39.0, 36.0, 42.0),
}
CALL = "m.add_one(2**31)"
FITS = {"C API": "OverflowError", "C API, limited": "TypeError", "Cython": "OverflowError"}


def rules(**answers: str) -> pd.DataFrame:
    return pd.DataFrame([{"call": CALL, **FITS, **answers}])


NOT_ASKED = pd.DataFrame([{"call": CALL, **dict.fromkeys(FITS, float("nan"))}])
WRONG = rules(Cython="-2147483648", **{"C API": "-2147483648"})


def both(locked: tuple[int, int], bare: tuple[int, int]) -> pd.DataFrame:
    rows = [("add", locked), ("add_unlocked", bare)]
    return pd.DataFrame(
        [
            {"binding": binding, "method": method, "n": 3, "lost": lost, "refused": refused}
            for binding in ("Cython", "PyO3")
            for method, (lost, refused) in rows
        ]
    )


PLACES = {"converting": 0.4, "the hand-over of the GIL": 0.1, "libffi": 0.15}
OTHERWISE = {"converting": 0.1, "the hand-over of the GIL": 0.4, "libffi": 0.15}
ALIKE = dict.fromkeys(PLACES, 0.2)

CASES = {
    "talk_pairs": {
        "agrees": ((195, 195), (1e-65, 1e-58), 1.0),
        "contradicts": ((153, 184), (1e-61, 0.4), 0.02),
        "undecided": ((153, 184), (1e-61, 0.004), 0.3),
    },
    "order": {
        "agrees": (ordered("yes", "yes"),),
        "contradicts": (ordered("yes", "yes").iloc[::-1].assign(**{"told apart": ["", "yes", "yes"]}),),
        "undecided": (ordered("yes", "no (smallest to be found: 2.0%)"),),
        "nothing": (ordered("yes", "yes").iloc[:0],),
    },
    "misranked": {
        "agrees": (called("ctypes CDLL"), 10),
        "contradicts": (called().iloc[:0], 10),
        "undecided": (called().iloc[:0], 0),
        "two": (called("ctypes CDLL", "PyO3"), 10),
    },
    "two_ways": {
        "agrees": ({"→ int": made(1.03, 1.01, 1.05), "by the talk's program": SHORTER},),
        "contradicts": ({"→ int": LONGER, "int → int": LONGER},),
        "undecided": ({"→ int": EITHER},),
        "nothing": ({"→ int": None},),
    },
    "clear": {
        "agrees": (each(LONGER),),
        "contradicts": (each(SHORTER),),
        "undecided": (each(EITHER),),
        "small": ({"ctypes CDLL / cffi ABI": made(1.03, 1.01, 1.05)},),
        "nothing": ({},),
    },
    "nearer": {
        "agrees": (near("off"), "3.14t"),
        "contradicts": (near("on"), "3.14t"),
        "undecided": (near("neither"), "3.14t"),
        "nothing": (near("neither").iloc[:0], "3.14t"),
    },
    "same_work": {
        "agrees": (made(3.4, 3.3, 3.5), made(1.15, 1.1, 1.2)),
        "contradicts": (SHORTER, SHORTER),
        "undecided": (made(3.4, 3.3, 3.5), EITHER),
        "nothing": (None, None),
    },
    "one_argument": {"agrees": (LESS,), "contradicts": (MORE,), "undecided": (NEITHER,), "nothing": (None,)},
    "errors": {
        "agrees": ({"nanobind": made(2300.0, 2200.0, 2400.0), "PyO3": made(20.0, 10.0, 30.0)},),
        "contradicts": ({"nanobind": made(20.0, 10.0, 30.0), "PyO3": made(2300.0, 2200.0, 2400.0)},),
        "undecided": ({"nanobind": made(30.0, 10.0, 50.0), "PyO3": made(20.0, 10.0, 30.0)},),
        "nothing": ({},),
    },
    "prediction_1": {
        "agrees": ("C API", "ctypes CDLL", made(18.0, 16.0, 20.0)),
        "contradicts": ("ctypes CDLL", "C API", made(18.0, 16.0, 20.0)),
        "undecided": ("C API", "Cython", EITHER),
        "nothing": ("C API", "Cython", None),
    },
    "prediction_2": {
        "agrees": ({"list of 1,000 ints": 3, "str in, ASCII": 0},),
        "contradicts": ({"list of 1,000 ints": 0, "str in, ASCII": 3},),
        "undecided": ({"list of 1,000 ints": 0, "str in, ASCII": 0},),
        "two": ({"list of 1,000 ints": 3, "str in, ASCII": 3},),
        "nothing": ({},),
    },
    "over_floor": {
        "agrees": ("no-op", each(MORE)),
        "contradicts": ("no-op", each(LESS)),
        "undecided": ("no-op", each(NEITHER)),
        "mixed": ("no-op", {"Cython": LESS, "nanobind": MORE, "PyO3": FEW}),
        "nothing": ("no-op", {}),
    },
    "buffers": {
        "agrees": (each(made(1.0, 0.99, 1.01)),),
        "contradicts": (each(made(900.0, 800.0, 1000.0)),),
        "undecided": (each(made(1.2, 0.9, 1.6)),),
        "nothing": ({},),
    },
    "another_form": {
        "agrees": (forms(0.8, 0.9),),
        "contradicts": (forms(1.1, 1.2),),
        "undecided": (forms(0.9, 1.1),),
        "nothing": (forms(0.9, 1.1).iloc[:0],),
    },
    "takeaway_order": {
        "agrees": ({"callback": 3, "no-op": 0},),
        "contradicts": ({"callback": 0, "no-op": 0},),
        "undecided": ({},),
    },
    "tree_counts": {
        "agrees": (3549.0, 476.0),
        "contradicts": (476.0, 3549.0),
        "undecided": (500.0, 510.0),
        "nothing": (None, 1.0),
    },
    "prediction_3": {
        "agrees": (PLACES, results.CLOSE),
        "contradicts": (OTHERWISE, results.CLOSE),
        "undecided": (ALIKE, results.CLOSE),
        "nothing": (None, results.CLOSE),
    },
    "slow_because": {
        "agrees": (LONGER, COSTS, LONGER),
        "contradicts": (SHORTER, COSTS, SHORTER),
        "undecided": (EITHER, COSTS, EITHER),
        "nothing": (None, {}, None),
    },
    "loop_names": {"agrees": (0.2, 0.3), "contradicts": (0.01, 0.0), "undecided": (None, None)},
    "largest_left": {
        "agrees": (left(made(0.7, 0.65, 0.75)),),
        "contradicts": (left(made(0.3, 0.25, 0.35)),),
        "undecided": (left(made(0.5, 0.4, 0.6)),),
        "by grouping": (left(made(0.42, 0.4, 0.44)) | {"by function": ("_ctypes_callproc", made(0.55, 0.53, 0.57))},),
        "nothing": ("perf may not sample here",),
    },
    "without_gil": {
        "agrees": ("no-op", each(SHORTER)),
        "contradicts": ("no-op", each(LONGER)),
        "undecided": ("no-op", each(EITHER)),
        "nothing": ("no-op", {}),
    },
    "prediction_4": {
        "agrees": ({"cffi API": SHORTER, "C API, limited": LONGER, "Cython": LONGER},),
        "contradicts": ({"cffi API": LONGER, "C API, limited": SHORTER, "Cython": SHORTER},),
        "undecided": (each(EITHER),),
        "none": (each(LONGER),),
    },
    "texts": {
        "agrees": ({"str out": LONGER}, {"str out": made(1.2, 1.1, 1.3)}),
        "contradicts": ({"str out": EITHER}, {"str out": SHORTER}),
        "undecided": ({"str out": LONGER}, {"str out": EITHER}),
        "mixed": ({"str in, ASCII": LONGER, "str out": LONGER}, {"str in, ASCII": LONGER, "str out": SHORTER}),
        "nothing": ({}, {}),
    },
    "through_rust": {
        "agrees": ({"pybind11": LONGER, "nanobind": LONGER, "Cython": LONGER}, []),
        "contradicts": ({"pybind11": SHORTER, "nanobind": SHORTER, "Cython": SHORTER}, []),
        "undecided": ({"pybind11": EITHER}, ["nanobind", "Cython"]),
    },
    "prediction_5": {"agrees": (LONGER,), "contradicts": (SHORTER,), "undecided": (EITHER,), "nothing": (None,)},
    "answers": {
        "agrees": ("2³¹ where C has an int", WRONG, CALL),
        "contradicts": ("2³¹ where C has an int", rules(), CALL),
        "undecided": ("2³¹ where C has an int", NOT_ASKED, CALL),
        "died": ("2³¹ where C has an int", rules(Cython="killed by SIGSEGV"), CALL),
        "nothing": ("An empty list where C has a pointer", rules(Cython="None"), CALL),
        "no row": ("2³¹ where C has an int", rules(), "m.other()"),
    },
    "prediction_6": {"agrees": (WRONG, CALL), "contradicts": (rules(), CALL), "undecided": (NOT_ASKED, CALL)},
    "kept": {
        "agrees": (both((0, 0), (2, 0)),),
        "contradicts": (both((1, 0), (0, 0)),),
        "undecided": (both((0, 0), (0, 0)).iloc[:0],),
        "refused": (both((0, 0), (0, 3)),),
    },
    "elsewhere": {
        "agrees": ({"C API": "works", "Cython": "ImportError: no", "PyO3": "killed by SIGSEGV"},),
        "contradicts": ({"C API": "ImportError: no", "Cython": "works"},),
        "undecided": ({},),
    },
    "in_line": {
        "agrees": (made(6.0, 5.0, 7.0),),
        "contradicts": (SHORTER,),
        "undecided": (EITHER,),
        "nothing": (None,),
    },
    "lazy": {"agrees": ("import", SHORTER), "contradicts": ("import", LONGER), "undecided": ("import", EITHER)},
    "fixed_price": {
        "agrees": ({"Cython": [LESS, NEITHER]},),
        "contradicts": ({"Cython": [MORE, NEITHER]},),
        "undecided": ({"Cython": [FEW]},),
        "none": ({"Cython": [NEITHER]},),
    },
    "bound_fragment": {
        "agrees": (THRESHOLD, 1e4),
        "contradicts": (BEYOND, 1e4),
        "undecided": (None, 1e4),
        "half": (HALF_BEYOND, 1e4),
    },
    "threshold": {
        "agrees": ("PyO3", THRESHOLD, 1e4, 0.05),
        "contradicts": ("PyO3", BEYOND, 1e4, 0.05),
        "undecided": ("PyO3", HALF_BEYOND, 1e4, 0.05),
        "nothing": ("PyO3", None, 1e4, 0.05),
    },
    "without_compiler": {
        "agrees": (["C API", "Cython"], WRONG, {CALL: "2³¹"}),
        "contradicts": (["C API", "Cython"], rules(), {CALL: "2³¹"}),
        "undecided": (["C API"], rules(), {"m.other()": "None"}),
    },
    "cheapest": {
        "agrees": ("C++ method", ["Cython", "C API, limited"], True),
        "contradicts": ("C++ method", ["C API, limited", "Cython"], True),
        "undecided": ("C++ method", ["Cython", "PyO3"], False),
        "nothing": ("C++ method", ["Cython"], None),
    },
}
