"""What the chapter "The boundary" shows: tables, figures, and the texts that its prose takes up."""

import html
import itertools
import re

import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import HTML, display

from ffilab import draw
from ffilab.bench.instructions import Node
from ffilab.bench.record import Record
from ffilab.judge import description, statistics
from ffilab.judge.estimates import LEVEL, Interval
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.boundary import results
from notebooks.boundary.experiment import (
    BINDINGS,
    COMPARED,
    CONTRACTS,
    CPP,
    FLOOR,
    INT,
    METHOD,
    METHODS,
    OF_VARIANTS,
    PROFILED,
    SIGNATURES,
    VARIANTS,
    name,
)

# How the prose calls the chapter pair in the names of its numbers.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}
MARKERS = "osD^vP*Xhp"
STYLES = ("-", "--", ":", "-.")
# Where the page on the bindings shows each of them whole.
CODE = {binding: f"bindings.html#binding-{re.sub('[^a-z0-9]+', '-', binding.lower())}" for binding in BINDINGS}
T_OVER_GIL = f"{FREE_THREADED} / {GIL}"


def missing(record: Record, stand_ins: dict[str, dict[str, str]]) -> pd.DataFrame:
    """Cells that could not be filled, with the reason: whole bindings once, else the signature."""
    rows = []
    for label in record.interpreters:
        for binding in (*BINDINGS, *VARIANTS):
            timed = OF_VARIANTS if binding in VARIANTS else SIGNATURES
            reasons = {s: record.missing.get((label, name(binding, s))) for s in timed}
            absent = {s: reason for s, reason in reasons.items() if reason}
            what = "all" if len(absent) == len(timed) else ", ".join(absent)
            if absent:
                reason = next(iter(absent.values())).removeprefix("ImportError: ")
                if reason.startswith("AttributeError"):
                    reason = "PyDLL never detaches the thread state" if "PyDLL" in binding else reason
                rows.append({"CPython": label, "binding": binding, "signatures": what, "why": reason})
        rows += [
            {"CPython": label, "binding": binding, "signatures": "all, by a stand-in", "why": reason}
            for binding, reason in stand_ins[label].items()
        ]
    return pd.DataFrame(rows, columns=["CPython", "binding", "signatures", "why"])


def signed(interval: Interval) -> str:
    """Nanoseconds over the floor, in words."""
    words = draw.text(interval, "ns") if abs(interval.value) < 10_000 else draw.text(interval, "µs", 1e-3)
    return ("+" if interval.value > 0 else "") + words


def plot_headline(figure, headline: pd.DataFrame) -> None:
    axes = figure.subplots()
    draw.intervals(axes, headline, "binding", "interpreter")
    axes.set(xlabel="ns for one call, int → int, without the loop", ylabel="", xscale="log")
    draw.plain_ticks(axes.xaxis)


def headline_in_words(headline: pd.DataFrame) -> str:
    here = headline[headline.interpreter == GIL]
    return "; ".join(f"{row.binding} {draw.text(Interval.of(row), 'ns')}" for row in here.itertuples()) + f" on {GIL}."


def matrix(cells: pd.DataFrame, counts: dict | str, label: str) -> pd.DataFrame:
    """The matrix of one interpreter in words: ns of the floor, and for the others ns over it, with interval and
    instructions."""
    rows = []
    for signature in SIGNATURES:
        row = {"signature": signature}
        part = cells[(cells.interpreter == label) & (cells.signature == signature)].set_index("binding")
        for binding in BINDINGS:
            if binding not in part.index:
                row[binding] = "see above"
                continue
            interval = part.loc[binding, "ns" if binding == FLOOR else "over"]
            row[binding] = draw.text(interval, "ns") if binding == FLOOR else signed(interval)
            counted = None if isinstance(counts, str) else counts[label].get(name(binding, signature))
            if counted is not None:
                row[binding] += f"; {counted:,.0f} instr."
        rows.append(row)
    return pd.DataFrame(rows)


def variants(ratios: pd.DataFrame) -> pd.DataFrame:
    """Other forms of a tool over its form in the matrix, in words: a row for each form and interpreter."""
    words = ratios.assign(ratio=[draw.text(Interval.of(row)) for row in ratios.itertuples()])
    table = words.pivot(index=["form", "interpreter"], columns="signature", values="ratio")
    table = table.reindex(columns=[signature for signature in OF_VARIANTS if signature in table])
    return table.fillna("").rename_axis(columns=None).reset_index().rename(columns={"interpreter": "CPython"})


def variants_in_words(ratios: pd.DataFrame) -> str:
    """Which form of a tool is faster for which signature, where the interval says so on either interpreter."""
    said = []
    for form in dict.fromkeys(ratios.form):
        here = ratios[ratios.form == form]
        kinds = {
            "faster": [f"{row.signature} on {row.interpreter}" for row in here.itertuples() if row.high < 1],
            "slower": [f"{row.signature} on {row.interpreter}" for row in here.itertuples() if row.low > 1],
        }
        words = [f"{kind} for {'; '.join(found)}" for kind, found in kinds.items() if found]
        told = ", and ".join(words) or "not told apart from the form in the matrix by this run"
        said.append(f"{form}: {told}.")
    return " ".join(said) or "Neither form was measured here."


def plot_matrix(figure, cells: pd.DataFrame, labels: list[str]) -> None:
    """Time as a multiple of the floor's, one panel per interpreter; colour on a log scale."""
    axes = figure.subplots(1, len(labels), sharey=True, squeeze=False)[0]
    for panel, label in zip(axes, labels):
        part = cells[cells.interpreter == label]
        table = part.pivot(index="signature", columns="binding", values="times").reindex(
            index=SIGNATURES, columns=BINDINGS
        )
        sns.heatmap(
            np.log10(table),
            ax=panel,
            annot=table.map(lambda v: "" if np.isnan(v) else f"{v:.3g}"),
            fmt="",
            cmap="cividis",
            vmin=0,
            vmax=2,
            cbar=False,
            annot_kws={"size": 7},
        )
        panel.set(title=f"CPython {label}", xlabel="", ylabel="")
        panel.tick_params(axis="x", rotation=60)


def order(record: Record, label: str, signature: str = INT) -> pd.DataFrame:
    """Bindings from cheapest to dearest; each with its ratio to the one before, and whether the two can be told apart."""
    ranked = results.ranked(record, label, signature)
    pairs = [
        statistics.compare(record, (label, name(dear, signature)), (label, name(cheap, signature)))
        for cheap, dear in itertools.pairwise(ranked)
    ]
    adjusted = statistics.adjusted([pair.p for pair in pairs])
    rows = [
        {
            "binding": ranked[0],
            "a call": draw.text(results.net(record, label, name(ranked[0], signature)), "ns"),
            "over the one above": "",
            "BH p": "",
            "told apart": "",
        }
    ]
    for binding, pair, p in zip(ranked[1:], pairs, adjusted):
        apart = statistics.finding(pair) == "slower" and p < 1 - LEVEL
        rows.append(
            {
                "binding": binding,
                "a call": draw.text(results.net(record, label, name(binding, signature)), "ns"),
                "over the one above": draw.text(pair.ratio),
                "BH p": f"{p:.2g}",
                "told apart": "yes" if apart else f"no (smallest to be found: {pair.mde:.1%})",
            }
        )
    return pd.DataFrame(rows)


def order_in_words(table: pd.DataFrame) -> str:
    """The order in one sentence; `≈` joins those that cannot be told apart."""
    words = table.binding.iloc[0]
    for row in table.iloc[1:].itertuples():
        words += f" {'<' if row[5] == 'yes' else '≈'} {row.binding}"
    return words


def decisive(found: pd.DataFrame) -> pd.DataFrame:
    """The ratios that decide claims, in words, or why there is none."""
    words = [one if isinstance(one, str) else draw.words(one) for one in found.found]
    return pd.DataFrame({"claim": found.claim, "ratio": found.name, "time over time": words})


def original(samples: dict[str, dict[str, np.ndarray]]) -> pd.DataFrame:
    """The talk's table of moments, with the interpreters one below the other."""
    tables = []
    for label, found in samples.items():
        table = description.moments(found).round(
            {"mean": 0, "median": 0, "std": 1, "cv": 3, "skewness": 2, "kurtosis": 2, "MAD": 2}
        )
        table.insert(0, "CPython", label)
        tables.append(table.rename(columns={"sample": "binding"}))
    return pd.concat(tables)


def original_in_words(samples: dict[str, dict[str, np.ndarray]]) -> str:
    """The medians of the samples, for the figure's alt text."""
    return "; ".join(
        f"{binding} on {label} {np.median(values):.0f} ns"
        for label, found in samples.items()
        for binding, values in found.items()
    )


def original_pairs(samples: dict[str, np.ndarray]) -> pd.DataFrame:
    """The talk's table of pairs for one interpreter, with an effect size that it did not show."""
    table = description.pairs(samples)
    for column in ("U p", "BH p"):
        table[column] = [f"{p:.2e}" for p in table[column]]
    return table.round({"Cliff's delta": 3, "shift": 3})


def plot_original(figure, samples: dict[str, dict[str, np.ndarray]]) -> None:
    """The samples as the talk showed them: one box per binding and interpreter."""
    rows = [
        {"CPython": label, "binding": binding, "ns": value}
        for label, found in samples.items()
        for binding, values in found.items()
        for value in values
    ]
    axes = figure.subplots()
    sns.boxplot(
        pd.DataFrame(rows),
        x="ns",
        y="binding",
        hue="CPython",
        ax=axes,
        showfliers=False,
        palette=draw.PALETTE[: len(samples)],
    )
    axes.set(xlabel="ns for one call, timed alone", ylabel="")


def where(profiles: dict) -> pd.DataFrame:
    """The samples as shares in words."""
    rows = []
    for label, found in profiles.items():
        for binding, processes in found.items():
            looks = results.groups(profiles, label, binding)
            shares = {group: share_in_words(results.shares(looks, group)) for group in looks[0]}
            row = {"CPython": label, "binding": binding, "by": processes[0]["how"], "processes": len(processes)}
            rows.append({**row, **shares})
    return pd.DataFrame(rows)


def share_in_words(values: np.ndarray) -> str:
    """The share of several processes with its interval; of one process without, as its samples are not independent."""
    if not len(values):
        return draw.NOT_MEASURED
    found = results.share(values).interval
    return draw.text(found, "%", 100) if found.is_known else f"{100 * found.value:.1f} %"


def links(trees: dict[str, list[dict]]) -> pd.DataFrame:
    """A11: the links of the two call paths, and whether the trees show them."""
    rows = []
    for binding, lines in trees.items():
        for row in results.links(results.nodes(lines), binding).itertuples():
            met = "yes" if row.met else "no"
            rows.append({"binding": binding, "link": row.link, "in the tree": met, "instructions": f"{row.share:.0%}"})
    return pd.DataFrame(rows)


def show_trees(trees: dict[str, list[dict]]) -> None:
    """Display the call trees side by side; below each other where the page is narrow."""
    columns = "".join(
        f'<div style="flex: 1 1 22em; min-width: 0"><strong>{html.escape(binding)}</strong>'
        f'<pre style="overflow-x: auto; font-size: 0.75em">{html.escape(tree_text(results.nodes(lines)))}</pre></div>'
        for binding, lines in trees.items()
    )
    display(HTML(f'<div style="display: flex; flex-wrap: wrap; gap: 1em">{columns}</div>'))


def tree_text(tree: list[Node]) -> str:
    """A call tree, a line for each function."""
    return "\n".join(f"{n.share:5.0%} {n.instructions:6.0f}  {'  ' * n.depth}{_short(n.function)}" for n in tree)


def _short(function: str) -> str:
    if function.startswith("0x"):
        return "(no symbol)"
    without_traits = re.sub(r"<impl [\w:]*?(\w+) for (\w+)>", r"<\1 for \2>", function)
    return re.sub(r"\bpyo3::(?:\w+::)+", "pyo3::…::", without_traits)


def without_gil(record: Record, version: str) -> pd.DataFrame:
    """The t-build of a version over its GIL build, in words, with intervals."""
    ratios = results.without_gil(record, version)
    words = ratios.assign(ratio=[draw.text(Interval.of(row)) for row in ratios.itertuples()])
    table = words.pivot(index="signature", columns="binding", values="ratio").reindex(SIGNATURES)
    return table[[b for b in BINDINGS if b in table]].fillna("").rename_axis(columns=None).reset_index()


def without_gil_caption(version: str) -> str:
    return f"{BY_LABEL[version].partner.label} over {version}, with intervals."


def plot_without_gil(figure, ratios: pd.DataFrame) -> None:
    """Ratios as a heat map; cells whose interval holds 1 are blank."""
    axes = figure.subplots()
    table = ratios.pivot(index="signature", columns="binding", values="value").reindex(
        index=SIGNATURES, columns=BINDINGS
    )
    open_ = ratios.assign(open=(ratios.low <= 1) & (ratios.high >= 1))
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
        cbar=False,
        annot_kws={"size": 8},
    )
    axes.set(xlabel="", ylabel="")
    axes.tick_params(axis="x", rotation=60)


def plot_through_rust(figure, found: pd.DataFrame) -> None:
    """A23, a panel for each signature."""
    for axes, signature in zip(figure.subplots(1, 2, sharey=True), results.CPP_SIGNATURES):
        draw.intervals(axes, found[found.signature == signature], "interpreter", "binding")
        axes.axvline(1, linestyle=":", color="gray")
        axes.set(xlabel="time / time through PyO3 and Rust", title=signature)


def through_rust_in_words(found: pd.DataFrame) -> str:
    return "; ".join(
        f"{row.binding}, {row.signature}, {row.interpreter} {draw.text(Interval.of(row))}" for row in found.itertuples()
    )


def plot_work(figure, shares: pd.DataFrame, worth: dict[str, Interval]) -> None:
    """Share of the boundary against the work: lines for a fixed cost, from `int → int`, points as measured."""
    axes = figure.subplots()
    work = np.logspace(0.8, 4.7, 100)
    for number, binding in enumerate(worth):
        cost = worth[binding].value * results.TARGET_SHARE / (1 - results.TARGET_SHARE)
        part = shares[shares.binding == binding]
        errors = [part.value - part.low, part.high - part.value]
        color = draw.PALETTE[number % len(draw.PALETTE)]
        style = STYLES[number // len(draw.PALETTE) % len(STYLES)]
        axes.plot(work, 100 * cost / (cost + work), style, color=color, label=binding)
        axes.errorbar(
            part.work_ns,
            100 * part.value,
            yerr=[100 * e for e in errors],
            fmt=MARKERS[number % len(MARKERS)],
            capsize=3,
            color=color,
        )
    axes.axhline(100 * results.TARGET_SHARE, linestyle=":", color="gray")
    axes.set(
        xscale="log", xlabel="ns that the C function takes by itself", ylabel="share of the boundary, %", ylim=(0, 100)
    )
    axes.legend(fontsize=8, ncols=2)


def work_in_words(worth: dict[str, Interval]) -> str:
    return "; ".join(f"{binding} {draw.text(interval, 'µs', 1e-3)}" for binding, interval in worth.items())


def one_object(runs: pd.DataFrame) -> pd.DataFrame:
    """What two threads lose of their additions to one object, a row for each binding, a column for each method."""

    def said(part: pd.DataFrame) -> str:
        found = [
            f"{what} up to {part[what].max():.0%}" if part[what].max() >= 0.005 else f"{what} under 1 %"
            for what in ("lost", "refused")
            if part[what].max() > 0
        ]
        return f"{', '.join(found) or 'nothing lost'} (n = {len(part)})"

    rows = []
    for binding, part in runs.groupby("binding", sort=False):
        rows.append({"binding": binding, **{method: said(one) for method, one in part.groupby("method", sort=False)}})
    order = list(BINDINGS)
    return pd.DataFrame(rows).sort_values("binding", key=lambda names: names.map(order.index))[["binding", *METHODS]]


def own_interpreter(runs: pd.DataFrame) -> pd.DataFrame:
    """What became of each binding in an interpreter of its own."""
    said = [row.ended if row.ended != "ok" else "works" if pd.isna(row.said) else row.said for row in runs.itertuples()]
    order = list(BINDINGS)
    table = pd.DataFrame({"binding": runs.binding, "in an interpreter with a GIL of its own": said})
    return table.sort_values("binding", key=lambda names: names.map(order.index))


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
                    "import": draw.text(centre["import_ms"], "ms"),
                    "memory": draw.text(centre["resident_kib"], "KiB"),
                    "first call": draw.text(centre["first_call_ns"], "ns"),
                    "later call, timed alone": draw.text(centre["later_call_ns"], "ns"),
                }
            )
    return pd.DataFrame(rows)


def sizes(found: dict[str, dict[str, int]]) -> pd.DataFrame:
    """What the author of each binding writes, and the size of what is built."""
    return pd.DataFrame(
        [
            {
                "binding": binding,
                "lines of code": one["code"],
                "lines of packaging": one["packaging"],
                "built": f"{one['built'] / 1024:,.0f} KiB",
            }
            for binding, one in found.items()
        ]
    )


def choice(
    record: Record, cells: pd.DataFrame, rules: pd.DataFrame, runs: pd.DataFrame, written: dict[str, dict[str, int]]
) -> pd.DataFrame:
    """Which binding to pick: every entry out of this run, with the GIL unless it says otherwise."""
    rules, written = rules.set_index("call"), sizes(written).set_index("binding")
    worth, ratios = results.worth_crossing(record), results.without_gil(record).set_index(["signature", "binding"])
    rows = []
    for binding in results.present(record, GIL):
        part = cells[(cells.interpreter == GIL) & (cells.binding == binding)].set_index("signature")
        over = {
            s: "the floor"
            if binding == FLOOR
            else signed(part.loc[s, "over"])
            if s in part.index
            else draw.NOT_MEASURED
            for s in (INT, "str in, ASCII", "callback", "C++ method")
        }
        compared = (INT, binding) in ratios.index
        rows.append(
            {
                "binding": binding,
                "int → int": over[INT],
                "str in": over["str in, ASCII"],
                "callback": over["callback"],
                "C++ method": over["C++ method"],
                "boundary under 5 % from": draw.text(worth[binding], "µs", 1e-3),
                T_OVER_GIL: draw.words(Interval.of(ratios.loc[(INT, binding)]) if compared else None),
                "2³¹ as an int": rules.loc[CONTRACTS[0], binding],
                "error in a callback": rules.loc[CONTRACTS[-1], binding],
                "import": draw.words(results.imports(runs, binding), "ms"),
                "lines of code": written.loc[binding, "lines of code"],
                "built": written.loc[binding, "built"],
            }
        )
    return pd.DataFrame(rows)


def glue_matrix(record: Record, cells: pd.DataFrame) -> None:
    """Hand the order of the bindings and the costs that the text speaks of to the prose."""
    for pair, label in PAIR.items():
        draw.glue(f"order-{pair}", order_in_words(order(record, label)))
    chosen = cells[cells.interpreter == GIL].set_index(["signature", "binding"]).over
    for signature, binding in (
        ("list of 1,000 ints", "ctypes CDLL"),
        ("error → exception", "nanobind"),
        ("error → exception", "pybind11"),
        ("error → exception", "PyO3"),
        ("no-op", "Cython"),
        ("no-op", "nanobind"),
        (INT, "C API, limited"),
        ("list of 1,000 ints", "C API, limited"),
    ):
        known = (signature, binding) in chosen.index
        draw.glue(f"over-{signature}-{binding}", signed(chosen[signature, binding]) if known else draw.NOT_MEASURED)
    for binding in (FLOOR, "Cython"):
        known = ("callback, detached", binding) in chosen.index and ("callback", binding) in chosen.index
        draw.glue(f"detached-{binding}", signed(results.detached(record, GIL, binding)) if known else draw.NOT_MEASURED)


def glue_texts(record: Record, tax: dict[str, Interval]) -> None:
    """Hand the t-build's surcharge on texts to the prose, and how it compares with the surcharge on an int."""
    words = {"more": [], "less": [], "neither more nor less, as far as this run can tell,": []}
    for signature, interval in tax.items():
        draw.glue(f"tax-{signature}", draw.text(interval))
        if signature != INT:
            excess = results.text_excess(record, signature)
            kind = 0 if excess.low > 1 else 1 if excess.high < 1 else 2
            words[list(words)[kind]].append(signature)
    parts = [f"{' and '.join(f'*{s}*' for s in found)} {kind}" for kind, found in words.items() if found]
    draw.glue("tax-words", f"Measured against the surcharge on an int, {'; '.join(parts)}.")


def glue_without_gil(ratios: pd.DataFrame) -> None:
    """Hand some cells of the t-build over the GIL build to the prose."""
    cells = ratios.set_index(["signature", "binding"])
    for cell in (
        ("no-op", "cffi API"),
        ("no-op", "ctypes CDLL"),
        (INT, "pybind11"),
        ("list of 1,000 ints", "C API"),
        ("list of 1,000 ints", "Cython"),
        ("list of 1,000 ints", "nanobind"),
        ("list of 1,000 ints", "PyO3"),
        ("sequence of 1,000 ints", "C API"),
        ("sequence of 1,000 ints", "Cython"),
    ):
        draw.glue(f"gil-{'-'.join(cell)}", draw.words(Interval.of(cells.loc[cell]) if cell in cells.index else None))


def glue_through_rust(found: pd.DataFrame) -> None:
    """Hand the answer to A23 to the prose."""
    part = found[(found.interpreter == GIL) & (found.signature == METHOD)]
    kinds = {
        "is faster than {}": [r.binding for r in part.itertuples() if r.low > 1],
        "is slower than {}": [r.binding for r in part.itertuples() if r.high < 1],
        "cannot be told from {} by this run": [r.binding for r in part.itertuples() if r.low <= 1 <= r.high],
        "could not be compared with {}": [b for b in CPP if b not in set(part.binding)],
    }
    words = [kind.format(" and ".join(found)) for kind, found in kinds.items() if found]
    draw.glue("cpp-words", f"For a method call with the GIL, the detour {', and '.join(words)}.")


def glue_where(profiles: dict | str) -> None:
    """Hand the shares of the hand-off and of libffi to the prose."""
    for pair, group in (
        ("gil", results.HAND_OFF),
        ("gil", results.LIBFFI),
        ("gil", "marshaling"),
        ("free-threaded", results.HAND_OFF),
    ):
        looks = results.groups(profiles, PAIR[pair], "ctypes CDLL")
        draw.glue(f"where-{group}-{pair}", share_in_words(results.shares(looks, group)))
    draw.glue("where-words", where_in_words(profiles))


def where_in_words(profiles: dict | str) -> str:
    """Which of the conversion and the hand-off takes longer, as far as this run can tell."""
    looks = results.groups(profiles, *PROFILED)
    share = results.share(results.shares(looks, "marshaling", "marshaling", results.HAND_OFF)).interval
    if results.no_time(profiles, *PROFILED) or not share.excludes(0.5):
        return "This run cannot say which of conversion and hand-off takes longer."
    return f"It is a part. {'Marshaling' if share.value > 0.5 else 'The hand-off'} is the larger one of the two."


def glue_trees(trees: dict | str) -> None:
    """Hand what the call trees say to the prose."""
    known = {} if isinstance(trees, str) else {binding: results.nodes(lines) for binding, lines in trees.items()}
    for binding in COMPARED:
        draw.glue(
            f"tree-{binding}", f"{known[binding][0].instructions:,.0f}" if binding in known else draw.NOT_MEASURED
        )
    converter = "PyObject_CallOneArg"
    share = f"{results.below(known['ctypes CDLL'], converter):.0%}" if "ctypes CDLL" in known else draw.NOT_MEASURED
    draw.glue("tree-converter", share)


def glue_linking(runs: pd.DataFrame) -> None:
    """Hand the effect of lazy and of early linking to the prose."""
    form = "cffi ABI, out of line"
    draw.glue("in-line-import", draw.words(results.import_ratio(runs, VARIANTS[form], form)))
    for key in ("import_ms", "first_call_ns"):
        for linking in ("lazy", "bind now"):
            draw.glue(f"{linking}-{key}", draw.text(results.linking_effect(runs, key, linking)))


def glue_worth(worth: dict[str, Interval]) -> None:
    """Hand the lengths from which a crossing is worth it to the prose."""
    for binding in (FLOOR, "PyO3", "ctypes CDLL"):
        draw.glue(f"worth-{binding}", draw.words(worth.get(binding), "µs", 1e-3))
