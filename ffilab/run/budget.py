"""How long to measure: smoke, room, quick or full."""

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from ffilab.run import settings


@dataclass(frozen=True)
class Budget:
    """Limits for one chapter.

    restarts: worker restarts.
    blocks: randomised blocks inside a restart, at most; many arms or kernels share `seconds`.
    seconds: what one plan may take for its batches.
    batch_ms: length of one timed batch: short, so that many fall between the visits of a neighbour
    (measure/neighbour.py).
    scale: factor on the loop counts of the authors' own experiments.
    repeats: repetitions of experiments that run in fresh child processes.
    layouts: links of each interpreter, the unit of analysis; fewer than restarts, so that some come twice and show what
    a
        restart alone changes.
    builds: builds of each interpreter that the layouts are linked from, if it is compiled here.
    least: repetitions at least, where there are many cases; three is the fewest that an interval can be made of.
    chapter_s: what a chapter takes on the whole with its page, on two cores: to say at the start how long the book will
    take.
    shares: processes at least where it is asked how often something happens: none of thirty excludes that it does in 15
    %.
    """

    name: str
    restarts: int
    blocks: int
    seconds: float
    batch_ms: float
    scale: float
    repeats: int
    layouts: int = 18
    builds: int = 1
    least: int = 5
    chapter_s: float = 0
    shares: int = 30

    @property
    def is_result(self) -> bool:
        """False for a smoke test, whose figures prove that the code runs and nothing else."""
        return self.name != "smoke"

    @property
    def few(self) -> int:
        """Repetitions where there are many cases; enough for an interval, except in a smoke test."""
        return max(self.least, self.repeats // 2) if self.is_result else 1


BUDGETS = {
    name: Budget(name, **sizes)
    for name, sizes in tomllib.loads(Path(__file__).with_name("budgets.toml").read_text(encoding="utf-8")).items()
}


def current() -> Budget:
    """The budget of the environment variable BUDGET; quick if it is not set."""
    return BUDGETS[os.environ.get(settings.BUDGET) or "quick"]
