"""How the shared objects under native/ were linked, and how they are linked again with their functions in another
order.

While a project is built, `link_recorder.py` stands in the place of its compilers. Records are beside the outputs, in
`_build/native/<chapter>/links/`: `<SOABI>/<project>/<name>/` of extensions, `libraries/<project>/<name>/` of plain
libraries. A shared object without a record (another tool linked it; it is for a sanitizer; link-time optimisation left
the linker no functions to order; its new link exported other symbols) keeps the one link that its tool made.
"""

import functools
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from importlib.metadata import distributions
from pathlib import Path

from ffilab.run.errors import UserError
from ffilab.run.machine import compiler, compiler_command, compiler_version, version_of
from ffilab.run.paths import cache, has_space
from ffilab.run.progress import say
from ffilab.run.system import output
from ffilab.setup import link_recorder, linker, relink
from ffilab.setup.link_recorder import BUILT, DESCRIPTION, name_of

FOLDER, LIBRARIES, FUNCTIONS = "links", "libraries", "functions.json"
# Where sections end: some linkers export these from every shared object, lld from none.
MARKS = {"_end", "_edata", "__bss_start"}
# The compilers of C++ that belong to those of C.
OF_CXX = {"cc": "c++", "gcc": "g++", "clang": "clang++"}


def records_of(out: Path, project: str, tag: str = LIBRARIES) -> Path:
    """The folder for the records of a project. tag: the SOABI that it is built for, if it is an extension."""
    return out / FOLDER / tag / re.sub(r"[-_.]+", "-", project).lower()


def environment(out: Path, records: Path) -> dict[str, str]:
    """Variables by which the tools of a build use the compilers that keep records. Raises UserError if there is no
    compiler."""
    folder = _wrappers(out)
    variables = {"CC": str(folder / "cc"), "CXX": str(folder / "c++"), link_recorder.LINKS: str(records)}
    host = re.search(r"^host: (.+)$", _rustc(), re.MULTILINE)
    # Whoever names a linker for Rust keeps it; those modules are then not linked again.
    variable = host and f"CARGO_TARGET_{re.sub('[-.]', '_', host.group(1)).upper()}_LINKER"
    return variables | ({variable: variables["CC"]} if variable and variable not in os.environ else {})


# As it names itself; empty without one.
_rustc = functools.cache(lambda: output("rustc", "-vV"))


def _wrappers(out: Path) -> Path:
    """A folder with `cc` and `c++`, whose name changes with what they do: cargo then links anew, and so does
    `digest`."""
    recorder = Path(link_recorder.__file__)
    python = [sys.executable, "-I", str(recorder)]
    texts = {
        name: f'#!/bin/sh\nexec {shlex.join([*python, *real, "--"])} "$@"\n'
        for name, real in (("cc", compiler_command()), ("c++", cxx()))
    }
    folder = out / FOLDER / f"compilers-{digest()}"
    if has_space(folder):
        # No make, and few other tools, take a compiler with a space in its path.
        folder = cache() / "compilers" / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        if not (folder / name).exists() or (folder / name).read_text() != text:
            # Another project may be starting it at this moment.
            new = folder / f"{name}-{threading.get_ident()}"
            new.write_text(text)
            new.chmod(0o755)
            new.replace(folder / name)
    return folder


def cxx() -> list[str]:
    """The C++ compiler to use, as words of a command; `c++`, there or not, if this machine has none."""
    named = r"(gcc|clang|cc)(?=(-[\d.]+)?$)"
    words = [re.sub(named, lambda match: OF_CXX[match.group(1)], word) for word in compiler_command()]
    candidates = [shlex.split(os.environ.get("CXX", "")), words, ["c++"], ["g++"], ["clang++"]]
    return next((candidate for candidate in candidates if candidate and shutil.which(candidate[0])), ["c++"])


def digest() -> str:
    """Ten digits that change with the compilers of the native projects, with the linker, and with what they add and
    keep.

    Raises UserError if there is no compiler."""
    of_cxx = " ".join([*cxx(), version_of(tuple(cxx()))])
    recorder = Path(link_recorder.__file__).read_text()
    who = [compiler(), compiler_version(), of_cxx, linker.version_here(), recorder]
    return hashlib.sha256("\0".join(who).encode()).hexdigest()[:10]


def settle(records: Path) -> None:
    """Make new records ready: without debug information, with the list of functions; one that cannot be linked again is
    removed."""
    for description in records.glob(f"*/{DESCRIPTION}"):
        folder = description.parent
        # It is removed in the end: a run that was killed in the middle goes on here.
        if (folder / BUILT).exists():
            try:
                if lacking := relink.tools_lacking():
                    shutil.rmtree(folder)
                    _say_once(f"    native code keeps one link: {lacking}")
                    continue
                _settle(folder)
            except (UserError, OSError) as error:
                shutil.rmtree(folder)
                say(f"    {folder.name} keeps one link: {error}")


# Of every project the same.
_say_once = functools.cache(say)


def _settle(folder: Path) -> None:
    arguments = json.loads((folder / DESCRIPTION).read_text())["arguments"]
    inputs = [folder / argument for argument in arguments if (folder / argument).suffix in {".o", ".a", ".rlib"}]
    for file in inputs:
        if subprocess.run(["objcopy", "--strip-debug", file], capture_output=True).returncode:
            raise UserError(f"objcopy cannot read {file.name}.")
    built = folder / BUILT
    linked = symbols(built)
    functions = [pair for pair in relink.read_functions(*inputs) if not linked or pair[0] in linked]
    if not functions:
        raise UserError(f"{folder.name} has no function with a section of its own.")
    (folder / FUNCTIONS).write_text(json.dumps(functions))
    if linker.find():
        with tempfile.TemporaryDirectory() as scratch:
            again = link(folder, Path(scratch) / "again.so", random.Random(0))
            if symbols(again, "--dynamic") != symbols(built, "--dynamic"):
                raise UserError(f"{folder.name} exports other symbols when it is linked again.")
    built.unlink()


def symbols(library: Path, *options: str) -> set[str]:
    """Names that a shared object defines, without the linker's own; `--dynamic`: those that it exports."""
    listing = output("nm", "--defined-only", *options, library)
    return {line.split()[-1] for line in listing.splitlines() if line} - MARKS


def link(record: Path, target: Path, order: random.Random) -> Path:
    """Link what a record is of, its functions in random order behind a random pad. Raises UserError if that cannot
    be."""
    described = json.loads((record / DESCRIPTION).read_text())
    functions = tuple(relink.Function(*pair) for pair in json.loads((record / FUNCTIONS).read_text()))
    placed = relink.shuffled(functions, order)
    return relink.run(target, described["arguments"], placed, relink.pad(order), described["compiler"], record)


def recorded(chapter: Path, tag: str) -> dict[Path, Path | None]:
    """The shared objects of a chapter that an interpreter loads, with the record of each, if it has one.

    tag: the interpreter's SOABI. Paths of the objects are relative to the chapter.
    """
    plain = {record.name: record for record in records_of(chapter, "").glob("*/*")}
    record_by_path = {path: plain.get(name_of(path.name)) for path in chapter.glob("*.so")}
    # Cargo's folders also hold what became an extension module.
    crates = {path: plain.get(name_of(path.name)) for path in chapter.glob("cargo/*/release/*.so")}
    record_by_path |= {path: record for path, record in crates.items() if record}
    for distribution in distributions(path=[str(chapter / tag)]):
        for file in distribution.files or ():
            if file.suffix == ".so":
                records = records_of(chapter, distribution.metadata["Name"], tag)
                record_by_path[chapter / tag / file] = records / name_of(file.name)
    return {
        path.relative_to(chapter): record if record and (record / FUNCTIONS).exists() else None
        for path, record in sorted(record_by_path.items())
    }
