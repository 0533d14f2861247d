"""Made-up records of the chapter "Critical sections", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.critical_sections.claims import versions_of_a6
from notebooks.critical_sections.experiment import PYO3_CALL
from notebooks.critical_sections.results import BOUNDARY_ARMS

A6 = versions_of_a6("critical_sections")
INTERPRETERS = [build for version in A6.values() for build in (version, f"{version}t")]
# Standard deviations over restarts, seen in `quick`: of the mean over six bindings, and of a mutex over an atomic increment
# (0.016 and 0.015); and of a hundred atomic increments over a hundred under one mutex.
RESTARTS, HUNDRED = 0.02, 0.1
ATOMICS, LOCKED = "100 atomic increments", "100 increments under one PyMutex"


def simulated(session: Simulated) -> None:
    cells = {}
    for name, version in A6.items():
        # One binding stands for the mean of six.
        cells[version, BOUNDARY_ARMS[0]] = 50.0
        cells[f"{version}t", BOUNDARY_ARMS[0]] = 50.0 * session.true("A6", name)
    for slow, fast in ((ATOMICS, LOCKED), ("PyMutex", "atomic increment")):
        cells[FREE_THREADED, f"{fast}, in C"] = 5.0
        cells[FREE_THREADED, f"{slow}, in C"] = 5.0 * session.true("A8", f"{slow} / {fast}")
    session.add_times("single", cells, RESTARTS)
    factors = session.scattered(1, HUNDRED, session.budget.layouts)
    for block in session.timed("single").blocks:
        block["ns"][f"{FREE_THREADED}/{ATOMICS}, in C"] *= factors[block["restart"] % session.budget.layouts]

    session.add_observation("bindings by a stand-in", {})
    session.add_observation("code of locks", [code(session, label) for label in (GIL, FREE_THREADED)])


def code(session: Simulated, label: str) -> dict:
    """The instructions of a call, so many of a thousand from the header of atomics."""
    share = max(0.0, session.true("A9", f"share of atomics and locks in a PyO3 call on {label}"))
    by_file = {"pyatomic_gcc.h": 1_000 * share, "ceval.c": 1_000 * (1 - share)}
    return {"interpreter": label, "what": PYO3_CALL, "by_file": by_file}
