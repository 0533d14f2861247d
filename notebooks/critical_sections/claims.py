"""What the chapter "Critical sections" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.record import Record
from ffilab.bench.session import Session
from ffilab.judge import statistics
from ffilab.judge.claims import declared
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import exact
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.critical_sections import results
from notebooks.critical_sections.experiment import PYO3_CALL


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    code = session.observed("code of locks")
    stand_ins = session.observed("bindings by a stand-in")

    for name, version in versions_of_a6(session.corner).items():
        handed.put("A6", name, lambda version=version: boundary_tax(session.timed("single"), version, stand_ins))
    for slow, fast in (
        ("100 atomic increments", "100 increments under one PyMutex"),
        ("PyMutex", "atomic increment"),
    ):
        handed.put("A8", f"{slow} / {fast}", lambda pair=(slow, fast): over(session.timed("single"), *pair))
    for label in (FREE_THREADED, GIL):
        share = results.lock_share(code, label, PYO3_CALL)
        found = share if isinstance(share, str) else exact(share, "share of instructions")
        handed.put("A9", f"share of atomics and locks in a PyO3 call on {label}", found)
    return handed


def controls(session: Session) -> list[Check]:
    """Can this machine do two things at once? What the page says of threads rests on it, and no claim."""
    return results.calibrated(session.frame("two at once"), session.machine["cores_usable"])


def versions_of_a6(corner: str) -> dict[str, str]:
    """Name of the test: the version that it speaks of. The talk compared two, and the claim names them."""
    claim = next(claim for claim in declared(corner).claims if claim.id == "A6")
    return {test.measured: test.measured.rpartition(" / ")[2] for test in claim.tests}


def boundary_tax(record: Record, version: str, stand_ins: dict[str, dict[str, str]]) -> Measurement | str:
    """The free-threaded build over the one with the GIL, on calls across the boundary; or why it is not known."""
    found = results.tax(record, version, results.boundary_arms(version, stand_ins))
    if found is None:
        lacking = [label for label in (version, f"{version}t") if label not in record.interpreters]
        if not lacking:
            return f"no binding was built alike for {version} and {version}t"
        return (
            f"CPython {' and '.join(lacking)} (KERNELS=all compiles every interpreter of the book, and measures on it)"
        )
    return Measurement(found, "ratio of times")


def over(record: Record, slow: str, fast: str) -> Measurement | None:
    """Time of one piece over that of another, on the free-threaded build; None if one of them is missing."""
    cells = [(FREE_THREADED, f"{name}, in C") for name in (slow, fast)]
    return statistics.compare(record, *cells).measurement if all(record.measured(*cell) for cell in cells) else None
