"""What the sentences of the chapter "Where threads run" name and no form can say: a list by verdict."""

from collections.abc import Callable

from ffilab.judge import ledger
from ffilab.judge.rules import NO, YES
from ffilab.judge.wording import listed
from ffilab.measure.session import Session
from ffilab.setup.catalogue import FREE_THREADED, GIL

GAINS = {
    "throughput of native code with the GIL": f"throughput of a native call in two threads, a core each / not pinned: {GIL}",
    "throughput of Python without the GIL": f"throughput of Python in two threads, a core each / not pinned: {FREE_THREADED}",
    "tails with the GIL": f"p99 beside a Python thread, not pinned / a core each: {GIL}",
    "tails without the GIL": f"p99 beside a Python thread, not pinned / a core each: {FREE_THREADED}",
}


def fragments(session: Session) -> dict[str, Callable[[], str]]:
    return {"takeaway": lambda: takeaway(ledger.sides(session))}


def takeaway(answers: dict[tuple[str, str], str]) -> str:
    """For what pinning pays, by the verdicts of the rules."""
    gains = {what: answers["A24a", name] for what, name in GAINS.items()}
    parts = {
        "it pays for": [what for what, verdict in gains.items() if verdict == YES],
        "it does not pay for": [what for what, verdict in gains.items() if verdict == NO],
        "it cannot be told for": [what for what, verdict in gains.items() if verdict not in (YES, NO)],
    }
    said = "; ".join(f"{which} {listed(whats)}" for which, whats in parts.items() if whats)
    return f"Pinning each thread to a core of its own, here: {said}."
