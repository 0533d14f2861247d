"""The numbers of the chapter "GIL Balm", by name, and its own controls. The rules: claims.toml, sentences.toml."""

import math
from collections.abc import Callable
from functools import partial

from ffilab.judge.controls import Control, unequal
from ffilab.judge.estimates import Counted, Interval, Measurement, Share
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import exact, interval_of
from ffilab.judge.questions import OPEN, YES, above, equal
from ffilab.measure.record import Record
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.balm import results
from notebooks.balm.experiment import (
    A_STRING,
    A_TUPLE,
    AGAIN,
    ARENAS,
    BEST,
    BLOCK,
    BLOCK_TUPLE,
    BYTES,
    COLD,
    EVERY,
    LAZY,
    LINES,
    NEAR,
    NEW,
    PAIR,
    POOLED,
    RELEASED,
    TEXTS,
    THREADS,
    TWO_PASSES,
    WARM,
    WRITTEN,
)

OTHER_LAYOUT = "forgeries by another build's layout that went wrong"
GROWN = "processes that ended when a list in memory of ours grew or was cleared"
AS_RUN, IN_STATES, GRID, SECOND, TEXT = (
    "as the author ran it",
    "arenas held and given back",
    "threads",
    "a second thread",
    "texts of several lengths",
)
WORKS, MISUSED, OTHERS, LISTS, FACTS = (
    "what works",
    "what must not be done",
    "the layout of another build",
    "a list in memory of ours",
    "layouts of objects",
)
# Ways of one thread and one process: the time of one arm over that of another. As the original had it, strings of pools and blocks
# are made without the GIL, in all experiments, unless the name says otherwise.
COMPARED = {
    "new / pooled": (NEW, POOLED + RELEASED),
    "new / block": (NEW, BLOCK + RELEASED),
    "new / pages and tuple": (NEW, BEST),
    "new, again / new": (AGAIN, NEW),
    "new / pooled, as written": (NEW, POOLED + WRITTEN),
    "new / block, as written": (NEW, BLOCK + WRITTEN),
    "pooled / pooled, as written": (POOLED + RELEASED, POOLED + WRITTEN),
    "block / block, as written": (BLOCK + RELEASED, BLOCK + WRITTEN),
    "block, GIL kept / pages and tuple": (BLOCK, BEST),
    "block, GIL kept / block and tuple": (BLOCK, BLOCK_TUPLE),
    "block and tuple / pages and tuple": (BLOCK_TUPLE, BEST),
    "loop that writes, bytes / near": (BYTES, NEAR),
    "pages and tuple / loop that writes and looks": (BEST, TWO_PASSES),
    "pages and tuple / made once": (BEST, "made once, tuple again"),
    "writer / new": ("writer", NEW),
    "from string / new": ("from string", NEW),
    "one decode / new": ("one decode, then splitlines", NEW),
    **{
        f"{way} / lazy sequence, {share} read": (f"{way}, {share} read", f"{LAZY}, {share} read")
        for way in (NEW, BEST)
        for share in EVERY
    },
}
# The calls of the third prediction, as they were asked.
PREDICTED = (
    "hash(x) == hash('pi')",
    "x in {'pi'}, 'pi' in {x}",
    "int(n), float(n)",
    "json.dumps(x), json.loads(n)",
    "pickle.loads(pickle.dumps(x))",
    "sys.intern(x)",
)


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the rule twice in the corrected experiment. What shows no bias and excludes none is undecided."""

    def kind(ratio: Interval) -> str:
        told = above(ratio, 1) != OPEN or equal(ratio, 1, results.ALARM) == YES
        return f"A/A of CPython's own strings{'' if told else f', {results.ALARM:.0%} undecided'}"

    return [
        Control(kind(found.ratio), f"{NEW}, again / {NEW} on {label}", "ways", found.estimate)
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

    for label in dict.fromkeys((*PAIR, *session.interpreters)):
        for name, (one, other) in COMPARED.items():
            ways(f"{name}, one thread: {label}", results.faster, label, other, one)
        ways(f"ns a string of new, one thread: {label}", results.cost, label, NEW)
        ways(f"smallest difference from new to be told: {label}", lambda *at: Counted(results.least(*at)), label)
        for share in EVERY:
            ways(f"new / lazy sequence, {share} read, less what can be told: {label}", beyond, label, share)
    ways("gain of pages and tuple, one thread: {GIL} / {FREE_THREADED}", results.change_without_gil)
    ways("ways of which many more batches were left out", left_out)

    for method in (POOLED, BLOCK):
        name, written = f"new / {method}, one thread", method + WRITTEN
        runs(AS_RUN, f"{name}, apart: {GIL}", results.original_ratio, (NEW, 1), (written, 1))
        for state in ARENAS:
            runs(IN_STATES, f"{name}, arenas {state}: {GIL}", results.condition, state, method)
        made[f"gain of {method}, as written, in one process / apart: {GIL}"] = partial(shared_process, session, method)
    for name, way in ((NEW, NEW), (POOLED, POOLED + WRITTEN), (BLOCK, BLOCK + WRITTEN)):
        runs(AS_RUN, f"{name}, 16 threads / one thread: {GIL}", results.original_ratio, (way, THREADS), (way, 1))
    new, pooled, block = ((method, THREADS) for method in (NEW, POOLED + WRITTEN, BLOCK + WRITTEN))
    runs(AS_RUN, "pooled / new, 16 threads: {GIL}", results.original_ratio, pooled, new)
    runs(AS_RUN, "new / block, 16 threads: {GIL}", results.original_ratio, new, block)
    rise = "block, 16 threads / one thread, over the same of new: {GIL}"
    runs(AS_RUN, rise, results.rise_beside_new, BLOCK + WRITTEN)
    runs(AS_RUN, "page faults a tuple, one thread, apart: {GIL}", results.faults, method=NEW, threads=1)
    for state in ARENAS:
        runs(IN_STATES, f"page faults a tuple, arenas {state}: {GIL}", results.faults, method=NEW, arenas=state)
    runs(IN_STATES, "new, arenas given back / held: {GIL}", results.cost_of_giving_back)

    runs(GRID, "most threads", lambda frame: Counted(frame.threads.max()))
    for label, how in ((GIL, "released"), (FREE_THREADED, "kept")):
        new, pooled, best = (NEW, "kept"), (POOLED, how), (BEST, how)
        runs(GRID, f"pooled / new, most threads: {label}", results.with_most_threads, label, pooled, new)
        runs(GRID, f"new / pages and tuple, most threads: {label}", results.with_most_threads, label, new, best)
    for method in (BLOCK, BEST):
        both = [(method, how) for how in ("released", "kept")]
        runs(GRID, f"{method}, released / kept, most threads: {GIL}", results.with_most_threads, GIL, *both)

    for method in (NEW, BLOCK, BEST):
        name = f"rate of {method}, two threads / one: {FREE_THREADED}"
        runs(SECOND, name, results.rate_of_two, method, "many", WARM)
    many, few = {"method": NEW, "length": "many", "threads": 1}, {"method": NEW, "length": "few", "threads": 2}
    runs(SECOND, "ns a string of new, one thread, apart: {FREE_THREADED}", interval_of, "ns", **many)
    runs(SECOND, "new / pages and tuple, one thread, apart: {FREE_THREADED}", results.gain_alone)
    runs(SECOND, "new, two threads, cold / warm: {FREE_THREADED}", results.cost_of_cold_heaps)
    for state in (COLD, WARM):
        name = f"page faults a tuple, two threads, {state}: {FREE_THREADED}"
        runs(SECOND, name, results.faults, **few, state=state)

    for label in PAIR:
        runs(TEXT, f"block, the text / a twentieth of it: {label}", results.of_lengths, label, LINES, TEXTS[0])
        runs(TEXT, f"block, four times the text / the text: {label}", results.of_lengths, label, TEXTS[2], LINES)
        runs(FACTS, f"heads of the longest text, in MB: {label}", megabytes, label)
        for method in (NEW, BLOCK):
            for when in ("alive", "after"):
                runs("memory", f"bytes a string, {when}: {method} on {label}", results.resident, label, method, when)
            name = f"what stays after the drop, in per cent: {method} on {label}"
            runs("memory", name, results.stays, label, method)

    forged = "share of forgeries that are instances of str and not of exact type str"
    runs(WORKS, forged, lambda frame: exact(results.forged_share(frame), "share"))
    equal = "share of layouts whose strings all equal CPython's"
    runs("layouts", equal, lambda frame: exact((frame.wrong == 0).mean(), "share"))
    runs(WORKS, "probes", lambda frame: Counted(frame.probe.nunique()))
    runs(WORKS, "probes with one answer", lambda frame: Counted(results.alike(frame)))
    runs(WORKS, "probes with several answers", lambda frame: Counted(frame.probe.nunique() - results.alike(frame)))
    named, pickled = "type(x).__name__", "pickle.loads(pickle.dumps(x))"
    runs(WORKS, "copied types that are named str", lambda frame: Counted(results.copied(frame, named) == "'str'"))
    runs(WORKS, "copied types that pickle refuses", lambda frame: Counted("Error" in results.copied(frame, pickled)))
    made["calls of the third prediction"] = lambda: Counted(len(PREDICTED))
    for name, find in lists(session).items():
        made[name] = lambda find=find: Counted(len(find()))
    for name, (unit, find, why) in shares(session).items():
        made[name] = lambda unit=unit, find=find, why=why: looked_at(find(), unit) or why
        made[f"{name}, of all"] = find
    return made


def lists(session: Session) -> dict[str, Callable[[], list[str]]]:
    """What is counted, and named one by one."""

    def works():
        return session.frame(WORKS)

    def wrong() -> list[str]:
        unlike = results.unlike(works(), GIL, BLOCK, "str")
        return [probe for probe in PREDICTED if probe in unlike]

    return {
        "probes on which CPythons differ": lambda: results.disputed(works()),
        "probes that tell ours from a subclass": lambda: results.unlike(works(), GIL, BLOCK, "subclass of str"),
        "calls that go wrong for ours": wrong,
        "calls that go wrong without care": lambda: results.careless(session.frame(MISUSED), works()),
        "fields that differ between the builds": lambda: results.differing(session.frame(FACTS), *PAIR),
    }


def shares(session: Session) -> dict[str, tuple[str, Callable[[], Share | None], str]]:
    """What was looked at once in each case: of what it is a share, how many, and why it may be unknown."""

    def others():
        return results.by_layout(session.frame(OTHERS))

    def own_append() -> Share | None:
        found = results.own_append(session.frame(LISTS))
        return Share(sum(found.values()), len(found)) if found else None

    return {
        "CPythons that misread a number without a NUL": (
            "share of CPythons",
            lambda: results.misread(session.frame(MISUSED)),
            "no process that was asked about a string without a NUL ended well",
        ),
        OTHER_LAYOUT: (
            "share of forgeries",
            lambda: results.share_wrong(results.other_builds(others(), A_STRING, A_TUPLE)),
            "one interpreter was there alone: no other layout to try",
        ),
        "forgeries by another version's layout that went wrong": (
            "share of forgeries",
            lambda: results.share_wrong(results.other_versions(others())),
            "no two versions of one kind of build were there",
        ),
        "modules of another build that were refused": (
            "share of modules",
            lambda: results.refused(others()),
            "there was no module of another build",
        ),
        GROWN: ("share of processes", lambda: results.grown(session.frame(LISTS)), ""),
        "CPythons on which an append of its own works": ("share of CPythons", own_append, ""),
    }


def looked_at(found: Share | None, unit: str) -> Measurement | None:
    """Each case was looked at once and is no sample of many: what a build does to such an object, it does again."""
    return exact(found.events / found.trials, unit) if found else None


def beyond(record: Record, label: str, share: str) -> Counted | None:
    """How much farther from 1 the gain of a lazy sequence is than two copies of the rule can be told apart, in logarithms."""
    found = results.faster(record, label, f"{LAZY}, {share} read", than=f"{NEW}, {share} read")
    return found and Counted(abs(math.log(found.interval.value)) - math.log1p(results.least(record, label)))


def left_out(record: Record) -> Counted | None:
    checks = unequal("ways", record)
    return Counted(sum(not check.passed for check in checks)) if checks else None


def shared_process(session: Session, method: str) -> Interval | None:
    """What his design gains where all ways share a process, over what it gains in processes of its own."""
    shared = results.faster(session.timed("ways"), GIL, method + WRITTEN)
    return results.quotient(shared, results.original_ratio(session.frame(AS_RUN), (NEW, 1), (method + WRITTEN, 1)))


def megabytes(facts, label: str) -> Counted:
    return Counted(float(TEXTS[-1] * results.fields(facts)[label]["PyUnicodeObject, size"] / 1e6))
