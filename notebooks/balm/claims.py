"""What the chapter "GIL Balm" hands in to the ledger, from its records alone. The rules: claims.toml."""

from functools import partial

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Interval, Measurement, Share
from ffilab.judge.ledger import Handed
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


def measurements(session: Session) -> Handed:
    handed = Handed(session)

    def as_run(slow: tuple[str, int], fast: tuple[str, int]) -> Measurement | None:
        return results.original_ratio(session.frame("as the author ran it"), slow, fast)

    def in_state(state: str, method: str) -> Measurement | None:
        return results.condition(session.frame("arenas held and given back"), state, method)

    # As the original had it, strings are made without the GIL, in both experiments.
    for claim, method in (("B1", POOLED), ("B2", BLOCK)):
        name = f"new / {method}, one thread"
        handed.put(claim, f"{name}, apart: {GIL}", partial(as_run, (NEW, 1), (method + WRITTEN, 1)))
        ours = method + RELEASED
        handed.put(claim, f"{name}: {GIL}", lambda ours=ours: results.faster(session.timed("ways"), GIL, ours))
        for state in ARENAS:
            made = partial(in_state, state, method)
            handed.put(claim, f"{name}, arenas {state}: {GIL}", made)

    new, pooled, block = ((method, THREADS) for method in (NEW, POOLED + WRITTEN, BLOCK + WRITTEN))
    handed.put("B3", "pooled / new, 16 threads: {GIL}", partial(as_run, pooled, new))
    handed.put("B3", "new / block, 16 threads: {GIL}", partial(as_run, new, block))
    handed.put("B3", "block, 16 threads / one thread: {GIL}", partial(as_run, block, (BLOCK + WRITTEN, 1)))

    def rise() -> Measurement | None:
        return results.rise_beside_new(session.frame("as the author ran it"), BLOCK + WRITTEN)

    handed.put("B3", "block, 16 threads / one thread, over the same of new: {GIL}", rise)

    def forged() -> Measurement:
        return exact(results.forged_share(session.frame("what works")), "share")

    def alike() -> Measurement:
        return exact((session.frame("layouts").wrong == 0).mean(), "share")

    handed.put("B4", "share of forgeries that are instances of str and not of exact type str", forged)
    handed.put("B5", "share of layouts whose strings all equal CPython's", alike)

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

    handed.put("B6", "CPythons that misread a number without a NUL", misread)
    handed.put("B6", OTHER_LAYOUT, by_another_layout)
    handed.put("B6", GROWN, grown)
    return handed


def looked_at(found: Share, unit: str) -> Measurement:
    """Each case was looked at once and is no sample of many: what a build does to such an object, it does again."""
    return exact(found.events / found.trials, unit)
