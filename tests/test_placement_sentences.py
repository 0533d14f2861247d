"""The sentences of the chapter on code placement, of made-up numbers."""

import re
from dataclasses import asdict
from functools import cache
from types import SimpleNamespace

import pandas as pd
import pytest
from notebooks.placement.experiment import APART, PACKED

from ffilab.judge import numbers as judge_numbers
from ffilab.judge import sentences
from ffilab.judge.estimates import Counted, Interval, Share
from ffilab.judge.numbers import Numbers
from ffilab.run.budget import BUDGETS
from ffilab.setup.catalogue import GIL
from notebooks.placement import numbers, results
from notebooks.placement.counting import USUAL
from notebooks.placement.lottery import BENCHMARKS, BUILDS


class Pretended(SimpleNamespace):
    """A session of which some numbers are known, and no others."""

    def __init__(self, found):
        super().__init__(chapter="placement", reads=set(), earlier=[], machine={}, budget=BUDGETS["smoke"])
        # All of them keep their time.
        calls = [(process, distance, 4, 1.0) for process in range(3) for distance in (PACKED, APART)]
        self.frame = {"distances": pd.DataFrame(calls, columns=["process", "distance", "n", "ns"])}.get
        self.observed = {"instruction cache": asdict(USUAL)}.get
        self.once = cache(lambda make: make(self))
        made = dict.fromkeys(numbers.numbers(self), lambda: None)
        self.found = Numbers(self, made | {name: lambda one=one: one for name, one in found.items()})


@pytest.fixture
def said(monkeypatch):
    """What the chapter says of numbers."""
    monkeypatch.setattr(judge_numbers, "of", lambda session: session.found)
    return lambda found: sentences.said(Pretended(found))


@pytest.mark.parametrize(
    ("kept", "slow", "expected"),
    [
        (12, 16, "up to 12 functions .* from 16 on all surely take longer.* So more of them keep their time"),
        (8, 10, "The two agree"),
        (4, 6, "Something smaller than this cache"),
        (0, 10, "no number of functions surely takes less .* Whether the two agree cannot be told"),
        (16, 8, "how many functions keep their time cannot be told"),
        (256, None, "beyond doubt"),
        (None, None, "not known"),
    ],
)
def test_how_many_functions_keep_their_time_is_held_against_eight_ways(said, kept, slow, expected):
    ends = {"that keep their time": kept, "from which on all take longer": slow}
    found = {f"functions at 4096 bytes {end}": n if n is None else Counted(n) for end, n in ends.items()}
    assert re.search(expected, said(found | {"ways of the instruction cache": Counted(8)})["stay-fast"])


def test_no_sentence_stands_against_its_table(said):
    flat, little, far = Interval(1.02, 0.97, 1.08), Interval(1.043, 1.015, 1.091), Interval(7.0, 6.8, 7.3)
    # A price of pages that is seen with 128 functions, and not with 256.
    found = {"price of pages, 256 functions": flat, "price of sets, 256 functions": far}
    seen = said(found | {"price of pages, 128 functions": Interval(1.162, 1.079, 1.252)})["pages-or-sets"]
    assert seen.endswith(
        "extra pages (1.020 [0.970, 1.080]) are not. With fewer functions, extra pages cost something: 128 (1.162 [1.079, 1.252])."
    )
    # Orders that differ, by an interval that holds 2 %: no sentence says that this cannot be told.
    seen = said({f"how far one pair of random orders in twenty differs, call_method on {GIL}": little})
    assert "Orders differ in call_method with the GIL" in seen["lots"]
    assert "Random orders of CPython differ here, in call_method" in seen["takeaway-orders"]
    # What is surely too little has no explanation, and no figure.
    small = Interval(1.00021, 1.00002, 1.00039)
    assert "explanation" not in said({"slowest / fastest fifth of the places of a loop": small})["loops"]
    assert results.matters(little)
    assert not results.matters(small)


def test_the_linkers_own_order_is_held_against_all_random_ones(said):
    found = {
        "random orders / the linker's own": Interval(1.02, 1.015, 1.03),
        "random orders that are faster": Share(0, 15),
        "random orders that are slower": Share(15, 15),
        "nearest random order, in per cent": Counted(1.4),
        "farthest random order, in per cent": Counted(3.8),
    }
    seen = said({f"{name}, containers on {GIL}": one for name, one in found.items()})["own-order"]
    assert "with the GIL: all 15 random orders are slower, by 1.4 to 3.8 %" in seen


@pytest.mark.parametrize(
    ("stand", "without_code", "expected"),
    [
        (0, 0, "would leave 4. Bisection blamed noise."),
        (1, 1, "would leave 4, and this one changes no machine code"),
        (4, 4, "would leave 4, and none of the 4 changes machine code. Bisection blamed noise."),
        (20, 0, "would leave 4, and all 20 change machine code. So something does differ"),
    ],
)
def test_what_stands_is_held_against_the_code(said, stand, without_code, expected):
    counts = {"": stand, " by noise alone": 4, " and change no machine code": without_code}
    counts[" and change machine code"] = stand - without_code
    found = {f"blamed commits that stand{which}": Counted(n) for which, n in counts.items()}
    found |= {
        "share of blamed commits that stand, without a trap": Share(stand, 20),
        "commits blamed without a trap": Counted(9),
    }
    assert expected in said(found)["blamed-by-chance"]


def test_lotteries_that_answer_alike_share_a_sentence(said):
    names = [f"hot functions together / anywhere, {one} on {label}" for one in BENCHMARKS for label in BUILDS]
    faster, flat = Interval(0.9, 0.88, 0.92), Interval(1.02, 0.97, 1.08)
    seen = said(dict(zip(names, (flat, faster, "no objects", faster))))["hot"]
    assert [one.split(" (")[0] for one in seen.split(". ")] == [
        "Hot functions together make it faster by 2 % or more in call_method without the GIL",
        "Whether hot functions together make it faster by 2 % cannot be told in call_method with the GIL",
        "Nothing is known of hot functions together in containers with the GIL: no objects.",
    ]
    assert said(dict.fromkeys(names, "no objects"))["hot"] == "Nothing is known of hot functions together: no objects."
