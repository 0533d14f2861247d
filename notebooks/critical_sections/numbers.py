"""The numbers of the chapter "Critical sections", by name, and its own controls. The rules: claims.toml,
sentences.toml."""

import itertools
import math
from functools import partial

from ffilab.judge.claims import declared
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Counted, Interval, Location
from ffilab.judge.numbers import Makers, at_once, numbers_of
from ffilab.judge.questions import NO, YES, above
from ffilab.judge.rules import Size
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL, SOURCES
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections import experiment as e
from notebooks.critical_sections import results

# The versions that A6 names: the talk compared both builds of two. And the geometric means of its public data, by
# version.
A6 = next(claim for claim in declared("critical_sections").claims if claim.id == "A6")
VERSIONS = tuple(dict.fromkeys(test.number.rpartition(" / ")[2] for test in A6.tests))
PUBLISHED = {test.number.rpartition(" / ")[2]: test.published for test in A6.tests if isinstance(test, Size)}
LOCKS = ("atomic increment", "PyMutex", "pthread mutex", "critical section")
# A8, our own cases: the slow piece, and the fast one. Then pairs that no claim names.
PAIRS = (
    ("100 atomic increments", "100 increments under one PyMutex"),
    ("100 increments under one PyMutex", "one atomic addition of 100"),
    ("PyMutex", "atomic increment"),
)
FURTHER_PAIRS = (("critical section", "PyMutex"), (e.FOREIGN, "reference count"))
# The bindings of the talk.
TALK = [*boundary.TALK]
# A8: ways to declare a function of ctypes.
WAYS = (e.BOTH, e.OUT_OWN)
# A9: what the talk's loop does beside the call.
WRITE, APPEND = "dict, write", "list, append and pop"
PYBIND11 = boundary.name("pybind11", boundary.ANSWER)
# Groups of cases that two threads run at once: the experiment, the build, and each case with what the threads share.
SHARED = {"own": e.OWN, "foreign": e.MADE_ELSEWHERE, "one": e.ONE}
COMPANY = {
    **{
        f"{what}-{who}": (f"{what} in company", FREE_THREADED, [(name, shared) for name in names])
        for what, names in (("locks", e.IN_COMPANY), ("objects", e.OBJECTS))
        for who, shared in SHARED.items()
    },
    "objects-gil": ("objects in company", GIL, [*itertools.product(e.OBJECTS, (e.ONE, e.OWN))]),
    "bindings": ("bindings in company", FREE_THREADED, [(name, e.ONE) for name in boundary.BINDINGS]),
    "texts": ("texts in company", FREE_THREADED, [(name, e.ONE) for name in e.TEXTS if name != e.KNOWN_NAME]),
}
# A second thread that brings less than a fifth of a thread brings nothing of interest.
WORTH = 1.2


def controls(session: Session) -> list[Check]:
    """Can this machine do two things at once? What the page says of threads rests on it, and no part of a claim."""
    return results.calibrated(session.frame("two at once"), session.machine["cores_usable"])


def numbers(session: Session) -> Makers:
    made: Makers = {}

    def single(name: str, make, *arguments) -> None:
        """A number of what was timed on one thread."""
        made[name] = lambda: make(session.timed("single"), *arguments)

    for version in SOURCES:
        pair = f"{version}t / {version}"
        for kind in results.KINDS:
            made[f"{kind}, {pair}"] = partial(tax, session, version, kind)
        for gil, on in (("", False), (f", {e.GIL_ON}", True)):
            made[f"boundary{gil}, {pair}"] = partial(tax, session, version, "boundary", on)
            made[f"as the talk ran it{gil}, {pair}"] = partial(single_calls, session, version, on)
        made[f"published, {pair}"] = lambda version=version: (
            Counted(PUBLISHED[version]) if version in PUBLISHED else None
        )
        for how in ("boundary", "as the talk ran it"):
            made[f"published is farther from the GIL off than on, {how}, {pair}"] = partial(farther, session, how, pair)
    for binding in TALK:
        arm = boundary.name(binding, boundary.ANSWER)
        cells = (FREE_THREADED, arm), (GIL, arm)
        single(f"{binding}, {boundary.ANSWER}: {FREE_THREADED} / {GIL}", results.net_ratio, *cells)

    for label, name in itertools.product((GIL, FREE_THREADED), (*e.PIECES, e.FOREIGN)):
        single(f"{name}, ns on {label}", results.piece_cost, label, name)
    for slow, fast in dict.fromkeys((*PAIRS, *FURTHER_PAIRS)):
        single(f"{slow} / {fast}", results.pieces_compared, slow, fast)

    made["failures of the calibration"] = lambda: Counted(sum(not check.passed for check in controls(session)))
    # They share nothing.
    made["two threads of the calibration / one"] = lambda: (
        Location.of(session.frame("two at once").threads.to_numpy()).interval
    )
    for title, label, cases in COMPANY.values():
        for name, shared in cases:
            made[of_two(name, shared, label)] = partial(rate_of_two, session, title, label, name, shared)
    made[of_two(e.KNOWN_NAME, e.ONE, FREE_THREADED)] = partial(
        rate_of_two, session, "texts in company", FREE_THREADED, e.KNOWN_NAME, e.ONE
    )
    for name in e.CTYPES:
        made[f"ctypes, {name}: two threads / one on {FREE_THREADED}"] = partial(
            rate_of_two, session, "ctypes, apart", FREE_THREADED, name, e.OWN
        )
    made["share of objects with the GIL that gain"] = partial(share, session, "objects-gil", "more")
    made["share of texts that lose"] = partial(share, session, "texts", "less")
    made["share of texts left open"] = partial(share, session, "texts", "open")
    for name, shared in itertools.product(LOCKS, (e.OWN, e.ONE)):
        made[f"{name}, {shared}: ns of each of two threads"] = partial(each_of_two, session, name, shared)
    made[f"PyMutex / atomic increment, two threads on {e.ONE}"] = lambda: results.rivals(
        session.frame("locks in company"), "PyMutex", "atomic increment"
    )

    looked_at = itertools.product((GIL, FREE_THREADED), (e.PYO3_CALL, WRITE, APPEND))
    for label, what in (*looked_at, (FREE_THREADED, e.PYO3_CALL_GIL_ON)):
        for name, group in (
            ("instructions of", "all"),
            ("instructions of atomics in", "atomics"),
            ("instructions of locks in", "locks"),
            ("share of atomics in", "share"),
        ):
            made[f"{name} {what} on {label}"] = partial(instructions, session, label, what, group)
    return made | {name: at_once(session, make) for name, make in made.items() if "two threads" in name}


def tax(session: Session, version: str, what: str, gil_on: bool = False) -> Location | str:
    """The free-threaded build over the one with the GIL, on a kind of operations or the talk's calls; or why it is not
    known."""
    record = session.timed("single")
    arms = results.KINDS.get(what) or results.talk_arms(version, session.observed("bindings by a stand-in"))
    return results.tax(record, version, list(arms), gil_on) or lacking(record.interpreters, version)


def single_calls(session: Session, version: str, gil_on: bool) -> Location | str:
    """The free-threaded build over the one with the GIL on the talk's calls, by its method; or why it is not known."""
    runs, stand_ins = session.frame("single calls, as the talk ran them"), session.observed("bindings by a stand-in")
    found = results.as_run(runs, version, e.GIL_ON if gil_on else e.AS_BUILT, stand_ins)
    return found or lacking(session.interpreters, version)


def lacking(session_has: list[str], version: str) -> str:
    """Why two builds of a version are no pair here."""
    labels = [label for label in (version, f"{version}t") if label not in session_has]
    if not labels:
        return f"no binding was built alike for {version} and {version}t"
    return f"CPython {' and '.join(labels)} (KERNELS=all compiles every interpreter of the book, and measures on it)"


def farther(session: Session, how: str, pair: str) -> Counted | None:
    """A6: by how much the published number is farther from what was measured with the GIL off than with it on: of
    logarithms."""
    names = (how, f"{how}, {e.GIL_ON}", "published")
    found = [number.interval.value for name in names if (number := numbers_of(session)[f"{name}, {pair}"].estimate)]
    if len(found) < len(names):
        return None
    off, on, published = map(math.log, found)
    return Counted(abs(off - published) - abs(on - published))


def of_two(name: str, shared: str, label: str) -> str:
    return f"{name}, {shared}: two threads / one on {label}"


def rate_of_two(session: Session, title: str, label: str, name: str, shared: str) -> Location | None:
    return results.rate_of_two(session.frame(title), interpreter=label, name=name, shared=shared)


def each_of_two(session: Session, name: str, shared: str) -> Interval | None:
    return results.of_each(session.frame("locks in company"), name=name, shared=shared, threads=2)


def by_gain(session: Session, group: str) -> dict[str, dict[str, Interval]]:
    """Cases by what a second thread brings: more in total, less, nothing of interest, or what the interval leaves open;
    each by how a sentence calls it."""
    found: dict[str, dict[str, Interval]] = {"more": {}, "less": {}, "no more": {}, "open": {}}
    _, label, cases = COMPANY[group]
    rates = {
        f"{name} ({shared})" if group == "objects-gil" else name: rate.interval
        for name, shared in cases
        if (rate := numbers_of(session)[of_two(name, shared, label)].estimate)
    }
    for name, rate in rates.items():
        gain = {YES: "more", NO: "less"}.get(above(rate, 1.0), "no more" if above(rate, WORTH) == NO else "open")
        found[gain][name] = rate
    return found


def share(session: Session, group: str, gain: str) -> Counted | None:
    """Of the cases of a group, how many gain so; None if there are none."""
    found = by_gain(session, group)
    n = sum(map(len, found.values()))
    return Counted(len(found[gain]) / n) if n else None


def instructions(session: Session, label: str, what: str, group: str) -> Counted | str:
    """A9: of a call or operation, without its loop; or why they are not known."""
    found = results.code_in(session.observed("code of locks"), label, what)
    if isinstance(found, str):
        return found
    return Counted(found["atomics"] / found["all"] if group == "share" else found[group])
