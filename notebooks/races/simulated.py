"""Made-up records of the chapter "Races", by what is true of its claims: see ffilab/judge/simulation.py.

In truth a share of the runs is bad, and a bad run loses as much as makes the mean over all runs that of the claim.
"""

import numpy as np

from ffilab.judge.simulation import Simulated
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.races import experiment
from notebooks.races.results import DOLLARS, PYDLL, SAFE, TEAM_SIZES

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviation over bad runs, as a part of their mean: updates lost by fifty threads, and dollars from nothing.
# Seen in runs of `quick`.
LOSS, DOLLARS_MADE = 0.5, 0.3
# What a bad run loses or makes at least: something.
LEAST = 1e-5


def simulated(session: Simulated) -> None:
    counters(session)
    banks(session)
    bad = session.events(
        session.true("C7", "bad runs: total += 1, switch interval 1 µs, {GIL}"), experiment.repeats(session)
    )
    rows = [{"interval": "1 µs", "statement": "total += 1", "lost": float(event)} for event in bad]
    session.add_processes("total += 1", [(GIL, {}, rows)])


def counters(session: Simulated) -> None:
    """The talk's own counter, and the crossed one with fifty threads. What A15 says of PyDLL are cells of A18."""
    n = experiment.many(session)
    left = experiment.THREADS * experiment.ITERATIONS
    bad = session.events(session.true("A15", "bad runs as the talk ran it: unsafe, PyDLL, {FREE_THREADED}"), n)
    rows = [{"variant": "unsafe", "left": left - int(event)} for event in bad]
    session.add_processes("counter, as the talk ran it", [(FREE_THREADED, {"loader": PYDLL}, rows)])

    racy = session.true("A15", "bad runs: unsafe, PyDLL, {FREE_THREADED}")
    mean = session.true("A15", "updates lost, mean over all runs: unsafe, PyDLL, {FREE_THREADED}")
    cases = []
    for label in INTERPRETERS:
        for way in experiment.WAYS:
            runs = [[] for _ in range(n)]
            for threads in TEAM_SIZES:
                rate = session.true("A18", f"bad runs: unsafe, {way}, {threads} threads, {label}")
                lost = {"unsafe": among(session, rate, mean / racy if racy else LEAST, LOSS, n).clip(max=1)}
                for variant in SAFE if experiment.lets_others_in(label, way) else ():
                    rate = session.true("A18", f"bad runs: {variant}, any way, {threads} threads, {label}")
                    lost[variant] = among(session, rate, LEAST, 0, n)
                for run, rows in enumerate(runs):
                    rows += [
                        {"threads": threads, "variant": variant, "lost": float(found[run]), "met": 1.0, "pairs": 1.0}
                        for variant, found in lost.items()
                    ]
            cases.append((label, {"way": way}, runs))
    session.add_processes("counter, crossed", cases)


def banks(session: Simulated) -> None:
    """The bank through PyDLL. The difference that A17 speaks of leaves the rest of the bad runs to the fast one."""
    n = experiment.many(session)
    slow = session.true("A16", "bad runs: unsafe, PyDLL, {FREE_THREADED}")
    mean = session.true("A16", "dollars from nothing, mean over all runs: unsafe, PyDLL, {FREE_THREADED}")
    fast = slow - session.true("A17", "bad runs with the sleep minus without: PyDLL, {FREE_THREADED}")
    rates = {
        (FREE_THREADED, "unsafe, sleep"): slow,
        (FREE_THREADED, "unsafe, fast"): fast,
        (FREE_THREADED, "safe, sleep"): session.true("A16", "bad runs: safe, PyDLL, {FREE_THREADED}"),
        (GIL, "unsafe, sleep"): session.true("A16", "bad runs: unsafe, PyDLL, {GIL}"),
        (GIL, "unsafe, fast"): session.true("A17", "bad runs: unsafe without the sleep, PyDLL, {GIL}"),
    }
    created = {
        key: among(
            session, rate, mean / slow if key == (FREE_THREADED, "unsafe, sleep") and slow else 20, DOLLARS_MADE, n
        )
        for key, rate in rates.items()
    }
    cases = []
    for label in INTERPRETERS:
        mine = {case: dollars for (where, case), dollars in created.items() if where == label}
        runs = [
            [{"case": case, "withdrawn": DOLLARS + float(dollars[run]), "balance": 0} for case, dollars in mine.items()]
            for run in range(n)
        ]
        cases.append((label, {"loader": PYDLL}, runs))
    session.add_processes("bank", cases)


def among(session: Simulated, rate: float, size: float, scatter: float, n: int) -> np.ndarray:
    """What each of n runs brings: nothing, or in a run that is bad about `size`, with a relative `scatter`."""
    sizes = np.maximum(size * (1 + session.scattered(0, scatter, n)), LEAST)
    return session.events(rate, n) * sizes
