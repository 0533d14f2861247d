"""`python3 ffilab/bootstrap.py study coverage --sessions 12`: intervals against what other sessions and builds say.

A session links new layouts of every build, and measures each ratio on all of them, and on one binary beside them. It
takes four minutes, and is put behind those that are kept in book/evidence/sessions.json: on any day, as often as one
likes; one that was interrupted leaves nothing. The values of single layouts are kept, so that ffilab.judge.coverage
judges them by the estimator of now.
"""

import secrets
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ffilab.judge import statistics
from ffilab.run import machine
from ffilab.run.budget import BUDGETS
from ffilab.run.progress import say, step
from ffilab.setup import layout_pool
from studies import kept
from studies.levels import BUILDS, PAIR, compiled, ratios, timed

SESSIONS = {"smoke": 1, "room": 1, "quick": 1, "full": 12}


@dataclass(frozen=True)
class Size:
    """How much a session measures. layouts: of each build. restarts: of one binary. blocks: of each restart."""

    builds: int = BUILDS
    layouts: int = 16
    restarts: int = 12
    blocks: int = 6


SMALLEST = Size(builds=1, layouts=3, restarts=3, blocks=4)


def session(folder: Path, number: int, size: Size) -> dict:
    """Measure one session. number: of the session; the binary is linked from another build each time."""
    began, builds = time.monotonic(), list(range(1, size.builds + 1))
    pool = layout_pool.make(folder / "layouts", list(PAIR), size.builds * size.layouts, secrets.randbits(32), builds)
    linked = time.monotonic()
    binary = {label: [layouts[number % size.builds]] for label, layouts in pool.items()}
    over = timed(folder, "over-layouts", PAIR, pool, size.builds * size.layouts, size.blocks)
    alone = timed(folder, "one-binary", PAIR, binary, size.restarts, size.blocks)
    found = {}
    for name, cells in ratios(PAIR).items():
        logs = statistics.log_ratios(over, *cells)
        by_build = {build: [log for log, unit in zip(logs, over.kept) if unit.build == build] for build in builds}
        found[name] = {
            "layouts": {str(build): finite(values) for build, values in by_build.items()},
            "binary": finite(statistics.log_ratios(alone, *cells)),
            "company": round(float(np.mean([over.company["/".join(cell)].mean() for cell in cells])), 3),
        }
    seconds = {"linking": round(linked - began), "measuring": round(time.monotonic() - linked)}
    return {"machine": machine.facts(), "binary": number % size.builds + 1, "seconds": seconds, "ratios": found}


def finite(logs) -> list[float]:
    """What was measured, to six digits: a layout all of whose batches had company says nothing."""
    return [round(float(log), 6) for log in logs if np.isfinite(log)]


def main(budget: str, sessions: int | None = None) -> None:
    """Add sessions to those that are kept; the builds that are not there are compiled first, five minutes each."""
    size = Size() if BUDGETS[budget].is_result else SMALLEST
    compiled(size.builds)
    path, count = kept.file("sessions", budget), sessions or SESSIONS[budget]
    for number in range(count):
        before = kept.read_sessions(path)
        layout_pool.POOLS.parent.mkdir(parents=True, exist_ok=True)
        with (
            step(f"session {number + 1} of {count}"),
            tempfile.TemporaryDirectory(dir=layout_pool.POOLS.parent) as scratch,
        ):
            kept.write_sessions(path, [*before, session(Path(scratch), len(before), size)])
        say(f"  {len(before) + 1} sessions are kept in {path.name}")
