"""The numbers of the chapter "The GIL convoy", by name, and its own controls. The rules: claims.toml."""

from collections.abc import Callable
from functools import partial

from ffilab.bench.session import Session
from ffilab.judge.estimates import Location, Measurement
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import measured, ratio
from ffilab.provision.catalogue import GIL
from notebooks.convoy.experiment import (
    APART,
    CONVOY,
    DEFAULT_S,
    ONE_CORE,
    PROCESS,
    QUIET,
    RELIEVED,
    SAME_CORE,
    SHORTEST_S,
    TWO_CORES,
)
from notebooks.convoy.results import calls_that_wait, done, gil_waits, intervals_a_request

NO_PINNING = "this system cannot pin a process to a core"


def numbers(session: Session) -> Makers:
    made = {}

    def put(name: str, make: Callable, *arguments, **further) -> None:
        made[f"{name}: {{GIL}}"] = partial(make, session, *arguments, **further)

    def cell(threads: int, interval: float) -> dict:
        return {"threads": threads, "interval": [interval]}

    one, two, eight, shortest = (
        cell(*which) for which in ((1, DEFAULT_S), (2, DEFAULT_S), (8, DEFAULT_S), (8, SHORTEST_S))
    )
    put("countdown, 2 threads / 1", over, "countdown", "ns", two, one)
    put("one countdown divided, 2 threads / 1", over, "one countdown", "seconds", {"threads": 2}, {"threads": 1})
    put("SHA-256, 1 thread / 2", over, "SHA-256", "seconds", {"threads": 1}, {"threads": 2})
    put("requests/s without / with one CPU thread", rate_over, QUIET, CONVOY)
    put("requests/s with one CPU process / with one CPU thread", rate_over, PROCESS, CONVOY)
    put("requests/s with one CPU thread, 1e-5 s / 0.005 s", rate_over, RELIEVED, CONVOY)
    put(
        "speed of the CPU thread, 1e-5 s / 0.005 s",
        over,
        "echo server",
        "work",
        {"case": RELIEVED},
        {"case": CONVOY},
    )
    put("countdown, 8 threads, 1e-6 s / 0.005 s", over, "countdown", "ns", shortest, eight)
    put("requests/s with one CPU thread, one core / not pinned", rate_over, ONE_CORE, CONVOY)
    put("requests/s with one CPU thread, client apart / not pinned", rate_over, APART, CONVOY)
    put("wait for the GIL / switch interval", waits)
    put("share of demanded releases after which the other thread is first", released)
    for call, place, where in (
        ("recv", TWO_CORES, "threads on different cores"),
        ("send", TWO_CORES, "threads on different cores"),
        ("send", SAME_CORE, "threads on one core"),
    ):
        put(f"share of calls of {call} that wait, {where}", share_waiting, call, place)
    put("time of a request, in switch intervals", request)
    return made


def over(
    session: Session, title: str, column: str, one: dict, other: dict, classes: bool = False
) -> Measurement | None:
    """A column of an experiment in one case over that in another, with the GIL."""
    runs = session.frame(title)
    left, right = (done(runs, interpreter=GIL, **which) for which in (one, other))
    return ratio(left[column], right[column], classes=classes)


def rate_over(session: Session, case: str, other: str) -> Measurement | str | None:
    """Requests a second in one case over those in another. Beside a CPU thread they fall into two classes."""
    found = over(session, "echo server", "rate", {"case": case}, {"case": other}, classes=CONVOY in (case, other))
    return found or (NO_PINNING if {ONE_CORE, APART} & {case, other} else None)


def waits(session: Session) -> Measurement | None:
    """The median wait of each process for the GIL."""
    return measured(gil_waits(session.frame("waits for the GIL")), "switch intervals")


def released(session: Session) -> Measurement | None:
    """Releases on demand after which the thread that demanded had the GIL before the other one took it back."""
    return measured(done(session.frame("forced switching"), interpreter=GIL).demanded.to_numpy(), "share of releases")


def share_waiting(session: Session, call: str, place: str) -> Measurement | str:
    """Calls beside one CPU thread that wait for the GIL."""
    return measured(calls_that_wait(session.frame("timeline"), place)[call].to_numpy(), "share of calls") or NO_PINNING


def request(session: Session) -> Measurement | None:
    """A request beside one CPU thread, as run. Processes fall into classes: the mean is that of all."""
    found = intervals_a_request(session.frame("echo server"))
    return Measurement(Location.mean(found), "switch intervals") if len(found) else None
