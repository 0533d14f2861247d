"""Made-up records of the chapter "Calls from outside", by what is true of its claims: see ffilab/judge/simulation.py."""

import itertools

from ffilab.judge.simulation import Simulated
from ffilab.setup.catalogue import FREE_THREADED, GIL
from native.outside.ways import TOOLS
from notebooks.outside.experiment import ALONE, BRIDGES, BUSY, CODE, EVENTS, OTHERS, THREADS

INTERPRETERS = [GIL, FREE_THREADED]
# Standard deviation over processes of the logarithm of a time, as seen in a run of `quick`.
PROCESSES = 0.05


def simulated(session: Simulated) -> None:
    of_states(session)
    of_waiting(session)
    of_crossings(session)


def of_states(session: Simulated) -> None:
    """Thread states and the way in: each event makes an end longer by as much as its claim says."""
    n, few = session.budget.repeats, session.budget.few
    made, after = {GIL: 800.0}, {}
    after[GIL] = made[GIL] * session.true("E6", f"1 {THREADS} / none, {GIL}")
    after[FREE_THREADED] = after[GIL] * session.true("E5", f"a state made: 1 {THREADS}, {FREE_THREADED} / {GIL}")
    made[FREE_THREADED] = after[FREE_THREADED] / session.true("E6", f"1 {THREADS} / none, {FREE_THREADED}")
    cases = []
    for label, (event, counts) in itertools.product((GIL, FREE_THREADED), EVENTS.items()):
        kept = after[label] / session.true("E5", f"a state made / kept: 1 {THREADS}, {label}")
        larger = session.true("E7", f"1000 {OTHERS} / none, {label}")
        later = {0: made[label], 1000: made[label] * larger, 100: made[label]}
        columns = [session.scattered(later.get(count, after[label]), PROCESSES, n) for count in counts]
        rows = [
            [{"count": count, "ns": float(ns[run]), "kept": kept} for count, ns in zip(counts, columns)]
            for run in range(n)
        ]
        cases.append((label, {"event": event, "bytecode": "own"}, rows))
    still = [[{"count": count, "ns": made[FREE_THREADED], "kept": 200.0} for count in (0, 1)]] * n
    cases.append((FREE_THREADED, {"event": CODE, "bytecode": "shared"}, still))
    session.add_processes("end of a state", cases)
    seen = [[{"count": count, "readings": 4096 if count else 0} for count in EVENTS[THREADS]]] * few
    session.add_processes("visits", [(FREE_THREADED, {}, seen)])
    of_tools = [
        [{"tool": tool, "kept": kept, "ns": 500.0 if kept else 5000.0} for tool in TOOLS for kept in (True, False)]
    ] * n
    session.add_processes("ways in", [(label, {}, of_tools) for label in (GIL, FREE_THREADED)])
    answers = [[{"way": way, "us": 100.0, "worst": 200.0} for way in BRIDGES]] * n
    beside = itertools.product((GIL, FREE_THREADED), (ALONE, BUSY))
    session.add_processes("bridge", [(label, {"beside": one}, answers) for label, one in beside])
    cases = []
    for label in (GIL, FREE_THREADED):
        bad = {
            (tool, kept): session.events(
                session.true(
                    claim,
                    f"processes in which a threading.local {event}: {tool}, {'kept' if kept else 'made'}, {label}",
                ),
                session.budget.shares,
            )
            for claim, tool, kept, event in (
                ("E1", "ctypes", False, "survived"),
                ("E1", "ctypes", True, "lost"),
                ("E7", "cffi", False, "lost"),
            )
        }
        rows = []
        for run in range(session.budget.shares):
            row = [
                {
                    "tool": tool,
                    "kept": kept,
                    "outcome": "survived" if events[run] == (tool == "ctypes" and not kept) else "lost",
                }
                for (tool, kept), events in bad.items()
            ]
            rows.append(row)
        cases.append((label, {}, rows))
    session.add_processes("threading.local", cases)


def of_waiting(session: Simulated) -> None:
    """Who waits for whom."""


def of_crossings(session: Simulated) -> None:
    """What may cross."""
