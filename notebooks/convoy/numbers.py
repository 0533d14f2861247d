"""What the records of the chapter "The GIL convoy" say: its numbers by name. The rules: claims.toml, sentences.toml."""

from dataclasses import replace

import numpy as np
import pandas as pd

from ffilab.judge.controls import Control
from ffilab.judge.estimates import Counted, Estimate, Interval, Location, known
from ffilab.judge.numbers import ONE_CORE, Declarations
from ffilab.judge.processes import chosen, difference, location, positive, ratio
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.convoy.experiment import DECISIVE, DEFAULT_S, ON_EVERY_BUILD, SHORTEST_S

# Loads of the echo server, by the names of their cases.
QUIET, CONVOY, PROCESS, RELIEVED = "no CPU work", "1 CPU thread", "1 CPU process", "1 CPU thread, 1e-05 s"
AGAIN = f"{CONVOY}, again"
STRANGERS, ON_ONE_CORE, APART = f"{CONVOY}, 2 strangers", f"{CONVOY}, one core", f"{CONVOY}, client apart"
TOGETHER, SPLIT = "0 CPU threads, one core", "0 CPU threads, client apart"
NO_DELAY, AWAKE = f"{TOGETHER}, TCP_NODELAY", f"{SPLIT}, cores kept awake"
INTERPRETER, NATIVE, COROUTINE = "1 sub-interpreter", "native code without the GIL", f"asyncio server, {CONVOY}"
NO_PINNING = "this system cannot pin a process to a core"
# Loads that are no others where nothing can be pinned, or where there is one core.
PLACED = {ON_ONE_CORE, APART, SPLIT, AWAKE}
# Rates in the names of numbers: the load, and the loads that are compared.
RATES = {
    "without CPU work": QUIET,
    "with one CPU thread": CONVOY,
    "with one CPU process": PROCESS,
    "with one CPU thread, 1e-5 s": RELIEVED,
    "with one CPU thread, one core": ON_ONE_CORE,
    "with one CPU thread, client apart": APART,
    "without CPU work, one core": TOGETHER,
    "without CPU work, client apart": SPLIT,
    "without CPU work, client apart, cores kept awake": AWAKE,
}
RATES_OF_EVERY_BUILD = {words: case for words, case in RATES.items() if case in ON_EVERY_BUILD}
RATIOS = {
    "without / with one CPU thread": (QUIET, CONVOY),
    "with one CPU process / with one CPU thread": (PROCESS, CONVOY),
    "without CPU work, client apart, cores kept awake / not": (AWAKE, SPLIT),
    "without CPU work, one core, TCP_NODELAY / without": (NO_DELAY, TOGETHER),
    "with one CPU thread, without / with two strangers": (CONVOY, STRANGERS),
    "with one CPU thread, 1e-5 s / 0.005 s": (RELIEVED, CONVOY),
    "with one CPU thread, one core / not pinned": (ON_ONE_CORE, CONVOY),
    "with one CPU thread, client apart / not pinned": (APART, CONVOY),
    "with CPU work in a sub-interpreter / in a thread": (INTERPRETER, CONVOY),
    "with CPU work in native code / in a thread": (NATIVE, CONVOY),
    "of an asyncio server / of threads, one CPU thread": (COROUTINE, CONVOY),
}
# The server's two threads, by where they run.
FREE, TWO_CORES, SAME_CORE = "none", "threads apart", "client apart"
PLACES = {"on different cores": TWO_CORES, "on one core": SAME_CORE, "not pinned": FREE}
# Timer slack and places of the server's threads, by the name of a case.
AS_IT_IS, SLACKLESS = "as it is", "1 ns"
WITH_SLACK, WITHOUT_SLACK = (AS_IT_IS, TWO_CORES, FREE), (SLACKLESS, TWO_CORES, FREE)
SLACK_CASES = {
    "different cores, as it is": WITH_SLACK,
    "different cores, 1 ns": WITHOUT_SLACK,
    "one core, 1 ns": (SLACKLESS, SAME_CORE),
}
SHORT_AND_CASE = {"case": SLACK_CASES, "interval": {"10 µs": 1e-5, "1 µs": SHORTEST_S}}
CALLS = ("recv", "send")
COUNTED_BY = {"the owner": "owner", "another thread": "foreign"}
# A call that takes so many switch intervals beyond what it waited for input has waited for the GIL.
LONG = 0.5
number = Declarations()


def done(frame: pd.DataFrame, **which) -> pd.DataFrame:
    """The rows that `which` chooses, of processes that brought a result."""
    return chosen(frame[frame.ended == "ok"], **which)


def quotient(frame: pd.DataFrame, column: str, one: dict, other: dict) -> Estimate | None:
    """A column of an experiment in one case over that in another, with the GIL."""
    return ratio(*(done(frame, interpreter=GIL, **which)[column] for which in (one, other)))


# ---- what a second thread gains ----


@number("one countdown divided, 2 threads / 1: {GIL}", frame="one countdown", two_cores=True)
def divided_countdown(runs: pd.DataFrame) -> Estimate | None:
    return quotient(runs, "seconds", *({"threads": n, "interval": DEFAULT_S} for n in (2, 1)))


@number("one countdown divided, 8 threads, 1e-6 s / 0.005 s: {GIL}", frame="one countdown")
def divided_at_the_shortest(runs: pd.DataFrame, threads: int = 8) -> Estimate | None:
    return quotient(runs, "seconds", *({"threads": threads, "interval": length} for length in (SHORTEST_S, DEFAULT_S)))


@number("SHA-256, 1 thread / 2: {GIL}", frame="SHA-256", two_cores=True)
def divided_hashes(runs: pd.DataFrame) -> Estimate | None:
    return quotient(runs, "seconds", {"threads": 1}, {"threads": 2})


@number("countdown, 2 threads / 1: {GIL}", frame="countdown", two_cores=True)
def second_countdown(counts: pd.DataFrame) -> Estimate | None:
    return quotient(counts, "ns", *({"threads": n, "interval": DEFAULT_S, "again": False} for n in (2, 1)))


@number(
    "countdown, {threads}, 1e-6 s / 0.005 s: {GIL}",
    frame="countdown",
    over={"threads": {"1 thread": 1, "8 threads": 8}},
)
def shortest_over_default(counts: pd.DataFrame, threads: int) -> Estimate | None:
    lengths = ({"interval": length} for length in (SHORTEST_S, DEFAULT_S))
    return quotient(counts, "ns", *({"threads": threads, "again": False} | length for length in lengths))


# ---- the echo server ----


def rates(session: Session, case: str, label: str = GIL) -> np.ndarray:
    """Requests per second, one value for each process, in the order of the rounds."""
    title = "echo server" if label == GIL and case in DECISIVE else "echo server, further loads"
    return done(session.frame(title), interpreter=label, case=case).rate.to_numpy()


@number("requests/s {case}: {GIL}", over={"case": RATES})
@number("requests/s {case}: {FREE_THREADED}", over={"case": RATES_OF_EVERY_BUILD}, label=FREE_THREADED)
def rate(session: Session, case: str, label: str = GIL) -> Interval | str | None:
    return positive(rates(session, case, label)) or (not_placed(session) if case in PLACED else None)


def not_placed(session: Session) -> str:
    """Why there is nothing to compare of threads that have places of their own."""
    return ONE_CORE if session.machine["cores_usable"] < 2 else NO_PINNING


@number("requests/s {cases}: {GIL}", over={"cases": RATIOS})
@number("requests/s without / with one CPU thread: {FREE_THREADED}", cases=(QUIET, CONVOY), label=FREE_THREADED)
def rate_over(session: Session, cases: tuple[str, str], label: str = GIL) -> Estimate | str | None:
    """Requests a second in one case over those in another. Beside a CPU thread they fall into two classes."""
    if PLACED.intersection(cases) and session.machine["cores_usable"] < 2:
        return ONE_CORE
    estimate = ratio(*(rates(session, case, label) for case in cases), classes=CONVOY in cases)
    return estimate or (NO_PINNING if PLACED.intersection(cases) else None)


@number("fewest requests/s of a process beside two strangers: {GIL}", which=min)
@number("most requests/s of a process beside two strangers: {GIL}", which=max)
def of_a_process(session: Session, which) -> Counted | None:
    """What one process answers, the slowest or the fastest: they are too uneven for a centre."""
    found = rates(session, STRANGERS)
    return Counted(which(found)) if len(found) else None


@number("half-width of requests/s with one CPU thread, in per cent: {GIL}")
def half_width(session: Session) -> Counted | None:
    interval = rate(session, CONVOY)
    return Counted(100 * interval.half_width / interval.value) if known(interval) else None


@number("processes with one CPU thread: {GIL}")
def processes(session: Session) -> Counted:
    return Counted(len(rates(session, CONVOY)))


@number("fewest requests of a process that decides: {GIL}", frame="echo server")
def fewest(runs: pd.DataFrame) -> Counted | None:
    deciding = done(runs, interpreter=GIL, case=[CONVOY, APART])
    return Counted(deciding.requests.min()) if len(deciding) else None


@number("share of one core's relief that goes with the client: {GIL}")
def with_the_client(session: Session) -> Estimate | str:
    """Of the requests a second that one core gains, the share that is gone with the client on another core: a ratio of
    means over processes, with its error (Cochran, Sampling Techniques, 1977, section 6.4)."""
    of_cases = [rates(session, case) for case in (ON_ONE_CORE, APART, CONVOY)]
    if not (n := min(map(len, of_cases))):
        return not_placed(session)
    one, apart, free = (of_case[:n] for of_case in of_cases)
    gained, gone = one - free, one - apart
    if gained.mean() <= 0:
        return "one core gains nothing here"
    share = gone.mean() / gained.mean()
    return replace(Location.mean((gone - share * gained) / gained.mean()), centre=share)


@number(
    "cores of the CPU thread, {case}: {GIL}",
    frame="echo server",
    over={"case": {"1e-5 s": RELIEVED, "0.005 s": CONVOY}},
)
def cores(runs: pd.DataFrame, case: str) -> Interval | None:
    """How many cores it has on average: for which part of the time it has one."""
    return positive(done(runs, interpreter=GIL, case=case).had.to_numpy(float))


@number("core time of the CPU thread, 1e-5 s / 0.005 s: {GIL}", frame="echo server", column="had")
@number(
    "steps of the CPU thread in a second on a core, 1e-5 s / 0.005 s: {GIL}",
    frame="echo server",
    column="step_ns",
    one=CONVOY,
    other=RELIEVED,
)
def at_the_short_interval(runs: pd.DataFrame, column: str, one: str = RELIEVED, other: str = CONVOY) -> Estimate | None:
    return quotient(runs, column, {"case": one}, {"case": other})


@number("steps of the CPU thread, 1e-5 s / 0.005 s: {GIL}", frame="echo server")
def work_at_the_short_interval(runs: pd.DataFrame) -> Estimate | None:
    """All that it does: steps in a second on a core, and how many cores it has."""
    return at_the_short_interval(runs.assign(steps=runs.had / runs.step_ns), "steps")


@number("time of a request, in switch intervals: {GIL}")
def request(session: Session) -> Estimate | None:
    """A request beside one CPU thread, as run. Processes fall into classes: the mean is that of all."""
    intervals = 1 / rates(session, CONVOY) / DEFAULT_S
    return Location.mean(intervals, signed=False) if len(intervals) else None


# ---- waits for the GIL ----


def gil_waits(waits: pd.DataFrame) -> np.ndarray:
    """Switch intervals from asking for the GIL to having it: the median of all waits of a process, one value for
    each."""
    well = done(waits, interpreter=GIL)
    return np.array([np.median(ns) for ns in well.waits if len(ns)]) / 1e9 / DEFAULT_S


@number("wait for the GIL / switch interval: {GIL}", frame="waits for the GIL")
def median_wait(waits: pd.DataFrame) -> Estimate | None:
    """The median wait of each process for the GIL."""
    return location(gil_waits(waits))


@number(
    "share of {how} releases after which the other thread is first: {GIL}",
    frame="forced switching",
    over={"how": ("demanded", "free")},
)
def first(forcing: pd.DataFrame, how: str) -> Estimate | None:
    """The other thread had the GIL before the one that let go took it back: on demand, or before one."""
    return location(done(forcing, interpreter=GIL)[how].to_numpy())


def calls(timeline: dict) -> pd.DataFrame:
    """How long each call of the server took beyond what it waited for. Columns call, begin, end (ns), intervals.

    timeline: one row of the timelines. recv may return once the client has sent and the call has begun; send may return
    at once.
    """
    sent = [start for start, _ in timeline["spans"]]
    notes = timeline["server"]
    received, replied = notes[0::2][-len(sent) :], notes[1::2][-len(sent) :]
    rows = []
    for turn in range(1, min(len(received), len(replied), len(sent))):
        rows.append(("recv", max(sent[turn], replied[turn - 1]), received[turn]))
        rows.append(("send", received[turn], replied[turn]))
    table = pd.DataFrame(rows, columns=["call", "begin", "end"])
    return table.assign(intervals=(table.end - table.begin) / 1e9 / DEFAULT_S)


def calls_that_wait(timelines: pd.DataFrame, place: str) -> pd.DataFrame:
    """A row for each process: shares of the calls of recv and of send that waited, shares of the requests in which none
    of the two did, one, and both, and what a request lost in both, in switch intervals."""
    rows = []
    for timeline in done(timelines, interpreter=GIL, pinning=place).to_dict("records"):
        each = {call: part.intervals.to_numpy() for call, part in calls(timeline).groupby("call")}
        if not each:
            continue
        waited = {call: intervals > LONG for call, intervals in each.items()}
        both = waited["recv"].astype(int) + waited["send"]
        row = {call: float(of_call.mean()) for call, of_call in waited.items()}
        row |= {count: float(np.mean(both == count)) for count in (0, 1, 2)}
        rows.append(row | {"lost": float((each["recv"] + each["send"]).mean())})
    return pd.DataFrame(rows, columns=["recv", "send", 0, 1, 2, "lost"])


@number("share of calls of {column} that wait, threads {place}: {GIL}", over={"column": CALLS, "place": PLACES})
@number("loss of a request, in switch intervals, threads on different cores: {GIL}", column="lost", place=TWO_CORES)
def per_request(session: Session, column: str | int, place: str) -> Estimate | str:
    """What the timelines show beside one CPU thread; or why they do not."""
    return location(calls_that_wait(session.frame("timeline"), place)[column].to_numpy()) or not_placed(session)


@number("requests that lose 2 switch intervals, in per cent, threads {place}: {GIL}", over={"place": PLACES})
def lost_twice(session: Session, place: str) -> Estimate | str:
    waited = calls_that_wait(session.frame("timeline"), place)
    return location(100 * waited[2].to_numpy()) or not_placed(session)


# ---- switch intervals ----


def excess(sweeps: pd.DataFrame, interval: float, slack: str, *places: str) -> np.ndarray:
    """What the median request takes beyond one switch interval, in µs, with the server's threads at one of these
    places: one value for each process with requests enough."""
    at_interval = done(sweeps, interval=interval, slack=slack, pinning=places)
    return pd.to_numeric(at_interval.p50).dropna().to_numpy() - interval * 1e6


@number("µs beyond an interval of {interval}, {case}: {GIL}", frame="timer slack", over=SHORT_AND_CASE)
def beyond(slacks: pd.DataFrame, interval: float, case: tuple[str, ...]) -> Estimate | None:
    """What the median request takes beyond one switch interval."""
    return location(excess(slacks, interval, *case), signed=True)


@number("twice the µs beyond an interval of 1 µs, different cores, 1 ns: {GIL}", frame="timer slack")
def twice_beyond(slacks: pd.DataFrame) -> Estimate | None:
    return location(2 * excess(slacks, SHORTEST_S, *WITHOUT_SLACK), signed=True)


@number("µs beyond an interval of 10 µs that the timer slack adds: {GIL}", frame="timer slack")
def added(slacks: pd.DataFrame) -> Estimate | None:
    return difference(*(excess(slacks, 1e-5, *case) for case in (WITH_SLACK, WITHOUT_SLACK)))


# ---- reference counts ----


@number("ns for a reference count by {who}: {FREE_THREADED}", frame="reference counts", over={"who": COUNTED_BY})
def count_by(counts: pd.DataFrame, who: str) -> Interval | None:
    return positive(counts[who].to_numpy())


@number("reference count by another thread / by the owner: {FREE_THREADED}", frame="reference counts")
def foreign_count(counts: pd.DataFrame) -> Estimate | None:
    return ratio(counts.foreign, counts.owner)


def controls(session: Session) -> list[Control]:
    """Equal cases under two names: a load of the echo server, and two threads that count."""
    counts, two = session.frame("countdown"), {"threads": 2, "interval": DEFAULT_S}
    found = {
        ("echo server", f"requests/s, {AGAIN} / {CONVOY}"): rate_over(session, (AGAIN, CONVOY)),
        ("countdown", "2 threads, again / 2 threads"): quotient(
            counts, "ns", *(two | {"again": again} for again in (True, False))
        ),
    }
    return [
        Control("A/A of cases", what, title, estimate)
        for (title, what), estimate in found.items()
        if isinstance(estimate, Location)
    ]
