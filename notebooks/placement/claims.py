"""What the chapter "Code placement" hands in to the ledger, from its records alone. The rules: claims.toml."""

from ffilab.bench.session import Session
from ffilab.judge.controls import Control
from ffilab.judge.estimates import Measurement
from ffilab.judge.ledger import Handed
from notebooks.placement import results
from notebooks.placement.experiment import Cache
from notebooks.placement.lottery import BENCHMARKS, BUILDS, BY_PROFILE, linked_how, missed_how, profiled_how
from notebooks.placement.story import PROGRAMS

# The benchmark of the document.
BENCHMARK = "call_method"


def controls(session: Session) -> list[Control]:
    """The lottery's own A/A test: the linker's own order against itself. An alarm withholds what random orders are asked for."""
    duels = session.frame("relink lottery")
    found = []
    for label in BUILDS:
        of_it = results.of_build(duels, label)
        if not (of_it.kind == "copy").any():
            continue
        for benchmark in BENCHMARKS:
            own = results.itself(of_it, benchmark)
            what = f"{benchmark}: the linker's own order / itself on {label}"
            found.append(Control("A/A of the lottery", what, "relink lottery", own))
    return found


def measurements(session: Session) -> Handed:
    handed = Handed(session)
    times, names = session.frame("the small machine"), list(PROGRAMS)
    counts = results.table(session.observed("instructions and misses of the small machine", names))
    stalls = session.observed("hardware counters of the small machine", names, session.budget.repeats)
    profile = session.observed("profiles of call_method", *profiled_how(session))
    bisections, duels = session.frame("git bisect"), session.frame("relink lottery")
    cache = Cache(**session.observed("instruction cache"))

    handed.put("D1", "slow / fast, a change that never runs", results.ratio(times, "slow", "fast"))
    instructions, misses = (results.counted_ratio(counts, what) for what in ("instructions", "misses"))
    handed.put("D2", "instructions, slow / fast (simulated)", instructions)
    handed.put("D2", "stalled front-end cycles, slow / fast (counted)", results.stalls_ratio(stalls))
    handed.put("D3", "misses of the instruction cache, slow / fast (simulated)", misses)
    handed.put("D4", "share of the five hottest functions, call_method", results.five_hottest(profile))
    unit = "share of bisections"
    handed.put(
        "D5", "share of bisections that blame the unrelated commit", Measurement(results.blaming(bisections), unit)
    )
    handed.put(
        "D5", "share of blamed commits that stand, without a trap", Measurement(results.standing(bisections), unit)
    )
    handed.put("D6", "slow / hot, the same commit with hot functions together", results.ratio(times, "slow", "hot"))

    for label in BUILDS:
        linked = session.observed("linking", *linked_how(session, label))
        of_it, lacking = results.of_build(duels, label), linked["lacking"]
        apart = lacking or Measurement(results.true_spread(of_it, BENCHMARK), "ratio")
        handed.put("D1", f"slowest / fastest random order, {BENCHMARK} on {label}", apart)
        counted = lacking or session.observed("simulated misses of the orders", *missed_how(label, linked, cache))
        handed.put(
            "D3",
            f"misses of a thousand instructions, slower less faster orders, {BENCHMARK} on {label}",
            results.more_misses(of_it, counted, BENCHMARK),
        )
        hot = lacking or linked["absent"].get(BY_PROFILE) or results.over_orders(of_it, BENCHMARK, BY_PROFILE)
        handed.put("D6", f"hot functions together / the middle random order, {BENCHMARK} on {label}", hot)
    return handed
