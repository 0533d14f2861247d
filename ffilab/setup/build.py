"""Compile CPython from its pinned source: the last route, for machines without prebuilt interpreters.

GIL and t-build get the same flags, the same profile training and the same
compiler; `--disable-gil` is the only difference. Each function gets a section of its own, and the objects are kept, so
that the interpreter can be linked again with its functions in another order (`relink.py`).

The recipe is as repeatable as it can be: atomic counters, fixed hashes and seeds, no addresses drawn, no date, no path
of the tree. Two builds still differ, as threads take turns in the training:
`relink.differences` names where.
"""

import functools
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ffilab import doctor
from ffilab.run.archives import tarfile
from ffilab.run.errors import UserError
from ffilab.run.locks import hold
from ffilab.run.machine import compiler, compiler_version, fixed_addresses
from ffilab.run.paths import cache, has_space, swap
from ffilab.run.progress import Step, minutes, say, step
from ffilab.run.subprocesses import explain_os_errors, group, logged, tail, without_make
from ffilab.run.system import output
from ffilab.setup import relink, sources
from ffilab.setup.catalogue import BY_LABEL, Interpreter, Source
from ffilab.setup.recipe import CONFIGURE, FIXED, TRAINING, executable, prefix

NEEDED_BYTES = 1_500_000_000
FACTS = "ffilab-build.json"
# Of a build, in its folder of work.
LOG = "build.log"


def built(interpreter: Interpreter, number: int = 1) -> bool:
    """Is it in the cache, does it start as the right interpreter, and was it made for this libc and by this
    compiler?"""
    path = executable(interpreter, number)
    state = (path.stat().st_size, path.stat().st_mtime_ns) if path.exists() else None
    return _starts(str(path), state, interpreter.label) and not made_otherwise(interpreter, number)


START = (
    "import ctypes, sys, zlib; "
    "print('%d.%d' % sys.version_info[:2] + 't' * (not getattr(sys, '_is_gil_enabled', int)()))"
)


@functools.cache
def _starts(path: str, state: tuple[int, int] | None, label: str) -> bool:
    """Does a file run as this interpreter? state: of the file; part of the cache key, so that a new file is checked
    again."""
    return state is not None and output(path, "-I", "-c", START) == label


def made_by() -> dict[str, str]:
    """What a build depends on and the recipe does not hold: the compiler and the libc of this machine."""
    return {"compiler": compiler_version(), "libc": " ".join(platform.libc_ver()).strip()}


def facts(interpreter: Interpreter, number: int = 1) -> dict:
    """Read the facts noted at the build; empty if they cannot be read."""
    try:
        return json.loads((prefix(interpreter, number) / FACTS).read_text())
    except (OSError, ValueError):
        return {}


def made_otherwise(interpreter: Interpreter, number: int = 1) -> str:
    """Which compiler or libc changed since it was built; empty if none did, or if there is no compiler to ask."""
    noted = facts(interpreter, number)
    return " and ".join(
        f"{key} is {now!r} and was {noted[key]!r}"
        for key, now in made_by().items()
        if now and noted.get(key, now) != now
    )


def build(interpreter: Interpreter, number: int = 1) -> Path:
    """Build if it is not in the cache yet; return the executable. Resumable: an interrupted make goes on."""
    work = cache() / "work" / prefix(interpreter, number).name
    if built(interpreter, number) and not work.exists():
        return executable(interpreter, number)
    with explain_os_errors(str(cache())):
        work.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{work}.lock", "w") as file:
            hold(file, lambda: say(f"  Another process is building {interpreter.name}; waiting for it."))
            if not built(interpreter, number):
                if changed := made_otherwise(interpreter, number):
                    say(f"  {interpreter.name} is built again: {changed}")
                elif prefix(interpreter, number).exists():
                    say(f"  {interpreter.name} in the cache does not start; it is built again.")
                _build(interpreter, number, work)
            # A run that was killed at its very end left it.
            shutil.rmtree(work, ignore_errors=True)
            return executable(interpreter, number)


def unpacked(source: Source, work: Path, bar: Step) -> Path:
    """The source tree in the folder `work`, fetched and unpacked if it is not there. Raises UserError."""
    if not (work / "unpacked").is_file():
        shutil.rmtree(work, ignore_errors=True)
        tarball = sources.fetch(source, bar)
        work.mkdir(parents=True)
        bar.update(None, "unpacking")
        with tarfile.open(tarball) as archive:
            archive.extractall(work, filter="tar")
        (work / "unpacked").touch()
    return work / f"Python-{source.release}"


def last_seconds() -> float | None:
    """Seconds that the last whole build with as many cores took; None if there was none."""
    notes = (cache() / "interpreters").glob(f"*/{FACTS}")
    for path in sorted(notes, key=lambda path: path.stat().st_mtime, reverse=True):
        with suppress(OSError, ValueError, KeyError, TypeError):
            noted = json.loads(path.read_text())
            if noted["jobs"] == os.cpu_count() and noted["whole"]:
                return float(noted["seconds"])
    return None


def _build(interpreter: Interpreter, number: int, work: Path) -> None:
    _check_machine(interpreter, work)
    configured = work / "configured"
    # Begun by another compiler, or for another libc, nothing of it can be kept.
    resumed = configured.exists() and configured.read_text() == json.dumps(made_by())
    if not resumed:
        shutil.rmtree(work, ignore_errors=True)
    try:
        _compile(interpreter, number, work, whole=not resumed)
    except (UserError, subprocess.CalledProcessError):
        if not resumed:
            raise
        # A killed compiler may have left half an object, which make takes for a whole one.
        say(f"  {interpreter.name}: what an earlier run began cannot be completed; compiling from the start")
        shutil.rmtree(work)
        _compile(interpreter, number, work, whole=True)


def _check_machine(interpreter: Interpreter, work: Path) -> None:
    """Raises UserError if something is missing that the build needs."""
    compiler()
    if not shutil.which("make"):
        raise UserError("`make` is missing on this machine: run `make doctor` for the command that installs it.")
    if has_space(cache()):
        raise UserError(
            f"CPython cannot be compiled in {cache()}, as its build takes no path with a space: "
            "point XDG_CACHE_HOME to a folder without one."
        )
    free = shutil.disk_usage(work.parent).free
    if free < NEEDED_BYTES:
        raise UserError(
            f"Building {interpreter.name} needs {NEEDED_BYTES / 1e9:.1f} GB in {cache()}, "
            f"and {free / 1e9:.1f} GB are free: free some space, or point XDG_CACHE_HOME to another disk."
        )
    for header, package in (("ffi.h", "libffi"), ("zlib.h", "zlib")):
        if not doctor.header_present(header):
            raise UserError(
                f"CPython needs the headers of {package} ({header}) to be compiled with all that the book uses: "
                "run `make doctor` for the command that installs them."
            )


# What make prints when it begins a part of a build with profile.
PARTS = {
    "Building with support for profile generation": "instrumented build",
    "run the profile task": "training run",
    "Rebuilding with profile guided optimizations": "final build",
}


def _compile(interpreter: Interpreter, number: int, work: Path, whole: bool) -> None:
    """Compile in `work`, check the result, and put it where builds are. whole: nothing of it was there before."""
    began = time.monotonic()
    tree, staged = _installed(interpreter, work)
    fresh = staged / "bin" / f"python{interpreter.label}"
    check = subprocess.run([fresh, "-I", "-c", "import ctypes, zlib, socket"], capture_output=True, text=True)
    if check.returncode:
        raise UserError(
            f"The compiled {interpreter.name} is not complete ({check.stderr.strip()[-120:]}): see {work / LOG}."
        )
    if lacking := relink.tools_lacking():
        say(f"  {interpreter.name} has one layout, its own: {lacking}, and its objects are not kept")
    else:
        relink.keep_objects(tree, staged, fresh)
    seconds, jobs = round(time.monotonic() - began), os.cpu_count()
    noted = {**made_by(), "seconds": seconds, "cc": compiler(), "jobs": jobs, "whole": whole}
    (staged / FACTS).write_text(json.dumps(noted))
    final = prefix(interpreter, number)
    final.parent.mkdir(parents=True, exist_ok=True)
    # One that takes the place of another: killed while that is removed, half of it would pass for a whole one.
    swap(staged, final)
    shutil.rmtree(work)


def _installed(interpreter: Interpreter, work: Path) -> tuple[Path, Path]:
    """Configure, make, and install into a folder of `work`; return the source tree and the prefix in that folder."""
    log, last, jobs = work / LOG, last_seconds(), os.cpu_count() or 1
    say(
        f"  {interpreter.name}: compiling {interpreter.source.release} on {jobs} cores, so that its layouts can be "
        f"drawn ({f'the last time it took {minutes(last)}' if last else 'once; about five minutes on two cores'})"
    )
    with step(f"compile {interpreter.name}") as bar:
        tree = unpacked(interpreter.source, work, bar)
        detail = ""

        def show(line: str) -> None:
            nonlocal detail
            detail = next((part for text, part in PARTS.items() if text in line), detail)
            bar.update(None, detail)

        def run(command: list[str], what: str) -> None:
            nonlocal detail
            detail = what
            environment = {**without_make(), "CC": compiler(), **FIXED}
            if logged(command, log, on_line=show, cwd=tree, env=environment):
                raise UserError(
                    f"Building {interpreter.name} failed at `{what}` ({tail(log, 2)}): read {log}, "
                    f"run `make doctor`, then run the same command again; it goes on where it stopped."
                )

        if not (work / "configured").exists():
            flags = [*CONFIGURE, f"--prefix={prefix(interpreter)}"]
            flags += ["--disable-gil"] if interpreter.free_threaded else []
            run(["./configure", *flags], "configure")
            (work / "configured").write_text(json.dumps(made_by()))
        # make would take a path with a space for two.
        task = Path(shutil.copy(TRAINING, tree)).name if has_space(TRAINING) else TRAINING
        nowhere = " ".join(f"-f{kind}-prefix-map={tree}=." for kind in ("macro", "debug"))
        make = ["make", f"-j{jobs}", f"PROFILE_TASK={task}", f"EXTRA_CFLAGS={nowhere}"]
        run([*fixed_addresses(), *make], "make")
        staging = work / "staging"
        shutil.rmtree(staging, ignore_errors=True)
        run(["make", "install", f"DESTDIR={staging}"], "install")
    return tree, staging / prefix(interpreter).relative_to("/")


@contextmanager
def in_the_background(interpreters: list[Interpreter]):
    """Build each in a process of its own, which ends with this context: its serial parts then fill the pauses of
    another's.

    Whoever asks for one meanwhile waits for it, and builds it if that failed.
    """
    with ExitStack() as running:
        for interpreter in interpreters:
            command = [sys.executable, "-m", "ffilab.setup.build", interpreter.label]
            running.enter_context(
                group(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
        yield


if __name__ == "__main__":
    build(BY_LABEL[sys.argv[1]])
