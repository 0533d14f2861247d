"""One measurement at a time on this machine, by a lock that all clones, studies and JupyterLab share."""

import sys
from contextlib import contextmanager

from ffilab.run import settings
from ffilab.run.locks import hold, is_held
from ffilab.run.paths import cache

FILE = "one-at-a-time"
WAITING = (
    "  another measurement is running on this machine, in another clone or in JupyterLab: waiting until it has ended"
)


@contextmanager
def alone():
    """Wait until no other measurement of this user is running on this machine. Does not wait inside another `alone`.

    Where the cache cannot be written, nobody else can hold the lock: then it does not wait either.
    """
    if settings.told("alone"):
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
        settings.tell(alone=True)
        try:
            yield
        finally:
            settings.tell(alone=None)


def disturbs() -> bool:
    """Is a measurement running?"""
    try:
        with (cache() / FILE).open() as file:
            return is_held(file)
    except OSError:
        return False
