"""What the chapter "Races" shows: tables, figures and the texts that its prose takes up."""

import dis

import numpy as np
import pandas as pd
import seaborn as sns

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.corners import critical_sections_page
from ffilab.corners.races import (
    AGAIN,
    BORROWED,
    INTERVALS,
    KERNEL,
    LOADERS,
    REMEDIES,
    UNSAFE,
    VARIANTS,
    WAYS,
    WITH_GIL,
    model_of_payments,
    piece_cost,
    safety_matrix,
)
from ffilab.corners.races_detection import CLEAN, RACE
from ffilab.judge import statistics
from ffilab.judge.processes import bad_runs, chosen, interval_of
from ffilab.judge.statistics import Interval

PAIR = (WITH_GIL, KERNEL)
NOT_HERE = "not measured here"


def bad_words(frame: pd.DataFrame, column: str, **which) -> str:
    """`7 of 30 runs (10 % to 42 %)`: bad runs with the exact interval of their share."""
    hits, trials = bad_runs(frame, column, **which)
    if not trials:
        return NOT_HERE
    share = statistics.share_interval(hits, trials)
    return f"{hits} of {trials} runs ({share.low:.0%} to {share.high:.0%})"


def mean_words(frame: pd.DataFrame, column: str, unit: str, factor: float = 1, **which) -> str:
    """Trimmed mean with its interval in words."""
    found = interval_of(frame, column, **which)
    return draw.text(found, unit, factor) if found else NOT_HERE


def worst(frame: pd.DataFrame, column: str, **which) -> float:
    """The largest value of a column; NaN if there is none."""
    return chosen(frame, **which)[column].max()


def original_table(original: pd.DataFrame) -> pd.DataFrame:
    """A15: what was lost, by build, loader and variant."""
    rows = []
    for label in dict.fromkeys(original.kernel):
        for loader in LOADERS:
            for variant in VARIANTS:
                which = {"kernel": label, "loader": loader, "variant": variant}
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


def crossed_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """The crossed counter: the unsafe variant by build, way and threads; the safe ones in one column."""
    rows = []
    for label in dict.fromkeys(crossed.kernel):
        for way, releases in WAYS.items():
            for threads in sorted(crossed.threads.unique()):
                which = {"kernel": label, "way": way, "threads": int(threads)}
                which["threads"] = [int(threads)]
                rows.append(
                    {
                        "CPython": label,
                        "way": way,
                        "GIL": "released" if releases else "kept",
                        "threads": threads,
                        "unsafe: runs that lost updates": bad_words(crossed, "lost", variant="unsafe", **which),
                        "unsafe: lost, mean": mean_words(crossed, "lost", "%", 100, variant="unsafe", **which),
                        "mutex, atomic": bad_words(crossed, "lost", variant=VARIANTS[1:], **which),
                    }
                )
    return pd.DataFrame(rows)


def plot_crossed(figure, crossed: pd.DataFrame) -> None:
    """Each run of the unsafe counter with two threads as one point, by way and build."""
    rows = chosen(crossed, kernel=PAIR, variant="unsafe", threads=[2])
    axes = figure.subplots()
    sns.stripplot(
        rows,
        x="lost",
        y="way",
        hue="kernel",
        order=list(WAYS),
        hue_order=list(PAIR),
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
    for label in PAIR:
        for way in WAYS:
            found = bad_words(crossed, "lost", kernel=label, way=way, variant="unsafe", threads=[2])
            parts.append(f"{way} on {label}: {found}")
    return "; ".join(parts)


def matrix_table(crossed: pd.DataFrame) -> pd.DataFrame:
    """A18: the talk's matrix, each cell with what was counted in it."""
    rows = {}
    for label in dict.fromkeys(crossed.kernel):
        matrix = safety_matrix(crossed, label)
        for releases in (False, True):
            column = f"{label}, GIL {'released' if releases else 'kept'}"
            if label.endswith("t"):
                column = f"{label}, {'detached' if releases else 'attached'}"
            for safe in (True, False):
                cell = matrix[(matrix.safe == safe) & (matrix.releases == releases)]
                hits, trials = int(cell.hits.sum()), int(cell.runs.sum())
                word = "race" if hits else "no loss seen"
                rows.setdefault("thread-safe function" if safe else "unsafe function", {})[column] = (
                    f"{word}: {hits} of {trials}"
                )
    return pd.DataFrame(rows).T.rename_axis("").reset_index()


def bank_table(bank: pd.DataFrame) -> pd.DataFrame:
    """A16 and A17: withdrawals and money made from nothing."""
    rows = []
    for label in dict.fromkeys(bank.kernel):
        for loader in LOADERS:
            for case in dict.fromkeys(bank.case):
                which = {"kernel": label, "loader": loader, "case": case}
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


def payments_intervals(payments: pd.DataFrame) -> pd.DataFrame:
    """Share of rounds with two payments by width of the window, beside the model."""
    rows = []
    for window in sorted(payments.window_ns.unique()):
        shares = payments[payments.window_ns == window].share.to_numpy()
        rows.append(
            {
                "window_ns": window,
                **vars(statistics.location_interval(shares)),
                "model": float(model_of_payments(window)),
            }
        )
    return pd.DataFrame(rows)


def plot_payments(figure, payments: pd.DataFrame) -> None:
    """Measured shares with their intervals, and the model's line."""
    rows = payments_intervals(payments)
    axes = figure.subplots()
    line = np.linspace(0, rows.window_ns.max(), 200)
    axes.plot(line / 1000, model_of_payments(line), label="model: two moments closer than the window", linestyle="--")
    errors = [rows.value - rows.low, rows.high - rows.value]
    axes.errorbar(rows.window_ns / 1000, rows.value, yerr=errors, fmt="o", capsize=4, label="measured")
    axes.set(xlabel="window between check and act, µs", ylabel="share of rounds with two payments", ylim=(0, None))
    axes.legend(loc="best")


def payments_table(payments: pd.DataFrame) -> pd.DataFrame:
    """The same as a table."""
    rows = payments_intervals(payments)
    return pd.DataFrame(
        {
            "window": [f"{window / 1000:g} µs" for window in rows.window_ns],
            "rounds with two payments": [
                draw.text(Interval(r.value, r.low, r.high), "%", 100) for r in rows.itertuples()
            ],
            "model": [f"{model:.1%}" for model in rows.model],
        }
    )


def python_table(python: pd.DataFrame) -> pd.DataFrame:
    """C7: lost updates of Python statements by build and switch interval."""
    rows = []
    for label in dict.fromkeys(python.kernel):
        for statement in dict.fromkeys(python.statement):
            for interval in INTERVALS:
                which = {"kernel": label, "statement": statement, "interval": interval}
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


def bytecode(statement: str) -> pd.DataFrame:
    """Instructions of a loop around a statement on `total`, with the places that matter for a race."""
    namespace = {}
    exec(f"def loop(n):\n    global total\n    for _ in range(n):\n        {statement}\n", namespace)
    rows = []
    for instruction in dis.get_instructions(namespace["loop"]):
        name, argument = instruction.opname, instruction.argrepr
        place = {"LOAD_GLOBAL": "reads total", "STORE_GLOBAL": "writes total"} if argument == "total" else {}
        # The instructions with _CHECK_PERIODIC in Python/bytecodes.c, of those that can stand here.
        looks = name == "RESUME" or name.startswith(("JUMP_BACKWARD", "CALL"))
        rows.append(
            {
                "instruction": f"{name} {argument}".strip(),
                "race": place.get(name, ""),
                "may hand over the GIL": "yes" if looks and not name.endswith("NO_INTERRUPT") else "",
            }
        )
    return pd.DataFrame(rows)


def hand_overs_between(statement: str) -> int:
    """How many instructions between reading and writing `total` may hand over the GIL."""
    rows = bytecode(statement)
    read, write = (rows.index[rows.race == what][0] for what in ("reads total", "writes total"))
    return int((rows["may hand over the GIL"][read:write] == "yes").sum())


def kinds_table(kinds: pd.DataFrame) -> pd.DataFrame:
    """More kinds of shared state: runs with a wrong answer, by build and loader."""
    rows = []
    for kind in dict.fromkeys(kinds.kind):
        row = {"kind": kind}
        for label in dict.fromkeys(kinds.kernel):
            for loader in LOADERS:
                row[f"{label}, {loader.split()[1]}"] = bad_words(kinds, "wrong", kernel=label, loader=loader, kind=kind)
        rows.append(row)
    return pd.DataFrame(rows)


def borrowed_table(runs: pd.DataFrame) -> pd.DataFrame:
    """How the processes that read without holding a reference ended."""
    rows = []
    for function in BORROWED:
        row = {"function": function}
        for label in dict.fromkeys(runs.kernel):
            ends = chosen(runs, kernel=label, function=function).ended.value_counts()
            row[f"CPython {label}"] = ", ".join(f"{count} × {ended}" for ended, count in ends.items())
        rows.append(row)
    return pd.DataFrame(rows)


def remedies_table(record: Record, runs: pd.DataFrame) -> pd.DataFrame:
    """What each remedy costs, alone and with rivals."""
    rows = []
    for name, when in REMEDIES.items():
        row = {"remedy": name + (" (not safe)" if name in UNSAFE else "")}
        for label in record.kernels:
            row[f"alone, {label}"] = draw.text(piece_cost(record, label, name), "ns")
        for threads in sorted(runs.threads.unique()):
            found = runs[(runs.remedy == name) & (runs.threads == threads)].ns.to_numpy()
            row[f"{threads} threads, {KERNEL}"] = draw.text(statistics.location_interval(found), "ns")
        rows.append({**row, "when": when})
    return pd.DataFrame(rows)


def glue_remedies(record: Record, runs: pd.DataFrame) -> None:
    """Hand the price of each remedy on the t-build, alone and with one rival, to the prose."""
    for name in REMEDIES:
        draw.glue(f"remedy-{name}", draw.text(piece_cost(record, KERNEL, name), "ns"))
        found = runs[(runs.remedy == name) & (runs.threads == 2)].ns.to_numpy()
        draw.glue(f"remedy-two-{name}", draw.text(statistics.location_interval(found), "ns"))


def false_alarm(record: Record) -> pd.DataFrame:
    """The running A/A test."""
    return critical_sections_page.false_alarm(record, "atomic", AGAIN)


def detection_table(found: pd.DataFrame) -> pd.DataFrame:
    """What both tools say, with what they should say."""

    def judged(row, tool):
        said = row[tool]
        if said not in (RACE, CLEAN):
            return said
        right = (said == RACE) == row["data race"]
        return said + ("" if right else " (false alarm)" if said == RACE else " (missed)")

    return pd.DataFrame(
        [
            {
                "variant": row.variant,
                "data race": "yes" if row["data race"] else "no",
                "can be wrong": "yes" if row["can be wrong"] else "no",
                **{tool: judged(row, tool) for tool in ("ThreadSanitizer", "helgrind")},
            }
            for _, row in found.iterrows()
        ]
    )


def glue_counts(
    original: pd.DataFrame, crossed: pd.DataFrame, bank: pd.DataFrame, python: pd.DataFrame, rust: pd.DataFrame
) -> None:
    """Hand the counts that the prose names to it."""
    pydll = {"loader": "ctypes PyDLL"}
    for label in PAIR:
        draw.glue(f"original-{label}", bad_words(original, "lost", kernel=label, variant="unsafe", **pydll))
        draw.glue(f"sleep-{label}", bad_words(bank, "created", kernel=label, case="unsafe, sleep", **pydll))
        draw.glue(f"fast-{label}", bad_words(bank, "created", kernel=label, case="unsafe, fast", **pydll))
        draw.glue(
            f"dollars-{label}", mean_words(bank, "created", "dollars", kernel=label, case="unsafe, sleep", **pydll)
        )
        for releases in (False, True):
            ways = [way for way, r in WAYS.items() if r == releases]
            draw.glue(
                f"crossed-{'released' if releases else 'kept'}-{label}",
                bad_words(crossed, "lost", kernel=label, way=ways, variant="unsafe"),
            )
        for statement in ("total += 1", "total += one()"):
            which = {"kernel": label, "statement": statement, "interval": "1 µs"}
            draw.glue(f"python-{statement}-{label}", bad_words(python, "lost", **which))
    for variant in ("Rust, load then store", "Rust, fetch_add"):
        draw.glue(variant, bad_words(rust, "lost", variant=variant))


def glue_start(found: pd.DataFrame) -> None:
    """Hand the time to start a thread, and of one call, to the prose."""
    for what in ("start", "call"):
        draw.glue(f"original-{what}", mean_words(found, "ns", "µs", 1e-3, what=what))


def original_words(original: pd.DataFrame) -> str:
    """Did the talk's own program show the race here? One sentence."""
    hits, trials = bad_runs(original, "lost", kernel=KERNEL, loader="ctypes PyDLL", variant="unsafe")
    if hits == trials:
        return "So the talk's program shows the race here as it did there."
    if hits:
        return (
            "So the talk's program shows the race here too, though not in every run. A run without loss proves nothing."
        )
    return (
        "So the talk's program does not show the race here. That does not make the counter safe. "
        "The next section lets the threads meet."
    )
