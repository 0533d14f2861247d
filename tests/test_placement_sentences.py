"""The sentences of the chapter on code placement, of made-up numbers."""

import re
from dataclasses import asdict
from functools import partial

import pytest

from ffilab.judge.estimates import Counted, Interval, Share
from notebooks.placement import geometry
from notebooks.placement.counting import USUAL
from tests.helpers.made_claims import said_of


@pytest.fixture
def said(monkeypatch):
    """What the chapter says of numbers."""
    return partial(said_of, monkeypatch, "placement", observed={"instruction cache": asdict(USUAL)}.get)


@pytest.mark.parametrize(
    ("kept", "slow", "expected"),
    [
        (12, 16, "Even 12 functions .* from 16 on they are slow.* So more of them stay fast"),
        (8, 10, "The two agree"),
        (4, 6, "Something smaller than this cache"),
        (0, 10, "From 10 functions on.* Whether the two agree is too close to call"),
        (16, 8, "How many functions stay fast 4096 bytes apart is too close to call"),
        (256, None, "no number of functions is slow beyond doubt"),
        (None, None, "not known"),
    ],
)
def test_how_many_functions_keep_their_time_is_held_against_eight_ways(said, kept, slow, expected):
    ends = {"that keep their time": kept, "from which on all take longer": slow}
    found = {f"functions at 4096 bytes {end}": n if n is None else Counted(n) for end, n in ends.items()}
    assert re.search(expected, said(found | {"ways of the instruction cache": Counted(8)})["stay-fast"])


FLAT, LITTLE, FAR = Interval(1.02, 0.97, 1.08), Interval(1.043, 1.015, 1.091), Interval(7.0, 6.8, 7.3)


@pytest.mark.parametrize(
    ("pages", "sets", "expected"),
    [
        (FAR, LITTLE, "both make 256 functions slower, pages the most"),
        (LITTLE, FAR, "both make 256 functions slower, sets the most"),
        (Interval(1.02, 0.99, 1.05), FAR, "sets make 256 functions slow, and the pages do not"),
        (FLAT, Interval(1.02, 0.97, 1.12), "is too close to call here"),
        (FAR, FLAT, "pages make 256 functions slow, and the cache's sets do not.* instruction TLB first"),
    ],
)
def test_pages_or_sets(said, pages, sets, expected):
    found = {"price of pages, 256 functions": pages, "price of sets, 256 functions": sets}
    found |= {f"ns of a call at {n} bytes, 256 functions": Interval(2.04, 2, 2.1) for n in (64, 4160, 4096)}
    assert re.search(f"{expected}.*", said(found)["pages-or-sets"])


def test_lots_that_differ_by_too_little_to_say_so():
    """An interval that holds 2 %: no figure is drawn of what is surely less."""
    assert geometry.matters(LITTLE)
    assert not geometry.matters(Interval(1.00021, 1.00002, 1.00039))


@pytest.mark.parametrize(
    ("stand", "without_code", "expected"),
    [
        (0, 0, "would leave 4. Bisection blamed noise."),
        (4, 4, "would leave 4. 4 of these 4 change no machine code. Bisection blamed noise."),
        (20, 0, "would leave 4. All 20 of these change machine code. So something does differ"),
    ],
)
def test_what_stands_is_held_against_the_code(said, stand, without_code, expected):
    counts = {"": stand, " by noise alone": 4, " and change no machine code": without_code}
    found = {f"blamed commits that stand{which}": Counted(n) for which, n in counts.items()}
    found |= {
        "share of blamed commits that stand, without a trap": Share(stand, 20),
        "commits blamed without a trap": Counted(9),
    }
    assert expected in said(found)["blamed-by-chance"]
