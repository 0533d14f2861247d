"""Experiments of the chapter on the boundary that need a process of their own.

Standard library only: `ffilab/measure/worker.py case` calls one of these functions and prints what it returns.
"""

import gc
import importlib
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arms
import evaluate
import talk_loop

# [original]
SAMPLES, DROPPED = 200, 5


def single_calls(return_int):
    """One cold call, then 200 single calls, each timed alone through a lambda, and each answer looked at. In ns."""
    gc.collect()
    wrapped = lambda: return_int()  # noqa: E731
    expected = wrapped()
    time.sleep(0.001)
    taken = []
    for _ in range(SAMPLES):
        started = time.perf_counter_ns()
        answer = wrapped()
        taken.append(time.perf_counter_ns() - started)
        if answer != expected:
            raise ValueError(f"{answer} instead of {expected}")
    return taken[DROPPED:]


def original(folder, bindings):
    """A1 to A4 as the talk ran them: all bindings are loaded, then timed in a fixed order, in one process."""
    called = {}
    for binding in bindings:
        try:
            called[binding] = talk_loop.return_int(folder, binding)
        except ImportError:
            continue
    return [{"binding": binding, "ns": single_calls(return_int)} for binding, return_int in called.items()]


# [/original]


# [first_use]
def resident_kib():
    """Resident memory of this process; None where there is no /proc."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    except OSError:
        return None


def first_use(folder, binding, linking):
    """Import one binding and call it, in a process that has done neither.

    linking: `default`; or `lazy`, to resolve each symbol at its first call.
    """
    if linking == "lazy":
        sys.setdlopenflags(os.RTLD_LAZY)
    chosen = arms.EVERY_FORM[binding]
    sys.path.insert(0, arms.place(folder))
    before = resident_kib()
    started = time.perf_counter_ns()
    loaded = importlib.import_module(chosen.module)
    imported = time.perf_counter_ns() - started
    after = resident_kib()
    call = arms.functions(loaded, chosen).noop
    times = []
    for _ in range(101):
        started = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - started)
    return {
        "import_ms": imported / 1e6,
        "resident_kib": after - before if before else None,
        "first_call_ns": times[0],
        "later_call_ns": statistics.median(times[1:]),
    }


# [/first_use]


# [one object]
def one_object(folder, binding, method, threads, calls):
    """Shares of additions to one object that got lost, and that were refused with an exception."""
    lost, refused = evaluate.one_object(arms.load(folder, binding), threads, calls, method)
    return {"lost": lost / (threads * calls), "refused": refused / (threads * calls)}


# [/one object]


# [interpreter]
CALL_IT = """
import sys
sys.path.insert(0, {here!r})
import arms
m = arms.load({folder!r}, {binding!r})
assert (m.add_one(1), m.Counter(5).add(1)) == (2, 6)
"""


def own_interpreter(folder, binding):
    """Import one binding in the main interpreter, then in another one with a GIL of its own, and call it there."""
    from concurrent import interpreters  # from 3.14 on

    arms.load(folder, binding)
    other = interpreters.create()
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        other.exec(CALL_IT.format(here=here, folder=folder, binding=binding))
        said = None
    except interpreters.ExecutionFailed as failed:
        said = f"{failed.excinfo.type.__name__}: {failed.excinfo.msg}"
    other.close()
    return {"said": said}


# [/interpreter]
