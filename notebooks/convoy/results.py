"""What the records of the chapter "The GIL convoy" say: rates, waits for the GIL, switch intervals added to a request."""

import numpy as np
import pandas as pd

from ffilab.judge.processes import chosen
from ffilab.provision.catalogue import GIL
from notebooks.convoy.experiment import DEFAULT_S, plural


def done(frame: pd.DataFrame, **which) -> pd.DataFrame:
    """The rows that `which` chooses, of processes that brought a result."""
    return chosen(frame[frame.ended == "ok"], **which)


def rates(runs: pd.DataFrame, case: str, label: str = GIL) -> np.ndarray:
    """Requests per second, one value for each process, in the order of the rounds."""
    return done(runs, interpreter=label, case=case).rate.to_numpy()


def seconds(frame: pd.DataFrame, threads: int, **which) -> np.ndarray:
    """Of a countdown or of SHA-256 with the GIL: one value for each process, in the order of the rounds."""
    return done(frame, interpreter=GIL, threads=threads, **which).seconds.to_numpy()


def interval_case(count: int, interval: float) -> str:
    """Name of the case with so many CPU threads and this switch interval."""
    return plural(count, "thread") + ("" if interval == DEFAULT_S else f", {interval:g} s")


def added_intervals(runs: pd.DataFrame, interval: float, label: str = GIL) -> np.ndarray:
    """Time that one CPU thread adds to a request, in switch intervals: one value for each process.

    Without CPU work a request takes what it takes beside a CPU *process*: with idle cores it would include their
    waking up.
    """
    base = rates(runs, "1 CPU process")
    slow = rates(runs, interval_case(1, interval), label)
    if not len(base) or not len(slow):
        return np.array([])
    return (1 / slow - 1 / np.median(base)) / interval


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


def long_waits(timelines: pd.DataFrame) -> np.ndarray:
    """Switch intervals that a call waited for the GIL, if it did: one value for each process and call."""
    paid = calls_that_pay(timelines).groupby("call").intervals.apply(lambda found: found.dropna().to_numpy())
    return np.concatenate(list(paid)) if len(paid) else np.array([])
