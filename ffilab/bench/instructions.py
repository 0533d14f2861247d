"""The second axis: instructions per call, counted by callgrind, free of noise.

The slope between two loop counts cancels everything that happens once. Callgrind runs
one thread at a time and knows no price for an atomic operation or a cache miss: never
use it for locks, contention or memory effects.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from ffilab.bench.plan import Arm
from ffilab.bench.reporting import Reporter
from ffilab.errors import UserError
from ffilab.kernels import load
from ffilab.provision.catalogue import BY_LABEL
from ffilab.subprocesses import group

SINGLE = Path(__file__).with_name("single.py")
WARM_UP = 3_000
LOOPS = (2_000, 12_000)
TIMEOUT_S = 300


def available() -> str | None:
    """None if callgrind can be used here, else the reason why not."""
    return None if shutil.which("valgrind") else "valgrind is not installed: `make doctor` names the package"


def command(label: str, arm: Arm, loops: int) -> list[str]:
    """The command line that runs one arm, on its own, on one kernel."""
    arguments = json.dumps(arm.arguments)
    # -s and -P isolate as -I does, and let PYTHONHASHSEED through: the same hashes, the same instructions.
    python = [str(load(BY_LABEL[label]).python), "-s", "-P"]
    return [*python, str(SINGLE), arm.file, arm.function, arguments, str(WARM_UP), str(loops)]


def environment() -> dict[str, str]:
    """Nothing that could change the instruction count from run to run."""
    return {"PYTHONHASHSEED": "0", "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


def count(label: str, arm: Arm, loops: int, out: Path) -> int:
    """Instructions of one whole process; callgrind's own file is left at `out`. Raises UserError."""
    fixed = _fixed_addresses()
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--quiet"]
    with group(
        [*fixed, *valgrind, *command(label, arm, loops)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment(),
    ) as process:  # fmt: skip
        try:
            _, err = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise UserError(f"callgrind did not finish {arm.name} on {label} within {TIMEOUT_S} s.") from None
    if process.returncode or not out.exists():
        raise UserError(f"callgrind failed on {arm.name} on {label}: {err.strip()[-200:]}")
    return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(errors="replace"), re.M).group(1))


@functools.cache
def _fixed_addresses() -> list[str]:
    """Command prefix that switches address randomisation off, where the system allows it (containers often do not)."""
    prefix = ["setarch", "-R"]
    allowed = shutil.which("setarch") and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
    return prefix if allowed else []


def per_call(labels: list[str], arms: list[Arm]) -> dict[tuple[str, str], float]:
    """Instructions per loop for every (kernel, arm name). Raises UserError if valgrind is missing."""
    if reason := available():
        raise UserError(reason)
    slopes = {}
    with Reporter("instructions", len(labels) * len(arms)) as reporter, tempfile.TemporaryDirectory() as folder:
        for label in labels:
            for arm in arms:
                few, many = (count(label, arm, loops, Path(folder) / f"{loops}.out") for loops in LOOPS)
                slopes[label, arm.name] = (many - few) / (LOOPS[1] - LOOPS[0])
                reporter.advance(f"{arm.name} on {label}")
    return slopes


def by_function(out: Path) -> Counter:
    """Own instructions by (function, object) from a callgrind file."""
    listing = subprocess.run(
        ["callgrind_annotate", "--threshold=100", "--show=Ir", str(out)], capture_output=True, text=True, check=True
    ).stdout
    found = Counter()
    for line in listing.splitlines():
        match = re.match(r"\s*([\d,]+)\s+\([\s\d.]+%\)\s+\S*?:(.+?)(?:\s+\[(.+)\])?$", line)
        if match:
            found[match.group(2), Path(match.group(3) or "").name] += int(match.group(1).replace(",", ""))
    return found
