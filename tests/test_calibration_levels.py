"""Intervals over layouts, and variance components, on data whose truth is known. Seeds are fixed."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from ffilab.judge import groups, statistics
from ffilab.judge.estimates import LEVEL, PREDICTION_LEVEL, Location, difference
from ffilab.setup.catalogue import GIL
from studies.calibration import arms, levels
from tests.helpers.made_up import timed

SIMULATIONS = 600
# Relative standard deviations: between layouts, and between restarts with one of them.
OF_LAYOUT, OF_RESTART = 0.02, 0.005
LAYOUTS, AGAIN = 16, 4
SLOW, FAST = (GIL, "slow"), (GIL, "fast")


def a_record(rng, layouts, drawn, truth=0.0):
    """Two arms, the logarithm of whose ratio is `truth` over all layouts; `layouts`: how far each of them is off."""
    restarts = layouts[drawn] + rng.normal(0, OF_RESTART, len(drawn)) + truth
    machine = rng.normal(0, 0.1, (len(drawn), 1)) + np.zeros(2)
    alone = len(layouts) == 1
    return timed({"slow": machine + restarts[:, None], "fast": machine}, None if alone else drawn)


def test_the_next_build_is_where_it_was_predicted():
    rng, truth, found, inside = np.random.default_rng(16), math.log(1.1), [], []
    for _ in range(SIMULATIONS):
        # All layouts once, some of them twice.
        drawn = rng.permutation(np.r_[np.arange(LAYOUTS), rng.choice(LAYOUTS, AGAIN, replace=False)])
        one = statistics.ratio_over_units(a_record(rng, rng.normal(0, OF_LAYOUT, LAYOUTS), drawn, truth), SLOW, FAST)
        more = truth + rng.normal(0, OF_LAYOUT) + rng.normal(0, OF_RESTART)
        found.append(one)
        inside.append(one.next_build.low <= math.exp(more) <= one.next_build.high)
    assert np.mean(inside) == pytest.approx(PREDICTION_LEVEL, abs=0.025)
    assert all(one.next_build.half_width > one.at().half_width for one in found)
    reach = stats.t.ppf(0.975, LAYOUTS - 1) * math.sqrt(one.spread**2 + one.error**2)
    assert math.log(one.next_build.high) == pytest.approx(one.centre + reach)


def test_one_binary_says_nothing_of_the_next_build():
    record = a_record(np.random.default_rng(17), np.zeros(1), np.zeros(LAYOUTS + AGAIN, int))
    alone = statistics.ratio_over_units(record, SLOW, FAST)
    assert not alone.next_build.is_known
    assert alone.n == LAYOUTS + AGAIN
    assert alone.spread is None


def test_pooled_is_the_standard_deviation_within_groups():
    assert groups.pooled(np.array([1.0, 3.0, 10.0, 14.0]), ["a", "a", "b", "b"]) == (pytest.approx(math.sqrt(5)), 2)
    assert groups.pooled(np.array([1.0, 3.0]), ["a", "b"]) == (None, 0)


def test_the_difference_of_two_estimates_covers():
    rng, hits = np.random.default_rng(7), []
    for _ in range(SIMULATIONS):
        one, other = (Location.of(rng.normal(centre, sd, 20), log=True) for centre, sd in ((0.2, 0.02), (0.1, 0.06)))
        found = difference(one, other)
        assert 9 < found.freedom < 24
        hits.append(not found.at().excludes(math.exp(0.1)))
    assert LEVEL - 0.015 <= np.mean(hits) <= LEVEL + 0.012


# ---- variance components ----

TRUE = {"build": 0.01, "layout": 0.02, "session": 0.006, "layout in a session": 0.004, "restart": 0.005}


def a_pilot(rng, sd):
    """A table as `levels.pilot` makes one, with these standard deviations."""
    layouts, sessions = arms.BUILDS * levels.LAYOUTS, levels.SESSIONS
    shapes = {"build": arms.BUILDS, "layout": layouts, "session": sessions}
    shapes["layout in a session"] = layouts, sessions
    of = {level: rng.normal(0, sd[level], shape) for level, shape in shapes.items()}
    cells = itertools.product(range(layouts), range(sessions), range(levels.RESTARTS))
    table = pd.DataFrame(cells, columns=["layout", "session", "restart"])
    build = table.layout % arms.BUILDS
    centre = of["build"][build] + of["layout"][table.layout] + of["session"][table.session]
    log = centre + of["layout in a session"][table.layout, table.session] + rng.normal(0, sd["restart"], len(table))
    return table.assign(build=build + 1, log=log)


def simulated(sd, seed, lost=0.0, simulations=200):
    """For each level its values, lower and upper bounds, over runs that lose a share of their second restarts."""
    rng, runs = np.random.default_rng(seed), []
    for _ in range(simulations):
        table = a_pilot(rng, sd)
        is_lost = (table.restart == 1) & (rng.random(len(table)) < lost)
        runs.append(levels.components(table[~is_lost]))
    return {level: np.array([[run[level].value, run[level].low, run[level].high] for run in runs]).T for level in sd}


def test_components_are_those_that_were_put_in():
    for level, (value, low, high) in simulated(TRUE, seed=1).items():
        # Three builds and four sessions know little of their own.
        rel = 0.2 if level in ("build", "session") else 0.05
        assert np.sqrt(np.mean(value**2)) == pytest.approx(TRUE[level], rel=rel), level
        assert np.mean((low <= TRUE[level]) & (TRUE[level] <= high)) == pytest.approx(0.95, abs=0.035), level


def test_a_component_of_zero_has_an_interval_that_contains_zero():
    none = {**dict.fromkeys(TRUE, 0.0), "restart": 0.005}
    for level, (value, low, high) in simulated(none, seed=2).items():
        if level != "restart":
            assert np.mean(low == 0) >= 0.95, level
            assert np.mean(high > 0) > 0.5, level
            assert np.mean(value == 0) > 0.3, level


def test_a_lost_session_leaves_its_layout_out():
    whole = a_pilot(np.random.default_rng(3), TRUE)
    lost = whole.drop(whole[(whole.layout == 3) & (whole.session == 2)].index)
    # Layout 3 is of build 1; of the others the last goes, as each build has to have as many.
    expected = levels.components(whole[~whole.layout.isin([3, 22, 23])])
    assert levels.components(lost) == expected != levels.components(whole)


def test_lost_restarts_widen_and_do_not_shift():
    """A third of them, as their core had company."""
    runs = simulated(TRUE, seed=4, lost=0.6)
    for level in ("layout", "restart"):
        value, low, high = runs[level]
        assert np.sqrt(np.mean(value**2)) == pytest.approx(TRUE[level], rel=0.1), level
        assert np.mean((low <= TRUE[level]) & (TRUE[level] <= high)) >= 0.9, level


def copies(rng, sd, count=10, each=8):
    truths = rng.normal(0, sd, count)
    return pd.DataFrame(
        [{"copy": n, "log": truths[n] + rng.normal(0, 0.005)} for n in range(count) for _ in range(each)]
    )


def test_copies_of_one_layout_scatter_if_they_differ():
    rng = np.random.default_rng(8)
    alike = [levels.copies_scatter(copies(rng, 0.0)) for _ in range(300)]
    assert np.mean([one["p"] < 0.05 for one in alike]) == pytest.approx(0.05, abs=0.03)
    assert np.median([one["sd"] for one in alike]) < 0.001
    different = [levels.copies_scatter(copies(rng, 0.02)) for _ in range(100)]
    assert max(one["p"] for one in different) < 1e-3
    assert math.sqrt(np.mean([one["sd"] ** 2 for one in different])) == pytest.approx(0.02, rel=0.1)


def known(**values):
    return {level: levels.Interval(values.get(level.replace(" ", "_"), 0.0), 0.0, 1.0) for level in levels.LEVELS}


def test_the_cheapest_number_of_restarts_with_a_layout():
    """√(2 s / 8 s) · √(.3² + .4²) % / 2 % = .125: one is enough. Where links are dear and restarts noisy, several."""
    found = known(layout=0.02, restart=0.003, layout_in_a_session=0.004)
    assert levels.restarts_a_layout(found, {"link_s": 2, "restart_s": 8}) == pytest.approx(0.125)
    noisy = known(layout=0.01, restart=0.03)
    assert levels.restarts_a_layout(noisy, {"link_s": 4, "restart_s": 1}) == pytest.approx(6)
    assert levels.restarts_a_layout(known(restart=0.03), {"link_s": 4, "restart_s": 1}) == math.inf


def test_the_half_width_that_components_predict_is_that_of_runs():
    found = known(layout=OF_LAYOUT, restart=OF_RESTART)
    by_hand = stats.t.ppf(0.99, 39) * math.sqrt(OF_LAYOUT**2 + OF_RESTART**2) / math.sqrt(40)
    assert levels.half_width(found, 40) == pytest.approx(by_hand)
    assert levels.half_width(found, 20) > levels.half_width(found, 40) > levels.half_width(found, 110)
