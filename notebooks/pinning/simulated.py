"""Made-up records of the chapter "Where threads run", by what is true of its claim: see ffilab/judge/simulation.py."""

import numpy as np

from ffilab.judge.simulation import Simulated
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.pinning import experiment as e

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviations of logarithms over processes, of one placement against another of its process; of shares, as such. About as a first
# quick run had them.
THROUGHPUT, TAIL, LOST = 0.05, 0.45, 0.2
P99_US = 200.0
# Of the logarithm of one turn, in tails as of Student's t with so many degrees of freedom.
TURN, TAILS = 0.01, 3


def simulated(session: Simulated) -> None:
    n = session.budget.repeats
    session.add_observation(e.TITLE_CORES, [0, 1])

    def true(name: str) -> float:
        return session.true("A24b" if "updates" in name else "A24a", name)

    def together(columns: dict[str, list[dict]]) -> list[list[dict]]:
        """By process: a row for each placement."""
        return [
            [{"placement": placement, **row} for placement, row in zip(columns, rows, strict=True)]
            for rows in zip(*columns.values(), strict=True)
        ]

    def rows(name: str, centre: float, scatter: float, **further) -> list[dict]:
        return [{name: float(value), **further} for value in session.scattered(centre, scatter, n)]

    label, work = e.MEASURED
    wider = true(f"spread of a measurement, not pinned / pinned: {label}")
    measured = [
        [
            {"placement": placement, "rates": rates(session, spread)}
            for placement, spread in ((e.FREE, wider), (e.APART, 1.0))
        ]
        for _ in range(session.budget.shares)
    ]
    session.add_processes("steadiness", [(label, {"work": work}, measured)])

    cases = []
    for label, work in e.DECISIVE_THROUGHPUT:
        what = "a native call" if work == e.NATIVE else "Python"
        faster = true(f"throughput of {what} in two threads, a core each / not pinned: {label}")
        speeds = {e.FREE: 1.0, e.AGAIN: 1.0, e.APART: faster, e.ONE_CORE: 0.5}
        found = {
            placement: rows("per_s", 1e4 * speed, THROUGHPUT / 2**0.5, threads=2, moves=0.0, cores=[0])
            for placement, speed in speeds.items()
        }
        cases.append((label, {"work": work}, together(found)))
    session.add_processes("throughput", cases)

    cases = []
    for label, work in e.DECISIVE_LATENCY:
        longer = true(f"p99 beside a Python thread, not pinned / a core each: {label}")
        tails = {e.FREE: longer, e.AGAIN: longer, e.APART: 1.0}
        found = {placement: rows("p99", P99_US * tail, TAIL / 2**0.5) for placement, tail in tails.items()}
        cases.append((label, {"work": work}, together(found)))
    session.add_processes("latency", cases)

    n = session.budget.shares
    any_lost = session.events(true("processes that lose updates, a core each: {FREE_THREADED}"), n)
    more = true("share of updates lost, a core each minus one core: {FREE_THREADED}")
    drawn = more + session.rng.normal(0, LOST * session.noise, n)
    apart = [{"lost": 0.3 + float(d), "any": bool(event)} for d, event in zip(drawn, any_lost, strict=True)]
    one_core = [{"lost": 0.3, "any": True} for _ in range(n)]
    session.add_processes(
        "race", [(FREE_THREADED, {}, together({e.FREE: apart, e.APART: apart, e.ONE_CORE: one_core}))]
    )


def rates(session: Simulated, spread: float) -> list[float]:
    """What one thread measures in its turns. Without noise: the same up and down, so that a ratio of spreads is the true one."""
    drawn = session.rng.standard_t(TAILS, e.TURNS) if session.noise else np.resize([-1.0, 1.0], e.TURNS)
    return (1e4 * np.exp(TURN * spread * drawn)).tolist()
