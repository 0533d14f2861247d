"""The linker that orders functions, LLVM's lld: this machine's, else that of a Rust toolchain, else a wheel in the
cache.

The wheel is fetched when interpreters are set up (environments.py). Standard library only: chapters import this.
"""

import functools
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import ROOT, cache
from ffilab.run.system import output

# What gcc and clang look for at `-fuse-ld=lld`, in the folders that `-B` names.
NAME = "ld.lld"
LOCK = ROOT / "requirements" / "linker.txt"
# Zig ships lld, without a library that a machine could lack.
OF_WHEEL = '#!/bin/sh\nexec "$(dirname "$0")/ziglang/zig" ld.lld "$@"\n'


@functools.cache
def find() -> Path | None:
    """A file called `ld.lld` that starts; None if there is none."""
    return next(filter(version, _candidates()), None)


def _candidates() -> Iterator[Path]:
    if there := shutil.which(NAME):
        yield Path(there)
    for folder in map(Path, os.get_exec_path()):
        numbered = [path for path in folder.glob(f"{NAME}-*") if re.fullmatch(rf"{NAME}-\d+", path.name)]
        for path in sorted(numbered, key=lambda path: -int(path.suffix.rpartition("-")[2])):
            yield _under_its_name(path)
    if sysroot := output("rustc", "--print", "sysroot"):
        yield from Path(sysroot).glob(f"lib/rustlib/*/bin/gcc-ld/{NAME}")
    yield of_wheel()


def _under_its_name(path: Path) -> Path:
    """A link called `ld.lld` to one that has its version in its name; a compiler finds no other."""
    link = cache() / "linkers" / path.name / NAME
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path)
    return link


def of_wheel() -> Path:
    """Where the wheel's linker is in the cache, fetched or not."""
    return cache() / "linkers" / hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16] / NAME


def version(linker: Path | None) -> str:
    """What a linker says of itself, such as `LLD 14.0.6`; empty if it does not start."""
    said = linker and re.search(r"LLD [\d.]+", output(linker, "--version"))
    return said[0] if said else ""


def version_here() -> str:
    """The version of the linker that was found; empty if there is none."""
    return version(find())


def lacking() -> str:
    """Why there is no linker that orders functions, and what mends it."""
    if settings.no_downloads():
        return f"there is no linker that orders functions, and {settings.NO_DOWNLOADS} forbids to fetch it: install lld"
    return "there is no linker that orders functions: install lld, or run the command again with a connection"


def needed() -> Path:
    """The linker. Raises UserError if there is none."""
    if linker := find():
        return linker
    raise UserError(f"Nothing can be linked again: {lacking()}.")
