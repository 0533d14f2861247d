"""A neighbour on the same core: something that runs on its other hardware thread, and that no clock of this system counts.

On a virtual machine it is another machine's; on a machine of one's own it may be one's browser. It slows what lives on the
core's width more than what waits for one result after the other, and so it changes ratios too. A probe, always the same loop,
before, between and behind the parts of each batch tells how much of the batch had such company (bench/worker.py). The time of
a batch is then quiet time × (1 + slowdown × share), and the slowdown of each arm is fitted from its own batches.
"""

import math
from dataclasses import dataclass

import numpy as np

# A probe that takes so many times as long as on a quiet core has company. Layouts and clock rates move it by less.
BUSY = 1.3
# This quantile of an interpreter's probes counts as quiet. A core that has company nearly always cannot be told from a quiet one.
QUIET = 0.02
# Below this share of a cell's work nothing is corrected: there is too little to learn the slowdown from, and to correct.
FEW = 0.01


@dataclass(frozen=True)
class Corrected:
    """The times of one cell on a quiet core, shape (restarts, blocks), and how well the correction is known.

    company: share of the cell's work that had company. slowdown: what company adds to its time, as a share of it. scores: by
    how much each restart pulls the slowdown, shape (restarts,).
    """

    times: np.ndarray
    company: float
    slowdown: float
    scores: np.ndarray

    @property
    def slowdown_error(self) -> float:
        """Standard error of the slowdown."""
        return error(self.scores)

    @property
    def pulls(self) -> np.ndarray:
        """By how much each restart pulls the logarithm of all times, through the slowdown; shape (restarts,).

        The pulls of cells that lie side by side in a block are alike, and go off against each other in a ratio.
        """
        return self.scores * self.company / (1 + self.slowdown * self.company)


def shares(blocks: list[dict], cells: list[str]) -> dict[str, np.ndarray]:
    """Of each cell ("interpreter/arm"): the share of its work in each block that had company. 0 where there are no probes.

    What counts as quiet is found for each session and interpreter, from all its probes.
    """
    found = {cell: np.zeros(len(blocks)) for cell in cells}
    probes: dict[tuple, list[int]] = {}
    for block in blocks:
        for cell, each in block.get("probes", {}).items():
            probes.setdefault(_level(block, cell), []).extend(each)
    limits = {level: BUSY * float(np.quantile(each, QUIET)) for level, each in probes.items()}
    for number, block in enumerate(blocks):
        for cell, each in block.get("probes", {}).items():
            if cell in found:
                busy = np.array(each) > limits[_level(block, cell)]
                found[cell][number] = (busy[1:].mean() + busy[:-1].mean()) / 2
    return found


def _level(block: dict, cell: str) -> tuple:
    """What shares one quiet level: the session, and the interpreter that runs the probe."""
    return block.get("session", 0), cell.split("/")[0]


def corrected(times: np.ndarray, share: np.ndarray) -> Corrected:
    """Take the neighbour out of the times of one cell, both of shape (restarts, blocks); NaN where nothing was measured.

    A straight line within restarts, as a layout has a level of its own; its standard error by restarts, as each may have a
    slope of its own (Liang and Zeger 1986).
    """
    known = ~np.isnan(times)
    share = np.where(known, share, np.nan)
    restarts, company = int(known.any(axis=1).sum()), float(np.nanmean(share)) if known.any() else 0.0
    if company < FEW or restarts < 3:
        return Corrected(times, company, 0.0, np.zeros(len(times)))
    apart = share - _mean(share)
    squares = float(np.nansum(apart**2))
    if not squares:
        return Corrected(times, company, 0.0, np.zeros(len(times)))
    slope = 0.0
    for _ in range(10):
        relative = times / _median(times / (1 + slope * share))
        new = float(np.nansum(apart * relative)) / squares
        slope, moved = max(new, 0.0), abs(max(new, 0.0) - slope)
        if moved < 1e-4:
            break
    rest = relative - _mean(relative) - slope * apart
    return Corrected(times / (1 + slope * share), company, slope, np.nansum(apart * rest, axis=1) / squares)


def error(pulls: np.ndarray) -> float:
    """Standard error from what each restart pulls (in one cell, or in several, added up with their signs)."""
    restarts = len(pulls)
    return math.sqrt(float((pulls**2).sum()) * restarts / (restarts - 1)) if restarts > 1 else 0.0


def _mean(values: np.ndarray) -> np.ndarray:
    """Of each restart that has one."""
    return np.array([[np.nanmean(row)] if not np.isnan(row).all() else [np.nan] for row in values])


def _median(values: np.ndarray) -> np.ndarray:
    return np.array([[np.nanmedian(row)] if not np.isnan(row).all() else [np.nan] for row in values])


def said(blocks: list[dict]) -> str:
    """How much company the measured core had, in words; empty where nothing is known of it."""
    cells = list(blocks[0].get("probes", {})) if blocks else []
    if not cells:
        return ""
    share = float(np.mean(list(shares(blocks, cells).values())))
    if share < FEW:
        return "the core had no company that the probes could see"
    return f"in {share:.0%} of the work something else ran on the same core: times are corrected to a quiet one"
