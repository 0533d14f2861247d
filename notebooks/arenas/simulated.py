"""Made-up records of the chapter "Arenas", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.arenas import experiment as e
from notebooks.arenas import results
from notebooks.arenas.numbers import HELD_BACK, LATENCY, PEAK, RATED

# Of A21a: the number of the work that leaves nothing behind, recorded with the scenario that asks for its peak.
ALL_FREED = "many short-lived threads, all freed: jemalloc / glibc"
INTERPRETERS = [GIL, FREE_THREADED]
HERE = {"absent extension": {}, "absent allocators": {}}
# Standard deviations over processes, seen in runs of `quick`. MiB of RSS: of the talk's experiment, on the free-threaded build with
# huge pages, and of a cell with 24 Python threads. MiB held by glibc. Relative: held where blocks are touched, and threads at once.
RSS, HUGE_RSS, MANY_RSS, HELD, TOUCHED, AT_ONCE = 0.07, 2.5, 0.2, 0.01, 0.18, 0.13
# Relative: what calls see grow, the amplification, and memory and speed of a remedy, by turns and all at once.
INSIDE, AMPLIFICATION, BY_TURNS, ALL_AT_ONCE = 0.2, 0.15, 0.1, 0.3
# Relative, by scenario: of glibc, and of the allocator that it is compared with.
SCATTER = {
    "many short-lived threads": (0.54, 0.28),
    "long-lived server, RSS-sensitive": (0.09, 0.08),
    "latency-critical, multi-threaded": (0.1, 0.15),
    "short-lived processes": (0.16, 0.13),
    "tight memory limit": (0.28, 0.12),
    "high thread count": (0.54, 0.39),
    "fork-heavy": (0.001, 0.003),
}


def simulated(session: Simulated) -> None:
    session.add_observation("this system", HERE, INTERPRETERS)
    the_talk(session)
    the_grid(session)
    the_scenarios(session)
    the_remedies(session)
    the_thresholds(session)


def around(session: Simulated, centre: float, scatter: float, n: int) -> list[float]:
    """n values with an absolute standard deviation, whatever their centre."""
    return [centre + value for value in session.scattered(0.0, scatter, n).tolist()]


def the_talk(session: Simulated) -> None:
    n = session.budget.repeats

    def more(name: str, pair: str = "{FREE_THREADED} − {GIL}") -> float:
        return session.true("A19", f"{name}: {pair}")

    def times(name: str) -> float:
        return session.true("A19", f"{name}, touched blocks, 8 × 50: {{FREE_THREADED}} / {{GIL}}")

    on = "{FREE_THREADED}, GIL on − {GIL}"
    none = 0.4 + more("RSS grown without native threads, huge pages for all")
    none_kept = 0.4 + more("VmRSS grown without native threads, huge pages for all", on)
    # As run there is a difference and a ratio: they come to what grew with the GIL.
    apart, ratio = (
        more("VmRSS grown, as the talk ran it", on),
        more("VmRSS grown, as the talk ran it", on.replace("−", "/")),
    )
    gil = apart / (ratio - 1) if ratio != 1 else 0.7
    part = session.true("A19", "RSS grown by the native threads, huge pages for all: {FREE_THREADED}")
    inside = session.true("A19", "MiB inside the calls, huge pages for all: {FREE_THREADED}, GIL off / on")
    rss = {
        (GIL, results.AS_RUN): (gil, RSS),
        (FREE_THREADED, results.KEPT): (gil * ratio, RSS),
        (GIL, results.HUGE): (0.7, RSS),
        (FREE_THREADED, results.HUGE_KEPT): (0.7 + more("VmRSS grown, huge pages for all", on), HUGE_RSS),
        (GIL, results.HUGE_NONE): (0.4, RSS),
        (FREE_THREADED, results.HUGE_NONE): (none, HUGE_RSS),
        (FREE_THREADED, results.HUGE_NONE_KEPT): (none_kept, HUGE_RSS),
        (FREE_THREADED, results.HUGE): (none + part, HUGE_RSS),
    }
    cases = []
    for (label, condition), (centre, scatter) in rss.items():
        held = 1.9 + (label == FREE_THREADED) * more("held by glibc, huge pages for all")
        seen = session.scattered(0.6 * (inside if condition == results.HUGE else 1), INSIDE, n)
        values = zip(around(session, centre, scatter, n), around(session, held, HELD, n), seen, strict=True)
        counts = {"huge": 2.0 * (centre > 0), "python_at_once": 8}
        rows = [{"rss": a, "vmrss": a, "held": b, "inside": float(c), **counts} for a, b, c in values]
        cases.append((label, {"condition": condition}, rows))
    for label, factor in ((GIL, 0), (FREE_THREADED, 1)):
        held = session.scattered(4.5 * times("held by glibc") ** factor, (HELD, TOUCHED)[factor], n)
        at_once = session.scattered(50 * times("native threads at once") ** factor, (0.0, AT_ONCE)[factor], n)
        meet = [{"held": float(a), "at_once": float(b)} for a, b in zip(held, at_once, strict=True)]
        cases.append((label, {"condition": results.MEET}, meet))
    session.add_processes("the talk's experiment", cases)


def the_grid(session: Simulated) -> None:
    most, wider, both, over = (
        session.true("A20", f"RSS grown by the native threads at 24 × 200{cell}: {{FREE_THREADED}}")
        for cell in ("", " minus 2 × 200", " − 2 × 200 − 24 × 10 + 2 × 10", " minus 120 times that at 2 × 10")
    )
    drawn = session.true("A20", "amplification at 24 × 200 / at 2 × 10: {FREE_THREADED}, GIL on")
    part = {(2, 200): most - wider, results.LARGEST: most, results.SMALLEST: (most - over) / (results.PRODUCT / 2)}
    part[24, 10] = wider - both + part[results.SMALLEST]
    rss = {cell: 0.75 if cell[0] == 2 else 5.4 for cell in ((2, 0), (24, 0), *part)}
    n, cases = 2 * session.budget.few, []
    for (python, native), centre in rss.items():
        scatter, times = {2: RSS, 24: MANY_RSS}[python], e.in_a_round(FREE_THREADED, True, python, native)
        values = around(session, centre + part.get((python, native), 0.0), scatter, times * session.budget.few)
        cell = {"build": FREE_THREADED, "together": True, "python_threads": python, "native_threads": native}
        cases.append((FREE_THREADED, cell, [{"rss": value} for value in values]))
    for python, native in e.CELLS:
        values = session.scattered(drawn if (python, native) == results.LARGEST else 1.0, AMPLIFICATION, n)
        cell = {"build": e.KEEPING, "together": False, "python_threads": python, "native_threads": native}
        cases.append((FREE_THREADED, cell, [{"vmrss": float(value), "inside": 1.0} for value in values]))
    session.add_processes("Python × native threads", cases)


def the_scenarios(session: Simulated) -> None:
    cases = []
    for (claim, name), arm in RATED.items():
        true = {"glibc": 50.0, arm: 50.0 * session.true(claim, f"{name}: {arm} / glibc")}
        if name == LATENCY:
            true["jemalloc"] = 50.0 * session.true(claim, f"{name}: jemalloc / glibc")
        for (which, centre), scatter in zip(true.items(), (*SCATTER[name], SCATTER[name][1]), strict=False):
            values = session.scattered(centre, scatter, 2 * session.budget.few).tolist()
            if results.DECIDES[name] in ("grown", "idle", "peak"):
                end = 2.5 * (1 if which == "glibc" else session.true("A21a", ALL_FREED))
                ends = session.scattered(end, scatter, len(values)).tolist() if name == PEAK else values
                rows = [growth(value, end) for value, end in zip(values, ends, strict=True)]
            else:
                rows = [
                    {one: value for one in (results.DECIDES[name], results.BESIDE.get(name)) if one} for value in values
                ]
            factors = {"scenario": name, "arm": which, "allocator": which.partition(",")[0]}
            cases.append((FREE_THREADED, factors, rows))
    session.add_processes("scenarios", cases)


def the_remedies(session: Simulated) -> None:
    turns = {"arena_max=1": session.true("A22", "MiB grown, by turns: arena_max=1 / nothing"), "nothing": 1.0}
    turns |= {name: session.true("A21b", f"MiB grown, by turns: {name} / glibc") for name in e.ALLOCATORS[1:]}
    speed = {"arena_max=1": session.true("A22", "blocks/s, all at once: arena_max=1 / nothing"), "nothing": 1.0}
    cases = []
    for work, found, scatter in (("by turns", turns, BY_TURNS), ("all at once", speed, ALL_AT_ONCE)):
        for name, factor in found.items():
            values = session.scattered(80 * factor, scatter, session.budget.few).tolist()
            rows = [[{**row, "blocks_per_second": value} for row in growth(value, value)] for value in values]
            cases.append((FREE_THREADED, {"remedy": name, "work": work}, rows))
    session.add_processes("remedies", cases)


def growth(mib: float, ends: float) -> list[dict]:
    """The rows of a process that has so many MiB more at its peak, and so many at its end."""
    return [
        {"state": state, "rss": ends * (state in ("worked", "idle")), "peak": mib}
        for state in ("before", "worked", "idle", "trimmed")
    ]


def the_thresholds(session: Simulated) -> None:
    held = {"nothing": (100.8, 0.0)}
    for place, ((setting, other), case) in enumerate(HELD_BACK.items()):
        differ = session.true("A22", f"MiB held, {case}: {setting} minus {other}")
        for one, value in ((setting, 50.0 + differ), (other, 50.0)):
            held[one] = (value, 0.0) if place == 0 else (1.4, value)
    cases = []
    for setting in e.THRESHOLDS:
        values = (around(session, centre, HELD, session.budget.repeats) for centre in held[setting])
        rows = [
            [{"case": "large, pinned", "held": a}, {"case": "small", "held": b}] for a, b in zip(*values, strict=True)
        ]
        cases.append((FREE_THREADED, {"setting": setting}, rows))
    session.add_processes("thresholds", cases)
