"""What the chapter "CDLL and PyDLL" shows: tables and figures."""

import itertools

import matplotlib.pyplot as plt
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.processes import chosen
from ffilab.judge.questions import YES, above
from ffilab.measure.record import Record
from ffilab.page import draw
from notebooks.loaders import numbers
from notebooks.loaders.experiment import DECLARED, ON
from notebooks.loaders.numbers import FUNCTIONS, LOADERS, PAIR, by_condition


def as_run(runs: pd.DataFrame, value: str) -> pd.DataFrame:
    """What the talk's program prints: the first round, the ratio that it gives, and that of all rounds. value:
    `seconds`, or `iterations`."""
    one, other = numbers.AS_RUN[value]
    unit, shown = ("s", "{:.3f}") if value == "seconds" else (value, "{:,.0f}")

    def row(runs: pd.DataFrame, interpreter: str) -> dict:
        first = numbers.rounds(runs, interpreter, value).iloc[0]
        estimate = numbers.as_run(runs, interpreter, value)
        return {
            **{f"{loader}, {unit}": shown.format(first[loader]) for loader in LOADERS},
            f"{one} / {other}": f"{first.ratio:.3f}",
            "over all runs": estimate,
            "n (processes)": estimate.n,
        }

    return draw.summary(by_condition(runs), {"interpreter": ()}, row, "")


def ratios(record: Record) -> pd.DataFrame:
    """What CDLL costs, by condition and function: those of this page, and those that a reader has added."""
    names = {cell.partition("/")[2].partition(" ")[2] for cell in record.loops}
    added = sorted(name for name in names - {*FUNCTIONS, *DECLARED} if not name.endswith(ON))
    asked = itertools.product((*record.interpreters, numbers.SWITCHED), (*FUNCTIONS, *added))
    measured = [pair for pair in asked if all(record.has(*cell) for cell in numbers.cells(*pair))]
    comparisons = {pair: numbers.comparison(record, *pair) for pair in measured}
    return pd.DataFrame(
        {
            "CPython": label,
            "function": function,
            "CDLL / PyDLL": draw.Quantity(comparison.ratio),
            "without the loop": draw.Quantity(comparison.net_ratio),
            "CDLL - PyDLL, ns": draw.Quantity(comparison.difference),
            "n": comparison.estimate.n,
        }
        for (label, function), comparison in comparisons.items()
    )


def listing(rows: pd.DataFrame, by: str, unit: str = "") -> str:
    """Every row in words, for an alt text: `noop on 3.14 1.5 [1.4, 1.6]`."""
    return "; ".join(
        f"{getattr(row, by)} on {row.interpreter} {draw.text(Interval.of(row), unit)}" for row in rows.itertuples()
    )


def prices(record: Record) -> pd.DataFrame:
    """What CDLL takes more for every interpreter and function, in ns; n is the number of layouts."""
    rows = []
    for label, function in itertools.product(record.interpreters, ("noop", *numbers.OTHERS)):
        price = numbers.price(record, label, function)
        rows.append({"interpreter": label, "function": function, **vars(price.interval), "n": price.n})
    return pd.DataFrame(rows)


def plot_prices(figure, prices: pd.DataFrame) -> None:
    draw.intervals(figure, prices, "function", "interpreter", line=0, xlabel="ns that CDLL adds to a call")


def carried(record: Record, prices: pd.DataFrame) -> pd.DataFrame:
    """What noop says of the price of each function, and by how much it is off."""
    missed = {label: numbers.misses(record, label) for label in record.interpreters}
    return pd.DataFrame(
        {
            "CPython": row.interpreter,
            "function": row.function,
            "CDLL - PyDLL, ns": draw.Quantity(Interval.of(row)),
            **{
                f"error with noop's {way}, ns": draw.Quantity(off[row.function]) if row.function in off else ""
                for way, off in missed[row.interpreter].items()
            },
            "n": row.n,
        }
        for row in prices.itertuples()
    )


def timeline(record: Record) -> pd.DataFrame:
    """The parts of one call of noop, in ns: what ctypes takes in both loaders (the loop is taken off), what CDLL takes
    more, and the bounds of the end of the call through CDLL."""
    rows = []
    for label in PAIR:
        takes = statistics.over_units(record, numbers.attached(record, label, "noop")).interval.value
        price = numbers.price(record, label, "noop").interval
        for loader in LOADERS:
            more = price if loader == "CDLL" and above(price, 0) == YES else Interval(0.0, 0.0, 0.0)
            ends = {"low": takes + more.low, "high": takes + more.high}
            rows.append({"interpreter": label, "loader": loader, "ctypes_ns": takes, "extra_ns": more.value, **ends})
    return pd.DataFrame(rows)


def plot_timeline(figure, parts: pd.DataFrame) -> None:
    """One call of noop through each loader, on both builds. The C function is drawn in the middle of what ctypes does,
    and the price of CDLL in two halves: only the sums were measured."""
    blue, orange, green = draw.PALETTE[:3]
    for axes, (label, rows) in zip(
        figure.subplots(1, 2, sharex=True, sharey=True), parts.groupby("interpreter", sort=False)
    ):
        for row in rows.itertuples():
            at, half, start = LOADERS.index(row.loader), row.ctypes_ns / 2, 0.0
            for length, colour in ((half, blue), (row.extra_ns, orange), (half, blue)):
                axes.barh(at, length, left=start, height=0.5, color=colour)
                start += length
            middle = start / 2
            axes.vlines(middle, at - 0.36, at + 0.36, color=green, linewidth=3)
            axes.annotate("C", (middle, at - 0.38), ha="center", va="bottom", fontsize=10)
            if row.extra_ns:
                error, colour = [[start - row.low], [row.high - start]], plt.rcParams["text.color"]
                axes.errorbar(start, at, xerr=error, color=colour, capsize=4)
        axes.set(title=label, xlabel="ns from the start of the call", xlim=(0, None), ylim=(1.6, -0.7))
        axes.set_yticks(range(len(LOADERS)), LOADERS)
        axes.grid(axis="y", visible=False)
    named = [plt.Rectangle((0, 0), 1, 1, color=colour) for colour in (blue, orange, green)]
    figure.legend(named, ("ctypes, attached", "detach, attach", "the C function"), loc="outside upper center", ncols=3)


def shares(runs: pd.DataFrame) -> pd.DataFrame:
    """What the counting thread keeps of its speed beside a call, and its longest pause."""
    return pd.DataFrame(
        {
            "interpreter": label,
            "loader": loader,
            **vars(numbers.share_kept(part, label, loader).interval),
            "pause_ms": numbers.pause(part, label, loader).value,
            "runs": len(part),
        }
        for (label, loader), part in by_condition(runs).groupby(["interpreter", "loader"])
    )


def plot_shares(figure, shares: pd.DataFrame) -> None:
    look = {"xlabel": "share of its speed that the counting thread keeps", "ylabel": "CPython", "xlim": (-0.05, 1.25)}
    draw.intervals(figure, shares, "interpreter", "loader", **look)


def loader_table(record: Record, shares: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """The talk's loader table with the values of this run. ends: the processes that may crash, or hang."""

    def in_per_cent(share: Share) -> str:
        return f"[{share.interval.low:.0%}, {share.interval.high:.0%}]"

    def row(ends: pd.DataFrame, interpreter: str, loader: str) -> dict:
        kept = chosen(shares, interpreter=interpreter, loader=loader).iloc[0]
        crashes, deadlocks = (count(ends, interpreter, loader) for count in (numbers.crashes, numbers.deadlocks))
        of_api = chosen(ends, interpreter=interpreter, loader=loader, what="C API")
        return {
            "call of noop, ns": statistics.per_call(record, (interpreter, f"{loader} noop")),
            "n": draw.behind(record, [(interpreter, f"{loader} noop")]),
            "others keep, %": draw.Quantity(Interval.of(kept), factor=100),
            "n (processes)": kept.runs,
            "C API crashed": str(crashes),
            "handshake hung": str(deadlocks),
            "C API ended": ", ".join(sorted(set(of_api.ended))),
            "crashes, share": in_per_cent(crashes),
            "deadlocks, share": in_per_cent(deadlocks),
        }

    return draw.summary(ends, {"interpreter": (), "loader": LOADERS}, row, "")
