"""The exercises of the chapter "Arrays in and out": what becomes of an array, and which may be read. Their
self-checks."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from ffilab.judge.selfcheck import answered
from notebooks.arrays.experiment import COPIED, IN_PLACE, REFUSED, WRONG


def given() -> list[tuple[str, np.ndarray, bool]]:
    """Arrays, and whether C may read them as doubles one after the other."""
    room = np.arange(16.0)
    constant = np.arange(4.0)
    constant.flags.writeable = False
    misaligned = np.zeros(33, "u1")[1:].view(float)
    return [
        ("four doubles", room[:4], True),
        ("two rows of two doubles", room[:4].reshape(2, 2), True),
        ("one double without a dimension", np.array(1.0), True),
        ("a read-only array", constant, True),
        ("every second double", room[::2], False),
        ("doubles in reverse order", room[::-1], False),
        ("two rows of two doubles in Fortran order", room[:4].reshape(2, 2).T, False),
        ("a misaligned array", misaligned, False),
        ("an array of float32", np.arange(4, dtype="f4"), False),
        ("an array of int64", np.arange(4, dtype="i8"), False),
        ("doubles of the other byte order", room.astype(room.dtype.newbyteorder()), False),
    ]


def check_fates(said: dict[str, str], grid: pd.DataFrame) -> list[str]:
    """What becomes of an array through a tool, against this run: one line for each question."""
    fates = {f"{array} through {tool}": fate for (array, tool), fate in grid.stack().items()}
    seen, none = "look it up in the picture.", "the picture has no such field."
    asked = {question: (fates.get(question), seen if question in fates else none) for question in said}
    return answered(said, asked, (REFUSED, COPIED, IN_PLACE, WRONG))


def check_readable(readable: Callable[[np.ndarray], bool]) -> list[str]:
    """Does the reader's function tell them apart? Returns what to say."""
    for name, array, expected in given():
        if bool(readable(array)) != expected:
            return [f"Not yet: {name} {'can' if expected else 'cannot'} be read from its address, one after the other."]
    return ["Correct: it refuses what C would misread, and nothing else."]
