"""The exercise of the chapter "Arenas": its self-check, which runs the service."""

import pandas as pd

from ffilab.bench.session import Session
from notebooks.arenas import experiment, results

GOAL_MEMORY, GOAL_RATE = 0.5, 0.5


def check_tunables(session: Session, tunables: str) -> list[str]:
    """Memory first, then throughput, against the same service without any setting. Returns what to say, one line each."""
    found = {}
    for whose, runs in experiment.service(session, tunables).items():
        for run in runs:
            if run["rows"] is None:
                return [f"The service did not come back: {run['ended']}. {run['error'].strip()}"]
        rows = [{"process": number, **row} for number, run in enumerate(runs) for row in run["rows"]]
        found[whose] = results.grown(pd.DataFrame(rows))[["grown", "blocks_per_second"]].median()
    mine, theirs = found["yours"], found["nothing"]
    lines = [f"The service holds {mine.grown:.1f} MiB more than at its start; without a setting {theirs.grown:.1f}."]
    if mine.grown > theirs.grown * GOAL_MEMORY:
        return [*lines, f"Not there: aim at less than {GOAL_MEMORY:.0%} of that."]
    rates = mine.blocks_per_second, theirs.blocks_per_second
    lines.append(f"It does {rates[0]:,.0f} blocks a second; without a setting {rates[1]:,.0f}.")
    if rates[0] < GOAL_RATE * rates[1]:
        return [*lines, f"Small, and too slow: keep at least {GOAL_RATE:.0%} of the rate."]
    return [*lines, "Small, and fast enough."]
