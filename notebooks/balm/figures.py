"""What the chapter "GIL Balm" shows: tables, figures and the texts that its prose takes up."""

import pandas as pd

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.judge.estimates import Interval, Measurement
from ffilab.judge.processes import chosen, interval_of, ratio
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.balm import results
from notebooks.balm.experiment import (
    ALIVE,
    ARROW,
    BEST,
    BLOCK,
    EVERY,
    LAZY,
    LINES,
    MISUSE,
    NEW,
    ORIGINAL,
    PAIR,
    POOLED,
    RELEASED,
    THREADS,
)
from notebooks.balm.results import cost, faster, per_string, series

# How the prose calls the chapter pair in the names of its numbers.
NAMES = {GIL: "gil", FREE_THREADED: "free-threaded"}
# Milliseconds that the author read for 10,000 tuples, by way and threads (B1-B3). Data to compare with.
PUBLISHED_MS = {
    (NEW, 1): 1320,
    (POOLED, 1): 553,
    (BLOCK, 1): 263,
    (NEW, THREADS): 5430,
    (POOLED, THREADS): 13_200,
    (BLOCK, THREADS): 271,
}
PUBLISHED_STRINGS = 10_000 * LINES
WAYS = {
    NEW: "PyUnicode_New and a copy: the rule",
    "from string": "PyUnicode_FromStringAndSize: the rule, for any UTF-8",
    "writer": "PyUnicodeWriter, a writer for each line, where CPython has it",
    POOLED: "views from a pool with one lock: the original's first",
    "compact": "copies in slots of 128 bytes from a pool with one lock",
    BLOCK: "views in one block: the original's second",
    "pages": "views in pages of a thread: ours",
    BEST: "the same, in a tuple that ends them all at once: ours",
    POOLED + RELEASED: "without the GIL",
    BLOCK + RELEASED: "without the GIL",
    BEST + RELEASED: "without the GIL",
    "one decode, then splitlines": "bytes.decode and str.splitlines: one call for all, and a list",
    "memoryviews": "a memoryview of each line: bytes, no text",
    "made once, tuple again": "what a cache could reach: no string is made",
}


def times(found: Measurement | None) -> str:
    """`5.2 [5.0, 5.6] times`; or that it was not measured."""
    return f"{draw.words(found)} times" if found else draw.NOT_MEASURED


def absent(record: Record, label: str, arm: str) -> str:
    """Why there is no number: the arm could not be made there, or was not asked for."""
    reason = record.missing.get((label, arm))
    return f"{draw.NOT_MEASURED} ({reason})" if reason else draw.NOT_MEASURED


def original_table(runs: pd.DataFrame) -> pd.DataFrame:
    """B1-B3: ns for each string as the author ran it, beside the published ones."""
    rows = []
    for threads in (1, THREADS):
        for method in ORIGINAL:
            part = chosen(runs, method=method, threads=threads)
            published = PUBLISHED_MS[method, threads]
            rows.append(
                {
                    "strings": method,
                    "threads": threads,
                    "tuples here": f"{part.tuples.iloc[0]:,}",
                    "published": f"{published:,} ms",
                    "published, for each string": f"{published * 1e6 / PUBLISHED_STRINGS:.1f} ns",
                    "here, for each string": draw.text(interval_of(part, "ns"), "ns"),
                    "page faults for each tuple": draw.text(interval_of(part, "faults")),
                }
            )
    return pd.DataFrame(rows)


def glue_original(runs: pd.DataFrame) -> None:
    """Hand the ratios with 16 threads to the prose."""
    new, pooled, block = ((method, THREADS) for method in ORIGINAL)
    draw.glue("original-pooled", times(results.original_ratio(runs, pooled, new)))
    draw.glue("original-block", times(results.original_ratio(runs, new, block)))
    for method in (POOLED, BLOCK):
        draw.glue(f"original-{method}-one", times(results.original_ratio(runs, (NEW, 1), (method, 1))))
    alone = chosen(runs, method=NEW, threads=1)
    draw.glue("original-ns-new", draw.text(interval_of(alone, "ns"), "ns"))
    draw.glue("original-faults", draw.text(interval_of(alone, "faults")))


def ways_table(record: Record) -> pd.DataFrame:
    """Every way on one thread: ns for each string, and how many times as fast as PyUnicode_New."""
    rows = []
    for name, what in WAYS.items():
        row = {"strings": name, "what it is": what}
        for label in record.interpreters:
            found, gain = cost(record, label, name), faster(record, label, name)
            row[f"{label}, ns"] = draw.text(found) if found else absent(record, label, name)
            row[f"{label}, times as fast as new"] = "1" if name == NEW else draw.words(gain)
        rows.append(row)
    return pd.DataFrame(rows)


def plot_ways(figure, record: Record) -> None:
    """Cost of every way on the pair, on a log scale."""
    rows = []
    for name in WAYS:
        for label in PAIR:
            if found := cost(record, label, name):
                rows.append({"way": name, "CPython": label, **vars(found)})
    axes = figure.subplots()
    draw.intervals(axes, pd.DataFrame(rows), "way", "CPython")
    axes.set_xscale("log")
    draw.plain_ticks(axes.xaxis)
    axes.set_xlabel("ns to make and drop one string")


def ways_words(record: Record) -> str:
    """The figure in words, for its alt text."""
    parts = []
    for label in PAIR:
        for name in (NEW, POOLED, BLOCK, BEST):
            parts.append(f"{name} on {label}: {draw.words(cost(record, label, name), 'ns')}")
    return "; ".join(parts)


def glue_ways(record: Record) -> None:
    """Hand the gains that the prose names to it."""
    for label, name in NAMES.items():
        for way in (POOLED + RELEASED, BLOCK + RELEASED, BEST):
            draw.glue(f"gain-{way}-{name}", times(faster(record, label, way)))
        draw.glue(f"best-over-block-{name}", times(faster(record, label, BEST, than=BLOCK)))
        draw.glue(f"writer-{name}", times(faster(record, label, NEW, than="writer")))
        draw.glue(f"splitlines-{name}", times(faster(record, label, NEW, than="one decode, then splitlines")))
    draw.glue("still-pays", still_pays(record))


def still_pays(record: Record) -> str:
    """The chapter's new question, answered by the run: one sentence for one thread of a free-threaded build."""
    with_gil, without = (faster(record, label, BEST) for label in PAIR)
    if not (with_gil and without):
        return "This run cannot say: the best of ours was not measured on both builds."
    if not without.interval.excludes(1):
        return (
            f"This run cannot say: on one thread of {FREE_THREADED} the best of ours is {times(without)} as fast as "
            "CPython's own, and the interval does not exclude 1."
        )
    if without.interval.low > 1:
        less = results.change_without_gil(record)
        change = (
            "less than"
            if less.low > 1
            else "more than"
            if less.high < 1
            else "neither more nor less, as far as this run can tell, than"
        )
        return (
            f"Yes, on one thread: the best of ours is {times(without)} as fast as CPython's own on {FREE_THREADED}, "
            f"which is {change} on {GIL} ({times(with_gil)})."
        )
    return f"Not on one thread: on {FREE_THREADED} the best of ours is {times(without)} as fast as CPython's own."


def plot_grid(figure, runs: pd.DataFrame) -> None:
    """ns for each string over threads, one panel for each build."""
    rows = series(runs)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, label in zip(panels, PAIR):
        part = rows[rows.CPython == label]
        for name in part.series.unique():
            line = part[part.series == name]
            colour = draw.PALETTE[[NEW, POOLED, BLOCK, BEST].index(name.split(", GIL")[0])]
            style = "--" if name.endswith("released") else "-"
            errors = [line.value - line.low, line.high - line.value]
            axes.errorbar(line.threads, line.value, yerr=errors, label=name, color=colour, linestyle=style, capsize=3)
        axes.set(xscale="log", yscale="log", xlabel="threads", title=f"CPython {label}")
        axes.set_xticks(sorted(part.threads.unique()), [str(n) for n in sorted(part.threads.unique())])
        axes.minorticks_off()
        draw.plain_ticks(axes.yaxis)
    panels[0].set_ylabel("ns for each string, all threads together")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="x-small")


def grid_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The same as a table."""
    rows = series(runs).rename(columns={"series": "strings"})
    rows["text"] = [draw.text(Interval.of(r)) for r in rows.itertuples()]
    rows["threads"] = [f"{n} threads" if n > 1 else "1 thread" for n in rows.threads]
    table = rows.pivot_table(
        index=["CPython", "strings"], columns="threads", values="text", aggfunc="first", sort=False
    )
    return table.rename_axis(columns=None).reset_index()


def grid_words(runs: pd.DataFrame) -> str:
    """The figure in words, for its alt text: the largest number of threads."""
    rows = series(runs)
    most = rows[rows.threads == rows.threads.max()]
    return "; ".join(
        f"{r.series} on {r.CPython} with {r.threads} threads: {draw.text(Interval.of(r), 'ns')}"
        for r in most.itertuples()
    )


def glue_grid(runs: pd.DataFrame) -> None:
    """Hand the gains at the largest number of threads to the prose."""
    most = int(runs.threads.max())
    draw.glue("most-threads", str(most))
    for label, how in ((GIL, "released"), (FREE_THREADED, "kept")):
        which = {"interpreter": label, "threads": most}
        new = per_string(runs, **which, method=NEW, how="kept")
        best, pooled = (per_string(runs, **which, method=method, how=how) for method in (BEST, POOLED))
        draw.glue(f"most-best-{NAMES[label]}", times(ratio(new, best)))
        draw.glue(f"most-pooled-{NAMES[label]}", times(ratio(pooled, new)))
    for method in (NEW, BEST):
        which = {"interpreter": FREE_THREADED, "method": method, "how": "kept"}
        two, one = (per_string(runs, **which, threads=threads) for threads in (2, 1))
        draw.glue(f"two-threads-{method}", times(ratio(one, two)))


def memory_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Bytes for each string while it lives and after."""
    rows = []
    for label in PAIR:
        for method in ALIVE:
            part = runs if runs.empty else chosen(runs, interpreter=label, method=method)
            alive, after, peak = (
                None if part.empty else interval_of(part, name) for name in ("alive", "after", "peak")
            )
            rows.append(
                {
                    "CPython": label,
                    "strings": method,
                    "alive, bytes each": draw.words(alive),
                    "after all were dropped, bytes each": draw.words(after),
                    "peak, MiB": draw.words(peak),
                }
            )
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


def behaviour_words(runs: pd.DataFrame) -> str:
    """How many probes everything passes, and whether the interpreters agree."""
    given = results.answers(runs)
    same = given.loc[GIL].nunique(axis="columns") == 1
    # Whether ours answers as str does, by interpreter and probe.
    like = given[BLOCK].eq(given["str"]).groupby(level="probe").nunique()
    differing = [probe for probe in runs.probe.unique() if like[probe] > 1]
    agree = "All CPythons here agree on that" if not differing else f"Not all CPythons agree on {', '.join(differing)}"
    return f"{same.sum()} of {len(same)} probes get the same answer from every kind of string. {agree}."


def misuse_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What became of each process that did what must not be done."""
    rows = []
    for what in MISUSE:
        row = {"what was done": what}
        for label in sorted(runs.interpreter.unique()):
            part = chosen(runs, interpreter=label, what=what)
            ended = part.ended.iloc[0]
            row[f"CPython {label}"] = (
                "; ".join(f"{asked}: {answer}" for asked, answer in zip(part.asked, part.answer))
                if ended == "ok"
                else ended
            )
        rows.append(row)
    return pd.DataFrame(rows)


def layouts_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Strings that differ from CPython's, by way and text."""
    table = runs.pivot_table(index=["method", "text"], columns="interpreter", values="wrong")
    table = table.rename_axis(columns=None).reset_index()
    numbers = [name for name in table.columns if name not in ("method", "text")]
    table[numbers] = table[numbers].astype(int)
    return table.rename(columns={"method": "strings", **{name: f"CPython {name}" for name in numbers}})


def sanitizers_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What the sanitizers say about our code."""
    return runs.sort_values(["sanitizer", "interpreter"])[["sanitizer", "interpreter", "strings", "verdict"]].rename(
        columns={"interpreter": "CPython"}
    )


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
                rows.append(row)
    return pd.DataFrame(rows)


def glue_reading(record: Record) -> None:
    """Hand the rival that is lazy to the prose."""
    for label, name in NAMES.items():
        for share in EVERY:
            gain = faster(record, label, f"{LAZY}, {share} read", than=f"{BEST}, {share} read")
            draw.glue(f"lazy-{share}-{name}", times(gain))
