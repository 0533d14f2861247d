"""What the chapter "Code placement" shows: tables, figures and the texts that its prose takes up."""

from collections import Counter

import numpy as np
import pandas as pd
import seaborn as sns

from ffilab import draw
from ffilab.judge.estimates import LEVEL, Measurement, Share
from ffilab.judge.processes import interval_of
from notebooks.placement import results
from notebooks.placement.exercise import SUSPECTS
from notebooks.placement.experiment import APART, PACKED, WESTMERE, Cache
from notebooks.placement.lottery import BENCHMARKS, BUILDS, BY_PROFILE
from notebooks.placement.results import ORDERS, PUBLISHED, THRESHOLDS, TOO_SLOW
from notebooks.placement.story import PROGRAMS

# Numbers of functions that the alt text of the first figure names.
NAMED = (32, 128, 256)
# Kinds of programs, as figures and tables name them.
KINDS = {"order": "shuffled orders", "copy": "the linker's own order, copied", BY_PROFILE: BY_PROFILE}
REASONED = {BY_PROFILE: BY_PROFILE, "copy": "the linker's own"}
# Does the system choose addresses at random?
ADDRESSES = {True: "random addresses", False: "fixed addresses"}


def plot_distances(figure, runs: pd.DataFrame) -> None:
    """ns of a call over the number of functions, one line for each distance."""
    rows = results.distance_intervals(runs)
    axes = figure.subplots()
    distances = sorted(rows.distance.unique())
    for distance, colour in zip(distances, sns.color_palette("viridis_r", len(distances))):
        part = rows[rows.distance == distance]
        errors = [part.value - part.low, part.high - part.value]
        axes.errorbar(part.n, part.value, yerr=errors, color=colour, marker=".", capsize=2, label=f"{distance} bytes")
    axes.set(xscale="log", yscale="log", xlabel="functions, called one after the other", ylabel="ns of a call")
    axes.set_xticks([1, 4, 16, 64, 256, 1024], ["1", "4", "16", "64", "256", "1024"])
    axes.minorticks_off()
    draw.plain_ticks(axes.yaxis)
    axes.legend(title="distance", fontsize="small", loc="best")


def distances_words(runs: pd.DataFrame) -> str:
    """The figure in words, for its alt text."""
    parts = []
    for n in NAMED:
        packed, apart = (interval_of(runs, "ns", distance=[int(d)], n=[n]) for d in (PACKED, APART))
        parts.append(f"{n} functions: packed {draw.text(packed, 'ns')}, {APART} bytes apart {draw.text(apart, 'ns')}")
    return "; ".join(parts)


def apart_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Packed against 4096 bytes apart, in the same process."""
    rows = []
    for n in sorted(runs[runs.distance == APART].n.unique()):
        rows.append(
            {
                "functions": n,
                "packed": draw.text(interval_of(runs, "ns", distance=[PACKED], n=[int(n)]), "ns"),
                f"{APART} bytes apart": draw.text(interval_of(runs, "ns", distance=[APART], n=[int(n)]), "ns"),
                "ratio": draw.text(results.times_as_long(runs, APART, n)),
            }
        )
    return pd.DataFrame(rows)


def fit_words(runs: pd.DataFrame, distance: int) -> str:
    """`16 (12 to 16 by process)`: how many functions stay fast at this distance."""
    found = np.sort(results.fits(runs, distance))
    most = runs[runs.distance == distance].n.max()
    low, middle, high = (
        f"{n:.0f}" if np.isfinite(n) else f"all {most}" for n in (found[0], found[len(found) // 2], found[-1])
    )
    return middle if low == high else f"{middle} ({low} to {high} by process)"


def fits_table(runs: pd.DataFrame, cache: Cache) -> pd.DataFrame:
    """How many functions fit at each distance: measured, and computed from two caches."""
    rows = []
    for distance in sorted(runs.distance.unique()):
        row = {"distance": f"{distance} bytes", "stay fast, by the clock": fit_words(runs, distance)}
        for one in (cache, WESTMERE):
            row[f"have room, {one.name}"] = results.computed_fit(one, distance)
        rows.append(row)
    return pd.DataFrame(rows)


def reading(runs: pd.DataFrame, cache: Cache) -> str:
    """What the figure says of this processor: some sentences."""
    found = results.fits(runs, APART)
    fit = float(np.median(found))
    if not np.isfinite(fit):
        return f"Here no number of functions that are {APART} bytes apart is {TOO_SLOW:g} times as slow as packed ones."
    said = (
        f"Functions {APART} bytes apart stay fast here up to {fit_words(runs, APART)}, by the clock. "
        f"The level-1 instruction cache ({cache.name}) has {cache.ways} ways. "
    )
    if found.min() <= cache.ways <= found.max():
        return said + "The two agree: what overflows may well be this cache."
    if fit > cache.ways:
        return said + (
            "So more of them stay fast than that cache can hold. A likely reason: processors of today keep decoded "
            "instructions in a cache of its own, with a geometry of its own, and fetch ahead of what they execute. The "
            "clock sees what overflows and hurts."
        )
    return said + "Something smaller than this cache overflows first, or something else disturbs this run."


def simulated_reading(found: pd.DataFrame | str, cache: Cache) -> str:
    """Size and associativity, read off the simulated misses of this machine's cache. Two sentences."""
    if isinstance(found, str):
        return f"Nothing was simulated here: {found}."
    edges = results.simulated_edges(found, cache)
    # Each call in the caller takes some bytes of the cache as well.
    kib = edges[64] * (64 + results.CALL_BYTES) / 1024
    ways = edges[APART] * cache.line * (cache.size // cache.line // cache.ways) // max(APART, cache.way_bytes)
    return (
        f"At {APART} bytes, {edges[APART]} functions run without a miss and the next number does not: {ways} ways. At 64 "
        f"bytes, {edges[64]} functions fit, which with their caller are {kib:.0f} KiB of lines. What this system reports, and "
        f"what was put in, has {cache.ways} ways and {cache.size // 1024} KiB."
    )


def simulated_table(found: pd.DataFrame) -> pd.DataFrame:
    """Simulated misses of a call."""
    table = (
        found.assign(misses=found.misses.map("{:.2f}".format))
        .pivot(index=["cache", "n"], columns="distance", values="misses")
        .fillna("")
    )
    table.columns = [f"{distance} bytes apart" for distance in table.columns]
    return table.reset_index().rename(columns={"n": "functions"})


def agreement(runs: pd.DataFrame, found: pd.DataFrame | str, cache: Cache) -> str:
    """Do simulation and clock point the same way? One sentence."""
    if isinstance(found, str):
        return f"There is no simulation to compare with: {found}."
    most = int(found[found.distance == APART].n.max())
    here = found[(found.cache == cache.name) & (found.n == most)].set_index("distance").misses
    seen = results.times_as_long(runs, APART, most)
    more, longer = here[APART] > here[64], seen.low > 1
    return (
        f"With {most} functions the simulation counts {here[APART]:.2f} misses a call at {APART} bytes, and "
        f"{here[64]:.2f} at 64; the clock sees a factor of {draw.text(seen)} over the packed layout. "
        + ("They agree in direction." if more == longer else "They do not agree in direction.")
    )


def plot_loops(figure, runs: pd.DataFrame) -> None:
    """One point for each process and offset."""
    axes = figure.subplots()
    sns.stripplot(
        runs, x="offset", y="ns", native_scale=True, size=3, alpha=0.5, jitter=False, ax=axes, color=draw.PALETTE[0]
    )
    medians = runs.groupby("offset").ns.median()
    axes.plot(medians.index, medians, color=draw.PALETTE[1], label="median")
    axes.set(xlabel="bytes from a 64-byte boundary to the loop", ylabel="ns of one round", ylim=(0, None))
    axes.legend()


def loops_words(runs: pd.DataFrame) -> str:
    """The slowest fifth of all offsets over the fastest, not biased by the choice."""
    apart = draw.text(results.offsets_apart(runs))
    return f"the slowest fifth of the offsets takes {apart} times as long as the fastest fifth"


def environment_words(runs: pd.DataFrame) -> dict[str, str]:
    """The same for sizes of the environment, with and without random addresses."""
    return {
        ADDRESSES[random]: f"the slowest fifth of the sizes takes {draw.text(apart)} times as long as the fastest fifth"
        for random, apart in results.environments_apart(runs).items()
    }


def plot_environments(figure, runs: pd.DataFrame) -> None:
    """Time over the size of the environment, one point for each process."""
    axes = figure.subplots()
    shown = runs.assign(addresses=runs.random.map(ADDRESSES))
    sns.scatterplot(
        shown, x="bytes", y="ns", hue="addresses", alpha=0.6, ax=axes, palette=draw.PALETTE[: shown.addresses.nunique()]
    )
    axes.set(xlabel="bytes added to the environment", ylabel="ns of one round", ylim=(0, None))


def story_table(times: pd.DataFrame, counts: pd.DataFrame | str, hardware: dict | str) -> pd.DataFrame:
    """The programs: time, instructions, misses, and the counters where there are any (medians of their processes)."""
    rows = []
    for name in [name for name in {**PROGRAMS, **SUSPECTS} if name in set(times.program)]:
        row = {"program": name, "ns an operation": draw.text(interval_of(times, "ns", program=name))}
        if not isinstance(counts, str):
            found = counts[counts.program == name].iloc[0]
            row |= {"instructions": f"{found.instructions:,}", "misses, simulated": f"{found.misses:,}"}
        if not isinstance(hardware, str):
            medians = pd.DataFrame(hardware[name]).median()
            row |= {f"{event}, counted": f"{value:,.0f}" for event, value in medians.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def glue_story(times: pd.DataFrame, counts: pd.DataFrame | str, hardware: dict | str) -> None:
    """Hand the ratios of the programs to the prose, and what could be counted."""
    for name, slow, fast in (
        ("slow", "slow", "fast"),
        ("hot", "slow", "hot"),
        ("mended", "hot", "fast"),
        ("aligned", "hot, aligned", "hot"),
    ):
        draw.glue(f"story-{name}", f"{draw.words(results.ratio(times, slow, fast))} times")
    same = "the same, to within what starting a program differs by; the misses are where the programs differ"
    draw.glue("hardware", hardware if isinstance(hardware, str) else "they stand in the table")
    draw.glue("counts", counts if isinstance(counts, str) else same)


def profile_table(found: dict) -> pd.DataFrame:
    """The ten hottest functions of call_method, in all processes together."""
    total, counted = sum(one["total"] for one in found["processes"]), Counter()
    for one in found["processes"]:
        counted.update(one["hottest"])
    return pd.DataFrame([{"function": name, "share": f"{cost / total:.1%}"} for name, cost in counted.most_common(10)])


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
        axes.set(xlabel="time over that of the linker's own order", ylabel="", title=f"CPython {label}")
        handles, labels = axes.get_legend_handles_labels()
        axes.get_legend().remove()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="x-small")


def lottery_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The lottery's spread, and how many orders pass for a regression."""
    rows = []
    for label, of_it in drawn(runs).items():
        for benchmark in BENCHMARKS:
            raw, noise = results.spread(of_it, benchmark)
            row = {
                "CPython": label,
                "benchmark": benchmark,
                "slowest / fastest median": f"{raw:.3f}",
                "the same by noise alone": draw.text(noise),
                f"of {ORDERS} orders, with the noise taken out": draw.text(results.true_spread(of_it, benchmark).at()),
            }
            for threshold in THRESHOLDS:
                for kind, word in (("order", "orders"), ("copy", "copies")):
                    found = results.passing(of_it, benchmark, kind, threshold)
                    row[f"{word} slower by {threshold - 1:.0%}"] = share_text(found)
            rows.append(row)
    return pd.DataFrame(rows)


def share_text(found: Share) -> str:
    """`3 of 30 (2% to 29%)`, with the exact interval."""
    interval = found.at()
    return f"{found.events} of {found.trials} ({interval.low:.0%} to {interval.high:.0%})"


def reasoned_table(runs: pd.DataFrame, linked: dict[str, dict]) -> pd.DataFrame:
    """The hot functions together, and the linker's own order, against the middle shuffled order."""
    rows = []
    for label, of_it in drawn(runs).items():
        for kind in (BY_PROFILE, "copy"):
            for benchmark in BENCHMARKS:
                row = {"CPython": label, "order": REASONED[kind], "benchmark": benchmark}
                if why := linked[label]["absent"].get(kind):
                    rows.append({**row, "time over the middle shuffled order": why})
                    continue
                faster = results.faster_orders(of_it, benchmark, kind)
                own = draw.text(results.over_default(of_it, benchmark, kind)) if kind != "copy" else "1"
                rows.append(
                    {
                        **row,
                        "time over the linker's order": own,
                        "time over the middle shuffled order": draw.words(results.over_orders(of_it, benchmark, kind)),
                        # No interval: the program's own noise is in each of these comparisons.
                        "shuffled orders that are faster": f"{faster.events} of {faster.trials}",
                    }
                )
    return pd.DataFrame(rows).fillna("")


def lottery_words(runs: pd.DataFrame) -> str:
    """The figure in words, for its alt text."""
    parts = []
    for label, of_it in drawn(runs).items():
        for benchmark in BENCHMARKS:
            orders, copies = (results.ratios(of_it, benchmark, kind) for kind in ("order", "copy"))
            parts.append(
                f"{label}, {benchmark}: shuffled orders from {orders.min():.3f} to {orders.max():.3f}, "
                f"copies from {copies.min():.3f} to {copies.max():.3f}"
            )
    return "; ".join(parts)


def luck(runs: pd.DataFrame) -> str:
    """How much of a 5 % regression is address luck, and how many orders of a build reach what was published? Some sentences."""
    pieces = []
    for threshold in THRESHOLDS:
        found = [results.passing(runs, name, "order", threshold) for name in BENCHMARKS]
        hits = sorted({one.events for one in found})
        many = f"{hits[0]} to {hits[-1]}" if len(hits) > 1 else f"{hits[0]}"
        pieces.append(f"{many} of {found[0].trials} orders look like a regression of {threshold - 1:.0%} or more")
    real = results.differing(runs)
    end = f"Beyond noise, the orders differ in {len(real)} of {len(BENCHMARKS)} benchmarks" + (
        f" ({', '.join(real)})." if real else ", as far as this run can tell."
    )
    published = results.passing(runs, "call_method", "order", PUBLISHED)
    reached = (
        f"As much slower as the slow binary of 2016, {PUBLISHED - 1:.0%}, are {share_text(published)} in call_method; in "
        f"brackets, what that says of all orders ({LEVEL:.0%} interval)."
    )
    return "by benchmark, " + ", and ".join(pieces) + f". {end} {reached}"


def lot_of_the_hot(runs: pd.DataFrame, absent: dict[str, str]) -> str:
    """What the hot functions together gain over a random order in call_method. One sentence."""
    if BY_PROFILE in absent:
        return f"there is no order with the hot functions together here: {absent[BY_PROFILE]}."
    ratio, faster = (of(runs, "call_method", BY_PROFILE) for of in (results.over_orders, results.faster_orders))
    return (
        f"in call_method, the program with its hot functions together takes {draw.words(ratio)} times as long as the middle "
        f"random order, and {faster.events} of {faster.trials} random orders are faster than it."
    )


def blamed_words(bisections: pd.DataFrame) -> str:
    """How many bisections blame the commit that moved the operations, and which others were blamed."""
    found = results.blaming(bisections).estimate
    others = bisections[bisections.found == 0].message.value_counts()
    said = f"{share_text(found)} blame one and the same commit"
    return said + "".join(f"; {count} blame “{message}”" for message, count in others.items())


def glue_lottery(linked: dict[str, dict], runs: pd.DataFrame) -> None:
    """Hand the lottery's result to the prose, build by build, or why there was none."""
    for (label, of_it), name in zip(linked.items(), ("gil", "free-threaded"), strict=True):
        if of_it["lacking"]:
            draw.glue(f"luck-{name}", f"There was no lottery of CPython {label} here: {of_it['lacking']}.")
            draw.glue(f"lot-hot-{name}", f"CPython {label} was not linked here.")
        else:
            duels = results.of_build(runs, label)
            draw.glue(f"luck-{name}", f"CPython {label}: {luck(duels)}")
            draw.glue(f"lot-hot-{name}", f"CPython {label}: {lot_of_the_hot(duels, of_it['absent'])}")
    seconds = sum(of_it["seconds"] for of_it in linked.values())
    draw.glue("link-seconds", f"{seconds:.1f} seconds" if seconds else "no time, as nothing was linked")


def share_words(found: Measurement | str) -> str:
    """A share with its interval and what it is a share of, in words, or why there is none."""
    if isinstance(found, str):
        return f"a share that was not measured here ({found})"
    return f"{draw.text(found.interval, '%', 100)} ({found.unit})"


def counted_words(found: pd.DataFrame | str) -> str:
    """What the processor's counters say of the functions; or why they say nothing. One sentence."""
    if isinstance(found, str):
        return f"The processor's own counters: {found}."
    misses = "L1-icache-load-misses"
    if misses not in found:
        return "The processor counts instructions for us, and no misses of the instruction cache."
    return (
        "By the processor's own counters: "
        + "; ".join(
            f"{row[misses]:.2f} misses and {row['instructions']:.1f} instructions a call at {row.distance:.0f} bytes"
            for _, row in found.iterrows()
        )
        + "."
    )
