"""What the chapter "CDLL and PyDLL" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.ledger import Handed
from ffilab.judge.statistics import Interval, Measurement
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.loaders import results


def measurements(session: Session) -> Handed:
    handed = Handed(session.corner)
    record = session.timed("calls")
    shares = results.shares_kept(session.frame("counting thread"))
    ends = results.ends(session.frame("crashes and deadlocks"))

    for label in (GIL, FREE_THREADED):
        found = results.comparison(record, label, "getpid")
        handed.put("A12", f"ratio on {label}", Measurement(found.ratio, found.mde, "CDLL / PyDLL"))

    def share(label: str, loader: str) -> Measurement:
        row = results.of(shares, label, loader)
        return Measurement(Interval.of(row), row.mde, "share of the reference rate")

    for label in (GIL, FREE_THREADED):
        handed.put("A13", f"share kept by PyDLL on {label}", share(label, "PyDLL"))

    def hazard(loader: str, kind: str) -> Measurement:
        interval = results.of(ends, GIL, loader)[kind]
        return Measurement(interval, interval.half_width, "share of processes")

    for loader in ("CDLL", "PyDLL"):
        handed.put("A14", f"share kept by {loader} on {GIL}", share(GIL, loader))
        handed.put("A14", f"crashes of the C API through {loader} on {GIL}", hazard(loader, "crashes"))
        handed.put("A14", f"deadlocks of {loader} on {GIL}", hazard(loader, "deadlocks"))
    return handed
