"""What the chapter "GIL Balm" shows: tables and figures."""

from collections.abc import Callable, Collection

import pandas as pd

from ffilab.judge.estimates import Interval
from ffilab.judge.processes import chosen, interval_of
from ffilab.judge.questions import NO, above
from ffilab.measure.record import Record
from ffilab.page import draw
from ffilab.setup.catalogue import GIL
from notebooks.balm import results
from notebooks.balm.experiment import (
    AGAIN,
    ALIVE,
    ARENAS,
    ARROW,
    BEST,
    BLOCK,
    BLOCK_TUPLE,
    BYTES,
    COUNTED,
    EVERY,
    LAZY,
    LINES,
    LOOPS,
    MADE,
    MEMORY,
    MISUSE,
    MUTABLE,
    NEAR,
    NEW,
    ORIGINAL,
    PAIR,
    POOLED,
    RELEASED,
    TEXTS,
    THREADS,
    TWO_PASSES,
    WRITTEN,
)
from notebooks.balm.results import cost, faster, series

# Milliseconds that the author read for 10,000 tuples, by way and threads (B1-B3). Data to compare with.
PUBLISHED_MS = {
    (NEW, 1): 1320,
    (POOLED + WRITTEN, 1): 553,
    (BLOCK + WRITTEN, 1): 263,
    (NEW, THREADS): 5430,
    (POOLED + WRITTEN, THREADS): 13_200,
    (BLOCK + WRITTEN, THREADS): 271,
}
PUBLISHED_STRINGS = 10_000 * LINES
# How many times as fast as CPython's own, by what was published of one thread.
PUBLISHED_GAIN = {method: PUBLISHED_MS[NEW, 1] / PUBLISHED_MS[method + WRITTEN, 1] for method in (POOLED, BLOCK)}
WAYS = {
    NEW: "PyUnicode_New and a copy: the rule",
    "from string": "PyUnicode_FromStringAndSize: the rule, for any UTF-8",
    "writer": "PyUnicodeWriter, a writer for each line, where CPython has it",
    POOLED
    + WRITTEN: "the original's first as its author wrote it: heads filled in once, a tuple of his own; the GIL is released",
    BLOCK + WRITTEN: "the original's second, the same way",
    POOLED: "views from a pool with one lock, as the original's first",
    "compact": "copies in slots of 128 bytes from a pool with one lock; lines too long for a slot are views from the pool above",
    BLOCK: "views in one block, as the original's second",
    "pages": "views in pages of a thread: ours",
    BLOCK_TUPLE: "views in one block, in a tuple that ends them all at once: ours",
    BEST: "views in pages, in a tuple that ends them all at once: ours",
    POOLED + RELEASED: "the same; the GIL is released while they are made",
    BLOCK + RELEASED: "the same; the GIL is released while they are made",
    BEST + RELEASED: "the same; the GIL is released while they are made",
    "one decode, then splitlines": "bytes.decode and str.splitlines: one call for all, and a list",
    "memoryviews": "a memoryview of each line: bytes, no text",
    "made once, tuple again": "what a cache could reach: no string is made",
    TWO_PASSES: "the bytes of a block and its tuple are written, then each head is read: no object",
    BYTES: "the same bytes are written, and nothing is read",
    NEAR: "the same bytes, all heads into the same few lines of memory",
    MEMORY: "as many bytes, all at once (memset)",
}


def absent(record: Record, label: str, arm: str) -> str:
    """Why there is no number: the arm could not be made there, or was not asked for."""
    reason = record.missing.get((label, arm))
    return f"{draw.NOT_MEASURED} ({reason})" if reason else draw.NOT_MEASURED


def in_words(faults: Interval | None) -> str:
    """Page faults for each tuple: so few that none belongs to a tuple are not spelled out."""
    return "fewer than 0.1" if faults and above(faults, 0.1) == NO else draw.words(faults)


def over_published(method: str, threads: int) -> str:
    """How many times as fast as CPython's own, by what was published; empty if nothing was."""
    if method == NEW or (method, threads) not in PUBLISHED_MS:
        return "1" if method == NEW else ""
    return f"{PUBLISHED_MS[NEW, threads] / PUBLISHED_MS[method, threads]:.2f}"


def original_table(runs: pd.DataFrame) -> pd.DataFrame:
    """B1-B3: ns for each string as the author ran it, beside the published ones."""
    rows = []
    for threads in sorted(set(runs.threads)):
        for method in ORIGINAL:
            part = chosen(runs, method=method, threads=threads)
            published = PUBLISHED_MS.get((method, threads))
            gain = results.original_ratio(runs, (NEW, threads), (method, threads))
            rows.append(
                {
                    "strings": method,
                    "threads": threads,
                    "tuples here": f"{part.tuples.iloc[0]:,}",
                    "published, ms": f"{published:,}" if published else "",
                    "published, ns a string": f"{published * 1e6 / PUBLISHED_STRINGS:.1f}" if published else "",
                    "here, ns a string": draw.text(interval_of(part, "ns")),
                    "published, new over it": over_published(method, threads),
                    "here, new over it": "1" if method == NEW else draw.words(gain),
                    "page faults a tuple": in_words(results.faults(part)),
                    "n": len(part),
                }
            )
    return pd.DataFrame(rows)


def arenas_table(original: pd.DataFrame, runs: pd.DataFrame, record: Record) -> pd.DataFrame:
    """B1 and B2 under every condition: what CPython's own strings cost, and how many times as fast ours are."""

    def row(condition: str, ns: Interval | None, faults: str, gains: list, n: int | str) -> dict:
        return {
            "condition": condition,
            "CPython's own, ns a string": draw.words(ns),
            "page faults a tuple": faults,
            "pooled, times as fast": draw.words(gains[0]),
            "block, times as fast": draw.words(gains[1]),
            "n": n,
        }

    alone = chosen(original, method=NEW, threads=1)
    as_run = [results.original_ratio(original, (NEW, 1), (method, 1)) for method in ORIGINAL[1:]]
    rows = [
        {
            **row("published (2023)", None, "", [None, None], ""),
            "CPython's own, ns a string": f"{PUBLISHED_MS[NEW, 1] * 1e6 / PUBLISHED_STRINGS:.1f}",
            "pooled, times as fast": f"{PUBLISHED_GAIN[POOLED]:.2f}",
            "block, times as fast": f"{PUBLISHED_GAIN[BLOCK]:.2f}",
        },
        row(
            "as its author ran it, arenas as they come",
            interval_of(alone, "ns"),
            in_words(results.faults(alone)),
            as_run,
            len(alone),
        ),
    ]
    for state in ARENAS:
        part = chosen(runs, method=NEW, arenas=state)
        rows.append(
            row(
                f"our own designs, arenas {state}",
                interval_of(part, "ns"),
                in_words(results.faults(part)),
                [results.condition(runs, state, method) for method in (POOLED, BLOCK)],
                len(part),
            )
        )
    corrected = [faster(record, GIL, method + RELEASED) for method in (POOLED, BLOCK)]
    count = f"{corrected[1].estimate.n}" if corrected[1] else ""
    rows.append(
        row(
            "our own designs, all ways in one process (corrected)",
            cost(record, GIL, NEW),
            "not counted",
            corrected,
            count,
        )
    )
    return pd.DataFrame(rows)


def ways_table(record: Record) -> pd.DataFrame:
    """Every way on one thread: ns for each string, and how many times as fast as PyUnicode_New."""
    rows = []
    for name, what in {**WAYS, **dict.fromkeys(results.added(record, {*WAYS, AGAIN}), "yours")}.items():
        if not any(record.has(label, name) or (label, name) in record.missing for label in record.interpreters):
            continue
        row = {"strings": name, "what it is": what}
        published = PUBLISHED_GAIN.get(name.removesuffix(WRITTEN)) if name.endswith(WRITTEN) else None
        row["published, times as fast"] = f"{published:.2f}" if published else ""
        for label in record.interpreters:
            found, gain = cost(record, label, name), faster(record, label, name)
            row[f"{label}, ns"] = draw.text(found) if found else absent(record, label, name)
            row[f"{label}, times as fast as new"] = "1" if name == NEW else draw.words(gain)
        row["n"] = counts_of(record, name)
        rows.append(row)
    return pd.DataFrame(rows)


def counts_of(record: Record, name: str) -> str:
    """How many layouts (or restarts) a comparison of this way rests on, for each interpreter where it was measured."""
    than = AGAIN if name == NEW else name
    found = {label: one.estimate.n for label in record.interpreters if (one := faster(record, label, than))}
    if len(set(found.values())) == 1 and len(found) == len(record.interpreters):
        return str(next(iter(found.values())))
    return ", ".join(f"{label}: {n}" for label, n in found.items())


def ways(record: Record) -> pd.DataFrame:
    """What the figure shows: the cost of every way on every interpreter."""
    rows = []
    for name in (*WAYS, *results.added(record, {*WAYS, AGAIN})):
        for label in record.interpreters:
            if found := cost(record, label, name):
                rows.append({"way": name, "CPython": label, **vars(found)})
    return pd.DataFrame(rows)


def plot_ways(figure, rows: pd.DataFrame) -> None:
    """Cost of every way, on a log scale."""
    axes = figure.subplots()
    draw.intervals(axes, rows, "way", "CPython")
    axes.set_xscale("log")
    draw.plain_ticks(axes.xaxis)
    axes.set_xlabel("ns to make and drop one string")


def ends(rows: pd.DataFrame) -> pd.DataFrame:
    """The lowest and the highest row on each interpreter: what an alt text names; the data beside the figure have all."""
    if rows.empty:
        return rows
    by = rows.reset_index(drop=True).groupby("CPython", sort=False)["value"]
    return rows.reset_index(drop=True).loc[[place for pair in zip(by.idxmin(), by.idxmax()) for place in pair]]


def asked(rows: pd.DataFrame) -> pd.DataFrame:
    """The ways that the chapter's question names, for the alt text."""
    return rows[rows.way.isin((NEW, POOLED + RELEASED, BLOCK + RELEASED, BEST))]


def listing(rows: pd.DataFrame, what: list[str], unit: str = "ns") -> str:
    """The rows of a figure in words, for its alt text: names joined, and the interval."""
    return "; ".join(
        f"{', '.join(str(row[name]) for name in what)}: {draw.text(Interval(row['value'], row['low'], row['high']), unit)}"
        for row in rows.to_dict("records")
    )


def loops_table(record: Record) -> pd.DataFrame:
    """The ways of ours over each loop that does a part of their work."""
    rows = []
    for label in record.interpreters:
        for arm in (BLOCK, BLOCK_TUPLE, BEST):
            found = results.over_loops(record, label, arm)
            if found:
                row = {"CPython": label, "strings": arm, "ns a string": draw.words(cost(record, label, arm))}
                for loop in LOOPS:
                    row[f"over {loop}"] = draw.words(found.get(loop))
                rows.append({**row, "n": faster(record, label, arm).estimate.n})
    return pd.DataFrame(rows)


def counts_table(counts: dict) -> pd.DataFrame:
    """Instructions for each string by callgrind, where it is there, and the bytes written for it."""
    each = counts["instructions"]
    rows = []
    for arm in COUNTED:
        row = {"strings": arm}
        for label in PAIR:
            row[f"{label}, instructions a string"] = f"{each[label][arm]:.1f}" if isinstance(each, dict) else each
        for label in PAIR:
            written = counts["bytes"][label]
            kind = "pages" if arm in ("pages", BEST) or arm in LOOPS else "block"
            is_ours = arm in (BLOCK, BLOCK_TUPLE, "pages", BEST, *LOOPS)
            row[f"{label}, bytes written a string"] = f"{written[kind]:.0f}" if is_ours else ""
        rows.append(row)
    return pd.DataFrame(rows)


def texts_table(runs: pd.DataFrame) -> pd.DataFrame:
    """ns for each string of texts of several lengths, and the bytes that heads and tuple take."""
    rows = []
    for label in PAIR:
        part = chosen(runs, interpreter=label)
        row = {"CPython": label}
        for lines in TEXTS:
            row[f"{lines:,} lines, ns a string"] = draw.words(interval_of(part, "ns", lines=lines))
        row["whole / small"] = draw.words(results.of_lengths(runs, label, LINES, TEXTS[0]))
        row["large / whole"] = draw.words(results.of_lengths(runs, label, TEXTS[2], LINES))
        rows.append({**row, "n": len(part) // len(TEXTS)})
    return pd.DataFrame(rows)


def second_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What a second thread brings without the GIL."""
    rows = []
    for (method, length, state), part in runs.groupby(["method", "length", "state"], sort=False):
        row = {"strings": method, "tuples of each thread": length, "threads are": state}
        for threads in (1, 2):
            which = {"method": method, "length": length, "state": state, "threads": threads}
            row[f"{threads} thread{'s' * (threads > 1)}, ns"] = draw.words(interval_of(runs, "ns", **which))
            row[f"page faults a tuple, {threads}"] = in_words(results.faults(runs, **which))
        rate = results.rate_of_two(runs, method, length, state)
        rows.append({**row, "rate of two over one": draw.words(rate), "n": len(part) // 2})
    return pd.DataFrame(rows)


def plot_grid(figure, rows: pd.DataFrame) -> None:
    """ns for each string over threads, one panel for each build. rows: results.series."""
    panels = figure.subplots(1, 2, sharey=True)
    methods = list(dict.fromkeys([NEW, POOLED, BLOCK, BEST, *rows.series.str.split(", GIL").str[0]]))
    for axes, label in zip(panels, PAIR):
        part = rows[rows.CPython == label]
        for name in part.series.unique():
            line = part[part.series == name]
            colour = draw.PALETTE[methods.index(name.split(", GIL")[0])]
            style = "--" if name.endswith("released") else "-"
            errors = [line.value - line.low, line.high - line.value]
            axes.errorbar(line.threads, line.value, yerr=errors, label=name, color=colour, linestyle=style, capsize=3)
        axes.set(xscale="log", yscale="log", xlabel="threads", title=f"CPython {label}")
        axes.set_xticks(sorted(part.threads.unique()), [str(n) for n in sorted(part.threads.unique())])
        axes.minorticks_off()
        draw.plain_ticks(axes.yaxis)
    panels[0].set_ylabel("ns for each string, all threads together")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=9)


def grid_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The same as a table."""
    rows = series(runs).rename(columns={"series": "strings"})
    rows["text"] = [draw.text(Interval.of(r)) for r in rows.itertuples()]
    rows["threads"] = [f"{n} threads, ns" if n > 1 else "1 thread, ns" for n in rows.threads]
    table = rows.pivot_table(
        index=["CPython", "strings"], columns="threads", values="text", aggfunc="first", sort=False
    )
    return table.rename_axis(columns=None).reset_index().assign(n=runs["round"].nunique())


def memory_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Bytes for each string while it lives and after."""
    rows = []
    for label in PAIR:
        for method in ALIVE if runs.empty else dict.fromkeys([*ALIVE, *runs.method]):
            part = runs if runs.empty else chosen(runs, interpreter=label, method=method)
            row = {"CPython": label, "strings": method}
            row["written, bytes each"] = "" if part.empty else f"{part.written.iloc[0]:.1f}"
            for when, title in (("alive", "resident, bytes each"), ("after", "right after the drop, bytes each")):
                found = results.resident(runs, label, method, when)
                row[title] = found if isinstance(found, str) else draw.words(found)
            rows.append({**row, "n": len(part)})
    return pd.DataFrame(rows)


def short(answer: str) -> str:
    """An answer without what only names the type."""
    return answer if len(answer) <= 60 else answer[:57] + "…"


def behaviour_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Probes to which not every kind of string gives the answer of a real one, on the chapter's interpreter."""
    given = results.answers(runs).loc[GIL]
    rows = []
    for probe in runs.probe.unique():
        kinds = given.loc[probe]
        if kinds.nunique() > 1:
            rows.append(
                {
                    "asked": probe,
                    "str": short(kinds["str"]),
                    "subclass of str": short(kinds["subclass of str"]),
                    "ours (a block)": short(kinds[BLOCK]),
                    "type copied": short(kinds[results.COPIED]),
                }
            )
    return pd.DataFrame(rows)


def fields_table(facts: pd.DataFrame) -> pd.DataFrame:
    """Where each build keeps what a forgery has to fill in: bytes from the start of the object, or bits."""
    table = results.fields(facts)
    shown = (
        table.map(lambda value: "not there" if pd.isna(value) else f"{value:.0f}")
        .rename_axis(columns=None)
        .reset_index()
    )
    shown["field"] = [f"{name} (bits)" if name.startswith("state") else f"{name} (bytes)" for name in shown.field]
    return shown.rename(columns={label: f"CPython {label}" for label in table.columns})


def another_table(found: pd.DataFrame) -> pd.DataFrame:
    """What came of each object by the layout of each build, a column for each interpreter."""
    rows = []
    labels = list(dict.fromkeys(found.CPython.sort_values()))
    for made in MADE:
        for of in labels:
            part = found[(found.made == made) & (found.layout_of == of)].set_index("CPython").outcome
            rows.append(
                {"what": made, "by the layout of": of, **{f"on CPython {label}": part[label] for label in labels}}
            )
    return pd.DataFrame(rows)


# Where a string keeps what a forgery fills in, in the order of memory; the fields of a compact string end with the state.
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
    """The picture of both layouts on the pair. Columns CPython, layout, field, start, end: bytes from the start of the object."""
    table, rows = results.fields(facts), []
    for label in PAIR:
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
    names = [f"{layout}\n{label}" for label in PAIR for layout in ("compact", "view")]
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


def heads_alt(rows: pd.DataFrame) -> str:
    """The picture in words."""
    parts = []
    for (label, layout), part in rows.groupby(["CPython", "layout"], sort=False):
        parts.append(f"{layout} on {label}: " + ", ".join(f"{row.field} at {row.start}" for row in part.itertuples()))
    return "Fields of a string in memory, in bytes from its start. " + "; ".join(parts) + "."


def became(runs: pd.DataFrame, acts: Collection[str], said: Callable[[pd.DataFrame], str]) -> pd.DataFrame:
    """By act and CPython: what a process said, or how it ended."""
    rows = []
    for what in dict.fromkeys([*acts, *runs.what]):
        row = {"what was done": what}
        for label in sorted(runs.interpreter.unique()):
            part = chosen(runs, interpreter=label, what=what)
            ended = part.ended.iloc[0]
            row[f"CPython {label}"] = said(part) if ended == "ok" else ended
        rows.append(row)
    return pd.DataFrame(rows)


def mutable_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What became of the list after each act."""
    return became(runs, MUTABLE, lambda part: part.answer.iloc[0])


def misuse_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What became of each process that did what must not be done."""
    return became(
        runs,
        MISUSE,
        lambda part: "; ".join(f"{asked}: {answer}" for asked, answer in zip(part.asked, part.answer)),
    )


def layouts_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Strings that differ from CPython's, by way and text."""
    table = runs.pivot_table(index=["method", "text"], columns="interpreter", values="wrong")
    table = table.rename_axis(columns=None).reset_index()
    numbers = [name for name in table.columns if name not in ("method", "text")]
    table[numbers] = table[numbers].astype(int)
    return table.rename(columns={"method": "strings", **{name: f"CPython {name}" for name in numbers}})


def reading_table(record: Record) -> pd.DataFrame:
    """Microseconds for the whole text if only some of its lines are read."""
    rows = []
    for name in (NEW, BEST, LAZY, ARROW):
        for share in ("none", *EVERY):
            arm = f"{name}, {share} read"
            found = {label: cost(record, label, arm) for label in PAIR}
            asked = any(found.values()) or any((label, arm) in record.missing for label in PAIR)
            if asked:
                row = {"strings": name, "lines read": share}
                for label, one in found.items():
                    here = draw.text(one, "", LINES / 1e3) if one else absent(record, label, arm)
                    row[f"{label}, µs for the text"] = here
                row["n"] = counts_of(record, arm)
                rows.append(row)
    return pd.DataFrame(rows)
