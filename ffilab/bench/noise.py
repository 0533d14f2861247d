"""The noise rule: which blocks and restarts do not count, as other work took their core.

It was fixed before any time was seen, and never looks at a block's own time.
"""

from dataclasses import dataclass

# A tick of the steal clock is 10 ms.
MAX_STEAL_SHARE = 0.01
MAX_INVOLUNTARY_PER_S = 100


@dataclass(frozen=True)
class Noise:
    """What the noise rule decided. `blocks`: indices discarded; `restarts`: numbers kept; `report`: in words."""

    blocks: set[int]
    restarts: list[int]
    report: str


def noisy(block: dict, block_ns: float | None = None) -> bool:
    """Did the hypervisor or other processes take a noticeable part of this block? A made-up block may have no noise.

    block_ns: how long a block should last. A rule that scaled with what was timed would look at the time.
    """
    seconds = (block_ns or sum(block["ns"].values())) / 1e9
    switches = max(1, MAX_INVOLUNTARY_PER_S * seconds)
    return block.get("steal_s", 0) > MAX_STEAL_SHARE * seconds or block.get("involuntary", 0) > switches


def discard(blocks: list[dict], blocks_per_restart: int, block_ns: float | None = None) -> Noise:
    """Apply the noise rule.

    A noisy block is discarded. A restart that loses half of its blocks is discarded whole. If half of the restarts
    would go, the noise is the machine's normal state: then nothing is discarded, and the report says so.
    """
    if not blocks:
        return Noise(set(), [], "nothing: each run had a process of its own, and all of them count")
    members: dict[int, list[int]] = {}
    for number, block in enumerate(blocks):
        members.setdefault(block["restart"], []).append(number)
    complete = {r: numbers for r, numbers in members.items() if len(numbers) == blocks_per_restart}
    bad = {n for numbers in complete.values() for n in numbers if noisy(blocks[n], block_ns)}
    kept = [r for r, numbers in complete.items() if 2 * sum(n in bad for n in numbers) < len(numbers)]
    total = sum(map(len, complete.values()))
    if 2 * len(kept) <= len(complete):
        words = (
            f"{len(bad)} of {total} blocks were noisy; as this is the machine's normal state here, none was discarded"
        )
        return Noise(set(), list(complete), words)
    words = (
        f"{len(bad)} of {total} blocks and {len(complete) - len(kept)} of {len(complete)} restarts discarded as noisy"
    )
    return Noise(bad, kept, words)
