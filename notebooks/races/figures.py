"""What the chapter "Races" shows: tables, figures and the texts that its prose takes up."""

import numpy as np
import pandas as pd
import seaborn as sns

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.judge.processes import chosen, interval_of
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races import results
from notebooks.races.detection import MODELS, TESTS, TOOLS
from notebooks.races.experiment import BORROWED, INTERVALS, LOADERS, REMEDIES, WAYS
from notebooks.races.experiment import UNSAFE as UNSAFE_REMEDIES
from notebooks.races.results import KEEPING, PYDLL, RELEASING, SAFE, VARIANTS

# How the prose calls the chapter pair in the names of its numbers.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}
# When each remedy is the one to take.
WHEN = {
    "no protection": "never, if two threads can meet there",
    "PyMutex": "several values that must agree; lets go of the thread state while it waits",
    "atomic": "one number that stands alone",
    "critical section": "the state of one Python object; no lock at all in a build with the GIL",
    "sharded, 16 atomics": "many writers, few readers: the reader adds up",
    "per-thread state": "the same, cheaper still, and it costs memory for each thread that ever counted",
    "read in place": "never, if someone may write meanwhile",
    "read under a PyMutex": "few readers, or values that change often",
    "read an immutable snapshot": "many readers, few writers; someone must decide when an old one is freed",
}


def bad_words(frame: pd.DataFrame, column: str, **which) -> str:
    """`7 of 30 runs (9 % to 45 %)`: bad runs, each a process, with the exact interval of their share."""
    bad = results.bad_processes(frame, column, **which)
    if bad is None:
        return draw.NOT_MEASURED
    share = bad.at()
    return f"{bad.events} of {bad.trials} runs ({share.low:.0%} to {share.high:.0%})"


def mean_words(frame: pd.DataFrame, column: str, unit: str, factor: float = 1, **which) -> str:
    """Trimmed mean with its interval in words."""
    return draw.words(interval_of(frame, column, **which), unit, factor)


def worst(frame: pd.DataFrame, column: str, **which) -> float:
    """The largest value of a column; NaN if there is none."""
    return chosen(frame, **which)[column].max()


def original_table(original: pd.DataFrame) -> pd.DataFrame:
    """A15: what was lost, by build, loader and variant."""
    rows = []
    for label in results.labels(original):
        for loader in LOADERS:
            for variant in VARIANTS:
                which = {"interpreter": label, "loader": loader, "variant": variant}
                rows.append(
                    {
                        "CPython": label,
                        "loader": loader,
                        "counter": variant,
                        "runs that lost updates": bad_words(original, "lost", **which),
                        "lost, mean": mean_words(original, "lost", "%", 100, **which),
                        "lost, worst run": f"{worst(original, 'lost', **which):.1%}",
                    }
                )
    return pd.DataFrame(rows)


def original_words(original: pd.DataFrame) -> str:
    """Did the talk's own program show the race here? One sentence."""
    bad = results.bad_processes(original, "lost", interpreter=FREE_THREADED, loader=PYDLL, variant="unsafe")
    if bad.events == bad.trials:
        return "So the talk's program shows the race here as it did there."
    if bad.events:
        return (
            "So the talk's program shows the race here too, though not in every run. A run without loss proves nothing."
        )
    return (
        "So the talk's program does not show the race here. That does not make the counter safe. "
        "The next section lets the threads meet."
    )


def glue_original(original: pd.DataFrame, starts: pd.DataFrame) -> None:
    """Hand what the talk's counter shows, the time to start a thread, and of one call, to the prose."""
    draw.glue("original-words", original_words(original))
    for what in ("start", "call"):
        draw.glue(f"original-{what}", mean_words(starts, what, "µs", 1e-3))


def crossed_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """The crossed counter: the unsafe variant by build, way and threads; the safe ones in one column."""
    rows = []
    for label in results.labels(crossed):
        for way, releases in WAYS.items():
            for threads in sorted(crossed.threads.unique()):
                which = {"interpreter": label, "way": way, "threads": int(threads)}
                rows.append(
                    {
                        "CPython": label,
                        "way": way,
                        "GIL": "released" if releases else "kept",
                        "threads": threads,
                        "unsafe: runs that lost updates": bad_words(crossed, "lost", variant="unsafe", **which),
                        "unsafe: lost, mean": mean_words(crossed, "lost", "%", 100, variant="unsafe", **which),
                        "mutex, atomic": bad_words(crossed, "lost", variant=SAFE, **which),
                    }
                )
    return pd.DataFrame(rows)


def plot_crossed(figure, crossed: pd.DataFrame) -> None:
    """Each run of the unsafe counter with two threads as one point, by way and build."""
    rows = chosen(crossed, interpreter=PAIR.values(), variant="unsafe", threads=2)
    axes = figure.subplots()
    sns.stripplot(
        rows,
        x="lost",
        y="way",
        hue="interpreter",
        order=list(WAYS),
        hue_order=list(PAIR.values()),
        dodge=True,
        jitter=0.15,
        alpha=0.7,
        ax=axes,
        palette=draw.PALETTE[:2],
    )
    axes.set(xlabel="share of updates lost in one run", ylabel="", xlim=(-0.03, 1))
    axes.legend(title="CPython", loc="best")


def crossed_words(crossed: pd.DataFrame) -> str:
    """The same in words, for the figure's alt text."""
    parts = []
    for label in PAIR.values():
        for way in WAYS:
            found = bad_words(crossed, "lost", interpreter=label, way=way, variant="unsafe", threads=2)
            parts.append(f"{way} on {label}: {found}")
    return "; ".join(parts)


def glue_crossed(crossed: pd.DataFrame) -> None:
    """Hand the runs that lost updates, by each way that keeps or releases the GIL, to the prose."""
    for name, label in PAIR.items():
        for how, ways in (("kept", KEEPING), ("released", RELEASING)):
            words = [
                f"{bad_words(crossed, 'lost', interpreter=label, way=way, variant='unsafe')} by {way!r}" for way in ways
            ]
            draw.glue(f"crossed-{how}-{name}", " and ".join(words))


def matrix_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """A18: the talk's matrix, each cell with the processes that were counted in it, by both ways."""
    rows = {}
    for label in results.labels(crossed):
        matrix = results.safety_matrix(crossed, label)
        for releases in (False, True):
            column = f"{label}, GIL {'released' if releases else 'kept'}"
            if BY_LABEL[label].free_threaded:
                column = f"{label}, {'detached' if releases else 'attached'}"
            for safe in (True, False):
                cell = matrix[(matrix.safe == safe) & (matrix.releases == releases)]
                events, trials = int(cell.events.sum()), int(cell.trials.sum())
                word = "race" if events else "no loss seen"
                rows.setdefault("thread-safe function" if safe else "unsafe function", {})[column] = (
                    f"{word}: {events} of {trials}"
                )
    return pd.DataFrame(rows).T.rename_axis("").reset_index()


def bank_table(bank: pd.DataFrame) -> pd.DataFrame:
    """A16 and A17: withdrawals and money made from nothing."""
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
                        "inconsistent": bad_words(bank, "created", **which),
                        "withdrawals, mean": mean_words(bank, "withdrawals", "", **which),
                        "dollars from nothing, mean": mean_words(bank, "created", "", **which),
                    }
                )
    return pd.DataFrame(rows)


def glue_bank(bank: pd.DataFrame) -> None:
    """Hand the runs of the bank that were inconsistent, and the dollars from nothing, to the prose."""
    for name, label in PAIR.items():
        slow, fast = (
            {"interpreter": label, "loader": PYDLL, "case": case} for case in ("unsafe, sleep", "unsafe, fast")
        )
        draw.glue(f"sleep-{name}", bad_words(bank, "created", **slow))
        draw.glue(f"fast-{name}", bad_words(bank, "created", **fast))
        draw.glue(f"dollars-{name}", mean_words(bank, "created", "dollars", **slow))


def plot_payments(figure, payments: pd.DataFrame) -> None:
    """Measured shares with their intervals, and the model's line."""
    axes = figure.subplots()
    line = np.linspace(0, payments.window_ns.max(), 200)
    model = results.model_of_payments(line)
    axes.plot(line / 1000, model, label="model: two moments closer than the window", linestyle="--")
    errors = [payments.value - payments.low, payments.high - payments.value]
    axes.errorbar(payments.window_ns / 1000, payments.value, yerr=errors, fmt="o", capsize=4, label="measured")
    axes.set(xlabel="window between check and act, µs", ylabel="share of rounds with two payments", ylim=(0, None))
    axes.legend(loc="best")


def payments_table(payments: pd.DataFrame) -> pd.DataFrame:
    """The same as a table."""
    return pd.DataFrame(
        {
            "window": [f"{window / 1000:g} µs" for window in payments.window_ns],
            "rounds with two payments": [draw.text(Interval.of(row), "%", 100) for row in payments.itertuples()],
            "model": [f"{model:.1%}" for model in payments.model],
        }
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


def glue_python(python: pd.DataFrame) -> None:
    """Hand the runs in which Python statements lost updates, at the shortest switch interval, to the prose."""
    for name, label in PAIR.items():
        for statement in dict.fromkeys(python.statement):
            which = {"interpreter": label, "statement": statement, "interval": "1 µs"}
            draw.glue(f"python-{statement}-{name}", bad_words(python, "lost", **which))


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
            row[f"CPython {label}"] = ", ".join(f"{count} × {ended}" for ended, count in ends.items())
        rows.append(row)
    return pd.DataFrame(rows)


def remedies_table(record: Record, rivals: pd.DataFrame) -> pd.DataFrame:
    """What each remedy costs, alone and with rivals. No Python is in its loop, so there is no empty loop to take off."""
    rows = []
    for name in REMEDIES:
        row = {"remedy": name + (" (not safe)" if name in UNSAFE_REMEDIES else "")}
        for label in record.interpreters:
            row[f"alone, {label}"] = draw.text(statistics.per_call(record, (label, name)), "ns")
        for threads in sorted(rivals.threads.unique()):
            row[f"{threads} threads, {FREE_THREADED}"] = draw.words(results.operation(rivals, name, int(threads)), "ns")
        rows.append({**row, "when": WHEN[name]})
    return pd.DataFrame(rows)


def glue_remedies(rivals: pd.DataFrame) -> None:
    """Hand the price of each remedy without the GIL, with one rival, to the prose."""
    for name in REMEDIES:
        draw.glue(f"remedy-two-{name}", draw.words(results.operation(rivals, name, 2), "ns"))


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


def glue_rust(rust: pd.DataFrame) -> None:
    """Hand the runs in which the counters in Rust lost updates to the prose."""
    for variant in ("Rust, load then store", "Rust, fetch_add"):
        draw.glue(variant, bad_words(rust, "lost", variant=variant) if len(rust) else draw.NOT_MEASURED)


def explored_table(found: pd.DataFrame) -> pd.DataFrame:
    """What loom tried, and what went wrong."""
    return found.set_index("case").loc[list(MODELS), ["executions", "failure"]].fillna("none").reset_index()
