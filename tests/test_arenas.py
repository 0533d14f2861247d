"""The chapter on arenas: what glibc and the experiments must do exactly, and what the analysis makes of known data."""

import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import controls
from ffilab.judge.claims import declared
from ffilab.judge.numbers import numbers_of
from ffilab.measure.case import Case
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from ffilab.run.paths import resolved
from ffilab.setup import installed
from ffilab.setup.catalogue import FREE_THREADED, GIL
from notebooks.arenas import exercise, experiment, numbers, system
from tests.helpers.of_chapter import Golden, result_of

WITH_RUST = [one.label for one in installed.present() if system.not_built(one.label) is None]
BUILT_HERE = [name for name in system.BROUGHT if system.not_brought(name) is None]
MEMORY = {"rss", "pss", "peak", "private", "huge", "arenas", "held", "in_use"}
POOL = {"way": "thread pool", "threads": 8, "rounds": 3, "keep": True}


def run(function, label=FREE_THREADED, environment=None, memory_bytes=experiment.ROOM_BYTES, **arguments):
    given = arguments if function is experiment.startup else {**experiment.FOLDER, **arguments}
    return result_of(label, function, given, environment=environment or {}, memory_bytes=memory_bytes)


def talk(label=FREE_THREADED, environment=None, **changed):
    return run(experiment.talk, label, environment, **{**experiment.TALK, **changed})


# ---- the experiments ----

OF_TALK = {*numbers.GROWN, "vmrss", "inside", "in_objects", "python_at_once", "trimmed", "at_once"}
OF_LATENCY = {"p50", "p99.9", "clock p50", "clock p99.9", "mapped"}
EXPERIMENTS = [
    (experiment.talk, {**experiment.TALK, **experiment.NOBODY}, OF_TALK),
    (experiment.growth, POOL, {"state", "done", *MEMORY, "blocks_per_second", "mapped"}),
    (experiment.held_after_free, {}, {"case", "held"}),
    (experiment.latency, {"threads": 2, "pairs": 1000, "rounds": 3}, OF_LATENCY),
    (experiment.forks, {"children": 2}, {"private", "mapped"}),
    (experiment.served_by_glibc, {}, {"domain", "size", "share"}),
    (experiment.arenas_now, {"threads": 8}, {"arena", "held", "free"}),
    (experiment.startup, {}, {"ms", "mapped"}),
]


@pytest.mark.parametrize(("function", "arguments", "columns"), EXPERIMENTS)
def test_each_experiment_answers(function, arguments, columns):
    rows = run(function, **arguments)
    assert all(set(row) == columns for row in (rows if isinstance(rows, list) else [rows]))


@pytest.mark.parametrize("way", ["short-lived threads", "thread pool", "thread pool, by turns"])
def test_growth_is_consistent(way):
    rows = run(experiment.growth, **{**POOL, "way": way})
    assert [row["state"] for row in rows] == ["before", "worked", "worked", "worked", "trimmed"]
    assert [row["done"] for row in rows] == [0, 1, 2, 3, 3]
    for row in rows:
        assert 0 <= row["in_use"] <= row["held"]
        assert row["pss"] <= row["rss"] <= row["peak"] + 0.5
    before, last, trimmed = rows[0], rows[-2], rows[-1]
    assert last["arenas"] > 1
    assert trimmed["rss"] <= last["rss"]
    # 8 threads x 3 rounds x 64 bytes are all that stays in use.
    assert last["in_use"] - before["in_use"] < 0.2


@pytest.mark.parametrize(
    ("environment", "arenas"),
    # More than this machine gets by itself: the main one, and one for each thread.
    [(experiment.tuned("arena_max=1"), 1), (experiment.tuned("arena_max=64"), 41)],
    ids=["one", "more"],
)
def test_glibc_makes_as_many_arenas_as_it_is_told(environment, arenas):
    work = {"way": "thread pool", "threads": 40, "rounds": 1, "keep": True}
    assert run(experiment.growth, environment=environment, **work)[1]["arenas"] == arenas


def test_huge_pages_can_be_forbidden():
    """Also when the preloaded library asks for them. The kernel may take apart some that were there before."""
    off = {**experiment.NOBODY, "small_pages": True}
    assert talk(environment=experiment.HUGE_PAGES, **off)["huge"] <= 0


def test_without_the_gil_objects_do_not_come_from_malloc(build):
    share = {(row["domain"], row["size"]): row["share"] for row in run(experiment.served_by_glibc, build)}
    assert len(share) == 6
    if build == FREE_THREADED:
        assert share["PyObject_Malloc", "small"] < 0.1
        assert share["PyObject_Malloc", "large"] < 0.1
    else:
        assert share["PyObject_Malloc", "large"] > 0.9


@pytest.mark.skipif(FREE_THREADED not in WITH_RUST, reason="there is no extension in Rust")
def test_the_talks_worker_asks_for_no_block_and_ours_does():
    """What the optimiser leaves of it; ours aborts where a block of 64 MiB is more than it may have."""
    for published, ended in ((True, "ok"), (False, "killed by SIGABRT")):
        outcome = Case(FREE_THREADED, experiment.ask, {"published": published}, experiment.FOLDER).run()
        assert outcome.ended == ended, outcome.error


@pytest.mark.skipif(FREE_THREADED not in WITH_RUST, reason="there is no extension in Rust")
def test_the_gil_of_the_free_threaded_build_can_be_on():
    """With it calls queue up: what one sees grow is not what another one grows by."""
    _, changed, environment = experiment.CONDITIONS[numbers.MEET + numbers.ON]
    kept = experiment.talk_case(FREE_THREADED, changed, environment).run()
    assert kept.gil_enabled
    assert kept.result["at_once"] == 50


def test_all_python_threads_are_there_before_the_first_one_calls():
    """As run a pool starts no thread where one idles."""
    assert talk(python_threads=24, native_threads=0, together=True)["python_at_once"] == 24


@pytest.mark.full
@pytest.mark.parametrize("allocator", BUILT_HERE)
def test_a_preloaded_allocator_is_proved(allocator):
    preloaded = experiment.preload(allocator)
    mapped = run(experiment.latency, environment=preloaded, threads=2, pairs=1000, rounds=3)["mapped"]
    runs = pd.DataFrame([{"allocator": allocator, "mapped": mapped, "process": 0, "ended": "ok"}])
    assert numbers.proved(runs) is runs
    # Python's own requests go there too: glibc's account of itself does not move.
    shares = {(row["domain"], row["size"]): row["share"] for row in run(experiment.served_by_glibc, GIL, preloaded)}
    assert abs(shares["PyMem_RawMalloc", "large"]) < 0.1


def test_a_process_that_died_proves_no_allocator():
    died = {"allocator": "jemalloc", "mapped": np.nan, "process": 0, "ended": "killed by SIGABRT"}
    glibc = {"allocator": "glibc", "mapped": "glibc", "process": 1, "ended": "ok"}
    assert len(numbers.proved(pd.DataFrame([died, glibc]))) == 2
    with pytest.raises(UserError, match=r"glibc was to be preloaded, and process 1 ran on libjemalloc\.so"):
        numbers.proved(pd.DataFrame([died, {**glibc, "mapped": "libjemalloc.so"}]))


AT_ONCE = (numbers.EQUAL, numbers.MEET, numbers.NONE)


@pytest.mark.full
@pytest.mark.parametrize("label", WITH_RUST)
def test_threads_at_once_are_those_of_the_condition(label):
    at_once = {name: talk(label, **experiment.CONDITIONS[name][1])["at_once"] for name in AT_ONCE}
    assert at_once[numbers.EQUAL] == 400
    assert at_once[numbers.NONE] is None
    if not label.endswith("t"):
        assert at_once[numbers.MEET] == 50  # the GIL lets one call in at a time


@pytest.mark.full
@pytest.mark.skipif("tcmalloc" not in BUILT_HERE, reason="TCMalloc was not built")
def test_tcmalloc_keeps_its_caches_by_core():
    # A C bool in a process of its own, which ran on TCMalloc from its start.
    code = "import ctypes; print(ctypes.CDLL(None).MallocExtension_Internal_GetPerCpuCachesActive() & 0xFF)"
    environment = resolved(experiment.preload("tcmalloc"))
    said = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    assert said == "1\n"


# ---- what is here ----


def test_an_allocator_that_is_absent_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(system, "NATIVE_OUT", tmp_path)
    here = system.look([])
    assert here["allocators"] == {}
    assert "bootstrap.py native" in here["absent allocators"]["jemalloc"]
    assert here["huge pages"] in ("always", "madvise", "never", "not known")
    assert here["arenas at most"] % 8 == 0
    (tmp_path / "arenas").mkdir()
    (tmp_path / "arenas" / "missing-allocators.txt").write_text("no cargo")
    assert system.not_brought("jemalloc") == "not built: no cargo"


def test_the_lock_names_the_versions_that_cargo_is_asked_for():
    versions = system.versions()
    assert set(versions) == set(system.BROUGHT)
    asked = (system.NATIVE / "arenas" / "allocators" / "Cargo.toml").read_text()
    for crate, version in (line.split() for line in versions.values()):
        assert re.search(rf'{crate} = .*"={re.escape(version.partition("+")[0])}"', asked)


# ---- the analysis ----


def test_conditions_that_numbers_speak_of_are_run():
    spoken_of = {numbers.AGAIN, numbers.RELEASED, numbers.EQUAL, numbers.WIDE_MEET, *numbers.FEWER.values()}
    kept = {name + numbers.ON for name in (numbers.AS_RUN, numbers.HUGE, numbers.HUGE_NONE, numbers.MEET)}
    others = {numbers.NONE, numbers.NO_HUGE, numbers.ONE_ARENA, numbers.ASKED}
    assert spoken_of | kept | others <= set(experiment.CONDITIONS)
    assert [name for name in numbers.DECIDES if name not in numbers.SAME] == list(experiment.SCENARIOS)


def rows_of_growth(grown, rate, process=0):
    """Rows of the growth experiment that end with so many MiB more than at its start."""
    states = [("before", 0, 10.0), ("worked", 1, 10 + 2 * grown), ("worked", 2, 10 + grown), ("trimmed", 2, 11.0)]
    columns = {"process": process, "peak": 10 + 2 * grown, "arenas": 2, "blocks_per_second": rate}
    return [{**columns, "state": state, "done": done, "rss": rss} for state, done, rss in states]


def test_without_huge_pages_or_the_extension_a_number_has_a_reason_instead():
    asked = [test.number for one in declared("arenas").claims if one.id in ("A19", "A20") for test in one.tests]
    runs, cells = (Golden("arenas").frame(title) for title in (numbers.TALK, numbers.GRID))
    found = numbers_of(Golden("arenas", {numbers.TALK: runs.assign(huge=0)}))
    assert all((found[name].missing == numbers.NO_HUGE_PAGES) == ("huge pages for all" in name) for name in asked)
    few = runs[runs.condition.str.contains("no native")], cells[cells.native_threads == 0]
    session = Golden("arenas", dict(zip((numbers.TALK, numbers.GRID), few)))
    here = session.observed("this system", session.interpreters)
    session.observed = lambda *_: {**here, "absent extension": dict.fromkeys(session.interpreters, "no cargo")}
    assert {numbers_of(session)[name].missing for name in asked} == {"no cargo"}


def test_two_equal_conditions_that_differ_withhold_what_rests_on_them():
    runs = Golden("arenas").frame(numbers.TALK)
    runs.loc[runs.condition == numbers.AGAIN, "rss"] += 3
    checks = controls.settled(numbers.controls(Golden("arenas", {numbers.TALK: runs})))
    failed = [check for check in checks if not check.passed]
    assert len(failed) == 2
    assert set(controls.withheld(failed, numbers_of(Golden("arenas")))) == {"A19"}


# ---- the exercises ----


def test_pairs_of_conditions_are_checked():
    right = {question: tuple(pair) for question, pair in exercise.PAIRS.items()}
    assert all(line.endswith("Right.") for line in exercise.check_pairs(right))
    question = next(iter(right))
    for wrong in (numbers.AS_RUN, numbers.HUGE_NONE, "?"):
        lines = exercise.check_pairs({**right, question: (numbers.AS_RUN, wrong)})
        assert [line.endswith("Right.") for line in lines] == [False, True, True]


def served(rows):
    """A session in which the processes of both services brought these rows."""
    return SimpleNamespace(run=lambda *_, **__: pd.DataFrame(rows), budget=BUDGETS["room"])


@pytest.mark.parametrize(("yours", "says"), [((60, 1e6), "Not corr"), ((20, 1e5), "Not yet"), ((20, 2e6), "Fast")])
def test_a_changed_service_is_judged_by_memory_and_then_by_time(yours, says):
    found = [("yours", yours), ("the original", (80, 1e6))] * 4
    rows = [
        {**row, "whose": whose, "ended": "ok"}
        for number, (whose, service) in enumerate(found)
        for row in rows_of_growth(*service, number)
    ]
    assert exercise.check_service(served(rows), "x")[-1].startswith(says)


def test_a_service_that_dies_is_a_sentence():
    session = served([{"whose": "yours", "ended": "killed by SIGABRT"}])
    assert exercise.check_service(session, "x") == ["Not correct: a process of yours ended so: killed by SIGABRT."]
