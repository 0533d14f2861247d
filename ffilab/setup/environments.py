"""Each interpreter's environment: a venv beside its kernel.json, filled from its hashed lock."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import LOGS, ROOT, swap
from ffilab.run.progress import say, step
from ffilab.run.subprocesses import explain_os_errors, logged, tail
from ffilab.setup import build, linker
from ffilab.setup.catalogue import Request
from ffilab.setup.installed import FACTS, Installed, folder, load, python
from ffilab.setup.interpreters import Found, find, probe, suits, uv

# Compiled at once: where PYTHONDONTWRITEBYTECODE is set, every start of a chapter would compile its libraries anew.
SYNC = ("pip", "sync", "--no-config", "--require-hashes", "--compile-bytecode")


def stamp(base: Found) -> str:
    """A hash of what the environment is made from: it is made again if that changes."""
    lock = (folder(base.interpreter) / "requirements.txt").read_bytes()
    path = os.path.realpath(base.executable).encode()
    parts = [lock, path, " ".join(SYNC).encode()]
    if base.route == "source":
        # A build may have taken the place of another one.
        parts.append(json.dumps(build.facts(base.interpreter).get("compiler", "")).encode())
    return hashlib.sha256(b"".join(parts)).hexdigest()


def remove(environment: Path) -> None:
    """Remove a virtual environment: first what says that it is whole, so that half of one never passes for it. One that
    is elsewhere, behind a symbolic link, stays."""
    if environment.is_symlink():
        return
    for stamp in (environment / FACTS, *environment.glob("ready-*")):
        stamp.unlink(missing_ok=True)
    shutil.rmtree(environment, ignore_errors=True)


def make(base: Found) -> Installed:
    """Create or renew one environment; a no-op if it is up to date."""
    interpreter = base.interpreter
    target = folder(interpreter) / ".venv"
    wanted = stamp(base)
    try:
        if (current := load(interpreter)).facts["stamp"] == wanted and suits(probe(str(current.python)), interpreter):
            return current
    except UserError:
        pass
    with explain_os_errors(str(target)), step(f"environment of {interpreter.name}"):
        remove(target)
        log = LOGS / f"environment-{interpreter.name}.log"
        log.unlink(missing_ok=True)
        lock = target.parent / "requirements.txt"
        for command in (
            [uv(), "venv", "--no-config", "--no-project", "--python", base.executable, str(target)],
            [uv(), *SYNC, "--python", str(python(interpreter)), str(lock)],
        ):
            if logged(command, log):
                remove(target)
                raise UserError(
                    f"The packages of {interpreter.name} could not be installed ({tail(log)}): "
                    f"check the connection, or read {log}."
                )
        if not suits(probe(str(python(interpreter))), interpreter):
            remove(target)
            raise UserError(
                f"{base.executable} says that it is {interpreter.label}, and an environment made of it is not: "
                f'name another one with KERNELS="{interpreter.label}=/path/to/python".'
            )
        (target / FACTS).write_text(json.dumps({**describe(base), "stamp": wanted}, indent=1))
    return load(interpreter)


def describe(base: Found) -> dict:
    """Facts about the build that belong beside every figure: route, flags, compiler."""
    facts = probe(base.executable)
    return {
        "route": base.route,
        "version": facts["full"],
        # A cache that was moved has the folder in which it was built.
        "config_args": re.sub(r"(?<=--prefix=)[^\s']*", "PREFIX", facts["config_args"]),
        "packages": packages(python(base.interpreter)),
    }


def packages(executable: Path) -> dict[str, str]:
    command = [uv(), "pip", "list", "--no-config", "--format", "json", "--python", str(executable)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {package["name"]: package["version"] for package in json.loads(listing)}


# What few need: by module, its lock and what a reader is told while it comes.
EXTRAS = {
    "statsmodels": ("atlas.txt", "statsmodels, which the atlas needs (12 MB, once)"),
    "distributed": ("fleet.txt", "Dask, which a fleet needs (once)"),
}


def install_extra(module: str) -> None:
    """Install one of `EXTRAS` into the book's environment, if it is not there. Raises UserError if that fails."""
    if find_spec(module):
        return
    lock, what = EXTRAS[module]
    command = [uv(), "pip", "install", "--no-config", "--python", sys.executable, "--require-hashes"]
    with step(f"install {what}"):
        answer = subprocess.run([*command, "-r", ROOT / "requirements" / lock], capture_output=True, text=True)
    if answer.returncode:
        said = (answer.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
        raise UserError(f"{module} could not be installed ({said}): check the connection, then run it again.")


def provide_linker() -> None:
    """Fetch the linker that orders functions into the cache if this machine has none. Where that fails, say so."""
    if linker.find() or settings.no_downloads():
        return
    target, log = linker.of_wheel().parent, LOGS / "linker.log"
    with explain_os_errors(str(target)), step("fetch the linker lld (a wheel of about 100 MB, once)"):
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            new = Path(scratch) / "new"
            command = [uv(), "pip", "install", "--require-hashes", "--no-config", "--no-deps", "--target", str(new)]
            if logged([*command, "-r", str(linker.LOCK)], log):
                say(f"  it could not be fetched ({tail(log, 1)})")
                return
            (new / linker.NAME).write_text(linker.OF_WHEEL)
            (new / linker.NAME).chmod(0o755)
            swap(new, target)
    linker.find.cache_clear()


def provision(request: Request) -> list[Installed]:
    """Set up the interpreters of a request with their environments. Say which were left out, and how to add them."""
    usable, left_out = find(request)
    interpreters = []
    for base in usable:
        try:
            interpreters.append(make(base))
        except UserError as error:
            if base.interpreter not in request.optional:
                raise
            say(f"  {base.interpreter.name} is left out: {error}")
    for installed in interpreters:
        say(f"  {installed.name}: {installed.facts['version'].split(' (')[0]}, route {installed.facts['route']}")
    if any(installed.facts["route"] == "source" for installed in interpreters):
        provide_linker()
    if left_out:
        labels = " ".join(interpreter.label for interpreter in left_out)
        say(f"  left out, as they would have to be compiled: {labels} (add them with KERNELS=all)")
    return interpreters
