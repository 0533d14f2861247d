"""The numbers of the chapter "Races", by name, and its own controls. The rules: claims.toml, sentences.toml."""

from collections.abc import Callable
from functools import partial
from itertools import product

import pandas as pd

from ffilab.judge.controls import Check
from ffilab.judge.estimates import Counted, Estimate, Interval, Location, Share
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import chosen, difference, interval_of
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.races import results
from notebooks.races.detection import CLEAN, RACE, TOOLS
from notebooks.races.experiment import AS_IN_THE_POST, AS_RUN, THREADS, lets_others_in
from notebooks.races.results import CDLL, KEEPING, NARROW_NS, PYDLL, RELEASING, SAFE, TEAM_SIZES, UNSAFE, WIDE_NS

PAIR, TWO = (GIL, FREE_THREADED), TEAM_SIZES[0]
BORROWED, STRONG = "PyList_GetItem (borrowed)", "PyList_GetItemRef (strong)"
# What of the talk's program goes wrong, and the column that is not zero then.
WRONG_AS_RUN = {"unsafe counter": "lost", "bank": "created", "fast bank": "created"}
# Of threads together: those whose price the prose compares.
REMEDIES = ("atomic", "sharded, 16 atomics", "read under a PyMutex", "read an immutable snapshot")


def controls(session: Session) -> list[Check]:
    """Did the threads of the crossed counter meet, where they could?"""
    return results.calibrated(session.frame("counter, crossed"))


def numbers(session: Session) -> Makers:
    parts = of_the_rules, as_run, of_the_counter, of_the_crowds, of_the_bank, of_the_tools
    made = {name: make for part in parts for name, make in part(session).items()}
    for what, column in (("µs to start a thread", "start"), ("µs of one call of the talk's counter", "call")):
        made[f"{what}: {FREE_THREADED}"] = partial(microseconds, session, column)
    for what, make in (
        ("rounds paid twice in a window of no width", lambda found: Interval.of(found.iloc[0])),
        ("windows", lambda found: Counted(len(found))),
        ("windows missed by the window alone", lambda found: Counted(results.missed(found))),
    ):
        made[what] = lambda make=make: make(results.payments(session.frame("width of the window")))
    made[f"runs with a wrong last error, global, {PYDLL}, {GIL}"] = partial(
        bad, session, "more kinds", "wrong", interpreter=GIL, loader=PYDLL, kind="last error, global"
    )
    for label in PAIR:
        made[f"processes that a borrowed reference ended: {label}"] = partial(ended, session, label, BORROWED)
    made[f"processes that a strong reference ended: {FREE_THREADED}"] = partial(ended, session, FREE_THREADED, STRONG)
    for remedy in REMEDIES:
        made[f"ns for one of two threads together: {remedy}"] = lambda remedy=remedy: results.operation(
            session.frame("remedies with rivals"), remedy, 2
        )
    return made


def bad(session: Session, title: str, column: str, rows=None, disturbed=False, **which) -> Share | None:
    """Runs of an experiment that went wrong (`column` is not zero), among the `rows` that `which` chooses."""
    frame = session.frame(title, disturbed=disturbed)
    return results.bad_processes(rows(frame) if rows else frame, column, **which) if len(frame) else None


def ended(session: Session, label: str, what: str) -> Share | None:
    """Processes of the references that are borrowed, or not, that did not end well. An event counts, whatever else
    ran."""
    runs = session.frame("borrowed references", disturbed=True)
    runs = runs[(runs.interpreter == label) & (runs.what == what)] if len(runs) else runs
    return Share(int((runs.ended != "ok").sum()), len(runs)) if len(runs) else None


def of_the_rules(session: Session) -> Makers:
    """What claims ask to happen or never to happen: an event counts, whatever else ran, and so does a trial without
    one."""
    made: Makers = {}

    def events(name: str, title: str, column: str, rows: Callable | None = None, **which) -> None:
        made[name] = partial(bad, session, title, column, rows, disturbed=True, **which)

    for variant, label in (*((variant, FREE_THREADED) for variant in UNSAFE + SAFE), ("unsafe", GIL)):
        rows = partial(results.counter_trials, label=label, way=PYDLL, variant=variant)
        events(f"bad runs: {variant}, PyDLL, {label}", "trials", "lost", rows)
    rows = partial(results.counter_trials, label=GIL, way=CDLL, variant="unsafe")
    events(f"bad runs: unsafe, ctypes CDLL, {GIL}", "trials", "lost", rows)
    for case, label in (("unsafe", FREE_THREADED), ("unsafe", GIL), ("safe", FREE_THREADED)):
        which = {"interpreter": label, "case": case}
        events(f"bad accounts: {case}, PyDLL, {label}", "trials", "created", results.money, **which)
    for name, of_the_post in (("switch interval 1 µs", False), ("a loop of 1,000", True)):
        which = {"interpreter": GIL, "statement": "total += 1"}
        events(f"bad runs: total += 1, {name}, {GIL}", "trials", "lost", partial(loop, of_the_post), **which)
    for label, statement in product(PAIR, ("total += 1", "total += one()")):
        which = {"interpreter": label, "statement": statement, "interval": "1 µs"}
        events(f"bad runs: {statement}, {label}", "total += 1", "lost", **which)
    for label, gil in zip(PAIR, ("on", "off")):
        which = {"interpreter": label, "gil": gil, "what": "fast bank"}
        events(f"bad runs as the talk ran it: fast bank, {label}", AS_RUN, "created", **which)
    made[f"updates lost, mean over all runs: unsafe, PyDLL, {FREE_THREADED}"] = lambda: mean(
        results.counter_trials(session.frame("trials"), FREE_THREADED, PYDLL, "unsafe").lost
    )
    made["rounds that are hit in a window of 10 µs, less those in one of 1 µs"] = partial(wider, session)
    return made


def loop(of_the_post: bool, trials: pd.DataFrame) -> pd.DataFrame:
    """Trials of the post's short loop, or of ours."""
    return trials[(trials.loops == AS_IN_THE_POST["loops"]) == of_the_post]


def mean(values) -> Location | None:
    """The expected value of a run; None if there is no run. Nothing is trimmed: where runs fall into two clusters, a
    trimmed mean is the centre of neither, and the mean is at least what many runs lose on average."""
    return Location.mean(values) if len(values) else None


def wider(session: Session) -> Estimate | None:
    """Share of rounds in which both were paid, in a wide window less in a narrow one, process by process."""
    runs = session.frame("width of the window")
    wide, narrow = (runs[runs.window_ns == width] for width in (WIDE_NS, NARROW_NS))
    return difference(wide.share.to_numpy(), narrow.share.to_numpy())


def as_run(session: Session) -> Makers:
    """The talk's own program. Each process has five rounds."""
    off = {"interpreter": FREE_THREADED, "gil": "off"}
    average = partial(mean_as_run, session, **off)
    made: Makers = {
        f"updates lost, as the talk ran it, mean of five rounds: {FREE_THREADED}": partial(
            average, "lost", what="unsafe counter"
        ),
        f"withdrawals, as the talk ran it: {FREE_THREADED}": partial(average, "withdrawals", what="bank"),
        f"rounds that race, as the talk ran it: {FREE_THREADED}": partial(average, "raced", what="fast bank"),
    }
    for what in ("unsafe counter", "bank"):
        made[f"runs of the talk's {what} that went wrong: {FREE_THREADED}"] = partial(
            bad, session, AS_RUN, WRONG_AS_RUN[what], what=what, **off
        )
    made["runs that went wrong with the GIL, as the talk ran it"] = partial(
        bad,
        session,
        AS_RUN,
        "wrong",
        lambda runs: runs.assign(wrong=(runs[["lost", "created"]].fillna(0) != 0).any(axis=1)),
        gil="on",
    )
    return made


def mean_as_run(session: Session, column: str, **which) -> Location | None:
    """On average over the processes, each with the mean of its rounds."""
    runs = session.frame(AS_RUN)
    return mean(results.by_process(runs.assign(raced=runs.created != 0), column, **which))


def microseconds(session: Session, column: str) -> Interval | None:
    runs = session.frame("starting a thread")
    return interval_of(runs.assign(**{column: runs[column] / 1000}), column, interpreter=FREE_THREADED)


def of_the_counter(session: Session) -> Makers:
    """Threads that meet inside of the call: runs that lost updates, and whether they met."""
    crossed = partial(session.frame, "counter, crossed")
    lost = partial(bad, session, "counter, crossed", "lost")
    made: Makers = {}
    ways = {"kept": KEEPING, "released": RELEASING}
    for label, threads, (gil, way) in product(PAIR, TEAM_SIZES, ways.items()):
        which = {"interpreter": label, "threads": threads, "way": way, "variant": "unsafe"}
        made[f"lossy runs: unsafe, {threads} threads, {gil}, {label}"] = partial(lost, **which)
    for name, variants in (("unsafe", UNSAFE), ("safe", SAFE)):
        which = {"interpreter": FREE_THREADED, "threads": THREADS, "variant": variants}
        made[f"lossy runs: {name}, {THREADS} threads, {FREE_THREADED}"] = partial(lost, **which)
    made[f"runs with all threads inside together, though the call keeps the GIL: {GIL}"] = lambda: results.met(
        crossed(), every=False, interpreter=GIL, way=KEEPING
    )
    for what, of in (("inside together", results.met), ("at work at once", results.worked_at_once)):
        made[f"runs with two threads {what}, where nothing keeps them apart"] = lambda of=of: of(
            let_in(chosen(crossed(), variant="unsafe", threads=TWO), "way")
        )
    return made


def let_in(runs: pd.DataFrame, way: str) -> pd.DataFrame:
    """Runs of whose threads two can be in the call. way: the column that says how it is called."""
    return runs[[lets_others_in(label, how) for label, how in zip(runs.interpreter, runs[way])]]


def of_the_crowds(session: Session) -> Makers:
    """Loss and overlap, and why fifty threads with the talk's work lose more on one build than on the other."""
    crowds = partial(session.frame, "crowds")
    made: Makers = {
        "lossy runs in which no two threads were at work at once": lambda: results.lossy_apart(crowds()),
    }
    pairs = THREADS * (THREADS - 1) / 2
    for what, column in (("loss", {"column": "lost"}), ("overlapping pairs", {"column": "pairs", "factor": pairs})):
        both = [lambda label=label, column=column: results.of_fifty(crowds(), label, **column) for label in PAIR]
        made |= {f"{what} of fifty threads: {label}": make for label, make in zip(PAIR, both, strict=True)}
        made[f"{what} of fifty threads: {GIL} less {FREE_THREADED}"] = lambda both=both: results.difference(
            *(make() for make in both)
        )
    return made


def of_the_bank(session: Session) -> Makers:
    """The corrected bank: the one that sleeps between check and act, and the one of atomic accesses."""
    asleep = {"loader": PYDLL, "case": "unsafe"}
    made: Makers = {}
    for label in PAIR:
        made[f"inconsistent runs of the bank asleep: {label}"] = partial(
            bad, session, "bank", "created", results.money, interpreter=label, **asleep
        )
    made[f"dollars from nothing, bank asleep: {FREE_THREADED}"] = lambda: mean(
        chosen(results.money(session.frame("bank")), interpreter=FREE_THREADED, **asleep).created
    )
    made["inconsistent runs of the atomic bank, where a second thread can come in"] = partial(atomic_banks, session)
    return made


def atomic_banks(session: Session) -> Share | None:
    """Inconsistent runs of the account of atomic loads and stores. Each case has processes of its own."""
    bank = chosen(results.money(session.frame("bank")), case="atomic load and store")
    return results.bad_processes(let_in(bank, "loader"), "created")


def of_the_tools(session: Session) -> Makers:
    """What finds a race without luck: two tools, and Rust."""
    made: Makers = {}
    for tool in TOOLS:
        for what in ("judged", "right", "missed", "false alarms"):
            made[f"{tool}, variants {what}"] = partial(score, session, tool, what)
    made["ThreadSanitizer, races of the atomic bank"] = partial(races_of_the_atomic_bank, session)
    for variant in ("load then store", "fetch_add"):
        made[f"lossy runs: Rust, {variant}"] = partial(
            bad, session, "counter in Rust", "lost", variant=f"Rust, {variant}"
        )
    return made


def score(session: Session, tool: str, what: str) -> Counted:
    found = results.tool_score(session.frame("tools"))[tool]
    return Counted(sum(found.values()) if what == "judged" else found[what])


def races_of_the_atomic_bank(session: Session) -> Counted | str:
    """One or none; what the tool says if it could not run."""
    said = chosen(session.frame("tools"), variant="bank, atomic load and store", tool="ThreadSanitizer").found.iloc[0]
    return Counted(said == RACE) if said in (RACE, CLEAN) else said
