"""Made-up records of the chapter "The boundary", by what is true of its claims: see ffilab/judge/simulation.py."""

import math

import numpy as np

from ffilab.judge.claims import declared
from ffilab.judge.simulation import TRUTHS, Simulated
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary import experiment as e
from notebooks.boundary import results
from notebooks.boundary.experiment import name

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviation over restarts of the ratio of two cells: an assumption for `full`, to be checked against the next real run of the
# plan "claims". A trial of that plan in `quick`, with 10 blocks and beside other work, had 0.02 to 0.09, in the middle 0.046: if
# `full` does not come below that, this number has to be raised.
RESTARTS = 0.02
# Of the shares over ten processes as `quick` takes them, and of what single calls of a process take, relative to the value.
HAND_OFF, AMONG_BOTH, SINGLE = 0.08, 0.05, 0.02
# What a call takes, the loop around it, and the hand-over of the GIL.
NS, LOOP, HANDED_OVER = 100.0, 5.0, 40.0
# The published ratios of an order are far larger than what is of interest in one: the made-up ones are its value to this power.
PUBLISHED = 3
# What any call takes longer without the GIL, which A7 does not speak of.
TAX = 1.1
SAMPLES, CALLS = 2_000, 60


def simulated(session: Simulated) -> None:
    session.add_times("claims", cells(session), RESTARTS)
    session.add_processes(e.PROGRAM, single_calls(session))
    session.add_observation(
        "where the time goes, by process",
        {
            GIL: {"ctypes CDLL": profiles(session, "take_gil"), "ctypes PyDLL": profiles(session, "ffi_call")},
            FREE_THREADED: {},
        },
    )
    session.add_observation("the talk's loop, profiled", {"ctypes CDLL": call_graphs(session)})
    session.add_observation("call trees", {binding: tree(session, binding) for binding in results.PATHS})


def cells(session: Simulated) -> dict[tuple[str, str], float]:
    """Times (ns) of all cells that claims compare.

    Not every ratio can have a time of its own. Those of A1 and the surcharges of A2 set the cells of the talk's four, and what else A2
    asks follows from them. ctypes with PyDLL is set by A3, and with the GIL lies in the middle of the two that A4 puts it between. A ratio of one build
    holds the loop, one of two builds does not.
    """
    dear, cffi, _, pyo3 = e.TALK
    held = "ctypes PyDLL"
    found = {(GIL, pyo3): NS}
    for fast, slow in ((e.TALK[n + 1], e.TALK[n]) for n in (2, 1, 0)):
        found[GIL, slow] = found[GIL, fast] * session.true("A1", f"{slow} / {fast}") ** PUBLISHED
    for build in (FREE_THREADED, e.GIL_ON):
        for binding in e.TALK:
            more = session.true("A2", f"{binding}: {build} / {GIL}")
            # ctypes without the GIL is set by its ratio to cffi, which has to be dearer by more than by what that ratio is with the GIL.
            more = more ** (3 * PUBLISHED if binding == cffi else PUBLISHED)
            found[build, binding] = LOOP + (found[GIL, binding] - LOOP) * more
        found[build, held] = found[build, cffi] / session.true("A3", f"{cffi} / {held} on {build}") ** PUBLISHED
    found[FREE_THREADED, dear] = (
        found[FREE_THREADED, cffi] * session.true("A2", f"{dear} / {cffi} on {FREE_THREADED}") ** PUBLISHED
    )
    found[GIL, held] = math.sqrt(found[GIL, cffi] * found[GIL, e.TALK[2]])
    times = {place(build, name(binding, e.ANSWER)): ns for (build, binding), ns in found.items()}

    for build in (GIL, FREE_THREADED, e.GIL_ON):
        times[place(build, name(e.FLOOR, e.INT))] = LOOP + NS * (TAX if build != GIL else 1)
        times[place(build, e.TEXT_MADE)] = NS
        for text in e.TAXED if build != e.GIL_ON else (e.TEXT,):
            more = 1.0 if build == GIL else TAX * session.true("A7", f"{text}, over int: {build} / {GIL}")
            times[place(build, name(e.FLOOR, text))] = (NS if text == e.TEXT else LOOP) + NS * more
    times[FREE_THREADED, "empty loop (GIL on)"] = LOOP

    with_int = [(GIL, name(binding, e.INT)) for binding in e.WITH_THE_GIL[e.INT]]
    times[with_int[0]] = found[GIL, dear] + HANDED_OVER * session.true("A10", results.ARGUMENT)
    times[with_int[1]] = times[with_int[0]] - HANDED_OVER
    times[GIL, name("PyO3", e.METHOD)] = times[GIL, name("PyO3", e.ERROR)] = times[GIL, name(e.FLOOR, e.DETACHED)] = NS
    for binding in (*e.CPP, *e.WITH_THE_GIL[e.METHOD]):
        least = session.true("A23", results.FASTEST)
        times[GIL, name(binding, e.METHOD)] = NS * (
            least if binding == "Cython" else session.true("A23", f"a method: {binding} / PyO3")
        )
    for binding in ("pybind11", "nanobind"):
        times[GIL, name(binding, e.ERROR)] = NS * session.true("A23", f"an error: {binding} / PyO3")
    times[GIL, name("cffi API", e.DETACHED)] = NS * session.true("A1", results.EQUALS)
    return times


def place(build: str, arm: str) -> tuple[str, str]:
    return (FREE_THREADED, arm + e.ON) if build == e.GIL_ON else (build, arm)


def single_calls(session: Simulated) -> list[tuple[str, dict, list]]:
    """Samples of the talk's own program. In some processes ctypes takes less than cffi most of the time, and more on average."""
    claims = {test.number: claim.id for claim in declared(session.chapter).claims for test in claim.tests}
    sizes = {cells: session.true(claims[name], name) for name, cells in results.as_run().items()}
    n, (dear, cffi, pybind11, pyo3), held = session.budget.repeats, e.TALK, "ctypes PyDLL"
    means = {(GIL, pyo3): NS}
    for fast, slow in ((pyo3, pybind11), (pybind11, cffi), (cffi, dear)):
        means[GIL, slow] = means[GIL, fast] * sizes[(GIL, slow), (GIL, fast)]
    for binding in e.TALK:
        means[FREE_THREADED, binding] = means[GIL, binding] * sizes[(FREE_THREADED, binding), (GIL, binding)]
    means[FREE_THREADED, held] = means[FREE_THREADED, cffi] / sizes[(FREE_THREADED, cffi), (FREE_THREADED, held)]
    ranks = np.linspace(-0.001, 0.001, CALLS)
    swapped = session.events(session.true("A1", results.MISRANKED), n)
    cases = []
    for build in (GIL, FREE_THREADED):
        rows: list[list[dict]] = [[] for _ in range(n)]
        for (other, binding), mean in means.items():
            for number, centre in enumerate(session.scattered(mean, SINGLE, n) if other == build else ()):
                ns = centre * (1 + ranks)
                if binding == dear and build == GIL and swapped[number]:
                    less = 0.98 * means[GIL, cffi]
                    ns = np.where(np.arange(CALLS) < 0.7 * CALLS, less, (centre - 0.7 * less) / 0.3)
                rows[number].append({"binding": binding, "ns": ns.tolist()})
        cases.append((build, {"build": build}, rows))
    return cases


def profiles(session: Simulated, of: str) -> list[dict]:
    """Samples of each process of a call with its hand-over (take_gil), or of one without, led by libffi or by another group. No
    share is below that of one sample."""
    n, least = session.budget.repeats, 1 / SAMPLES
    found = []
    taken = session.scattered(max(least, session.true("A10", "share of the hand-off in a CDLL call")), HAND_OFF, n)
    among = session.scattered(session.true("A10", results.NEXT), AMONG_BOTH, n).clip(least, 1)
    for part, libffi in zip(taken, among):
        both = SAMPLES / 10
        costs = (
            {"take_gil": SAMPLES * part}
            if of == "take_gil"
            else {"ffi_call": both * libffi, "ConvParam": both * (1 - libffi)}
        )
        costs[results.INTERPRETER] = max(0.0, SAMPLES - sum(costs.values()))
        found.append({"how": "perf cpu-clock", "costs": [[symbol, "", float(cost)] for symbol, cost in costs.items()]})
    return found


def call_graphs(session: Simulated) -> list[dict]:
    """Stacks of the talk's loop, in each process so many of them in the lock of the GIL."""
    shares = session.scattered(session.true("A10", results.AS_RUN_LOCK), HAND_OFF, session.budget.few).clip(0, 1)
    stacks = [["pthread_mutex_lock", "take_gil"], [results.INTERPRETER]]
    return [
        {"how": "perf cycles", "stacks": [[stack, SAMPLES * part] for stack, part in zip(stacks, (one, 1 - one))]}
        for one in map(float, shares)
    ]


def tree(session: Simulated, binding: str) -> list[dict]:
    """A call path as it should be; only the interpreter's function where the claim is not true. It is counted: no scatter."""
    functions = [results.INTERPRETER]
    if TRUTHS[session.truth] > 0:
        functions += [inner.split("|")[0] for _, _, inner in results.PATHS[binding]]
        # A claim of one value: true is that value, and it is found.
        functions += [results.VECTORCALL] * (binding == "PyO3" and session.true("A11", results.BY_VECTORCALL) == 1)
    return [
        {"depth": depth, "function": function, "instructions": NS, "share": 1.0}
        for depth, function in enumerate(functions)
    ]
