"""A second lane of work, behind what the main thread does: two threads that end together."""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

from ffilab import subprocesses


@contextmanager
def second_lane():
    """Yields `later(function, *arguments)`, which returns a Future; what is handed in is done in order, one after the other.

    On the way out everything is awaited. What goes wrong in one lane, Ctrl-C too, ends the children of both and is raised
    here; what the second lane had not begun is dropped.
    """
    pool = ThreadPoolExecutor(1, "second lane", initializer=_yield_to_the_first)
    failed, handed_in = [], []

    def guarded(function, arguments):
        if failed:
            raise subprocesses.Ended
        try:
            return function(*arguments)
        except BaseException as error:
            failed.append(error)
            subprocesses.end_all()
            raise

    def later(function: Callable, *arguments) -> Future:
        if failed:
            raise failed[0]
        handed_in.append(pool.submit(guarded, function, arguments))
        return handed_in[-1]

    try:
        yield later
        for one in handed_in:
            one.result()
    except BaseException as error:
        pool.shutdown(wait=False, cancel_futures=True)
        subprocesses.end_all()
        pool.shutdown()
        subprocesses.go_on()
        if isinstance(error, subprocesses.Ended) and failed:
            raise failed[0] from None
        raise
    pool.shutdown()


def _yield_to_the_first() -> None:
    """The first lane is the longer one: the second gets the core that it leaves idle. Linux has a priority for each thread,
    which the children inherit."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10))
