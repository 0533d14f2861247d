"""Made-up records of the chapter "Arenas", by what is true of its claims: see ffilab/judge/simulation.py."""

from ffilab.judge.simulation import Simulated
from ffilab.provision.catalogue import FREE_THREADED, GIL
from notebooks.arenas.experiment import AS_RUN, HUGE, MEET, NONE, PREFERRED, READ_BY_RULES, SCENARIOS, THRESHOLDS

INTERPRETERS = [GIL, FREE_THREADED]
HERE = {"absent extension": {}, "absent allocators": {}}
# Standard deviations over processes, seen in runs of `quick`. MiB of RSS: of the talk's experiment, on the free-threaded build with
# huge pages, and of a cell with 24 Python threads. MiB held by glibc. Relative: held where blocks are touched, and threads at once.
RSS, HUGE_RSS, MANY_RSS, HELD, TOUCHED, AT_ONCE = 0.07, 2.5, 0.2, 0.01, 0.18, 0.13
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
    the_thresholds(session)


def around(session: Simulated, centre: float, scatter: float, n: int) -> list[float]:
    """n values with an absolute standard deviation, whatever their centre."""
    return [centre + value for value in session.scattered(0.0, scatter, n).tolist()]


def the_talk(session: Simulated) -> None:
    n = session.budget.repeats

    def more(name: str) -> float:
        return session.true("A19", f"{name}: {{FREE_THREADED}} − {{GIL}}")

    def times(name: str) -> float:
        return session.true("A19", f"{name}, touched blocks, 8 × 50: {{FREE_THREADED}} / {{GIL}}")

    rss = {
        (GIL, NONE): 0.4,
        (GIL, AS_RUN): 0.6,
        (FREE_THREADED, NONE): 2.1,
        (FREE_THREADED, AS_RUN): 2.3 + more("RSS grown by the native threads, as the talk ran it"),
    }
    cases = [
        (label, {"condition": condition}, [{"rss": value} for value in around(session, centre, RSS, n)])
        for (label, condition), centre in rss.items()
    ]
    for label, factor in ((GIL, 0), (FREE_THREADED, 1)):
        grown = around(session, 0.6 + factor * more("RSS grown, huge pages for all"), (RSS, HUGE_RSS)[factor], n)
        held = around(session, 1.9 + factor * more("held by glibc, huge pages for all"), HELD, n)
        huge = [{"rss": a, "held": b, "huge": 2.0 * factor} for a, b in zip(grown, held, strict=True)]
        cases.append((label, {"condition": HUGE}, huge))
        held = session.scattered(4.5 * times("held by glibc") ** factor, (HELD, TOUCHED)[factor], n)
        at_once = session.scattered(50 * times("native threads at once") ** factor, (0.0, AT_ONCE)[factor], n)
        meet = [{"held": float(a), "at_once": float(b)} for a, b in zip(held, at_once, strict=True)]
        cases.append((label, {"condition": MEET}, meet))
    session.add_processes("the talk's experiment", cases)


def the_grid(session: Simulated) -> None:
    most, wider = (
        session.true("A20", f"RSS grown by the native threads at {cell}: {{FREE_THREADED}}")
        for cell in ("24 × 200", "24 × 200 minus 2 × 200")
    )
    rss = {(2, 0): 0.75, (2, 200): 0.75 + most - wider, (24, 0): 5.4, (24, 200): 5.4 + most}
    cases = []
    for label, python, native in READ_BY_RULES:
        values = around(session, rss[python, native], RSS if python == 2 else MANY_RSS, 2 * session.budget.few)
        cell = {"python_threads": python, "native_threads": native}
        cases.append((label, cell, [{"rss": value} for value in values]))
    session.add_processes("Python × native threads", cases)


def the_scenarios(session: Simulated) -> None:
    cases = []
    for name, scenario in SCENARIOS.items():
        true = {"glibc": 50.0}
        true[PREFERRED[name]] = 50.0 * session.true("A21", f"{name}: {PREFERRED[name]} / glibc")
        for (allocator, centre), scatter in zip(true.items(), SCATTER[name], strict=True):
            values = session.scattered(centre, scatter, 2 * session.budget.few).tolist()
            rows = [growth(value) if scenario.function == "growth" else {scenario.value: value} for value in values]
            cases.append((FREE_THREADED, {"scenario": name, "allocator": allocator}, rows))
    session.add_processes("scenarios", cases)


def growth(mib: float) -> list[dict]:
    """The rows of a process that grows by so many MiB."""
    return [
        {"state": state, "rss": mib * (state == "worked"), "peak": mib} for state in ("before", "worked", "trimmed")
    ]


def the_thresholds(session: Simulated) -> None:
    large, small = (
        session.true("A22", f"MiB held, {what} minus nothing")
        for what in ("large, pinned: mmap_threshold=131072", "small: trim_threshold=1073741824")
    )
    held = {
        "nothing": (100.8, 0.0),
        "mmap_threshold=131072": (100.8 + large, 0.0),
        "trim_threshold=1073741824": (1.4, small),
    }
    cases = []
    for setting in THRESHOLDS:
        values = (around(session, centre, HELD, session.budget.repeats) for centre in held[setting])
        rows = [
            [{"case": "large, pinned", "held": a}, {"case": "small", "held": b}] for a, b in zip(*values, strict=True)
        ]
        cases.append((FREE_THREADED, {"setting": setting}, rows))
    session.add_processes("thresholds", cases)
