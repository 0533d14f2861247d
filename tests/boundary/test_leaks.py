"""No binding of native/boundary leaks objects, bytes or references, on any interpreter present; and leaks are found."""

import json
import runpy
from functools import cache

import pytest

from ffilab.run.paths import NATIVE, NATIVE_OUT
from tests.helpers.environment import python_of, ran

pytestmark = pytest.mark.full

SOURCES = NATIVE / "boundary"
LEAKS = SOURCES / "leaks.py"
ARMS = runpy.run_path(str(SOURCES / "arms.py"))
BINDINGS, SIGNATURES = ARMS["EVERY_FORM"], ARMS["SIGNATURES"]
# The counters are exact: one block leaked by each tenth call shows. Slow signatures get fewer calls.
CALLS, SECONDS = 10_000, 0.03
TIMEOUT_S = 300

# A binding in Python. Some of its functions leak; WANTED says which, and how it shows.
PLANTED = """
import ctypes, itertools, json, os, runpy, sys

leaks = runpy.run_path(sys.argv[1])
inc, dec = ctypes.pythonapi.Py_IncRef, ctypes.pythonapi.Py_DecRef
inc.argtypes = dec.argtypes = [ctypes.py_object]
# The C library's own: 3.15t's PyMem_RawMalloc is another allocator, whose bytes nobody counts.
malloc = ctypes.CDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
kept, cache, grown, count, held = [], {}, bytearray(), itertools.count(), []


class m:
    # These are sound.
    def noop():
        pass

    def code_points(text):
        return len(text)

    def checksum(data):
        # A cache that is full after some time is no leak.
        if len(cache) < 3000:
            cache[next(count)] = object()
        return len(cache)

    # These leak.
    def halve(x):
        if next(count) % 10 == 0:
            kept.append(object())
        return x / 2

    def motto():
        malloc(40)
        return "mind the gap"

    def ends(values):
        grown.extend(bytes(1024))
        return values[0] + values[-1]

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

    def root(x):
        if x >= 0:
            return x ** 0.5
        kept.append(ValueError())
        raise kept[-1]

    class Counter:
        def __init__(self, value):
            inc(type(self))


said = leaks["check_all"](m, int(sys.argv[2]), float(sys.argv[3]), json.loads(sys.argv[4]))
print(json.dumps({"said": said, "refused": list(leaks["REFUSED"])}), flush=True)
os._exit(0)  # `held` cannot be let go of
"""
# Signature of PLANTED to the leaks that must be found; to none, if none may be.
WANTED = {
    "no-op": [],
    "str in, an object": [],
    "bytes in, an object": [],
    "root": [],
    "float → float, an object": ["objects"],
    "str out": ["bytes"],
    "1,000 doubles": ["peak_kib"],
    "list of large ints": ["references to items of x"],
    "prepare a callback": ["references to g", "references to the result"],
    "work": ["references to n"],
    "new C++ object": ["references to C"],
    "root of -1": ["objects"],
}


# PyO3 0.27, which stands in there, keeps a reference to the class for each object that it makes: 0.30 does not,
# elsewhere.
KNOWN = {("3.13t", "PyO3"): {"references to C"}}


def ask(label, *command):
    """What a program says on this interpreter, as JSON; its exit code is not looked at."""
    done = ran(python_of(label), "-I", *command, timeout=TIMEOUT_S)
    assert done.stdout, (label, done.returncode, done.stderr)
    return json.loads(done.stdout)


def checked(label, binding, calls, seconds, *more):
    """Signature: what native/boundary/leaks.py says of it."""
    numbers = ["--calls", str(calls), "--seconds", str(seconds)]
    return ask(label, LEAKS, NATIVE_OUT / "boundary", "--binding", binding, *numbers, *more)[binding]


@cache
def planted(label):
    return ask(label, "-c", PLANTED, LEAKS, str(CALLS), str(SECONDS), json.dumps(list(WANTED)))


@pytest.mark.parametrize("binding", BINDINGS)
def test_no_binding_leaks(label, binding):
    """And every signature is checked: a check whose call fails by mistake would check nothing."""
    found = checked(label, binding, CALLS, SECONDS)
    if isinstance(found.get("missing"), str):
        pytest.skip(found["missing"])
    # ctypes.PyDLL has no function that detaches the thread state.
    lacks = {signature for signature, one in found.items() if "missing" in one}
    assert not [one for one in lacks if binding != "ctypes PyDLL" or "detached" not in one]
    assert set(SIGNATURES) <= set(found)
    refused = set(planted(label)["refused"])
    for signature, one in found.items():
        outcome = one.get("outcome", "")
        assert outcome not in ("NameError", "SyntaxError"), signature
        assert signature in refused or not outcome.endswith("Error"), (signature, outcome)
        assert signature not in refused or outcome.endswith("Error") or binding != "C API", (signature, outcome)
    known = KNOWN.get((label, binding), set())
    leaks = {signature: set(one.get("leaks", ())) for signature, one in found.items()}
    assert set().union(*leaks.values()) >= known
    # In a process that does nothing else, with many more calls: what another signature left behind does not come again,
    # and what fills and empties (frees that 3.13t puts off) does not go on growing.
    for signature in [signature for signature, those in leaks.items() if those - known]:
        again = checked(label, binding, 30 * CALLS, 5, "--signature", signature)[signature]
        assert not set(again["leaks"]) - known, (signature, again)


def test_planted_leaks_are_found(label):
    for signature, wanted in WANTED.items():
        one = planted(label)["said"][signature]
        counted = [leak for leak in wanted if leak.startswith("references") or one["many"][leak] is not None]
        assert set(counted) <= set(one["leaks"]), (signature, one)
        assert wanted or not one["leaks"], (signature, one)
