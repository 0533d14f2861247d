"""The instrument: noise rule, adaptive runs, description, second and third axis, two runs compared."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from corner import noop, spin
from hypothesis import given
from hypothesis import strategies as st

from ffilab import machine, settings
from ffilab.bench import instructions, profile, runner
from ffilab.bench.noise import discard, noisy
from ffilab.bench.plan import EMPTY, MIN_RESTARTS, plan
from ffilab.bench.record import Record, read
from ffilab.budget import BUDGETS, Budget
from ffilab.errors import UserError
from ffilab.judge import description, runs, statistics
from ffilab.judge.estimates import LEVEL, Location
from ffilab.provision.catalogue import FREE_THREADED, GIL

pytestmark = pytest.mark.usefixtures("quiet_progress")


def block(restart, steal=0.0, involuntary=0, ns=100_000_000):
    return {"restart": restart, "ns": {"k/a": ns}, "steal_s": steal, "involuntary": involuntary}


def test_noise_rule_discards_stolen_and_interrupted_blocks_only():
    assert not noisy(block(0))
    assert noisy(block(0, steal=0.01))
    assert noisy(block(0, involuntary=50))
    assert not noisy(block(0, involuntary=5))


@given(st.lists(st.integers(1, 10**12), min_size=8, max_size=8))
def test_noise_rule_never_looks_at_a_time(times):
    """Whatever the times are: with the same noise per second, the same blocks go."""
    marks = [0, 0, 1, 0, 0, 0, 1, 0]
    blocks = [block(n // 4, steal=m * ns / 1e9, ns=ns) for n, (m, ns) in enumerate(zip(marks, times))]
    assert discard(blocks, 4).blocks == {2, 6}


def test_noise_rule_keeps_everything_where_noise_is_normal():
    blocks = [block(n // 4, steal=1.0) for n in range(16)]
    noise = discard(blocks, 4)
    assert noise.blocks == set()
    assert noise.restarts == [0, 1, 2, 3]
    assert "normal state" in noise.report


def test_a_noisy_restart_goes_whole_and_is_reported():
    blocks = [block(r, steal=float(r == 1)) for r in range(4) for _ in range(4)]
    noise = discard(blocks, 4)
    assert noise.restarts == [0, 2, 3]
    assert "4 of 16 blocks and 1 of 4 restarts" in noise.report


def test_discarded_blocks_are_nan_and_the_comparison_goes_on():
    rng = np.random.default_rng(1)
    blocks = []
    for restart in range(12):
        for number in range(10):
            bad = number == 3
            ns = {"k/a": 3_000_000 if bad else int(1.1e6 * rng.normal(1, 0.01)), "k/b": 1_000_000, "k/empty loop": 1000}
            blocks.append({"restart": restart, "ns": ns, "steal_s": float(bad)})
    run = {"plan": {"seed": 1, "interpreters": ["k"], "blocks": 10}}
    record = Record(None, run, loops=dict.fromkeys(ns, 1000), blocks=blocks)
    assert np.isnan(record.times("k", "a")).sum() == 12
    ratio = statistics.compare(record, ("k", "a"), ("k", "b")).ratio
    assert ratio.low <= 1.1 <= ratio.high


def test_cores_are_usable_ones():
    core = machine.Cores().next()
    assert core is None or core in os.sched_getaffinity(0)


def adaptive(folder, target, seconds, restarts=200):
    budget = Budget("test", restarts=restarts, blocks=4, seconds=seconds, batch_ms=0.5, scale=1, repeats=1)
    pair = ((GIL, "a"), (GIL, "b"))
    made = plan("adaptive", [noop("a"), noop("b")], [GIL], budget, target=target, watch=(pair,))
    return runner.run(made, folder, statistics.widest)


@pytest.mark.full
def test_adaptive_run_stops_when_it_is_narrow_enough_but_not_before_it_can_know(tmp_path):
    record = adaptive(tmp_path, target=10.0, seconds=60)
    assert len(record.restarts) >= MIN_RESTARTS
    # On a core with company, batches are left out, and a width is known later: never earlier than it had to.
    lines = record.path.read_text().splitlines(keepends=True)
    begins = [at for at, line in enumerate(lines) if json.loads(line)["kind"] == "restart"]
    for at in begins[MIN_RESTARTS:]:
        before = tmp_path / "before.jsonl"
        before.write_text("".join(lines[:at]))
        assert statistics.widest(read(before), [((GIL, "a"), (GIL, "b"))]) > 10


@pytest.mark.full
def test_adaptive_run_stops_when_its_time_is_spent(tmp_path):
    record = adaptive(tmp_path, target=0.0, seconds=3)
    assert MIN_RESTARTS <= len(record.restarts) < 200


@pytest.mark.full
def test_stopping_by_width_keeps_the_coverage():
    """Looking at the width again and again must not spoil the interval. Known truth: 0."""
    rng = np.random.default_rng(11)
    hits, simulations = 0, 1000
    for _ in range(simulations):
        values = rng.standard_t(3, 60) * 0.01
        n = MIN_RESTARTS
        while n < 60 and statistics.location_interval(values[:n]).half_width > 0.005:
            n += 2
        interval = statistics.location_interval(values[:n])
        hits += interval.low <= 0 <= interval.high
    # 1,000 simulations know a share of 98 % to about a point.
    assert LEVEL - 0.02 <= hits / simulations <= LEVEL + 0.012


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


def test_adjusted_p_values_are_those_of_benjamini_and_hochberg():
    assert statistics.adjusted([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.04, 0.04])
    assert statistics.adjusted([]) == []


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
    assert {"CDLL", "PyDLL", EMPTY} <= set(table.arm)


@pytest.mark.full
def test_runs_without_a_common_cell(two_records):
    other = Record(None, {"plan": {"interpreters": [], "arms": [], "blocks": 1}})
    with pytest.raises(UserError, match="in common"):
        runs.compare_runs(other, two_records[0])


def test_a_finding_is_an_interval_without_one():
    def comparison(ratio, error):
        estimate = Location(np.log(ratio), error, 19, 20, log=True)
        return statistics.Comparison(("", ""), ("", ""), estimate, estimate.at(), estimate.at(), 0.0)

    assert statistics.finding(comparison(1.05, 0.005)) == "slower"
    assert statistics.finding(comparison(0.95, 0.005)) == "faster"
    assert statistics.finding(comparison(1.001, 0.0001)) == "slower"
    assert statistics.finding(comparison(1.05, 0.05)) is None


@pytest.mark.full
def test_a_record_of_child_processes_is_not_compared(two_records):
    children = replace(two_records[0], run={"plan": {"seed": 1, "interpreters": [GIL], "blocks": 0}})
    with pytest.raises(UserError, match="child processes"):
        runs.compare_runs(children, two_records[0])
