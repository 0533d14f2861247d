"""Statistics whose unit is a process, on data whose truth is known."""

import numpy as np
import pandas as pd

from ffilab.judge import processes


def frame():
    return pd.DataFrame(
        {
            "case": ["a"] * 30 + ["b"] * 30,
            "threads": [2, 50] * 30,
            "lost": [0.1] * 7 + [0] * 23 + [0] * 30,
        }
    )


def test_rows_are_chosen_by_one_value_or_several():
    assert len(processes.chosen(frame(), case="a")) == 30
    assert len(processes.chosen(frame(), case=("a", "b"), threads=[50])) == 30
    assert len(processes.chosen(frame(), case="a", threads=2)) == 15


def test_what_is_missing_is_left_out():
    found = pd.DataFrame({"case": ["a"] * 5, "p99.9": [1.0, None, 1.2, 1.1, None]})
    assert 1 < processes.interval_of(found, "p99.9", case="a").value < 1.2
    assert processes.interval_of(found, "p99.9", case="b") is None
    assert processes.measured(np.array([]), "ns") is None
    assert processes.ratio(np.array([1.0, 2]), np.array([])) is None
    assert processes.ratio(np.array([1.0, 2, 3]), np.array([1.0, 0, 1])) is None
    assert processes.difference(np.array([]), np.array([1.0]), "ns") is None


def test_ratio_and_difference_cover_the_truth():
    """In 300 made-up runs of ten processes the interval misses the truth about as seldom as it says."""
    rng = np.random.default_rng(21)
    missed = 0
    for _ in range(300):
        slow, fast = 3 * np.exp(rng.normal(0, 0.05, 10)), np.exp(rng.normal(0, 0.05, 10))
        found = processes.ratio(slow, fast).interval
        missed += not found.low <= 3 <= found.high
        # On a log scale: the spread of a ratio is multiplicative.
        shift = processes.difference(np.log(slow), np.log(fast), "log").interval
        assert (shift.low <= np.log(3) <= shift.high) == (found.low <= 3 <= found.high)
    assert missed < 30
