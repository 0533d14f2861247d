"""What the chapter "The boundary" shows: tables, figures and the texts that its prose takes up.

Every number comes from `marshaling`; a text whose number could not be measured says so.
"""

import html
import itertools
import re

import numpy as np
import pandas as pd
import seaborn as sns
from IPython.display import HTML, display

from ffilab import draw
from ffilab.bench import instructions
from ffilab.bench.record import Record
from ffilab.corners.marshaling import (
    AGAIN,
    BINDINGS,
    CONTRACTS,
    CPP,
    FLOOR,
    INT,
    KERNEL,
    SIGNATURES,
    TARGET_SHARE,
    WITHOUT_GIL,
    as_interval,
    below,
    linking_effect,
    name,
    net,
    present,
    sizes,
    stand_ins,
    without_gil,
    worth_crossing,
)
from ffilab.judge import description, statistics
from ffilab.judge.statistics import Interval

NOT_HERE = "not measured here"


def missing_table(record: Record) -> pd.DataFrame:
    """Cells that could not be filled, with the reason: whole bindings once, else the signature."""
    rows = []
    for label in record.kernels:
        for binding in BINDINGS:
            reasons = {s: record.missing.get((label, name(binding, s))) for s in SIGNATURES}
            absent = {s: reason for s, reason in reasons.items() if reason}
            what = "all" if len(absent) == len(SIGNATURES) else ", ".join(absent)
            if absent:
                reason = next(iter(absent.values())).removeprefix("ImportError: ")
                if reason.startswith("AttributeError"):
                    reason = "PyDLL never detaches the thread state" if "PyDLL" in binding else reason
                rows.append({"CPython": label, "binding": binding, "signatures": what, "why": reason})
        rows += [
            {"CPython": label, "binding": binding, "signatures": "all, by a stand-in", "why": reason}
            for binding, reason in stand_ins(label).items()
        ]
    return pd.DataFrame(rows, columns=["CPython", "binding", "signatures", "why"])


def signed(interval: Interval) -> str:
    """Nanoseconds over the floor, in words."""
    words = draw.text(interval, "ns") if abs(interval.value) < 10_000 else draw.text(interval, "µs", 1e-3)
    return ("+" if interval.value > 0 else "") + words


def matrix_table(cells: pd.DataFrame, counts: dict | str, label: str) -> pd.DataFrame:
    """The matrix of one kernel in words: ns of the floor, and for the others ns over it, with interval and instructions."""
    rows = []
    for signature in SIGNATURES:
        row = {"signature": signature}
        part = cells[(cells.kernel == label) & (cells.signature == signature)].set_index("binding")
        for binding in BINDINGS:
            if binding not in part.index:
                row[binding] = "see above"
                continue
            interval = part.loc[binding, "ns" if binding == FLOOR else "over"]
            row[binding] = draw.text(interval, "ns") if binding == FLOOR else signed(interval)
            if not isinstance(counts, str) and (label, name(binding, signature)) in counts:
                row[binding] += f"; {counts[label, name(binding, signature)]:,.0f} instr."
        rows.append(row)
    return pd.DataFrame(rows)


def plot_matrix(figure, cells: pd.DataFrame, labels: list[str]) -> None:
    """Time as a multiple of the floor's, one panel per kernel; colour on a log scale."""
    axes = figure.subplots(1, len(labels), sharey=True, squeeze=False)[0]
    for panel, label in zip(axes, labels):
        part = cells[cells.kernel == label]
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
    # By the paired ratio, not by the times: what slows a block slows both of a pair.
    cost = {
        b: np.median(
            statistics.restart_log_ratios(record, (label, name(b, signature)), (label, name(FLOOR, signature)))
        )
        for b in present(record, label, signature)
    }
    ranked = sorted(cost, key=cost.get)
    pairs = [
        statistics.compare(record, (label, name(dear, signature)), (label, name(cheap, signature)))
        for cheap, dear in itertools.pairwise(ranked)
    ]
    adjusted = statistics.adjusted([pair.p for pair in pairs])
    rows = [
        {
            "binding": ranked[0],
            "a call": draw.text(net(record, label, name(ranked[0], signature)), "ns"),
            "over the one above": "",
            "BH p": "",
            "told apart": "",
        }
    ]
    for binding, pair, p in zip(ranked[1:], pairs, adjusted):
        apart = statistics.finding(pair) == "slower" and p < 1 - statistics.LEVEL
        rows.append(
            {
                "binding": binding,
                "a call": draw.text(net(record, label, name(binding, signature)), "ns"),
                "over the one above": draw.text(pair.ratio),
                "BH p": f"{p:.2g}",
                "told apart": "yes" if apart else f"no (smallest to be found: {pair.mde:.1%})",
            }
        )
    return pd.DataFrame(rows)


def order_words(table: pd.DataFrame) -> str:
    """The order in one sentence; `≈` joins those that cannot be told apart."""
    words = table.binding.iloc[0]
    for row in table.iloc[1:].itertuples():
        words += f" {'<' if row[5] == 'yes' else '≈'} {row.binding}"
    return words


def false_alarms(record: Record) -> pd.DataFrame:
    """The running A/A test: two cells against their own copies."""
    rows = []
    for label in record.kernels:
        for binding in (FLOOR, "ctypes CDLL"):
            result = statistics.compare(record, (label, name(binding, INT) + AGAIN), (label, name(binding, INT)))
            rows.append(
                {
                    "CPython": label,
                    "arm": name(binding, INT),
                    "same / same": draw.text(result.ratio),
                    "smallest effect to be found": f"{result.mde:.2%}",
                    "false alarm": "yes" if statistics.finding(result) else "no",
                }
            )
    return pd.DataFrame(rows)


def original_table(samples: dict[str, dict[str, np.ndarray]]) -> pd.DataFrame:
    """The talk's table of moments, with its kernels side by side."""
    tables = []
    for label, found in samples.items():
        table = description.moments(found).round(
            {"mean": 0, "median": 0, "std": 1, "cv": 3, "skewness": 2, "kurtosis": 2, "MAD": 2}
        )
        table.insert(0, "CPython", label)
        tables.append(table.rename(columns={"sample": "binding"}))
    return pd.concat(tables)


def original_words(samples: dict[str, dict[str, np.ndarray]]) -> str:
    """The medians of the samples, for the figure's alt text."""
    return "; ".join(
        f"{binding} on {label} {np.median(values):.0f} ns"
        for label, found in samples.items()
        for binding, values in found.items()
    )


def original_pairs(samples: dict[str, np.ndarray]) -> pd.DataFrame:
    """The talk's table of pairs for one kernel, with an effect size that it did not show."""
    table = description.pairs(samples)
    for column in ("U p", "BH p"):
        table[column] = [f"{p:.2e}" for p in table[column]]
    return table.round({"Cliff's delta": 3, "shift": 3})


def plot_original(figure, samples: dict[str, dict[str, np.ndarray]]) -> None:
    """The samples as the talk showed them: one box per binding and kernel."""
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


def where_table(found: dict) -> pd.DataFrame:
    """The samples as shares in words."""
    rows = []
    for (label, binding), (how, groups) in found.items():
        total = sum(groups.values())
        rows.append(
            {
                "CPython": label,
                "binding": binding,
                "by": how,
                **{group: draw.text(statistics.share_interval(n, total), "%", 100) for group, n in groups.items()},
            }
        )
    return pd.DataFrame(rows)


def show_trees(trees: dict[str, list[instructions.Node]]) -> None:
    """Display the call trees side by side; below each other where the page is narrow."""
    columns = "".join(
        f'<div style="flex: 1 1 22em; min-width: 0"><strong>{html.escape(binding)}</strong>'
        f'<pre style="overflow-x: auto; font-size: 0.75em">{html.escape(tree_text(nodes))}</pre></div>'
        for binding, nodes in trees.items()
    )
    display(HTML(f'<div style="display: flex; flex-wrap: wrap; gap: 1em">{columns}</div>'))


def tree_text(nodes: list[instructions.Node]) -> str:
    """A call tree, a line for each function."""
    return "\n".join(f"{n.share:5.0%} {n.instructions:6.0f}  {'  ' * n.depth}{_short(n.function)}" for n in nodes)


def _short(function: str) -> str:
    if function.startswith("0x"):
        return "(no symbol)"
    without_traits = re.sub(r"<impl [\w:]*?(\w+) for (\w+)>", r"<\1 for \2>", function)
    return re.sub(r"\bpyo3::(?:\w+::)+", "pyo3::…::", without_traits)


def without_gil_table(record: Record, version: str) -> pd.DataFrame:
    """The same ratios in words, with intervals."""
    ratios = without_gil(record, version)
    words = ratios.assign(ratio=[draw.text(as_interval(row)) for row in ratios.itertuples()])
    table = words.pivot(index="signature", columns="binding", values="ratio").reindex(SIGNATURES)
    return table[[b for b in BINDINGS if b in table]].fillna("").rename_axis(columns=None).reset_index()


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


def plot_work(figure, shares: pd.DataFrame, worth: dict[str, Interval]) -> None:
    """Share of the boundary against the work: lines for a fixed cost, from `int → int`, points as measured."""
    axes = figure.subplots()
    work = np.logspace(0.8, 4.7, 100)
    for number, binding in enumerate(worth):
        cost = worth[binding].value * TARGET_SHARE / (1 - TARGET_SHARE)
        part = shares[shares.binding == binding]
        errors = [part.value - part.low, part.high - part.value]
        color = draw.PALETTE[number % len(draw.PALETTE)]
        style = "-" if number < len(draw.PALETTE) else "--"
        axes.plot(work, 100 * cost / (cost + work), style, color=color, label=binding)
        axes.errorbar(
            part.work_ns,
            100 * part.value,
            yerr=[100 * e for e in errors],
            fmt="osD^vP*Xh"[number],
            capsize=3,
            color=color,
        )
    axes.axhline(100 * TARGET_SHARE, linestyle=":", color="gray")
    axes.set(
        xscale="log", xlabel="ns that the C function takes by itself", ylabel="share of the boundary, %", ylim=(0, 100)
    )
    axes.legend(fontsize=8, ncols=2)


def first_use_table(runs: pd.DataFrame, linking: str = "default") -> pd.DataFrame:
    """Centres over processes, with intervals, of what the first use of each binding costs."""
    rows = []
    for binding in BINDINGS:
        part = runs[(runs.binding == binding) & (runs.linking == linking)].dropna()
        if len(part):
            centre = {key: statistics.location_interval(part[key].to_numpy(float)) for key in runs.columns[2:]}
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


def choice_table(record: Record, cells: pd.DataFrame, rules: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Which binding to pick: every entry out of this run, on the chapter's kernel unless it says otherwise."""
    rules, written = rules.set_index("call"), sizes(KERNEL).set_index("binding")
    worth, ratios = worth_crossing(record), without_gil(record).set_index(["signature", "binding"])
    rows = []
    for binding in present(record, KERNEL):
        part = cells[(cells.kernel == KERNEL) & (cells.binding == binding)].set_index("signature")
        imported = runs[(runs.binding == binding) & (runs.linking == "default")].import_ms.dropna()
        over = {
            s: "the floor" if binding == FLOOR else signed(part.loc[s, "over"]) if s in part.index else NOT_HERE
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
                "3.14t / 3.14": draw.text(as_interval(ratios.loc[(INT, binding)])) if compared else NOT_HERE,
                "2³¹ as an int": rules.loc[CONTRACTS[0], binding],
                "error in a callback": rules.loc[CONTRACTS[-1], binding],
                "import": draw.text(statistics.location_interval(imported.to_numpy()), "ms")
                if len(imported)
                else NOT_HERE,
                "lines of code": written.loc[binding, "lines of code"],
                "built": written.loc[binding, "built"],
            }
        )
    return pd.DataFrame(rows)


def glue_matrix(record: Record, cells: pd.DataFrame) -> None:
    """Hand the order of the bindings and the costs that the text speaks of to the prose."""
    for label in record.kernels:
        draw.glue(f"order-{label}", order_words(order(record, label)))
    chosen = cells[cells.kernel == KERNEL].set_index(["signature", "binding"]).over
    for signature, binding in (
        ("list of 1,000 ints", "ctypes CDLL"),
        ("error → exception", "nanobind"),
        ("error → exception", "pybind11"),
        ("error → exception", "PyO3"),
        ("no-op", "Cython"),
        ("no-op", "nanobind"),
    ):
        known = (signature, binding) in chosen.index
        draw.glue(f"over-{signature}-{binding}", signed(chosen[signature, binding]) if known else NOT_HERE)


def glue_texts(record: Record, tax: dict[str, Interval]) -> None:
    """Hand the t-build's surcharge on texts to the prose, and how it compares with the surcharge on an int."""
    words = {"more": [], "less": [], "neither more nor less, as far as this run can tell,": []}
    integer = ((WITHOUT_GIL, name(FLOOR, INT)), (KERNEL, name(FLOOR, INT)))
    for signature, interval in tax.items():
        draw.glue(f"tax-{signature}", draw.text(interval))
        if signature != INT:
            text = ((WITHOUT_GIL, name(FLOOR, signature)), (KERNEL, name(FLOOR, signature)))
            excess = statistics.ratio_of_ratios(record, text, integer)
            kind = 0 if excess.low > 1 else 1 if excess.high < 1 else 2
            words[list(words)[kind]].append(signature)
    parts = [f"{' and '.join(f'*{s}*' for s in found)} {kind}" for kind, found in words.items() if found]
    draw.glue("tax-words", f"Measured against the surcharge on an int, {'; '.join(parts)}.")


def glue_without_gil(ratios: pd.DataFrame) -> None:
    """Hand some cells of 3.14t over 3.14 to the prose."""
    cells = ratios.set_index(["signature", "binding"])
    for signature in ("no-op", INT, "list of 1,000 ints"):
        for binding in BINDINGS:
            known = (signature, binding) in cells.index
            words = draw.text(as_interval(cells.loc[(signature, binding)])) if known else NOT_HERE
            draw.glue(f"gil-{signature}-{binding}", words)


def glue_cpp(through_rust: pd.DataFrame) -> None:
    """Hand the answer to A23 to the prose."""
    part = through_rust[(through_rust.kernel == KERNEL) & (through_rust.signature == "C++ method")]
    kinds = {
        "is faster than {}": [r.binding for r in part.itertuples() if r.low > 1],
        "is slower than {}": [r.binding for r in part.itertuples() if r.high < 1],
        "cannot be told from {} by this run": [r.binding for r in part.itertuples() if r.low <= 1 <= r.high],
        "could not be compared with {}": [b for b in CPP if b not in set(part.binding)],
    }
    words = [kind.format(" and ".join(found)) for kind, found in kinds.items() if found]
    draw.glue("cpp-words", f"For a method call on 3.14, the detour {', and '.join(words)}.")


def glue_where(where: dict | str) -> None:
    """Hand the shares of the hand-off and of libffi to the prose."""
    known = {} if isinstance(where, str) else where
    for label in (KERNEL, WITHOUT_GIL):
        groups = known.get((label, "ctypes CDLL"), ("", {}))[1]
        for group in ("GIL and thread state", "libffi", "marshaling"):
            words = (
                draw.text(statistics.share_interval(groups[group], sum(groups.values())), "%", 100)
                if groups
                else NOT_HERE
            )
            draw.glue(f"where-{group}-{label}", words)
    groups = known.get((KERNEL, "ctypes CDLL"), ("", {}))[1]
    words = "This machine cannot say which is larger."
    if groups:
        share = statistics.share_interval(groups["marshaling"], groups["marshaling"] + groups["GIL and thread state"])
        larger = "Marshaling" if share.low > 0.5 else "The hand-off" if share.high < 0.5 else "Neither"
        words = f"It is a part. {larger} is the larger one of the two."
    draw.glue("where-words", words)


def glue_trees(trees: dict | str) -> None:
    """Hand what the call trees say to the prose."""
    known = {} if isinstance(trees, str) else trees
    for binding in ("ctypes CDLL", "PyO3"):
        words = f"{known[binding][0].instructions:,.0f}" if binding in known else NOT_HERE
        draw.glue(f"tree-{binding}", words)
    converter = f"{below(known['ctypes CDLL'], 'PyObject_CallOneArg'):.0%}" if "ctypes CDLL" in known else NOT_HERE
    draw.glue("tree-converter", converter)


def glue_linking(runs: pd.DataFrame) -> None:
    """Hand the effect of lazy and of early linking to the prose."""
    for key in ("import_ms", "first_call_ns"):
        for linking in ("lazy", "bind now"):
            draw.glue(f"{linking}-{key}", draw.text(linking_effect(runs, key, linking)))


def glue_worth(worth: dict[str, Interval]) -> None:
    """Hand the lengths from which a crossing is worth it to the prose."""
    for binding in BINDINGS:
        draw.glue(f"worth-{binding}", draw.text(worth[binding], "µs", 1e-3) if binding in worth else NOT_HERE)
