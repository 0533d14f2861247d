"""The second axis: instructions per call, counted by callgrind, free of noise.

The slope between two loop counts cancels everything that happens once. Batches are told apart by marks: calls of
getsid(), which nothing else calls, and at which callgrind writes down what it has counted since the one before.
Callgrind runs one thread at a time and knows no price for an atomic operation or a cache miss: never
use it for locks, contention or memory effects.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ffilab.measure.plan import Arm
from ffilab.measure.reporting import Reporter
from ffilab.measure.workers import WORKER, described
from ffilab.run.errors import UserError
from ffilab.run.machine import fixed_addresses
from ffilab.run.subprocesses import group
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load

WARM_UP = 3_000
# Few loops and many, unless an arm is given another number of its own.
LOOPS = (2_000, 12_000)
TIMEOUT_S = 300


class Job(NamedTuple):
    """What one process counts: its interpreter, by label or path, the arms, of each the loops of its longer batch, and
    the seed of its hashes."""

    python: str | Path
    arms: list[Arm]
    loops: list[int]
    hash_seed: int = 0


def available() -> str | None:
    """None if callgrind can be used here, else the reason why not."""
    return None if shutil.which("valgrind") else "valgrind is not installed: `make doctor` names the package"


def command(label: str, arm: Arm, loops: int) -> list[str]:
    """The command line that runs one arm, on its own, on one interpreter."""
    return [*python(label), "arm", json.dumps(described(arm)), str(WARM_UP), str(loops)]


def python(label: str | Path) -> list[str]:
    """The worker's command line, on an interpreter of the book or on any. -I would keep PYTHONHASHSEED out: the same
    hashes, the same instructions. The worker leaves its own folder out of sys.path, as -P does from Python 3.11 on."""
    program = label if isinstance(label, Path) else load(BY_LABEL[label]).python
    return [str(program), "-s", str(WORKER)]


def environment(gil: bool = False, hash_seed: int = 0) -> dict[str, str]:
    """Nothing that could change the instruction count from run to run. gil: as of an arm, see plan.py."""
    fixed = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    fixed["PYTHONHASHSEED"] = str(hash_seed)
    return fixed | ({"PYTHON_GIL": "1"} if gil else {})


def per_call(
    labels: list[str] | list[Path], arms: list[Arm], many: Mapping[Any, int] | None = None
) -> dict[tuple[str | Path, str], float]:
    """Instructions per loop for every (interpreter, arm name); an arm that an interpreter cannot make is left out.

    many: loops of the longer batch by (interpreter, arm name), where LOOPS would take too long; the shorter is a sixth.
    All arms of a group run in one process, as they do when they are timed; as many processes run at once as there
    are cores, since a count does not depend on what else runs. Raises UserError if valgrind is missing or fails.
    """
    jobs = []
    for label in labels:
        usable = [arm for arm in arms if not arm.interpreters or label in arm.interpreters]
        for name in dict.fromkeys(arm.group for arm in usable):
            members = [arm for arm in usable if arm.group == name]
            loops = [max(6, (many or {}).get((label, arm.name), LOOPS[1])) for arm in members]
            jobs.append(Job(label, members, loops))
    return {(job.python, name): slope for job, slopes in zip(jobs, counted(jobs)) for name, slope in slopes.items()}


def counted(jobs: list[Job]) -> list[dict[str, float]]:
    """Of each job the instructions per loop of its arms, by name, without those that its interpreter cannot make; as
    many at once as there are cores. Raises UserError if valgrind is missing or fails."""
    if reason := available():
        raise UserError(reason)
    slopes = []
    cores = os.cpu_count() or 1
    with Reporter("instructions", sum(len(job.arms) for job in jobs)) as reporter:
        for start in range(0, len(jobs), cores):
            slopes += _slopes(jobs[start : start + cores], reporter)
    return slopes


def _slopes(jobs: list[Job], reporter: Reporter) -> list[dict[str, float]]:
    """Of each job the instructions of a loop by arm."""
    slopes, before, working = [], reporter.done, " and ".join(dict.fromkeys(str(job.python) for job in jobs))

    def report() -> None:
        # A dump behind the warm-ups of a job, and two behind each arm.
        dumps = [len(list(folder.glob(f"{number}.out.*"))) for number in range(len(jobs))]
        done = sum(min(len(job.arms), (dump - 1) // 2) for job, dump in zip(jobs, dumps) if dump)
        while reporter.done - before < done:
            reporter.advance(working)

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for number, (made, job) in enumerate(zip(_run(jobs, folder, report), jobs)):
            by_arm = {}
            for position, place in enumerate(made):
                # The first dump holds all warm-ups; then two for each arm that was made: few loops, many loops.
                few, more = (_total(folder / f"{number}.out.{2 * position + k}") for k in (2, 3))
                by_arm[job.arms[place].name] = (more - few) / (job.loops[place] - job.loops[place] // 6)
            slopes.append(by_arm)
    return slopes


def _run(jobs: list[Job], folder: Path, report: Callable[[], object] = lambda: None) -> list[list[int]]:
    """Run one process per job, all at once; return which of its arms each could make, by their places.

    report: called while they work. Raises UserError if one hangs or fails.
    """
    with ExitStack() as stack:
        processes = [stack.enter_context(_marked(job, folder, str(number))) for number, job in enumerate(jobs)]
        deadline = time.monotonic() + TIMEOUT_S
        while any(process.poll() is None for process in processes):
            if time.monotonic() > deadline:
                raise UserError(f"callgrind did not finish within {TIMEOUT_S} s.")
            time.sleep(0.2)
            report()
    for number, (process, job) in enumerate(zip(processes, jobs)):
        if process.returncode:
            errors = (folder / f"{number}.errors").read_text(errors="replace")
            raise UserError(f"callgrind failed on {job.python}: {errors.strip()[-200:]}")
    return [json.loads((folder / f"{number}.made").read_text()) for number in range(len(jobs))]


@contextmanager
def _marked(job: Job, folder: Path, name: str):
    orders = [[described(arm), max(2, n // 4), n // 6, n] for arm, n in zip(job.arms, job.loops)]
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / name}.out"]
    valgrind += ["--dump-before=getsid", "--quiet"]
    with (
        (folder / f"{name}.made").open("w") as made,
        (folder / f"{name}.errors").open("w") as errors,
        group(
            [*fixed_addresses(), *valgrind, *python(job.python), "marked", json.dumps(orders)],
            stdin=subprocess.DEVNULL,
            stdout=made,
            stderr=errors,
            env=environment(job.arms[0].gil, job.hash_seed),
        ) as process,
    ):
        yield process


def costs_of(label: str, arms: list[Arm], loops: int) -> "list[Costs]":
    """What a batch of so many loops costs, of each arm in a process of its own. Raises UserError if one hangs, fails,
    or could not make its arm."""
    with tempfile.TemporaryDirectory() as scratch:
        for arm, made in zip(arms, _run([Job(label, [arm], [loops]) for arm in arms], Path(scratch))):
            if not made:
                raise UserError(f"callgrind could not run {arm.name} on {label}.")
        return [Costs.read(Path(scratch) / f"{number}.out.3") for number in range(len(arms))]


def _total(out: Path) -> int:
    return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(errors="replace"), re.M).group(1))


@dataclass(frozen=True)
class Node:
    """One line of a call tree: a function at a depth, with the instructions per call that it and its callees take."""

    depth: int
    function: str
    instructions: float
    share: float


def call_trees(label: str, arms: list[Arm]) -> dict[str, list[Node]]:
    """Where the instructions of one call of each arm go, by arm name, as a tree below the interpreter's loop. Raises
    UserError."""
    loops = LOOPS[1] // 4
    return {arm.name: _tree(costs, loops) for arm, costs in zip(arms, costs_of(label, arms, loops))}


ROOT = "_PyEval_EvalFrameDefault"
# What takes a smaller share of the root is left out, and what lies deeper.
SMALLEST, DEEPEST = 0.03, 8


def _tree(costs: "Costs", loops: int) -> list[Node]:
    """A function that several others call is divided among them by what each one's calls cost."""
    own, calls = costs.by(lambda place: place.function), costs.calls
    inclusive = {function: own[function] + sum(calls[function].values()) for function in {*own, *calls}}
    total = inclusive.get(ROOT, 0)
    if not total:
        raise UserError(f"callgrind did not see {ROOT}: the interpreter has no symbols.")
    nodes = []

    def descend(function: str, cost: float, depth: int, above: tuple[str, ...]) -> None:
        nodes.append(Node(depth, function, cost / loops, cost / total))
        for callee, part in calls[function].most_common():
            scaled = part * cost / inclusive[function]
            if scaled >= SMALLEST * total and depth < DEEPEST and callee not in above:
                descend(callee, scaled, depth + 1, (*above, function))

    descend(ROOT, total, 0, ())
    return nodes


def by_file(label: str, arm: Arm) -> Counter:
    """Own instructions per call by the source file that they come from, inlined functions included.

    Needs an interpreter with debugging information; without it everything is from `???`. Raises UserError.
    """
    loops = LOOPS[1] // 4
    (costs,) = costs_of(label, [arm], loops)
    by_name = costs.by(lambda place: Path(place.file).name)
    return Counter({name: cost / loops for name, cost in by_name.items()})


COST_LINE = frozenset("0123456789+-*")
NAME_LINE = re.compile(r"(c?)(fn|fl|fi|fe|ob)=(\(\d+\))(?: (.*))?")


class Place(NamedTuple):
    """Where an instruction comes from: the function, the source file (of what is inlined: its own), the binary."""

    function: str
    file: str
    binary: str


@dataclass(frozen=True)
class Costs:
    """What a callgrind file says (its format: valgrind's manual): own instructions by place; by caller and callee, the
    instructions of the calls."""

    own: Counter[Place]
    calls: dict[str, Counter]

    def by(self, key: Callable[[Place], object]) -> Counter:
        """Own instructions by what `key` says of their place."""
        found = Counter()
        for place, cost in self.own.items():
            found[key(place)] += cost
        return found

    def by_symbol(self) -> Counter[tuple[str, str]]:
        """Own instructions by (function, name of the binary)."""
        return self.by(lambda place: (place.function, Path(place.binary).name))

    @classmethod
    def read(cls, out: Path) -> "Costs":
        own, calls = Counter(), defaultdict(Counter)
        names: dict[tuple[str, str], str] = {}
        now = {"fn": "", "fl": "???", "ob": ""}
        callee, inside_call = "", False
        for line in out.read_text(errors="replace").splitlines():
            # Nearly all lines are costs.
            if line[:1] in COST_LINE:
                _, *costs = line.split()
                cost = int(costs[0]) if costs else 0
                if inside_call:
                    calls[now["fn"]][callee] += cost
                else:
                    own[now["fn"], now["fl"], now["ob"]] += cost
                inside_call = False
            elif match := NAME_LINE.match(line):
                of_callee, kind, number, full = match.groups()
                kind = "fl" if kind in ("fi", "fe") else kind
                if full:
                    # A second level of recursion is a function of its own there, with a '2 behind its name.
                    names[kind, number] = re.sub(r"'\d+$", "", full)
                if not of_callee:
                    now[kind] = names[kind, number]
                elif kind == "fn":
                    callee = names[kind, number]
            elif line.startswith("calls="):
                inside_call = True
        return cls(Counter({Place(*place): cost for place, cost in own.items()}), calls)
