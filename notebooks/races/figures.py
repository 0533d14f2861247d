"""What the chapter "Races" shows: tables and figures."""

from itertools import product

import numpy as np
import pandas as pd
import seaborn as sns

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.judge.processes import chosen
from ffilab.measure.plan import OURS
from ffilab.measure.record import Record
from ffilab.page import draw
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races import experiment as e
from notebooks.races import numbers
from notebooks.races.detection import TOOLS
from notebooks.races.numbers import PAIR, SAFE, TEAM_SIZES

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


def counted(title: str, runs: pd.DataFrame, column: str, **which) -> dict[str, str]:
    """Runs that went wrong (`column` is not zero), each a process, of all: `7 of 30`; and in a column of its own the
    exact interval of their share."""
    bad = numbers.bad(runs, column, **which)
    share = bad and bad.at()
    return {
        title: str(bad or draw.NOT_MEASURED),
        f"{title}: share": f"{share.low:.0%} to {share.high:.0%}" if share else "",
    }


def mean_words(frame: pd.DataFrame, column: str, unit: str, factor: float = 1, **which) -> draw.Quantity:
    """Mean over all runs with its interval; what is counted cannot be below zero."""
    mean = numbers.mean(chosen(frame, **which)[column].to_numpy(dtype=float))
    shown = mean and Interval(mean.centre, max(0.0, mean.interval.low), mean.interval.high)
    return draw.Quantity(shown, unit, factor)


# Two threads, three instructions each, and the number in memory below them: what happens at each step.
LOST_UPDATE = pd.DataFrame(
    {
        "thread A": ["load: 5", "add: 6", "store: 6", ""],
        "thread B": ["", "load: 5", "add: 6", "store: 6"],
        "in memory": ["5", "5", "6", "6"],
    }
)
# B loads a moment later.
KEPT_UPDATE = pd.DataFrame(
    {
        "thread A": ["load: 5", "add: 6", "store: 6", "", "", ""],
        "thread B": ["", "", "", "load: 6", "add: 7", "store: 7"],
        "in memory": ["5", "5", "6", "6", "6", "7"],
    }
)


def plot_steps(figure, steps: pd.DataFrame) -> None:
    axes = figure.subplots()
    for height, lane, color in zip((2, 1, 0), steps, (*draw.PALETTE[:2], "none"), strict=True):
        axes.text(-0.6, height, lane, ha="right", va="center")
        for when, words in enumerate(steps[lane]):
            if not words:
                continue
            box = {"boxstyle": "round", "facecolor": "none", "edgecolor": color}
            axes.text(when, height, words, ha="center", va="center", bbox=box)
    axes.set(xlim=(-1.3, len(KEPT_UPDATE) - 0.5), ylim=(-0.7, 2.5))
    arrow = {"arrowstyle": "->", "color": draw.INK["light"]}
    axes.annotate("time", (len(steps) - 0.6, -0.5), (-0.2, -0.5), va="center", ha="right", arrowprops=arrow)
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
        means = pd.DataFrame({"mean": numbers.by_process(runs, column, what=what, **which)})
        return {
            **counted("runs that went wrong", runs, column, what=what, **which),
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
        return {
            **counted("runs that lost updates", crossed, "lost", **unsafe),
            "mean of all runs, %": mean_words(crossed, "lost", "", 100, **unsafe),
            "met": str(numbers.met(part)),
            "pairs at once": f"{part.pairs.mean() * pairs:,.2g}",
            "overlap, %": f"{100 * part.overlapped.median():.0f}",
            # A lock is tried where a second thread can come.
            "safe: lost updates": str(numbers.bad(crossed, "lost", variant=SAFE, **which) or "–"),
        }

    return draw.summary(crossed, {"interpreter": (), "way": e.WAYS, "threads": TEAM_SIZES}, row, "")


def plot_crossed(figure, crossed: pd.DataFrame) -> None:
    """Each run of the unsafe counter as one point, by way, build and number of threads. Nothing is averaged."""
    for axes, threads in zip(figure.subplots(1, 2, sharey=True), TEAM_SIZES, strict=True):
        rows = chosen(crossed, interpreter=PAIR, variant="unsafe", threads=threads)
        sns.stripplot(
            rows.assign(lost=100 * rows.lost),
            x="lost",
            y="way",
            hue="interpreter",
            order=list(e.WAYS),
            hue_order=list(PAIR),
            dodge=True,
            jitter=0.15,
            alpha=0.6,
            size=4,
            ax=axes,
            palette=draw.PALETTE[:2],
            legend=threads == TEAM_SIZES[0],
        )
        axes.set(xlabel=f"updates lost in one run, %\n{threads} threads", ylabel="")
        axes.set_xlim(-0.03 * max(1, 100 * rows.lost.max()), None)
    left = figure.axes[0]
    draw.legend_above(left)
    left.get_legend().set_title(None)
    for text, label in zip(left.get_legend().get_texts(), PAIR, strict=True):
        text.set_text(f"CPython {label}")


def crossed_words(crossed: pd.DataFrame) -> str:
    """How many runs lost updates, in words, for the figure's alt text."""
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

    def row(crossed: pd.DataFrame, function: str, interpreter: str) -> dict[str, str]:
        part, cells = chosen(crossed, function=function, interpreter=interpreter), {}
        for threads in TEAM_SIZES:
            cells |= counted(f"{threads} threads", part, "lost", threads=threads)
        kind = function.partition(",")[0]
        return {**cells, "the talk": PUBLISHED_MATRIX[kind][not BY_LABEL[interpreter].free_threaded]}

    kinds = crossed.variant.isin(SAFE).map({True: "thread-safe", False: "unsafe"})
    calls = pd.Series(map(numbers.call_of, crossed.interpreter, crossed.way), crossed.index)
    return draw.summary(crossed.assign(function=kinds + ", " + calls), {"function": (), "interpreter": ()}, row, "")


def by_call(runs: pd.DataFrame, of: str, column: str) -> pd.DataFrame:
    """Runs that went wrong, one row for each kind (`of`), by build and loader."""

    def row(runs: pd.DataFrame, **which) -> dict[str, str]:
        cells = {}
        for label, loader in product(numbers.labels(runs), e.LOADERS):
            title = f"{label}, {loader.removeprefix('ctypes ')}"
            cells |= counted(title, runs, column, interpreter=label, loader=loader, **which)
        return cells

    return draw.summary(runs, {of: dict.fromkeys(runs[of])}, row, "")


# Of those the columns in sight: without the GIL both loaders are alike.
CALLS = (f"{GIL}, PyDLL", f"{GIL}, CDLL", f"{FREE_THREADED}, PyDLL")


def plot_payments(figure, payments: pd.DataFrame) -> None:
    """Measured shares with their intervals, and the model's line, as far as the windows reach."""
    axes = figure.subplots()
    # As close as the axis shows it: linear up to 100 ns, and logarithmic beyond.
    line = np.append(np.linspace(0, 100, 100), np.geomspace(100, payments.window_ns.max(), 400))
    axes.plot(line / 1000, 100 * numbers.model_of_payments(line), label="model: the window alone", linestyle="--")
    look = {"yerr": 100 * draw.reach(payments), "fmt": "o", "capsize": 4, "label": "measured"}
    axes.errorbar(payments.window_ns / 1000, 100 * payments.value, **look)
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xticks(payments.window_ns / 1000, [f"{window / 1000:g}" for window in payments.window_ns])
    axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
    axes.set(xlabel="window between check and act, µs", ylabel="rounds with two payments, %", ylim=(0, None))
    draw.legend_above(axes)


def bytecode_words(statement: str, instructions: pd.DataFrame) -> str:
    """The caption of a statement's instructions."""
    between = numbers.hand_overs_between(instructions)
    return f"`{statement}`: {between} place(s) between reading and writing where the GIL may go."


def in_the_loop(instructions: pd.DataFrame) -> pd.Series:
    """Those from the reading of `total` to the jump back."""
    from_there = (instructions.race == "reads total").cummax()
    return from_there & ~instructions.instruction.str.startswith("JUMP_BACKWARD").cummax().shift(fill_value=False)


def python_table(python: pd.DataFrame) -> pd.DataFrame:
    """C7: runs in which Python statements lost updates, by switch interval and build."""

    def row(python: pd.DataFrame, **which) -> dict:
        cells = {}
        for label in numbers.labels(python):
            cells |= counted(label, python, "lost", interpreter=label, **which)
            cells[f"{label}: lost, mean"] = mean_words(python, "lost", "%", 100, interpreter=label, **which)
        return cells

    by = {name: dict.fromkeys(python[name]) for name in ("interval", "statement")}
    table = draw.summary(python, by, row, "").rename(columns={"interval": "switch interval"})
    return table[["statement", *table.columns.drop("statement")]]


def borrowed_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How the processes that read without holding a reference ended."""

    def row(runs: pd.DataFrame, what: str) -> dict[str, str]:
        cells = {}
        for label in numbers.labels(runs):
            ends = chosen(runs, interpreter=label, what=what).ended.value_counts()
            cells[f"CPython {label}"] = ", ".join(f"{count} × {ended}" for ended, count in ends.items())
            bad = numbers.ended(runs, label, what).at()
            cells[f"CPython {label}: not ok"] = f"{bad.low:.0%} to {bad.high:.0%}"
        return cells

    return draw.summary(runs, {"what": e.BORROWED}, row, "").rename(columns={"what": "function"})


def remedies(record: Record) -> list[str]:
    """What was timed, by name, also what a reader has added; without the instrument's own loops and the copy for the
    A/A test."""
    names = dict.fromkeys(cell.partition("/")[2] for cell in record.loops)
    return [name for name in names if not name.startswith(OURS) and name != e.AGAIN]


def remedies_table(record: Record, rivals: pd.DataFrame) -> pd.DataFrame:
    """What each remedy costs, alone and with others. No Python is in its loop, so there is no empty loop to take
    off."""

    def row(_, remedy: str) -> dict:
        return {
            **{f"alone, {label}, ns": statistics.per_call(record, (label, remedy)) for label in record.interpreters},
            **{
                f"{n} threads together, {FREE_THREADED}: one every, ns": numbers.operation(rivals, remedy, int(n))
                for n in sorted(rivals.threads.unique())
            },
            "when": WHEN.get(remedy, ""),
        }

    names = remedies(record)
    table = draw.summary(pd.DataFrame({"remedy": names}), {"remedy": names}, row, "")
    return table.assign(remedy=[name + " (not safe)" * (name in e.UNSAFE) for name in names])


def price_rows(record: Record, rivals: pd.DataFrame) -> pd.DataFrame:
    """What is drawn of it: one thread and two, without the GIL."""
    prices = {}
    for name in remedies(record):
        prices[name, "one thread"] = statistics.per_call(record, (FREE_THREADED, name))
        prices[name, "two threads together"] = numbers.operation(rivals, name)
    return draw.points(prices, "remedy", "threads")


def plot_prices(figure, prices: pd.DataFrame) -> None:
    """A point for each remedy: one thread, and two that share it."""
    said = "ns for each operation, without the GIL"
    draw.intervals(figure, prices, "remedy", "threads", xlabel=said, xlim=(0, None))


def detection_table(found: pd.DataFrame) -> pd.DataFrame:
    """What both tools say of each variant, with what is true of it."""

    def row(found: pd.DataFrame, variant: str) -> dict[str, str]:
        race, wrong = e.STRESS[variant]
        answers = {row.tool: row.found for row in chosen(found, variant=variant).itertuples()}
        cells = {"data race": "yes" if race else "no", "can be wrong": "yes" if wrong else "no"}
        for tool in TOOLS:
            outcome = numbers.outcome(answers[tool], race)
            cells[tool] = answers[tool] + (f" ({outcome})" if outcome in ("missed", "false alarm") else "")
        return cells

    return draw.summary(found, {"variant": e.STRESS}, row, "")


def telling(table: pd.DataFrame) -> pd.Series:
    """Of that table the rows that teach most: the counters, what is wrong without a data race, and where a tool
    errs."""
    errs = table[list(TOOLS)].apply(lambda said: said.str.contains("(", regex=False)).any(axis=1)
    return table.variant.str.startswith("counter") | (table["data race"] != table["can be wrong"]) | errs


def parallel_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The outcome of each test on each build."""
    outcomes = runs.pivot(index="test", columns="interpreter", values="outcome").loc[list(e.TESTS)]
    return outcomes.add_prefix("CPython ").rename_axis(columns=None).reset_index()


def explored_table(found: pd.DataFrame) -> pd.DataFrame:
    """What loom tried, and what went wrong."""
    table = found.set_index("case").loc[list(e.MODELS), ["executions", "failure"]].fillna("none").reset_index()
    failed = r".*failed: (.*?)\s+left: (\S+)\s+right: (\S+).*"
    table = table.rename(columns={"executions": "tried"})
    return table.assign(failure=table.failure.str.replace(failed, r"\1: \2, and not \3", regex=True))
