"""The chapter on races: safe variants are exact in every run on every interpreter; tools find what is racy, and nothing else.

What unsafe variants lose is a distribution and no business of a test.
"""

import json
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

from ffilab import draw
from ffilab.bench.case import Case
from ffilab.bench.plan import EMPTY, Arm
from ffilab.bench.record import Record
from ffilab.bench.session import Measuring
from ffilab.judge import ledger
from ffilab.judge.claims import declared
from ffilab.paths import resolved
from ffilab.provision import installed
from ffilab.provision.catalogue import BY_LABEL, FREE_THREADED, GIL
from notebooks.races import claims, detection, exercise, experiment, figures, results
from notebooks.races.detection import CLEAN, RACE, SOURCES

RUNS = 3


def rows(label, function, /, **arguments):
    """What RUNS processes brought back, each as a list of rows."""
    case = Case(label, experiment.EXPERIMENTS, function, {"folder": experiment.FOLDER, **arguments})
    for _ in range(RUNS):
        outcome = case.run()
        assert outcome.ended == "ok", outcome.error
        yield outcome.result if isinstance(outcome.result, list) else [outcome.result]


@pytest.mark.slow
@pytest.mark.parametrize("way", experiment.WAYS)
def test_safe_counters_are_exact(labels, way):
    teams = [{"threads": 2, "iterations": 50_000}, {"threads": 20, "iterations": 5_000}]
    for label in labels:
        for result in rows(label, "crossed_counter", way=way, teams=teams):
            assert len(result) == 6
            assert all(row["lost"] == 0 for row in result if row["variant"] != "unsafe")
            assert all(0 <= row["lost"] < 1 for row in result)


@pytest.mark.slow
@pytest.mark.parametrize("loader", experiment.LOADERS)
def test_safe_variants_of_all_other_kinds_are_right(labels, loader):
    for label in labels:
        for result in rows(label, "original_counter", loader=loader, threads=10, iterations=5_000):
            left = {row["variant"]: row["left"] for row in result}
            assert left["mutex"] == left["atomic"] == 50_000
        for result in rows(label, "bank", loader=loader, threads=20, attempts=3):
            bank = {row["case"]: row for row in result}
            for case in ("safe, sleep", "safe, fast", "compare and exchange, sleep"):
                assert bank[case]["withdrawn"] + bank[case]["balance"] == results.DOLLARS
        for result in rows(label, "kinds", loader=loader, slots=50, loops=1_000):
            wrong = {row["kind"]: row["wrong"] for row in result}
            for kind in (
                "lazy table, mutex",
                "output buffer, thread-local",
                "last error, thread-local",
                "last error, errno",
            ):
                assert wrong[kind] == 0


@pytest.mark.slow
@pytest.mark.parametrize("loader", experiment.LOADERS)
def test_safe_counters_in_rust_are_exact(labels, loader):
    if reason := detection.why_not_built("rust_counter"):
        pytest.skip(reason)
    for label in labels:
        for result in rows(label, "rust_counter", loader=loader, threads=4, iterations=20_000):
            lost = {row["variant"]: row["lost"] for row in result}
            assert lost["Rust, fetch_add"] == lost["Rust, Mutex"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in experiment.REMEDIES if name not in experiment.UNSAFE])
def test_remedies_are_exact(labels, name):
    for label in labels:
        for [row] in rows(label, "stress", remedy=name, threads=6, loops=20_000):
            assert row["value"] == row["expected"]


@pytest.mark.slow
@pytest.mark.parametrize("function", ["first_strong", "sum_locked"])
def test_strong_references_and_critical_sections_do_not_crash(labels, function):
    for label in labels:
        list(rows(label, "borrowed", function=function, reads=50_000))


@pytest.mark.slow
def test_a_crash_is_a_result(quiet_progress):
    runs = experiment.borrowed(Measuring("races", [FREE_THREADED]))
    assert set(runs.what) == set(experiment.BORROWED)
    assert all(ended == "ok" or ended.startswith(("killed", "exit", "timeout")) for ended in runs.ended)
    assert set(runs[runs.what.str.contains("strong|critical")].ended) == {"ok"}
    assert len(figures.borrowed_table(runs)) == len(experiment.BORROWED)


@pytest.mark.slow
def test_the_extension_is_what_the_chapter_says(labels):
    """The same remedies, and its import leaves the GIL off on t-builds."""
    program = (
        f"import json, sys; sys.path.insert(0, {str(SOURCES)!r}); import arms; "
        f"m = arms.load({resolved(experiment.FOLDER)!r}); "
        "print(json.dumps([m.names(), getattr(sys, '_is_gil_enabled', lambda: True)()]))"
    )
    for label in labels:
        python = installed.load(BY_LABEL[label]).python
        names, gil = json.loads(subprocess.run([python, "-I", "-c", program], capture_output=True, check=True).stdout)
        assert names == list(experiment.REMEDIES)
        assert gil != BY_LABEL[label].free_threaded


def test_every_remedy_has_its_occasion():
    assert list(figures.WHEN) == list(experiment.REMEDIES)


# The tools.


def test_every_variant_of_the_stress_program_is_in_the_table():
    names = re.findall(r'^    \{"([^"]+)", \w+\},$', (SOURCES / "sanitizers" / "stress.c").read_text(), re.M)
    assert names == list(detection.STRESS)


@pytest.mark.slow
@pytest.mark.parametrize("variant", detection.STRESS)
def test_thread_sanitizer_finds_data_races_and_nothing_else(variant):
    seen = detection.sanitized(variant)
    if seen["found"].startswith("cannot run here"):
        pytest.skip(seen["found"])
    race, _ = detection.STRESS[variant]
    assert seen["found"] == (RACE if race else CLEAN), seen["report"]
    assert "/" not in seen["report"]


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "race"), [("counter, unsafe", True), ("counter, mutex", False)])
def test_helgrind_knows_locks(variant, race):
    seen = detection.helgrind(variant)
    if seen["found"].startswith("cannot run here"):
        pytest.skip(seen["found"])
    assert seen["found"] == (RACE if race else CLEAN), seen["report"]


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


def test_a_compiler_without_thread_sanitizer_is_said(monkeypatch, tmp_path):
    (tmp_path / "stress-tsan").touch()
    monkeypatch.setattr(detection, "LIBRARIES", tmp_path)
    said = detection.sanitized("counter, unsafe")
    assert "no ThreadSanitizer" in said["found"]
    found = pd.DataFrame(
        [{"variant": variant, "tool": tool, **said} for variant in detection.STRESS for tool in detection.TOOLS]
    )
    assert results.report(found, "counter, unsafe").startswith("cannot run here")
    assert set(figures.detection_table(found).ThreadSanitizer) == {said["found"]}


@pytest.mark.slow
def test_what_was_not_built_is_said(monkeypatch, tmp_path, quiet_progress):
    monkeypatch.setattr(detection, "LIBRARIES", tmp_path)
    for project in ("loom_model", "rust_counter"):
        (tmp_path / f"missing-{project}.txt").write_text("no cargo here")
    session = Measuring("races", [FREE_THREADED])
    assert detection.explored(session).empty
    assert session.observed("not built", "loom_model") == "no cargo here"
    figures.glue_rust(detection.rust_counter(session))
    assert session.observed("not built", "rust_counter") == "no cargo here"


def test_false_alarms_and_misses_are_named():
    assert results.verdict_on_tool(RACE, True) == RACE
    assert results.verdict_on_tool(CLEAN, False) == CLEAN
    assert results.verdict_on_tool(RACE, False).endswith("(false alarm)")
    assert results.verdict_on_tool(CLEAN, True).endswith("(missed)")
    assert results.verdict_on_tool("cannot run here", True) == "cannot run here"


@pytest.mark.slow
def test_loom_finds_the_lost_update_and_the_missing_barrier(quiet_progress):
    if reason := detection.why_not_built("loom_model"):
        pytest.skip(reason)
    explored = detection.explored(Measuring("races", [FREE_THREADED]))
    failures = explored.set_index("case").failure
    assert "left: 1" in failures["load then store"]
    assert "the data was not" in failures["publish, Relaxed"]
    assert failures[["fetch_add", "Mutex", "publish, Release and Acquire"]].isna().all()
    assert figures.explored_table(explored).failure.tolist().count("none") == 3


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("static_mut.rs", "E0133"), ("not_sync.rs", "E0277")])
def test_rust_refuses_unsafe_globals(name, code):
    said = detection.refused(name)
    if said.startswith("There is no rustc"):
        pytest.skip(said)
    assert code in said
    assert str(SOURCES) not in said


@pytest.mark.slow
@pytest.mark.parametrize("label", [GIL, FREE_THREADED])
def test_pytest_run_parallel_accepts_the_safe_dispenser(label):
    safe = detection.run_parallel(label, "test_ticket", 0).result
    assert safe["outcome"] == "passed", safe["said"]
    assert "8 threads" in safe["said"] or "PARALLEL" in safe["said"].upper(), safe["said"]
    assert detection.run_parallel(label, "test_unsafe_ticket", 0).result["outcome"] in ("passed", "failed")


# The exercise.


@pytest.mark.slow
def test_self_check_of_the_exercise():
    def said(source):
        return exercise.check_tally(detection.tried(source))

    assert said("long tally_of(int value) { return 1 }")[0].startswith("It does not compile")
    assert any("Not correct" in line for line in said(exercise.racy_tally()))
    safe = said((detection.EXERCISE / "mutex_per_byte.c").read_text())
    assert safe[0].startswith("Exact")
    assert not any("Not correct" in line for line in safe)
    assert any("ns a byte" in line for line in safe)


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        ({"compiler": "1:1: error"}, "It does not compile: 1:1: error"),
        (
            {"ended": "killed by SIGSEGV", "error": "no message"},
            "Not correct: the stress run ended with killed by SIGSEGV",
        ),
        ({"mine": {"lost": 7, "bytes": 100}}, "Not correct: 7 of 100 bytes"),
    ],
)
def test_the_first_mistake_ends_the_self_check(seen, says):
    [line] = exercise.check_tally(seen)
    assert line.startswith(says)


@pytest.mark.parametrize(
    ("sanitizer", "ns", "says"),
    [
        ({"found": RACE, "report": "data race\n    #0 tally tally.c:8"}, 1.0, "found a data race, #0 tally tally.c:8"),
        ({"found": CLEAN, "report": ""}, 1.0, "Fast."),
        ({"found": CLEAN, "report": ""}, 9.0, "Not yet fast"),
        (None, 1.0, "This compiler has no ThreadSanitizer"),
    ],
)
def test_correct_comes_before_fast(sanitizer, ns, says):
    mine = {"lost": 0, "bytes": 100, "threads": 4, "ns_per_byte": ns}
    lines = exercise.check_tally({"mine": mine, "sanitizer": sanitizer, "mutex per byte": {"ns_per_byte": 10.0}})
    assert any(says in line for line in lines)


# The analysis, on data whose truth is known.


def made_up():
    """Unsafe counters lose in 24 of 30 runs where nothing keeps the GIL; everything else is exact."""
    crossed, bank = [], []
    for label in (GIL, FREE_THREADED):
        free = label == FREE_THREADED
        for run in range(30):
            for way, releases in experiment.WAYS.items():
                racy = (releases or free) and run < 24
                for team in experiment.TEAMS:
                    for variant in results.VARIANTS:
                        lost = 0.3 + 0.001 * run if racy and variant == "unsafe" else 0.0
                        crossed.append(
                            {
                                "interpreter": label,
                                "way": way,
                                "threads": team["threads"],
                                "variant": variant,
                                "lost": lost,
                            }
                        )
            for loader in experiment.LOADERS:
                racy = loader == "ctypes CDLL" or free
                for case in ("unsafe, sleep", "safe, sleep", "unsafe, fast", "safe, fast"):
                    bad = racy and (case == "unsafe, sleep" or (case == "unsafe, fast" and run < 12))
                    created = (14_000 if "sleep" in case else 20) + 10 * run if bad else 0
                    bank.append(
                        {
                            "interpreter": label,
                            "loader": loader,
                            "case": case,
                            "withdrawals": 20,
                            "withdrawn": results.DOLLARS + created,
                            "balance": 0,
                        }
                    )
    python = [
        {
            "interpreter": label,
            "interval": interval,
            "statement": statement,
            "lost": float(label == FREE_THREADED) * 0.2,
        }
        for label in (GIL, FREE_THREADED)
        for interval in experiment.INTERVALS
        for statement in ("total += 1", "total += one()")
        for _ in range(30)
    ]
    return pd.DataFrame(crossed), results.money(pd.DataFrame(bank)), pd.DataFrame(python)


def test_the_matrix_counts_what_was_put_in():
    crossed, *_ = made_up()
    matrix = results.safety_matrix(crossed, GIL).set_index(["safe", "way"])
    assert matrix.loc[(False, "ctypes CDLL")].hits == 48
    assert matrix.loc[(False, "ctypes PyDLL")].hits == 0
    assert matrix.loc[(True, "ctypes CDLL")].hits == 0
    words = figures.matrix_table(crossed)
    assert words[f"{GIL}, GIL kept"].tolist() == ["no loss seen: 0 of 240", "no loss seen: 0 of 120"]
    assert words[f"{GIL}, GIL released"].tolist()[1] == "race: 96 of 120"


def test_money_from_nothing_and_updates_lost():
    bank = pd.DataFrame([{"withdrawn": 1000, "balance": 0}, {"withdrawn": 1050, "balance": 100}])
    assert results.money(bank).created.tolist() == [0, 150]
    original = pd.DataFrame([{"left": experiment.THREADS * experiment.ITERATIONS}, {"left": 250_000}])
    assert results.lost_updates(original).lost.tolist() == [0, 0.5]


def test_every_claim_gets_what_its_rule_asks_for():
    handed = claims.handed_in("races", *made_up()).complete()
    assert not any(handed.missing.values())
    verdicts = {
        claim.id: {ledger.judge_test(test, handed.measurements[claim.id][test.measured])[0] for test in claim.tests}
        for claim in declared("races").claims
    }
    assert verdicts["A16"] == verdicts["A17"] == verdicts["A18"] == {ledger.HOLDS}
    assert verdicts["C7"] == {ledger.DOES_NOT_HOLD}
    lost = handed.measurements["A15"][f"updates lost: unsafe, PyDLL, {FREE_THREADED}"]
    assert lost.interval.low < 0.31 < lost.interval.high


def test_an_interpreter_that_is_absent_leaves_its_part_out():
    crossed, bank, python = (frame[frame.interpreter == FREE_THREADED] for frame in made_up())
    handed = claims.handed_in("races", crossed, bank, python).complete()
    assert handed.measurements["C7"] == {}
    assert f"bad runs: unsafe, PyDLL, {GIL}" not in handed.measurements["A15"]


def test_the_model_of_the_window_is_that_of_two_random_moments():
    rng = np.random.default_rng(4)
    moments = rng.uniform(0, experiment.SPREAD_NS, (2, 100_000))
    for window in experiment.WINDOWS_NS:
        simulated = (abs(moments[0] - moments[1]) < window).mean()
        assert results.model_of_payments(window) == pytest.approx(simulated, abs=0.01)


def test_where_the_gil_may_go():
    for statement, places in (("total += 1", 0), ("total += one()", 1)):
        assert results.hand_overs_between(pd.DataFrame(experiment.instructions(statement))) == places


def test_remedies_table():
    rng = np.random.default_rng(2)
    cells = [
        f"{label}/{arm.name}" for label in (GIL, FREE_THREADED) for arm in (*experiment.arms(), Arm(EMPTY, "", ""))
    ]
    blocks = [
        {"restart": restart, "ns": {cell: int(1e6 * rng.normal(5, 0.01)) for cell in cells}}
        for restart in range(6)
        for _ in range(4)
    ]
    run = {"plan": {"seed": 1, "interpreters": [GIL, FREE_THREADED], "blocks": 4}}
    record = Record(None, run, loops=dict.fromkeys(cells, 1_000_000), blocks=blocks)
    rivals = pd.DataFrame(
        [
            {"remedy": name, "threads": threads, "together": 1e9 / rng.normal(7, 0.1)}
            for name in experiment.REMEDIES
            for threads in (2, 4)
            for _ in range(6)
        ]
    )
    table = figures.remedies_table(record, results.with_rivals(rivals))
    assert len(table) == len(experiment.REMEDIES)
    assert sum("not safe" in name for name in table.remedy) == len(experiment.UNSAFE)
    assert float(table.set_index("remedy")[f"alone, {FREE_THREADED}"]["atomic"].split()[0]) == pytest.approx(
        5, rel=0.01
    )
    assert float(table.set_index("remedy")[f"4 threads, {FREE_THREADED}"]["atomic"].split()[0]) == pytest.approx(
        7, rel=0.05
    )
    assert len(draw.false_alarms(record, results.COPIES)) == 2
