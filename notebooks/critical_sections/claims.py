"""What the chapter "Critical sections" hands in to the ledger, from its records alone. The rules: claims.toml."""

import numpy as np

from ffilab.bench.record import Record
from ffilab.bench.session import Session
from ffilab.judge import statistics
from ffilab.judge.claims import declared
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import exact
from ffilab.judge.statistics import Measurement
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.critical_sections import results
from notebooks.critical_sections.experiment import PYO3_CALL


def measurements(session: Session) -> Handed:
    handed = Handed(session.corner)
    record = session.timed("single")
    code = session.observed("code of locks")

    for name, version in versions_of_a6(session.corner).items():
        handed.put("A6", name, boundary_tax(record, version))
    for slow, fast in (
        ("100 atomic increments", "100 increments under one PyMutex"),
        ("PyMutex", "atomic increment"),
    ):
        handed.put("A8", f"{slow} / {fast}", over(record, slow, fast))
    for label in (FREE_THREADED, GIL):
        share = results.lock_share(code, label, PYO3_CALL)
        found = share if isinstance(share, str) else exact(share, "share of instructions")
        handed.put("A9", f"share of atomics and locks in a PyO3 call on {label}", found)
    return handed


def versions_of_a6(corner: str) -> dict[str, str]:
    """Name of the test: the version that it speaks of. The talk compared two, and the claim names them."""
    claim = next(claim for claim in declared(corner).claims if claim.id == "A6")
    return {test.measured: test.measured.rpartition(" / ")[2] for test in claim.tests}


def boundary_tax(record: Record, version: str) -> Measurement | str:
    """The free-threaded build over the one with the GIL, on calls across the boundary; or why it is not known."""
    interval = results.tax(record, version, results.BOUNDARY_ARMS)
    if interval is None:
        return f"the two builds of {version} were not measured"
    mde = statistics.minimum_detectable_effect(interval.map(np.log), len(record.noise.restarts))
    return Measurement(interval, float(np.expm1(mde)), "ratio of times")


def over(record: Record, slow: str, fast: str) -> Measurement | None:
    """Time of one piece over that of another, on the free-threaded build; None if one of them is missing."""
    cells = [(FREE_THREADED, f"{name}, in C") for name in (slow, fast)]
    if not all(record.measured(*cell) for cell in cells):
        return None
    found = statistics.compare(record, *cells)
    return Measurement(found.ratio, found.mde, "ratio of times")
