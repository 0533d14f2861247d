"""A small machine, its history, and the commit that git bisect blames (claims D1, D2, D3, D5, D6). The page quotes
it."""

import os
import re
import shutil
import tomllib
from pathlib import Path

import pandas as pd

from ffilab.measure import instructions
from ffilab.measure.case import Outcome, Step, program
from ffilab.measure.session import Session
from ffilab.run.archives import tarfile
from ffilab.run.errors import UserError
from ffilab.run.machine import compiler
from ffilab.run.paths import BUILD, NATIVE, without_paths
from notebooks.placement.counting import Cache, cachegrind, counters, reported_cache

STORY = NATIVE / "placement" / "story"
HISTORY = tomllib.loads((STORY / "history.toml").read_text())["commit"]
# The commit that changes where functions lie: its message, and its place in the history.
CULPRIT = next(commit["message"] for commit in HISTORY if "aligned(4096)" in commit["replace"])
AT = 1 + [commit["message"] for commit in HISTORY].index(CULPRIT)
# What stands in its place in the history without a trap: code that never runs, and nobody chose where it lies.
HARMLESS = {
    "message": "Reports: the amount, without its sign",
    "file": "operations.h",
    "find": "failure.value = value;",
    "replace": "failure.value = -value;",
}
HISTORIES = {"with a trap": HISTORY, "without a trap": [*HISTORY[: AT - 1], HARMLESS, *HISTORY[AT:]]}
# Commits after which the compiler writes other machine code; all others change comments, the README and the like.
CHANGE_CODE = ("Shorter messages", CULPRIT, HARMLESS["message"])
REPOSITORY = BUILD / "placement" / "repository"
# A name, a date and a configuration of our own.
AUTHOR = {"NAME": "A. Reader", "EMAIL": "reader@example.org", "DATE": "2016-10-18T13:27:54+0300"}
GIT = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in AUTHOR.items()}
GIT |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def commits(session: Session) -> dict[str, list[str]]:
    """Make the repository, a branch for each history; the hashes of its commits, the oldest first."""
    return session.observe("commits of the small machine", make_repository)


def make_repository() -> dict[str, list[str]]:
    """Make it afresh, one commit after the other; the history with the trap is the branch main."""
    shutil.rmtree(REPOSITORY, ignore_errors=True)
    shutil.copytree(STORY / "first_commit", REPOSITORY)
    (REPOSITORY / "check.sh").chmod(0o755)  # not every copy of a tree keeps modes, and git's hashes depend on it
    git("init", "--quiet", "--initial-branch=main")
    git("add", ".")
    git("commit", "--quiet", "--message=A small machine")
    first, found = git("rev-parse", "HEAD").strip(), {}
    for name, history in reversed(HISTORIES.items()):
        branch = "main" if history is HISTORY else "harmless"
        git("checkout", "--quiet", "-B", branch, first)
        for commit in history:
            edit(REPOSITORY, commit["file"], commit["find"], commit["replace"])
            git("commit", "--quiet", "--all", f"--message={commit['message']}")
        found[name] = git("rev-list", "--reverse", branch).split()
    return found


def edit(folder: Path, file: str, find: str, replace: str) -> None:
    """One change of a file. Raises ValueError if what is to be changed is not there."""
    path = folder / file
    text = path.read_text()
    if find not in text:
        raise ValueError(f"{file} does not hold {find!r}")
    path.write_text(text.replace(find, replace, 1) if find else text + replace)


def git(*words, timeout_s: float = 60) -> str:
    """The output of git in the repository. Raises UserError."""
    environment = {**GIT, "CC": compiler()}
    ended, out, err = program(["git", "-C", REPOSITORY, *words], timeout_s, environment, memory_bytes=None)
    if ended != "ok":
        raise UserError(f"git {words[0]} failed ({ended}): {(err or out).strip()[-200:]}")
    return out


def compiled(session: Session, revisions: list[str], versions: dict[str, dict]) -> list[str]:
    """Compile versions of the small machine; their names."""
    return session.observe("versions of the small machine", compile_all, revisions, versions)


def compile_all(revisions: list[str], versions: dict[str, dict]) -> list[str]:
    for name, version in versions.items():
        build(name, revisions[version["commit"]], version["changes"])
    return list(versions)


def machine(name: str) -> Path:
    """Where the program of this name is."""
    return BUILD / "placement" / "programs" / name.replace(",", "").replace(" ", "-") / "machine"


def build(name: str, revision: str, changes: list[dict]) -> None:
    """Compile one revision, with changes that are not committed, in a folder of its own. Raises UserError."""
    folder = machine(name).parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    git("archive", "--format=tar", f"--output={folder}.tar", revision)
    with tarfile.open(f"{folder}.tar") as archive:
        archive.extractall(folder, filter="data")
    for change in changes:
        edit(folder, **change)
    ended, out, err = program(["make", "-s", f"CC={compiler()}", "-C", folder])
    if ended != "ok":
        raise UserError(f"The program {name} cannot be compiled: {(err or out).strip()[-200:]}")


def times(session: Session, title: str, names: list[str], repeats: int) -> pd.DataFrame:
    """Every program in processes of its own, interleaved. Columns program, ns (of an operation)."""
    cases = [Step(lambda seed, name=name: run(name), {"program": name}) for name in names]
    return session.run(title, cases, repeats)


def run(name: str) -> Outcome:
    """ns of an operation, as the program prints it."""
    ended, out, err = program([machine(name)])
    return Outcome({"ns": float(out.split()[0])} if ended == "ok" else None, ended, err)


def counts(session: Session, names: list[str]) -> list[dict] | str:
    """Instructions and simulated misses of each program, one turn; or why there are none."""
    return session.observe("instructions and misses of the small machine", count, names)


def count(names: list[str]) -> list[dict] | str:
    if reason := instructions.available():
        return reason
    cache = Cache(**reported_cache())
    return [{"program": name, **cachegrind([machine(name), "once"], cache)} for name in names]


def hardware(session: Session, names: list[str]) -> dict[str, list[dict]] | str:
    """The processor's counters for each program, one row for each of its processes; or why there are none."""
    return session.observe("hardware counters of the small machine", look_at_counters, names, session.budget.repeats)


def look_at_counters(names: list[str], repeats: int) -> dict[str, list[dict]] | str:
    found = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            seen = counters([machine(name)])
            if isinstance(seen, str):
                return seen
            found[name].append(seen)
    return found


BISECTIONS = {"smoke": 1, "room": 8, "quick": 20, "full": 80}


def bisections(session: Session, revisions: dict[str, list[str]]) -> pd.DataFrame:
    """Many bisections of both histories. Columns history, limit (ns), message (of the commit that was blamed), found
    (1: the one at the trap's place), before and blamed (ns, measured again), stands (1: the limit lies between them
    again), log."""
    cases = [
        Step(lambda seed, name=name: Outcome(bisect(revisions[name], name), "ok"), {"history": name})
        for name in HISTORIES
    ]
    return session.run("git bisect", cases, BISECTIONS[session.budget.name])


def bisect(revisions: list[str], history: str) -> dict:
    """`git bisect run ./check.sh LIMIT` over a whole history. Raises UserError."""
    # The slower time is called slow. Where nothing differs, which of the two that is decides chance.
    limit = (took(revisions[0]) + took(revisions[-1])) / 2
    git("bisect", "start", revisions[-1], revisions[0])
    try:
        log = git("bisect", "run", "./check.sh", f"{limit:.4f}", timeout_s=300)
        blamed = git("rev-parse", "refs/bisect/bad").strip()
    finally:
        git("bisect", "reset")
    message = git("show", "--no-patch", "--format=%s", blamed).strip()
    before_ns, blamed_ns = took(revisions[revisions.index(blamed) - 1]), took(blamed)
    git("checkout", "--quiet", "main")
    return {
        "limit": limit,
        "message": message,
        "found": float(message in (CULPRIT, HARMLESS["message"])),
        "before": before_ns,
        "blamed": blamed_ns,
        "stands": float(before_ns < limit <= blamed_ns),
        "log": without_paths(log),
    }


def took(revision: str) -> float:
    """ns of an operation at one commit: a run of a fresh copy, as `check.sh` prints it. Raises UserError."""
    git("checkout", "--quiet", revision)
    # With no limit to be under, it says BAD, and the time.
    ended, out, err = program(["sh", "-c", f"cd '{REPOSITORY}' && ./check.sh 0"], environment={"CC": compiler()})
    if not (time := re.search(r"BAD: ([\d.]+) ns", out)):
        raise UserError(f"The small machine did not say its time ({ended}): {err.strip()[-200:]}")
    return float(time.group(1))
