"""What the chapter "CDLL and PyDLL" hands in to the ledger, from its records alone. The rules: claims.toml."""

import pandas as pd

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.loaders import results
from notebooks.loaders.experiment import HAZARDS


def controls(session: Session) -> list[Control]:
    """The chapter's own A/A test: the same call twice, where the loaders are compared."""
    return [
        Control("A/A of the loaders", f"CDLL noop again / CDLL noop on {label}", "calls", found.estimate)
        for label, found in results.twins(session.timed("calls")).items()
    ]


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    record = session.timed("calls")
    shares = results.shares_kept(session.frame("counting thread"))
    ends = results.ends(pd.concat([session.frame(title) for title in HAZARDS], ignore_index=True))

    for label in (GIL, FREE_THREADED):
        handed.put("A12", f"ratio on {label}", results.comparison(record, label, "getpid").measurement)

    def share(label: str, loader: str) -> Measurement:
        return Measurement(results.of(shares, label, loader).estimate, "share of the reference rate")

    for label in (GIL, FREE_THREADED):
        handed.put("A13", f"share kept by PyDLL on {label}", share(label, "PyDLL"))

    def hazard(loader: str, kind: str) -> Measurement:
        return Measurement(results.of(ends, GIL, loader)[kind], "share of processes")

    for loader in ("CDLL", "PyDLL"):
        handed.put("A14", f"share kept by {loader} on {GIL}", share(GIL, loader))
        handed.put("A14", f"crashes of the C API through {loader} on {GIL}", hazard(loader, "crashes"))
        handed.put("A14", f"deadlocks of {loader} on {GIL}", hazard(loader, "deadlocks"))
    return handed
