"""Instructions, simulated misses and the processor's own counters of a whole process. The page quotes it."""

import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from ffilab.measure import instructions
from ffilab.measure.case import program
from ffilab.measure.session import Session
from ffilab.run.errors import UserError
from ffilab.run.paths import resolved


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


def cachegrind(command: list, cache: Cache) -> dict[str, int]:
    """`instructions` and `misses` of the instruction cache in a whole process. Raises UserError."""
    if reason := instructions.available():
        raise UserError(reason)
    with tempfile.TemporaryDirectory() as folder:
        options = ["--tool=cachegrind", "--cache-sim=yes", cache.option, f"--cachegrind-out-file={folder}/out"]
        command = ["valgrind", *options, *resolved(command)]
        ended, _, said = program(command, timeout_s=300, memory_bytes=None)
    lines = {"instructions": r"I\s*refs:\s+([\d,]+)", "misses": r"I\s*1  misses:\s+([\d,]+)"}
    found = {name: re.search(line, said) for name, line in lines.items()}
    if ended != "ok" or not all(found.values()):
        raise UserError(f"cachegrind failed ({ended}): {said.strip()[-200:]}")
    return {name: int(match.group(1).replace(",", "")) for name, match in found.items()}


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


def table(rows: list[dict] | str) -> pd.DataFrame | str:
    """Rows as a frame; the reason why there are none stays as it is."""
    return rows if isinstance(rows, str) else pd.DataFrame(rows)
