"""Chapter "Code placement", part two: a small machine, its history, and the commit that git bisect blames."""

import os
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path

import pandas as pd

from ffilab.bench import child
from ffilab.bench.reporting import Reporter
from ffilab.budget import current
from ffilab.corners.placement import SOURCES, cachegrind, counters, this_cache
from ffilab.errors import UserError
from ffilab.machine import compiler
from ffilab.paths import BUILD

STORY = SOURCES / "story"
HISTORY = tomllib.loads((STORY / "history.toml").read_text())["commit"]
# The commit that changes where functions lie, by the file that it changes.
CULPRIT = next(commit["message"] for commit in HISTORY if "aligned(4096)" in commit["replace"])
WORK = BUILD / "placement"
REPOSITORY = WORK / "repository"
HOT = ("operations.h", "#define HOT\n", "#define HOT __attribute__((hot))\n")
ALIGNED = ("Makefile", "CFLAGS ?= -O2 -Wall", "CFLAGS ?= -O2 -Wall -falign-functions=64")
# The exercise's second suspect: it does more.
MORE_WORK = ("operations.h", "return (value + n) & 0xffff;", "return (value * 5 / 3 % 4099 + n) & 0xffff;")


def git(*words, timeout_s: float = 60) -> str:
    """Run git in the repository with a name, a date and a configuration of our own; its output. Raises UserError."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "CC": compiler(),
        "GIT_AUTHOR_NAME": "A. Reader",
        "GIT_COMMITTER_NAME": "A. Reader",
        "GIT_AUTHOR_EMAIL": "reader@example.org",
        "GIT_COMMITTER_EMAIL": "reader@example.org",
        "GIT_AUTHOR_DATE": "2016-10-18T13:27:54+0300",
        "GIT_COMMITTER_DATE": "2016-10-18T13:27:54+0300",
    }
    try:
        done = subprocess.run(
            ["git", *words], cwd=REPOSITORY, capture_output=True, text=True, env=environment, timeout=timeout_s
        )
    except FileNotFoundError:
        raise UserError("There is no git here: run `make doctor` for the command that installs it.") from None
    except subprocess.TimeoutExpired:
        raise UserError(f"git {words[0]} did not end within {timeout_s:g} s.") from None
    if done.returncode:
        raise UserError(f"git {words[0]} failed: {(done.stderr or done.stdout).strip()[-200:]}")
    return done.stdout


def edit(folder: Path, file: str, find: str, replace: str) -> None:
    """One change of the history. Raises ValueError if what is to be changed is not there."""
    path = folder / file
    text = path.read_text()
    if find not in text:
        raise ValueError(f"{file} does not hold {find!r}")
    path.write_text(text.replace(find, replace, 1) if find else text + replace)


def make_repository() -> list[str]:
    """Make the repository afresh, one commit after the other; returns their hashes, the oldest first."""
    shutil.rmtree(REPOSITORY, ignore_errors=True)
    shutil.copytree(STORY / "first_commit", REPOSITORY)
    (REPOSITORY / "check.sh").chmod(0o755)  # not every copy of a tree keeps modes, and git's hashes depend on it
    git("init", "--quiet", "--initial-branch=main")
    git("add", ".")
    git("commit", "--quiet", "--message=A small machine")
    for commit in HISTORY:
        edit(REPOSITORY, commit["file"], commit["find"], commit["replace"])
        git("commit", "--quiet", "--all", f"--message={commit['message']}")
    return git("rev-list", "--reverse", "main").split()


def build(name: str, revision: str, *changes: tuple[str, str, str]) -> Path:
    """Compile one revision, with changes that are not committed, in a folder of its own; returns the program."""
    folder = WORK / "programs" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    git("archive", "--format=tar", f"--output={folder}.tar", revision)
    with tarfile.open(f"{folder}.tar") as archive:
        archive.extractall(folder, filter="data")
    for change in changes:
        edit(folder, *change)
    ended, out, err = child.program(["make", "-s", f"CC={compiler()}", "-C", folder])
    if ended != "ok":
        raise UserError(f"The program {name} cannot be compiled: {(err or out).strip()[-200:]}")
    return folder / "machine"


def culprit(revisions: list[str]) -> int:
    """Place of the commit that changes the addresses."""
    return 1 + [commit["message"] for commit in HISTORY].index(CULPRIT)


def programs(revisions: list[str]) -> dict[str, Path]:
    """The last fast commit, the first slow one, the slow one with its hot functions marked, and that one aligned."""
    at = culprit(revisions)
    return {
        "fast": build("fast", revisions[at - 1]),
        "slow": build("slow", revisions[at]),
        "hot": build("hot", revisions[at], HOT),
        "hot, aligned": build("hot-aligned", revisions[at], HOT, ALIGNED),
    }


def run(program: Path) -> child.Outcome:
    """ns of an operation, as the program prints it."""
    ended, out, err = child.program([program])
    return child.Outcome({"ns": float(out.split()[0])} if ended == "ok" else None, ended, err)


def times(session: child.Session, paths: dict[str, Path], repeats: int | None = None) -> pd.DataFrame:
    """Every program in processes of its own, interleaved. Columns program, ns (of an operation)."""
    jobs = [(name, path) for name, path in paths.items()]
    found = session.repeat("the small machine", jobs, repeats or current().repeats, lambda job: run(job[1]))
    return pd.DataFrame([{"program": job[0], **outcome.needed(job[0])} for job, outcome in found])


def counts(paths: dict[str, Path]) -> pd.DataFrame | str:
    """Instructions and simulated misses of each program; or why there are none. Columns program, instructions, misses."""
    if not shutil.which("valgrind"):
        return "there is no valgrind here (`make doctor` names the package)"
    rows = []
    for name, path in paths.items():
        instructions, misses = cachegrind([path, "once"], this_cache())
        rows.append({"program": name, "instructions": instructions, "misses": misses})
    return pd.DataFrame(rows)


def hardware(paths: dict[str, Path]) -> dict[str, dict] | str:
    """The processor's counters for each program; or why there are none."""
    found = {name: counters([path]) for name, path in paths.items()}
    return next((what for what in found.values() if isinstance(what, str)), found)


def bisect(revisions: list[str], limit: float) -> dict:
    """`git bisect run ./check.sh LIMIT` over the whole history: found (the culprit?), message, log."""
    git("bisect", "start", revisions[-1], revisions[0])
    try:
        log = git("bisect", "run", "./check.sh", f"{limit:.4f}", timeout_s=300)
        blamed = git("show", "--no-patch", "--format=%s", "refs/bisect/bad").strip()
    finally:
        git("bisect", "reset")
    return {"found": float(blamed == CULPRIT), "message": blamed, "log": log}


def bisections(revisions: list[str], limit: float) -> pd.DataFrame:
    """Several bisections. Columns found, message, log."""
    repeats = 3 if current().is_result else 1
    rows = []
    with Reporter("git bisect", repeats) as reporter:
        for _ in range(repeats):
            rows.append(bisect(revisions, limit))
            reporter.advance(rows[-1]["message"])
    return pd.DataFrame(rows)


def suspects(revisions: list[str]) -> dict[str, Path]:
    """The exercise: one program, and two that are slower, one by its place and one by its work."""
    at = culprit(revisions)
    return {
        "before": build("before", revisions[0]),
        "suspect 1": build("suspect-1", revisions[0], MORE_WORK),
        "suspect 2": build("suspect-2", revisions[at]),
    }


TRUTH = {"suspect 1": "real", "suspect 2": "placement"}


def check_verdicts(verdicts: dict[str, str]) -> list[str]:
    """The exercise's self-check."""
    lines = []
    for name, truth in TRUTH.items():
        said = verdicts.get(name, "")
        if said not in ("real", "placement"):
            lines.append(f'{name}: still open. Say "real" or "placement".')
        elif said == truth:
            lines.append(f"{name}: right.")
        else:
            why = "more instructions than" if truth == "real" else "the same instructions as"
            lines.append(f"{name}: no. It executes {why} before. Look at both columns again.")
    return lines
