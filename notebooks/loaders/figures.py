"""What the chapter "CDLL and PyDLL" shows: tables, figures, and the numbers that its prose takes up."""

import pandas as pd

from ffilab import draw
from ffilab.bench.plan import EMPTY
from ffilab.bench.record import Record
from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.loaders import results

# How the prose calls the chapter pair in the names of its numbers.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}


def original_getpid(runs: pd.DataFrame) -> pd.DataFrame:
    """A12 as the talk ran it: seconds, and their ratio."""
    table = runs.pivot(index="interpreter", columns="loader", values="seconds").round(3)
    return pd.DataFrame(
        {
            "CPython": table.index,
            "CDLL s": table.CDLL.to_numpy(),
            "PyDLL s": table.PyDLL.to_numpy(),
            "CDLL / PyDLL": (table.CDLL / table.PyDLL).round(3).to_numpy(),
        }
    )


def ratios(found: pd.DataFrame) -> pd.DataFrame:
    """The comparisons in words; p-values adjusted over this family."""
    family = statistics.adjusted([row.comparison.p for row in found.itertuples()])
    return pd.DataFrame(
        [
            {
                "CPython": row.interpreter,
                "function": row.function,
                "CDLL / PyDLL": draw.text(row.comparison.ratio),
                "without the loop": draw.text(row.comparison.net_ratio),
                "CDLL - PyDLL": draw.text(row.comparison.difference, "ns"),
                "Wilcoxon p, BH": f"{p:.2g}",
                "restarts": row.comparison.estimate.n,
            }
            for row, p in zip(found.itertuples(), family)
        ]
    )


def plot_ratios(figure, found: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, found, "interpreter", "function")
    axes.axvline(1, linestyle=":", color="gray")
    axes.set(xlabel="time through CDLL / time through PyDLL", ylabel="CPython")


def ratios_in_words(found: pd.DataFrame) -> str:
    return "; ".join(
        f"{row.function} on {row.interpreter} {draw.text(row.comparison.ratio)}" for row in found.itertuples()
    )


def glue_ratios(record: Record, found: pd.DataFrame) -> None:
    """Hand the pair's ratios and differences to the prose."""
    for name, label in PAIR.items():
        for row in found[found.interpreter == label].itertuples():
            draw.glue(f"ratio-{row.function}-{name}", draw.text(row.comparison.ratio))
            draw.glue(f"net-ratio-{row.function}-{name}", draw.text(row.comparison.net_ratio))
            draw.glue(f"difference-{row.function}-{name}", draw.text(row.comparison.difference, "ns"))
        draw.glue(f"empty-{name}", draw.text(statistics.per_call(record, (label, EMPTY)), "ns"))
    noop = found[found.function == "noop"]
    listing = "; ".join(f"{row.interpreter}: {draw.text(row.comparison.ratio)}" for row in noop.itertuples())
    draw.glue("ratio-every-interpreter", f"For noop, on every interpreter of this run: {listing}.")


def glue_alarms(record: Record) -> None:
    """Hand the A/A result to the prose."""
    found = [comparison for _, _, comparison in statistics.false_alarms(record, results.COPIES)]
    alarms = sum(comparison.ratio.excludes(1) for comparison in found)
    draw.glue("alarms", f"{alarms} of {len(found)} A/A tests of this run raised a false alarm.")
    mde = max(comparison.mde for comparison in found)
    draw.glue("mde", f"{mde:.2%} of a call's time on the interpreter where it is largest")


def glue_gain(record: Record) -> None:
    """Hand the answer to the talk's contradiction to the prose."""
    gain = {function: results.gain_with_gil_over_without(record, function) for function in results.FUNCTIONS}
    for function, interval in gain.items():
        draw.glue(f"gain-{function}", draw.text(interval))
    draw.glue("gain-words", gain_in_words(gain))


def gain_in_words(gain: dict[str, Interval]) -> str:
    """Which build gains more: one or two sentences, from the intervals of all functions."""
    if all(interval.low > 1 for interval in gain.values()):
        return "PyDLL gains more with the GIL. The terminal of the talk was right, and the recap a slip."
    if all(interval.high < 1 for interval in gain.values()):
        return "Here PyDLL gains more without the GIL, as the recap of the talk says and its terminal does not."
    return "The two functions do not agree beyond doubt here, so this run does not settle it."


def plot_cost(figure, cost: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, cost, "interpreter", "how")
    axes.set(xlabel="ns for one detach and attach", ylabel="CPython", xlim=(0, None))


def cost_in_words(cost: pd.DataFrame) -> str:
    return "; ".join(f"{row.interpreter}, {row.how}: {draw.text(Interval.of(row), 'ns')}" for row in cost.itertuples())


def glue_cost(record: Record, cost: pd.DataFrame) -> None:
    """Hand the cost of the bare cycle to the prose, in ns and as a share of the loaders' difference."""
    alone = cost[cost.how == "alone, in a C loop"].set_index("interpreter")
    shares = results.cycle_shares(record, cost)
    for name, label in PAIR.items():
        known = label in alone.index
        draw.glue(f"cycle-{name}", draw.words(Interval.of(alone.loc[label]) if known else None, "ns"))
        draw.glue(f"cycle-share-{name}", draw.words(shares.get(label), "%", 100))


def audit(costs: dict[str, Interval]) -> pd.DataFrame:
    """The cost of an idle audit hook in words."""
    return pd.DataFrame([{"CPython": label, "added by one hook": draw.text(i, "ns")} for label, i in costs.items()])


def glue_audit(costs: dict[str, Interval]) -> None:
    """Hand the cost of an idle audit hook to the prose."""
    for name, label in PAIR.items():
        draw.glue(f"audit-{name}", draw.text(costs[label], "ns"))


def original_blocking(runs: pd.DataFrame) -> pd.DataFrame:
    """A13 as the talk ran it."""
    ordered = runs.sort_values(["interpreter", "loader"])
    return pd.DataFrame(
        {
            "CPython": ordered.interpreter,
            "loader": ordered.loader,
            "iterations": [f"{n:,}" for n in ordered.iterations],
        }
    )


def plot_shares(figure, shares: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, shares, "interpreter", "loader")
    axes.set(xlabel="share of its speed that the counting thread keeps", ylabel="CPython", xlim=(-0.05, 1.25))


def shares_in_words(shares: pd.DataFrame) -> str:
    return "; ".join(f"{row.loader} on {row.interpreter} {draw.text(Interval.of(row))}" for row in shares.itertuples())


def glue_shares(shares: pd.DataFrame) -> None:
    """Hand the counting thread's shares and pauses to the prose."""
    for name, label in PAIR.items():
        for row in shares[shares.interpreter == label].itertuples():
            draw.glue(f"share-{row.loader}-{name}", draw.text(Interval.of(row), "%", 100))
            draw.glue(f"pause-{row.loader}-{name}", f"{row.pause_ms:.3g} ms (median of {row.runs} processes)")


def loader_table(record: Record, shares: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """A14: the talk's loader table with the values of this run."""
    rows = []
    for row in ends.itertuples():
        kept = results.of(shares, row.interpreter, row.loader)
        cost = statistics.per_call(record, (row.interpreter, f"{row.loader} noop"))
        rows.append(
            {
                "CPython": row.interpreter,
                "loader": row.loader,
                "call of noop": draw.text(cost, "ns"),
                "others keep": draw.text(Interval.of(kept), "%", 100),
                "C API crashes": f"{draw.text(row.crashes.at(), '%', 100)} ({row.how})",
                "handshake deadlocks": draw.text(row.deadlocks.at(), "%", 100),
            }
        )
    return pd.DataFrame(rows)


def glue_ends(ends: pd.DataFrame) -> None:
    """Hand the numbers of crashed and deadlocked processes to the prose."""
    for name, label in PAIR.items():
        for row in ends[ends.interpreter == label].itertuples():
            for what in ("crashes", "deadlocks"):
                share = getattr(row, what)
                draw.glue(f"{what}-{row.loader}-{name}", f"{share.events} of {share.trials}")
