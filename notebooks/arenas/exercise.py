"""The exercises of the chapter "Arenas": pairs of conditions to choose, and a service to tune. Their self-checks."""

import pandas as pd

from ffilab.measure.session import Session
from notebooks.arenas import experiment, results
from notebooks.arenas.experiment import AS_RUN, CONDITIONS, HUGE_NONE, MEET, NONE, RELEASED

# What the check of each exercise prints when it is solved.
SOLVED = {"which-control": r"\A(.* Right\.\n){3}\Z", "growing-service": r"Small, and fast enough\.\n\Z"}

# Which two conditions differ in nothing but what is asked about.
PAIRS = {
    "What do the native threads add?": {AS_RUN, NONE},
    "What do huge pages add, without any native thread?": {HUGE_NONE, NONE},
    "What does letting the other calls in add?": {RELEASED, MEET},
}
GOAL_MEMORY, GOAL_RATE = 0.5, 0.5


def check_pairs(pairs: dict[str, tuple[str, str]]) -> list[str]:
    """Does each pair answer its question? Returns what to say, a line for each question."""
    lines = []
    for question, right in PAIRS.items():
        chosen = set(pairs.get(question, ()))
        if unknown := sorted(chosen - set(CONDITIONS)):
            lines.append(f"{question} There is no condition {unknown[0]!r}.")
        elif len(chosen) < 2:
            lines.append(f"{question} Not there: a difference takes two conditions that are not the same.")
        elif chosen != right:
            lines.append(f"{question} Not there: these two do not differ in this, or in more than this.")
        else:
            lines.append(f"{question} Right.")
    return lines


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
