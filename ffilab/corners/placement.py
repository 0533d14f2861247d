"""Chapter "Code placement", part one: the same instructions at other addresses, and the claims D1-D6."""

import random
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ffilab.bench import child, instructions
from ffilab.budget import current
from ffilab.errors import UserError
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import exact, ratio
from ffilab.paths import NATIVE, NATIVE_OUT

SOURCES = NATIVE / "placement"
PROGRAMS = NATIVE_OUT / "placement"
KERNEL = "3.14"
PACKED, APART = 16, 4096
# A layout no longer fits when a call takes this many times as long as in the packed one.
TOO_SLOW = 1.5


@dataclass(frozen=True)
class Cache:
    """A level-1 instruction cache: bytes, ways, bytes of a line."""

    name: str
    size: int
    ways: int
    line: int

    @property
    def option(self) -> str:
        return f"--I1={self.size},{self.ways},{self.line}"

    @property
    def way_bytes(self) -> int:
        """Addresses this far apart meet in the same set."""
        return self.size // self.ways


WESTMERE = Cache("Westmere (the original's)", 32768, 4, 64)
# Cachegrind wants powers of two; where the system says nothing, this is what most processors have.
USUAL = Cache("usual (this system does not say)", 32768, 8, 64)


def this_cache(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> Cache:
    """The instruction cache that the system reports, else the usual one."""
    for folder in sorted(root.glob("index*")):
        try:
            if (folder / "type").read_text().strip() != "Instruction":
                continue
            size, ways, line = (
                (folder / name).read_text().strip() for name in ("size", "ways_of_associativity", "coherency_line_size")
            )
            return Cache("this machine", int(size.removesuffix("K")) * 1024, int(ways), int(line))
        except (OSError, ValueError):
            continue
    return USUAL


def program(name: str) -> Path:
    """One of the chapter's programs. Raises UserError if it is not built."""
    path = PROGRAMS / name
    if not path.exists():
        raise UserError(f"The program {name} is not built: run `make native`.")
    return path


def start(job: tuple) -> child.Outcome:
    """Run a job: (title, environment as KEY=VALUE words, *command)."""
    _, words, *command = job
    return child.answer(command, environment=dict(word.split("=", 1) for word in words))


def distances(session: child.Session) -> pd.DataFrame:
    """Time over distance and number of functions. Columns process, distance (bytes), n, ns (of a call)."""
    return _timed(session, "distances", "functions")


def loops(session: child.Session) -> pd.DataFrame:
    """One loop at 64 offsets. Columns process, offset (bytes), ns (of a round)."""
    return _timed(session, "alignment of a loop", "loops")


def _timed(session: child.Session, title: str, name: str) -> pd.DataFrame:
    # The order of a process's cases follows from the session's seed, too.
    seeds = random.Random(session.seed)
    jobs = [(title, (), program(name), "time")]
    found = session.repeat(title, jobs, current().repeats, lambda job: start((*job, seeds.getrandbits(16))))
    return pd.DataFrame(
        [{"process": process, **row} for process, (_, outcome) in enumerate(found) for row in outcome.needed(title)]
    )


ENVIRONMENT_BYTES = range(0, 4096, 128)


def environments(session: child.Session) -> pd.DataFrame:
    """The loop over the stack under environments of many sizes, with and without address randomisation.

    Columns random (is it on?), bytes, ns, stack (address modulo 4096).
    """
    prefixes = {True: [], **({False: prefix} if (prefix := instructions.fixed_addresses()) else {})}
    jobs = [
        ((randomised, size), (f"PADDING={'x' * size}",), *prefix, program("stack"))
        for randomised, prefix in prefixes.items()
        for size in ENVIRONMENT_BYTES
    ]
    rows = []
    for job, outcome in session.repeat("size of the environment", jobs, current().few, start):
        randomised, size = job[0]
        result = outcome.needed("stack")
        rows.append({"random": randomised, "bytes": size, "ns": result["ns"], "stack": result["stack"]})
    return pd.DataFrame(rows)


def cachegrind(command: list, cache: Cache) -> tuple[int, int]:
    """Instructions and misses of the instruction cache in a whole process. Raises UserError."""
    if not shutil.which("valgrind"):
        raise UserError("There is no valgrind here: `make doctor` names the package.")
    with tempfile.TemporaryDirectory() as folder:
        ended, _, err = child.program(
            [
                "valgrind",
                "--tool=cachegrind",
                "--cache-sim=yes",
                cache.option,
                f"--cachegrind-out-file={folder}/out",
                *command,
            ],
            timeout_s=300,
            memory_bytes=None,
        )
    found = {name: re.search(rf"I\s*{name}:\s+([\d,]+)", err) for name in ("refs", "1  misses")}
    if ended != "ok" or not all(found.values()):
        raise UserError(f"cachegrind failed ({ended}): {err.strip()[-200:]}")
    return tuple(int(match.group(1).replace(",", "")) for match in found.values())


def misses_per_call(distance: int, n: int, cache: Cache, rounds: int = 200) -> float:
    """Simulated misses of one call, from the slope between two numbers of rounds. Raises UserError."""
    few, many = (
        cachegrind([program("functions"), "run", distance, n, count], cache)[1] for count in (rounds, 3 * rounds)
    )
    return (many - few) / (2 * rounds * n)


# Distance: numbers of functions around the edges that caches of today have. 64 bytes: every line another set.
SIMULATED = {64: (8, 16, 64, 256, 384, 448, 464, 512), APART: (4, 8, 10, 12, 16, 32, 64, 256)}


def simulated() -> pd.DataFrame | str:
    """Misses of a call by cache, distance and n; or why they cannot be simulated here."""
    if not shutil.which("valgrind"):
        return "there is no valgrind here (`make doctor` names the package)"
    rows = []
    for cache in (this_cache(), WESTMERE):
        for distance, numbers in SIMULATED.items():
            for n in numbers if current().is_result else (numbers[0], 256):
                rows.append(
                    {"cache": cache.name, "distance": distance, "n": n, "misses": misses_per_call(distance, n, cache)}
                )
    return pd.DataFrame(rows)


COUNTERS = ("instructions", "cycles", "L1-icache-load-misses", "stalled-cycles-frontend")


def counters(command: list) -> dict[str, float] | str:
    """What the processor's own counters say of a process; or why they say nothing."""
    if not shutil.which("perf"):
        return "perf is not installed (`make doctor` names the package)"
    ended, _, err = child.program(["perf", "stat", "-x,", "-e", ",".join(COUNTERS), *command], memory_bytes=None)
    found = {}
    for line in err.splitlines():
        value, _, event = (line.split(",") + ["", "", ""])[:3]
        if event.split(":")[0] in COUNTERS and value.replace(".", "").isdigit():
            found[event.split(":")[0]] = float(value)
    if ended != "ok" or "instructions" not in found:
        return "this machine shows no hardware counters to us (a virtual machine often does not)"
    return found


def counted() -> pd.DataFrame | str:
    """The processor's counters of one call, for 256 functions at 64 and 4096 bytes; or why there are none."""
    n, rounds = 256, 20_000
    rows = []
    for distance in SIMULATED:
        found = counters([program("functions"), "run", distance, n, rounds])
        if isinstance(found, str):
            return found
        rows.append(
            {"distance": distance, "functions": n, **{name: value / n / rounds for name, value in found.items()}}
        )
    return pd.DataFrame(rows)


def slower(runs: pd.DataFrame, distance: int, n: int) -> np.ndarray:
    """Time of a call over that of the packed layout with as many functions, one value per process."""
    table = runs[runs.n == n].pivot(index="process", columns="distance", values="ns")
    return (table[distance] / table[PACKED]).to_numpy()


def fits(runs: pd.DataFrame, distance: int) -> np.ndarray:
    """By process, the largest number of functions that are still as fast as packed ones; infinity if all are."""
    numbers = sorted(runs[runs.distance == distance].n.unique())
    slow = np.array([slower(runs, distance, n) > TOO_SLOW for n in numbers])
    first = np.where(slow.any(axis=0), slow.argmax(axis=0), len(numbers))
    return np.array([*[0.0], *map(float, numbers[:-1]), float("inf")])[first]


def claim_measurements(
    times: pd.DataFrame,
    counts: pd.DataFrame | str,
    bisections: pd.DataFrame,
    profile: Measurement | None,
    hardware: dict[str, dict] | str,
) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger, by claim id.

    times: columns program (fast, slow, hot), ns; counts: program, instructions, misses; bisections: found;
    hardware: counters by program, or why there are none.
    """
    handed = {f"D{number}": {} for number in range(1, 7)}

    def put(claim: str, name: str, measurement: Measurement | None) -> None:
        if measurement is not None:
            handed[claim][name] = measurement

    def ns(name: str) -> np.ndarray:
        return times[times.program == name].ns.to_numpy()

    put("D1", "slow / fast, a change that never runs", ratio(ns("slow"), ns("fast")))
    if not isinstance(counts, str):
        table = counts.set_index("program")
        put(
            "D2",
            "instructions, slow / fast (simulated)",
            exact(table.instructions["slow"] / table.instructions["fast"], "ratio"),
        )
        put(
            "D3",
            "misses of the instruction cache, slow / fast (simulated)",
            exact(table.misses["slow"] / table.misses["fast"], "ratio"),
        )
    if not isinstance(hardware, str) and all("stalled-cycles-frontend" in found for found in hardware.values()):
        stalls = {name: found["stalled-cycles-frontend"] for name, found in hardware.items()}
        put("D2", "stalled front-end cycles, slow / fast (counted)", exact(stalls["slow"] / stalls["fast"], "ratio"))
    put("D4", "share of the five hottest functions, call_method", profile)
    put("D5", "share of bisections that blame the unrelated commit", exact(bisections.found.mean(), "share"))
    put("D6", "slow / hot, the same commit with hot functions together", ratio(ns("slow"), ns("hot")))
    return handed
