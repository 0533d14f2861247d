"""Every sentence of the chapter "GIL Balm" that a run chooses, with data that agree, contradict, and leave it open."""

import math

from ffilab.judge.estimates import Interval, Share

GIL, FREE = "with the GIL", "without the GIL"


def made(value, low=None, high=None):
    """An interval; around the value if its bounds are not given."""
    reach = abs(value) * 0.05
    return Interval(value, value - reach if low is None else low, value + reach if high is None else high)


UNKNOWN = Interval(1.2, math.nan, math.nan)
ABOVE, BELOW, AROUND = made(4.3), made(0.58), made(1.01, 0.9, 1.12)
CLOSE, NEARLY = made(1.01, 0.99, 1.03), made(1.04, 0.98, 1.12)
NO_FAULTS, FAULTS, SOME = made(0.1, 0.0, 0.3), made(226.0, 220.0, 232.0), made(70.0, 5.0, 140.0)
PAIR = ("CPython's own", "strings in a block")


def ways(gain, other=ABOVE):
    return {"pooled": made(2.2), "block": other, "pages and tuple": gain}


def parts(one, two):
    return {"Freeing strings one at a time": one, "Giving each head lines of its own": two}


def comparison():
    return {
        "agrees": (GIL, *PAIR, ABOVE),
        "contradicts": (GIL, *PAIR, BELOW),
        "undecided": (GIL, *PAIR, AROUND),
        "unknown": (GIL, *PAIR, UNKNOWN),
        "not measured": (GIL, *PAIR, None),
    }


CASES = {
    "speed": {**comparison(), "below what the A/A test resolves": (GIL, *PAIR, made(1.057, 1.007, 1.108), 0.0694)},
    "duration": comparison(),
    "left_out": {
        "agrees": (True, ""),
        "contradicts": (False, "3.14/one decode: +39% of its batches, beside the others"),
        "undecided": (None, ""),
    },
    "holds_on": {
        "agrees": ({"3.14": ways(ABOVE), "3.14t": ways(made(6.0))},),
        "contradicts": ({"3.14": ways(BELOW), "3.14t": ways(BELOW)},),
        "undecided": ({"3.14": ways(AROUND), "3.14t": ways(UNKNOWN)},),
        "on one of them": ({"3.14": ways(ABOVE), "3.15": ways(None, None)},),
    },
    "holds_where": {
        "agrees": ({"3.14": ways(ABOVE), "3.14t": ways(made(6.0))},),
        "contradicts": ({"3.14": ways(BELOW), "3.14t": ways(BELOW)},),
        "undecided": ({"3.14": ways(AROUND), "3.14t": ways(UNKNOWN)},),
    },
    "faults_fragment": {"agrees": (FAULTS,), "contradicts": (made(0.001),), "undecided": (SOME,)},
    "still_pays": {
        "agrees": (ABOVE, made(2.4), made(1.8)),
        "contradicts": (ABOVE, BELOW, made(7.4)),
        "undecided": (ABOVE, AROUND, made(4.3)),
        "more": (made(2.4), ABOVE, BELOW),
        "as much": (ABOVE, ABOVE, AROUND),
        "not with it": (AROUND, ABOVE, None),
        "not measured": (None, ABOVE, None),
    },
    "giving_back": {
        "agrees": (ABOVE, NO_FAULTS, FAULTS),
        "contradicts": (BELOW, NO_FAULTS, FAULTS),
        "undecided": (AROUND, NO_FAULTS, FAULTS),
        "not brought about": (ABOVE, NO_FAULTS, NO_FAULTS),
        "not measured": (None, None, None),
    },
    "as_it_came": {
        "agrees": (FAULTS,),
        "contradicts": (NO_FAULTS,),
        "undecided": (SOME,),
        "around nothing": (made(57.0, -20.0, 134.0),),
        "all alike": (made(226.0, 226.0, 226.0),),
        "not measured": (None,),
    },
    "steps": {
        "agrees": ("block", [made(3.5), made(4.0), made(5.7)], made(1.15), made(1.42)),
        "contradicts": ("block", [made(3.5), made(3.5), made(3.5)], AROUND, AROUND),
        "undecided": ("block", [made(3.5), None, made(5.7)], None, None),
        "the design alone": ("block", [made(3.5), made(3.5), made(5.7)], AROUND, made(1.6)),
    },
    "memory_bound": {
        "agrees": (GIL, ABOVE, ABOVE, 1.9),
        "contradicts": (GIL, CLOSE, CLOSE, 1.9),
        "undecided": (GIL, AROUND, AROUND, 1.9),
        "in a large text": (GIL, CLOSE, made(1.4), 1.9),
        "in a large text, perhaps": (GIL, CLOSE, NEARLY, 1.9),
        "unknown": (GIL, UNKNOWN, CLOSE, 1.9),
    },
    "twenty_times": {
        "agrees": (16, 20, made(20.0), ABOVE, 4.11),
        "contradicts": (16, 20, made(7.0), AROUND, 4.11),
        "undecided": (16, 20, made(18.0, 9.0, 27.0), BELOW, 4.11),
        "more": (16, 20, made(40.0), ABOVE, 4.11),
        "the other way round": (16, 20, BELOW, None, 4.11),
        "unknown": (16, 20, None, None, 4.11),
    },
    "what_bounds": {
        "agrees": (GIL, parts(ABOVE, made(1.7))),
        "contradicts": (GIL, parts(BELOW, ABOVE)),
        "undecided": (GIL, parts(AROUND, AROUND)),
        "two alike": (GIL, parts(made(1.7), made(1.72))),
        "unknown": (GIL, parts(ABOVE, UNKNOWN)),
    },
    "two_passes": {
        "agrees": (GIL, "the strings of pages and tuple", CLOSE),
        "contradicts": (GIL, "the strings of pages and tuple", ABOVE),
        "undecided": (GIL, "the strings of pages and tuple", AROUND),
        "below": (GIL, "the strings of pages and tuple", BELOW),
        "hardly below": (GIL, "the strings of pages and tuple", made(0.9805, 0.9615, 0.9998)),
        "unknown": (GIL, "the strings of pages and tuple", None),
    },
    "two_threads": {
        "agrees": ("CPython's own strings", made(1.9)),
        "contradicts": ("CPython's own strings", BELOW),
        "undecided": ("CPython's own strings", made(0.921, 0.827, 1.026)),
        "unknown": ("CPython's own strings", UNKNOWN),
    },
    "in_company": {
        "agrees": (made(35.7), made(14.4), made(25.2), made(9.7)),
        "contradicts": (made(20.0), made(8.0), made(25.2), made(9.7)),
        "undecided": (made(26.0), made(10.0), made(25.2), made(9.7)),
        "unknown": (made(26.0), None, None, made(9.7)),
    },
    "cold_heaps": {
        "agrees": (ABOVE, made(68.0), made(0.4)),
        "contradicts": (BELOW, made(68.0), made(0.4)),
        "undecided": (AROUND, made(68.0), made(0.4)),
        "unknown": (None, None, None),
    },
    "released": {
        "agrees": ("the strings of pages and tuple", BELOW, 8),
        "contradicts": ("the strings of pages and tuple", ABOVE, 8),
        "undecided": ("the strings of pages and tuple", AROUND, 8),
        "unknown": ("the strings of pages and tuple", None, 8),
    },
    "stays": {
        "agrees": (GIL, PAIR[1], made(90.0), made(89.0)),
        "contradicts": (GIL, PAIR[1], made(90.0), made(4.0)),
        "undecided": (GIL, PAIR[1], made(90.0), made(45.0, 10.0, 80.0)),
        "unknown": (GIL, PAIR[1], None, None),
        "impossible": (GIL, PAIR[1], "refused: 64.9 resident, where 80.0 are written", None),
    },
    "probes_agree": {
        "agrees": (24, 36, []),
        "contradicts": (20, 36, ["isinstance(x, str)", "sys.getsizeof(x)"]),
        "undecided": (36, 36, []),
    },
    "unlike_a_subclass": {
        "agrees": (["type(x)('pi')", "x.name = 1"],),
        "contradicts": ([],),
        "undecided": (["sys.getsizeof(x)"],),
    },
    "copied_type": {
        "agrees": ("'str'", "TypeError: cannot pickle 'str' object"),
        "contradicts": ("'Copy'", "'pi'"),
        "undecided": ("'str'", "'pi'"),
    },
    "misused": {
        "agrees": ("it was equal and was not found", {"3.14": True, "3.14t": True}),
        "contradicts": ("it was equal and was not found", {"3.14": False, "3.14t": False}),
        "undecided": ("it was equal and was not found", {"3.14": None, "3.14t": True}),
        "not asked": ("it was equal and was not found", {}),
    },
    "layouts_differ": {
        "agrees": ("3.14", "3.14t", [f"field {number}" for number in range(9)]),
        "contradicts": ("3.14", "3.15", []),
        "undecided": ("3.13", "3.14", ["PyTupleObject, ob_hash", "PyTupleObject, ob_item"]),
    },
    "wrong_layout": {
        "agrees": (Share(4, 4),),
        "contradicts": (Share(0, 4),),
        "undecided": (None,),
        "in part": (Share(40, 60),),
    },
    "other_version": {"agrees": (Share(8, 24),), "contradicts": (Share(0, 24),), "undecided": (None,)},
    "module_refuses": {
        "agrees": (Share(2, 2),),
        "contradicts": (Share(0, 2),),
        "undecided": (None,),
        "in part": (Share(28, 30),),
    },
    "list_grows": {
        "agrees": (Share(6, 6), {"3.14": True, "3.14t": True}),
        "contradicts": (Share(0, 6), {"3.14": False, "3.14t": False}),
        "undecided": (None, {}),
        "in part": (Share(4, 6), {"3.14": True, "3.14t": False}),
        "no append of its own": (Share(6, 6), {}),
    },
    "same_call_twice": {
        "agrees": ({"3.14": CLOSE, "3.14t": AROUND}, 0.05),
        "contradicts": ({"3.14": ABOVE, "3.14t": AROUND}, 0.05),
        "undecided": ({"3.14": UNKNOWN}, 0.05),
        "three layouts": ({"3.14": CLOSE, "3.14t": made(0.91, 0.43, 1.91)}, 0.05),
    },
    "prediction_1": {
        "agrees": (made(24.0), made(31.0)),
        "contradicts": (made(31.0), made(24.0)),
        "undecided": (made(24.0), None),
    },
    "prediction_2": {
        "agrees": (ABOVE, AROUND, made(1.5)),
        "contradicts": (AROUND, ABOVE, made(1.5)),
        "undecided": (UNKNOWN, AROUND, made(1.5)),
        "as the rule": (ABOVE, made(1.26), made(1.29)),
        "both": (ABOVE, made(2.0), made(1.5)),
        "neither": (BELOW, BELOW, made(1.0)),
        "unknown": (UNKNOWN, AROUND, None),
    },
    "prediction_3": {
        "agrees": (["sys.intern(x)"], list("abcdef"), ["int(x)"]),
        "contradicts": ([], list("abcdef"), ["int(x)"]),
        "undecided": (["sys.intern(x)"], list("abcdef"), []),
    },
    "prediction_4": {"agrees": (made(1.6),), "contradicts": (BELOW,), "undecided": (AROUND,), "unknown": (None,)},
}
