"""One measurement at a time on this machine: of all clones of a user, of studies, and of what is run in JupyterLab."""

import os
import sys
from contextlib import contextmanager

from ffilab.locks import hold, is_held
from ffilab.paths import cache

# Set while it is held, for what is called inside and for children.
HELD = "FFILAB_ALONE"
FILE = "one-at-a-time"
WAITING = "  something else measures on this machine, in another clone or in JupyterLab: waiting until it has finished"


@contextmanager
def alone():
    """Wait until nothing else of this user measures on this machine; says so. Inside another one, nothing is waited for.

    Raises nothing: where the cache cannot be written nobody else can hold anything there.
    """
    if os.environ.get(HELD):
        yield
        return
    try:
        cache().mkdir(parents=True, exist_ok=True)
        file = (cache() / FILE).open("w")
    except OSError:
        yield
        return
    with file:
        # No progress bar: the kernels have nothing that draws one.
        hold(file, lambda: print(WAITING, file=sys.stderr, flush=True))
        os.environ[HELD] = "1"
        try:
            yield
        finally:
            os.environ.pop(HELD, None)


def disturbs() -> bool:
    """Does something measure just now, that whatever we do would disturb?"""
    try:
        with (cache() / FILE).open() as file:
            return is_held(file)
    except OSError:
        return False
