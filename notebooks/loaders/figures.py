"""What the chapter "CDLL and PyDLL" shows: tables, figures, and the numbers that its prose takes up."""

import matplotlib.pyplot as plt
import pandas as pd

from ffilab import draw
from ffilab.bench.plan import EMPTY
from ffilab.bench.record import Record, medians
from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Share
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.loaders import results, words
from notebooks.loaders.experiment import LOADERS

# How the prose calls the chapter pair: in the names of its numbers, and in words.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}
WHERE = {"gil": "with the GIL", "free-threaded": "without the GIL"}
# The C functions, as they are declared.
SIGNATURES = {
    "noop": "int (void)",
    "getpid": "int (void), a system call",
    "add_one": "int (int)",
    "halve": "double (double)",
    "first_byte": "int (const char *)",
}


def blocked(found: dict[tuple[str, str], str]) -> tuple[str, str]:
    """The answers of A13: with the GIL, and without."""
    return tuple(found["A13", f"share kept by PyDLL on {label}"] for label in PAIR.values())


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


def glue_ratios(record: Record, found: pd.DataFrame) -> None:
    """Hand the pair's ratios and differences to the prose, and what was predicted of them."""
    ratios, prices = {}, {}
    for name, label in PAIR.items():
        for row in found[found.interpreter == label].itertuples():
            ratios[row.function, name] = row.comparison.ratio
            prices[row.function, name] = row.comparison.difference
            draw.glue(
                f"ratio-{row.function}-{name}", words.times_as_long(WHERE[name], row.function, row.comparison.ratio)
            )
    net = results.comparison(record, GIL, "noop").net_ratio
    draw.glue("empty-gil", draw.text(statistics.per_call(record, (GIL, EMPTY)), "ns"))
    draw.glue("net-ratio-gil", draw.text(net) if net.is_known else draw.NOT_MEASURED)
    draw.glue("prediction-1", words.prediction_1(*(ratios["noop", name] for name in PAIR)))
    more = results.gil_over_free_threaded(record)
    noop = [prices["noop", name] for name in PAIR]
    for name in ("prediction-2", "takeaway-price"):
        draw.glue(name, words.cheaper(*noop, more))


def glue_alarms(record: Record) -> None:
    """Hand the A/A result to the prose."""
    draw.glue("alarms", words.same_call_twice([found.ratio for found in results.twins(record).values()]))
    mde = max(comparison.mde for _, _, comparison in statistics.false_alarms(record, results.COPIES))
    draw.glue("mde", f"{mde:.2%} of a call's time on the interpreter where it is largest")


def glue_gain(record: Record, as_run: pd.DataFrame) -> None:
    """Hand the answers to the talk's contradiction to the prose: which build gains more, is it 20 %, and which GIL it had."""
    gain = {function: results.gain_with_gil_over_without(record, function) for function in results.FUNCTIONS}
    for function, interval in gain.items():
        draw.glue(f"gain-{function}", draw.text(interval))
    draw.glue("gain-words", words.gain(**gain))
    draw.glue("rounds", words.rounds(results.free_threaded_gains_more(as_run), gain["getpid"]))
    ratios = (results.comparison(record, FREE_THREADED, function).ratio for function in results.FUNCTIONS)
    draw.glue("recap", words.recap(*ratios))
    shares = results.shares_of_the_price(record)
    draw.glue("nearer", words.nearer(shares[FREE_THREADED], shares.get(results.SWITCHED)))


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


def glue_carried(record: Record, prices: pd.DataFrame) -> None:
    """Hand to the prose which number of noop says the price of other functions."""
    found = {}
    for name, label in PAIR.items():
        each = {row.function: Interval.of(row) for row in prices[prices.interpreter == label].itertuples()}
        noop, missed = each["noop"], results.misses(record, label)
        draw.glue(f"difference-carried-{name}", words.difference_carried(WHERE[name], each, missed["difference"]))
        draw.glue(f"ratio-carried-{name}", words.ratio_carried(WHERE[name], noop, missed["ratio"]))
        found[name] = tuple(results.carries(noop, missed[what]) for what in ("difference", "ratio"))
        draw.glue(f"carry-{name}", words.number_to_carry(WHERE[name], each, found[name][1]))
    draw.glue("prediction-4", words.prediction_4(*found.values()))


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


def timeline_alt(record: Record) -> str:
    """The picture in words, with its numbers."""
    said = (
        words.timeline(WHERE[name], results.comparison(record, label, "noop").difference)
        for name, label in PAIR.items()
    )
    return (
        "One call through CDLL and one through PyDLL, from left to right: ctypes, the C function, ctypes. "
        + " ".join(said)
    )


def glue_timeline(record: Record) -> None:
    for name, label in PAIR.items():
        draw.glue(f"timeline-{name}", words.timeline(WHERE[name], results.comparison(record, label, "noop").difference))


def plot_cost(figure, cost: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, cost, "interpreter", "how")
    axes.set(xlabel="ns for one detach and attach", ylabel="CPython", xlim=(0, None))


def glue_cost(record: Record, cost: pd.DataFrame) -> None:
    """Hand the cost of the bare cycle to the prose."""
    alone = cost[cost.how == "alone, in a C loop"].set_index("interpreter")
    shares = results.cycle_shares(record, cost)
    for name, label in PAIR.items():
        known = Interval.of(alone.loc[label]) if label in alone.index else None
        priced = results.costs_more(results.comparison(record, label, "noop").difference)
        draw.glue(f"cycle-{name}", words.cycle(WHERE[name], known, shares.get(label) if priced else None))


def audit(record: Record) -> pd.DataFrame:
    """The cost of an idle audit hook in words."""
    return pd.DataFrame(
        [
            {"CPython": label, "added by one hook, ns": draw.text(cost), "n (layouts)": len(record.kept)}
            for label, cost in results.audit_cost(record).items()
        ]
    )


def glue_audit(record: Record) -> None:
    """Hand the cost of an idle audit hook to the prose."""
    draw.glue("audit", words.hook(results.audit_cost(record).get(GIL)))


def plot_shares(figure, shares: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, shares, "interpreter", "loader")
    axes.set(xlabel="share of its speed that the counting thread keeps", ylabel="CPython", xlim=(-0.05, 1.25))


def glue_shares(shares: pd.DataFrame, found: dict[tuple[str, str], str]) -> None:
    """Hand the counting thread's shares and pauses to the prose. found: the answers of the rules."""
    kept = {}
    for name, label in PAIR.items():
        for row in shares[shares.interpreter == label].itertuples():
            kept[WHERE[name], row.loader] = Interval.of(row)
        row = results.of(shares, label, "PyDLL")
        draw.glue(f"pause-{name}", words.pause(WHERE[name], row.pause_ms, row.runs))
    switched = shares[(shares.interpreter == results.SWITCHED) & (shares.loader == "PyDLL")]
    draw.glue("switched", words.switched(Interval.of(switched.iloc[0])) if len(switched) else draw.NOT_MEASURED)
    draw.glue("blocking", words.blocking(*blocked(found)))
    draw.glue("releasing", words.releasing(found["A14", f"share kept by CDLL on {GIL}"]))
    draw.glue("prediction-3", words.prediction_3(kept, *blocked(found)))


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


def glue_ends(ends: pd.DataFrame) -> None:
    """Hand the numbers of crashed and deadlocked processes to the prose."""
    deadlocks = {}
    for name, label in PAIR.items():
        for row in ends[ends.interpreter == label].itertuples():
            deadlocks[WHERE[name], row.loader] = row.deadlocks
    pair = [results.of(ends, label, "PyDLL").deadlocks for label in PAIR.values()]
    draw.glue("removing-the-gil", words.removing_the_gil(*pair))
    draw.glue("unsafe", words.unsafe(*(results.of(ends, label, "CDLL").crashes for label in PAIR.values())))
    draw.glue("prediction-5", words.prediction_5(deadlocks))
