"""Conformance: every binding of native/boundary returns the same for the same inputs, on every kernel present.

Where a tool's contract differs, CONTRACTS says how. Speeds are not tested.
"""

import json
import math
import runpy
import shutil
import subprocess
import time
from array import array
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffilab import kernels, native
from ffilab.paths import NATIVE, NATIVE_OUT
from ffilab.provision.catalogue import BY_LABEL

SOURCES = NATIVE / "boundary"
ARMS = runpy.run_path(str(SOURCES / "arms.py"))
BINDINGS, STANDS_IN = ARMS["BINDINGS"], ARMS["STANDS_IN"]
LABELS = [kernel.label for kernel in kernels.present()]
INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
TIMEOUT_S = 120


class Child:
    """One evaluating process per kernel; a new one after each crash."""

    def __init__(self, label):
        self._label, self._process = label, None

    def ask(self, binding, expression):
        """The value's repr, the name of the exception, or how the process died."""
        if self._process is None:
            python = kernels.load(BY_LABEL[self._label]).python
            self._process = subprocess.Popen(
                [python, "-I", SOURCES / "evaluate.py", NATIVE_OUT / "boundary"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        self._process.stdin.write(json.dumps({"binding": binding, "expression": expression}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait(TIMEOUT_S)
            self.close()
            return f"died with {code}"
        answer = json.loads(line)
        return answer.get("value", answer.get("error"))

    def close(self):
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None


@cache
def child(label):
    return Child(label)


@pytest.fixture(scope="module", autouse=True)
def no_child_left():
    yield
    for label in LABELS:
        child(label).close()


@cache
def unsupported(label):
    """Binding: reason, for those that this kernel cannot have."""
    kernel = kernels.load(BY_LABEL[label])
    reasons = {}
    for binding, (project, _, _) in BINDINGS.items():
        stand_in = STANDS_IN.get(project)
        reason = native.unsupported(SOURCES / project, kernel)
        if (SOURCES / project / "Cargo.toml").exists() and not shutil.which("cargo"):
            reason, stand_in = "no cargo on this machine", None
        if reason and not (stand_in and native.unsupported(SOURCES / stand_in, kernel) is None):
            reasons[binding] = reason
    return reasons


def bindings(label):
    return [binding for binding in BINDINGS if binding not in unsupported(label)]


def assert_all(expression, expected, but=()):
    for label in LABELS:
        for binding in bindings(label):
            if binding not in but:
                assert child(label).ask(binding, expression) == expected, (label, binding, expression)


@pytest.mark.parametrize("label", LABELS)
def test_every_supported_binding_is_built_and_the_others_say_why_not(label):
    for binding in BINDINGS:
        answer = child(label).ask(binding, "m.noop()")
        assert answer == ("ImportError" if binding in unsupported(label) else "None"), (binding, answer)


@pytest.mark.parametrize("label", [label for label in LABELS if label.endswith("t")])
def test_no_binding_turns_the_gil_on(label):
    for binding in bindings(label):
        assert child(label).ask(binding, "sys._is_gil_enabled()") == "False", binding


def few(function):
    return settings(max_examples=25, deadline=None)(function)


def test_noop():
    assert_all("m.noop()", "None")
    assert_all("m.answer()", "42")
    assert_all("m.noop_detached()", "None", but=["ctypes PyDLL"])


@few
@given(INT)
def test_int(x):
    assert_all(f"m.add_one({x})", str((x + 1 + 2**31) % 2**32 - 2**31))


@few
@given(st.tuples(INT, INT, INT, INT, INT))
def test_five_ints(numbers):
    assert_all(f"m.add_five(*{numbers})", str(sum(numbers)))


@few
@given(st.floats())
def test_float(x):
    assert_all(f"m.halve({x!r})", repr(x / 2))


@few
@given(st.text())
def test_text_in(text):
    # Twice: the first call fills the UTF-8 cache, the second reads it.
    assert_all(f"[m.code_points(s) for s in [{text!r}] * 2]", repr([len(text)] * 2))


def test_text_out():
    assert_all("m.motto()", repr("mind the gap"))


def fnv(data):
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 % 2**32
    return value


@few
@given(st.binary())
def test_bytes_in(data):
    assert_all(f"m.checksum({data!r})", str(fnv(data)))


@few
@given(st.integers(0, 5000), st.integers(0, 255))
def test_bytes_out(size, value):
    assert_all(f"m.make_bytes({size}, {value})", repr(bytes([value]) * size))


@few
@given(st.lists(st.floats(), min_size=1))
def test_doubles(values):
    assert_all(f"m.ends({array('d', values)!r})", repr(values[0] + values[-1]))


@few
@given(st.lists(INT))
def test_list(values):
    assert_all(f"m.sum_list({values})", str(sum(values)))


@few
@given(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100), st.floats(-1e100, 1e100))
def test_struct(x, y, by):
    assert_all(f"[(p := m.Point({x!r}, {y!r})), m.dot(p)][1]", repr(x * x + y * y))
    assert_all(f"[(p := m.Point({x!r}, {y!r})), m.scale(p, {by!r}), (p.x, p.y)][2]", repr((x * by, y * by)))


@few
@given(st.integers(-(2**30), 2**30 - 1))
def test_callback(x):
    assert_all(f"m.apply(m.callback(Twice()), {x})", str(2 * x))


@few
@given(st.floats())
def test_error(x):
    expected = repr(math.sqrt(x)) if x >= 0 else "<class 'ValueError'>"
    assert_all(f"caught(m, {x!r})", expected)


@few
@given(LONG, st.lists(LONG, max_size=4))
def test_object(start, steps):
    values, value = [], start
    for step in steps:
        value = (value + step + 2**63) % 2**64 - 2**63
        values.append(value)
    assert_all(f"[(c := m.Counter({start})), [c.add(n) for n in {steps}]][1]", repr(values))


def test_huge():
    size = 50_000_000
    assert_all(f"m.checksum(bytes({size}))", str(2166136261 * pow(16777619, size, 2**32) % 2**32))
    assert_all(f"m.code_points('a' * {size})", str(size))
    assert_all(f"m.ends(array('d', bytes({8 * size // 10})))", "0.0")


CTYPES = ("ctypes PyDLL", "ctypes CDLL")
CFFI = ("cffi API", "cffi ABI")
OVER, TYPE, ARGUMENT = "OverflowError", "TypeError", "ArgumentError"
# [contracts]
# Expression: (what most bindings do, {binding: what it does instead}).
CONTRACTS = {
    # An int that does not fit: ctypes drops the upper bits without a word.
    "m.add_one(2**31)": (OVER, dict.fromkeys(("pybind11", "nanobind"), TYPE) | dict.fromkeys(CTYPES, "-2147483647")),
    "m.add_one(2**100)": (OVER, dict.fromkeys(("pybind11", "nanobind"), TYPE) | dict.fromkeys(CTYPES, "1")),
    "m.make_bytes(1, 256)": (OVER, dict.fromkeys(("pybind11", "nanobind"), TYPE) | dict.fromkeys(CTYPES, r"b'\x00'")),
    "m.sum_list([2**31])": (OVER, dict.fromkeys(("pybind11", "nanobind"), TYPE) | dict.fromkeys(CTYPES, str(-(2**31)))),
    # A float where an int is wanted: Cython drops the fraction.
    "m.add_one(1.5)": (TYPE, {"Cython": "2"} | dict.fromkeys(CTYPES, ARGUMENT)),
    "m.add_one('1')": (TYPE, dict.fromkeys(CTYPES, ARGUMENT)),
    "m.add_one(None)": (TYPE, dict.fromkeys(CTYPES, ARGUMENT)),
    "m.add_one(True)": ("2", {}),
    "m.add_one(Index(4))": ("5", dict.fromkeys(("Cython", *CFFI), TYPE)),
    # One argument too many: ctypes hands it over.
    "m.add_one(1, 2)": (TYPE, dict.fromkeys(CTYPES, "2")),
    "m.add_one()": (TYPE, {}),
    "m.add_one(x=1)": (TYPE, dict.fromkeys(("Cython", "PyO3"), "2")),
    "m.halve(2**2000)": (OVER, dict.fromkeys(("pybind11", "nanobind"), TYPE) | dict.fromkeys(CTYPES, ARGUMENT)),
    "m.halve(3)": ("1.5", {}),
    "m.code_points('\\udc80')": ("UnicodeEncodeError", dict.fromkeys(("pybind11", "nanobind"), TYPE)),
    "m.code_points(b'abc')": (TYPE, {"pybind11": "3"} | dict.fromkeys((*CFFI, *CTYPES), "AttributeError")),
    "m.checksum('abc')": (TYPE, dict.fromkeys(CTYPES, ARGUMENT)),
    "m.checksum(bytearray(b'abc'))": (TYPE, dict.fromkeys(CTYPES, ARGUMENT)),
    "m.make_bytes(-1, 0)": ("ValueError", {}),
    # An array of another type: four bindings reinterpret its bytes.
    "m.ends(array('i', [0, 0]))": (
        TYPE,
        {"Cython": "ValueError", "PyO3": "BufferError"} | dict.fromkeys((*CFFI, *CTYPES), "0.0"),
    ),
    # An empty array has no memory of its own; PyO3 refuses the address if the build left it misaligned.
    "m.ends(array('d'))": ("0.0", {"PyO3": ("0.0", "BufferError")}),
    "m.ends(memoryview(array('d', [1, 2, 3]))[::2])": (
        "BufferError",
        dict.fromkeys(("pybind11", "nanobind", "PyO3", *CTYPES), TYPE),
    ),
    "m.ends([1.0, 2.0])": (TYPE, {}),
    "m.sum_list((1, 2))": ("3", dict.fromkeys(("C API", "Cython"), TYPE)),
    "m.sum_list([1, 'x'])": (TYPE, {}),
    "m.dot(None)": (TYPE, dict.fromkeys(CTYPES, ARGUMENT)),
    # None for a pointer: pybind11 hands over a null pointer, and this library does not check.
    "m.scale(None, 2.0)": (TYPE, {"pybind11": "died with -11"}),
    # An exception in a callback: cffi prints it and returns 0.
    "m.apply(m.callback(fails), 1)": ("LookupError", dict.fromkeys(CFFI, "0")),
    "m.apply(None, 1)": (TYPE, dict.fromkeys(CTYPES, ARGUMENT)),
    "m.Counter(2**63-1).add(1)": (str(-(2**63)), {}),
    "m.Counter('1')": (TYPE, dict.fromkeys(CTYPES, ARGUMENT)),
}
# [/contracts]


@pytest.mark.parametrize("expression", CONTRACTS)
def test_contract(expression):
    usual, others = CONTRACTS[expression]
    for label in LABELS:
        for binding in bindings(label):
            if binding in CTYPES and "fails" in expression:
                # ctypes prints the exception too, and returns what happens to lie in memory: any int.
                assert int(child(label).ask(binding, expression)) is not None
                continue
            expected = others.get(binding, usual)
            answers = expected if isinstance(expected, tuple) else (expected,)
            assert child(label).ask(binding, expression) in answers, (label, binding)


LEAKS = [
    "m.noop()",
    "m.add_one(large)",
    "m.add_five(large, 2, 3, 4, 5)",
    "m.halve(2.5)",
    "m.code_points(text)",
    "m.code_points(text + text)",
    "m.motto()",
    "m.checksum(data)",
    "m.make_bytes(100, 7)",
    "m.ends(doubles)",
    "m.sum_list(ints)",
    "m.Point(1.0, 2.0)",
    "m.dot(point)",
    "m.scale(point, 1.0)",
    "m.apply(prepared, large)",
    "m.callback(caught)",
    "caught(m, -1.0)",
    "m.Counter(large)",
    "counter.add(large)",
]


@pytest.mark.parametrize("label", LABELS)
def test_no_leak_over_100_000_calls(label):
    """Even one leaked object of 16 bytes per call would show: 1.6 MB."""
    for binding in bindings(label):
        for statement in LEAKS:
            answer = child(label).ask(binding, f"leak(m, {statement!r}, 100_000)")
            kib, references = eval(answer)
            assert kib < 1024, (binding, statement, answer)
            assert references <= 2, (binding, statement, answer)


@pytest.mark.parametrize("label", LABELS)
def test_a_long_call_lets_others_run(label):
    for binding in bindings(label):
        expected = not (binding == "ctypes PyDLL" and not label.endswith("t"))
        assert child(label).ask(binding, "lets_others_run(m.sleep_ms)") == str(expected), binding


@pytest.mark.parametrize("label", LABELS)
def test_many_threads(label):
    for binding in bindings(label):
        assert child(label).ask(binding, "from_many_threads(m, 8, 2000)") == "0", binding


def test_changing_one_source_rebuilds_one_project(tmp_path, labels):
    """And a project that fails leaves its reason, in one line with the compiler's last error."""
    root, out = tmp_path / "native", tmp_path / "out"
    for name in ("good", "other"):
        project = root / "corner" / name
        project.mkdir(parents=True)
        (project / "pyproject.toml").write_text(
            f'[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
            f'[project]\nname = "{name}"\nversion = "1"\n'
        )
        (project / "setup.py").write_text(
            f"from setuptools import Extension, setup\nsetup(ext_modules=[Extension('{name}', ['{name}.c'])], py_modules=[])\n"
        )
        (project / f"{name}.c").write_text(
            f'#include <Python.h>\nstatic struct PyModuleDef m = {{PyModuleDef_HEAD_INIT, .m_name = "{name}"}};\n'
            f"PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModuleDef_Init(&m); }}\n"
        )
    kernel = kernels.load(BY_LABEL["3.14"])
    assert native.build_all([kernel], root, out) == []
    target = out / "corner" / kernels.soabi(kernel)
    built = {p.name: p.stat().st_mtime_ns for p in target.glob("*.so")}
    assert len(built) == 2
    time.sleep(0.05)
    source = root / "corner" / "good" / "good.c"
    source.write_text(source.read_text() + "\n")
    assert native.build_all([kernel], root, out) == []
    again = {p.name: p.stat().st_mtime_ns for p in target.glob("*.so")}
    assert [name.split(".")[0] for name in built if again[name] != built[name]] == ["good"]
    source.write_text("#error the sky is falling\n")
    failures = native.build_all([kernel], root, out)
    assert len(failures) == 1
    assert "error: #error the sky is falling" in failures[0]
    assert "the sky is falling" in (target / "missing-good.txt").read_text()
