"""What the chapter "Measuring on a noisy machine" shows: tables, figures, and the numbers that its prose takes up."""

import numpy as np
import pandas as pd

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.judge import statistics
from ffilab.judge.estimates import LEVEL, Interval
from ffilab.judge.statistics import Comparison
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.measuring import results


def glue_clock(clock: dict[str, float]) -> None:
    """Hand what one sample is made of to the prose."""
    draw.glue("clock-step", f"{clock['step']:.0f} ns (here, in one process)")
    draw.glue("clock-empty", f"{clock['empty sample']:.0f} ns (median of one process)")


def plot_shifts(figure, pairs: pd.DataFrame) -> None:
    axes = figure.subplots()
    significant = results.significant(pairs)
    for flag, label, marker in ((True, "called significant", "o"), (False, "not significant", "x")):
        part = pairs[significant == flag]
        axes.plot(part["shift"] * 100, part.index, marker, label=label)
    axes.axvline(0, linestyle=":", color="gray")
    axes.set(xlabel="shift between two copies of one call (%)", ylabel="process")
    axes.legend()


def glue_separated(runs: pd.DataFrame, separated: Interval) -> None:
    """Hand how often the talk's method tells the loaders apart to the prose."""
    draw.glue("talk-separates", draw.text(separated, "%", 100))
    draw.glue("talk-processes", f"{len(runs)} fresh processes")


def glue_alarms(pairs: pd.DataFrame, alarms: Interval) -> None:
    """Hand what the talk's method says of two copies to the prose."""
    draw.glue("talk-alarms", draw.text(alarms, "%", 100))
    draw.glue("talk-runs", f"{len(pairs)} fresh processes")
    draw.glue("talk-worst", f"{pairs['shift'].abs().max():.1%}")


def plot_restarts(figure, medians: pd.DataFrame) -> None:
    axes = figure.subplots()
    for marker, (process, part) in zip("ox", medians.groupby("process", sort=False)):
        axes.plot(part.restart, (part.ratio - 1) * 100, marker, label=process)
    axes.set(xlabel="restart", ylabel="time over the reference's (%, from the median)")
    axes.legend()


def glue_restarts(record: Record, spread: Interval, medians: pd.DataFrame) -> None:
    """Hand the spread between processes, and what follows from it, to the prose."""
    draw.glue("spread", draw.text(spread))
    widths = results.pseudo_replication(record)
    draw.glue("wrong-width", f"±{widths['blocks']:.2%}")
    draw.glue("right-width", f"±{widths['restarts']:.2%}")
    draw.glue("pseudo-words", pseudo_replication_in_words(widths))
    draw.glue("restarts", f"{medians.restart.nunique()} restarts")
    draw.glue("noise", record.noise.report)


def pseudo_replication_in_words(widths: dict[str, float]) -> str:
    """What the two widths of this run say."""
    factor = widths["restarts"] / widths["blocks"]
    if factor > 1:
        return f"The first is too narrow by a factor of {factor:.1f}: confidence that nothing has earned."
    return "In this run the two hardly differ: the noise inside the processes outweighs the spread between them."


# ---- a neighbour on the core ----


def plot_company(figure, shares: np.ndarray) -> None:
    axes = figure.subplots()
    axes.plot(shares * 100, ".", markersize=3)
    axes.set(xlabel="block, in the order of measuring", ylabel="work with company (%)", ylim=(-5, 105))


def show_company(record: Record) -> None:
    """How much company the core had, what it costs each arm, and whether it moves a ratio."""
    shares, found = results.company(record), results.slowdowns(record)
    draw.figure(
        lambda figure: plot_company(figure, shares),
        f"Share of each block's work during which something else ran on the core: {shares.mean():.0%} on average, in "
        f"{len(shares):,} blocks.",
    )
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
    draw.glue("company", company_in_words(shares.mean(), results.moved_by_company(record)))


def company_in_words(share: float, moved: Interval) -> str:
    """Whether a ratio depends on the neighbour; moved: with NaN bounds if there was too little company to tell, or too much."""
    if not moved.is_known:
        return (
            f"Here the probes saw company in {share:.1%} of the work: too little to tell what it does to a ratio, or too much. "
            "A core that has company all the time would look like a quiet one."
        )
    told = f"with company CDLL over PyDLL is {draw.text(moved)} times what it is without"
    if moved.excludes(1):
        return f"The ratio depends on it: {told}. Over both, it would say how busy the neighbour was in these minutes."
    return f"Whether this ratio depends on it was not found out: {told}."


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
    axes.legend(loc="upper left")


def plot_levels(figure, found: pd.DataFrame) -> None:
    """What each level adds to the scatter."""
    axes = figure.subplots()
    part = found.assign(**{name: found[name] * 100 for name in ("value", "low", "high")})
    draw.intervals(axes, part, "level")
    axes.set(xlabel="standard deviation that it adds to CDLL over PyDLL (%)")


def show_layouts(record: Record) -> None:
    """The figures of layouts and levels, and the words that go with them; or why there are none."""
    alone, found = results.by_layout(record), results.levels(record)
    if alone.empty or found.empty:
        draw.glue("layouts", lacking_in_words(record))
        draw.glue("levels", levels_in_words(found))
        return
    estimate = results.loaders_compared(record).estimate
    over, next_build = estimate.at(), estimate.next_build
    draw.figure(
        lambda figure: plot_layouts(figure, alone, over, next_build),
        f"CDLL over PyDLL on {len(alone)} layouts of one interpreter, each with the interval of its own restarts. Over layouts "
        f"{draw.text(over)}; the next build {draw.bounds(next_build.low, next_build.high)}.",
    )
    draw.figure(
        lambda figure: plot_levels(figure, found),
        "Standard deviation (%) that a layout and a restart add to CDLL over PyDLL, on this machine: "
        + ", ".join(f"{row.level} {draw.text(Interval.of(row), '%', 100)}" for row in found.itertuples())
        + ".",
    )
    draw.glue("layouts", layouts_in_words(alone, over, next_build))
    draw.glue("levels", levels_in_words(found))


def lacking_in_words(record: Record) -> str:
    """Why there are no intervals of single layouts."""
    if any(unit.layout is not None for unit in record.kept):
        return "Here each layout had too few restarts for an interval of its own."
    return (
        "No layouts were drawn here: the interpreter was not compiled on this machine, or no linker can order functions. "
        "What another binary would show is not known."
    )


def layouts_in_words(alone: pd.DataFrame, over: Interval, next_build: Interval) -> str:
    """How far the interval of one binary can be trusted, as this run saw it."""
    count = results.hold_the_mean(alone, over)
    here = (
        f"Of {len(alone)} intervals, each from the restarts of one binary, {count} contain the mean over all of them."
    )
    if count >= LEVEL * len(alone):
        return f"{here} In this run one binary would have been as good as another."
    return (
        f"{here} Each of the others may be right about its own binary, and is wrong about the version. A single link of the next "
        f"build has to be expected anywhere in {draw.bounds(next_build.low, next_build.high)}."
    )


def levels_in_words(found: pd.DataFrame) -> str:
    """Which level scatters more, by their intervals."""
    if found.empty:
        return "Nothing is known of what a layout adds."
    layout, restart = (Interval.of(row) for row in found.set_index("level").loc[["layout", "restart"]].itertuples())
    sizes = f"A layout adds {draw.text(layout, '%', 100)}, a restart {draw.text(restart, '%', 100)}."
    if layout.low > restart.high:
        return (
            f"{sizes} Restarting one binary, however often, averages the smaller of the two away, and never the larger."
        )
    if layout.high < restart.low:
        return f"{sizes} Here the restart is the larger one: for this ratio the choice of a binary mattered less."
    return f"{sizes} Which is larger this run cannot tell."


def collector(found: dict[str, Interval]) -> pd.DataFrame:
    """What the collector costs, by what is done."""
    return pd.DataFrame(
        [{"statement": what, "collector on / off": draw.text(interval)} for what, interval in found.items()]
    )


def collector_in_words(found: dict[str, Interval]) -> str:
    """For which statements it matters that timeit switches the collector off."""
    words = []
    for what, interval in found.items():
        if interval.low > 1:
            words.append(
                f"{what} takes {draw.text(interval.map(lambda ratio: 100 * (ratio - 1)), '%')} more with the collector on"
            )
        elif interval.high < 1:
            words.append(f"{what} takes less with the collector on, {draw.text(interval)} times as long")
        else:
            words.append(f"for {what} no difference was found, {draw.text(interval)}")
    return f"Here {'; '.join(words)}."


def history(found: list[dict]) -> None:
    """The empirical coverage of this machine's log, or that there is none yet."""
    if not found:
        draw.glue("history", "The log of this machine holds no two runs of one ratio yet: run the book again.")
        return
    table = pd.DataFrame(found)
    draw.table(
        table.assign(inside=table.inside.map("{:.0%}".format)),
        "How often an interval of one run held the centre of another, on this machine, over all pairs of runs in its log.",
    )
    honest = table[(table.interval == "over layouts")]
    draw.glue("history", history_in_words(honest))


def history_in_words(honest: pd.DataFrame) -> str:
    """What the log says of the intervals over layouts."""
    if honest.empty:
        return "The log of this machine holds no two intervals over layouts of one ratio yet."
    worst = honest.loc[honest.inside.idxmin()]
    told = f"Intervals over layouts held the centre of another run in {worst.inside:.0%} of {worst.pairs} pairs ({worst.kind})"
    if worst.inside >= 0.9:
        return f"{told} or more."
    return f"{told}: on this machine they are narrower than they should be, and small effects on these pages are to be read with care."


def copies(pairs: list[Comparison]) -> pd.DataFrame:
    """Every pair of copies with our interval and verdict, p adjusted over the family."""
    adjusted = statistics.adjusted([pair.p for pair in pairs])
    return pd.DataFrame(
        [
            {
                "pair": f"{pair.slow[1]} / {pair.fast[1]}",
                "ratio": draw.text(pair.ratio),
                "BH p": f"{p:.2g}",
                "finding": statistics.finding(pair) or "none",
            }
            for pair, p in zip(pairs, adjusted)
        ]
    )


def glue_loaders(found: Comparison) -> None:
    """Hand CDLL / PyDLL to the prose, and what the run could have found."""
    draw.glue("pydll-ratio", draw.text(found.ratio))
    draw.glue("level", f"{LEVEL:.0%}")
    draw.glue("pydll-mde", f"{found.mde:.2%}")


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


def contest(found: dict) -> pd.DataFrame:
    """Our instrument beside pyperf, in words."""

    def percent(value, digits=2):
        """A share in words; None: nothing of what was tried, or too few runs."""
        return "not reached" if value is None else f"{value:.{digits}%}"

    aa, detect = found["aa"], found["detect"]
    rows = [
        (
            f"false positives, {state}",
            *(f"{percent(aa[state][who], 1)} of {aa[state]['n'][who]}" for who in ("ours", "pyperf")),
        )
        for state in ("idle", "burner")
    ]
    for what, title in (("loaders", "CDLL / PyDLL"), ("gil", f"{GIL} / {FREE_THREADED}")):
        width = found["half_width"][what]
        seconds = {who: f"in {width['seconds'][who]:.1f} s" for who in ("ours", "pyperf")}
        rows.append(
            (
                f"half-width of {title} that one run states",
                f"±{percent(width['ours'])} {seconds['ours']}",
                f"±{percent(width['pyperf_nominal'])} (from its t test) {seconds['pyperf']}",
            )
        )
        rows.append(
            (
                f"{found.get('reach', 1.96):.2f} standard deviations of {title} over {width['n']} runs",
                f"±{percent(width['ours_spread_of_ratios'])}",
                f"±{percent(width['pyperf'])}",
            )
        )
    rows.append(("smallest slowdown found in 9 of 10", *(percent(detect[who], 1) for who in ("ours", "pyperf"))))
    return pd.DataFrame(rows, columns=["question", "ours", "pyperf"])
