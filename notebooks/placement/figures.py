"""What the chapter "Code placement" shows: tables and figures."""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from ffilab.judge.processes import interval_of
from ffilab.page import draw
from notebooks.placement import results
from notebooks.placement.counting import Cache
from notebooks.placement.exercise import SUSPECTS
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, PROGRAMS, SPREAD
from notebooks.placement.lottery import ANYWHERE, BENCHMARKS, BUILDS, DEFAULT, TOGETHER
from notebooks.placement.results import NAMED, NO_TRAP, THRESHOLDS, TRAP
from notebooks.placement.story import CHANGE_CODE

# The lines of the first figure; the table has all distances.
SHOWN = {
    PACKED: "16 bytes",
    DENSE: "a line each",
    2048: "two sets",
    SPREAD: "a page each",
    APART: "a page each, one set",
}
# Kinds of programs, as figures and tables name them.
KINDS = {
    "order": "shuffled orders",
    "copy": "the linker's own order, copied",
    TOGETHER: TOGETHER,
    ANYWHERE: ANYWHERE,
}
# Does the system choose addresses at random?
ADDRESSES = {True: "random addresses", False: "fixed addresses"}
EXTREMES = {"offset": "bytes from a 64-byte boundary to the loop", "bytes": "bytes added to the environment"}
# The low bits of an address that the picture shows, and those within a page.
BITS, PAGE_BITS = 16, 12


# ---- functions at a distance ----


def address_bits(cache: Cache) -> pd.DataFrame:
    """Which bits of an address choose what: columns what, lowest, highest."""
    line, sets = cache.line.bit_length() - 1, cache.sets.bit_length() - 1
    return pd.DataFrame(
        [
            {"what": "byte in the line", "lowest": 0, "highest": line - 1},
            {"what": "set of the cache", "lowest": line, "highest": line + sets - 1},
            {"what": "page", "lowest": PAGE_BITS, "highest": BITS - 1},
        ]
    )


def filled(cache: Cache) -> pd.DataFrame:
    """Lines of MANY functions in each set: columns distance, set, lines."""
    return pd.DataFrame(
        [
            {"distance": distance, "set": at, "lines": lines}
            for distance in (DENSE, SPREAD, APART)
            for at, lines in enumerate(results.lines_by_set(cache, distance, MANY))
        ]
    )


def plot_addresses(figure, cache: Cache) -> None:
    """Above, what each bit of an address chooses; below, into which sets the functions fall."""
    panels = figure.subplot_mosaic([["bits"] * 3, [DENSE, SPREAD, APART]], height_ratios=(1, 1.6))
    axes, ink = panels["bits"], plt.rcParams["text.color"]
    for row, field in enumerate(address_bits(cache).itertuples()):
        for bit in range(field.lowest, field.highest + 1):
            axes.barh(-row, 0.9, left=BITS - 1 - bit + 0.05, height=0.8, color=draw.PALETTE[row], alpha=0.75)
        axes.text(-0.3, -row, field.what, ha="right", va="center", fontsize=10, color=ink)
    axes.set_xticks(np.arange(BITS) + 0.5, [str(BITS - 1 - bit) for bit in range(BITS)], fontsize=9)
    axes.set(xlim=(-0.1, BITS), ylim=(-2.6, 0.6), yticks=[], title="bits of an address")
    axes.grid(visible=False)
    for distance, part in filled(cache).groupby("distance"):
        axes = panels[distance]
        axes.bar(part.set, part.lines, width=1, color=draw.PALETTE[0])
        axes.axhline(cache.ways, linestyle="--", color=draw.PALETTE[5])
        axes.text(cache.sets, cache.ways * 1.15, f"{cache.ways} ways", ha="right", fontsize=9, color=draw.PALETTE[5])
        axes.set(yscale="log", ylim=(0.8, 2 * MANY), xlim=(-1, cache.sets), xlabel="set")
        axes.set_title(f"{distance} bytes: {results.pages_met(distance, MANY)} pages", fontsize=11)
        axes.set_yticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"] if distance == DENSE else [])
        axes.minorticks_off()
    panels[DENSE].set_ylabel("lines in it")


def addresses_alt(cache: Cache) -> str:
    """The picture in words: it follows from the geometry, not from a measurement."""
    bits = ", ".join(
        f"bits {field.lowest} to {field.highest}: {field.what}" for field in address_bits(cache).itertuples()
    )
    sets = ", ".join(
        f"at {distance} bytes, sets {results.sets_met(cache, distance)} and pages {results.pages_met(distance, MANY)}"
        for distance in (DENSE, SPREAD, APART)
    )
    return f"Bits of an address: {bits}. {MANY} functions meet so many: {sets}. The cache has {cache.ways} ways in each set."


def shown_distances(runs: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: ns of a call by process, for the distances that have a line."""
    return runs[runs.distance.isin(SHOWN) & (runs.n <= MANY)][["distance", "n", "process", "ns"]]


def plot_distances(figure, rows: pd.DataFrame) -> None:
    """ns of a call over the number of functions: a point for each process, a line through the medians, named at its end."""
    axes = figure.subplots()
    ends = []
    for colour, (distance, name) in zip(draw.PALETTE, SHOWN.items()):
        part = rows[rows.distance == distance]
        medians = part.groupby("n").ns.median()
        axes.scatter(part.n, part.ns, color=colour, s=8, alpha=0.4, linewidths=0)
        axes.plot(medians.index, medians, color=colour)
        ends.append([np.log(medians.iloc[-1]), f"{distance} bytes: {name}", colour])
    axes.set(xscale="log", yscale="log", xlabel="functions, called one after the other", ylabel="ns of a call")
    axes.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    axes.minorticks_off()
    draw.plain_ticks(axes.yaxis)
    # Names that would cover each other move up.
    apart, last = 0.055 * np.ptp(np.log(axes.get_ylim())), -np.inf
    for at, name, colour in sorted(ends):
        last = max(at, last + apart)
        axes.annotate(name, (MANY * 1.15, np.exp(last)), color=colour, fontsize=9, va="center", annotation_clip=False)


def distances_alt(runs: pd.DataFrame) -> str:
    """The figure in words."""
    parts = [
        f"{distance} bytes {draw.text(interval_of(runs, 'ns', distance=[distance], n=[MANY]), 'ns')}"
        for distance in SHOWN
    ]
    return f"Time of a call over the number of functions, by distance, a point for each process. At {MANY} functions: {'; '.join(parts)}."


def apart_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The three distances that separate pages from sets, in the same process."""
    rows = []
    for n in (n for n in NAMED if n in set(runs.n)):
        times = {
            f"{distance} bytes, ns": draw.text(interval_of(runs, "ns", distance=[distance], n=[int(n)]))
            for distance in (DENSE, SPREAD, APART)
        }
        rows.append(
            {
                "functions": n,
                **times,
                f"pages: {SPREAD} / {DENSE}": draw.text(results.price_of_pages(runs, n)),
                f"sets: {APART} / {SPREAD}": draw.text(results.slower_than(runs, APART, SPREAD, n)),
                "n (processes)": runs.process.nunique(),
            }
        )
    return pd.DataFrame(rows)


def simulated_table(found: pd.DataFrame) -> pd.DataFrame:
    """Simulated misses of a call, a column for each cache."""
    table = found.assign(misses=found.misses.map("{:.2f}".format)).pivot(
        index=["distance", "n"], columns="cache", values="misses"
    )
    table.columns = [f"misses of a call: {cache}" for cache in table.columns]
    return table.fillna("").reset_index().rename(columns={"n": "functions", "distance": "distance, bytes"})


# ---- a loop, and an environment ----


def plot_extremes(figure, runs: pd.DataFrame, x: str, hue: str | None = None) -> None:
    """Time over offsets of the loop, or sizes of the environment: one point for each process."""
    axes = figure.subplots()
    shown = runs.assign(**({hue: runs[hue].map(ADDRESSES)} if hue else {}))
    palette = {"palette": draw.PALETTE[: shown[hue].nunique()]} if hue else {"color": draw.PALETTE[0]}
    sns.scatterplot(shown, x=x, y="ns", hue=hue, alpha=0.6, ax=axes, **palette)
    axes.set(xlabel=EXTREMES[x], ylabel="ns of one round", ylim=(0, None))
    if hue:
        draw.legend_above(axes)


def show_loops(runs: pd.DataFrame) -> None:
    """A figure of what places of the loop do; only if they do something."""
    if results.matters(results.offsets_apart(runs)):
        draw.figure(
            lambda figure: plot_extremes(figure, runs, "offset"),
            "Time of one round over the offset of the loop, one point for each process.",
            data=runs[["offset", "process", "ns"]],
        )


def show_environments(runs: pd.DataFrame) -> None:
    """The same for sizes of the environment."""
    if any(map(results.matters, results.environments_apart(runs).values())):
        draw.figure(
            lambda figure: plot_extremes(figure, runs, "bytes", "random"),
            "Time of one round over the size of the environment, one point for each process.",
            data=runs[["random", "bytes", "ns"]],
        )


# ---- the story ----


def story_table(times: pd.DataFrame, counts: pd.DataFrame | str, hardware: dict | str) -> pd.DataFrame:
    """The programs: time, instructions, misses, and the counters where there are any (medians of their processes)."""
    rows = []
    measured = set(times.program)
    known = [name for name in {**PROGRAMS, **SUSPECTS} if name in measured]
    for name in [*known, *sorted(measured.difference(known))]:
        row = {
            "program": name,
            "an operation, ns": draw.text(interval_of(times, "ns", program=name)),
            "n (processes)": len(times[times.program == name]),
        }
        if not isinstance(counts, str) and name in set(counts.program):
            found = counts[counts.program == name].iloc[0]
            row |= {"instructions": f"{found.instructions:,}", "misses, simulated": f"{found.misses:,}"}
        if not isinstance(hardware, str) and name in hardware:
            medians = pd.DataFrame(hardware[name]).median()
            row |= {f"{event}, counted": f"{value:,.0f}" for event, value in medians.items()}
        rows.append(row)
    return pd.DataFrame(rows).fillna(draw.NOT_MEASURED)


def published_story() -> pd.DataFrame:
    """What the document published of its two binaries."""
    return pd.DataFrame(
        [
            {"of call_method": "time, ms", "fast": "17.0 ± 0.1", "slow": "29.3 ± 0.9", "slow / fast": "1.72"},
            {
                "of call_method": "with six hot functions marked, ms",
                "fast": "",
                "slow": "16.7 ± 0.3",
                "slow / fast": "0.98",
            },
            {"of call_method": "instructions in a cycle", "fast": "2.31", "slow": "1.45", "slow / fast": "0.63"},
            {"of call_method": "stalled cycles, front end, %", "fast": "11.25", "slow": "41.07", "slow / fast": "3.65"},
            {"of call_method": "stalled cycles, back end, %", "fast": "3.36", "slow": "20.57", "slow / fast": "6.12"},
            {"of call_method": "instructions, millions", "fast": "29,983", "slow": "30,011", "slow / fast": "1.001"},
            {
                "of call_method": "misses of the instruction cache, millions",
                "fast": "10.9",
                "slow": "848.5",
                "slow / fast": "77.7",
            },
            {"of call_method": "the same, of all loads, %", "fast": "0.11", "slow": "7.89", "slow / fast": "71.7"},
        ]
    )


def bisections_table(bisections: pd.DataFrame) -> pd.DataFrame:
    """What each history's bisections blame, and how often that stands a second look."""
    rows = []
    for history in (TRAP, NO_TRAP):
        of_it = results.of_history(bisections, history)
        for message, part in sorted(of_it.groupby("message"), key=lambda pair: -len(pair[1])):
            rows.append(
                {
                    "history": history,
                    "blamed": message,
                    "changes machine code": "yes" if message in CHANGE_CODE else "no",
                    "blamed by": f"{len(part)} of {len(of_it)}",
                    "slow again, its parent fast": f"{int(part.stands.sum())} of {len(part)}",
                }
            )
    return pd.DataFrame(rows)


# ---- the lottery ----


def profile_table(found: dict) -> pd.DataFrame:
    """The ten hottest functions of call_method, in all processes together."""
    total, counted = sum(one["total"] for one in found["processes"]), Counter()
    for one in found["processes"]:
        counted.update(one["hottest"])
    return pd.DataFrame([{"function": name, "share": f"{cost / total:.1%}"} for name, cost in counted.most_common(10)])


def profile_caption(found: dict) -> str:
    """Samples are of time; where nothing may sample, instructions are counted."""
    does = "spends its time" if found["what"] == "samples" else "executes its instructions"
    return f"Where call_method {does}: all processes together."


def drawn(runs: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The duels of each build that was linked."""
    return {label: results.of_build(runs, label) for label in BUILDS if label in set(runs.interpreter)}


def plot_lottery(figure, runs: pd.DataFrame) -> None:
    """Every program as one point, by build and benchmark; lines at the two thresholds."""
    builds = drawn(runs)
    panels = figure.subplots(1, len(builds), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (label, of_it) in zip(panels, builds.items(), strict=True):
        shown = pd.DataFrame(
            [
                {"benchmark": benchmark, "program": word, "ratio": ratio}
                for benchmark in BENCHMARKS
                for kind, word in KINDS.items()
                for ratio in results.ratios(of_it, benchmark, kind)
            ]
        )
        sns.stripplot(
            shown,
            x="ratio",
            y="benchmark",
            hue="program",
            hue_order=list(KINDS.values()),
            dodge=True,
            jitter=0.1,
            alpha=0.8,
            ax=axes,
            palette=draw.PALETTE[: len(KINDS)],
        )
        for threshold in THRESHOLDS:
            axes.axvline(threshold, linestyle=":", color="grey")
        axes.set(xlabel="time / that of the linker's order", ylabel="", title=f"CPython {label}")
        handles, labels = axes.get_legend_handles_labels()
        axes.get_legend().remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)


def by_lot(runs: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """The duels of each build that was linked, by benchmark and build."""
    return {(benchmark, label): of_it for benchmark in BENCHMARKS for label, of_it in drawn(runs).items()}


def lottery_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How far orders differ, and how many pass for a regression."""
    rows = []
    for (benchmark, label), of_it in by_lot(runs).items():
        spread = results.of_pairs(of_it, benchmark)
        row = {"benchmark": benchmark, "CPython": label, "one pair in twenty differs by": draw.text(spread.at())}
        row["orders over the linker's own"] = draw.words(results.over(of_it, benchmark, "order", "copy"))
        for threshold in THRESHOLDS:
            found = results.passing(of_it, benchmark, "order", threshold)
            noise = expected(results.passing_by_noise(of_it, benchmark, threshold))
            row[f"orders slower by {threshold - 1:.0%} (by noise alone)"] = (
                f"{found.events} of {found.trials} ({noise})"
            )
        rows.append({**row, "n (orders)": spread.n})
    return pd.DataFrame(rows)


def expected(number: float) -> str:
    """`2.1`, or that it is not known."""
    return "a number that is not known" if np.isnan(number) else f"{number:.1f}"


def hot_table(runs: pd.DataFrame, linked: dict[str, dict]) -> pd.DataFrame:
    """The hot functions together, and anywhere."""
    rows = []
    for (benchmark, label), of_it in by_lot(runs).items():
        row = {"benchmark": benchmark, "CPython": label}
        if why := linked[label]["absent"]:
            rows.append({**row, "together / anywhere": why})
            continue
        for kind in (TOGETHER, ANYWHERE):
            row[f"{kind} / the linker's own"] = draw.words(results.over(of_it, benchmark, kind, "copy"))
        row["together / anywhere"] = draw.words(results.over(of_it, benchmark, TOGETHER, ANYWHERE))
        links, duels = results.by_round(of_it, benchmark, TOGETHER).shape
        rows.append({**row, "n (links of each × duels)": f"{links} × {duels}"})
    return pd.DataFrame(rows).astype(object).fillna("")


def lottery_alt(runs: pd.DataFrame) -> str:
    """The figure in words."""
    ranges = []
    for label, of_it in drawn(runs).items():
        for benchmark in BENCHMARKS:
            orders, copies = (results.ratios(of_it, benchmark, kind) for kind in ("order", "copy"))
            ranges.append(
                f"{label}, {benchmark}: orders from {orders.min():.3f} to {orders.max():.3f}, "
                f"copies from {copies.min():.3f} to {copies.max():.3f}"
            )
    return f"Time of each linked CPython over that of the linker's own order. {'; '.join(ranges)}."


def times_and_misses(runs: pd.DataFrame, counted: dict[str, list[dict] | str]) -> pd.DataFrame:
    """One row for each order that was timed and counted: CPython, benchmark, name, ratio to the default, misses."""
    parts = [
        results.times_and_misses(of_it, results.missed(counted[label], benchmark), benchmark).assign(
            CPython=label, benchmark=benchmark
        )
        for label, of_it in drawn(runs).items()
        if not isinstance(counted[label], str)
        for benchmark in BENCHMARKS
    ]
    if not parts:
        return pd.DataFrame()
    every = pd.concat(parts, ignore_index=True)
    return every.assign(ratio=np.exp(every.log)).drop(columns="log")


def plot_misses(figure, rows: pd.DataFrame) -> None:
    """Each order as a point: simulated misses, and time by the clock."""
    axes = figure.subplots()
    sns.scatterplot(
        rows,
        x="misses",
        y="ratio",
        hue="CPython",
        style="benchmark",
        s=45,
        ax=axes,
        palette=draw.PALETTE[: rows.CPython.nunique()],
    )
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
    axes.set(xlabel="simulated misses of a thousand instructions", ylabel="time / that of the linker's order")


def rate(misses: float) -> str:
    """Misses of a thousand instructions, with three digits where there are next to none."""
    return f"{misses:.3f}" if misses < 1 else f"{misses:.2f}"


def misses_table(runs: pd.DataFrame, counted: dict[str, list[dict] | str]) -> pd.DataFrame:
    """Misses of the orders and of the linker's own; and of the slower half less the faster."""
    rows = []
    for (benchmark, label), of_it in by_lot(runs).items():
        row = {"benchmark": benchmark, "CPython": label}
        misses, more = (
            of(*given)
            for of, given in (
                (results.missed, (counted[label], benchmark)),
                (results.more_misses, (of_it, counted[label], benchmark)),
            )
        )
        if not isinstance(misses, str):
            orders = misses.drop(DEFAULT)
            row |= {"linker's own order": rate(misses[DEFAULT]), "lowest order": rate(orders.min())}
            row |= {"highest order": rate(orders.max()), "n (orders)": len(orders)}
        rows.append({**row, "slower less faster half": more if isinstance(more, str) else draw.words(more)})
    return pd.DataFrame(rows).astype(object).fillna("")
