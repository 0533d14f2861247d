"""Chapter "Code placement", part three: CPython linked again and again from the same objects, in other orders."""

import contextlib
import os
import random
import re
import runpy
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from ffilab import machine, relink
from ffilab.bench import child, instructions, profile
from ffilab.bench.reporting import Reporter
from ffilab.budget import current
from ffilab.corners.placement import KERNEL, SOURCES
from ffilab.corners.placement_story import WORK
from ffilab.errors import UserError
from ffilab.judge import statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.processes import exact, range_without_noise
from ffilab.judge.statistics import Interval
from ffilab.kernels import load
from ffilab.provision.catalogue import BY_LABEL
from ffilab.subprocesses import group

FILE = SOURCES / "benchmarks.py"
# Name: loops that take some two milliseconds.
BENCHMARKS: dict[str, int] = {name: loops for name, (_, loops) in runpy.run_path(str(FILE))["BENCHMARKS"].items()}
ORDERS, COPIES = (30, 10) if current().is_result else (4, 2)
TURNS = 11 if current().is_result else 3
LINKED = WORK / "linked"
DEFAULT, BY_PROFILE, BY_PGO = "as the linker puts it", "hot functions together", "as in the book's own CPython 3.14"
THRESHOLDS = (1.02, 1.05)
RESAMPLES = 2_000


def command(program: Path, core: int) -> list[str]:
    """The program as a server of benchmarks, pinned to a core (-1: not)."""
    return [str(program), "-S", "-s", "-P", str(FILE), str(core)]


class Server:
    """One linked CPython that answers `NAME LOOPS` with the ns of one loop."""

    def __init__(self, stack: contextlib.ExitStack, program: Path, core: int):
        environment = {"PATH": os.environ["PATH"], **relink.environment()}
        self.process = stack.enter_context(
            group(
                command(program, core),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                bufsize=1,
                env=environment,
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


def duel(program: Path, against: Path, order: random.Random) -> dict[str, float]:
    """log(time of `program` / time of `against`) by benchmark: both on one core, batch by batch in turns.

    Each runs from a fresh copy of its file: the same bytes at the same addresses run by some per cent slower or
    faster from other pages of physical memory, and that is not what is asked.
    """
    core = order.choice(machine.cores_to_pin() or [-1])
    found = {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=LINKED)))
        servers = [
            Server(stack, Path(shutil.copy(path, folder / name)), core)
            for path, name in ((program, "one"), (against, "other"))
        ]
        for name, loops in BENCHMARKS.items():
            for server in servers:
                server.ask(name, loops)  # specialise, and fill the caches
            logs = []
            for _ in range(TURNS):
                turn = order.sample((0, 1), 2)
                ns = {number: servers[number].ask(name, loops) for number in turn}
                logs.append(np.log(ns[0] / ns[1]))
            found[name] = float(np.median(logs))
    return found


def link_all(seed: int) -> tuple[dict[str, Path], dict[str, str], float]:
    """Link the default, its copies, the shuffled orders and the two orders with a reason.

    Returns the programs by name, why one is missing by its name, and the seconds that all shuffled links took.
    """
    shutil.rmtree(LINKED, ignore_errors=True)
    names = relink.functions()
    programs, absent = {DEFAULT: relink.link(LINKED / "default")}, {}
    programs |= {f"copy {number}": programs[DEFAULT] for number in range(COPIES)}
    order = random.Random(seed)
    began = time.monotonic()
    with Reporter("linking CPython", ORDERS) as reporter:
        for number in range(ORDERS):
            shuffled = order.sample(names, len(names))
            programs[f"order {number}"] = relink.link(LINKED / f"order-{number}", shuffled)
            reporter.advance(f"order {number + 1}")
    seconds = time.monotonic() - began
    for name, file, make in (
        (BY_PROFILE, "profile", lambda: [function for function, _ in hottest(programs[DEFAULT])[1].most_common()]),
        (BY_PGO, "pgo", lambda: relink.order_of(executable())),
    ):
        try:
            known = set(names)
            programs[name] = relink.link(LINKED / file, [function for function in make() if function in known])
        except UserError as error:
            absent[name] = str(error)
    return programs, absent, seconds


def executable() -> Path:
    """The chapter's own interpreter: compiled with a profile, its functions in the order that the profile gave."""
    return Path(load(BY_LABEL[KERNEL]).python).resolve()


def hottest(program: Path, benchmarks: tuple[str, ...] = tuple(BENCHMARKS)) -> tuple[str, Counter]:
    """What was counted, samples (perf) or instructions (callgrind), and how many by function while benchmarks run.

    Raises UserError where neither tool can be used.
    """
    lines = "".join(f"{name} {BENCHMARKS[name]}\n" for name in benchmarks)
    with tempfile.TemporaryDirectory() as folder:
        if profile.perf_available() is None:
            lines *= 200 if current().is_result else 20
            environment = {"PATH": os.environ["PATH"], **relink.environment()}
            what, words = "samples", command(program, -1)
            found = profile.sampled(words, "a linked CPython", Path(folder), environment, 2_000, lines)
        elif shutil.which("valgrind"):
            # What the start of a process takes is taken off.
            what, found = "instructions", _instructions(program, Path(folder), lines)
            found.subtract(_instructions(program, Path(folder), ""))
        else:
            raise UserError("Neither perf nor valgrind is at hand: `make doctor` names the packages.")
    counted = Counter()
    for (symbol, binary), cost in found.items():
        if Path(binary).name == program.name and cost > 0:
            counted[re.sub(r"^\[.\]\s*", "", symbol)] += cost
    if not counted:
        raise UserError("The profile of the linked CPython is empty.")
    return what, counted


def _instructions(program: Path, folder: Path, lines: str) -> Counter:
    out = folder / "callgrind.out"
    with group(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *command(program, -1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        env={"PATH": os.environ["PATH"], **relink.environment()},
    ) as process:
        try:
            process.communicate(lines, timeout=instructions.TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise UserError("callgrind did not finish a linked CPython.") from None
    if process.returncode:
        raise UserError(f"callgrind failed on a linked CPython (exit code {process.returncode}).")
    return instructions.by_function(out)


def top_five(program: Path) -> tuple[Measurement | None, list[tuple[str, float]] | str]:
    """D4: the share of the five hottest functions in call_method, and the ten hottest with theirs.

    None, and why, where nothing can take a profile.
    """
    try:
        what, found = hottest(program, ("call_method",))
    except UserError as error:
        return None, str(error)
    total, five = sum(found.values()), sum(cost for _, cost in found.most_common(5))
    # Samples are a sample; instructions were all counted.
    measurement = exact(five / total, f"share of {what}")
    if what == "samples":
        measurement = Measurement(statistics.share_interval(five, total), 0.0, f"share of {what}")
    return measurement, [(name, cost / total) for name, cost in found.most_common(10)]


def lottery(session: child.Session, programs: dict[str, Path]) -> pd.DataFrame:
    """Every program against the default, in rounds; the shuffled ones are removed afterwards.

    Columns name, benchmark, log (of time over the default's).
    """
    jobs = [(name, path, programs[DEFAULT]) for name, path in programs.items() if name != DEFAULT]
    order = random.Random(session.seed)

    def one(job):
        return child.Outcome(duel(job[1], job[2], order), "ok", "")

    found = session.repeat("relink lottery", jobs, current().repeats, one)
    for name, path in programs.items():
        if name.startswith("order "):
            path.unlink()  # thirty of them take 200 MB; the seed makes them again
    return pd.DataFrame(
        [
            {"name": job[0], "benchmark": benchmark, "log": log}
            for job, outcome in found
            for benchmark, log in outcome.result.items()
        ]
    )


def ratios(runs: pd.DataFrame, benchmark: str, kind: str) -> pd.Series:
    """Median ratio to the copies' centre by program of a kind (`order`, `copy`, or a name)."""
    chosen = runs[runs.benchmark == benchmark]
    centre = chosen[chosen.name.str.startswith("copy ")].groupby("name").log.median().median()
    medians = chosen[chosen.name.str.startswith(kind)].groupby("name").log.median()
    return np.exp(medians - centre)


def table_of(runs: pd.DataFrame, benchmark: str, kind: str) -> np.ndarray:
    """Logs of the programs of a kind, shape (programs, rounds)."""
    chosen = runs[(runs.benchmark == benchmark) & runs.name.str.startswith(kind)]
    return np.array([part.log.to_numpy() for _, part in chosen.groupby("name")])


def spread(runs: pd.DataFrame, benchmark: str, seed: int = 0) -> tuple[float, Interval]:
    """Slowest over fastest median of the orders, and what noise alone gives for as many programs.

    The first is too large by what noise adds to the largest and takes from the smallest. The second shows how much
    that is: the middle 95 % of the same statistic over sets of medians drawn from the copies' residuals.
    """
    rng = np.random.default_rng(seed)
    orders, copies = table_of(runs, benchmark, "order "), table_of(runs, benchmark, "copy ")
    value, rounds = float(np.exp(np.ptp(np.median(orders, axis=1)))), copies.shape[1]
    if rounds < statistics.MIN_RESTARTS:
        return value, Interval(*[float("nan")] * 3)
    # A residual of n rounds is smaller than the noise by the factor sqrt((n - 1) / n).
    residuals = (copies - copies.mean(axis=1, keepdims=True)).ravel() * np.sqrt(rounds / (rounds - 1))
    noise = np.median(rng.choice(residuals, size=(RESAMPLES, *orders.shape)), axis=2)
    alone = np.exp(np.ptp(noise, axis=1))
    return value, Interval(float(np.median(alone)), *map(float, np.quantile(alone, (0.025, 0.975))))


def true_spread(runs: pd.DataFrame, benchmark: str) -> Interval:
    """Slowest over fastest order with the noise taken out: see `processes.range_without_noise`."""
    return range_without_noise(table_of(runs, benchmark, "order "))


def passing(runs: pd.DataFrame, benchmark: str, kind: str, threshold: float) -> tuple[int, int]:
    """Programs of a kind that are slower than the copies' centre by the threshold or more, and how many there are."""
    found = ratios(runs, benchmark, kind)
    return int((found >= threshold).sum()), len(found)
