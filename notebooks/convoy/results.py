"""What the records of the chapter "The GIL convoy" say: rates, waits for the GIL, switch intervals added to a
request."""

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Interval, Location
from ffilab.judge.processes import chosen
from ffilab.setup.catalogue import GIL
from notebooks.convoy.experiment import DEFAULT_S

# Loads of the echo server, by the names of their cases.
QUIET, CONVOY, PROCESS, RELIEVED = "no CPU work", "1 CPU thread", "1 CPU process", "1 CPU thread, 1e-05 s"
STRANGERS, ONE_CORE, APART = f"{CONVOY}, 2 strangers", f"{CONVOY}, one core", f"{CONVOY}, client apart"
TOGETHER, SPLIT = "0 CPU threads, one core", "0 CPU threads, client apart"
NO_DELAY, AWAKE = f"{TOGETHER}, TCP_NODELAY", f"{SPLIT}, cores kept awake"
INTERPRETER, NATIVE, COROUTINE = "1 sub-interpreter", "native code without the GIL", f"asyncio server, {CONVOY}"
# The server's two threads, by where they run.
FREE, TWO_CORES, SAME_CORE = "none", "threads apart", "client apart"
PLACES = {TWO_CORES: "on different cores", SAME_CORE: "on one core", FREE: "not pinned"}
# Timer slack and places of the server's threads, by the name of a case.
AS_IT_IS, SLACKLESS = "as it is", "1 ns"
SLACK_CASES = {
    "different cores, as it is": (AS_IT_IS, TWO_CORES, FREE),
    "different cores, 1 ns": (SLACKLESS, TWO_CORES, FREE),
    "one core, 1 ns": (SLACKLESS, SAME_CORE),
}


def done(frame: pd.DataFrame, **which) -> pd.DataFrame:
    """The rows that `which` chooses, of processes that brought a result."""
    return chosen(frame[frame.ended == "ok"], **which)


def positive(values: np.ndarray) -> Interval | None:
    """Centre of rates or times over processes: the interval is that of the logarithms, so it ends above 0, and the
    centre is their geometric mean. None if there are none."""
    if not len(values):
        return None
    if min(values) <= 0:
        found = Location.of(values).interval
        return Interval(found.value, np.maximum(found.low, 0.0), found.high)
    return Location.of(np.log(values), log=True).interval


def swept(sweeps: pd.DataFrame, column: str, interval: float, **which) -> np.ndarray:
    """A column at one switch interval, one value for each process that has it, in the order of the rounds."""
    found = done(sweeps, interval=[interval], **which)
    return pd.to_numeric(found[column]).dropna().to_numpy()


def excess(sweeps: pd.DataFrame, interval: float, slack: str, *places: str) -> np.ndarray:
    """What the median request takes beyond one switch interval, in µs, with the server's threads at one of these
    places: one value for each process with requests enough."""
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
    """A row for each process: shares of the calls of recv and of send that waited, shares of the requests in which none
    of the two did, one, and both, and what a request lost in both, in switch intervals."""
    rows = []
    for timeline in done(timelines, interpreter=GIL, pinning=place).to_dict("records"):
        calls = waits(timeline)
        if not len(calls):
            continue
        each = {call: part.intervals.to_numpy() for call, part in calls.groupby("call")}
        long = {call: values > LONG for call, values in each.items()}
        both = long["recv"].astype(int) + long["send"]
        row = {call: float(found.mean()) for call, found in long.items()}
        row |= {waited: float(np.mean(both == waited)) for waited in (0, 1, 2)}
        rows.append(row | {"lost": float((each["recv"] + each["send"]).mean())})
    return pd.DataFrame(rows, columns=["recv", "send", 0, 1, 2, "lost"])


def gil_waits(waits: pd.DataFrame) -> np.ndarray:
    """Switch intervals from asking for the GIL to having it: the median of all waits of a process, one value for
    each."""
    found = done(waits, interpreter=GIL)
    return np.array([np.median(ns) for ns in found.waits if len(ns)]) / 1e9 / DEFAULT_S
