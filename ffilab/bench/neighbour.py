"""A neighbour on the same core: something that runs on its other hardware thread, and that no clock of this system counts.

On a virtual machine it is another machine's; on a machine of one's own it may be one's browser. It slows what lives on the
core's width more than what waits for one result after the other, and so it changes ratios too: what a run says would depend on
how busy the neighbour was in its minutes. A probe, always the same loop, before, between and behind the parts of each batch
tells how much of the batch had such company (bench/worker.py). A batch that had company is discarded.
"""

import numpy as np

# A probe that takes so many times as long as on a quiet core has company. Layouts and clock rates move it by less.
BUSY = 1.3
# This quantile of an interpreter's probes counts as quiet. A core that has company nearly always cannot be told from a quiet one.
QUIET = 0.02
# Share of its work that a batch may have had company: one end of its first or last part.
MOST = 1 / 8
# With fewer quiet batches than this, company is the normal state of the core, and none is discarded.
FEWEST = 0.1


def shares(blocks: list[dict], cells: list[str]) -> dict[str, np.ndarray]:
    """Of each cell ("interpreter/arm"): the share of its work in each block that had company. 0 where there are no probes.

    What counts as quiet is found for each session and interpreter, from all its probes.
    """
    busy_shares = {cell: np.zeros(len(blocks)) for cell in cells}
    # Session, interpreter and cell to the numbers of its blocks; within a session all its batches have as many probes.
    where: dict[tuple, list[int]] = {}
    for number, block in enumerate(blocks):
        for cell in block.get("probes", {}):
            where.setdefault((block.get("session", 0), cell.split("/")[0], cell), []).append(number)
    probes = {key: np.array([blocks[number]["probes"][key[2]] for number in numbers]) for key, numbers in where.items()}
    for level in dict.fromkeys(key[:2] for key in probes):
        of_level = {key: times for key, times in probes.items() if key[:2] == level}
        limit = BUSY * float(np.quantile(np.concatenate([times.ravel() for times in of_level.values()]), QUIET))
        for key, times in of_level.items():
            if key[2] in busy_shares:
                busy = times > limit
                busy_shares[key[2]][where[key]] = (busy[:, 1:].mean(axis=1) + busy[:, :-1].mean(axis=1)) / 2
    return busy_shares


def discarded(company: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Which batches of each cell count for nothing, as their core had company; none of all, if that is its normal state."""
    is_normal = quiet(company) < FEWEST
    return {cell: (share > MOST) & (not is_normal) for cell, share in company.items()}


def quiet(company: dict[str, np.ndarray]) -> float:
    """Share of all batches that had no company worth the name."""
    return float(np.mean([share <= MOST for share in company.values()])) if company else 1.0


def said(blocks: list[dict], company: dict[str, np.ndarray]) -> str:
    """What became of the batches, in words; empty where nothing is known of company."""
    if not blocks or not any("probes" in block for block in blocks):
        return ""
    kept = quiet(company)
    if kept < FEWEST:
        return (
            f"on {1 - kept:.0%} of all batches something else ran on the same core; as this is its normal state here, none of "
            "them was discarded, and what is said holds for a core with company"
        )
    return f"{1 - kept:.0%} of all batches discarded as something else ran on the same core"
