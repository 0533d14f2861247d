"""Chapter "The GIL convoy": what a CPU-bound thread does to one that waits for input (claims C1-C6, C8-C10)."""

import os
from dataclasses import astuple, dataclass, replace

import numpy as np
import pandas as pd

from ffilab.bench import child
from ffilab.budget import current
from ffilab.corners import critical_sections
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import chosen, measured, ratio
from ffilab.paths import NATIVE, NATIVE_OUT

SOURCES = NATIVE / "convoy"
LIBRARIES = NATIVE_OUT / "convoy"
EXPERIMENTS = SOURCES / "experiments.py"
KERNEL, WITHOUT_GIL = "3.14", "3.14t"
DEFAULT_S = 0.005
SECONDS, TIMELINE_S = (0.25 if current().is_result else 0.1), 0.1
INTERVALS = (0.01, DEFAULT_S, 1e-3, 1e-4, 1e-5, 1e-6)
THREADS = (1, 2, 4)
PINNED_THREADS = (0, 1, 2, 4, 8)
COUNT_THREADS = (1, 2, 4, 8)
COUNTDOWN = 1_000_000
COUNT_INTERVALS = (DEFAULT_S, 1e-4, 1e-6)
HASH_BYTES = 4_000_000
# What the author measured (C4), requests per second by switch interval and number of CPU threads. Data to compare with.
PUBLISHED_RATES = {
    0.01: (50, 30, 15),
    DEFAULT_S: (100, 50, 30),
    1e-3: (500, 280, 200),
    1e-4: (3_200, 1_700, 1_000),
    1e-5: (11_000, 5_500, 2_800),
    1e-6: (10_000, 4_500, 2_500),
}


@dataclass(frozen=True)
class Case:
    """One server under load. kind, count: CPU work; interval in seconds; others: busy processes that nobody asked for."""

    kind: str = "threads"
    count: int = 0
    interval: float = DEFAULT_S
    seconds: float = SECONDS
    pinning: str = "none"
    server: str = "threads"
    others: int = 0


IDLE = Case()
ONE = Case(count=1)
CONVOY, AGAIN, QUIET = "1 CPU thread", "1 CPU thread, again", "no CPU work"


def plural(count: int, what: str) -> str:
    return f"{count} CPU {what}" if count == 1 else f"{count} CPU {what}{'es' if what.endswith('s') else 's'}"


def cases() -> dict[str, Case]:
    """Every case on the chapter's kernel, by name."""
    found = {QUIET: IDLE, CONVOY: ONE, AGAIN: ONE}
    for count in THREADS:
        found[plural(count, "thread")] = replace(ONE, count=count)
        found[plural(count, "process")] = replace(ONE, kind="processes", count=count)
        for interval in INTERVALS:
            if interval != DEFAULT_S:
                found[f"{plural(count, 'thread')}, {interval:g} s"] = replace(ONE, count=count, interval=interval)
    if hasattr(os, "sched_setaffinity"):
        for pinning in ("one core", "client apart"):
            for count in PINNED_THREADS:
                found[f"{plural(count, 'thread')}, {pinning}"] = replace(ONE, count=count, pinning=pinning)
    found |= {
        f"{QUIET}, 2 strangers": replace(IDLE, others=2),
        f"{CONVOY}, 2 strangers": replace(ONE, others=2),
        "1 sub-interpreter": replace(ONE, kind="interpreters"),
        "native code without the GIL": replace(ONE, kind="native"),
        "asyncio server, 1 CPU thread": replace(ONE, server="asyncio"),
    }
    return found


def cases_elsewhere() -> dict[str, Case]:
    """The cases on all other kernels."""
    return {QUIET: IDLE, **{plural(count, "thread"): replace(ONE, count=count) for count in THREADS}}


def outcomes(session: child.Session, title: str, jobs: list[tuple], repeats: int) -> list[tuple[str, str, dict]]:
    """(kernel, case, result) of each process. A job is (kernel, case, experiment, *arguments).

    Raises UserError if one brought nothing on the chapter's pair.
    """
    found = []
    for job, outcome in session.repeat(
        title, jobs, repeats, lambda job: child.run(job[0], EXPERIMENTS, *job[2:], timeout_s=60)
    ):
        if outcome.result is None and job[0] not in (KERNEL, WITHOUT_GIL):
            continue  # a kernel for comparison: the record keeps how it ended, and the page says that there is none
        found.append((job[0], job[1], outcome.needed(f"{title}, {job[1]} on CPython {job[0]}")))
    return found


def echo(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """C3, C4, C6: the server in all cases. Columns kernel, case, rate (requests/s), requests, p50, p99, p99.9 (µs;
    None with fewer than 1,000 requests), work (speed of the CPU work over its speed before the requests), cores."""
    jobs = []
    for label in labels:
        for name, case in (cases() if label == KERNEL else cases_elsewhere()).items():
            jobs.append((label, name, "echo", LIBRARIES, *astuple(case)))
    return pd.DataFrame(
        [
            {"kernel": label, "case": name, **result}
            for label, name, result in outcomes(session, "echo server", jobs, current().few)
        ]
    ).sort_values("kernel", ignore_index=True, kind="stable")


def countdowns(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """C1, C5. Columns kernel, interval (s), threads, seconds."""
    total = max(10_000, round(COUNTDOWN * current().scale))
    jobs = [
        (label, interval, "countdowns", total, interval, *COUNT_THREADS)
        for label in labels
        for interval in COUNT_INTERVALS
    ]
    return _by_threads(session, "countdown", jobs, "interval")


def hashes(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """C2. Columns kernel, bytes, threads, seconds."""
    size = max(100_000, round(HASH_BYTES * current().scale))
    return _by_threads(session, "SHA-256", [(label, size, "hashes", size, *COUNT_THREADS) for label in labels], "bytes")


def _by_threads(session: child.Session, title: str, jobs: list[tuple], column: str) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"kernel": label, column: case, "threads": int(threads), "seconds": seconds}
            for label, case, result in outcomes(session, title, jobs, current().repeats)
            for threads, seconds in result.items()
        ]
    ).sort_values("kernel", ignore_index=True, kind="stable")


def timelines(session: child.Session) -> list[dict]:
    """C8: recorded timelines of the server with one CPU thread, see `experiments.timeline`."""
    job = (KERNEL, "timeline", "timeline", DEFAULT_S, TIMELINE_S)
    return [result for _, _, result in outcomes(session, "timeline", [job], current().few)]


def waits(timeline: dict) -> pd.DataFrame:
    """How long each call of the server took beyond what it waited for. Columns call, begin, end (ns), intervals.

    recv may return once the client has sent and the call has begun; send may return at once.
    """
    sent = [start for start, _ in timeline["spans"]]
    notes = timeline["server"]
    # The client warms up first: its last requests are those of the spans, two notes for each.
    received, replied = notes[0::2][-len(sent) :], notes[1::2][-len(sent) :]
    rows = []
    for number in range(1, min(len(received), len(replied), len(sent))):
        rows.append(("recv", max(sent[number], replied[number - 1]), received[number]))
        rows.append(("send", received[number], replied[number]))
    found = pd.DataFrame(rows, columns=["call", "begin", "end"])
    return found.assign(intervals=(found.end - found.begin) / 1e9 / DEFAULT_S)


def calls_that_pay(found: list[dict]) -> pd.DataFrame:
    """By process and call: the share of calls that waited for half a switch interval or more, and how long those waited."""
    rows = []
    for timeline in found:
        for call, part in waits(timeline).groupby("call"):
            paid = part[part.intervals > 0.5].intervals
            rows.append(
                {"call": call, "share": len(paid) / len(part), "intervals": paid.median() if len(paid) else np.nan}
            )
    return pd.DataFrame(rows, columns=["call", "share", "intervals"])


def added_intervals(runs: pd.DataFrame, interval: float, label: str = KERNEL) -> np.ndarray:
    """Time that one CPU thread adds to a request, in switch intervals: one value for each process.

    Without CPU work a request takes what it takes beside a CPU *process*: with idle cores it would include their
    waking up.
    """
    name = CONVOY if interval == DEFAULT_S else f"{CONVOY}, {interval:g} s"
    base = chosen(runs, kernel=KERNEL, case="1 CPU process").rate.to_numpy()
    slow = chosen(runs, kernel=label, case=name).rate.to_numpy()
    if not len(base) or not len(slow):
        return np.array([])
    return (1 / slow - 1 / np.median(base)) / interval


def rates(runs: pd.DataFrame, case: str, label: str = KERNEL) -> np.ndarray:
    return chosen(runs, kernel=label, case=case).rate.to_numpy()


def reference_counts(session: child.Session) -> pd.DataFrame:
    """C9: ns for one reference up and down by its owner and by another thread, in one process. Columns owner, foreign."""
    job = (WITHOUT_GIL, "reference counts", "reference_counts", critical_sections.LIBRARIES)
    found = []
    for _, outcome in session.repeat(
        "reference counts", [job], current().few, lambda job: child.run(job[0], critical_sections.EXPERIMENTS, *job[2:])
    ):
        found.append(outcome.needed(f"reference counts on CPython {WITHOUT_GIL}"))
    return pd.DataFrame(found)


def claim_measurements(
    runs: pd.DataFrame, counts: pd.DataFrame, hashed: pd.DataFrame, found: list[dict], references: pd.DataFrame
) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger, by claim id."""
    handed = {claim: {} for claim in ("C1", "C2", "C3", "C4", "C5", "C6", "C8", "C9", "C10")}

    def put(claim: str, what: str, value: Measurement | None) -> None:
        if value:
            handed[claim][what] = value

    def seconds(frame: pd.DataFrame, threads: int, **which) -> np.ndarray:
        return chosen(frame, kernel=KERNEL, threads=[threads], **which).seconds.to_numpy()

    default = {"interval": [DEFAULT_S]}
    put("C1", "countdown, 2 threads / 1: 3.14", ratio(seconds(counts, 2, **default), seconds(counts, 1, **default)))
    put("C2", "SHA-256, 1 thread / 2: 3.14", ratio(seconds(hashed, 1), seconds(hashed, 2)))
    put("C3", "requests/s without / with one CPU thread: 3.14", ratio(rates(runs, QUIET), rates(runs, CONVOY)))
    put(
        "C3",
        "requests/s with one CPU process / with one CPU thread: 3.14",
        ratio(rates(runs, "1 CPU process"), rates(runs, CONVOY)),
    )
    put(
        "C4",
        "requests/s with one CPU thread, 1e-5 s / 0.005 s: 3.14",
        ratio(rates(runs, f"{CONVOY}, 1e-05 s"), rates(runs, CONVOY)),
    )
    put(
        "C5",
        "countdown, 8 threads, 1e-6 s / 0.005 s: 3.14",
        ratio(seconds(counts, 8, interval=[1e-6]), seconds(counts, 8, **default)),
    )
    put(
        "C6",
        "requests/s with one CPU thread, one core / not pinned: 3.14",
        ratio(rates(runs, f"{CONVOY}, one core"), rates(runs, CONVOY)),
    )
    put(
        "C6",
        "requests/s with one CPU thread, client apart / client on the same core: 3.14",
        ratio(rates(runs, f"{CONVOY}, client apart"), rates(runs, f"{CONVOY}, one core")),
    )
    paid = calls_that_pay(found).groupby("call").intervals.apply(lambda v: v.dropna().to_numpy())
    long = np.concatenate(list(paid)) if len(paid) else np.array([])
    put("C8", "wait for the GIL / switch interval: 3.14", measured(long, "switch intervals"))
    put(
        "C9",
        "reference count, another thread's / the owner's: 3.14t",
        ratio(references.foreign.to_numpy(), references.owner.to_numpy()),
    )
    put(
        "C10",
        "switch intervals added to a request by one CPU thread: 3.14",
        measured(added_intervals(runs, DEFAULT_S), "switch intervals"),
    )
    return handed


# The exercise: what a reader may change about the server, and what must come out.
GOAL_P99_US, GOAL_WORK = 2_000, 0.2


def check_server(kind: str = "threads", interval: float = DEFAULT_S, server: str = "threads") -> list[str]:
    """The exercise's self-check: does the CPU work still run, and is the p99 below the goal? Three runs; their median."""
    if kind not in ("threads", "processes", "interpreters", "native") or server not in ("threads", "asyncio"):
        return ["Choose kind from threads, processes, interpreters, native, and server from threads, asyncio."]
    if not 1e-6 <= interval <= 1:
        return ["Choose an interval between 0.000001 and 1 second."]
    case = replace(ONE, kind=kind, interval=interval, server=server)
    results = []
    for _ in range(3):
        outcome = child.run(KERNEL, EXPERIMENTS, "echo", LIBRARIES, *astuple(case))
        if outcome.result is None:
            return [f"The server did not come back: {outcome.ended}. {outcome.error.strip()}"]
        results.append({name: outcome.result[name] for name in ("p99", "rate", "work")})
    found = pd.DataFrame(results).median()
    lines = [
        f"p99 {found.p99 / 1e3:.2f} ms, {found.rate:,.0f} requests a second; the CPU work runs at {found.work:.0%}."
    ]
    if found.work < GOAL_WORK:
        return [*lines, f"Not correct: the CPU work must keep at least {GOAL_WORK:.0%} of its speed."]
    if found.p99 > GOAL_P99_US:
        return [*lines, f"Not fast: the goal is a p99 below {GOAL_P99_US / 1e3:g} ms."]
    return [*lines, "Correct, and fast."]
