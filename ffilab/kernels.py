"""The kernels that are set up: what the notebooks and the bench see of `kernels/`.

Standard library only, as it is imported inside the notebooks' kernels.
"""

import functools
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ffilab.errors import UserError
from ffilab.paths import KERNELS
from ffilab.provision.catalogue import ALL, CHAPTER_PAIR, Interpreter

FACTS = "ffilab.json"


@dataclass(frozen=True)
class Kernel:
    """An interpreter of the book with its environment in place."""

    interpreter: Interpreter
    python: Path
    facts: dict

    @property
    def name(self) -> str:
        return self.interpreter.kernel

    @property
    def label(self) -> str:
        return self.interpreter.label


def folder(interpreter: Interpreter) -> Path:
    return KERNELS / interpreter.kernel


def python(interpreter: Interpreter) -> Path:
    return folder(interpreter) / ".venv" / "bin" / "python"


def load(interpreter: Interpreter) -> Kernel:
    """A kernel that `make kernels` has set up.

    Raises UserError, with the command that mends it, if its environment is missing or broken.
    """
    facts = folder(interpreter) / ".venv" / FACTS
    try:
        loaded = json.loads(facts.read_text())
        if not python(interpreter).exists():
            raise FileNotFoundError(python(interpreter))
    except (OSError, json.JSONDecodeError):
        raise UserError(
            f"The kernel {interpreter.kernel} has no working environment in "
            f"kernels/kernels/{interpreter.kernel}/.venv: run `make kernels KERNELS={interpreter.label}`."
        ) from None
    return Kernel(interpreter, python(interpreter), loaded)


def soabi(kernel: Kernel) -> str:
    """The tag of extensions for this kernel, such as cpython-314t-x86_64-linux-gnu."""
    return _soabi(kernel.python)


@functools.cache
def _soabi(python: Path) -> str:
    return subprocess.run(
        [python, "-I", "-c", "import sysconfig; print(sysconfig.get_config_var('SOABI'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


# The kernels that `make book KERNELS=...` asked for, as labels; unset in JupyterLab: all that are there.
CHOSEN = "FFILAB_KERNELS"


def present() -> list[Kernel]:
    """All kernels whose environment is in place and that this run asked for, in version order."""
    kernels = []
    chosen = os.environ.get(CHOSEN, "").split()
    for interpreter in ALL:
        if chosen and interpreter.label not in chosen:
            continue
        try:
            kernels.append(load(interpreter))
        except UserError:
            continue
    return kernels


def same_build(one: Kernel, other: Kernel) -> bool:
    """Do a GIL build and a t-build of one version come by one route with the same flags?"""

    def flags(kernel):
        return sorted(set(kernel.facts["config_args"].split()) - {"'--disable-gil'"})

    return one.facts["route"] == other.facts["route"] and flags(one) == flags(other)


def pair() -> list[Kernel]:
    """The chapter pair. Raises UserError if one of the two is not set up."""
    return [load(interpreter) for interpreter in CHAPTER_PAIR]
