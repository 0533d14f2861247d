"""Made-up records of the chapter "Critical sections", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.measure.plan import EMPTY
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.boundary.experiment import TALK
from notebooks.critical_sections.experiment import AS_BUILT, ONE, OWN, PYO3_CALL, PYO3_CALL_GIL_ON
from notebooks.critical_sections.numbers import PAIRS, PYBIND11, VERSIONS, WAYS, WRITE
from notebooks.critical_sections.results import TALK_ARMS

INTERPRETERS = [build for version in VERSIONS for build in (version, f"{version}t")]
# Standard deviations, seen in `quick`: over restarts of the mean over four bindings, and of a mutex over an atomic increment;
# of a hundred atomic increments over a hundred under one mutex; over processes of a gain by a second thread, of means of single calls.
RESTARTS, HUNDRED, GAINS, SINGLE = 0.02, 0.1, 0.15, 0.1
EMPTY_LOOP, ATOMICS = 5.0, "100 atomic increments"


def simulated(session: Simulated) -> None:
    cells = {}
    pybind11 = session.true("A8", f"pybind11, → int: {FREE_THREADED} / {GIL}")
    for version in VERSIONS:
        # Two bindings stand for the mean of four.
        tax = session.true("A6", f"boundary, {version}t / {version}")
        of_one = {PYBIND11: pybind11 if version == GIL else tax}
        of_one[TALK_ARMS[0]] = tax**2 / of_one[PYBIND11]
        for arm, ratio in of_one.items():
            cells[version, arm], cells[f"{version}t", arm] = EMPTY_LOOP + 50.0, EMPTY_LOOP + 50.0 * ratio
    # The one that two pairs share comes first.
    cells[FREE_THREADED, f"{PAIRS[0][1]}, in C"] = 5.0
    for slow, fast in PAIRS:
        ratio, of = session.true("A8", f"{slow} / {fast}"), cells.get((FREE_THREADED, f"{slow}, in C"))
        if of:
            cells[FREE_THREADED, f"{fast}, in C"] = of / ratio
        else:
            cells[FREE_THREADED, f"{slow}, in C"] = cells.setdefault((FREE_THREADED, f"{fast}, in C"), 5.0) * ratio
    session.add_times("single", cells, RESTARTS)
    factors = session.scattered(1, HUNDRED, session.budget.layouts)
    for block in session.timed("single").blocks:
        block["ns"][f"{FREE_THREADED}/{ATOMICS}, in C"] *= factors[block["restart"] % session.budget.layouts]

    n = session.budget.repeats
    session.add_processes("single calls, as the talk ran them", [
        (label, {"gil": AS_BUILT}, [{TALK[0]: float(ns)} for ns in session.scattered(100.0 * ratio, SINGLE, 2 * n)])
        for version in VERSIONS
        for label, ratio in ((version, 1.0), (f"{version}t", session.true("A6", f"as the talk ran it, {version}t / {version}")))
    ])  # fmt: skip
    session.add_processes("ctypes, apart", [
        (FREE_THREADED, {"name": way, "threads": 2, "shared": OWN}, [
            {"alone": 1e7, "together": 1e7 * float(gain)}
            for gain in session.scattered(session.true("A8", f"ctypes, {way}: two threads / one on {FREE_THREADED}"), GAINS, n)
        ])
        for way in WAYS
    ])  # fmt: skip
    slower = session.true("A8", f"PyMutex / atomic increment, two threads on {ONE}")
    session.add_processes("locks in company", [
        (FREE_THREADED, {"name": name, "threads": 2, "shared": ONE}, [
            {"alone": 1e8, "together": 1e8 / float(ns)} for ns in session.scattered(ratio, GAINS, session.budget.few)
        ])
        for name, ratio in (("PyMutex", slower), ("atomic increment", 1.0))
    ])  # fmt: skip

    session.add_observation("bindings by a stand-in", {})
    loops = [
        {"interpreter": label, "what": EMPTY, "by_file": {"pyatomic_gcc.h": 12.0}} for label in (GIL, FREE_THREADED)
    ]
    calls = ((GIL, PYO3_CALL), (FREE_THREADED, PYO3_CALL), (FREE_THREADED, PYO3_CALL_GIL_ON))
    writes = [
        {
            "interpreter": label,
            "what": WRITE,
            "by_file": {
                "pyatomic_gcc.h": 12.0,
                "lock.h": max(0.0, session.true("A9", f"instructions of locks in {WRITE} on {label}")),
            },
        }
        for label in (GIL, FREE_THREADED)
    ]
    session.add_observation("code of locks", [*loops, *(code(session, *call) for call in calls), *writes])


def code(session: Simulated, label: str, what: str) -> dict:
    """The instructions of a call, so many of a thousand from the header of atomics, and some from that of mutexes."""
    share = max(0.0, session.true("A9", f"share of atomics in {what} on {label}"))
    locks = 0.0
    if label == FREE_THREADED:
        locks = max(0.0, session.true("A9", f"instructions of locks in {what} on {label}"))
    by_file = {"pyatomic_gcc.h": 12.0 + 1_000 * share, "lock.h": locks, "ceval.c": 1_000 * (1 - share) - locks}
    return {"interpreter": label, "what": what, "by_file": by_file}
