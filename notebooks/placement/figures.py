"""What the chapter "Code placement" shows: tables, figures, and the numbers that its prose takes up."""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from ffilab import draw
from ffilab.bench.session import Session
from ffilab.judge import ledger
from ffilab.judge.estimates import Interval
from ffilab.judge.processes import interval_of
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.placement import results, words
from notebooks.placement.claims import BENCHMARK
from notebooks.placement.exercise import SUSPECTS
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, SPREAD, WESTMERE, Cache
from notebooks.placement.lottery import BENCHMARKS, BUILDS, BY_PROFILE, DEFAULT
from notebooks.placement.results import NO_TRAP, ORDERS, PUBLISHED, THRESHOLDS, TRAP
from notebooks.placement.story import CHANGE_CODE, PROGRAMS

# How the prose calls the builds: in the names of its numbers, and in words.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}
WHERE = {GIL: "with the GIL", FREE_THREADED: "without the GIL"}
# The lines of the first figure; the table has all distances.
SHOWN = {PACKED: "packed", DENSE: "a line each", 2048: "two sets", SPREAD: "a page each", APART: "a page each, one set"}
# Numbers of functions in the table of three distances.
NAMED = (4, 6, 8, 10, 12, 16, 32, 64, 128, MANY)
# Kinds of programs, as figures and tables name them.
KINDS = {"order": "shuffled orders", "copy": "the linker's own order, copied", BY_PROFILE: BY_PROFILE}
REASONED = {BY_PROFILE: BY_PROFILE, "copy": "the linker's own"}
# The limit of D6, where no rule asks: faster by 2 %.
FASTER = 0.98
# Does the system choose addresses at random?
ADDRESSES = {True: "random addresses", False: "fixed addresses"}
# The low bits of an address that the picture shows, and those within a page.
BITS, PAGE_BITS = 16, 12


def beyond(found: Interval, bound: float) -> str:
    """The answer of the same limit, where no rule asks."""
    return YES if found.low > bound else NO if found.high < bound else OPEN


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
                f"pages: {SPREAD} / {DENSE}": draw.text(results.slower_than(runs, SPREAD, DENSE, n)),
                f"sets: {APART} / {SPREAD}": draw.text(results.slower_than(runs, APART, SPREAD, n)),
                "n (processes)": runs.process.nunique(),
            }
        )
    return pd.DataFrame(rows)


def fit_text(runs: pd.DataFrame, distance: int) -> str:
    """`up to 10, not from 14 on`: how many functions keep their time at this distance."""
    kept, slow = results.fits(runs, distance)
    if np.isnan(kept):
        return words.UNKNOWN
    most = runs[runs.distance == distance].n.max()
    return f"up to {kept:.0f}, not from {slow:.0f} on" if np.isfinite(slow) else f"up to {kept:.0f} of {most}"


def fits_table(runs: pd.DataFrame, cache: Cache) -> pd.DataFrame:
    """How many functions fit at each distance: measured, and computed from two caches."""
    rows = []
    for distance in sorted(runs.distance.unique()):
        row = {"distance, bytes": distance, "keep their time, by the clock": fit_text(runs, distance)}
        for one in (cache, WESTMERE):
            row[f"have room in the cache, computed: {one.name}"] = results.computed_fit(one, distance)
        rows.append({**row, "n (processes)": runs.process.nunique()})
    return pd.DataFrame(rows)


def glue_distances(runs: pd.DataFrame, cache: Cache) -> None:
    """Hand to the prose what the clock says of lines, sets and pages."""
    of_pages, of_sets = results.price_of_pages(runs), results.price_of_sets(runs)
    before = results.too_slow_before(runs, APART)
    draw.glue("stay-fast", words.stay_fast(*results.fits(runs, APART), before, cache))
    draw.glue("two-sets", words.two_sets(results.fits_over(runs, APART // 2, APART)))
    draw.glue("pages", words.pages(of_pages))
    draw.glue("sets", words.sets(of_sets))
    draw.glue("pages-or-sets", words.pages_or_sets(of_pages, of_sets))
    draw.glue("objection-pages", words.objection_pages(of_pages, of_sets))
    draw.glue("prediction-1", words.prediction_1(results.times_as_long(runs, APART, MANY)))


def glue_simulated(runs: pd.DataFrame, found: pd.DataFrame | str, counted: list[dict] | str, cache: Cache) -> None:
    """Hand to the prose what was simulated and counted of the functions."""
    edges, misses = found, found
    if not isinstance(found, str):
        edges = results.simulated_edges(found, cache)
        misses = found[(found.cache == cache.name) & (found.n == MANY)].set_index("distance").misses.to_dict()
    draw.glue("simulated-geometry", words.simulated_geometry(edges, cache))
    draw.glue("agreement", words.agreement(misses, results.slower_than(runs, APART, DENSE, MANY)))
    draw.glue("counted", words.counters(counted))


def simulated_table(found: pd.DataFrame) -> pd.DataFrame:
    """Simulated misses of a call, a column for each cache."""
    table = found.assign(misses=found.misses.map("{:.2f}".format)).pivot(
        index=["distance", "n"], columns="cache", values="misses"
    )
    table.columns = [f"misses of a call: {cache}" for cache in table.columns]
    return table.fillna("").reset_index().rename(columns={"n": "functions", "distance": "distance, bytes"})


# ---- a loop, and an environment ----


def plot_loops(figure, runs: pd.DataFrame) -> None:
    """One point for each process and offset."""
    axes = figure.subplots()
    sns.stripplot(
        runs, x="offset", y="ns", native_scale=True, size=3, alpha=0.5, jitter=False, ax=axes, color=draw.PALETTE[0]
    )
    medians = runs.groupby("offset").ns.median()
    axes.plot(medians.index, medians, color=draw.PALETTE[1], label="median")
    axes.set(xlabel="bytes from a 64-byte boundary to the loop", ylabel="ns of one round", ylim=(0, None))
    draw.legend_above(axes)


def glue_extremes(offsets: pd.DataFrame, sizes: pd.DataFrame) -> None:
    """Hand to the prose what places of the loop and sizes of the environment do."""
    by_addresses = results.environments_apart(sizes)
    draw.glue("loops", words.loops(results.offsets_apart(offsets), offsets.process.nunique()))
    for random, name in ((True, "random"), (False, "fixed")):
        draw.glue(f"environment-{name}", words.environment(name, by_addresses.get(random)))
    draw.glue("environments", words.environments(by_addresses.get(True), by_addresses.get(False)))


def plot_environments(figure, runs: pd.DataFrame) -> None:
    """Time over the size of the environment, one point for each process."""
    axes = figure.subplots()
    shown = runs.assign(addresses=runs.random.map(ADDRESSES))
    sns.scatterplot(
        shown, x="bytes", y="ns", hue="addresses", alpha=0.6, ax=axes, palette=draw.PALETTE[: shown.addresses.nunique()]
    )
    draw.legend_above(axes)
    axes.set(xlabel="bytes added to the environment", ylabel="ns of one round", ylim=(0, None))


# ---- the story ----


def story_table(times: pd.DataFrame, counts: pd.DataFrame | str, hardware: dict | str) -> pd.DataFrame:
    """The programs: time, instructions, misses, and the counters where there are any (medians of their processes)."""
    rows = []
    for name in [name for name in {**PROGRAMS, **SUSPECTS} if name in set(times.program)]:
        row = {
            "program": name,
            "an operation, ns": draw.text(interval_of(times, "ns", program=name)),
            "n (processes)": len(times[times.program == name]),
        }
        if not isinstance(counts, str):
            found = counts[counts.program == name].iloc[0]
            row |= {"instructions": f"{found.instructions:,}", "misses, simulated": f"{found.misses:,}"}
        if not isinstance(hardware, str):
            medians = pd.DataFrame(hardware[name]).median()
            row |= {f"{event}, counted": f"{value:,.0f}" for event, value in medians.items()}
        rows.append(row)
    return pd.DataFrame(rows)


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


def glue_story(times: pd.DataFrame, counts: pd.DataFrame | str, hardware: dict | str) -> None:
    """Hand the ratios of the programs to the prose, and what the processor counted."""

    def ratio(slow: str, fast: str) -> Interval | None:
        found = results.ratio(times, slow, fast)
        return found and found.interval

    draw.glue("planted", words.planted(ratio("slow", "fast")))
    draw.glue("mended", words.mended(ratio("slow", "hot")))
    draw.glue("as-before", words.as_before(ratio("hot", "fast")))
    draw.glue("aligned", words.aligned(ratio("hot, aligned", "hot")))
    stalls = results.stalls_ratio(hardware)
    draw.glue("stalls", words.stalls(stalls if stalls is None or isinstance(stalls, str) else stalls.interval))


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


def glue_bisections(session: Session, bisections: pd.DataFrame) -> None:
    """Hand to the prose what was blamed, with the answers of the ledger."""
    said = ledger.sides(session)
    trap, quiet = (results.of_history(bisections, history) for history in (TRAP, NO_TRAP))
    others = trap[trap.found == 0].message.value_counts().to_dict()
    with_a_trap = words.blamed(
        results.blaming(bisections), others, said["D5", "share of bisections that blame the unrelated commit"]
    )
    without = words.blamed_by_chance(
        quiet.message.value_counts().to_dict(),
        results.standing(bisections),
        results.standing_without_code(bisections),
        said["D5", "share of blamed commits that stand, without a trap"],
    )
    draw.glue("blamed", with_a_trap)
    draw.glue("blamed-by-chance", without)
    draw.glue("prediction-4", words.prediction_4(with_a_trap, without))


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


def lottery_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The lottery's spread, and how many orders pass for a regression."""
    rows = []
    for label, of_it in drawn(runs).items():
        for benchmark in BENCHMARKS:
            raw, noise = results.spread(of_it, benchmark)
            spread = results.true_spread(of_it, benchmark)
            row = {
                "CPython": label,
                "benchmark": benchmark,
                "slowest / fastest": f"{raw:.3f}",
                "the same by noise alone": draw.text(noise),
                f"of {ORDERS} such orders, with the noise taken out": draw.text(spread.at()),
                "published, two binaries": PUBLISHED if benchmark == BENCHMARK else "",
            }
            for threshold in THRESHOLDS:
                for kind, word in (("order", "orders"), ("copy", "copies")):
                    found = results.passing(of_it, benchmark, kind, threshold)
                    row[f"{word} slower by {threshold - 1:.0%}"] = words.share_fragment(found)
                expected = results.passing_by_noise(of_it, benchmark, threshold)
                row[f"orders slower by {threshold - 1:.0%}, expected of noise"] = words.expected_fragment(expected)
            rows.append({**row, "n (orders)": spread.n})
    return pd.DataFrame(rows)


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
                own = (
                    results.over_default(of_it, benchmark, kind)
                    if kind != "copy"
                    else results.itself(of_it, benchmark).at()
                )
                rows.append(
                    {
                        **row,
                        "time over the linker's order": draw.text(own),
                        "time over the middle shuffled order": draw.words(results.over_orders(of_it, benchmark, kind)),
                        # No interval: its own noise is in each of these comparisons.
                        "shuffled orders that are faster": f"{faster.events} of {faster.trials}",
                        "n (links × duels)": "{} × {}".format(*results.by_round(of_it, benchmark, kind).shape),
                    }
                )
    return pd.DataFrame(rows).astype(object).fillna("")


def lottery_alt(runs: pd.DataFrame) -> str:
    """The figure in words."""
    ranges = {}
    for label, of_it in drawn(runs).items():
        for benchmark in BENCHMARKS:
            orders, copies = (results.ratios(of_it, benchmark, kind) for kind in ("order", "copy"))
            ranges[label, benchmark] = (orders.min(), orders.max(), copies.min(), copies.max())
    return f"Time of each linked CPython over that of the linker's own order. {words.lottery_for_alt(ranges)}"


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
    for label, of_it in drawn(runs).items():
        for benchmark in BENCHMARKS:
            misses, more = (
                results.missed(counted[label], benchmark),
                results.more_misses(of_it, counted[label], benchmark),
            )
            row = {"CPython": label, "benchmark": benchmark}
            if isinstance(misses, str):
                rows.append({**row, "slower less faster half": misses})
                continue
            orders = misses.drop(DEFAULT)
            rows.append(
                {
                    **row,
                    "linker's own order": rate(misses[DEFAULT]),
                    "lowest order": rate(orders.min()),
                    "highest order": rate(orders.max()),
                    "slower less faster half": more if isinstance(more, str) else draw.words(more),
                    "from the published counts, if both ran 30,000 million instructions": "28"
                    if benchmark == BENCHMARK
                    else "",
                    "n (orders)": len(orders),
                }
            )
    return pd.DataFrame(rows).astype(object).fillna("")


def glue_lottery(linked: dict[str, dict], runs: pd.DataFrame) -> None:
    """Hand to the prose how each build's lottery went."""
    for name, label in PAIR.items():
        where, of_it = WHERE[label], results.of_build(runs, label)
        lacking = linked[label]["lacking"]
        if lacking:
            draw.glue(f"luck-{name}", words.no_lottery(where, lacking))
            continue
        found = {
            threshold: {benchmark: results.passing(of_it, benchmark, "order", threshold) for benchmark in BENCHMARKS}
            for threshold in THRESHOLDS
        }
        expected = {
            threshold: {benchmark: results.passing_by_noise(of_it, benchmark, threshold) for benchmark in BENCHMARKS}
            for threshold in THRESHOLDS
        }
        draw.glue(
            f"luck-{name}", words.luck(where, found, expected, results.passing(of_it, BENCHMARK, "order", PUBLISHED))
        )
    passing = {
        WHERE[label]: linked[label]["lacking"]
        or (
            *(results.passing(of_it, BENCHMARK, kind, THRESHOLDS[0]) for kind in ("order", "copy")),
            results.passing_by_noise(of_it, BENCHMARK, THRESHOLDS[0]),
        )
        for label, of_it in ((label, results.of_build(runs, label)) for label in BUILDS)
    }
    draw.glue("prediction-3", words.prediction_3(passing))
    draw.glue("linking", words.linking(sum(of_it["seconds"] for of_it in linked.values())))


def glue_answers(
    session: Session,
    linked: dict[str, dict],
    duels: pd.DataFrame,
    missed: dict[str, list[dict] | str],
    profile: dict | str,
    counts: pd.DataFrame | str,
    counted: list[dict] | str,
    bisections: pd.DataFrame,
) -> None:
    """Hand to the prose what the rules say: these sentences take the answers of the ledger."""
    said = ledger.sides(session)
    spreads, misses, by_lot = {}, {}, []
    for name, label in PAIR.items():
        where, of_it, lacking = WHERE[label], results.of_build(duels, label), linked[label]["lacking"]
        for benchmark in BENCHMARKS:
            ruled = benchmark == BENCHMARK
            pair = lacking or results.of_pairs(of_it, benchmark).at()
            if ruled:
                verdict = said["D1", f"how far one pair of random orders in twenty differs, {benchmark} on {label}"]
                by_lot.append(verdict)
            else:
                verdict = "" if lacking else beyond(pair, THRESHOLDS[0])
            draw.glue(f"differ-{benchmark}-{name}", words.orders_differ(where, benchmark, pair, verdict))
            apart = lacking or results.true_spread(of_it, benchmark).at()
            spreads[benchmark, label] = (apart, "" if lacking else beyond(apart, THRESHOLDS[0]))
            rates = lacking or results.missed(missed[label], benchmark)
            if not ruled:
                own = results.missing_more(rates)
                draw.glue(f"own-order-{benchmark}-{name}", words.own_order(where, benchmark, own))
            more = rates if isinstance(rates, str) else results.more_misses(of_it, missed[label], benchmark)
            more = more if isinstance(more, str) else more.interval
            if ruled:
                of_misses = f"misses of a thousand instructions, slower less faster orders, {benchmark} on {label}"
                verdict = said["D3", of_misses]
            else:
                verdict = "" if isinstance(more, str) else beyond(more, words.MATTERS)
            misses[f"{benchmark} {where}"] = (more, verdict)
            bounds = (0.0, 0.0) if isinstance(rates, str) else (rates.drop(DEFAULT).min(), rates.drop(DEFAULT).max())
            draw.glue(f"misses-{benchmark}-{name}", words.miss_more(where, benchmark, more, *bounds, verdict))
        absent = lacking or linked[label]["absent"].get(BY_PROFILE, "")
        for benchmark in BENCHMARKS:
            found = None if absent else results.over_orders(of_it, benchmark, BY_PROFILE)
            hot = found and found.interval
            if benchmark == BENCHMARK:
                verdict = said["D6", f"hot functions together / the middle random order, {benchmark} on {label}"]
            else:
                verdict = "" if hot is None else beyond(-hot, -FASTER)
            among = None if absent else results.faster_orders(of_it, benchmark, BY_PROFILE)
            draw.glue(f"hot-{benchmark}-{name}", words.hot_together(where, benchmark, hot, among, verdict, absent))
    hottest = results.five_hottest(profile)
    unit = "" if isinstance(hottest, str) else hottest.unit
    shares = said["D4", "share of the five hottest functions, call_method"]
    draw.glue(
        "five-hottest", words.five_hottest(hottest if isinstance(hottest, str) else hottest.interval, unit, shares)
    )
    ratios = [results.counted_ratio(counts, what) for what in ("instructions", "misses")]
    work = [one if isinstance(one, str) else one.interval.value for one in ratios]
    draw.glue("same-work", words.same_work(*work, said["D2", "instructions, slow / fast (simulated)"]))

    draw.glue("prediction-2", words.prediction_2({WHERE[label]: spreads[BENCHMARK, label] for label in BUILDS}))
    draw.glue(
        "objection-planted",
        words.objection_planted(by_lot, results.standing(bisections), results.standing_without_code(bisections)),
    )
    draw.glue("objection-simulated", words.objection_simulated(misses, counted))
    draw.glue(
        "takeaway-orders",
        words.takeaway({f"{benchmark} {WHERE[label]}": one for (benchmark, label), (one, _) in spreads.items()}),
    )
    machine = session.machine
    draw.glue(
        "limits", words.limits(machine.get("virtual_machine"), machine.get("governor"), counted, machine.get("cpu"))
    )
