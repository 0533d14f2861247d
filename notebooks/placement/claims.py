"""What the chapter "Code placement" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from ffilab.provision.catalogue import GIL
from notebooks.placement import results
from notebooks.placement.lottery import BY_PROFILE, linked_how, profiled_how
from notebooks.placement.story import PROGRAMS

# The benchmark of the document, and the build that stands for its CPython: that of 2016 had the GIL. The other is on the page.
BENCHMARK, BUILD = "call_method", GIL


def measurements(session: Session) -> Handed:
    handed = Handed(session.corner)
    times, names = session.frame("the small machine"), list(PROGRAMS)
    counts = results.table(session.observed("instructions and misses of the small machine", names))
    stalls = session.observed("hardware counters of the small machine", names, session.budget.repeats)
    profile = session.observed("profiles of call_method", *profiled_how(session))
    linked = session.observed("linking", *linked_how(session, BUILD))
    duels = results.of_build(session.frame("relink lottery"), BUILD)

    handed.put("D1", "slow / fast, a change that never runs", results.ratio(times, "slow", "fast"))
    lacking = linked["lacking"]
    apart = lacking or Measurement(results.true_spread(duels, BENCHMARK), "ratio")
    handed.put("D1", "slowest / fastest random order, call_method", apart)

    instructions, misses = (results.counted_ratio(counts, what) for what in ("instructions", "misses"))
    handed.put("D2", "instructions, slow / fast (simulated)", instructions)
    handed.put("D2", "stalled front-end cycles, slow / fast (counted)", results.stalls_ratio(stalls))
    handed.put("D3", "misses of the instruction cache, slow / fast (simulated)", misses)
    handed.put("D4", "share of the five hottest functions, call_method", results.five_hottest(profile))
    handed.put(
        "D5", "share of bisections that blame the unrelated commit", results.blaming(session.frame("git bisect"))
    )

    handed.put("D6", "slow / hot, the same commit with hot functions together", results.ratio(times, "slow", "hot"))
    hot = lacking or linked["absent"].get(BY_PROFILE) or results.over_orders(duels, BENCHMARK, BY_PROFILE)
    handed.put("D6", "hot functions together / the middle random order, call_method", hot)
    return handed
