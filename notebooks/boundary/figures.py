"""What the chapter "The boundary" shows: tables and figures."""

import html
import itertools
import math
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import HTML, display

from ffilab.judge import description, statistics
from ffilab.judge.estimates import Interval
from ffilab.judge.questions import OPEN, above
from ffilab.measure.instructions import Node
from ffilab.measure.record import Record
from ffilab.page import draw
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL, both_builds  # noqa: F401
from notebooks.boundary import results
from notebooks.boundary.experiment import (
    ANSWER,
    BINDINGS,
    CONTRACTS,
    DECLARED,
    FLOOR,
    GIL_ON,
    INT,
    METHOD,
    OF_VARIANTS,
    ON,
    SIGNATURES,
    TALK,
    VARIANTS,
    name,
)
from notebooks.boundary.looks import COMPARED

# The bindings whose prices are drawn: more curves cannot be told from each other. The tables hold all.
DRAWN = (FLOOR, "PyO3", "pybind11", "ctypes CDLL")
# Where the page on the bindings shows each of them whole.
CODE = {binding: f"bindings.html#binding-{re.sub('[^a-z0-9]+', '-', binding.lower())}" for binding in BINDINGS}
TURN = "a turn of the loop, ns"
# What the choice table prices: heading to signature.
PRICED = {
    "int → int": INT,
    "str in": "str in, ASCII",
    "list in": "list of 1,000 ints",
    "callback": "callback",
    "C++ method": METHOD,
}


def missing(record: Record, stand_ins: dict[str, dict[str, str]]) -> pd.DataFrame:
    """Cells that could not be filled, with the reason: whole bindings once, else the signature."""
    rows = []
    for label in record.interpreters:
        for binding in (*BINDINGS, *VARIANTS):
            timed = OF_VARIANTS if binding in VARIANTS else SIGNATURES
            reasons = {s: record.missing.get((label, name(binding, s))) for s in timed}
            absent = {s: reason for s, reason in reasons.items() if reason}
            what = "all" if len(absent) == len(timed) else "; ".join(absent)
            if absent:
                reason = why_missing(binding, next(iter(absent.values())))
                rows.append({"CPython": label, "binding": binding, "signatures": what, "why": reason})
        rows += [
            {"CPython": label, "binding": binding, "signatures": "all, by a stand-in", "why": reason}
            for binding, reason in stand_ins[label].items()
        ]
    return pd.DataFrame(rows, columns=["CPython", "binding", "signatures", "why"])


def why_missing(binding: str, reason: str) -> str:
    """The reason of a cell that could not be filled, as a record has it, in words."""
    if reason.startswith("AttributeError") and "PyDLL" in binding:
        return "PyDLL never detaches the thread state"
    return reason.removeprefix("ImportError: ")


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
    for label, binding, signature in itertools.product(record.interpreters, BINDINGS, SIGNATURES):
        arm, row = name(binding, signature), found.get((label, binding, signature))
        counted = {} if isinstance(counts, str) else counts.get(label, {})
        why = why_missing(binding, record.missing.get((label, arm)) or "it was not measured") if row is None else ""
        if row is not None and (reason := stand_ins.get(label, {}).get(binding)):
            why = f"measured by a stand-in: {reason}"
        rows.append(
            {
                "CPython": label,
                "binding": binding,
                "signature": signature,
                **numbers("ns", row and row.ns),
                **numbers("over the floor", row and row.over),
                **numbers("ratio to the floor", row and results.ratio_to_floor(record, label, binding, signature)),
                "instructions": counted.get(arm),
                "n": len(record.kept) if row else 0,
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


def plot_headline(figure, headline: pd.DataFrame) -> None:
    """What is compared is not the same everywhere: the label says which calls release the GIL."""
    axes = figure.subplots()
    releases = {binding: f"{binding},\nreleases the GIL" for binding in results.DETACHING}
    draw.intervals(axes, headline.replace({"binding": releases}), "binding", "interpreter")
    axes.set(xlabel="ns for a turn of the loop, int → int", ylabel="", xscale="log")
    draw.plain_ticks(axes.xaxis)


def headline_in_words(headline: pd.DataFrame) -> str:
    here = headline[headline.interpreter == GIL]
    return "; ".join(f"{row.binding} {draw.text(Interval.of(row), 'ns')}" for row in here.itertuples()) + f" on {GIL}."


def plus(interval: Interval) -> str:
    """A difference with its sign, without its unit."""
    return ("+" if interval.value > 0 else "") + draw.text(interval)


def variants(ratios: pd.DataFrame) -> pd.DataFrame:
    """Other forms of a tool over its form in the matrix, in words: a row for each form and interpreter."""
    words = ratios.assign(ratio=[draw.text(Interval.of(row)) for row in ratios.itertuples()])
    table = words.pivot(index=["form", "interpreter"], columns="signature", values="ratio")
    table = table.reindex(columns=[signature for signature in OF_VARIANTS if signature in table])
    return table.fillna("").rename_axis(columns=None).reset_index().rename(columns={"interpreter": "CPython"})


def plot_matrix(figure, cells: pd.DataFrame, labels: list[str]) -> None:
    """Time as a multiple of the floor's, the interpreters one below the other; colour on a log scale."""
    axes = figure.subplots(len(labels), 1, squeeze=False)[:, 0]
    for panel, label in zip(axes, labels):
        part = cells[cells.interpreter == label]
        table = part.pivot(index="signature", columns="binding", values="times").reindex(
            index=SIGNATURES, columns=BINDINGS
        )
        sns.heatmap(
            np.log10(table),
            ax=panel,
            annot=table.map(lambda v: "" if np.isnan(v) else f"{v:.2f}" if v < 9.995 else f"{v:.0f}"),
            fmt="",
            cmap="cividis",
            vmin=0,
            vmax=2,
            cbar=panel is axes[-1],
            cbar_kws={"location": "bottom", "shrink": 0.6, "aspect": 40},
            annot_kws={"size": 9},
        )
        panel.set(title=f"CPython {label}", xlabel="", ylabel="")
        panel.tick_params(axis="x", rotation=60)
    bar = axes[-1].collections[0].colorbar
    bar.set_ticks([0, 1, 2], labels=["1", "10", "100 or more"])
    bar.set_label("time over that of the C API, loop in both")


def matrix_for_alt(cells: pd.DataFrame, label: str) -> str:
    """Where the heat map of an interpreter is lowest and highest."""
    part = cells[(cells.interpreter == label) & (cells.binding != FLOOR)].dropna(subset=["times"])
    if part.empty:
        return f"On {label} nothing was measured."
    low, high = part.loc[part.times.idxmin()], part.loc[part.times.idxmax()]
    return f"On {label} from {low.times:.2f} ({low.binding}, {low.signature}) to {high.times:.0f} ({high.binding}, {high.signature})."


def order(record: Record, label: str, signature: str = INT) -> pd.DataFrame:
    """Bindings from cheapest to dearest; each with its ratio to the one before, and whether the two can be told apart."""
    ranked = results.ranked(record, label, signature)
    pairs = [
        statistics.compare(record, (label, name(dear, signature)), (label, name(cheap, signature)))
        for cheap, dear in itertools.pairwise(ranked)
    ]
    rows = [
        {
            "binding": ranked[0],
            TURN: draw.text(statistics.per_call(record, (label, name(ranked[0], signature)))),
            "over the one above": "",
            "told apart": "",
            "n": len(record.kept),
        }
    ]
    for binding, pair in zip(ranked[1:], pairs):
        apart = statistics.finding(pair) == "slower"
        rows.append(
            {
                "binding": binding,
                TURN: draw.text(statistics.per_call(record, (label, name(binding, signature)))),
                "over the one above": draw.text(pair.ratio),
                "told apart": "yes" if apart else f"no (smallest to be found: {pair.mde:.1%})",
                "n": pair.estimate.n,
            }
        )
    return pd.DataFrame(rows)


def decisive(found: pd.DataFrame) -> pd.DataFrame:
    """The ratios that decide claims, in words, or why there is none."""
    words = [one if isinstance(one, str) else draw.words(one) for one in found.found]
    n = ["" if isinstance(one, str) else one.estimate.n for one in found.found]
    return pd.DataFrame(
        {
            "claim": found.claim,
            "ratio": found.name,
            "kind of call": found.kind,
            "time over time": words,
            "n": n,
        }
    )


def original(samples: dict[str, dict[str, np.ndarray]]) -> pd.DataFrame:
    """The talk's table of moments, with the interpreters one below the other."""
    tables = []
    for label, found in samples.items():
        filtered = {binding: description.tukey(ns) for binding, ns in found.items()}
        table = description.moments(filtered).round(
            {"mean": 0, "median": 0, "std": 1, "cv": 3, "skewness": 2, "kurtosis": 2, "MAD": 2}
        )
        table.insert(0, "CPython", label)
        tables.append(table.rename(columns={"sample": "binding"}))
    return pd.concat(tables)


def original_pairs(samples: dict[str, np.ndarray]) -> pd.DataFrame:
    """The talk's table of pairs for one interpreter, with an effect size that it did not show."""
    table = description.pairs(samples)
    for column in ("U p", "BH p"):
        table[column] = [f"{p:.2e}" for p in table[column]]
    return table.round({"Cliff's delta": 3, "shift": 3})


def as_run(means: pd.DataFrame) -> pd.DataFrame:
    """Means of the talk's own program over processes, in ns, beside what its sets print; with the GIL, without it, and with it on again."""
    rows = []
    for number, binding in enumerate(TALK):
        row = {"binding": binding}
        row |= {f"published, {name_}": f"{ns[number]:.0f}" for name_, ns in results.PUBLISHED.items()}
        for build in (GIL, FREE_THREADED, GIL_ON):
            found = means[build, binding].dropna() if (build, binding) in means else []
            row[build] = draw.words(statistics.location_interval(np.array(found)) if len(found) else None)
        rows.append(row)
    return pd.DataFrame(rows)


def nearer(found: pd.DataFrame, decisive: Record) -> pd.DataFrame:
    """The published surcharge without the GIL beside both of ours, of the talk's own program and corrected."""
    kinds = {"off": f"{FREE_THREADED}, GIL off", "on": GIL_ON, results.NEITHER: "not told"}
    rows = []
    for row in found.itertuples():
        shown = {"binding": row.binding, "published, set 2 / set 1": f"{row.published:.3f}"}
        for build, own in ((FREE_THREADED, row.off), (GIL_ON, row.on)):
            corrected = results.comparison(decisive, *[(one, row.binding, ANSWER) for one in (build, GIL)])
            shown[f"{build} / {GIL}, as run"] = draw.words(own)
            shown[f"{build} / {GIL}, corrected"] = corrected if isinstance(corrected, str) else draw.words(corrected)
            out = not isinstance(corrected, str) and above(corrected.interval, row.published) != OPEN
            shown[f"it excludes the published one{ON * (build == GIL_ON)}"] = "yes" if out else "no"
        rows.append({**shown, "the published one is nearer to": kinds[row.nearer]})
    return pd.DataFrame(rows)


def where(profiles: dict) -> pd.DataFrame:
    """Shares in per cent: a row for each group of symbols, a column for each interpreter and binding."""
    columns = {}
    for label, found in profiles.items():
        for binding, processes in found.items():
            looks = results.groups(profiles, label, binding)
            shares = {group: share_in_words(results.shares(looks, group)) for group in looks[0]}
            columns[f"{binding} on {label}, %"] = {**shares, "found by": processes[0]["how"], "n": str(len(processes))}
    return pd.DataFrame(columns).rename_axis("own time of").reset_index()


def talk_loop(profiles: dict[str, list[dict]]) -> pd.DataFrame:
    """Own time of the symbols that the talk's graphs show, in its own script, in per cent of all samples."""
    published = {
        "interpreter's loop": ("16.36", "26.11"),
        "dict lookup": ("", "11.76"),
        "lock of the GIL": ("6.99", ""),
    }
    rows = []
    symbols = results.SYMBOLS
    for (what, patterns), printed in zip(symbols.items(), [*published.values(), *[("", "")] * len(symbols)]):
        row = {"own time of": what}
        for binding, theirs in zip(COMPARED, printed):
            shares = sum(results.symbol(profiles, binding, *one) for one in patterns)
            row |= {
                f"{binding}, published, %": theirs,
                f"{binding}, %": share_in_words(shares),
            }
        rows.append(row)
    looks = [look for found in profiles.values() for look in found]
    rows.append({"own time of": "found by"} | {f"{binding}, %": looks[0]["how"] for binding in profiles if looks})
    rows.append({"own time of": "n"} | {f"{binding}, %": str(len(found)) for binding, found in profiles.items()})
    return pd.DataFrame(rows).fillna("")


def hand_overs(ways: dict[str, Interval | None]) -> pd.DataFrame:
    """The hand-over of the GIL, by the way of estimating it."""
    return pd.DataFrame([{"estimated by": way, "ns": draw.words(one)} for way, one in ways.items()])


def share_in_words(values: np.ndarray) -> str:
    """The share of several processes with its interval; of one process without, as its samples are not independent."""
    if not len(values):
        return draw.NOT_MEASURED
    found = results.share(values).interval
    return draw.text(found, "", 100) if found.is_known and found.half_width else f"{100 * found.value:.1f}"


def links(trees: dict[str, list[dict]]) -> pd.DataFrame:
    """A11: the links of the two call paths, and whether the trees show them."""
    rows = []
    for binding, lines in trees.items():
        for row in results.links(results.nodes(lines), binding).itertuples():
            met = "yes" if row.met else "no"
            rows.append({"binding": binding, "link": row.link, "in the tree": met, "instructions": f"{row.share:.0%}"})
    return pd.DataFrame(rows)


def show_trees(trees: dict[str, list[dict]]) -> None:
    """Display the call trees below each other, each over the whole width: names are not cut."""
    for binding, lines in trees.items():
        text = html.escape(tree_text(results.nodes(lines)))
        display(
            HTML(
                f'<strong>{html.escape(binding)}</strong><pre style="overflow-x: auto; font-size: 0.85em">'
                f"per cent, instructions, function\n{text}</pre>"
            )
        )


def plot_paths(figure, trees: dict[str, list[dict]]) -> None:
    """The steps of one call through each binding, side by side: a box each, with a bar for its share of the instructions."""
    panels = figure.subplots(1, len(trees), squeeze=False)[0]
    longest = max(len(results.STEPS[binding]) for binding in trees)
    for number, (axes, (binding, lines)) in enumerate(zip(panels, trees.items())):
        tree = results.nodes(lines)
        ink = axes.xaxis.label.get_color()
        whole = tree[0].instructions
        axes.set(xlim=(0, 1), ylim=(-longest, 0.4))
        axes.set_title(f"{binding}: {whole:,.0f} instructions, with the loop", fontsize=11)
        axes.axis("off")
        for place, (what, count) in enumerate(results.steps(tree, binding)):
            known = np.isfinite(count)
            axes.add_patch(plt.Rectangle((0.02, -place - 0.72), 0.96, 0.72, fill=False, edgecolor=ink))
            if known:
                share = min(1.0, count / whole)
                color = draw.PALETTE[number]
                axes.add_patch(plt.Rectangle((0.02, -place - 0.72), 0.96 * share, 0.72, color=color, alpha=0.35))
            axes.text(0.05, -place - 0.36, what, va="center", fontsize=10)
            said = f"{count:,.0f}\n{count / whole:.0%}" if known else "below the\ntree's limit"
            axes.text(0.95, -place - 0.36, said, va="center", ha="right", fontsize=10)
            if place:
                axes.annotate("", (0.5, -place), (0.5, -place + 0.28), arrowprops={"arrowstyle": "->", "color": ink})


def paths_for_alt(trees: dict[str, list[dict]]) -> str:
    """The boxes of the picture, in words."""
    said = []
    for binding, lines in trees.items():
        found = results.steps(results.nodes(lines), binding)
        one = [
            f"{what.replace(chr(10), ' ')} {count:,.0f}" if np.isfinite(count) else what.replace(chr(10), " ")
            for what, count in found
        ]
        said.append(f"{binding}: {', then '.join(one)}")
    return "Boxes for the steps of one call, in order, with their instructions. " + "; ".join(said) + "."


def paths(trees: dict[str, list[dict]]) -> pd.DataFrame:
    """The same as a table."""
    return pd.DataFrame(
        [
            {"binding": binding, "step": what.replace("\n", " "), "instructions": count}
            for binding, lines in trees.items()
            for what, count in results.steps(results.nodes(lines), binding)
        ]
    )


def tree_text(tree: list[Node]) -> str:
    """A call tree, a line for each function."""
    return "\n".join(f"{n.share:5.0%} {n.instructions:6.0f}  {'  ' * n.depth}{_short(n.function)}" for n in tree)


def _short(function: str) -> str:
    if function.startswith("0x"):
        return "(a function without a name)"
    without_traits = re.sub(r"<impl [\w:]*?(\w+) for (\w+)>", r"<\1 for \2>", function)
    return re.sub(r"\bpyo3::(?:\w+::)+", "pyo3::…::", without_traits)


def without_gil(record: Record, version: str) -> pd.DataFrame:
    """The t-build of a version over its GIL build, in words, with intervals."""
    ratios = results.without_gil(record, version)
    words = ratios.assign(ratio=[draw.text(Interval.of(row)) for row in ratios.itertuples()])
    table = words.pivot(index="signature", columns="binding", values="ratio").reindex(SIGNATURES)
    return table[[b for b in BINDINGS if b in table]].fillna("").rename_axis(columns=None).reset_index()


def without_gil_caption(version: str) -> str:
    return f"{BY_LABEL[version].partner.label} over {version}, without the loop, with intervals."


def plot_without_gil(figure, ratios: pd.DataFrame) -> None:
    """Ratios as a heat map; cells whose interval holds 1 are blank."""
    axes = figure.subplots()
    table = ratios.pivot(index="signature", columns="binding", values="value").reindex(
        index=SIGNATURES, columns=BINDINGS
    )
    found = map(Interval.of, ratios.itertuples())
    open_ = ratios.assign(open=[one.is_known and above(one, 1) == OPEN for one in found])
    unknown = open_.pivot(index="signature", columns="binding", values="open").reindex(
        index=SIGNATURES, columns=BINDINGS
    )
    words = table.map(lambda v: "" if np.isnan(v) else f"{v:.2f}").where(~unknown.fillna(True).astype(bool), "=")
    sns.heatmap(
        np.log2(table),
        ax=axes,
        annot=words,
        fmt="",
        cmap="vlag",
        center=0,
        vmin=-1,
        vmax=1,
        cbar_kws={"shrink": 0.6},
        annot_kws={"size": 9},
    )
    axes.set(xlabel="", ylabel="")
    axes.tick_params(axis="x", rotation=60)
    bar = axes.collections[0].colorbar
    bar.set_ticks([-1, 0, 1], labels=["half", "as long", "twice"])
    bar.set_label(f"time on {FREE_THREADED} over {GIL}, without the loop")


def plot_through_rust(figure, found: pd.DataFrame) -> None:
    """A23, a panel for each signature."""
    for axes, signature in zip(figure.subplots(1, len(results.CPP_SIGNATURES), sharey=True), results.CPP_SIGNATURES):
        draw.intervals(axes, found[found.signature == signature], "interpreter", "binding")
        axes.axvline(1, linestyle=":", color="gray")
        axes.set(xlabel="time / time through PyO3 and Rust", title=signature)


def through_rust_in_words(found: pd.DataFrame) -> str:
    return "; ".join(
        f"{row.binding}, {row.signature}, {row.interpreter} {draw.text(Interval.of(row))}" for row in found.itertuples()
    )


def plot_prices(figure, found: pd.DataFrame) -> None:
    """The price of each binding against the work: measured points joined, the price of the shortest work as a dotted line."""
    chosen = [binding for binding in DRAWN if binding in set(found.binding)]
    panels = figure.subplots(1, len(chosen), squeeze=False)[0]
    for number, (axes, binding) in enumerate(zip(panels, chosen)):
        part = found[found.binding == binding]
        color = draw.PALETTE[number % len(draw.PALETTE)]
        price = [one.value for one in part.price]
        errors = [[one.value - one.low for one in part.price], [one.high - one.value for one in part.price]]
        axes.errorbar(part.work_ns, price, yerr=errors, fmt="o-", capsize=4, color=color)
        axes.axhline(price[0], linestyle=":", color="gray")
        axes.set(xscale="log", title=binding, xlabel="work in C, ns")
        # A price of too few restarts has no interval.
        if (tops := [top for one in part.price for top in (one.value, one.high) if math.isfinite(top)]) and max(
            tops
        ) > 0:
            axes.set_ylim(0, 1.25 * max(tops))
        axes.set_ylabel("price of the call, ns" if not number else "")


def prices(found: pd.DataFrame) -> pd.DataFrame:
    """The prices at each length, in words."""
    rows = []
    for binding, part in found.groupby("binding", sort=False):
        words_ = {f"{row.work_ns:,.0f} ns of work": draw.text(row.price) for row in part.itertuples()}
        rows.append({"binding": binding, **words_, "n": part.n.min()})
    return pd.DataFrame(rows)


def plain(found: pd.DataFrame) -> pd.DataFrame:
    """A frame with intervals in some columns, as numbers: value, low and high of each."""
    columns = {}
    for column in found:
        if len(found) and isinstance(found[column].iloc[0], Interval):
            for end in ("value", "low", "high"):
                columns[f"{column} {end}"] = [getattr(one, end) for one in found[column]]
        else:
            columns[column] = list(found[column])
    return pd.DataFrame(columns)


def prices_for_alt(found: pd.DataFrame) -> str:
    """The prices of the bindings that are drawn, in words."""
    said = []
    for binding in DRAWN:
        part = found[found.binding == binding]
        if len(part):
            said.append(
                f"{binding} " + ", ".join(f"{r.price.value:.0f} ns at {r.work_ns:,.0f}" for r in part.itertuples())
            )
    return "; ".join(said) + "."


def one_object(found: pd.DataFrame) -> pd.DataFrame:
    """What two threads lose of their additions to one object: processes in which it happened, and the range of shares."""

    def said(row, what: str) -> str:
        number, low, high = getattr(row, what), getattr(row, f"{what}_from"), getattr(row, f"{what}_to")
        return f"{number} of {row.n}" + (f", {low:.3g} to {high:.3g} %" if number else "")

    rows = []
    for binding, part in found.groupby("binding", sort=False):
        row = {"binding": binding}
        for one in part.sort_values("method").itertuples():
            row |= {f"{one.method}: {what}": said(one, what) for what in ("lost", "refused")}
        rows.append(row)
    return pd.DataFrame(rows)


def own_interpreter(said: dict[str, str]) -> pd.DataFrame:
    """What became of each binding in an interpreter of its own."""
    return pd.DataFrame({"binding": list(said), "in an interpreter with a GIL of its own": list(said.values())})


def first_use(runs: pd.DataFrame, linking: str = "default") -> pd.DataFrame:
    """Centres over processes, with intervals, of what the first use of each binding costs."""
    rows = []
    for binding in (*BINDINGS, *VARIANTS):
        part = runs[(runs.binding == binding) & (runs.linking == linking)].dropna(subset=list(results.FIRST_USE))
        if len(part):
            centre = {key: statistics.location_interval(part[key].to_numpy(float)) for key in results.FIRST_USE}
            rows.append(
                {
                    "binding": binding,
                    "import, ms": centred(centre["import_ms"]),
                    "memory, KiB": centred(centre["resident_kib"]),
                    "first call, ns": centred(centre["first_call_ns"]),
                    "later call, timed alone, ns": centred(centre["later_call_ns"]),
                    "n": len(part),
                }
            )
    return pd.DataFrame(rows)


def centred(found: Interval) -> str:
    """A centre with its interval; without, where all values are the same, as those of a coarse scale may be."""
    return draw.text(found) if found.half_width > 0 else f"{found.value:,.0f}, all the same"


def sizes(found: dict[str, dict[str, int]]) -> pd.DataFrame:
    """What the author of each binding writes, and the size of what is built."""
    return pd.DataFrame(
        [
            {
                "binding": binding,
                "lines of code": one["code"],
                "lines of packaging": one["packaging"],
                "built, KiB": f"{one['built'] / 1024:,.0f}",
            }
            for binding, one in found.items()
        ]
    )


def choice(record: Record, cells: pd.DataFrame, label: str, found: pd.DataFrame | None = None) -> pd.DataFrame:
    """What each binding costs on one build: ns over the floor. found: the prices beside work, which have the GIL."""
    longest = found.work_ns.max() if found is not None and len(found) else 0.0
    part = cells[cells.interpreter == label].set_index(["binding", "signature"])
    rows = []
    for binding in results.present(record, label):

        def over(signature: str, binding: str = binding) -> str:
            if (binding, signature) not in part.index:
                return draw.NOT_MEASURED
            return "the floor" if binding == FLOOR else plus(part.loc[(binding, signature), "over"])

        row = {"binding": binding, **{what: over(signature) for what, signature in PRICED.items()}}
        if found is not None:
            threshold = results.threshold(found, binding)
            row[f"under {results.TARGET_SHARE:.0%} from, µs"] = _reach(threshold, longest)
        rows.append(row)
    return pd.DataFrame(rows)


def _reach(found: Interval | None, longest: float) -> str:
    """A threshold in µs; `longest`: the longest time of the C function that was measured, ns."""
    if found is None:
        return draw.NOT_MEASURED
    if math.isinf(found.value):
        return f"over {min(found.low, longest) / 1000:.2g}"
    if math.isinf(found.high):
        return f"{found.value / 1000:.2g} [{found.low / 1000:.2g}, over {longest / 1000:.2g}]"
    return draw.text(found, "", 1e-3)


def terms(rules: pd.DataFrame, runs: pd.DataFrame, written: dict[str, dict[str, int]]) -> pd.DataFrame:
    """What each binding takes and lets through, with the GIL."""
    rules = rules.set_index("call")
    rows = []
    for binding in written:
        answered = [rules.loc[call, binding] if binding in rules else None for call in (CONTRACTS[0], CONTRACTS[-1])]
        number, error = ["not asked" if pd.isna(one) else one for one in answered]
        rows.append(
            {
                "binding": binding,
                "2³¹ as an int": number,
                "error in a callback": error,
                "a compiler where it is used": "no" if DECLARED[binding].loads_at_run_time else "for each library",
                "import, ms": draw.words(results.imports(runs, binding)),
                "lines of code": written[binding]["code"],
                "built, KiB": f"{written[binding]['built'] / 1024:,.0f}",
            }
        )
    return pd.DataFrame(rows)
