"""What earlier runs on this machine said: how often an interval held what a later run found.

A log beside the cache keeps, for each machine, the ratios over layouts that chapters handed in, and their A/A ratios. The
coverage that follows from it is empirical: no model of the machine is in it.
"""

import contextlib
import hashlib
import itertools
import json
import math
from pathlib import Path

import pandas as pd

from ffilab.bench.record import Record
from ffilab.bench.session import Reading, Session
from ffilab.judge import basis, controls, ledger, statistics
from ffilab.judge.estimates import Location
from ffilab.paths import cache

# What makes two runs runs of one machine.
MACHINE = ("cpu", "cores", "memory_gib", "virtual_machine", "system", "libc")

OF_LINE = {"session", "corner", "budget", "ratio", "centre", "intervals"}

# An interval of processes, or of one binary.
NO_LAYOUTS = "no layouts drawn"


def file(machine: dict) -> Path:
    """The log of a machine, in the cache."""
    name = hashlib.sha256(json.dumps([machine.get(key) for key in MACHINE]).encode()).hexdigest()[:12]
    return cache() / "history" / f"{name}.jsonl"


def lines_of(session: Session) -> list[dict]:
    """A session as the log keeps it: a line for each ratio over layouts, and for each A/A ratio of its controls."""
    found = {}
    for claim, measured in ledger.measured(session).measurements.items():
        for name, one in measured.items():
            found[f"{claim}: {name}"] = one.estimate
    for plan in session.plans:
        found |= twins(session.timed(plan), plan)
    machine, builds = session.machine, session.record.run["interpreters"]
    common = {
        "session": session.record.run["plan"]["session"],
        "date": machine["date"],
        "corner": session.corner,
        "budget": session.budget.name,
        "builds": {label: facts["stamp"] for label, facts in builds.items()},
    }
    return [
        {**common, "ratio": name, "centre": one.centre, "intervals": intervals(one)}
        for name, one in found.items()
        if isinstance(one, Location) and one.log and math.isfinite(one.error)
    ]


def twins(record: Record, plan: str) -> dict[str, Location]:
    """The A/A ratios of a plan, by name."""
    return {
        f"A/A, {plan} on {label}: {one} / {other}": statistics.ratio_over_units(record, (label, one), (label, other))
        for label in record.interpreters
        for one, other in controls.TWINS
        if record.measured(label, one) and record.measured(label, other)
    }


def intervals(found: Location) -> dict[str, list[float]]:
    """The bounds of a ratio's intervals that are known, by what they say."""
    each = basis.three(found) or {NO_LAYOUTS: found.at()}
    return {what: [one.low, one.high] for what, one in each.items() if one.is_known}


def keep(session: Session) -> None:
    """Add a session to the log of its machine. A smoke test is not kept, nor is what is already there."""
    if not session.budget.is_result:
        return
    log = file(session.machine)
    stamp = session.record.run["plan"]["session"]
    if any((line["corner"], line["session"]) == (session.corner, stamp) for line in read(log)):
        return
    # Of `make more` its own records only: what a log line says must not rest on those of another.
    own = Reading(session.corner, session.folder, alone=True) if session.earlier else session
    # Each begins with the end of the line before: one that was cut off spoils no other.
    text = "".join("\n" + json.dumps(line) for line in lines_of(own))
    # Where the cache cannot be written, the chapter that was measured is worth more than the log.
    with contextlib.suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as sink:
            sink.write(text)


def read(log: Path) -> list[dict]:
    """All lines of a log; none if there is none. A line that was cut off, or is of another form, is left out."""
    found = []
    for text in log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and line.keys() >= OF_LINE and isinstance(line["intervals"], dict):
            found.append(line)
    return found


def coverage(lines: list[dict]) -> pd.DataFrame:
    """How often an interval of one run held the centre of another, of the same ratio, machine and budget.

    Over all ordered pairs of runs. Columns kind (claims or A/A), interval, ratios, runs, pairs, inside (a share). An interval
    of level LEVEL and another run's centre, both uncertain: even an honest one holds it in somewhat fewer cases than its level.
    """
    columns = ["kind", "interval", "ratios", "runs", "pairs", "inside"]
    if not lines:
        return pd.DataFrame(columns=columns)
    rows = []
    for (ratio, _), runs in pd.DataFrame(lines).groupby(["ratio", "budget"]):
        kind = "A/A" if ratio.startswith("A/A") else "claims"
        for one, other in itertools.permutations(runs.to_dict("records"), 2):
            for what, (low, high) in one["intervals"].items():
                inside = low <= math.exp(other["centre"]) <= high
                rows.append({"kind": kind, "interval": what, "ratio": ratio, "run": one["session"], "inside": inside})
    if not rows:
        return pd.DataFrame(columns=columns)
    grouped = pd.DataFrame(rows).groupby(["kind", "interval"], sort=False)
    found = grouped.agg(
        ratios=("ratio", "nunique"), runs=("run", "nunique"), pairs=("inside", "size"), inside=("inside", "mean")
    )
    return found.reset_index()[columns]


def seen(machine: dict) -> list[dict]:
    """The coverage of everything that this machine's log holds, as rows that JSON can hold."""
    return coverage(read(file(machine))).to_dict("records")
