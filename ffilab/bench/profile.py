"""The third axis: where the time goes, by group of symbols.

With `perf record -e cpu-clock` where perf is allowed (a sampling of time), else from callgrind's
own costs (a count of instructions).
"""

import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from ffilab.bench import instructions
from ffilab.bench.plan import Arm
from ffilab.errors import UserError
from ffilab.subprocesses import group

# First match wins. Symbols of CPython 3.13 to 3.15; file:line of the ideas in book/ and notebooks/.
GROUPS = (
    ("libffi", re.compile(r"\bffi_|libffi")),
    ("code of the binding", re.compile(r"pyo3|pybind11|nanobind|boundary_")),
    (
        "GIL and thread state",
        re.compile(
            r"take_gil|drop_gil|PyThreadState|PyEval_(Save|Restore|Acquire|Release)|tstate_|detach_thread|current_fast"
            r"|pthread_(mutex|cond)|futex|__lll_|qsbr|CriticalSection|PyMutex|ParkingLot"
        ),
    ),
    (
        "marshaling",
        re.compile(
            r"ctypes|PyCFuncPtr|ConvParam|callproc|GetResult|_cffi|PyLong_(As|From)|PyUnicode_As|getentry|StgInfo"
        ),
    ),
    ("kernel", re.compile(r"\[k\]|\[kernel|syscall|entry_SYSCALL|vdso")),
    (
        "interpreter",
        re.compile(
            r"_?Py|python|list_|dict_|tuple_|long_|object_|unicode_|builtin_|vectorcall|cfunction|method_|gc_|mi_"
        ),
    ),
)
OTHER = "library"
SAMPLE_HZ = 4_000


def group_of(symbol: str) -> str:
    """Group of a symbol with its object, such as `take_gil python3.14`."""
    return next((name for name, pattern in GROUPS if pattern.search(symbol)), OTHER)


def perf_available() -> str | None:
    """None if perf can sample here, else the reason why not."""
    if not shutil.which("perf"):
        return "perf is not installed: `make doctor` names the package"
    with tempfile.TemporaryDirectory() as folder:
        trial = subprocess.run(
            ["perf", "record", "-e", "cpu-clock", "-o", f"{folder}/perf.data", "--", "true"],
            capture_output=True,
            text=True,
        )
    return None if trial.returncode == 0 else f"perf may not sample here: {trial.stderr.strip().splitlines()[-1]}"


def samples(label: str, arm: Arm, loops: int) -> tuple[str, dict[str, int], Counter]:
    """How it was found out, samples (or instructions) by group, and by (symbol, binary).

    `loops` should last a second or two. Raises UserError if neither perf nor callgrind is at hand.
    """
    with tempfile.TemporaryDirectory() as folder:
        if perf_available() is None:
            how, costs = "perf cpu-clock", _perf(label, arm, loops, Path(folder))
        elif instructions.available() is None:
            out = Path(folder) / "callgrind.out"
            instructions.count(label, arm, instructions.LOOPS[1], out)
            how, costs = "callgrind, own cost", instructions.by_function(out)
        else:
            raise UserError("Neither perf nor valgrind is at hand: `make doctor` names the packages.")
    grouped = Counter()
    for (symbol, binary), cost in costs.items():
        grouped[group_of(f"{symbol} {binary}")] += cost
    return how, {name: grouped[name] for name in [*(g for g, _ in GROUPS), OTHER]}, costs


def shares(label: str, arm: Arm, loops: int) -> tuple[str, dict[str, float], list[tuple[str, float]]]:
    """The same as shares of the whole, and the ten symbols that cost most."""
    how, grouped, costs = samples(label, arm, loops)
    total = sum(costs.values())
    top = [(symbol, cost / total) for (symbol, _), cost in costs.most_common(10)]
    return how, {name: cost / total for name, cost in grouped.items()}, top


def _perf(label: str, arm: Arm, loops: int, folder: Path) -> Counter:
    return sampled(
        instructions.command(label, arm, loops), f"{arm.name} on {label}", folder, instructions.environment(), SAMPLE_HZ
    )


def sampled(
    command: list[str], what: str, folder: Path, environment: dict, hz: int, lines: str | None = None
) -> Counter:
    """Samples by (symbol, binary) while a command runs, which reads `lines`. Raises UserError, naming `what` it was."""
    data = folder / "perf.data"
    with group(
        ["perf", "record", "-e", "cpu-clock", "-F", str(hz), "-o", str(data), "--", *command],
        stdin=subprocess.DEVNULL if lines is None else subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            _, err = process.communicate(lines, timeout=instructions.TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise UserError(f"perf did not finish {what}.") from None
    if process.returncode:
        raise UserError(f"perf failed on {what}: {err.strip()[-200:]}")
    listing = subprocess.run(
        [
            "perf",
            "report",
            "-i",
            str(data),
            "--stdio",
            "--no-children",
            "--sort",
            "symbol,dso",
            "-g",
            "none",
            "--field-separator",
            "\t",
            "--fields",
            "sample,symbol,dso",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = Counter()
    for line in listing.splitlines():
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) >= 3 and parts[0].isdigit():
            found[parts[1], parts[2]] += int(parts[0])
    return found
