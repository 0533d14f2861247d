"""What the check of an exercise says: too close to call is not wrong, and each time says what it was compared with."""

import numpy as np
import pytest

from ffilab.judge.estimates import Location
from ffilab.judge.rules import Side
from ffilab.judge.selfcheck import correct_then_fast, faults

HALF = Side("share", direction="above", null=0.0, interest=0.5)
WHAT = "the other thread keeps {found} of its speed, and half of it is asked"


def around(centre, spread):
    return Location.of(centre + spread * np.linspace(-1, 1, 8))


@pytest.mark.parametrize(
    ("share", "begins"),
    [
        (around(0.9, 0.01), "Correct."),
        (around(0.1, 0.01), "Not correct: the other thread keeps 0.1"),
        (around(0.5, 0.4), "Too close to call here: the other thread keeps 0.5"),
    ],
)
def test_a_check_knows_right_wrong_and_open(share, begins):
    wrong, undecided = faults(HALF, share, WHAT)
    first, *_ = correct_then_fast(wrong, around(1.0, 0.01), undecided=undecided)
    assert first.startswith(begins)
    assert ("Run it again" in first) == begins.startswith("Too close")


@pytest.mark.parametrize(
    ("times", "begins"),
    [
        (around(1.0, 0.01), "Fast enough: mine takes 1"),
        (around(2.0, 0.01), "Not yet fast: mine takes 2"),
        (around(1.1, 0.5), "Whether it is fast enough is too close to call here: mine takes 1"),
    ],
)
def test_a_time_says_what_it_was_compared_with(times, begins):
    correct, said = correct_then_fast([], times, pair=("mine", "the original"))
    assert correct == "Correct."
    assert said.startswith(begins)
    assert "times as long as the original" in said
