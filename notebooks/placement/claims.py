"""What the chapter "Code placement" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.ledger import Handed
from ffilab.judge.processes import exact
from notebooks.placement import results
from notebooks.placement.lottery import size
from notebooks.placement.story import PROGRAMS


def measurements(session: Session) -> Handed:
    handed = Handed(session.corner)
    times, names = session.frame("the small machine"), list(PROGRAMS)
    counts = results.table(session.observed("instructions and misses of the small machine", names))
    stalls = results.stalls_ratio(session.observed("hardware counters of the small machine", names))
    profile = session.observed("profile of call_method", size(session).rounds)
    bisections = session.frame("git bisect")

    handed.put("D1", "slow / fast, a change that never runs", results.ratio(times, "slow", "fast"))
    instructions, misses = (results.counted_ratio(counts, what) for what in ("instructions", "misses"))
    handed.put("D2", "instructions, slow / fast (simulated)", instructions)
    handed.put("D2", "stalled front-end cycles, slow / fast (counted)", stalls)
    handed.put("D3", "misses of the instruction cache, slow / fast (simulated)", misses)
    handed.put("D4", "share of the five hottest functions, call_method", results.five_hottest(profile))
    handed.put("D5", "share of bisections that blame the unrelated commit", exact(bisections.found.mean(), "share"))
    together = results.ratio(times, "slow", "hot")
    handed.put("D6", "slow / hot, the same commit with hot functions together", together)
    return handed
