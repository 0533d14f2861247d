"""Compare two records, of two runs or of two machines: `ffilab compare RUN_A RUN_B`.

Two runs are not one. They share no block and no restart, so nothing cancels: the
interval holds for the difference between *these two runs*, and a drift of the machine
between them counts as a difference.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.bench.record import Record, read
from ffilab.errors import UserError
from ffilab.judge.estimates import Interval
from ffilab.judge.statistics import RESAMPLES, adjusted, expanded_level

SAME = ("cpu", "cores", "system", "libc", "compiler", "commit")


def unpaired_ratio(one: np.ndarray, other: np.ndarray, seed: int = 0) -> Interval:
    """Ratio of two runs' medians over restarts (ns per loop), one value per restart, with its percentile bootstrap interval."""

    def statistic(a, b, axis=-1):
        return np.median(a, axis=axis) - np.median(b, axis=axis)

    logs = np.log(one), np.log(other)
    found = stats.bootstrap(
        logs,
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=expanded_level(min(len(one), len(other))),
        method="percentile",
        rng=np.random.default_rng(seed),
        vectorized=True,
    ).confidence_interval
    return Interval(float(statistic(*logs)), float(found.low), float(found.high)).map(np.exp)


def compare_runs(first: Record, second: Record) -> pd.DataFrame:
    """One row per cell that both records measured: ratio second / first with interval, and adjusted p.

    Raises UserError if they have no cell in common, or hold child processes and no timed arms.
    """
    for record in (first, second):
        if "arms" not in record.run["plan"]:
            raise UserError(
                f"{record.path} holds child processes, one line each, and no timed arms: its chapter compares them."
            )
    rows = []
    for interpreter in first.interpreters:
        for arm in first.run["plan"]["arms"]:
            try:
                a, b = (np.nanmedian(record.times(interpreter, arm["name"]), axis=1) for record in (first, second))
            except KeyError:
                continue
            ratio = unpaired_ratio(b, a)
            rows.append(
                {
                    "interpreter": interpreter,
                    "arm": arm["name"],
                    **vars(ratio),
                    "p": float(stats.mannwhitneyu(b, a).pvalue),
                }
            )
    if not rows:
        raise UserError("The two records have no interpreter and arm in common.")
    frame = pd.DataFrame(rows)
    frame["p"] = adjusted(list(frame.p))
    return frame


def differences(first: Record, second: Record) -> list[str]:
    """What differs between the circumstances of two records, one line each."""
    a, b = first.run["machine"], second.run["machine"]
    lines = [f"{key}: {a[key]} | {b[key]}" for key in SAME if a[key] != b[key]]
    for label, facts in first.run["interpreters"].items():
        other = second.run["interpreters"].get(label)
        if other and other["version"] != facts["version"]:
            lines.append(f"CPython {label}: {facts['version']} | {other['version']}")
    return lines


def report(paths: tuple[Path, Path]) -> str:
    """The whole comparison in words. Raises UserError for a file that is no record."""
    for path in paths:
        if not path.is_file():
            raise UserError(f"There is no record {path}: records are in _build/records, one .jsonl a run.")
    first, second = map(read, paths)
    names = ["/".join(record.path.parts[-2:]) for record in (second, first)]
    lines = [f"{names[0]} / {names[1]}: two runs, not one; a drift between them counts as a difference."]
    lines += [f"  differs: {line}" for line in differences(first, second)]
    for row in compare_runs(first, second).itertuples():
        lines.append(
            f"  {row.interpreter:6} {row.arm:28} {row.value:.4f} [{row.low:.4f}, {row.high:.4f}]  BH p {row.p:.2g}"
        )
    return "\n".join(lines)
