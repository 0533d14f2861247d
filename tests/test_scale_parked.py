"""`ffilab scale`: for whose lock the threads wait, by their stacks."""

import pytest

from ffilab.yours.scale import rules
from tests.helpers.scaling import PARKED, arms, waits


@pytest.mark.parametrize(
    ("stack", "owner", "function", "caller"),
    [
        ("srand", "the C library", "srandom", "_ctypes.so"),
        ("pybind11", "mine.so", "PyMutex_Lock", "mine.so"),
        ("list", "the interpreter", "", "os.putenv"),
        ("localtime", "the C library", "", "_PyTime_localtime"),
        ("RLock", "the interpreter", "", "os.putenv"),
        ("std::mutex", "mine.so", "pthread_mutex_lock", "mine.so"),
        ("putenv", "the C library", "", "os.putenv"),
        ("dlsym", "the C library", "dlsym", "mine.so"),
        ("zlib", "zlib.so", "PyThread_acquire_lock", "zlib.so"),
    ],
)
def test_whose_lock_a_parked_thread_waits_for(stack, owner, function, caller):
    said = {"looks": 100, "parked": 10, "stacks": [[8, PARKED[stack]], [2, PARKED["list"]]], "python": "python3.14"}
    found = rules.where_parked(said, "os.putenv")
    assert (found.owner, found.function, found.caller) == (owner, function, caller)


def test_an_object_that_is_waited_for_needs_no_copy_to_be_named():
    found = rules.waited_for(waits(first=40, second=60, seldom=9))
    assert [one.name for one in found] == ["second", "first"]
    said = rules.explained(arms(0.7), found, rules.Parked("the interpreter", "", "", 0.1), 2)
    assert [(one.name, one.kind) for one in said] == [("second", rules.SECTION), ("first", rules.SECTION)]
    said = rules.explained(arms(0.7), rules.waited_for(waits(lock=80)), None, 2)
    assert [(one.name, one.kind) for one in said] == [("lock", rules.LOCK)]


def test_stacks_that_do_not_agree_tell_nothing():
    said = {"looks": 100, "parked": 10, "stacks": [[5, PARKED["srand"]], [5, PARKED["list"]]], "python": "python3.14"}
    assert rules.where_parked(said) is None
    assert rules.where_parked({**said, "parked": 2}) is None
