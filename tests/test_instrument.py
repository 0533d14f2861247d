"""The instrument: what is disturbed and measured again, description, second and third axis, two runs compared."""

import os
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffilab import machine, settings
from ffilab.bench import instructions, noise, profile, runner
from ffilab.bench.plan import controls, plan
from ffilab.bench.record import Record
from ffilab.budget import BUDGETS
from ffilab.errors import UserError
from ffilab.judge import description, runs, statistics
from ffilab.judge.estimates import Location
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.measuring.contest import noop, spin

pytestmark = pytest.mark.usefixtures("quiet_progress")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ({}, ""),
        ({"strangers_s": 0.04, "wall_s": 0.06}, ""),  # four ticks may be the grain of the clock
        ({"strangers_s": 0.06, "wall_s": 0.3}, "other load"),
        ({"strangers_s": 0.06, "wall_s": 0.5}, ""),
        ({"throttled_s": 0.06, "wall_s": 2.0}, "quota"),
        ({"throttled_s": 0.06, "wall_s": 4.0}, ""),
        ({"steal_s": 0.06, "wall_s": 2.0}, "stolen time"),
        ({"steal_s": 0.02, "wall_s": 0.1}, ""),
        ({"steal_s": 1.0, "strangers_s": 1.0, "wall_s": 1.0}, "other load"),
    ],
)
def test_what_disturbed_is_told_by_what_happened(line, word):
    assert noise.disturbed(line) == word


@given(st.lists(st.integers(1, 10**12), min_size=8, max_size=8))
def test_the_rule_never_looks_at_a_time(times):
    blocks = [
        {"restart": n // 4, "ns": {"k/a": ns}, "strangers_s": 0.1 * (n in (2, 6)), "wall_s": 0.1}
        for n, ns in enumerate(times)
    ]
    assert noise.discard(blocks, [0, 1]).blocks == {2, 6}


def test_disturbances_are_said_in_a_sentence():
    assert noise.said(noise.Disturbed(0, 0, 40), "", "processes") == "none of 40 processes was disturbed"
    told = noise.said(noise.Disturbed(12, 1, 400), "quota", "processes")
    assert told == "12 of 400 processes were measured again, 1 left out: quota"
    assert "more than half" in noise.said(noise.Disturbed(20, 30, 40), "quota", "processes")


def test_there_are_four_pairs_of_controls_and_two_on_each_interpreter():
    pairs = {number: sum(arm.group == "shared" for arm in controls(number)) // 2 for number in (1, 2, 3, 6)}
    assert pairs == {1: 4, 2: 2, 3: 2, 6: 2}


# ---- which restarts a run makes ----


def restarts_of(is_disturbed, given=(0, 1, 2, 3), blocks=4, wall_s=None):
    """The restarts of a run, by layout, blocks and whether again; is_disturbed(restart, block)."""
    made, done, found = SimpleNamespace(blocks=blocks, wall_s=wall_s), [], []
    for number, (layout, count, again) in enumerate(runner.all_turns(made, list(given), done, random.Random(1))):
        found.append((layout, count, again))
        done += [
            {"layout": layout, "again": again, "strangers_s": float(is_disturbed(number, block)), "wall_s": 1.0}
            for block in range(count)
        ]
    return found


def test_layouts_that_lost_blocks_get_them_again_and_others_nothing():
    assert restarts_of(lambda restart, block: False) == [(layout, 4, False) for layout in range(4)]
    lost = {(1, 0): 1, (1, 3): 1, (2, 1): 1}
    assert sorted(restarts_of(lambda *place: place in lost)[4:]) == [(1, 2, True), (2, 1, True)]
    # Of ten blocks one is not worth a restart.
    assert len(restarts_of(lambda *place: place == (0, 0), blocks=10)) == 4


def test_half_of_the_blocks_are_measured_again_at_most_and_again_while_they_stay_disturbed():
    always = restarts_of(lambda restart, block: True)
    assert sum(count for _, count, again in always if again) == 8
    # One layout whose first repair is disturbed too.
    found = restarts_of(lambda restart, block: restart in (1, 4))
    assert found[4:] == [(1, 4, True), (1, 4, True)]


def test_without_layouts_whole_restarts_are_added():
    found = restarts_of(lambda restart, block: restart == 2 or (restart, block) == (0, 0), given=[None] * 4)
    assert found[4:] == [(None, 4, True)]


def test_a_wall_time_ends_a_run_and_nothing_is_measured_again():
    assert len(restarts_of(lambda restart, block: True, given=[0] * 100, wall_s=0.0)) == runner.LEAST_RESTARTS
    assert len(restarts_of(lambda restart, block: True, given=[0] * 20, wall_s=60)) == 20


def test_discarded_blocks_are_nan_and_the_comparison_goes_on():
    rng = np.random.default_rng(1)
    blocks = []
    for restart in range(12):
        for number in range(10):
            bad = number == 3
            ns = {"k/a": 3_000_000 if bad else int(1.1e6 * rng.normal(1, 0.01)), "k/b": 1_000_000, "k/empty loop": 1000}
            blocks.append({"restart": restart, "ns": ns, "steal_s": float(bad), "wall_s": 1.0})
    run = {"plan": {"seed": 1, "interpreters": ["k"], "blocks": 10}}
    record = Record(None, run, loops=dict.fromkeys(ns, 1000), blocks=blocks)
    assert np.isnan(record.times("k", "a")).sum() == 12
    ratio = statistics.compare(record, ("k", "a"), ("k", "b")).ratio
    assert ratio.low <= 1.1 <= ratio.high


def test_cores_are_usable_ones():
    core = machine.Cores().next()
    assert core is None or core in os.sched_getaffinity(0)


def test_description_matches_its_definitions():
    rng = np.random.default_rng(2)
    a, b = rng.normal(10, 1, 300), rng.normal(12, 1, 300)
    table = description.moments({"a": a}).iloc[0]
    assert table["cv"] == pytest.approx(a.std(ddof=1) / a.mean())
    assert table["MAD"] == pytest.approx(1, abs=0.15)
    pair = description.pairs({"a": a, "b": b}).iloc[0]
    assert pair["faster"] == "a"
    assert pair["Cliff's delta"] == pytest.approx(np.mean(np.sign(np.subtract.outer(a, b))), abs=1e-12)
    assert pair["shift"] == pytest.approx(-2 / 12, abs=0.02)
    assert description.tukey(np.array([1.0, 2, 3, 4, 1000])).max() == 4


def test_samples_that_are_all_equal_do_not_differ():
    """A clock with coarse steps gives one value for everything."""
    pair = description.pairs({"a": np.full(120, 150), "b": np.full(110, 150)}).iloc[0]
    assert (pair["U p"], pair["BH p"], pair["faster"], pair["shift"]) == (1, 1, "neither", 0)


@pytest.mark.full
@pytest.mark.skipif(instructions.available() is not None, reason=str(instructions.available()))
def test_instruction_count_is_repeatable_to_a_tenth():
    arm = noop("CDLL")
    first, second = (instructions.per_call([GIL], [arm])[GIL, "CDLL"] for _ in range(2))
    assert first == pytest.approx(second, abs=0.1)
    assert first > 100


@pytest.mark.full
@pytest.mark.skipif(instructions.available() is not None, reason=str(instructions.available()))
def test_instruction_count_sees_what_was_injected():
    counts = instructions.per_call([GIL], [spin("short", 100), spin("long", 1100)])
    per_iteration = (counts[GIL, "long"] - counts[GIL, "short"]) / 1000
    assert per_iteration == pytest.approx(round(per_iteration), abs=0.01)
    assert 1 <= per_iteration <= 8


@pytest.mark.parametrize(
    ("symbol", "binary", "group"),
    [
        ("[.] take_gil", "python3.14", "GIL and thread state"),
        ("[.] pthread_mutex_lock", "libc.so.6", "GIL and thread state"),
        ("[.] ffi_call_int", "libffi.so.8", "libffi"),
        ("[.] _ctypes_callproc", "_ctypes.cpython-314.so", "ctypes and cffi, the rest"),
        ("[.] PyCFuncPtr_call.cold", "_ctypes.cpython-314.so", "ctypes and cffi, the rest"),
        ("[.] ConvParam", "_ctypes.cpython-314.so", "conversion, by name"),
        ("[.] PyCSimpleType_from_param_impl", "_ctypes.cpython-314.so", "conversion, by name"),
        ("[.] i32_set", "_ctypes.cpython-314.so", "conversion, by name"),
        ("[.] getset_get", "python3.14", "interpreter"),
        ("[.] PyLong_AsLong", "python3.14", "conversion, by name"),
        ("[.] pyo3::conversions::std::num::extract", "boundary_pyo3.so", "conversion, by name"),
        ("[.] pyo3::impl_::trampoline::trampoline", "boundary_pyo3.so", "code of the binding"),
        ("[.] _Py_qsbr_attach", "python3.14t", "GIL and thread state"),
        ("[.] _PyCriticalSection_BeginSlow", "python3.14t", "locks of objects"),
        ("[.] _PyEval_EvalFrameDefault", "python3.14", "interpreter"),
        ("[k] do_syscall_64", "[kernel.kallsyms]", "operating system"),
        ("[.] noop", "libloaders.so", "library"),
    ],
)
def test_groups_of_symbols(symbol, binary, group):
    counted = profile.grouped({"costs": [[symbol, binary, 7]]})
    assert {name for name, cost in counted.items() if cost} == {group}
    assert counted[group] == 7


@pytest.mark.full
@pytest.mark.skipif(profile.perf_available() is not None, reason=str(profile.perf_available()))
def test_profile_groups_sum_to_the_whole_and_the_gil_shows_in_cdll():
    seen = profile.look(GIL, noop("CDLL"), 3_000_000)
    costs = [cost for _, _, cost in seen["costs"]]
    groups = profile.grouped(seen)
    assert seen["how"] == "perf cpu-clock"
    assert sum(groups.values()) == sum(costs)
    assert groups["GIL and thread state"] > 0
    assert costs == sorted(costs, reverse=True)
    # The start of the process, with its system calls and page faults, is not among them.
    assert groups["operating system"] < 0.03 * sum(costs)


@pytest.fixture(scope="module")
def two_records(tmp_path_factory):
    settings.tell(progress=str(tmp_path_factory.mktemp("progress") / "p.json"))
    arms, labels = [noop("CDLL"), noop("PyDLL", "PyDLL")], [GIL, FREE_THREADED]
    found = [runner.run(plan("pair", arms, labels, BUDGETS["smoke"]), tmp_path_factory.mktemp("run")) for _ in range(2)]
    settings.tell(progress=None)
    return found


@pytest.mark.full
def test_two_runs_are_compared_by_their_ratios(two_records):
    text = runs.report(tuple(record.path for record in two_records))
    assert "two runs, not one" in text
    for label in (GIL, FREE_THREADED):
        assert f"  {label}: the yardstick, 'control 1'," in text
    table = runs.compare_runs(*two_records)
    assert set(table.interpreter) == {GIL, FREE_THREADED}
    assert {"CDLL", "PyDLL", "control 1"} == set(table.arm)


@pytest.mark.full
def test_runs_without_a_common_cell(two_records):
    other = Record(None, {"plan": {"interpreters": [], "arms": [], "blocks": 1}})
    with pytest.raises(UserError, match="in common"):
        runs.compare_runs(other, two_records[0])


def test_a_finding_is_an_interval_without_one():
    def comparison(ratio, error):
        estimate = Location(np.log(ratio), error, 19, 20, log=True)
        return statistics.Comparison(("", ""), ("", ""), estimate, estimate.at(), estimate.at())

    assert statistics.finding(comparison(1.05, 0.005)) == "slower"
    assert statistics.finding(comparison(0.95, 0.005)) == "faster"
    assert statistics.finding(comparison(1.001, 0.0001)) == "slower"
    assert statistics.finding(comparison(1.05, 0.05)) is None


@pytest.mark.full
def test_a_record_of_child_processes_is_not_compared_with_one_of_arms(two_records):
    children = replace(two_records[0], run={"plan": {"seed": 1, "interpreters": [GIL], "blocks": 0}})
    with pytest.raises(UserError, match="child processes"):
        runs.compare_runs(children, two_records[0])
