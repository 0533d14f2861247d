"""Compile CPython from its pinned source: the last route, for machines without prebuilt interpreters.

GIL and t-build get the same flags, the same profile training and the same
compiler; `--disable-gil` is the only difference.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import time
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from ffilab import doctor
from ffilab.errors import UserError
from ffilab.machine import compiler
from ffilab.paths import cache
from ffilab.progress import Step, minutes, say, step
from ffilab.provision import sources
from ffilab.provision.catalogue import Interpreter, Source
from ffilab.subprocesses import explain_os_errors, logged, tail

TRAINING = Path(__file__).with_name("pgo_training.py")
CONFIGURE = ("-q", "--disable-test-modules", "--without-ensurepip", "--enable-optimizations")
NEEDED_BYTES = 1_500_000_000
# Lines that `make` prints for one build with profile: only the progress bar depends on it.
EXPECTED_MAKE_LINES = 1_250
EXPECTED_CORE_SECONDS = 440


def recipe(interpreter: Interpreter) -> str:
    """A short hash of everything that decides what the build is."""
    parts = [interpreter.source.sha256, *CONFIGURE, TRAINING.read_text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]


def prefix(interpreter: Interpreter) -> Path:
    name = f"cpython-{interpreter.source.release}{'t' if interpreter.free_threaded else ''}-{recipe(interpreter)}"
    return cache() / "interpreters" / name


def executable(interpreter: Interpreter) -> Path:
    return prefix(interpreter) / "bin" / f"python{interpreter.label}"


def built(interpreter: Interpreter) -> bool:
    return executable(interpreter).exists()


def build(interpreter: Interpreter) -> Path:
    """Build if it is not in the cache yet; return the executable. Resumable: an interrupted make goes on."""
    if built(interpreter):
        return executable(interpreter)
    with explain_os_errors(str(cache())):
        work = cache() / "work" / prefix(interpreter).name
        with only_one(work, interpreter.name):
            return executable(interpreter) if built(interpreter) else _build(interpreter, work)


def unpacked(source: Source, work: Path, bar: Step) -> Path:
    """The source tree in the folder `work`, fetched and unpacked if it is not there. Raises UserError."""
    if not (work / "unpacked").exists():
        shutil.rmtree(work, ignore_errors=True)
        tarball = sources.fetch(source, bar)
        work.mkdir(parents=True)
        bar.update(0.03, "unpacking")
        with tarfile.open(tarball) as archive:
            archive.extractall(work, filter="tar")
        (work / "unpacked").touch()
    return work / f"Python-{source.release}"


def make_environment(cc: str) -> dict[str, str]:
    """Ours, without what a make above us says to its children."""
    return {**{k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}, "CC": cc}


@contextmanager
def only_one(work: Path, what: str):
    """Hold the lock of a work folder; says so if another process has it."""
    work.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{work}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"  Another process is building {what}; waiting for it.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _build(interpreter: Interpreter, work: Path) -> Path:
    cc = compiler()
    if not shutil.which("make"):
        raise UserError("`make` is missing on this machine: run `make doctor` for the command that installs it.")
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
    estimate = EXPECTED_CORE_SECONDS / jobs
    began = time.monotonic()
    say(
        f"  {interpreter.name}: no prebuilt one at hand, compiling {interpreter.source.release} "
        f"(about {minutes(estimate)} on {jobs} cores)"
    )
    with step(f"compile {interpreter.name}") as bar:
        tree = unpacked(interpreter.source, work, bar)
        log = work / "build.log"

        def run(command, detail):
            if logged(command, log, on_line=lambda _: advance(detail), cwd=tree, env=make_environment(cc)):
                raise UserError(
                    f"Building {interpreter.name} failed at `{detail}` ({tail(log, 2)}): read {log}, "
                    f"run `make doctor`, then run the same command again; it goes on where it stopped."
                )

        lines = 0

        def advance(detail):
            nonlocal lines
            lines += 1
            bar.update(0.05 + 0.9 * lines / EXPECTED_MAKE_LINES, detail)

        if not (work / "configured").exists():
            flags = [*CONFIGURE, f"--prefix={prefix(interpreter)}"]
            flags += ["--disable-gil"] if interpreter.free_threaded else []
            bar.update(0.05, "configure", seconds_left=estimate)
            run(["./configure", *flags], "configure")
            (work / "configured").touch()
        run(["make", f"-j{jobs}", f"PROFILE_TASK={TRAINING}"], "make")
        staging = work / "staging"
        shutil.rmtree(staging, ignore_errors=True)
        run(["make", "install", f"DESTDIR={staging}"], "install")
    final = prefix(interpreter)
    staged = staging / final.relative_to("/")
    fresh = staged / "bin" / f"python{interpreter.label}"
    check = subprocess.run([fresh, "-I", "-c", "import ctypes, zlib, socket"], capture_output=True, text=True)
    if check.returncode:
        raise UserError(f"The compiled {interpreter.name} is not complete ({check.stderr.strip()[-120:]}): see {log}.")
    facts = {"seconds": round(time.monotonic() - began), "make_lines": lines, "cc": cc}
    (staged / "ffilab-build.json").write_text(json.dumps(facts))
    final.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)
    staged.rename(final)
    shutil.rmtree(work)
    return executable(interpreter)
