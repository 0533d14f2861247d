"""The lottery of the chapter on code placement, where rounds, programs or sessions are others than in the golden
records."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge.controls import settled
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.placement import numbers, results
from tests.helpers.of_chapter import Golden

DUELS = Golden("placement").frame("relink lottery")
ORDERS = "containers", "order"


def test_a_round_that_others_disturbed_is_left_out_of_all_programs():
    runs = results.of_build(DUELS, GIL).reset_index(drop=True)
    one, other, *_ = runs.name[runs.kind == "order"].unique()
    programs, rounds = results.by_round(runs, *ORDERS).shape
    turn = runs.groupby(["name", "benchmark"]).cumcount()
    lost = ((runs.name == one) & (turn == 1)) | ((runs.name == other) & (turn >= rounds / 2))
    logs = results.by_round(runs[~lost], *ORDERS)
    assert logs.shape == (programs - 1, rounds - 1)
    assert np.isfinite(logs).all()


def test_another_session_draws_other_orders():
    """Of `make more`: its orders have names of their own, and its rounds go on from those of the first."""
    first = results.of_build(DUELS, GIL)
    second = first.assign(round=first["round"] + 1 + first["round"].max(), name="another " + first.name)
    programs, rounds = results.by_round(first, *ORDERS).shape
    both = results.by_round(pd.concat([first, second]), *ORDERS)
    assert both.shape == (2 * programs, rounds)
    assert not np.isnan(both).any()


@pytest.mark.parametrize(("off", "passed"), [(0.0, True), (0.5, False)])
def test_a_program_that_differs_from_itself_withholds_the_lottery(off, passed):
    runs = DUELS.copy()
    runs.loc[(runs.kind == "copy") & (runs.interpreter == GIL), "log"] += off
    checks = settled(numbers.controls(SimpleNamespace(frame={"relink lottery": runs}.get)))
    assert [check.passed for check in checks] == [passed] * 2 + [True] * 2
    assert FREE_THREADED in checks[-1].what


def test_what_was_not_counted_has_the_reason_in_its_place():
    counted = (results.more_misses, results.more_stalls)
    assert [number(DUELS, "no valgrind", "containers") for number in counted] == ["no valgrind"] * 2
    assert results.as_many_instructions({GIL: "no objects"}) == "no objects"
