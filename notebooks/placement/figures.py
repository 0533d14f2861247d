"""What the chapter "Code placement" shows: tables and figures."""

import itertools
from collections.abc import Iterable
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from ffilab.judge.estimates import Estimate
from ffilab.judge.processes import chosen, interval_of
from ffilab.page import draw
from notebooks.placement import geometry, lots
from notebooks.placement.counting import Cache
from notebooks.placement.exercise import SUSPECTS
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, PROGRAMS, SPREAD
from notebooks.placement.geometry import THRESHOLDS
from notebooks.placement.history import NO_TRAP, TRAP, of_history
from notebooks.placement.lottery import ANYWHERE, BENCHMARKS, BUILDS, DEFAULT, TOGETHER
from notebooks.placement.story import CHANGE_CODE

# The lines of the first figure; the table has all distances.
SHOWN = {
    PACKED: "side by side",
    DENSE: "a line each",
    2048: "two sets",
    SPREAD: "a page each",
    APART: "a page each, one set",
}
# Numbers of functions in the table of three distances.
NAMED = (4, 6, 8, 10, 12, 16, 32, 64, 128, MANY)
# Kinds of programs, as figures and tables name them.
KINDS = {"order": "random orders", "copy": "the linker's own order, copied", TOGETHER: TOGETHER, ANYWHERE: ANYWHERE}
# Does the system choose addresses at random?
ADDRESSES = {True: "random addresses", False: "fixed addresses"}
EXTREMES = {"offset": "bytes from a 64-byte boundary to the loop", "bytes": "bytes added to the environment"}
# The low bits of an address that the picture shows, and those within a page.
BITS, PAGE_BITS = 16, 12
# The columns of the story's table that are shown.
OF_STORY = ("program", "an operation, ns", "instructions", "misses, simulated")
OVER_OWN = "time / that of the linker's order"


def filled(cache: Cache) -> pd.DataFrame:
    """Lines of MANY functions in each set: columns distance, set, lines."""
    return pd.DataFrame(
        {"distance": distance, "set": number, "lines": lines}
        for distance in (DENSE, SPREAD, APART)
        for number, lines in enumerate(geometry.lines_by_set(cache, distance, MANY))
    )


def plot_addresses(figure, cache: Cache) -> None:
    """Above, what each bit of an address chooses; below, into which sets the functions fall."""
    panels = figure.subplot_mosaic([["bits"] * 3, [DENSE, SPREAD, APART]], height_ratios=(1, 1.6))
    axes, ink = panels["bits"], plt.rcParams["text.color"]
    line, sets = cache.line.bit_length() - 1, cache.sets.bit_length() - 1
    fields = (("byte in the line", 0, line), ("set of the cache", line, line + sets), ("page", PAGE_BITS, BITS))
    for row, (what, lowest, end) in enumerate(fields):
        for bit in range(lowest, end):
            axes.barh(-row, 0.9, left=BITS - 1 - bit + 0.05, height=0.8, color=draw.PALETTE[row], alpha=0.75)
        axes.text(-0.3, -row, what, ha="right", va="center", fontsize=10, color=ink)
    axes.set_xticks(np.arange(BITS) + 0.5, [str(BITS - 1 - bit) for bit in range(BITS)], fontsize=9)
    axes.set(xlim=(-0.1, BITS), ylim=(-2.6, 0.6), yticks=[], title="bits of an address")
    axes.grid(visible=False)
    for distance, part in filled(cache).groupby("distance"):
        axes = panels[distance]
        axes.bar(part.set, part.lines, width=1, color=draw.PALETTE[0])
        axes.axhline(cache.ways, linestyle="--", color=draw.PALETTE[5])
        axes.text(cache.sets, cache.ways * 1.15, f"{cache.ways} ways", ha="right", fontsize=9, color=draw.PALETTE[5])
        axes.set(yscale="log", ylim=(0.8, 2 * MANY), xlim=(-1, cache.sets), xlabel="set")
        axes.set_title(f"{distance} bytes: {geometry.pages_met(distance, MANY)} pages", fontsize=11)
        axes.set_yticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"] if distance == DENSE else [])
        axes.minorticks_off()
    panels[DENSE].set_ylabel("lines in it")


def addresses(cache: Cache) -> str:
    """The picture in words: it follows from the geometry, not from a measurement."""
    met = "; ".join(
        f"at {distance} bytes sets: {geometry.sets_met(cache, distance)}, pages: {geometry.pages_met(distance, MANY)}"
        for distance in (DENSE, SPREAD, APART)
    )
    return f"{MANY} functions meet so many: {met}. The cache has {cache.ways} ways in each set."


def shown_distances(runs: pd.DataFrame) -> pd.DataFrame:
    """What the figure draws: ns of a call by process, for the distances that have a line."""
    return runs[runs.distance.isin(SHOWN) & (runs.n <= MANY)][["distance", "n", "process", "ns"]]


def plot_distances(figure, rows: pd.DataFrame) -> None:
    """ns of a call over the number of functions: a point for each process, a line through the medians, named at its
    end."""
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


def distances(runs: pd.DataFrame) -> str:
    """The right edge of the figure in words."""
    at = (f"{one} bytes {draw.text(interval_of(runs, 'ns', distance=[one], n=[MANY]), 'ns')}" for one in SHOWN)
    return f"At {MANY} functions: {'; '.join(at)}."


def apart_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The three distances that separate pages from sets, in the same process."""

    def row(runs: pd.DataFrame, n: int) -> dict[str, Estimate | None]:
        times = {one: interval_of(runs, "ns", distance=[one], n=[n]) for one in (DENSE, SPREAD, APART)}
        return {
            **{f"{distance} bytes, ns": time for distance, time in times.items()},
            f"pages: {SPREAD} / {DENSE}": geometry.slower_than(runs, SPREAD, DENSE, n),
            f"sets: {APART} / {SPREAD}": geometry.slower_than(runs, APART, SPREAD, n),
        }

    found = draw.summary(chosen(runs, n=NAMED), {"n": NAMED}, row, "").rename(columns={"n": "functions"})
    return found.assign(**{"n (processes)": runs.process.nunique()})


def simulated_table(found: pd.DataFrame) -> pd.DataFrame:
    """Simulated misses of a call, a column for each cache."""
    table = found.assign(misses=found.misses.map("{:.2f}".format)).pivot(
        index=["distance", "n"], columns="cache", values="misses"
    )
    table.columns = [f"misses of a call: {cache}" for cache in table.columns]
    return table.fillna("").reset_index().rename(columns={"n": "functions", "distance": "distance, bytes"})


def show_extremes(runs: pd.DataFrame, x: str, caption: str, hue: str | None = None) -> None:
    """A figure of time over offsets of the loop, or sizes of the environment (with hue); only if they do something."""
    apart = geometry.environments_apart(runs).values() if hue else [geometry.offsets_apart(runs)]
    if not any(map(geometry.matters, apart)):
        return
    shown = runs.assign(**({hue: runs[hue].map(ADDRESSES)} if hue else {}))

    def plot(figure) -> None:
        axes = figure.subplots()
        palette = {"palette": draw.PALETTE[: shown[hue].nunique()]} if hue else {"color": draw.PALETTE[0]}
        sns.scatterplot(shown, x=x, y="ns", hue=hue, alpha=0.6, ax=axes, **palette)
        axes.set(xlabel=EXTREMES[x], ylabel="ns of one round", ylim=(0, None))
        if hue:
            draw.legend_above(axes)

    data = runs[[*([hue] if hue else []), x, *([] if hue else ["process"]), "ns"]]
    draw.figure(plot, caption, f"ns of one round over {EXTREMES[x]}, one point for each process.", data=data)


def story_table(times: pd.DataFrame, counts: pd.DataFrame | str, hardware: dict | str) -> pd.DataFrame:
    """The programs: time, instructions, misses, and the counters where there are any (medians of their processes)."""

    def row(times: pd.DataFrame, program: str) -> dict:
        found = {"an operation, ns": interval_of(times, "ns", program=program)}
        found["n (processes)"] = len(chosen(times, program=program))
        if not isinstance(counts, str) and program in set(counts.program):
            counted = counts[counts.program == program].iloc[0]
            found |= {"instructions": f"{counted.instructions:,}", "misses, simulated": f"{counted.misses:,}"}
        if not isinstance(hardware, str) and program in hardware:
            medians = pd.DataFrame(hardware[program]).median()
            found |= {f"{event}, counted": f"{value:,.0f}" for event, value in medians.items()}
        return found

    return draw.summary(times, {"program": {**PROGRAMS, **SUSPECTS}}, row, "").fillna(draw.NOT_MEASURED)


def bisections_table(bisections: pd.DataFrame) -> pd.DataFrame:
    """What each history's bisections blame, and how often that stands a second look."""
    rows = []
    for history in (TRAP, NO_TRAP):
        of_it = of_history(bisections, history)
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


def profile_table(found: dict) -> pd.DataFrame:
    """The ten hottest functions of call_method, in all processes together."""
    total = sum(one["total"] for one in found["processes"])
    hottest = lots.together(found["processes"]).most_common(10)
    return pd.DataFrame([{"function": name, "share": f"{cost / total:.1%}"} for name, cost in hottest])


def reasons(found: Iterable) -> str:
    """Why there is nothing, once each."""
    return "; ".join(dict.fromkeys(why for why in found if isinstance(why, str)))


def drawn(runs: pd.DataFrame) -> list[str]:
    """The builds that were linked."""
    return [label for label in BUILDS if label in set(runs.interpreter)]


def plot_lottery(figure, runs: pd.DataFrame) -> None:
    """Every program as one point, by build and benchmark; lines at the two thresholds."""
    builds = drawn(runs)
    panels = figure.subplots(1, len(builds), sharex=True, sharey=True, squeeze=False)[0]
    for axes, label in zip(panels, builds, strict=True):
        shown = pd.DataFrame(
            {"benchmark": benchmark, "program": word, "ratio": ratio}
            for benchmark in BENCHMARKS
            for kind, word in KINDS.items()
            for ratio in lots.ratios(runs, kind, benchmark=benchmark, interpreter=label)
        )
        names = {"x": "ratio", "y": "benchmark", "hue": "program", "hue_order": list(KINDS.values())}
        palette = draw.PALETTE[: len(KINDS)]
        sns.stripplot(shown, **names, dodge=True, jitter=0.1, alpha=0.8, ax=axes, palette=palette)
        for threshold in THRESHOLDS:
            axes.axvline(threshold, linestyle=":", color="grey")
        axes.set(xlabel=OVER_OWN, ylabel="", title=f"CPython {label}")
        handles, labels = axes.get_legend_handles_labels()
        axes.get_legend().remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9)


def lottery(runs: pd.DataFrame) -> str:
    """The figure in words."""
    ranges = []
    for benchmark, label in itertools.product(BENCHMARKS, drawn(runs)):
        orders, copies = (lots.ratios(runs, kind, benchmark=benchmark, interpreter=label) for kind in ("order", "copy"))
        ranges.append(
            f"{label}, {benchmark}: orders from {orders.min():.3f} to {orders.max():.3f}, "
            f"copies from {copies.min():.3f} to {copies.max():.3f}"
        )
    return f"Time over that of the linker's own order. {'; '.join(ranges)}."


def slower_beside_noise(runs: pd.DataFrame, threshold: float, **lot) -> str:
    """How many orders are slower by a threshold; in brackets, how many would be by noise alone."""
    noise = lots.slower_by_noise(runs, threshold, **lot).value
    return f"{lots.slower(runs, threshold, **lot)} ({'not known' if np.isnan(noise) else f'{noise:.1f}'})"


def lottery_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How far orders differ, and how many pass for a regression."""
    columns = {
        "one pair in twenty differs by": lots.of_pairs,
        "orders over the linker's own": partial(lots.over, kind="order", other="copy"),
        **{
            f"orders slower by {threshold - 1:.0%} (by noise alone)": partial(slower_beside_noise, threshold=threshold)
            for threshold in THRESHOLDS
        },
        "n (orders)": lambda runs, **lot: lots.of_pairs(runs, **lot).n,
    }
    return draw.summary(runs, lots.LOTS, columns, "")


def hot_table(runs: pd.DataFrame, linked: dict[str, dict]) -> pd.DataFrame:
    """The hot functions together, and anywhere."""

    def row(runs: pd.DataFrame, **lot) -> dict:
        if why := linked[lot["interpreter"]]["absent"]:
            return {"together / anywhere": why}
        links, duels = lots.by_round(runs, TOGETHER, **lot).shape
        return {
            f"{TOGETHER} / the linker's own": lots.over(runs, TOGETHER, "copy", **lot),
            f"{ANYWHERE} / the linker's own": lots.over(runs, ANYWHERE, "copy", **lot),
            "together / anywhere": lots.over(runs, TOGETHER, ANYWHERE, **lot),
            "n (links of each × duels)": f"{links} × {duels}",
        }

    return draw.summary(runs, lots.LOTS, row, "").astype(object).fillna("")


def times_and_misses(runs: pd.DataFrame, counted: dict[str, list[dict] | str]) -> pd.DataFrame:
    """One row for each order that was timed and counted: name, misses, CPython, benchmark, ratio to the linker's
    order."""
    parts = []
    for label, benchmark in itertools.product(drawn(runs), BENCHMARKS):
        misses = lots.missed(counted[label], benchmark)
        if not isinstance(misses, str):
            both = lots.times_and_misses(runs, misses, benchmark=benchmark, interpreter=label)
            parts.append(both.assign(CPython=label, benchmark=benchmark, ratio=np.exp(both.log)).drop(columns="log"))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def plot_misses(figure, rows: pd.DataFrame) -> None:
    """Each order as a point: simulated misses, and time by the clock."""
    axes = figure.subplots()
    names = {"x": "misses", "y": "ratio", "hue": "CPython", "style": "benchmark"}
    sns.scatterplot(rows, **names, s=45, ax=axes, palette=draw.PALETTE[: rows.CPython.nunique()])
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9)
    axes.set(xlabel="simulated misses of a thousand instructions", ylabel=OVER_OWN)


def misses_table(runs: pd.DataFrame, counted: dict[str, list[dict] | str]) -> pd.DataFrame:
    """Misses of the orders and of the linker's own; and of the slower half less the faster."""

    def rate(misses: float) -> str:
        return f"{misses:.3f}" if misses < 1 else f"{misses:.2f}"

    def row(runs: pd.DataFrame, **lot) -> dict:
        rows = counted[lot["interpreter"]]
        more, misses = lots.more_misses(runs, rows, **lot), lots.missed(rows, lot["benchmark"])
        if isinstance(misses, str):
            return {"slower less faster half": more}
        orders = misses.drop(DEFAULT)
        return {
            "linker's own order": rate(misses[DEFAULT]),
            "lowest order": rate(orders.min()),
            "highest order": rate(orders.max()),
            "n (orders)": len(orders),
            "slower less faster half": more,
        }

    return draw.summary(runs, lots.LOTS, row, "").astype(object).fillna("")
