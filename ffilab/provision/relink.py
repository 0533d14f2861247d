"""Link CPython again from the same objects, with its functions in another order.

The objects are compiled once, each function in a section of its own (`provision/objects.py`), and kept in the cache.
Standard library only: chapters import this.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ffilab.errors import UserError
from ffilab.machine import compiler
from ffilab.paths import cache
from ffilab.provision.catalogue import GIL, SOURCES

VERSION = GIL
CONFIGURE = (
    "-q",
    "--disable-test-modules",
    "--without-ensurepip",
    "CFLAGS=-ffunction-sections",
    "OPT=-DNDEBUG -O3 -Wall",
)
ARCHIVE, MAIN = f"libpython{VERSION}.a", "python.o"
# Linker: the option that takes the file with the order, and what stands in it.
LINKERS = {
    "lld": (("-Wl,--symbol-ordering-file={}", "-Wl,--no-warn-symbol-ordering"), "{}"),
    "gold": (("-Wl,--section-ordering-file={}",), ".text.{}"),
}


def folder() -> Path:
    """Where the objects of this recipe are kept: the archive, the main program's object, and `lib/`."""
    source = SOURCES[VERSION]
    recipe = hashlib.sha256("\0".join([source.sha256, *CONFIGURE]).encode()).hexdigest()[:10]
    return cache() / "objects" / f"cpython-{source.release}-{recipe}"


def linker() -> str | None:
    """The first linker here that can order functions: lld, else gold; None if there is neither."""
    return next((name for name in LINKERS if shutil.which(f"ld.{name}")), None)


def missing() -> str | None:
    """None if CPython can be linked again here, else what is lacking."""
    if not (folder() / ARCHIVE).exists():
        note = folder().with_suffix(".missing.txt")
        return note.read_text() if note.exists() else "CPython's objects are not compiled yet: run `make native`"
    if not all(shutil.which(tool) for tool in ("nm", "objdump")):
        return "there are no nm and objdump (the package is called binutils)"
    return None if linker() else "there is neither lld nor gold to order functions: `make doctor` names the package"


def functions() -> list[str]:
    """Names of all functions in the archive that have a section of their own, in its order.

    Raises UserError if the archive cannot be read.
    """
    listing = subprocess.run(["objdump", "-h", folder() / ARCHIVE], capture_output=True, text=True)
    if listing.returncode:
        raise UserError(f"objdump cannot read CPython's objects ({listing.stderr.strip()[-100:]}).")
    # .text.hot.name and .text.unlikely.name are where the compiler itself wants them.
    found = re.findall(r"\s\.text\.(?!hot\.|unlikely\.|startup\.)([\w.$]+)\s", listing.stdout)
    return list(dict.fromkeys(found))


def order_of(program: Path) -> list[str]:
    """Names of a program's functions by address. Raises UserError if it has no symbols."""
    listing = subprocess.run(["nm", "-n", "--defined-only", program], capture_output=True, text=True)
    found = [line.split()[-1] for line in listing.stdout.splitlines() if re.search(r" [tT] ", line)]
    if not found:
        raise UserError(f"{program.name} has no symbols.")
    return found


def link(target: Path, order: list[str] | None = None) -> Path:
    """Link `target`; with `order`, these functions first, one behind the other. Raises UserError if that fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [
        compiler(),
        "-o",
        target,
        folder() / MAIN,
        "-Wl,--whole-archive",
        folder() / ARCHIVE,
        "-Wl,--no-whole-archive",
        "-Wl,-export-dynamic",
        "-ldl",
        "-lm",
        "-pthread",
        f"-fuse-ld={linker()}",
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".order") as file:
        if order is not None:
            options, line = LINKERS[linker()]
            file.write("".join(line.format(name) + "\n" for name in order))
            file.flush()
            command += [option.format(file.name) for option in options]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"CPython could not be linked again ({done.stderr.strip()[-200:]}).")
    return target


def environment() -> dict[str, str]:
    """What a linked program needs to find its library, and the same hashes in every process."""
    return {"PYTHONHOME": str(folder()), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
