"""What the chapter "The boundary" hands in to the ledger, from its records alone. The rules: claims.toml."""

import itertools

from ffilab.bench.session import Session
from ffilab.judge import statistics
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import exact
from ffilab.judge.statistics import Measurement
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.boundary import results
from notebooks.boundary.experiment import FLOOR, TALK

WITH_PYDLL = ("cffi ABI", "ctypes PyDLL", "pybind11", "PyO3")
ANSWER = "→ int"


def measurements(session: Session) -> Handed:
    handed = Handed(session.corner)
    record = session.timed("matrix")

    def put(claim: str, name: str, slow: tuple[str, str, str], fast: tuple[str, str, str]) -> None:
        handed.put(claim, name, results.comparison(record, slow, fast))

    for a, b in itertools.pairwise(TALK):
        put("A1", f"{a} / {b}", (GIL, a, ANSWER), (GIL, b, ANSWER))
        put("A2", f"{a} / {b} on {FREE_THREADED}", (FREE_THREADED, a, ANSWER), (FREE_THREADED, b, ANSWER))
    for binding in TALK:
        put("A2", f"{binding}: {FREE_THREADED} / {GIL}", (FREE_THREADED, binding, ANSWER), (GIL, binding, ANSWER))
    put("A3", "cffi ABI / ctypes PyDLL", (GIL, "cffi ABI", ANSWER), (GIL, "ctypes PyDLL", ANSWER))
    for a, b in itertools.pairwise(WITH_PYDLL):
        put("A4", f"{a} / {b} on {FREE_THREADED}", (FREE_THREADED, a, ANSWER), (FREE_THREADED, b, ANSWER))
    for text in ("str in, ASCII", "str in, é, first", "str out"):
        put("A7", f"{text}: {FREE_THREADED} / {GIL}", (FREE_THREADED, FLOOR, text), (GIL, FLOOR, text))
    for binding in results.CPP:
        put("A23", f"{binding} / PyO3", (GIL, binding, "C++ method"), (GIL, "PyO3", "C++ method"))
    hand_off(handed, session.observed("where the time goes"))
    call_paths(handed, session.observed("call trees"))
    return handed


def hand_off(handed: Handed, profiles: dict | str) -> None:
    """A10, in samples of one profile."""

    def share(part: int, whole: int) -> Measurement:
        found = statistics.share_interval(part, whole)
        return Measurement(found, found.half_width, "share of samples")

    groups = results.groups(profiles, GIL, "ctypes CDLL")
    found = [profiles if isinstance(profiles, str) else "ctypes CDLL was not profiled"] * 2
    if groups:
        taken, libffi = groups["GIL and thread state"], groups["libffi"]
        found = [share(taken, sum(groups.values())), share(taken, taken + libffi)]
    for name, one in zip(("share of the hand-off in a CDLL call", "hand-off among hand-off and libffi"), found):
        handed.put("A10", name, one)


def call_paths(handed: Handed, trees: dict | str) -> None:
    """A11, in instructions of one call."""
    for binding, name, pattern in (
        ("ctypes CDLL", "ctypes: share below _ctypes_callproc", "_ctypes_callproc"),
        ("ctypes CDLL", "ctypes: share below ffi_call", "ffi_call"),
        ("PyO3", "PyO3: share below its trampoline", "trampoline"),
    ):
        if isinstance(trees, str):
            handed.put("A11", name, trees)
        elif binding in trees:
            share = results.below(results.nodes(trees[binding]), pattern)
            handed.put("A11", name, exact(share, "share of instructions"))
        else:
            handed.put("A11", name, f"{binding} was not built")
