"""What else than time a statement takes: memory, and instructions."""

import json
import random
import secrets

import numpy as np

from ffilab.judge import wording
from ffilab.judge.estimates import Location
from ffilab.measure import instructions
from ffilab.measure.case import answer
from ffilab.measure.workers import WORKER, described
from ffilab.run.errors import UserError
from ffilab.yours import pythons as known
from ffilab.yours.comparing import prepared, with_gil
from ffilab.yours.result import Result

PROCESSES = 10
# What a pass may take under callgrind, in ns without it, and in passes.
COUNTED_NS, MOST_COUNTED = 20_000_000, 12_000
# Where a set or dict keeps its texts follows from this.
HASH_SEEDS = range(5)
NO_SAY = "Instructions say nothing of caches, waiting, locks and branches."


class Beside:
    """The cells of a result, to look at again: by (label of a Python, arm)."""

    def __init__(self, arms: list, pythons: list, gil: str, result: Result):
        self._pythons = known.found(pythons)
        by_name = {arm.name: arm for arm in with_gil(prepared(arms), self._pythons, gil)}
        self._cells = [(label, by_name[name]) for label, name in result.cells]
        self._result = result

    def memory(self, seed: int | None = None) -> list[list[str]]:
        """A column of the peak of a process's resident memory, setup and one pass, and one of what Python's allocators
        give a pass at its peak (tracemalloc), in MiB. Raises UserError if a process ends early."""
        draw = random.Random(secrets.randbits(32) if seed is None else seed)
        found = {(cell, kind): [] for cell in range(len(self._cells)) for kind in ("resident", "traced")}
        for _ in range(PROCESSES):
            for cell, kind in draw.sample(list(found), len(found)):
                label, arm = self._cells[cell]
                # -I would ignore the variable.
                apart, environment = (["-s", "-P"], {"PYTHON_GIL": "1"}) if arm.gil else (["-I"], {})
                command = [self._pythons[label].python, *apart, WORKER, "memory", json.dumps(described(arm)), kind]
                said = answer(command, environment=environment, memory_bytes=None)
                if not isinstance(said.result, dict):
                    raise UserError(f"{arm.name!r} brought no memory ({said.ended}): {said.error.strip()[-200:]}")
                found[cell, kind].append(said.result["bytes"] / (1 << 20))
        columns = []
        for kind, heading in {"resident": "MiB resident, at the peak", "traced": "MiB traced, of a pass"}.items():
            values = [Location.of(np.array(found[cell, kind]), signed=False) for cell in range(len(self._cells))]
            columns.append([heading, *(wording.text(one.interval) for one in values)])
        return columns

    def instructions(self) -> list[list[str]]:
        """A column of the instructions of a pass, counted by callgrind in a process for each seed of the hashes. Raises
        UserError without valgrind, or if a process cannot make a statement."""
        jobs = []
        for (label, arm), time in zip(self._cells, self._result.times.values()):
            passes = int(COUNTED_NS / time.value) if time.is_known else 0
            loops = max(6, min(MOST_COUNTED, passes))
            jobs += [instructions.Job(self._pythons[label].python, [arm], [loops], seed) for seed in HASH_SEEDS]
        column = ["instructions of a pass"]
        counted = instructions.counted(jobs)
        for place, (label, arm) in enumerate(self._cells):
            of_arm = counted[place * len(HASH_SEEDS) :][: len(HASH_SEEDS)]
            if not all(of_arm):
                raise UserError(f"callgrind could not run {arm.name!r} on {label}: leave --instructions out.")
            of_seeds = np.array([by_arm[arm.name] for by_arm in of_arm])
            column.append(wording.text(Location.of(of_seeds, signed=False).interval))
        return [column]

    def table(self, columns: list[list[str]]) -> str:
        """Columns beside the names of what was compared."""
        columns = [["", *self._result.names], *columns]
        wide = [max(map(len, column)) for column in columns]
        return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(row, wide)).rstrip() for row in zip(*columns))
