"""The book's own interpreters, linked again and again in other orders (claims D1, D2, D3, D4 and D6). The page quotes
it."""

import itertools
import os
import random
import re
import runpy
import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from ffilab.measure import instructions, profile
from ffilab.measure.case import Outcome, Step
from ffilab.measure.reporting import Reporter
from ffilab.measure.session import Session
from ffilab.run import machine
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, ROOT, without_paths
from ffilab.run.subprocesses import finished, group
from ffilab.setup import relink
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.placement.counting import Cache, counters

FILE = "native/placement/benchmarks.py"
# Name: loops that take some two milliseconds.
BENCHMARKS: dict[str, int] = {
    name: loops for name, (_, loops) in runpy.run_path(str(ROOT / FILE))["BENCHMARKS"].items()
}
# Each build has a lottery of its own.
BUILDS = (GIL, FREE_THREADED)


@dataclass(frozen=True)
class Size:
    """How much of it, for each build. copies: of the default; links: of each kind of D6; rounds: of the benchmarks in a
    profile. A longer run draws more orders: what is asked is how layouts differ."""

    orders: int
    copies: int
    links: int
    duels: int
    turns: int
    profiles: int
    rounds: int


SIZES = {
    "smoke": Size(orders=2, copies=1, links=1, duels=2, turns=3, profiles=2, rounds=20),
    "room": Size(orders=8, copies=3, links=4, duels=5, turns=7, profiles=4, rounds=100),
    "quick": Size(orders=10, copies=3, links=5, duels=10, turns=9, profiles=10, rounds=150),
    "full": Size(orders=100, copies=5, links=30, duels=10, turns=11, profiles=30, rounds=200),
}


def size(session: Session) -> Size:
    return SIZES[session.budget.name]


LINKED = BUILD / "placement" / "linked"
# The linker's own order, in which the interpreter is installed as well.
DEFAULT = "default"
# D6 compares these two: all functions anywhere in the program, whatever the profile made of them; or the hot ones side
# by side and all others anywhere.
TOGETHER, ANYWHERE = "hot functions together", "hot functions anywhere"


def linking(session: Session) -> dict[str, dict]:
    """By build, what came of linking: `lacking`, why it cannot be linked here, or None; `programs`, name, kind and file
    of each that runs against the default; `absent`, why there is none of D6, or None."""
    how = size(session)
    counts = how.orders, how.copies, how.links, how.rounds
    return {label: session.observe("linking", link_all, label, session.seed, *counts) for label in BUILDS}


def link_all(label: str, seed: int, orders: int, copies: int, links: int, rounds: int) -> dict:
    shutil.rmtree(LINKED / label, ignore_errors=True)
    if lacking := relink.missing(label):
        return {"lacking": without_paths(lacking), "programs": [], "absent": None}
    prepare(label)
    default = relink.link(label, where(label, DEFAULT))
    programs = [{"name": f"copy {number}", "kind": "copy", "file": DEFAULT} for number in range(copies)]
    kinds, absent = {"order": None}, None
    try:
        kinds |= {TOGETHER: by_profile(label, default, rounds), ANYWHERE: []}
    except UserError as error:
        absent = without_paths(str(error))
    seeds = random.Random(f"{seed}/{label}")
    with Reporter(f"linking CPython {label}", orders + (len(kinds) - 1) * links) as reporter:
        for kind, first in kinds.items():
            for _ in range(orders if kind == "order" else links):
                # One link is one lot, however often it is timed.
                name = f"{kind} {seeds.getrandbits(31)}"
                shuffle(label, where(label, name.replace(" ", "-")), int(name.split()[-1]), first)
                programs.append({"name": name, "kind": kind, "file": name.replace(" ", "-")})
                reporter.advance(name)
    return {"lacking": None, "programs": programs, "absent": absent}


def shuffle(label: str, program: Path, seed: int, first: list[relink.Function] | None) -> None:
    """Link functions in random order behind a pad: with None within the parts that the profile made, as a restart of
    this book does; else those of `first` in their order, and all others anywhere."""
    order, functions = random.Random(seed), relink.functions(label)
    if first is None:
        placed = relink.shuffled(functions, order)
    else:
        taken = set(first)
        others = [function for function in functions if function not in taken]
        placed = [*first, *order.sample(others, len(others))]
    relink.link(label, program, placed, order.randrange(0, relink.MAX_PAD, relink.ALIGNED))


def by_profile(label: str, program: Path, rounds: int) -> list[relink.Function]:
    """Functions that a profile of all benchmarks saw, the hottest first. Raises UserError where there is no profile."""
    _, found = hottest(program, tuple(BENCHMARKS), rounds)
    seen = [function for function in relink.functions(label) if function.symbol in found]
    return sorted(seen, key=lambda function: -found[function.symbol])


def where(label: str, file: str) -> Path:
    return LINKED / label / "bin" / file


def prepare(label: str) -> None:
    """A folder for the programs of a build, with CPython's library where they look for it: in `lib`, above
    themselves."""
    (LINKED / label).mkdir(parents=True)
    (LINKED / label / "lib").symlink_to(relink.prefix(label) / "lib")


def hottest(program: Path, benchmarks: tuple[str, ...], rounds: int) -> tuple[str, Counter]:
    """What was counted, samples (perf) or instructions (callgrind), by function. Raises UserError where neither tool
    can be used."""
    lines = "".join(f"{name} {BENCHMARKS[name]}\n" for name in benchmarks)
    with tempfile.TemporaryDirectory() as folder:
        if profile.perf_available() is None:
            what, command = "samples", server_command(program, -1)
            found = profile.sampled(
                command, "a linked CPython", Path(folder), server_environment(), 2_000, lines * rounds
            )
        elif instructions.available() is None:
            # What the start of a process takes is taken off.
            what, found = "instructions", simulated_costs(program, Path(folder), lines)
            found.subtract(simulated_costs(program, Path(folder), ""))
        else:
            raise UserError("Neither perf nor valgrind is at hand: `make doctor` names the packages.")
    counted = Counter()
    for (symbol, binary), cost in found.items():
        if Path(binary).name == program.name and cost > 0:
            counted[re.sub(r"^\[.\]\s*", "", symbol)] += cost
    if not counted:
        raise UserError("The profile of the linked CPython is empty.")
    return what, counted


def simulated_costs(program: Path, folder: Path, lines: str) -> Counter:
    """Instructions of a whole process by function and binary. Raises UserError."""
    out = folder / "callgrind.out"
    callgrind(program, [f"--callgrind-out-file={out}"], lines)
    return instructions.Costs.read(out).by_symbol()


def callgrind(program: Path, options: list[str], lines: str) -> None:
    """Run a linked CPython that answers these lines under callgrind. Raises UserError."""
    command = ["valgrind", "--tool=callgrind", *options, *server_command(program, -1)]
    finished(command, "callgrind on a linked CPython", instructions.TIMEOUT_S, lines, env=server_environment())


def server_command(program: Path, core: int) -> list[str]:
    """The program as a server of benchmarks, pinned to a core (-1: not)."""
    return [str(program), "-S", "-s", "-P", str(ROOT / FILE), str(core)]


def server_environment() -> dict[str, str]:
    """Equal hashes in every process, and nothing of ours that Python heeds."""
    return {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


class Server:
    """One linked CPython that answers `NAME LOOPS` with the ns of one loop."""

    def __init__(self, stack: ExitStack, program: Path, core: int):
        self.process = stack.enter_context(
            group(
                server_command(program, core),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                bufsize=1,
                env=server_environment(),
            )
        )

    def ask(self, name: str, loops: int) -> float:
        """Raises UserError if the program has ended."""
        try:
            self.process.stdin.write(f"{name} {loops}\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())
        except (ValueError, BrokenPipeError):
            error = self.process.stderr.read()[-200:]
            raise UserError(f"A linked CPython did not answer: {error.strip()}") from None


def duels(session: Session, made: dict[str, dict]) -> pd.DataFrame:
    """Every program against the default of its build. Columns interpreter, name, kind, benchmark, log (of time over the
    default's)."""
    how = size(session)
    cases = [
        Step(
            partial(duel, where(label, one["file"]), where(label, DEFAULT), how.turns),
            {"name": one["name"], "kind": one["kind"]},
            label,
        )
        for label, of_it in made.items()
        for one in of_it["programs"]
    ]
    return session.run("relink lottery", cases, how.duels, columns=("name", "kind", "benchmark", "log"))


def duel(program: Path, against: Path, turns: int, seed: int) -> Outcome:
    """log(time of `program` / time of `against`) by benchmark: both on one core, batch by batch in turns, each from a
    fresh copy of its file, since other pages of physical memory alone are worth some per cent."""
    order = random.Random(seed)
    core = order.choice(machine.cores_to_pin() or [-1])
    rows = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=against.parent)))
        servers = [
            Server(stack, Path(shutil.copy(path, folder / name)), core)
            for path, name in ((program, "one"), (against, "other"))
        ]
        for name, loops in BENCHMARKS.items():
            for server in servers:
                server.ask(name, loops)  # specialise, and fill the caches
            logs = []
            for _ in range(turns):
                turn = order.sample((0, 1), 2)
                ns = {number: servers[number].ask(name, loops) for number in turn}
                logs.append(np.log(ns[0] / ns[1]))
            rows.append({"benchmark": name, "log": float(np.median(logs))})
    return Outcome(rows, "ok")


STALLED = "stalled-cycles-frontend"


def stalls(session: Session, made: dict[str, dict]) -> dict[str, list[dict] | str]:
    """D2: by build, stalled front-end cycles of each benchmark in each shuffled order, or why they are not known."""
    rounds = size(session).rounds
    return {
        label: session.observe("stalled cycles of the orders", count_stalls, label, orders_of(of_it), rounds)
        for label, of_it in made.items()
    }


def count_stalls(label: str, files: dict[str, str], rounds: int) -> list[dict] | str:
    """One row for each order and benchmark, without what the start of the process takes."""
    rows = []
    for (name, file), (benchmark, loops) in itertools.product(files.items(), BENCHMARKS.items()):
        server = shlex.join(["env", "PYTHONHASHSEED=0", *server_command(where(label, file), -1)])
        asked = [f"yes '{benchmark} {loops}' | head -n {turns} | {server}" for turns in (rounds, 0)]
        found = [counters(["sh", "-c", line]) for line in asked]
        if why := next((one for one in found if isinstance(one, str)), None):
            return why
        if STALLED not in found[0]:
            return "this processor does not count stalled front-end cycles for us"
        rows.append({"name": name, "benchmark": benchmark, "stalls": found[0][STALLED] - found[1][STALLED]})
    return rows or f"no order of CPython {label} was linked"


# Called before and after each run of a benchmark, and nowhere else: callgrind writes down what it counted since the
# last time.
CLOCK = "time_perf_counter_ns"
# Of a benchmark's usual loops, one part each: to warm up, and to be counted.
WARM, COUNTED = 100, 10


def misses(session: Session, made: dict[str, dict], cache: Cache) -> dict[str, list[dict] | str]:
    """D3: by build, instructions and simulated misses of each benchmark in each shuffled order and in the default; or
    why there are none. One process for each: the next would count the same. The shuffled orders are removed
    afterwards."""
    found = {}
    for label, of_it in made.items():
        orders = orders_of(of_it)
        files = {**orders, DEFAULT: DEFAULT} if orders else {}
        found[label] = session.observe("simulated misses of the orders", count_misses, label, files, asdict(cache))
    session.observe("shuffled programs removed", remove_orders)
    return found


def orders_of(of_it: dict) -> dict[str, str]:
    """Files of the shuffled orders, by name."""
    return {one["name"]: one["file"] for one in of_it["programs"] if one["kind"] == "order"}


def count_misses(label: str, files: dict[str, str], cache: dict) -> list[dict] | str:
    """One row for each program and benchmark, as many processes at once as there are cores: a count has no clock."""
    if not files:
        return f"no order of CPython {label} was linked"
    if reason := instructions.available():
        return reason
    rows = []
    with (
        ThreadPoolExecutor(machine.cores_usable()) as pool,
        Reporter(f"misses of CPython {label}", len(files)) as reporter,
    ):
        counts = pool.map(lambda file: missed(where(label, file), Cache(**cache)), files.values())
        for name, found in zip(files, counts, strict=True):
            rows += [{"name": name, **row} for row in found]
            reporter.advance(name)
    return rows


def missed(program: Path, cache: Cache) -> list[dict]:
    """Instructions and misses of each benchmark, warm, without the start of the process. Raises UserError."""
    lines = "".join(f"{name} {loops // WARM}\n{name} {loops // COUNTED}\n" for name, loops in BENCHMARKS.items())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        options = ["--cache-sim=yes", cache.option, f"--dump-before={CLOCK}", f"--callgrind-out-file={out}"]
        callgrind(program, options, lines)
        # Parts of a benchmark: what was before it, the warming up, what lies between, and the loops that count.
        return [
            {"benchmark": name, **counted_in(out.with_name(f"out.{4 * (number + 1)}"))}
            for number, name in enumerate(BENCHMARKS)
        ]


def counted_in(part: Path) -> dict[str, int]:
    """Instructions and misses of the instruction cache in one part that callgrind wrote. Raises UserError."""
    if not part.exists():
        raise UserError(f"callgrind did not see the calls of {CLOCK} in a linked CPython.")
    text = part.read_text(errors="replace")
    events, totals = (
        re.search(rf"^{what}: (.*)$", text, re.M).group(1).split() for what in ("events", "(?:summary|totals)")
    )
    # Events that did not happen at the end of the list are left out.
    counts = dict(zip(events, map(int, totals)))
    return {"instructions": counts["Ir"], "misses": counts.get("I1mr", 0)}


def remove_orders() -> int:
    """They take much room, and their seeds make them again. Returns how many there were."""
    orders = [*LINKED.glob("*/bin/order-*"), *LINKED.glob("*/bin/hot-functions-*")]
    for path in orders:
        path.unlink()
    return len(orders)


MOST = 30


def hot_functions(session: Session) -> dict | str:
    """D4: what was counted while the default of the GIL build runs call_method, and by process the total and its
    hottest functions; or why nothing can take a profile here. Instructions are counted in one process: in each they are
    the same."""
    how = size(session)
    return session.observe("profiles of call_method", take_profiles, how.profiles, how.rounds)


def take_profiles(processes: int, rounds: int) -> dict | str:
    default, taken = where(GIL, DEFAULT), []
    try:
        if not default.exists():
            raise UserError(relink.missing(GIL) or "CPython was not linked")
        for _ in range(processes):
            what, found = hottest(default, ("call_method",), rounds)
            taken.append({"total": sum(found.values()), "hottest": dict(found.most_common(MOST))})
            if what != "samples":
                break
    except UserError as error:
        return without_paths(str(error))
    return {"what": what, "processes": taken}
