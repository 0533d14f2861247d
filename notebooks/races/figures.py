"""What the chapter "Races" shows: tables and figures."""

from itertools import product

import numpy as np
import pandas as pd
import seaborn as sns

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Location, Share
from ffilab.judge.processes import chosen
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record
from ffilab.page import draw
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races import results
from notebooks.races.detection import TOOLS
from notebooks.races.experiment import AGAIN, BORROWED, LOADERS, MODELS, STRESS, TESTS, WAYS, lets_others_in
from notebooks.races.experiment import UNSAFE as UNSAFE_REMEDIES
from notebooks.races.results import SAFE

PAIR = (GIL, FREE_THREADED)
# When each remedy is the one to take.
WHEN = {
    "no protection": "never, if two threads can meet there",
    "PyMutex": "several values that must agree",
    "atomic": "one number that stands alone",
    "critical section": "the state of one Python object",
    "sharded, 16 atomics": "many writers, few readers: the reader adds up",
    "per-thread state": "the same; memory for each thread that ever counted",
    "read in place": "never, if someone may write meanwhile",
    "read under a PyMutex": "few readers, or values that change often",
    "read an immutable snapshot": "many readers, few writers; someone frees old ones",
}


def counted(name: str, bad: Share | None) -> dict[str, str]:
    """Bad runs, each a process, of all, `7 of 30`; and in a column of its own the exact interval of their share."""
    share = bad and bad.at()
    return {
        name: draw.NOT_MEASURED if bad is None else str(bad),
        f"{name}: share": f"{share.low:.0%} to {share.high:.0%}" if share else "",
    }


def mean_words(frame: pd.DataFrame, column: str, unit: str, factor: float = 1, **which) -> draw.Quantity | str:
    """Mean over all runs with its interval; what is counted cannot be below zero."""
    rows = chosen(frame, **which)
    if rows.empty:
        return draw.NOT_MEASURED
    found = Location.mean(rows[column].to_numpy(dtype=float)).at()
    return draw.Quantity(Interval(found.value, max(0.0, found.low), found.high), unit, factor)


# Two threads, three instructions each, and the number in memory below them: what happens at each step.
LOST_UPDATE = pd.DataFrame(
    {
        "thread A": ["load: 5", "add: 6", "store: 6", ""],
        "thread B": ["", "load: 5", "add: 6", "store: 6"],
        "in memory": ["5", "5", "6", "6"],
    }
)


def plot_lost_update(figure) -> None:
    axes = figure.subplots()
    for height, lane, color in zip((2, 1, 0), LOST_UPDATE, (*draw.PALETTE[:2], "none"), strict=True):
        axes.text(-0.6, height, lane, ha="right", va="center")
        for when, words in enumerate(LOST_UPDATE[lane]):
            if not words:
                continue
            box = {"boxstyle": "round", "facecolor": "none", "edgecolor": color}
            axes.text(when, height, words, ha="center", va="center", bbox=box)
    axes.set(xlim=(-1.3, 3.5), ylim=(-0.7, 2.5))
    arrow = {"arrowstyle": "->", "color": draw.INK["light"]}
    axes.annotate("time", (3.4, -0.5), (-0.2, -0.5), va="center", ha="right", arrowprops=arrow)
    axes.axis("off")


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


def as_run_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The talk's counters and banks, by build and GIL, beside what the talk printed. A process is one trial, however
    many rounds it has."""

    def row(runs: pd.DataFrame, what: str, **which) -> dict:
        column, unit, factor = ("created", "dollars", 1) if what in ACCOUNTS else ("lost", "%", 100)
        means = pd.DataFrame({"mean": results.by_process(runs, column, what=what, **which)})
        return {
            **counted("runs that went wrong", results.bad_processes(runs, column, what=what, **which)),
            "lost, or made from nothing, mean": mean_words(means, "mean", unit, factor),
            "published (3.13.5)": PUBLISHED[what][which["interpreter"].endswith("off")],
        }

    runs = runs.assign(interpreter=runs.interpreter + ", GIL " + runs.gil)
    return draw.summary(chosen(runs, what=list(PUBLISHED)), {"what": PUBLISHED, "interpreter": ()}, row, "")


def crossed_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """What the unsafe counter lost, by build, way and number of threads; how its threads met; and what the safe ones
    lost."""

    def row(crossed: pd.DataFrame, **which) -> dict:
        unsafe = {**which, "variant": "unsafe"}
        part, pairs = chosen(crossed, **unsafe), which["threads"] * (which["threads"] - 1) / 2
        lets_in = lets_others_in(which["interpreter"], which["way"])
        safe = results.bad_processes(crossed, "lost", variant=SAFE, **which) if lets_in else None
        return {
            **counted("runs that lost updates", results.bad_processes(crossed, "lost", **unsafe)),
            "mean of all runs, %": mean_words(crossed, "lost", "", 100, **unsafe),
            "met": str(results.met(part)),
            "pairs at once": f"{part.pairs.mean() * pairs:,.2g}",
            "overlap, %": f"{100 * part.overlapped.median():.0f}",
            "safe: lost updates": str(safe or "–"),
        }

    return draw.summary(crossed, {"interpreter": (), "way": WAYS, "threads": results.TEAM_SIZES}, row, "")


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
    unsafe = chosen(crossed, variant="unsafe", interpreter=PAIR)
    return "; ".join(
        f"{way} on {label}, {threads} threads: {(of.lost != 0).sum()} of {len(of)} runs lost updates"
        for (threads, label, way), of in unsafe.groupby(["threads", "interpreter", "way"])
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
        f"{row.interpreter}, {row.threads} threads with {row.iterations:,}: loss {100 * row.lost:.1f} %, "
        f"overlapped {100 * row.overlapped:.1f} %"
        for row in rows.itertuples()
    )


# Without the GIL, and with it.
PUBLISHED_MATRIX = {"thread-safe": ("Safe", "Safe"), "unsafe": ("Race!", "Uncertain")}


def matrix_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """A18: the talk's matrix, each cell with the processes that were counted in it: by kind of run, never pooled."""
    rows = []
    for label in results.labels(crossed):
        kinds = product((("thread-safe", SAFE), ("unsafe", results.UNSAFE)), results.calls(label).items())
        for (function, variants), (call, ways) in kinds:
            which = {"interpreter": label, "way": ways, "variant": variants}
            row = {"function": f"{function}, {call}", "CPython": label}
            shares = {n: results.bad_processes(crossed, "lost", threads=n, **which) for n in results.TEAM_SIZES}
            for threads, share in shares.items():
                row |= counted(f"{threads} threads", share)
            if all(shares.values()):
                rows.append({**row, "the talk": PUBLISHED_MATRIX[function][not BY_LABEL[label].free_threaded]})
    return pd.DataFrame(rows).sort_values("function", ignore_index=True, kind="stable")


def by_call(runs: pd.DataFrame, of: str, column: str) -> pd.DataFrame:
    """Runs that went wrong, one row for each kind (`of`), by build and loader."""

    def row(runs: pd.DataFrame, **which) -> dict[str, str]:
        found = {}
        for label, loader in product(results.labels(runs), LOADERS):
            bad = results.bad_processes(runs, column, interpreter=label, loader=loader, **which)
            found |= counted(f"{label}, {loader.removeprefix('ctypes ')}", bad)
        return found

    return draw.summary(runs, {of: dict.fromkeys(runs[of])}, row, "")


# Of those the columns in sight: without the GIL both loaders are alike.
CALLS = (f"{GIL}, PyDLL", f"{GIL}, CDLL", f"{FREE_THREADED}, PyDLL")


def plot_payments(figure, payments: pd.DataFrame) -> None:
    """Measured shares with their intervals, and the model's line, as far as the windows reach."""
    axes = figure.subplots()
    # As close as the axis shows it: linear up to 100 ns, and logarithmic beyond.
    line = np.append(np.linspace(0, 100, 100), np.geomspace(100, payments.window_ns.max(), 400))
    axes.plot(line / 1000, 100 * results.model_of_payments(line), label="model: the window alone", linestyle="--")
    errors = [100 * (payments.value - payments.low), 100 * (payments.high - payments.value)]
    axes.errorbar(payments.window_ns / 1000, 100 * payments.value, yerr=errors, fmt="o", capsize=4, label="measured")
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xticks(payments.window_ns / 1000, [f"{window / 1000:g}" for window in payments.window_ns])
    axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    axes.set(xlabel="window between check and act, µs", ylabel="rounds with two payments, %", ylim=(0, None))
    draw.legend_above(axes)


def bytecode_words(statement: str, instructions: pd.DataFrame) -> str:
    """The caption of a statement's instructions."""
    between = results.hand_overs_between(instructions)
    return f"`{statement}`: {between} place(s) between reading and writing where the GIL may go."


def in_the_loop(instructions: pd.DataFrame) -> pd.Series:
    """Those from the reading of `total` to the jump back."""
    from_there = (instructions.race == "reads total").cummax()
    return from_there & ~instructions.instruction.str.startswith("JUMP_BACKWARD").cummax().shift(fill_value=False)


def python_table(python: pd.DataFrame) -> pd.DataFrame:
    """C7: runs in which Python statements lost updates, by switch interval and build."""

    def row(python: pd.DataFrame, **which) -> dict:
        found = {}
        for label in results.labels(python):
            found |= counted(label, results.bad_processes(python, "lost", interpreter=label, **which))
            found[f"{label}: lost, mean"] = mean_words(python, "lost", "%", 100, interpreter=label, **which)
        return found

    by = {name: dict.fromkeys(python[name]) for name in ("interval", "statement")}
    found = draw.summary(python, by, row, "").rename(columns={"interval": "switch interval"})
    return found[["statement", *found.columns.drop("statement")]]


def borrowed_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How the processes that read without holding a reference ended."""
    rows = []
    for what in BORROWED:
        row = {"function": what}
        for label in results.labels(runs):
            ends = chosen(runs, interpreter=label, what=what).ended.value_counts()
            row[f"CPython {label}"] = ", ".join(f"{count} × {ended}" for ended, count in ends.items())
            bad = Share(int(ends.drop("ok", errors="ignore").sum()), int(ends.sum())).at()
            row[f"CPython {label}: not ok"] = f"{bad.low:.0%} to {bad.high:.0%}"
        rows.append(row)
    return pd.DataFrame(rows)


def remedies(record: Record) -> list[str]:
    """What was timed, by name, also what a reader has added; without the instrument's own loops and the copy for the
    A/A test."""
    names = dict.fromkeys(cell.partition("/")[2] for cell in record.loops)
    return [name for name in names if not name.startswith((EMPTY, "control")) and name != AGAIN]


def remedies_table(record: Record, rivals: pd.DataFrame) -> pd.DataFrame:
    """What each remedy costs, alone and with others. No Python is in its loop, so there is no empty loop to take
    off."""
    rows = []
    for name in remedies(record):
        row = {"remedy": name + (" (not safe)" if name in UNSAFE_REMEDIES else "")}
        for label in record.interpreters:
            row[f"alone, {label}, ns"] = draw.Quantity(statistics.per_call(record, (label, name)))
        for threads in sorted(rivals.threads.unique()):
            found = results.operation(rivals, name, int(threads))
            row[f"{threads} threads together, {FREE_THREADED}: one every, ns"] = draw.Quantity(found)
        rows.append({**row, "when": WHEN.get(name, "")})
    return pd.DataFrame(rows)


def price_rows(record: Record, rivals: pd.DataFrame) -> pd.DataFrame:
    """What is drawn of it: one thread and two, without the GIL."""
    found = [
        (name, how, one)
        for name in remedies(record)
        for how, one in (
            ("one thread", statistics.per_call(record, (FREE_THREADED, name))),
            ("two threads together", results.operation(rivals, name, results.TEAM_SIZES[0])),
        )
        if one is not None
    ]
    return pd.DataFrame([{"remedy": name, "threads": how, **vars(one)} for name, how, one in found])


def plot_prices(figure, prices: pd.DataFrame) -> None:
    """A point for each remedy: one thread, and two that share it."""
    axes = figure.subplots()
    draw.intervals(axes, prices, "remedy", hue="threads")
    axes.set(xlabel="ns for each operation, without the GIL", xlim=(0, None))


def in_words(rows: pd.DataFrame, unit: str, factor: float = 1) -> str:
    """Such a picture in words: what a row is of, and its value with its interval."""
    of = [column for column in rows if column not in ("value", "low", "high", "n", "model")]
    return "; ".join(
        f"{', '.join(str(row[name]) for name in of)}: {draw.text(Interval(row.value, row.low, row.high), unit, factor)}"
        for _, row in rows.iterrows()
    )


def detection_table(found: pd.DataFrame) -> pd.DataFrame:
    """What both tools say of each variant, with what is true of it."""
    said = {(row.variant, row.tool): row.found for row in found.itertuples()}
    yes = ("no", "yes")
    return pd.DataFrame(
        {"variant": variant, "data race": yes[race], "can be wrong": yes[wrong]}
        | {tool: results.verdict_on_tool(said[variant, tool], race) for tool in TOOLS}
        for variant, (race, wrong) in STRESS.items()
    )


def telling(table: pd.DataFrame) -> pd.Series:
    """Of that table the rows that teach most: the counters, what is wrong without a data race, and where a tool
    errs."""
    errs = table[list(TOOLS)].apply(lambda said: said.str.contains("(", regex=False)).any(axis=1)
    return table.variant.str.startswith("counter") | (table["data race"] != table["can be wrong"]) | errs


def parallel_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The outcome of each test on each build."""
    outcomes = runs.pivot(index="test", columns="interpreter", values="outcome").loc[list(TESTS)]
    return outcomes.add_prefix("CPython ").rename_axis(columns=None).reset_index()


def explored_table(found: pd.DataFrame) -> pd.DataFrame:
    """What loom tried, and what went wrong."""
    table = found.set_index("case").loc[list(MODELS), ["executions", "failure"]].fillna("none").reset_index()
    failed = r".*failed: (.*?)\s+left: (\S+)\s+right: (\S+).*"
    table = table.rename(columns={"executions": "tried"})
    return table.assign(failure=table.failure.str.replace(failed, r"\1: \2, and not \3", regex=True))
