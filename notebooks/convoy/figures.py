"""What the chapter "The GIL convoy" shows: tables and figures."""

from collections import Counter

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.judge.processes import chosen, location, ratio
from ffilab.page import draw
from ffilab.setup.catalogue import GIL
from notebooks.convoy import results
from notebooks.convoy.experiment import DEFAULT_S, PUBLISHED_BYTES, PUBLISHED_STEPS
from notebooks.convoy.results import (
    APART,
    ARMS,
    AWAKE,
    CONVOY,
    COROUTINE,
    INTERPRETER,
    NATIVE,
    NO_DELAY,
    ONE_CORE,
    PLACES,
    PROCESS,
    QUIET,
    RELIEVED,
    SPLIT,
    STRANGERS,
    TOGETHER,
    calls_that_wait,
    done,
    positive,
)

WORK = "speed of the CPU work, %"
FEW = "too few requests"
NOT_PUBLISHED = "not published"
NONE = "–"  # the author had no free-threaded build
# What the author measured: requests per second by switch interval (s) and number of CPU threads (C4).
PUBLISHED_RATES = {
    0.1: {0: 30_000, 1: 5, 2: 2, 4: 0},
    0.01: {0: 30_000, 1: 50, 2: 30, 4: 15},
    0.005: {0: 30_000, 1: 100, 2: 50, 4: 30},
    1e-3: {0: 30_000, 1: 500, 2: 280, 4: 200},
    1e-4: {0: 30_000, 1: 3_200, 2: 1_700, 4: 1_000},
    1e-5: {0: 30_000, 1: 11_000, 2: 5_500, 4: 2_800},
    1e-6: {0: 30_000, 1: 10_000, 2: 4_500, 4: 2_500},
}
# Seconds for 1e8 steps by switch interval and number of threads (C5).
PUBLISHED_COUNTDOWNS = {
    0.1: {1: 7.29, 2: 6.80, 4: 6.50, 8: 6.61},
    0.01: {1: 6.62, 2: 6.61, 4: 7.15, 8: 6.71},
    0.005: {1: 6.53, 2: 6.58, 4: 7.20, 8: 7.19},
    1e-3: {1: 7.02, 2: 7.36, 4: 7.56, 8: 7.12},
    1e-4: {1: 6.77, 2: 9.20, 4: 9.36, 8: 9.84},
    1e-5: {1: 6.68, 2: 12.29, 4: 19.15, 8: 30.53},
    1e-6: {1: 6.89, 2: 17.16, 4: 31.68, 8: 86.44},
}
# The same as the post has it first, at the default interval (C1).
PUBLISHED_AS_RUN = {1: 6.52, 2: 6.57, 4: 6.59, 8: 6.58}
# Seconds for 8 x 128 MB by number of threads (C2).
PUBLISHED_HASHES = {1: 3.30, 2: 1.68, 4: 1.50, 8: 1.60}
# Requests per second by case (C3, C6).
PUBLISHED_CASES = {
    QUIET: "30,000",
    CONVOY: "100",
    PROCESS: "20,000",
    "2 CPU processes": "about the same",
    "4 CPU processes": "about the same",
    TOGETHER: "24,000",
    ONE_CORE: "12,000",
    "2 CPU threads, one core": "3,000",
    "4 CPU threads, one core": "30",
    "8 CPU threads, one core": "10",
}
# The cases of each section, in the order of its table. What a reader adds stands at the end of the first one.
SECTIONS = {
    "author": [QUIET, CONVOY, PROCESS, "2 CPU processes", "4 CPU processes"],
    "pinning": [
        TOGETHER,
        ONE_CORE,
        *(f"{count} CPU threads, one core" for count in (2, 4, 8)),
        SPLIT,
        APART,
        f"{CONVOY}, server on one core",
    ],
    "strangers": [QUIET, "2 CPU processes", CONVOY, STRANGERS],
    "alone": [QUIET, TOGETHER, NO_DELAY, SPLIT, AWAKE, PROCESS],
    "elsewhere": [QUIET, CONVOY],
    "help": [CONVOY, RELIEVED, ONE_CORE, PROCESS, INTERPRETER, NATIVE, COROUTINE],
}
# Where an interval reaches so many times as far up as down, the values are printed, from the smallest to the largest.
FAR = 10


def share(values: np.ndarray) -> Interval | None:
    """Centre of shares over processes; what lies below 0 or above 1 is no part of the interval."""
    found = location(values, "")
    return found and found.interval.map(lambda bound: float(np.clip(bound, 0, 1)))


def cell(rows: pd.DataFrame, column: str, unit: str = "", factor: float = 1) -> str:
    """Centre of a column of rates or times, with its interval, in words: too few requests where no process has it, and the values
    themselves where an interval would span more than a factor of FAR."""
    values = pd.to_numeric(rows[column]).dropna().to_numpy()
    found = positive(values)
    if found and FAR < found.reach < float("inf"):
        return f"from {min(values) * factor:,.0f} to {max(values) * factor:,.0f} {unit}".strip()
    return FEW if found is None and len(rows) else draw.words(found, unit, factor)


def quantile(rows: pd.DataFrame, column: str) -> str:
    """The same for a quantile: only if all processes have it, as those with requests enough are the fast ones."""
    return FEW if rows[column].isna().any() else cell(rows, column)


def requests(rows: pd.DataFrame) -> str:
    """Processes, and the fewest and most requests of one."""
    least, most = int(rows.requests.min()), int(rows.requests.max())
    return f"{len(rows)} × {least:,}" + (f" to {most:,}" if most > least else "")


def duration(seconds: float) -> str:
    """A switch interval in words: `5 ms`."""
    return f"{seconds * 1e3:g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:g} µs"


def in_order(frame: pd.DataFrame, column: str, *more: float) -> list:
    """The values of a column, and more, each once."""
    return sorted({*frame[column].dropna(), *more})


def threads(count: int) -> str:
    return f"{count:.0f} thread{'s' * (count != 1)}"


def cpu_threads(count: int) -> str:
    return threads(count).replace(" ", " CPU ")


def as_run_table(whole: pd.DataFrame) -> pd.DataFrame:
    """C1 as run: milliseconds by number of threads, and these over one thread, beside the author's seconds."""
    one, his = done(whole, threads=1).seconds.to_numpy(), PUBLISHED_AS_RUN
    return pd.DataFrame(
        [
            {
                "threads": count,
                "time, ms": cell(found := done(whole, threads=count), "seconds", factor=1e3),
                "over one thread": draw.words(ratio(found.seconds.to_numpy(), one)) if count > 1 else "1 (itself)",
                "published, s": f"{his[count]:.2f}" if count in his else NOT_PUBLISHED,
                "published, over one thread": f"{his[count] / his[1]:.2f}" if count in his else NOT_PUBLISHED,
                "n (processes)": len(found),
            }
            for count in in_order(whole, "threads")
        ]
    )


def countdown_table(counts: pd.DataFrame) -> pd.DataFrame:
    """C1, C5: ns a step by number of threads, beside the author's (his seconds over his steps)."""
    rows = []
    for label in sorted(set(counts.interpreter)):
        for length in reversed(in_order(counts, "interval", *PUBLISHED_COUNTDOWNS)):
            found = done(counts, interpreter=label, interval=[length])
            # Which of the author's rows this budget leaves out, is seen.
            if not len(found) and (label, length) != (GIL, 0.1):
                continue
            row = {"CPython": label, "switch interval": duration(length), "n (processes)": found.process.nunique()}
            for count in in_order(counts, "threads"):
                row[f"{threads(count)}, ns"] = cell(chosen(found, threads=count), "ns")
                his = PUBLISHED_COUNTDOWNS.get(length, {}).get(count)
                published = f"{his / PUBLISHED_STEPS * 1e9:.1f}" if his else NOT_PUBLISHED
                row[f"published, {count:.0f}"] = NONE if label.endswith("t") else published
            rows.append(row)
    return pd.DataFrame(rows)


def scale(counts: pd.DataFrame, hashed: pd.DataFrame) -> pd.DataFrame:
    """How much smaller the work is than the author's."""
    rows = []
    for count in in_order(counts, "threads"):
        found = chosen(counts[counts.interpreter == GIL], threads=count).steps.dropna()
        if len(found):
            rows.append((f"countdown, {threads(count)}, steps", PUBLISHED_STEPS, found.iloc[0]))
    size = hashed[hashed.interpreter == GIL]["bytes"].dropna()
    if len(size):
        rows.append(("SHA-256, bytes a message", PUBLISHED_BYTES, size.iloc[0]))
    return pd.DataFrame(
        [
            {
                "work": what,
                "published": f"{his:,}",
                "here": f"{here:,.0f}",
                "smaller by a factor of": f"{his / here:,.0f}",
            }
            for what, his, here in rows
        ]
    )


def seconds_table(hashed: pd.DataFrame) -> pd.DataFrame:
    """C2: milliseconds by number of threads, and how many times as fast that is as one thread, beside the author's."""
    rows = []
    for label in sorted(set(hashed.interpreter)):
        one = done(hashed, interpreter=label, threads=1).seconds.to_numpy()
        for count in in_order(hashed, "threads"):
            found, his = done(hashed, interpreter=label, threads=count), PUBLISHED_HASHES.get(count)
            published = (f"{his:.2f}", f"{PUBLISHED_HASHES[1] / his:.2f}") if his else [NOT_PUBLISHED] * 2
            published = [NONE] * 2 if label.endswith("t") else published
            rows.append(
                {
                    "CPython": label,
                    "threads": count,
                    "time, ms": cell(found, "seconds", factor=1e3),
                    "one thread / these": "1 (itself)"
                    if count == 1
                    else draw.words(ratio(one, found.seconds.to_numpy())),
                    "published, s": published[0],
                    "published, one thread / these": published[1],
                    "n (processes)": len(found),
                }
            )
    return pd.DataFrame(rows)


def cores_words(rows: pd.DataFrame) -> str:
    """Who sat where at the end, in the most frequent of these processes."""
    seats = Counter()
    for row in rows.to_dict("records"):
        parts = [f"client {seat(row['cores.client'])}", f"server {seat(row['cores.server'])}"]
        if row["cores.CPU work"]:
            work = Counter(sorted(map(seat, row["cores.CPU work"])))
            parts.append("work " + " ".join(f"{core} ({n} times)" if n > 1 else core for core, n in work.items()))
        seats[", ".join(parts)] += 1
    return seats.most_common(1)[0][0] if seats else draw.NOT_MEASURED


def seat(core: float | None) -> str:
    """Number of a core; a question mark if the thread could not say: it was still waiting for the GIL."""
    return "?" if core is None or np.isnan(core) else f"{core:.0f}"


def echo_table(runs: pd.DataFrame, label: str, kind: str) -> pd.DataFrame:
    """Rate, latencies, what is left of the CPU work, and who sat on which core, for the cases of one section."""
    rows = []
    for case in cases_of(runs, kind):
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
                "requests/s": cell(found, "rate"),
                "published": PUBLISHED_CASES.get(case, NOT_PUBLISHED),
                "n (processes × requests)": requests(found),
                "p50, µs": quantile(found, "p50"),
                "p99, µs": quantile(found, "p99"),
                "p99.9, µs": quantile(found, "p99.9"),
                WORK: cell(found, "work", factor=100) if found.work.notna().any() else "no CPU work",
                "cores, most often": cores_words(found),
            }
        )
    # The author had this interpreter only; and strangers disturb the work before the requests, too.
    left_out = {"published": label != GIL, WORK: kind == "strangers"}
    left_out = [column for column, left in left_out.items() if left]
    return pd.DataFrame(rows).fillna("").drop(columns=left_out, errors="ignore")


def cases_of(runs: pd.DataFrame, kind: str) -> list[str]:
    """Names of the cases of one section; the first one's are followed by those that belong to none."""
    known = {case for section in SECTIONS.values() for case in section}
    return SECTIONS[kind] + (sorted(set(runs.case) - known) if kind == "author" else [])


def interval_table(sweeps: pd.DataFrame) -> pd.DataFrame:
    """C4: requests per second by switch interval and number of CPU threads, beside the author's."""
    rows = []
    for length in reversed(in_order(sweeps, "interval", *PUBLISHED_RATES)):
        row = {"switch interval": duration(length)}
        for count in in_order(sweeps, "count"):
            found, his = done(sweeps, interval=[length], count=count), PUBLISHED_RATES.get(length, {}).get(count)
            row[f"{cpu_threads(count)}, requests/s"] = cell(found, "rate")
            row[f"published, {count}"] = NOT_PUBLISHED if his is None else f"{his:,}"
            row[f"n, {count}"] = requests(found) if len(found) else draw.NOT_MEASURED
        rows.append(row)
    return pd.DataFrame(rows)


def interval_rates(sweeps: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws."""
    rows = []
    for count in in_order(sweeps, "count"):
        for length in reversed(in_order(sweeps, "interval")):
            found = positive(results.swept(sweeps, "rate", length, count=count))
            if found:
                rows.append(
                    {
                        "CPU threads": count,
                        "interval_s": length,
                        "value": found.value,
                        "low": found.low,
                        "high": found.high,
                        "published": PUBLISHED_RATES.get(length, {}).get(count),
                    }
                )
    return pd.DataFrame(rows)


def plot_intervals(figure, found: pd.DataFrame) -> None:
    """C4: the same as a figure, with the author's values as crosses."""
    axes = figure.subplots()
    for number, (count, part) in enumerate(found.groupby("CPU threads")):
        color = draw.PALETTE[number]
        errors = np.array([part.value - part.low, part.high - part.value])
        errors = np.minimum(np.nan_to_num(np.abs(errors)), [part.value * 0.99, errors[1] * 0 + np.inf])
        look = {"fmt": f"{draw.MARKERS[number]}-", "color": color}
        axes.errorbar(part.interval_s, part.value, yerr=errors, capsize=3, label=cpu_threads(count), **look)
        shown = part[part.published > 0]
        axes.plot(shown.interval_s, shown.published, "x", color=color)
    axes.plot([], [], "x", color=draw.PALETTE[5], label="published")
    axes.set(xscale="log", yscale="log", xlabel="switch interval, s", ylabel="requests per second")
    draw.plain_ticks(axes.yaxis)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)


def shorter_intervals(slacks: pd.DataFrame) -> list[float]:
    """Those below the default, the longest first: there the slack matters."""
    return [length for length in reversed(in_order(slacks, "interval")) if length < DEFAULT_S]


def excesses(slacks: pd.DataFrame) -> pd.DataFrame:
    """What a request takes beyond one switch interval, by interval and arm: values of processes and their interval."""
    rows = []
    for arm, which in ARMS.items():
        for length in shorter_intervals(slacks):
            values = results.excess(slacks, length, *which)
            if len(values):
                found = statistics.location_interval(values)
                row = {
                    "timer slack": arm,
                    "interval_s": length,
                    "value": found.value,
                    "low": found.low,
                    "high": found.high,
                }
                rows.append({**row, "n": len(values)})
    return pd.DataFrame(rows, columns=["timer slack", "interval_s", "value", "low", "high", "n"])


TICKS_US = (0, 50, 100, 150, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


def plot_excess(figure, found: pd.DataFrame) -> None:
    """Excess over one interval against the interval."""
    axes = figure.subplots()
    for number, (slack, part) in enumerate(found.groupby("timer slack", sort=False)):
        errors = np.nan_to_num(np.abs([part.value - part.low, part.high - part.value]))
        axes.errorbar(
            part.interval_s * 1.06 ** (2 * number - 2),
            part.value,
            yerr=errors,
            fmt=draw.MARKERS[number],
            capsize=4,
            color=draw.PALETTE[number],
            label=slack,
        )
    axes.axhline(0, color=draw.PALETTE[5], linewidth=1)
    axes.axhline(50, color=draw.PALETTE[5], linewidth=1, linestyle=":", label="Linux's default slack, 50 µs")
    axes.set(xscale="log", xlabel="switch interval, s", ylabel="µs beyond one interval (p50)")
    # Linear up to 200 µs; where a request takes a second interval, its excess is that interval.
    axes.set_yscale("symlog", linthresh=200, linscale=2)
    top = max(200, found.high.fillna(found.value).max()) if len(found) else 200
    axes.set_yticks([tick for tick in TICKS_US if tick <= 1.5 * top], minor=False)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylim(-20, 1.5 * top)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2)


def slack_table(slacks: pd.DataFrame) -> pd.DataFrame:
    """C4: what a request takes beyond one interval, with and without timer slack."""
    rows = []
    for length in shorter_intervals(slacks):
        row = {"switch interval": duration(length)}
        for arm, which in ARMS.items():
            found = results.excess(slacks, length, *which)
            row[f"{arm}, µs"] = draw.words(location(found, "")) if len(found) else draw.NOT_MEASURED
            row[f"n, {arm}"] = len(found)
        rows.append(row)
    return pd.DataFrame(rows)


def operations(timelines: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: the share of requests in which no call of the server waited for the GIL, one, and both, by place."""
    found = {where: calls_that_wait(timelines, place) for place, where in PLACES.items()}
    return pd.DataFrame(
        [
            {"place": where, "waits": waited, "share": calls[waited].mean()}
            for where, calls in found.items()
            if len(calls)
            for waited in (0, 1, 2)
        ],
        columns=["place", "waits", "share"],
    )


def plot_operations(figure, found: pd.DataFrame) -> None:
    """Bars of shares that add up to all requests."""
    axes, places = figure.subplots(), list(dict.fromkeys(found.place))[::-1]
    begin = np.zeros(len(places))
    for waited, part in found.groupby("waits"):
        shares = 100 * part.set_index("place").share.reindex(places).to_numpy()
        axes.barh(places, shares, 0.6, begin, color=draw.PALETTE[waited], label=("none", "one", "both")[waited])
        begin += shares
    axes.set(xlabel="% of requests, by how many of the two calls waited", xlim=(0, 100))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)


def operations_table(timelines: pd.DataFrame) -> pd.DataFrame:
    """C10: which calls wait for the GIL, how often and how long, by where the server's two threads run."""
    rows = []
    for place, where in PLACES.items():
        found = calls_that_wait(timelines, place)
        if not len(found):
            continue
        row = {"the server's threads": where}
        for call in ("recv", "send"):
            row[f"{call} waits, %"] = draw.words(share(found[call].to_numpy()), factor=100)
            row[f"{call}, then for, in switch intervals"] = (
                cell(found, f"{call}, then") if found[f"{call}, then"].any() else "never"
            )
        row |= {
            f"requests with {waited} waits, %": draw.words(share(found[waited].to_numpy()), factor=100)
            for waited in (0, 1, 2)
        }
        row |= {"lost by a request, in switch intervals": cell(found, "lost"), "n (processes)": len(found)}
        rows.append(row)
    return pd.DataFrame(rows)


def forced_table(forcing: pd.DataFrame) -> pd.DataFrame:
    """C8: who had the GIL first after it was let go of."""
    return pd.DataFrame(
        [
            {
                "let go": what,
                "the waiting thread was first, %": draw.words(share(done(forcing)[column].to_numpy()), factor=100),
                "n (processes)": len(done(forcing)),
            }
            for what, column in (("on demand", "demanded"), ("before a demand", "free"))
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


LANES = ("client", "server", "CPU thread")
RUNS, RESTS = "runs: it has the GIL", "does not run"


def timeline_bars(timeline: dict, shown: int = 3) -> pd.DataFrame:
    """Some requests as bars: lane, what, begin and end in ms. The requests begin at a wait of the server, if there is one."""
    spans, calls = timeline["spans"], results.waits(timeline)
    paid = calls[calls.intervals > 0.5]
    after = paid.begin.iloc[0] if len(paid) else spans[0][0]
    first = max(0, sum(start <= after for start, _ in spans) - 1)
    window = spans[first : first + shown]
    begin, end = window[0][0], window[-1][1]
    bars = [("client", f"request {number}", *span) for number, span in enumerate(window, 1)]
    bars += [("server", f"{row.call} waits", row.begin, row.end) for row in calls.itertuples()]
    held = [edge for gap in timeline["gaps"] for edge in gap]
    edges = [spans[0][0], *held, spans[-1][1]]
    bars += [("CPU thread", RUNS, *pair) for pair in zip(edges[0::2], edges[1::2], strict=True)]
    bars += [("CPU thread", RESTS, *gap) for gap in timeline["gaps"]]
    return pd.DataFrame(
        [
            {
                "lane": lane,
                "what": what,
                "begin_ms": (max(a, begin) - begin) / 1e6,
                "end_ms": (min(b, end) - begin) / 1e6,
            }
            for lane, what, a, b in bars
            if b > begin and a < end and b > a
        ]
    )


def plot_timeline(figure, bars: pd.DataFrame) -> None:
    """A Gantt chart of some requests: recorded, not drawn by hand. An arrow stands at each hand-over, which is too short to see."""
    axes = figure.subplots()
    colors = {
        "recv waits": draw.PALETTE[1],
        "send waits": draw.PALETTE[2],
        RUNS: draw.PALETTE[0],
        RESTS: draw.PALETTE[5],
    }
    named = set()
    for row in bars.itertuples():
        lane = len(LANES) - 1 - LANES.index(row.lane)
        name = None if row.lane == "client" or row.what in named else row.what
        named.add(row.what)
        axes.barh(
            lane,
            row.end_ms - row.begin_ms,
            0.6,
            row.begin_ms,
            color=colors.get(row.what, draw.PALETTE[4]),
            edgecolor="white",
            linewidth=1.5 if row.lane == "client" else 0,
            label=name,
        )
        if row.lane == "client" and row.end_ms - row.begin_ms > bars.end_ms.max() / 8:
            axes.text(
                (row.begin_ms + row.end_ms) / 2, lane, row.what, ha="center", va="center", color="black", fontsize=10
            )
        if row.what == RESTS:
            axes.annotate(
                "",
                (row.begin_ms, lane + 0.3),
                (row.begin_ms, lane + 0.62),
                arrowprops={"arrowstyle": "->", "color": colors[row.what]},
            )
    axes.set_yticks(range(len(LANES)), LANES[::-1])
    axes.set(xlabel="ms", xlim=(0, bars.end_ms.max()), ylim=(-0.5, len(LANES) - 0.5))
    axes.grid(axis="y", visible=False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4)


def references_table(references: pd.DataFrame) -> pd.DataFrame:
    """An illustration to C9: reference counts by the owner and by another thread."""
    return pd.DataFrame(
        [
            {
                "reference count up and down by": who,
                "ns": draw.text(positive(references[column].to_numpy())),
                "n (processes)": len(references),
            }
            for who, column in (("the thread that made the object", "owner"), ("another thread, atomically", "foreign"))
        ]
    )
