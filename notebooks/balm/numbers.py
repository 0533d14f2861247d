"""The numbers of the chapter "GIL Balm", by name, and its own controls. The rules: claims.toml, sentences.toml."""

import math
from collections.abc import Callable

import pandas as pd

from ffilab.judge.controls import Control
from ffilab.judge.estimates import Counted, Interval, Share
from ffilab.judge.numbers import Made, Makers
from ffilab.judge.processes import exact, interval_of
from ffilab.judge.questions import OPEN, YES, above, equal
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.balm import experiment as e
from notebooks.balm import results

OTHER_LAYOUT = "forgeries by another build's layout that went wrong"
GROWN = "processes that ended when a list in memory of ours grew or was cleared"
AS_RUN, IN_STATES, GRID = "as the author ran it", "arenas held and given back", "threads"
SECOND, TEXT, BATCHED, LIVES = "a second thread", "texts of several lengths", "batches", "what stays alive"
HEAD = "PyUnicodeObject, size"
WORKS, MISUSED, FACTS = "what works", "what must not be done", "layouts of objects"
OTHERS, LISTS = "the layout of another build", "a list in memory of ours"
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
# The calls of the second prediction, as they were asked.
PREDICTED = (
    "hash(x) == hash('pi')",
    "x in {'pi'}, 'pi' in {x}",
    "int(n), float(n)",
    "json.dumps(x), json.loads(n)",
    "pickle.loads(pickle.dumps(x))",
    "sys.intern(x)",
)


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the rule twice in the corrected experiment. What shows no bias and excludes none is
    undecided."""

    def kind(ratio: Interval) -> str:
        told = above(ratio, 1) != OPEN or equal(ratio, 1, results.ALARM) == YES
        return f"A/A of CPython's own strings{'' if told else f', {results.ALARM:.0%} undecided'}"

    return [
        Control(kind(found.ratio), f"{e.NEW}, again / {e.NEW} on {label}", "ways", found.estimate)
        for label, found in results.twins(session.timed("ways")).items()
    ]


def numbers(session: Session) -> Makers:
    made: Makers = {}

    def ways(name: str, make, *arguments) -> None:
        """A number of the corrected experiment: one thread, all ways in one process."""
        made[name] = lambda: make(session.timed("ways"), *arguments)

    def runs(title: str, name: str, make, *arguments, **which) -> None:
        """A number of an experiment in processes of its own."""
        made[name] = lambda: make(session.frame(title), *arguments, **which)

    for label in dict.fromkeys((*e.PAIR, *session.interpreters)):
        for name, (one, other) in COMPARED.items():
            ways(f"{name}, one thread: {label}", results.faster, label, other, one)
        for name, arm in WAYS.items():
            ways(f"ns a string of {name}, one thread: {label}", results.cost, label, arm)
        for share in e.EVERY:
            ways(f"new / lazy sequence, {share} read, less what can be told: {label}", beyond, label, share)
    ways("gain of pages and tuple, one thread: {GIL} / {FREE_THREADED}", results.change_without_gil)

    for method in (e.POOLED, e.BLOCK):
        name = f"new / {method}, one thread"
        runs(AS_RUN, f"{name}, apart: {GIL}", results.original_ratio, (e.NEW, 1), (method + e.WRITTEN, 1))
        for state in e.ARENAS:
            both = {"method": e.NEW, "arenas": state}, {"method": method, "arenas": e.HELD}
            runs(IN_STATES, f"{name}, arenas {state}: {GIL}", results.over, *both)
    for name, way in ((e.NEW, e.NEW), (e.POOLED, e.POOLED + e.WRITTEN), (e.BLOCK, e.BLOCK + e.WRITTEN)):
        runs(AS_RUN, f"{name}, 16 threads / one thread: {GIL}", results.original_ratio, (way, e.THREADS), (way, 1))
    new, pooled, block = ((method, e.THREADS) for method in (e.NEW, e.POOLED + e.WRITTEN, e.BLOCK + e.WRITTEN))
    runs(AS_RUN, "pooled / new, 16 threads: {GIL}", results.original_ratio, pooled, new)
    runs(AS_RUN, "new / block, 16 threads: {GIL}", results.original_ratio, new, block)
    rise = "block, 16 threads / one thread, over the same of new: {GIL}"
    runs(AS_RUN, rise, results.rise_beside_new, e.BLOCK + e.WRITTEN)
    runs(AS_RUN, "page faults a tuple, one thread, apart: {GIL}", results.faults, method=e.NEW, threads=1)
    for state in e.ARENAS:
        runs(IN_STATES, f"page faults a tuple, arenas {state}: {GIL}", results.faults, method=e.NEW, arenas=state)
    states = {"arenas": e.GIVEN_BACK}, {"arenas": e.HELD}
    runs(IN_STATES, "new, arenas given back / held: {GIL}", results.over, *states, method=e.NEW)

    runs(GRID, "most threads", lambda frame: Counted(frame.threads.max()))
    for label, how in ((GIL, "released"), (FREE_THREADED, "kept")):
        for method in (e.NEW, e.POOLED, e.BEST):
            way = {"method": method, "how": "kept" if method == e.NEW else how}
            name = f"ns a string of {method}, most threads: {label}"
            runs(GRID, name, crowded, interval_of, "ns", interpreter=label, **way)
            if method != e.NEW:
                both = {"method": e.NEW, "how": "kept"}, way
                name = f"new / {method}, most threads: {label}"
                runs(GRID, name, crowded, results.over, *both, interpreter=label)
    released = {"how": "released"}, {"how": "kept"}
    for method in (e.BLOCK, e.BEST):
        name = f"{method}, released / kept, most threads: {GIL}"
        runs(GRID, name, crowded, results.over, *released, interpreter=GIL, method=method)

    for method in (e.NEW, e.BLOCK, e.BEST):
        name = f"rate of {method}, two threads / one: {FREE_THREADED}"
        runs(SECOND, name, results.over, {"threads": 1}, {"threads": 2}, method=method, length="many", state=e.WARM)
    few = {"method": e.NEW, "length": "few", "threads": 2}
    apart, methods = (
        "new / pages and tuple, one thread, apart: {FREE_THREADED}",
        ({"method": e.NEW}, {"method": e.BEST}),
    )
    runs(SECOND, apart, results.over, *methods, length="many", threads=1)
    heaps = {"state": e.COLD}, {"state": e.WARM}
    runs(SECOND, "new, two threads, cold / warm: {FREE_THREADED}", results.over, *heaps, **few)
    for state in (e.COLD, e.WARM):
        name = f"page faults a tuple, two threads, {state}: {FREE_THREADED}"
        runs(SECOND, name, results.faults, **few, state=state)

    for label in e.PAIR:
        small, usual, large = ({"lines": lines} for lines in (e.TEXTS[0], e.LINES, e.TEXTS[2]))
        of_label = {"interpreter": label}
        runs(TEXT, f"block, the text / a twentieth of it: {label}", results.over, usual, small, **of_label)
        runs(TEXT, f"block, four times the text / the text: {label}", results.over, large, usual, **of_label)
        heads = f"heads of the longest text, in MB: {label}"
        runs(FACTS, heads, lambda facts, at: Counted(float(e.TEXTS[-1] * results.fields(facts)[at][HEAD] / 1e6)), label)
        few, most = 256, e.BATCHES[-1]
        best = {**of_label, "method": e.BEST}
        runs(BATCHED, f"{e.BEST}, one batch / of 256: {label}", results.over, {"batch": most}, {"batch": few}, **best)
        for size, said in ((few, "in batches of 256"), (most, "in one batch")):
            runs(BATCHED, f"ns a string of {e.BEST}, {said}: {label}", interval_of, "ns", **best, batch=size)
        for method in (e.NEW, e.BLOCK):
            runs("memory", f"bytes a string, alive: {method} on {label}", results.resident, label, method, "alive")
            name = f"what stays after the drop, in per cent: {method} on {label}"
            runs("memory", name, results.stays, label, method)

    forged = "share of forgeries that are instances of str and not of exact type str"
    runs(WORKS, forged, lambda frame: exact(results.forged_share(frame)))
    equal = "share of layouts whose strings all equal CPython's"
    runs("layouts", equal, lambda frame: exact((frame.wrong == 0).mean()))
    runs(WORKS, "probes", lambda frame: Counted(frame.probe.nunique()))
    runs(WORKS, "probes with one answer", lambda frame: Counted(results.alike(frame)))
    runs(WORKS, "probes with several answers", lambda frame: Counted(frame.probe.nunique() - results.alike(frame)))
    unlike = "probes that tell ours from a subclass"
    runs(WORKS, unlike, lambda frame: Counted(len(results.unlike(frame, GIL, e.BLOCK, "subclass of str"))))
    pickled = "pickle.loads(pickle.dumps(x))"
    runs(WORKS, "copied types that pickle refuses", lambda frame: Counted("Error" in results.copied(frame, pickled)))
    made["calls of the second prediction"] = lambda: Counted(len(PREDICTED))
    for name, find in lists(session).items():
        made[name] = lambda find=find: Counted(len(find()))
    for name, (find, why) in shares(session).items():
        # Each case was looked at once and is no sample of many: what a build does to such an object, it does again.
        made[name] = lambda find=find, why=why: exact(found.events / found.trials) if (found := find()) else why
        made[f"{name}, of all"] = find
    return made


def lists(session: Session) -> dict[str, Callable[[], list[str]]]:
    """What is counted, and named one by one."""

    def works():
        return session.frame(WORKS)

    def wrong() -> list[str]:
        unlike = results.unlike(works(), GIL, e.BLOCK, "str")
        return [probe for probe in PREDICTED if probe in unlike]

    return {
        "ways that keep a text without a string": lambda: results.keeps(session.frame(LIVES), "dropped"),
        "ways that keep a text after a collection": lambda: results.keeps(session.frame(LIVES), "collected"),
        "calls that go wrong for ours": wrong,
        "calls that go wrong without care": lambda: results.careless(session.frame(MISUSED), works()),
        "fields that differ between the builds": lambda: results.differing(session.frame(FACTS), *e.PAIR),
    }


def shares(session: Session) -> dict[str, tuple[Callable[[], Share | None], str]]:
    """What was looked at once in each case: the share, and why it may be unknown."""

    def others():
        return results.by_layout(session.frame(OTHERS))

    def own_append() -> Share | None:
        found = results.own_append(session.frame(LISTS))
        return Share(sum(found.values()), len(found)) if found else None

    return {
        "CPythons that misread a number without a NUL": (
            lambda: results.misread(session.frame(MISUSED)),
            "no process that was asked about a string without a NUL ended well",
        ),
        OTHER_LAYOUT: (
            lambda: results.share_wrong(results.other_builds(others(), e.A_STRING, e.A_TUPLE)),
            "one interpreter was there alone: no other layout to try",
        ),
        "forgeries by another version's layout that went wrong": (
            lambda: results.share_wrong(results.other_versions(others())),
            "no two versions of one kind of build were there",
        ),
        "modules of another build that were refused": (
            lambda: results.refused(others()),
            "there was no module of another build",
        ),
        GROWN: (lambda: results.grown(session.frame(LISTS)), ""),
        "CPythons on which an append of its own works": (own_append, ""),
    }


def crowded(runs: pd.DataFrame, make: Callable, *arguments, **which) -> Made:
    """With as many threads as were tried, all together."""
    return make(runs[runs.threads == runs.threads.max()], *arguments, **which)


def beyond(record: Record, label: str, share: str) -> Counted | None:
    """How much farther from 1 the gain of a lazy sequence is than two copies of the rule can be told apart, in
    logarithms."""
    found = results.faster(record, label, f"{e.LAZY}, {share} read", than=f"{e.NEW}, {share} read")
    return found and Counted(abs(math.log(found.interval.value)) - math.log1p(results.least(record, label)))
