"""What the chapter "Measuring on a noisy machine" shows: tables, figures, and the numbers that its prose takes up."""

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
