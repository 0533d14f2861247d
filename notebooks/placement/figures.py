"""What the chapter "Code placement" shows: tables, figures, and the numbers that its prose takes up."""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from ffilab import draw
from ffilab.bench.session import Session
from ffilab.judge import ledger
from ffilab.judge.estimates import Interval, Measurement, Share
from ffilab.judge.processes import interval_of
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.placement import results, words
from notebooks.placement.exercise import SUSPECTS
from notebooks.placement.experiment import APART, DENSE, MANY, PACKED, SPREAD, Cache
from notebooks.placement.lottery import ANYWHERE, BENCHMARKS, BUILDS, DEFAULT, TOGETHER
from notebooks.placement.numbers import BY_LOT
from notebooks.placement.results import NO_TRAP, PUBLISHED, THRESHOLDS, TRAP
from notebooks.placement.story import CHANGE_CODE, PROGRAMS

# How the prose calls the builds, and the benchmark of the document.
WHERE = {GIL: "with the GIL", FREE_THREADED: "without the GIL"}
BENCHMARK = "call_method"
# The lines of the first figure; the table has all distances.
SHOWN = {
    PACKED: "16 bytes",
    DENSE: "a line each",
    2048: "two sets",
    SPREAD: "a page each",
    APART: "a page each, one set",
}
# Numbers of functions in the table of three distances.
NAMED = (4, 6, 8, 10, 12, 16, 32, 64, 128, MANY)
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
                f"pages: {SPREAD} / {DENSE}": draw.text(results.slower_than(runs, SPREAD, DENSE, n)),
                f"sets: {APART} / {SPREAD}": draw.text(results.slower_than(runs, APART, SPREAD, n)),
                "n (processes)": runs.process.nunique(),
            }
        )
    return pd.DataFrame(rows)


def glue_distances(runs: pd.DataFrame, cache: Cache) -> None:
    """Hand to the prose what the clock says of lines, sets and pages."""
    of_pages, of_sets = results.price_of_pages(runs), results.price_of_sets(runs)
    elsewhere = {
        n: one
        for n in NAMED
        if n < MANY and n in set(runs.n) and (one := results.slower_than(runs, SPREAD, DENSE, n)).low > 1
    }
    draw.glue("stay-fast", words.stay_fast(*results.fits(runs, APART), results.too_slow_before(runs, APART), cache))
    draw.glue("pages-or-sets", words.pages_or_sets(of_pages, of_sets, elsewhere))
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
    """Hand to the prose what places of the loop do; a figure only if they do something."""
    found = results.offsets_apart(runs)
    draw.glue("loops", words.loops(found, runs.process.nunique()))
    if results.matters(found):
        draw.figure(
            lambda figure: plot_extremes(figure, runs, "offset"),
            "Time of one round over the offset of the loop, one point for each process.",
            data=runs[["offset", "process", "ns"]],
        )


def show_environments(runs: pd.DataFrame) -> None:
    """The same for sizes of the environment."""
    found = results.environments_apart(runs)
    draw.glue("environment", words.environment(found.get(True), found.get(False)))
    if any(map(results.matters, found.values())):
        draw.figure(
            lambda figure: plot_extremes(figure, runs, "bytes", "random"),
            "Time of one round over the size of the environment, one point for each process.",
            data=runs[["random", "bytes", "ns"]],
        )


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
    """Hand the ratios of the programs to the prose, and what was counted."""

    def ratio(slow: str, fast: str) -> Interval | None:
        return interval(results.ratio(times, slow, fast))

    draw.glue("planted", words.planted(ratio("slow", "fast")))
    draw.glue("mended", words.mended(ratio("slow", "hot")))
    draw.glue("as-before", words.as_before(ratio("hot", "fast")))
    draw.glue("aligned", words.aligned(ratio("hot, aligned", "hot")))
    draw.glue("stalls", words.stalls(interval(results.stalls_ratio(hardware))))
    draw.glue(
        "same-work", words.same_work(*(results.counted_ratio(counts, what) for what in ("instructions", "misses")))
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


def glue_bisections(session: Session, bisections: pd.DataFrame) -> None:
    """Hand to the prose what was blamed, with the answers of the ledger."""
    said = ledger.sides(session)
    trap, quiet = (results.of_history(bisections, history) for history in (TRAP, NO_TRAP))
    others = trap[trap.found == 0].message.value_counts().to_dict()
    messages = quiet.message.value_counts().to_dict()
    named = results.blaming(bisections)
    draw.glue("blamed", words.blamed(named, others, said["D5", "share of bisections that blame the unrelated commit"]))
    draw.glue(
        "blamed-by-chance",
        words.blamed_by_chance(
            messages,
            results.standing(bisections),
            results.standing_without_code(bisections),
            said["D5", "share of blamed commits that stand, without a trap"],
        ),
    )
    draw.glue("prediction-4", words.prediction_4(named, messages))


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
            noise = words.expected_fragment(results.passing_by_noise(of_it, benchmark, threshold))
            row[f"orders slower by {threshold - 1:.0%} (by noise alone)"] = (
                f"{found.events} of {found.trials} ({noise})"
            )
        rows.append({**row, "n (orders)": spread.n})
    return pd.DataFrame(rows)


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


def glue_lots(session: Session, linked: dict[str, dict], runs: pd.DataFrame) -> None:
    """Hand to the prose what random orders decide, with the answers of the ledger."""
    orders = by_lot(runs)
    found = answered(
        session, "D1", lambda benchmark, label: results.of_pairs(results.of_build(runs, label), benchmark).at(), linked
    )
    as_published = [
        results.passing(of_it, BENCHMARK, "order", PUBLISHED) for (one, _), of_it in orders.items() if one == BENCHMARK
    ]
    published = Share(sum(one.events for one in as_published), sum(one.trials for one in as_published))
    own = {
        named(*key): (
            interval(results.over(of_it, key[0], "order", "copy")),
            list(results.ratios(of_it, key[0], "order")),
        )
        for key, of_it in orders.items()
    }
    passing = {
        named(*key): (
            results.passing(of_it, key[0], "order", THRESHOLDS[0]),
            results.passing_by_noise(of_it, key[0], THRESHOLDS[0]),
        )
        for key, of_it in orders.items()
    }
    ranges = {
        WHERE[label]: linked[label]["lacking"] or results.true_spread(results.of_build(runs, label), BENCHMARK).at()
        for label in BUILDS
    }
    draw.glue("lots", words.lots(found, published))
    draw.glue("own-order", words.own_order(own))
    draw.glue("prediction-2", words.prediction_2(ranges))
    draw.glue("prediction-3", words.prediction_3(passing))
    draw.glue("takeaway-orders", words.takeaway(found))


def glue_misses(
    session: Session,
    linked: dict[str, dict],
    runs: pd.DataFrame,
    missed: dict[str, list[dict] | str],
    stalled: dict[str, list[dict] | str],
) -> None:
    """Hand to the prose whether slow orders miss and stall more."""
    found = answered(
        session,
        "D3",
        lambda benchmark, label: interval(results.more_misses(results.of_build(runs, label), missed[label], benchmark)),
        linked,
    )
    highest = {
        named(benchmark, label): results.missed(missed[label], benchmark).drop(DEFAULT).max()
        for benchmark, label in by_lot(runs)
        if not isinstance(missed[label], str)
    }
    draw.glue("misses", words.miss_more(found, highest))
    stalls = answered(
        session,
        "D2",
        lambda benchmark, label: interval(
            results.more_stalls(results.of_build(runs, label), stalled[label], benchmark)
        ),
        linked,
    )
    draw.glue("stalls-by-lot", words.stall_more(stalls))


def glue_hot(session: Session, linked: dict[str, dict], runs: pd.DataFrame, profile: dict | str) -> None:
    """Hand to the prose what it does to have the hot functions together, and how many there are."""
    found = answered(
        session,
        "D6",
        lambda benchmark, label: (
            linked[label]["absent"]
            or interval(results.over(results.of_build(runs, label), benchmark, TOGETHER, ANYWHERE))
        ),
        linked,
    )
    draw.glue("hot", words.hot_together(found))
    hottest = results.five_hottest(profile)
    unit = "" if isinstance(hottest, str) else hottest.unit
    share = ledger.sides(session)["D4", "share of the five hottest functions, call_method"]
    draw.glue("five-hottest", words.five_hottest(interval(hottest), unit, share))


def answered(session: Session, claim: str, find, linked: dict[str, dict]) -> dict[str, tuple]:
    """By benchmark and build: the number that `find` gives, or why there is none, and the ledger's answer."""
    said, name = ledger.sides(session), BY_LOT[claim][0]
    return {
        named(benchmark, label): (
            linked[label]["lacking"] or find(benchmark, label),
            said[claim, f"{name}, {benchmark} on {label}"],
        )
        for benchmark in BENCHMARKS
        for label in BUILDS
    }


def named(benchmark: str, label: str) -> str:
    return f"{benchmark} {WHERE[label]}"


def interval(found: Measurement | str | None) -> Interval | str | None:
    """Of a measurement its interval; a reason stays as it is."""
    return found.interval if isinstance(found, Measurement) else found


def glue_limits(session: Session, counted: list[dict] | str) -> None:
    """Hand to the prose what this machine shows of itself."""
    machine = session.machine
    draw.glue(
        "limits", words.limits(machine.get("virtual_machine"), machine.get("governor"), counted, machine.get("cpu"))
    )
