"""What the chapter "Code placement" measures: the same instructions at other addresses. The page quotes all of it.

The lottery of CPython's functions (claims D1, D3, D4 and D6): lottery.py. The commit that git bisect blames (D1, D2, D3, D5
and D6): story.py.
"""

import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from ffilab.measure import instructions
from ffilab.measure.case import Program, program
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, resolved


# [cache]
@dataclass(frozen=True)
class Cache:
    """A level-1 instruction cache: bytes, ways, bytes of a line."""

    name: str
    size: int
    ways: int
    line: int

    @property
    def option(self) -> str:
        """As cachegrind wants it."""
        return f"--I1={self.size},{self.ways},{self.line}"

    @property
    def sets(self) -> int:
        return self.size // self.line // self.ways


WESTMERE = Cache("Westmere (the original's)", 32768, 4, 64)
# Cachegrind wants powers of two; where the system says nothing, this is what most processors have.
USUAL = Cache("usual (this system does not say)", 32768, 8, 64)


def instruction_cache(session: Session) -> Cache:
    """The instruction cache that the system reports, else the usual one."""
    return Cache(**session.observe("instruction cache", reported_cache))


def reported_cache(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> dict:
    """The fields of a Cache, from what Linux tells of its first core."""
    for folder in sorted(root.glob("index*")):
        try:
            if (folder / "type").read_text().strip() != "Instruction":
                continue
            size, ways, line = (
                (folder / name).read_text().strip() for name in ("size", "ways_of_associativity", "coherency_line_size")
            )
            return asdict(Cache("this machine", int(size.removesuffix("K")) * 1024, int(ways), int(line)))
        except (OSError, ValueError):
            continue
    return asdict(USUAL)


# [/cache]

# [distances]
FUNCTIONS = f"{BUILT}/placement/functions"
# Bytes from one function to the next. PACKED: as few lines as can be. DENSE: a line for each, in few pages and all sets.
# SPREAD: a page for each, and all sets. APART: a page for each, and one set.
PACKED, DENSE, SPREAD, APART = 16, 64, 4160, 4096
# So many functions separate what pages cost from what sets cost.
MANY = 256


def distances(session: Session) -> pd.DataFrame:
    """ns of a call by distance (bytes) and number of functions n: all of them in each process, in a random order."""
    return session.run("distances", [Program((FUNCTIONS, "time", "{seed}"))], session.budget.repeats)


# [/distances]

# [simulation]
# Distance: numbers of functions around the edges that caches of today have.
SIMULATED = {DENSE: (MANY, 448, 464, 512), SPREAD: (MANY,), APART: (8, 10, 12, 14, MANY)}


def simulated(session: Session, cache: Cache) -> list[dict] | str:
    """Misses of a call by cache, distance and n; or why they cannot be simulated here."""
    return session.observe("simulated misses of the functions", simulate, *simulated_how(session, cache))


def simulated_how(session: Session, cache: Cache) -> list:
    """The arguments of `simulate`."""
    layouts = [
        {"distance": distance, "n": n}
        for distance, numbers in SIMULATED.items()
        for n in (numbers if session.budget.is_result else sorted({numbers[0], MANY}))
    ]
    return [[asdict(cache), asdict(WESTMERE)], layouts]


def simulate(caches: list[dict], layouts: list[dict]) -> list[dict] | str:
    """One row for each cache and layout."""
    if not shutil.which("valgrind"):
        return "there is no valgrind here (`make doctor` names the package)"
    return [
        {"cache": cache["name"], **layout, "misses": misses_per_call(**layout, cache=Cache(**cache))}
        for cache in caches
        for layout in layouts
    ]


def misses_per_call(distance: int, n: int, cache: Cache, rounds: int = 200) -> float:
    """Simulated misses of one call, from the slope between two numbers of rounds. Raises UserError."""
    few, many = (cachegrind([FUNCTIONS, "run", distance, n, count], cache)["misses"] for count in (rounds, 3 * rounds))
    return (many - few) / (2 * rounds * n)


# [/simulation]


# [cachegrind]
def cachegrind(command: list, cache: Cache) -> dict[str, int]:
    """`instructions` and `misses` of the instruction cache in a whole process. Raises UserError."""
    if not shutil.which("valgrind"):
        raise UserError("There is no valgrind here: `make doctor` names the package.")
    with tempfile.TemporaryDirectory() as folder:
        options = ["--tool=cachegrind", "--cache-sim=yes", cache.option, f"--cachegrind-out-file={folder}/out"]
        command = ["valgrind", *options, *resolved(command)]
        ended, _, said = program(command, timeout_s=300, memory_bytes=None)
    lines = {"instructions": r"I\s*refs:\s+([\d,]+)", "misses": r"I\s*1  misses:\s+([\d,]+)"}
    found = {name: re.search(line, said) for name, line in lines.items()}
    if ended != "ok" or not all(found.values()):
        raise UserError(f"cachegrind failed ({ended}): {said.strip()[-200:]}")
    return {name: int(match.group(1).replace(",", "")) for name, match in found.items()}


# [/cachegrind]

# [counters]
COUNTERS = ("instructions", "cycles", "L1-icache-load-misses", "iTLB-load-misses", "stalled-cycles-frontend")


def counters(command: list) -> dict[str, float] | str:
    """What the processor's own counters say of a process; or why they say nothing."""
    if not shutil.which("perf"):
        return "perf is not installed (`make doctor` names the package)"
    command = ["perf", "stat", "-x,", "-e", ",".join(COUNTERS), *resolved(command)]
    ended, _, said = program(command, memory_bytes=None)
    found = {}
    for line in said.splitlines():
        value, _, event = (line.split(",") + ["", "", ""])[:3]
        if event.split(":")[0] in COUNTERS and value.replace(".", "").isdigit():
            found[event.split(":")[0]] = float(value)
    if ended != "ok" or "instructions" not in found:
        return "this machine shows no hardware counters to us (a virtual machine often does not)"
    return found


# [/counters]


# [counted]
def counted(session: Session) -> list[dict] | str:
    """The processor's counters of one call, for many functions at three distances; or why there are none."""
    return session.observe("hardware counters of the functions", count)


def count(n: int = MANY, rounds: int = 20_000) -> list[dict] | str:
    """One row for each distance; the start of the process is in it."""
    rows = []
    for distance in SIMULATED:
        found = counters([FUNCTIONS, "run", distance, n, rounds])
        if isinstance(found, str):
            return found
        a_call = {name: value / n / rounds for name, value in found.items()}
        rows.append({"distance": distance, "functions": n, **a_call})
    return rows


# [/counted]


# [loops]
def loops(session: Session) -> pd.DataFrame:
    """ns of a round of one loop by its offset (bytes): all 64 in each process, in a random order."""
    return session.run(
        "alignment of a loop", [Program((f"{BUILT}/placement/loops", "time", "{seed}"))], session.budget.repeats
    )


# [/loops]

# [environments]
ENVIRONMENT_BYTES = range(0, 4096, 512)


def environments(session: Session) -> pd.DataFrame:
    """ns of a round of the loop over the stack, by bytes added to the environment.

    random: does the system choose addresses at random? Where it can be told not to, both.
    """
    fixed = session.observe("command that fixes addresses", instructions.fixed_addresses)
    cases = [
        Program((*prefix, f"{BUILT}/placement/stack"), {"random": not prefix, "bytes": size}, {"PADDING": "x" * size})
        for prefix in ([], *([fixed] if fixed else []))
        for size in ENVIRONMENT_BYTES
    ]
    return session.run("size of the environment", cases, session.budget.few)


# [/environments]
