"""How a test runs a command, and what the command finds in its environment."""

import os
import re
import subprocess
from pathlib import Path

from ffilab.run import settings
from ffilab.run.paths import ROOT
from ffilab.setup import installed
from ffilab.setup.catalogue import BY_LABEL


def ran(*command, **options) -> subprocess.CompletedProcess[str]:
    """How a command ended, and what it said."""
    return subprocess.run(command, capture_output=True, text=True, **options)


def script(path: Path, text: str) -> Path:
    """Write a shell script that can be run."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def python_of(label: str) -> Path:
    """The Python of an interpreter."""
    return installed.load(BY_LABEL[label]).python


def clean_environment(**extra):
    """What a reader's shell has: nothing of pytest's, and no lock that `make test` holds."""
    dropped = ("FFILAB_", "PYTHON", "JUPYTER", "BUDGET", "KERNELS", "FROM", "MAKE", "MFLAGS", "PYTEST_XDIST")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(dropped)}, **extra}


def alone_here(**extra) -> dict[str, str]:
    """What `python -m ffilab` of this tree needs besides; whoever else measures on this machine is not spoken of."""
    return clean_environment(PYTHONPATH=str(ROOT), **settings.telling(alone=True), **extra)


def for_reproducers(python: str | Path, cargo: Path) -> dict[str, str]:
    """What a program that a page prints finds: `python` is this one, and crates are those that the book was built from,
    compiled once below the folder `cargo`."""
    return {
        "PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}",
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TARGET_DIR": str(cargo),
    }


def order_of(program: Path) -> list[str]:
    """Names of a program's functions by address."""
    listing = ran("nm", "-n", "--defined-only", program).stdout
    names = [line.split()[-1] for line in listing.splitlines() if re.search(r" [tT] ", line)]
    assert names, f"{program.name} has no symbols"
    return names
