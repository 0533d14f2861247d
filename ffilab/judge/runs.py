"""Compare two records, of two runs or of two machines: `ffilab compare RUN_A RUN_B`.

Times of two runs are not comparable: the machine drifts between them, and every arm drifts with it, the empty loop included.
What can be compared is a ratio within each run, against a yardstick: one piece of work that every run times. The drift, the
yardstick's own time in both runs, is a line of its own. There is no p-value here, as two runs are one observation of each.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from ffilab.bench.foreign import check
from ffilab.bench.plan import EMPTY, control_pair
from ffilab.bench.record import Record, medians, read
from ffilab.errors import UserError
from ffilab.judge import statistics
from ffilab.judge.estimates import MIN_VALUES, Interval, Location, difference

# Of the plan.
PLANNED = ("name", "budget", "restarts", "blocks", "batch_ns")
SAME = ("cpu", "cores", "system", "libc", "compiler", "commit")
# What every run times: some work of known size, else the loop without any.
YARDSTICKS = (control_pair(1)[0], EMPTY)


def yardstick(first: Record, second: Record, label: str) -> str:
    """The arm against which all others of an interpreter are taken. Raises UserError if both records have none in common."""
    for arm in YARDSTICKS:
        if first.measured(label, arm) and second.measured(label, arm):
            return arm
    raise UserError(f"The two records have no yardstick in common on {label}: name two runs of one plan.")


def compare_runs(first: Record, second: Record) -> pd.DataFrame:
    """One row per cell that both records measured: its ratio to the yardstick in both, and the second over the first.

    Columns interpreter, arm, yardstick, first, second (each an Interval), value, low, high. The rows of a yardstick hold its
    own times (ns), and their ratio is the drift. Raises UserError if they have no cell in common, or hold child processes
    and no timed arms.
    """
    for record in (first, second):
        if record.cut_off:
            raise UserError(
                f"{record.path} was cut off: it is not the whole run. Measure again, or name another record."
            )
        if "arms" not in record.run["plan"]:
            raise UserError(
                f"{record.path} holds child processes, one line each, and no timed arms: its chapter compares them."
            )
    rows = []
    for label in first.interpreters:
        names = [arm["name"] for arm in first.run["plan"]["arms"]]
        common = [name for name in names if first.measured(label, name) and second.measured(label, name)]
        if not common:
            continue
        against = yardstick(first, second, label)
        for name in sorted(common, key=lambda name: name != against):
            one, other = (relative(record, (label, name), (label, against)) for record in (first, second))
            rows.append(
                {
                    "interpreter": label,
                    "arm": name,
                    "yardstick": against,
                    "first": one.at(),
                    "second": other.at(),
                    **vars(difference(other, one).at()),
                }
            )
    if not rows:
        raise UserError("The two records have no interpreter and arm in common.")
    return pd.DataFrame(rows)


def relative(record: Record, cell: tuple[str, str], against: tuple[str, str]) -> Location:
    """A cell's time over the yardstick's; the yardstick's own time (ns)."""
    if cell == against:
        return statistics.over_units(record, np.log(medians(record.times(*cell))), log=True)
    return statistics.ratio_over_units(record, cell, against)


def differences(first: Record, second: Record) -> list[str]:
    """What differs between the circumstances of two records, one line each."""
    a, b = first.run["machine"], second.run["machine"]
    lines = [f"{key}: {a.get(key)} | {b.get(key)}" for key in SAME if a.get(key) != b.get(key)]
    a, b = first.run["plan"], second.run["plan"]
    lines += [f"{key}: {a.get(key)} | {b.get(key)}" for key in PLANNED if a.get(key) != b.get(key)]
    arms = [{arm["name"] for arm in plan["arms"]} for plan in (a, b)]
    if arms[0] != arms[1]:
        lines.append(f"arms that only one of them has, left out: {', '.join(sorted(arms[0] ^ arms[1]))}")
    for label, facts in first.run["interpreters"].items():
        other = second.run["interpreters"].get(label)
        if other and other["version"] != facts["version"]:
            lines.append(f"CPython {label}: {facts['version']} | {other['version']}")
    return lines


def basis(record: Record) -> str:
    """What a record was measured on, in words."""
    layouts = {unit.layout for unit in record.kept} - {None}
    return f"{len(layouts)} layouts" if layouts else "one binary of each interpreter"


def report(paths: tuple[Path, Path]) -> str:
    """The whole comparison in words. Raises UserError for a file that is no record."""
    for path in paths:
        if path == Path():
            raise UserError("Name two records: `make compare A=_build/records/….jsonl B=…`.")
        if not path.is_file():
            raise UserError(f"There is no record {path}: records are in _build/records, one .jsonl a run.")
    first, second = map(read, paths)
    for path in paths:
        check(path)
    names = ["/".join(record.path.parts[-2:]) for record in (first, second)]
    lines = [f"{names[0]}, then {names[1]}: two runs, not one. Ratios within each run are compared, and no times."]
    lines += [f"  measured on {basis(first)}, then on {basis(second)}"]
    lines += [f"  differs: {line}" for line in differences(first, second)]
    for row in compare_runs(first, second).itertuples():
        change = Interval(row.value, row.low, row.high)
        if row.arm == row.yardstick:
            lines.append(
                f"  {row.interpreter}: the yardstick, {row.arm!r}, took {shown(row.first)} ns, then {shown(row.second)} ns: "
                f"the drift is {shown(change)}, of the machine or of its layouts. All below is relative to it."
            )
        else:
            verdict = "changed" if change.excludes(1) else "no change found"
            if not change.is_known:
                verdict = f"no verdict: it takes {MIN_VALUES} complete restarts in both"
            elif change.high - change.low <= 1e-9 * change.value:
                # A clock that is too coarse for what it times.
                verdict = "no verdict: all restarts say the same time to the last digit, and nothing is known of their scatter"
            if "smoke" in (first.run["plan"].get("budget"), second.run["plan"].get("budget")):
                verdict = "no verdict: a smoke test is no result"
            lines.append(
                f"  {row.interpreter:6} {row.arm:28} {shown(row.first)}, then {shown(row.second)}: {shown(change)}, {verdict}"
            )
    return "\n".join(lines)


def shown(interval: Interval) -> str:
    """A ratio with its interval."""
    return f"{interval.value:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
