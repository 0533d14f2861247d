"""Sharing, who waits for whom: what is safe loses nothing, on every build; numbers count processes. No test asserts a
speed, and what is unsafe is no business of a test."""

import json
from types import SimpleNamespace

import pandas as pd
import pytest

from ffilab.judge.estimates import Share
from ffilab.run.paths import NOTEBOOKS
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.sharing import exercise, fragments
from notebooks.sharing import experiment as e
from notebooks.sharing import numbers_waiting as numbers
from tests.helpers.of_chapter import result_of

PAIR = pytest.mark.parametrize("label", [GIL, FREE_THREADED])
HERE = {"folder": e.WAITING}


def played(label, function, **arguments):
    return result_of(label, function, HERE | arguments)


@PAIR
def test_what_locks_both_loses_no_update(label):
    lost = {row["outer"]: row["lost"] for row in played(label, e.lost_updates, ways=[*e.OUTER], ns=20_000_000)}
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


@PAIR
def test_what_says_that_it_may_is_imported_in_another_interpreter(label):
    given = {"libraries": f"{e.BUILT}/boundary", "part": None}
    allowed = result_of(label, e.imported_elsewhere, given | {"module": "boundary_c_api"})
    refused = result_of(label, e.imported_elsewhere, given | {"module": "boundary_nanobind"})
    assert allowed["said"] == e.ANSWERS_THERE
    assert "does not support loading in subinterpreters" in refused["said"]


# ---- the exercises ----


def source_of(cell):
    """The program in a cell of the notebook."""
    cells = json.loads((NOTEBOOKS / "sharing" / "sharing.ipynb").read_text())["cells"]
    (text,) = ("".join(one["source"]) for one in cells if one["id"] == cell)
    return text.split('"""')[1]


def test_a_log_that_keeps_its_buffer_is_refused_and_one_that_puts_a_new_one_there_is_not():
    log = "class Log:\n    data = b'first;'\ndef add(log, line):\n    "
    assert result_of(FREE_THREADED, exercise.grown, {"source": log + "pass"})["lost"] > 0
    changed = log.replace("b'first;'", "bytearray(b'first;')") + "log.data[0:1] = b'x'"
    assert not result_of(FREE_THREADED, exercise.grown, {"source": changed})["kept"]


def test_numbers_that_come_twice_or_never_are_counted():
    twice = f"def share_out(numbers):\n    return range({exercise.NUMBERS})"
    assert (
        result_of(FREE_THREADED, exercise.shared_out, {"source": twice})["wrong"] == exercise.ROUNDS * exercise.NUMBERS
    )


@pytest.mark.parametrize("cell", ["waiting-exercise-two-broken", "lazy"])
def test_who_changes_nothing_is_not_told_that_it_is_correct(cell):
    """Nor who hands back what is taken later, by one thread after the other. Threads that never meet try nothing."""
    source = "def share_out(numbers):\n    return numbers" if cell == "lazy" else source_of(cell)
    assert result_of(FREE_THREADED, exercise.shared_out, {"source": source})["wrong"] != 0


def test_lines_that_nothing_keeps_apart_are_lost():
    half = "class Log:\n    data = b'first;'\ndef add(log, line):\n    log.data = log.data + line"
    assert result_of(FREE_THREADED, exercise.grown, {"source": half})["lost"] != 0


@pytest.mark.parametrize(
    ("cell", "tried"),
    [("waiting-exercise-repaired", exercise.grown), ("waiting-exercise-two-repaired", exercise.shared_out)],
)
def test_the_solutions_lose_nothing(cell, tried):
    result = result_of(FREE_THREADED, tried, {"source": source_of(cell)})
    assert not result.get("lost")
    assert not result.get("wrong")


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


def test_bindings_are_listed_by_where_another_interpreter_imports_them():
    said = {"C API": (e.ANSWERS_THERE, e.ANSWERS_THERE), "PyO3": ("no", e.ANSWERS_THERE), "Cython": ("no", "no")}
    rows = [
        {"binding": binding, "interpreter": label, "said": each}
        for binding, both in said.items()
        for label, each in zip((GIL, FREE_THREADED), both)
    ]
    session = SimpleNamespace(frame=lambda _: pd.DataFrame(rows))
    listed = fragments.elsewhere(session)
    assert listed == "wherever it was tried: C API; on one build only: PyO3; nowhere: Cython"
    assert numbers.elsewhere(pd.DataFrame(rows), interpreter=GIL) == Share(1, 3)
