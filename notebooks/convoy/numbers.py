"""The numbers of the chapter "The GIL convoy", by name. The rules: claims.toml, sentences.toml."""

from collections.abc import Callable
from functools import partial

import numpy as np

from ffilab.judge.estimates import Counted, Estimate, Interval, Location, known
from ffilab.judge.numbers import ONE_CORE, Makers, at_once
from ffilab.judge.processes import difference, location, ratio
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.convoy import results
from notebooks.convoy.experiment import DECISIVE, DEFAULT_S, SHORTEST_S
from notebooks.convoy.results import done, positive

NO_PINNING = "this system cannot pin a process to a core"
# Loads that are no others where nothing can be pinned, or where there is one core.
PLACED = {results.ONE_CORE, results.APART, results.SPLIT, results.AWAKE}
WITH_SLACK, WITHOUT_SLACK, _ = results.SLACK_CASES
# Two cells of the countdown: threads and switch interval.
STEPS = {
    "countdown, 2 threads / 1": ((2, DEFAULT_S), (1, DEFAULT_S)),
    "countdown, 1 thread, 1e-6 s / 0.005 s": ((1, SHORTEST_S), (1, DEFAULT_S)),
    "countdown, 8 threads, 1e-6 s / 0.005 s": ((8, SHORTEST_S), (8, DEFAULT_S)),
}
# Loads of the echo server: the rate under one, and over that under another one.
RATES = {
    "requests/s without CPU work": results.QUIET,
    "requests/s with one CPU thread": results.CONVOY,
    "requests/s with one CPU process": results.PROCESS,
    "requests/s with one CPU thread, 1e-5 s": results.RELIEVED,
    "requests/s with one CPU thread, one core": results.ONE_CORE,
    "requests/s with one CPU thread, client apart": results.APART,
    "requests/s without CPU work, one core": results.TOGETHER,
    "requests/s without CPU work, client apart": results.SPLIT,
    "requests/s without CPU work, client apart, cores kept awake": results.AWAKE,
}
RATIOS = {
    "requests/s without / with one CPU thread": (results.QUIET, results.CONVOY),
    "requests/s with one CPU process / with one CPU thread": (results.PROCESS, results.CONVOY),
    "requests/s without CPU work, client apart, cores kept awake / not": (results.AWAKE, results.SPLIT),
    "requests/s without CPU work, one core, TCP_NODELAY / without": (results.NO_DELAY, results.TOGETHER),
    "requests/s with one CPU thread, without / with two strangers": (results.CONVOY, results.STRANGERS),
    "requests/s with one CPU thread, 1e-5 s / 0.005 s": (results.RELIEVED, results.CONVOY),
    "requests/s with one CPU thread, one core / not pinned": (results.ONE_CORE, results.CONVOY),
    "requests/s with one CPU thread, client apart / not pinned": (results.APART, results.CONVOY),
    "requests/s with CPU work in a sub-interpreter / in a thread": (results.INTERPRETER, results.CONVOY),
    "requests/s with CPU work in native code / in a thread": (results.NATIVE, results.CONVOY),
    "requests/s of an asyncio server / of threads, one CPU thread": (results.COROUTINE, results.CONVOY),
}


def numbers(session: Session) -> Makers:
    made: Makers = {}

    def put(name: str, make: Callable, *arguments, label: str = GIL) -> None:
        made[f"{name}: {label}"] = partial(make, session, *arguments)

    for name, cells in STEPS.items():
        put(name, over, "countdown", "ns", *({"threads": count, "interval": [length]} for count, length in cells))
    put("one countdown divided, 2 threads / 1", over, "one countdown", "seconds", {"threads": 2}, {"threads": 1})
    put("SHA-256, 1 thread / 2", over, "SHA-256", "seconds", {"threads": 1}, {"threads": 2})
    # What a second thread gains.
    for name in ("countdown, 2 threads / 1", "one countdown divided, 2 threads / 1", "SHA-256, 1 thread / 2"):
        made[f"{name}: {GIL}"] = at_once(session, made[f"{name}: {GIL}"])
    for name, case in RATES.items():
        put(name, rate, case)
    for name, cases in RATIOS.items():
        put(name, rate_over, *cases)
    for name, case in (
        ("requests/s without CPU work", results.QUIET),
        ("requests/s with one CPU thread", results.CONVOY),
    ):
        put(name, rate, case, FREE_THREADED, label=FREE_THREADED)
    name = "requests/s without / with one CPU thread"
    put(name, rate_over, results.QUIET, results.CONVOY, FREE_THREADED, label=FREE_THREADED)
    put("half-width of requests/s with one CPU thread, in per cent", half_width)
    put("processes with one CPU thread", lambda session: Counted(len(rates(session, results.CONVOY))))
    put("fewest requests of a process that decides", fewest)
    work = {"case": results.RELIEVED}, {"case": results.CONVOY}
    put("speed of the CPU thread, 1e-5 s / 0.005 s", over, "echo server", "work", *work)
    put("wait for the GIL / switch interval", waits)
    # The other thread had the GIL before the one that let go took it back: on demand, or before one.
    for column in ("demanded", "free"):
        made[f"share of {column} releases after which the other thread is first: {GIL}"] = lambda column=column: (
            location(done(session.frame("forced switching"), interpreter=GIL)[column].to_numpy())
        )
    apart = ONE_CORE if session.machine["cores_usable"] < 2 else NO_PINNING
    for place, where in results.PLACES.items():
        for call in ("recv", "send"):
            put(f"share of calls of {call} that wait, threads {where}", timeline, call, place, apart)
        name = f"requests that lose 2 switch intervals, in per cent, threads {where}"
        put(name, timeline, 2, place, apart, 100)
    lost = "loss of a request, in switch intervals, threads on different cores"
    put(lost, timeline, "lost", results.TWO_CORES, apart)
    put("time of a request, in switch intervals", request)
    for case in results.SLACK_CASES:
        for length, what in ((1e-5, "10 µs"), (SHORTEST_S, "1 µs")):
            put(f"µs beyond an interval of {what}, {case}", beyond, length, case)
    put(f"twice the µs beyond an interval of 1 µs, {WITHOUT_SLACK}", beyond, SHORTEST_S, WITHOUT_SLACK, 2)
    put("µs beyond an interval of 10 µs that the timer slack adds", added)
    counts = partial(session.frame, "reference counts")
    for who, column in (("the owner", "owner"), ("another thread", "foreign")):
        name = f"ns for a reference count by {who}: {FREE_THREADED}"
        made[name] = lambda column=column: positive(counts()[column].to_numpy())
    made[f"reference count by another thread / by the owner: {FREE_THREADED}"] = lambda: ratio(
        counts().foreign, counts().owner
    )
    return made


def over(session: Session, title: str, column: str, one: dict, other: dict) -> Estimate | None:
    """A column of an experiment in one case over that in another, with the GIL."""
    left, right = (done(session.frame(title), interpreter=GIL, **which) for which in (one, other))
    return ratio(left[column], right[column])


def rates(session: Session, case: str, label: str = GIL) -> np.ndarray:
    """Requests per second, one value for each process, in the order of the rounds."""
    title = "echo server" if label == GIL and case in DECISIVE else "echo server, further loads"
    return done(session.frame(title), interpreter=label, case=case).rate.to_numpy()


def rate(session: Session, case: str, label: str = GIL) -> Interval | str | None:
    return positive(rates(session, case, label)) or not_placed(session, case)


def not_placed(session: Session, *cases: str) -> str | None:
    """Of loads whose threads have places of their own: why there is nothing to compare. None for all others."""
    if not PLACED & set(cases):
        return None
    return ONE_CORE if session.machine["cores_usable"] < 2 else NO_PINNING


def rate_over(session: Session, case: str, other: str, label: str = GIL) -> Estimate | str | None:
    """Requests a second in one case over those in another. Beside a CPU thread they fall into two classes."""
    if session.machine["cores_usable"] < 2 and PLACED & {case, other}:
        return ONE_CORE
    found = ratio(*(rates(session, each, label) for each in (case, other)), classes=results.CONVOY in (case, other))
    return found or not_placed(session, case, other)


def half_width(session: Session) -> Counted | None:
    found = rate(session, results.CONVOY)
    return Counted(100 * found.half_width / found.value) if known(found) else None


def fewest(session: Session) -> Counted | None:
    found = done(session.frame("echo server"), interpreter=GIL, case=[results.CONVOY, results.APART])
    return Counted(found.requests.min()) if len(found) else None


def waits(session: Session) -> Estimate | None:
    """The median wait of each process for the GIL."""
    return location(results.gil_waits(session.frame("waits for the GIL")))


def timeline(
    session: Session, column: str | int, place: str, absent: str | None = None, factor: int = 1
) -> Estimate | str | None:
    """What the timelines show beside one CPU thread; or why they do not."""
    found = results.calls_that_wait(session.frame("timeline"), place)[column]
    return location(factor * found.to_numpy()) or absent


def request(session: Session) -> Estimate | None:
    """A request beside one CPU thread, as run. Processes fall into classes: the mean is that of all."""
    found = 1 / rates(session, results.CONVOY) / DEFAULT_S
    return Location.mean(found) if len(found) else None


def beyond(session: Session, length: float, case: str, times: int = 1) -> Estimate | None:
    """What the median request takes beyond one switch interval, so many times."""
    return location(times * results.excess(session.frame("timer slack"), length, *results.SLACK_CASES[case]))


def added(session: Session) -> Estimate | None:
    cases = (results.SLACK_CASES[case] for case in (WITH_SLACK, WITHOUT_SLACK))
    return difference(*(results.excess(session.frame("timer slack"), 1e-5, *case) for case in cases))
