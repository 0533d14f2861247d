"""Made-up records of the chapter "CDLL and PyDLL", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.loaders.experiment import LOADERS, RISKY, RISKY_PROCESSES, SAFE, SAFE_PROCESSES, SHOULD_BE_SAFE

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviations seen in `quick`: of the ratio of two arms over restarts, and of the share that a counting thread keeps
# over processes (of its own size: 0.03 to 0.14 by case).
RESTARTS, PROCESSES = 0.02, 0.1


def simulated(session: Simulated) -> None:
    cells = {}
    for label in INTERPRETERS:
        cells[label, "PyDLL getpid"] = 250.0
        cells[label, "CDLL getpid"] = 250.0 * session.true("A12", f"ratio on {label}")
    session.add_times("calls", cells, RESTARTS)

    n = session.budget.repeats
    kept = {
        (GIL, "PyDLL"): session.true("A13", "share kept by PyDLL on {GIL}"),
        (FREE_THREADED, "PyDLL"): session.true("A13", "share kept by PyDLL on {FREE_THREADED}"),
        (GIL, "CDLL"): session.true("A14", "share kept by CDLL on {GIL}"),
        (FREE_THREADED, "CDLL"): 1.0,
    }
    session.add_processes(
        "counting thread",
        [(label, {"loader": loader}, shares(session, kept[label, loader], n)) for label, loader in kept],
    )

    ends = {SAFE: [], RISKY: []}
    for loader in LOADERS:
        for what, named in (("C API", "crashes of the C API through"), ("handshake", "deadlocks of")):
            safe = (GIL, loader, what) in SHOULD_BE_SAFE
            processes = (SAFE_PROCESSES if safe else RISKY_PROCESSES)[session.budget.name]
            events = session.events(session.true("A14", f"{named} {loader} on {{GIL}}"), processes)
            bad, good = ("killed by SIGSEGV", {"met": None}) if what == "C API" else ({"met": False}, {"met": True})
            outcomes = [bad if event else good for event in events]
            ends[SAFE if safe else RISKY].append((GIL, {"loader": loader, "what": what}, outcomes))
    for title, cases in ends.items():
        session.add_processes(title, cases)


def shares(session: Simulated, centre: float, n: int) -> list[dict]:
    """Rows of a counting thread that keeps this share of its rate."""
    return [
        {
            "counts": {"call": float(share), "reference": 1.0},
            "elapsed": {"call": 1, "reference": 1},
            "pauses": {"call": 1e6},
        }
        for share in session.scattered(centre, PROCESSES, n)
    ]
