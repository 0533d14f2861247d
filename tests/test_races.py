"""The chapter on races: safe variants are exact in every run on every interpreter; tools find what is racy, and nothing else.

What unsafe variants lose is a distribution and no business of a test.
"""

import importlib.util
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from of_chapter import LABELS, Golden, outcome_of, rows_of

from ffilab.judge.estimates import Share
from ffilab.measure.session import Measuring
from ffilab.run.paths import resolved
from ffilab.setup import installed
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races import detection, exercise, experiment, results
from notebooks.races.detection import CLEAN, RACE, SOURCES


def run(label, what, /, **arguments):
    return rows_of(label, experiment.EXPERIMENTS, what, {"folder": experiment.FOLDER, **arguments})


# ---- the experiments ----

MEETING = {"met", "pairs", "overlapped", "cores", "preempted", "work_us"}
EXPERIMENTS = [
    ("crossed_counter", {"way": "C API, releasing", "teams": [{"threads": 2, "iterations": 100, "variants": ["unsafe"]}]},
     {"threads", "iterations", "variant", "lost", *MEETING}),
    ("start_and_work", {"iterations": 100}, {"start", "call", "life"}),
    ("double_payments", {"rounds": 5, "spread_ns": 1000, "windows_ns": [0, 100]}, {"window_ns", "share"}),
    ("borrowed", {"function": "first_strong", "reads": 1000}, {"reads"}),
    ("remedy_together", {"remedy": "atomic", "milliseconds": 1, "threads": [2]}, {"threads", "alone", "together"}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments", "columns"), EXPERIMENTS)
def test_each_experiment_answers(function, arguments, columns):
    assert all(set(row) == columns for row in run(FREE_THREADED, function, **arguments))


def test_the_experiment_in_python_alone_answers():
    arguments = {"threads": 2, "loops": 1000, "intervals": experiment.INTERVALS}
    rows = rows_of(FREE_THREADED, experiment.EXPERIMENTS, "python_race", arguments)
    assert {row["statement"] for row in rows} == {"total += 1", "total += one()"}


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("way", experiment.WAYS)
def test_safe_counters_are_exact_and_threads_meet_where_they_can(label, way):
    teams = [
        {"threads": 2, "iterations": 50_000, "variants": results.VARIANTS},
        # Attached threads too, where there is no GIL: they would keep out the 8th, 16th and 32nd without room for them.
        {"threads": 40, "iterations": 2_000, "variants": results.VARIANTS},
    ]
    rows = run(label, "crossed_counter", way=way, teams=teams)
    assert len(rows) == 6
    assert all(row["lost"] == 0 for row in rows if row["variant"] != "unsafe")
    if experiment.lets_others_in(label, way):
        for team in teams:
            assert max(row["met"] for row in rows if row["threads"] == team["threads"]) == 1
    else:
        # Who keeps the GIL lets nobody in, and does not wait for ever.
        assert all(row["met"] == row["pairs"] == row["lost"] == 0 for row in rows)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("loader", experiment.LOADERS)
def test_safe_variants_of_all_other_kinds_are_right(label, loader):
    bank = {row["case"]: row for row in run(label, "bank", loader=loader, threads=20, attempts=3)}
    for case in ("safe", "compare and exchange"):
        assert bank[case]["withdrawn"] + bank[case]["balance"] == results.DOLLARS
    wrong = {row["kind"]: row["wrong"] for row in run(label, "kinds", loader=loader, slots=50, loops=1_000)}
    safe = ("lazy table, mutex", "output buffer, thread-local", "last error, thread-local", "last error, errno")
    assert {wrong[kind] for kind in safe} == {0}


@pytest.mark.parametrize(("label", "on"), [(GIL, True), (FREE_THREADED, True), (FREE_THREADED, False)])
def test_the_talks_program_is_exact_where_it_is_safe_or_has_a_gil(label, on):
    environment = {"PYTHON_GIL": "1"} if on and label == FREE_THREADED else {}
    outcome = outcome_of(
        label, experiment.EXPERIMENTS, "as_run", {"folder": experiment.FOLDER, "rounds": 2}, environment=environment
    )
    assert outcome.gil_enabled == on
    rows = outcome.result
    assert [row["what"] for row in rows] == ["fast bank"] * 2 + ["unsafe counter"] * 2 + [
        "mutex counter", "atomic counter", "bank", "safe bank"
    ]  # fmt: skip
    for row in rows:
        if on or row["what"] in ("mutex counter", "atomic counter", "safe bank"):
            assert row.get("lost", row.get("created")) == 0, row
        if row["what"] in ("bank", "safe bank"):
            assert row["withdrawals"] == 20 or (row["what"] == "bank" and not on)


@pytest.mark.parametrize("loader", experiment.LOADERS)
def test_safe_counters_in_rust_are_exact(loader):
    if reason := detection.why_not_built("rust_counter"):
        pytest.skip(reason)
    rows = run(FREE_THREADED, "rust_counter", loader=loader, threads=4, iterations=20_000)
    lost = {row["variant"]: row["lost"] for row in rows}
    assert lost["Rust, fetch_add"] == lost["Rust, Mutex"] == 0


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("name", [name for name in experiment.REMEDIES if name not in experiment.UNSAFE])
def test_remedies_are_exact(label, name):
    (row,) = run(label, "stress", remedy=name, threads=6, loops=20_000)
    assert row["value"] == row["expected"]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("function", ["first_strong", "sum_locked"])
def test_strong_references_and_critical_sections_do_not_crash(label, function):
    assert run(label, "borrowed", function=function, reads=50_000) == [{"reads": 50_000}]


@pytest.mark.parametrize("label", LABELS)
def test_the_extension_is_what_the_chapter_says(label):
    """The same remedies, its import leaves the GIL off on t-builds, and what cannot be done is refused."""
    program = (
        f"import json, sys; sys.path.insert(0, {str(SOURCES)!r}); import arms\n"
        f"module, refused = arms.load({resolved(experiment.FOLDER)!r}), []\n"
        "for given in (bytearray(8), 'unsafe'), (bytearray(99), 'no such'):\n"
        "    try: module.increment_keeping(given[1], 1, 1, 0, given[0])\n"
        "    except ValueError as error: refused.append(str(error))\n"
        "try: module.sum_unlocked([0.5])\n"
        "except TypeError as error: refused.append(str(error))\n"
        "print(json.dumps([module.names(), getattr(sys, '_is_gil_enabled', lambda: True)(), refused]))"
    )
    command = [installed.load(BY_LABEL[label]).python, "-I", "-c", program]
    names, gil, refused = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert names == list(experiment.REMEDIES)
    assert gil != BY_LABEL[label].free_threaded
    assert refused == ["the buffer is too small for a visit", "there is no variant no such", "a dict is asked for"]


# ---- the tools ----


def test_every_variant_of_the_stress_program_is_in_the_table():
    names = re.findall(r'^    \{"([^"]+)", \w+\},$', (SOURCES / "sanitizers" / "stress.c").read_text(), re.M)
    assert names == list(detection.STRESS)


TOOLS = [
    *((detection.sanitized, variant) for variant in detection.STRESS),
    *((detection.helgrind, variant) for variant in ("counter, unsafe", "counter, mutex")),
]


@pytest.mark.full
@pytest.mark.parametrize(("tool", "variant"), TOOLS, ids=[f"{tool.__name__}: {variant}" for tool, variant in TOOLS])
def test_a_tool_finds_data_races_and_nothing_else(tool, variant):
    seen = tool(variant)
    if seen["found"].startswith("cannot run here"):
        pytest.skip(seen["found"])
    race, _ = detection.STRESS[variant]
    assert seen["found"] == (RACE if race else CLEAN), seen["report"]
    assert "/" not in seen["report"]


def test_a_report_holds_nothing_of_this_machine():
    report = (
        "==================\n"
        "WARNING: ThreadSanitizer: data race (pid=24550)\n"
        "  Read of size 8 at 0x55f1 by thread T2:\n"
        "    #0 unsafe_increment ../library/races.c:22 (stress-tsan+0x27c1) (BuildId: 1f)\n"
        "    #1 unsafe_counter /build/native/races/sanitizers/stress.c:10 (stress-tsan+0x2546)\n"
    )
    assert detection.cleaned(report).splitlines() == [
        "WARNING: ThreadSanitizer: data race",
        "  Read of size 8 at 0x55f1 by thread T2:",
        "    #0 unsafe_increment races.c:22",
        "    #1 unsafe_counter stress.c:10",
    ]
    assert len(detection.cleaned(report, lines=2).splitlines()) == 2


@pytest.mark.usefixtures("quiet_machine")
def test_what_was_not_built_is_said(monkeypatch, tmp_path, quiet_progress):
    monkeypatch.setattr(detection, "LIBRARIES", tmp_path)
    (tmp_path / "stress-tsan").touch()
    assert "no ThreadSanitizer" in detection.sanitized("counter, unsafe")["found"]
    (tmp_path / "missing-loom_model.txt").write_text("no cargo here")
    session = Measuring("races", [FREE_THREADED])
    assert detection.explored(session).empty
    assert session.observed("not built", "loom_model") == "no cargo here"


def test_false_alarms_and_misses_are_named():
    assert results.verdict_on_tool(RACE, True) == RACE
    assert results.verdict_on_tool(CLEAN, False) == CLEAN
    assert results.verdict_on_tool(RACE, False).endswith("(false alarm)")
    assert results.verdict_on_tool(CLEAN, True).endswith("(missed)")
    assert results.verdict_on_tool("cannot run here", True) == "cannot run here"


@pytest.mark.full
@pytest.mark.usefixtures("quiet_machine")
def test_loom_finds_the_lost_update_and_the_missing_barrier(quiet_progress):
    if reason := detection.why_not_built("loom_model"):
        pytest.skip(reason)
    failures = detection.explored(Measuring("races", [FREE_THREADED])).set_index("case").failure
    assert "left: 1" in failures["load then store"]
    assert "the data was not" in failures["publish, Relaxed"]
    assert failures[["fetch_add", "Mutex", "publish, Release and Acquire"]].isna().all()


@pytest.mark.full
@pytest.mark.parametrize(("name", "code"), [("static_mut.rs", "E0133"), ("not_sync.rs", "E0277")])
def test_rust_refuses_unsafe_globals(name, code):
    answer = detection.refused(name)
    if answer.startswith("There is no rustc"):
        pytest.skip(answer)
    assert code in answer
    assert str(SOURCES) not in answer


@pytest.mark.full
@pytest.mark.parametrize("label", [GIL, FREE_THREADED])
def test_pytest_run_parallel_accepts_the_safe_dispenser(label):
    safe = detection.run_parallel(label, "test_ticket", 0).result
    assert safe["outcome"] == "passed", safe["said"]
    assert detection.run_parallel(label, "test_unsafe_ticket", 0).result["outcome"] in ("passed", "failed")


# ---- the worker's side ----


@pytest.fixture
def worker(monkeypatch):
    """The module that runs in the measured processes."""
    monkeypatch.setattr(sys, "path", [str(SOURCES), str(SOURCES.parent), *sys.path])
    for name in ("arms", "threads"):
        monkeypatch.setitem(sys.modules, name, None)
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location("races_experiments", SOURCES / "experiments.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("spans", "pairs", "overlapped"),
    [
        ([(0, 10), (10, 20), (30, 40)], 0, 0),
        ([(0, 10), (0, 10)], 1, 1),
        ([(0, 10), (5, 15), (20, 30)], 1 / 3, 5 / 25),
        ([(0, 100), (10, 20), (30, 40)], 2 / 3, 20 / 100),
    ],
)
def test_what_is_made_of_the_visits(worker, spans, pairs, overlapped):
    def visits(met=1, core=0):
        seen = {"met": met, "preempted": 1, "first_core": core, "last_core": core}
        return [SimpleNamespace(begin_ns=begin, end_ns=end, **seen) for begin, end in spans]

    found = worker.meeting(visits())
    assert (found["pairs"], found["overlapped"]) == (pytest.approx(pairs), pytest.approx(overlapped))
    assert (found["met"], found["cores"], found["preempted"]) == (1, 1, len(spans))
    assert worker.meeting(visits(core=-1))["cores"] is None
    assert worker.meeting(visits(met=0))["met"] == 0


# ---- the exercises ----


@pytest.mark.full
def test_a_tally_is_tried():
    def lines(source):
        return exercise.check_tally(detection.tried(source))

    assert lines("long tally_of(int value) { return 1 }")[0].startswith("It does not compile")
    assert any("Not correct" in line for line in lines(exercise.racy_tally()))
    safe = lines((detection.EXERCISE / "mutex_per_byte.c").read_text())
    assert safe[0].startswith("Exact")
    assert not any("Not correct" in line for line in safe)
    assert any("ns a byte" in line for line in safe)


MINE = {"lost": 0, "bytes": 100, "threads": 4, "ns_per_byte": 1.0}
FOUND = {"found": RACE, "report": "data race\n    #0 tally tally.c:8"}
NOTHING = {"found": CLEAN, "report": ""}


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        ({"compiler": "1:1: error"}, "It does not compile: 1:1: error"),
        ({"ended": "killed by SIGSEGV", "error": ""}, "Not correct: the stress run ended with killed by SIGSEGV"),
        ({"mine": {"lost": 7, "bytes": 100}}, "Not correct: 7 of 100 bytes"),
        ({"mine": MINE, "sanitizer": FOUND}, "found a data race, #0 tally tally.c:8"),
        ({"mine": MINE, "sanitizer": NOTHING}, "Fast."),
        ({"mine": {**MINE, "ns_per_byte": 9.0}, "sanitizer": NOTHING}, "Not yet fast"),
        ({"mine": MINE, "sanitizer": None}, "This compiler has no ThreadSanitizer"),
    ],
)
def test_correct_comes_before_fast(seen, says):
    lines = exercise.check_tally({**seen, "mutex per byte": {"ns_per_byte": 10.0}})
    assert any(says in line for line in lines)


def test_the_choice_right_wrong_and_not_made():
    seen = dict.fromkeys(exercise.SITUATIONS, Share(3, 30))
    right = {situation: answer for situation, (answer, _) in exercise.SITUATIONS.items()}
    wrong = {one: exercise.SAFE if answer == exercise.UNSAFE else exercise.UNSAFE for one, answer in right.items()}
    assert all(": right;" in line for line in exercise.check_choice(right, seen))
    assert all(": not right;" in line and "3 of 30" in line for line in exercise.check_choice(wrong, seen))
    assert all("answer with" in line for line in exercise.check_choice({}, seen))
    golden = Golden("races")
    situations = results.situations(golden.frame("counter, crossed"), results.money(golden.frame("bank")))
    assert list(situations) == list(exercise.SITUATIONS)
