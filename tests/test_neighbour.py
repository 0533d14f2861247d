"""A neighbour on the core: times are those of a quiet one, and intervals know what the correction does not. Seeds are fixed."""

import itertools

import numpy as np
import pytest
from made_up import timed

from ffilab.bench import neighbour
from ffilab.bench.record import merged
from ffilab.bench.worker import PARTS, batch
from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.provision.catalogue import GIL
from notebooks.measuring import figures

RESTARTS, BLOCKS, PROBE = 20, 8, 30_000
FAST, SLOW = (GIL, "fast"), (GIL, "slow")
# What company multiplies times by: the ratio of the two depends on it.
SLOWDOWN = {"fast": 0.7, "slow": 0.3}


def session(seed, busy, ratio=1.5, probes=True, scatter=0.02, level=PROBE):
    """Two arms, layouts that scatter, and a neighbour that is there for about this share of the work, in bursts."""
    rng = np.random.default_rng(seed)
    state = np.cumsum(rng.normal(0, 1, (RESTARTS, BLOCKS, 2 * PARTS)).reshape(-1)).reshape(RESTARTS, BLOCKS, -1)
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


@pytest.mark.parametrize("busy", [0.2, 0.5, 0.8])
def test_the_ratio_is_that_of_a_quiet_core(busy):
    found = ratio(session(1, busy))
    assert found.at().low <= 1.5 <= found.at().high
    assert found.shared > 0


def test_intervals_hold_the_truth_and_other_sessions_whatever_the_neighbour_does():
    rng = np.random.default_rng(0)
    sessions = [session(seed, busy) for seed, busy in enumerate(rng.uniform(0.1, 0.9, 60))]
    estimates = [ratio(one) for one in sessions]
    assert np.mean([one.at().low <= 1.5 <= one.at().high for one in estimates]) >= 0.93
    pairs = list(itertools.permutations(estimates, 2))
    assert np.mean([one.at().low <= np.exp(other.centre) <= one.at().high for one, other in pairs]) >= 0.87
    for one in sessions:
        for block in one.blocks:
            del block["probes"]
    blind = [ratio(one) for one in sessions_again(sessions)]
    assert np.mean([one.at().low <= 1.5 <= one.at().high for one in blind]) < 0.6


def sessions_again(sessions):
    """The same, as if read anew."""
    return [one.__class__(**{key: getattr(one, key) for key in one.__dataclass_fields__}) for one in sessions]


def test_a_quiet_core_and_a_record_without_probes_are_left_as_they_are():
    quiet, old = session(2, 0), session(2, 0, probes=False)
    assert np.array_equal(quiet.times(*SLOW), old.times(*SLOW))
    assert ratio(quiet).shared == ratio(old).shared == 0
    assert "no company" in quiet.noise.report
    assert "company" not in old.noise.report


def test_slowdowns_are_found():
    record = session(3, 0.5)
    for arm, slowdown in SLOWDOWN.items():
        found = record.corrected(GIL, arm)
        assert found.slowdown == pytest.approx(slowdown, abs=4 * found.slowdown_error)
        assert found.company == pytest.approx(0.5, abs=0.1)
    assert "% of the work something else ran on the same core" in record.noise.report


def test_the_pulls_of_both_sides_of_a_ratio_go_off_against_each_other():
    record = session(4, 0.5)
    parts = statistics.quotient(SLOW, FAST)
    pulls = record.corrected(*SLOW).pulls - record.corrected(*FAST).pulls
    assert statistics.corrections(record, parts, log=True) == (neighbour.error(pulls), RESTARTS - 1)
    assert statistics.quotient(SLOW, SLOW) == {}
    assert statistics.ratio_over_units(record, SLOW, SLOW).at().half_width == 0


def test_a_difference_is_off_by_nanoseconds():
    record = session(5, 0.5)
    alone = statistics.corrections(record, {SLOW: 1.0}, log=False)[0]
    relative = statistics.corrections(record, {SLOW: 1.0}, log=True)[0]
    assert alone == pytest.approx(relative * np.nanmedian(record.times(*SLOW)))
    assert statistics.compare(record, SLOW, FAST, empty="fast").difference.is_known


def test_each_session_has_a_quiet_level_of_its_own():
    """A machine that is faster next time has no company for that."""
    both = merged([session(6, 0, level=PROBE), session(7, 0, level=2 * PROBE)])
    assert all(not share.any() for share in both.company.values())


def test_discarded_blocks_teach_nothing():
    record = session(8, 0.5)
    for block in record.blocks:
        if block["block"] == 0:
            block["steal_s"] = 1e9
            block["ns"] = dict.fromkeys(block["ns"], 1e12)
    assert np.isnan(record.times(*SLOW)[:, 0]).all()
    assert record.corrected(*SLOW).slowdown == pytest.approx(SLOWDOWN["slow"], abs=0.1)
    found = ratio(record)
    assert found.at().low <= 1.5 <= found.at().high


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


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        (Interval(0.9, 0.85, 0.95), "depends on it"),
        (Interval(1.1, 1.05, 1.15), "depends on it"),
        (Interval(1.0, 0.95, 1.05), "was not found out"),
        (None, "too little to tell"),
    ],
)
def test_the_chapter_says_whether_a_ratio_depends_on_the_neighbour(moved, said):
    assert said in figures.company_in_words(0.4 if moved else 0.001, moved)
