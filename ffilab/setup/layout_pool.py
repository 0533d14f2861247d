"""Make layouts: links of an interpreter and of what it loads, each in a folder of its own from which it runs.

What a layout is, and what it does not redraw: ffilab/setup/layouts.py.
"""

import json
import os
import random
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, NATIVE_OUT, without_paths
from ffilab.run.progress import say, step
from ffilab.setup import native_links, relink
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import Installed, load, soabi
from ffilab.setup.layouts import DESCRIPTION, Layout, Pool, as_installed, read_pool

POOLS = BUILD / "layouts"
# Of a pool: the standard library's extension modules without what debuggers read, by label.
STRIPPED = "stripped"
MADE_OF = "made-of.json"


def make(folder: Path, labels: list[str], count: int, seed: int, builds: list[int] | None = None) -> Pool:
    """Make `count` layouts of every interpreter that can be linked again, on all cores; the others have one, as
    installed.

    builds: numbers of the builds that they are linked from, in turns, as far as they are there; the first one, if none
    is named.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pool: Pool = {}
    possible = {label: relink.missing(label) for label in labels}
    work = [(label, number) for label, lacking in possible.items() if not lacking for number in range(count)]
    for label, lacking in possible.items():
        if lacking:
            say(f"  {label} has one layout, its own: {without_paths(lacking)}")
            pool[label] = [as_installed(label)]
    for label in dict.fromkeys(label for label, _ in work):
        (folder / STRIPPED / label).mkdir(parents=True)
        for module in (relink.prefix(label) / "lib" / f"python{label}" / "lib-dynload").glob("*.so"):
            target = folder / STRIPPED / label / module.name
            subprocess.run(["objcopy", "--strip-debug", module, target], check=True)
    if work:
        with step(f"{len(work)} layouts") as bar, ThreadPoolExecutor(os.cpu_count() or 1) as crew:
            layouts = crew.map(lambda item: _make(folder, *item, seed, builds or [1]), work)
            for done, layout in enumerate(layouts, 1):
                pool.setdefault(layout.label, []).append(layout)
                bar.update(done / len(work), layout.label)
    describe(folder, pool)
    return pool


def ready(folder: Path, labels: list[str], count: int, seed: int) -> Pool:
    """The pool that lies in this folder, if it was made of these interpreters; else a new one, by `make`. What was
    built since under native/ is linked for the layouts that are there."""
    built = {str(path.relative_to(NATIVE_OUT)): path.stat().st_mtime_ns for path in sorted(NATIVE_OUT.rglob("*.so"))}
    # A reader's own copies are linked when they are built (mine.py).
    files = {path: at for path, at in built.items() if not path.startswith("my-")}
    made_of = [count, {label: load(BY_LABEL[label]).facts["stamp"] for label in labels}, files]
    note = folder / MADE_OF
    before = json.loads(note.read_text()) if note.exists() else [0, {}, {}]
    if before[0] < count or before[1] != made_of[1]:
        pool = make(folder, labels, count, seed)
    else:
        say("  the layouts of the last time are still good")
        pool, made_of[0] = read_pool(folder), before[0]
        changed = sorted({path.partition("/")[0] for path, _ in files.items() ^ before[2].items()})
        for number, chapter in enumerate(changed, 1):
            say(f"  {chapter} is linked for them ({number} of {len(changed)})")
            pool = link_again(pool, NATIVE_OUT / chapter)
        describe(folder, pool)
    note.write_text(json.dumps(made_of))
    return pool


def link_again(pool: Pool, chapter: Path) -> Pool:
    """Link what was built of one chapter anew, for each layout; return the pool with what could only be copied."""

    def linked(layout: Layout) -> Layout:
        there = Path(layout.native)
        if there == NATIVE_OUT:
            return layout
        shutil.rmtree(there / chapter.name, ignore_errors=True)
        tag, order = soabi(load(BY_LABEL[layout.label])), random.Random(layout.seed)
        copied = native_of(chapter, tag, there, order) if chapter.exists() else []
        others = [path for path in layout.copied if not path.startswith(f"{chapter.name}/")]
        return replace(layout, copied=[*others, *copied])

    with ThreadPoolExecutor(os.cpu_count() or 1) as crew:
        return {label: list(crew.map(linked, layouts)) for label, layouts in pool.items()}


def describe(folder: Path, pool: Pool) -> None:
    """Write down which layouts there are."""
    described = {label: [asdict(layout) for layout in layouts] for label, layouts in pool.items()}
    (folder / DESCRIPTION).write_text(json.dumps(described))


def _make(folder: Path, label: str, number: int, seed: int, builds: list[int]) -> Layout:
    # GIL and t-build draw independently.
    drawn = random.Random(f"{seed}/{label}/{number}").getrandbits(31)
    order = random.Random(drawn)
    present = [build for build in builds if build in relink.builds(label)] or [1]
    build = present[number % len(present)]
    interpreter, home = load(BY_LABEL[label]), folder / label / str(number)
    program = home / "bin" / f"python{label}"
    pad = relink.pad(order)
    relink.link(label, program, relink.shuffled(relink.functions(label, build), order), pad, build)
    _library(label, home, folder / STRIPPED / label, order, build)
    environment = _environment(interpreter, home, program)
    copied = native(soabi(interpreter), home / "native", order)
    digest = relink.digest(program)
    return Layout(label, number, digest, drawn, build, str(environment), str(home / "native"), copied)


def _library(label: str, home: Path, stripped: Path, order: random.Random, build: int) -> None:
    """The standard library where the program looks for it: everything a symbolic link, but the extension modules."""
    there = home / "lib" / f"python{label}"
    here = relink.prefix(label) / "lib" / there.name
    _mirror(here, there, lambda path: False, set())
    modules = there / "lib-dynload"
    modules.unlink()
    shutil.copytree(stripped, modules)
    for module in modules.glob(f"{relink.CTYPES}.*.so"):
        module.unlink()
        relink.link_ctypes(label, module, order, build)
        # The libffi that it is linked with, where the loader finds it.
        listing = subprocess.run(["ldd", module], capture_output=True, text=True).stdout
        if library := re.search(r"libffi\S* => (\S+)", listing):
            shutil.copy(library[1], modules)


def _environment(interpreter: Installed, home: Path, program: Path) -> Path:
    """A virtual environment of the layout that holds the packages of the interpreter's own; returns its python."""
    folder = home / "environment"
    packages = next((interpreter.python.parent.parent / "lib").glob("python*/site-packages"))
    inside = folder / "lib" / packages.parent.name
    inside.mkdir(parents=True)
    (inside / "site-packages").symlink_to(packages)
    (folder / "bin").mkdir()
    (folder / "pyvenv.cfg").write_text(f"home = {program.parent}\ninclude-system-site-packages = false\n")
    python = folder / "bin" / "python"
    python.symlink_to(program)
    return python


def native(tag: str, there: Path, order: random.Random, built: Path = NATIVE_OUT) -> list[str]:
    """Everything that was built under native/: what an interpreter loads is linked again, the rest are symbolic links.

    tag: the interpreter's SOABI. Returns what could only be copied, relative to `there`.
    """
    there.mkdir(parents=True)
    chapters = sorted(path for path in built.iterdir() if path.is_dir()) if built.exists() else ()
    return [path for chapter in chapters for path in native_of(chapter, tag, there, order)]


def native_of(chapter: Path, tag: str, there: Path, order: random.Random) -> list[str]:
    """Make a layout of what was built of one chapter. Returns what could only be copied, relative to `there`."""
    loaded = native_links.recorded(chapter, tag)
    entered = {folder for path in loaded for folder in path.parts[:-1]} | {tag}
    _mirror(chapter, there / chapter.name, lambda path: path.suffix == ".so", entered)
    copied = []
    for path, record in loaded.items():
        target = there / chapter.name / path
        try:
            # A compiler whose link fails removes its target.
            new = record and native_links.link(record, target.with_name(f"{target.name}.new"), order)
            is_linked = new and new.replace(target)
        except UserError:
            is_linked = False
        copied += [] if is_linked else [str(target.relative_to(there))]
    return copied


def _mirror(here: Path, there: Path, copied, entered: set[str]) -> None:
    """Make `there` look like `here`: symbolic links, but for files that are `copied` and folders that are `entered`."""
    there.mkdir(parents=True, exist_ok=True)
    for path in here.iterdir():
        if path.is_dir() and not path.is_symlink() and path.name in entered:
            _mirror(path, there / path.name, copied, entered)
        elif path.is_file() and copied(path):
            shutil.copy(path.resolve(), there / path.name)
        else:
            (there / path.name).symlink_to(path)


def remove(folder: Path) -> None:
    """Remove a pool."""
    shutil.rmtree(folder, ignore_errors=True)
