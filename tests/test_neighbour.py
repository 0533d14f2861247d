"""A neighbour on the core: times are those of a quiet one. Seeds are fixed."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

from ffilab.judge import statistics
from ffilab.judge.sentences import sentences_of
from ffilab.measure import neighbour
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import merged
from ffilab.measure.worker import PARTS, batch
from ffilab.setup.catalogue import GIL
from notebooks.measuring import numbers
from tests.helpers.made_up import MadeUp, timed
from tests.helpers.of_chapter import Golden

RESTARTS, BLOCKS, PROBE = 20, 8, 30_000
FAST, SLOW = (GIL, "fast"), (GIL, "slow")
# What company multiplies times by: the ratio of the two depends on it.
SLOWDOWN = {"fast": 0.7, "slow": 0.3}


def session(seed, busy, ratio=1.5, probes=True, scatter=0.02, level=PROBE):
    """Two arms, layouts that scatter, and a neighbour that is there for about this share of the work, in bursts: some
    last for a part of a batch, some for a restart."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, 1, RESTARTS * BLOCKS * 2 * PARTS)
    state = lfilter([1], [1, -0.97], steps).reshape(RESTARTS, BLOCKS, -1)
    busy_at = state < np.quantile(state, busy) if busy else np.zeros_like(state, dtype=bool)
    logs, seen = {}, {}
    for number, (arm, slowdown) in enumerate(SLOWDOWN.items()):
        parts = busy_at[:, :, number * PARTS : (number + 1) * PARTS]
        layout = rng.normal(0, scatter, (RESTARTS, 1))
        noise = rng.normal(0, 0.005, (RESTARTS, BLOCKS))
        logs[arm] = np.log((ratio if arm == "slow" else 1) * (1 + slowdown * parts.mean(axis=2))) + layout + noise
        ends = np.concatenate([parts, parts[:, :, -1:]], axis=2)
        seen[arm] = (level * np.where(ends, 1.75, 1.0) * rng.normal(1, 0.02, ends.shape)).astype(int)
    record = timed(logs)
    if probes:
        for block in record.blocks:
            where = block["restart"], block["block"]
            block["probes"] = {f"{GIL}/{arm}": each[where].tolist() for arm, each in seen.items()}
    return record


def ratio(record):
    return statistics.ratio_over_units(record, SLOW, FAST)


def test_intervals_hold_the_truth_and_other_sessions_whatever_the_neighbour_does():
    busy = np.random.default_rng(0).uniform(0.1, 0.8, 60)

    def estimates(probes):
        return [ratio(session(seed, share, probes=probes)) for seed, share in enumerate(busy)]

    seeing, blind = estimates(True), estimates(False)
    assert np.mean([one.at().low <= 1.5 <= one.at().high for one in seeing]) >= 0.93
    pairs = list(itertools.permutations(seeing, 2))
    assert np.mean([one.at().low <= np.exp(other.centre) <= one.at().high for one, other in pairs]) >= 0.87
    assert np.mean([one.at().low <= 1.5 <= one.at().high for one in blind]) < 0.6


def test_a_quiet_core_and_a_record_without_probes_are_left_as_they_are():
    quiet, old = session(2, 0), session(2, 0, probes=False)
    assert np.array_equal(quiet.times(*SLOW), old.times(*SLOW))
    assert "; 0% of all batches left out, as something else" in quiet.noise.report
    assert "something else" not in old.noise.report


def test_batches_with_company_are_discarded_and_no_others():
    record = session(3, 0.5)
    times, share = record.times(*SLOW), record.company["/".join(SLOW)].reshape(RESTARTS, BLOCKS)
    assert np.array_equal(np.isnan(times), share > neighbour.MOST)
    assert 0.3 < np.isnan(times).mean() < 0.7
    assert "% of all batches left out, as something else ran on the same core" in record.noise.report


def kept(record):
    """Share of the batches that count."""
    return np.isfinite(record.times(*SLOW)).mean()


def test_a_worse_machine_is_not_told_more():
    """No cliff: the more company, the fewer batches count, and the wider are the intervals."""
    found = {busy: [session(seed, busy) for seed in range(12)] for busy in (0.2, 0.6, 0.88, 0.92)}
    shares = [np.mean([kept(record) for record in records]) for records in found.values()]
    assert shares[0] > shares[1] > shares[2] > 0.05
    assert shares[3] < 0.25
    widths = [np.nanmedian([ratio(record).at().half_width for record in records]) for records in found.values()]
    assert widths == sorted(widths)
    assert widths[3] > 4 * widths[0]


@pytest.mark.parametrize("slower", ["every other restart on a slow core", "the clock falls after three restarts"])
def test_a_slow_core_and_a_falling_clock_are_no_company(slower):
    record = session(8, 0)
    for line in record.restarts:
        line["cpu"] = line["restart"] % 2 if "core" in slower else 0
    for block in record.blocks:
        is_slow = block["restart"] % 2 if "core" in slower else block["restart"] >= 3
        times = 1.45 if is_slow else 1.0
        block["probes"] = {cell: [times * probe for probe in probes] for cell, probes in block["probes"].items()}
    assert kept(record) == 1


def test_a_restart_that_had_company_from_end_to_end_is_told_by_later_ones():
    record = session(9, 0)
    for block in record.blocks:
        if block["restart"] == 5:
            block["probes"] = {cell: [1.75 * probe for probe in probes] for cell, probes in block["probes"].items()}
    assert np.flatnonzero(np.isnan(record.times(*SLOW)).all(axis=1)).tolist() == [5]
    assert kept(record) == 1 - 1 / RESTARTS


def test_an_arm_that_slows_its_own_probes_is_compared():
    record = session(6, 0.1)
    for block in record.blocks:
        block["probes"]["/".join(SLOW)] = [10 * probe for probe in block["probes"]["/".join(SLOW)]]
    assert kept(record) > 0.7
    assert ratio(record).n > 15


def certain(record):
    """The cells that are certainly left out more or less often than the others."""
    return {one.cell for one in record.unequal if abs(one.more) > 4 * one.error}


def test_arms_that_are_left_out_unequally_are_told():
    assert [one.cell for one in session(10, 0.3).unequal] == [f"{GIL}/{arm}" for arm in SLOWDOWN]
    assert not certain(session(10, 0.3))
    assert not certain(session(10, 0))
    record = session(10, 0.3)
    for block in record.blocks[::3]:
        block["probes"]["/".join(SLOW)] = [10 * PROBE] * (PARTS + 1)
    (worst, *_) = sorted(record.unequal, key=lambda one: -one.more)
    assert worst.cell in certain(record)
    assert worst.cell == "/".join(SLOW)
    assert worst.more == pytest.approx(0.23, abs=0.07)
    assert session(10, 0.3, probes=False).unequal == [] or not certain(session(10, 0.3, probes=False))


def test_a_layout_without_a_quiet_batch_says_nothing_and_the_others_go_on():
    record = session(5, 0.2)
    for block in record.blocks:
        if block["restart"] < 3:
            block["probes"] = {cell: [10 * PROBE] * (PARTS + 1) for cell in block["probes"]}
    found = statistics.compare(record, SLOW, FAST, empty="fast")
    assert found.estimate.n <= RESTARTS - 3
    assert found.ratio.low <= 1.5 <= found.ratio.high
    assert statistics.per_call(record, SLOW).is_known


def test_each_session_has_a_quiet_level_of_its_own():
    """A machine that is faster next time has no company for that."""
    both = merged([session(6, 0, level=PROBE), session(7, 0, level=2 * PROBE)])
    assert all(not share.any() for share in both.company.values())


def test_the_chapter_finds_what_company_does():
    slowdown = {"copy 1": 0.7, "PyDLL": 0.3, EMPTY: 0.0}
    rng = np.random.default_rng(0)
    busy = rng.random((RESTARTS, BLOCKS)) < 0.5
    record = timed({arm: np.log1p(busy * by) + rng.normal(0, 0.01, busy.shape) for arm, by in slowdown.items()})
    for block in record.blocks:
        level = PROBE * (2 if busy[block["restart"], block["block"]] else 1)
        block["probes"] = {f"{GIL}/{arm}": [level] * (PARTS + 1) for arm in slowdown}
    found = numbers.slowdowns(record).set_index("arm")
    for arm, true in slowdown.items():
        assert found.loc[arm].value == pytest.approx(1 + true, rel=0.02)
        assert found.loc[arm].low < found.loc[arm].value < found.loc[arm].high
    assert numbers.moved_by_company(record).at().value == pytest.approx(1.7 / 1.3, rel=0.02)
    assert sentences_of(MadeUp("measuring", copies=record))["prediction-4"].startswith("Yes: with company")


def test_a_batch_runs_all_its_loops_with_probes_around_each_part():
    class Arm:
        def __init__(self):
            self.counts = []

        def timeit(self, loops):
            self.counts.append(loops)
            return loops

    for loops in (1, 3, 4, 1001):
        arm = Arm()
        elapsed, probes = batch(arm, loops)
        assert elapsed == sum(arm.counts) == loops
        assert len(probes) == len(arm.counts) + 1 == min(loops, PARTS) + 1
        assert max(arm.counts) - min(arm.counts) <= 1
        assert min(probes) > 0


def test_where_all_is_asked_for_nothing_is_left_out():
    record = session(1, busy=0.4)
    whole = replace(record, sifted=False)
    assert np.isnan(record.times(*SLOW)).any()
    assert not np.isnan(whole.times(*SLOW)).any()


def test_a_session_hands_on_to_its_plans_that_all_is_asked_for():
    read = Golden("critical_sections")
    whole = read.with_company()
    for name in read.plans:
        assert read.timed(name).sifted
        assert not whole.timed(name).sifted
    assert "company" in read.record.processes("two at once")[0]
    assert "company" not in whole.record.processes("two at once")[0]
