"""Who waits for whom: what is safe ends, on every interpreter; a child's end is told as it was; numbers count children.

What hangs or crashes by a race is no business of a test.
"""

import resource
import sys

import pandas as pd
import pytest

from ffilab.judge.estimates import Share
from ffilab.measure.source import source_of
from ffilab.setup.catalogue import GIL
from native.outside.children import children
from notebooks.outside import experiment, figures, waiting
from notebooks.outside.states import NEWER, OLDER
from tests.helpers import small
from tests.helpers.of_chapter import outcome_of

RUNS = 2


def play(label, function, cells, by=experiment.outcomes, limit_s=10.0):
    """Rows of a scene, with a limit that a busy machine keeps."""
    scene = {"folder": experiment.FOLDER, "code": source_of(scene=function), "cells": cells}
    return outcome_of(label, by, {**scene, "runs": RUNS, "limit_s": limit_s, "at_once": 4}).result


def child(code, limit_s=30):
    return children([[sys.executable, "-c", code]], limit_s)[0]


# ---- children ----


@pytest.mark.parametrize(
    ("code", "outcome", "limit_s"),
    [
        ("print(1, flush=True)", "ends", 30),
        ("print(1, flush=True); import time; time.sleep(60)", "hangs", 0.1),
        ("import os; print(1, flush=True); os.abort()", "killed by SIGABRT", 30),
        ("print(1, flush=True); raise SystemExit(3)", "exits with 3", 30),
        ("pass", "not at the point", 30),
    ],
)
def test_a_child_is_told_as_it_ended(code, outcome, limit_s):
    assert child(code, limit_s)["outcome"] == outcome


def test_the_limit_counts_from_the_childs_own_report():
    row = child("import time; time.sleep(2.5); print(1, flush=True); print('more')", limit_s=2)
    assert row["outcome"] == "ends"
    assert row["said"] == ["1", "more"]


def test_what_a_child_started_ends_with_it():
    row = child("import os, time\npid = os.fork()\nif not pid:\n    time.sleep(60)\nprint(pid, flush=True)")
    (pid,) = map(int, row["said"])
    assert not small.running(lambda process: process.pid == pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans over")
def test_the_time_of_what_a_child_left_behind_is_ours():
    def of_children():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before = of_children()
    # It ends once what it leaves behind has used 0.3 s, far more than to start takes.
    code = """
import os, time
pid = os.fork()
while not pid:
    pass
while sum(map(int, open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()[11:13])) < 0.3 * os.sysconf("SC_CLK_TCK"):
    time.sleep(0.01)
print(1, flush=True)
"""
    child(code)
    assert of_children() - before > 0.2


def test_rows_come_in_the_order_of_their_commands():
    commands = [
        [sys.executable, "-c", f"import time; time.sleep({s}); print({s}, flush=True)"] for s in (0.4, 0.0, 0.2)
    ]
    assert [row["said"] for row in children(commands, 30, at_once=2)] == [["0.4"], ["0.0"], ["0.2"]]


# ---- scenes ----


def test_who_detaches_or_takes_a_pymutex_does_not_hang(label):
    cells = [{"way": way, "stop": stop} for way in experiment.WAYS[1:] for stop in experiment.WORLD[:3]]
    assert {row["outcome"] for row in play(label, experiment.lock_order, cells)} == {"ends"}


def test_who_detaches_in_a_section_does_not_hang_and_a_section_keeps_others_out(label):
    # Older versions let go of a section that is entered again.
    safe = experiment.IN_SECTION[1 : 2 if label in OLDER else 3]
    rows = play(label, experiment.sections, [{"inside": inside} for inside in safe])
    assert {row["outcome"] for row in rows} == {"ends"}


def test_a_guard_lets_its_thread_through_and_a_version_without_guards_says_so(label):
    closed, never, view = experiment.GUARDS
    if label in NEWER:
        rows = play(label, experiment.guarded, [{"by": by} for by in (closed, view)])
        assert {(row["by"], row["fate"]) for row in rows} == {(closed, "came through"), (view, "refused")}
    else:
        rows = play(label, experiment.guarded, [{"by": by} for by in (closed, never, view)])
        assert {row["outcome"] for row in rows} == {"not here"}


def test_a_thread_that_atexit_joins_comes_through(label):
    rows = play(label, experiment.shutdown, [{"thread": "a loop, joined by atexit"}])
    assert {(row["outcome"], row["fate"]) for row in rows} == {("ends", "came through")}


def test_handlers_of_atfork_mend_a_fork(label):
    # The default of older versions is to fork, without handlers.
    safe = experiment.FORKS[1 : 2 if label in OLDER else 3]
    rows = play(label, experiment.forked, [{"how": how} for how in safe])
    assert {row["outcome"] for row in rows} == {"ends"}


def test_signals_and_pending_calls_wait_for_main(label):
    rows = play(label, experiment.interrupted, [{"how": how} for how in experiment.HOWS], experiment.signalled)
    seen = {(row["how"], row["outcome"]) for row in rows} - {(how, "not at the point") for how in experiment.HOWS}
    assert seen <= {(how, "during the call" if how == "checks" else "after the call") for how in experiment.HOWS}
    rows = play(label, experiment.pending, [{"main": "sleeps in a system call"}], experiment.queued)
    assert {row["outcome"] for row in rows} == {"after it"}


def test_a_scene_that_fails_by_itself_is_no_outcome():
    with pytest.raises(AssertionError, match="no such way"):
        play(GIL, broken, [{}])


def broken():
    print("at the point", flush=True)
    raise ValueError("no such way")


# ---- numbers ----


def test_a_child_that_never_came_to_the_point_is_no_trial():
    frame = pd.DataFrame({"outcome": ["hangs", "ends", "not at the point"], "how": "x", "interpreter": GIL})
    assert waiting.share(frame, "outcome", "hangs", how="x", interpreter=GIL) == Share(1, 2)
    assert waiting.share(frame, "method", "spawn") is None


def test_a_table_counts_how_children_ended():
    frame = pd.DataFrame(
        {"outcome": ["ends", "ends", "hangs"], "fate": ["hangs", "hangs", None], "ms": 5.0, "interpreter": GIL}
    )
    table = figures.endings_table(frame.assign(thread="kept"), {"thread": "the thread"}, ms=True)
    assert table.to_dict("records") == [
        {"the thread": "kept", f"CPython {GIL}": "process hangs: 1 of 3; thread hangs, process ends: 2 of 3; 5 ms"}
    ]
