"""The instrument: cores, second and third axis."""

import os

import numpy as np
import pytest

from ffilab.measure import instructions, profile
from ffilab.run import machine
from ffilab.setup.catalogue import GIL
from notebooks.boundary import description
from studies.contest import spin
from tests.helpers.of_chapter import noop

pytestmark = pytest.mark.usefixtures("quiet_progress")


def test_cores_are_usable_ones():
    core = machine.Cores().next()
    assert core is None or core in os.sched_getaffinity(0)


def test_samples_that_are_all_equal_do_not_differ():
    """A clock with coarse steps gives one value for everything."""
    pair = description.pairs({"a": np.full(120, 150), "b": np.full(110, 150)}).iloc[0]
    assert pair[["U p", "BH p", "faster", "shift"]].to_dict() == {"U p": 1, "BH p": 1, "faster": "neither", "shift": 0}


@pytest.mark.full
@pytest.mark.tool("valgrind")
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
@pytest.mark.tool("perf")
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
