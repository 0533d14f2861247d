"""What the chapter "The GIL convoy" shows: tables, figures and the texts that its prose takes up."""

from collections import Counter

import numpy as np
import pandas as pd

from ffilab import draw
from ffilab.judge import statistics
from ffilab.judge.estimates import POWER
from ffilab.judge.processes import chosen, interval_of, ratio
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.convoy import results
from notebooks.convoy.experiment import (
    AGAIN,
    APART,
    CONVOY,
    COUNT_THREADS,
    DEFAULT_S,
    HASH_THREADS,
    INTERVAL_THREADS,
    INTERVALS,
    ONE_CORE,
    PINNED_THREADS,
    PROCESS,
    QUIET,
    SHORTEST_S,
    THREADS,
    plural,
)
from notebooks.convoy.results import added_intervals, done, interval_case, rates

FEW = "too few requests"
# What the author measured (C4), requests per second by switch interval and number of CPU threads. Data to compare with.
PUBLISHED_RATES = {
    0.01: (50, 30, 15),
    DEFAULT_S: (100, 50, 30),
    1e-3: (500, 280, 200),
    1e-4: (3_200, 1_700, 1_000),
    1e-5: (11_000, 5_500, 2_800),
    1e-6: (10_000, 4_500, 2_500),
}
# What the prose names on the chapter pair, by how it calls the two.
RATES = {
    "gil": (GIL, (QUIET, CONVOY, PROCESS, ONE_CORE, APART)),
    "free-threaded": (FREE_THREADED, (CONVOY,)),
}


def words(rows: pd.DataFrame, column: str, unit: str = "", factor: float = 1) -> str:
    """Trimmed mean of a column over processes, with its interval, in words."""
    found = interval_of(rows, column)
    return FEW if found is None and len(rows) else draw.words(found, unit, factor)


def thread_columns(rows: pd.DataFrame, threads: tuple[int, ...], column: str, unit: str, factor: float = 1) -> dict:
    """A number in words for each number of threads."""
    return {
        plural(count, "thread").replace("CPU ", ""): words(chosen(rows, threads=count), column, unit, factor)
        for count in threads
    }


def duration(seconds: float) -> str:
    """A switch interval in words: `5 ms`."""
    return f"{seconds * 1e3:g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:g} µs"


def countdown_table(counts: pd.DataFrame) -> pd.DataFrame:
    """ns a step by number of threads, a row for each interpreter and switch interval that was measured there."""
    return pd.DataFrame(
        [
            {
                "CPython": label,
                "switch interval": duration(interval),
                **thread_columns(rows, COUNT_THREADS, "ns", "ns"),
            }
            for label in sorted(set(counts.interpreter))
            for interval in (DEFAULT_S, SHORTEST_S)
            if len(rows := done(counts, interpreter=label, interval=[interval]))
        ]
    )


def seconds_table(hashed: pd.DataFrame) -> pd.DataFrame:
    """Milliseconds by number of threads, a row for each interpreter."""
    return pd.DataFrame(
        [
            {"CPython": label, **thread_columns(done(hashed, interpreter=label), HASH_THREADS, "seconds", "ms", 1e3)}
            for label in sorted(set(hashed.interpreter))
        ]
    )


def cores_words(rows: pd.DataFrame) -> str:
    """Who sat where at the end, in the most frequent of these processes."""
    seats = Counter()
    for row in rows.to_dict("records"):
        parts = [f"client {seat(row['cores.client'])}", f"server {seat(row['cores.server'])}"]
        if row["cores.CPU work"]:
            parts.append("work " + " ".join(sorted(map(seat, row["cores.CPU work"]))))
        seats[", ".join(parts)] += 1
    return seats.most_common(1)[0][0] if seats else draw.NOT_MEASURED


def seat(core: float | None) -> str:
    """Number of a core; a question mark if the thread could not say: it was still waiting for the GIL."""
    return "?" if core is None or np.isnan(core) else f"{core:.0f}"


def echo_table(runs: pd.DataFrame, label: str, kind: str) -> pd.DataFrame:
    """Rate, latencies, what is left of the CPU work, and who sat on which core, for the cases of one section."""
    rows = []
    for case in names(kind):
        which = {"interpreter": label, "case": case}
        found = done(runs, **which)
        if not len(found):
            if label in set(runs.interpreter):
                ends = sorted(set(chosen(runs, **which).ended))
                what = f"no result: {', '.join(ends)}" if ends else draw.NOT_MEASURED
                rows.append({"case": case, "requests/s": what})
            continue
        rows.append(
            {
                "case": case,
                "requests/s": words(found, "rate"),
                "p50, µs": words(found, "p50"),
                "p99, µs": words(found, "p99"),
                "p99.9, µs": words(found, "p99.9"),
                "speed of the CPU work": words(found, "work", "%", 100) if found.work.notna().any() else "–",
                "cores, most often": cores_words(found),
            }
        )
    return pd.DataFrame(rows).fillna("")


def names(kind: str) -> list[str]:
    """Names of the cases of one section."""
    threads, processes = ([plural(n, what) for n in THREADS] for what in ("thread", "process"))
    return {
        "author": [QUIET, *threads, *processes],
        "pinning": [
            f"{plural(count, 'thread')}, {pinning}" for pinning, counts in PINNED_THREADS.items() for count in counts
        ],
        "strangers": [QUIET, f"{QUIET}, 2 strangers", CONVOY, f"{CONVOY}, 2 strangers"],
        "elsewhere": [QUIET, *threads],
        "help": [
            CONVOY,
            f"{CONVOY}, 0.0001 s",
            f"{CONVOY}, 1e-06 s",
            ONE_CORE,
            PROCESS,
            "1 sub-interpreter",
            "native code without the GIL",
            "asyncio server, 1 CPU thread",
        ],
    }[kind]


def interval_table(runs: pd.DataFrame) -> pd.DataFrame:
    """C4: requests per second by switch interval and number of CPU threads, beside the author's."""
    rows = []
    for interval in INTERVALS:
        published = PUBLISHED_RATES.get(interval)
        row = {"switch interval": duration(interval)}
        for count in INTERVAL_THREADS:
            here = words(done(runs, interpreter=GIL, case=interval_case(count, interval)), "rate")
            row[plural(count, "thread")] = here + (
                f" (published {published[THREADS.index(count)]:,})" if published else ""
            )
        rows.append(row)
    return pd.DataFrame(rows)


def plot_intervals(figure, runs: pd.DataFrame) -> None:
    """C4: the same as a figure, with the author's values as crosses."""
    axes = figure.subplots()
    for count in INTERVAL_THREADS:
        number = THREADS.index(count)
        found = [interval_of(done(runs, interpreter=GIL, case=interval_case(count, i)), "rate") for i in INTERVALS]
        values = [f.value for f in found]
        errors = [[f.value - f.low for f in found], [f.high - f.value for f in found]]
        color = draw.PALETTE[number]
        axes.errorbar(
            INTERVALS, values, yerr=np.abs(errors), fmt="o-", capsize=3, color=color, label=plural(count, "thread")
        )
        axes.plot(
            list(PUBLISHED_RATES),
            [published[number] for published in PUBLISHED_RATES.values()],
            "x",
            color=color,
            label="published" if count == INTERVAL_THREADS[-1] else None,
        )
    axes.set(xscale="log", yscale="log", xlabel="switch interval, s", ylabel="requests per second")
    draw.plain_ticks(axes.yaxis)
    axes.legend(loc="best")


def model_table(runs: pd.DataFrame) -> pd.DataFrame:
    """C10: the time that one CPU thread adds to a request, in switch intervals; the model says 2."""
    rows = []
    for interval in INTERVALS:
        added = added_intervals(runs, interval)
        found = statistics.location_interval(added)
        residual = statistics.location_interval((added - 2) * interval * 1e6)
        rows.append(
            {
                "switch interval": duration(interval),
                "switch intervals added to a request": draw.text(found),
                "measured minus the author's model (2)": draw.text(residual, "µs"),
            }
        )
    return pd.DataFrame(rows)


def plot_model(figure, runs: pd.DataFrame) -> None:
    """C10: time for a request against the switch interval, with lines for one and two intervals a request."""
    axes = figure.subplots()
    base = 1 / np.median(rates(runs, PROCESS))
    line = np.geomspace(min(INTERVALS), max(INTERVALS), 100)
    for calls, style in ((1, ":"), (2, "--")):
        axes.plot(
            line,
            (base + calls * line) * 1e3,
            style,
            label=f"{calls} switch interval{'s' if calls > 1 else ''} a request",
        )
    found = []
    for interval in INTERVALS:
        took = 1e3 / rates(runs, interval_case(1, interval))
        found.append(statistics.location_interval(took))
    errors = [[f.value - f.low for f in found], [f.high - f.value for f in found]]
    axes.errorbar(INTERVALS, [f.value for f in found], yerr=np.abs(errors), fmt="o", capsize=3, label="measured")
    axes.set(xscale="log", yscale="log", xlabel="switch interval, s", ylabel="ms for one request")
    draw.plain_ticks(axes.yaxis)
    axes.legend(loc="best")


def model_words(runs: pd.DataFrame) -> str:
    return "; ".join(": ".join((row[0], row[1])) for row in model_table(runs).itertuples(index=False))


def calls_table(timelines: pd.DataFrame) -> pd.DataFrame:
    """Which of the server's two calls waits for the GIL, how often and how long."""
    paid = results.calls_that_pay(timelines)
    return pd.DataFrame(
        [
            {
                "call": call,
                "share of calls that waited": words(paid[paid.call == call], "share", "%", 100),
                "then for, in switch intervals": words(paid[paid.call == call], "intervals"),
            }
            for call in ("recv", "send")
        ]
    )


def waits_table(waits: pd.DataFrame) -> pd.DataFrame:
    """C8: how long the server in C waits for the GIL once it has asked for it."""
    rows = []
    for label in sorted(set(waits.interpreter)):
        found = done(waits, interpreter=label)
        every = np.concatenate([np.asarray(ns) for ns in found.waits]) / 1e9 / DEFAULT_S
        rows.append(
            {
                "CPython": label,
                "processes": len(found),
                "waits": len(every),
                "median wait of a process, in switch intervals": draw.text(
                    statistics.location_interval(results.gil_waits(waits, label))
                ),
                "shortest": f"{every.min():.2f}",
                "longest": f"{every.max():.2f}",
            }
        )
    return pd.DataFrame(rows)


def plot_timeline(figure, timeline: dict, requests: int = 4) -> None:
    """Who held the GIL during some requests, and one hand-over enlarged: recorded, not drawn by hand."""
    spans = timeline["spans"]
    first = min(3, max(0, len(spans) - requests))
    begin, end = spans[first][0], spans[min(len(spans), first + requests) - 1][1]
    paid = results.waits(timeline)
    paid = paid[(paid.intervals > 0.5) & (paid.end > begin) & (paid.end < end)]
    centre = paid.end.iloc[0] if len(paid) else (begin + end) / 2
    whole, zoom = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    _lanes(whole, timeline, begin, end, 1e6)
    _lanes(zoom, timeline, centre - 150_000, centre + 150_000, 1e3)
    whole.set(xlabel="ms")
    zoom.set(xlabel="µs", title="one hand-over")
    whole.set_yticks([0.5, 1.5, 2.5], ["CPU thread\nruns", "server thread\nin a call", "client waits"])
    figure.legend(*whole.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8)


def _lanes(axes, timeline: dict, begin: int, end: int, unit: float) -> None:
    """Client, server and CPU thread between two moments (ns), in units of so many ns."""

    def bars(spans, lane, color, label=None):
        shown = [(max(a, begin), min(b, end)) for a, b in spans if b > begin and a < end]
        axes.broken_barh(
            [((a - begin) / unit, (b - a) / unit) for a, b in shown], (lane, 0.8), color=color, label=label
        )

    bars(timeline["spans"], 2.1, draw.PALETTE[4])
    calls = results.waits(timeline)
    for call, color in (("recv", draw.PALETTE[1]), ("send", draw.PALETTE[2])):
        part = calls[calls.call == call]
        bars(zip(part.begin, part.end, strict=True), 1.1, color, f"{call}: until it has the GIL again")
    edges = [begin, *(moment for gap in timeline["gaps"] for moment in gap if begin < moment < end), end]
    inside = [a < begin < b for a, b in timeline["gaps"]]
    held = edges[1:] if any(inside) else edges
    bars(zip(held[0::2], held[1::2], strict=False), 0.1, draw.PALETTE[0])
    axes.set(ylim=(0, 3), xlim=(0, (end - begin) / unit))
    axes.grid(axis="y", visible=False)


def false_alarm(runs: pd.DataFrame) -> pd.DataFrame:
    """The running A/A test: one CPU thread against a second copy of the same."""
    found = ratio(rates(runs, AGAIN), rates(runs, CONVOY))
    return pd.DataFrame(
        [
            {
                "requests/s, same / same": draw.text(found.interval),
                f"effect that is found in {POWER:.0%} of all runs": f"{found.mde:.1%}",
                "false alarm": "yes" if found.interval.excludes(1) else "no",
            }
        ]
    )


def countdown_words(counts: pd.DataFrame) -> str:
    """What a short interval does to eight threads and what to one, each pair within its processes. A sentence."""
    pairs = {count: [results.steps(counts, count, s) for s in (SHORTEST_S, DEFAULT_S)] for count in (1, 8)}
    one, eight = (ratio(*pairs[count]).interval for count in (1, 8))
    says = f"At {duration(SHORTEST_S)} the same work takes {draw.text(eight)} times as long as at {duration(DEFAULT_S)} with eight threads"
    if eight.low > 1:
        says += ": each hand-over of the GIL costs something, and there are many more of them"
    elif eight.high < 1:
        says += ", which is less: more hand-overs cost nothing here"
    else:
        says += ", which this run cannot tell from no difference"
    return f"{says}. With a single thread, which nobody else asks for the GIL, it is {draw.text(one)}."


def glue_rates(runs: pd.DataFrame) -> None:
    """Hand the rates, and what a CPU thread adds to a request, to the prose."""
    for name, (label, cases) in RATES.items():
        for case in cases:
            draw.glue(f"rate-{case}-{name}", words(done(runs, interpreter=label, case=case), "rate", "requests/s"))
    draw.glue("added", draw.text(statistics.location_interval(added_intervals(runs, DEFAULT_S)), "switch intervals"))
    floor = added_intervals(runs, min(INTERVALS)) * min(INTERVALS) * 1e6
    draw.glue("floor", draw.text(statistics.location_interval(floor), "µs"))
    draw.glue("idle-words", idle_words(runs))


def glue_waits(timelines: pd.DataFrame) -> None:
    """Hand the shares of calls that waited to the prose."""
    paid = results.calls_that_pay(timelines)
    for call in ("recv", "send"):
        draw.glue(f"pays-{call}", words(paid[paid.call == call], "share", "%", 100))
    draw.glue("pays-both", draw.text(statistics.location_interval(results.waits_a_request(paid))))


def idle_words(runs: pd.DataFrame) -> str:
    """Is the server slower on an idle machine than beside a CPU process? A sentence."""
    found = ratio(rates(runs, PROCESS), rates(runs, QUIET))
    if found.interval.low > 1:
        return (
            f"Here the server answers {draw.text(found.interval)} times as many requests beside a CPU process as alone. An "
            "explanation, not tested: alone, client and server put each other's core to sleep and wake it up again with every "
            "byte, and a CPU process keeps the cores awake."
        )
    if found.interval.high < 1:
        return (
            f"Here a CPU process takes requests from the server: beside it, {draw.text(found.interval)} of those alone."
        )
    return f"Whether a CPU process changes the server's rate cannot be told here: by a factor of {draw.text(found.interval)}."


def references_table(references: pd.DataFrame) -> pd.DataFrame:
    """An illustration to C9: reference counts by the owner and by another thread."""
    return pd.DataFrame(
        [
            {
                "reference count up and down by": who,
                "ns": draw.text(statistics.location_interval(references[column].to_numpy())),
            }
            for who, column in (("the thread that made the object", "owner"), ("another thread, atomically", "foreign"))
        ]
    )
