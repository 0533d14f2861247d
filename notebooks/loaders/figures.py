"""What the chapter "CDLL and PyDLL" shows: tables and figures."""

import matplotlib.pyplot as plt
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.judge.questions import YES, above
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.loaders import results
from notebooks.loaders.results import LOADERS


def as_run(found: pd.DataFrame, unit: str, over: str) -> pd.DataFrame:
    """What the talk's program prints: the first run, the ratio that it gives, and that of all runs."""
    other = LOADERS[over == LOADERS[0]]
    shown = "{:.3f}" if unit == "s" else "{:,.0f}"
    return pd.DataFrame(
        {
            "CPython": found.interpreter,
            **{f"{loader}, {unit}": found[loader].map(shown.format) for loader in LOADERS},
            f"{over} / {other}": [f"{ratios.iloc[0]:.3f}" for ratios in found.ratios],
            "over all runs": [draw.Quantity(one.at()) for one in found.estimate],
            "n (processes)": [one.n for one in found.estimate],
        }
    )


def ratios(record: Record) -> pd.DataFrame:
    """What CDLL costs, by condition and function."""
    return pd.DataFrame(
        {
            "CPython": label,
            "function": function,
            "CDLL / PyDLL": draw.Quantity(found.ratio),
            "without the loop": draw.Quantity(found.net_ratio),
            "CDLL - PyDLL, ns": draw.Quantity(found.difference),
            "n (layouts)": found.estimate.n,
        }
        for label, function, found in results.comparisons(record)
    )


def listing(rows: pd.DataFrame, by: str, unit: str = "") -> str:
    """Every row in words, for an alt text: `noop on 3.14 1.5 [1.4, 1.6]`."""
    return "; ".join(
        f"{getattr(row, by)} on {row.interpreter} {draw.text(Interval.of(row), unit)}" for row in rows.itertuples()
    )


def plot_prices(figure, prices: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, prices, "function", "interpreter")
    axes.axvline(0, linestyle=":", color="gray")
    axes.set(xlabel="ns that CDLL adds to a call", ylabel="")


def carried(record: Record, prices: pd.DataFrame) -> pd.DataFrame:
    """What noop says of the price of each function, and by how much it is off."""
    missed = {label: results.misses(record, label) for label in record.interpreters}
    return pd.DataFrame(
        {
            "CPython": row.interpreter,
            "function": row.function,
            "CDLL - PyDLL, ns": draw.Quantity(Interval.of(row)),
            **{
                f"error with noop's {what}, ns": draw.Quantity(found[row.function]) if row.function in found else ""
                for what, found in missed[row.interpreter].items()
            },
            "n (layouts)": row.n,
        }
        for row in prices.itertuples()
    )


def timeline(record: Record) -> pd.DataFrame:
    """The parts of one call of noop, in ns: what ctypes takes in both loaders (the loop is taken off), what CDLL takes
    more, and the bounds of the end of the call through CDLL."""
    rows = []
    for label in (GIL, FREE_THREADED):
        attached = medians(record.times(label, "PyDLL noop") - record.times(label, EMPTY))
        takes = statistics.over_units(record, attached).at().value
        price = results.comparison(record, label, "noop").difference
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


def plot_shares(figure, shares: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, shares, "interpreter", "loader")
    axes.set(xlabel="share of its speed that the counting thread keeps", ylabel="CPython", xlim=(-0.05, 1.25))


def loader_table(record: Record, shares: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """The talk's loader table with the values of this run."""
    rows = []
    for row in ends.itertuples():
        kept = results.row_of(shares, row.interpreter, row.loader)
        bounds = {what: share.at() for what, share in (("crashes", row.crashes), ("deadlocks", row.deadlocks))}
        rows.append(
            {
                "CPython": row.interpreter,
                "loader": row.loader,
                "call of noop, ns": draw.Quantity(statistics.per_call(record, (row.interpreter, f"{row.loader} noop"))),
                "n (layouts)": len(record.kept),
                "others keep, %": draw.Quantity(Interval.of(kept), factor=100),
                "n (processes)": kept.runs,
                "C API crashed": str(row.crashes),
                "handshake hung": str(row.deadlocks),
                "C API ended": row.how,
                **{f"{what}, share": f"[{at.low:.0%}, {at.high:.0%}]" for what, at in bounds.items()},
            }
        )
    return pd.DataFrame(rows)
