"""What the chapter "Critical sections" shows: tables, figures and the texts that its prose takes up."""

import pandas as pd

from ffilab import draw
from ffilab.bench.record import Record
from ffilab.judge import statistics
from ffilab.judge.estimates import Interval
from ffilab.provision.catalogue import FREE_THREADED, GIL, SOURCES, both_builds
from notebooks.boundary import experiment as boundary
from notebooks.boundary.results import net
from notebooks.critical_sections import results
from notebooks.critical_sections.experiment import FOREIGN, MADE_ELSEWHERE, ONE, OWN, PIECES, TEXTS

# How the prose calls the chapter pair in the names of its numbers.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}
WHEN = {
    "no lock": "never, if two threads can meet there",
    "atomic increment": "one number, and nothing else has to agree with it",
    "PyMutex": "data of your own, in C; a byte in size; lets go of the thread state while it waits",
    "pthread mutex": "threads that Python does not know; detach before you wait for it",
    "critical section": "the state of one Python object; cannot deadlock with others, may be suspended",
    "critical section, two objects": "an operation on two objects at once",
    "critical section, inlined": "the interpreter's own code only: its header is internal",
    "critical section, recursive entry": "a function that locks, called by one that has locked; from 3.14 on",
    "reference count": "an object that another thread made: nothing to choose, it is what sharing costs",
    "100 increments under one PyMutex": "many steps that may wait for each other as a whole",
    "100 atomic increments": "many steps, if others must get in between",
}


def code_of_locks(code: list[dict]) -> pd.DataFrame:
    """A9: instructions from the headers of atomics, mutexes and critical sections."""
    rows = []
    for seen in code:
        if "by_file" not in seen:
            continue
        total = sum(seen["by_file"].values())
        groups = results.from_headers(seen["by_file"]).items()
        rows.append(
            {
                "CPython": seen["interpreter"],
                "what": seen["what"],
                "instructions": f"{total:,.0f}",
                **{group: f"{n:.0f} ({n / total:.1%})" for group, n in groups},
            }
        )
    return pd.DataFrame(rows)


def builds(version: str) -> str:
    return f"{version}t / {version}"


def taxes(found: pd.DataFrame) -> pd.DataFrame:
    """The tax by version, beside what the documentation says."""
    return pd.DataFrame(
        [
            {
                "version": builds(row.version),
                "on": row.what,
                "here": draw.text(Interval.of(row)),
                "documented for one thread": SOURCES[row.version].documented_tax,
            }
            for row in found.itertuples()
        ]
    )


def glue_taxes(found: pd.DataFrame) -> None:
    """Hand the taxes to the prose: those of the pair, and those of the other versions."""
    known = {(row.version, row.what): Interval.of(row) for row in found.itertuples()}
    for what in ("interpreter", "boundary"):
        draw.glue(f"tax-{what}", draw.words(known.get((GIL, what))))
    draw.glue("tax-every-version", other_taxes(found))


def other_taxes(found: pd.DataFrame) -> str:
    """The taxes of all versions but the pair's, in one sentence; empty if there is no other."""
    others = {}
    for row in found.itertuples():
        if row.version != GIL:
            others.setdefault(builds(row.version), []).append(f"{row.what} {draw.text(Interval.of(row))}")
    listing = "; ".join(", ".join([version, *words]) for version, words in others.items())
    return f"For the other versions here: {listing}." if others else ""


def plot_operations(figure, ratios: pd.DataFrame) -> None:
    """One line per operation: time on the free-threaded build over time with the GIL."""
    axes = figure.subplots()
    ordered = ratios.sort_values("value", ascending=False)
    draw.intervals(axes, ordered, "operation")
    axes.axvline(1, linestyle=":", color="gray")
    axes.set(xlabel=f"time on {FREE_THREADED} / time on {GIL}", ylabel="")
    axes.tick_params(axis="y", labelsize=8)


def operations_in_words(ratios: pd.DataFrame) -> str:
    """The dearest and the cheapest operation, for the figure's alt text."""
    top, bottom = ratios.loc[ratios.value.idxmax()], ratios.loc[ratios.value.idxmin()]
    return f"from {bottom.operation} {draw.text(Interval.of(bottom))} to {top.operation} {draw.text(Interval.of(top))}"


def every_version(record: Record) -> pd.DataFrame:
    """Every operation, on every version of which both builds were timed."""
    columns = []
    for version in both_builds(record.interpreters):
        ratios = results.operation_ratios(record, version)
        words = [draw.text(Interval.of(row)) for row in ratios.itertuples()]
        columns.append(pd.Series(words, index=ratios.operation, name=builds(version)))
    return pd.concat(columns, axis=1).reset_index()


def pieces(record: Record) -> pd.DataFrame:
    """Uncontended cost of every piece on every interpreter."""
    return pd.DataFrame(
        [
            {
                "in a C loop": name,
                **{label: draw.words(results.piece_cost(record, label, name), "ns") for label in record.interpreters},
            }
            for name in [*PIECES, FOREIGN]
        ]
    )


def glue_pieces(record: Record) -> None:
    """Hand the cost of each piece on the pair to the prose."""
    for piece in [*PIECES, FOREIGN]:
        for name, label in PAIR.items():
            draw.glue(f"piece-{piece}-{name}", draw.words(results.piece_cost(record, label, piece), "ns"))


def glue_calibration(runs: pd.DataFrame) -> None:
    """Hand the calibration to the prose."""
    for how in ("processes", "threads"):
        draw.glue(f"calibration-{how}", draw.text(statistics.location_interval(runs[how].to_numpy())))


def lock_table(record: Record, runs: pd.DataFrame) -> pd.DataFrame:
    """The table for the author of an extension: what each lock costs, alone and in company."""
    many = int(runs.threads.max())

    def price(name: str, shared: str, threads: int) -> str:
        return draw.words(results.per_operation(runs, name=name, shared=shared, threads=threads), "ns")

    return pd.DataFrame(
        [
            {
                "lock": name,
                "alone": draw.words(results.piece_cost(record, FREE_THREADED, name), "ns"),
                "2 threads, one object": price(name, ONE, 2),
                "2 threads, two objects": price(name, OWN, 2),
                "2 threads, two foreign objects": price(name, MADE_ELSEWHERE, 2),
                f"{many} threads, one object": price(name, ONE, many),
                "when": when,
            }
            for name, when in WHEN.items()
        ]
    )


def glue_company(runs: pd.DataFrame) -> None:
    """Hand the price of one and of two objects under two threads to the prose."""
    for name in WHEN:
        for shared in (ONE, OWN):
            found = results.per_operation(runs, name=name, shared=shared, threads=2)
            draw.glue(f"two-{name}-{shared}", draw.words(found, "ns"))


def scaling(found: pd.DataFrame) -> pd.DataFrame:
    """Rate with several threads over the rate of one, a row for each name, a column for each case."""
    cases = [f"{row.threads} threads, {row.shared}" for row in found.itertuples()]
    words = found.assign(case=cases, words=[draw.text(Interval.of(row)) for row in found.itertuples()])
    table = words.pivot(index="name", columns="case", values="words").reindex(list(dict.fromkeys(found.name)))
    return table[list(dict.fromkeys(cases))].rename_axis(columns=None).reset_index()


def two_threads(scaled: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows of two threads, of every interpreter."""
    parts = [found[found.threads == 2].assign(interpreter=label) for label, found in scaled.items()]
    return pd.concat(parts, ignore_index=True)


def plot_objects(figure, scaled: dict[str, pd.DataFrame]) -> None:
    """Python objects under two threads: rate over that of one thread, by interpreter."""
    rows = two_threads(scaled)
    rows["label"] = rows.name + ", " + rows.shared
    axes = figure.subplots()
    draw.intervals(axes, rows, "label", "interpreter")
    axes.axvline(1, linestyle=":", color="gray")
    axes.set(xlabel="operations per second with 2 threads / with 1", ylabel="", xlim=(0, None))


def objects_in_words(scaled: dict[str, pd.DataFrame]) -> str:
    """The same in words, for the figure's alt text."""
    return "; ".join(
        f"{row['name']}, {row.threads} threads, {row.shared} on {row.interpreter} {draw.text(Interval.of(row))}"
        for _, row in two_threads(scaled).iterrows()
    )


def cost_of_objects(found: pd.DataFrame) -> str:
    """How many of the objects lose by a second thread, in words."""
    shared = found[(found.threads == 2) & (found.shared == ONE)]
    worse = list(shared[shared.high < 1].name)
    if not worse:
        return "In this run no shared object lost by a second thread beyond doubt."
    return f"In this run a second thread made the shared {' and the shared '.join(worse)} slower in total, and not only no faster."


def texts_alone(record: Record) -> pd.DataFrame:
    """Texts on one thread: ns on both builds, and their ratio."""
    rows = []
    for signature in boundary.TEXTS:
        arm = boundary.name(boundary.FLOOR, signature)
        cost = {label: draw.text(net(record, label, arm), "ns") for label in (GIL, FREE_THREADED)}
        ratio = statistics.ratio(record, (FREE_THREADED, arm), (GIL, arm))
        rows.append({"text": signature, **cost, f"{FREE_THREADED} / {GIL}": draw.text(ratio)})
    return pd.DataFrame(rows)


def texts_in_company(found: pd.DataFrame) -> pd.DataFrame:
    """Texts from two threads: rate over that of one."""
    words = {row["name"]: draw.text(Interval.of(row)) for _, row in found.iterrows()}
    return pd.DataFrame([{"from two threads": name, "rate over that of one": words[name]} for name in TEXTS])
