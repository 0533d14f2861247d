"""What the chapter "Measuring on a noisy machine" shows: tables, figures, and the numbers that its prose takes up."""

import numpy as np
import pandas as pd

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.judge import statistics
from ffilab.judge.estimates import LEVEL, Interval, Location, Share
from ffilab.judge.statistics import Comparison
from notebooks.measuring import results, words
from notebooks.measuring.experiment import OF_EACH

# ---- the talk's method ----


def talks_moments(moments: pd.DataFrame) -> pd.DataFrame:
    """The talk's table of one process, with units; a sample without any spread has no skewness."""
    in_ns = {name: f"{name} (ns)" for name in ("mean", "median", "std", "MAD")}
    shown = {name: moments[name].map("{:,.1f}".format) for name in in_ns} | {"cv": moments.cv.map("{:.4f}".format)}
    for name in ("skewness", "kurtosis"):
        shown[name] = ["all values equal" if np.isnan(value) else f"{value:.2f}" for value in moments[name]]
    return moments.assign(**shown).rename(columns=in_ns | {"n": "n, after the filter"})


def talks_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """The talk's test of one process."""
    shown = {name: pairs[name].map(results.p_value) for name in ("U p", "BH p")}
    return pairs.assign(**shown, shift=pairs["shift"].map("{:.1%}".format)).round({"Cliff's delta": 3})


def show_talk(runs: pd.DataFrame) -> None:
    """One process of the talk's method: both tables, and what one sample is made of."""
    moments, pairs = results.talk_tables(runs)
    draw.table(talks_moments(moments), "The talk's statistics for one call through four bindings. One process.")
    draw.table(talks_pairs(pairs), "The talk's test of the six pairs. Cliff's delta and shift are ours.")
    different = int((pairs["BH p"] < words.BY_CHANCE).sum())
    draw.glue("talk-table", words.talks_table(different, len(pairs), pairs["BH p"].max()))
    clock = results.clock(runs)
    draw.glue("clock-step", f"{clock['step']:.0f} ns (here, in one process)")
    draw.glue("clock-empty", f"{clock['empty sample']:.0f} ns (median of one process)")
    draw.glue("talk-apart", results.p_value(results.without_overlap()))


def show_pairs(found: pd.DataFrame) -> None:
    """The six pairs in all processes."""
    every = results.by_pair(found)
    faster = [", ".join(f"{name} in {n}" for name, n in counts.items()) for counts in every.faster]
    shown = every.assign(faster=faster, shift=every["shift"].map("{:.1%}".format))
    draw.table(
        shown.rename(columns={"different": "called different", "shift": "shift, median", "n": "n, processes"}),
        "The talk's test in every process: how often it calls a pair different, and whom the faster one.",
    )
    separated = results.all_separated(found)
    known = words.separated(separated.interval, found.process.nunique()) if not isinstance(separated, str) else None
    draw.glue("talk-separates", known or draw.NOT_MEASURED)
    draw.glue("winners", words.winners(dict(zip(every.pair, every.faster))))
    draw.glue("first-table", words.first_table(every.faster.iloc[0]))


def plot_leaning(figure, pairs: pd.DataFrame) -> None:
    """Cliff's delta of each pair, by which copy was measured first."""
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    significant = results.significant(pairs)
    for number, axes in enumerate(panels):
        for flag, label, marker, colour in ((True, "called significant", "o", 0), (False, "not significant", "x", 1)):
            part = pairs[(significant == flag) & (pairs.measured_first == number)]
            axes.plot(part["Cliff's delta"], part.index, marker, ms=4, color=draw.PALETTE[colour], label=label)
        axes.axvline(0, linestyle=":", color="gray")
        axes.set_title(f"copy {number + 1} measured first")
        axes.set_xlabel("Cliff's delta, copy 1 over copy 2")
    panels[0].set_ylabel("process")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


def show_alarms(pairs: pd.DataFrame, alarms: Interval, bindings: pd.DataFrame) -> None:
    """The talk's method against itself: the figure, and what it says."""
    draw.figure(
        lambda figure: plot_leaning(figure, pairs),
        "How the samples of two copies of one call lie to each other, one point a process, by which copy was measured first. "
        f"Right of zero copy 1 is slower. {words.prediction_1(alarms)}",
        data=pairs,
    )
    reach = results.yardstick(pairs)
    draw.glue("talk-alarms", words.alarms(alarms, len(pairs), reach, results.tiny(pairs)))
    draw.glue("beyond", words.beyond(results.beyond(bindings, reach[LEVEL]), reach[LEVEL]))
    separated = results.all_separated(bindings)
    known = None if isinstance(separated, str) else words.reader_of_tables(separated.interval, alarms)
    draw.glue("reader", known or draw.NOT_MEASURED)
    draw.glue("position", words.position(results.leaning(pairs)))
    draw.glue("prediction-1", words.prediction_1(alarms))


# ---- a benchmark, step by step ----


def mechanism(in_one: pd.DataFrame, restarts: pd.DataFrame) -> pd.DataFrame:
    """What each step takes as its values: timings of one process, turns of one process, medians of processes.

    Columns step, place (number of the timing, or of the process), copy (1, 2), time (ns).
    """
    rows = []
    for step, name in ((1, "one_after_the_other"), (2, "interleaved")):
        timings = in_one[in_one.step == name].sort_values("process").timings.iloc[0]
        rows += [(step, place, which + 1, ns) for place, (which, ns) in enumerate(timings, 1)]
    for place, timings in enumerate(restarts.sort_values("process").timings.iloc[:OF_EACH], 1):
        rows += [(3, place, which + 1, np.exp(np.median(results.times_of(timings, which)))) for which in (0, 1)]
    return pd.DataFrame(rows, columns=["step", "place", "copy", "time (ns)"])


def shown_up_to(found: pd.DataFrame) -> float:
    """The longest time (ns) that the figure shows: twice the median, or less if none is longer."""
    times = found["time (ns)"]
    return float(times[times <= 2 * times.median()].max())


def plot_mechanism(figure, found: pd.DataFrame) -> None:
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (step, part) in zip(panels, found.groupby("step")):
        for copy, marker in ((1, "o"), (2, "^")):
            of_copy = part[part["copy"] == copy]
            axes.plot(
                of_copy.place, of_copy["time (ns)"], marker, ms=5, color=draw.PALETTE[copy - 1], label=f"copy {copy}"
            )
        axes.set(title=f"step {step}", xlabel="process" if step == 3 else "timing")
    # What was interrupted would squeeze all the others into one line.
    panels[0].set_ylim(found["time (ns)"].min() * 0.98, shown_up_to(found) * 1.02)
    panels[0].set_ylabel("time of a call (ns)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


def show_mechanism(in_one: pd.DataFrame, restarts: pd.DataFrame) -> None:
    """What is one value in each step."""
    found = mechanism(in_one, restarts)
    outside = int((found["time (ns)"] > shown_up_to(found)).sum())
    draw.figure(
        lambda figure: plot_mechanism(figure, found),
        "Times of two copies of one call, one benchmark of each step. Step 1: all timings of copy 1, then all of copy 2. Step 2: "
        "timings of both in random order. Step 3: a median of each copy for each of eight processes. "
        f"Points that lie above what is shown: {outside}.",
        size=(8.4, 3.4),
        data=found,
    )


def alarms_by_step(shares: dict[int, Share]) -> pd.DataFrame:
    """Columns step, value, low, high (shares), alarms, n."""
    rows = [
        {"step": f"{step}: {words.STEPS[step]}", **vars(share.at()), "alarms": share.events, "n": share.trials}
        for step, share in shares.items()
    ]
    return pd.DataFrame(rows, columns=["step", "value", "low", "high", "alarms", "n"])


def plot_alarms(figure, found: pd.DataFrame) -> None:
    axes = figure.subplots()
    shown = found.assign(**{name: found[name] * 100 for name in ("value", "low", "high")})
    draw.intervals(axes, shown, "step")
    axes.axvline(100 * words.AT_THE_BOOKS_LEVEL, linestyle=":", color="gray")
    axes.set(xlabel="false alarms (% of benchmarks)", xlim=(-2, None))


def show_steps(shares: dict[int, Share]) -> None:
    """The false alarms of each step, and what became of them."""
    found = alarms_by_step(shares)
    seen = "; ".join(f"{row.step}, {draw.text(Interval.of(row), '%', 100)}" for row in found.itertuples())
    if len(found):
        draw.figure(
            lambda figure: plot_alarms(figure, found),
            f"False alarms by step, with the {words.RARE} of chance dotted: {seen}. {words.steps_together(shares)}",
            size=(7.2, 2.4),
            data=found,
        )
        table = found.assign(share=[draw.text(Interval.of(row), "", 100) for row in found.itertuples()])
        draw.table(
            table[["step", "alarms", "n", "share"]].rename(columns={"n": "n, benchmarks", "share": "false alarms (%)"}),
            "Two copies of one call: how many benchmarks of each kind call them different.",
        )
    for step in words.STEPS:
        draw.glue(f"step-{step}", words.step_alarms(shares, step))
    draw.glue("steps", words.steps_together(shares))
    draw.glue("prediction-2", words.prediction_2(shares))


# ---- the corrected experiment ----


def plot_restarts(figure, medians: pd.DataFrame) -> None:
    axes = figure.subplots()
    for marker, (process, part) in zip("ox", medians.groupby("process", sort=False)):
        axes.plot(part.restart, (part.ratio - 1) * 100, marker, label=process)
    axes.set(xlabel="restart", ylabel="over the reference (%)")
    figure.legend(loc="outside upper center", ncols=2)


def show_restarts(record: Record, spread: Interval, medians: pd.DataFrame) -> None:
    """Every restart, and what the spread between processes says."""
    draw.figure(
        lambda figure: plot_restarts(figure, medians),
        "Time of a CDLL call over that of the reference, in the process that is restarted and in one that is kept; a point of each "
        f"a restart. {words.spread(spread)}",
        data=medians,
    )
    draw.glue("spread", words.spread(spread))
    draw.glue("pseudo-words", words.pseudo_replication(*results.pseudo_replication(record)))
    draw.glue("restarts", f"{medians.restart.nunique()} restarts")
    draw.glue("noise", record.noise.report)
    draw.glue("prediction-3", words.prediction_3(spread))


# ---- a neighbour on the core ----


def show_company(record: Record) -> None:
    """How much company the core had, what it costs each arm, and whether it moves a ratio."""
    found = results.slowdowns(record)
    known = found[np.isfinite(found.low)]
    if len(known):
        table = known.assign(
            company=known.company.map("{:.0%}".format),
            times=[draw.text(Interval.of(row)) for row in known.itertuples()],
        )
        draw.table(
            table[["arm", "company", "times", "n"]].rename(
                columns={
                    "company": "work with company",
                    "times": "takes so many times as long",
                    "n": "n, restarts with both",
                }
            ),
            "What company on the core does to the time of a call: batches with company over batches without.",
        )
    moved = results.moved_by_company(record)
    draw.glue("company", words.company(results.company(record), moved.at(), moved.n))
    draw.glue("prediction-4", words.prediction_4(moved.at()))


# ---- layouts ----


def plot_layouts(figure, alone: pd.DataFrame, over: Interval, next_build: Interval) -> None:
    """Each layout's own interval, over the bands of all layouts and of the next build."""
    axes = figure.subplots()
    ordered = alone.sort_values("value").reset_index(drop=True)
    axes.axvspan(next_build.low, next_build.high, alpha=0.12, color=draw.PALETTE[1], label="the next build")
    axes.axvspan(over.low, over.high, alpha=0.3, color=draw.PALETTE[1], label="over layouts")
    errors = [ordered.value - ordered.low, ordered.high - ordered.value]
    axes.errorbar(
        ordered.value, ordered.index, xerr=errors, fmt="o", capsize=3, label="one layout, from its own restarts"
    )
    axes.set(xlabel="CDLL over PyDLL", ylabel="layout", yticks=[])
    figure.legend(loc="outside upper center", ncols=3)


def show_layouts(record: Record) -> None:
    """The figure of layouts, and the words that go with it; or why there is none."""
    alone, found = results.by_layout(record), results.levels_and_zero(record)
    if alone.empty or found.empty:
        draw.glue("layouts", words.layouts(None, None, any(unit.layout is not None for unit in record.kept)))
        draw.glue("levels", words.levels(None, None, None))
        return
    estimate = results.loaders_compared(record).estimate
    over, next_build = estimate.at(), estimate.next_build
    layout, below, *copies = (Interval.of(row) for row in found.itertuples())
    draw.figure(
        lambda figure: plot_layouts(figure, alone, over, next_build),
        f"CDLL over PyDLL on {len(alone)} layouts of one interpreter, each with the interval of its own restarts. Over layouts "
        f"{draw.text(over)}; the next build {draw.bounds(next_build.low, next_build.high)}.",
        data=alone,
    )
    draw.glue("layouts", words.layouts(results.one_binary_alone(alone, over), next_build))
    draw.glue("levels", words.levels(layout, below, copies[1] if copies else None))


# ---- tables of the other sections ----


def collector(found: dict[str, Location]) -> pd.DataFrame:
    """What the collector costs, by what is done."""
    rows = [
        {"statement": what, "time, collector on / off": draw.text(one.at()), "n, layouts": one.n}
        for what, one in found.items()
    ]
    return pd.DataFrame(rows)


def copies(pairs: list[Comparison]) -> pd.DataFrame:
    """Every pair of copies with our interval and finding."""
    return pd.DataFrame(
        [
            {
                "pair": f"{pair.slow[1]} / {pair.fast[1]}",
                "ratio of times": draw.text(pair.ratio),
                "n, layouts": pair.estimate.n,
                "finding": statistics.finding(pair) or "none",
            }
            for pair in pairs
        ]
    )


def show_copies(pairs: list[Comparison], loaders: Comparison, alarms: int | None) -> None:
    """Whether the instrument passes its own test, and what the same run says of the loaders."""
    draw.table(copies(pairs), "Three copies of one call: every finding here is a false alarm.")
    draw.glue("copies", words.copies(alarms, len(pairs)))
    draw.glue("level", f"{LEVEL:.0%}")
    draw.glue("loaders", words.loaders(loaders.ratio, loaders.mde, alarms))


def counts(found: list[dict]) -> pd.DataFrame:
    """Instructions per pass of the loop, a row for each interpreter."""
    table = pd.DataFrame(found).pivot(index="interpreter", columns="arm", values="instructions").round(1)
    return table[["CDLL", "PyDLL", "empty loop"]].rename_axis(index="CPython", columns=None).reset_index()


def shares(found: pd.DataFrame) -> pd.DataFrame:
    """Shares of the time by group of symbols, a row for each interpreter."""
    rows = [
        {"CPython": label, **{row.group: f"{row.share:.1%}" for row in part.itertuples()}}
        for label, part in found.groupby("interpreter", sort=False)
    ]
    return pd.DataFrame(rows)
