"""The instrument: what is disturbed and measured again, description, second and third axis, two runs compared."""

import os
from dataclasses import replace

import numpy as np
import pytest
from of_chapter import noop

from ffilab.judge import description, runs, statistics
from ffilab.judge.estimates import Location
from ffilab.measure import instructions, profile, runner
from ffilab.measure.plan import plan
from ffilab.measure.record import Record
from ffilab.run import machine, settings
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED, GIL
from studies.contest import spin

pytestmark = pytest.mark.usefixtures("quiet_progress")


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
    # Where the quartiles are equal, as with a coarse clock, the talk's filter leaves everything.
    assert description.tukey(np.array([3.0] * 8 + [4, 1000])).max() == 1000


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
