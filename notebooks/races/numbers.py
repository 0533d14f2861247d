"""The numbers of the chapter "Races", by name, and its own controls. The rules: claims.toml."""

from functools import partial

import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Measurement
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import difference
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.races import results
from notebooks.races.experiment import AS_IN_THE_POST, AS_RUN
from notebooks.races.results import CDLL, NARROW_NS, PYDLL, WIDE_NS


def controls(session: Session) -> list[Check]:
    """Did the threads of the crossed counter meet, where they could?"""
    return results.calibrated(session.frame("counter, crossed"))


def numbers(session: Session) -> Makers:
    made = {}
    for variant, label in (
        ("unsafe", FREE_THREADED),
        ("mutex", FREE_THREADED),
        ("atomic", FREE_THREADED),
        ("unsafe", GIL),
    ):
        found = partial(bad_counters, session, label, PYDLL, variant)
        made[f"bad runs: {variant}, PyDLL, {label}"] = found
    name = f"updates lost, mean over all runs: unsafe, PyDLL, {FREE_THREADED}"
    made[name] = partial(loss, session)
    name = f"updates lost, as the talk ran it, mean of five rounds: {FREE_THREADED}"
    made[name] = partial(as_run, session, "unsafe counter", "lost", "share of updates")
    made[f"withdrawals, as the talk ran it: {FREE_THREADED}"] = partial(
        as_run, session, "bank", "withdrawals", "withdrawals"
    )
    for label in (FREE_THREADED, GIL):
        made[f"bad runs as the talk ran it: fast bank, {label}"] = partial(fast_bank, session, label)

    for case, label in (("unsafe", FREE_THREADED), ("unsafe", GIL), ("safe", FREE_THREADED)):
        made[f"bad accounts: {case}, PyDLL, {label}"] = partial(bad_accounts, session, label, case)

    made["rounds that are hit in a window of 10 µs, less those in one of 1 µs"] = partial(wider, session)
    made[f"bad runs: unsafe, ctypes CDLL, {GIL}"] = partial(bad_counters, session, GIL, CDLL, "unsafe")
    for name, of_the_post in (("switch interval 1 µs", False), ("a loop of 1,000", True)):
        made[f"bad runs: total += 1, {name}, {GIL}"] = partial(bad_totals, session, of_the_post)
    for statement, label in (("total += one()", GIL), ("total += 1", FREE_THREADED)):
        made[f"bad runs: {statement}, {label}"] = partial(bad_statements, session, statement, label)
    return made


def as_run(session: Session, what: str, column: str, unit: str) -> Measurement | None:
    """A number of the talk's own program without the GIL, on average over all processes; None if there is none."""
    values = results.by_process(session.frame(AS_RUN), column, interpreter=FREE_THREADED, gil="off", what=what)
    return Measurement(results.expected(values), unit) if len(values) else None


def fast_bank(session: Session, label: str) -> Measurement | None:
    """Processes in which the talk's own fast bank went wrong."""
    gil = "on" if label == GIL else "off"
    return bad(session.frame(AS_RUN, disturbed=True), "created", interpreter=label, gil=gil, what="fast bank")


def tried(session: Session) -> pd.DataFrame:
    """All trials: an event counts, whatever else ran, and so does a trial without one."""
    return session.frame("trials", disturbed=True)


def bad_counters(session: Session, label: str, way: str, variant: str) -> Measurement | None:
    """Trials in which fifty threads lost updates."""
    return bad(results.counter_trials(tried(session), label, way, variant), "lost")


def loss(session: Session) -> Measurement | None:
    """Share of updates that fifty threads lose on average, unsafe, through PyDLL and without the GIL."""
    rows = results.counter_trials(session.frame("trials"), FREE_THREADED, PYDLL, "unsafe")
    return Measurement(results.expected(rows.lost.to_numpy()), "share of updates") if len(rows) else None


def bad_accounts(session: Session, label: str, case: str) -> Measurement | None:
    """Trials of the bank in which money was made or lost."""
    return bad(results.money(tried(session)), "created", interpreter=label, case=case)


def wider(session: Session) -> Measurement | None:
    """Share of rounds in which both were paid, in a wide window less in a narrow one, process by process."""
    runs = session.frame("width of the window")
    wide, narrow = (runs[runs.window_ns == width] for width in (WIDE_NS, NARROW_NS))
    return difference(wide.share.to_numpy(), narrow.share.to_numpy(), "share of rounds")


def bad_totals(session: Session, of_the_post: bool) -> Measurement | None:
    """Trials in which threads lost additions in Python, in the post's short loop or in ours."""
    rows = tried(session)
    return bad(
        rows[(rows.loops == AS_IN_THE_POST["loops"]) == of_the_post], "lost", interpreter=GIL, statement="total += 1"
    )


def bad_statements(session: Session, statement: str, label: str) -> Measurement | None:
    """Runs in which two threads lost additions at the shortest switch interval."""
    runs = session.frame("total += 1", disturbed=True)
    return bad(runs, "lost", interpreter=label, statement=statement, interval="1 µs")


def bad(frame, column: str, **which) -> Measurement | None:
    """Bad trials among all, by what `which` chooses; None if there are none of the kind."""
    share = results.bad_processes(frame, column, **which)
    return Measurement(share, "share of runs") if share else None
