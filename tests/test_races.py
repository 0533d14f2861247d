"""The chapter on races: safe variants are exact in every run on every kernel; tools find what is racy, and nothing else.

What unsafe variants lose is a distribution and no business of a test.
"""

import json
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

from ffilab import kernels
from ffilab.bench import child
from ffilab.bench.plan import EMPTY, Arm
from ffilab.bench.record import Record
from ffilab.corners import races, races_detection, races_page
from ffilab.judge import ledger
from ffilab.provision.catalogue import BY_LABEL

LABELS = [kernel.label for kernel in kernels.present()]
RUNS = 3


def results(label, experiment, *arguments):
    for _ in range(RUNS):
        outcome = child.run(label, races.EXPERIMENTS, experiment, races.LIBRARIES, *arguments)
        assert outcome.ended == "ok", outcome.error
        yield outcome.result


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("way", races.WAYS)
def test_safe_counters_are_exact(label, way):
    for result in results(label, "crossed_counter", way, 2, 50_000, 20, 5_000):
        assert len(result) == 6
        assert all(lost == 0 for name, lost in result.items() if "unsafe" not in name)
        assert all(0 <= lost < 1 for lost in result.values())


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("loader", races.LOADERS)
def test_safe_variants_of_all_other_kinds_are_right(label, loader):
    for result in results(label, "original_counter", loader, 10, 5_000):
        assert result["mutex"] == result["atomic"] == 50_000
    for result in results(label, "bank", loader, 20, 3):
        for case in ("safe, sleep", "safe, fast", "compare and exchange, sleep"):
            assert result[case]["withdrawn"] + result[case]["balance"] == 1000
    for result in results(label, "kinds", loader, 50, 1_000):
        for kind in (
            "lazy table, mutex",
            "output buffer, thread-local",
            "last error, thread-local",
            "last error, errno",
        ):
            assert result[kind] == 0
    for result in results(label, "rust_counter", loader, 4, 20_000):
        assert result.get("Rust, fetch_add", 0) == result.get("Rust, Mutex", 0) == 0


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("name", [name for name in races.REMEDIES if name not in races.UNSAFE])
def test_remedies_are_exact(label, name):
    for result in results(label, "stress", name, 6, 20_000):
        assert result["value"] == result["expected"]


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("function", ["first_strong", "sum_locked"])
def test_strong_references_and_critical_sections_do_not_crash(label, function):
    list(results(label, "borrowed", function, 50_000))


def test_a_crash_is_a_result(quiet_progress):
    runs = races.borrowed(child.Session("test-races", ["3.14t"]), ["3.14t"])
    assert set(runs.function) == set(races.BORROWED)
    assert all(ended == "ok" or ended.startswith(("killed", "exit", "timeout")) for ended in runs.ended)
    assert set(runs[runs.function.str.contains("strong|critical")].ended) == {"ok"}
    assert len(races_page.borrowed_table(runs)) == len(races.BORROWED)


@pytest.mark.parametrize("label", LABELS)
def test_the_extension_is_what_the_chapter_says(label):
    """The same remedies, and its import leaves the GIL off on t-builds."""
    program = (
        f"import json, sys; sys.path.insert(0, {str(races.SOURCES)!r}); import arms; "
        f"m = arms.load({str(races.LIBRARIES)!r}); "
        "print(json.dumps([m.names(), getattr(sys, '_is_gil_enabled', lambda: True)()]))"
    )
    python = kernels.load(BY_LABEL[label]).python
    names, gil = json.loads(subprocess.run([python, "-I", "-c", program], capture_output=True, check=True).stdout)
    assert names == list(races.REMEDIES)
    assert gil != label.endswith("t")


# The tools.


def test_every_variant_of_the_stress_program_is_in_the_table():
    names = re.findall(r'^    \{"([^"]+)", \w+\},$', (races.SOURCES / "sanitizers" / "stress.c").read_text(), re.M)
    assert names == list(races_detection.STRESS)


@pytest.mark.parametrize("variant", races_detection.STRESS)
def test_thread_sanitizer_finds_data_races_and_nothing_else(variant):
    found, report = races_detection.stress(variant)
    if found.startswith("cannot run here"):
        pytest.skip(found)
    race, _ = races_detection.STRESS[variant]
    assert found == (races_detection.RACE if race else races_detection.CLEAN), report


@pytest.mark.parametrize(("variant", "race"), [("counter, unsafe", True), ("counter, mutex", False)])
def test_helgrind_knows_locks(variant, race):
    found, report = races_detection.helgrind([races.LIBRARIES / "stress", variant])
    if found.startswith("cannot run here"):
        pytest.skip(found)
    assert found == (races_detection.RACE if race else races_detection.CLEAN), report


def test_a_compiler_without_thread_sanitizer_is_said(monkeypatch, tmp_path):
    (tmp_path / "stress-tsan").touch()
    monkeypatch.setattr(races_detection, "LIBRARIES", tmp_path)
    assert "no ThreadSanitizer" in races_detection.stress("counter, unsafe")[0]
    assert races_detection.report_excerpt("counter, unsafe").startswith("cannot run here")
    (tmp_path / "missing-loom_model.txt").write_text("no cargo here")
    assert races_detection.explored() == "no cargo here"


def test_loom_finds_the_lost_update_and_the_missing_barrier():
    if reason := races_detection.missing("loom_model"):
        pytest.skip(reason)
    failures = races_detection.explored().set_index("case").failure
    assert "left: 1" in failures["load then store"]
    assert "the data was not" in failures["publish, Relaxed"]
    assert failures[["fetch_add", "Mutex", "publish, Release and Acquire"]].isna().all()


@pytest.mark.parametrize(("name", "code"), [("static_mut.rs", "E0133"), ("not_sync.rs", "E0277")])
def test_rust_refuses_unsafe_globals(name, code):
    said = races_detection.refusal(name)
    if said.startswith("There is no rustc"):
        pytest.skip(said)
    assert code in said
    assert str(races.SOURCES) not in said


@pytest.mark.parametrize("label", ["3.14", "3.14t"])
def test_pytest_run_parallel_accepts_the_safe_dispenser(label):
    outcome, output = races_detection.run_parallel(label, "test_ticket")
    assert outcome == "passed", output
    assert "8 threads" in output or "PARALLEL" in output.upper(), output
    assert races_detection.run_parallel(label, "test_unsafe_ticket")[0] in ("passed", "failed")


# The exercise.


def test_self_check_of_the_exercise():
    said = races_detection.check_tally("long tally_of(int value) { return 1 }")
    assert said[0].startswith("It does not compile")
    assert any("Not correct" in line for line in races_detection.check_tally(races_detection.racy_tally()))
    safe = races_detection.check_tally((races_detection.EXERCISE / "mutex_per_byte.c").read_text())
    assert safe[0].startswith("Exact")
    assert not any("Not correct" in line for line in safe)
    assert any("ns a byte" in line for line in safe)


# The analysis, on data whose truth is known.


def made_up():
    """Unsafe counters lose in 24 of 30 runs where nothing keeps the GIL; everything else is exact."""
    rows, bank = [], []
    for label in ("3.14", "3.14t"):
        for run in range(30):
            for way, releases in races.WAYS.items():
                racy = (releases or label.endswith("t")) and run < 24
                for threads in races.CROSSED:
                    for variant in races.VARIANTS:
                        lost = 0.3 + 0.001 * run if racy and variant == "unsafe" else 0.0
                        rows.append({"kernel": label, "way": way, "threads": threads, "variant": variant, "lost": lost})
            for loader in races.LOADERS:
                racy = loader == "ctypes CDLL" or label.endswith("t")
                for case in ("unsafe, sleep", "safe, sleep", "unsafe, fast", "safe, fast"):
                    bad = racy and (case == "unsafe, sleep" or (case == "unsafe, fast" and run < 12))
                    created = (14_000 if "sleep" in case else 20) + 10 * run if bad else 0
                    bank.append(
                        {"kernel": label, "loader": loader, "case": case, "withdrawals": 20, "created": created}
                    )
    python = [
        {"kernel": label, "interval": interval, "statement": statement, "lost": float(label == "3.14t") * 0.2}
        for label in ("3.14", "3.14t")
        for interval in races.INTERVALS
        for statement in ("total += 1", "total += one()")
        for _ in range(30)
    ]
    return pd.DataFrame(rows), pd.DataFrame(bank), pd.DataFrame(python)


def test_the_matrix_counts_what_was_put_in():
    crossed, *_ = made_up()
    matrix = races.safety_matrix(crossed, "3.14").set_index(["safe", "way"])
    assert matrix.loc[(False, "ctypes CDLL")].hits == 48
    assert matrix.loc[(False, "ctypes PyDLL")].hits == 0
    assert matrix.loc[(True, "ctypes CDLL")].hits == 0
    words = races_page.matrix_table(crossed)
    assert words["3.14, GIL kept"].tolist() == ["no loss seen: 0 of 240", "no loss seen: 0 of 120"]
    assert words["3.14, GIL released"].tolist()[1] == "race: 96 of 120"


def test_every_claim_gets_what_its_rule_asks_for():
    handed = races.claim_measurements(*made_up())
    ours = {c["id"]: {t["measured"] for t in c["test"]} for c in ledger.claims() if c["chapter"] == "races"}
    assert {claim: set(measurements) for claim, measurements in handed.items()} == ours
    verdicts = {}
    for claim, measurements in handed.items():
        tests = ledger.claim(claim)["test"]
        verdicts[claim] = {ledger.judge_test(test, measurements[test["measured"]])[0] for test in tests}
    assert verdicts["A16"] == verdicts["A17"] == verdicts["A18"] == {ledger.HOLDS}
    assert verdicts["C7"] == {ledger.DOES_NOT_HOLD}
    lost = handed["A15"]["updates lost: unsafe, PyDLL, 3.14t"]
    assert lost.interval.low < 0.31 < lost.interval.high


def test_a_kernel_that_is_absent_leaves_its_part_out():
    crossed, bank, python = (frame[frame.kernel == "3.14t"] for frame in made_up())
    handed = races.claim_measurements(crossed, bank, python)
    assert handed["C7"] == {}
    assert "bad runs: unsafe, PyDLL, 3.14" not in handed["A15"]


def test_the_model_of_the_window_is_that_of_two_random_moments():
    rng = np.random.default_rng(4)
    moments = rng.uniform(0, races.SPREAD_NS, (2, 100_000))
    for window in races.WINDOWS_NS:
        simulated = (abs(moments[0] - moments[1]) < window).mean()
        assert races.model_of_payments(window) == pytest.approx(simulated, abs=0.01)


def test_where_the_gil_may_go():
    assert races_page.hand_overs_between("total += 1") == 0
    assert races_page.hand_overs_between("total += one()") == 1


def test_remedies_table():
    rng = np.random.default_rng(2)
    blocks = []
    for restart in range(6):
        for _ in range(4):
            ns = {
                f"{label}/{arm.name}": int(1e6 * rng.normal(5, 0.01))
                for label in ("3.14", "3.14t")
                for arm in (*races.arms(), Arm(EMPTY, "", ""))
            }
            blocks.append({"restart": restart, "ns": ns, "loops": dict.fromkeys(ns, 1_000_000)})
    record = Record(
        None, {"plan": {"seed": 1, "kernels": ["3.14", "3.14t"], "blocks": 4}}, [{"missing": {}}], blocks, [], False
    )
    runs = pd.DataFrame(
        [
            {"remedy": name, "threads": threads, "ns": rng.normal(7, 0.1)}
            for name in races.REMEDIES
            for threads in (2, 4)
            for _ in range(6)
        ]
    )
    table = races_page.remedies_table(record, runs)
    assert len(table) == len(races.REMEDIES)
    assert sum("not safe" in name for name in table.remedy) == len(races.UNSAFE)
    assert races.piece_cost(record, "3.14t", "atomic").value == pytest.approx(5, rel=0.01)
    assert len(races_page.false_alarm(record)) == 2
