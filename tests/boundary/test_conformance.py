"""Every binding of native/boundary returns the same for the same inputs, on every interpreter present.

Where a tool's contract differs, its binding.toml says how. Speeds are not tested. Each binding answers all of it in one
process of each interpreter, with Python's debugging allocator: what was freed holds neither the old numbers nor the old
pointers.
"""

import json
import math
import random
import runpy
import shutil
from array import array
from functools import cache

import pytest

from ffilab.run.paths import NATIVE, NATIVE_OUT
from ffilab.setup import installed, native
from ffilab.setup.catalogue import BY_LABEL
from tests.helpers.environment import python_of, ran

SOURCES = NATIVE / "boundary"
ARMS = runpy.run_path(str(SOURCES / "arms.py"))
BINDINGS, STANDS_IN = ARMS["EVERY_FORM"], ARMS["STANDS_IN"]
# Answers a JSON list of expressions, a line for each.
ANSWERING = """
import json, runpy, sys
evaluate = runpy.run_path(sys.argv[1])["evaluate"]
for expression in json.load(sys.stdin):
    answer = evaluate(sys.argv[2], sys.argv[3], expression)
    print(answer.get("value", answer.get("error")), flush=True)
"""


def fnv(data):
    value = 2166136261
    for byte in data:
        value = (value ^ byte) * 16777619 % 2**32
    return value


def wrapped(value, bits):
    return (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)


def values():
    """Expression: the repr of what every binding makes of it."""
    lots = random.Random(7)
    expected = {"m.noop()": None, "m.answer()": 42, "m.motto()": "mind the gap"}
    ints = [0, 1, -1, 2**31 - 1, -(2**31), *(lots.randint(-(2**31), 2**31 - 1) for _ in range(5))]
    floats = [0.0, -0.0, 1.5, -2.0, 5e-324, 1.7e308, math.inf, -math.inf, math.nan, lots.uniform(-1e9, 1e9)]
    texts = ["", "a", "\0", "é", "mind thé gap", "€" * 99, "𝄞\uffff"]
    texts += ("".join(map(chr, lots.choices(range(0xD800), k=20))) for _ in range(5))
    expected |= {f"m.add_one({x})": wrapped(x + 1, 32) for x in ints}
    expected |= {f"m.add_five(*{five})": sum(five) for five in (ints[:5], ints[5:])}
    expected |= {f"m.halve({x!r})": x / 2 for x in floats}
    expected |= {f"caught(m, {x!r})": math.sqrt(x) if x >= 0 else ValueError for x in floats if x == x}
    # Twice: the first call fills the UTF-8 cache, the second reads it.
    expected |= {f"[m.code_points(s) for s in [{text!r}] * 2]": [len(text)] * 2 for text in texts}
    expected |= {f"m.checksum({text.encode()!r})": fnv(text.encode()) for text in texts}
    expected |= {
        f"m.make_bytes({size}, {value})": bytes([value]) * size for size in (0, 1, 5000) for value in (0, 7, 255)
    }
    expected |= {f"m.ends({array('d', floats[:n])!r})": floats[0] + floats[n - 1] for n in range(1, len(floats))}
    for numbers in ([], [7], ints):
        expected |= {f"m.sum_list({numbers})": sum(numbers), f"m.sum_sequence({tuple(numbers)})": sum(numbers)}
    for x, y, by in ((3.0, 4.0, 2.0), (-0.0, 1e100, -1.0), (1e-300, -5.5, 0.0)):
        expected[f"[(p := m.Point({x!r}, {y!r})), m.dot(p)][1]"] = x * x + y * y
        expected[f"[(p := m.Point({x!r}, {y!r})), m.scale(p, {by!r}), (p.x, p.y)][2]"] = (x * by, y * by)
    expected |= {f"m.apply(m.callback(Twice()), {x})": 2 * x for x in (0, -1, 2**30 - 1, -(2**30))}
    for start, steps in ((0, [1, 2, -3]), (2**63 - 1, [1, 1]), (-(2**63), [-1])):
        totals = [wrapped(start + sum(steps[:n]), 64) for n in range(1, len(steps) + 1)]
        expected[f"[(c := m.Counter({start})), [c.add(n) for n in {steps}]][1]"] = totals
    size = 50_000_000
    expected[f"m.checksum(bytes({size}))"] = 2166136261 * pow(16777619, size, 2**32) % 2**32
    expected[f"m.code_points('a' * {size})"] = size
    # Every thread checks its answers; no addition to one object is lost.
    expected["from_many_threads(m, 8, 2000)"] = 0
    expected["one_object(m, 8, 20_000)"] = (0, 0)
    return {expression: repr(value) for expression, value in expected.items()}


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
    # An int that says something else of itself.
    "m.add_one(Other(4))": "5",
    # One argument too many.
    "m.add_one(1, 2)": TYPE,
    "m.add_one()": TYPE,
    # By keyword, and with a default: one function has names; no other takes keywords.
    "m.make_bytes(value=7, size=2)": r"b'\x07\x07'",
    "m.make_bytes(2)": r"b'\x00\x00'",
    "m.make_bytes(2, volume=7)": TYPE,
    "m.add_one(x=1)": TYPE,
    "m.code_points(text='a')": TYPE,
    "m.Counter(start=5)": TYPE,
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
    "m.ends(memoryview(array('d', [1, 9])).toreadonly())": "10.0",
    # Doubles at an odd address, where C may not read them.
    "m.ends(memoryview(bytearray(17))[1:].cast('d'))": "BufferError",
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
VALUES = values()
GIL_ENABLED = "getattr(sys, '_is_gil_enabled', lambda: True)()"
DETACHED, OTHERS_RUN = "m.noop_detached()", "lets_others_run(m.sleep_ms)"
MOVED, EMPTIED = "moved(m, 4, 200)", "emptied(m)"
ASKED = [*VALUES, *CONTRACTS, GIL_ENABLED, DETACHED, OTHERS_RUN, MOVED, EMPTIED]


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


def ask(label, binding, expressions):
    """How the process ended, and its answers: a value's repr, or the name of the exception."""
    python = python_of(label)
    command = [python, "-s", "-P", "-c", ANSWERING, SOURCES / "evaluate.py", NATIVE_OUT / "boundary", binding]
    environment = {"PYTHONMALLOC": "debug", "PYTHONDONTWRITEBYTECODE": "1"}
    given = json.dumps(expressions)
    done = ran(*command, input=given, env=environment, timeout=120)
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_binding_conforms(label, binding):
    if binding in unsupported(label):
        assert ask(label, binding, ["m.noop()"])[1] == ["ImportError"], unsupported(label)[binding]
        pytest.skip(unsupported(label)[binding])
    ended, lines = ask(label, binding, ASKED)
    assert (ended, len(lines)) == (0, len(ASKED)), f"it ended with {ended} at {ASKED[len(lines) :][:1]}"
    answers = dict(zip(ASKED, lines))
    wrong = {expression: answers[expression] for expression, value in VALUES.items() if answers[expression] != value}
    assert not wrong
    declared = BINDINGS[BINDINGS[binding].of or binding].contracts
    for expression, usual in CONTRACTS.items():
        expected = declared.get(expression, usual)
        if expected == "any int":
            int(answers[expression])
        else:
            assert answers[expression] in (expected if isinstance(expected, list) else [expected]), expression
    free_threaded = BY_LABEL[label].free_threaded
    assert answers[GIL_ENABLED] == str(not free_threaded)
    attached = binding == "ctypes PyDLL"
    assert attached or answers[DETACHED] == "None"
    assert answers[OTHERS_RUN] == str(free_threaded or not attached)
    # Its methods and fields take its lock. A struct of ctypes and cffi is the caller's own memory, and has none.
    assert answers[MOVED] == "0" or binding.startswith(("ctypes", "cffi"))
    # A list that is emptied meanwhile: some refuse, some sum a copy or what they have seen; none makes up a number.
    copied, seen = sum(range(1_000, 1_100)) - 1_001 + 1, 1_001
    assert answers[EMPTIED] in ("RuntimeError", "IndexError", "TypeError", str(copied), str(seen))


def test_pybind11_hands_none_over_unless_told_otherwise(build):
    assert ask(build, "pybind11", ["m.scale_not_none(None, 2.0)"]) == (0, ["TypeError"])
    ended, lines = ask(build, "pybind11", ["m.scale_pointer(None, 2.0)"])
    assert ended < 0
    assert not lines


def test_no_binding_declares_a_contract_that_is_not_tested():
    for binding, declared in BINDINGS.items():
        assert set(declared.contracts) <= set(CONTRACTS), binding
