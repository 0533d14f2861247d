"""Which blocks and processes were disturbed: told by what happened meanwhile, never by what was measured.

What was disturbed is measured again at the end of its run (runner.py, session.py); what stays disturbed is left out,
and counted. If that would be more than half of all, nothing is left out: a number has to exist to be shown, and the
controls withhold it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ffilab.measure import neighbour

# Five ticks of the system's clocks: one or two come from their grain.
LEAST_S = 0.05
# Share of the time that passed: of others on the CPUs that the measured one may use (if these are more than two, of
# each pair of
# them: elsewhere others are in nobody's way); of a quota or a hypervisor, which took them away.
MAX_STRANGERS, MAX_TAKEN = 0.15, 0.02
# On the core's other hardware thread, for which there is no clock (neighbour.py). Of a plan each batch is looked at.
NEIGHBOUR = "a neighbour"


class Disturbed(NamedTuple):
    """How many blocks or processes were measured again, how many are left out, and how many were planned."""

    again: int
    left_out: int
    planned: int

    @property
    def is_most(self) -> bool:
        """Did more than half stay disturbed? Then none is left out."""
        return 2 * self.left_out > self.planned


@dataclass(frozen=True)
class Noise:
    """What becomes of a plan's blocks. `blocks`: indices left out; `restarts`: numbers that count; `report`: in
    words."""

    blocks: set[int]
    restarts: list[int]
    report: str


def disturbed(line: dict) -> str:
    """Say what disturbed a block or a process: "other load", "quota", "stolen time", "a neighbour", or nothing. What a
    line lacks did not happen."""
    for word, seconds, share in (
        ("other load", "strangers_s", MAX_STRANGERS * max(1.0, line.get("cpus", 1) / 2)),
        ("quota", "throttled_s", MAX_TAKEN),
        ("stolen time", "steal_s", MAX_TAKEN),
    ):
        took = line.get(seconds, 0.0)
        if took >= LEAST_S and took > share * line.get("wall_s", 0.0):
            return word
    return NEIGHBOUR if line.get("company", 0.0) > neighbour.MOST else ""


def most_frequent(lines: Iterable[dict]) -> str:
    """Return the word for what disturbed most of these lines; empty if nothing did."""
    words = Counter(word for line in lines if (word := disturbed(line)))
    return words.most_common(1)[0][0] if words else ""


def counted(blocks: list[dict]) -> Disturbed:
    """Count the blocks of a plan. One that was measured again takes the place of any that was disturbed."""
    again = [block for block in blocks if block.get("again")]
    repaired = sum(not disturbed(block) for block in again)
    lost = sum(bool(disturbed(block)) for block in blocks if not block.get("again"))
    return Disturbed(len(again), max(0, lost - repaired), len(blocks) - len(again))


def of_places(places: list[list[dict]]) -> Disturbed:
    """Count the processes of an experiment: of each place the planned one, and what was measured again for it."""
    lost = sum(all(map(disturbed, tries)) for tries in places)
    return Disturbed(sum(map(len, places)) - len(places), lost, len(places))


def disturbed_in_words(found: Disturbed, word: str, what: str) -> str:
    """Describe what was disturbed. what: "blocks", "processes"; word: what disturbed most of them."""
    if not found.again and not found.left_out:
        return f"none of {found.planned} {what} was disturbed"
    if found.is_most and word == NEIGHBOUR:
        shown = "more than half; of each case the quieter half is shown"
        return f"{found.left_out} of {found.planned} {what} stayed disturbed, {shown}: {word}"
    if found.is_most:
        return f"{found.left_out} of {found.planned} {what} stayed disturbed, more than half, and all are shown: {word}"
    why = f": {word}" if word else ""
    return f"{found.again} of {found.planned} {what} were measured again, {found.left_out or 'none'} left out{why}"


def discard(blocks: list[dict], complete: list[int]) -> Noise:
    """Leave out the disturbed blocks of complete restarts, and restarts of which nothing is left."""
    if not blocks:
        return Noise(set(), [], "nothing: each run had a process of its own, and all of them count")
    found = counted(blocks)
    left_out = set() if found.is_most else {number for number, block in enumerate(blocks) if disturbed(block)}
    kept = {block["restart"] for number, block in enumerate(blocks) if number not in left_out}
    report = disturbed_in_words(found, most_frequent(blocks), "blocks")
    return Noise(left_out, [restart for restart in complete if restart in kept], report)
