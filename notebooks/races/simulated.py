"""Made-up records of the chapter "Races", by what is true of its claims: see ffilab/judge/simulation.py.

In truth a share of the runs is bad, and a bad run loses as much as makes the mean over all runs that of the claim.
"""

import numpy as np

from ffilab.judge.simulation import Simulated
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.races import experiment
from notebooks.races.results import CDLL, DOLLARS, NARROW_NS, PYDLL, WIDE_NS, model_of_payments

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviation over bad runs of the updates that fifty threads lose, as a part of their mean; and over processes of a share of
# rounds. Seen in runs of `quick`.
LOSS, ROUNDS = 0.5, 0.02
# What a bad run loses or makes at least: something.
LEAST = 1e-5


def simulated(session: Simulated) -> None:
    trials(session)
    n = experiment.repeats(session)
    as_run(session, n)
    wider = session.true("A17", "rounds that are hit in a window of 10 µs, less those in one of 1 µs")
    narrow = float(model_of_payments(np.array(NARROW_NS)))
    shares = {
        NARROW_NS: session.scattered(narrow, ROUNDS, n),
        WIDE_NS: narrow + wider + session.scattered(0.0, ROUNDS, n),
    }
    rows = [[{"window_ns": width, "share": float(of[run])} for width, of in shares.items()] for run in range(n)]
    session.add_processes("width of the window", [(FREE_THREADED, {}, rows)])


def as_run(session: Simulated, n: int) -> None:
    """The talk's own program, and what stands beside C7: two statements at the shortest interval."""
    lost = session.true("A15", "updates lost, as the talk ran it, mean of five rounds: {FREE_THREADED}")
    paid = session.true("A16", "withdrawals, as the talk ran it: {FREE_THREADED}")
    lost, paid = session.scattered(lost, LOSS, n), session.scattered(paid, ROUNDS, n)

    fast, fast_gil = (
        session.events(session.true("A17", f"bad runs as the talk ran it: fast bank, {label}"), n)
        for label in ("{FREE_THREADED}", "{GIL}")
    )
    rows = [
        [
            {"what": "unsafe counter", "lost": float(lost[run])},
            {"what": "bank", "withdrawals": float(paid[run]), "created": 50.0},
            {"what": "fast bank", "created": 20.0 * fast[run]},
        ]
        for run in range(n)
    ]
    with_gil = [[{"what": "fast bank", "created": 20.0 * bad}] for bad in fast_gil]
    session.add_processes(experiment.AS_RUN, [(FREE_THREADED, {"gil": "off"}, rows), (GIL, {"gil": "on"}, with_gil)])
    cases = []
    for label, statement in ((GIL, "total += one()"), (FREE_THREADED, "total += 1")):
        bad_runs = session.events(session.true("C7", f"bad runs: {statement}, {label}"), n)
        rows = [{"interval": "1 µs", "statement": statement, "lost": LEAST * one} for one in bad_runs]
        cases.append((label, {}, rows))
    session.add_processes("total += 1", cases)


def trials(session: Simulated) -> None:
    """What may happen in each build, in as many trials as the budget has. All threads met, where they could."""
    n = experiment.TRIALS[session.budget.name]
    racy = session.true("A15", "bad runs: unsafe, PyDLL, {FREE_THREADED}")
    mean = session.true("A15", "updates lost, mean over all runs: unsafe, PyDLL, {FREE_THREADED}")

    def lost(label: str, variant: str, claim: str, name: str, way: str = PYDLL, **size) -> tuple[str, dict, np.ndarray]:
        met = float(label == FREE_THREADED or way == CDLL)
        found = among(session, session.true(claim, name), n=n, **{"size": LEAST, "scatter": 0.0, **size})
        return label, {"way": way, "variant": variant, "met": met}, found

    def made(label: str, case: str) -> tuple[str, dict, np.ndarray]:
        bad = session.events(session.true("A16", f"bad accounts: {case}, PyDLL, {label}"), n)
        return label, {"case": case, "balance": 0}, DOLLARS + 50.0 * bad

    counters = [
        lost(GIL, "unsafe", "A15", f"bad runs: unsafe, PyDLL, {GIL}"),
        lost(GIL, "unsafe", "A18", f"bad runs: unsafe, ctypes CDLL, {GIL}", way=CDLL),
        lost(
            FREE_THREADED,
            "unsafe",
            "A15",
            f"bad runs: unsafe, PyDLL, {FREE_THREADED}",
            size=mean / racy if racy else LEAST,
            scatter=LOSS,
        ),
        *(
            lost(FREE_THREADED, variant, "A15", f"bad runs: {variant}, PyDLL, {FREE_THREADED}")
            for variant in ("mutex", "atomic")
        ),
    ]
    accounts = [made(GIL, "unsafe"), made(FREE_THREADED, "unsafe"), made(FREE_THREADED, "safe")]
    totals = {
        loops: session.events(session.true("C7", f"bad runs: total += 1, {name}, {GIL}"), n)
        for name, loops in (
            ("switch interval 1 µs", experiment.python_loops(session)),
            ("a loop of 1,000", experiment.AS_IN_THE_POST["loops"]),
        )
    }
    cases = []
    for label in INTERPRETERS:
        runs = [
            [{**fixed, "lost": float(found[run])} for where, fixed, found in counters if where == label]
            + [{**fixed, "withdrawn": float(found[run])} for where, fixed, found in accounts if where == label]
            + [
                {"statement": "total += 1", "loops": loops, "lost": float(bad[run])}
                for loops, bad in totals.items()
                if label == GIL
            ]
            for run in range(n)
        ]
        cases.append((label, {}, runs))
    session.add_processes("trials", cases)


def among(session: Simulated, rate: float, size: float, scatter: float, n: int) -> np.ndarray:
    """What each of n runs brings: nothing, or in a run that is bad about `size`, with a relative `scatter`, and no more than all."""
    sizes = np.clip(size * (1 + session.scattered(0, scatter, n)), LEAST, 1)
    return session.events(rate, n) * sizes
