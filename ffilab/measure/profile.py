"""The third axis: where the time goes, by group of symbols.

With `perf record -e cpu-clock` where perf is allowed (a sampling of time), else from callgrind's
own costs (a count of instructions).
"""

import functools
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

from ffilab.measure import instructions
from ffilab.measure.plan import Arm
from ffilab.run.errors import UserError
from ffilab.run.subprocesses import finished

# Groups of symbols, the first that matches wins. Each holds the own time of its functions, and not of what they call.
HAND_OFF, CONVERSION, CALLING = "GIL and thread state", "conversion, by name", "ctypes and cffi, the rest"
GROUPS = tuple(
    (name, re.compile("|".join(parts)))
    for name, parts in tomllib.loads(Path(__file__).with_name("symbols.toml").read_text(encoding="utf-8")).items()
)
OTHER = "library"
SAMPLE_HZ = 4_000
# Per cent of a profile, at its beginning, that `look` leaves out: there the process starts, imports and warms up.
START = 20


@functools.cache
def perf_available() -> str | None:
    """None if perf can sample here, else the reason why not."""
    if not shutil.which("perf"):
        return "perf is not installed: `make doctor` names the package"
    with tempfile.TemporaryDirectory() as folder:
        command = ["perf", "record", "-e", "cpu-clock", "-o", f"{folder}/perf.data", "--", "true"]
        trial = subprocess.run(command, capture_output=True, text=True)
    why = (trial.stderr.strip() or "it does not say why").splitlines()[-1]
    return None if trial.returncode == 0 else f"perf may not sample here: {why}"


def look(label: str, arm: Arm, loops: int) -> dict:
    """Where the time of an arm goes, as JSON can hold it: `how` it was found out, and `costs`, a list of [symbol,
    binary, samples (or instructions)].

    `loops` should last half a second or more: then the process has started before the first fifth of it is over, and
    what perf saw in that fifth is left out. Raises UserError if neither perf nor callgrind is at hand.
    """
    with tempfile.TemporaryDirectory() as folder:
        if perf_available() is None:
            command, environment = instructions.command(label, arm, loops), instructions.environment()
            what = f"{arm.name} on {label}"
            how = "perf cpu-clock"
            costs = sampled(command, what, Path(folder), environment, SAMPLE_HZ, since=START)
        elif instructions.available() is None:
            (batch,) = instructions.costs_of(label, [arm], instructions.LOOPS[1])
            how, costs = "callgrind, own cost", batch.by_symbol()
        else:
            raise UserError("Neither perf nor valgrind is at hand: `make doctor` names the packages.")
    return {"how": how, "costs": [[symbol, binary, cost] for (symbol, binary), cost in costs.most_common() if cost]}


def grouped(sample: dict, groups: tuple[tuple[str, re.Pattern], ...] = ()) -> dict[str, int]:
    """What `look` saw, by group of symbols; the first group that matches wins, those of the caller before ours."""
    groups = (*groups, *GROUPS)
    counted = Counter()
    for symbol, binary, cost in sample["costs"]:
        name = next((name for name, pattern in groups if pattern.search(f"{symbol} {binary}")), OTHER)
        counted[name] += cost
    return {name: counted[name] for name in dict.fromkeys([*(name for name, _ in GROUPS), OTHER])}


def sampled(
    command: list[str], what: str, folder: Path, environment: dict, hz: int, lines: str | None = None, since: int = 0
) -> Counter:
    """Samples by (symbol, binary) while a command runs, which reads `lines`, without the first `since` per cent of the
    time.

    Raises UserError, naming `what` it was.
    """
    data = folder / "perf.data"
    record = ["perf", "record", "-e", "cpu-clock", "-F", str(hz), "-o", str(data), "--", *command]
    finished(record, f"perf on {what}", instructions.TIMEOUT_S, lines, env=environment)
    report = ["perf", "report", "-i", str(data), "--stdio", "--no-children", "--sort", "symbol,dso", "-g", "none"]
    report += ["--time", f"{since}%-100%"] if since else []
    report += ["--field-separator", "\t", "--fields", "sample,symbol,dso"]
    listing = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    found = Counter()
    for line in listing.splitlines():
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) >= 3 and parts[0].isdigit():
            found[parts[1], parts[2]] += int(parts[0])
    return found
