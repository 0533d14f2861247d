"""Made-up records of the chapter "Code placement", by what is true of its claims: see ffilab/judge/simulation.py."""

from dataclasses import asdict

import numpy as np
from scipy import stats

from ffilab.judge.processes import centres
from ffilab.judge.simulation import Simulated
from notebooks.placement import lottery
from notebooks.placement.counting import USUAL
from notebooks.placement.experiment import PROGRAMS
from notebooks.placement.numbers import BY_LOT
from notebooks.placement.results import HOTTEST, NO_TRAP, ONE_IN_TWENTY, TRAP
from notebooks.placement.story import BISECTIONS, CHANGE_CODE

INTERPRETERS = list(lottery.BUILDS)
# Standard deviations of logarithms, seen in a run of `quick`: of a duel; of the small machine's programs; of a share in a
# profile, by its samples.
DUEL, PROGRAM, PROFILE = 0.06, 0.06, 0.02
# Misses of a thousand instructions: of a fast order, and their standard deviation over orders.
MISSES, MISSES_SPREAD = 10.0, 0.1
# No machine of ours shows its counters; as the times of the programs.
STALLS = 0.08
FAST_NS, INSTRUCTIONS, SAMPLES, STALLED = 2.0, 2_000_000, 400, 1e6


def simulated(session: Simulated) -> None:
    # Orders of both builds of which pairs differ by D1, around 1; the hot functions together by D6; stalls and misses by D2 and D3.
    session.add_observation("instruction cache", asdict(USUAL))
    cases = [case for label in lottery.BUILDS for case in of_build(session, label)]
    session.add_processes("relink lottery", cases)
    add_story(session)
    add_profiles(session)


def of_build(session: Simulated, label: str) -> list[tuple[str, dict, list]]:
    """The duels of one build; what was linked and counted is written down."""
    how = lottery.size(session)
    programs = [
        (f"{kind} {number}", kind)
        for kind, count in (("order", how.orders), (lottery.TOGETHER, how.links), (lottery.ANYWHERE, how.links))
        for number in range(count)
    ]
    linked = {"lacking": None, "absent": None}
    linked["programs"] = [{"name": name, "kind": kind, "file": name} for name, kind in programs]
    session.add_observation("linking", linked, *lottery.linked_how(session, label))
    duels, missed, stalled = {}, [], []
    for benchmark in lottery.BENCHMARKS:
        true = {claim: session.true(claim, f"{name}, {benchmark} on {label}") for claim, (name, _) in BY_LOT.items()}
        deviation = np.log(max(1.0, true["D1"])) / ONE_IN_TWENTY
        lots = session.rng.normal(0, deviation * session.noise, len(programs))
        if not session.noise:
            # Lots without luck, of exactly this deviation.
            lots[: how.orders] = stats.norm.ppf((np.arange(how.orders) + 0.5) / how.orders)
            lots[: how.orders] *= deviation / lots[: how.orders].std(ddof=1)
        lots += [np.log(true["D6"]) if kind == lottery.TOGETHER else 0 for _, kind in programs]
        logs = lots[:, None] + session.rng.normal(0, DUEL * session.noise, (len(programs), how.duels))
        duels[benchmark] = logs.tolist()
        # The halves that the duels show: whatever makes them slow, these miss and stall more.
        slow = np.argsort(np.argsort(centres(logs[: how.orders]), kind="stable")) >= how.orders // 2
        rates = np.maximum(
            0, MISSES + true["D3"] * slow + session.rng.normal(0, MISSES_SPREAD * session.noise, how.orders)
        )
        stalls = STALLED * np.where(slow, max(0.01, true["D2"]), 1.0) * session.scattered(1.0, STALLS, how.orders)
        counted = [
            (f"order {number}", *both) for number, both in enumerate(zip(rates.tolist(), stalls.tolist(), strict=True))
        ]
        for name, misses, stall in [*counted, (lottery.DEFAULT, MISSES, STALLED)]:
            of_it = {"name": name, "benchmark": benchmark}
            missed.append({**of_it, "instructions": INSTRUCTIONS, "misses": misses * INSTRUCTIONS / 1000})
            stalled.append({**of_it, "stalls": stall})
    session.add_observation("simulated misses of the orders", missed, *lottery.missed_how(label, linked, USUAL))
    session.add_observation("stalled cycles of the orders", stalled, *lottery.stalled_how(session, label, linked))
    return [
        (
            label,
            {"name": name, "kind": kind},
            [
                [{"benchmark": benchmark, "log": duels[benchmark][at][duel]} for benchmark in lottery.BENCHMARKS]
                for duel in range(how.duels)
            ],
        )
        for at, (name, kind) in enumerate(programs)
    ]


def add_story(session: Simulated) -> None:
    """The small machine: its times, counts and bisections."""
    names, n = list(PROGRAMS), session.budget.repeats
    # The other side of 1 by more than 1 is no ratio.
    slow_ns = FAST_NS * max(0.1, session.true("D1", "slow / fast, a change that never runs"))
    times = {"fast": (FAST_NS, PROGRAM), "slow": (slow_ns, PROGRAM)}
    session.add_processes(
        "the small machine",
        [("", {"program": name}, [{"ns": ns} for ns in session.scattered(*of, n)]) for name, of in times.items()],
    )

    counts = [
        {"program": name, "instructions": INSTRUCTIONS, "misses": misses}
        for name, misses in (("fast", 1_000), ("slow", 100_000), ("hot", 1_000))
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
    processes, _ = arguments = lottery.profiled_how(session)
    share = share_of("D4", "share of the five hottest functions, call_method", session)
    taken = []
    for found in session.scattered(share, PROFILE, processes):
        hot = SAMPLES * found / HOTTEST
        taken.append({"total": SAMPLES, "hottest": {f"function {n}": float(hot) for n in range(HOTTEST)}})
    session.add_observation("profiles of call_method", {"what": "samples", "processes": taken}, *arguments)


def share_of(claim: str, number: str, session: Simulated) -> float:
    """A true share: the truth of a wide rule may lie beyond 0 and 1."""
    return min(0.98, max(0.02, session.true(claim, number)))
