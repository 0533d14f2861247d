"""Compile CPython from its pinned source: the last route, for machines without prebuilt interpreters.

GIL and t-build get the same flags, the same profile training and the same
compiler; `--disable-gil` is the only difference. Each function gets a section of its own, and the objects are kept, so
that the interpreter can be linked again with its functions in another order (`relink.py`).

The recipe is as repeatable as it can be: atomic counters, fixed hashes and seeds, no addresses drawn, no date, no path of
the tree. Two builds still differ, as threads take turns in the training:
`relink.differences` names where.
"""

import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import time
from contextlib import contextmanager
from pathlib import Path

from ffilab import doctor
from ffilab.errors import UserError
from ffilab.locks import hold
from ffilab.machine import compiler, compiler_version
from ffilab.paths import cache, swap
from ffilab.progress import Step, minutes, say, step
from ffilab.provision import relink, sources, stages
from ffilab.provision.catalogue import Interpreter, Source
from ffilab.subprocesses import explain_os_errors, logged, tail

TRAINING = Path(__file__).with_name("pgo_training.py")
CONFIGURE = (
    "-q",
    "--disable-test-modules",
    "--without-ensurepip",
    "--enable-optimizations",
    "CFLAGS_NODIST=-ffunction-sections -fprofile-update=atomic -frandom-seed=layout",
)
# The date that the interpreter says it was compiled at, and the hashes of strings in its training.
FIXED = {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": "0"}
NEEDED_BYTES = 1_500_000_000
FACTS = "ffilab-build.json"


def recipe(interpreter: Interpreter) -> str:
    """A short hash of everything that decides what the build is."""
    parts = [interpreter.source.sha256, *CONFIGURE, *FIXED.values(), TRAINING.read_text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]


def prefix(interpreter: Interpreter, number: int = 1) -> Path:
    """Where a build is installed; number: of the build, by the same recipe."""
    name = f"cpython-{interpreter.source.release}{'t' if interpreter.free_threaded else ''}-{recipe(interpreter)}"
    return cache() / "interpreters" / (name if number == 1 else f"{name}-build{number}")


def executable(interpreter: Interpreter, number: int = 1) -> Path:
    return prefix(interpreter, number) / "bin" / f"python{interpreter.label}"


def built(interpreter: Interpreter, number: int = 1) -> bool:
    """Is it in the cache, does it start as what it should be, and was it made for this libc and by this compiler?"""
    path = executable(interpreter, number)
    return _starts(str(path), _state(path), interpreter.label) and not made_otherwise(interpreter, number)


def _state(path: Path) -> tuple[int, int] | None:
    try:
        return path.stat().st_size, path.stat().st_mtime_ns
    except OSError:
        return None


START = "import ctypes, sys, zlib; print('%d.%d' % sys.version_info[:2] + 't' * (not getattr(sys, '_is_gil_enabled', int)()))"


@functools.cache
def _starts(path: str, state: tuple[int, int] | None, label: str) -> bool:
    """Does a file run as this interpreter? state: of the file, so that another one is asked anew."""
    if not state:
        return False
    try:
        answer = subprocess.run([path, "-I", "-c", START], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return answer.stdout.strip() == label


def made_by() -> dict[str, str]:
    """What a build depends on and the recipe does not hold: the compiler and the libc of this machine."""
    return {"compiler": compiler_version(), "libc": " ".join(platform.libc_ver()).strip()}


def facts(interpreter: Interpreter, number: int = 1) -> dict:
    """What was noted when it was built; nothing if that cannot be read."""
    try:
        found = json.loads((prefix(interpreter, number) / FACTS).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def made_otherwise(interpreter: Interpreter, number: int = 1) -> str:
    """What is no longer as it was when it was built, in words. Where there is no compiler, none can have changed."""
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
        with only_one(work, interpreter.name) as lock:
            if not built(interpreter, number):
                if changed := made_otherwise(interpreter, number):
                    say(f"  {interpreter.name} is built again: {changed}")
                elif prefix(interpreter, number).exists():
                    say(f"  {interpreter.name} in the cache does not start; it is built again.")
                _build(interpreter, number, work, lock)
            # A run that was killed at its very end left it.
            shutil.rmtree(work, ignore_errors=True)
            return executable(interpreter, number)


def unpacked(source: Source, work: Path, bar: Step) -> Path:
    """The source tree in the folder `work`, fetched and unpacked if it is not there. Raises UserError."""
    if not (work / "unpacked").is_file():
        shutil.rmtree(work, ignore_errors=True)
        tarball = sources.fetch(source, bar)
        work.mkdir(parents=True)
        bar.update(0.02, "unpacking")
        with tarfile.open(tarball) as archive:
            archive.extractall(work, filter="tar")
        (work / "unpacked").touch()
    return work / f"Python-{source.release}"


def make_environment(cc: str) -> dict[str, str]:
    """Ours, without what a make above us says to its children."""
    return {**{k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}, "CC": cc, **FIXED}


def without_randomisation() -> list[str]:
    """The front of a command that runs without address randomisation; empty where there is no such thing."""
    front = ["setarch", "--addr-no-randomize"]
    possible = shutil.which(front[0]) and not subprocess.run([*front, "true"], capture_output=True).returncode
    return front if possible else []


@contextmanager
def only_one(work: Path, what: str):
    """Hold the lock of a work folder; says so if another process has it. Yields its descriptor, for the children."""
    work.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{work}.lock", "w") as file:
        hold(file, lambda: say(f"  Another process is building {what}; waiting for it."))
        yield file.fileno()


def expected_seconds() -> float:
    """For one build: what the last whole one on this machine took, else what two slow cores let expect."""
    jobs = os.cpu_count() or 1
    known = (cache() / "interpreters").glob(f"*/{FACTS}")
    for path in sorted(known, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            found = json.loads(path.read_text())
            if found["jobs"] == jobs and found["whole"]:
                return float(found["seconds"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return stages.expected(jobs)


class Spoiled(Exception):
    """A build that went on where it had stopped could not be ended."""


def _build(interpreter: Interpreter, number: int, work: Path, lock: int) -> None:
    try:
        _build_in(interpreter, number, work, lock)
    except Spoiled:
        say(f"  {interpreter.name}: what an earlier run had begun cannot be ended; compiling from the start")
        _build_in(interpreter, number, work, lock)


def _build_in(interpreter: Interpreter, number: int, work: Path, lock: int) -> None:
    # lock: held by what runs in the folder too, whatever becomes of us.
    cc = compiler()
    if not shutil.which("make"):
        raise UserError("`make` is missing on this machine: run `make doctor` for the command that installs it.")
    if re.search(r"\s", str(cache())):
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
    jobs = os.cpu_count() or 1
    estimate = expected_seconds()
    whole = not (work / "configured").exists()
    began = time.monotonic()
    say(
        f"  {interpreter.name}: no prebuilt one at hand, compiling {interpreter.source.release} "
        f"(about {minutes(estimate)} on {jobs} cores)"
    )
    with step(f"compile {interpreter.name}") as bar:
        tree = unpacked(interpreter.source, work, bar)
        log = work / "build.log"
        if not whole and (work / "configured").read_text() != json.dumps(made_by()):
            # Begun by another compiler, or for another libc: nothing of it can be kept.
            shutil.rmtree(work)
            return _build_in(interpreter, number, work, lock)
        going = stages.Stages(jobs, estimate)

        def begin_anew():
            """What was killed may have left half an object, which make takes for a whole one."""
            if not whole:
                shutil.rmtree(work)
                raise Spoiled

        def run(command, detail):
            if logged(command, log, on_line=going.line, cwd=tree, env=make_environment(cc), pass_fds=(lock,)):
                begin_anew()
                raise UserError(
                    f"Building {interpreter.name} failed at `{detail}` ({tail(log, 2)}): read {log}, "
                    f"run `make doctor`, then run the same command again; it goes on where it stopped."
                )

        with stages.ticking(lambda: bar.update(going.share(), going.name, going.left())):
            if not (work / "configured").exists():
                flags = [*CONFIGURE, f"--prefix={prefix(interpreter)}"]
                flags += ["--disable-gil"] if interpreter.free_threaded else []
                going.enter("configure")
                run(["./configure", *flags], "configure")
                (work / "configured").write_text(json.dumps(made_by()))
            task = TRAINING
            if len(str(task).split()) > 1:
                # make would take a path with a space for two.
                task = Path(shutil.copy(TRAINING, tree)).name
            nowhere = " ".join(f"-f{kind}-prefix-map={tree}=." for kind in ("macro", "debug"))
            make = [
                *without_randomisation(),
                "make",
                f"-j{jobs}",
                f"PROFILE_TASK={task}",
                f"EXTRA_CFLAGS={nowhere}",
            ]
            going.enter("instrumented build")
            run(make, "make")
            going.enter("install")
            staging = work / "staging"
            shutil.rmtree(staging, ignore_errors=True)
            run(["make", "install", f"DESTDIR={staging}"], "install")
    final = prefix(interpreter, number)
    staged = staging / prefix(interpreter).relative_to("/")
    fresh = staged / "bin" / f"python{interpreter.label}"
    check = subprocess.run([fresh, "-I", "-c", "import ctypes, zlib, socket"], capture_output=True, text=True)
    if check.returncode:
        begin_anew()
        raise UserError(f"The compiled {interpreter.name} is not complete ({check.stderr.strip()[-120:]}): see {log}.")
    try:
        relink.keep_objects(tree, staged, fresh)
    except (UserError, subprocess.CalledProcessError):
        begin_anew()
        raise
    noted = {
        **made_by(),
        "seconds": round(time.monotonic() - began),
        "make_lines": going.lines,
        "cc": cc,
        "jobs": jobs,
        "whole": whole,
    }
    (staged / FACTS).write_text(json.dumps(noted))
    final.parent.mkdir(parents=True, exist_ok=True)
    # One that takes the place of another: killed while that is removed, half of it would pass for a whole one.
    swap(staged, final)
    shutil.rmtree(work)
