"""The chapter on races: safe variants are exact in every run on every interpreter; tools find what is racy, and nothing
else.

What unsafe variants lose is a distribution and no business of a test.
"""

import re
from functools import partial
from types import SimpleNamespace

import pandas as pd
import pytest

from ffilab.judge.estimates import Share
from ffilab.measure.case import Program
from ffilab.setup.catalogue import BY_LABEL, FREE_THREADED, GIL
from native.races.calls import extension, meeting
from native.threads import together
from notebooks.races import detection, exercise, experiment, numbers
from notebooks.races.detection import CLEAN, RACE, SOURCES
from tests.helpers.of_chapter import Golden, outcome_of, rows_of


def run(label, what, /, **arguments):
    return rows_of(label, what, {"folder": experiment.FOLDER, **arguments})


# ---- the experiments ----


def test_what_a_thread_and_a_window_take_is_measured():
    (row,) = run(FREE_THREADED, experiment.start_and_work, iterations=100)
    assert set(row) == {"start", "call"}
    rows = run(FREE_THREADED, experiment.double_payments, rounds=5, spread_ns=1000, windows_ns=[0, 100])
    assert [row["window_ns"] for row in rows] == [0, 100]


@pytest.mark.parametrize("way", experiment.WAYS)
def test_safe_counters_are_exact_and_threads_meet_where_they_can(label, way):
    # Where others may come in they come, on a busy machine late; where none may, nobody is waited for that long.
    patience = {"patience_ns": 30_000_000_000} if experiment.lets_others_in(label, way) else {}
    teams = [
        {"threads": 2, "iterations": 50_000, "variants": experiment.VARIANTS, **patience},
        # Attached threads too, where there is no GIL: they would keep out the 8th, 16th and 32nd without room for them.
        {"threads": 40, "iterations": 2_000, "variants": experiment.VARIANTS, **patience},
    ]
    rows = run(label, experiment.crossed_counter, way=way, teams=teams)
    assert len(rows) == 6
    assert all(row["lost"] == 0 for row in rows if row["variant"] != "unsafe")
    if experiment.lets_others_in(label, way):
        for team in teams:
            assert max(row["met"] for row in rows if row["threads"] == team["threads"]) == 1
    else:
        # Who keeps the GIL lets nobody in, and does not wait for ever.
        assert all(row["met"] == row["pairs"] == row["lost"] == 0 for row in rows)


@pytest.mark.parametrize("loader", experiment.LOADERS)
def test_safe_variants_of_all_other_kinds_are_right(label, loader):
    bank = {row["case"]: row for row in run(label, experiment.accounts, loader=loader, threads=20, attempts=3)}
    for case in ("safe", "compare and exchange"):
        assert bank[case]["withdrawn"] + bank[case]["balance"] == numbers.DOLLARS
    wrong = {
        row["kind"]: row["wrong"] for row in run(label, experiment.wrong_answers, loader=loader, slots=50, loops=1_000)
    }
    safe = ("lazy table, mutex", "output buffer, thread-local", "last error, thread-local", "last error, errno")
    assert {wrong[kind] for kind in safe} == {0}


@pytest.mark.parametrize(("label", "on"), [(GIL, True), (FREE_THREADED, True), (FREE_THREADED, False)])
def test_the_talks_program_is_exact_where_it_is_safe_or_has_a_gil(label, on):
    environment = {"PYTHON_GIL": "1"} if on and label == FREE_THREADED else {}
    arguments = {"folder": experiment.FOLDER, "rounds": 2}
    outcome = outcome_of(label, experiment.talks_program, arguments, environment=environment)
    assert outcome.gil_enabled == on
    rows = outcome.result
    once = ["mutex counter", "atomic counter", "bank", "safe bank"]
    assert [row["what"] for row in rows] == ["fast bank"] * 2 + ["unsafe counter"] * 2 + once
    for row in rows:
        if on or row["what"] in ("mutex counter", "atomic counter", "safe bank"):
            assert row.get("lost", row.get("created")) == 0, row
        if row["what"] in ("bank", "safe bank"):
            assert row["withdrawals"] == 20 or (row["what"] == "bank" and not on)


@pytest.mark.parametrize("loader", experiment.LOADERS)
def test_safe_counters_in_rust_are_exact(loader):
    if reason := detection.why_not_built("rust_counter"):
        pytest.skip(reason)
    rows = run(FREE_THREADED, experiment.rust_counter, loader=loader, threads=4, iterations=20_000)
    lost = {row["variant"]: row["lost"] for row in rows}
    assert lost["Rust, fetch_add"] == lost["Rust, Mutex"] == 0


def stress(folder, remedy, threads, loops):
    """For counters what is there and what should be; for reads how many of them were torn."""
    module = extension(folder)
    guarded = module.Guarded()
    if remedy.startswith("read"):
        torn = []
        reader = partial(module.pairs, remedy, loops, False)
        together([partial(module.pairs, remedy, loops // 4, True), lambda: torn.append(reader())])
        return {"value": sum(torn), "expected": 0}
    before = module.total(remedy, guarded)
    together([partial(module.run, remedy, guarded, loops)] * threads)
    return {"value": module.total(remedy, guarded) - before, "expected": threads * loops}


@pytest.mark.parametrize("name", [name for name in experiment.REMEDIES if name not in experiment.UNSAFE])
def test_remedies_are_exact(label, name):
    (row,) = run(label, stress, remedy=name, threads=6, loops=20_000)
    assert row["value"] == row["expected"]


@pytest.mark.parametrize("function", ["first_strong", "sum_locked"])
def test_strong_references_and_critical_sections_do_not_crash(label, function):
    assert run(label, experiment.read_while_changed, function=function, reads=50_000) == [{"reads": 50_000}]


def refusals(folder):
    """What the extension is, and what it says to what cannot be done."""
    module, refused = extension(folder), []
    wrong = [
        (module.increment_keeping, ("unsafe", 1, 1, 0, bytearray(8))),
        (module.increment_keeping, ("no such", 1, 1, 0, bytearray(99))),
        (module.sum_unlocked, ([0.5],)),
    ]
    for function, arguments in wrong:
        try:
            function(*arguments)
        except (TypeError, ValueError) as error:
            refused.append(str(error))
    return {"names": module.names(), "refused": refused}


def test_the_extension_is_what_the_chapter_says(label):
    """It has the remedies of the chapter, its import leaves the GIL off on t-builds, and what cannot be done is
    refused."""
    outcome = outcome_of(label, refusals, {"folder": experiment.FOLDER})
    assert outcome.gil_enabled != BY_LABEL[label].free_threaded
    assert outcome.result == {
        "names": list(experiment.REMEDIES),
        "refused": ["the buffer is too small for a visit", "there is no variant no such", "a dict is asked for"],
    }


# ---- the tools ----


def test_every_variant_of_the_stress_program_is_in_the_table():
    names = re.findall(r'^    \{"([^"]+)", \w+\},$', (SOURCES / "sanitizers" / "stress.c").read_text(), re.M)
    assert names == list(experiment.STRESS)


TOOLS = [
    *((detection.sanitized, variant) for variant in experiment.STRESS),
    *(
        pytest.param(detection.helgrind, variant, marks=pytest.mark.tool("valgrind"))
        for variant in ("counter, unsafe", "counter, mutex")
    ),
]


@pytest.mark.full
@pytest.mark.parametrize(
    ("tool", "variant"), TOOLS, ids=lambda value: value if isinstance(value, str) else value.__name__
)
def test_a_tool_finds_data_races_and_nothing_else(tool, variant):
    seen = tool(variant)
    if seen["found"].startswith("cannot run here"):
        pytest.skip(seen["found"])
    race, _ = experiment.STRESS[variant]
    assert seen["found"] == (RACE if race else CLEAN), seen["report"]
    assert "/" not in seen["report"]


def test_a_report_holds_nothing_of_this_machine():
    report = (
        "==================\n"
        "WARNING: ThreadSanitizer: data race (pid=24550)\n"
        "    #0 unsafe_increment ../library/races.c:22 (stress-tsan+0x27c1) (BuildId: 1f)\n"
        "    #1 unsafe_counter /build/native/races/sanitizers/stress.c:10 (stress-tsan+0x2546)\n"
    )
    assert detection.cleaned(report, lines=2).splitlines() == [
        "WARNING: ThreadSanitizer: data race",
        "    #0 unsafe_increment races.c:22",
    ]


def test_what_was_not_built_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(detection, "LIBRARIES", tmp_path)
    (tmp_path / "stress-tsan").touch()
    assert "no ThreadSanitizer" in detection.sanitized("counter, unsafe")["found"]
    (tmp_path / "missing-loom_model.txt").write_text("no cargo here")
    assert detection.why_not_built("loom_model") == "no cargo here"
    assert detection.why_not_built("rust_counter") is None


@pytest.mark.full
def test_loom_finds_the_lost_update_and_the_missing_barrier():
    if reason := detection.why_not_built("loom_model"):
        pytest.skip(reason)
    failures = {model: Program((experiment.LOOM, model)).run().result["failure"] for model in experiment.MODELS}
    assert "left: 1" in failures["load then store"]
    assert "the data was not" in failures["publish, Relaxed"]
    assert {failures[model] for model in ("fetch_add", "Mutex", "publish, Release and Acquire")} == {None}


@pytest.mark.full
@pytest.mark.parametrize(("name", "code"), [("static_mut.rs", "E0133"), ("not_sync.rs", "E0277")])
def test_rust_refuses_unsafe_globals(name, code):
    answer = experiment.refused(name)
    if answer.startswith("There is no rustc"):
        pytest.skip(answer)
    assert code in answer
    assert str(SOURCES) not in answer


@pytest.mark.full
def test_pytest_run_parallel_accepts_the_safe_dispenser(build):
    for test, right in (("test_ticket", ("passed",)), ("test_unsafe_ticket", ("passed", "failed"))):
        (row,) = run(build, experiment.run_parallel, source=experiment.TICKETS, test=test, threads=8)
        assert row["outcome"] in right, row["said"]


@pytest.mark.parametrize(
    ("spans", "pairs", "overlapped"),
    [([(0, 10), (10, 20), (30, 40)], 0, 0), ([(0, 10), (5, 15), (20, 30)], 1 / 3, 5 / 25)],
)
def test_what_is_made_of_the_visits(spans, pairs, overlapped):
    seen = {"met": 1, "preempted": 1, "first_core": 0, "last_core": 0}
    found = meeting([SimpleNamespace(begin_ns=begin, end_ns=end, **seen) for begin, end in spans])
    assert (found["pairs"], found["overlapped"]) == (pytest.approx(pairs), pytest.approx(overlapped))
    assert (found["met"], found["cores"], found["preempted"]) == (1, 1, len(spans))


# ---- the exercises ----


FOUND = {"found": RACE, "report": "data race\n    #0 unsafe_increment races.c:24"}
NOTHING = {"found": CLEAN, "report": ""}


@pytest.mark.parametrize(
    ("lost", "met", "seen", "says"),
    [
        ([0.1, 0.2, 0], 1, FOUND, "lost in 2 of 3 rounds"),
        ([0, -0.5, 0], 1, NOTHING, "in 1 of 3 rounds the counter is larger"),
        ([0, 0, 0], 1, FOUND, "found a data race, #0 unsafe_increment races.c:24"),
        ([0, 0, 0], 1, NOTHING, ""),
    ],
)
def test_luck_with_a_counter_is_not_enough(lost, met, seen, says):
    faults = exercise.faults(pd.DataFrame({"lost": lost, "met": met}), seen)
    assert says in " ".join(faults)
    assert bool(faults) == bool(says)


def test_threads_that_never_met_have_tried_nothing(monkeypatch):
    runs = pd.DataFrame({"ended": ["ok"] * 3, "lost": [0] * 3, "met": [0] * 3})
    session = SimpleNamespace(run=lambda *_, **__: runs, observe=lambda *_: NOTHING, budget=SimpleNamespace(repeats=1))
    (said,) = exercise.check_counter(session, "")
    assert said.startswith("Too close to call here: the threads never met")


def test_a_counter_that_ends_its_process_is_told_in_one_sentence():
    runs = pd.DataFrame({"ended": ["ok", "killed by SIGSEGV"], "lost": [0.0, None], "met": [1.0, None]})
    session = SimpleNamespace(run=lambda *_, **__: runs, frame=lambda *_, **__: runs, budget=SimpleNamespace(repeats=1))
    assert exercise.check_counter(session, "") == [
        "Not correct: a process that called yours ended so: killed by SIGSEGV."
    ]


def test_the_choice_right_wrong_and_not_made():
    seen = dict.fromkeys(exercise.SITUATIONS, Share(3, 30))
    right = {situation: answer for situation, (answer, _) in exercise.SITUATIONS.items()}
    wrong = {one: exercise.SAFE if answer == exercise.UNSAFE else exercise.UNSAFE for one, answer in right.items()}
    assert all(": right;" in line for line in exercise.check_choice(right, seen))
    assert all(": not so;" in line and "3 of 30" in line for line in exercise.check_choice(wrong, seen))
    assert all("Choose from" in line for line in exercise.check_choice({}, seen))
    golden = Golden("races")
    situations = numbers.situations(golden.frame("counter, crossed"), numbers.money(golden.frame("bank")))
    assert list(situations) == list(exercise.SITUATIONS)
