"""The numbers of the chapter "The GIL convoy", by name. The rules: claims.toml, sentences.toml."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ffilab.judge.estimates import Counted, Interval, Location, Measurement, known
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import difference, location, ratio
from ffilab.judge.questions import YES, above
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.convoy import results
from notebooks.convoy.experiment import DECISIVE, DEFAULT_S, SHORTEST_S
from notebooks.convoy.results import (
    APART,
    ARMS,
    AWAKE,
    CONVOY,
    COROUTINE,
    INTERPRETER,
    NATIVE,
    NO_DELAY,
    ONE_CORE,
    PLACES,
    PROCESS,
    QUIET,
    RELIEVED,
    SPLIT,
    STRANGERS,
    TOGETHER,
    TWO_CORES,
    done,
    positive,
)

NO_PINNING = "this system cannot pin a process to a core"
WITH_SLACK, WITHOUT_SLACK, _ = ARMS
# Two cells of the countdown: threads and switch interval.
STEPS = {
    "countdown, 2 threads / 1": ((2, DEFAULT_S), (1, DEFAULT_S)),
    "countdown, 1 thread, 1e-6 s / 0.005 s": ((1, SHORTEST_S), (1, DEFAULT_S)),
    "countdown, 8 threads, 1e-6 s / 0.005 s": ((8, SHORTEST_S), (8, DEFAULT_S)),
}
# Cases of the echo server: the rate in one, and over that in another one.
RATES = {
    "requests/s without CPU work": QUIET,
    "requests/s with one CPU thread": CONVOY,
    "requests/s with one CPU process": PROCESS,
    "requests/s with one CPU thread, 1e-5 s": RELIEVED,
    "requests/s without CPU work, one core": TOGETHER,
    "requests/s without CPU work, client apart": SPLIT,
    "requests/s without CPU work, client apart, cores kept awake": AWAKE,
}
RATIOS = {
    "requests/s without / with one CPU thread": (QUIET, CONVOY),
    "requests/s without / with one CPU thread, client apart": (SPLIT, APART),
    "requests/s without / with one CPU process": (QUIET, PROCESS),
    "requests/s with one CPU process / with one CPU thread": (PROCESS, CONVOY),
    "requests/s without CPU work, client apart, cores kept awake / not": (AWAKE, SPLIT),
    "requests/s without CPU work, one core, TCP_NODELAY / without": (NO_DELAY, TOGETHER),
    "requests/s with one CPU thread, without / with two strangers": (CONVOY, STRANGERS),
    "requests/s with one CPU thread, 1e-5 s / 0.005 s": (RELIEVED, CONVOY),
    "requests/s with one CPU thread, one core / not pinned": (ONE_CORE, CONVOY),
    "requests/s with one CPU thread, one core / client apart": (ONE_CORE, APART),
    "requests/s with one CPU thread, client apart / not pinned": (APART, CONVOY),
    "requests/s with CPU work in a sub-interpreter / in a thread": (INTERPRETER, CONVOY),
    "requests/s with CPU work in native code / in a thread": (NATIVE, CONVOY),
    "requests/s of an asyncio server / of threads, one CPU thread": (COROUTINE, CONVOY),
}


def numbers(session: Session) -> Makers:
    made: Makers = {}

    def put(name: str, make: Callable, *arguments, label: str = GIL) -> None:
        made[f"{name}: {label}"] = partial(make, session, *arguments)

    for name, cells in STEPS.items():
        put(name, over, "countdown", "ns", *({"threads": count, "interval": [length]} for count, length in cells))
    put("one countdown divided, 2 threads / 1", over, "one countdown", "seconds", {"threads": 2}, {"threads": 1})
    put("SHA-256, 1 thread / 2", over, "SHA-256", "seconds", {"threads": 1}, {"threads": 2})
    for name, case in RATES.items():
        put(name, rate, case)
    for name, cases in RATIOS.items():
        put(name, rate_over, *cases)
    put("requests/s with one CPU thread", rate, CONVOY, FREE_THREADED, label=FREE_THREADED)
    name = "requests/s without / with one CPU thread"
    put(name, rate_over, QUIET, CONVOY, FREE_THREADED, label=FREE_THREADED)
    put("requests/s without CPU work, from process to process", ends, QUIET)
    put("requests/s without CPU work, client apart, from process to process", ends, SPLIT)
    put("half-width of requests/s with one CPU thread, in per cent", half_width)
    put("processes with one CPU thread", lambda session: Counted(len(rates(session, CONVOY))))
    put("fewest requests of a process that decides", fewest)
    work = {"case": RELIEVED}, {"case": CONVOY}
    put("speed of the CPU thread, 1e-5 s / 0.005 s", over, "echo server", "work", *work)
    put("wait for the GIL / switch interval", waits)
    put("share of demanded releases after which the other thread is first", released, "demanded")
    put("share of free releases after which the other thread is first", released, "free")
    for place, where in PLACES.items():
        for call in ("recv", "send"):
            put(f"share of calls of {call} that wait, threads {where}", share_waiting, call, place)
        for count in (0, 1, 2):
            put(f"requests that lose {count} switch intervals, in per cent, threads {where}", losing, count, place)
    put("loss of a request, in switch intervals, threads on different cores", lost)
    put("time of a request, in switch intervals", request)
    for arm in ARMS:
        for length, what in ((1e-5, "10 µs"), (SHORTEST_S, "1 µs")):
            put(f"µs beyond an interval of {what}, {arm}", beyond, length, arm)
    put(f"twice the µs beyond an interval of 1 µs, {WITHOUT_SLACK}", beyond, SHORTEST_S, WITHOUT_SLACK, 2)
    put("µs beyond an interval of 10 µs that the timer slack adds", added)
    put("share of the timer slack in the µs beyond an interval of 10 µs", share_added)
    put("reference count by another thread / by the owner", references, label=FREE_THREADED)
    return made


def over(session: Session, title: str, column: str, one: dict, other: dict) -> Measurement | None:
    """A column of an experiment in one case over that in another, with the GIL."""
    left, right = (done(session.frame(title), interpreter=GIL, **which) for which in (one, other))
    return ratio(left[column], right[column])


def rates(session: Session, case: str, label: str = GIL) -> np.ndarray:
    """Requests per second, one value for each process, in the order of the rounds."""
    title = "echo server" if label == GIL and case in DECISIVE else "echo server, further loads"
    return done(session.frame(title), interpreter=label, case=case).rate.to_numpy()


def rate(session: Session, case: str, label: str = GIL) -> Interval | None:
    return positive(rates(session, case, label))


def rate_over(session: Session, case: str, other: str, label: str = GIL) -> Measurement | str | None:
    """Requests a second in one case over those in another. Beside a CPU thread they fall into two classes."""
    found = ratio(*(rates(session, each, label) for each in (case, other)), classes=CONVOY in (case, other))
    return found or (NO_PINNING if {ONE_CORE, APART} & {case, other} else None)


def ends(session: Session, case: str) -> Interval | None:
    """From the slowest process to the fastest."""
    found = rates(session, case)
    return Interval(np.median(found), min(found), max(found)) if len(found) else None


def half_width(session: Session) -> Counted | None:
    found = rate(session, CONVOY)
    return Counted(100 * found.half_width / found.value) if known(found) else None


def fewest(session: Session) -> Counted | None:
    found = done(session.frame("echo server"), interpreter=GIL, case=[CONVOY, APART])
    return Counted(found.requests.min()) if len(found) else None


def waits(session: Session) -> Measurement | None:
    """The median wait of each process for the GIL."""
    return location(results.gil_waits(session.frame("waits for the GIL")), "switch intervals")


def released(session: Session, column: str) -> Measurement | None:
    """Releases after which the other thread had the GIL before the one that let go took it back: on demand, or before one."""
    return location(done(session.frame("forced switching"), interpreter=GIL)[column].to_numpy(), "share of releases")


def calls(session: Session, column: str | int, place: str) -> np.ndarray:
    """What the timelines show beside one CPU thread, one value for each process."""
    return results.calls_that_wait(session.frame("timeline"), place)[column].to_numpy()


def share_waiting(session: Session, call: str, place: str) -> Measurement | str:
    """Calls that wait for the GIL."""
    return location(calls(session, call, place), "share of calls") or NO_PINNING


def losing(session: Session, count: int, place: str) -> Measurement | None:
    return location(100 * calls(session, count, place), "% of requests")


def lost(session: Session) -> Measurement | None:
    return location(calls(session, "lost", TWO_CORES), "switch intervals")


def request(session: Session) -> Measurement | None:
    """A request beside one CPU thread, as run. Processes fall into classes: the mean is that of all."""
    found = 1 / rates(session, CONVOY) / DEFAULT_S
    return Measurement(Location.mean(found), "switch intervals") if len(found) else None


def beyond(session: Session, length: float, arm: str, times: int = 1) -> Measurement | None:
    """What the median request takes beyond one switch interval, so many times."""
    return location(times * results.excess(session.frame("timer slack"), length, *ARMS[arm]), "µs")


def added(session: Session) -> Measurement | None:
    arms = (results.excess(session.frame("timer slack"), 1e-5, *ARMS[arm]) for arm in (WITH_SLACK, WITHOUT_SLACK))
    return difference(*arms, "µs")


def share_added(session: Session) -> Interval | None:
    """A share of two differences, between 0 and 1: the bounds hold if both intervals do, however the two hang together. None
    where the whole may be nothing."""
    made = added(session), beyond(session, 1e-5, WITH_SLACK)
    if not all(made):
        return None
    of, whole = (one.interval for one in made)
    if not of.is_known or above(whole, 0) != YES:
        return None
    bounds = [bound / whole_bound for bound in (of.low, of.high) for whole_bound in (whole.low, whole.high)]
    return Interval(*np.clip((of.value / whole.value, min(bounds), max(bounds)), 0, 1).tolist())


def references(session: Session) -> Measurement | None:
    found = session.frame("reference counts")
    return ratio(found.foreign, found.owner)
