"""Sharing, who waits for whom: what is safe loses nothing, on every build; numbers count processes. No test asserts a
speed, and what is unsafe is no business of a test."""

import pandas as pd
import pytest

from ffilab.judge.estimates import Share
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.sharing import experiment as e
from notebooks.sharing import numbers_waiting as numbers
from tests.helpers.of_chapter import result_of

PAIR = pytest.mark.parametrize("label", [GIL, FREE_THREADED])
HERE = {"folder": e.WAITING}


def played(label, function, **arguments):
    return result_of(label, function, HERE | arguments)


@PAIR
def test_what_locks_both_loses_no_update(label):
    lost = {row["outer"]: row["lost"] for row in played(label, e.lost_updates, ns=20_000_000)}
    del lost["nested"]
    assert lost == dict.fromkeys(lost, 0)


@PAIR
def test_elements_of_ones_own_lose_no_addition(label):
    (two,) = [row for row in played(label, e.one_array, loops=20_000) if row["elements"] == 2]
    assert two["lost"] == 0


@PAIR
def test_a_strong_reference_keeps_its_object(label):
    found = {row["what"]: row["wrong"] for row in played(label, e.borrowed_references, ns=20_000_000)}
    assert found["strong"] == 0


@PAIR
@pytest.mark.parametrize("lock", e.FAIR_LOCKS)
def test_every_take_counts(label, lock):
    found = played(label, e.fairness, lock=lock, holder="calls Python", ns=5_000_000, held=20)
    assert found["takes"] > 0
    assert 0 <= found["share"] <= 0.5
    assert found["rare"] <= found["longest"] * 1.1


@PAIR
@pytest.mark.parametrize("kind", ["bytearray", "array.array"])
def test_a_held_buffer_refuses_to_be_resized(label, kind):
    arguments = {"kind": kind, "holding": "the Py_buffer", "size": 1 << 16, "ms": 30}
    assert played(label, e.changed_while_read, meanwhile="resized", **arguments) == {"seen": "BufferError"}
    assert played(label, e.changed_while_read, meanwhile="dropped", **arguments) == {"seen": "same data"}


@PAIR
@pytest.mark.parametrize(("kind", "left"), [("Plain", 10), ("Traversed", 0)])
def test_only_what_is_traversed_is_collected(label, kind, left):
    assert played(label, e.cycles_left, kind=kind, count=10) == {"left": left, "garbage": 0}


# ---- numbers, of made-up records ----


def test_a_process_that_lost_something_counts_once():
    rows = [{"interpreter": GIL, "outer": "nested", "lost": lost, "process": n} for n, lost in enumerate((0, 5, 900))]
    assert numbers.happening(pd.DataFrame(rows), "lost", interpreter=GIL, outer="nested") == Share(2, 3)
    assert numbers.happening(pd.DataFrame(), "lost", interpreter=GIL, outer="nested") is None


def test_a_crash_is_freed_memory_and_a_refusal_is_not():
    row = {"kind": "bytearray", "holding": "the Py_buffer", "meanwhile": "resized"}
    ends = [("killed by SIGSEGV", None), ("ok", "other data"), ("ok", "same data"), ("ok", "BufferError")]
    runs = pd.DataFrame([row | {"ended": ended, "seen": seen} for ended, seen in ends])
    assert numbers.freed(runs, holding="the Py_buffer", kind="bytearray") == Share(2, 4)
    assert numbers.refused(runs, kind="bytearray") == Share(1, 4)
    assert numbers.let(runs, kind="bytearray") == Share(3, 4)


def test_a_thread_that_never_got_in_is_a_result():
    rows = [
        {"interpreter": GIL, "collecting": one, "passes": 0 if one else 9, "process": n, "longest": 1.0}
        for n in range(5)
        for one in (True, False)
    ]
    assert numbers.left(pd.DataFrame(rows), interpreter=GIL).at().value == 0
