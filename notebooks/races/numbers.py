"""What the records of the chapter "Races" say, its numbers by name: what was lost, made from nothing, or found, and how
often; and its own controls. The rules: claims.toml, sentences.toml."""

import math

import numpy as np
import pandas as pd

from ffilab.judge import estimates
from ffilab.judge.controls import Check
from ffilab.judge.estimates import LEVEL, Counted, Interval, Location, Share
from ffilab.judge.numbers import Declarations
from ffilab.judge.processes import chosen, difference, interval_of
from ffilab.judge.questions import OPEN, above
from ffilab.measure.session import Session
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races import experiment as e
from notebooks.races.detection import CLEAN, RACE, TOOLS

PAIR = (GIL, FREE_THREADED)
CROSSED, TRIALS, WINDOW = "counter, crossed", "trials", "width of the window"
COPIES = [("atomic", e.AGAIN)]
UNSAFE, SAFE = e.VARIANTS[:1], e.VARIANTS[1:]
KEEPING, RELEASING = ([way for way, releases in e.WAYS.items() if releases == which] for which in (False, True))
PYDLL, CDLL = e.LOADERS
DOLLARS = 1000
# The kinds of runs of the crossed counter, by their number of threads. They are never pooled.
TEAM_SIZES = (e.TWO["threads"], e.THREADS)
# Of the runs whose call lets others in, so many should have met.
MUST_MEET = 0.9
# Two of WINDOWS_NS, one ten times as wide as the other: at both, the model's share is well above what check and act
# take.
NARROW_NS, WIDE_NS = 1_000, 10_000
# Of threads together: those whose price the prose compares.
REMEDIES = ("atomic", "sharded, 16 atomics", "read under a PyMutex", "read an immutable snapshot")
# What is said of fifty threads: a column of the runs, and what it is multiplied by.
OF_FIFTY = {
    "loss": {"column": "lost"},
    "overlapping pairs": {"column": "pairs", "factor": e.THREADS * (e.THREADS - 1) / 2},
}
number = Declarations()


def labels(runs: pd.DataFrame) -> list[str]:
    """The interpreters of an experiment, in order."""
    return sorted(runs.interpreter.unique())


def mean(values) -> Location | None:
    """The expected value of a run; None if there is no run. Nothing is trimmed: where runs fall into two clusters, a
    trimmed mean is the centre of neither, and the mean is at least what many runs lose on average."""
    return Location.mean(values, signed=min(values) < 0) if len(values) else None


@number("lossy runs: {variant}", frame="counter in Rust", over={"variant": list(e.RUST)[:2]}, column="lost")
def bad(runs: pd.DataFrame, column: str, **which) -> Share | None:
    """Processes in which something went wrong (`column` is not zero), among all; None if there are none of the kind.

    A process is one trial: several of its rows that `which` chooses are bad once, and not several times.
    """
    if runs.empty:
        return None
    rows = chosen(runs, **which)
    processes = rows.process.nunique()
    return Share(rows.process[rows[column] != 0].nunique(), processes) if processes else None


# ---- what claims ask to happen or never to happen: an event counts, whatever else ran, and so does a trial without one

# Counters of the trials: a build, a way of calling, a variant.
COUNTERS = {f"{variant}, PyDLL, {FREE_THREADED}": (FREE_THREADED, PYDLL, variant) for variant in e.VARIANTS}
COUNTERS |= {f"unsafe, PyDLL, {GIL}": (GIL, PYDLL, "unsafe"), f"unsafe, ctypes CDLL, {GIL}": (GIL, CDLL, "unsafe")}


@number("bad runs: {counter}", frame=TRIALS, over={"counter": COUNTERS})
def bad_counters(trials: pd.DataFrame, counter: tuple[str, str, str]) -> Share | None:
    return bad(counter_trials(trials, *counter), "lost")


@number("updates lost, mean over all runs: unsafe, PyDLL, {FREE_THREADED}", frame=TRIALS)
def lost_in_trials(trials: pd.DataFrame) -> Location | None:
    return mean(counter_trials(trials, FREE_THREADED, PYDLL, "unsafe").lost)


def counter_trials(trials: pd.DataFrame, label: str, way: str, variant: str) -> pd.DataFrame:
    """The trials of one counter. Threads that did not meet cannot try a lock: of locks only those count in which all
    met."""
    rows = chosen(trials, interpreter=label, way=way, variant=variant)
    return rows[rows.met == 1] if variant in SAFE else rows


def money(bank: pd.DataFrame) -> pd.DataFrame:
    """The bank, with the dollars that each run `created` from nothing."""
    return bank.assign(created=bank.balance + bank.withdrawn - DOLLARS)


@number("bad accounts: unsafe, PyDLL, {label}", frame=TRIALS, over={"label": PAIR}, case="unsafe")
@number("bad accounts: safe, PyDLL, {FREE_THREADED}", frame=TRIALS, label=FREE_THREADED, case="safe")
def bad_accounts(trials: pd.DataFrame, label: str, case: str) -> Share | None:
    return bad(money(trials), "created", interpreter=label, case=case)


LOOPS = {"switch interval 1 µs": False, "a loop of 1,000": True}


@number("bad runs: total += 1, {of_the_post}, {GIL}", frame=TRIALS, over={"of_the_post": LOOPS})
def bad_loops(trials: pd.DataFrame, of_the_post: bool) -> Share | None:
    """Trials of the post's short loop, or of ours."""
    loops = trials[(trials.loops == e.AS_IN_THE_POST["loops"]) == of_the_post]
    return bad(loops, "lost", interpreter=GIL, statement="total += 1")


STATEMENTS = {"label": PAIR, "statement": e.STATEMENTS}


@number("bad runs: {statement}, {label}", frame="total += 1", over=STATEMENTS)
def bad_statements(runs: pd.DataFrame, label: str, statement: str) -> Share | None:
    return bad(runs, "lost", interpreter=label, statement=statement, interval="1 µs")


@number("rounds that are hit in a window of 10 µs, less those in one of 1 µs", frame=WINDOW)
def wider(runs: pd.DataFrame) -> Location | None:
    """Share of rounds in which both were paid, in a wide window less in a narrow one, process by process."""
    return difference(*(runs[runs.window_ns == width].share.to_numpy() for width in (WIDE_NS, NARROW_NS)))


# ---- the talk's own program, of which each process has five rounds

OFF = {"interpreter": FREE_THREADED, "gil": "off"}


@number("bad runs as the talk ran it: fast bank, {GIL}", frame=e.AS_RUN, gil="on", interpreter=GIL)
@number("bad runs as the talk ran it: fast bank, {FREE_THREADED}", frame=e.AS_RUN, **OFF)
def bad_fast_banks(runs: pd.DataFrame, **which) -> Share | None:
    return bad(runs, "created", what="fast bank", **which)


@number("runs of the talk's unsafe counter that went wrong: {FREE_THREADED}", frame=e.AS_RUN, what="unsafe counter")
@number("runs of the talk's bank that went wrong: {FREE_THREADED}", frame=e.AS_RUN, what="bank", column="created")
def bad_as_run(runs: pd.DataFrame, what: str, column: str = "lost") -> Share | None:
    return bad(runs, column, what=what, **OFF)


@number("runs that went wrong with the GIL, as the talk ran it", frame=e.AS_RUN)
def bad_with_gil(runs: pd.DataFrame) -> Share | None:
    return bad(runs.assign(wrong=(runs[["lost", "created"]].fillna(0) != 0).any(axis=1)), "wrong", gil="on")


def by_process(runs: pd.DataFrame, column: str, **which) -> np.ndarray:
    """The mean of a column in each process, over the rows that `which` chooses."""
    return chosen(runs, **which).groupby("process")[column].mean().to_numpy()


FIVE_ROUNDS = "updates lost, as the talk ran it, mean of five rounds: {FREE_THREADED}"


@number(FIVE_ROUNDS, frame=e.AS_RUN, column="lost", what="unsafe counter")
@number("withdrawals, as the talk ran it: {FREE_THREADED}", frame=e.AS_RUN, column="withdrawals", what="bank")
@number("rounds that race, as the talk ran it: {FREE_THREADED}", frame=e.AS_RUN, column="raced", what="fast bank")
def mean_as_run(runs: pd.DataFrame, column: str, what: str) -> Location | None:
    """On average over the processes, each with the mean of its rounds."""
    return mean(by_process(runs.assign(raced=runs.created != 0), column, what=what, **OFF))


@number("µs to start a thread: {FREE_THREADED}", frame="starting a thread", column="start")
@number("µs of one call of the talk's counter: {FREE_THREADED}", frame="starting a thread", column="call")
def microseconds(runs: pd.DataFrame, column: str) -> Interval | None:
    return interval_of(runs.assign(us=runs[column] / 1000), "us", interpreter=FREE_THREADED)


# ---- threads that meet inside of the call: runs that lost updates, and whether they met

TEAMS = {
    "label": PAIR,
    "threads": {str(size): size for size in TEAM_SIZES},
    "way": {"kept": KEEPING, "released": RELEASING},
}
VARIANTS = {"variant": {"unsafe": UNSAFE, "safe": SAFE}}


@number("lossy runs: unsafe, {threads} threads, {way}, {label}", frame=CROSSED, over=TEAMS, variant="unsafe")
@number("lossy runs: {variant}, 50 threads, {FREE_THREADED}", frame=CROSSED, over=VARIANTS, label=FREE_THREADED)
def lossy(crossed: pd.DataFrame, label: str, variant, threads: int = e.THREADS, way=tuple(e.WAYS)) -> Share | None:
    """Runs of the crossed counter that lost updates."""
    return bad(crossed, "lost", interpreter=label, variant=variant, threads=threads, way=way)


@number(
    "runs with all threads inside together, though the call keeps the GIL: {GIL}",
    frame=CROSSED,
    every=False,
    interpreter=GIL,
    way=KEEPING,
)
def met(runs: pd.DataFrame, every: bool = True, **which) -> Share | None:
    """Processes in which all threads of a team were inside of the call at one time: in every one of the rows that
    `which` chooses, or in any of them. None if there are none of the kind."""
    rows = chosen(runs, **which)
    if rows.empty:
        return None
    of_process = (rows.met == 1).groupby(rows.process)
    return Share(int((of_process.all() if every else of_process.any()).sum()), rows.process.nunique())


def worked_at_once(crossed: pd.DataFrame, **which) -> Share | None:
    """Processes in which two or more threads of the unsafe counter worked at the same time: who met need not have."""
    return bad(crossed, "pairs", variant="unsafe", **which)


TOGETHER = {"inside together": met, "at work at once": worked_at_once}


@number("runs with two threads {together}, where nothing keeps them apart", frame=CROSSED, over={"together": TOGETHER})
def two_together(crossed: pd.DataFrame, together) -> Share | None:
    return together(let_in(chosen(crossed, variant="unsafe", threads=TEAM_SIZES[0]), "way"))


def let_in(runs: pd.DataFrame, way: str) -> pd.DataFrame:
    """Runs of whose threads two can be in the call. way: the column that says how it is called."""
    return runs[[e.lets_others_in(label, how) for label, how in zip(runs.interpreter, runs[way])]]


def controls(session: Session) -> list[Check]:
    """Did the threads of the crossed counter meet where nothing keeps them apart? Who never met cannot have lost
    anything."""
    crossed, checks = session.frame(CROSSED), []
    for label in labels(crossed):
        ways = [way for way in e.WAYS if e.lets_others_in(label, way)]
        for threads in TEAM_SIZES:
            which = {"interpreter": label, "way": ways, "threads": threads}
            if (share := met(crossed, **which)) is None:
                continue
            words = (
                f"all were inside of the call together in {share} runs, and two or more of the unsafe "
                f"counter's at work at once in {worked_at_once(crossed, **which)}"
            )
            passed = share.events >= MUST_MEET * share.trials
            # It is shown, and withholds nothing: the rules ask trials of their own, and of a lock those that met.
            missed = 1 - share.events / share.trials
            checks.append(Check("threads meet", f"{threads} threads on {label}", words, passed, missed))
    return checks


def call_of(label: str, way: str) -> str:
    """What a call does with the GIL."""
    if BY_LABEL[label].free_threaded:
        return "no GIL"
    return "GIL released" if e.WAYS[way] else "GIL kept"


# ---- loss and overlap, and why fifty threads with the talk's work lose more on one build than on the other


def crowd_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """One row for each build, length of work and number of threads: the expected loss, and the median of the
    overlap."""
    of = runs.groupby(["interpreter", "iterations", "threads"], as_index=False)
    return of.agg(lost=("lost", "mean"), overlapped=("overlapped", "median"))


@number("lossy runs in which no two threads were at work at once", frame="crowds")
def lossy_apart(crowds: pd.DataFrame) -> Share | None:
    """Runs that lost updates, among those in which no two threads worked at the same time; None if there were none of
    these."""
    return Share.of(crowds.lost[crowds.pairs == 0] != 0)


@number("{what} of fifty threads: {label}", frame="crowds", over={"what": OF_FIFTY, "label": PAIR})
def of_fifty(crowds: pd.DataFrame, label: str, column: str, factor: float = 1) -> Location | None:
    """Of fifty threads with the talk's work: the mean of a column over the runs."""
    part = chosen(crowds, interpreter=label, threads=e.THREADS, iterations=e.SHORT)
    return mean(factor * part[column].to_numpy(dtype=float))


@number("{what} of fifty threads: {GIL} less {FREE_THREADED}", frame="crowds", over={"what": OF_FIFTY})
def less_of_fifty(crowds: pd.DataFrame, **which) -> Interval | None:
    """One expectation less another one, of independent runs; None if one is missing or has no interval."""
    one, other = (of_fifty(crowds, label, **which) for label in PAIR)
    if not (one and other and math.isfinite(one.error + other.error)):
        return None
    return estimates.difference(one, other).at()


# ---- the bank, and the width of its window


def asleep(bank: pd.DataFrame, label: str) -> pd.DataFrame:
    """The bank that sleeps between check and act."""
    return chosen(money(bank), interpreter=label, loader=PYDLL, case="unsafe")


@number("inconsistent runs of the bank asleep: {label}", frame="bank", over={"label": PAIR})
def bad_asleep(bank: pd.DataFrame, label: str) -> Share | None:
    return bad(asleep(bank, label), "created")


@number("dollars from nothing, bank asleep: {FREE_THREADED}", frame="bank")
def created_asleep(bank: pd.DataFrame) -> Location | None:
    return mean(asleep(bank, FREE_THREADED).created)


@number("inconsistent runs of the atomic bank, where a second thread can come in", frame="bank")
def bad_atomic(bank: pd.DataFrame) -> Share | None:
    """Of the account of atomic loads and stores. Each case has processes of its own."""
    return bad(let_in(chosen(money(bank), case="atomic load and store"), "loader"), "created")


def situations(crossed: pd.DataFrame, bank: pd.DataFrame) -> dict[str, Share]:
    """Bad runs in the situations of the first exercise: of the counter with fifty threads, and of the bank."""
    shares = {}
    for variant, way, label, where in (
        ("unsafe", PYDLL, GIL, "with"),
        ("unsafe", CDLL, GIL, "with"),
        ("unsafe", PYDLL, FREE_THREADED, "without"),
        ("atomic", CDLL, FREE_THREADED, "without"),
    ):
        name = f"{variant} counter, {way.removeprefix('ctypes ')}, {where} the GIL"
        shares[name] = lossy(crossed, label, variant, way=way)
    for case, label, where in (
        ("atomic load and store", GIL, "with"),
        ("compare and exchange", FREE_THREADED, "without"),
    ):
        name = f"bank of {case}, CDLL, {where} the GIL"
        shares[name] = bad(bank, "created", interpreter=label, loader=CDLL, case=case)
    return shares


def model_of_payments(window_ns: np.ndarray) -> np.ndarray:
    """Share of rounds in which two threads, each at a random moment within SPREAD_NS, are closer than the window."""
    return 1 - (1 - np.minimum(np.asarray(window_ns, dtype=float) / e.SPREAD_NS, 1)) ** 2


def payments(runs: pd.DataFrame) -> pd.DataFrame:
    """Share of rounds with two payments by width of the window, beside a model that knows the window alone. All
    intervals hold together."""
    level = 1 - (1 - LEVEL) / runs.window_ns.nunique()
    return pd.DataFrame(
        {
            "window_ns": int(window),
            **vars(Location.of(part.share.to_numpy(), signed=False).at(level)),
            "n": len(part),
            "model": float(model_of_payments(window)),
        }
        for window, part in runs.groupby("window_ns")
    )


@number("rounds paid twice in a window of no width", frame=WINDOW)
def paid_without_width(runs: pd.DataFrame) -> Interval:
    return Interval.of(payments(runs).iloc[0])


@number("windows", frame=WINDOW)
def windows(runs: pd.DataFrame) -> Counted:
    return Counted(runs.window_ns.nunique())


@number("windows missed by the window alone", frame=WINDOW)
def missed(runs: pd.DataFrame) -> Counted:
    """At how many windows the model lies outside of the interval."""
    return Counted(sum(above(Interval.of(row), row.model) != OPEN for row in payments(runs).itertuples()))


# ---- other kinds of races, and remedies


@number("runs with a wrong last error, global, ctypes PyDLL, {GIL}", frame="more kinds")
def wrong_last_error(kinds: pd.DataFrame) -> Share | None:
    return bad(kinds, "wrong", interpreter=GIL, loader=PYDLL, kind="last error, global")


BORROWED, STRONG = "PyList_GetItem (borrowed)", "PyList_GetItemRef (strong)"
BORROWED_RUNS = "borrowed references"


@number("processes that a borrowed reference ended: {label}", frame=BORROWED_RUNS, over={"label": PAIR}, what=BORROWED)
@number(
    "processes that a strong reference ended: {FREE_THREADED}", frame=BORROWED_RUNS, label=FREE_THREADED, what=STRONG
)
def ended(runs: pd.DataFrame, label: str, what: str) -> Share | None:
    """Processes of the references that are borrowed, or not, that did not end well. An event counts, whatever else
    ran."""
    return Share.of(chosen(runs, interpreter=label, what=what).ended != "ok")


def hand_overs_between(instructions: pd.DataFrame) -> int:
    """How many instructions between reading and writing `total` may hand over the GIL, or call what may."""
    read, write = (instructions.index[instructions.race == what][0] for what in ("reads total", "writes total"))
    return int((instructions["may hand over the GIL"][read:write] != "").sum())


@number("ns for one of two threads together: {remedy}", frame="remedies with rivals", over={"remedy": REMEDIES})
def operation(rivals: pd.DataFrame, remedy: str, threads: int = 2) -> Interval | None:
    """One operation of a remedy every so many nanoseconds, by so many threads together."""
    return interval_of(rivals.assign(ns=1e9 / rivals.together), "ns", remedy=remedy, threads=threads)


# ---- what finds a race without luck


def report(found: pd.DataFrame, variant: str) -> str:
    """The beginning of ThreadSanitizer's report on a variant, or what it says instead."""
    row = found[(found.variant == variant) & (found.tool == "ThreadSanitizer")].iloc[0]
    return row.report if row.found == RACE else row.found


def outcome(answer: str, race: bool) -> str:
    """Whether a tool's answer is right, where there is a race or none; empty if the tool could not run."""
    if answer not in (RACE, CLEAN):
        return ""
    if (answer == RACE) == race:
        return "right"
    return "missed" if race else "false alarm"


# What is counted of a tool's answers.
COUNTED = {
    "judged": ("right", "missed", "false alarm"),
    "right": ("right",),
    "missed": ("missed",),
    "false alarms": ("false alarm",),
}


@number("{tool}, variants {outcomes}", frame="tools", over={"tool": list(TOOLS), "outcomes": COUNTED})
def score(found: pd.DataFrame, tool: str, outcomes: tuple[str, ...]) -> Counted:
    """Variants of which the tool's answer is one of these. What it could not run is in none."""
    answers = chosen(found, tool=tool)
    return Counted(sum(outcome(row.found, e.STRESS[row.variant][0]) in outcomes for row in answers.itertuples()))


@number("ThreadSanitizer, races of the atomic bank", frame="tools")
def races_of_the_atomic_bank(found: pd.DataFrame) -> Counted | str:
    """One or none; what the tool says if it could not run."""
    answer = chosen(found, variant="bank, atomic load and store", tool="ThreadSanitizer").found.iloc[0]
    return Counted(answer == RACE) if answer in (RACE, CLEAN) else answer
