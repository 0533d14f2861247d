"""What the chapter "Races" shows: tables and figures."""

import numpy as np
import pandas as pd
import seaborn as sns

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.judge.processes import chosen
from ffilab.measure.record import Record
from ffilab.page import draw
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races import results
from notebooks.races.detection import TOOLS
from notebooks.races.experiment import (
    BORROWED,
    INTERVALS,
    LOADERS,
    MODELS,
    REMEDIES,
    TESTS,
    VARIANTS,
    WAYS,
    lets_others_in,
)
from notebooks.races.experiment import UNSAFE as UNSAFE_REMEDIES
from notebooks.races.results import CDLL, PYDLL, SAFE

PAIR = (GIL, FREE_THREADED)
# When each remedy is the one to take.
WHEN = {
    "no protection": "never, if two threads can meet there",
    "PyMutex": "several values that must agree; lets go of the thread state while it waits",
    "atomic": "one number that stands alone",
    "critical section": "the state of one Python object; no lock at all in a build with the GIL",
    "sharded, 16 atomics": "many writers, few readers: the reader adds up",
    "per-thread state": "the same; it costs memory for each thread that ever counted",
    "read in place": "never, if someone may write meanwhile",
    "read under a PyMutex": "few readers, or values that change often",
    "read an immutable snapshot": "many readers, few writers; someone must decide when an old one is freed",
}


def bad_words(frame: pd.DataFrame, column: str, **which) -> str:
    """`7 of 30 runs (9 % to 45 %)`: bad runs, each a process, with the exact interval of their share."""
    bad = results.bad_processes(frame, column, **which)
    return draw.NOT_MEASURED if bad is None else share_words(bad)


def share_words(bad: results.Share) -> str:
    """The same of a share."""
    share = bad.at()
    return f"{bad.events} of {bad.trials} runs ({share.low:.0%} to {share.high:.0%})"


def mean_words(frame: pd.DataFrame, column: str, unit: str, factor: float = 1, **which) -> str:
    """Mean over all runs with its interval in words; what is counted cannot be below zero."""
    rows = chosen(frame, **which)
    if rows.empty:
        return draw.NOT_MEASURED
    found = results.expected(rows[column].to_numpy()).at()
    return draw.text(Interval(found.value, max(0.0, found.low), found.high), unit, factor)


def lossy_words(frame: pd.DataFrame, column: str, unit: str, factor: float = 1, **which) -> str:
    """Of the bad runs: `median 31 % (8 to 50)`; a dash if there is none."""
    found = results.typical_bad(frame, column, **which)
    if found is None:
        return "–"
    median, least, most = (draw.number(value * factor, abs(value * factor) / 10 or 1) for value in found)
    return f"median {median} {unit} ({least} to {most})"


# What the talk's slides print of its program, by what it runs: with the GIL, and without; 3.13.5 there.
PUBLISHED = {
    "unsafe counter": ("0 of 5 rounds lost any", "5 of 5 rounds lost some, 36.3 % on average; one more 19.8 %"),
    "mutex counter": ("exact", "exact"),
    "atomic counter": ("exact", "exact"),
    "bank": ("20 withdrawals, consistent", "300 withdrawals, $14,300 from nothing"),
    "safe bank": ("20 withdrawals, consistent", "20 withdrawals, consistent"),
    "fast bank": ("0 of 5 rounds", "2 of 5 rounds"),
}
ACCOUNTS = ("bank", "safe bank", "fast bank")


def as_run_table(runs: pd.DataFrame, banks: bool) -> pd.DataFrame:
    """The talk's program: its counters or its banks, by build and GIL, beside what the talk printed."""
    # A process is one trial, however many rounds it has.
    wrong = runs.assign(wrong=runs["created" if banks else "lost"] != 0)
    means = wrong.groupby(["interpreter", "gil", "what", "process"], as_index=False)[
        ["lost", "withdrawals", "created", "wrong"]
    ].mean()
    rows = []
    for what in PUBLISHED:
        for label, gil in results.conditions(runs) if (what in ACCOUNTS) == banks else []:
            which = {"interpreter": label, "gil": gil, "what": what}
            found = [
                {"withdrawals, mean": mean_words(means, "withdrawals", "", **which)},
                {"dollars from nothing, mean": mean_words(means, "created", "", **which)},
            ]
            rows.append(
                {
                    "what": what,
                    "CPython": label,
                    "GIL": gil,
                    "runs of five rounds that went wrong": bad_words(runs, "created" if banks else "lost", **which),
                    "rounds that did, mean": mean_words(means, "wrong", "%", 100, **which),
                    **(found[0] | found[1] if banks else {"lost, mean": mean_words(means, "lost", "%", 100, **which)}),
                    "published (3.13.5)": PUBLISHED[what][gil == "off"],
                }
            )
    return pd.DataFrame(rows)


def crossed_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """What the unsafe counter lost, by build, way and number of threads."""
    rows = []
    for which, releases in crossed_cells(crossed):
        unsafe = {**which, "variant": "unsafe"}
        rows.append(
            {
                "CPython": which["interpreter"],
                "way": which["way"],
                "call": releasing_words(which["interpreter"], releases),
                "threads": which["threads"],
                "runs that lost updates": bad_words(crossed, "lost", **unsafe),
                "lost in those": lossy_words(crossed, "lost", "%", 100, **unsafe),
                "mean of all runs, %": mean_words(crossed, "lost", "", 100, **unsafe),
            }
        )
    return pd.DataFrame(rows)


def meeting_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """How the threads of the unsafe counter met, and in how many runs the safe ones lost updates."""
    rows = []
    for which, _ in crossed_cells(crossed):
        label, way, threads = which.values()
        part = chosen(crossed, variant="unsafe", **which)
        safe = bad_words(crossed, "lost", variant=SAFE, **which) if lets_others_in(label, way) else "–"
        rows.append(
            {
                "CPython": label,
                "way": way,
                "threads": threads,
                "met": "{0.events} of {0.trials}".format(results.met(part)),
                "pairs at once": _pairs(part.pairs.mean() * threads * (threads - 1) / 2),
                "overlap, %": f"{100 * part.overlapped.median():.0f}",
                "cores": cores_words(part),
                "safe: lost updates": safe,
            }
        )
    return pd.DataFrame(rows)


def crossed_cells(crossed: pd.DataFrame) -> list[tuple[dict, bool]]:
    """Build, way and number of threads of each row, and whether the call releases."""
    return [
        ({"interpreter": label, "way": way, "threads": threads}, releases)
        for label in results.labels(crossed)
        for way, releases in WAYS.items()
        for threads in results.TEAM_SIZES
    ]


def releasing_words(label: str, releases: bool) -> str:
    """What a call does with the GIL, or with its thread state where there is no GIL."""
    if BY_LABEL[label].free_threaded:
        return "detached" if releases else "attached"
    return "GIL released" if releases else "GIL kept"


def cores_once(table: pd.DataFrame, caption: str) -> tuple[pd.DataFrame, str]:
    """A table without its column of cores, if that is the same in each row, and its caption, which then says it."""
    cores = set(table.cores)
    if len(cores) > 1:
        return table, f"{caption} Cores: on how many they were seen, median."
    return table.drop(
        columns="cores"
    ), f"{caption} Number of cores that they were seen on, the median of each row: {cores.pop()}."


def cores_words(part: pd.DataFrame) -> str:
    """On how many cores the threads of a run were seen: the median."""
    return "not visible here" if part.cores.isna().all() else f"{part.cores.median():g}"


def plot_crossed(figure, crossed: pd.DataFrame) -> None:
    """Each run of the unsafe counter as one point, by way, build and number of threads. Nothing is averaged."""
    for axes, threads in zip(figure.subplots(1, 2, sharey=True), results.TEAM_SIZES, strict=True):
        rows = chosen(crossed, interpreter=PAIR, variant="unsafe", threads=threads)
        sns.stripplot(
            rows.assign(lost=100 * rows.lost),
            x="lost",
            y="way",
            hue="interpreter",
            order=list(WAYS),
            hue_order=list(PAIR),
            dodge=True,
            jitter=0.15,
            alpha=0.6,
            size=4,
            ax=axes,
            palette=draw.PALETTE[:2],
            legend=threads == results.TEAM_SIZES[0],
        )
        axes.set(xlabel=f"updates lost in one run, %\n{threads} threads", ylabel="")
        axes.set_xlim(-0.03 * max(1, 100 * rows.lost.max()), None)
    left = figure.axes[0]
    draw.legend_above(left)
    left.get_legend().set_title(None)
    for text, label in zip(left.get_legend().get_texts(), PAIR, strict=True):
        text.set_text(f"CPython {label}")


def crossed_words(crossed: pd.DataFrame) -> str:
    """The same in words, for the figure's alt text."""
    parts = []
    for threads in results.TEAM_SIZES:
        for label in PAIR:
            for way in WAYS:
                which = {"interpreter": label, "way": way, "variant": "unsafe", "threads": threads}
                parts.append(f"{way} on {label}, {threads} threads: {bad_words(crossed, 'lost', **which)}")
    return "; ".join(parts)


def _pairs(count: float) -> str:
    """Pairs at once: whole ones where there are many."""
    return f"{count:,.0f}" if count >= 10 else f"{count:.2g}"


def crowd_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Loss beside overlap, by build, number of threads and length of work."""
    return pd.DataFrame(
        [
            {
                "CPython": row.interpreter,
                "threads": row.threads,
                "increments": f"{row.iterations:,}",
                "n": row.n,
                "lost, mean, %": draw.text(Interval(row.value, max(0.0, row.low), row.high), "", 100),
                "pairs at once": _pairs(row.pairs),
                "overlap, %": f"{100 * row.overlapped:.0f}",
                "cores": "not visible here" if np.isnan(row.cores) else f"{row.cores:g}",
                "switches": f"{row.preempted:.2g}",
                "work, µs": f"{row.work_us:,.3g}",
            }
            for row in rows.itertuples()
        ]
    )


def plot_crowds(figure, runs: pd.DataFrame) -> None:
    """Each run as one point: loss against the share of time in which at least two threads worked. Filled: with the GIL
    released; open: without a GIL."""
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    markers = dict(zip(sorted(runs.threads.unique().tolist()), "oDsv"))
    for axes, iterations in zip(panels, sorted(runs.iterations.unique()), strict=True):
        for (size, marker), color in zip(markers.items(), draw.PALETTE, strict=False):
            for label in PAIR:
                part = chosen(runs, iterations=int(iterations), threads=size, interpreter=label)
                axes.scatter(
                    100 * part.overlapped,
                    100 * part.lost,
                    s=22,
                    alpha=0.7,
                    marker=marker,
                    facecolor="none" if BY_LABEL[label].free_threaded else color,
                    edgecolor=color,
                    label=f"{size} threads, {label}",
                )
        axes.set_xlabel(f"time with two or more at work, %\n{iterations:,} increments each")
    panels[0].set_ylabel("updates lost in one run, %")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left", ncols=len(markers))


def crowds_alt(rows: pd.DataFrame) -> str:
    """The picture in words."""
    return "; ".join(
        f"{row.interpreter}, {row.threads} threads with {row.iterations:,}: loss {draw.number(100 * row.value, 1)} %, "
        f"overlapped {draw.number(100 * row.overlapped, 1)} %"
        for row in rows.itertuples()
    )


PUBLISHED_MATRIX = {
    ("thread-safe", True): "Safe",
    ("thread-safe", False): "Safe",
    ("unsafe", True): "Uncertain",
    ("unsafe", False): "Race!",
}


def matrix_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """A18: the talk's matrix, each cell with the processes that were counted in it: by kind of run, never pooled."""
    rows = [
        {
            "function": function,
            "CPython": label,
            "call": call,
            **{f"{threads} threads: runs that lost updates": share_words(share) for threads, share in shares.items()},
            "published": PUBLISHED_MATRIX[function, not BY_LABEL[label].free_threaded],
        }
        for label in results.labels(crossed)
        for function, call, shares in results.safety_matrix(crossed, label)
    ]
    return pd.DataFrame(rows).sort_values("function", ignore_index=True, kind="stable")


def bank_table(bank: pd.DataFrame) -> pd.DataFrame:
    """A16 corrected: withdrawals and money made from nothing."""
    rows = []
    for label in results.labels(bank):
        for loader in LOADERS:
            for case in dict.fromkeys(bank.case):
                which = {"interpreter": label, "loader": loader, "case": case}
                rows.append(
                    {
                        "CPython": label,
                        "loader": loader,
                        "case": case,
                        "runs that were inconsistent": bad_words(bank, "created", **which),
                        "withdrawals, mean": mean_words(bank, "withdrawals", "", **which),
                        "dollars from nothing, mean": mean_words(bank, "created", "", **which),
                    }
                )
    return pd.DataFrame(rows)


def trials_table(trials: pd.DataFrame) -> pd.DataFrame:
    """What the rules ask: how often each thing went wrong, in trials of their own."""
    money = results.money(trials)
    asked = [
        (f"{variant} counter, {way}", label, results.counter_trials(trials, label, way, variant), "lost")
        for label, way, variant in (
            (GIL, PYDLL, "unsafe"),
            (GIL, CDLL, "unsafe"),
            *((FREE_THREADED, PYDLL, variant) for variant in VARIANTS),
        )
    ]
    asked += [
        (f"bank: {case}", label, chosen(money, interpreter=label, case=case), "created")
        for label, case in ((GIL, "unsafe"), (FREE_THREADED, "unsafe"), (FREE_THREADED, "safe"))
    ]
    python = chosen(trials, interpreter=GIL, statement="total += 1")
    asked += [(f"total += 1, {int(loops):,} times", GIL, of, "lost") for loops, of in python.groupby("loops")]
    rows = [
        {"CPython": label, "what": what, "trials that went wrong": bad_words(of, by)} for what, label, of, by in asked
    ]
    return pd.DataFrame(rows)


def plot_payments(figure, payments: pd.DataFrame) -> None:
    """Measured shares with their intervals, and both models' lines, as far as the windows reach."""
    axes = figure.subplots()
    # As close as the axis shows them: linear up to 100 ns, and logarithmic beyond.
    line = np.append(np.linspace(0, 100, 100), np.geomspace(100, payments.window_ns.max(), 400))
    own = results.own_window(Interval.of(payments.iloc[0])).value
    axes.plot(line / 1000, 100 * results.model_of_payments(line), label="the window alone", linestyle="--")
    axes.plot(
        line / 1000, 100 * results.model_of_payments(line + own), label="and what check and act take", linestyle=":"
    )
    errors = [100 * (payments.value - payments.low), 100 * (payments.high - payments.value)]
    axes.errorbar(payments.window_ns / 1000, 100 * payments.value, yerr=errors, fmt="o", capsize=4, label="measured")
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xticks(payments.window_ns / 1000, [f"{window / 1000:g}" for window in payments.window_ns])
    axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    axes.set(xlabel="window between check and act, µs", ylabel="rounds with two payments, %", ylim=(0, None))
    draw.legend_above(axes, 3)


def payments_table(payments: pd.DataFrame) -> pd.DataFrame:
    """The same as a table."""
    return pd.DataFrame(
        {
            "window, µs": [f"{window / 1000:g}" for window in payments.window_ns],
            "n": payments.n,
            "rounds with two payments, %": [draw.text(Interval.of(row), "", 100) for row in payments.itertuples()],
            "model: the window alone, %": [f"{100 * model:.2f}" for model in payments.model],
            "model: and what check and act take, %": [
                "fixed by this row" if window == 0 else draw.text(found, "", 100)
                for window, found in zip(payments.window_ns, payments["with check"], strict=True)
            ],
        }
    )


def payments_alt(payments: pd.DataFrame) -> str:
    """The picture in words."""
    return "; ".join(
        f"{row.window_ns / 1000:g} µs: {draw.text(Interval.of(row), '%', 100)}, by the window alone {100 * row.model:.2g} %"
        for row in payments.itertuples()
    )


def bytecode_words(statement: str, instructions: pd.DataFrame) -> str:
    """The caption of a statement's instructions."""
    between = results.hand_overs_between(instructions)
    return f"{statement}: {between} place(s) between reading and writing where the GIL may go."


def python_table(python: pd.DataFrame) -> pd.DataFrame:
    """C7: lost updates of Python statements by build and switch interval."""
    rows = []
    for label in results.labels(python):
        for statement in dict.fromkeys(python.statement):
            for interval in INTERVALS:
                which = {"interpreter": label, "statement": statement, "interval": interval}
                rows.append(
                    {
                        "CPython": label,
                        "statement": statement,
                        "switch interval": interval,
                        "runs that lost updates": bad_words(python, "lost", **which),
                        "lost, mean": mean_words(python, "lost", "%", 100, **which),
                    }
                )
    return pd.DataFrame(rows)


def kinds_table(kinds: pd.DataFrame) -> pd.DataFrame:
    """More kinds of shared state: runs with a wrong answer, by build and loader."""
    rows = []
    for kind in dict.fromkeys(kinds.kind):
        row = {"kind": kind}
        for label in results.labels(kinds):
            for loader in LOADERS:
                found = bad_words(kinds, "wrong", interpreter=label, loader=loader, kind=kind)
                row[f"{label}, {loader.split()[1]}"] = found
        rows.append(row)
    return pd.DataFrame(rows)


def borrowed_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How the processes that read without holding a reference ended."""
    rows = []
    for what in BORROWED:
        row = {"function": what}
        for label in results.labels(runs):
            ends = chosen(runs, interpreter=label, what=what).ended.value_counts()
            bad = results.Share(int(ends.drop("ok", errors="ignore").sum()), int(ends.sum())).at()
            said = ", ".join(f"{count} × {ended}" for ended, count in ends.items())
            row[f"CPython {label}"] = f"{said} (not ok: {bad.low:.0%} to {bad.high:.0%})"
        rows.append(row)
    return pd.DataFrame(rows)


def remedies_table(record: Record, rivals: pd.DataFrame) -> pd.DataFrame:
    """What each remedy costs, alone and with rivals. No Python is in its loop, so there is no empty loop to take off."""
    rows = []
    for name in REMEDIES:
        row = {"remedy": name + (" (not safe)" if name in UNSAFE_REMEDIES else "")}
        for label in record.interpreters:
            row[f"alone, {label}, ns"] = draw.text(statistics.per_call(record, (label, name)))
        for threads in sorted(rivals.threads.unique()):
            found = results.operation(rivals, name, int(threads))
            row[f"{threads} threads together, {FREE_THREADED}: one every, ns"] = draw.words(found)
        rows.append({**row, "when": WHEN[name]})
    return pd.DataFrame(rows)


def detection_table(found: pd.DataFrame) -> pd.DataFrame:
    """What both tools say, with what they should say."""
    return pd.DataFrame(
        [
            {
                "variant": row["variant"],
                "data race": "yes" if row["data race"] else "no",
                "can be wrong": "yes" if row["can be wrong"] else "no",
                **{tool: results.verdict_on_tool(row[tool], row["data race"]) for tool in TOOLS},
            }
            for _, row in results.detected(found).iterrows()
        ]
    )


def parallel_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The outcome of each test on each build."""
    outcomes = runs.pivot(index="test", columns="interpreter", values="outcome")
    return pd.DataFrame(
        [
            {"test": test, **{f"CPython {label}": outcomes[label][test] for label in results.labels(runs)}}
            for test in TESTS
        ]
    )


def explored_table(found: pd.DataFrame) -> pd.DataFrame:
    """What loom tried, and what went wrong."""
    return found.set_index("case").loc[list(MODELS), ["executions", "failure"]].fillna("none").reset_index()
