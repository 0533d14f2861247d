"""Thread states, and how tools attach: every tool calls back, a kept state keeps, the clock is read as often as the
loop says."""

import itertools
from types import SimpleNamespace

import pytest

from ffilab.run.paths import NATIVE_OUT
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED
from ffilab.setup.installed import load, soabi
from native.outside.ways import TOOLS, started, way_in
from notebooks.outside import exercise, experiment
from tests.helpers.of_chapter import result_of

FOLDER = {"folder": experiment.FOLDER}


def called(tool, folder):
    """Callbacks of two threads, by whether a state is kept: how many came, how many times were noted, and how many
    threads they saw."""
    import threading

    rows = []
    for keep in (False, True):
        seen = []
        times = way_in(folder, tool)(lambda seen=seen: seen.append(threading.get_ident()), 2, 5, keep)
        rows.append([len(seen), len(times), min(times) > 0, len(set(seen)) <= 2])
    return rows


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_calls_from_threads_of_c(tool, build):
    note = NATIVE_OUT / "outside" / soabi(load(BY_LABEL[build])) / f"missing-{tool.lower()}.txt"
    if note.exists():
        pytest.skip(note.read_text())
    assert result_of(build, called, {"tool": tool, **FOLDER}) == [[10, 10, True, True]] * 2


def test_what_is_kept_is_kept_and_what_is_not_is_lost(build):
    rows = result_of(build, experiment.counts, FOLDER)
    outcomes = [(row["tool"], row["outcome"]) for row in rows]
    assert outcomes == [("ctypes", "lost"), ("ctypes", "survived"), ("cffi", "survived")]


@pytest.mark.parametrize("event", experiment.EVENTS)
def test_each_event_has_a_row_for_each_count(event, label):
    rows = result_of(label, experiment.ends, {"event": event, **FOLDER})
    assert [row["count"] for row in rows] == [*experiment.EVENTS[event]]
    assert all(row[what] > 0 for row in rows for what in experiment.TIMED)


def test_one_segment_is_visited_as_often_as_many_are():
    fixed = {"event": experiment.THREADS, **FOLDER}
    rows = result_of(FREE_THREADED, experiment.visits, fixed, environment=experiment.COUNTING)
    assert [row["readings"] for row in rows] == [0, 4096, 4096, 4096]


def test_a_thread_ends_beside_others_and_after_them(build):
    assert all(result_of(build, experiment.of_thread, {"after": after, **FOLDER})["ns"] > 0 for after in (0, 1))


def test_a_state_ends_beside_others(label):
    rows = result_of(label, experiment.beside_others, FOLDER)
    assert [(row["others"], row["ns"] > 0) for row in rows] == [(1, True), (1000, True)]


@pytest.mark.parametrize("before", [experiment.NOTHING, experiment.OTHERS_THERE, experiment.OBJECT_LEFT])
def test_several_threads_attach_in_each_way(before, build):
    rows = result_of(build, experiment.together, {"before": before, "others": experiment.OTHER_STATES, **FOLDER})
    cells = [(row["state"], row["threads"]) for row in rows if row["ns"] > 0]
    assert cells == [*itertools.product(experiment.HOW, experiment.TOGETHER)]


@pytest.mark.parametrize("number", experiment.ROWS)
def test_rows_are_counted_with_a_new_state_and_a_kept_one(build, number):
    rows = result_of(build, experiment.rows_per_s, {"rows": number, **FOLDER})
    assert [row["kept"] for row in rows if row["rows_per_s"] > 0] == [False, True]
    assert rows[1]["again"] > 0


def test_no_thread_for_an_answer_is_an_error():
    with pytest.raises(OSError, match="no thread"):
        started(None)


def test_each_bridge_brings_its_answers(build):
    rows = result_of(build, experiment.bridge, {"beside": experiment.ALONE, **FOLDER})
    assert [row["way"] for row in rows] == [*experiment.BRIDGES]
    assert all(0 < row["us"] <= row["worst"] for row in rows)


def test_where_there_is_no_eventfd_that_bridge_is_left_out(monkeypatch):
    monkeypatch.delattr(experiment.os, "eventfd", raising=False)
    rows = experiment.bridge(experiment.ALONE, str(NATIVE_OUT / "outside"))
    assert [row["way"] for row in rows] == [way for way in experiment.BRIDGES if way != "eventfd"]


KEEPS = "def around(run, what):\n    run(what)\n"
COUNTS = "def ready(file, counted):\n    counted.append({count})\n"


@pytest.mark.parametrize(
    ("function", "source", "says"),
    [
        ("kept_by_reader", "around = None\n", {"count": 1, "calls": 100}),
        ("kept_by_reader", "def around(run, what):\n    pass\n", {"count": 0, "calls": 0}),
        ("kept_by_reader", KEEPS, {"count": 100, "calls": 100}),
        ("rung", COUNTS.format(count="os.eventfd_read(file)"), {"counted": 1000}),
        ("rung", COUNTS.format(count="0 * os.eventfd_read(file)"), {"counted": 0}),
    ],
)
def test_the_exercises_see_what_a_reader_wrote(function, source, says):
    assert exercise.tried(function, source)["result"].items() >= says.items()


def test_a_reader_who_never_calls_back_is_told_so():
    session = SimpleNamespace(observe=lambda title, look, *arguments: look(*arguments))
    said = exercise.check_kept("def around(run, what):\n    pass\n", session)
    assert said == ["Not correct: the callback ran 0 times, not 100. Does `around` call `run`?"]
    assert exercise.check_rung("def ready(:", session)[0].startswith("It did not come to an end")
