"""What the chapter "GIL Balm" shows: tables and figures."""

import itertools
import re
from collections.abc import Callable, Collection
from functools import partial

import pandas as pd

from ffilab.judge.estimates import Estimate
from ffilab.judge.processes import interval_of
from ffilab.judge.questions import NO, above
from ffilab.measure.record import Record
from ffilab.page import draw
from ffilab.setup.catalogue import GIL
from notebooks.balm import experiment as e
from notebooks.balm import numbers, outcomes
from notebooks.balm.numbers import cost, faster

# Milliseconds that the author read for 10,000 tuples, by way and threads (B1-B3). Data to compare with.
PUBLISHED_MS = {
    (e.NEW, 1): 1320,
    (e.POOLED + e.WRITTEN, 1): 553,
    (e.BLOCK + e.WRITTEN, 1): 263,
    (e.NEW, e.THREADS): 5430,
    (e.POOLED + e.WRITTEN, e.THREADS): 13_200,
    (e.BLOCK + e.WRITTEN, e.THREADS): 271,
}
# What the figure of one thread shows; the author's two designs while the GIL is released.
DRAWN_WAYS = {
    e.NEW: "PyUnicode_New",
    e.POOLED + e.RELEASED: "pool",
    e.BLOCK + e.RELEASED: "block",
    e.BEST: "tuple of pages",
    e.ONE_PASS: e.ONE_PASS,
}
# The ways of the figures over threads and batches, each with its colour; those that a reader adds follow.
METHODS = (e.NEW, e.POOLED, e.BLOCK, e.BEST)


def cost_cell(record: Record, label: str, arm: str, factor: float = 1) -> draw.Quantity | str:
    """What a string costs; or why there is no number: the arm could not be made there, or was not asked for."""
    if ns := cost(record, label, arm):
        return draw.Quantity(ns, "", factor)
    reason = record.missing.get((label, arm))
    return f"{draw.NOT_MEASURED} ({reason})" if reason else draw.NOT_MEASURED


def faults(runs: pd.DataFrame, **which) -> Estimate | str | None:
    """Page faults for each tuple; so few that none belongs to a tuple are not spelled out."""
    count = numbers.faults(runs, **which)
    return "fewer than 0.1" if count and above(count, 0.1) == NO else count


def table(runs: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """A row for each combination of these columns: ns for each string and, where they were counted, page faults for
    each tuple."""
    columns = {"ns a string": partial(interval_of, column="ns")}
    columns |= {"page faults a tuple": faults} if "faults" in runs else {}
    return draw.summary(runs, dict.fromkeys(by, ()), columns).rename(columns={"method": "strings"})


def original_table(runs: pd.DataFrame) -> pd.DataFrame:
    """B1-B3: how many times as fast as CPython's own, as the author ran it, beside what he published."""
    rows = table(runs, ["threads", "method", "tuples"])
    here, published = [], []
    for threads, method in zip(rows.threads, rows.strings):
        new, other = (PUBLISHED_MS.get((way, threads)) for way in (e.NEW, method))
        published.append(f"{new / other:.2f}" if new and other else "")
        gain = numbers.times_as_long(runs, {"method": e.NEW}, {"method": method}, threads=threads)
        here.append("1" if method == e.NEW else draw.Quantity(gain))
    return rows.assign(**{"times as fast as new": here, "published": published})


def ways_table(record: Record) -> pd.DataFrame:
    """Every way on one thread: ns for each string, and how many times as fast as PyUnicode_New."""
    rows = []
    for name in numbers.added(record, {e.AGAIN}):
        row = {"strings": name}
        for label in record.interpreters:
            row[f"{label}, ns"] = cost_cell(record, label, name)
            gain = draw.Quantity(faster(record, label, name))
            row[f"{label}, times as fast"] = "1" if name == e.NEW else gain
        rows.append(row)
    return pd.DataFrame(rows)


def ways(record: Record) -> pd.DataFrame:
    """What the figure shows: CPython's own strings and three forgeries on every interpreter, and what a reader has
    added."""
    known = {arm.name for arm in [*e.ours(), *e.parts(), *e.rivals(), *e.arrays()]}
    names = DRAWN_WAYS | {name: name for name in numbers.added(record, known)}
    found = {
        (shown, label): cost(record, label, name) for name, shown in names.items() for label in record.interpreters
    }
    return draw.points(found, "way", "CPython")


def plot_ways(figure, rows: pd.DataFrame) -> None:
    """Cost of every way, on a log scale."""
    draw.intervals(figure, rows, "way", "CPython", xscale="log", xlabel="ns to make and drop one string")


def counts_table(counts: dict) -> pd.DataFrame:
    """Instructions for each string by callgrind, where it is there."""
    each = counts["instructions"]
    if isinstance(each, str):
        return pd.DataFrame({"instructions": [each]})
    return pd.DataFrame(each).round(1).rename_axis("strings").reset_index()


def series(runs: pd.DataFrame) -> pd.DataFrame:
    """ns for each string over threads. Columns CPython, series, threads, value, low, high."""
    by = {"interpreter": e.PAIR, "method": METHODS, "how": ("kept", "released"), "threads": ()}
    rows = draw.summary(runs, by, ns_of, "")
    has_choice = (rows.method != e.NEW) & (rows.CPython == GIL)
    names = rows.method.where(~has_choice, rows.method + ", GIL " + rows.how)
    return rows.assign(series=names)[["CPython", "series", "threads", "value", "low", "high"]]


def batches(runs: pd.DataFrame) -> pd.DataFrame:
    """ns for each string over the size of a batch. Columns CPython, series, strings in a batch, value, low, high."""
    by = {"interpreter": e.PAIR, "batch": (), "method": runs.method.unique()}
    rows = draw.summary(runs, by, ns_of, "").rename(columns={"method": "series", "batch": "strings in a batch"})
    return rows[["CPython", "series", "strings in a batch", "value", "low", "high"]]


def ns_of(runs: pd.DataFrame, **which) -> dict[str, float]:
    return vars(interval_of(runs, "ns", **which))


def plot_grid(figure, rows: pd.DataFrame, over: str, shown: str) -> None:
    """ns for each string over threads, or over the strings in a batch: one panel for each build. rows: `series` or
    `batches`."""
    panels = figure.subplots(1, 2, sharey=True)
    methods = list(dict.fromkeys([*METHODS, *rows.series.str.split(", GIL").str[0]]))
    for axes, label in zip(panels, e.PAIR):
        part = rows[rows.CPython == label]
        for name in part.series.unique():
            line = part[part.series == name]
            colour = draw.PALETTE[methods.index(name.split(", GIL")[0])]
            style = "--" if name.endswith("released") else "-"
            look = {"label": name, "color": colour, "linestyle": style, "capsize": 3}
            axes.errorbar(line[over], line.value, yerr=draw.reach(line), **look)
        axes.set(xscale="log", yscale="log", xlabel=over, title=f"CPython {label}")
        axes.set_xticks(sorted(part[over].unique()), [f"{n:,}" for n in sorted(part[over].unique())])
        axes.minorticks_off()
        draw.plain_ticks(axes.yaxis)
    panels[0].set_ylabel(shown)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=9)


def lives_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Bytes of a text that is needed by nobody but strings, by way."""
    names = {"kept": "one string kept", "dropped": "none kept", "collected": "after a collection"}
    shown = runs[["interpreter", "method", *names]]
    return shown.rename(columns={"interpreter": "CPython", "method": "strings", **names})


def memory_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Bytes for each string while it lives and after."""
    columns = {
        "resident, bytes": partial(numbers.resident, when="alive"),
        "after the drop, bytes": partial(numbers.resident, when="after"),
    }
    rows = draw.summary(runs, {"interpreter": e.PAIR, "method": e.ALIVE}, columns, "")
    return rows.rename(columns={"method": "strings"})


def short(answer: str) -> str:
    """An error by its name alone, a class by its own."""
    return re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", re.sub(r"^(\w+Error): .*", r"\1", answer))


# Kinds of strings, as the table calls them.
KINDS = {
    "str": "str",
    "subclass of str": "subclass of str",
    e.BLOCK: "ours (a block)",
    outcomes.COPIED: "type copied",
}


def behaviour_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Probes to which not every kind of string gives the answer of a real one, on the chapter's interpreter."""
    given = outcomes.answers(runs).loc[GIL].reindex(runs.probe.unique())
    unlike = given.loc[given.nunique(axis="columns") > 1, [*KINDS]].map(short)
    return unlike.rename(columns=KINDS).rename_axis(index="asked", columns=None).reset_index()


def fields_table(facts: pd.DataFrame) -> pd.DataFrame:
    """Where each build keeps what a forgery has to fill in: bytes from the start of the object, or bits."""
    table = outcomes.fields(facts)
    shown = (
        table.map(lambda value: "not there" if pd.isna(value) else f"{value:.0f}")
        .rename_axis(columns=None)
        .reset_index()
    )
    shown["field"] = [f"{name} (bits)" if name.startswith("state") else f"{name} (bytes)" for name in shown.field]
    return shown.rename(columns={label: f"CPython {label}" for label in table.columns})


def layouts_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Strings that differ from CPython's, by way and text."""
    table = runs.pivot_table(index=["method", "text"], columns="interpreter", values="wrong", aggfunc="sum")
    return table.rename_axis(columns=None).reset_index()


def another_table(found: pd.DataFrame) -> pd.DataFrame:
    """What came of each object by the layout of each build, a column for each interpreter."""
    index = ["made", "layout_of"]
    table = found.pivot(index=index, columns="CPython", values="outcome").add_prefix("on ")
    return table.rename_axis(columns=None).reset_index()


# Where a string keeps what a forgery fills in, in the order of memory; the fields of a compact string end with the
# state.
DRAWN = {
    "PyObject, reference count": "references",
    "PyObject, ob_type": "type",
    "PyASCIIObject, length": "length",
    "PyASCIIObject, hash": "hash",
    "PyASCIIObject, state": "state",
}
BEHIND = {
    "PyCompactUnicodeObject, utf8_length": "UTF-8 length",
    "PyCompactUnicodeObject, utf8": "UTF-8",
    "PyUnicodeObject, data": "data",
}


def heads(facts: pd.DataFrame) -> pd.DataFrame:
    """The picture of both layouts on the pair. Columns CPython, layout, field, start, end: bytes from the start of the
    object."""
    table, rows = outcomes.fields(facts), []
    for label in e.PAIR:
        where = table[label]
        ends = {"compact": "PyASCIIObject, size", "view": "PyUnicodeObject, size"}
        for layout, fields in (("compact", DRAWN), ("view", DRAWN | BEHIND)):
            starts = {name: int(where[field]) for field, name in fields.items()}
            size = int(where[ends[layout]])
            if starts["references"]:
                starts["owner, lock"] = 0
            if layout == "compact":
                starts["characters …"] = size
                size += 24
            ordered = sorted(starts.items(), key=lambda one: one[1])
            for (name, start), end in zip(ordered, [*(start for _, start in ordered[1:]), size]):
                rows.append({"CPython": label, "layout": layout, "field": name, "start": start, "end": end})
    return pd.DataFrame(rows)


def plot_heads(figure, rows: pd.DataFrame) -> None:
    """Each object as a bar of its fields; what points to the text has another colour."""
    axes = figure.subplots()
    names = [f"{layout}\n{label}" for label in e.PAIR for layout in ("compact", "view")]
    own, pointer, plain = draw.PALETTE[2], draw.PALETTE[1], draw.PALETTE[4]
    for row in rows.itertuples():
        at = names.index(f"{row.layout}\n{row.CPython}")
        colour = own if row.field.startswith("characters") else pointer if row.field in ("UTF-8", "data") else plain
        axes.barh(at, row.end - row.start, left=row.start, color=colour, alpha=0.55, edgecolor="0.5", height=0.7)
        name = row.field.replace(" ", "\n")
        axes.text((row.start + row.end) / 2, at, name, ha="center", va="center", fontsize=9, linespacing=0.9)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xticks(range(0, int(rows.end.max()) + 1, 8))
    axes.set_xlabel("bytes from the start of the object")
    axes.grid(axis="y", visible=False)


def heads_in_words(rows: pd.DataFrame) -> str:
    """The picture, for its alt text."""
    parts = []
    for (label, layout), part in rows.groupby(["CPython", "layout"], sort=False):
        parts.append(f"{layout} on {label}: " + ", ".join(f"{row.field} at {row.start}" for row in part.itertuples()))
    return "Bytes from the start of the object. " + "; ".join(parts) + "."


def became(runs: pd.DataFrame, acts: Collection[str], said: Callable[[pd.DataFrame], str]) -> pd.DataFrame:
    """By act and CPython: what a process said, or how it ended."""
    cells = {
        (act, f"CPython {label}"): said(part) if part.ended.iloc[0] == "ok" else part.ended.iloc[0]
        for (act, label), part in runs.groupby(["what", "interpreter"])
    }
    rows = pd.Series(cells).unstack().loc[[*dict.fromkeys([*acts, *runs.what])]]
    return rows.rename_axis("what was done").reset_index()


def mutable_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What became of the list after each act."""
    return became(runs, e.MUTABLE, lambda part: part.answer.iloc[0])


def misuse_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What became of each process that did what must not be done."""
    return became(runs, e.MISUSE, lambda part: "; ".join(part.asked + ": " + part.answer))


def reading_table(record: Record) -> pd.DataFrame:
    """Microseconds for the whole text if only some of its lines are read."""
    rows = []
    for name, share in itertools.product((e.NEW, e.BEST, e.LAZY, e.ARROW), ("none", *e.EVERY)):
        arm = f"{name}, {share} read"
        if any(record.has(label, arm) or (label, arm) in record.missing for label in e.PAIR):
            us = {f"{label}, µs": cost_cell(record, label, arm, factor=e.LINES / 1e3) for label in e.PAIR}
            rows.append({"strings": name, "lines read": share, **us})
    return pd.DataFrame(rows)
