"""What the records of the chapter "The GIL convoy" say: rates, waits for the GIL, switch intervals added to a request."""

import numpy as np
import pandas as pd

from ffilab.judge.processes import chosen
from ffilab.provision.catalogue import GIL
from notebooks.convoy.experiment import CONVOY, DEFAULT_S


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


def intervals_a_request(runs: pd.DataFrame, case: str = CONVOY) -> np.ndarray:
    """Time of a request of a client that never pauses, in switch intervals: one value for each process."""
    return 1 / rates(runs, case) / DEFAULT_S


def swept(sweeps: pd.DataFrame, column: str, interval: float, **which) -> np.ndarray:
    """A column at one switch interval, one value for each process that has it, in the order of the rounds."""
    found = done(sweeps, interval=[interval], **which)
    return pd.to_numeric(found[column]).dropna().to_numpy()


def excess(sweeps: pd.DataFrame, interval: float, slack: str, *places: str) -> np.ndarray:
    """What the median request takes beyond one switch interval, in µs, with the server's threads at one of these places: one value for
    each process with requests enough."""
    return swept(sweeps, "p50", interval, slack=slack, pinning=places) - interval * 1e6


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


# A call that takes so many switch intervals beyond what it waited for input has waited for the GIL.
LONG = 0.5


def calls_that_wait(timelines: pd.DataFrame, place: str) -> pd.DataFrame:
    """A row for each process: shares of the calls of recv and of send that waited, for how long these did (median, in switch
    intervals), shares of the requests in which none of the two did, one, and both, and what a request lost in both."""
    rows = []
    for timeline in done(timelines, interpreter=GIL, pinning=place).to_dict("records"):
        calls = waits(timeline)
        if not len(calls):
            continue
        each = {call: part.intervals.to_numpy() for call, part in calls.groupby("call")}
        long = {call: values > LONG for call, values in each.items()}
        both = long["recv"].astype(int) + long["send"]
        rows.append(
            {
                **{call: float(found.mean()) for call, found in long.items()},
                **{
                    f"{call}, then": float(np.median(each[call][long[call]])) if long[call].any() else np.nan
                    for call in each
                },
                **{waited: float(np.mean(both == waited)) for waited in (0, 1, 2)},
                "lost": float((each["recv"] + each["send"]).mean()),
            }
        )
    return pd.DataFrame(rows, columns=["recv", "send", "recv, then", "send, then", 0, 1, 2, "lost"])


def gil_waits(waits: pd.DataFrame, label: str = GIL) -> np.ndarray:
    """Switch intervals from asking for the GIL to having it: the median of all waits of a process, one value for each."""
    found = done(waits, interpreter=label)
    return np.array([np.median(ns) for ns in found.waits if len(ns)]) / 1e9 / DEFAULT_S
