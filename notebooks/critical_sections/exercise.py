"""The exercise of the chapter "Critical sections": its self-check, a stress test first and then the price."""

from ffilab.bench.record import Record
from ffilab.bench.session import Session
from ffilab.provision.catalogue import FREE_THREADED
from notebooks.critical_sections import experiment, results
from notebooks.critical_sections.experiment import PIECES

COUNTERS = [name for name, increments in PIECES.items() if increments]
SAFE = [name for name in COUNTERS if name != "no lock"]


def check_lock(lock: str, session: Session, record: Record) -> list[str]:
    """Without the GIL: correct first, then cheap. Returns what to say, one line each."""
    if lock not in COUNTERS:
        return [f"Still open. Choose one of: {'; '.join(COUNTERS)}."]
    found = experiment.stress(session, lock)
    if found["value"] != found["expected"]:
        lost = found["expected"] - found["value"]
        return [f"Not correct: {lost:,} of {found['expected']:,} increments were lost."]
    if lock not in SAFE:
        return ["Nothing was lost this time. That proves nothing: run it again, and look at the code."]
    price = {name: results.piece_cost(record, FREE_THREADED, name).value / PIECES[name] for name in SAFE}
    best = min(SAFE, key=price.get)
    lines = [f"Correct: all {found['expected']:,} increments are there."]
    if price[lock] <= 1.1 * price[best]:
        return [*lines, f"Fast: {price[lock]:.2f} ns an increment; nothing safe is cheaper here."]
    return [*lines, f"Not yet the cheapest: {price[lock]:.2f} ns an increment; {price[best]:.2f} ns can be had."]
