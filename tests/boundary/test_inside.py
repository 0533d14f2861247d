"""The chapter on the boundary: profiles and call paths say what was put in; the choice of a binding, sizes."""

import shutil
import subprocess

import pytest

from ffilab.measure.instructions import Node
from ffilab.run.paths import NATIVE
from ffilab.setup.catalogue import GIL
from notebooks.boundary import exercise, inside, looks, tools
from notebooks.boundary.experiment import BINDINGS
from tests.helpers.of_chapter import Golden

RECORD = Golden("boundary").timed("matrix")


@pytest.mark.parametrize(
    ("choice", "parser", "plugin"),
    [
        ({}, "still open", "still open"),
        ({"parser": "ctypes CDLL", "plugin": "PyO3"}, "not correct", "not correct"),
        ({"parser": "pybind11", "plugin": "ctypes PyDLL"}, "not yet fast", "not correct"),
        ({"parser": "C API", "plugin": "ctypes CDLL"}, "by hand", "not yet fast"),
    ],
)
def test_the_choice_of_a_binding_is_checked(choice, parser, plugin):
    rules = tools.contracts(Golden("boundary").frame("awkward arguments"))
    first, second = exercise.check_binding(choice, RECORD, rules)
    assert parser in first
    assert plugin in second


# ---- profiles and call trees ----


def profiled(taken: float, libffi: float, rest: float = 20, how: str = "perf cpu-clock") -> dict:
    """A profile of one process, with samples in and beside the two groups that A10 speaks of, and in the rest of
    ctypes."""
    samples = {
        "ffi_call": libffi,
        "take_gil": taken,
        "PyCFuncPtr_call": rest,
        "_PyEval_EvalFrameDefault": 100,
        "boundary_pyo3": 9,
    }
    return {"how": how, "costs": [[symbol, "object", count] for symbol, count in samples.items()]}


def test_what_is_next_stays_open_where_it_depends_on_the_grouping():
    """libffi has more than any function of ctypes, and less than all of them."""

    def found(callproc: float, slot: float):
        costs = [
            ["ffi_call", "", 100.0],
            ["[.] _ctypes_callproc", "", callproc],
            ["[.] PyCFuncPtr_call.cold", "", slot],
        ]
        looks = [{"how": "perf cpu-clock", "costs": costs}] * 4
        return inside.next_bottleneck({GIL: {"ctypes PyDLL": looks}}).interval

    assert found(80, 70).low < 0.5 < found(80, 70).high
    assert found(200, 70).high < 0.5 < found(20, 30).low


CTYPES = [
    Node(0, "_PyEval_EvalFrameDefault", 100, 1.0),
    Node(1, "PyObject_Vectorcall", 95, 0.95),
    Node(2, "PyCFuncPtr_call", 90, 0.9),
    Node(3, "_ctypes_callproc", 80, 0.8),
    Node(4, "PyCSimpleType_from_param", 20, 0.2),
    Node(4, "ffi_call", 10, 0.1),
    Node(4, "PyEval_RestoreThread", 10, 0.1),
    Node(4, "PyEval_SaveThread", 5, 0.05),
]
PYO3 = [
    Node(0, "_PyEval_EvalFrameDefault", 100, 1.0),
    Node(1, "pyo3::impl_::trampoline::fastcall_cfunction_with_keywords", 60, 0.6),
    Node(2, "boundary_pyo3::__pyfunction_add_one", 40, 0.4),
]


def test_a_call_path_is_that_of_the_diagram_or_is_not():
    def is_met(binding, tree):
        return inside.links(tree, binding).met.all()

    assert is_met("ctypes CDLL", CTYPES)
    assert is_met("PyO3", PYO3)
    # All functions are there; libffi is called by something else.
    moved = [*(node for node in CTYPES if node.function != "ffi_call"), Node(1, "ffi_call", 10, 0.1)]
    assert not is_met("ctypes CDLL", moved)
    for left_out in range(2, len(CTYPES)):
        assert not is_met("ctypes CDLL", CTYPES[:left_out] + CTYPES[left_out + 1 :]), CTYPES[left_out]
    for detour in ("ffi_call", "_PyObject_MakeTpCall"):
        assert not is_met("PyO3", [*PYO3, Node(1, detour, 1, 0.01)])
    assert not is_met("PyO3", PYO3[:1])


# ---- smaller experiments ----


@pytest.mark.skipif(not shutil.which("strip"), reason="needs strip")
def test_sizes_leave_out_symbols_and_debug_information(tmp_path):
    assert all(looks.built(binding) for binding in set(BINDINGS) - set(looks.looked_up([GIL], False)[GIL]))
    source = NATIVE / "boundary" / "library" / "boundary.c"
    with_all, without = tmp_path / "with.so", tmp_path / "without.so"
    for target, flag in ((with_all, "-g"), (without, "-s")):
        subprocess.run(["cc", flag, "-shared", "-fPIC", source, "-o", target, "-lm"], check=True)
    assert looks.stripped(with_all) == without.stat().st_size < with_all.stat().st_size


def test_lines_of_code_leave_out_comments_and_docstrings(tmp_path):
    (tmp_path / "a.py").write_text(
        '"""Docstring."""\n\n# comment\nx = 1  # why\n\n\ndef f():\n    """Doc."""\n    return x\n'
    )
    assert looks.lines_of_code(tmp_path / "a.py") == 3
    (tmp_path / "a.c").write_text("/* one\n   two */\nint x; // here\n\nint y;\n")
    assert looks.lines_of_code(tmp_path / "a.c") == 2
