"""Arguments for every sentence that a run of the chapter "Measuring on a noisy machine" chooses: see tests/test_words.py."""

import math

from ffilab.judge.estimates import Interval, Share


def made(value: float, low: float, high: float) -> Interval:
    return Interval(value, low, high)


def leaning(measured: int, loaded: int) -> dict[str, Share]:
    return {"measured": Share(measured, 40), "loaded": Share(loaded, 40)}


def steps(*alarms: int) -> dict[int, Share]:
    """Alarms of each step, of a hundred benchmarks; of the third, of forty."""
    return {step: Share(events, 40 if step == 3 else 100) for step, events in enumerate(alarms, 1)}


UNKNOWN = Interval(1.1, math.nan, math.nan)
MORE, LESS, SAME = made(1.32, 1.21, 1.45), made(0.81, 0.74, 0.88), made(1.02, 0.9, 1.15)
MANY, FEW, CHANCE = made(0.13, 0.09, 0.18), made(0.01, 0.001, 0.03), made(0.06, 0.03, 0.1)
MOST, RARE, HALF = made(0.95, 0.9, 0.98), made(0.03, 0.01, 0.07), made(0.5, 0.35, 0.65)
FALLING, RISING, EQUAL = steps(80, 40, 1), steps(3, 40, 38), steps(5, 4, 1)

CASES = {
    "talks_table": {
        "agrees": (6, 6, 1e-58),
        "contradicts": (0, 6, 0.4),
        "undecided": (4, 6, 0.1),
        "p of 0": (6, 6, 0.0),
    },
    "winners": {
        "agrees": ({"A vs B": {"A": 60}, "B vs C": {"C": 60}},),
        "contradicts": ({"A vs B": {"A": 48, "B": 12}, "B vs C": {"C": 60}},),
        "undecided": ({"A vs B": {"A": 30, "B": 29, "neither": 1}, "B vs C": {"C": 31, "B": 29}},),
        "neither is no one": ({"A vs B": {"A": 59, "neither": 1}},),
    },
    "first_table": {
        "agrees": ({"ctypes CDLL": 4, "cffi ABI": 55, "neither": 1},),
        "contradicts": ({"ctypes CDLL": 56, "cffi ABI": 4},),
        "undecided": ({"ctypes CDLL": 31, "cffi ABI": 29},),
        "neither": ({"neither": 60},),
    },
    "beyond": {
        "agrees": ({"A vs B": Share(56, 60), "B vs C": Share(14, 60)}, 0.3),
        "contradicts": ({"A vs B": Share(0, 60), "B vs C": Share(0, 60)}, 0.3),
        "undecided": ({"A vs B": Share(56, 60), "B vs C": Share(1, 60)}, 0.3),
    },
    "separated": {"agrees": (MOST, 60), "contradicts": (RARE, 60), "undecided": (HALF, 60)},
    "alarms": {
        "agrees": (MANY, 300, {0.95: 0.11, 0.98: 0.31}, Share(23, 39)),
        "contradicts": (FEW, 300, {0.95: 0.01, 0.98: 0.02}, None),
        "undecided": (CHANCE, 300, {0.95: 0.05, 0.98: 0.1}, Share(9, 18)),
    },
    "position": {
        "agrees": (leaning(35, 20),),
        "contradicts": (leaning(4, 20),),
        "undecided": (leaning(22, 19),),
        "the copy": (leaning(20, 36),),
        "both": (leaning(36, 36),),
        "none": ({},),
    },
    "reader_of_tables": {
        "agrees": (MOST, MANY),
        "contradicts": (MOST, FEW),
        "undecided": (MOST, made(0.06, 0.03, 0.12)),
        "separates nothing": (RARE, FEW),
    },
    "step_alarms": {
        "agrees": (FALLING, 2),
        "contradicts": (RISING, 2),
        "undecided": (EQUAL, 2),
        "first": (FALLING, 1),
        "first, none": (steps(0), 1),
        "first, few": (steps(5), 1),
        "third": (FALLING, 3),
        "missing": ({}, 3),
    },
    "steps_together": {
        "agrees": (FALLING,),
        "contradicts": (RISING,),
        "undecided": (EQUAL,),
        "fails its control": (steps(80, 60, 20),),
        "nothing left": (steps(40, 0, 0),),
        "missing": ({},),
    },
    "spread": {"agrees": (MORE,), "contradicts": (LESS,), "undecided": (SAME,), "unknown": (UNKNOWN,)},
    "pseudo_replication": {
        "agrees": ({"blocks": 0.002, "restarts": 0.006}, made(0.0023, 0.002, 0.0027)),
        "contradicts": ({"blocks": 0.004, "restarts": 0.002}, made(0.0046, 0.004, 0.005)),
        "undecided": ({"blocks": 0.004, "restarts": 0.0048}, made(0.0046, 0.004, 0.005)),
        "unknown": ({"blocks": 0.004, "restarts": math.nan}, UNKNOWN),
    },
    "company": {
        "agrees": (0.3, MORE, 19),
        "contradicts": (0.3, LESS, 19),
        "undecided": (0.3, SAME, 19),
        "unknown": (0.01, UNKNOWN, 2),
    },
    "layouts": {
        "agrees": (Share(9, 18), MORE),
        "contradicts": (Share(0, 180), MORE),
        "none of few": (Share(0, 18), MORE),
        "undecided": (Share(1, 18), MORE),
        "too few": (None, None, True),
        "no layouts": (None, None, False),
    },
    "levels": {
        "agrees": (made(0.03, 0.02, 0.04), made(0.01, 0.008, 0.012), made(0.004, 0.003, 0.005)),
        "contradicts": (made(0.01, 0.0, 0.012), made(0.03, 0.02, 0.04), None),
        "undecided": (made(0.02, 0.0, 0.04), made(0.02, 0.015, 0.03), made(0.02, 0.015, 0.03)),
        "fails its zero": (made(0.005, 0.0, 0.011), made(0.016, 0.014, 0.019), made(0.029, 0.025, 0.033)),
        "none": (None, None, None),
    },
    "collector": {
        "agrees": ({"a call": SAME, "a list of ten lists": MORE},),
        "contradicts": ({"a call": LESS, "a list of ten lists": LESS},),
        "undecided": ({"a call": SAME, "a list of ten lists": SAME},),
        "unknown": ({"a call": UNKNOWN},),
    },
    "copies": {"agrees": (0, 3), "contradicts": (1, 3), "undecided": (None, 3), "two": (2, 3)},
    "loaders": {
        "agrees": (MORE, 0.02, 0),
        "contradicts": (LESS, 0.02, 0),
        "undecided": (SAME, 0.15, 0),
        "withheld": (MORE, 0.02, 1),
        "unknown": (UNKNOWN, 0.02, 0),
    },
    "prediction_1": {"agrees": (MANY,), "contradicts": (FEW,), "undecided": (CHANCE,)},
    "prediction_2": {
        "agrees": (steps(60, 58, 1),),
        "contradicts": (steps(90, 20, 10),),
        # The second step is at chance: there is nothing that the third could remove.
        "nothing left": (steps(40, 0, 0),),
        "undecided": (EQUAL,),
        "unknown": ({},),
    },
    "prediction_3": {"agrees": (MORE,), "contradicts": (LESS,), "undecided": (SAME,), "unknown": (UNKNOWN,)},
    "prediction_4": {"agrees": (MORE,), "contradicts": (LESS,), "undecided": (SAME,), "unknown": (UNKNOWN,)},
    "prediction_5": {
        "agrees": (1.31, SAME, 0),
        "contradicts": (1.05, MORE, 0),
        "undecided": (1.03, SAME, 0),
        "not counted": (None, SAME, 0),
        "withheld": (1.05, MORE, 1),
    },
}
