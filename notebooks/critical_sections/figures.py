"""What the chapter "Critical sections" shows: tables, figures and the texts that its prose takes up. Sentences: words.py."""

import pandas as pd

from ffilab import draw
from ffilab.bench.plan import EMPTY
from ffilab.bench.record import Record
from ffilab.judge import processes
from ffilab.judge.controls import Check
from ffilab.judge.estimates import Interval
from ffilab.judge.rules import Size
from ffilab.provision.catalogue import FREE_THREADED, GIL, SOURCES, both_builds
from notebooks.boundary import experiment as boundary
from notebooks.critical_sections import numbers, results, words
from notebooks.critical_sections.experiment import (
    AS_BUILT,
    CTYPES,
    FOREIGN,
    GIL_ON,
    IN_COMPANY,
    KNOWN_NAME,
    MADE_ELSEWHERE,
    NEW_NAME,
    ONE,
    OWN,
    PIECES,
    PYO3_CALL,
)

# How the prose calls the chapter pair in the names of its numbers.
PAIR = {"gil": GIL, "free-threaded": FREE_THREADED}
WHEN = {
    "no lock": "never, if two threads can meet there",
    "atomic increment": "one number, and nothing else has to agree with it",
    "PyMutex": "data of your own, in C; a byte in size; lets go of the thread state while it waits",
    "pthread mutex": "threads that Python does not know; detach before you wait for it",
    "critical section": "the state of one Python object; cannot deadlock with other critical sections, may be suspended",
    "critical section, two objects": "an operation on two objects at once",
    "critical section, inlined": "the interpreter's own code only: its header is internal",
    "critical section, recursive entry": "a function that locks, called by one that has locked; from 3.14 on",
    "reference count": "an object that another thread made: nothing to choose, it is what sharing costs",
    "100 increments under one PyMutex": "many steps that may wait for each other as a whole",
    "100 atomic increments": "many steps, if others must get in between",
    "one atomic addition of 100": "many steps of one number that can be added up first",
}


def code_of_locks(code: list[dict]) -> pd.DataFrame:
    """A9: instructions from the headers of atomics, mutexes and critical sections, without the loop's; and it in a sentence."""
    rows, found = [], {}
    for seen in code if isinstance(code, list) else []:
        counted = results.code_in(code, seen["interpreter"], seen["what"])
        if seen["what"] == EMPTY or isinstance(counted, str):
            continue
        if seen["interpreter"] == FREE_THREADED:
            found[seen["what"]] = counted
        shown = {group: f"{counted[group]:.0f} ({counted[group] / counted['all']:.1%})" for group in results.HEADERS}
        rows.append(
            {"CPython": seen["interpreter"], "what": seen["what"], "instructions": f"{counted['all']:,.0f}", **shown}
        )
    draw.glue("locks-in-call", words.locks_in_call(found.pop(PYO3_CALL, None), found))
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
                "time / time with the GIL": draw.text(Interval.of(row)),
                "n (layouts)": row.n,
                "documented for one thread": SOURCES[row.version].documented_tax,
            }
            for row in found.itertuples()
        ]
    )


def glue_taxes(found: pd.DataFrame) -> None:
    """Hand the taxes to the prose: those of the pair beside what is documented, and those of the other versions."""
    known = {(row.version, row.what): Interval.of(row) for row in found.itertuples()}
    tax = known.get((GIL, "interpreter"))
    said = words.against_documentation("the interpreter's own operations", builds(GIL), tax, results.documented(GIL))
    draw.glue("tax-interpreter", said)
    draw.glue(
        "tax-kinds", words.kinds({kind: known.get((GIL, kind)) for kind in results.KINDS if kind != "interpreter"})
    )
    draw.glue("tax-every-version", other_taxes(found))
    draw.glue("prediction-1", words.prediction_1(tax))


# A6: the geometric means of the talk's public data, by version.
PUBLISHED = {test.measured.rpartition(" / ")[2]: test.published for test in numbers.A6.tests if isinstance(test, Size)}


def glue_boundary(record: Record, taxes: pd.DataFrame, runs: pd.DataFrame, stand_ins: dict) -> pd.DataFrame:
    """Hand the boundary to the prose: what its mean hides, and to what the published numbers are near. Returns the table."""
    pairs = {name: ((FREE_THREADED, arm), (GIL, arm)) for name, arm in zip(boundary.TALK, results.TALK_ARMS)}
    ratios = {name: found.at() for name, pair in pairs.items() if (found := results.net_ratio(record, *pair))}
    means = {(row.version, row.what): Interval.of(row) for row in taxes.itertuples()}
    draw.glue("boundary-mean", words.hidden_by_the_mean(ratios, means.get((GIL, "boundary"))))
    said, rows = [], []
    for version in both_builds(record.interpreters):
        single = [results.as_run(runs, version, gil, stand_ins) for gil in (AS_BUILT, GIL_ON)]
        single = [found.at() if found else None for found in single]
        corrected = [means.get((version, what)) for what in ("boundary", f"boundary, {GIL_ON}")]
        if published := PUBLISHED.get(version):
            for how, found in (("by the talk's method", single), ("in loops, without their own time", corrected)):
                said.append(words.nearer(builds(version), how, published, *found))
        for gil, one, other in zip(("off", "on"), single, corrected):
            numbers = {"as the talk ran it": draw.words(one), "corrected": draw.words(other)}
            shown = f"{published:.2f}" if published else "none"
            rows.append({"builds": builds(version), "GIL": gil, "published": shown, **numbers})
    draw.glue("boundary-nearer", " ".join(said))
    return pd.DataFrame(rows)


def other_taxes(found: pd.DataFrame) -> str:
    """The taxes of all versions but the pair's, in one sentence; empty if there is no other."""
    others = {}
    for row in found.itertuples():
        if row.version != GIL and row.what in ("interpreter", "boundary"):
            others.setdefault(builds(row.version), []).append(f"{row.what} {draw.text(Interval.of(row))}")
    listing = "; ".join(", ".join([version, *words]) for version, words in others.items())
    return f"For the other versions here: {listing}." if others else ""


def plot_operations(figure, ratios: pd.DataFrame) -> None:
    """One line per operation: time on the free-threaded build over time with the GIL."""
    axes = figure.subplots()
    ordered = ratios.sort_values("value", ascending=False)
    draw.intervals(axes, ordered, "operation")
    axes.axvline(1, linestyle=":", color="gray")
    axes.set(xlabel=f"time on {FREE_THREADED} / time on {GIL}, without the loop", ylabel="")
    axes.tick_params(axis="y", labelsize=9)


def in_classes(record: Record, label: str, name: str) -> str:
    """ns of a piece; of each of two classes, if its layouts fall into two."""
    found = results.piece_classes(record, label, name)
    if not found:
        return draw.words(results.piece_cost(record, label, name))
    return " or ".join(f"{draw.number(ns, ns / 100)} (on {number})" for ns, number in found)


def pieces(record: Record) -> pd.DataFrame:
    """Uncontended cost of every piece on every interpreter."""
    return pd.DataFrame(
        [
            {
                "in a C loop, ns": name,
                **{label: in_classes(record, label, name) for label in record.interpreters},
                "n (layouts)": len(record.kept),
            }
            for name in [*PIECES, FOREIGN]
        ]
    )


def glue_pieces(record: Record) -> None:
    """Hand the cost of each piece on the pair to the prose, and what they say beside each other."""
    for piece, build in (
        ("PyMutex", "free-threaded"),
        ("atomic increment", "free-threaded"),
        ("reference count", "gil"),
    ):
        draw.glue(f"piece-{piece}-{build}", draw.words(results.piece_cost(record, PAIR[build], piece), "ns"))
    for name, one, other in (
        ("section-mutex", "critical section", "PyMutex"),
        ("section-inlined", "critical section", "critical section, inlined"),
        ("section-recursive", "critical section", "critical section, recursive entry"),
    ):
        draw.glue(name, words.against(TITLES[one], TITLES[other], results.piece_ratio(record, one, other)))
    ratio = results.piece_ratio(record, "critical section", "no lock", GIL)
    draw.glue("section-nothing", words.against("the loop with a critical section", "the loop without any lock", ratio))
    draw.glue(
        "foreign-own", words.against(TITLES[FOREIGN], TITLES["reference count"], results.foreign_over_own(record))
    )
    once = results.piece_ratio(record, "PyMutex", "atomic increment")
    often = results.piece_ratio(record, "100 atomic increments", "100 increments under one PyMutex")
    equal = results.piece_ratio(record, "100 increments under one PyMutex", "one atomic addition of 100")
    draw.glue("once-and-often", words.once_and_often(once, often, equal))
    classes = {
        f"{name} on {label}": results.piece_classes(record, label, name) for label in PAIR.values() for name in PIECES
    }
    draw.glue("two-classes", words.two_classes({name: found for name, found in classes.items() if found}))
    draw.glue("prediction-2", words.prediction_2(*results.order_of_locks(record)))
    draw.glue(
        "prediction-4",
        words.against("counting to a hundred with atomic increments", "doing it under one PyMutex", often),
    )
    draw.glue("prediction-5", words.prediction_5(results.foreign_over_own(record)))


# How a sentence calls a piece.
TITLES = {
    "PyMutex": "a PyMutex",
    "critical section": "a critical section",
    "critical section, inlined": "an inlined one",
    "critical section, recursive entry": "entering one again",
    "reference count": "a reference count of an object of the thread's own",
    FOREIGN: "a reference count of a foreign object",
}


def lock_table(runs: pd.DataFrame, scaled: pd.DataFrame, shared: str) -> pd.DataFrame:
    """What each lock costs a thread, ns: alone, and while others run; and the rate of two threads over that of one."""
    rows = []
    numbers = sorted(set(runs[runs.shared == shared].threads))
    for name in (name for name in IN_COMPANY if len(processes.chosen(runs, name=name, shared=shared))):
        costs = {
            f"each of {threads}, ns": draw.words(results.of_each(runs, name=name, shared=shared, threads=int(threads)))
            for threads in numbers
        }
        rows.append(
            {
                "lock": name,
                "1 thread, ns": draw.words(results.alone(runs, name=name, shared=shared, threads=2)),
                **costs,
                "rate, 2 / 1": draw.words(results.gain(scaled, name, shared)),
                "n": int(((runs["name"] == name) & (runs.shared == shared) & (runs.threads == 2)).sum()),
            }
        )
    return pd.DataFrame(rows)


def when_table() -> pd.DataFrame:
    """What each lock is for."""
    return pd.DataFrame([{"lock": name, "when": when} for name, when in WHEN.items()])


def glue_company(runs: pd.DataFrame, scaled: pd.DataFrame, checks: list[Check]) -> None:
    """Hand to the prose what a second thread brings, lock by lock."""
    for name, shared in (("own", OWN), ("foreign", MADE_ELSEWHERE), ("one", ONE)):
        draw.glue(f"locks-{name}", words.in_company(scaled, shared, checks))
    for name, title in (
        ("atomic increment", "an atomic increment"),
        ("PyMutex", "a PyMutex"),
        ("pthread mutex", "a pthread mutex"),
    ):
        costs = (results.of_each(runs, name=name, shared=shared, threads=2) for shared in (OWN, ONE))
        draw.glue(f"sharing-{name}", words.one_against_own(title, *costs, checks))


def scaling(found: pd.DataFrame) -> pd.DataFrame:
    """Rate with several threads over the rate of one, a row for each name, a column for each case."""
    cases = [f"{row.threads} threads, {row.shared}" for row in found.itertuples()]
    shown = found.assign(case=cases, words=[draw.text(Interval.of(row)) for row in found.itertuples()])
    table = shown.pivot(index="name", columns="case", values="words").reindex(list(dict.fromkeys(found["name"])))
    table = table[list(dict.fromkeys(cases))].fillna(draw.NOT_MEASURED).rename_axis(columns=None)
    return table.assign(**{"n (processes)": found.groupby("name").n.min()}).reset_index()


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
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    axes.axvline(1, linestyle=":", color="gray")
    axes.set(xlabel="operations per second with 2 threads / with 1", ylabel="", xlim=(0, None))


def glue_objects(scaled: dict[str, pd.DataFrame], checks: list[Check]) -> None:
    """Hand to the prose what a second thread brings to Python objects."""
    for name, shared in (("own", OWN), ("foreign", MADE_ELSEWHERE), ("one", ONE)):
        draw.glue(f"objects-{name}", words.in_company(scaled[FREE_THREADED], shared, checks))
    draw.glue("objects-gil", words.with_the_gil(scaled[GIL], checks))
    draw.glue("prediction-3", words.more_than_one(results.gain(scaled[FREE_THREADED], "dict"), checks))


def glue_bindings(bound: pd.DataFrame, apart: pd.DataFrame, threads: Interval, checks: list[Check]) -> None:
    """Hand to the prose how bound functions scale, and what threads share that call ctypes."""
    draw.glue("bindings", words.bindings(bound, threads, checks))
    draw.glue("ctypes-apart", words.ctypes_apart({name: results.gain(apart, name, OWN) for name in CTYPES}, checks))


def texts_alone(record: Record) -> pd.DataFrame:
    """Texts on one thread: ns on both builds, and their ratio, all without the loop."""
    rows = []
    for signature in boundary.TEXTS:
        arm = boundary.name(boundary.FLOOR, signature)
        cost = {f"{label}, ns": draw.words(results.net_cost(record, (label, arm))) for label in (GIL, FREE_THREADED)}
        ratio = results.net_ratio(record, (FREE_THREADED, arm), (GIL, arm))
        shown = draw.words(ratio.at() if ratio else None)
        rows.append({"text": signature, **cost, f"{FREE_THREADED} / {GIL}": shown, "n (layouts)": len(record.kept)})
    return pd.DataFrame(rows)


def glue_texts(found: pd.DataFrame, checks: list[Check]) -> None:
    """Answer the question of the texts."""
    new, known = (results.gain(found, name) for name in (NEW_NAME, KNOWN_NAME))
    draw.glue("texts", words.texts(found, checks))
    draw.glue("texts-control", words.new_name(new, known, checks))
    draw.glue("prediction-6", words.more_than_one(new, checks))
