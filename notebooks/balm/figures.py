"""What the chapter "GIL Balm" shows: tables, figures and the texts that its prose takes up."""

from collections.abc import Callable

import pandas as pd

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.judge import controls
from ffilab.judge.estimates import Interval, Measurement
from ffilab.judge.processes import chosen, interval_of, ratio
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.balm import results, words
from notebooks.balm.experiment import (
    A_STRING,
    A_TUPLE,
    AGAIN,
    ALIVE,
    ARENAS,
    ARROW,
    BEST,
    BLOCK,
    BLOCK_TUPLE,
    BYTES,
    COLD,
    COUNTED,
    EVERY,
    GIVEN_BACK,
    HELD,
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
    WARM,
    WRITTEN,
)
from notebooks.balm.results import cost, faster, per_string, series

# How the prose calls the chapter pair in the names of its numbers.
NAMES = {GIL: "gil", FREE_THREADED: "free-threaded"}
SHARES = {"all": "all lines are", "one in ten": "one line in ten is", "one in a hundred": "one line in a hundred is"}
WHERE = {GIL: "with the GIL", FREE_THREADED: "without the GIL"}
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
# As the author puts it, of 16 threads.
PUBLISHED_GAIN_OF_MANY = 20
PUBLISHED_RISE = PUBLISHED_MS[NEW, THREADS] / PUBLISHED_MS[NEW, 1]
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


def interval(found: Measurement | None) -> Interval | None:
    return found.interval if found else None


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
            gain = results.original_ratio(runs, (NEW, threads), (method, threads))
            rows.append(
                {
                    "strings": method,
                    "threads": threads,
                    "tuples here": f"{part.tuples.iloc[0]:,}",
                    "published, ms": f"{published:,}",
                    "published, ns a string": f"{published * 1e6 / PUBLISHED_STRINGS:.1f}",
                    "here, ns a string": draw.text(interval_of(part, "ns")),
                    "published, new over it": "1" if method == NEW else f"{PUBLISHED_MS[NEW, threads] / published:.2f}",
                    "here, new over it": "1" if method == NEW else draw.words(gain),
                    "page faults a tuple": words.faults_fragment(interval_of(part, "faults")),
                    "n": len(part),
                }
            )
    return pd.DataFrame(rows)


def glue_original(runs: pd.DataFrame) -> None:
    """What the runs as the author ran them say."""
    where = f"With {THREADS} threads"
    new, pooled, block = ((method, THREADS) for method in ORIGINAL)
    found = interval(results.original_ratio(runs, pooled, new))
    draw.glue("original-pooled", words.duration(where, "pooled strings", "CPython's own", found))
    for method, name in ((POOLED, "pooled strings"), (BLOCK, "strings in a block")):
        found = interval(results.original_ratio(runs, (NEW, 1), (method + WRITTEN, 1)))
        draw.glue(f"original-{method}-one", words.speed("With one thread", name, "CPython's own", found))
    draw.glue("as-it-came", words.as_it_came(results.faults(runs, threads=1)))
    suffer = [interval(results.original_ratio(runs, (way, THREADS), (way, 1))) for way in (*ORIGINAL[1:], NEW)]
    draw.glue("prediction-2", words.prediction_2(*suffer))
    gain = interval(results.original_ratio(runs, new, block))
    draw.glue("twenty-times", words.twenty_times(THREADS, PUBLISHED_GAIN_OF_MANY, gain, suffer[-1], PUBLISHED_RISE))


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
            words.faults_fragment(interval_of(alone, "faults")),
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
                words.faults_fragment(interval_of(part, "faults")),
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


def glue_arenas(original: pd.DataFrame, runs: pd.DataFrame, record: Record) -> None:
    """What it costs to give arenas back, and what lies between the two experiments."""
    faults = (results.faults(runs, arenas=state) for state in (HELD, GIVEN_BACK))
    draw.glue("giving-back", words.giving_back(interval(results.cost_of_giving_back(runs)), *faults))
    for method in (POOLED, BLOCK):
        apart = results.original_ratio(original, (NEW, 1), (method + WRITTEN, 1))
        shared, ours = (faster(record, GIL, method + how) for how in (WRITTEN, RELEASED))
        design = interval(faster(record, GIL, method + RELEASED, than=method + WRITTEN))
        gains = [interval(one) for one in (apart, shared, ours)]
        draw.glue(f"steps-{method}", words.steps(method, gains, results.quotient(shared, apart), design))


def ways_table(record: Record) -> pd.DataFrame:
    """Every way on one thread: ns for each string, and how many times as fast as PyUnicode_New."""
    rows = []
    for name, what in WAYS.items():
        if not any(record.measured(label, name) or (label, name) in record.missing for label in record.interpreters):
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
    for name in WAYS:
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


def glue_ways(record: Record) -> None:
    """What the corrected experiment says."""
    best, where = "the strings of pages and tuple", f"On one thread {WHERE[GIL]}"
    for way, called in ((POOLED, "pooled strings"), (BLOCK, "strings in a block")):
        gain = interval(faster(record, GIL, way + RELEASED))
        draw.glue(f"gain-{way}-gil", words.speed(where, called, "CPython's own", gain))
    draw.glue("gain-pages-gil", words.speed(where, best, "CPython's own", interval(faster(record, GIL, BEST))))
    gain = interval(faster(record, GIL, BEST, than=BLOCK))
    draw.glue("pages-over-block-gil", words.speed(where, best, "strings in a block", gain))
    for label, name in NAMES.items():
        where = f"On one thread {WHERE[label]}"
        for arm, called in (
            ("writer", "strings by a writer each"),
            ("one decode, then splitlines", "strings cut by splitlines"),
            ("from string", "strings by PyUnicode_FromStringAndSize"),
        ):
            ratio = interval(faster(record, label, NEW, than=arm))
            draw.glue(f"{arm.split(',')[0]}-{name}", words.duration(where, called, "those by PyUnicode_New", ratio))
        gain = interval(faster(record, label, "made once, tuple again", than=BEST))
        draw.glue(
            f"cache-{name}",
            words.speed(where, "strings that are handed out again", best, gain),
        )
    found = interval(faster(record, GIL, BLOCK + WRITTEN, than=BLOCK + RELEASED))
    draw.glue("as-written", words.speed("With one thread", "the author's blocks", "ours made without the GIL", found))
    draw.glue("holds-on", words.holds_on(results.gains(record)))
    draw.glue("holds-where", words.holds_where(results.gains(record)))
    gains = [interval(faster(record, label, BEST)) for label in PAIR]
    change = results.change_without_gil(record) if all(gains) else None
    draw.glue("still-pays", words.still_pays(*gains, change))
    unequal = next(iter(controls.unequal("ways", record)), None)
    draw.glue("left-out", words.left_out(unequal and unequal.passed, unequal.found if unequal else ""))
    draw.glue("prediction-1", words.prediction_1(*(cost(record, label, NEW) for label in PAIR)))
    draw.glue("prediction-4", words.prediction_4(change))
    draw.glue(
        "same-twice",
        words.same_call_twice({label: found.ratio for label, found in results.twins(record).items()}, results.ALARM),
    )
    for label, name in NAMES.items():
        parts = results.parts_of_a_block(record, label)
        draw.glue(f"what-bounds-{name}", words.what_bounds(WHERE[label], parts))
        loop = interval(faster(record, label, TWO_PASSES, than=BEST))
        draw.glue(f"two-passes-{name}", words.two_passes(WHERE[label], "the strings of pages and tuple", loop))


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
        row["whole / small"] = draw.words(results.of_lengths(runs, label, TEXTS[0]))
        large = results.of_lengths(runs, label, TEXTS[2])
        row["large / whole"] = draw.words(large.inverse if large else None)
        rows.append({**row, "n": len(part) // len(TEXTS)})
    return pd.DataFrame(rows)


def glue_texts(runs: pd.DataFrame, second: pd.DataFrame, facts: pd.DataFrame) -> None:
    """Is the block bound by memory? facts: where each build keeps the fields of a head."""
    heads = results.fields(facts).loc["PyUnicodeObject, size"]
    for label, name in NAMES.items():
        small, large = (results.of_lengths(runs, label, lines) for lines in (TEXTS[0], TEXTS[2]))
        large = large.inverse if large else None
        megabytes = float(TEXTS[-1] * heads[label] / 1e6)
        draw.glue(f"memory-bound-{name}", words.memory_bound(WHERE[label], small, large, megabytes))
    rate = interval(results.rate_of_two(second, BLOCK, "many", WARM))
    draw.glue("threads-of-a-block", words.two_threads("strings in a block", rate))


def second_table(runs: pd.DataFrame) -> pd.DataFrame:
    """What a second thread brings without the GIL."""
    rows = []
    for (method, length, state), part in runs.groupby(["method", "length", "state"], sort=False):
        row = {"strings": method, "tuples of each thread": length, "threads are": state}
        for threads in (1, 2):
            which = {"method": method, "length": length, "state": state, "threads": threads}
            row[f"{threads} thread{'s' * (threads > 1)}, ns"] = draw.words(interval_of(runs, "ns", **which))
            row[f"page faults a tuple, {threads}"] = words.faults_fragment(interval_of(runs, "faults", **which))
        rate = results.rate_of_two(runs, method, length, state)
        rows.append({**row, "rate of two over one": draw.words(rate), "n": len(part) // 2})
    return pd.DataFrame(rows)


def glue_second(runs: pd.DataFrame, record: Record) -> None:
    """Does a second thread bring anything, and is it the start of a thread that costs? And the corrected experiment beside this one."""
    for method, who in ((NEW, "CPython's own strings"), (BEST, "the strings of pages and tuple")):
        rate = interval(results.rate_of_two(runs, method, "many", WARM))
        draw.glue(f"two-threads-{method}", words.two_threads(who, rate))
    shared = cost(record, FREE_THREADED, NEW), interval(faster(record, FREE_THREADED, BEST))
    new, best = ({"method": method, "length": "many", "threads": 1} for method in (NEW, BEST))
    alone = interval_of(runs, "ns", **new), interval(ratio(per_string(runs, **new), per_string(runs, **best)))
    draw.glue("in-company", words.in_company(*shared, *alone))
    which = {"method": NEW, "length": "few", "threads": 2}
    faults = (interval_of(runs, "faults", **which, state=state) for state in (COLD, WARM))
    draw.glue("cold-heaps", words.cold_heaps(interval(results.cost_of_cold_heaps(runs)), *faults))


def plot_grid(figure, rows: pd.DataFrame) -> None:
    """ns for each string over threads, one panel for each build. rows: results.series."""
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


def glue_grid(runs: pd.DataFrame) -> None:
    """What many threads say."""
    most = int(runs.threads.max())
    for label, how in ((GIL, "released"), (FREE_THREADED, "kept")):
        which = {"interpreter": label, "threads": most}
        where = f"{WHERE[label]} and with {most} threads"
        new = per_string(runs, **which, method=NEW, how="kept")
        best, pooled = (per_string(runs, **which, method=method, how=how) for method in (BEST, POOLED))
        found = interval(ratio(pooled, new))
        draw.glue(f"most-pooled-{NAMES[label]}", words.duration(where, "pooled strings", "CPython's own", found))
        found = interval(ratio(new, best))
        draw.glue(
            f"most-pages-{NAMES[label]}", words.speed(where, "the strings of pages and tuple", "CPython's own", found)
        )
    for method, who in ((BLOCK, "strings in a block"), (BEST, "the strings of pages and tuple")):
        which = {"interpreter": GIL, "threads": most, "method": method}
        apart = (per_string(runs, **which, how=how) for how in ("released", "kept"))
        draw.glue(f"released-{method}", words.released(who, interval(ratio(*apart)), most))


def memory_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Bytes for each string while it lives and after."""
    rows = []
    for label in PAIR:
        for method in ALIVE:
            part = runs if runs.empty else chosen(runs, interpreter=label, method=method)
            row = {"CPython": label, "strings": method}
            row["written, bytes each"] = "" if part.empty else f"{part.written.iloc[0]:.1f}"
            for when, title in (("alive", "resident, bytes each"), ("after", "right after the drop, bytes each")):
                found = results.resident(runs, label, method, when)
                row[title] = found if isinstance(found, str) else draw.words(found)
            rows.append({**row, "n": len(part)})
    return pd.DataFrame(rows)


def glue_memory(runs: pd.DataFrame) -> None:
    """What stays of each way."""
    for label, name in NAMES.items():
        for method, who in ((NEW, "CPython's own strings"), (BLOCK, "strings in a block")):
            both = (results.resident(runs, label, method, when) for when in ("alive", "after"))
            draw.glue(f"stays-{method}-{name}", words.stays(WHERE[label], who, *both))


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


# The third prediction's calls, as they were asked.
PREDICTED = (
    "hash(x) == hash('pi')",
    "x in {'pi'}, 'pi' in {x}",
    "int(n), float(n)",
    "json.dumps(x), json.loads(n)",
    "pickle.loads(pickle.dumps(x))",
    "sys.intern(x)",
)


def glue_behaviour(runs: pd.DataFrame) -> None:
    """How many probes everything passes, whether the interpreters agree, and what tells ours from others."""
    given = results.answers(runs)
    same = given.loc[GIL].nunique(axis="columns") == 1
    # Whether ours answers as str does, by interpreter and probe.
    like = given[BLOCK].eq(given["str"]).groupby(level="probe").nunique()
    differing = [probe for probe in runs.probe.unique() if like[probe] > 1]
    draw.glue("probes", words.probes_agree(int(same.sum()), len(same), differing))
    draw.glue("unlike", words.unlike_a_subclass(results.unlike(runs, GIL, BLOCK, "subclass of str")))
    named, pickled = (
        given.loc[(GIL, probe), results.COPIED] for probe in ("type(x).__name__", "pickle.loads(pickle.dumps(x))")
    )
    draw.glue("copied-type", words.copied_type(named, pickled))


def glue_misuse(runs: pd.DataFrame, works: pd.DataFrame) -> None:
    """Whether each misuse had the consequence that the page describes, by interpreter; and the third prediction."""

    def told(what: str, question) -> dict[str, bool | None]:
        found = results.answered(runs, what)
        return {label: None if isinstance(said, str) else question(said) for label, said in found.items()}

    lost = told("a hash of 0", lambda said: said["x == 'key'"] == "True" and said["x in {'key'}"] == "False")
    misread = told("no NUL at the end", lambda said: said["x == '12'"] == "True" and "ValueError" in said["int(x)"])
    draw.glue("misuse-hash", words.misused("it was equal and was not found", lost))
    draw.glue("misuse-nul", words.misused("x == '12' was true and int(x) took it for no number", misread))
    crashed = {
        label: isinstance(said, str) for label, said in results.answered(runs, "bytes that are not ASCII").items()
    }
    draw.glue("misuse-ascii", words.misused("the process ended by it", crashed))
    other = told("a borrowed reference", lambda said: said["is now"] != said["was"])
    draw.glue("misuse-borrowed", words.misused("the address held another string", other))
    refused = told("another interpreter", lambda said: "Error" in said["import balm"])
    draw.glue("misuse-interpreter", words.misused("the import was refused", refused))
    gone = told("the maker's thread is gone", lambda said: "False" not in said["hash of every tuple"])
    draw.glue("misuse-thread", words.misused("strings outlived their thread with the right hash", gone))
    at_exit = told("alive at exit", lambda said: True)
    draw.glue("misuse-exit", words.misused("the process ended well with strings alive", at_exit))
    zero = told("a hash of 0", lambda said: said["hash(x)"] == "0")
    copied = results.answers(works)[results.COPIED].xs(PREDICTED[4], level="probe")
    pickled = {label: "Error" in answer for label, answer in copied.items()}
    asked = {"hash(x)": zero, "a lookup such as x in {'key'}": lost, "int(x)": misread, "pickle.dumps(x)": pickled}
    without = [name for name, where in asked.items() if any(where.values())]
    failed = [probe for probe in PREDICTED if probe in results.unlike(works, GIL, BLOCK, "str")]
    draw.glue("prediction-3", words.prediction_3(failed, list(PREDICTED), without))


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


def glue_layouts(facts: pd.DataFrame, found: pd.DataFrame) -> None:
    """What the layouts of the builds say."""
    draw.glue("layouts-pair", words.layouts_differ(GIL, FREE_THREADED, results.differing(facts, GIL, FREE_THREADED)))
    wrong = results.share_wrong(results.other_builds(found, A_STRING, A_TUPLE))
    draw.glue("wrong-layout", words.wrong_layout(wrong))
    draw.glue("other-version", words.other_version(results.share_wrong(results.other_versions(found))))
    draw.glue("module-refuses", words.module_refuses(results.refused(found)))


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


def became(runs: pd.DataFrame, acts: tuple[str, ...], said: Callable[[pd.DataFrame], str]) -> pd.DataFrame:
    """By act and CPython: what a process said, or how it ended."""
    rows = []
    for what in acts:
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


def glue_mutable(runs: pd.DataFrame) -> None:
    """Does a list need more than a string?"""
    own = chosen(runs, what=MUTABLE[4]).set_index("interpreter").ended.eq("ok").sort_index().to_dict()
    draw.glue("list-grows", words.list_grows(results.grown(runs), own))


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


def glue_reading(record: Record) -> None:
    """What a rival that is lazy gains."""
    for label, name in NAMES.items():
        for share in EVERY:
            gain = interval(faster(record, label, f"{LAZY}, {share} read", than=f"{BEST}, {share} read"))
            where = f"{WHERE[label]}, if {SHARES[share]} read"
            draw.glue(
                f"lazy-{share}-{name}", words.speed(where, "lazy sequences", "the strings of pages and tuple", gain)
            )
            gain = interval(faster(record, label, f"{LAZY}, {share} read", than=f"{NEW}, {share} read"))
            said = words.speed(where, "lazy sequences", "CPython's own strings", gain, results.least(record, label))
            draw.glue(f"lazy-new-{share}-{name}", said)
