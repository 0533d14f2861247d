"""Compare two records, of two runs or of two machines: `ffilab compare RUN_A RUN_B`.

Times of two runs are not comparable: the machine drifts between them, and every arm drifts with it, the empty loop
included. What can be compared is a ratio within each run, against a yardstick: one piece of work that every run times.
The drift, the yardstick's own time in both runs, is a line of its own. Of processes each number is compared by itself,
by title, interpreter and case; their times drift with the machine.

Among a hundred ratios that did not change two would be called so at the book's level. So p is adjusted for the number
of rows (Benjamini and Hochberg 1995). Both sides of a ratio of times hold what a session adds (groups.py); of processes
nothing is known of that.
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from ffilab.judge import statistics
from ffilab.judge.estimates import LEVEL, MIN_VALUES, Interval, Location, difference
from ffilab.measure.foreign import check
from ffilab.measure.plan import EMPTY, OURS, control_pair
from ffilab.measure.record import HOW, Record, medians, read_record
from ffilab.run.errors import UserError

# Of the plan.
PLANNED = ("name", "budget", "restarts", "blocks", "batch_ns")
SAME = ("cpu", "cores", "system", "libc", "compiler", "commit")
# What every run times: some work of known size, else the loop without any.
YARDSTICKS = (control_pair(1)[0], EMPTY)
COLUMNS = ("interpreter", "arm", "yardstick", "first", "second", "value", "low", "high", "p")
# A ratio changed, or a difference.
CHANGED, UNCHANGED = "changed", "no change found"


def yardstick(first: Record, second: Record, label: str) -> str:
    """The arm against which all others of an interpreter are taken. Raises UserError if both records have none in
    common."""
    for arm in YARDSTICKS:
        if first.has(label, arm) and second.has(label, arm):
            return arm
    raise UserError(f"The two records have no yardstick in common on {label}: name two runs of one plan.")


def compare_runs(first: Record, second: Record) -> pd.DataFrame:
    """One row per number that both records hold, as COLUMNS has it.

    Of timed arms: the ratio to the yardstick in both (first and second, each an Interval), and the second over the
    first; the rows of a yardstick hold its own times (ns), and their ratio is the drift; controls are left out. Of
    processes: see `of_processes`. p: that nothing changed, adjusted for the number of rows; NaN where it cannot be
    told. Raises UserError if a record was cut off, if one holds arms and the other processes, or if they have nothing
    in common.
    """
    if cut_off := [record.path for record in (first, second) if record.cut_off]:
        raise UserError(f"{cut_off[0]} was cut off: it is not the whole run. Measure again, or name another record.")
    timed = ["arms" in record.run["plan"] for record in (first, second)]
    if timed[0] != timed[1]:
        raise UserError(
            "One record holds timed arms and the other child processes, one line each: name two records of one name, "
            "such as two session.jsonl."
        )
    rows = list((of_arms if timed[0] else of_processes)(first, second))
    if not rows:
        what = "interpreter and arm in common" if timed[0] else "experiment in common, or none whose numbers vary"
        raise UserError(f"The two records have no {what}.")
    table = pd.DataFrame(rows, columns=COLUMNS)
    judged = table.p.notna() & (table.arm != table.yardstick)
    table.loc[~judged, "p"] = math.nan
    if judged.any():
        table.loc[judged, "p"] = stats.false_discovery_control(table.p[judged])
    return table


def of_arms(first: Record, second: Record) -> Iterator[tuple]:
    """The rows of timed arms, the yardstick's before the others."""
    for label in first.interpreters:
        names = [arm["name"] for arm in first.run["plan"]["arms"]]
        common = [name for name in names if first.has(label, name) and second.has(label, name)]
        if not common:
            continue
        against = yardstick(first, second, label)
        # Controls, and the empty loop, are no results.
        for name in [against, *(name for name in common if not name.startswith(OURS))]:
            one, other = (relative(record, (label, name), (label, against)) for record in (first, second))
            yield label, name, against, *change(one, other)


def of_processes(first: Record, second: Record) -> Iterator[tuple]:
    """The rows of experiments in processes: each number that a process brought back, by title, interpreter and case.

    A number that is never zero or below is compared as a ratio, else as a difference. A row that a process brings back
    as one of several is known by the texts in it, and by its place.
    """
    for title in first.titles:
        try:
            frames = [cases(record, title) for record in (first, second)]
        except KeyError:
            # The other one lacks it, or was interrupted in it.
            continue
        for case in [case for case in frames[0] if case in frames[1]]:
            one, other = (found[case] for found in frames)
            for column in [column for column in one if column in other]:
                values = [found[column].dropna().to_numpy(dtype=float) for found in (one, other)]
                if not all(map(len, values)) or len(np.unique(np.concatenate(values))) == 1:
                    continue
                log = min(map(np.min, values)) > 0
                both = [Location.of(np.log(found) if log else found, log) for found in values]
                label, *what = case
                yield label, f"{title}: {', '.join([*what, column])}", "", *change(*both)


def cases(record: Record, title: str) -> dict[tuple[str, ...], pd.DataFrame]:
    """The numbers of an experiment by case: the interpreter first, then its factors and texts in words. Raises KeyError
    as `Record.frame` does."""
    frame = record.frame(title)
    factors = {name for line in record.children if line["title"] == title for name in line["factors"]}
    names = [name for name in frame if name not in {"interpreter", *factors, *HOW}]
    texts = [name for name in names if frame[name].map(lambda value: isinstance(value, str)).all()]
    numbers = [name for name in names if pd.api.types.is_numeric_dtype(frame[name])]
    keys = [name for name in frame if name in factors or name in texts]
    place = frame.groupby("process").cumcount()
    words = [[f"{name} {value}" for name, value in zip(keys, row)] for row in frame[keys].itertuples(index=False)]
    rows = [[f"row {number + 1}"] if place.max() > 0 else [] for number in place]
    of_row = [(label, *said, *row) for label, said, row in zip(frame.interpreter, words, rows)]
    return {case: frame.loc[[one == case for one in of_row], numbers] for case in dict.fromkeys(of_row)}


def change(one: Location, other: Location) -> tuple[Interval, Interval, float, float, float, float]:
    """Both, the second over the first (less it, if these are no logarithms) with its interval, and p that they are
    alike."""
    found = difference(other, one)
    interval = found.at()
    if not interval.is_known:
        p = math.nan
    elif found.error == 0:
        p = float(found.centre == 0)
    else:
        p = float(2 * stats.t.sf(abs(found.centre) / found.error, found.freedom))
    return one.at(), other.at(), interval.value, interval.low, interval.high, p


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
    arms = [{arm["name"] for arm in plan.get("arms", [])} for plan in (a, b)]
    if arms[0] != arms[1]:
        lines.append(f"arms that only one of them has, left out: {', '.join(sorted(arms[0] ^ arms[1]))}")
    for label, facts in first.run["interpreters"].items():
        other = second.run["interpreters"].get(label)
        if other and other["version"] != facts["version"]:
            lines.append(f"CPython {label}: {facts['version']} | {other['version']}")
    return lines


def basis(record: Record) -> str:
    """What a record was measured on, in words."""
    if "arms" not in record.run["plan"]:
        return f"{len(record.children)} processes"
    layouts = {unit.layout for unit in record.kept} - {None}
    return f"{len(layouts)} layouts" if layouts else "one binary of each interpreter"


def report(paths: tuple[Path, Path]) -> str:
    """The whole comparison in words. Raises UserError for a file that is no record."""
    for path in paths:
        if path == Path():
            raise UserError("Name two records: `make compare A=_build/records/….jsonl B=…`.")
        if not path.is_file():
            raise UserError(f"There is no record {path}: records are in _build/records, one .jsonl a run.")
    first, second = map(read_record, paths)
    for path in paths:
        check(path)
    table = compare_runs(first, second)
    is_smoke = "smoke" in (first.run["plan"].get("budget"), second.run["plan"].get("budget"))
    judged = table[table.arm != table.yardstick]
    judged = judged.assign(said=[answer(row, is_smoke) for row in judged.itertuples()])
    names = ["/".join(record.path.parts[-2:]) for record in (first, second)]
    are_processes = "arms" not in first.run["plan"]
    how = "Ratios within each run are compared, and no times."
    if are_processes:
        how = (
            "Processes are compared, one value for each; times among them drift with the machine. What does not differ "
            "is not listed."
        )
    lines = [in_one_sentence(judged, is_smoke, are_processes), f"{names[0]}, then {names[1]}: two runs, not one. {how}"]
    lines += [f"  measured on {basis(first)}, then on {basis(second)}"]
    lines += [f"  differs: {line}" for line in differences(first, second)]
    lines += [
        f"  {row.interpreter}: the yardstick, {row.arm!r}, took {shown(row.first)} ns, then {shown(row.second)} ns: "
        f"the drift is {shown(Interval.of(row))}, of the machine or of its layouts. All below is relative to it."
        for row in table[table.arm == table.yardstick].itertuples()
    ]
    lines += [
        f"  {row.interpreter:6} {row.arm:28} {shown(row.first)}, then {shown(row.second)}: {shown(Interval.of(row))}, "
        f"{row.said}"
        for row in (judged[judged.said == CHANGED] if are_processes else judged).itertuples()
    ]
    return "\n".join(lines)


def answer(row, is_smoke: bool) -> str:
    """What is said of one row of `compare_runs`."""
    interval = Interval.of(row)
    if is_smoke:
        return "no verdict: a smoke test is no result"
    if not interval.is_known:
        return f"no verdict: it takes {MIN_VALUES} complete restarts, or processes, in both"
    if row.yardstick and interval.high - interval.low <= 1e-9 * interval.value:
        # A clock that is too coarse for what it times.
        return "no verdict: all restarts say the same time to the last digit, and nothing is known of their scatter"
    return CHANGED if row.p < 1 - LEVEL else UNCHANGED


def in_one_sentence(judged: pd.DataFrame, is_smoke: bool, are_processes: bool) -> str:
    """Say for a person what the comparison found. are_processes: by how much these differ between two sessions is not
    known."""
    changed = [f"{row.arm} on {row.interpreter}" for row in judged.itertuples() if row.said == CHANGED]
    many, which = f"{len(changed)} of {len(judged)} numbers", "; ".join(changed)
    if is_smoke:
        return "A smoke test is no result: nothing is said of what changed."
    if are_processes and changed:
        unknown = "By how much two sessions of processes differ anyway is not known."
        return f"{many} differ between these two runs: {which}. {unknown}"
    if changed:
        return f"{many} changed: {which}."
    if UNCHANGED not in set(judged.said):
        return f"Nothing can be said of what changed: no verdict on any of {len(judged)} numbers."
    if are_processes:
        return f"None of {len(judged)} numbers differs between these two runs."
    return f"Nothing changed that two sessions do not differ by anyway ({len(judged)} numbers)."


def shown(interval: Interval) -> str:
    """A number with its interval."""
    return f"{interval.value:.4g} [{interval.low:.4g}, {interval.high:.4g}]"
