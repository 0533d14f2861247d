"""Layouts: what each restart draws anew, so that no arm keeps its luck through a whole run.

A layout of an interpreter is a link of its own (functions in random order within the parts that its profile made,
behind a random number of bytes), with `_ctypes` and everything that was built under native/ linked alike, and fresh
copies of libffi and of the standard library's other extension modules: the same bytes in other pages of memory. A pool
of layouts is made before anything is measured (ffilab/setup/layout_pool.py), and removed afterwards.

What no layout redraws: libc, the kernel, and the compiler's choices; these belong to the machine and to the build.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, NATIVE_OUT
from ffilab.setup.catalogue import BY_LABEL
from ffilab.setup.installed import Installed, load

DESCRIPTION = "pool.json"
# JupyterLab's own pool, which stays as long as nobody makes another.
OF_LAB = BUILD / "layouts-of-lab"
AS_INSTALLED = "as installed"


@dataclass(frozen=True)
class Layout:
    """One layout of one interpreter.

    id: ten digits of the linked program's hash. seed: of its order and its pad. build: number of the build that it was
    linked from. python: what to start. native: the folder that stands for what was built. copied: what there, relative
    to it, is a fresh copy and no link of its own.
    """

    label: str
    number: int
    id: str
    seed: int
    build: int
    python: str
    native: str
    copied: list[str] = field(default_factory=list)

    @property
    def described(self) -> dict:
        """What stands in the record."""
        return {"number": self.number, "id": self.id, "seed": self.seed, "build": self.build, "copied": self.copied}


# Layouts by interpreter label. One layout alone: the interpreter as it is installed.
Pool = dict[str, list[Layout]]


def as_installed(interpreter: Installed | str) -> Layout:
    """An interpreter (or the one of that label) as its environment has it: one layout, in every restart."""
    installed = load(BY_LABEL[interpreter]) if isinstance(interpreter, str) else interpreter
    return Layout(installed.label, 0, AS_INSTALLED, 0, 1, str(installed.python), str(NATIVE_OUT))


def current(labels: list[str]) -> Pool:
    """The pool that the press made for this run; where it made none, each interpreter as it is installed."""
    folder = settings.told("layouts")
    pool = read_pool(Path(folder)) if folder else {}
    return {label: pool.get(label) or [as_installed(label)] for label in labels}


def read_pool(folder: Path) -> Pool:
    """A pool that was made in this folder. Raises UserError if it is gone."""
    try:
        described = json.loads((folder / DESCRIPTION).read_text())
    except (OSError, ValueError):
        raise UserError("The layouts of this run are gone: start it again.") from None
    return {label: [Layout(**layout) for layout in layouts] for label, layouts in described.items()}
