"""A reader's own copy of a native project: to change, to build by one call, and to measure beside the original in one
run.

The copy lies in `my/<chapter>/<project>/`. What was built of it is linked for each layout that there is, like the
original: then luck with code placement is drawn for both.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from ffilab.bootstrap import PYTHON
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, BY_PRODUCTS, NATIVE, NATIVE_OUT, ROOT

MINE = ROOT / "my"
AGAIN = "Correct it, save the file, and run this cell again."


def copy(project: str) -> Path:
    """The folder of the reader's copy of `native/<project>`; made, if it is not there."""
    folder, original = MINE / project, NATIVE / project
    if not original.is_dir():
        raise UserError(f"There is no native/{project}: name a project as chapter/project, such as loaders/library.")
    # An extension may be made of sources of its neighbour.
    for part in {original, original.parent / "library"}:
        target = folder.parent / part.name
        if part.exists() and not target.exists():
            # With the date of now: make must not take what was built of an earlier copy for newer.
            shutil.copytree(part, target, ignore=shutil.ignore_patterns(*BY_PRODUCTS), copy_function=shutil.copy)
    return folder


def build(project: str) -> str:
    """Build the copy; returns what takes the place of `{built}/<chapter>` in the setup of an arm. Raises UserError,
    with the compiler's own words, if it cannot be built."""
    if settings.told("source"):
        chapter = project.partition("/")[0]
        raise UserError(f"Stored results: nothing is built or measured here. `make lab NAME={chapter}` does both.")
    folder = copy(project)
    # In the book's environment: a measured one holds no tools.
    done = subprocess.run([PYTHON, "-m", "ffilab.setup.mine", project], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise UserError(done.stderr.strip().rpartition("\n")[2])
    print(f"Built {folder.relative_to(ROOT)}: change it there, and run this cell again.")
    return f"{BUILT}/my-{folder.parent.name}"


def build_here(project: str) -> None:
    """Build the copy, from within the book's environment, and link it for each layout. Raises UserError."""
    from ffilab.setup import installed, layout_pool, layouts, native, native_links

    out = NATIVE_OUT / f"my-{project.partition('/')[0]}"
    interpreters = installed.present()
    if failures := native.build(MINE / project, interpreters, out):
        raise UserError(mistake(project, native.log_of(MINE / project)) or failures[0])
    for library in out.glob("*.so"):
        must_load(project, library, interpreters[-1].python)
        original = NATIVE_OUT / project.partition("/")[0] / library.name
        if gone := native_links.symbols(original, "--dynamic") - native_links.symbols(library, "--dynamic"):
            raise UserError(
                f"my/{project} has no {', no '.join(sorted(gone))} any more, which other code calls. {AGAIN}"
            )
    layout_pool.link_again(layouts.current([interpreter.label for interpreter in interpreters]), out)


def must_load(project: str, library: Path, python: Path) -> None:
    """A function that is called and nowhere defined is a warning to the compiler. Raises UserError for it."""
    loading = [python, "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", library]
    said = subprocess.run(loading, capture_output=True, text=True).stderr
    if found := re.search(r"undefined symbol: (\w+)", said):
        for file in sorted((MINE / project).glob("*.c*")):
            for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
                if found[1] in line:
                    raise UserError(at(file, number, f"there is no {found[1]}"))


def mistake(project: str, log: Path) -> str:
    """Where the compiler found the first mistake in the copy, and which; empty if it names no line."""
    said = log.read_text(errors="replace") if log.exists() else ""
    found = re.search(r"([\w.]+):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", said)
    files = sorted((MINE / project).parent.rglob(found[1])) if found else []
    return at(files[0], int(found[2]), found[3].strip()) if found and files else ""


def at(file: Path, number: int, what: str) -> str:
    """What is wrong in a line of the reader's file, and what to do."""
    line = file.read_text(errors="replace").splitlines()[number - 1].strip()
    return f"{file.relative_to(ROOT)}, line {number}, `{line}`: {what}. {AGAIN}"


if __name__ == "__main__":
    try:
        build_here(sys.argv[1])
    except UserError as error:
        sys.exit(str(error))
