"""The exercises of the chapter "The GIL convoy": who waits for a switch interval, and a server to repair."""

import pandas as pd

from ffilab.measure.session import Session
from ffilab.setup.catalogue import GIL
from notebooks.convoy.experiment import DEFAULT_S, answered
from notebooks.convoy.results import done

# What the check of each exercise prints when it is solved.
SOLVED = {
    "convoy-waits": r"\A(.*: right; .*\n){5}\Z",
    "convoy-server": r"^Correct, and fast\.\n\Z",
}

GOAL_P99_US, GOAL_WORK = 2_000, 0.2
# The cases of the first exercise.
ASKED = (
    "1 CPU thread, client apart",
    "1 CPU process",
    "1 sub-interpreter",
    "native code without the GIL",
    "asyncio server, 1 CPU thread",
)


def check_waits(waits: dict[str, bool | None], runs: pd.DataFrame) -> list[str]:
    """Does a request wait for a switch interval? True or False by case, against this run: the median over processes of p50, at
    least half an interval or not.

    Returns what to say, one line for each case.
    """
    lines = []
    for case in ASKED:
        found = pd.to_numeric(done(runs, interpreter=GIL, case=case).p50).dropna()
        said = waits.get(case)
        if said is None:
            lines.append(f"{case}: choose True or False.")
        elif not len(found):
            lines.append(f"{case}: this run has no median for it.")
        else:
            took = found.median() / 1e6 / DEFAULT_S
            right = bool(said) == (took >= 0.5)
            lines.append(
                f"{case}: {'right' if right else 'not so'}; its median request takes {took * DEFAULT_S * 1e3:.3g} ms, "
                f"and the switch interval is {DEFAULT_S * 1e3:g} ms."
            )
    return lines


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
    found = pd.DataFrame([{name: one["result"][name] for name in ("p99", "rate", "work")} for one in servers])
    if found.isna().any(axis=None):
        return ["Too few requests for a p99: the server is too slow for the seconds that it was given."]
    found = found.astype(float).median()
    lines = [
        f"p99 {found.p99 / 1e3:.2f} ms, {found.rate:,.0f} requests a second; the CPU work runs at {found.work:.0%}."
    ]
    if found.work < GOAL_WORK:
        return [*lines, f"Not correct: the CPU work must keep at least {GOAL_WORK:.0%} of its speed."]
    if found.p99 > GOAL_P99_US:
        return [*lines, f"Not fast: the goal is a p99 below {GOAL_P99_US / 1e3:g} ms."]
    return [*lines, "Correct, and fast."]
