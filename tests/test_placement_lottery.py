"""The lottery of the chapter on code placement: made-up duels in which rounds, tools or orders are missing or others."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge.controls import settled
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.placement import lottery, numbers, results


def made_up_lottery(order_sd):
    """Ten rounds on each build; orders 3 % slower than the default in the middle and apart by `order_sd`; noise of 2 %."""
    rng = np.random.default_rng(4)
    rows = []
    kinds = (
        ("order", 30, 0.03, order_sd),
        ("copy", 10, 0.0, 0.0),
        (lottery.TOGETHER, 10, -0.02, order_sd),
        (lottery.ANYWHERE, 10, 0.04, order_sd),
    )
    for label, benchmark in itertools.product(lottery.BUILDS, lottery.BENCHMARKS):
        for kind, count, middle, sd in kinds:
            for number, truth in enumerate(rng.normal(middle, sd, count)):
                what = {"interpreter": label, "name": f"{kind} {number}", "kind": kind, "benchmark": benchmark}
                rows += [{**what, "round": n, "log": truth + rng.normal(0, 0.02)} for n in range(10)]
    return pd.DataFrame(rows)


def test_the_lottery_is_told_from_noise_and_a_link_is_one_value_however_often_it_is_timed():
    same, different = (results.of_build(made_up_lottery(sd), GIL) for sd in (0.0, 0.03))
    for benchmark in lottery.BENCHMARKS:
        assert results.true_spread(same, benchmark).at().low == 1 < results.true_spread(different, benchmark).at().low
        # Two orders that lie apart by 0.03: one pair in twenty by 1.96 times the root of two of that.
        pairs = results.of_pairs(different, benchmark).at()
        assert pairs.low <= np.exp(1.96 * np.sqrt(2) * 0.03) <= pairs.high
    assert results.passing(same, "containers", "order", 1.02).events > 20
    assert results.passing(same, "containers", "order", 1.05).events <= 2
    assert results.passing(same, "containers", "copy", 1.02).events <= 1
    assert 0.001 < results.passing_by_noise(same, "containers", 1.02) < 0.5
    # Hot functions together take exp(-0.02), anywhere exp(0.04), the orders exp(0.03), the linker's own order 1.
    two = "containers", lottery.TOGETHER, lottery.ANYWHERE
    assert results.over(same, *two).interval.value == pytest.approx(np.exp(-0.06), abs=0.01)
    assert results.over(same, "containers", "order", "copy").interval.value == pytest.approx(1.03, abs=0.02)
    often = pd.concat([different, different.assign(round=different["round"] + 10)])
    once, twice = (results.over(of, *two) for of in (different, often))
    assert once.estimate.n == twice.estimate.n == 20
    assert twice.interval.half_width == pytest.approx(once.interval.half_width, rel=0.15)


def test_a_round_that_others_disturbed_is_left_out_of_all_programs():
    runs = results.of_build(made_up_lottery(0.03), GIL).reset_index(drop=True)
    lost = runs.index[(runs.name == "order 3") & (runs["round"] == 4)]
    most = runs.index[(runs.name == "order 5") & (runs["round"] > 3)]
    logs = results.by_round(runs.drop(lost.union(most)), "containers", "order")
    assert logs.shape == (29, 9)
    assert np.isfinite(logs).all()


@pytest.mark.parametrize("more", [0.0, 3.0])
def test_misses_are_compared_between_slow_and_fast_orders(more):
    """By its true time, an order of the slower half misses `more` times more of a thousand instructions; the fast ones 5."""
    runs = results.of_build(made_up_lottery(0.03), GIL)
    logs = runs[(runs.kind == "order") & (runs.benchmark == "containers")].groupby("name").log.mean().sort_values()
    rates = 5 + more * (np.arange(len(logs)) >= len(logs) // 2) + np.random.default_rng(6).normal(0, 0.3, len(logs))
    counted = [
        {"benchmark": "containers", "name": name, "instructions": 1_000_000, "misses": 1_000 * rate}
        for name, rate in [*zip(logs.index, rates), (lottery.DEFAULT, rates[0])]
    ]
    found = results.more_misses(runs, counted, "containers").interval
    assert found.low <= more <= found.high
    assert found.half_width < 0.5
    assert results.more_misses(runs, "no valgrind", "containers") == "no valgrind"
    assert results.more_misses(runs[:0], counted, "containers") == results.NO_SLOW_ONES
    stalled = [{**row, "stalls": 1e6 * (2 if more and row["misses"] > 6500 else 1)} for row in counted]
    stalls = results.more_stalls(runs, stalled, "containers").interval
    assert stalls.low <= (2 if more else 1) <= stalls.high
    assert results.more_stalls(runs, "no counters", "containers") == "no counters"


@pytest.mark.parametrize(("more", "same"), [(1_000, 1.0), (3_000, 2 / 3)])
def test_orders_with_other_work_are_counted(more, same):
    """Two in a thousand are the linker's own; an order with more is no mere order of the same functions."""
    instructions = {lottery.DEFAULT: 1_000_000, "a": 1_000_000, "b": 999_000, "c": 1_000_000 + more}
    rows = [
        {"benchmark": one, "name": name, "instructions": n}
        for one in lottery.BENCHMARKS
        for name, n in instructions.items()
    ]
    assert results.as_many_instructions({GIL: rows, FREE_THREADED: rows}).interval.value == pytest.approx(same)
    assert results.as_many_instructions({GIL: rows, FREE_THREADED: "no objects"}) == "no objects"


def test_another_session_draws_other_orders():
    """Of `make more`: its orders have names of their own, and its rounds go on from those of the first."""
    first = results.of_build(made_up_lottery(0.03), GIL)
    second = first.assign(round=first["round"] + 10, name="another " + first.name)
    both = results.by_round(pd.concat([first, second]), "containers", "order")
    assert both.shape == (60, 10)
    assert not np.isnan(both).any()


@pytest.mark.parametrize(("off", "passed"), [(0.0, True), (0.05, False)])
def test_a_program_that_differs_from_itself_withholds_the_lottery(off, passed):
    runs = made_up_lottery(0.03)
    runs.loc[(runs.kind == "copy") & (runs.interpreter == GIL), "log"] += off
    checks = settled(numbers.controls(SimpleNamespace(frame={"relink lottery": runs}.get)))
    assert [check.passed for check in checks] == [passed] * 2 + [True] * 2
    assert FREE_THREADED in checks[-1].what
