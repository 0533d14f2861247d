"""The figures and tables of who waits for whom."""

import itertools

import pandas as pd

from ffilab.judge.numbers import numbers_of
from ffilab.judge.processes import chosen
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED
from notebooks.boundary import experiment as boundary
from notebooks.sharing import experiment as e
from notebooks.sharing.numbers_waiting import BUFFERS, ELSEWHERE, NESTED, PAIR, STAYS, happening, outcome


def lost_table(session: Session) -> pd.DataFrame:
    """By the lock outside, also one that a reader has added."""
    runs = session.frame(NESTED)
    ways = dict.fromkeys([*e.OUTER, *(sorted(runs.outer) if len(runs) else ())])
    lost = {way: happening(runs, "lost", outer=way, interpreter=FREE_THREADED) for way in ways}
    return pd.DataFrame(
        {"outside": way, "lost updates": str(share) if share else draw.NOT_MEASURED} for way, share in lost.items()
    )


def waits(session: Session) -> pd.DataFrame:
    """What the figure draws: the longest wait of each lock, by its holder."""
    found = {
        (lock, holder): numbers_of(session)[f"longest wait, µs: {lock}, {holder}"].estimate
        for lock, holder in itertools.product(e.FAIR_LOCKS, e.HOLDERS)
    }
    return draw.points(found, "lock", "holder")


def plot_waits(figure, found: pd.DataFrame) -> None:
    draw.intervals(figure, found, "lock", "holder", xscale="log", xlabel="longest wait, µs")


def fair_table(session: Session) -> pd.DataFrame:
    columns = {
        "share of the slower": "share of the slower thread",
        "longest wait, µs": "longest wait, µs",
        "wait of one take in 1000, µs": "wait of one take in 1000, µs",
    }
    rows = []
    for lock, holder in itertools.product(e.FAIR_LOCKS, e.HOLDERS):
        found = {heading: draw.quantity(session, f"{name}: {lock}, {holder}") for heading, name in columns.items()}
        rows.append({"lock": lock, "the holder": holder, **found})
    return pd.DataFrame(rows)


def buffers_table(session: Session) -> pd.DataFrame:
    """What C saw, by what exports, what is held and what happened; without the GIL."""
    runs, rows = session.frame(BUFFERS), []
    for kind, holding in itertools.product(e.EXPORTERS, e.HOLDINGS):
        row = {"exporter": kind, "C holds": holding}
        for meanwhile in e.MEANWHILE:
            which = {"kind": kind, "holding": holding, "meanwhile": meanwhile, "interpreter": FREE_THREADED}
            children = runs if runs.empty else chosen(runs, **which)
            ended = list(outcome(children)) if len(children) else []
            said = "; ".join(f"{one}: {ended.count(one)} of {len(ended)}" for one in sorted(set(ended)))
            row[meanwhile] = said or draw.NOT_MEASURED
        rows.append(row)
    return pd.DataFrame(rows)


def pauses_table(session: Session) -> pd.DataFrame:
    rows = []
    for live in e.LIVE:
        row = {"objects alive": f"{live:,}"}
        for what in ("pause", "collection"):
            row[what] = draw.quantity(session, f"ms of a {what}: {live} alive, {FREE_THREADED}")
        rows.append(row)
    return pd.DataFrame(rows)


def stays_table(session: Session) -> pd.DataFrame:
    rows = []
    for words in STAYS:
        row = {"each call stays for": words}
        for how in ("attached", "detached"):
            row[how] = draw.quantity(session, f"ms of a collection beside calls of {words}, {how}, {FREE_THREADED}")
        rows.append(row)
    return pd.DataFrame(rows)


def interpreters_table(session: Session) -> pd.DataFrame:
    names = {
        "two interpreters over one": "two interpreters / one, {label}",
        "two threads over one": "two threads / one, calls of Python, {label}",
        "two event loops over one": "two event loops / one, {label}",
        "ms to create an interpreter": "ms to create an interpreter, {label}",
        "ms to start a thread": "ms to start a thread, {label}",
        "ms to start a process": "ms to start a process, {label}",
        "KiB of an interpreter": "KiB of an interpreter, {label}",
        "KiB of a thread": "KiB of a thread, {label}",
        "KiB of a process": "KiB of a process, {label}",
        **{f"ns for {what}, there and back": f"ns to pass: {what}, {{label}}" for what in e.CROSSING},
    }
    rows = [
        {"what": what, **{label: draw.quantity(session, name.format(label=label)) for label in PAIR}}
        for what, name in names.items()
    ]
    return pd.DataFrame(rows)


def elsewhere_table(session: Session) -> pd.DataFrame:
    """What becomes of each binding in another interpreter, on each build."""
    runs, rows = session.frame(ELSEWHERE), []
    for binding in [name for name in boundary.BINDINGS if name in set(runs.binding)]:
        row = {"binding": binding}
        for label in PAIR:
            children = chosen(runs, binding=binding, interpreter=label)
            said = children.said.where(children.ended == "ok", children.ended)
            row[label] = said.iloc[0].replace("ImportError", "refused") if len(said) else draw.NOT_MEASURED
        rows.append(row)
    return pd.DataFrame(rows)
