"""What the chapter "Arenas" measures (claims A19 to A22). The page quotes all of it."""

import os
import platform
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ffilab.measure.case import Case, program
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, NATIVE, NATIVE_OUT, without_paths
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.setup.installed import load, soabi

# [setting]
EXPERIMENTS = "native/arenas/experiments.py"
FOLDER = {"folder": f"{BUILT}/arenas"}
MIB = 1 << 20
# [/setting]

# [system]
# Allocator: the crate that brings its sources. native/arenas/allocators builds all of them, in the versions that its lock names.
BROUGHT = {"jemalloc": "tikv-jemalloc-sys", "tcmalloc": "libtcmalloc-sys", "mimalloc": "libmimalloc-sys"}
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")


def system(session: Session) -> dict:
    """Look once at what the chapter finds here: see this_system. Raises UserError where there is no Linux."""
    return session.observe("this system", this_system, session.interpreters)


def this_system(labels: list[str]) -> dict:
    """The setting of huge pages, and of those of 128 KiB; how many arenas glibc makes at most; malloc's tunables; allocators
    with their versions; why others are absent; why the extension in Rust is, by interpreter."""
    if platform.system() != "Linux":
        raise UserError("This chapter is about glibc and Linux: it reads /proc, which this system does not have.")
    absent = {name: why for name in BROUGHT if (why := not_brought(name))}
    return {
        "huge pages": setting(HUGE_PAGES / "enabled"),
        "huge pages of 128 KiB": setting(HUGE_PAGES / "hugepages-128kB" / "enabled"),
        # NARENAS_FROM_NCORES in glibc's malloc/arena.c: eight for each core that the process may use, with the main arena.
        "arenas at most": 8 * len(os.sched_getaffinity(0)),
        "tunables": tunables(),
        "allocators": {name: version for name, version in versions().items() if name not in absent},
        "absent allocators": absent,
        "absent extension": {label: why for label in labels if (why := not_built(label))},
    }


def setting(file: Path) -> str:
    """What this system does with huge pages of one size."""
    try:
        text = file.read_text()
    except OSError:
        return "not known"
    return text[text.index("[") + 1 : text.index("]")]


def versions() -> dict[str, str]:
    """The locked version of the crate that brings each allocator. jemalloc's own version stands behind a plus sign."""
    locked = tomllib.loads((NATIVE / "arenas" / "allocators" / "crates.lock").read_text())["package"]
    found = {package["name"]: package["version"] for package in locked}
    return {name: f"{crate} {found[crate]}" for name, crate in BROUGHT.items()}


def not_brought(allocator: str) -> str | None:
    """Why an allocator is not here; None if it is."""
    folder = NATIVE_OUT / "arenas"
    if (folder / "cargo" / "allocators" / "release" / f"lib{allocator}.so").exists():
        return None
    note = folder / "missing-allocators.txt"
    return (
        f"not built: {without_paths(note.read_text())}"
        if note.exists()
        else "not built (`python3 ffilab/bootstrap.py native` does it)"
    )


def tunables() -> dict[str, str]:
    """What this system's loader says of glibc's malloc, by name; empty where it cannot say."""
    # The loader that this process was started with.
    with open("/proc/self/maps") as maps:
        loader = next((line.split()[-1] for line in maps if "/ld-linux" in line or "/ld-2" in line), None)
    if loader is None:
        return {}
    ended, out, _ = program([loader, "--list-tunables"])
    lines = [line.split(":", 1) for line in out.splitlines() if line.startswith("glibc.malloc.")]
    return {name: value.strip() for name, value in lines} if ended == "ok" else {}


def not_built(label: str) -> str | None:
    """Why there is no extension in Rust for an interpreter; None if there is."""
    note = NATIVE_OUT / "arenas" / soabi(load(BY_LABEL[label])) / "missing-arena_poc.txt"
    return f"the extension in Rust was not built: {without_paths(note.read_text())}" if note.exists() else None


# [/system]

# [conditions]
# The arguments of the experiment. A block of 0 bytes: the talk's own worker.
TALK = {
    "python_threads": 8,
    "native_threads": 50,
    "calls": 5,
    "pause": 0.005,
    "block_bytes": 0,
    "meet": False,
    "release_gil": False,
    "small_pages": False,
    "together": False,
}
NOBODY = {**TALK, "native_threads": 0}
MEETING = {**TALK, "block_bytes": 64 * 1024, "meet": True}
AS_RUN, NONE, AGAIN = "the talk's program", "no native threads", "the talk's program, again"
HUGE, HUGE_NONE = "huge pages for all", "huge pages for all, no native threads"
NO_HUGE, ONE_ARENA, ASKED = "huge pages off", "one arena", "the blocks asked for"
MEET, RELEASED, EQUAL = (
    "touched, a call's threads at once",
    "the same, GIL released",
    "one Python thread, 400 native at once",
)
# The free-threaded build with its GIL on: no public source of the talk keeps it off, so this is as run.
ON = ", GIL on"
KEPT, HUGE_KEPT, HUGE_NONE_KEPT, MEET_KEPT = (name + ON for name in (AS_RUN, HUGE, HUGE_NONE, MEET))
# How huge pages go with the number of Python threads; eight of them are HUGE_NONE.
FEWER = {number: f"{HUGE_NONE}, Python threads: {number}" for number in (1, 2, 4)}
# The arenas of the talk's machine: its benchmarks were bound to eight cores.
MORE_ARENAS = 64
WIDE_MEET = f"{MEET}, {MORE_ARENAS} arenas allowed"
CONDITIONS = {
    AS_RUN: TALK,
    KEPT: TALK,
    AGAIN: TALK,
    NONE: NOBODY,
    ASKED: {**TALK, "block_bytes": 64 * MIB},
    NO_HUGE: {**TALK, "small_pages": True},
    HUGE: TALK,
    HUGE_KEPT: TALK,
    HUGE_NONE: NOBODY,
    HUGE_NONE_KEPT: NOBODY,
    **{name: {**NOBODY, "python_threads": number} for number, name in FEWER.items()},
    ONE_ARENA: TALK,
    MEET: MEETING,
    MEET_KEPT: MEETING,
    RELEASED: {**MEETING, "release_gil": True},
    EQUAL: {**MEETING, "python_threads": 1, "native_threads": 400},
    WIDE_MEET: MEETING,
}
# Interpreters other than the chapter pair run those that are about the talk's number; some ask a question of one build.
FOR_ALL = (AS_RUN, NONE, HUGE, HUGE_NONE)
OF_ONE = {
    **dict.fromkeys(
        (KEPT, HUGE_KEPT, HUGE_NONE_KEPT, MEET_KEPT, ASKED, NO_HUGE, ONE_ARENA, *FEWER.values()), FREE_THREADED
    ),
    RELEASED: GIL,
}


def asked(label: str, condition: str) -> bool:
    """Does this interpreter run under this condition?"""
    if condition in OF_ONE:
        return label == OF_ONE[condition]
    return label in (GIL, FREE_THREADED) or condition in FOR_ALL


# [/conditions]

# [talk]
# What the program maps, and what glibc maps for malloc where that is a huge page or more. Stacks are left out.
FOR_EVERYONE = {"LD_PRELOAD": f"{BUILT}/arenas/libhuge_pages.so", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
GIL_ON = {"PYTHON_GIL": "1"}


def tuned(tunables: str) -> dict[str, str]:
    """The environment that tells glibc; nothing to tell, nothing in it."""
    return {"GLIBC_TUNABLES": tunables} if tunables else {}


MORE = tuned(f"glibc.malloc.arena_max={MORE_ARENAS}")
ENVIRONMENTS = {
    **dict.fromkeys((HUGE, HUGE_NONE, *FEWER.values()), FOR_EVERYONE),
    **dict.fromkeys((KEPT, MEET_KEPT), GIL_ON),
    **dict.fromkeys((HUGE_KEPT, HUGE_NONE_KEPT), FOR_EVERYONE | GIL_ON),
    ONE_ARENA: tuned("glibc.malloc.arena_max=1"),
    WIDE_MEET: MORE,
}
# Address space, not memory: blocks of 64 MiB that nobody touches need room for thousands of them.
ROOM_BYTES = 1 << 40


def can_run(label: str, native_threads: int, here: dict) -> bool:
    """Is the extension in Rust there, or not needed? here: what `system` returned, as in all that follows."""
    return native_threads == 0 or label not in here["absent extension"]


def talk(session: Session, here: dict) -> pd.DataFrame:
    """A19 with its controls: what grew, in MiB, what stayed after malloc_trim, and the native threads alive at once."""
    cases = [
        Case.of(
            label,
            EXPERIMENTS,
            "talk",
            arguments,
            FOLDER,
            {"condition": condition},
            ENVIRONMENTS.get(condition, {}),
            memory_bytes=ROOM_BYTES,
        )
        for label in session.interpreters
        for condition, arguments in CONDITIONS.items()
        if asked(label, condition) and can_run(label, arguments["native_threads"], here)
        # The rules read the chapter pair: it runs twice in each round.
        for _ in range(2 if label in (GIL, FREE_THREADED) else 1)
    ]
    return session.run("the talk's experiment", cases, session.budget.few)


def blocks(session: Session, here: dict) -> pd.DataFrame:
    """Does the talk's worker, compiled, ask for its block at all? Ours beside it. Processes may be aborted."""
    cases = [
        Case.of(label, EXPERIMENTS, "asked", {"published": published}, FOLDER, memory_bytes=ROOM_BYTES)
        for label in (GIL, FREE_THREADED)
        if can_run(label, 1, here)
        for published in (True, False)
    ]
    return session.run("is the block asked for", cases, repeats=1, may_fail=True)


# [/talk]

# [grid]
# The talk's smallest and largest numbers and one between, with its three calls and 2 ms between them.
MATRIX = {**TALK, "calls": 3, "pause": 0.002}
CELLS = [(2, 10), (8, 50), (24, 200)]
# Ours: all Python threads are there before the first one calls, as the pool starts none where one idles; and a row without
# native threads.
TOGETHER = [(p, n) for p in (2, 24) for n in (0, 10, 200)]
KEEPING = f"{FREE_THREADED}, GIL on"


def in_a_round(build: str, together: bool, python: int, native: int) -> int:
    """The rules read these builds: twice in each round, and four times what a rule takes 120 times."""
    if build != (FREE_THREADED if together else KEEPING):
        return 1
    return 4 if together and python == 2 and native < 200 else 2


def grid(session: Session, here: dict) -> pd.DataFrame:
    """A20: the talk's matrix, its corners and a cell between, as run and with Python threads together, on each build."""
    builds = {label: (label, {}) for label in session.interpreters} | {KEEPING: (FREE_THREADED, GIL_ON)}
    cases = [
        Case.of(
            label,
            EXPERIMENTS,
            "talk",
            {**MATRIX, "python_threads": python, "native_threads": native, "together": together},
            FOLDER,
            {"build": name},
            environment,
            memory_bytes=ROOM_BYTES,
        )
        for name, (label, environment) in builds.items()
        for together, cells in ((False, CELLS), (True, TOGETHER if name != KEEPING else []))
        for python, native in cells
        if can_run(label, native, here)
        for _ in range(in_a_round(name, together, python, native))
    ]
    return session.run("Python × native threads", cases, session.budget.few)


# [/grid]

# [allocators]
ALLOCATORS = ("glibc", *BROUGHT)
# TCMalloc keeps a cache for each core if it may register its restartable sequences, else for each thread: glibc's are off.
ITS_OWN = {"tcmalloc": tuned("glibc.pthread.rseq=0")}


def preload(allocator: str) -> dict[str, str]:
    """The environment that puts an allocator before glibc's."""
    if allocator == "glibc":
        return {}
    library = f"{BUILT}/arenas/cargo/allocators/release/lib{allocator}.so"
    return {"LD_PRELOAD": library, **ITS_OWN.get(allocator, {})}


def proved(runs: pd.DataFrame) -> pd.DataFrame:
    """The same runs, if `malloc` of each that ended well was that of the allocator asked for. Raises UserError if not."""
    for run in runs[runs.ended == "ok"].itertuples():
        asked = run.allocator if run.allocator == "glibc" else f"lib{run.allocator}.so"
        if run.mapped != asked:
            raise UserError(f"{asked} was to be preloaded, and process {run.process} ran on {run.mapped}.")
    return runs


# [/allocators]

# [growth]
THREADS, ROUNDS = 32, 6
WAYS = ("short-lived threads", "thread pool", "thread pool, by turns")
AMOUNT = {"threads": THREADS, "rounds": ROUNDS}
# What a service does: requests that come all at once, each with a thread of its own, or one after the other, in a pool.
WORK = {"all at once": WAYS[0], "by turns": WAYS[2]}


def growth(session: Session) -> pd.DataFrame:
    """Memory over rounds of allocation, with and without a small block that each thread leaves behind."""
    cases = [
        Case.of(
            FREE_THREADED,
            EXPERIMENTS,
            "growth",
            {"way": way, "keep": keep},
            {**FOLDER, **AMOUNT},
            {"allocator": "glibc"},
        )
        for way in WORK.values()
        for keep in (True, False)
    ]
    return proved(session.run("growth over time", cases, session.budget.few))


# [/growth]

# [thresholds]
# Two values of each, as any value switches the dynamic threshold off. 131072 bytes is where glibc starts with both.
SET = ("mmap_threshold=131072", "mmap_threshold=4194304", "trim_threshold=131072", "trim_threshold=1073741824")
THRESHOLDS = {"nothing": {}, **{setting: tuned(f"glibc.malloc.{setting}") for setting in SET}}


def thresholds(session: Session) -> pd.DataFrame:
    """A22: MiB that glibc holds after blocks were freed, under each setting."""
    cases = [
        Case.of(FREE_THREADED, EXPERIMENTS, "thresholds", {}, FOLDER, {"setting": setting}, environment)
        for setting, environment in THRESHOLDS.items()
    ]
    return session.run("thresholds", cases, session.budget.repeats)


# [/thresholds]


# [remedies]
@dataclass(frozen=True)
class Remedy:
    """An allocator, tunables of glibc's, and arguments of the experiment."""

    allocator: str = "glibc"
    tunables: str = ""
    arguments: dict = field(default_factory=dict)


REMEDIES = {
    "nothing": Remedy(),
    "arena_max=1": Remedy(tunables="glibc.malloc.arena_max=1"),
    "arena_max=2": Remedy(tunables="glibc.malloc.arena_max=2"),
    f"arena_max={MORE_ARENAS}": Remedy(tunables=f"glibc.malloc.arena_max={MORE_ARENAS}"),
    "malloc_trim(0) after each round": Remedy(arguments={"trim": True}),
    "jemalloc": Remedy("jemalloc"),
    "tcmalloc": Remedy("tcmalloc"),
    "mimalloc": Remedy("mimalloc"),
}

# Those that glibc is told by one of its tunables.
SETTINGS = [name for name, remedy in REMEDIES.items() if remedy.tunables]


def remedies(session: Session, here: dict) -> pd.DataFrame:
    """What each remedy does to the same work, in which each thread leaves a small block behind."""
    cases = [
        Case.of(
            FREE_THREADED,
            EXPERIMENTS,
            "growth",
            {"way": way, "trim": False, **remedy.arguments},
            {**FOLDER, **AMOUNT, "keep": True},
            {"remedy": name, "work": work, "allocator": remedy.allocator},
            {**tuned(remedy.tunables), **preload(remedy.allocator)},
        )
        for name, remedy in REMEDIES.items()
        if remedy.allocator not in here["absent allocators"]
        for work, way in WORK.items()
    ]
    return proved(session.run("remedies", cases, session.budget.few))


# [/remedies]


# [scenarios]
@dataclass(frozen=True)
class Scenario:
    """A function with its arguments, the value that decides, its unit, and a value shown beside it. Less is better in all."""

    function: str
    arguments: dict
    value: str
    unit: str
    fixed: dict = field(default_factory=FOLDER.copy)
    beside: str = ""


SHORT, POOL = ({"way": way, **AMOUNT, "keep": True} for way in WAYS[:2])
SCENARIOS = {
    "many short-lived threads": Scenario("growth", SHORT, "grown", "MiB held at the end"),
    "long-lived server, RSS-sensitive": Scenario(
        "growth", {**POOL, "idle_s": 1.0}, "idle", "MiB held after a second without work"
    ),
    "latency-critical, multi-threaded": Scenario(
        "latency",
        {"threads": 4, "pairs": 20_000, "rounds": 9},
        "p99.9",
        "ns, 99.9 % quantile of malloc + free (p50: the median)",
        beside="p50",
    ),
    "short-lived processes": Scenario("startup", {}, "ms", "ms for an empty Python process", fixed={}),
    "tight memory limit": Scenario("growth", {**SHORT, "keep": False}, "peak", "MiB at the peak"),
    "high thread count": Scenario("growth", {**SHORT, "threads": 200, "rounds": 2}, "grown", "MiB held at the end"),
    "fork-heavy": Scenario("forks", {"children": 4}, "private", "MiB that a child does not share"),
}
# The talk praises jemalloc's "decay + background purge". By default it lets pages decay in ten seconds, and nobody purges while
# the program idles: this switches the background on, and shortens the decay, so that the idle time outlives it four times.
PURGING = "jemalloc, purging"
MALLOC_CONF = {"MALLOC_CONF": "background_thread:true,dirty_decay_ms:250,muzzy_decay_ms:0"}
# Which allocator on Linux the talk prefers to glibc's, or glibc's to it: these two run twice in each round. It rates no mimalloc.
PREFERRED = dict.fromkeys(SCENARIOS, "jemalloc") | {
    "long-lived server, RSS-sensitive": PURGING,
    "latency-critical, multi-threaded": "tcmalloc",
}


def arms(here: dict) -> dict[str, tuple[str, dict]]:
    """The allocators that are here, by the name of the arm, each with its environment."""
    found = {name: (name, preload(name)) for name in ALLOCATORS if name not in here["absent allocators"]}
    return found | ({PURGING: ("jemalloc", preload("jemalloc") | MALLOC_CONF)} if "jemalloc" in found else {})


def scenarios(session: Session, here: dict) -> pd.DataFrame:
    """A21: the talk's scenarios that one machine can stage, with each allocator of Linux that it rates, and with mimalloc."""
    cases = [
        Case.of(
            FREE_THREADED,
            EXPERIMENTS,
            scenario.function,
            scenario.arguments,
            scenario.fixed,
            {"scenario": name, "arm": arm, "allocator": allocator},
            environment,
        )
        for name, scenario in SCENARIOS.items()
        for arm, (allocator, environment) in arms(here).items()
        if arm != PURGING or PREFERRED[name] == PURGING
        for _ in range(2 if arm in ("glibc", PREFERRED[name]) else 1)
    ]
    return proved(session.run("scenarios", cases, session.budget.few))


# [/scenarios]


# [domains]
def domains(session: Session) -> pd.DataFrame:
    """Which of CPython's allocation domains reach glibc's malloc, one process for each interpreter."""
    cases = [Case.of(label, EXPERIMENTS, "domains", fixed=FOLDER) for label in session.interpreters]
    return session.run("domains", cases, repeats=1)


# [/domains]


# [service]
SERVICE = {"way": WORK["by turns"], **AMOUNT, "keep": True}


def arenas_now(session: Session) -> pd.DataFrame:
    """glibc's account of each arena after one round of the service, one process."""
    case = Case.of(FREE_THREADED, EXPERIMENTS, "arenas_now", fixed={**FOLDER, "threads": THREADS})
    return session.run("the arenas of the service", [case], repeats=1)


def service(session: Session, tunables: str) -> dict[str, list]:
    """The service under the reader's tunables and without any: the rows of three processes each, and how each ended."""
    return session.observe("exercise: the service", under, tunables)


def under(tunables: str) -> dict[str, list]:
    found = {}
    for whose, setting in (("yours", tunables), ("nothing", "")):
        case = Case.of(FREE_THREADED, EXPERIMENTS, "growth", SERVICE, FOLDER, environment=tuned(setting))
        outcomes = [case.run() for _ in range(3)]
        found[whose] = [{"rows": one.result, "ended": one.ended, "error": without_paths(one.error)} for one in outcomes]
    return found


# [/service]
