"""`python3 ffilab/bootstrap.py study calibration`: what the instrument's intervals and controls are worth.

Its parts, chosen by `--part`, each with what it keeps in book/evidence:

sessions  how often an interval holds what another session or build says (sessions.json, calibration.json)
levels    how much builds, layouts, sessions and restarts add to the scatter of a ratio (levels.json)
loads     how often a run withholds what it measured, idle and beside other work (withholding.json)
"""

import importlib

PARTS = ("sessions", "levels", "loads")


def main(budget: str, part: str = "sessions", **how) -> None:
    """Run a part. how: what it takes further, as the number of sessions."""
    importlib.import_module(f"{__name__}.{part}").main(budget, **how)
