"""`python3 ffilab/bootstrap.py study patches`: what the patches of book/upstream change (book/evidence/patches.json).

The program of each report runs by turns in two places that differ in its patch, and each time that it prints becomes a
ratio. For patches of CPython these are two builds of the pinned source, compiled here without a profile; for others two
copies of the tool's package, on the book's own interpreter.
"""

import os
import random
import re
import secrets
import shutil
from pathlib import Path

import numpy as np

from ffilab.judge import wording
from ffilab.judge.estimates import MIN_VALUES, Interval
from ffilab.judge.processes import location, ratio
from ffilab.measure.case import program
from ffilab.run import machine
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, LOGS, ROOT
from ffilab.run.progress import say, step
from ffilab.run.subprocesses import logged
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED
from ffilab.setup.installed import load
from studies import compiled, kept

UPSTREAM = ROOT / "book" / "upstream"
# By report: what is patched, CPython or a package.
PACKAGES = {path.stem: path.stem.split("-")[0] for path in sorted((UPSTREAM / "patches").glob("*.patch"))}
PLACES = BEFORE, AFTER = "before", "after"
FILE = re.compile(r"^```\{code-block\} \w+\n:caption: (\S+)\n(.*?)^```$", re.M | re.S)
TIME = re.compile(r"([\d.]+) (ns|µs)")
ROUNDS, LIMIT_S = 20, 300


def files(report: str) -> dict[str, str]:
    """The files that a report prints, by name."""
    return dict(FILE.findall((UPSTREAM / f"{report}.md").read_text()))


def patch(report: str, tree: Path) -> None:
    """Apply a report's patch to a source tree. Raises UserError."""
    command = ["git", "apply", str(UPSTREAM / "patches" / f"{report}.patch")]
    # Outside of any repository: in one, git would leave out what is not below it.
    if logged(command, LOGS / "patches.log", cwd=tree, env={**os.environ, "GIT_CEILING_DIRECTORIES": "/"}):
        raise UserError(f"The patch of {report} does not apply to {tree.name}.")


def patched(tree: Path) -> None:
    """Apply all patches of CPython."""
    for report in [report for report, package in PACKAGES.items() if package == "cpython"]:
        patch(report, tree)


def cpython(place: str) -> Path:
    return compiled.compiled("patched", prepare=patched) if place == AFTER else compiled.compiled("plain")


def environment(report: str, place: str, folder: Path) -> dict[str, str]:
    """What the report's program finds in a place: `python`, and the tool's package."""
    if PACKAGES[report] == "cpython":
        return compiled.environment(cpython(place))
    copied = package(report, folder / "packages")
    if place == AFTER:
        patch(report, copied)
    bin_ = load(BY_LABEL[FREE_THREADED]).python.parent
    return {"PATH": f"{bin_}:{os.environ['PATH']}", "PYTHONPATH": str(copied.parent)}


def package(report: str, folder: Path) -> Path:
    """A copy of the tool's package, as it is installed for the book's own interpreter."""
    (installed,) = load(BY_LABEL[FREE_THREADED]).python.parents[1].glob(f"lib/python*/site-packages/{PACKAGES[report]}")
    return Path(shutil.copytree(installed, folder / installed.name))


def printed(text: str) -> dict[str, float]:
    """Times that a program printed, in the unit of each, by line without its number."""
    lines = {line: TIME.search(line) for line in text.splitlines()}
    return {TIME.sub(r"… \2", line, count=1): float(time[1]) for line, time in lines.items() if time}


def run(report: str, command: str, folder: Path, variables: dict[str, str]) -> str:
    """What a report's program prints. Raises UserError if it fails."""
    ended, out, error = program(["sh", "-ec", f'cd "$0" && {command}', folder], LIMIT_S, variables)
    if ended != "ok":
        raise UserError(f"The program of {report} did not end well ({ended}): {error[-300:]}")
    return out + error


def measured(report: str, scratch: Path, rounds: int) -> list[dict]:
    """A row for each time that the report's program prints: before, after, and before over after, with intervals."""
    variables, runs, order = {}, {place: [] for place in PLACES}, random.Random(secrets.randbits(32))
    for place in PLACES:
        folder = scratch / report / place
        folder.mkdir(parents=True)
        for name, text in files(report).items():
            (folder / name).write_text(text)
        variables[place] = environment(report, place, folder)
        run(report, ". ./run.sh", folder, variables[place])
    with step(f"{report}, {rounds} rounds"):
        for _ in range(rounds):
            for place in order.sample(PLACES, len(PLACES)):
                said = run(report, "exec python reproduce.py", scratch / report / place, variables[place])
                runs[place].append(printed(said))
    rows = []
    for line in runs[BEFORE][0]:
        before, after = (np.array([times[line] for times in runs[place]]) for place in PLACES)
        found = {BEFORE: location(before), AFTER: location(after), "ratio": ratio(before, after)}
        intervals = {name: [one.interval.value, one.interval.low, one.interval.high] for name, one in found.items()}
        rows.append({"report": report, "line": line, "n": rounds, **intervals})
    return rows


def main(budget: str) -> None:
    """Measure all patches, and keep the table."""
    rounds = ROUNDS if BUDGETS[budget].is_result else MIN_VALUES
    scratch = BUILD / "patches"
    shutil.rmtree(scratch, ignore_errors=True)
    rows = [row for report in PACKAGES for row in measured(report, scratch, rounds)]
    shutil.rmtree(scratch)
    kept.write_sessions(kept.file("patches", budget), [{"machine": machine.facts(), "rows": rows}])
    for row in rows:
        before, after, times = (wording.text(Interval(*row[name])) for name in (*PLACES, "ratio"))
        say(f"  {row['report']}: {row['line']}: {before}, {after}; {times} times")
