"""How CPython is compiled here, and where the result is installed. Standard library only: `make doctor` imports
this."""

import hashlib
from pathlib import Path

from ffilab.run.paths import cache
from ffilab.setup.catalogue import Interpreter

TRAINING = Path(__file__).with_name("pgo_training.py")
CONFIGURE = (
    "-q",
    "--disable-test-modules",
    "--without-ensurepip",
    "--enable-optimizations",
    "CFLAGS_NODIST=-ffunction-sections -fprofile-update=atomic -frandom-seed=layout",
)
# The date that the interpreter says it was compiled at, and the hashes of strings in its training.
FIXED = {"SOURCE_DATE_EPOCH": "1700000000", "PYTHONHASHSEED": "0"}


def recipe(interpreter: Interpreter) -> str:
    """A short hash of everything that decides what the build is."""
    parts = [interpreter.source.sha256, *CONFIGURE, *FIXED.values(), TRAINING.read_text()]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:10]


def prefix(interpreter: Interpreter, number: int = 1) -> Path:
    """Where a build is installed; number: of the build, by the same recipe."""
    name = f"cpython-{interpreter.source.release}{'t' if interpreter.free_threaded else ''}-{recipe(interpreter)}"
    return cache() / "interpreters" / (name if number == 1 else f"{name}-build{number}")


def executable(interpreter: Interpreter, number: int = 1) -> Path:
    """The Python of a build."""
    return prefix(interpreter, number) / "bin" / f"python{interpreter.label}"
