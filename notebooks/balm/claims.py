"""What the chapter "GIL Balm" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import exact
from ffilab.provision.catalogue import GIL
from notebooks.balm import results
from notebooks.balm.experiment import A_STRING, A_TUPLE, BLOCK, NEW, POOLED, RELEASED, THREADS

OTHER_LAYOUT = "forgeries by another build's layout that went wrong"
GROWN = "processes that ended when a list in memory of ours grew or was cleared"


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the rule twice in the corrected experiment."""
    return [
        Control("A/A of CPython's own strings", f"{NEW}, again / {NEW} on {label}", "ways", found.estimate)
        for label, found in results.twins(session.timed("ways")).items()
    ]


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    record = session.timed("ways")
    runs = session.frame("as the author ran it")

    # As the original had it: its strings are made without the GIL, in both experiments.
    for claim, method in (("B1", POOLED), ("B2", BLOCK)):
        name = f"new / {method}, one thread"
        handed.put(claim, f"{name}, apart: {GIL}", results.original_ratio(runs, (NEW, 1), (method, 1)))
        handed.put(claim, f"{name}: {GIL}", results.faster(record, GIL, method + RELEASED))

    new, pooled, block = ((method, THREADS) for method in (NEW, POOLED, BLOCK))
    handed.put("B3", "pooled / new, 16 threads: {GIL}", results.original_ratio(runs, pooled, new))
    handed.put("B3", "new / block, 16 threads: {GIL}", results.original_ratio(runs, new, block))
    handed.put("B3", "block, 16 threads / one thread: {GIL}", results.original_ratio(runs, block, (BLOCK, 1)))

    forged = results.forged_share(session.frame("what works"))
    handed.put("B4", "share of forgeries that are instances of str and not of exact type str", exact(forged, "share"))
    equal = float((session.frame("layouts").wrong == 0).mean())
    handed.put("B5", "share of layouts whose strings all equal CPython's", exact(equal, "share"))
    misread = results.misread(session.frame("what must not be done"))
    why = "no process that was asked about a string without a NUL ended well"
    found = Measurement(misread, "share of CPythons") if misread else why
    handed.put("B6", "CPythons that misread a number without a NUL", found)
    layouts = results.by_layout(session.frame("the layout of another build"))
    wrong = results.share_wrong(results.other_builds(layouts, A_STRING, A_TUPLE))
    why = "one interpreter was there alone: no other layout to try"
    handed.put("B6", OTHER_LAYOUT, Measurement(wrong, "share of forgeries") if wrong else why)
    grown = results.grown(session.frame("a list in memory of ours"))
    handed.put("B6", GROWN, Measurement(grown, "share of processes") if grown else None)
    return handed
