"""Chapter "Measuring on a noisy machine" (claims A5, D7)."""

import dataclasses
import json
import random
import secrets

import numpy as np
import pandas as pd
from scipy import stats

from ffilab import draw
from ffilab.bench import child, instructions, profile, runner
from ffilab.bench.plan import EMPTY, Arm, plan
from ffilab.bench.record import Record
from ffilab.budget import current
from ffilab.corners import loaders
from ffilab.errors import UserError
from ffilab.judge import description, statistics
from ffilab.judge.ledger import Measurement
from ffilab.judge.statistics import Interval
from ffilab.paths import NATIVE, RESULTS

TALK_METHOD = NATIVE / "measuring" / "talk_method.py"
KERNEL = "3.14"
TARGET = 0.003
COPIES = ("copy 1", "copy 2", "copy 3", "copy 4")


def talk_samples(*names: str) -> dict:
    """One process of the talk's method: samples (ns) for each loader, of an empty lambda, and the clock's steps (ns)."""
    return child.result(KERNEL, TALK_METHOD, loaders.LIBRARY, "noop", *names)


def talk_tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """The talk's two tables, for CDLL and PyDLL in one process: moments after Tukey's filter, and the pair."""
    found = talk_samples("CDLL", "PyDLL")["samples"]
    samples = {name: description.tukey(np.array(values)) for name, values in zip(("CDLL", "PyDLL"), found)}
    return description.moments(samples), description.pairs(samples)


def clock() -> dict[str, float]:
    """The smallest difference of two readings in a row, and the median time (ns) of a sample that calls an empty lambda."""
    found = talk_samples("CDLL")
    return {"step": float(found["steps"][0]), "empty sample": float(np.median(found["empty"]))}


def talk_against_itself() -> pd.DataFrame:
    """The talk's method on two copies of one call, once per fresh process: p, winner and Cliff's delta."""
    jobs = [(KERNEL, TALK_METHOD, loaders.LIBRARY, "noop", "CDLL", "CDLL")]
    repeats = 5 * current().repeats
    rows = []
    for _, outcome in child.repeat("the talk's method, A/A", jobs, repeats, random.Random(secrets.randbits(32))):
        if outcome.result is None:
            raise UserError(f"The talk's method did not finish: {outcome.ended} {outcome.error}")
        samples = {
            name: description.tukey(np.array(s)) for name, s in zip(("first", "second"), outcome.result["samples"])
        }
        rows.append(description.pairs(samples).iloc[0].to_dict())
    return pd.DataFrame(rows)


def share_of_alarms(runs: pd.DataFrame) -> Interval:
    """Share of A/A pairs that the talk's method calls significant at 5 %."""
    return statistics.share_interval(int((runs["U p"] < 0.05).sum()), len(runs))


def arms() -> list[Arm]:
    """Four copies of one call, PyDLL beside them, and a call with more work in Python."""
    file, library = str(loaders.SOURCES / "arms.py"), str(loaders.LIBRARY)

    def call(name, loader):
        return Arm(name, file, "call", {"loader": loader, "function": "noop", "library": library})

    return [*(call(name, "CDLL") for name in COPIES), call("PyDLL", "PyDLL")]


def measure() -> Record:
    """Time the arms until the ratio copy 1 / PyDLL is known to TARGET, or the time is spent."""
    # Many short restarts: the spread between processes is what has to be averaged.
    budget = dataclasses.replace(
        current(),
        restarts=10 * current().restarts,
        blocks=max(2, current().blocks // 2),
        batch_ms=current().batch_ms / 5,
        seconds=current().seconds / 2,
    )
    pair = ((KERNEL, COPIES[0]), (KERNEL, "PyDLL"))
    return runner.run(
        plan("measuring.copies", arms(), [KERNEL], budget, target=TARGET, watch=(pair,)), statistics.widest
    )


def between_over_within(record: Record) -> Interval:
    """Spread of restarts' medians over what the noise inside restarts explains; above 1, processes differ for real.

    The expected spread of a median of n blocks is about 1.2533 sigma / sqrt(n). Bootstrap over restarts.
    """
    times = record.times(KERNEL, COPIES[0])
    medians = np.nanmedian(times, axis=1)
    blocks = np.isfinite(times).sum(axis=1)
    within = stats.median_abs_deviation(times, axis=1, scale="normal", nan_policy="omit") * 1.2533 / np.sqrt(blocks)

    def statistic(index, axis=-1):
        chosen = index.astype(int)
        spread = stats.median_abs_deviation(medians[chosen], axis=axis, scale="normal")
        return spread / np.sqrt(np.mean(within[chosen] ** 2, axis=axis))

    if len(medians) < statistics.MIN_RESTARTS:
        return Interval(float(statistic(np.arange(len(medians)))), float("nan"), float("nan"))
    index = np.arange(len(medians))
    found = stats.bootstrap(
        (index,),
        statistic,
        n_resamples=1999,
        method="percentile",
        vectorized=True,
        confidence_level=statistics.expanded_level(len(medians)),
        rng=np.random.default_rng(record.run["plan"]["seed"]),
    ).confidence_interval
    return Interval(float(statistic(index)), float(found.low), float(found.high))


def copies_table(record: Record) -> pd.DataFrame:
    """Every pair of copies with our interval and verdict, p adjusted over the family."""
    pairs = [statistics.compare(record, (KERNEL, a), (KERNEL, b)) for a, b in _pairs(COPIES)]
    adjusted = statistics.adjusted([pair.p for pair in pairs])
    return pd.DataFrame(
        [
            {
                "pair": f"{pair.slow[1]} / {pair.fast[1]}",
                "ratio": draw.text(pair.ratio),
                "BH p": f"{p:.2g}",
                "finding": statistics.finding(pair) or "none",
            }
            for pair, p in zip(pairs, adjusted)
        ]
    )


def _pairs(names):
    return [(a, b) for number, a in enumerate(names) for b in names[number + 1 :]]


def pseudo_replication(record: Record) -> dict[str, float]:
    """Half-widths (fractions) of one call's time by the same estimator: over all blocks as if independent, and over restarts."""
    times = record.times(KERNEL, COPIES[0])
    values = {"blocks": times[np.isfinite(times)], "restarts": np.nanmedian(times, axis=1)}
    intervals = {unit: statistics.location_interval(found) for unit, found in values.items()}
    return {unit: interval.half_width / interval.value for unit, interval in intervals.items()}


def pseudo_replication_words(widths: dict[str, float]) -> str:
    """What the two widths of this run say."""
    factor = widths["restarts"] / widths["blocks"]
    if factor > 1:
        return f"The first is too narrow by a factor of {factor:.1f}: confidence that nothing has earned."
    return "In this run the two hardly differ: the noise inside the processes outweighs the spread between them."


def restart_medians(record: Record) -> pd.DataFrame:
    """Medians (ns) by restart for one copy and PyDLL: what a process brings along."""
    rows = []
    for arm in (COPIES[0], "PyDLL"):
        for number, value in enumerate(np.nanmedian(record.times(KERNEL, arm), axis=1)):
            rows.append({"arm": "CDLL" if arm == COPIES[0] else arm, "restart": number, "ns": value})
    return pd.DataFrame(rows)


def instruction_counts(labels: list[str]) -> pd.DataFrame | str:
    """Instructions per call of both loaders on the kernels, or the reason why they cannot be counted here."""
    if reason := instructions.available():
        return reason
    chosen = [arm for arm in arms() if arm.name in (COPIES[0], "PyDLL")]
    empty = Arm(EMPTY, str(NATIVE.parent / "ffilab" / "bench" / "empty.py"), "empty_loop")
    counts = instructions.per_call(labels, [*chosen, empty])
    return pd.DataFrame(
        [
            {
                "CPython": label,
                "CDLL": counts[label, COPIES[0]],
                "PyDLL": counts[label, "PyDLL"],
                "empty loop": counts[label, EMPTY],
            }
            for label in labels
        ]
    )


def time_shares() -> tuple[str, pd.DataFrame] | str:
    """Where the time of a CDLL call goes, by group of symbols, on the chapter pair; or the reason why not."""
    arm = arms()[0]
    rows, how = [], ""
    try:
        for label in ("3.14", "3.14t"):
            loops = int(20_000_000 * min(1, current().scale))
            how, groups, _ = profile.shares(label, arm, loops)
            rows.append({"CPython": label, **{name: f"{share:.1%}" for name, share in groups.items()}})
    except UserError as error:
        return str(error)
    return how, pd.DataFrame(rows)


def contest_results() -> dict | None:
    """What `make bench` found on this machine, or None if it was never run here."""
    path = RESULTS / "bench.json"
    return json.loads(path.read_text()) if path.exists() else None


def contest_table(results: dict) -> pd.DataFrame:
    """Our instrument beside pyperf, in words."""

    def percent(value, digits=2):
        """A share in words; None: nothing of what was tried, or too few runs."""
        return "not reached" if value is None else f"{value:.{digits}%}"

    aa, width = results["aa"], results["half_width"]
    rows = [
        (
            f"false positives, {state}",
            *(f"{percent(aa[state][who], 1)} of {aa[state]['n'][who]}" for who in ("ours", "pyperf")),
        )
        for state in ("idle", "burner")
    ]
    for what, title in (("loaders", "CDLL / PyDLL"), ("gil", "3.14 / 3.14t")):
        found = width[what]
        seconds = {who: f"in {found['seconds'][who]:.1f} s" for who in ("ours", "pyperf")}
        rows.append(
            (
                f"half-width of {title} that one run states",
                f"±{percent(found['ours'])} {seconds['ours']}",
                f"±{percent(found['pyperf_nominal'])} (from its t test) {seconds['pyperf']}",
            )
        )
        rows.append(
            (
                f"1.96 standard deviations of {title} over {found['n']} runs",
                f"±{percent(found['ours_spread_of_ratios'])}",
                f"±{percent(found['pyperf'])}",
            )
        )
    rows.append(
        ("smallest slowdown found in 9 of 10", *(percent(results["detect"][who], 1) for who in ("ours", "pyperf")))
    )
    return pd.DataFrame(rows, columns=["question", "ours", "pyperf"])


def claim_measurements(runs: pd.DataFrame, record: Record) -> dict[str, dict[str, Measurement]]:
    """What the chapter hands in to the ledger."""
    alarms, spread = share_of_alarms(runs), between_over_within(record)
    return {
        "A5": {
            "share of A/A pairs that the talk's method calls significant": Measurement(
                alarms, alarms.half_width, "share of pairs"
            )
        },
        "D7": {
            "spread between processes over the spread that noise within them explains": Measurement(
                spread, 0.0, "ratio of spreads"
            )
        },
    }


# The exercise: three small benchmarks, each with one flaw.
FLAWS = {
    "A": "The two functions run one after the other; whatever changes in between counts as a difference.",
    "B": "A thousand timings of one process are treated as a thousand independent values.",
    "C": "Each timing holds one call, which is of the size of the clock's step and the wrapper.",
}
KEYWORDS = {"A": "order", "B": "restart", "C": "batch"}


def check_flaws(answers: dict[str, str]) -> list[str]:
    """The exercise's self-check: for A, B and C one remedy out of `order`, `restart`, `batch`."""
    lines = []
    for name, remedy in KEYWORDS.items():
        given = answers.get(name)
        if not given:
            lines.append(f"{name}: still open.")
        elif given not in KEYWORDS.values():
            lines.append(f"{name}: choose one of {', '.join(sorted(KEYWORDS.values()))}.")
        else:
            lines.append(f"{name}: {'right. ' + FLAWS[name] if given == remedy else 'not this one.'}")
    return lines
