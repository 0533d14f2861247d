"""Made-up records of the chapter "CDLL and PyDLL", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.measure.plan import EMPTY
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.loaders import experiment as e
from notebooks.loaders.results import FUNCTIONS, LOADERS

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviations seen in `quick`: of the ratio of two arms over restarts, and of the share that a counting thread keeps
# over processes (of its own size: 0.03 to 0.14 by case).
RESTARTS, PROCESSES = 0.02, 0.1


def simulated(session: Simulated) -> None:
    cells = {}
    for label, on, where in (
        (GIL, "", ""),
        (FREE_THREADED, "", FREE_THREADED),
        (FREE_THREADED, e.ON, f"{FREE_THREADED} with the GIL on"),
    ):
        for function in FUNCTIONS:
            named = ("A12b", f"{function}: ratio on {where}") if where else ("A12", f"getpid: ratio on {label}")
            cells[label, f"PyDLL {function}{on}"] = 250.0
            cells[label, f"CDLL {function}{on}"] = 250.0 * session.true(*named)
    cells[FREE_THREADED, f"{EMPTY} (GIL on)"] = 5.0
    session.add_times("calls", cells, RESTARTS)
    for title, value, over, claim, name in (
        (e.GETPID, "seconds", "CDLL", "A12", "ratio as run on"),
        (e.BLOCKING, "iterations", "PyDLL", "A13", "count beside PyDLL over that beside CDLL on"),
    ):
        n = session.budget.repeats if title == e.GETPID else session.budget.few
        cases = []
        for label in INTERPRETERS:
            # Of what a call that blocks leaves no size is asked.
            true = 0.003 if (claim, label) == ("A13", GIL) else session.true(claim, f"{name} {label}")
            ratios = session.scattered(true, RESTARTS, n)
            other = LOADERS[over == LOADERS[0]]
            cases.append(
                (label, {}, [[{"loader": over, value: r}, {"loader": other, value: 1.0}] for r in ratios.tolist()])
            )
        session.add_processes(title, cases)

    n = session.budget.repeats
    kept = {
        (GIL, "PyDLL"): session.true("A13", "share kept by PyDLL on {GIL}"),
        (FREE_THREADED, "PyDLL"): session.true("A13", "share kept by PyDLL on {FREE_THREADED}"),
        (GIL, "CDLL"): session.true("A14", "share kept by CDLL on {GIL}"),
        (FREE_THREADED, "CDLL"): 1.0,
    }
    switched = session.true("A13", "share kept by PyDLL on {FREE_THREADED} with the GIL on")
    session.add_processes(
        "counting thread",
        [
            *((label, {"loader": loader}, shares(session, kept[label, loader], n)) for label, loader in kept),
            (FREE_THREADED, {"loader": "PyDLL", "condition": e.ON}, shares(session, switched, n)),
        ],
    )

    ends = {e.SAFE: [], e.RISKY: []}
    for loader in LOADERS:
        for what, named in (("C API", "crashes of the C API through"), ("handshake", "deadlocks of")):
            safe = (GIL, loader, what) in e.SHOULD_BE_SAFE
            processes = (e.SAFE_PROCESSES if safe else e.RISKY_PROCESSES)[session.budget.name]
            events = session.events(session.true("A14", f"{named} {loader} on {{GIL}}"), processes)
            bad, good = ("killed by SIGSEGV", {"met": None}) if what == "C API" else ({"met": False}, {"met": True})
            outcomes = [bad if event else good for event in events]
            ends[e.SAFE if safe else e.RISKY].append((GIL, {"loader": loader, "what": what}, outcomes))
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
