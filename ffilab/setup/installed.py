"""The interpreters that are set up: what measuring and the chapters see of `kernels/`.

Standard library only, as it is imported by every chapter.
"""

import errno
import functools
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import KERNELS
from ffilab.setup.catalogue import ALL, BY_LABEL, CHAPTER_PAIR, Interpreter

FACTS = "ffilab.json"


@dataclass(frozen=True)
class Installed:
    """An interpreter of the book with its environment in place."""

    interpreter: Interpreter
    python: Path
    facts: dict = field(hash=False)

    @property
    def name(self) -> str:
        return self.interpreter.name

    @property
    def label(self) -> str:
        return self.interpreter.label


def folder(interpreter: Interpreter) -> Path:
    return KERNELS / interpreter.name


def python(interpreter: Interpreter) -> Path:
    return folder(interpreter) / ".venv" / "bin" / "python"


def load(interpreter: Interpreter) -> Installed:
    """An interpreter that `python3 ffilab/bootstrap.py kernels` has set up.

    Raises UserError, with the command that mends it, if its environment is missing or broken.
    """
    facts = folder(interpreter) / ".venv" / FACTS
    try:
        loaded = json.loads(facts.read_text())
        if not python(interpreter).exists():
            raise FileNotFoundError(python(interpreter))
    except (OSError, json.JSONDecodeError) as error:
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            # Nothing is wrong with the environment.
            raise
        raise UserError(
            f"{interpreter.name} has no working environment in kernels/kernels/{interpreter.name}/.venv: "
            f"run `python3 ffilab/bootstrap.py kernels --kernels {interpreter.label}`."
        ) from None
    return Installed(interpreter, python(interpreter), loaded)


def is_set_up(interpreter: Interpreter) -> bool:
    """Has it an environment that it can be loaded from?"""
    try:
        return bool(load(interpreter))
    except UserError:
        return False


@functools.cache
def soabi(interpreter: Installed) -> str:
    """The tag of extensions for this interpreter, such as cpython-314t-x86_64-linux-gnu."""
    command = [interpreter.python, "-I", "-c", "import sysconfig; print(sysconfig.get_config_var('SOABI'))"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def present() -> list[Installed]:
    """All interpreters whose environment is in place and that this run asked for, in version order."""
    chosen = settings.told("interpreters") or BY_LABEL
    return [load(interpreter) for interpreter in ALL if interpreter.label in chosen and is_set_up(interpreter)]


def same_build(facts: dict, other_facts: dict) -> bool:
    """Do a GIL build and a t-build, described by their facts, come by the same route with the same flags?"""

    def flags(facts):
        return sorted(set(facts["config_args"].split()) - {"'--disable-gil'"})

    return facts["route"] == other_facts["route"] and flags(facts) == flags(other_facts)


def pair() -> list[Installed]:
    """The chapter pair. Raises UserError if one of the two is not set up."""
    return [load(interpreter) for interpreter in CHAPTER_PAIR]
