"""What the chapter "The GIL convoy" measures (claims C1-C6, C8-C10). The page quotes all of it."""

from dataclasses import asdict, dataclass, replace

import pandas as pd

from ffilab.bench.case import Case
from ffilab.bench.session import Session
from ffilab.machine import cores_to_pin
from ffilab.paths import BUILT, without_paths
from ffilab.provision.catalogue import FREE_THREADED, GIL

# [setting]
EXPERIMENTS = "native/convoy/experiments.py"
# [/setting]


# [elsewhere]
def elsewhere(session: Session) -> list[str]:
    """The interpreters for comparison: there a case may fail, on the chapter pair it must not."""
    return [label for label in session.interpreters if label not in (GIL, FREE_THREADED)]


# [/elsewhere]

# [countdowns]
DEFAULT_S = 0.005
SHORTEST_S = 1e-6
COUNT_THREADS = (1, 2, 8)
# Steps of each thread: 50 ms and more, ten switch intervals.
COUNTDOWN = 3_200_000


def countdowns(session: Session) -> pd.DataFrame:
    """C1, C5: ns a step by switch interval (s) and number of threads. Both intervals within each process; elsewhere than
    on the interpreter with the GIL the default only."""
    fixed = {"each": max(10_000, round(COUNTDOWN * session.budget.scale)), "threads": COUNT_THREADS, "seed": "{seed}"}
    cases = [
        Case(
            label,
            EXPERIMENTS,
            "countdowns",
            fixed={**fixed, "intervals": (DEFAULT_S, SHORTEST_S) if label == GIL else (DEFAULT_S,)},
        )
        for label in session.interpreters
    ]
    return session.run("countdown", cases, session.budget.repeats, may_fail=elsewhere(session))


# [/countdowns]

# [hashes]
HASH_BYTES = 4_000_000
HASH_THREADS = (1, 2, 4, 8)


def hashes(session: Session) -> pd.DataFrame:
    """C2: seconds by number of threads."""
    fixed = {"bytes_each": max(100_000, round(HASH_BYTES * session.budget.scale)), "threads": HASH_THREADS}
    cases = [Case(label, EXPERIMENTS, "hashes", fixed=fixed) for label in session.interpreters]
    return session.run("SHA-256", cases, session.budget.repeats, may_fail=elsewhere(session))


# [/hashes]


# [load]
@dataclass(frozen=True)
class Load:
    """What a server works under. kind, count: CPU work; interval in seconds; others: busy processes that nobody asked for."""

    kind: str = "threads"
    count: int = 0
    interval: float = DEFAULT_S
    pinning: str = "none"
    server: str = "threads"
    others: int = 0


IDLE, ONE = Load(), Load(count=1)
CONVOY, AGAIN, QUIET, PROCESS = "1 CPU thread", "1 CPU thread, again", "no CPU work", "1 CPU process"
RELIEVED, ONE_CORE, APART = f"{CONVOY}, 1e-05 s", f"{CONVOY}, one core", f"{CONVOY}, client apart"
# What claims are judged by gets all repetitions of the budget, what tables and figures show gets half of them.
DECISIVE = (QUIET, CONVOY, AGAIN, PROCESS, RELIEVED, ONE_CORE, APART)
INTERVALS = (DEFAULT_S, 1e-3, 1e-4, 1e-5, SHORTEST_S)
INTERVAL_THREADS = (1, 4)
THREADS = (1, 2, 4)
PINNED_THREADS = {"one core": (0, 1, 2, 4, 8), "client apart": (0, 1)}


def plural(count: int, what: str) -> str:
    return f"{count} CPU {what}" if count == 1 else f"{count} CPU {what}{'es' if what.endswith('s') else 's'}"


# [/load]


# [loads]
def loads(can_pin: bool) -> dict[str, Load]:
    """Every case on the interpreter with the GIL, by name. can_pin: may a process be pinned to a core here?"""
    found = {QUIET: IDLE, CONVOY: ONE, AGAIN: ONE}
    for count in THREADS:
        found[plural(count, "thread")] = replace(ONE, count=count)
        found[plural(count, "process")] = replace(ONE, kind="processes", count=count)
    for count in INTERVAL_THREADS:
        for interval in INTERVALS:
            if interval != DEFAULT_S:
                found[f"{plural(count, 'thread')}, {interval:g} s"] = replace(ONE, count=count, interval=interval)
    if can_pin:
        for pinning, counts in PINNED_THREADS.items():
            for count in counts:
                found[f"{plural(count, 'thread')}, {pinning}"] = replace(ONE, count=count, pinning=pinning)
    return found | {
        f"{QUIET}, 2 strangers": replace(IDLE, others=2),
        f"{CONVOY}, 2 strangers": replace(ONE, others=2),
        "1 sub-interpreter": replace(ONE, kind="interpreters"),
        "native code without the GIL": replace(ONE, kind="native"),
        "asyncio server, 1 CPU thread": replace(ONE, server="asyncio"),
    }


def loads_elsewhere() -> dict[str, Load]:
    """The cases on all other interpreters."""
    return {QUIET: IDLE, **{plural(count, "thread"): replace(ONE, count=count) for count in THREADS}}


# [/loads]


# [echo]
def serving(label: str, load: Load, seconds: float, name: str = "") -> Case:
    """One server under load, and a client that sends requests for so many seconds."""
    fixed = {"folder": f"{BUILT}/convoy", "seconds": seconds}
    return Case(label, EXPERIMENTS, "echo", asdict(load), fixed, {"case": name})


def seconds_of_requests(session: Session) -> float:
    return 0.25 if session.budget.is_result else 0.1


def echo(session: Session) -> pd.DataFrame:
    """C3, C4, C6: the server under every load. Rate (requests/s), number of requests, p50, p99, p99.9 (µs; None with
    fewer than 1,000 requests), work (speed of the CPU work over its speed before the requests), cores."""
    can_pin = bool(session.observe("cores that a process may be pinned to", cores_to_pin))
    seconds = seconds_of_requests(session)
    cases = [
        serving(label, load, seconds, name)
        for label in session.interpreters
        for name, load in (loads(can_pin) if label == GIL else loads_elsewhere()).items()
    ]
    decisive = [case for case in cases if case.interpreter == GIL and case.named["case"] in DECISIVE]
    further = [case for case in cases if case not in decisive]
    runs = [
        session.run("echo server", decisive, session.budget.repeats),
        session.run("echo server, further loads", further, session.budget.few, may_fail=elsewhere(session)),
    ]
    return pd.concat(runs, ignore_index=True)


# [/echo]

# [timelines]
TIMELINE_S = 0.1


def timelines(session: Session) -> pd.DataFrame:
    """Recorded timelines of the server with one CPU thread. `server`: moments; `spans`, `gaps`: pairs of them (ns)."""
    case = Case(GIL, EXPERIMENTS, "timeline", fixed={"interval": DEFAULT_S, "seconds": TIMELINE_S})
    return session.run("timeline", [case], session.budget.few)


# [/timelines]


# [gil waits]
WAITS_S = 0.2


def gil_waits(session: Session) -> pd.DataFrame:
    """C8: all waits for the GIL (ns) of a server in C with one CPU thread beside it."""
    fixed = {"interval": DEFAULT_S, "seconds": WAITS_S, "folder": f"{BUILT}/convoy"}
    cases = [Case(label, EXPERIMENTS, "gil_waits", fixed=fixed) for label in (GIL, FREE_THREADED)]
    return session.run("waits for the GIL", cases, session.budget.repeats)


# [/gil waits]


# [reference counts]
def reference_counts(session: Session) -> pd.DataFrame:
    """An illustration to C9: ns for one reference up and down, on an object of the counting thread and on one that another thread made; in
    one process."""
    file, fixed = "native/critical_sections/experiments.py", {"folder": f"{BUILT}/critical_sections"}
    case = Case(FREE_THREADED, file, "reference_counts", fixed=fixed)
    return session.run("reference counts", [case], session.budget.few)


# [/reference counts]


# [exercise]
def three_servers(kind: str, interval: float, server: str, seconds: float) -> list[dict]:
    """One server after the other, until one does not come back: how each ended, and what it brought."""
    found = []
    for _ in range(3):
        outcome = serving(GIL, replace(ONE, kind=kind, interval=interval, server=server), seconds).run()
        found.append({"ended": outcome.ended, "error": without_paths(outcome.error), "result": outcome.result})
        if outcome.result is None:
            break
    return found


def answered(session: Session, kind: str, interval: float, server: str) -> list[dict]:
    """The exercise: the reader's server, with one piece of CPU work beside it."""
    seconds = seconds_of_requests(session)
    return session.observe("exercise: server", three_servers, kind, interval, server, seconds)


# [/exercise]
