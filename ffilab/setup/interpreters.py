"""Find an executable for each interpreter: named, known to uv, downloaded by uv, or compiled."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.machine import compiler_version
from ffilab.run.paths import cache
from ffilab.run.progress import say, step
from ffilab.setup import build, sources
from ffilab.setup.catalogue import CHAPTER_PAIR, COMPILED, PREBUILT, SOONEST, Interpreter, Request

PROBE = """
import importlib.util, json, sys, sysconfig
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2], "full": sys.version, "implementation": sys.implementation.name,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "debug": hasattr(sys, "gettotalrefcount"), "executable": sys.executable,
    "lacking": [name for name in ("_ctypes", "zlib", "_socket") if importlib.util.find_spec(name) is None],
    "config_args": sysconfig.get_config_var("CONFIG_ARGS") or "", "include": sysconfig.get_path("include"),
}))
"""
FIELDS = set(re.findall(r'"(\w+)": ', PROBE))
DOWNLOAD_TIMEOUT_S = 600
A_DAY_S = 86_400


@dataclass(frozen=True)
class Found:
    """An interpreter and the route by which it was obtained. Routes: named, uv, download, source."""

    interpreter: Interpreter
    executable: str
    route: str


def uv() -> str:
    """Path of the uv that our own lock installed, else one on PATH. Raises UserError if neither is there."""
    ours = Path(sys.executable).with_name("uv")
    path = str(ours) if ours.exists() else shutil.which("uv")
    if not path:
        raise UserError("uv is missing: run `python3 ffilab/bootstrap.py kernels`, which installs the pinned one.")
    return path


def probe(executable: str) -> dict | None:
    """Facts about an executable, or None if it does not run as a Python."""
    try:
        answer = subprocess.run([executable, "-I", "-c", PROBE], capture_output=True, text=True, timeout=60, check=True)
        facts = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return facts if isinstance(facts, dict) and set(facts) >= FIELDS else None


def suits(facts: dict | None, interpreter: Interpreter) -> bool:
    """Is this the asked CPython: version, threading model, no debug build, all modules that the book uses, headers to
    compile against?"""
    if facts is None:
        return False
    wanted = {"implementation": "cpython", "version": interpreter.version, "debug": False, "lacking": []}
    wanted["free_threaded"] = interpreter.free_threaded
    return {**facts, **wanted} == facts and (Path(facts["include"]) / "Python.h").exists()


def named(interpreter: Interpreter, path: str) -> Found:
    """The reader's own interpreter. Raises UserError if it is not what its label says."""
    facts = probe(path)
    if facts is None:
        raise UserError(f"KERNELS names {path} for {interpreter.label}, and it does not run as a Python.")
    if not suits(facts, interpreter):
        lacking = f", without {' '.join(facts['lacking'])}" if facts["lacking"] else ""
        raise UserError(
            f"KERNELS names {path} for {interpreter.label}, but it is {facts['full'].split(' (')[0]!r} "
            f"(free-threaded: {facts['free_threaded']}, debug: {facts['debug']}, headers in {facts['include']}"
            f"{lacking}): name a release build of that version with its headers."
        )
    return Found(interpreter, path, "named")


def known_to_uv(interpreter: Interpreter) -> Found | None:
    """Find an interpreter on this machine: one that uv finds without downloading, or one under a name that uv does not
    look for."""
    request = interpreter.label if interpreter.free_threaded else f"{interpreter.version}+gil"
    command = [uv(), "python", "find", "--system", "--no-python-downloads", "--no-project", "--no-config", request]
    answer = subprocess.run(command, capture_output=True, text=True)
    path = answer.stdout.strip() if answer.returncode == 0 else ""
    if not path and interpreter.free_threaded:
        # As the deadsnakes archive for Ubuntu names it.
        path = shutil.which(f"python{interpreter.version}-nogil")
    # Our own builds must not pose as the machine's: they are the source route.
    if path and not Path(path).is_relative_to(cache()) and suits(probe(path), interpreter):
        return Found(interpreter, path, "uv")
    return None


def reason(stderr: str) -> str:
    """The first cause that uv names, in one line; addresses are left out."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    causes = [line.removeprefix("cause:").strip() for line in lines if line.startswith("cause:")]
    return re.sub(r"\s*`?\(?\w+://[^\s`)]+[`)]*", "", (causes or lines or ["it says nothing"])[0])


class Downloads:
    """`uv python install`. After one failure, no further try in this run, and none for a day for what is optional."""

    def __init__(self):
        self.failed = False
        self._note = cache() / "no-downloads"

    def install(self, interpreter: Interpreter, required: bool) -> Found | None:
        lately = self._note.exists() and time.time() - self._note.stat().st_mtime < A_DAY_S
        if self.failed or settings.no_downloads() or (lately and not required):
            return None
        say(f"  {interpreter.name}: asking uv to download it")
        try:
            answer = subprocess.run(
                [uv(), "python", "install", "--no-bin", "--no-config", interpreter.label],
                capture_output=True,
                text=True,
                timeout=DOWNLOAD_TIMEOUT_S,
                check=False,
                env={**os.environ, "UV_HTTP_RETRIES": "0"},
            )
        except subprocess.TimeoutExpired:
            return self._give_up(f"no end within {DOWNLOAD_TIMEOUT_S} s")
        if answer.returncode:
            return self._give_up(reason(answer.stderr))
        self._note.unlink(missing_ok=True)
        usable = known_to_uv(interpreter)
        return usable and Found(interpreter, usable.executable, "download")

    def _give_up(self, why: str) -> None:
        self.failed = True
        self._note.parent.mkdir(parents=True, exist_ok=True)
        self._note.touch()
        say(f"  uv cannot download interpreters on this machine ({why}); going on without.")


def in_cache(interpreter: Interpreter) -> Found | None:
    """One that was compiled here before: nothing has to be downloaded for it."""
    return source(interpreter) if build.built(interpreter) else None


def source(interpreter: Interpreter) -> Found:
    """Compile it, or take it from the cache. Raises UserError."""
    return Found(interpreter, str(build.build(interpreter)), "source")


def find(request: Request) -> tuple[list[Found], list[Interpreter]]:
    """Executables for a request, and the optional interpreters that were left out.

    Two builds of one version come by the same route where both are asked for, so
    that a comparison between them compares the GIL and not two distributors.
    Raises UserError for what is required and cannot be had.
    """
    chosen = {i: named(i, path) for i, path in request.named.items()}
    downloads = Downloads()
    left_out = []
    for wanted, required in ((request.required, True), (request.optional, False)):
        by_version: dict[str, list[Interpreter]] = {}
        for interpreter in (i for i in wanted if i not in chosen):
            by_version.setdefault(interpreter.version, []).append(interpreter)
        for group in by_version.values():
            how = request.pair if set(group) <= set(CHAPTER_PAIR) else SOONEST
            for interpreter, result in zip(group, _by_one_route(group, downloads, required, how)):
                if result:
                    chosen[interpreter] = result
                else:
                    left_out.append(interpreter)
    return sorted(chosen.values(), key=lambda f: f.interpreter), left_out


def _by_one_route(group: list[Interpreter], downloads: Downloads, required: bool, how: str) -> Iterator[Found | None]:
    """One result for each of the group, each as soon as it is there."""

    def download(interpreter: Interpreter) -> Found | None:
        return downloads.install(interpreter, required)

    if required and how == COMPILED and can_compile(group):
        with build.in_the_background([interpreter for interpreter in group[1:] if not build.built(interpreter)]):
            yield from map(source, group)
        return
    prebuilt = (known_to_uv, download)
    for route in (*prebuilt, in_cache) if how == PREBUILT else (in_cache, *prebuilt):
        # Where one of them does not come by it, the others are not asked.
        results = list(itertools.takewhile(bool, map(route, group)))
        if len(results) == len(group):
            yield from results
            return
    if required and how == PREBUILT:
        labels = " and ".join(interpreter.label for interpreter in group)
        raise UserError(
            f"There is no prebuilt CPython {labels} on this machine, and uv cannot download one: name your own with "
            "KERNELS, or leave KERNELS out to compile them."
        )
    if required or all(map(build.built, group)):
        yield from map(source, group)
    else:
        # Optional and nothing for all of them: take what needs no compiling, one by one.
        yield from (known_to_uv(i) or in_cache(i) for i in group)


def can_compile(group: list[Interpreter]) -> bool:
    """Are a compiler and the source of one version here, or to be had? If the source is not, say why."""
    if all(map(build.built, group)):
        return True
    if not compiler_version():
        return False
    try:
        with step(f"source of CPython {group[0].source.release}") as bar:
            sources.fetch(group[0].source, bar)
    except UserError as error:
        say(f"  {error}")
        return False
    return True
