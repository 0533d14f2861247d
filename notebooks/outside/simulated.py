"""Made-up records of the chapter "Calls from outside", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated


def simulated(session: Simulated) -> None:
    of_states(session)
    of_waiting(session)
    of_crossings(session)


def of_states(session: Simulated) -> None:
    """Thread states and the way in."""


def of_waiting(session: Simulated) -> None:
    """Who waits for whom."""


def of_crossings(session: Simulated) -> None:
    """What may cross."""
