"""Each kernel's environment: a venv beside its kernel.json, filled from its hashed lock."""

import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ffilab.errors import UserError
from ffilab.paths import KERNELS, LOGS
from ffilab.progress import say, step
from ffilab.provision import build
from ffilab.provision.catalogue import ALL, CHAPTER_PAIR, Interpreter, Request
from ffilab.provision.interpreters import Found, find, probe, uv
from ffilab.subprocesses import explain_os_errors, logged, tail

FACTS = "ffilab.json"


@dataclass(frozen=True)
class Kernel:
    """An interpreter of the book with its environment in place."""

    interpreter: Interpreter
    python: Path
    facts: dict

    @property
    def name(self) -> str:
        return self.interpreter.kernel

    @property
    def label(self) -> str:
        return self.interpreter.label


def folder(interpreter: Interpreter) -> Path:
    return KERNELS / interpreter.kernel


def python(interpreter: Interpreter) -> Path:
    return folder(interpreter) / ".venv" / "bin" / "python"


def stamp(found: Found) -> str:
    """Changes whenever the environment has to be made again."""
    lock = (folder(found.interpreter) / "requirements.txt").read_bytes()
    return hashlib.sha256(lock + os.path.realpath(found.executable).encode()).hexdigest()


def load(interpreter: Interpreter) -> Kernel:
    """A kernel that `make kernels` has set up.

    Raises UserError, with the command that mends it, if its environment is missing or broken.
    """
    facts = folder(interpreter) / ".venv" / FACTS
    try:
        loaded = json.loads(facts.read_text())
        if not python(interpreter).exists():
            raise FileNotFoundError(python(interpreter))
    except (OSError, json.JSONDecodeError):
        raise UserError(
            f"The kernel {interpreter.kernel} has no working environment in "
            f"kernels/kernels/{interpreter.kernel}/.venv: run `make kernels KERNELS={interpreter.label}`."
        ) from None
    return Kernel(interpreter, python(interpreter), loaded)


def present() -> list[Kernel]:
    """All kernels whose environment is in place, in version order."""
    kernels = []
    for interpreter in ALL:
        try:
            kernels.append(load(interpreter))
        except UserError:
            continue
    return kernels


def make(found: Found) -> Kernel:
    """Create or renew one environment; a no-op if it is up to date."""
    interpreter = found.interpreter
    target = folder(interpreter) / ".venv"
    wanted = stamp(found)
    try:
        if (current := load(interpreter)).facts["stamp"] == wanted:
            return current
    except UserError:
        pass
    with explain_os_errors(str(target)), step(f"environment of {interpreter.kernel}"):
        shutil.rmtree(target, ignore_errors=True)
        log = LOGS / f"environment-{interpreter.kernel}.log"
        log.unlink(missing_ok=True)
        lock = target.parent / "requirements.txt"
        for command in (
            [uv(), "venv", "--no-config", "--no-project", "--python", found.executable, str(target)],
            [uv(), "pip", "sync", "--no-config", "--require-hashes", "--python", str(python(interpreter)), str(lock)],
        ):
            if logged(command, log):
                shutil.rmtree(target, ignore_errors=True)
                raise UserError(
                    f"The packages of {interpreter.kernel} could not be installed ({tail(log)}): "
                    f"check the connection, or read {log}."
                )
        (target / FACTS).write_text(json.dumps({**describe(found), "stamp": wanted}, indent=1))
    return load(interpreter)


def describe(found: Found) -> dict:
    """Facts about the build that belong beside every figure: route, flags, compiler."""
    facts = probe(found.executable)
    return {
        "route": found.route,
        "version": facts["full"],
        "config_args": facts["config_args"].replace(str(build.prefix(found.interpreter)), "PREFIX"),
        "packages": packages(python(found.interpreter)),
    }


def packages(executable: Path) -> dict[str, str]:
    listing = subprocess.run(
        [uv(), "pip", "list", "--no-config", "--format", "json", "--python", str(executable)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {package["name"]: package["version"] for package in json.loads(listing.stdout)}


def provision(request: Request) -> list[Kernel]:
    """Everything that a request needs, in place. Reports what was left out and how to add it."""
    found, left_out = find(request)
    kernels = [make(f) for f in found]
    for kernel in kernels:
        say(f"  {kernel.name}: {kernel.facts['version'].split(' (')[0]}, route {kernel.facts['route']}")
    if left_out:
        labels = " ".join(i.label for i in left_out)
        say(f"  left out, as they would have to be compiled: {labels} (add them with KERNELS=all)")
    return kernels


def same_build(one: Kernel, other: Kernel) -> bool:
    """Do a GIL build and a t-build of one version come by one route with the same flags?"""

    def flags(kernel):
        return sorted(set(kernel.facts["config_args"].split()) - {"'--disable-gil'"})

    return one.facts["route"] == other.facts["route"] and flags(one) == flags(other)


def pair() -> list[Kernel]:
    """The chapter pair. Raises UserError if one of the two is not set up."""
    return [load(interpreter) for interpreter in CHAPTER_PAIR]
