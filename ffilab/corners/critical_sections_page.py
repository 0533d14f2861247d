"""What the chapter "Critical sections" shows: tables, figures and the texts that its prose takes up."""

import pandas as pd

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.corners import marshaling
from ffilab.corners.critical_sections import (
    AGAIN,
    CONTENDED_TEXTS,
    DOCUMENTED,
    FOREIGN,
    KERNEL,
    PIECES,
    WHEN,
    WITH_GIL,
    calibration,
    chosen,
    operation_ratios,
    piece_cost,
    scaling,
    tax,
    taxes,
)
from ffilab.corners.marshaling import as_interval
from ffilab.corners.marshaling_page import NOT_HERE
from ffilab.judge import statistics
from ffilab.judge.statistics import Interval


def tax_table(record: Record) -> pd.DataFrame:
    """The tax by version, beside what the documentation says."""
    rows = []
    for row in taxes(record).itertuples():
        rows.append(
            {
                "version": f"{row.version}t / {row.version}",
                "on": row.what,
                "here": draw.text(as_interval(row)),
                "documented for one thread": DOCUMENTED[row.version],
            }
        )
    return pd.DataFrame(rows)


def glue_tax(record: Record) -> None:
    """Hand the taxes to the prose."""
    found = {(row.version, row.what): as_interval(row) for row in taxes(record).itertuples()}
    for version in DOCUMENTED:
        for what in ("interpreter", "boundary"):
            known = found.get((version, what))
            draw.glue(f"tax-{what}-{version}", draw.text(known) if known else NOT_HERE)


def plot_operations(figure, ratios: pd.DataFrame) -> None:
    """One line per operation: time on the t-build over time on the GIL build."""
    axes = figure.subplots()
    ordered = ratios.sort_values("value", ascending=False)
    draw.intervals(axes, ordered, "operation")
    axes.axvline(1, linestyle=":", color="gray")
    axes.set(xlabel="time on 3.14t / time on 3.14", ylabel="")
    axes.tick_params(axis="y", labelsize=8)


def operations_words(ratios: pd.DataFrame) -> str:
    """The dearest and the cheapest operation, for the figure's alt text."""
    top, bottom = ratios.loc[ratios.value.idxmax()], ratios.loc[ratios.value.idxmin()]
    return (
        f"from {bottom.operation} {draw.text(Interval(bottom.value, bottom.low, bottom.high))} "
        f"to {top.operation} {draw.text(Interval(top.value, top.low, top.high))}"
    )


def pieces_table(record: Record) -> pd.DataFrame:
    """Uncontended cost of every piece on every kernel."""
    rows = []
    for name in [*PIECES, FOREIGN]:
        row = {"in a C loop": name}
        for label in record.kernels:
            missing = (label, f"{name}, in C") in record.missing
            row[label] = NOT_HERE if missing else draw.text(piece_cost(record, label, name), "ns")
        rows.append(row)
    return pd.DataFrame(rows)


def glue_pieces(record: Record) -> None:
    """Hand the cost of each piece on the pair to the prose."""
    for name in [*PIECES, FOREIGN]:
        for label in (KERNEL, WITH_GIL):
            missing = (label, f"{name}, in C") in record.missing
            words = NOT_HERE if missing else draw.text(piece_cost(record, label, name), "ns")
            draw.glue(f"piece-{name}-{label}", words)


def per_operation(runs: pd.DataFrame, **which) -> str:
    """Nanoseconds of one operation, all threads together, in words."""
    found = chosen(runs, "per_second", **which)
    return draw.text(statistics.location_interval(1e9 / found), "ns") if len(found) else NOT_HERE


def glue_company(runs: pd.DataFrame) -> None:
    """Hand the price of one and of two objects under two threads to the prose."""
    for name in WHEN:
        for shared in ("one object", "own objects"):
            words = per_operation(runs, kernel=KERNEL, what="piece", name=name, shared=shared, threads=2)
            draw.glue(f"two-{name}-{shared}", words)


def lock_table(record: Record, runs: pd.DataFrame) -> pd.DataFrame:
    """The table for the author of an extension: what each lock costs, alone and in company."""
    many = runs[(runs.what == "piece")].threads.max()
    rows = []
    for name in WHEN:
        which = {"kernel": KERNEL, "what": "piece", "name": name}
        rows.append(
            {
                "lock": name,
                "alone": draw.text(piece_cost(record, KERNEL, name), "ns"),
                "2 threads, one object": per_operation(runs, **which, shared="one object", threads=2),
                "2 threads, two objects": per_operation(runs, **which, shared="own objects", threads=2),
                f"{many:.0f} threads, one object": per_operation(runs, **which, shared="one object", threads=many),
                "when": WHEN[name],
            }
        )
    return pd.DataFrame(rows)


def scaling_table(runs: pd.DataFrame, label: str, what: str) -> pd.DataFrame:
    """Rate with several threads over the rate of one, a row for each name."""
    found = scaling(runs, label, what)
    words = found.assign(words=[draw.text(as_interval(row)) for row in found.itertuples()])
    table = words.pivot(index="name", columns="case", values="words").reindex(list(dict.fromkeys(found.name)))
    return table[list(dict.fromkeys(found.case))].rename_axis(columns=None).reset_index()


def plot_scaling(figure, runs: pd.DataFrame) -> None:
    """Python objects under 2 threads: rate over that of one thread, on both builds."""
    parts = []
    for label in (WITH_GIL, KERNEL):
        found = scaling(runs, label, "object")
        parts.append(found[found.case.str.startswith("2 ")].assign(kernel=label))
    rows = pd.concat(parts)
    rows["label"] = rows.name + ", " + rows.case.str.split(", ").str[1]
    axes = figure.subplots()
    draw.intervals(axes, rows, "label", "kernel")
    axes.axvline(1, linestyle=":", color="gray")
    axes.set(xlabel="operations per second with 2 threads / with 1", ylabel="", xlim=(0, None))


def scaling_words(runs: pd.DataFrame) -> str:
    """The same in words, for the figure's alt text."""
    return "; ".join(
        f"{row.name}, {row.case} on {label} {draw.text(as_interval(row))}"
        for label in (WITH_GIL, KERNEL)
        for row in scaling(runs, label, "object").itertuples()
        if row.case.startswith("2 ")
    )


def glue_calibration(runs: pd.DataFrame) -> None:
    """Hand the calibration to the prose."""
    for how, interval in calibration(runs).items():
        draw.glue(f"calibration-{how}", draw.text(interval))


def lock_code_table(code: pd.DataFrame) -> pd.DataFrame:
    """Instructions from the headers of atomics, mutexes and critical sections."""
    return code.assign(
        **{
            group: [f"{n:.0f} ({n / total:.1%})" for n, total in zip(code[group], code.instructions)]
            for group in ("atomics", "mutexes", "critical sections")
        },
        instructions=[f"{n:,.0f}" for n in code.instructions],
    )


def texts_table(record: Record, runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Texts on one thread (3.14t over 3.14), and from two threads (rate over that of one)."""
    single = []
    for signature in marshaling.TEXTS:
        arm = marshaling.name(marshaling.FLOOR, signature)
        ratio = marshaling.ratio(record, (KERNEL, arm), (WITH_GIL, arm))
        cost = {label: draw.text(marshaling.net(record, label, arm), "ns") for label in (WITH_GIL, KERNEL)}
        single.append({"text": signature, **cost, "3.14t / 3.14": draw.text(ratio)})
    both = scaling(runs, KERNEL, "text").set_index("name")
    many = [
        {
            "from two threads": name,
            "rate over that of one": draw.text(Interval(*both.loc[name, ["value", "low", "high"]])),
        }
        for name in CONTENDED_TEXTS
    ]
    return pd.DataFrame(single), pd.DataFrame(many)


def false_alarm(record: Record, arm: str = "function call", again: str = "function call" + AGAIN) -> pd.DataFrame:
    """The running A/A test: an arm against a second copy of itself."""
    rows = []
    for label in record.kernels:
        result = statistics.compare(record, (label, again), (label, arm))
        rows.append(
            {
                "CPython": label,
                "same / same": draw.text(result.ratio),
                "smallest effect to be found": f"{result.mde:.2%}",
                "false alarm": "yes" if statistics.finding(result) else "no",
            }
        )
    return pd.DataFrame(rows)


def versions_with_both(record: Record) -> list[str]:
    """Versions whose two builds were measured."""
    return [v for v in DOCUMENTED if tax(record, v, ["function call"]) is not None]


def ratio_table(record: Record) -> pd.DataFrame:
    """Every operation, on every version whose two builds are present."""
    frames = []
    for version in versions_with_both(record):
        ratios = operation_ratios(record, version)
        words = [draw.text(as_interval(row)) for row in ratios.itertuples()]
        frames.append(pd.Series(words, index=ratios.operation, name=f"{version}t / {version}"))
    return pd.concat(frames, axis=1).reset_index()


def cost_of_objects(runs: pd.DataFrame) -> str:
    """How many of the objects lose by a second thread on 3.14t, in words."""
    found = scaling(runs, KERNEL, "object")
    shared = found[found.case == "2 threads, one object"]
    worse = [row["name"] for _, row in shared.iterrows() if row.high < 1]
    if not worse:
        return "In this run no shared object lost by a second thread beyond doubt."
    return f"In this run a second thread made the shared {' and the shared '.join(worse)} slower in total, and not only no faster."
