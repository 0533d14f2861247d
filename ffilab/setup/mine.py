"""A reader's own copy of a native project: to change, to build by one call, and to measure beside the original in one
run.

The copy lies in `my/<chapter>/<project>/`. What was built of it is linked for each layout that there is, like the
original: then luck with code placement is drawn for both.
"""

import random
import shutil
import subprocess
import sys
from pathlib import Path

from ffilab.bootstrap import PYTHON
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILT, BY_PRODUCTS, NATIVE, NATIVE_OUT, ROOT

MINE = ROOT / "my"


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
    folder = copy(project)
    # In the book's environment: a measured one holds no tools.
    done = subprocess.run([PYTHON, "-m", "ffilab.setup.mine", project], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise UserError(done.stderr.strip().rpartition("\n")[2])
    print(f"Built {folder.relative_to(ROOT)}: change it there, and run this cell again.")
    return f"{BUILT}/my-{folder.parent.name}"


def build_here(project: str) -> None:
    """Build the copy, from within the book's environment, and link it for each layout. Raises UserError."""
    from ffilab.setup import installed, layout_pool, layouts, native

    out = NATIVE_OUT / f"my-{project.partition('/')[0]}"
    interpreters = installed.present()
    if failures := native.build(MINE / project, interpreters, out):
        raise UserError(failures[0])
    pools = layouts.current([interpreter.label for interpreter in interpreters])
    for interpreter in interpreters:
        for layout in pools[interpreter.label]:
            if (there := Path(layout.native)) != NATIVE_OUT:
                shutil.rmtree(there / out.name, ignore_errors=True)
                layout_pool.native_of(out, installed.soabi(interpreter), there, random.Random(layout.seed))


if __name__ == "__main__":
    try:
        build_here(sys.argv[1])
    except UserError as error:
        sys.exit(str(error))
