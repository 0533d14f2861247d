"""Experiments of the marshaling chapter that need a process of their own. Standard library only.

`python experiments.py NAME LIBRARIES ARGUMENT...` prints one JSON object.
"""

import importlib
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "measuring"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import arms
import talk_method


def original(libraries, *bindings):
    """A1 to A4 as the talk ran them: single calls through a lambda, one binding after the other, in one process."""
    samples = {}
    for name in bindings:
        try:
            answer = arms.load(libraries, name).answer
        except ImportError:
            continue
        samples[name] = talk_method.samples(answer)
    return samples


def resident_kib():
    """Resident memory of this process; None where there is no /proc."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    except OSError:
        return None


# [first_use]
def first_use(libraries, binding, linking):
    """Import one binding and call it, in a process that has done neither.

    linking: `default`; `lazy`, to resolve each symbol at its first call; `bind now`, LD_BIND_NOW in the environment.
    """
    if linking == "bind now" and "LD_BIND_NOW" not in os.environ:
        # The dynamic linker reads it when the process starts.
        os.execve(sys.executable, [sys.executable, "-I", *sys.argv], {**os.environ, "LD_BIND_NOW": "1"})
    if linking == "lazy":
        sys.setdlopenflags(os.RTLD_LAZY)
    _, module, part = arms.BINDINGS[binding]
    sys.path.insert(0, arms.place(libraries))
    before = resident_kib()
    started = time.perf_counter_ns()
    loaded = importlib.import_module(module)
    imported = time.perf_counter_ns() - started
    after = resident_kib()
    call = (getattr(loaded, part) if part else loaded).noop
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


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
