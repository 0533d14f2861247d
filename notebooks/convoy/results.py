"""What the records of the chapter "The GIL convoy" say: rates, waits for the GIL, switch intervals added to a request."""

import numpy as np
import pandas as pd

from ffilab.judge.processes import chosen
from ffilab.provision.catalogue import GIL
from notebooks.convoy.experiment import CONVOY, DEFAULT_S, PROCESS


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


def added_intervals(runs: pd.DataFrame) -> np.ndarray:
    """Time that one CPU thread adds to a request at the default interval, in switch intervals: one value for each round.

    Without CPU work a request takes what it takes beside a CPU *process* in the round of the same number: with idle cores
    it would include their waking up.
    """
    base, slow = rates(runs, PROCESS), rates(runs, CONVOY)
    rounds = min(len(base), len(slow))
    return (1 / slow[:rounds] - 1 / base[:rounds]) / DEFAULT_S


# A request belongs to the number of switch intervals that it took, within so much of one.
WITHIN = 0.3


def singles(runs: pd.DataFrame, case: str) -> list[np.ndarray]:
    """Latencies of single requests in switch intervals (all of these cases have the default), an array for each process."""
    return [np.array(us) / 1e6 / DEFAULT_S for us in done(runs, interpreter=GIL, case=case).us]


def shares_near(runs: pd.DataFrame, case: str, number: int) -> np.ndarray:
    """Share of requests that took about so many switch intervals: one value for each process."""
    return np.array([np.mean(np.abs(found - number) < WITHIN) for found in singles(runs, case)])


def shares_waiting(runs: pd.DataFrame, case: str, waits: int) -> np.ndarray:
    """Share of requests that took about so many switch intervals, or more: one value for each process."""
    return np.array([np.mean(found > waits - WITHIN) for found in singles(runs, case)])


def medians_of_processes(runs: pd.DataFrame, case: str) -> np.ndarray:
    """Of single requests, in switch intervals."""
    return np.array([np.median(found) for found in singles(runs, case)])


def swept(sweeps: pd.DataFrame, column: str, interval: float, **which) -> np.ndarray:
    """A column at one switch interval, one value for each process that has it, in the order of the rounds."""
    found = done(sweeps, interval=[interval], **which)
    return pd.to_numeric(found[column]).dropna().to_numpy()


def excess(sweeps: pd.DataFrame, interval: float, slack: str) -> np.ndarray:
    """What the median request takes beyond one switch interval, in µs: one value for each process with requests enough."""
    return swept(sweeps, "p50", interval, slack=slack) - interval * 1e6


def first_demands(waits: pd.DataFrame) -> np.ndarray:
    """Share of waits for the GIL, of those of half an interval and more, that were over within one and a half: one value for
    each process. One wait and one demand, then; had the busy thread taken the GIL again, it would have taken another."""
    found = [np.array(ns) / 1e9 / DEFAULT_S for ns in done(waits, interpreter=GIL).waits]
    return np.array([np.mean(long < 1.5) for each in found if len(long := each[each > 0.5])])


def waits(timeline: dict) -> pd.DataFrame:
    """How long each call of the server took beyond what it waited for. Columns call, begin, end (ns), intervals.

    timeline: one row of the timelines. recv may return once the client has sent and the call has begun; send may return
    at once.
    """
    sent = [start for start, _ in timeline["spans"]]
    notes = timeline["server"]
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


def gil_waits(waits: pd.DataFrame, label: str = GIL) -> np.ndarray:
    """Switch intervals from asking for the GIL to having it: the median of all waits of a process, one value for each."""
    found = done(waits, interpreter=label)
    return np.array([np.median(ns) for ns in found.waits if len(ns)]) / 1e9 / DEFAULT_S
