"""The lottery of the chapter on code placement, where rounds, programs or sessions are others than in the golden
records."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge.controls import settled
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.placement import lots, numbers
from tests.helpers.of_chapter import Golden

DUELS = Golden("placement").frame("relink lottery")
LOT = {"benchmark": "containers", "interpreter": GIL}


def test_a_round_that_others_disturbed_is_left_out_of_all_programs():
    runs = DUELS[DUELS.interpreter == GIL].reset_index(drop=True)
    one, other, *_ = runs.name[runs.kind == "order"].unique()
    programs, rounds = lots.by_round(runs, "order", **LOT).shape
    turn = runs.groupby(["name", "benchmark"]).cumcount()
    lost = ((runs.name == one) & (turn == 1)) | ((runs.name == other) & (turn >= rounds / 2))
    logs = lots.by_round(runs[~lost], "order", **LOT)
    assert logs.shape == (programs - 1, rounds - 1)
    assert np.isfinite(logs).all()


def test_another_session_draws_other_orders():
    """Of `make more`: its orders have names of their own, and its rounds go on from those of the first."""
    second = DUELS.assign(round=DUELS["round"] + 1 + DUELS["round"].max(), name="another " + DUELS.name)
    programs, rounds = lots.by_round(DUELS, "order", **LOT).shape
    both = lots.by_round(pd.concat([DUELS, second]), "order", **LOT)
    assert both.shape == (2 * programs, rounds)
    assert not np.isnan(both).any()


@pytest.mark.parametrize(("off", "passed"), [(0.0, True), (0.5, False)])
def test_a_program_that_differs_from_itself_withholds_the_lottery(off, passed):
    runs = DUELS.copy()
    runs.loc[(runs.kind == "copy") & (runs.interpreter == GIL), "log"] += off
    checks = settled(numbers.controls(SimpleNamespace(frame={"relink lottery": runs}.get)))
    assert [check.passed for check in checks] == [passed] * 2 + [True] * 2
    assert FREE_THREADED in checks[-1].what
