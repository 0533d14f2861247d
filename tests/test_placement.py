"""The chapter on code placement: the simulation shows the geometry that was put in; chance is not taken for an
effect."""

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import verdicts
from ffilab.judge.claims import declared
from ffilab.judge.estimates import LEVEL, Counted
from ffilab.judge.numbers import Number
from ffilab.judge.processes import exact, extremes, range_without_noise, ratio_of_groups
from ffilab.judge.rules import Conformance
from ffilab.measure import instructions
from ffilab.measure.case import Program
from notebooks.placement import counting, exercise, experiment, geometry, lots
from notebooks.placement.counting import USUAL, WESTMERE, Cache
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, SPREAD

pytestmark = pytest.mark.usefixtures("quiet_progress", "quiet_machine")
VALGRIND = pytest.mark.tool("valgrind")


# ---- the experiments ----


@VALGRIND
@pytest.mark.parametrize("cache", [USUAL, pytest.param(WESTMERE, marks=pytest.mark.full)], ids=lambda cache: cache.name)
def test_the_simulated_cache_has_the_ways_that_were_put_in(cache):
    """At the distance of one way, as many functions as there are ways run without a miss, and one more never does."""
    fit = cache.ways * geometry.sets_met(cache, APART)
    assert experiment.misses_per_call(APART, fit, cache) == 0
    assert experiment.misses_per_call(APART, fit + 2, cache) > 0.9


@VALGRIND
def test_as_many_pages_in_all_sets_miss_nothing():
    """A simulator without a TLB must see no difference between it and few pages."""
    assert experiment.misses_per_call(SPREAD, MANY, USUAL) == experiment.misses_per_call(DENSE, MANY, USUAL) == 0


def test_the_programs_measure_every_case(session):
    program, loops = (Program((path, "time", "{seed}")) for path in (experiment.FUNCTIONS, experiment.LOOPS))
    runs = session.run("distances", [program], 2)
    assert set(runs.distance) == {16, 64, 128, 256, 512, 1024, 2048, 4096, 4160, 8192}
    assert (runs.groupby(["process", "distance", "n"]).size() == 1).all()
    assert runs[runs.distance == APART].n.max() == 256
    assert (runs.ns > 0).all()
    loops = session.run("alignment of a loop", [loops], 1)
    assert sorted(loops[loops.process == 0].offset) == list(range(64))


def test_the_environment_has_the_size_that_was_asked_for(session):
    prefixes = [[], *([fixed] if (fixed := instructions.fixed_addresses()) else [])]
    cases = [experiment.padded(prefix, size) for prefix in prefixes for size in (0, 2048)]
    runs = session.run("size of the environment", cases, 2)
    assert set(runs.bytes) == {0, 2048}
    assert True in set(runs.random)
    assert (runs.ns > 0).all()
    fixed = runs[~runs.random]
    assert len(fixed.drop_duplicates(["bytes", "stack"])) == fixed.bytes.nunique()


def test_the_system_says_what_its_cache_is(tmp_path):
    folder = tmp_path / "index1"
    folder.mkdir()
    facts = {"type": "Instruction", "size": "48K", "ways_of_associativity": "12", "coherency_line_size": "64"}
    for name, value in facts.items():
        (folder / name).write_text(value + "\n")
    assert Cache(**counting.reported_cache(tmp_path)) == Cache("this machine", 49152, 12, 64)
    assert Cache(**counting.reported_cache(tmp_path / "nothing")) == USUAL


# ---- the geometry ----


@pytest.mark.parametrize(("ways", "of_pages"), [(12, 1.0), (12, 2.0), (1000, 2.0), (1000, 1.0)])
def test_the_ways_are_read_off_the_clock_and_pages_are_told_from_sets(ways, of_pages):
    """4 ns from the first function on that has no way left, 1 ns before; 2048 bytes has twice the ways. of_pages: what
    a page costs."""
    rng, room, rows = np.random.default_rng(2), {APART: ways, 2048: 2 * ways}, []
    for distance in (PACKED, DENSE, 2048, SPREAD, APART):
        for n in (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 64, 128, 256):
            ns = (4.0 if n > room.get(distance, 1e9) else 1.0) * (of_pages if distance in (SPREAD, APART) else 1)
            rows += [(process, distance, n, ns * np.exp(rng.normal(0, 0.02))) for process in range(10)]
    runs = pd.DataFrame(rows, columns=["process", "distance", "n", "ns"])
    if of_pages == 1:
        kept, slow = (12, Counted(16)) if ways == 12 else (256, "none is beyond doubt")
        assert geometry.fits(runs, geometry.KEPT) == Counted(kept)
        assert geometry.fits(runs, geometry.SLOW) == slow
    assert geometry.slower_than(runs, SPREAD, DENSE, MANY).excludes(1) == (of_pages > 1)
    assert geometry.slower_than(runs, APART, SPREAD, MANY).excludes(1) == (ways == 12)


# ---- choosing the extremes ----


@pytest.mark.full
def test_extremes_of_noise_are_one():
    """Thirty cases that do not differ: the interval covers 1 about as often as it says, and its middle is 1."""
    rng = np.random.default_rng(5)
    found = [extremes(rng.normal(0, 0.03, (30, 10))) for _ in range(300)]
    assert np.mean([interval.low <= 1 <= interval.high for interval in found]) >= 0.9
    assert np.median([interval.value for interval in found]) == pytest.approx(1, abs=0.005)


def test_extremes_that_differ_are_found():
    rng, truth = np.random.default_rng(6), np.linspace(0, 0.1, 30)[:, None]
    found = [extremes(truth + rng.normal(0, 0.02, (30, 10))) for _ in range(30)]
    assert np.mean([interval.low > 1 for interval in found]) > 0.9
    assert np.median([interval.value for interval in found]) == pytest.approx(np.exp(0.083), abs=0.01)


@pytest.mark.full
@pytest.mark.parametrize("sd", [0.0, 0.03])
@pytest.mark.parametrize("noise", ["normal", "heavy tails", "far out"])
def test_the_range_without_noise_covers_the_truth(sd, noise):
    """Thirty orders whose true effects scatter by `sd`; ten rounds with a noise of 3 %."""
    rng = np.random.default_rng(7)
    truth = np.exp(sd * np.ptp(rng.normal(size=(20_000, 30)), axis=1).mean())

    def draw():
        errors = 0.02 * rng.standard_t(4, (30, 10)) if noise == "heavy tails" else rng.normal(0, 0.03, (30, 10))
        if noise == "far out":
            # One round in twenty-five runs a fifth faster, as was seen.
            errors = np.where(rng.random((30, 10)) < 0.04, -0.2, errors / 2)
        return range_without_noise(rng.normal(0, sd, (30, 1)) + errors).at()

    found = [draw() for _ in range(400)]
    assert np.mean([interval.low <= truth + 1e-9 and truth <= interval.high + 1e-9 for interval in found]) >= 0.92
    if sd == 0:
        # An interval without 1 although nothing differs.
        assert np.mean([interval.low > 1 for interval in found]) <= 0.05


def test_the_range_of_orders_gives_its_interval_at_any_level():
    rng = np.random.default_rng(8)
    found = range_without_noise(rng.normal(0, 0.02, (90, 1)) + rng.normal(0, 0.03, (90, 10)), 30)
    narrow, wide = found.at(0.8), found.at(LEVEL)
    assert wide.low < narrow.low < wide.value == narrow.value < narrow.high < wide.high
    # A range of thirty, however many were drawn; and noise that is no noise leaves the scatter of the cases alone.
    alone = range_without_noise(np.repeat(rng.normal(0, 0.02, (90, 1)), 3, axis=1), 30).at()
    assert alone.value == pytest.approx(np.exp(0.02 * 4.09), abs=0.02)
    assert range_without_noise(np.zeros((30, 10))).at().high == 1
    assert np.isnan(range_without_noise(np.zeros((30, 2))).at().value)


def test_two_groups_are_compared_with_the_noise_of_both():
    rng = np.random.default_rng(9)
    found = [ratio_of_groups(rng.normal(0.1, 0.06, 50), rng.normal(0.0, 0.02, 30)).interval for _ in range(400)]
    assert np.mean([interval.low <= np.exp(0.1) <= interval.high for interval in found]) >= 0.95
    assert ratio_of_groups(np.zeros(5), np.zeros(0)) is None


# ---- the claims ----


def test_the_hottest_functions_of_a_process_are_chosen_by_the_others():
    """In each process, other functions come out hottest by chance: none of them keeps the lead that it has there."""
    rng = np.random.default_rng(3)
    drawn = [rng.multinomial(1000, [1 / 40] * 40) for _ in range(60)]
    taken = [{"total": 1000, "hottest": {f"function {n}": int(k) for n, k in enumerate(counts)}} for counts in drawn]
    interval = lots.five_hottest({"what": "samples", "processes": taken}).interval
    own = np.mean([lots.share_of(profile, lots.hottest([profile])) for profile in taken])
    assert interval.low <= 5 / 40 <= interval.high < own
    counted = {"total": 1000, "hottest": {f"function {n}": 100 for n in range(10)}}
    found = lots.five_hottest({"what": "instructions", "processes": [counted]})
    assert found == Counted(0.5)


def test_a_planted_trap_decides_nothing():
    """Whatever the trap does, the word is that of what chance did."""
    for claim in declared("placement").claims:
        planted = [rule for rule in claim.tests if rule.part.startswith("planted")]
        assert all(not rule.decides for rule in planted)
        found = dict.fromkeys((rule.number for rule in claim.tests), Number(None, "not linked"))
        found |= {rule.number: Number(exact(1.0 if isinstance(rule, Conformance) else 5.0)) for rule in planted}
        assert verdicts.of_claim(claim, found).word == verdicts.OPEN


# ---- the exercises ----


def test_suspects_are_judged():
    assert all("still open" in line for line in exercise.check_verdicts({"suspect 1": "", "suspect 2": ""}))
    right = {name: verdict for name, (verdict, _) in exercise.TRUTH.items()}
    assert all(": right;" in line for line in exercise.check_verdicts(right))
    wrong = exercise.check_verdicts({"suspect 1": "placement", "suspect 2": "real"})
    assert "more instructions" in wrong[0]
    assert "the same instructions as before" in wrong[1]


@pytest.mark.parametrize(
    ("file", "replace", "instructions", "says"),
    [
        ("operations.h", "cold", 2_000_100, ""),
        ("operations.h", "cold", 1_500_000, "25% fewer instructions"),
        ("operations.h", "__attribute__((hot))", 2_000_000, "the page's own way"),
        ("report.h", "b", 2_000_000, "pages of their own"),
    ],
)
def test_the_check_of_the_mending(file, replace, instructions, says):
    counts = pd.DataFrame({"program": ["slow", "mended"], "instructions": [2_000_000, instructions]})
    wrong = " ".join(exercise.faults({"file": file, "find": "a", "replace": replace}, counts))
    assert says in wrong
    assert bool(says) == bool(wrong)
