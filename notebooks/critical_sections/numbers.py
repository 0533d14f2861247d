"""The numbers of the chapter "Critical sections", by name, and its own controls. The rules: claims.toml."""

from collections.abc import Callable
from functools import partial

from ffilab.bench.record import Record
from ffilab.bench.session import Session
from ffilab.judge.claims import declared
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Location, Measurement
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import exact
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections import results
from notebooks.critical_sections.experiment import AS_BUILT, BOTH, ONE, OUT_OWN, OWN, PYO3_CALL, PYO3_CALL_GIL_ON

# The versions that A6 names: the talk compared both builds of two.
A6 = next(claim for claim in declared("critical_sections").claims if claim.id == "A6")
VERSIONS = tuple(dict.fromkeys(test.measured.rpartition(" / ")[2] for test in A6.tests))
# A8, our own cases: the slow piece, and the fast one.
PAIRS = (
    ("100 atomic increments", "100 increments under one PyMutex"),
    ("100 increments under one PyMutex", "one atomic addition of 100"),
    ("PyMutex", "atomic increment"),
)
# A8: how the ledger calls a way to declare a function of ctypes.
WAYS = {BOTH: "int → int", OUT_OWN: "→ int, a type for each"}
# A9: what the talk's loop does beside the call.
WRITE = "dict, write"
PYBIND11 = boundary.name("pybind11", boundary.ANSWER)


def numbers(session: Session) -> Makers:
    made = {}
    code = session.observed("code of locks")
    stand_ins = session.observed("bindings by a stand-in")
    for version in VERSIONS:
        builds = f"{version}t / {version}"
        for name, found in (
            (f"boundary, {builds}", lambda v=version: boundary_tax(session.timed("single"), v, stand_ins)),
            (f"as the talk ran it, {builds}", lambda v=version: single_calls(session, v, stand_ins)),
        ):
            made[name] = found

    cells = (FREE_THREADED, PYBIND11), (GIL, PYBIND11)
    made[f"pybind11, → int: {FREE_THREADED} / {GIL}"] = times(
        lambda: results.net_ratio(session.timed("single"), *cells)
    )
    for way, title in WAYS.items():
        made[f"ctypes, {title}: two threads / one on {FREE_THREADED}"] = lambda way=way: results.rate_of_two(
            session.frame("ctypes, apart"), way, OWN
        )
    for pair in PAIRS:
        made[" / ".join(pair)] = times(lambda pair=pair: results.pieces_compared(session.timed("single"), *pair))
    made[f"PyMutex / atomic increment, two threads on {ONE}"] = lambda: results.rivals(
        session.frame("locks in company"), "PyMutex", "atomic increment"
    )

    for label, what in ((GIL, PYO3_CALL), (FREE_THREADED, PYO3_CALL), (FREE_THREADED, PYO3_CALL_GIL_ON)):
        found = results.code_in(code, label, what)
        share = found if isinstance(found, str) else exact(found["atomics"] / found["all"], "share of instructions")
        made[f"share of atomics in {what} on {label}"] = lambda share=share: share
        if label == FREE_THREADED:
            made[f"instructions of locks in {what} on {label}"] = partial(locks, found)
    for label in (GIL, FREE_THREADED):
        made[f"instructions of locks in {WRITE} on {label}"] = partial(locks, results.code_in(code, label, WRITE))
    return made


def locks(found: dict[str, float] | str) -> Measurement | str:
    """Instructions of locks, counted; or why they are not known."""
    return found if isinstance(found, str) else exact(found["locks"], "instructions")


def controls(session: Session) -> list[Check]:
    """Can this machine do two things at once? What the page says of threads rests on it, and no part of a claim."""
    return results.calibrated(session.frame("two at once"), session.machine["cores_usable"])


def times(find: Callable[[], Location | None]) -> Callable[[], Measurement | None]:
    """A ratio of times as a measurement; None if one of the two was not timed."""

    def made() -> Measurement | None:
        found = find()
        return Measurement(found, "ratio of times") if found else None

    return made


def lacking(session_has: list[str], version: str) -> str:
    """Why two builds of a version are no pair here."""
    labels = [label for label in (version, f"{version}t") if label not in session_has]
    if not labels:
        return f"no binding was built alike for {version} and {version}t"
    return f"CPython {' and '.join(labels)} (KERNELS=all compiles every interpreter of the book, and measures on it)"


def boundary_tax(record: Record, version: str, stand_ins: dict[str, dict[str, str]]) -> Measurement | str:
    """The free-threaded build over the one with the GIL, on the talk's calls without their loop; or why it is not known."""
    found = results.tax(record, version, results.talk_arms(version, stand_ins))
    return Measurement(found, "ratio of times") if found else lacking(record.interpreters, version)


def single_calls(session: Session, version: str, stand_ins: dict[str, dict[str, str]]) -> Measurement | str:
    """The same by the talk's method."""
    runs = session.frame("single calls, as the talk ran them")
    found = results.as_run(runs, version, AS_BUILT, stand_ins)
    return Measurement(found, "ratio of times") if found else lacking(session.interpreters, version)
