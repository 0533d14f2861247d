"""CPython without the GIL, compiled in another way than the book's: for a patch, or for ThreadSanitizer."""

import os
from collections.abc import Callable
from pathlib import Path

from ffilab.run.errors import UserError
from ffilab.run.paths import LOGS, cache
from ffilab.run.progress import step
from ffilab.run.subprocesses import logged
from ffilab.setup.build import unpacked
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED

SOURCE = BY_LABEL[FREE_THREADED].source


def compiled(name: str, *options: str, prepare: Callable[[Path], None] = lambda tree: None) -> Path:
    """Compile the pinned source, without a profile; returns its tree, which the cache keeps. Some minutes.

    `python` in the tree is used in place, as is `pyconfig.h`: its folder belongs on PATH and on CPATH.
    options: of `configure`. prepare: called with the tree before that. Raises UserError if it fails.
    """
    folder, log = cache() / "variants" / f"{SOURCE.release}t-{name}", LOGS / f"cpython-{name}.log"
    with step(f"CPython {SOURCE.release}t, {name}") as bar:
        tree = unpacked(SOURCE, folder, bar)
        if not (folder / "compiled").exists():
            prepare(tree)
            configure = ["./configure", "-q", "--disable-gil", "--disable-test-modules", *options]
            # What is instrumented would report what it sees of itself meanwhile.
            environment = {**os.environ, "TSAN_OPTIONS": "report_bugs=0"}
            for command in (configure, ["make", f"-j{os.cpu_count()}"]):
                bar.update(None, command[0])
                if logged(command, log, cwd=tree, env=environment):
                    raise UserError(f"CPython could not be compiled for {name}: see {log}.")
            (folder / "compiled").touch()
    return tree


def environment(tree: Path) -> dict[str, str]:
    """What a program finds that is to use such a Python."""
    return {"PATH": f"{tree}:{os.environ['PATH']}", "CPATH": str(tree)}
