"""What the chapter "CDLL and PyDLL" shows: tables, figures, and the numbers that its prose takes up."""

import matplotlib.pyplot as plt
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Share
from ffilab.judge.sentences import said
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record, medians
from ffilab.measure.session import Session
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.loaders import results
from notebooks.loaders.results import LOADERS

# How the prose calls the chapter pair: in the names of its numbers, and in words.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}
# The C functions, as they are declared.
SIGNATURES = {
    "noop": "int (void)",
    "getpid": "int (void), a system call",
    "add_one": "int (int)",
    "halve": "double (double)",
    "first_byte": "int (const char *)",
}


def as_run(found: pd.DataFrame, unit: str, over: str) -> pd.DataFrame:
    """What the talk's program prints: the first run, the ratio that it gives, and that of all runs."""
    other = LOADERS[over == LOADERS[0]]
    shown = "{:.3f}" if unit == "s" else "{:,.0f}"
    return pd.DataFrame(
        {
            "CPython": found.interpreter,
            **{f"{loader}, {unit}": found[loader].map(shown.format) for loader in LOADERS},
            f"{over} / {other}": [f"{ratios.iloc[0]:.3f}" for ratios in found.ratios],
            "over all runs": [draw.text(one.at()) for one in found.estimate],
            "n (processes)": [one.n for one in found.estimate],
        }
    )


def ratios(found: pd.DataFrame) -> pd.DataFrame:
    """The comparisons in words."""
    return pd.DataFrame(
        [
            {
                "CPython": row.interpreter,
                "function": row.function,
                "CDLL / PyDLL": draw.text(row.comparison.ratio),
                "without the loop": draw.text(row.comparison.net_ratio),
                "CDLL - PyDLL, ns": draw.text(row.comparison.difference),
                "n (layouts)": row.comparison.estimate.n,
            }
            for row in found.itertuples()
        ]
    )


def plot_ratios(figure, found: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, found, "interpreter", "function")
    axes.axvline(1, linestyle=":", color="gray")
    axes.set(xlabel="time through CDLL / time through PyDLL", ylabel="CPython")


def listing(rows: pd.DataFrame, by: str, unit: str = "") -> str:
    """Every row in words, for an alt text: `noop on 3.14 1.5 [1.4, 1.6]`."""
    return "; ".join(
        f"{getattr(row, by)} on {row.interpreter} {draw.text(Interval.of(row), unit)}" for row in rows.itertuples()
    )


def plot_prices(figure, prices: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, prices, "function", "interpreter")
    axes.axvline(0, linestyle=":", color="gray")
    axes.set(xlabel="time through CDLL less time through PyDLL, ns", ylabel="")


def carried(record: Record, prices: pd.DataFrame) -> pd.DataFrame:
    """What noop says of the price of each function, and by how much it is off."""
    rows = []
    for label in record.interpreters:
        missed = results.misses(record, label)
        for row in prices[prices.interpreter == label].itertuples():
            other = row.function in results.OTHERS
            rows.append(
                {
                    "CPython": label,
                    "function": row.function,
                    "declared": SIGNATURES[row.function],
                    "CDLL - PyDLL, ns": draw.text(Interval.of(row)),
                    "off by the difference of noop, ns": draw.text(missed["difference"][row.function]) if other else "",
                    "off by the ratio of noop, ns": draw.text(missed["ratio"][row.function]) if other else "",
                    "n (layouts)": row.n,
                }
            )
    return pd.DataFrame(rows)


def plot_timeline(figure, parts: pd.DataFrame) -> None:
    """One call of noop through each loader, on both builds. The C function is drawn in the middle of what ctypes does, and the
    price of CDLL in two halves: only the sums were measured."""
    for axes, (label, rows) in zip(
        figure.subplots(1, 2, sharex=True, sharey=True), parts.groupby("interpreter", sort=False)
    ):
        for row in rows.itertuples():
            at, half = LOADERS.index(row.loader), row.ctypes_ns / 2
            pieces = [(half, "ctypes"), (row.extra_ns / 2, "detach"), (row.extra_ns / 2, "attach"), (half, "ctypes")]
            start = 0.0
            for length, what in pieces:
                axes.barh(at, length, left=start, height=0.5, color=draw.PALETTE[0 if what == "ctypes" else 1])
                start += length
            middle = half + row.extra_ns / 2
            axes.vlines(middle, at - 0.36, at + 0.36, color=draw.PALETTE[2], linewidth=3)
            axes.annotate("C", (middle, at - 0.38), ha="center", va="bottom", fontsize=10)
            if row.extra_ns:
                axes.errorbar(
                    start, at, xerr=[[start - row.low], [row.high - start]], color=plt.rcParams["text.color"], capsize=4
                )
        axes.set(title=label, xlabel="ns from the start of the call", xlim=(0, None))
        axes.set_yticks(range(len(LOADERS)), LOADERS)
        axes.grid(axis="y", visible=False)
        axes.set_ylim(1.6, -0.7)
    named = [plt.Rectangle((0, 0), 1, 1, color=draw.PALETTE[number]) for number in (0, 1, 2)]
    figure.legend(named, ("ctypes, attached", "detach, attach", "the C function"), loc="outside upper center", ncols=3)


def timeline(record: Record) -> pd.DataFrame:
    """The parts of one call of noop, in ns: what ctypes takes in both loaders (the loop is taken off), what CDLL takes more, and
    the bounds of the end of the call through CDLL."""
    rows = []
    for label in PAIR.values():
        attached = statistics.over_units(
            record, medians(record.times(label, "PyDLL noop") - record.times(label, EMPTY))
        ).at()
        price = results.comparison(record, label, "noop").difference
        for loader in LOADERS:
            more = loader == "CDLL" and results.costs_more(price)
            rows.append(
                {
                    "interpreter": label,
                    "loader": loader,
                    "ctypes_ns": attached.value,
                    "extra_ns": price.value if more else 0.0,
                    "low": attached.value + (price.low if more else 0.0),
                    "high": attached.value + (price.high if more else 0.0),
                }
            )
    return pd.DataFrame(rows)


def timeline_alt(session: Session) -> str:
    """The picture in words, with its numbers."""
    lengths = " ".join(said(session)[f"timeline-{build}"] for build in PAIR)
    return f"One call through CDLL and one through PyDLL, from left to right: ctypes, the C function, ctypes. {lengths}"


def plot_cost(figure, cost: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, cost, "interpreter", "how")
    axes.set(xlabel="ns for one detach and attach", ylabel="CPython", xlim=(0, None))


def audit(record: Record) -> pd.DataFrame:
    """The cost of an idle audit hook in words."""
    return pd.DataFrame(
        [
            {"CPython": label, "added by one hook, ns": draw.text(cost), "n (layouts)": len(record.kept)}
            for label, cost in results.audit_cost(record).items()
        ]
    )


def plot_shares(figure, shares: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, shares, "interpreter", "loader")
    axes.set(xlabel="share of its speed that the counting thread keeps", ylabel="CPython", xlim=(-0.05, 1.25))


def counted(share: Share) -> str:
    """`5 of 5 [40 %, 100 %]`."""
    at = share.at()
    return f"{share.events} of {share.trials} [{at.low:.0%}, {at.high:.0%}]"


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
                "call of noop, ns": draw.text(cost),
                "n (layouts)": len(record.kept),
                "others keep, %": draw.text(Interval.of(kept), factor=100),
                "n (processes)": kept.runs,
                "C API crashes, processes": f"{counted(row.crashes)} ({row.how})",
                "handshake deadlocks, processes": counted(row.deadlocks),
            }
        )
    return pd.DataFrame(rows)
