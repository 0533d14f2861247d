"""`python3 ffilab/bootstrap.py study notebooks.measuring.contest`: our instrument against pyperf, on the same functions and the same wall time.

Three questions: how often does each see a difference where there is none; how wide is its
interval at the book's level; how small a slowdown does it find. Results: `_build/results/bench.json`.
"""

import contextlib
import dataclasses
import json
import math
import os
import re
import statistics as stdlib_statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import pyperf
from scipy import stats

from ffilab import machine, settings
from ffilab.bench import runner
from ffilab.bench.plan import Arm, plan
from ffilab.bench.record import Record
from ffilab.bench.workers import described
from ffilab.budget import Budget
from ffilab.errors import UserError
from ffilab.judge.estimates import LEVEL
from ffilab.judge.statistics import Comparison, compare, finding
from ffilab.paths import BUILT, NATIVE, RECORDS, RESULTS
from ffilab.progress import say, step
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from ffilab.provision.installed import load
from ffilab.subprocesses import group
from notebooks.loaders.experiment import ARMS, LIBRARY

# [both]
# So many standard deviations to either side does an interval at the book's level reach.
REACH = float(stats.norm.ppf(0.5 + LEVEL / 2))
SPIN_ARMS, SPIN = "native/measuring/arms.py", f"{BUILT}/measuring/libspin.so"
PYPERF_ARM = NATIVE / "measuring" / "pyperf_arm.py"
SPIN_ITERATIONS = 1_000
INJECTED = (0.005, 0.01, 0.02, 0.05)
# Wall time (s) for one comparison of two arms: of one interpreter, of two.
PAIR_S = 10
PAIR_OF_INTERPRETERS_S = 20
# pyperf's own `--fast` takes about half of PAIR_S for one function, its default about half of PAIR_OF_INTERPRETERS_S.
PYPERF_FAST = ("--fast",)
PYPERF_DEFAULT = ()


@dataclasses.dataclass(frozen=True)
class Size:
    """How much of the contest to run.

    copies: identical arms in one of our A/A runs; n copies give n (n - 1) / 2 comparisons.
    aa_runs: such runs. pyperf_runs: pyperf's A/A runs, compared in all pairs.
    widths: repetitions for the half-widths. detections: repetitions for each injected slowdown.
    scale: factor on all wall times.
    """

    copies: int
    aa_runs: int
    pyperf_runs: int
    widths: int
    detections: int
    scale: float


SIZES = {
    "smoke": Size(copies=3, aa_runs=1, pyperf_runs=2, widths=1, detections=1, scale=0.05),
    "room": Size(copies=4, aa_runs=2, pyperf_runs=5, widths=3, detections=5, scale=0.3),
    "quick": Size(copies=8, aa_runs=4, pyperf_runs=15, widths=5, detections=10, scale=1),
    "full": Size(copies=8, aa_runs=8, pyperf_runs=21, widths=11, detections=20, scale=1),
}


def noop(name: str, loader: str = "CDLL") -> Arm:
    """A call of a C function that does nothing."""
    return Arm(name, ARMS, "call", {"loader": loader, "function": "noop", "library": LIBRARY})


def spin(name: str, iterations: int) -> Arm:
    """A call of a C loop of a chosen length."""
    return Arm(name, SPIN_ARMS, "spin", {"library": SPIN, "iterations": iterations})


def ours(name: str, arms: list[Arm], labels: list[str], seconds: float, folder: Path) -> Record:
    """One run of our instrument that uses up its wall time and stops; its record goes into a folder of its own."""
    budget = Budget("contest", restarts=10_000, blocks=10, seconds=seconds, batch_ms=2, scale=1, repeats=1)
    # The contest is an A/A test itself: controls would only take wall time that pyperf does not spend on them.
    made = plan(name, arms, labels, budget, with_controls=False, wall_s=seconds)
    return runner.run(made, folder)


def pyperf_run(arm: Arm, label: str, out: Path, options: tuple[str, ...], scale: float) -> float:
    """Measure one arm with pyperf into `out`; returns the wall seconds that it took."""
    if scale < 1:
        options = ("-p2", "-n1", "-w1", "--min-time=0.01")
    inherited = ("--quiet", "--inherit-environ", "ARM")
    began = time.monotonic()
    with group(
        [load(BY_LABEL[label]).python, PYPERF_ARM, *inherited, "-o", out, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ARM": json.dumps(described(arm))},
    ) as process:
        _, err = process.communicate()
    if process.returncode:
        raise UserError(f"pyperf failed on {arm.name}: {err.strip()[-200:]}")
    return time.monotonic() - began


# [/both]


# [verdicts]
def pyperf_finding(one: Path, other: Path) -> str | None:
    """What `pyperf compare_to ONE OTHER` says of OTHER: `slower`, `faster`, or None for not significant."""
    answer = subprocess.run(
        [sys.executable, "-m", "pyperf", "compare_to", one, other], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"x (slower|faster)", answer)
    return found.group(1) if found else None


def log_mean(path: Path) -> float:
    return math.log(pyperf.Benchmark.load(str(path)).mean())


def _spread(values: list[float]) -> float:
    return stdlib_statistics.stdev(values) if len(values) > 1 else float("nan")


def _nominal(one: Path, other: Path) -> float:
    """Half-width of log(mean / mean) if all values were independent, as a t test assumes."""
    variance = 0.0
    for path in (one, other):
        benchmark = pyperf.Benchmark.load(str(path))
        values = benchmark.get_values()
        if len(values) > 1:
            variance += (benchmark.stdev() / benchmark.mean()) ** 2 / len(values)
    return REACH * math.sqrt(variance)


def all_pairs(record: Record, label: str, names: list[str]) -> list[Comparison]:
    return [compare(record, (label, a), (label, b)) for a, b in combinations(names, 2)]


@contextlib.contextmanager
def burner():
    """Another process that keeps one core busy, pinned where the system allows it."""
    code = "import os\nif hasattr(os, 'sched_setaffinity'): os.sched_setaffinity(0, {0})\nwhile True: pass"
    with group([sys.executable, "-c", code]):
        time.sleep(1)
        yield


# [/verdicts]


class Contest:
    """Runs the parts one after the other and keeps `bench.json` up to date after each."""

    def __init__(self, size: Size, budget: str):
        self.size = size
        self.stamp, self.runs = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f"), 0
        self.results = {
            "budget": budget,
            "reach": REACH,
            "machine": machine.facts(),
            "aa": {},
            "half_width": {},
            "detect": {},
        }

    def run(self) -> dict:
        with tempfile.TemporaryDirectory() as folder:
            # One bar for the reader: the single runs report into a file that nobody reads.
            settings.tell(progress=str(Path(folder) / "progress.json"))
            parts = [
                ("A/A, idle", lambda: self.aa("idle", Path(folder))),
                ("A/A, a burner on one core", lambda: self.aa("burner", Path(folder))),
                ("half-width, CDLL / PyDLL", lambda: self.half_width("loaders", Path(folder))),
                (f"half-width, {GIL} / {FREE_THREADED}", lambda: self.half_width("gil", Path(folder))),
                ("injected slowdowns", lambda: self.detect(Path(folder))),
            ]
            for title, part in parts:
                with step(title) as self.bar:
                    part()
                self.save()
        return self.results

    def save(self) -> None:
        RESULTS.mkdir(parents=True, exist_ok=True)
        temporary = RESULTS / "bench.json.tmp"
        temporary.write_text(json.dumps(_finite(self.results), indent=1))
        temporary.replace(RESULTS / "bench.json")

    def next_folder(self) -> Path:
        """A folder for one more record."""
        self.runs += 1
        return RECORDS / "contest" / f"{self.stamp}-{self.runs:03}"

    # [questions]
    def aa(self, state: str, folder: Path) -> None:
        """Share of differences seen between copies of one call."""
        size = self.size
        names = [f"copy {n}" for n in range(size.copies)]
        rounds = max(size.aa_runs, size.pyperf_runs)
        with burner() if state == "burner" else contextlib.nullcontext():
            comparisons, files = [], []
            # In turns, so that both see the same hour of the machine.
            for number in range(rounds):
                self.bar.update(number / rounds, f"round {number + 1} of {rounds}")
                if number < size.aa_runs:
                    seconds = PAIR_S / 2 * size.copies * size.scale
                    record = ours("aa", [noop(name) for name in names], [GIL], seconds, self.next_folder())
                    comparisons += all_pairs(record, GIL, names)
                if number < size.pyperf_runs:
                    files.append(folder / f"aa-{state}-{number}.json")
                    pyperf_run(noop("call"), GIL, files[-1], PYPERF_FAST, size.scale)
        theirs = [pyperf_finding(a, b) for a, b in combinations(files, 2)]
        self.results["aa"][state] = {
            "ours": sum(finding(c) is not None for c in comparisons) / len(comparisons),
            "pyperf": sum(f is not None for f in theirs) / len(theirs),
            "n": {"ours": len(comparisons), "pyperf": len(theirs)},
            "ours_median_half_width": stdlib_statistics.median(c.ratio.half_width for c in comparisons),
            "pyperf_spread_of_means": _spread([log_mean(f) for f in files]),
        }

    def half_width(self, what: str, folder: Path) -> None:
        """Half-width of the interval of one ratio at the book's level, as a fraction of it, at the same wall time.

        Ours: the interval that a run prints, median over repetitions. pyperf prints no interval; its half-width is
        what REACH standard deviations of the log-ratio over repetitions cover (`pyperf`); `pyperf_nominal` is the
        interval that its own t test implies.
        """
        size = self.size
        if what == "loaders":
            arms, labels, seconds = [noop("CDLL"), noop("PyDLL", "PyDLL")], [GIL], PAIR_S
            cells, options = ((GIL, "CDLL"), (GIL, "PyDLL")), PYPERF_FAST
        else:
            arms, labels, seconds = [noop("CDLL")], [GIL, FREE_THREADED], PAIR_OF_INTERPRETERS_S
            cells, options = ((GIL, "CDLL"), (FREE_THREADED, "CDLL")), PYPERF_DEFAULT
        widths, values, theirs, nominal, spent = [], [], [], [], {"ours": 0.0, "pyperf": 0.0}
        by_name = {arm.name: arm for arm in arms}
        for number in range(size.widths):
            self.bar.update(number / size.widths, f"round {number + 1} of {size.widths}")
            began = time.monotonic()
            ratio = compare(ours(what, arms, labels, seconds * size.scale, self.next_folder()), *cells).ratio
            spent["ours"] += time.monotonic() - began
            widths.append(ratio.half_width / ratio.value)
            values.append(math.log(ratio.value))
            pair = []
            for label, name in cells:
                out = folder / f"{what}-{label}-{name}-{number}.json"
                spent["pyperf"] += pyperf_run(by_name[name], label, out, options, size.scale)
                pair.append(out)
            theirs.append(log_mean(pair[0]) - log_mean(pair[1]))
            nominal.append(_nominal(*pair))
        self.results["half_width"][what] = {
            "ours": stdlib_statistics.median(widths),
            "ours_spread_of_ratios": REACH * _spread(values),
            "pyperf": REACH * _spread(theirs),
            "pyperf_nominal": stdlib_statistics.median(nominal),
            "ratio": {
                "ours": math.exp(stdlib_statistics.median(values)),
                "pyperf": math.exp(stdlib_statistics.median(theirs)),
            },
            "seconds": {name: total / size.widths for name, total in spent.items()},
            "n": size.widths,
        }

    def detect(self, folder: Path) -> None:
        """The smallest injected slowdown that each finds in nine of ten runs, with the right sign."""
        size = self.size
        lengths = self.calibrated_lengths()
        arms = [spin("0", lengths[0.0]), *(spin(f"{f:g}", lengths[f]) for f in INJECTED)]
        hits = {"ours": dict.fromkeys(INJECTED, 0), "pyperf": dict.fromkeys(INJECTED, 0)}
        injected = {f: [] for f in INJECTED}
        for number in range(size.detections):
            self.bar.update(number / size.detections, f"round {number + 1} of {size.detections}")
            record = ours("detect", arms, [GIL], PAIR_S / 2 * len(arms) * size.scale, self.next_folder())
            files = {}
            for arm in arms:
                files[arm.name] = folder / f"detect-{arm.name}-{number}.json"
                pyperf_run(arm, GIL, files[arm.name], PYPERF_FAST, size.scale)
            for f in INJECTED:
                result = compare(record, (GIL, f"{f:g}"), (GIL, "0"))
                injected[f].append(result.ratio.value - 1)
                hits["ours"][f] += finding(result) == "slower"
                hits["pyperf"][f] += pyperf_finding(files["0"], files[f"{f:g}"]) == "slower"
        share = {who: {f: n / size.detections for f, n in found.items()} for who, found in hits.items()}
        self.results["detect"] = {
            who: next((f for f in INJECTED if all(share[who][g] >= 0.9 for g in INJECTED if g >= f)), None)
            for who in ("ours", "pyperf")
        } | {
            "share": {who: {f"{f:g}": s for f, s in found.items()} for who, found in share.items()},
            "injected_as_measured_by_ours": {f"{f:g}": stdlib_statistics.median(v) for f, v in injected.items()},
            "n": size.detections,
        }

    def calibrated_lengths(self) -> dict[float, int]:
        """Iterations of the spin for each slowdown, so that the whole call takes (1 + f) times as long."""
        arms = [spin("one", SPIN_ITERATIONS), spin("two", 2 * SPIN_ITERATIONS)]
        record = ours("calibrate", arms, [GIL], PAIR_S * self.size.scale, self.next_folder())
        result = compare(record, (GIL, "two"), (GIL, "one"))
        # result: time of two / time of one = 1 + spin / call.
        per_call = 1 / (result.net_ratio.value - 1)
        extra = {f: round(SPIN_ITERATIONS * f * per_call) for f in INJECTED}
        return {0.0: SPIN_ITERATIONS, **{f: SPIN_ITERATIONS + n for f, n in extra.items()}}

    # [/questions]


def _finite(value):
    """NaN is no JSON: what could not be computed becomes null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main(budget: str) -> dict:
    """Run the contest of a budget's size; says where the results are."""
    results = Contest(SIZES[budget], budget).run()
    for state, found in results["aa"].items():
        say(f"  A/A {state}: ours {found['ours']:.1%}, pyperf {found['pyperf']:.1%} false positives")
    for what, found in results["half_width"].items():
        say(f"  half-width {what}: ours {found['ours']:.2%}, pyperf {found['pyperf']:.2%}")
    say(f"  smallest slowdown found in 9 of 10: ours {results['detect']['ours']}, pyperf {results['detect']['pyperf']}")
    say(f"  written to {os.path.relpath(RESULTS / 'bench.json')}")
    return results
