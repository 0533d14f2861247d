"""The numbers of the chapter "GIL Balm", by name, and its own controls. The rules: claims.toml."""

from functools import partial

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Interval, Measurement, Share
from ffilab.judge.numbers import Makers
from ffilab.judge.processes import exact
from ffilab.provision.catalogue import GIL
from notebooks.balm import results
from notebooks.balm.experiment import A_STRING, A_TUPLE, ARENAS, BLOCK, NEW, POOLED, RELEASED, THREADS, WRITTEN

OTHER_LAYOUT = "forgeries by another build's layout that went wrong"
GROWN = "processes that ended when a list in memory of ours grew or was cleared"


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the rule twice in the corrected experiment. What shows no bias and excludes none is undecided."""

    def kind(ratio: Interval) -> str:
        told = ratio.excludes(1) or (ratio.low >= 1 - results.ALARM and ratio.high <= 1 + results.ALARM)
        return f"A/A of CPython's own strings{'' if told else f', {results.ALARM:.0%} undecided'}"

    return [
        Control(kind(found.ratio), f"{NEW}, again / {NEW} on {label}", "ways", found.estimate)
        for label, found in results.twins(session.timed("ways")).items()
    ]


def numbers(session: Session) -> Makers:
    made = {}

    def as_run(slow: tuple[str, int], fast: tuple[str, int]) -> Measurement | None:
        return results.original_ratio(session.frame("as the author ran it"), slow, fast)

    def in_state(state: str, method: str) -> Measurement | None:
        return results.condition(session.frame("arenas held and given back"), state, method)

    # As the original had it, strings are made without the GIL, in both experiments.
    for method in (POOLED, BLOCK):
        name = f"new / {method}, one thread"
        made[f"{name}, apart: {GIL}"] = partial(as_run, (NEW, 1), (method + WRITTEN, 1))
        ours = method + RELEASED
        made[f"{name}: {GIL}"] = lambda ours=ours: results.faster(session.timed("ways"), GIL, ours)
        for state in ARENAS:
            made[f"{name}, arenas {state}: {GIL}"] = partial(in_state, state, method)

    new, pooled, block = ((method, THREADS) for method in (NEW, POOLED + WRITTEN, BLOCK + WRITTEN))
    made["pooled / new, 16 threads: {GIL}"] = partial(as_run, pooled, new)
    made["new / block, 16 threads: {GIL}"] = partial(as_run, new, block)
    made["block, 16 threads / one thread: {GIL}"] = partial(as_run, block, (BLOCK + WRITTEN, 1))

    def rise() -> Measurement | None:
        return results.rise_beside_new(session.frame("as the author ran it"), BLOCK + WRITTEN)

    made["block, 16 threads / one thread, over the same of new: {GIL}"] = rise

    def forged() -> Measurement:
        return exact(results.forged_share(session.frame("what works")), "share")

    def alike() -> Measurement:
        return exact((session.frame("layouts").wrong == 0).mean(), "share")

    made["share of forgeries that are instances of str and not of exact type str"] = forged
    made["share of layouts whose strings all equal CPython's"] = alike

    def misread() -> Measurement | str:
        found = results.misread(session.frame("what must not be done"))
        why = "no process that was asked about a string without a NUL ended well"
        return looked_at(found, "share of CPythons") if found else why

    def by_another_layout() -> Measurement | str:
        layouts = results.by_layout(session.frame("the layout of another build"))
        wrong = results.share_wrong(results.other_builds(layouts, A_STRING, A_TUPLE))
        why = "one interpreter was there alone: no other layout to try"
        return looked_at(wrong, "share of forgeries") if wrong else why

    def grown() -> Measurement | None:
        found = results.grown(session.frame("a list in memory of ours"))
        return found and looked_at(found, "share of processes")

    made["CPythons that misread a number without a NUL"] = misread
    made[OTHER_LAYOUT] = by_another_layout
    made[GROWN] = grown
    return made


def looked_at(found: Share, unit: str) -> Measurement:
    """Each case was looked at once and is no sample of many: what a build does to such an object, it does again."""
    return exact(found.events / found.trials, unit)
