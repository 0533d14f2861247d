"""Each interpreter's environment: a venv beside its kernel.json, filled from its hashed lock."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from ffilab.errors import UserError
from ffilab.lanes import second_lane
from ffilab.paths import LOGS
from ffilab.progress import say, step
from ffilab.provision import build
from ffilab.provision.catalogue import Interpreter, Request
from ffilab.provision.installed import FACTS, Installed, folder, load, python
from ffilab.provision.interpreters import Found, find, probe, suits, uv
from ffilab.subprocesses import explain_os_errors, logged, tail

# Compiled at once: where PYTHONDONTWRITEBYTECODE is set, every start of a chapter would compile its libraries anew.
SYNC = ("pip", "sync", "--no-config", "--require-hashes", "--compile-bytecode")


@dataclass(frozen=True)
class Coming:
    """Interpreters whose environments are made in the second lane, and those that were left out."""

    made: list[Future]
    left_out: list[Interpreter]


def stamp(found: Found) -> str:
    """Changes whenever the environment has to be made again."""
    lock = (folder(found.interpreter) / "requirements.txt").read_bytes()
    path = os.path.realpath(found.executable).encode()
    # A build that took the place of another: older ones noted no compiler.
    made_by = (
        json.dumps(build.facts(found.interpreter).get("compiler", "")).encode() if found.route == "source" else b'""'
    )
    parts = [lock, path, " ".join(SYNC).encode(), *([] if made_by == b'""' else [made_by])]
    return hashlib.sha256(b"".join(parts)).hexdigest()


def remove(environment: Path) -> None:
    """Remove a virtual environment: first what says that it is whole, so that half of one never passes for it. One that
    is elsewhere, behind a symbolic link, stays."""
    if environment.is_symlink():
        return
    for stamp in (environment / FACTS, *environment.glob("ready-*")):
        stamp.unlink(missing_ok=True)
    shutil.rmtree(environment, ignore_errors=True)


def make(found: Found) -> Installed:
    """Create or renew one environment; a no-op if it is up to date."""
    interpreter = found.interpreter
    target = folder(interpreter) / ".venv"
    wanted = stamp(found)
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
            [uv(), "venv", "--no-config", "--no-project", "--python", found.executable, str(target)],
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
                f"{found.executable} says that it is {interpreter.label}, and an environment made of it is not: "
                f'name another one with KERNELS="{interpreter.label}=/path/to/python".'
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
        capture_output=True,
        text=True,
        check=True,
    )
    return {package["name"]: package["version"] for package in json.loads(listing.stdout)}


def provision(request: Request) -> list[Installed]:
    """Everything that a request needs, in place. Reports what was left out and how to add it."""
    with second_lane() as later:
        coming = provide(request, later)
    return report(coming)


def provide(
    request: Request, later: Callable[..., Future], then: Callable[[Installed], object] = lambda one: None
) -> Coming:
    """Find or compile the interpreters here; make the environment of each in the second lane, while the next is compiled.

    later: hands work to the second lane. then: what is done there with an interpreter as soon as its environment is there.
    """
    made = []

    def make_and_go_on(found: Found) -> Installed:
        one = make(found)
        then(one)
        return one

    _, left_out = find(request, lambda found: made.append(later(make_and_go_on, found)))
    return Coming(made, left_out)


def report(coming: Coming) -> list[Installed]:
    """The interpreters, by version, once all is done; says what they are, what was left out and how to add it."""
    interpreters = sorted((one.result() for one in coming.made), key=lambda one: one.interpreter)
    for one in interpreters:
        say(f"  {one.name}: {one.facts['version'].split(' (')[0]}, route {one.facts['route']}")
    if coming.left_out:
        labels = " ".join(i.label for i in coming.left_out)
        say(f"  left out, as they would have to be compiled: {labels} (add them with KERNELS=all)")
    return interpreters
