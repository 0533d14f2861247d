"""File locks: one process at a time. Standard library only, as it is imported by every chapter.

A child that gets the file's descriptor keeps the lock held for as long as it works.
"""

import fcntl
from collections.abc import Callable
from typing import IO


def hold(file: IO, waits: Callable[[], object]) -> None:
    """Lock an open file until it is closed here and in every child that has it too; calls `waits` first if another
    process holds it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        waits()
        fcntl.flock(file, fcntl.LOCK_EX)


def is_held(file: IO) -> bool:
    """Does another process hold the lock of an open file? Asking locks it for a moment, if not."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False
