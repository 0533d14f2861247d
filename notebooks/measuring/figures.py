"""What the chapter "Measuring on a noisy machine" shows: tables and figures."""

import numpy as np
import pandas as pd

from ffilab.judge.estimates import LEVEL, Interval, Location, Share
from ffilab.judge.questions import above
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.judge.statistics import Comparison
from ffilab.measure import profile
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.page import chapter, draw
from notebooks.measuring import numbers
from notebooks.measuring.experiment import OF_EACH

STEPS = {1: "one process, one copy after the other", 2: "one process, interleaved", 3: "eight processes, interleaved"}


def show_talk(runs: pd.DataFrame) -> None:
    """One process of the talk's method. A sample without any spread has no skewness."""
    moments, pairs = numbers.talk_tables(runs)
    in_ns = {name: f"{name} (ns)" for name in ("mean", "median", "std", "MAD")}
    shown = {name: moments[name].map("{:,.1f}".format) for name in in_ns} | {"cv": moments.cv.map("{:.4f}".format)}
    for name in ("skewness", "kurtosis"):
        shown[name] = ["all values equal" if np.isnan(value) else f"{value:.2f}" for value in moments[name]]
    draw.table(
        moments.assign(**shown).rename(columns=in_ns | {"n": "n, after the filter"}),
        "The talk's statistics for one call through four bindings. One process.",
        columns=("sample", "n, after the filter", "median (ns)", "MAD (ns)"),
    )
    shown = {name: pairs[name].map(numbers.p_value) for name in ("U p", "BH p")}
    draw.table(
        pairs.assign(**shown, shift=pairs["shift"].map("{:.1%}".format)).round({"Cliff's delta": 3}),
        "The talk's test of the six pairs.",
        columns=("pair", "BH p", "faster", "shift"),
    )


def show_pairs(found: pd.DataFrame) -> None:
    """The six pairs in all processes."""
    every = numbers.by_pair(found)
    faster = [", ".join(f"{name} in {n}" for name, n in counts.items()) for counts in every.faster]
    shown = every.assign(faster=faster, shift=every["shift"].map("{:.1%}".format))
    draw.table(
        shown.rename(columns={"different": "called different", "shift": "shift, median", "n": "n, processes"}),
        "The talk's test in every process: how often it calls a pair different, and whom the faster one.",
        columns=("pair", "called different", "n, processes", "faster"),
    )


def show_alarms(session: Session, pairs: pd.DataFrame) -> None:
    """The talk's method against itself: Cliff's delta of each pair, by which copy was measured first."""
    significant = numbers.significant(pairs)

    def plot(figure) -> None:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for number, axes in enumerate(panels):
            for flag, label, marker, colour in (
                (True, "called significant", "o", 0),
                (False, "not significant", "x", 1),
            ):
                part = pairs[(significant == flag) & (pairs.measured_first == number)]
                axes.plot(part["Cliff's delta"], part.index, marker, ms=4, color=draw.PALETTE[colour], label=label)
            axes.axvline(0, linestyle=":", color="gray")
            axes.set_title(f"copy {number + 1} measured first")
            axes.set_xlabel("Cliff's delta, copy 1 over copy 2")
        panels[0].set_ylabel("process")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)

    draw.figure(
        plot,
        chapter.sentence(session, "prediction-1"),
        "One point a process, by which copy was measured first; right of zero copy 1 is slower.",
        data=pairs,
    )


def show_mechanism(in_one: pd.DataFrame, restarts: pd.DataFrame) -> None:
    """What each step takes as its values: timings of one process, turns of one process, medians of processes."""
    rows = []
    for step, name in ((1, "one_after_the_other"), (2, "interleaved")):
        timings = in_one[in_one.step == name].sort_values("process").timings.iloc[0]
        rows += [(step, place, which + 1, ns) for place, (which, ns) in enumerate(timings, 1)]
    for place, timings in enumerate(restarts.sort_values("process").timings.iloc[:OF_EACH], 1):
        rows += [(3, place, which + 1, np.exp(np.median(numbers.times_of(timings, which)))) for which in (0, 1)]
    found = pd.DataFrame(rows, columns=["step", "place", "copy", "time (ns)"])
    times = found["time (ns)"]
    # What was interrupted would squeeze all the others into one line.
    longest = times[times <= 2 * times.median()].max()

    def plot(figure) -> None:
        panels = figure.subplots(1, 3, sharey=True)
        for axes, (step, part) in zip(panels, found.groupby("step")):
            for (copy, of_copy), marker in zip(part.groupby("copy"), "o^"):
                look = {"ms": 5, "color": draw.PALETTE[copy - 1], "label": f"copy {copy}"}
                axes.plot(of_copy.place, of_copy["time (ns)"], marker, **look)
            axes.set(title=f"step {step}", xlabel="process" if step == 3 else "timing")
        panels[0].set_ylim(times.min() * 0.98, longest * 1.02)
        panels[0].set_ylabel("time of a call (ns)")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)

    draw.figure(
        plot,
        "What counts as one value: in step 1 a timing, in step 2 a turn of both copies, in step 3 a process.",
        "Times of two copies of one call, one benchmark of each step. Points above what is shown: "
        f"{(times > longest).sum()}.",
        size=(8.4, 3.4),
        data=found,
    )


def show_steps(session: Session, shares: dict[int, Share]) -> None:
    """The false alarms of each step."""
    if not shares:
        return
    found = pd.DataFrame(
        {"step": f"{step}: {STEPS[step]}", **vars(share.at()), "alarms": share.events, "n": share.trials}
        for step, share in shares.items()
    )

    in_percent = found.assign(**{name: found[name] * 100 for name in ("value", "low", "high")})
    look = {"line": 100 * (1 - LEVEL), "xlabel": "false alarms (% of benchmarks)", "xlim": (-2, None)}
    draw.figure(
        lambda figure: draw.intervals(figure, in_percent, "step", **look),
        chapter.sentence(session, "alarms"),
        "; ".join(f"step {row.step}, {draw.text(Interval.of(row), '%', 100)}" for row in found.itertuples()),
        size=(7.2, 2.4),
        data=found,
        name="alarm-steps",
    )


def show_restarts(session: Session, medians: pd.DataFrame) -> None:
    """Every restart, and what the spread between processes says."""

    def plot(figure) -> None:
        axes = figure.subplots()
        for marker, (process, part) in zip("ox", medians.groupby("process", sort=False)):
            axes.plot(part.restart, (part.ratio - 1) * 100, marker, label=process)
        axes.set(xlabel="restart", ylabel="over the reference (%)")
        figure.legend(loc="outside upper center", ncols=2)

    draw.figure(plot, chapter.sentence(session, "spread"), data=medians)


def show_company(record: Record) -> None:
    """How much company the core had, and what it costs each arm."""
    found = numbers.slowdowns(record)
    known = found[np.isfinite(found.low)]
    if len(known):
        table = {
            "arm": known.arm,
            "work with company": known.company.map("{:.0%}".format),
            "takes so many times as long": [draw.Quantity(Interval.of(row)) for row in known.itertuples()],
            "n, restarts with both": known.n,
        }
        draw.table(
            pd.DataFrame(table),
            "What company on the core does to the time of a call: batches with company over batches without.",
            columns=("arm", "work with company", "takes so many times as long"),
        )


def show_layouts(session: Session, record: Record) -> None:
    """Each layout's own interval, over the bands of all layouts and of the next build, where they had restarts
    enough."""
    alone = numbers.by_layout(record)
    if alone.empty or not numbers.levels(record):
        return
    estimate = numbers.loaders_compared(record).estimate
    over, next_build = estimate.at(), estimate.next_build

    def plot(figure) -> None:
        axes = figure.subplots()
        ordered = alone.sort_values("value").reset_index(drop=True)
        axes.axvspan(next_build.low, next_build.high, alpha=0.12, color=draw.PALETTE[1], label="the next build")
        axes.axvspan(over.low, over.high, alpha=0.3, color=draw.PALETTE[1], label="over layouts")
        label = "one layout, from its own restarts"
        axes.errorbar(ordered.value, ordered.index, xerr=draw.reach(ordered), fmt="o", capsize=3, label=label)
        axes.set(xlabel="CDLL over PyDLL", ylabel="layout", yticks=[])
        figure.legend(loc="outside upper center", ncols=3)

    draw.figure(
        plot,
        chapter.sentence(session, "layouts"),
        f"CDLL over PyDLL on {len(alone)} layouts. Over layouts {draw.text(over)}; the next build "
        f"{draw.bounds(next_build.low, next_build.high)}.",
        data=alone,
    )


def collector(found: dict[str, Location]) -> pd.DataFrame:
    """What the collector costs, by what is done."""
    return pd.DataFrame(
        {"statement": what, "time, collector on / off": draw.Quantity(one), "n": one.n} for what, one in found.items()
    )


def copies(pairs: list[Comparison]) -> pd.DataFrame:
    """Every pair of copies with our interval and finding."""
    return pd.DataFrame(
        {
            "pair": f"{pair.slow[1]} / {pair.fast[1]}",
            "ratio of times": draw.Quantity(pair.ratio),
            "n": pair.estimate.n,
            "finding": {YES: "slower", NO: "faster", OPEN: "none"}[above(pair.ratio, 1)],
        }
        for pair in pairs
    )


def counts(found: list[dict]) -> pd.DataFrame:
    """Instructions per pass of the loop, a row for each interpreter."""
    table = pd.DataFrame(found).pivot(index="interpreter", columns="arm", values="instructions").round(1)
    return table[["CDLL", "PyDLL", "empty loop"]].rename_axis(index="CPython", columns=None).reset_index()


def shares(seen: list[dict]) -> pd.DataFrame:
    """Where the time of a call goes: shares by interpreter, a row for each group of symbols."""
    costs = pd.DataFrame({profiled["interpreter"]: profile.grouped(profiled) for profiled in seen})
    shown = (costs / costs.sum()).map("{:.1%}".format, na_action="ignore")
    return shown.rename_axis(index="group of symbols").reset_index()
