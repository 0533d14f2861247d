"""No binding of native/boundary leaks objects, bytes or references, on any interpreter present; and leaks are found."""

import json
import runpy
import subprocess
from functools import cache

import pytest

from ffilab.paths import NATIVE, NATIVE_OUT
from ffilab.provision import installed
from ffilab.provision.catalogue import BY_LABEL

pytestmark = pytest.mark.slow

SOURCES = NATIVE / "boundary"
LEAKS = SOURCES / "leaks.py"
ARMS = runpy.run_path(str(SOURCES / "arms.py"))
BINDINGS, SIGNATURES = ARMS["EVERY_FORM"], ARMS["SIGNATURES"]
# The counters are exact: one block leaked by each tenth call shows. Slow signatures get fewer calls.
CALLS, SECONDS = 10_000, 0.03
TIMEOUT_S = 300

# A binding in Python. Some of its functions leak; WANTED says which, and how it shows.
PLANTED = """
import array, ctypes, itertools, json, os, runpy, sys

leaks = runpy.run_path(sys.argv[1])
inc, dec = ctypes.pythonapi.Py_IncRef, ctypes.pythonapi.Py_DecRef
inc.argtypes = dec.argtypes = [ctypes.py_object]
# The C library's own: 3.15t's PyMem_RawMalloc is another allocator, whose bytes nobody counts.
malloc, realloc = ctypes.CDLL(None).malloc, ctypes.CDLL(None).realloc
malloc.restype = realloc.restype = ctypes.c_void_p
malloc.argtypes, realloc.argtypes = [ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_size_t]
kept, cache, block, grown, count, held = [], {}, [None, 0], bytearray(), itertools.count(), []


class m:
    # These are sound.
    def noop():
        pass

    def add_five(a, b, c, d, e):
        return a + b + c + d + e

    def sum_sequence(values):
        return sum(values)

    def code_points(text):
        return len(text)

    def checksum(data):
        # A cache that is full after some time is no leak.
        if len(cache) < 3000:
            cache[next(count)] = object()
        return len(cache)

    # These leak.
    def answer():
        kept.append(object())
        return 42

    def halve(x):
        if next(count) % 10 == 0:
            kept.append(object())
        return x / 2

    def motto():
        malloc(40)
        return "mind the gap"

    def make_bytes(size, value):
        block[1] += 16
        block[0] = realloc(*block)
        return bytes([value]) * size

    def ends(values):
        grown.extend(bytes(1024))
        return values[0] + values[-1]

    def add_one(x):
        inc(x)
        return x + 1

    def sum_list(values):
        inc(values[-1])
        return sum(values)

    def callback(function):
        inc(function)
        return function

    def work(x):
        # One reference too few.
        if not held:
            held.extend([x] * 100_000)
        dec(x)
        return 1

    def apply(function, x):
        try:
            return function(x)
        except LookupError as error:
            kept.append(error)
            raise

    def root(x):
        if x >= 0:
            return x ** 0.5
        kept.append(ValueError())
        raise kept[-1]

    class Counter:
        def __init__(self, value):
            inc(type(self))
            self.value = value

        def add(self, n):
            self.value += n
            return self.value

    class Point:
        def __init__(self, x, y):
            self.x, self.y = x, y
            malloc(40)

    def dot(p):
        return p.x * p.x + p.y * p.y


said = leaks["check_all"](m, int(sys.argv[2]), float(sys.argv[3]), json.loads(sys.argv[4]))
print(json.dumps({"said": said, "refused": list(leaks["REFUSED"])}), flush=True)
os._exit(0)  # `held` cannot be let go of
"""
# Signature of PLANTED to the leaks that must be found; to none, if none may be.
WANTED = {
    "no-op": [],
    "five ints, large": [],
    "sequence of large ints": [],
    "str in, an object": [],
    "bytes in, an object": [],
    "struct by value": [],
    "C++ method": [],
    "root": [],
    "int: a str": ["references to x"],
    "→ int": ["objects"],
    "float → float, an object": ["objects"],
    "str out": ["bytes"],
    "bytes out": ["bytes"],
    "new struct": ["bytes"],
    "1,000 doubles": ["peak_kib"],
    "int → int, a large int": ["references to n"],
    "list of large ints": ["references to items of x"],
    "prepare a callback": ["references to g", "references to the result"],
    "work": ["references to n"],
    "new C++ object": ["references to C"],
    "callback raises": ["objects"],
    "callback": [],
    "root of -1": ["objects"],
}


def ask(label, *command):
    """What a program says on this interpreter, as JSON; its exit code is not looked at."""
    python = installed.load(BY_LABEL[label]).python
    ran = subprocess.run([python, "-I", *command], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert ran.stdout, (label, ran.returncode, ran.stderr)
    return json.loads(ran.stdout)


@cache
def checked(label, binding):
    """Signature to what native/boundary/leaks.py says; None if this interpreter cannot have the binding."""
    numbers = ["--calls", str(CALLS), "--seconds", str(SECONDS)]
    said = ask(label, LEAKS, NATIVE_OUT / "boundary", "--binding", binding, *numbers)[binding]
    return None if isinstance(said.get("missing"), str) else said


def alone(label, binding, signature):
    """The same of one signature, in a process that does nothing else, with many more calls."""
    numbers = ["--calls", str(30 * CALLS), "--seconds", "5", "--signature", signature]
    return ask(label, LEAKS, NATIVE_OUT / "boundary", "--binding", binding, *numbers)[binding][signature]


# PyO3 0.27, which stands in there, keeps a reference to the class for each object that it makes: 0.30 does not, elsewhere.
KNOWN = {("3.13t", "PyO3"): {"references to C"}}


@cache
def planted(label):
    return ask(label, "-c", PLANTED, LEAKS, str(CALLS), str(SECONDS), json.dumps(list(WANTED)))


@pytest.mark.parametrize("binding", BINDINGS)
def test_no_binding_leaks(labels, binding):
    for label in labels:
        said = checked(label, binding)
        if said is None:
            # tests/boundary/test_conformance.py says which may be missing.
            continue
        known = KNOWN.get((label, binding), set())
        suspected = [signature for signature, one in said.items() if set(one.get("leaks", ())) - known]
        # What another signature left behind does not come again, and what fills and empties (frees that 3.13t puts off) does not
        # go on growing.
        for signature in suspected:
            again = alone(label, binding, signature)
            assert not set(again["leaks"]) - known, (label, signature, again)


def test_what_is_known_to_leak_still_does(labels):
    for (label, binding), known in KNOWN.items():
        if label in labels and (said := checked(label, binding)):
            assert {leak for one in said.values() for leak in one.get("leaks", ())} >= known, (label, binding)


def test_every_signature_is_checked(labels):
    for label in labels:
        assert checked(label, "C API") is not None
        for binding in BINDINGS:
            said = checked(label, binding) or {}
            missing = {signature for signature, one in said.items() if "missing" in one}
            if binding == "ctypes PyDLL":  # it has no function that detaches the thread state
                missing = {one for one in missing if "detached" not in one}
            assert not missing, (label, binding)
            assert set(SIGNATURES) <= set(said) or not said, (label, binding)


def test_refused_calls_are_refused_and_the_others_are_not(labels):
    """A check whose call fails by mistake would check nothing."""
    for label in labels:
        refused = set(planted(label)["refused"])
        for binding in BINDINGS:
            for signature, one in (checked(label, binding) or {}).items():
                said = one.get("outcome", "")
                raised = said.endswith("Error")
                assert said not in ("NameError", "SyntaxError"), (label, binding, signature)
                assert signature in refused or not raised, (label, binding, signature, said)
                assert signature not in refused or raised or binding != "C API", (label, signature, said)


@pytest.mark.parametrize("signature", WANTED)
def test_planted_leaks_are_found(labels, signature):
    for label in labels:
        one = planted(label)["said"][signature]
        for wanted in WANTED[signature]:
            if wanted.startswith("references") or one["many"][wanted] is not None:
                assert wanted in one["leaks"], (label, one)
        if not WANTED[signature]:
            assert not one["leaks"], (label, one)
