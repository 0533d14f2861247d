"""A neighbour on the same core: something that runs on its other hardware thread, and that no clock of this system
counts.

On a virtual machine it is another machine's; on a machine of one's own it may be one's browser. It slows what lives on
the core's width more than what waits for one result after the other, and so it changes ratios too: what a run says
would depend on how busy the neighbour was in its minutes. A probe, always the same loop, before, between and behind the
parts of each batch tells how much of the batch had such company (worker.py). A batch that had company is left out.

What is quiet is found for each core, restart and arm: a slow core, a clock that falls and an arm that slows its own
probes are no company. A restart that had company from end to end is told by what the same core does later, once it is
quiet.
"""

from typing import NamedTuple

import numpy as np

# A probe that takes so many times as long as on a quiet core has company. Layouts and clock rates move it by less.
BUSY = 1.3
# This quantile of the probes of one arm in one restart counts as quiet.
QUIET = 0.05
# Share of its work that a batch may have had company: one end of its first or last part.
MOST = 1 / 8


def shares(blocks: list[dict], cells: list[str], cores: dict[int, int | None]) -> dict[str, np.ndarray]:
    """Of each cell ("interpreter/arm"): the share of its work in each block that had company. 0 where there are no
    probes.

    cores: the core of each restart, by its number, where it was kept on one.
    """
    busy_shares = {cell: np.zeros(len(blocks)) for cell in cells}
    # Session, core and cell to the numbers of its blocks; within a session all its batches have as many probes.
    where: dict[tuple, list[int]] = {}
    for number, block in enumerate(blocks):
        for cell in block.get("probes", {}):
            if cell in busy_shares:
                where.setdefault((block.get("session", 0), cores.get(block["restart"]), cell), []).append(number)
    for (_, _, cell), numbers in where.items():
        times = np.array([blocks[number]["probes"][cell] for number in numbers], dtype=float)
        busy = times > BUSY * levels(times, np.array([blocks[number]["restart"] for number in numbers]))[:, None]
        busy_shares[cell][numbers] = (busy[:, 1:].mean(axis=1) + busy[:, :-1].mean(axis=1)) / 2
    return busy_shares


def levels(times: np.ndarray, restarts: np.ndarray) -> np.ndarray:
    """What a probe takes on the quiet core, for each batch (row) of one arm on one core, in the order of measuring.

    In each restart its fastest twentieth; but not more than in any later one. Company at the very end cannot be told
    from a clock that fell.
    """
    known, each = np.unique(restarts, return_inverse=True)
    fastest = np.array([np.quantile(times[each == number], QUIET) for number in range(len(known))])
    return np.minimum.accumulate(fastest[::-1])[::-1][each]


def discarded(company: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Which batches of each cell count for nothing, as their core had company."""
    return {cell: share > MOST for cell, share in company.items()}


def company_in_words(blocks: list[dict], company: dict[str, np.ndarray]) -> str:
    """Describe what became of the batches; empty where nothing is known of company."""
    if not any("probes" in block for block in blocks):
        return ""
    left_out = float(np.mean(list(discarded(company).values()))) if company else 0.0
    return f"{left_out:.0%} of all batches left out, as something else ran on the same core"


class Unequal(NamedTuple):
    """How much more often one cell's batches are left out than those of the others in the same restarts.

    more: its share less theirs. error: standard error of that, over n restarts (blocks of one are not independent).
    """

    cell: str
    more: float
    error: float
    n: int


def unequal(left_out: dict[str, np.ndarray], restarts: np.ndarray) -> list[Unequal]:
    """Compare how often each cell is left out; empty where there is nothing to compare.

    left_out: as from `discarded`. restarts: the restart of each block. A cell that is left out more often than the
    others is not compared at the same moments as they are: its numbers may be biased.
    """
    known = np.unique(restarts)
    if len(left_out) < 2 or len(known) < 2:
        return []
    by_restart = np.array([[row[restarts == restart].mean() for restart in known] for row in left_out.values()])
    apart = by_restart - (by_restart.sum(axis=0) - by_restart) / (len(by_restart) - 1)
    errors = apart.std(axis=1, ddof=1) / np.sqrt(len(known))
    return [
        Unequal(cell, float(row.mean()), float(error), len(known)) for cell, row, error in zip(left_out, apart, errors)
    ]
