"""Link an interpreter again from its own objects, with its functions in another order: another layout.

The source route compiles CPython with a section for each function, and keeps the objects (`build.py`). The profile's
split
stays: functions move within the unlikely, the start-up, the hot and the normal part, never from one to another.
Standard library only: chapters import this.
"""

import filecmp
import functools
import hashlib
import json
import mmap
import random
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ffilab.run.errors import UserError
from ffilab.run.machine import compiler_command
from ffilab.setup import linker
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import load

# In the prefix of an interpreter that was compiled here.
OBJECTS = "objects"
ARCHIVE, MAIN, FUNCTIONS, LIBRARIES = "libpython.a", "python.o", "functions.json", "libraries.json"
# The extension module of the standard library that is linked again as well: the book's calls go through it.
CTYPES = "_ctypes"
# As GNU ld's own script orders them; a section that is none of these is normal.
PARTS = (".text.unlikely.", ".text.exit.", ".text.startup.", ".text.hot.")
NORMAL = ".text."
PAD = "layout_pad"
# Within a page, as what follows lies at the same places in it otherwise.
MAX_PAD = mmap.PAGESIZE
# Each function begins at a multiple of this, or of more.
ALIGNED = 16
# A source whose object is so many bytes of code that never runs, and that no other object sees.
PADDING = (
    '.section .text.{pad},"ax"\n.globl {pad}\n.hidden {pad}\n.type {pad},%function\n{pad}:\n.skip {size}\n'
    '.size {pad},.-{pad}\n.section .note.GNU-stack,"",%progbits\n'
)


@dataclass(frozen=True)
class Function:
    """A function that can be placed: its symbol, and the section that holds it and nothing else."""

    symbol: str
    section: str

    @property
    def part(self) -> str:
        """The part of the program to which the compiler, or its profile, assigned it."""
        return next((part for part in PARTS if self.section.startswith(part)), NORMAL)


def prefix(label: str) -> Path:
    """Where an interpreter of the book is installed. Raises UserError if it is not set up."""
    return Path(load(BY_LABEL[label]).python).resolve().parent.parent


def objects(label: str, build: int = 1) -> Path:
    """The folder of an interpreter's objects, of the first build of its recipe or of another.

    Raises UserError if the interpreter is not set up.
    """
    home = prefix(label)
    return (home if build == 1 else home.with_name(f"{home.name}-build{build}")) / OBJECTS


def builds(label: str) -> list[int]:
    """Numbers of the builds of an interpreter whose objects are kept; empty if it was not compiled here."""
    home = prefix(label)
    others = [int(path.name.rpartition("-build")[2]) for path in home.parent.glob(f"{home.name}-build[0-9]")]
    return sorted(number for number in (1, *others) if (objects(label, number) / ARCHIVE).exists())


def tools_lacking() -> str:
    """Why objects cannot be kept for another link here; empty if they can. macOS has neither program for its own."""
    lacking = [tool for tool in ("objdump", "objcopy") if not shutil.which(tool)]
    return f"there is no {' and no '.join(lacking)} here" if lacking else ""


def missing(label: str) -> str | None:
    """Return what is lacking to link this interpreter again here; None if nothing is."""
    if not (objects(label) / ARCHIVE).exists():
        return f"CPython {label} was not compiled here, or its objects were not kept"
    return None if linker.find() else linker.lacking()


@functools.cache
def functions(label: str, build: int = 1, part: str = "interpreter") -> tuple[Function, ...]:
    """All functions of an interpreter, or of CTYPES, that have a section of their own, in the order of its archive."""
    return tuple(Function(*pair) for pair in json.loads((objects(label, build) / FUNCTIONS).read_text())[part])


def read_functions(*files: Path) -> list[tuple[str, str]]:
    """(symbol, section) of all functions in objects or archives. Raises UserError if they cannot be read."""
    listing = subprocess.run(["objdump", "-t", *files], capture_output=True, text=True)
    if listing.returncode:
        raise UserError(f"objdump cannot read objects ({listing.stderr.strip()[-100:]}).")
    pairs = re.findall(r"^\S+ .{5}.F (\.text\.\S+)\s+\S+\s+(?:\.hidden )?(\S+)$", listing.stdout, re.MULTILINE)
    return list(dict.fromkeys((symbol, section) for section, symbol in pairs))


def shuffled(functions: tuple[Function, ...], order: random.Random) -> list[Function]:
    """Shuffle functions within each part; the parts stay in the linker's own order."""
    placed = []
    for part in (*PARTS, NORMAL):
        members = [function for function in functions if function.part == part]
        placed += order.sample(members, len(members))
    return placed


def link(label: str, target: Path, order: list[Function] | None = None, pad: int = 0, build: int = 1) -> Path:
    """Link an interpreter; with `order`, these functions first, one behind the other, after `pad` bytes.

    Raises UserError if that fails.
    """
    folder = objects(label, build)
    libraries = json.loads((folder / LIBRARIES).read_text())
    inputs = [folder / MAIN, "-Wl,--whole-archive", folder / ARCHIVE, "-Wl,--no-whole-archive", "-Wl,-export-dynamic"]
    return run(target, [*inputs, *libraries["interpreter"]], order, pad)


def link_ctypes(label: str, target: Path, order: random.Random, build: int) -> Path:
    """Link `_ctypes` with its functions in random order behind a random pad, beside a copy of libffi that it finds
    there."""
    folder, size = objects(label, build), pad(order)
    libraries = json.loads((folder / LIBRARIES).read_text())
    inputs = ["-shared", "-Wl,-rpath,$ORIGIN", *sorted((folder / CTYPES).glob("*.o")), *libraries[CTYPES]]
    return run(target, inputs, shuffled(functions(label, build, CTYPES), order), size)


def pad(order: random.Random) -> int:
    """Draw by how many bytes code begins later."""
    return order.randrange(0, MAX_PAD, ALIGNED)


def run(
    target: Path,
    inputs: list,
    order: list[Function] | None,
    pad: int,
    tool: list[str] | None = None,
    folder: Path | None = None,
) -> Path:
    """Link `target` from inputs and options; with `order`, these functions first, one behind the other, after `pad`
    bytes.

    tool: the compiler that links, if not the one for C. folder: what the names of inputs are relative to.
    Raises UserError if that fails.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    command = [*(tool or compiler_command()), "-o", target.absolute(), "-fuse-ld=lld", f"-B{linker.needed().parent}"]
    with tempfile.TemporaryDirectory() as scratch:
        if order is not None:
            symbols = Path(scratch) / "order"
            symbols.write_text("".join(f"{symbol}\n" for symbol in [PAD, *(function.symbol for function in order)]))
            command += [f"-Wl,--symbol-ordering-file={symbols}", "-Wl,--no-warn-symbol-ordering"]
            # Nothing calls it: without -u it would go where unused sections are left out.
            command += [f"-Wl,-u,{PAD}", Path(scratch) / "pad.s"]
            command[-1].write_text(PADDING.format(pad=PAD, size=pad))
        command = [str(part) for part in [*command, *inputs]]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode:
        raise UserError(f"{target.name} could not be linked again ({done.stderr.strip()[-200:]}).")
    return target


def digest(file: Path) -> str:
    """A short name for what a linked file is: ten digits of its hash."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:10]


def keep_objects(tree: Path, prefix: Path, executable: Path) -> None:
    """Keep in `prefix` what is linked again: from a compiled source tree, and from what its interpreter says of
    itself."""
    folder = prefix / OBJECTS
    (folder / CTYPES).mkdir(parents=True, exist_ok=True)
    program = "import json, sysconfig; print(json.dumps({k: str(v) for k, v in sysconfig.get_config_vars().items()}))"
    answer = subprocess.run([executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    variables = json.loads(answer.stdout)
    kept = [(tree / variables["LIBRARY"], folder / ARCHIVE), (tree / "Programs" / "python.o", folder / MAIN)]
    kept += [(file, folder / CTYPES / file.name) for file in (tree / "Modules" / "_ctypes").glob("*.o")]
    for source, target in kept:
        subprocess.run(["objcopy", "--strip-debug", source, target], check=True)
    libraries = {
        "interpreter": [word for name in ("LIBS", "MODLIBS", "SYSLIBS") for word in variables[name].split()],
        CTYPES: variables.get("MODULE__CTYPES_LDFLAGS", "-lffi").split(),
    }
    (folder / LIBRARIES).write_text(json.dumps({**libraries, "interpreter": [*libraries["interpreter"], "-pthread"]}))
    ctypes_objects = sorted((folder / CTYPES).glob("*.o"))
    by_part = {"interpreter": read_functions(folder / ARCHIVE, folder / MAIN), CTYPES: read_functions(*ctypes_objects)}
    (folder / FUNCTIONS).write_text(json.dumps(by_part))


def differences(label: str, first: int, second: int) -> dict:
    """Two builds of an interpreter by one recipe, object by object: how many there are, and the names of those that
    differ in any byte."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = []
        for number in (first, second):
            folder = Path(scratch) / str(number)
            shutil.copytree(objects(label, number) / CTYPES, folder)
            subprocess.run(["ar", "x", objects(label, number) / ARCHIVE], cwd=folder, check=True)
            folders.append(folder)
        names = sorted({path.name for folder in folders for path in folder.glob("*.o")})
        _, differing, absent = filecmp.cmpfiles(*folders, names, shallow=False)
    return {"objects": len(names), "differ": sorted([*differing, *absent])}
