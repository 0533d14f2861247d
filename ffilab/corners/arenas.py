"""Chapter "Arenas": where the memory goes when many threads call native code (claims A19-A22)."""

import ctypes.util
import platform
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from ffilab import kernels
from ffilab.bench import child
from ffilab.budget import current
from ffilab.errors import UserError
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import chosen, difference, measured, ratio
from ffilab.paths import NATIVE, NATIVE_OUT
from ffilab.provision.catalogue import BY_LABEL

SOURCES = NATIVE / "arenas"
LIBRARIES = NATIVE_OUT / "arenas"
EXPERIMENTS = SOURCES / "experiments.py"
KERNEL, WITH_GIL = "3.14t", "3.14"
MIB = 1 << 20
# Address space, not memory: blocks of 64 MiB that nobody touches need room for thousands of them.
ROOM_BYTES = 1 << 40
HUGE_PAGES = str(LIBRARIES / "libhuge_pages.so")


@dataclass(frozen=True)
class Condition:
    """One way to run the talk's experiment. Block sizes in bytes; `environment` as KEY=VALUE words."""

    python_threads: int = 8
    native_threads: int = 50
    block_bytes: int = 64 * MIB
    touch: str = "untouched"
    way: str = "kept"
    meet: str = "no"
    huge_pages: str = "as they are"
    environment: tuple[str, ...] = ()

    def arguments(self) -> list:
        return [value for name, value in asdict(self).items() if name != "environment"]


TALK = Condition()
TOUCHED = replace(TALK, block_bytes=64 * 1024, touch="touched")
MEETING = replace(TOUCHED, meet="meet")
PRELOAD = (f"LD_PRELOAD={HUGE_PAGES}",)
AS_RUN, NONE, AGAIN = "as the talk ran it", "no native threads", "as the talk ran it, again"
HUGE, HUGE_NONE = "huge pages for all", "huge pages for all, no native threads"
MEET, RELEASED, EQUAL = (
    "touched, a call's threads at once",
    "the same, GIL released",
    "one Python thread, 400 native at once",
)
CONDITIONS = {
    AS_RUN: TALK,
    AGAIN: TALK,
    NONE: replace(TALK, native_threads=0),
    "huge pages off": replace(TALK, huge_pages="off"),
    HUGE: replace(TALK, environment=PRELOAD),
    HUGE_NONE: replace(TALK, native_threads=0, environment=PRELOAD),
    "one arena": replace(TALK, environment=("GLIBC_TUNABLES=glibc.malloc.arena_max=1",)),
    "touched blocks of 64 KiB": TOUCHED,
    MEET: MEETING,
    RELEASED: replace(MEETING, way="released"),
    EQUAL: replace(MEETING, python_threads=1, native_threads=400),
}
GRID_PYTHON, GRID_NATIVE = (2, 8, 24), (0, 10, 50, 200)
THREADS, ROUNDS = 32, 6
# A container's memory, as a limit on data.
LIMITS_MIB = (64, 128, 256, 512)
WAYS = ("short-lived threads", "thread pool", "thread pool, by turns")
# What a service does: requests that come all at once, or one after the other.
WORK = {"all at once": WAYS[0], "by turns": WAYS[2]}
TUNABLES = "GLIBC_TUNABLES=glibc.malloc."
# Name: (allocator or none, environment, remedy in the experiment).
REMEDIES = {
    "nothing": (None, (), "none"),
    "arena_max=1": (None, (TUNABLES + "arena_max=1",), "none"),
    "arena_max=2": (None, (TUNABLES + "arena_max=2",), "none"),
    "mallopt(M_ARENA_MAX, 1)": (None, (), "mallopt"),
    "trim_threshold=65536": (None, (TUNABLES + "trim_threshold=65536",), "none"),
    "mmap_threshold=32768": (None, (TUNABLES + "mmap_threshold=32768",), "none"),
    "tcache_count=0": (None, (TUNABLES + "tcache_count=0",), "none"),
    "malloc_trim(0) after each round": (None, (), "trim each round"),
    "jemalloc": ("jemalloc", (), "none"),
    "tcmalloc": ("tcmalloc_minimal", (), "none"),
    "mimalloc": ("mimalloc", (), "none"),
}
ALLOCATORS = {"glibc": None, "jemalloc": "jemalloc", "tcmalloc": "tcmalloc_minimal", "mimalloc": "mimalloc"}
PACKAGES = {"jemalloc": "libjemalloc2", "tcmalloc_minimal": "libtcmalloc-minimal4", "mimalloc": "libmimalloc2.0"}
# Scenario of the talk: (experiment and arguments, the value that decides, its unit); less is better in all of them.
SCENARIOS = {
    "many short-lived threads": (
        ("growth", "short-lived threads", THREADS, ROUNDS, "keep", "none"),
        "grown",
        "MiB held at the end",
    ),
    "long-lived server, RSS-sensitive": (
        ("growth", "thread pool", THREADS, ROUNDS, "keep", "none"),
        "grown",
        "MiB held at the end",
    ),
    "latency-critical, multi-threaded": (("latency", 4, 20_000), "p99.9", "ns, 99.9 % quantile of malloc + free"),
    "short-lived processes": (("startup",), "ms", "ms for an empty Python process"),
    "tight memory limit": (
        ("growth", "short-lived threads", THREADS, ROUNDS, "none", "none"),
        "peak",
        "MiB at the peak",
    ),
    "high thread count": (("growth", "short-lived threads", 200, 2, "keep", "none"), "grown", "MiB held at the end"),
    "fork-heavy": (("forks", 4), "private", "MiB that a child does not share"),
}
# The talk's table, Linux columns: (glibc, jemalloc, tcmalloc). Data to compare with.
TALK_RATINGS = {
    "many short-lived threads": "△ ★ ○",
    "long-lived server, RSS-sensitive": "△ ★ △",
    "latency-critical, multi-threaded": "○ ○ ★",
    "short-lived processes": "★ ○ ○",
    "tight memory limit": "○ ★ △",
    "high thread count": "× ○ ○",
    "fork-heavy": "○ ★ ○",
}
NOT_STAGED = {
    "backgrounding app": "an application of macOS",
    "NUMA / many-core": "a machine with several memory nodes",
    "production leak profiling": "a judgement of tools, not of numbers",
}
THRESHOLDS = {
    "nothing": (),
    "mmap_threshold=131072": (TUNABLES + "mmap_threshold=131072",),
    "trim_threshold=1073741824": (TUNABLES + "trim_threshold=1073741824",),
}


def begin(labels: list[str]) -> child.Session:
    """The record of this chapter's processes. Raises UserError where there is no /proc."""
    if platform.system() != "Linux":
        raise UserError("This chapter is about glibc and Linux: it reads /proc, which this system does not have.")
    return child.Session("arenas", labels)


def environment(words: tuple[str, ...]) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def preload(allocator: str | None) -> tuple[str, ...] | None:
    """The environment that puts an allocator before glibc's; None if it is not installed."""
    if allocator is None:
        return ()
    found = ctypes.util.find_library(allocator)
    return (f"LD_PRELOAD={found}",) if found else None


def start(job: tuple) -> child.Outcome:
    """Run one job: (kernel, name of the case, environment words, experiment, *arguments)."""
    label, _, words, experiment, *arguments = job
    room = ROOM_BYTES if TALK.block_bytes in arguments else child.MEMORY_BYTES
    return child.run(label, EXPERIMENTS, experiment, *arguments, environment=environment(words), memory_bytes=room)


def outcomes(session: child.Session, title: str, jobs: list[tuple], repeats: int) -> list[tuple[str, str, dict]]:
    """(kernel, case, result) of each process. Raises UserError if one brought nothing."""
    found = []
    for job, outcome in session.repeat(title, jobs, repeats, start):
        result = outcome.needed(f"{title}, {job[1]} on CPython {job[0]}")
        if "allocator" in result:
            prove(job, result["allocator"])
        found.append((job[0], job[1], result))
    return found


def prove(job: tuple, found: str) -> None:
    """Is the allocator that was asked for the one that is mapped? Raises UserError if not."""
    asked = environment(job[2]).get("LD_PRELOAD", "glibc")
    if found not in asked and asked not in found:
        raise UserError(f"{job[1]}: {asked} was to be preloaded, and the process runs on {found}.")


def usable(labels: list[str]) -> list[str]:
    """Kernels for which the extension in Rust was built."""
    return [
        label
        for label in labels
        if not (LIBRARIES / kernels.soabi(kernels.load(BY_LABEL[label])) / "missing-arena_poc.txt").exists()
    ]


GROWN = ["rss", "pss", "huge", "held", "in_use", "arenas"]
TALK_COLUMNS = ["kernel", "condition", "round", *GROWN, "trimmed", "at_once"]


def talk(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """A19 with its controls. Columns kernel, condition, round, rss, pss, huge, held, in_use, arenas (growth), trimmed
    (growth of RSS after malloc_trim), at_once (native threads alive at once)."""
    jobs = [
        (label, name, c.environment, "talk", LIBRARIES, *c.arguments())
        for label in usable(labels)
        for name, c in CONDITIONS.items()
    ]
    rows, seen = [], {}
    for label, name, result in outcomes(session, "the talk's experiment", jobs, current().repeats):
        number = seen[label, name] = seen.get((label, name), -1) + 1
        rows.append(
            {
                "kernel": label,
                "condition": name,
                "round": number,
                **result["grown"],
                "trimmed": result["grown after trim"]["rss"],
                "at_once": result["threads at once"],
            }
        )
    return pd.DataFrame(rows, columns=TALK_COLUMNS).sort_values(["kernel", "condition", "round"], ignore_index=True)


def grid(session: child.Session) -> pd.DataFrame:
    """A20: the talk's experiment over a grid. Columns kernel, python, native, rss, held, arenas."""
    cells = {f"{p} × {n}": replace(TALK, python_threads=p, native_threads=n) for p in GRID_PYTHON for n in GRID_NATIVE}
    jobs = [
        (label, name, (), "talk", LIBRARIES, *c.arguments())
        for label in usable([WITH_GIL, KERNEL])
        for name, c in cells.items()
    ]
    return pd.DataFrame(
        [
            {
                "kernel": label,
                "python": cells[name].python_threads,
                "native": cells[name].native_threads,
                **result["grown"],
            }
            for label, name, result in outcomes(session, "Python × native threads", jobs, current().few)
        ],
        columns=["kernel", "python", "native", *GROWN],
    )


def growth(session: child.Session) -> pd.DataFrame:
    """Memory over rounds. Columns kernel, way, keep, round (-1: before), rss, held, in_use, arenas, and the last row of
    each process with round = ROUNDS after malloc_trim."""
    jobs = [
        (label, f"{way}|{keep}", (), "growth", LIBRARIES, way, THREADS, ROUNDS, keep, "none")
        for label in (WITH_GIL, KERNEL)
        for way in WAYS
        for keep in ("keep", "none")
    ]
    rows = []
    for label, name, result in outcomes(session, "growth over time", jobs, current().few):
        way, keep = name.split("|")
        for number, state in enumerate([result["before"], *result["rounds"], result["trimmed"]], -1):
            rows.append({"kernel": label, "way": way, "keep": keep, "round": number, **state})
    return pd.DataFrame(rows)


def remedies(session: child.Session) -> tuple[pd.DataFrame, dict[str, str]]:
    """What each remedy does to the same work. Columns remedy, work, grown, trimmed, peak (MiB), rate (blocks/s), arenas.

    Also returns why a remedy is missing, by its name.
    """
    jobs, missing = [], {}
    for name, (allocator, words, remedy) in REMEDIES.items():
        if (extra := preload(allocator)) is None:
            missing[name] = not_installed(allocator)
            continue
        for work, way in WORK.items():
            case = ("growth", LIBRARIES, way, THREADS, ROUNDS, "keep", remedy)
            jobs.append((KERNEL, f"{name}|{work}", words + extra, *case))
    rows = []
    for _, name, result in outcomes(session, "remedies", jobs, current().few):
        remedy, work = name.split("|")
        rows.append(
            {
                "remedy": remedy,
                "work": work,
                **grown(result),
                "rate": result["blocks_per_second"],
                "arenas": result["rounds"][-1]["arenas"],
            }
        )
    return pd.DataFrame(rows), missing


def not_installed(allocator: str) -> str:
    return f"not installed (`make doctor` has the command; on Debian: {PACKAGES[allocator]})"


def grown(result: dict) -> dict[str, float]:
    """MiB resident more than before: at the end, after malloc_trim, at the peak."""
    before = result["before"]["rss"]
    return {
        "grown": result["rounds"][-1]["rss"] - before,
        "trimmed": result["trimmed"]["rss"] - before,
        "peak": result["rounds"][-1]["peak"] - before,
    }


def scenarios(session: child.Session) -> tuple[pd.DataFrame, dict[str, str]]:
    """A21: the talk's scenarios that one machine can stage. Columns scenario, allocator, value; and what is missing."""
    jobs, missing = [], {}
    for name, allocator in ALLOCATORS.items():
        if (words := preload(allocator)) is None:
            missing[name] = not_installed(allocator)
            continue
        for scenario, ((experiment, *arguments), _, _) in SCENARIOS.items():
            where = () if experiment == "startup" else (LIBRARIES,)
            jobs.append((KERNEL, f"{scenario}|{name}", words, experiment, *where, *arguments))
    rows = []
    for _, name, result in outcomes(
        session, "scenarios", jobs, max(5, current().repeats // 2) if current().is_result else 1
    ):
        scenario, allocator = name.split("|")
        value = {**result, **(grown(result) if "rounds" in result else {})}[SCENARIOS[scenario][1]]
        rows.append({"scenario": scenario, "allocator": allocator, "value": value})
    return pd.DataFrame(rows), missing


def limits(session: child.Session) -> pd.DataFrame:
    """A21: does the same work end under a limit on data (setrlimit)? Columns allocator, mib, ended (True or False)."""
    jobs = [
        (KERNEL, f"{mib}|{name}", words, "limited", LIBRARIES, mib, THREADS, ROUNDS)
        for name, allocator in ALLOCATORS.items()
        if (words := preload(allocator)) is not None
        for mib in LIMITS_MIB
    ]
    rows = []
    for job, outcome in session.repeat("memory limits", jobs, current().few, start):
        mib, name = job[1].split("|")
        if outcome.result is not None:
            prove(job, outcome.result["allocator"])
        rows.append({"allocator": name, "mib": int(mib), "ended": outcome.result is not None})
    return pd.DataFrame(rows)


def thresholds(session: child.Session) -> pd.DataFrame:
    """A22: MiB that glibc holds after blocks were freed. Columns setting, case, held."""
    jobs = [(KERNEL, name, words, "thresholds", LIBRARIES) for name, words in THRESHOLDS.items()]
    return pd.DataFrame(
        [
            {"setting": name, "case": case, "held": held}
            for _, name, result in outcomes(session, "thresholds", jobs, current().repeats)
            for case, held in result.items()
        ]
    )


def domains(session: child.Session, labels: list[str]) -> pd.DataFrame:
    """Which of CPython's allocation domains reach glibc's malloc. Columns kernel, domain, size, share."""
    jobs = [(label, "domains", (), "domains", LIBRARIES) for label in labels]
    rows = []
    for label, _, result in outcomes(session, "domains", jobs, 1):
        for name, share in result.items():
            domain, size = name.split(", ")
            rows.append({"kernel": label, "domain": domain, "size": size, "share": share})
    return pd.DataFrame(rows).sort_values("kernel", ignore_index=True)


def claim_measurements(
    runs: pd.DataFrame, cells: pd.DataFrame, scenario: pd.DataFrame, threshold: pd.DataFrame
) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger, by claim id."""
    handed = {"A19": {}, "A20": {}, "A21": {}, "A22": {}}

    def put(claim: str, what: str, found: Measurement | None) -> None:
        if found:
            handed[claim][what] = found

    def grown_by_native_threads(label: str, column: str) -> np.ndarray:
        with_, without = (
            chosen(runs, kernel=label, condition=c).sort_values("round")[column].to_numpy() for c in (AS_RUN, NONE)
        )
        n = min(len(with_), len(without))
        return with_[:n] - without[:n]

    put(
        "A19",
        "RSS grown by the native threads, as the talk ran it: 3.14t − 3.14",
        difference(grown_by_native_threads(KERNEL, "rss"), grown_by_native_threads(WITH_GIL, "rss"), "MiB"),
    )
    held = {label: chosen(runs, kernel=label, condition=MEET).held.to_numpy() for label in (KERNEL, WITH_GIL)}
    put("A19", "held by glibc, touched blocks, 8 × 50: 3.14t / 3.14", ratio(held[KERNEL], held[WITH_GIL]))

    def cell(python: int, native: int, column: str) -> np.ndarray:
        return chosen(cells, kernel=KERNEL, python=[python], native=[native])[column].to_numpy()

    def native_part(python: int, native: int) -> np.ndarray:
        with_, without = cell(python, native, "rss"), cell(python, 0, "rss")
        n = min(len(with_), len(without))
        return with_[:n] - without[:n]

    put("A20", "RSS grown by the native threads at 24 × 200: 3.14t", measured(native_part(24, 200), "MiB"))
    put(
        "A20",
        "RSS grown by the native threads at 24 × 200 minus 2 × 200: 3.14t",
        difference(native_part(24, 200), native_part(2, 200), "MiB"),
    )

    for name, allocator in (
        ("many short-lived threads", "jemalloc"),
        ("long-lived server, RSS-sensitive", "jemalloc"),
        ("latency-critical, multi-threaded", "tcmalloc"),
        ("short-lived processes", "jemalloc"),
        ("tight memory limit", "jemalloc"),
        ("high thread count", "jemalloc"),
        ("fork-heavy", "jemalloc"),
    ):
        left, right = (chosen(scenario, scenario=name, allocator=a)["value"].to_numpy() for a in (allocator, "glibc"))
        put("A21", f"{name}: {allocator} / glibc", ratio(left, right))

    def held_with(setting: str, case: str) -> np.ndarray:
        return chosen(threshold, setting=setting, case=case).held.to_numpy()

    for setting, case in (("mmap_threshold=131072", "large, pinned"), ("trim_threshold=1073741824", "small")):
        put(
            "A22",
            f"MiB held, {case}: {setting} minus nothing",
            difference(held_with(setting, case), held_with("nothing", case), "MiB"),
        )
    return handed


def check_tunables(tunables: str) -> list[str]:
    """The exercise's self-check: memory first, then throughput, against the same service without any setting."""
    words = (f"GLIBC_TUNABLES={tunables}",) if tunables else ()
    job = ("growth", LIBRARIES, WORK["by turns"], THREADS, ROUNDS, "keep", "none")
    found = {}
    for name, setting in (("yours", words), ("nothing", ())):
        runs = []
        for _ in range(3):
            outcome = start((KERNEL, name, setting, *job))
            if outcome.result is None:
                return [f"The service did not come back: {outcome.ended}. {outcome.error.strip()}"]
            runs.append({**grown(outcome.result), "rate": outcome.result["blocks_per_second"]})
        found[name] = pd.DataFrame(runs).median()
    mine, theirs = found["yours"], found["nothing"]
    lines = [f"The service holds {mine.grown:.1f} MiB more than at its start; without a setting {theirs.grown:.1f}."]
    if mine.grown > theirs.grown * GOAL_MEMORY:
        return [*lines, f"Not there: aim at less than {GOAL_MEMORY:.0%} of that."]
    lines.append(f"It does {mine.rate:,.0f} blocks a second; without a setting {theirs.rate:,.0f}.")
    if mine.rate < GOAL_RATE * theirs.rate:
        return [*lines, f"Small, and too slow: keep at least {GOAL_RATE:.0%} of the rate."]
    return [*lines, "Small, and fast enough."]


GOAL_MEMORY, GOAL_RATE = 0.5, 0.5


def arenas_now(tunables: str = "") -> pd.DataFrame:
    """glibc's account of each arena after one round of the service. Columns arena, held, free (MiB)."""
    words = (f"GLIBC_TUNABLES={tunables}",) if tunables else ()
    outcome = start((KERNEL, "arenas", words, "arenas_now", LIBRARIES, THREADS))
    return pd.DataFrame(outcome.needed("The service did not come back")["arenas"])


def tunables() -> dict[str, str]:
    """What this system's loader says of glibc's malloc, by name; empty where it cannot say."""
    # The program interpreter that this process was started with.
    with open("/proc/self/maps") as maps:
        loader = next((line.split()[-1] for line in maps if "/ld-linux" in line or "/ld-2" in line), None)
    if loader is None:
        return {}
    ended, out, _ = child.program([loader, "--list-tunables"])
    lines = [line.split(":", 1) for line in out.splitlines() if line.startswith("glibc.malloc.")]
    return {name: value.strip() for name, value in lines} if ended == "ok" else {}
