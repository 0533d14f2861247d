"""Every binding of native/boundary returns the same for the same inputs, on every interpreter present.

Where a tool's contract differs, its binding.toml says how. Speeds are not tested.
"""

import json
import math
import runpy
import shutil
import signal
import subprocess
import time
from array import array
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffilab import native
from ffilab.paths import NATIVE, NATIVE_OUT
from ffilab.provision import installed
from ffilab.provision.catalogue import BY_LABEL, GIL

pytestmark = pytest.mark.slow

SOURCES = NATIVE / "boundary"
ARMS = runpy.run_path(str(SOURCES / "arms.py"))
BINDINGS, STANDS_IN = ARMS["EVERY_FORM"], ARMS["STANDS_IN"]
INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)
TIMEOUT_S = 120
# Answers each line, {"binding", "expression"}, with a line.
SERVER = """
import json, runpy, sys
evaluate = runpy.run_path(sys.argv[1])["evaluate"]
for line in sys.stdin:
    print(json.dumps(evaluate(sys.argv[2], **json.loads(line))), flush=True)
"""


class Child:
    """One evaluating process per interpreter; a new one after each crash."""

    def __init__(self, label):
        self._label, self._process = label, None

    def ask(self, binding, expression):
        """The value's repr, the name of the exception, or how the process died."""
        if self._process is None:
            python = installed.load(BY_LABEL[self._label]).python
            self._process = subprocess.Popen(
                [python, "-I", "-c", SERVER, SOURCES / "evaluate.py", NATIVE_OUT / "boundary"],
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
            return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
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
def no_child_left(labels):
    yield
    for label in labels:
        child(label).close()


@cache
def unsupported(label):
    """Binding: reason, for those that this interpreter cannot have."""
    interpreter = installed.load(BY_LABEL[label])
    reasons = {}
    for binding, declared in BINDINGS.items():
        project, stand_in = declared.project, STANDS_IN.get(declared.project)
        reason = native.unsupported(SOURCES / project, interpreter)
        if (SOURCES / project / "Cargo.toml").exists() and not shutil.which("cargo"):
            reason, stand_in = "no cargo on this machine", None
        if reason and not (stand_in and native.unsupported(SOURCES / stand_in, interpreter) is None):
            reasons[binding] = reason
    return reasons


def bindings(label):
    return [binding for binding in BINDINGS if binding not in unsupported(label)]


def assert_all(labels, expression, expected, but=()):
    for label in labels:
        for binding in bindings(label):
            if binding not in but:
                assert child(label).ask(binding, expression) == expected, (label, binding, expression)


def test_every_supported_binding_is_built_and_the_others_say_why_not(labels):
    for label in labels:
        for binding in BINDINGS:
            answer = child(label).ask(binding, "m.noop()")
            assert answer == ("ImportError" if binding in unsupported(label) else "None"), (binding, answer)


def test_no_binding_turns_the_gil_on(labels):
    for label in [one for one in labels if BY_LABEL[one].free_threaded]:
        for binding in bindings(label):
            assert child(label).ask(binding, "sys._is_gil_enabled()") == "False", binding


def few(function):
    return settings(max_examples=25, deadline=None)(function)


def test_noop(labels):
    assert_all(labels, "m.noop()", "None")
    assert_all(labels, "m.answer()", "42")
    assert_all(labels, "m.noop_detached()", "None", but=["ctypes PyDLL"])


@few
@given(INT)
def test_int(labels, x):
    assert_all(labels, f"m.add_one({x})", str((x + 1 + 2**31) % 2**32 - 2**31))


@few
@given(st.tuples(INT, INT, INT, INT, INT))
def test_five_ints(labels, numbers):
    assert_all(labels, f"m.add_five(*{numbers})", str(sum(numbers)))


@few
@given(st.floats())
def test_float(labels, x):
    assert_all(labels, f"m.halve({x!r})", repr(x / 2))


@few
@given(st.text())
def test_text_in(labels, text):
    # Twice: the first call fills the UTF-8 cache, the second reads it.
    assert_all(labels, f"[m.code_points(s) for s in [{text!r}] * 2]", repr([len(text)] * 2))


def test_text_out(labels):
    assert_all(labels, "m.motto()", repr("mind the gap"))


def fnv(data):
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 % 2**32
    return value


@few
@given(st.binary())
def test_bytes_in(labels, data):
    assert_all(labels, f"m.checksum({data!r})", str(fnv(data)))


@few
@given(st.integers(0, 5000), st.integers(0, 255))
def test_bytes_out(labels, size, value):
    assert_all(labels, f"m.make_bytes({size}, {value})", repr(bytes([value]) * size))


@few
@given(st.lists(st.floats(), min_size=1))
def test_doubles(labels, values):
    assert_all(labels, f"m.ends({array('d', values)!r})", repr(values[0] + values[-1]))


@few
@given(st.lists(INT))
def test_list(labels, values):
    assert_all(labels, f"m.sum_list({values})", str(sum(values)))
    assert_all(labels, f"m.sum_sequence({tuple(values)})", str(sum(values)))


@few
@given(st.floats(-1e100, 1e100), st.floats(-1e100, 1e100), st.floats(-1e100, 1e100))
def test_struct(labels, x, y, by):
    assert_all(labels, f"[(p := m.Point({x!r}, {y!r})), m.dot(p)][1]", repr(x * x + y * y))
    assert_all(labels, f"[(p := m.Point({x!r}, {y!r})), m.scale(p, {by!r}), (p.x, p.y)][2]", repr((x * by, y * by)))


@few
@given(st.integers(-(2**30), 2**30 - 1))
def test_callback(labels, x):
    assert_all(labels, f"m.apply(m.callback(Twice()), {x})", str(2 * x))


@few
@given(st.floats())
def test_error(labels, x):
    expected = repr(math.sqrt(x)) if x >= 0 else "<class 'ValueError'>"
    assert_all(labels, f"caught(m, {x!r})", expected)


@few
@given(LONG, st.lists(LONG, max_size=4))
def test_object(labels, start, steps):
    values, value = [], start
    for step in steps:
        value = (value + step + 2**63) % 2**64 - 2**63
        values.append(value)
    assert_all(labels, f"[(c := m.Counter({start})), [c.add(n) for n in {steps}]][1]", repr(values))


def test_huge(labels):
    size = 50_000_000
    assert_all(labels, f"m.checksum(bytes({size}))", str(2166136261 * pow(16777619, size, 2**32) % 2**32))
    assert_all(labels, f"m.code_points('a' * {size})", str(size))
    assert_all(labels, f"m.ends(array('d', bytes({8 * size // 10})))", "0.0")


OVER, TYPE = "OverflowError", "TypeError"
# Call: what most bindings make of it. The others say in their binding.toml what they do instead.
CONTRACTS = {
    # An int that does not fit.
    "m.add_one(2**31)": OVER,
    "m.add_one(2**100)": OVER,
    "m.make_bytes(1, 256)": OVER,
    "m.sum_list([2**31])": OVER,
    # A float where an int is wanted.
    "m.add_one(1.5)": TYPE,
    "m.add_one('1')": TYPE,
    "m.add_one(None)": TYPE,
    "m.add_one(True)": "2",
    "m.add_one(Index(4))": "5",
    # One argument too many.
    "m.add_one(1, 2)": TYPE,
    "m.add_one()": TYPE,
    "m.add_one(x=1)": TYPE,
    "m.halve(2**2000)": OVER,
    "m.halve(3)": "1.5",
    "m.code_points('\\udc80')": "UnicodeEncodeError",
    "m.code_points(b'abc')": TYPE,
    "m.checksum('abc')": TYPE,
    "m.checksum(bytearray(b'abc'))": TYPE,
    "m.make_bytes(-1, 0)": "ValueError",
    # An array of another type.
    "m.ends(array('i', [0, 0]))": TYPE,
    # An empty array has no memory of its own.
    "m.ends(array('d'))": "0.0",
    "m.ends(memoryview(array('d', [1, 2, 3]))[::2])": "BufferError",
    "m.ends([1.0, 2.0])": TYPE,
    "m.sum_list((1, 2))": TYPE,
    "m.sum_sequence((1, 2))": "3",
    "m.sum_list([1, 'x'])": TYPE,
    "m.dot(None)": TYPE,
    "m.dot([])": TYPE,
    "m.scale([], 2.0)": TYPE,
    # None for a pointer.
    "m.scale(None, 2.0)": TYPE,
    # An exception in a callback.
    "m.apply(m.callback(fails), 1)": "LookupError",
    "m.apply(None, 1)": TYPE,
    "m.Counter(2**63-1).add(1)": str(-(2**63)),
    "m.Counter('1')": TYPE,
}


@pytest.mark.parametrize("expression", CONTRACTS)
def test_contract(labels, expression):
    for label in labels:
        for binding in bindings(label):
            declared = BINDINGS[BINDINGS[binding].of or binding].contracts
            expected = declared.get(expression, CONTRACTS[expression])
            answer = child(label).ask(binding, expression)
            if expected == "any int":
                assert int(answer) is not None
            else:
                assert answer in (expected if isinstance(expected, list) else [expected]), (label, binding)


EMPTIED = """
import json, runpy, sys
evaluate = runpy.run_path(sys.argv[1])["evaluate"]
print(json.dumps(evaluate(sys.argv[2], sys.argv[3], "emptied(m)")))
"""


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_list_that_is_emptied_meanwhile_is_not_read_behind_its_end(labels, binding):
    """Some tools refuse, some sum what they have seen or a copy that they made; none dies, none makes up a number.

    With Python's debugging allocator, what was freed holds neither the old numbers nor the old pointers.
    """
    copied, seen = sum(range(1_000, 1_100)) - 1_001 + 1, 1_001
    for label in labels:
        if binding in unsupported(label):
            continue
        python, arguments = installed.load(BY_LABEL[label]).python, [SOURCES / "evaluate.py", NATIVE_OUT / "boundary"]
        done = subprocess.run(
            [python, "-s", "-P", "-c", EMPTIED, *arguments, binding],
            env={"PYTHONMALLOC": "debug", "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, (label, done.stderr)
        answer = json.loads(done.stdout)
        answer = answer.get("value", answer.get("error"))
        assert answer in ("RuntimeError", "IndexError", "TypeError", str(copied), str(seen)), (label, answer)


def test_a_point_may_be_used_by_many_threads(labels):
    """Its methods and its fields take its lock. A struct of ctypes and cffi is the caller's own memory, and has none."""
    for label in labels:
        for binding in bindings(label):
            if not binding.startswith(("ctypes", "cffi")):
                assert child(label).ask(binding, "moved(m, 4, 200)") == "0", (label, binding)


def test_pybind11_hands_none_over_unless_told_otherwise(labels):
    for label in labels:
        if "pybind11" in bindings(label):
            assert child(label).ask("pybind11", "m.scale_not_none(None, 2.0)") == "TypeError"
            assert child(label).ask("pybind11", "m.scale_pointer(None, 2.0)") == "killed by SIGSEGV"


def test_no_binding_declares_a_contract_that_is_not_tested():
    for binding, declared in BINDINGS.items():
        assert set(declared.contracts) <= set(CONTRACTS), binding


def test_a_long_call_lets_others_run(labels):
    for label in labels:
        for binding in bindings(label):
            expected = not (binding == "ctypes PyDLL" and not BY_LABEL[label].free_threaded)
            assert child(label).ask(binding, "lets_others_run(m.sleep_ms)") == str(expected), binding


def test_many_threads(labels):
    for label in labels:
        for binding in bindings(label):
            assert child(label).ask(binding, "from_many_threads(m, 8, 2000)") == "0", binding


def test_one_object_may_be_used_by_many_threads(labels):
    """Each tool's own lock is in its method `add`: no addition is lost."""
    for label in labels:
        for binding in bindings(label):
            assert child(label).ask(binding, "one_object(m, 8, 20_000)") == "(0, 0)", binding


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
    interpreter = installed.load(BY_LABEL[GIL])
    assert native.build_all([interpreter], root, out) == []
    target = out / "corner" / installed.soabi(interpreter)
    built = {p.name: p.stat().st_mtime_ns for p in target.glob("*.so")}
    assert len(built) == 2
    time.sleep(0.05)
    source = root / "corner" / "good" / "good.c"
    source.write_text(source.read_text() + "\n")
    assert native.build_all([interpreter], root, out) == []
    again = {p.name: p.stat().st_mtime_ns for p in target.glob("*.so")}
    assert [name.split(".")[0] for name in built if again[name] != built[name]] == ["good"]
    source.write_text("#error the sky is falling\n")
    failures = native.build_all([interpreter], root, out)
    assert len(failures) == 1
    assert "error: #error the sky is falling" in failures[0]
    assert "the sky is falling" in (target / "missing-good.txt").read_text()
