"""What the commands that a test starts find in their environment."""

import os
from pathlib import Path


def clean_environment(**extra):
    """What a reader's shell has: nothing of pytest's, and no lock that `make test` holds."""
    dropped = ("FFILAB_", "PYTHON", "JUPYTER", "BUDGET", "KERNELS", "FROM", "MAKE", "MFLAGS", "PYTEST_XDIST")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(dropped)}, **extra}


def for_reproducers(python: str | Path, cargo: Path) -> dict[str, str]:
    """What a program that a page prints finds: `python` is this one, and crates are those that the book was built from,
    compiled once below the folder `cargo`."""
    return {
        "PATH": f"{os.path.dirname(python)}:{os.environ['PATH']}",
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TARGET_DIR": str(cargo),
    }
