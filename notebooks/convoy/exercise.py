"""The exercise of the chapter "The GIL convoy": what a reader may change about the server, and what must come out."""

import pandas as pd

from ffilab.bench.session import Session
from notebooks.convoy.experiment import DEFAULT_S, answered

GOAL_P99_US, GOAL_WORK = 2_000, 0.2


def check_server(
    session: Session, kind: str = "threads", interval: float = DEFAULT_S, server: str = "threads"
) -> list[str]:
    """Does the CPU work still run, and is the p99 below the goal? The median of three servers decides.

    Returns what to say, one line each.
    """
    if kind not in ("threads", "processes", "interpreters", "native") or server not in ("threads", "asyncio"):
        return ["Choose kind from threads, processes, interpreters, native, and server from threads, asyncio."]
    if not 1e-6 <= interval <= 1:
        return ["Choose an interval between 0.000001 and 1 second."]
    servers = answered(session, kind, interval, server)
    for one in servers:
        if one["result"] is None:
            return [f"The server did not come back: {one['ended']}. {one['error'].strip()}"]
    found = pd.DataFrame([{name: one["result"][name] for name in ("p99", "rate", "work")} for one in servers]).median()
    lines = [
        f"p99 {found.p99 / 1e3:.2f} ms, {found.rate:,.0f} requests a second; the CPU work runs at {found.work:.0%}."
    ]
    if found.work < GOAL_WORK:
        return [*lines, f"Not correct: the CPU work must keep at least {GOAL_WORK:.0%} of its speed."]
    if found.p99 > GOAL_P99_US:
        return [*lines, f"Not fast: the goal is a p99 below {GOAL_P99_US / 1e3:g} ms."]
    return [*lines, "Correct, and fast."]
