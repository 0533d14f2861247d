"""What the chapter "The boundary" shows: tables and figures."""

import itertools
import math
import re
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns

from ffilab.judge import statistics
from ffilab.judge.estimates import Interval, Location
from ffilab.judge.processes import chosen
from ffilab.judge.questions import OPEN, above
from ffilab.measure.record import Record
from ffilab.page import draw
from ffilab.setup.catalogue import FREE_THREADED, GIL
from native.boundary import arms
from notebooks.boundary import costs, inside, talk, tools
from notebooks.boundary import experiment as e
from notebooks.boundary.beside_work import TARGET_SHARE, threshold

# Which bindings detach the thread state around every call, and so release the GIL: the manuals of ctypes and cffi.
DETACHING = ("cffi API", "cffi ABI", "ctypes CDLL")
# The bindings whose prices are drawn: more curves cannot be told from each other. The CSV holds all.
DRAWN = (e.FLOOR, "PyO3", "pybind11", "ctypes CDLL")
# Where the page on the bindings shows each of them whole.
CODE = {binding: f"bindings.html#binding-{re.sub('[^a-z0-9]+', '-', binding.lower())}" for binding in e.BINDINGS}
# What the choice table prices: heading to signature.
PRICED = {
    "int → int": e.INT,
    "str in": "str in, ASCII",
    "list in, µs": "list of 1,000 ints",
    "callback": "callback",
    "C++ method": e.METHOD,
}
# Where the cells of the matrix are shown, and the code of their bindings; from the root of the book.
SECTION, FOLDER = "notebooks/boundary/boundary.html#the-matrix", "notebooks/boundary"


def every_cell(
    record: Record, cells: pd.DataFrame, counts: dict | str, stand_ins: dict, names: list[str]
) -> pd.DataFrame:
    """The whole matrix for a page of its own: a row for each cell, numbers as numbers, or why there are none.

    names: the records of the session, as the page's last table prints them.
    """
    found = {(row.interpreter, row.binding, row.signature): row for row in cells.itertuples()}
    where = ", ".join(one for one in names if one.endswith("matrix.jsonl"))
    rows = []
    for label, binding, signature in itertools.product(record.interpreters, e.BINDINGS, e.SIGNATURES):
        row = found.get((label, binding, signature))
        (_, arm), floor = (costs.cell(label, one, signature) for one in (binding, e.FLOOR))
        counted = {} if isinstance(counts, str) else counts.get(label, {})
        why = ""
        if row is None:
            why = (record.missing.get((label, arm)) or "it was not measured").removeprefix("ImportError: ")
            if why.startswith("AttributeError") and "PyDLL" in binding:
                why = "PyDLL never detaches the thread state"
        elif reason := stand_ins.get(label, {}).get(binding):
            why = f"measured by a stand-in: {reason}"
        rows.append(
            {
                "CPython": label,
                "binding": binding,
                "signature": signature,
                **numbers("ns", row and row.ns),
                **numbers("over the floor", row and row.over),
                **numbers("ratio to the floor", row and statistics.ratio(record, (label, arm), floor)),
                "instructions": counted.get(arm),
                "n": draw.behind(record, [(label, arm)]) if row else 0,
                "section": SECTION,
                "code": f"{FOLDER}/{CODE[binding]}",
                "record": where,
                "why": why,
            }
        )
    return pd.DataFrame(rows)


def numbers(what: str, found: Interval | None) -> dict[str, float | None]:
    """A value and its bounds as three cells of a row."""
    value, low, high = (found.value, found.low, found.high) if found else (None, None, None)
    return {what: value, f"{what}, low": low, f"{what}, high": high}


def ends(intervals: pd.Series) -> pd.DataFrame:
    """Intervals as numbers: columns value, low and high."""
    return pd.DataFrame([vars(one) for one in intervals], intervals.index, ["value", "low", "high"])


def plain(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with intervals in some columns, as numbers: value, low and high of each."""
    holds = {name: len(column) and isinstance(column.iloc[0], Interval) for name, column in frame.items()}
    return pd.concat(
        [ends(frame[name]).add_prefix(f"{name} ") if holds[name] else frame[name] for name in holds], axis=1
    )


def heat(figure, frame: pd.DataFrame, value: str, words: pd.DataFrame, ticks: dict, label: str, **look) -> None:
    """A heat map by kind of call and binding, on a log scale. ticks: ratios, with what stands at each."""
    axes = figure.subplots()
    colours = np.log10(wide(frame, value))
    sns.heatmap(colours, ax=axes, annot=words, fmt="", annot_kws={"size": 9}, cbar_kws={"shrink": 0.6}, **look)
    axes.set(xlabel="", ylabel="")
    # Above: who sees the first rows alone, as on the first screen, sees whose columns these are.
    axes.xaxis.tick_top()
    axes.set_xticks(axes.get_xticks(), axes.get_xticklabels(), rotation=60, ha="left", rotation_mode="anchor")
    bar = axes.collections[0].colorbar
    bar.set_ticks(np.log10(list(ticks)), labels=list(ticks.values()))
    bar.set_label(label)


def wide(frame: pd.DataFrame, value: str) -> pd.DataFrame:
    """A column of a frame, kinds of call by bindings."""
    return frame.pivot(index="signature", columns="binding", values=value).reindex(
        index=e.SIGNATURES, columns=e.BINDINGS
    )


def plot_matrix(figure, cells: pd.DataFrame) -> None:
    """Time as a multiple of hand-written C's, with the GIL."""
    part = cells[cells.interpreter == GIL]
    words = wide(part, "times").map(lambda v: "" if np.isnan(v) else f"{v:.2f}" if v < 9.995 else f"{v:.0f}")
    ticks = {1: "1", 10: "10", 100: "100 or more"}
    heat(figure, part, "times", words, ticks, f"time over that of the {e.FLOOR}", cmap="cividis", vmin=0, vmax=2)


def plot_without_gil(figure, ratios: pd.DataFrame) -> None:
    """Ratios of two builds; cells whose interval holds 1 say `=`."""
    unknown = ratios.assign(
        open=[not one.is_known or above(one, 1) == OPEN for one in map(Interval.of, ratios.itertuples())]
    )
    values, unknown = wide(ratios, "value"), wide(unknown, "open").fillna(True).astype(bool)
    words = values.map(lambda v: "" if np.isnan(v) else f"{v:.2f}").where(~unknown, "=").where(values.notna(), "")
    ticks, end = {0.5: "half", 1: "as long", 2: "twice"}, math.log10(2)
    label = f"time on {FREE_THREADED} over {GIL}, without the loop"
    heat(figure, ratios, "value", words, ticks, label, cmap="vlag", center=0, vmin=-end, vmax=end)


def plot_int(figure, ints: pd.DataFrame) -> None:
    """What is compared is not the same everywhere: the label says which calls release the GIL."""
    releases = {binding: f"{binding},\nreleases the GIL" for binding in DETACHING}
    rows = ints.join(ends(ints.ns)).replace({"binding": releases})
    draw.intervals(figure, rows, "binding", "interpreter", xscale="log", xlabel="ns for a turn of the loop, int → int")


def int_times(ints: pd.DataFrame) -> pd.DataFrame:
    """What `plot_int` draws."""
    return ints[["interpreter", "binding"]].assign(ns=ints.ns.map(draw.cell))


def int_in_words(ints: pd.DataFrame) -> str:
    """The times with the GIL."""
    with_gil = ints[ints.interpreter == GIL]
    return "; ".join(f"{row.binding} {draw.text(row.ns, 'ns')}" for row in with_gil.itertuples()) + f" on {GIL}."


def by_form(ratios: pd.DataFrame, rows: str, columns: str) -> pd.DataFrame:
    """Other forms of a tool over its form in the matrix: a row for each form and value of another column."""
    return ratios.pivot(index=["form", rows], columns=columns, values="ratio").map(draw.cell).rename_axis(columns=None)


def variants(ratios: pd.DataFrame) -> pd.DataFrame:
    """Other builds of a tool: a row for each form and interpreter."""
    table = by_form(ratios[[not arms.VARIANTS[form].signatures for form in ratios.form]], "interpreter", "signature")
    table = table.reindex(columns=[signature for signature in e.OF_VARIANTS if signature in table])
    return table.fillna("").reset_index().rename(columns={"interpreter": "CPython"})


def tuned(ratios: pd.DataFrame, interpreters: list[str]) -> pd.DataFrame:
    """Forms of a binding that differ in their sources: a row for each kind of call."""
    rows = [(form, signature) for form, one in arms.VARIANTS.items() for signature in one.signatures]
    index = pd.MultiIndex.from_tuples(rows, names=["form", "kind of call"])
    table = by_form(ratios, "signature", "interpreter").reindex(index=index, columns=interpreters)
    return table.fillna(draw.NOT_MEASURED).reset_index()


def as_run(means: pd.DataFrame) -> pd.DataFrame:
    """Means of the talk's own program over processes, in ns, beside what its sets print; with the GIL, without it, and
    with it on again."""

    def mean(build: str, binding: str) -> draw.Quantity:
        values = means[build, binding].dropna() if (build, binding) in means else []
        return draw.Quantity(Location.of(np.array(values), signed=False).interval if len(values) else None)

    sets = inside.FACTS["published"]
    published = {f"published, {title}": [f"{ns:.0f}" for ns in sets[title]] for title in sets}
    here = {build: [mean(build, one) for one in e.TALK] for build in (GIL, FREE_THREADED, e.GIL_ON)}
    return pd.DataFrame({"binding": e.TALK, **published, **here})


def thrown(record: Record, runs: pd.DataFrame) -> pd.DataFrame:
    """What C++ throws and a tool catches: ns with the GIL, by depth; without it, the rate of two threads over one's."""
    rows = []
    for binding in e.THROWING:
        ns = {title: draw.Quantity(talk.ns_thrown(record, title, binding)) for title in e.THROWN.values()}
        two = {depth: talk.rate_of_two(runs, depth, binding) for depth in e.THROWN}
        rates = {f"two threads / one, {depth} deep": ratio and ratio.interval for depth, ratio in two.items()}
        rows.append({"binding": binding, **ns, **rates})
    return pd.DataFrame(rows)


def links(recorded: inside.Trees) -> pd.DataFrame:
    """A11: the links of the two call paths, and whether the trees show them."""
    return pd.DataFrame(
        {
            "binding": binding,
            "link": row.link,
            "in the tree": "yes" if row.met else "no",
            "instructions": f"{row.share:.0%}",
        }
        for binding, lines in recorded.items()
        for row in inside.links(inside.nodes(lines), binding).itertuples()
    )


def paths(recorded: inside.Trees) -> pd.DataFrame:
    """The steps of one call, in order, with their instructions and their share of them."""
    return pd.DataFrame(
        {"binding": binding, "step": step, "instructions": count, "share": count / tree[0].instructions}
        for binding, tree in ((binding, inside.nodes(lines)) for binding, lines in recorded.items())
        for step, count in inside.steps(tree, binding)
    )


def plot_paths(figure, found: pd.DataFrame, totals: dict[str, float]) -> None:
    """The steps of one call through each binding, side by side: a box each, with a bar for its share of the
    instructions."""
    panels = figure.subplots(1, len(totals), squeeze=False)[0]
    longest = found.binding.value_counts().max()
    for axes, color, (binding, total) in zip(panels, draw.PALETTE, totals.items()):
        ink = axes.xaxis.label.get_color()
        axes.set(xlim=(0, 1), ylim=(-longest, 0.4))
        axes.set_title(f"{binding}: {total:,.0f} instructions, with the loop", fontsize=11)
        axes.axis("off")
        for place, row in enumerate(found[found.binding == binding].itertuples()):
            box, known = (0.02, -place - 0.72), np.isfinite(row.instructions)
            axes.add_patch(plt.Rectangle(box, 0.96, 0.72, fill=False, edgecolor=ink))
            axes.add_patch(
                plt.Rectangle(box, 0.96 * min(1.0, row.share) if known else 0, 0.72, color=color, alpha=0.35)
            )
            axes.text(0.05, -place - 0.36, row.step, va="center", fontsize=10)
            said = f"{row.instructions:,.0f}\n{row.share:.0%}" if known else "below the\ntree's limit"
            axes.text(0.95, -place - 0.36, said, va="center", ha="right", fontsize=10)
            if place:
                axes.annotate("", (0.5, -place), (0.5, -place + 0.28), arrowprops={"arrowstyle": "->", "color": ink})


def paths_in_words(found: pd.DataFrame) -> str:
    """The boxes of the picture, in words."""
    steps = found.step.str.replace("\n", " ") + found.instructions.map(lambda n: f" {n:,.0f}" if np.isfinite(n) else "")
    said = "; ".join(f"{binding}: {', then '.join(each)}" for binding, each in steps.groupby(found.binding, sort=False))
    return f"Boxes for the steps of one call, in order, with their instructions. {said}."


def plot_prices(figure, found: pd.DataFrame) -> None:
    """The price of each binding against the work: measured points joined, the price of the shortest work as a dotted
    line."""
    shown = [binding for binding in DRAWN if binding in set(found.binding)]
    panels = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axes, color, binding in zip(panels, draw.PALETTE, shown):
        part = found[found.binding == binding]
        price = ends(part.price)
        axes.errorbar(part.work_ns, price.value, yerr=draw.reach(price), fmt="o-", capsize=4, color=color)
        axes.axhline(price.value.iloc[0], linestyle=":", color="gray")
        axes.set(xscale="log", title=binding, xlabel="work in C, ns")
    panels[0].set_ylabel("price of the call, ns")
    # Of an interval that is longer than that, the end is not seen.
    if (top := max(one.value for one in found[found.binding.isin(shown)].price)) > 0:
        axes.set_ylim(0, 1.5 * top)


def prices_in_words(found: pd.DataFrame) -> str:
    """The prices of the bindings that are drawn, in words."""
    drawn = found[found.binding.isin(DRAWN)]
    said = [f"{row.binding} {row.price.value:.0f} ns at {row.work_ns:,.0f}" for row in drawn.itertuples()]
    return "; ".join(said) + "."


def one_object(runs: pd.DataFrame) -> pd.DataFrame:
    """Two threads on one object: in how many processes additions were lost or refused, by binding."""

    def hit(runs: pd.DataFrame, binding: str, what: str, method: str) -> str:
        return str(tools.hit(runs, what, method, (binding,)))

    columns = {
        "with the lock: lost": partial(hit, what="lost", method="add"),
        "without: lost": partial(hit, what="lost", method="add_unlocked"),
        "without: refused": partial(hit, what="refused", method="add_unlocked"),
    }
    return draw.summary(runs, {"binding": e.BINDINGS}, columns, "")


def choice(cells: pd.DataFrame, label: str, prices: pd.DataFrame | None = None) -> pd.DataFrame:
    """What each binding costs on one build: ns over hand-written C. prices: those beside work, which have the GIL."""

    def over(cells: pd.DataFrame, binding: str, signature: str, factor: float) -> draw.Quantity | str:
        part = chosen(cells, binding=binding, signature=signature)
        if part.empty:
            return draw.NOT_MEASURED
        return "itself" if binding == e.FLOOR else draw.Quantity(part.over.iloc[0], "", factor, signed=True)

    def small_from(cells: pd.DataFrame, binding: str) -> draw.Quantity | str:
        return reach(threshold(prices, binding), prices.work_ns.max() if len(prices) else 0.0)

    columns = {
        title: partial(over, signature=signature, factor=1e-3 if title.endswith("µs") else 1)
        for title, signature in PRICED.items()
    }
    if prices is not None:
        columns[f"under {TARGET_SHARE:.0%} from, µs"] = small_from
    return draw.summary(cells[cells.interpreter == label], {"binding": e.BINDINGS}, columns, "")


def reach(found: Interval | None, longest: float) -> draw.Quantity | str:
    """A threshold in µs; `longest`: the longest time of the C function that was measured, ns."""
    if found is None:
        return draw.NOT_MEASURED
    if math.isinf(found.value):
        return f"over {min(found.low, longest) / 1000:.2g}"
    if math.isinf(found.high):
        return f"{found.value / 1000:.2g} [{found.low / 1000:.2g}, over {longest / 1000:.2g}]"
    return draw.Quantity(found, "", 1e-3)


def terms(rules: pd.DataFrame, written: dict[str, dict[str, int | None]]) -> pd.DataFrame:
    """What each binding takes and lets through, with the GIL."""
    number = rules.set_index("call").loc[e.CONTRACTS[0]].fillna("not asked")

    def kib(size: int | None) -> str:
        return f"{size / 1024:,.0f}" if size else draw.NOT_MEASURED

    return pd.DataFrame(
        {
            "binding": binding,
            "2³¹ as an int": number.get(binding, "not asked"),
            "compiler": "no" if e.DECLARED[binding].loads_at_run_time else "for each library",
            "lines of code": one["code"],
            "lines of packaging": one["packaging"],
            "file, KiB": kib(one["stripped"]),
            "as built, KiB": kib(one["built"]),
        }
        for binding, one in written.items()
    )


def first_use(runs: pd.DataFrame) -> pd.DataFrame:
    """What the first use of each binding costs."""
    shown = {"import, ms": "import_ms", "memory, KiB": "resident_kib", "first call, ns": "first_call_ns"}
    columns = {what: partial(tools.first_use, key=key) for what, key in shown.items()}
    return draw.summary(runs, {"binding": dict.fromkeys(runs.binding)}, columns, "")
