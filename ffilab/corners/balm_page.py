"""What the chapter "GIL Balm" shows: tables, figures and the texts that its prose takes up."""

import pandas as pd

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.corners import critical_sections_page
from ffilab.corners.balm import (
    AGAIN,
    ARROW,
    BEST,
    BLOCK,
    COPIED,
    EVERY,
    KERNEL,
    LAZY,
    LINES,
    MISUSE,
    NEW,
    ORIGINAL,
    OURS,
    PAIR,
    POOLED,
    RELEASED,
    THREADS,
    WITHOUT_GIL,
    cost,
    faster,
    per_string,
    tuples,
)
from ffilab.judge import statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import interval_of, ratio

NOT_HERE = "not measured here"
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
    "writer": "PyUnicodeWriter, a writer for each line (3.14 and later)",
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


def words(measurement: Measurement | None) -> str:
    """`5.2 [5.0, 5.6] times`; or that it was not measured."""
    return f"{draw.text(measurement.interval)} times" if measurement else NOT_HERE


def original_table(runs: pd.DataFrame) -> pd.DataFrame:
    """B1-B3: ns for each string as the author ran it, beside the published ones."""
    rows = []
    for threads in (1, THREADS):
        for method in ORIGINAL:
            which = {"method": method, "threads": [threads]}
            published = PUBLISHED_MS[method, threads]
            rows.append(
                {
                    "strings": method,
                    "threads": threads,
                    "tuples here": f"{tuples(method):,}",
                    "published": f"{published:,} ms",
                    "published, for each string": f"{published * 1e6 / PUBLISHED_STRINGS:.1f} ns",
                    "here, for each string": draw.text(interval_of(runs, "ns", **which), "ns"),
                    "page faults for each tuple": draw.text(interval_of(runs, "faults", **which)),
                }
            )
    return pd.DataFrame(rows)


def glue_original(runs: pd.DataFrame) -> None:
    """Hand the ratios with 16 threads to the prose."""

    def at(method: str, threads: int = THREADS):
        return per_string(runs, method=method, threads=[threads])

    draw.glue("original-pooled", words(ratio(at(POOLED), at(NEW))))
    draw.glue("original-block", words(ratio(at(NEW), at(BLOCK))))
    draw.glue("original-block-one", words(ratio(at(NEW, 1), at(BLOCK, 1))))
    for method in (NEW, BLOCK):
        draw.glue(f"original-ns-{method}", draw.text(interval_of(runs, "ns", method=method, threads=[1]), "ns"))
    draw.glue("original-faults", draw.text(interval_of(runs, "faults", method=NEW, threads=[1])))


def ways_table(record: Record) -> pd.DataFrame:
    """Every way on one thread: ns for each string, and how many times as fast as PyUnicode_New."""
    rows = []
    for name, what in WAYS.items():
        row = {"strings": name, "what it is": what}
        for label in record.kernels:
            found, gain = cost(record, label, name), faster(record, label, name)
            row[f"{label}, ns"] = draw.text(found) if found else NOT_HERE
            if name != NEW:
                row[f"{label}, times as fast as new"] = draw.text(gain.interval) if gain else NOT_HERE
            else:
                row[f"{label}, times as fast as new"] = "1"
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
            parts.append(f"{name} on {label}: {draw.text(cost(record, label, name), 'ns')}")
    return "; ".join(parts)


def glue_ways(record: Record) -> None:
    """Hand the gains that the prose names to it."""
    for label in PAIR:
        for name in (POOLED + RELEASED, BLOCK + RELEASED, BLOCK, BEST):
            draw.glue(f"gain-{name}-{label}", words(faster(record, label, name)))
        draw.glue(f"best-over-block-{label}", words(faster(record, label, BEST, than=BLOCK)))
        draw.glue(f"writer-{label}", words(faster(record, label, NEW, than="writer")))
        draw.glue(f"splitlines-{label}", words(faster(record, label, NEW, than="one decode, then splitlines")))
    draw.glue("still-pays", still_pays(record))


def still_pays(record: Record) -> str:
    """The chapter's new question, answered by the run: one sentence for one thread of a free-threaded build."""
    with_gil, without = (faster(record, label, BEST) for label in PAIR)
    if without.interval.low > 1 and without.interval.value - 1 >= without.mde:
        less = statistics.ratio_of_ratios(
            record, ((KERNEL, NEW), (KERNEL, BEST)), ((WITHOUT_GIL, NEW), (WITHOUT_GIL, BEST))
        )
        change = (
            "less than"
            if less.low > 1
            else "more than"
            if less.high < 1
            else "neither more nor less, as far as this run can tell, than"
        )
        return (
            f"Yes, on one thread: the best of ours is {words(without)} as fast as CPython's own on {WITHOUT_GIL}, "
            f"which is {change} on {KERNEL} ({words(with_gil)})."
        )
    return f"Not on one thread: on {WITHOUT_GIL} the best of ours is {words(without)} as fast as CPython's own."


def false_alarm(record: Record) -> pd.DataFrame:
    """The running A/A test."""
    return critical_sections_page.false_alarm(record, NEW, AGAIN)


def series(runs: pd.DataFrame) -> pd.DataFrame:
    """ns for each string with its interval. Columns CPython, series, threads, value, low, high."""
    rows = []
    ways = [
        (label, method, how) for label in PAIR for method in (NEW, POOLED, BLOCK, BEST) for how in ("kept", "released")
    ]
    ordered = runs.set_index(["kernel", "method", "how"])
    for label, method, how in (way for way in ways if way in ordered.index):
        for threads, part in ordered.loc[[(label, method, how)]].groupby("threads"):
            found = statistics.location_interval(part.ns.to_numpy())
            name = method if method == NEW or label == WITHOUT_GIL else f"{method}, GIL {how}"
            rows.append({"CPython": label, "series": name, "threads": int(threads), **vars(found)})
    return pd.DataFrame(rows)


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
    rows["text"] = [draw.text(statistics.Interval(r.value, r.low, r.high)) for r in rows.itertuples()]
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
        f"{r.series} on {r.CPython} with {r.threads} threads: {draw.text(statistics.Interval(r.value, r.low, r.high), 'ns')}"
        for r in most.itertuples()
    )


def glue_grid(runs: pd.DataFrame) -> None:
    """Hand the gains at the largest number of threads to the prose."""
    most = int(runs.threads.max())
    draw.glue("most-threads", str(most))
    for label, how in ((KERNEL, "released"), (WITHOUT_GIL, "kept")):

        def at(method, how=how, label=label):
            how = "kept" if method == NEW else how
            return per_string(runs, kernel=label, method=method, how=how, threads=[most])

        draw.glue(f"most-best-{label}", words(ratio(at(NEW), at(BEST))))
        draw.glue(f"most-pooled-{label}", words(ratio(at(POOLED), at(NEW))))
    for method in (NEW, BLOCK, BEST):
        two, one = (per_string(runs, kernel=WITHOUT_GIL, method=method, how="kept", threads=[n]) for n in (2, 1))
        draw.glue(f"two-threads-{method}", words(ratio(one, two)))


def memory_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Bytes for each string while it lives and after."""
    rows = []
    for label in PAIR:
        for method in (NEW, *OURS):
            which = {"kernel": label, "method": method}
            found = {name: interval_of(runs, name, **which) for name in ("alive", "after", "peak")}
            rows.append(
                {
                    "CPython": label,
                    "strings": method,
                    "alive, bytes each": draw.text(found["alive"]) if found["alive"] else NOT_HERE,
                    "after all were dropped, bytes each": draw.text(found["after"]) if found["after"] else NOT_HERE,
                    "peak, MiB": draw.text(found["peak"]) if found["peak"] else NOT_HERE,
                }
            )
    return pd.DataFrame(rows)


def short(answer: str) -> str:
    """An answer without what only names the type."""
    return answer if len(answer) <= 60 else answer[:57] + "…"


def behaviour_table(answers: dict[str, dict]) -> pd.DataFrame:
    """Probes to which not every kind of string gives the answer of a real one, on the chapter's kernel."""
    rows = []
    for probe, kinds in answers[KERNEL].items():
        if len(set(kinds.values())) > 1:
            rows.append(
                {
                    "asked": probe,
                    "str": short(kinds["str"]),
                    "subclass of str": short(kinds["subclass of str"]),
                    "ours (a block)": short(kinds[BLOCK]),
                    "type copied": short(kinds[COPIED]),
                }
            )
    return pd.DataFrame(rows)


def behaviour_words(answers: dict[str, dict]) -> str:
    """How many probes everything passes, and whether the kernels agree."""
    same = [probe for probe, kinds in answers[KERNEL].items() if len(set(kinds.values())) == 1]
    differing = [
        probe
        for probe in answers[KERNEL]
        if len({(kinds[probe][BLOCK] == kinds[probe]["str"]) for kinds in answers.values()}) > 1
    ]
    agree = "All CPythons here agree on that" if not differing else f"Not all CPythons agree on {', '.join(differing)}"
    return f"{len(same)} of {len(answers[KERNEL])} probes get the same answer from every kind of string. {agree}."


def misuse_table(wrongs: pd.DataFrame) -> pd.DataFrame:
    """What became of each process that did what must not be done."""
    rows = []
    for what in MISUSE:
        row = {"what was done": what}
        for label in sorted(wrongs.kernel.unique()):
            found = wrongs[(wrongs.kernel == label) & (wrongs.what == what)].iloc[0]
            said = "; ".join(f"{name}: {value}" for name, value in found.result.items())
            row[f"CPython {label}"] = said if found.ended == "ok" else found.ended
        rows.append(row)
    return pd.DataFrame(rows)


def layouts_table(lines: pd.DataFrame) -> pd.DataFrame:
    """Strings that differ from CPython's, by way and text."""
    table = lines.pivot_table(index=["method", "text"], columns="kernel", values="wrong")
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
            row = {"strings": name, "lines read": share}
            for label in PAIR:
                found = cost(record, label, arm)
                row[f"{label}, µs for the text"] = draw.text(found, "", LINES / 1e3) if found else NOT_HERE
            if any(row[f"{label}, µs for the text"] != NOT_HERE for label in PAIR):
                rows.append(row)
    return pd.DataFrame(rows)


def glue_reading(record: Record) -> None:
    """Hand the rival that is lazy to the prose."""
    for label in PAIR:
        for share in EVERY:
            draw.glue(
                f"lazy-{share}-{label}",
                words(faster(record, label, f"{LAZY}, {share} read", than=f"{BEST}, {share} read")),
            )
