"""What the chapter "The GIL convoy" shows: tables, figures and the texts that its prose takes up."""

from collections import Counter

import numpy as np
import pandas as pd

from ffilab import draw
from ffilab.corners.convoy import (
    AGAIN,
    CONVOY,
    COUNT_INTERVALS,
    COUNT_THREADS,
    DEFAULT_S,
    INTERVALS,
    KERNEL,
    PINNED_THREADS,
    PUBLISHED_RATES,
    QUIET,
    THREADS,
    WITHOUT_GIL,
    added_intervals,
    calls_that_pay,
    plural,
    rates,
    waits,
)
from ffilab.judge import statistics
from ffilab.judge.processes import chosen, interval_of, ratio

NOT_HERE = "not measured here"
FEW = "too few requests"


def words(frame: pd.DataFrame, column: str, unit: str = "", factor: float = 1, **which) -> str:
    """Trimmed mean of a column with its interval in words."""
    found = interval_of(frame, column, **which)
    if found is None:
        return FEW if len(chosen(frame, **which)) else NOT_HERE
    return draw.text(found, unit, factor)


def seconds_table(frame: pd.DataFrame, **which) -> pd.DataFrame:
    """Milliseconds by number of threads, a row for each kernel (and interval, where there is one)."""
    rows = []
    for label in sorted(set(frame.kernel)):
        for interval in COUNT_INTERVALS if "interval" in frame else (None,):
            case = {"kernel": label, **({"interval": [interval]} if interval else {}), **which}
            row = {"CPython": label, **({"switch interval": f"{interval:g} s"} if interval else {})}
            for threads in COUNT_THREADS:
                row[plural(threads, "thread").replace("CPU ", "")] = words(
                    frame, "seconds", "ms", 1e3, threads=[threads], **case
                )
            rows.append(row)
    return pd.DataFrame(rows)


def cores_words(runs: pd.DataFrame, label: str, case: str) -> str:
    """Who sat where at the end, in the most frequent of the processes."""
    seats = Counter()
    for cores in chosen(runs, kernel=label, case=case).cores:
        # None: the thread could not say; it was still waiting for the GIL.
        seat = lambda core: "?" if core is None else str(core)  # noqa: E731
        parts = [f"client {seat(cores['client'])}", f"server {seat(cores['server'])}"]
        if cores["CPU work"]:
            parts.append("work " + " ".join(sorted(map(seat, cores["CPU work"]))))
        seats[", ".join(parts)] += 1
    return seats.most_common(1)[0][0] if seats else NOT_HERE


def echo_table(runs: pd.DataFrame, label: str, names: list[str]) -> pd.DataFrame:
    """Rate, latencies, what is left of the CPU work, and who sat on which core."""
    rows = []
    for case in names:
        which = {"kernel": label, "case": case}
        if not len(chosen(runs, **which)):
            if len(chosen(runs, kernel=label)):
                rows.append({"case": case, "requests/s": "no result: the record says how it ended"})
            continue
        rows.append(
            {
                "case": case,
                "requests/s": words(runs, "rate", **which),
                "p50, µs": words(runs, "p50", **which),
                "p99, µs": words(runs, "p99", **which),
                "p99.9, µs": words(runs, "p99.9", **which),
                "speed of the CPU work": words(runs, "work", "%", 100, **which) if case != QUIET else "–",
                "cores, most often": cores_words(runs, label, case),
            }
        )
    return pd.DataFrame(rows).fillna("")


def names(kind: str) -> list[str]:
    """Names of the cases of one section."""
    threads, processes = ([plural(n, what) for n in THREADS] for what in ("thread", "process"))
    return {
        "author": [QUIET, *threads, *processes],
        "pinning": [
            f"{plural(count, 'thread')}, {pin}" for pin in ("one core", "client apart") for count in PINNED_THREADS
        ],
        "strangers": [QUIET, f"{QUIET}, 2 strangers", CONVOY, f"{CONVOY}, 2 strangers"],
        "elsewhere": [QUIET, *threads],
        "help": [
            CONVOY,
            f"{CONVOY}, 0.0001 s",
            f"{CONVOY}, 1e-06 s",
            f"{CONVOY}, one core",
            "1 CPU process",
            "1 sub-interpreter",
            "native code without the GIL",
            "asyncio server, 1 CPU thread",
        ],
    }[kind]


def interval_case(count: int, interval: float) -> str:
    return plural(count, "thread") + ("" if interval == DEFAULT_S else f", {interval:g} s")


def interval_table(runs: pd.DataFrame) -> pd.DataFrame:
    """C4: requests per second by switch interval and number of CPU threads, beside the author's."""
    rows = []
    for interval in INTERVALS:
        published = PUBLISHED_RATES.get(interval)
        row = {"switch interval": f"{interval:g} s"}
        for number, count in enumerate(THREADS):
            here = words(runs, "rate", kernel=KERNEL, case=interval_case(count, interval))
            row[plural(count, "thread")] = here + (f" (published {published[number]:,})" if published else "")
        rows.append(row)
    return pd.DataFrame(rows)


def plot_intervals(figure, runs: pd.DataFrame) -> None:
    """C4: the same as a figure, with the author's values as crosses."""
    axes = figure.subplots()
    for number, count in enumerate(THREADS):
        found = [interval_of(runs, "rate", kernel=KERNEL, case=interval_case(count, i)) for i in INTERVALS]
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
            label="published" if count == THREADS[-1] else None,
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
                "switch interval": f"{interval:g} s",
                "switch intervals added to a request": draw.text(found),
                "measured minus the author's model (2)": draw.text(residual, "µs"),
            }
        )
    return pd.DataFrame(rows)


def plot_model(figure, runs: pd.DataFrame) -> None:
    """C10: time for a request against the switch interval, with lines for one and two intervals a request."""
    axes = figure.subplots()
    base = 1 / np.median(rates(runs, "1 CPU process"))
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


def calls_table(found: list[dict]) -> pd.DataFrame:
    """C8: which of the server's two calls waits for the GIL, how often and how long."""
    paid = calls_that_pay(found)
    return pd.DataFrame(
        [
            {
                "call": call,
                "share of calls that waited": words(paid, "share", "%", 100, call=call),
                "then for, in switch intervals": words(paid, "intervals", call=call),
            }
            for call in ("recv", "send")
        ]
    )


def plot_timeline(figure, timeline: dict, requests: int = 4) -> None:
    """Who held the GIL during some requests, and one hand-over enlarged: recorded, not drawn by hand."""
    spans = timeline["spans"]
    first = min(3, max(0, len(spans) - requests))
    begin, end = spans[first][0], spans[min(len(spans), first + requests) - 1][1]
    paid = waits(timeline)
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
    calls = waits(timeline)
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
                "smallest effect to be found": f"{found.mde:.1%}",
                "false alarm": "yes" if found.interval.excludes(1) else "no",
            }
        ]
    )


def glue(runs: pd.DataFrame, found: list[dict]) -> None:
    """Hand the numbers that the prose names to it."""
    for case in (QUIET, CONVOY, "1 CPU process", f"{CONVOY}, one core", f"{CONVOY}, client apart"):
        draw.glue(f"rate-{case}", words(runs, "rate", "requests/s", kernel=KERNEL, case=case))
    for case in (QUIET, CONVOY):
        draw.glue(f"t-rate-{case}", words(runs, "rate", "requests/s", kernel=WITHOUT_GIL, case=case))
    draw.glue("added", draw.text(statistics.location_interval(added_intervals(runs, DEFAULT_S)), "switch intervals"))
    paid = calls_that_pay(found)
    for call in ("recv", "send"):
        draw.glue(f"pays-{call}", words(paid, "share", "%", 100, call=call))
    both = paid.assign(process=paid.groupby("call").cumcount()).groupby("process").share.sum()
    draw.glue("pays-both", draw.text(statistics.location_interval(both.to_numpy())))
    floor = added_intervals(runs, min(INTERVALS)) * min(INTERVALS) * 1e6
    draw.glue("floor", draw.text(statistics.location_interval(floor), "µs"))
    draw.glue("idle-words", idle_words(runs))


def idle_words(runs: pd.DataFrame) -> str:
    """Is the server slower on an idle machine than beside a CPU process? A sentence."""
    found = ratio(rates(runs, "1 CPU process"), rates(runs, QUIET))
    if found.interval.low > 1:
        return (
            f"On this machine the server is *slower* when nothing else runs, by a factor of {draw.text(found.interval)}: "
            "client and server put each other's core to sleep and wake it up again with every byte, and a virtual "
            "machine pays dearly for that. A CPU process keeps the cores awake."
        )
    return "A CPU process does not make the server faster on this machine."


def references_table(references: pd.DataFrame) -> pd.DataFrame:
    """C9: reference counts by the owner and by another thread."""
    return pd.DataFrame(
        [
            {
                "reference count up and down by": who,
                "ns": draw.text(statistics.location_interval(references[column].to_numpy())),
            }
            for who, column in (("the thread that made the object", "owner"), ("another thread, atomically", "foreign"))
        ]
    )
