"""Compile CPython's objects with each function in a section of its own, for the chapter on code placement.

Once, about a minute and a half on two cores, into the cache. No profile, no link-time optimisation: the order of
functions is to be the only thing that differs between two programs linked from them.
"""

import os
import shutil

from ffilab.errors import UserError
from ffilab.machine import compiler
from ffilab.paths import cache
from ffilab.progress import say, step
from ffilab.provision import relink
from ffilab.provision.build import make_environment, only_one, unpacked
from ffilab.provision.catalogue import SOURCES
from ffilab.subprocesses import explain_os_errors, logged, tail

# Lines that `make` prints: only the progress bar depends on it.
EXPECTED_MAKE_LINES = 210
# Parts of the library that no program linked here can need.
NOT_COPIED = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "__pycache__")


def provide() -> None:
    """Compile the objects if they are not in the cache. What goes wrong is left for the chapter to tell."""
    folder = relink.folder()
    note = folder.with_suffix(".missing.txt")
    if (folder / relink.ARCHIVE).exists():
        return
    with explain_os_errors(str(cache())):
        work = cache() / "work" / f"{folder.name}-objects"
        with only_one(work, "CPython's objects"):
            if (folder / relink.ARCHIVE).exists():
                return
            folder.parent.mkdir(parents=True, exist_ok=True)
            try:
                _build(work)
                note.unlink(missing_ok=True)
            except UserError as error:
                note.write_text(str(error))
                say(f"    left out: {error}")


def _build(work) -> None:
    source = SOURCES[relink.VERSION]
    environment = make_environment(compiler())
    with step("CPython's objects, for the chapter on placement") as bar:
        tree = unpacked(source, work, bar)
        log, lines = work / "build.log", 0

        def advance(_):
            nonlocal lines
            lines += 1
            bar.update(0.05 + 0.9 * lines / EXPECTED_MAKE_LINES, "compiling")

        objects = ["Programs/python.o", relink.ARCHIVE]
        for command in (["./configure", *relink.CONFIGURE], ["make", f"-j{os.cpu_count() or 1}", *objects]):
            if command[0] == "./configure" and (tree / "Makefile").exists():
                continue
            if logged(command, log, on_line=advance, cwd=tree, env=environment):
                raise UserError(f"CPython's objects could not be compiled ({tail(log, 1)}): read {log}.")
    staging = work / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    shutil.copytree(
        tree / "Lib", staging / "lib" / f"python{relink.VERSION}", ignore=shutil.ignore_patterns(*NOT_COPIED)
    )
    (staging / "lib" / f"python{relink.VERSION}" / "lib-dynload").mkdir()
    for name in objects:
        shutil.copy(tree / name, staging)
    shutil.rmtree(relink.folder(), ignore_errors=True)
    staging.rename(relink.folder())
    shutil.rmtree(work)
