"""Made-up records of the chapter "Code placement", by what is true of its claims: see ffilab/judge/simulation.py."""

from dataclasses import asdict

import numpy as np
from scipy import stats

from ffilab.judge.processes import centres
from ffilab.judge.simulation import Simulated
from notebooks.placement.claims import BENCHMARK
from notebooks.placement.experiment import USUAL
from notebooks.placement.lottery import BUILDS, BY_PROFILE, linked_how, missed_how, profiled_how, size
from notebooks.placement.results import HOTTEST, NO_TRAP, ONE_IN_TWENTY, TRAP
from notebooks.placement.story import BISECTIONS, CHANGE_CODE, PROGRAMS

INTERPRETERS = list(BUILDS)
# Standard deviations of logarithms, seen in a run of `quick`: of a duel of call_method; of the small machine's programs,
# of which the one with its hot functions together is sometimes half as fast; of a share in a profile, by its samples.
DUEL, PROGRAM, HOT, PROFILE = 0.06, 0.06, 0.28, 0.02
# Misses of a thousand instructions: of a fast order, and their standard deviation over orders.
MISSES, MISSES_SPREAD = 10.0, 0.1
# No machine of ours shows its counters; as the times of the programs.
STALLS = 0.08
FAST_NS, INSTRUCTIONS, SAMPLES = 2.0, 2_000_000, 400


def simulated(session: Simulated) -> None:
    add_lottery(session)
    add_story(session)
    add_profiles(session)


def add_lottery(session: Simulated) -> None:
    """Orders of both builds of which pairs differ by D1, around 1; the hot functions together by D6; instructions and misses by
    D2 and D3."""
    session.add_observation("instruction cache", asdict(USUAL))
    cases = [case for label in BUILDS for case in of_build(session, label)]
    session.add_processes("relink lottery", cases)


def of_build(session: Simulated, label: str) -> list[tuple[str, dict, list]]:
    """The duels of one build; what was linked and counted is written down."""
    how = size(session)
    lottery = f"{BENCHMARK} on {label}"
    apart = max(1.0, session.true("D1", f"how far one pair of random orders in twenty differs, {lottery}"))
    together = session.true("D6", f"hot functions together / the middle random order, {lottery}")
    more = session.true("D3", f"misses of a thousand instructions, slower less faster orders, {lottery}")
    other = session.true("D2", f"instructions, slower / faster orders, {lottery}")
    deviation = np.log(apart) / ONE_IN_TWENTY
    if session.noise:
        layouts = session.rng.normal(0, deviation, how.orders)
    else:
        # Lots without luck, of exactly this deviation.
        layouts = stats.norm.ppf((np.arange(how.orders) + 0.5) / how.orders)
        layouts *= deviation / layouts.std(ddof=1)
    programs = [(f"order {number}", "order", place) for number, place in enumerate(layouts)]
    linked = {"lacking": None, "absent": {}}
    linked["programs"] = [{"name": name, "kind": kind, "file": name} for name, kind, _ in programs]
    lots = np.log(together) + session.rng.normal(0, deviation * session.noise, how.hot)
    programs += [(f"{BY_PROFILE} {number}", BY_PROFILE, place) for number, place in enumerate(lots)]
    logs = session.rng.normal(0, DUEL * session.noise, (len(programs), how.duels)) + [[place] for *_, place in programs]
    session.add_observation("linking", linked, *linked_how(session, label))
    # The halves that the duels show: whatever makes them slow, these miss more.
    slow = np.argsort(np.argsort(centres(logs[: how.orders]), kind="stable")) >= how.orders // 2
    rates = np.maximum(0, MISSES + more * slow + session.rng.normal(0, MISSES_SPREAD * session.noise, how.orders))
    executed = INSTRUCTIONS * np.where(slow, other, 1.0)
    counted = [
        {"name": f"order {number}", "benchmark": BENCHMARK, "instructions": count, "misses": rate * count / 1000}
        for number, (rate, count) in enumerate(zip(rates.tolist(), executed.tolist(), strict=True))
    ]
    session.add_observation("simulated misses of the orders", counted, *missed_how(label, linked, USUAL))
    return [
        (label, {"name": name, "kind": kind}, [{"benchmark": BENCHMARK, "log": log} for log in row])
        for (name, kind, _), row in zip(programs, logs.tolist(), strict=True)
    ]


def add_story(session: Simulated) -> None:
    """The small machine: its times, counts and bisections."""
    names, n = list(PROGRAMS), session.budget.repeats
    # The other side of 1 by more than 1 is no ratio.
    slow_ns = FAST_NS * max(0.1, session.true("D1", "slow / fast, a change that never runs"))
    hot_ns = slow_ns / max(0.1, session.true("D6", "slow / hot, the same commit with hot functions together"))
    times = {"fast": (FAST_NS, PROGRAM), "slow": (slow_ns, PROGRAM), "hot": (hot_ns, HOT)}
    session.add_processes(
        "the small machine",
        [("", {"program": name}, [{"ns": ns} for ns in session.scattered(*of, n)]) for name, of in times.items()],
    )

    more = session.true("D2", "instructions, slow / fast (simulated)")
    misses = max(0.01, session.true("D3", "misses of the instruction cache, slow / fast (simulated)"))
    counts = [
        {"program": "fast", "instructions": INSTRUCTIONS, "misses": 1_000},
        {"program": "slow", "instructions": INSTRUCTIONS * more, "misses": 1_000 * misses},
    ]
    session.add_observation("instructions and misses of the small machine", counts, names)
    stalls = {"fast": 1.0, "slow": max(0.01, session.true("D2", "stalled front-end cycles, slow / fast (counted)"))}
    counted = {
        name: [{"stalled-cycles-frontend": float(found)} for found in session.scattered(centre, STALLS, n)]
        for name, centre in stalls.items()
    }
    session.add_observation("hardware counters of the small machine", counted, names, n)

    number = BISECTIONS[session.budget.name]
    found = session.events(share_of("D5", "share of bisections that blame the unrelated commit", session), number)
    stands = session.events(share_of("D5", "share of blamed commits that stand, without a trap", session), number)
    unrelated = "bisections without a trap that blame a commit which changes no machine code"
    without_code = session.events(session.true("D5", unrelated), number)
    quiet = [
        {"stands": float(one), "message": "README: a typo" if other else CHANGE_CODE[0]}
        for one, other in zip(stands, without_code, strict=True)
    ]
    cases = [("", {"history": TRAP}, [{"found": float(event)} for event in found]), ("", {"history": NO_TRAP}, quiet)]
    session.add_processes("git bisect", cases)


def add_profiles(session: Simulated) -> None:
    """Five functions that hold a share of the samples, and many that hold the rest."""
    processes, _ = arguments = profiled_how(session)
    share = share_of("D4", "share of the five hottest functions, call_method", session)
    taken = []
    for found in session.scattered(share, PROFILE, processes):
        hot = SAMPLES * found / HOTTEST
        taken.append({"total": SAMPLES, "hottest": {f"function {n}": float(hot) for n in range(HOTTEST)}})
    session.add_observation("profiles of call_method", {"what": "samples", "processes": taken}, *arguments)


def share_of(claim: str, measured: str, session: Simulated) -> float:
    """A true share: the truth of a wide rule may lie beyond 0 and 1."""
    return min(0.98, max(0.02, session.true(claim, measured)))
