"""What the records of the chapter "GIL Balm" say: costs, gains and their intervals, and what Python answered."""

import math
from collections.abc import Collection

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.estimates import Estimate, Interval, Location, Share, known
from ffilab.judge.processes import chosen, interval_of, ratio
from ffilab.judge.questions import YES, above
from ffilab.judge.statistics import Comparison
from ffilab.measure.plan import EMPTY
from ffilab.measure.record import Record
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.balm import experiment as e

COPIES = [(e.NEW, e.AGAIN)]
COPIED = "block, copied type"
ZERO, NO_NUL, *_ = e.MISUSE
# By misuse, what its answers show if it had the consequence that the page describes; bytes that are not ASCII end the
# process.
SHOWN_BY = {
    ZERO: lambda said: said["x == 'key'"] == "True" and said["x in {'key'}"] == "False",
    NO_NUL: lambda said: said["x == '12'"] == "True" and "ValueError" in said["int(x)"],
    "a borrowed reference": lambda said: said["is now"] != said["was"],
    "another interpreter": lambda said: "Error" in said["import balm"],
    "the maker's thread is gone": lambda said: "False" not in said["hash of every tuple"],
    "alive at exit": lambda said: True,
}
# Two copies of the rule that differ by more than this raise an alarm: a fifth of what the claims B1 and B2 call an
# effect.
ALARM = 0.05


def added(record: Record, known: Collection[str]) -> list[str]:
    """Ways that a reader has added to the corrected experiment: those that are not known, and not controls or for some
    lines only."""
    names = dict.fromkeys(cell.partition("/")[2] for cell in record.loops)
    return [n for n in names if n not in known and not n.startswith((EMPTY, "control")) and not n.endswith(" read")]


def cost(record: Record, label: str, arm: str) -> Interval | None:
    """Nanoseconds for each string, made and dropped; None if it was not measured."""
    if not record.has(label, arm):
        return None
    return statistics.per_call(record, (label, arm)).map(lambda ns: ns / e.LINES)


def faster(record: Record, label: str, arm: str, than: str = e.NEW) -> Estimate | None:
    """How many times as fast `arm` is as `than`, in one run; None if one of them was not measured."""
    if not record.has(label, arm) or not record.has(label, than):
        return None
    return statistics.compare(record, (label, than), (label, arm)).estimate


def change_without_gil(record: Record) -> Interval | None:
    """What pages and tuple gain with the GIL, over what it gains without: above 1, it gains less without."""
    if not all(faster(record, label, e.BEST) for label in e.PAIR):
        return None
    return statistics.ratio_of_ratios(record, *(((label, e.NEW), (label, e.BEST)) for label in (GIL, FREE_THREADED)))


def per_string(runs: pd.DataFrame, **which) -> np.ndarray:
    """Nanoseconds for each string, one value per process, by round."""
    return chosen(runs, **which).sort_values("round").ns.to_numpy()


def original_ratio(runs: pd.DataFrame, slow: tuple[str, int], fast: tuple[str, int]) -> Estimate | None:
    """As its author ran it: the time of one (method, number of threads) over that of another, paired by round."""
    return ratio(*(per_string(runs, method=method, threads=threads) for method, threads in (slow, fast)))


def over(runs: pd.DataFrame, one: dict, other: dict, **both) -> Estimate | None:
    """The time of a string in processes of which `one` holds over that in those of which `other` does, paired by
    round."""
    return ratio(*(per_string(runs, **both, **which) for which in (one, other)))


def rise_beside_new(runs: pd.DataFrame, method: str) -> Estimate | None:
    """As its author ran it: how many times as long a way takes with 16 threads as with one, over the same of CPython's
    own."""
    rises = []
    for way in (method, e.NEW):
        many, one = (per_string(runs, method=way, threads=threads) for threads in (e.THREADS, 1))
        n = min(len(many), len(one))
        rises.append(many[:n] / one[:n])
    return ratio(*rises)


def twins(record: Record) -> dict[str, Comparison]:
    """The A/A test by interpreter: the rule over a second copy of it, in one run."""
    return {label: found for label, _, found in statistics.false_alarms(record, COPIES)}


def least(record: Record, label: str) -> float:
    """How small a difference from the rule the two copies of it could have told; 0 if it is not known."""
    found = twins(record).get(label)
    return found.mde if found and found.ratio.is_known else 0.0


def faults(runs: pd.DataFrame, **which) -> Interval | None:
    """Page faults for each tuple: a count is never below 0."""
    found = interval_of(runs, "faults", **which)
    return found and Interval(found.value, max(0.0, found.low), found.high)


def series(runs: pd.DataFrame) -> pd.DataFrame:
    """ns for each string with its interval. Columns CPython, series, threads, value, low, high."""
    rows = []
    ways = [
        (label, method, how)
        for label in e.PAIR
        for method in dict.fromkeys([e.NEW, e.POOLED, e.BLOCK, e.BEST, *runs.method])
        for how in ("kept", "released")
    ]
    ordered = runs.set_index(["interpreter", "method", "how"])
    for label, method, how in (way for way in ways if way in ordered.index):
        for threads, part in ordered.loc[[(label, method, how)]].groupby("threads"):
            found = Location.of(part.ns.to_numpy()).interval
            name = method if method == e.NEW or label == FREE_THREADED else f"{method}, GIL {how}"
            rows.append({"CPython": label, "series": name, "threads": int(threads), **vars(found)})
    return pd.DataFrame(rows)


def batches(runs: pd.DataFrame) -> pd.DataFrame:
    """ns for each string with its interval. Columns CPython, series, strings in a batch, value, low, high."""
    which = runs[["interpreter", "method", "batch"]].drop_duplicates().sort_values(["interpreter", "batch"])
    return pd.DataFrame(
        {"CPython": label, "series": method, "strings in a batch": batch}
        | vars(interval_of(runs, "ns", interpreter=label, method=method, batch=batch))
        for label, method, batch in which.itertuples(index=False)
    )


def keeps(runs: pd.DataFrame, when: str) -> list[str]:
    """Ways, on any interpreter, that keep a text alive: once no string is `kept`, after it was `dropped`, after a
    collection."""
    return list(dict.fromkeys(runs.method[runs[when] > 0]))


def resident(runs: pd.DataFrame, label: str, method: str, when: str) -> Interval | str | None:
    """Resident bytes for each string, `alive` or `after` all were dropped; why not, if fewer were resident than were
    written.

    None where there is no /proc.
    """
    part = runs if runs.empty else chosen(runs, interpreter=label, method=method)
    if part.empty:
        return None
    if (part.alive < 0.99 * part.written).any():  # pages are counted whole
        lowest, written = part.alive.min(), part.written.iloc[0]
        return f"refused: {lowest:.1f} resident, where {written:.1f} are written"
    return interval_of(part, when)


def stays(runs: pd.DataFrame, label: str, method: str) -> Interval | None:
    """What stays after the drop, in per cent of what was there; bounds are whole per cents, rounded outwards."""
    alive, after = (resident(runs, label, method, when) for when in ("alive", "after"))
    if isinstance(alive, str) or not (known(alive) and known(after)):
        return None
    most = math.ceil(100 * max(after.high, 0.0) / alive.low) if above(alive, 0) == YES else math.inf
    return Interval(100 * after.value / alive.value, math.floor(100 * after.low / alive.high), most)


def answers(runs: pd.DataFrame) -> pd.DataFrame:
    """What Python answered: a row for each interpreter and probe, a column for each kind of string."""
    return runs.pivot(index=["interpreter", "probe"], columns="kind", values="answer")


def forged_share(runs: pd.DataFrame) -> float:
    """B4: share of our strings, over kinds and interpreters, that are instances of str and not of exact type str."""
    given = answers(runs)
    # Records that are older than one of the ways hold the others.
    given = given[[kind for kind in (*e.OURS, COPIED) if kind in given]]
    instance, exact = (given.xs(probe, level="probe") for probe in ("isinstance(x, str)", "type(x) is str"))
    return float((instance.eq("True") & exact.eq("False")).to_numpy().mean())


def copied(runs: pd.DataFrame, probe: str) -> str:
    """What a string of the copied type answers, on the chapter's interpreter."""
    return answers(runs).loc[(GIL, probe), COPIED]


def alike(runs: pd.DataFrame) -> int:
    """Probes that get one answer from every kind of string, on the chapter's interpreter."""
    return int((answers(runs).loc[GIL].nunique(axis="columns") == 1).sum())


def careless(misused: pd.DataFrame, works: pd.DataFrame) -> list[str]:
    """What goes wrong, on any interpreter, with a hash of 0, without a NUL, or with a copied type; as it was asked."""
    zero = [said["hash(x)"] == "0" for said in answered(misused, ZERO).values() if isinstance(said, dict)]
    copied = answers(works)[COPIED].xs("pickle.loads(pickle.dumps(x))", level="probe")
    found = {
        "hash(x)": zero,
        "a lookup such as x in {'key'}": happened(misused, ZERO).values(),
        "int(x)": happened(misused, NO_NUL).values(),
        "pickle.dumps(x)": ["Error" in answer for answer in copied],
    }
    return [name for name, wrong in found.items() if any(wrong)]


def happened(runs: pd.DataFrame, what: str) -> dict[str, bool | None]:
    """By interpreter: had a misuse the consequence that the page describes? None: its process ended without an
    answer."""
    dies = None if what in SHOWN_BY else True
    return {
        label: dies if isinstance(said, str) else what in SHOWN_BY and SHOWN_BY[what](said)
        for label, said in answered(runs, what).items()
    }


def misread(runs: pd.DataFrame) -> Share | None:
    """B6: interpreters that take a string without a NUL for `12`, and int() of it for no number.

    Of those whose process ended well; None if none did.
    """
    found = [wrong for wrong in happened(runs, NO_NUL).values() if wrong is not None]
    return Share(sum(found), len(found)) if found else None


def by_layout(runs: pd.DataFrame) -> pd.DataFrame:
    """What came of each object by the layout of each build. Columns CPython, layout_of, made, outcome, right."""
    died = runs.ended != "ok"
    said = runs.wrong.fillna("") if "wrong" in runs else pd.Series("", index=runs.index)
    outcome = said.where(said != "", "works").where(~died, runs.ended)
    return pd.DataFrame(
        {
            "CPython": runs.interpreter,
            "layout_of": runs.layout_of,
            "made": runs.made,
            "outcome": outcome,
            "right": (outcome == "works") & ~died,
        }
    )


def other_builds(found: pd.DataFrame, *made: str) -> pd.DataFrame:
    """Of `by_layout`, what was written by the layout of another build."""
    return found[(found.CPython != found.layout_of) & found.made.isin(made)]


def other_versions(found: pd.DataFrame) -> pd.DataFrame:
    """Of these forgeries, those by the layout of another version of the same kind of build."""
    part = other_builds(found, e.A_STRING, e.A_TUPLE)
    alike = [BY_LABEL[a].free_threaded == BY_LABEL[b].free_threaded for a, b in zip(part.CPython, part.layout_of)]
    return part[alike]


def share_wrong(part: pd.DataFrame) -> Share | None:
    """How many went wrong: they died, or gave an answer that is not the real one's."""
    return Share(int((~part.right).sum()), len(part)) if len(part) else None


def refused(found: pd.DataFrame) -> Share | None:
    """How many of our modules that were built for another CPython did not let themselves be imported, and brought no
    process down."""
    part = other_builds(found, e.A_MODULE)
    return Share(int(part.outcome.str.startswith("import balm").sum()), len(part)) if len(part) else None


def fields(facts: pd.DataFrame) -> pd.DataFrame:
    """Where each build keeps what a forgery fills in: a row for each field, a column for each interpreter."""
    order = list(dict.fromkeys(facts.field))
    return facts.pivot(index="field", columns="interpreter", values="is").loc[order]


def differing(facts: pd.DataFrame, one: str, other: str) -> list[str]:
    """Fields that two builds keep in different places."""
    table = fields(facts).fillna(-1)
    return [field for field in table.index if table.loc[field, one] != table.loc[field, other]]


def grown(runs: pd.DataFrame) -> Share | None:
    """B6: of the acts that make CPython's allocator take or free our memory, how many brought their process down."""
    part = chosen(runs, what=e.GROWS)
    return Share(int((part.ended != "ok").sum()), len(part)) if len(part) else None


def own_append(runs: pd.DataFrame) -> dict[str, bool]:
    """By interpreter: did a list grow well by an append of its own?"""
    return chosen(runs, what=e.OWN_APPEND).set_index("interpreter").ended.eq("ok").sort_index().to_dict()


def answered(runs: pd.DataFrame, what: str) -> dict[str, dict[str, str] | str]:
    """What one misuse said, by interpreter: the answers by question, or how the process ended without any."""
    found = {}
    for label, part in chosen(runs, what=what).groupby("interpreter"):
        ended = part.ended.iloc[0]
        found[label] = dict(zip(part.asked, part.answer)) if ended == "ok" else ended
    return found


def unlike(runs: pd.DataFrame, label: str, one: str, other: str) -> list[str]:
    """Probes to which two kinds of strings give different answers on an interpreter."""
    given = answers(runs).loc[label]
    return [probe for probe in dict.fromkeys(runs.probe) if given.loc[probe, one] != given.loc[probe, other]]
