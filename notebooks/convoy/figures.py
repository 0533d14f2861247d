"""What the chapter "The GIL convoy" shows: tables and figures."""

import itertools
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd

from ffilab.judge.estimates import Estimate, Location
from ffilab.judge.processes import chosen, positive, ratio
from ffilab.page import draw
from ffilab.page.player import between, clipped
from ffilab.setup.catalogue import GIL
from notebooks.convoy import numbers as n
from notebooks.convoy.experiment import DEFAULT_S
from notebooks.convoy.numbers import done

WORK, STEP = "core time of the work, %", "ns of a step"
FEW = "too few requests"
NOT_PUBLISHED = "not published"
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
# Seconds by number of threads, for 1e8 steps (C1) and for 8 x 128 MB (C2).
PUBLISHED_AS_RUN = {1: 6.52, 2: 6.57, 4: 6.59, 8: 6.58}
# The same at 1 µs over 5 ms (C5).
PUBLISHED_AT_SHORTEST = {1: 6.89 / 6.53, 8: 86.44 / 7.19}
PUBLISHED_HASHES = {1: 3.30, 2: 1.68, 4: 1.50, 8: 1.60}
# Requests per second by case (C3, C6).
PUBLISHED_CASES = {
    n.QUIET: "30,000",
    n.CONVOY: "100",
    n.PROCESS: "20,000",
    "2 CPU processes": "about the same",
    "4 CPU processes": "about the same",
    n.TOGETHER: "24,000",
    n.ON_ONE_CORE: "12,000",
    "2 CPU threads, one core": "3,000",
    "4 CPU threads, one core": "30",
    "8 CPU threads, one core": "10",
}
CROWDED = [f"{count} CPU threads, one core" for count in (2, 4, 8)]
# The loads of each section, in the order of its table. What a reader adds stands at the end of the first one.
SECTIONS = {
    "author": [n.QUIET, n.CONVOY, n.AGAIN, n.PROCESS, "2 CPU processes", "4 CPU processes"],
    "pinning": [n.TOGETHER, n.ON_ONE_CORE, *CROWDED, n.SPLIT, n.APART, f"{n.CONVOY}, server on one core"],
    "strangers": [n.QUIET, "2 CPU processes", n.CONVOY, n.STRANGERS],
    "alone": [n.QUIET, n.TOGETHER, n.NO_DELAY, n.SPLIT, n.AWAKE, n.PROCESS],
    "every build": [n.QUIET, n.CONVOY],
    "help": [n.CONVOY, n.RELIEVED, n.ON_ONE_CORE, n.PROCESS, n.INTERPRETER, n.NATIVE, n.COROUTINE],
}
# Where an interval reaches so many times as far up as down, the values are printed, from the smallest to the largest.
FAR = 10


def cell(rows: pd.DataFrame, column: str, factor: float = 1, **which) -> draw.Quantity | str:
    """Centre of a column of rates or times, with its interval: too few requests where no process has it, and the values
    themselves where an interval would span more than a factor of FAR."""
    rows = chosen(rows, **which)
    values = pd.to_numeric(rows[column]).dropna().to_numpy()
    found = positive(values)
    if found and FAR < found.reach < float("inf"):
        return f"from {min(values) * factor:,.0f} to {max(values) * factor:,.0f}"
    return FEW if found is None and len(rows) else draw.Quantity(found, factor=factor)


def quantile(rows: pd.DataFrame, column: str) -> draw.Quantity | str:
    """A quantile with its interval: only if all processes have it, as those with requests enough are the fast ones."""
    return FEW if rows[column].isna().any() else cell(rows, column)


def duration(seconds: float) -> str:
    """A switch interval in words: `5 ms`."""
    return f"{seconds * 1e3:g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:g} µs"


def lengths(frame: pd.DataFrame) -> list[float]:
    """The switch intervals of an experiment, the longest first."""
    return sorted(set(frame.interval.dropna()), reverse=True)


def threads(count: float) -> str:
    return f"{count:.0f} thread{'s' * (count != 1)}"


def cpu_threads(count: float) -> str:
    return threads(count).replace(" ", " CPU ")


def times_as_fast(runs: pd.DataFrame, interpreter: str, threads: float) -> Estimate | str | None:
    """What dividing the work among threads gains."""
    one, many = (chosen(runs, interpreter=interpreter, threads=count).seconds.to_numpy() for count in (1, threads))
    return ratio(one, many) if threads > 1 else "1 (itself)"


def divided_table(runs: pd.DataFrame, published: dict[int, float]) -> pd.DataFrame:
    """C1 and C2 as run: milliseconds by number of threads, and how many times as fast that is as one, beside the
    author's."""
    columns = {"time, ms": partial(cell, column="seconds", factor=1e3), "times as fast as one": times_as_fast}
    found = draw.summary(done(runs), {"interpreter": (), "threads": ()}, columns, "n (processes)")
    seconds = found.threads.map(published).where(found.CPython == GIL)
    found = found.assign(**{"published, s": seconds, "published, times": published[1] / seconds})
    return found.astype({"threads": int}).round(2).fillna(NOT_PUBLISHED)


def shortest_table(runs: pd.DataFrame) -> pd.DataFrame:
    """C5 as run: the countdown at the shortest switch interval over that at the default one, beside the author's."""

    def row(runs: pd.DataFrame, threads: int) -> dict:
        return {
            "times as long at 1 µs": n.divided_at_the_shortest(runs, threads),
            "published": round(PUBLISHED_AT_SHORTEST[threads], 2),
            "n (processes)": chosen(runs, threads=threads).process.nunique(),
        }

    return draw.summary(chosen(done(runs), threads=[*PUBLISHED_AT_SHORTEST]), {"threads": ()}, row, "")


def countdown_table(counts: pd.DataFrame) -> pd.DataFrame:
    """C1, C5: ns a step by switch interval and number of threads."""

    def row(counts: pd.DataFrame, **which) -> dict:
        part = chosen(counts, **which)
        times = {f"{threads(count)}, ns": cell(of_it, "ns") for count, of_it in part.groupby("threads")}
        return {**times, "n (processes)": part.process.nunique()}

    counts = done(counts, again=False)
    found = draw.summary(counts, {"interpreter": (), "interval": lengths(counts)}, row, "")
    found.interval = found.interval.map(duration)
    return found.rename(columns={"interval": "switch interval"}).fillna(draw.NOT_MEASURED)


def cores_words(rows: pd.DataFrame) -> str:
    """Who sat where at the end, in the most frequent of these processes."""
    seats = Counter()
    for row in rows.to_dict("records"):
        parts = [f"client {seat(row['cores.client'])}", f"server {seat(row['cores.server'])}"]
        if row["cores.CPU work"]:
            work = Counter(sorted(map(seat, row["cores.CPU work"])))
            shown = [f"{core} ({times} times)" if times > 1 else core for core, times in work.items()]
            parts.append(f"work {' '.join(shown)}")
        seats[", ".join(parts)] += 1
    return seats.most_common(1)[0][0] if seats else draw.NOT_MEASURED


def seat(core: float | None) -> str:
    """Number of a core; a question mark if the thread could not say: it was still waiting for the GIL."""
    return "?" if core is None or np.isnan(core) else f"{core:.0f}"


QUANTILES, COUNTED, PLACED = ("p50", "p99", "p99.9"), "n (processes × requests)", "cores, most often"
ECHO_COLUMNS = ["load", "requests/s", "published", *(f"{name}, µs" for name in QUANTILES), WORK, STEP, COUNTED, PLACED]


def echo_row(runs: pd.DataFrame, label: str, case: str) -> dict:
    """Rate, latencies, how many cores the CPU work had and how long a step took it there, and who sat on which core,
    under one load; or why there is nothing."""
    well, ends = done(runs, interpreter=label, case=case), sorted(set(chosen(runs, interpreter=label, case=case).ended))
    if not len(well):
        return {"load": case, "requests/s": f"no result: {', '.join(ends)}" if ends else draw.NOT_MEASURED}
    return {
        "load": case,
        "requests/s": cell(well, "rate"),
        "published": PUBLISHED_CASES.get(case, NOT_PUBLISHED),
        **{f"{name}, µs": quantile(well, name) for name in QUANTILES},
        WORK: cell(well, "had", factor=100) if well.had.notna().any() else "no CPU work",
        STEP: cell(well, "step_ns") if well.step_ns.notna().any() else "no CPU work",
        COUNTED: draw.of_each(well.requests),
        PLACED: cores_words(well),
    }


def echo_table(runs: pd.DataFrame, label: str, kind: str) -> pd.DataFrame:
    """What became of the server and of the work, for the loads of one section."""
    # The first section's loads are followed by those that belong to none.
    added = sorted(set(runs.case).difference(*SECTIONS.values())) if kind == "author" else []
    rows = [echo_row(runs, label, case) for case in SECTIONS[kind] + added]
    # The author had this interpreter only.
    left_out = ["published"] * (label != GIL)
    # Also where nothing of a section was measured, as on a system that cannot pin.
    return pd.DataFrame(rows, columns=ECHO_COLUMNS, dtype=object).fillna("").drop(columns=left_out)


def interval_rates(sweeps: pd.DataFrame) -> pd.DataFrame:
    """C4: requests per second by number of CPU threads and switch interval, beside the author's."""

    def row(sweeps: pd.DataFrame, count: int, interval: float) -> dict:
        part = chosen(sweeps, count=count, interval=interval)
        published = PUBLISHED_RATES.get(interval, {}).get(count)
        return {**vars(positive(part.rate.to_numpy())), "n": draw.of_each(part.requests), "published": published}

    rates = draw.summary(done(sweeps), {"count": (), "interval": lengths(sweeps)}, row, "")
    return rates.rename(columns={"count": "CPU threads", "interval": "interval_s"})


def plot_intervals(figure, found: pd.DataFrame) -> None:
    """C4: the same as a figure, with the author's values as crosses."""
    axes = figure.subplots()
    for number, (count, part) in enumerate(found.groupby("CPU threads")):
        color = draw.PALETTE[number]
        below, above = np.nan_to_num(np.abs(draw.reach(part)))
        errors = [np.minimum(below, part.value * 0.99), above]
        look = {"fmt": f"{draw.MARKERS[number]}-", "color": color, "label": cpu_threads(count)}
        axes.errorbar(part.interval_s, part.value, yerr=errors, capsize=3, **look)
        shown = part[part.published > 0]
        axes.plot(shown.interval_s, shown.published, "x", color=color)
    axes.plot([], [], "x", color=draw.PALETTE[5], label="published")
    axes.set(xscale="log", yscale="log", xlabel="switch interval, s", ylabel="requests per second")
    draw.plain_ticks(axes.yaxis)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)


def excesses(slacks: pd.DataFrame) -> pd.DataFrame:
    """What a request takes beyond one switch interval, by interval and case, where the interval is shorter than the
    default."""
    short, rows = [length for length in lengths(slacks) if length < DEFAULT_S], []
    for (case, settings), length in itertools.product(n.SLACK_CASES.items(), short):
        values = n.excess(slacks, length, *settings)
        if len(values):
            interval = Location.of(values).interval
            rows.append({"case": case, "interval_s": length, **vars(interval), "n": len(values)})
    return pd.DataFrame(rows, columns=["case", "interval_s", "value", "low", "high", "n"])


TICKS_US = (0, 50, 100, 150, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)


def plot_excess(figure, found: pd.DataFrame) -> None:
    """Excess over one interval against the interval."""
    axes = figure.subplots()
    for number, (case, part) in enumerate(found.groupby("case", sort=False)):
        errors = np.nan_to_num(np.abs(draw.reach(part)))
        look = {"fmt": draw.MARKERS[number], "color": draw.PALETTE[number], "label": case}
        axes.errorbar(part.interval_s * 1.06 ** (2 * number - 2), part.value, yerr=errors, capsize=4, **look)
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


def operations(timelines: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: the share of requests in which no call of the server waited for the GIL, one, and both, by
    place."""
    by_place = {where: n.calls_that_wait(timelines, place) for where, place in n.PLACES.items()}
    rows = [
        {"place": where, "waits": waited, "share": calls[waited].mean()}
        for where, calls in by_place.items()
        if len(calls)
        for waited in (0, 1, 2)
    ]
    return pd.DataFrame(rows, columns=["place", "waits", "share"])


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


def waits_table(waits: pd.DataFrame) -> pd.DataFrame:
    """C8: how long the server in C waits for the GIL once it has asked for it."""
    well = done(waits, interpreter=GIL)
    every = np.concatenate(list(well.waits)) / 1e6
    row = {
        "waits": f"{len(every)} in {len(well)} processes",
        "shortest, ms": f"{every.min():.2f}",
        "median, ms": draw.Quantity(Location.of(n.gil_waits(waits) * DEFAULT_S * 1e3)),
        "longest, ms": f"{every.max():.2f}",
    }
    return pd.DataFrame([row])


LANES = ("client", "server", "CPU thread")
RUNS, RESTS = "runs: it has the GIL", "does not run"


def timeline_bars(timeline: dict, shown: int = 3) -> pd.DataFrame:
    """Some requests as bars: lane, what, begin and end in ms. The requests begin at a wait of the server, if there is
    one."""
    spans, calls, gaps = timeline["spans"], n.calls(timeline), timeline["gaps"]
    paid = calls[calls.intervals > n.LONG]
    after = paid.begin.iloc[0] if len(paid) else spans[0][0]
    first = max(0, sum(start <= after for start, _ in spans) - 1)
    window = spans[first : first + shown]
    bars = [("client", f"request {number}", *span) for number, span in enumerate(window, 1)]
    bars += [("server", f"{row.call} waits", row.begin, row.end) for row in calls.itertuples()]
    bars += [("CPU thread", RUNS, *pair) for pair in between(gaps, spans[0][0], spans[-1][1])]
    bars += [("CPU thread", RESTS, *gap) for gap in gaps]
    seen = [(*what, a / 1e6, b / 1e6) for *what, a, b in clipped(bars, window[0][0], window[-1][1]) if b > a]
    return pd.DataFrame(seen, columns=["lane", "what", "begin_ms", "end_ms"])


def plot_timeline(figure, bars: pd.DataFrame) -> None:
    """A Gantt chart of some requests: recorded, not drawn by hand. An arrow stands at each hand-over, which is too
    short to see."""
    axes, named = figure.subplots(), set()
    colors = dict(
        zip(("recv waits", "send waits", RUNS, RESTS), (draw.PALETTE[place] for place in (1, 2, 0, 5)), strict=True)
    )
    for row in bars.itertuples():
        lane, length = len(LANES) - 1 - LANES.index(row.lane), row.end_ms - row.begin_ms
        is_request = row.lane == "client"
        look = {"color": colors.get(row.what, draw.PALETTE[4]), "edgecolor": "white", "linewidth": 1.5 * is_request}
        name = None if is_request or row.what in named else row.what
        named.add(row.what)
        axes.barh(lane, length, 0.6, row.begin_ms, label=name, **look)
        if is_request and length > bars.end_ms.max() / 8:
            middle = (row.begin_ms + row.end_ms) / 2
            axes.text(middle, lane, row.what, ha="center", va="center", color="black", fontsize=10)
        if row.what == RESTS:
            arrow = {"arrowstyle": "->", "color": colors[row.what]}
            axes.annotate("", (row.begin_ms, lane + 0.3), (row.begin_ms, lane + 0.62), arrowprops=arrow)
    axes.set_yticks(range(len(LANES)), LANES[::-1])
    axes.set(xlabel="ms", xlim=(0, bars.end_ms.max()), ylim=(-0.5, len(LANES) - 0.5))
    axes.grid(axis="y", visible=False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=4)
