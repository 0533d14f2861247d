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
from ffilab.judge import characteristics, ledger, simulation, verdicts
from ffilab.judge.claims import declared
from ffilab.judge.estimates import Share
from ffilab.judge.processes import chosen
from ffilab.judge.rules import DOES_NOT_HOLD, HOLDS, UNDECIDED
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


RUNS_OF_A_CASE = 30


def made_up(n=RUNS_OF_A_CASE):
    """Four in five unsafe counters lose updates where nothing keeps the GIL, in n processes a case; all else is exact.

    As {experiment: frame}, with the names that `claims.handed_in` has for them.
    """
    original, crossed, bank, python = [], [], [], []
    process = 0
    for label in (GIL, FREE_THREADED):
        free = label == FREE_THREADED
        for run in range(n):
            for way, releases in experiment.WAYS.items():
                process += 1
                racy = (releases or free) and run < 0.8 * n
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
                                "process": process,
                            }
                        )
            for loader in experiment.LOADERS:
                process += 1
                racy = loader == "ctypes CDLL" or free
                mine = {"interpreter": label, "loader": loader, "process": process}
                for case in ("unsafe, sleep", "safe, sleep", "unsafe, fast", "safe, fast"):
                    bad = racy and (case == "unsafe, sleep" or (case == "unsafe, fast" and run < 0.4 * n))
                    created = (14_000 if "sleep" in case else 20) + 10 * run if bad else 0
                    money = {"withdrawals": 20, "withdrawn": results.DOLLARS + created, "balance": 0}
                    bank.append({**mine, "case": case, **money})
                for variant in results.VARIANTS:
                    left = experiment.THREADS * experiment.ITERATIONS - (racy and variant == "unsafe" and run == 7)
                    original.append({**mine, "variant": variant, "left": left})
            process += 1
            python += [
                {
                    "interpreter": label,
                    "interval": interval,
                    "statement": statement,
                    "lost": 0.2 if free else 0.0,
                    "process": process,
                }
                for interval in experiment.INTERVALS
                for statement in ("total += 1", "total += one()")
            ]
    return {
        "original": results.lost_updates(pd.DataFrame(original)),
        "crossed": pd.DataFrame(crossed),
        "bank": results.money(pd.DataFrame(bank)),
        "python": pd.DataFrame(python),
    }


def judged(frames):
    """{claim: its row of the ledger} from made-up frames."""
    handed = claims.handed_in("races", **frames).complete()
    return {row["id"]: row for _, row in ledger.rows_of(handed, {"is_result": True, "minutes": None}, [])}


def part(row, of, kind):
    """The answer of the test of a kind whose part contains these words."""
    [found] = [one["verdict"] for one in row["parts"] if of in one["part"] and one["kind"] == kind]
    return found


def where(frame, **which):
    """Which rows of a frame these are."""
    return frame.index.isin(chosen(frame, **which).index)


def test_the_matrix_counts_processes():
    crossed = made_up()["crossed"]
    matrix = results.safety_matrix(crossed, GIL).set_index(["safe", "way"])
    # Both teams of a process lose updates, and it counts once.
    assert (matrix.loc[(False, "ctypes CDLL")].events, matrix.loc[(False, "ctypes CDLL")].trials) == (24, 30)
    assert matrix.loc[(False, "ctypes PyDLL")].events == 0
    assert matrix.loc[(True, "ctypes CDLL")].events == 0
    words = figures.matrix_table(crossed)
    assert words[f"{GIL}, GIL kept"].tolist() == ["no loss seen: 0 of 60", "no loss seen: 0 of 60"]
    assert words[f"{GIL}, GIL released"].tolist()[1] == "race: 48 of 60"


def test_a_process_is_one_trial_however_many_of_its_rows_are_bad():
    runs = pd.DataFrame({"process": [1, 1, 1, 2, 2, 2], "case": list("abcabc"), "lost": [0.1, 0.2, 0.0, 0.0, 0.0, 0.0]})
    assert results.bad_processes(runs, "lost") == Share(1, 2)
    assert results.bad_processes(runs, "lost", case="c") == Share(0, 2)
    assert results.bad_processes(runs, "lost", case="d") is None


def test_the_prose_names_each_way_by_itself():
    crossed = made_up()["crossed"]
    assert figures.bad_words(crossed, "lost", interpreter=GIL, way="ctypes CDLL", variant="unsafe").startswith(
        "24 of 30"
    )
    assert "0 of 30" in figures.crossed_words(crossed)
    assert figures.bad_words(crossed, "lost", way="no such way") == draw.NOT_MEASURED


def test_money_from_nothing_and_updates_lost():
    bank = pd.DataFrame([{"withdrawn": 1000, "balance": 0}, {"withdrawn": 1050, "balance": 100}])
    assert results.money(bank).created.tolist() == [0, 150]
    original = pd.DataFrame([{"left": experiment.THREADS * experiment.ITERATIONS}, {"left": 250_000}])
    assert results.lost_updates(original).lost.tolist() == [0, 0.5]


def test_every_claim_gets_what_its_rule_asks_for():
    handed = claims.handed_in("races", **made_up()).complete()
    assert not any(handed.missing.values())
    found = {identifier: row["verdict"] for identifier, row in judged(made_up()).items()}
    assert found == {
        "A15": HOLDS,
        "A16": HOLDS,
        "A17": verdicts.IN_DIRECTION,
        "A18": HOLDS,
        "C7": verdicts.UNDECIDED_HERE,
    }
    lost = handed.measurements["A15"][f"updates lost: unsafe, PyDLL, {FREE_THREADED}"]
    assert lost.interval.low < 0.31 < lost.interval.high


def test_what_simulated_records_hold_as_published():
    for truth, right in (("as published", {HOLDS}), ("no effect", {verdicts.REFUTED, verdicts.UNDECIDED_HERE})):
        found = characteristics.rows("races", truth, "full", 0, noise=0)
        assert list(found) == [claim.id for claim in declared("races").claims]
        assert {row["verdict"] for row in found.values()} == right


# The least that can go wrong in a run: a dollar, and one update of many.
LEAST = {"created": 1, "lost": 1e-5}
# What has to be put into which experiment so that something happens, by claim, part and kind of the test.
OCCURS = [
    ("A15", "the talk's own program", "original", {"interpreter": FREE_THREADED, "loader": results.PYDLL}),
    ("A15", "set off together lose", "crossed", {"interpreter": FREE_THREADED, "way": results.PYDLL}),
    ("A16", "is overdrawn", "bank", {"interpreter": FREE_THREADED, "case": "unsafe, sleep", "loader": results.PYDLL}),
    ("A18", "ctypes CDLL, which releases", "crossed", {"interpreter": GIL, "way": "ctypes CDLL"}),
    ("A18", "a C API that releases", "crossed", {"interpreter": GIL, "way": "C API, releasing"}),
    ("A18", "loses updates through ctypes PyDLL", "crossed", {"interpreter": FREE_THREADED, "way": "ctypes PyDLL"}),
    ("A18", "the C API, attached", "crossed", {"interpreter": FREE_THREADED, "way": "C API, keeping"}),
    ("A18", "the C API, detached", "crossed", {"interpreter": FREE_THREADED, "way": "C API, releasing"}),
    ("C7", "", "python", {"interpreter": GIL, "interval": "1 µs", "statement": "total += 1"}),
]


@pytest.mark.parametrize(("claim", "of", "which", "rows"), OCCURS)
def test_one_run_proves_that_it_happens_and_none_leaves_it_open(claim, of, which, rows):
    column = "created" if which == "bank" else "lost"
    frames = made_up()
    frame = frames[which]
    frame.loc[where(frame, **rows), column] = 0
    assert part(judged(frames)[claim], of, "occurs") == UNDECIDED
    unsafe = {} if which in ("bank", "python") else {"variant": "unsafe"}
    frame.loc[chosen(frame, **rows, **unsafe).index[0], column] = LEAST[column]
    assert part(judged(frames)[claim], of, "occurs") == HOLDS


PY = {"way": results.PYDLL}
NEVER = [
    ("A15", "with the GIL nothing", "crossed", {"interpreter": GIL, "variant": "unsafe", **PY}),
    ("A15", "the mutex version", "crossed", {"interpreter": FREE_THREADED, "variant": "mutex", **PY}),
    ("A15", "the atomic version", "crossed", {"interpreter": FREE_THREADED, "variant": "atomic", **PY}),
    ("A16", "with the GIL", "bank", {"interpreter": GIL, "case": "unsafe, sleep", "loader": results.PYDLL}),
    ("A16", "the safe version", "bank", {"interpreter": FREE_THREADED, "case": "safe, sleep", "loader": results.PYDLL}),
    ("A17", "with the GIL", "bank", {"interpreter": GIL, "case": "unsafe, fast", "loader": results.PYDLL}),
    ("A18", "ctypes PyDLL, which keeps", "crossed", {"interpreter": GIL, "variant": "unsafe", **PY}),
    ("A18", "a C API that keeps", "crossed", {"interpreter": GIL, "variant": "unsafe", "way": "C API, keeping"}),
    *(
        ("A18", f"{'with' if label == GIL else 'without'} the GIL, a{'n' * (variant == 'atomic')} {variant}", "crossed")
        + ({"interpreter": label, "variant": variant, "way": "C API, releasing"},)
        for label in (GIL, FREE_THREADED)
        for variant in results.SAFE
    ),
]


@pytest.mark.parametrize(("claim", "of", "which", "rows"), NEVER)
def test_one_bad_run_refutes_that_it_never_happens_and_too_few_leave_it_open(claim, of, which, rows):
    assert part(judged(made_up())[claim], of, "never") == HOLDS
    # A lock is the same by all four ways, and four times seven runs are still too few.
    assert part(judged(made_up(7))[claim], of, "never") == UNDECIDED
    frames = made_up()
    frame = frames[which]
    column = "created" if which == "bank" else "lost"
    frame.loc[chosen(frame, **rows).index[0], column] = LEAST[column]
    row = judged(frames)[claim]
    assert part(row, of, "never") == DOES_NOT_HOLD
    assert row["verdict"] in (verdicts.IN_PART, verdicts.REFUTED)
    # And nothing else: a bad run of one kind is none of another one.
    assert [one["verdict"] for one in row["parts"]].count(DOES_NOT_HOLD) == 1


SHARE = ("A15", "the share that fifty threads lose", "crossed", "lost")
MADE = ("A16", "the dollars from nothing", "bank", "created")


@pytest.mark.parametrize(
    ("what", "values", "side", "size"),
    [
        (SHARE, [0.35, 0.37, 0.363], HOLDS, HOLDS),
        (SHARE, [0.006, 0.008, 0.010], HOLDS, DOES_NOT_HOLD),
        (SHARE, [0.0, 0.36, 0.72], HOLDS, UNDECIDED),
        # Seldom enough to be no more than one update in a thousand, or more.
        (SHARE, [0.0, 0.0, 0.0, 0.0, 0.0, 0.003], UNDECIDED, DOES_NOT_HOLD),
        (SHARE, [0.0], DOES_NOT_HOLD, DOES_NOT_HOLD),
        (MADE, [14_000, 14_300, 14_600], HOLDS, HOLDS),
        (MADE, [2_000, 2_500, 3_000], HOLDS, DOES_NOT_HOLD),
        (MADE, [0, 14_300, 28_600], HOLDS, UNDECIDED),
        (MADE, [0, 0, 0, 0, 0, 200], UNDECIDED, DOES_NOT_HOLD),
        (MADE, [0], DOES_NOT_HOLD, DOES_NOT_HOLD),
    ],
)
def test_how_much_is_lost_and_made(what, values, side, size):
    claim, of, which, column = what
    frames = made_up()
    frame = frames[which]
    rows = {"lost": {"variant": "unsafe", **PY}, "created": {"case": "unsafe, sleep", "loader": results.PYDLL}}[column]
    chosen_rows = where(frame, interpreter=FREE_THREADED, **rows)
    each = 2 if which == "crossed" else 1  # a row for each team
    frame.loc[chosen_rows, column] = np.repeat(np.resize(values, RUNS_OF_A_CASE), each).astype(float)
    row = judged(frames)[claim]
    assert (part(row, of, "side"), part(row, of, "size")) == (side, size)


@pytest.mark.parametrize(
    ("slow", "fast", "n", "side", "size"),
    [
        (150, 60, 150, HOLDS, HOLDS),
        (30, 12, 30, HOLDS, UNDECIDED),
        (30, 0, 30, HOLDS, DOES_NOT_HOLD),
        (15, 12, 30, UNDECIDED, DOES_NOT_HOLD),
        (0, 20, 30, DOES_NOT_HOLD, DOES_NOT_HOLD),
    ],
)
def test_a_narrow_window_is_hit_less_often(slow, fast, n, side, size):
    frames = made_up(n)
    bank = frames["bank"]
    for case, events in (("unsafe, sleep", slow), ("unsafe, fast", fast)):
        rows = where(bank, interpreter=FREE_THREADED, loader=results.PYDLL, case=case)
        bank.loc[rows, "created"] = (np.arange(n) < events) * 50
    row = judged(frames)["A17"]
    assert (part(row, "with the sleep", "side"), part(row, "with the sleep", "size")) == (side, size)


def with_a_planted_bug(seed):
    """Thirty processes whose mutex loses one update in one of twenty, in the place of those of a session in which all claims
    hold: how many lost it, and the rows of the ledger."""
    case = Case(
        FREE_THREADED,
        "tests/planted_mutex.py",
        "planted_counter",
        {"way": results.PYDLL},
        {"folder": experiment.FOLDER, "threads": 2, "iterations": 1_000, "seed": "{seed}"},
    )
    seeds, events = np.random.default_rng(seed), 0
    session = simulation.simulate("races", "as published", "quick")
    replaced = [
        child
        for child in session.record.children
        if (child["title"], child["interpreter"], child["factors"]) == ("counter, crossed", FREE_THREADED, case.columns)
    ]
    assert len(replaced) == experiment.RUNS
    for child in replaced:
        outcome = case.run(int(seeds.integers(2**32)))
        assert outcome.ended == "ok", outcome.error
        child["result"] = [row for row in child["result"] if row["variant"] == "unsafe"] + outcome.result
        events += any(row["lost"] for row in outcome.result)
    handed = ledger.measured(session)
    rows = {row["id"]: row for _, row in ledger.rows_of(handed, {"is_result": True, "minutes": None}, [])}
    return events, rows


@pytest.mark.slow
def test_a_remedy_that_now_and_then_fails_never_holds_once_it_was_seen():
    seen = []
    for seed in range(6):
        events, rows = with_a_planted_bug(seed)
        seen.append(events)
        for claim, of in (("A15", "the mutex version"), ("A18", "without the GIL, a mutex")):
            assert part(rows[claim], of, "never") == (DOES_NOT_HOLD if events else HOLDS)
            assert (rows[claim]["verdict"] in (HOLDS, verdicts.IN_DIRECTION)) == (not events)
    assert any(seen), seen


def test_an_interpreter_that_is_absent_leaves_its_part_out():
    frames = {name: frame[frame.interpreter == FREE_THREADED] for name, frame in made_up().items()}
    handed = claims.handed_in("races", **frames).complete()
    assert handed.measurements["C7"] == {}
    assert f"bad runs: unsafe, PyDLL, {GIL}" not in handed.measurements["A15"]
    assert part(judged(frames)["A15"], "with the GIL nothing", "never") == verdicts.NO_NUMBER


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
