"""What the records of the chapter "The GIL convoy" say: rates, waits for the GIL, switch intervals added to a request."""

import numpy as np
import pandas as pd

from ffilab.judge.processes import chosen
from ffilab.provision.catalogue import GIL
from notebooks.convoy.experiment import DEFAULT_S, PROCESS, plural


def done(frame: pd.DataFrame, **which) -> pd.DataFrame:
    """The rows that `which` chooses, of processes that brought a result."""
    return chosen(frame[frame.ended == "ok"], **which)


def rates(runs: pd.DataFrame, case: str, label: str = GIL) -> np.ndarray:
    """Requests per second, one value for each process, in the order of the rounds."""
    return done(runs, interpreter=label, case=case).rate.to_numpy()


def steps(counts: pd.DataFrame, threads: int, interval: float) -> np.ndarray:
    """ns for one step of the countdown with the GIL: one value for each process, in the order of the rounds."""
    return done(counts, interpreter=GIL, threads=threads, interval=[interval]).ns.to_numpy()


def seconds(hashed: pd.DataFrame, threads: int) -> np.ndarray:
    """Of SHA-256 with the GIL: one value for each process, in the order of the rounds."""
    return done(hashed, interpreter=GIL, threads=threads).seconds.to_numpy()


def interval_case(count: int, interval: float) -> str:
    """Name of the case with so many CPU threads and this switch interval."""
    return plural(count, "thread") + ("" if interval == DEFAULT_S else f", {interval:g} s")


def added_intervals(runs: pd.DataFrame, interval: float, label: str = GIL) -> np.ndarray:
    """Time that one CPU thread adds to a request, in switch intervals: one value for each round.

    Without CPU work a request takes what it takes beside a CPU *process* in the round of the same number: with idle cores
    it would include their waking up.
    """
    base, slow = rates(runs, PROCESS), rates(runs, interval_case(1, interval), label)
    rounds = min(len(base), len(slow))
    return (1 / slow[:rounds] - 1 / base[:rounds]) / interval


def waits(timeline: dict) -> pd.DataFrame:
    """How long each call of the server took beyond what it waited for. Columns call, begin, end (ns), intervals.

    timeline: one row of the timelines. recv may return once the client has sent and the call has begun; send may return
    at once.
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


def calls_that_pay(timelines: pd.DataFrame) -> pd.DataFrame:
    """By process and call: the share of calls that waited for half a switch interval or more, and how long those waited."""
    rows = []
    for timeline in timelines.to_dict("records"):
        for call, part in waits(timeline).groupby("call"):
            paid = part[part.intervals > 0.5].intervals
            rows.append(
                {"call": call, "share": len(paid) / len(part), "intervals": paid.median() if len(paid) else np.nan}
            )
    return pd.DataFrame(rows, columns=["call", "share", "intervals"])


def waits_a_request(paid: pd.DataFrame) -> np.ndarray:
    """How many of the two calls of a request waited, on average: one value for each process."""
    numbered = paid.assign(process=paid.groupby("call").cumcount())
    return numbered.groupby("process").share.sum().to_numpy()


def gil_waits(waits: pd.DataFrame, label: str = GIL) -> np.ndarray:
    """Switch intervals from asking for the GIL to having it: the median of all waits of a process, one value for each."""
    found = done(waits, interpreter=label)
    return np.array([np.median(ns) for ns in found.waits if len(ns)]) / 1e9 / DEFAULT_S
