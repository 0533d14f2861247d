"""What the chapter "Critical sections" shows: tables and figures."""

import itertools
from collections.abc import Iterable

import pandas as pd

from ffilab.judge.estimates import Interval
from ffilab.judge.numbers import numbers_of
from ffilab.judge.processes import chosen, positive
from ffilab.judge.sentences import sentences_of
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL, SOURCES
from notebooks.critical_sections import numbers
from notebooks.critical_sections.experiment import GIL_ON, IN_COMPANY, ONE, OWN


def code_of_locks(code: list[dict]) -> pd.DataFrame:
    """A9: instructions from the headers of atomics, mutexes and critical sections, without the loop's."""
    rows = []
    for seen in code if isinstance(code, list) else []:
        counted = numbers.code_in(code, seen["interpreter"], seen["what"])
        if seen["what"] == EMPTY or isinstance(counted, str):
            continue
        shown = {group: f"{counted[group]:.0f} ({counted[group] / counted['all']:.1%})" for group in numbers.HEADERS}
        rows.append(
            {"CPython": seen["interpreter"], "what": seen["what"], "instructions": f"{counted['all']:,.0f}", **shown}
        )
    return pd.DataFrame(rows)


def both_builds(labels: list[str]) -> list[str]:
    """Versions of which a GIL build and a free-threaded build are among the labels, the oldest first."""
    return [version for version in SOURCES if {version, f"{version}t"} <= set(labels)]


def taxes(session: Session) -> pd.DataFrame:
    """The tax by version, beside what the documentation says."""
    kinds = (*numbers.KINDS, "boundary", f"boundary, {GIL_ON}")
    return pd.DataFrame(
        {
            "version": f"{version}t / {version}",
            "operations": kind,
            "times as long": draw.Quantity(tax),
            "n": tax.n,
            "documented": SOURCES[version].documented_tax,
        }
        for version, kind in itertools.product(both_builds(session.interpreters), kinds)
        if (tax := numbers_of(session)[f"{kind}, {version}t / {version}"].estimate)
    )


def boundary_calls(session: Session) -> pd.DataFrame:
    """A6: the call of the talk, by its own method and corrected, with the GIL off and on."""
    found, rows = numbers_of(session), []
    for version, gil in itertools.product(both_builds(session.interpreters), ("off", "on")):
        pair, on = f"{version}t / {version}", f", {GIL_ON}" if gil == "on" else ""
        published = found[f"published, {pair}"].estimate
        rows.append(
            {
                "builds": pair,
                "GIL": gil,
                "published": f"{published.interval.value:.2f}" if published else "none",
                "as the talk ran it": draw.Quantity(found[f"as the talk ran it{on}, {pair}"].estimate),
                "corrected": draw.Quantity(found[f"boundary{on}, {pair}"].estimate),
            }
        )
    return pd.DataFrame(rows)


def operation_ratios(record: Record, version: str, operations: Iterable[str]) -> pd.DataFrame:
    """Each operation on the free-threaded build over the same with the GIL, of one version, and calls of the talk."""
    ratios = {(arm,): numbers.net_ratio(record, version, arm) for arm in (*operations, *numbers.BOUNDARY_ARMS)}
    return draw.points(ratios, "operation")


def plot_operations(figure, ratios: pd.DataFrame) -> None:
    """One line per operation: time on the free-threaded build over time with the GIL."""
    said = f"time on {FREE_THREADED} / time on {GIL}, without the loop"
    axes = draw.intervals(figure, ratios.sort_values("value", ascending=False), "operation", line=1, xlabel=said)
    axes.tick_params(axis="y", labelsize=9)


def in_classes(record: Record, label: str, name: str) -> draw.Quantity | str:
    """ns of a piece; of each of two classes, if its layouts fall into two."""
    cell = numbers.piece(name, label)
    found = numbers.two_classes(medians(record.times(*cell))) if record.has(*cell) else []
    parts = [f"{draw.number(ns, ns / 100)} (on {number})" for ns, number in found]
    return " or ".join(parts) or draw.Quantity(numbers.piece_cost(record, label, name))


def cells_of(name: str) -> list[tuple[str, str]]:
    """The cells of a piece, on both interpreters of the chapter pair."""
    return [numbers.piece(name, label) for label in numbers.PAIR]


def pieces(record: Record) -> pd.DataFrame:
    """Uncontended cost of every piece on every interpreter."""
    return pd.DataFrame(
        {
            "in a C loop": name,
            **{f"{label}, ns": in_classes(record, label, name) for label in record.interpreters},
            "n": draw.behind(record, [cell for cell in cells_of(name) if record.has(*cell)]),
        }
        for name in numbers.PIECES
    )


def locks_alone_and_shared(runs: pd.DataFrame) -> pd.DataFrame:
    """What the first picture draws: ns of each of two threads for each lock, on objects of their own, and on one
    object."""
    cases = itertools.product(numbers.LOCKS, (OWN, ONE))
    found = {(name, shared): numbers.of_each(runs, name=name, shared=shared) for name, shared in cases}
    return draw.points(found, "lock", "two threads on")


def plot_locks(figure, found: pd.DataFrame) -> None:
    """Two points for each lock."""
    said = f"ns for one increment of each of two threads, {FREE_THREADED}"
    draw.intervals(figure, found, "lock", "two threads on", xscale="log", xlabel=said)


def lock_table(runs: pd.DataFrame, shared: str) -> pd.DataFrame:
    """What each lock costs a thread, ns: alone, and while others run; and the rate of two threads over that of one."""

    def row(runs: pd.DataFrame, name: str) -> dict:
        alone, gain = 1e9 / chosen(runs, name=name, threads=2).alone, numbers.gain(runs, name=name)
        counts = sorted(set(runs.threads))
        each = {f"each of {count}, ns": numbers.of_each(runs, int(count), name=name) for count in counts}
        return {"1 thread, ns": positive(alone), **each, "rate, 2 / 1": gain, "n": gain.n}

    table = draw.summary(chosen(runs, shared=shared), {"name": IN_COMPANY}, row, "")
    return table.rename(columns={"name": "lock"})


def note(session: Session) -> str:
    """What stands below whatever is said of threads if the calibration failed."""
    return sentences_of(session)["calibration-note"]


def gains(runs: pd.DataFrame, label: str, names: Iterable[str]) -> pd.DataFrame:
    """Rate of several threads over that of one in the same process, by name and case, with intervals."""

    def row(runs: pd.DataFrame, **which) -> dict:
        return vars(numbers.gain(runs, **which).interval)

    by = {"name": names, "threads": (), "shared": ()}
    return draw.summary(chosen(runs, interpreter=label, name=names), by, row)


def scaling(rates: pd.DataFrame) -> pd.DataFrame:
    """Rate with several threads over the rate of one, a row for each name, a column for each case."""
    cases = [f"{row.threads} threads, {row.shared}" for row in rates.itertuples()]
    shown = rates.assign(case=cases, words=[draw.Quantity(Interval.of(row)) for row in rates.itertuples()])
    table = shown.pivot(index="name", columns="case", values="words").reindex(list(dict.fromkeys(rates["name"])))
    table = table[list(dict.fromkeys(cases))].fillna(draw.NOT_MEASURED).rename_axis(columns=None)
    return table.assign(**{"n (processes)": rates.groupby("name").n.min()}).reset_index()


def two_threads(rates: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows of two threads, of every interpreter."""
    parts = [of_label[of_label.threads == 2].assign(interpreter=label) for label, of_label in rates.items()]
    return pd.concat(parts, ignore_index=True)


def plot_objects(figure, rates: dict[str, pd.DataFrame]) -> None:
    """Python objects under two threads: rate over that of one thread, by interpreter."""
    rows = two_threads(rates)
    rows["label"] = rows.name + ", " + rows.shared
    said = "operations per second with 2 threads / with 1"
    axes = draw.intervals(figure, rows, "label", "interpreter", line=1, xlabel=said, xlim=(0, None))
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
