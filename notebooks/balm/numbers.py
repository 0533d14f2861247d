"""What the records of the chapter "GIL Balm" say: its numbers by name, and its own controls. The rules: claims.toml,
sentences.toml.

Here is what was timed; what Python answered, and what became of misuse, is in `outcomes`.
"""

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from ffilab.judge import statistics
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Counted, Estimate, Interval, known
from ffilab.judge.numbers import Declarations, every
from ffilab.judge.processes import chosen, interval_of, ratio
from ffilab.judge.questions import OPEN, YES, above, equal
from ffilab.judge.statistics import Comparison
from ffilab.measure.plan import OURS
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.balm import experiment as e
from notebooks.balm import outcomes

AS_RUN, IN_STATES, GRID = "as the author ran it", "arenas held and given back", "threads"
SECOND, TEXT, BATCHED = "a second thread", "texts of several lengths", "batches"
# Ways of one thread and one process: the time of one arm over that of another. As the original had it, strings of pools
# and blocks are made without the GIL, in all experiments, unless the name says otherwise.
COMPARED = {
    "new / pooled": (e.NEW, e.POOLED + e.RELEASED),
    "new / block": (e.NEW, e.BLOCK + e.RELEASED),
    "new / pages and tuple": (e.NEW, e.BEST),
    "new / one pass": (e.NEW, e.ONE_PASS),
    "pages and tuple / one pass": (e.BEST, e.ONE_PASS),
    "new, again / new": (e.AGAIN, e.NEW),
    "new / pooled, as written": (e.NEW, e.POOLED + e.WRITTEN),
    "new / block, as written": (e.NEW, e.BLOCK + e.WRITTEN),
    "block, GIL kept / block and tuple": (e.BLOCK, e.BLOCK_TUPLE),
    "block and tuple / pages and tuple": (e.BLOCK_TUPLE, e.BEST),
    "loop that writes, bytes / near": (e.BYTES, e.NEAR),
    "pages and tuple / loop that writes and looks": (e.BEST, e.TWO_PASSES),
    "pages and tuple / loop in one pass": (e.BEST, e.IN_ONE),
    "one pass / loop in one pass": (e.ONE_PASS, e.IN_ONE),
    "loop in one pass / memory": (e.IN_ONE, e.MEMORY),
    "writer / new": ("writer", e.NEW),
    "from string / new": ("from string", e.NEW),
    "one decode / new": ("one decode, then splitlines", e.NEW),
    **{
        f"{way} / lazy sequence, {share} read": (f"{way}, {share} read", f"{e.LAZY}, {share} read")
        for way in (e.NEW, e.BEST)
        for share in e.EVERY
    },
}
# Ways whose nanoseconds are said.
WAYS = {
    e.NEW: e.NEW,
    e.POOLED: e.POOLED + e.RELEASED,
    e.BLOCK: e.BLOCK + e.RELEASED,
    e.BEST: e.BEST,
    "one pass": e.ONE_PASS,
}
# What holds of processes that are compared: their way, their threads, and so on.
BY_NEW, BY_BLOCK, BY_BEST = ({"method": way} for way in (e.NEW, e.BLOCK, e.BEST))
BY_AUTHORS_POOL, BY_AUTHORS_BLOCK = ({"method": way} for way in e.ORIGINAL[1:])
ONE_THREAD, TWO, SIXTEEN = ({"threads": threads} for threads in (1, 2, e.THREADS))
COLD, WARM = ({"state": state} for state in (e.COLD, e.WARM))
HELD, GIVEN_BACK = ({"arenas": state} for state in e.ARENAS)
SMALL, WHOLE, LARGE = ({"lines": lines} for lines in (e.TEXTS[0], e.LINES, e.TEXTS[2]))
FEW: Any = BY_NEW | TWO | {"length": "few"}
MANY = {"length": "many"}
SIZES = {"in batches of 256": 256, "in one batch": e.BATCHES[-1]}
IN_FEW, IN_ONE = ({"batch": size} for size in SIZES.values())
# Ways in processes of their own: the experiment, those whose time stands over that of the others, what holds of both.
IN_PROCESSES = {
    "new / pooled, one thread, apart: {GIL}": (AS_RUN, BY_NEW, BY_AUTHORS_POOL, ONE_THREAD),
    "new / block, one thread, apart: {GIL}": (AS_RUN, BY_NEW, BY_AUTHORS_BLOCK, ONE_THREAD),
    "pooled / new, 16 threads: {GIL}": (AS_RUN, BY_AUTHORS_POOL, BY_NEW, SIXTEEN),
    "new / block, 16 threads: {GIL}": (AS_RUN, BY_NEW, BY_AUTHORS_BLOCK, SIXTEEN),
    "new, 16 threads / one thread: {GIL}": (AS_RUN, SIXTEEN, ONE_THREAD, BY_NEW),
    "pooled, 16 threads / one thread: {GIL}": (AS_RUN, SIXTEEN, ONE_THREAD, BY_AUTHORS_POOL),
    "block, 16 threads / one thread: {GIL}": (AS_RUN, SIXTEEN, ONE_THREAD, BY_AUTHORS_BLOCK),
    "new, arenas given back / held: {GIL}": (IN_STATES, GIVEN_BACK, HELD, BY_NEW),
    "rate of new, two threads / one: {FREE_THREADED}": (SECOND, ONE_THREAD, TWO, BY_NEW | MANY | WARM),
    "rate of block, two threads / one: {FREE_THREADED}": (SECOND, ONE_THREAD, TWO, BY_BLOCK | MANY | WARM),
    "rate of pages and tuple, two threads / one: {FREE_THREADED}": (SECOND, ONE_THREAD, TWO, BY_BEST | MANY | WARM),
    "new / pages and tuple, one thread, apart: {FREE_THREADED}": (SECOND, BY_NEW, BY_BEST, MANY | ONE_THREAD),
    "new, two threads, cold / warm: {FREE_THREADED}": (SECOND, COLD, WARM, FEW),
}
# The same of each build.
ON_BUILDS = {
    "block, the text / a twentieth of it": (TEXT, WHOLE, SMALL, {}),
    "block, four times the text / the text": (TEXT, LARGE, WHOLE, {}),
    "pages and tuple, one batch / of 256": (BATCHED, IN_ONE, IN_FEW, BY_BEST),
}
BUILDS = {"interpreter": e.PAIR}
REMEMBERED = BUILDS | {"method": (e.NEW, e.BLOCK)}
COPIES = [(e.NEW, e.AGAIN)]
# Two copies of the rule that differ by more than this raise an alarm: a fifth of what the claims B1 and B2 call an
# effect.
ALARM = 0.05
number = Declarations(outcomes.number)


# ---- one thread, all ways in one process ----


def added(record: Record, known: Collection[str]) -> list[str]:
    """Ways that a reader has added to the corrected experiment: those that are not known, and not controls or for some
    lines only."""
    names = dict.fromkeys(cell.partition("/")[2] for cell in record.loops)
    return [n for n in names if n not in known and not n.startswith(OURS) and not n.endswith(" read")]


@number("ns a string of {arm}, one thread: {label}", timed="ways", over={"label": every, "arm": WAYS})
def cost(record: Record, label: str, arm: str) -> Interval | None:
    """Nanoseconds for each string, made and dropped; None if it was not measured."""
    if not record.has(label, arm):
        return None
    return statistics.per_call(record, (label, arm)).map(lambda ns: ns / e.LINES)


@number(
    "{pair}, one thread: {label}",
    timed="ways",
    over={"label": every, "pair": {name: {"arm": arm, "than": than} for name, (than, arm) in COMPARED.items()}},
)
def faster(record: Record, label: str, arm: str, than: str = e.NEW) -> Estimate | None:
    """How many times as fast `arm` is as `than`, in one run; None if one of them was not measured."""
    if not record.has(label, arm) or not record.has(label, than):
        return None
    return statistics.compare(record, (label, than), (label, arm)).estimate


@number("gain of pages and tuple, one thread: {GIL} / {FREE_THREADED}", timed="ways")
def change_without_gil(record: Record) -> Interval | None:
    """What pages and tuple gain with the GIL, over what it gains without: above 1, it gains less without."""
    if not all(faster(record, label, e.BEST) for label in e.PAIR):
        return None
    return statistics.ratio_of_ratios(record, *(((label, e.NEW), (label, e.BEST)) for label in (GIL, FREE_THREADED)))


def twins(record: Record) -> dict[str, Comparison]:
    """The A/A test by interpreter: the rule over a second copy of it, in one run."""
    return {label: comparison for label, _, comparison in statistics.false_alarms(record, COPIES)}


def least(record: Record, label: str) -> float:
    """How small a difference from the rule the two copies of it could have told; 0 if it is not known."""
    comparison = twins(record).get(label)
    return comparison.mde if comparison and comparison.ratio.is_known else 0.0


@number(
    "new / lazy sequence, {share} read, less what can be told: {label}",
    timed="ways",
    over={"label": every, "share": [*e.EVERY]},
)
def beyond(record: Record, label: str, share: str) -> Counted | None:
    """How much farther from 1 the gain of a lazy sequence is than two copies of the rule can be told apart, in
    logarithms."""
    gain = faster(record, label, f"{e.LAZY}, {share} read", than=f"{e.NEW}, {share} read")
    return gain and Counted(abs(math.log(gain.interval.value)) - math.log1p(least(record, label)))


# ---- processes of their own ----


def per_string(runs: pd.DataFrame, **which) -> np.ndarray:
    """Nanoseconds for each string, one value per process, by round."""
    return chosen(runs, **which).sort_values("round").ns.to_numpy()


def times_as_long(runs: pd.DataFrame, one: dict, other: dict, classes: bool = False, **both) -> Estimate | None:
    """The time of a string in processes of which `one` holds over that in those of which `other` does, paired by round.
    classes: as in `processes.ratio`."""
    return ratio(*(per_string(runs, **both, **which) for which in (one, other)), classes=classes)


@number("{pair}: {interpreter}", over={"pair": ON_BUILDS} | BUILDS)
@number("{pair}", over={"pair": IN_PROCESSES})
def in_processes(session: Session, pair: tuple[str, dict, dict, dict], **of_build) -> Estimate | None:
    """One of IN_PROCESSES, or of ON_BUILDS.

    As the author ran it, processes fall into classes by what else runs, and of such a trimmed mean is the centre of
    none.
    """
    title, one, other, both = pair
    return times_as_long(session.frame(title), one, other, classes=title == AS_RUN, **both, **of_build)


@number(
    "new / {method}, one thread, arenas {arenas}: {GIL}",
    frame=IN_STATES,
    over={"method": (e.POOLED, e.BLOCK), "arenas": e.ARENAS},
)
def new_over_held(runs: pd.DataFrame, method: str, arenas: str) -> Estimate | None:
    """CPython's own strings with arenas in this state, over a forgery while arenas are held."""
    return times_as_long(runs, {"method": e.NEW, "arenas": arenas}, {"method": method} | HELD)


@number("block, 16 threads / one thread, over the same of new: {GIL}", frame=AS_RUN)
def rise_beside_new(runs: pd.DataFrame) -> Estimate | None:
    """As its author ran it: how many times as long a block takes with 16 threads as with one, over the same of
    CPython's own."""
    rises = []
    for method in (BY_AUTHORS_BLOCK, BY_NEW):
        many, one = (per_string(runs, **method, **threads) for threads in (SIXTEEN, ONE_THREAD))
        n = min(len(many), len(one))
        rises.append(many[:n] / one[:n])
    return ratio(*rises, classes=True)


@number("page faults a tuple, one thread, apart: {GIL}", frame=AS_RUN, method=e.NEW, threads=1)
@number("page faults a tuple, arenas {arenas}: {GIL}", frame=IN_STATES, over={"arenas": e.ARENAS}, method=e.NEW)
@number(
    "page faults a tuple, two threads, {state}: {FREE_THREADED}", frame=SECOND, over={"state": (e.COLD, e.WARM)}, **FEW
)
def faults(runs: pd.DataFrame, **which) -> Interval | None:
    """Page faults for each tuple: a count is never below 0."""
    count = interval_of(runs, "faults", **which)
    return count and Interval(count.value, max(0.0, count.low), count.high)


@number("most threads", frame=GRID)
def most_threads(runs: pd.DataFrame) -> Counted:
    return Counted(runs.threads.max())


def crowded(runs: pd.DataFrame) -> pd.DataFrame:
    """The processes with as many threads as were tried."""
    return runs[runs.threads == runs.threads.max()]


def way(label: str, method: str) -> dict[str, str]:
    """How a method is run on a build: forgeries release the GIL where there is one."""
    how = "released" if label == GIL and method != e.NEW else "kept"
    return {"interpreter": label, "method": method, "how": how}


@number(
    "ns a string of {method}, most threads: {label}",
    frame=GRID,
    over={"label": e.PAIR, "method": (e.NEW, e.POOLED, e.BEST)},
)
def cost_crowded(runs: pd.DataFrame, label: str, method: str) -> Interval | None:
    return interval_of(crowded(runs), "ns", **way(label, method))


@number("new / {method}, most threads: {label}", frame=GRID, over={"label": e.PAIR, "method": (e.POOLED, e.BEST)})
def faster_crowded(runs: pd.DataFrame, label: str, method: str) -> Estimate | None:
    return times_as_long(crowded(runs), way(label, e.NEW), way(label, method))


@number("{method}, released / kept, most threads: {GIL}", frame=GRID, over={"method": (e.BLOCK, e.BEST)})
def released_crowded(runs: pd.DataFrame, method: str) -> Estimate | None:
    return times_as_long(crowded(runs), {"how": "released"}, {"how": "kept"}, interpreter=GIL, method=method)


number(
    "ns a string of pages and tuple, {batch}: {interpreter}",
    frame=BATCHED,
    over=BUILDS | {"batch": SIZES},
    column="ns",
    method=e.BEST,
)(interval_of)


@number("bytes a string, alive: {method} on {interpreter}", frame="memory", over=REMEMBERED, when="alive")
def resident(runs: pd.DataFrame, interpreter: str, method: str, when: str) -> Interval | str | None:
    """Resident bytes for each string, `alive` or `after` all were dropped; why not, if fewer were resident than were
    written.

    None where there is no /proc.
    """
    part = runs if runs.empty else chosen(runs, interpreter=interpreter, method=method)
    if part.empty:
        return None
    if (part.alive < 0.99 * part.written).any():  # pages are counted whole
        lowest, written = part.alive.min(), part.written.iloc[0]
        return f"refused: {lowest:.1f} resident, where {written:.1f} are written"
    return interval_of(part, when)


@number("what stays after the drop, in per cent: {method} on {interpreter}", frame="memory", over=REMEMBERED)
def stays(runs: pd.DataFrame, interpreter: str, method: str) -> Interval | None:
    """What stays after the drop, in per cent of what was there; bounds are whole per cents, rounded outwards."""
    alive, after = (resident(runs, interpreter, method, when) for when in ("alive", "after"))
    if isinstance(alive, str) or not (known(alive) and known(after)):
        return None
    most = math.ceil(100 * max(after.high, 0.0) / alive.low) if above(alive, 0) == YES else math.inf
    return Interval(100 * after.value / alive.value, math.floor(100 * after.low / alive.high), most)


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the rule twice in the corrected experiment. What shows no bias and excludes none is
    undecided."""

    def kind(ratio: Interval) -> str:
        told = above(ratio, 1) != OPEN or equal(ratio, 1, ALARM) == YES
        return f"A/A of CPython's own strings{'' if told else f', {ALARM:.0%} undecided'}"

    return [
        Control(kind(twin.ratio), f"{e.NEW}, again / {e.NEW} on {label}", "ways", twin.estimate)
        for label, twin in twins(session.timed("ways")).items()
    ]
