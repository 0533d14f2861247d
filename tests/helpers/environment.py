"""What the commands that a test starts find in their environment."""

import os


def clean_environment(**extra):
    """What a reader's shell has: nothing of pytest's, and no lock that `make test` holds."""
    dropped = ("FFILAB_", "PYTHON", "JUPYTER", "BUDGET", "KERNELS", "FROM", "MAKE", "MFLAGS", "PYTEST_XDIST")
    return {**{k: v for k, v in os.environ.items() if not k.startswith(dropped)}, **extra}
