"""`make ready`: a room of people, and no network in it.

What is fetched stays in the caches of pip's wheels, of this book (interpreters, their sources) and of cargo. `write`
puts all of it into a folder for machines of the same kind, `take` brings it into the caches of another one, and `prove`
runs a chapter where there is no network.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from ffilab import bootstrap
from ffilab.run import settings
from ffilab.run.archives import tarfile
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, LOGS, NATIVE, NATIVE_OUT, ROOT, cache
from ffilab.run.progress import say, step
from ffilab.run.subprocesses import explain_os_errors, logged, tail
from ffilab.setup import linker
from ffilab.setup.installed import Installed, folder
from ffilab.setup.interpreters import uv
from ffilab.setup.recipe import prefix

LOG = LOGS / "ready.log"
PIP = ROOT / "requirements" / "pip.txt"
WHEELS, CACHE, CRATES, CLONE = "wheels", "cache.tar.gz", "crates.tar.gz", "book.bundle"
# What brings loopback up: Jupyter talks to its kernels there.
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
HOW = """Everything for "Hidden Corners of the Python FFI" on {kind}, without a network.
Copy this folder to your machine (or read it from the stick), then:

    git clone {clone} book
    cd book
    make ready FROM=THIS_FOLDER

It holds programs: take it only from somebody whom you trust.
"""


def registry() -> Path:
    """Where cargo keeps the crates that it has fetched."""
    return Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo") / "registry"


def write(room: Path, interpreters: list[Installed]) -> None:
    """Write the folder for the others in the room. Raises UserError."""
    LOG.unlink(missing_ok=True)
    with explain_os_errors(str(room)):
        (room / WHEELS).mkdir(parents=True, exist_ok=True)
        locks = [(Path(sys.executable), ROOT / "requirements" / f"{name}.txt") for name in ("book", "atlas")]
        locks += [(Path(sys.executable), linker.LOCK)]
        locks += [(one.python, folder(one.interpreter) / "requirements.txt") for one in interpreters]
        with (
            step("wheels for the others in the room (some 400 MB, once)") as bar,
            tempfile.TemporaryDirectory(dir=BUILD) as pip,
        ):
            # The pip of a virtual environment may be older than an interpreter of the book.
            _fetched([uv(), "pip", "install", "--no-config", "--target", pip], PIP, {})
            for number, (python, lock) in enumerate(locks):
                bar.update(number / len(locks), f"{lock.parent.name}/{lock.stem}")
                command = [str(python), "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
                _fetched([*command, "--dest", str(room / WHEELS)], lock, {"PYTHONPATH": pip})
        with step("interpreters and crates for the others in the room") as bar:
            compiled = [one.interpreter for one in interpreters if one.facts["route"] == "source"]
            sources = {cache() / "downloads" / f"Python-{one.source.release}.tar.xz" for one in compiled}
            _pack(room / CACHE, cache(), [*map(prefix, compiled), *filter(Path.exists, sorted(sources))], bar)
            _pack(room / CRATES, registry(), crates(), bar)
        # The clone with its history: records name its commit.
        command = ["git", "bundle", "create", str(room / CLONE), "HEAD"]
        if logged(command, LOG, cwd=ROOT):
            raise UserError(f"git cannot bundle this folder ({tail(LOG, 1)}): run this in a clone of the book.")
        (room / bootstrap.KIND).write_text(json.dumps(bootstrap.kind()))
        kind = ", ".join(bootstrap.kind().values())
        (room / "READ-ME.txt").write_text(HOW.format(kind=kind, clone=CLONE))
        files = sorted(path for path in room.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
        sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(room)}\n" for path in files]
        (room / "SHA256SUMS").write_text("".join(sums))
    size = sum(path.stat().st_size for path in files)
    say(f"  for others: the folder {os.path.relpath(room)}, {size / 1e9:.1f} GB ({kind}); its READ-ME.txt says how")


def _fetched(command: list[str], lock: Path, variables: dict[str, str]) -> None:
    """Run a command that fetches what a lock names. Raises UserError."""
    command = [*command, "--require-hashes", "--requirement", str(lock)]
    if logged(command, LOG, env={**os.environ, **variables}):
        raise UserError(f"The wheels of {lock.relative_to(ROOT)} could not be fetched ({tail(LOG, 1)}): see {LOG}.")


def crates() -> list[Path]:
    """What cargo fetched for the projects under native/, of every system that their locks name. Empty without Rust."""
    names = {}
    # An extension is built from a copy.
    locks = [*NATIVE.rglob("Cargo.lock"), *NATIVE_OUT.glob("*/source/*/*/Cargo.lock")]
    for lock in locks if shutil.which("cargo") else ():
        # For every system, as cargo resolves no other lock without a network.
        if logged(["cargo", "fetch", "--locked", "--quiet"], LOG, cwd=lock.parent):
            say(f"    {lock.parent.name}: its crates could not be fetched ({tail(LOG, 1)})")
        names |= dict.fromkeys(re.findall(r'name = "(.*)"\nversion = "(.*)"\nsource', lock.read_text()))
    kept = [path for one in names for path in registry().glob(f"cache/*/{'-'.join(one)}.crate")]
    kept += [path for one in {one for one, _ in names} for path in registry().glob(f"index/*/.cache/**/{one}")]
    return kept + sorted(registry().glob("index/*/config.json"))


def _pack(archive: Path, root: Path, paths: list[Path], bar) -> None:
    new = archive.with_suffix(".part")
    with tarfile.open(new, "w:gz", compresslevel=3) as tar:
        for number, path in enumerate(paths):
            bar.update(number / len(paths), path.name)
            tar.add(path, path.relative_to(root), filter=_nobodys)
    new.rename(archive)


def _nobodys(member):
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def take(room: Path) -> None:
    """Bring interpreters, their sources and, for cargo, crates from a folder into this machine's caches, where they
    lack."""
    archives = {CACHE: cache()} | ({CRATES: registry()} if shutil.which("cargo") else {})
    for archive, place in archives.items():
        with explain_os_errors(str(place)), step(f"unpack {archive}"):
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place) as scratch, tarfile.open(room / archive) as tar:
                tar.extractall(scratch, filter="data")
                # An interpreter is one thing: half of one would pass for it.
                found = Path(scratch).glob("*/*") if archive == CACHE else Path(scratch).rglob("*")
                for path in [path for path in found if archive == CACHE or path.is_file()]:
                    target = place / path.relative_to(scratch)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    if not target.exists():
                        path.rename(target)


def prove(chapter: str) -> None:
    """Measure a chapter at smoke in a namespace without a network, into a folder of its own. Raises UserError if that
    fails; where the system gives no such namespace, say so."""
    alone = ["unshare", "--map-root-user", "--net"]
    if not shutil.which(alone[0]) or subprocess.run([*alone, "true"], capture_output=True).returncode:
        say("  not proven: this system gives no namespace without a network (`unshare -rn true` fails here)")
        return
    without = {name: value for name, value in os.environ.items() if name != settings.FROM}
    told = {settings.BUDGET: "smoke", settings.BUILD: str(BUILD / "ready")}
    command = [*alone, sys.executable, "-m", "ffilab.setup.room", "chapter", chapter]
    with step(f"proof: the chapter {chapter} at smoke, with the network cut") as bar:
        if logged(command, LOG, on_line=lambda line: bar.update(None, line.strip()), env={**without, **told}):
            raise UserError(f"Without a network the chapter {chapter} fails ({tail(LOG, 1)}): read {LOG}.")


if __name__ == "__main__":
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    os.execv(sys.executable, [sys.executable, "-m", "ffilab", *sys.argv[1:]])
