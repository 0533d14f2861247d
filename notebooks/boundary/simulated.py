"""Made-up records of the chapter "The boundary", by what is true of its claims: see ffilab/judge/simulation.py."""

import math

from ffilab.judge.simulation import TRUTHS, Simulated
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.boundary.experiment import ANSWER, CPP, FLOOR, INT, METHOD, TALK, name
from notebooks.boundary.results import INTERPRETER, PATHS, TAXED

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviation over restarts of the ratio of two cells: an assumption for `full`, to be checked against the next real run of the
# plan "claims". A trial of that plan in `quick`, with 10 blocks and beside other work, had 0.02 to 0.09, in the middle 0.046: if
# `full` does not come below that, this number has to be raised.
RESTARTS = 0.02
# Of the shares over ten processes as `quick` takes them, relative to the share.
HAND_OFF, AMONG_BOTH = 0.08, 0.05
NS = 100.0
# What any call takes longer without the GIL, which A7 does not speak of.
TAX = 1.1
SAMPLES = 2_000


def simulated(session: Simulated) -> None:
    session.add_times("claims", cells(session), RESTARTS)
    session.add_observation(
        "where the time goes, by process", {GIL: {"ctypes CDLL": profiles(session)}, FREE_THREADED: {}}
    )
    session.add_observation("call trees", {binding: tree(session, binding) for binding in PATHS})


def cells(session: Simulated) -> dict[tuple[str, str], float]:
    """Times (ns) of all cells that claims compare.

    Eight cells cannot have ten ratios of their own. Those of A1 and the surcharges of A2 set them, beside ctypes without the
    GIL, which A2 sets by its ratio to cffi. The published ratios that are left follow, within 1 %. ctypes with PyDLL is set by
    A3 without the GIL, and lies with it in the middle of the two that A4 puts it between.
    """
    dear, cffi, pybind11, pyo3 = TALK
    found = {(GIL, pyo3): NS}
    for slow, fast in ((pybind11, pyo3), (cffi, pybind11), (dear, cffi)):
        found[GIL, slow] = found[GIL, fast] * session.true("A1", f"{slow} / {fast}")
    for binding in (cffi, pybind11, pyo3):
        more = session.true("A2", f"{binding}: {FREE_THREADED} / {GIL}")
        found[FREE_THREADED, binding] = found[GIL, binding] * more
    found[FREE_THREADED, dear] = found[FREE_THREADED, cffi] * session.true("A2", f"{dear} / {cffi} on {FREE_THREADED}")
    ahead = session.true("A3", f"{cffi} / ctypes PyDLL on {FREE_THREADED}")
    found[FREE_THREADED, "ctypes PyDLL"] = found[FREE_THREADED, cffi] / ahead
    found[GIL, "ctypes PyDLL"] = math.sqrt(found[GIL, cffi] * found[GIL, pybind11])
    times = {(label, name(binding, ANSWER)): ns for (label, binding), ns in found.items()}

    times[GIL, name(FLOOR, INT)], times[FREE_THREADED, name(FLOOR, INT)] = NS, NS * TAX
    for text in TAXED:
        times[GIL, name(FLOOR, text)] = NS
        more = session.true("A7", f"{text}, over int: {FREE_THREADED} / {GIL}")
        times[FREE_THREADED, name(FLOOR, text)] = NS * TAX * more
    times[GIL, name("PyO3", METHOD)] = NS
    for binding in CPP:
        times[GIL, name(binding, METHOD)] = NS * session.true("A23", f"{binding} / PyO3")
    return times


def profiles(session: Simulated) -> list[dict]:
    """Samples of each process. No share is below that of one sample."""
    n, least = session.budget.repeats, 1 / SAMPLES
    of_all = session.scattered(max(least, session.true("A10", "share of the hand-off in a CDLL call")), HAND_OFF, n)
    of_both, of_added = (
        session.scattered(session.true("A10", f"{one} among {one} and {other}"), AMONG_BOTH, n).clip(least, 1)
        for one, other in (("hand-off", "libffi"), ("libffi", "the largest of the others"))
    )
    found = []
    for part, among, added in zip(of_all, of_both, of_added):
        taken = SAMPLES * part
        libffi = taken * (1 / among - 1)
        other = libffi * (1 / added - 1)
        costs = {"take_gil": taken, "ffi_call": libffi, "ConvParam": other}
        costs[INTERPRETER] = max(0.0, SAMPLES - sum(costs.values()))
        found.append({"how": "perf cpu-clock", "costs": [[symbol, "", float(cost)] for symbol, cost in costs.items()]})
    return found


def tree(session: Simulated, binding: str) -> list[dict]:
    """A call path as it should be; only the interpreter's function where the claim is not true. It is counted: no scatter."""
    functions = [INTERPRETER]
    if TRUTHS[session.truth] > 0:
        functions += [inner.split("|")[0] for _, _, inner in PATHS[binding]]
    return [
        {"depth": depth, "function": function, "instructions": NS, "share": 1.0}
        for depth, function in enumerate(functions)
    ]
