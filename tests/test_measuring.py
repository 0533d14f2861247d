"""The chapter on measuring: the talk's method, what its numbers are made of, a benchmark step by step, the
exercises."""

import random
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import controls
from ffilab.judge.estimates import LEVEL, Share
from ffilab.judge.sentences import sentences_of
from ffilab.setup.catalogue import GIL
from notebooks.boundary import looks
from notebooks.measuring import exercise, experiment, numbers
from notebooks.measuring.experiment import COPIES
from tests.helpers.made_up import timed
from tests.helpers.of_chapter import Golden, result_of

# ---- the experiments ----


def test_the_talk_takes_its_samples():
    given = {"sources": experiment.SOURCES, "folder": experiment.LIBRARIES, "bindings": experiment.BINDINGS}
    found = result_of(GIL, experiment.four_bindings, given)
    here = [binding for binding in experiment.BINDINGS if binding not in looks.looked_up([GIL], False)[GIL]]
    assert found["bindings"] == here
    assert [len(values) for values in found["samples"]] == [195] * len(here)
    assert len(found["empty"]) == 195
    assert 0 < found["steps"][0] <= found["steps"][-1]


@pytest.mark.parametrize("first", [0, 1])
def test_the_talk_takes_its_samples_of_two_copies(label, first):
    given = {"sources": experiment.SOURCES, "library": experiment.LIBRARY, "function": "noop", "measured_first": first}
    samples = result_of(label, experiment.copies_as_the_talk, given)["samples"]
    assert [len(values) for values in samples] == [195, 195]


@pytest.mark.parametrize(
    ("function", "more"), [(experiment.one_after_the_other, {}), (experiment.interleaved, {"seed": 3})]
)
def test_steps_take_their_timings(function, more):
    outcome = experiment.step(function, **more).run()
    assert outcome.ended == "ok", outcome.error
    copies = [which for which, ns in outcome.result["timings"] if ns > 0]
    assert len(copies) == 60
    in_turns = all(sorted(copies[n : n + 2]) == [0, 1] for n in range(0, 60, 2))
    assert in_turns == (function is experiment.interleaved)
    assert (copies[:30] == [0] * 30) != in_turns


# ---- the talk's method ----


def processes(shifts):
    """Processes of the talk's method in which the second copy takes longer by so many ns."""
    rng = np.random.default_rng(3)
    samples = [[rng.normal(100 + extra, 5, 195).tolist() for extra in (0, shift)] for shift in shifts]
    return pd.DataFrame({"process": range(len(shifts)), "samples": samples, "steps": [[10, 20]] * len(shifts)})


def of_four(*means):
    """Processes in which each of the four bindings takes so many ns."""
    rng = np.random.default_rng(8)
    rows = [
        {"process": n, "bindings": experiment.BINDINGS, "samples": [rng.normal(ns, 5, 195).tolist() for ns in each]}
        for n, each in enumerate(means)
    ]
    return pd.DataFrame(rows)


def test_the_talks_method_calls_what_was_put_in_significant():
    pairs = numbers.pairs(processes([0, 10, 0, 10, 10]))
    assert numbers.significant(pairs).tolist() == [False, True, False, True, True]
    assert numbers.tiny(pairs.assign(shift=[0.0, 0.001, 0.4, -0.001, -0.6])) == Share(2, 3)
    assert pairs["shift"].tolist() == pytest.approx([0, -0.09, 0, -0.09, -0.09], abs=0.02)
    found = numbers.of_bindings(of_four((280, 260, 190, 140), (260, 280, 190, 140), (280, 280, 190, 140)))
    assert numbers.all_separated(found) == Share(2, 3)
    pair = numbers.by_pair(found).iloc[0]
    assert (pair.different, pair.n) == (2, 3)
    assert set(pair.faster) == {"ctypes CDLL", "cffi ABI"}
    # Its test sees all values, its moments what Tukey's rule leaves.
    quiet = [[100.0 + n % 5 for n in range(190)] + [900.0] * 5] * 2
    moments, pairs = numbers.talk_tables(pd.DataFrame([{"bindings": ["one", "other"], "samples": quiet}]))
    assert list(moments.n) == [190, 190]
    assert pairs["U p"].iloc[0] == pytest.approx(1)


def test_the_page_names_the_pairs_that_processes_do_not_agree_on():
    runs = of_four(*[(280, 260, 190, 189.9), (260, 280, 190, 189.9)] * 3)
    page = sentences_of(Golden("measuring", {experiment.TALK: runs}))
    assert "ctypes CDLL vs cffi ABI, cffi ABI in 3 and ctypes CDLL in 3" in page["winners"]
    assert "ctypes in 3 of 6 processes and cffi in 3: too close" in page["first-table"]


# ---- one process, many processes, many layouts ----


def record(between, seed=4, restarts=40, offset=0.0, drift=0.0):
    """Restarts of ten blocks: noise of 1 % within, so much between processes; PyDLL takes two thirds of the time.

    Two processes are kept. offset: how far the two cores lie apart. drift: of the machine, from the first restart to
    the last.
    """
    rng, number = np.random.default_rng(seed), np.arange(restarts)[:, None]
    shared = dict.fromkeys(COPIES, 90.0) | {"PyDLL": 60.0, "empty loop": 5.0}
    cells = shared | dict.fromkeys((experiment.KEPT, experiment.REFERENCE), 95.0)
    process, machine = rng.normal(0, between, (restarts, 1)), offset * (number % 2) + drift * number / restarts
    logs = {
        arm: np.log(ns) + machine + process * (arm in shared) + rng.normal(0, 0.01, (restarts, 10))
        for arm, ns in cells.items()
    }
    return timed(logs, ns=1)


@pytest.mark.full
@pytest.mark.parametrize("machine", [{}, {"offset": 0.03, "drift": 0.05}])
def test_cores_that_differ_and_drift_are_no_spread_of_processes(machine):
    ratios = [numbers.restarted_over_kept(record(0.0, seed, **machine)).interval for seed in range(150)]
    # At the book's level one in a hundred lies wholly above 1, and one below.
    assert sum(interval.low > 1 for interval in ratios) <= 5
    assert sum(interval.high < 1 for interval in ratios) <= 5
    assert np.median([interval.value for interval in ratios]) == pytest.approx(1, abs=0.05)


TAILS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "Student's t": lambda rng, shape: rng.standard_t(3, shape),
    "some go wrong": lambda rng, shape: rng.normal(size=shape) * np.where(rng.random(shape) < 0.05, 5, 1),
    "two kinds": lambda rng, shape: 0.3 * rng.normal(size=shape) + np.sign(rng.normal(size=shape)),
}


@pytest.mark.full
@pytest.mark.parametrize("draw", TAILS.values(), ids=TAILS)
def test_ratio_of_paired_spreads_covers(draw):
    rng, outside, simulations = np.random.default_rng(45), 0, 500
    for _ in range(simulations):
        both, one, other = draw(rng, (3, 45))
        outside += numbers.ratio_of_spreads(1.5 * (both + one), both + other).at().excludes(1.5)
    # 500 simulations know 2 % to about 1.3 points, two standard errors.
    assert outside / simulations <= 1 - LEVEL + 0.02


def test_a_ratio_of_spreads_needs_values():
    assert not numbers.ratio_of_spreads(np.zeros(2), np.zeros(2)).at().is_known


def test_spread_of_processes_and_of_layouts_is_seen_where_there_is_one():
    """And where there is one, intervals over the blocks of one process are too narrow."""
    assert numbers.restarted_over_kept(record(0.05)).interval.low > 3
    apart, alike = (numbers.pseudo_replication(record(spread)) for spread in (0.05, 0.0))
    by_chance = numbers.WIDTHS[2]
    assert apart["restarts"].value > 2 * apart[by_chance].high
    assert alike[by_chance].low < alike["restarts"].value < alike[by_chance].high
    rng, drawn = np.random.default_rng(1), np.repeat(np.arange(40), 8)
    luck = rng.normal(0, 0.03, 40)[drawn] + rng.normal(0, 0.01, 320)
    copies = timed({COPIES[0]: (np.log(1.5) + luck)[:, None], "PyDLL": np.zeros((320, 1))}, drawn)
    levels = numbers.levels(copies)
    assert levels[numbers.LAYOUT].low < 0.03 < levels[numbers.LAYOUT].high
    assert levels[numbers.BELOW].low < 0.01 < levels[numbers.BELOW].high


def test_where_each_layout_ran_once_single_layouts_say_nothing():
    logs = {COPIES[0]: np.random.default_rng(3).normal(0, 0.01, (6, 1)), "PyDLL": np.zeros((6, 1))}
    assert numbers.by_layout(timed(logs, range(6))).empty
    none = timed(logs)
    assert numbers.by_layout(none).empty
    assert not numbers.levels(none)


def test_a_copy_that_differs_withholds_the_loaders():
    equal, different = record(0.01), record(0.01)
    for block in different.blocks:
        block["ns"][f"{GIL}/{COPIES[1]}"] *= 1.1
    for found, alarms in ((equal, 0), (different, 2)):
        assert numbers.alarms(found).value == alarms
        checks = controls.settled(numbers.controls(SimpleNamespace(timed={"copies": found}.get)))
        assert [check.source for check in checks if not check.passed] == ["copies"] * alarms


def timings(order):
    """Of two copies in this order, about 100 ns each."""
    return [[which, ns] for which, ns in zip(order, np.random.default_rng(0).normal(100, 1, len(order)))]


@pytest.mark.parametrize(
    ("luck", "drift", "alarming"), [(0, 0, set()), (0, 0.001, {1}), (0.03, 0, {1, 2}), (0.03, 0.001, {1, 2})]
)
def test_each_step_mends_what_it_is_for(luck, drift, alarming):
    """luck: how far copies of one process lie apart. drift: of the machine, by each turn."""
    rng = np.random.default_rng(0)

    def taken(step):
        turns = [0] * 30 + [1] * 30 if step == "one_after_the_other" else rng.permuted([[0, 1]] * 30, axis=1).ravel()
        own = rng.normal(0, luck, 2)
        logs = [own[which] + drift * at + rng.normal(0, 0.01) for at, which in enumerate(turns)]
        return {"step": step, "timings": [[which, 100 * np.exp(log)] for which, log in zip(turns, logs)]}

    one = [taken(step) for _ in range(60) for step in ("one_after_the_other", "interleaved")]
    again = [taken("interleaved") for _ in range(60 * experiment.OF_EACH)]
    frames = (pd.DataFrame(rows).assign(process=range(len(rows))) for rows in (one, again))
    shares = numbers.false_alarms(numbers.benchmarks(*frames))
    assert {step: share.trials for step, share in shares.items()} == {1: 60, 2: 60, 3: 60}
    assert {step for step, share in shares.items() if share.at().low > 1 - LEVEL} == alarming


def test_a_step_without_a_whole_benchmark_is_left_out():
    steps = {"one_after_the_other": [0] * 30 + [1] * 30, "interleaved": [0, 1] * 30}
    one = pd.DataFrame([{"step": step, "timings": timings(order)} for step, order in steps.items()])
    lacking = pd.concat([one[one.step == "interleaved"]] * (experiment.OF_EACH - 1), ignore_index=True)
    one, lacking = (frame.assign(process=range(len(frame))) for frame in (one, lacking))
    assert set(numbers.false_alarms(numbers.benchmarks(one, lacking))) == {1, 2}


# ---- the exercises ----


def test_flaws_are_named():
    assert all("open" in line for line in exercise.check_flaws({}))
    assert all("right" in line for line in exercise.check_flaws(exercise.KEYWORDS))
    assert "not so; it mends two functions" in exercise.check_flaws({**exercise.KEYWORDS, "B": "order"})[1]
    assert "Choose from" in exercise.check_flaws({**exercise.KEYWORDS, "C": "magic"})[2]


def repaired(start, processes=30, batches=20, one_process=False, order=lambda: random.sample("fg", 2)):
    """Ratios of g to f: of each process, or of each batch of one process. order: in which a batch measures the two."""
    time_of, ratios = None, []
    for _ in range(processes):
        time_of = time_of if time_of and one_process else start()
        taken = {"f": [], "g": []}
        for _ in range(batches):
            for name in order():
                taken[name].append(time_of(name))
        ratios.append(np.median(taken["g"]) / np.median(taken["f"]))
    return ratios


@pytest.mark.parametrize(
    ("benchmark", "says"),
    [
        (repaired, "Right"),
        (lambda start: repaired(start, batches=1, one_process=True), "one process, whose luck"),
        (lambda start: repaired(start, batches=1, order=lambda: "f" * 20 + "g" * 20), "drift counts as a difference"),
        (lambda start: repaired(start, order=lambda: "fg"), "the position counts as a difference"),
        (lambda start: [1 / ratio for ratio in repaired(start)], "misses a real difference"),
        (lambda start: repaired(start, processes=2), "at least 3"),
        (lambda start: [1.0, 1.0, 1.0], "timings of both"),
        (lambda start: [start()("h")], "does not run"),
        (lambda start: repaired(start, processes=100), "2,000 timings at most"),
        (lambda start: None, "does not run"),
    ],
)
def test_a_repaired_benchmark_is_checked(benchmark, says):
    lines = exercise.check_benchmark(benchmark)
    assert says in lines[-1]
    assert ("Right" in lines[-1]) == (benchmark is repaired)
