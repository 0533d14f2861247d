"""Made-up records of the chapter "Measuring on a noisy machine", by what is true of its claims: see ffilab/judge/simulation.py."""

import numpy as np

from ffilab.judge.simulation import Simulated, timed
from ffilab.measure.record import Record
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.measuring.experiment import BINDINGS, COPIES, ITSELF, KEPT, PAIRS, PROCESSES, REFERENCE, TALK
from notebooks.measuring.numbers import SEPARATED

INTERPRETERS = [GIL, FREE_THREADED]
# Of the logarithm of a kept process over the reference, over restarts; and of what core and moment do to all three. Seen in
# runs of `quick` (beside other load). TAILS: degrees of freedom of Student's t: the excess kurtosis seen was 5 to 10.
OWN, COMMON, TAILS = 0.03, 0.1, 5
# Restarts that the run makes at most for each restart of the budget (the cell of the copies).
SHORT_RESTARTS = 10
# A spread is positive, whatever sign an effect has.
SMALLEST = 0.2
COPIED = "share of A/A pairs that the talk's method calls significant"


def simulated(session: Simulated) -> None:
    for title, name, n in ((TALK, SEPARATED, PROCESSES), (ITSELF, COPIED, PAIRS)):
        rate = min(1.0, max(0.0, session.true("A5", name)))
        # Two copies: in half of the processes the second is measured first, which is the same to the test.
        more, orders = (
            ({}, [{"measured_first": 0}, {"measured_first": 1}]) if name == COPIED else ({"bindings": BINDINGS}, [{}])
        )
        count = len(more.get("bindings", (0, 1)))
        rows = [
            {"samples": [[(1 + 10 * one * event) + k for k in range(8)] for one in range(count)], **more}
            for event in session.events(rate, n)
        ]
        cases = [(GIL, factors, rows[number :: len(orders)]) for number, factors in enumerate(orders)]
        session.add_processes(title, cases)
    name = "spread of restarted processes over that of a kept one"
    # Many short restarts of one block: not what add_times makes.
    session._timed["copies"] = copies(session, max(SMALLEST, session.true("D7", name)))


def copies(session: Simulated, ratio: float) -> Record:
    """The plan `copies`: over the reference, the restarted process spreads `ratio` times as much as the kept one."""
    restarts = SHORT_RESTARTS * session.budget.restarts
    rng = session.rng
    # What the reference does is in both numbers, so that they go together.
    reference, kept, restarted = rng.standard_t(TAILS, (3, restarts)) * OWN / np.sqrt(2)
    # Without noise: the same draws, so that the ratio of spreads is the true one.
    own = {
        KEPT: reference + kept,
        COPIES[0]: ratio * (reference + (restarted if session.noise else kept)),
        REFERENCE: 0.0,
    }
    common = rng.normal(0, COMMON, restarts)
    return timed({arm: (common + value)[:, None] for arm, value in own.items()}, plan="copies", ns=100.0)
