"""What the chapter "CDLL and PyDLL" hands in to the ledger, from its records alone. The rules: claims.toml."""

from functools import partial

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.loaders import results
from notebooks.loaders.experiment import BLOCKING, GETPID, RISKY, SAFE


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the same call twice, where the loaders are compared."""
    return [
        Control("A/A of the loaders", f"CDLL noop again / CDLL noop on {label}", "calls", found.estimate)
        for label, found in results.twins(session.timed("calls")).items()
    ]


def measurements(session: Session) -> Handed:
    handed = Handed(session)

    def ratio(label: str, function: str = "getpid") -> Measurement:
        return results.comparison(session.timed("calls"), label, function).measurement

    def as_run(title: str, value: str, over: str, label: str) -> Measurement:
        found = results.as_run(session.frame(title), value, over).set_index("interpreter")
        return Measurement(found.estimate[label], f"{over} over the other loader, {value}")

    def share(label: str, loader: str) -> Measurement:
        shares = results.shares_kept(session.frame("counting thread"))
        return Measurement(results.of(shares, label, loader).estimate, "share of the reference rate")

    def hazard(title: str, loader: str, kind: str) -> Measurement:
        return Measurement(
            results.of(results.ends(session.frame(title, disturbed=True)), GIL, loader)[kind], "share of processes"
        )

    for label in (GIL, FREE_THREADED):
        handed.put("A12", f"ratio on {label}", partial(ratio, label))
        handed.put("A12", f"ratio as run on {label}", partial(as_run, GETPID, "seconds", "CDLL", label))
        handed.put("A13", f"share kept by PyDLL on {label}", partial(share, label, "PyDLL"))
    for label, where in ((FREE_THREADED, FREE_THREADED), (results.SWITCHED, f"{FREE_THREADED} with the GIL on")):
        for function in results.FUNCTIONS:
            handed.put("A12b", f"{function}: ratio on {where}", partial(ratio, label, function))
    count = f"count beside PyDLL over that beside CDLL on {FREE_THREADED}"
    handed.put("A13", count, partial(as_run, BLOCKING, "iterations", "PyDLL", FREE_THREADED))
    switched = f"share kept by PyDLL on {FREE_THREADED} with the GIL on"
    handed.put("A13", switched, partial(share, results.SWITCHED, "PyDLL"))
    for loader, (crashes, deadlocks) in {"CDLL": (RISKY, SAFE), "PyDLL": (SAFE, RISKY)}.items():
        handed.put("A14", f"share kept by {loader} on {GIL}", partial(share, GIL, loader))
        name = f"crashes of the C API through {loader} on {GIL}"
        handed.put("A14", name, partial(hazard, crashes, loader, "crashes"))
        handed.put("A14", f"deadlocks of {loader} on {GIL}", partial(hazard, deadlocks, loader, "deadlocks"))
    return handed
