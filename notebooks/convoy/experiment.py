"""What the chapter "The GIL convoy" measures (claims C1-C6, C8-C10). The page quotes all of it."""

import sys
from dataclasses import asdict, dataclass, replace

import pandas as pd

from ffilab.measure.case import Case
from ffilab.measure.session import Session
from ffilab.run.machine import cores_to_pin
from ffilab.run.paths import BUILT, without_paths
from ffilab.setup.catalogue import FREE_THREADED, GIL

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
COUNT_THREADS = (1, 2, 4, 8)
COUNT_INTERVALS = (0.01, DEFAULT_S, 1e-3, 1e-4, 1e-5, SHORTEST_S)
# The author's longest interval takes threads that run for longer than one of it: `full` only.
LONGEST_S = 0.1
# What the verdicts of C1 and C5 rest on is measured twice in each process; in `full` once, for ten times as long.
TWICE = [(interval, count) for interval in (DEFAULT_S, SHORTEST_S) for count in (1, 2, 8)]
# The author divided 1e8 steps among the threads. Steps of each thread: with eight threads in `full` as many as his; in
# `quick` a hundredth of his for each: 15 ms and more, several switch intervals.
PUBLISHED_STEPS = 100_000_000
STEPS = {"smoke": 16_000, "room": PUBLISHED_STEPS // 100, "quick": PUBLISHED_STEPS // 100, "full": PUBLISHED_STEPS // 8}


def countdowns(session: Session) -> pd.DataFrame:
    """C1, C5: ns a step by switch interval (s) and number of threads, all within each process; elsewhere than on the
    interpreter with the GIL at the default interval only."""
    full = session.budget.name == "full"
    intervals = (LONGEST_S, *COUNT_INTERVALS) if full else COUNT_INTERVALS
    cells = {
        label: [
            (interval, count) for interval in (intervals if label == GIL else (DEFAULT_S,)) for count in COUNT_THREADS
        ]
        for label in session.interpreters
    }
    if not full:
        cells[GIL] += TWICE
    fixed = {"each": STEPS[session.budget.name], "seed": "{seed}"}
    cases = [
        Case.of(label, EXPERIMENTS, "countdowns", fixed={**fixed, "cells": cells[label]}, timeout_s=300 if full else 60)
        for label in session.interpreters
    ]
    return session.run("countdown", cases, session.budget.repeats, may_fail=elsewhere(session))


# As the author ran it, the steps alone are fewer: of eight parts each takes longer than a switch interval.
AS_RUN_STEPS = {**STEPS, "room": PUBLISHED_STEPS // 20, "quick": PUBLISHED_STEPS // 20, "full": PUBLISHED_STEPS}


def one_countdown(session: Session) -> pd.DataFrame:
    """C1 as run: seconds by number of threads."""
    fixed = {"steps": AS_RUN_STEPS[session.budget.name], "threads": COUNT_THREADS}
    case = Case.of(GIL, EXPERIMENTS, "one_countdown", fixed=fixed, timeout_s=120)
    return session.run("one countdown", [case], session.budget.few)


# [/countdowns]

# [hashes]
PUBLISHED_BYTES = 2**30 // 8
HASH_BYTES = {"smoke": 100_000, "room": PUBLISHED_BYTES // 32, "quick": PUBLISHED_BYTES // 32, "full": PUBLISHED_BYTES}
HASH_THREADS = (1, 2, 4, 8)


def hashes(session: Session) -> pd.DataFrame:
    """C2: seconds by number of threads."""
    fixed = {"bytes_each": HASH_BYTES[session.budget.name], "threads": HASH_THREADS}
    cases = [Case.of(label, EXPERIMENTS, "hashes", fixed=fixed) for label in session.interpreters]
    return session.run("SHA-256", cases, session.budget.repeats, may_fail=elsewhere(session))


# [/hashes]


# [load]
@dataclass(frozen=True)
class Load:
    """What a server works under. kind, count: CPU work; interval in seconds; others: busy processes that nobody asked for; awake: these
    only keep the cores awake; nodelay: without Nagle's algorithm."""

    kind: str = "threads"
    count: int = 0
    interval: float = DEFAULT_S
    pinning: str = "none"
    server: str = "threads"
    others: int = 0
    awake: bool = False
    nodelay: bool = False


IDLE, ONE = Load(), Load(count=1)
CONVOY, QUIET, PROCESS = "1 CPU thread", "no CPU work", "1 CPU process"
RELIEVED, ONE_CORE, APART = f"{CONVOY}, 1e-05 s", f"{CONVOY}, one core", f"{CONVOY}, client apart"
# What claims are judged by gets all repetitions of the budget, what tables and figures show gets half of them.
DECISIVE = (QUIET, CONVOY, PROCESS, RELIEVED, ONE_CORE, APART)
THREADS = (1, 2, 4)
PINNED_THREADS = {"one core": (0, 1, 2, 4, 8), "client apart": (0, 1), "server on one core": (1,)}
# What a rate without CPU work is made of: who shares a core, whether the cores sleep, and whether Nagle's algorithm matters.
TOGETHER, SPLIT = "0 CPU threads, one core", "0 CPU threads, client apart"
AWAKE, NO_DELAY = f"{SPLIT}, cores kept awake", f"{TOGETHER}, TCP_NODELAY"


def plural(count: int, what: str) -> str:
    return f"{count} CPU {what}" if count == 1 else f"{count} CPU {what}{'es' if what.endswith('s') else 's'}"


# [/load]


# [loads]
def loads(can_pin: bool) -> dict[str, Load]:
    """Every case on the interpreter with the GIL, by name. can_pin: may a process be pinned to a core here?"""
    found = {QUIET: IDLE, CONVOY: ONE}
    for count in THREADS:
        found[plural(count, "process")] = replace(ONE, kind="processes", count=count)
    found[RELIEVED] = replace(ONE, interval=1e-5)
    if can_pin:
        for pinning, counts in PINNED_THREADS.items():
            for count in counts:
                found[f"{plural(count, 'thread')}, {pinning}"] = replace(ONE, count=count, pinning=pinning)
        found[AWAKE] = replace(found[SPLIT], others=2, awake=True)
        found[NO_DELAY] = replace(found[TOGETHER], nodelay=True)
    return found | {
        f"{CONVOY}, 2 strangers": replace(ONE, others=2),
        "1 sub-interpreter": replace(ONE, kind="interpreters"),
        "native code without the GIL": replace(ONE, kind="native"),
        "asyncio server, 1 CPU thread": replace(ONE, server="asyncio"),
    }


def loads_elsewhere() -> dict[str, Load]:
    """The cases on all other interpreters."""
    return {QUIET: IDLE, CONVOY: ONE}


# [/loads]


# [echo]
# Requests, seconds at least, seconds at most. A 99 % quantile takes a hundred requests. Cases that decide get some more, even at
# two switch intervals a request.
DECISIVE_ORDER, FURTHER_ORDER, SMOKE_ORDER = (120, 0.15, 1.4), (100, 0.15, 0.3), (120, 0.05, 0.1)
HANGS_S = 15


def serving(label: str, load: Load, order: tuple[int, float, float], name: str = "") -> Case:
    """One server under load, and a client with its order."""
    fixed = {"folder": f"{BUILT}/convoy", "order": order}
    return Case.of(label, EXPERIMENTS, "echo", asdict(load), fixed, {"case": name}, timeout_s=HANGS_S)


def echo(session: Session) -> pd.DataFrame:
    """C3, C4, C6, C10 as run: the server under every load. Rate (requests/s), number of requests, p50, p99, p99.9 (µs; None with
    too few requests), work (speed of the CPU work over its speed before the requests), cores."""
    can_pin = bool(session.observe("cores that a process may be pinned to", cores_to_pin))
    known, is_result = loads(can_pin), session.budget.is_result
    deciding = [
        serving(GIL, known[name], DECISIVE_ORDER if is_result else SMOKE_ORDER, name)
        for name in DECISIVE
        if name in known
    ]
    further = [
        serving(label, load, FURTHER_ORDER if is_result else SMOKE_ORDER, name)
        for label in session.interpreters
        for name, load in (known if label == GIL else loads_elsewhere()).items()
        if label != GIL or name not in DECISIVE
    ]
    runs = [
        session.run("echo server", deciding, session.budget.repeats),
        session.run("echo server, further loads", further, session.budget.few, may_fail=elsewhere(session)),
    ]
    return pd.concat(runs, ignore_index=True)


# [/echo]

# [sweep]
INTERVALS = (0.1, 0.01, DEFAULT_S, 1e-3, 1e-4, 1e-5, SHORTEST_S)
INTERVAL_THREADS = (0, 1, 2, 4)
# Timer slack of the server's process, ns; None: as the system gives it (on Linux usually 50 µs).
AS_IT_IS, SLACKLESS = "as it is", "1 ns"
SLACKS = {AS_IT_IS: None, SLACKLESS: 1}
# At each interval: requests, seconds at least, seconds at most; and so many requests even if they take longer, as a median takes.
SWEPT, SWEPT_SMOKE = (200, 0.05, 0.15, 5), (200, 0.01, 0.02, 1)


def sweep(
    session: Session,
    count: int,
    pinning: str = "none",
    slack: str = AS_IT_IS,
    intervals: tuple[float, ...] = INTERVALS,
    pause: float = 0,
) -> Case:
    """One server beside so many CPU threads, and requests at each of these switch intervals, in random order."""
    wanted = SWEPT if session.budget.is_result else SWEPT_SMOKE
    orders = [(interval, *wanted) for interval in intervals]
    fixed = {"folder": f"{BUILT}/convoy", "orders": orders, "seed": "{seed}", "slack_ns": SLACKS[slack], "pause": pause}
    return Case.of(GIL, EXPERIMENTS, "intervals", {"count": count, "pinning": pinning}, fixed, {"slack": slack})


# [/sweep]


# [switch intervals]
def switch_intervals(session: Session) -> pd.DataFrame:
    """C4: requests by switch interval and number of CPU threads: all intervals within each process. The author's longest, of which
    five requests take seconds: in `full` only."""
    intervals = INTERVALS if session.budget.name == "full" else INTERVALS[1:]
    cases = [sweep(session, count, intervals=intervals) for count in INTERVAL_THREADS]
    return session.run("switch intervals", cases, session.budget.few)


# [/switch intervals]


# [timer slack]
# Of the server's two threads and the client: see `places` in the experiments.
FREE, TWO_CORES, SAME_CORE = "none", "threads apart", "client apart"
SLACK_INTERVALS = (1e-3, 1e-4, 1e-5, SHORTEST_S)
# So long the client pauses before a request, longer than each of these: the server's thread sleeps, and the CPU thread has the GIL.
SLACK_PAUSE_S = 0.002


def can_set_slack() -> bool:
    """Linux only: prctl(PR_SET_TIMERSLACK)."""
    return sys.platform == "linux"


def timer_slack(session: Session) -> pd.DataFrame:
    """C4: requests beside one CPU thread by switch interval, with the timer slack as it is and without; the server's two threads on
    different cores where threads can be pinned, and, without slack, once on the same one. No rows without where the slack cannot be
    set."""
    can_pin = len(session.observe("cores that a process may be pinned to", cores_to_pin)) > 1
    arms = [(TWO_CORES if can_pin else FREE, slack) for slack in SLACKS] + [(SAME_CORE, SLACKLESS)] * can_pin
    if not session.observe("timer slack can be set", can_set_slack):
        arms = arms[:1]
    cases = [sweep(session, 1, place, slack, SLACK_INTERVALS, SLACK_PAUSE_S) for place, slack in arms]
    return session.run("timer slack", cases, session.budget.few)


# [/timer slack]

# [timelines]
# The client pauses for longer than a switch interval before each request, so that `recv` really blocks.
PAUSE_S, TIMELINE_S = 2 * DEFAULT_S, 0.5


def timelines(session: Session) -> pd.DataFrame:
    """C10: recorded timelines of the server with one CPU thread, by place of these two. `server`: moments; `spans`, `gaps`: pairs of them
    (ns)."""
    can_pin = len(session.observe("cores that a process may be pinned to", cores_to_pin)) > 1
    fixed = {"interval": DEFAULT_S, "seconds": TIMELINE_S if session.budget.is_result else 0.1, "pause": PAUSE_S}
    places = (TWO_CORES, SAME_CORE, FREE) if can_pin else (FREE,)
    cases = [Case.of(GIL, EXPERIMENTS, "timeline", {"pinning": place}, fixed) for place in places]
    return session.run("timeline", cases, session.budget.repeats)


# [/timelines]


# [gil waits]
WAITS_S = 0.2


def gil_waits(session: Session) -> pd.DataFrame:
    """C8: all waits for the GIL (ns) of a server in C with one CPU thread beside it."""
    fixed = {"interval": DEFAULT_S, "seconds": WAITS_S, "folder": f"{BUILT}/convoy"}
    return session.run(
        "waits for the GIL", [Case.of(GIL, EXPERIMENTS, "gil_waits", fixed=fixed)], session.budget.repeats
    )


# [/gil waits]


# [forced]
RELEASES, RELEASE_S = 100, 0.001


def forced(session: Session) -> pd.DataFrame:
    """C8: share of releases of the GIL after which the waiting thread had it first: demanded ones, and free ones."""
    fixed = {"interval": RELEASE_S, "times": RELEASES, "folder": f"{BUILT}/convoy"}
    return session.run("forced switching", [Case.of(GIL, EXPERIMENTS, "forced", fixed=fixed)], session.budget.repeats)


# [/forced]


# [reference counts]
def reference_counts(session: Session) -> pd.DataFrame:
    """An illustration to C9: ns for one reference up and down, on an object of the counting thread and on one that another thread made; in
    one process."""
    file, fixed = "native/critical_sections/experiments.py", {"folder": f"{BUILT}/critical_sections"}
    case = Case.of(FREE_THREADED, file, "reference_counts", fixed=fixed)
    return session.run("reference counts", [case], session.budget.few)


# [/reference counts]


# [exercise]
TRIED_ORDER = (120, 0.15, 2.0)  # requests enough for a p99


def three_servers(kind: str, interval: float, server: str, order: tuple[int, float, float]) -> list[dict]:
    """One server after the other, until one does not come back: how each ended, and what it brought."""
    found = []
    for _ in range(3):
        outcome = serving(GIL, replace(ONE, kind=kind, interval=interval, server=server), order).run()
        found.append({"ended": outcome.ended, "error": without_paths(outcome.error), "result": outcome.result})
        if outcome.result is None:
            break
    return found


def answered(session: Session, kind: str, interval: float, server: str) -> list[dict]:
    """The exercise: the reader's server, with one piece of CPU work beside it."""
    order = TRIED_ORDER if session.budget.is_result else SMOKE_ORDER
    return session.observe("exercise: server", three_servers, kind, interval, server, order)


# [/exercise]
