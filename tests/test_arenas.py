"""The chapter on arenas: what the experiments report is consistent; the analysis finds what was put in."""

import ctypes.util
import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import psutil
import pytest

from ffilab import kernels
from ffilab.bench import child
from ffilab.corners import arenas, arenas_page
from ffilab.errors import UserError
from ffilab.judge import ledger

LABELS = [kernel.label for kernel in kernels.present()]


def run(experiment, *arguments, label=arenas.KERNEL, words=()):
    outcome = arenas.start((label, "test", words, experiment, *arguments))
    assert outcome.ended == "ok", outcome.error
    return outcome.result


@pytest.mark.parametrize("label", arenas.usable(LABELS))
def test_threads_at_once_are_those_of_the_condition(label):
    equal = arenas.CONDITIONS[arenas.EQUAL]
    result = run("talk", arenas.LIBRARIES, *equal.arguments(), label=label)
    assert result["threads at once"] == 400
    kept = run("talk", arenas.LIBRARIES, *arenas.CONDITIONS[arenas.MEET].arguments(), label=label)
    if not label.endswith("t"):
        assert kept["threads at once"] == 50  # the GIL lets one call in at a time
    none = run("talk", arenas.LIBRARIES, *arenas.CONDITIONS[arenas.NONE].arguments(), label=label)
    assert none["threads at once"] == 0


@pytest.mark.parametrize("way", arenas.WAYS)
def test_growth_is_consistent(way):
    result = run("growth", arenas.LIBRARIES, way, 8, 3, "keep", "none")
    assert len(result["rounds"]) == 3
    for state in (result["before"], *result["rounds"], result["trimmed"]):
        assert 0 <= state["in_use"] <= state["held"]
        assert state["pss"] <= state["rss"] <= state["peak"] + 0.5
    assert result["rounds"][-1]["arenas"] > 1
    assert result["trimmed"]["rss"] <= result["rounds"][-1]["rss"]
    # 8 threads x 3 rounds x 64 bytes are all that stays in use.
    assert result["rounds"][-1]["in_use"] - result["before"]["in_use"] < 0.2


def test_one_arena_is_one_arena():
    for words, remedy in ((("GLIBC_TUNABLES=glibc.malloc.arena_max=1",), "none"), ((), "mallopt")):
        result = run("growth", arenas.LIBRARIES, "short-lived threads", 8, 2, "keep", remedy, words=words)
        assert result["rounds"][-1]["arenas"] == 1


def test_huge_pages_can_be_forbidden():
    """Whatever the system's setting: off is off, also when the preloaded library asks for them."""
    off = arenas.replace(arenas.TALK, huge_pages="off", native_threads=0)
    result = run("talk", arenas.LIBRARIES, *off.arguments(), words=arenas.PRELOAD)
    assert result["grown"]["huge"] == 0


@pytest.mark.parametrize("label", LABELS)
def test_domains(label):
    found = run("domains", arenas.LIBRARIES, label=label)
    assert len(found) == 6
    assert all(-0.1 < share < 1.5 for share in found.values())
    if label.endswith("t"):
        assert found["PyObject_Malloc, small"] < 0.1
        assert found["PyObject_Malloc, large"] < 0.1
    else:
        assert found["PyObject_Malloc, large"] > 0.9


@pytest.mark.parametrize("allocator", [name for name in arenas.PACKAGES if ctypes.util.find_library(name)])
def test_a_preloaded_allocator_is_proved(allocator):
    words = arenas.preload(allocator)
    result = run("latency", arenas.LIBRARIES, 2, 1000, words=words)
    arenas.prove(("3.14t", "x", words), result["allocator"])
    assert 0 < result["p50"] <= result["p99.9"]
    with pytest.raises(UserError, match="was to be preloaded"):
        arenas.prove(("3.14t", "x", words), "glibc")


def test_an_allocator_that_is_absent_is_named(monkeypatch):
    monkeypatch.setattr(arenas.ctypes.util, "find_library", lambda name: None)
    assert arenas.preload("jemalloc") is None
    assert arenas.preload(None) == ()
    assert "libjemalloc2" in arenas.not_installed("jemalloc")


def test_a_session_keeps_every_outcome_and_leaves_nothing_running(quiet_progress):
    session = child.Session("test-arenas", ["3.14t"])
    jobs = [("3.14t", "a", (), "growth", arenas.LIBRARIES, "short-lived threads", 4, 1, "keep", "none")]
    found = arenas.outcomes(session, "test", jobs, 2)
    assert len(found) == 2
    lines = [json.loads(line) for line in session.record().path.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["run", "child", "child"]
    assert lines[0]["plan"]["seed"] == session.seed
    assert "each run had a process of its own" in session.record().noise.report
    assert not [p for p in psutil.Process().children(recursive=True) if "experiments.py" in " ".join(p.cmdline())]


def test_a_process_that_brings_nothing_is_a_sentence(quiet_progress):
    session = child.Session("test-arenas", ["3.14t"])
    with pytest.raises(UserError, match=r"no such way on CPython 3\.14t: exit code 1"):
        arenas.outcomes(session, "test", [("3.14t", "no such way", (), "no_such_experiment")], 1)


def test_no_linux_is_a_sentence(monkeypatch):
    monkeypatch.setattr(arenas.platform, "system", lambda: "Darwin")
    with pytest.raises(UserError, match="Linux"):
        arenas.begin(["3.14t"])


def test_a_memory_limit_is_a_limit():
    tight = arenas.start(("3.14t", "x", (), "limited", arenas.LIBRARIES, 24, 32, 2))
    assert tight.result is None
    wide = arenas.start(("3.14t", "x", (), "limited", arenas.LIBRARIES, 2048, 8, 1))
    assert wide.result["ended"], wide.error


def test_self_check_of_the_exercise():
    held, verdict = arenas.check_tunables("")
    assert "MiB more than at its start" in held
    assert verdict.startswith("Not there")
    assert not arenas.check_tunables("glibc.malloc.arena_max=1")[1].startswith("Not there")
    assert len(arenas.arenas_now("glibc.malloc.arena_max=1")) == 1


# The analysis, on data whose truth is known.


def made_up():
    """3.14t grows by 30 MiB more, all of it without native threads too; glibc holds 1.5 times as much there."""
    rng = np.random.default_rng(8)
    rows, cells, scenario, threshold = [], [], [], []
    for label in ("3.14", "3.14t"):
        own = 30 if label == "3.14t" else 0
        for condition in arenas.CONDITIONS:
            for number in range(10):
                native = 0 if "no native" in condition else 0.5
                held = 6 * (1.5 if label == "3.14t" and condition == arenas.MEET else 1)
                rows.append(
                    {
                        "kernel": label,
                        "condition": condition,
                        "round": number,
                        "rss": own + native + rng.normal(0, 0.1),
                        "pss": own,
                        "huge": 0,
                        "held": held + rng.normal(0, 0.1),
                        "in_use": 0.1,
                        "arenas": 15,
                        "trimmed": own,
                        "at_once": 50,
                    }
                )
        for python in arenas.GRID_PYTHON:
            for native in arenas.GRID_NATIVE:
                for _ in range(5):
                    cells.append(
                        {
                            "kernel": label,
                            "python": python,
                            "native": native,
                            "arenas": python // 2 + rng.integers(2),
                            "rss": 0.1 * python + 0.001 * python * native + rng.normal(0, 0.02),
                            "held": 1.0,
                        }
                    )
    for name in arenas.SCENARIOS:
        for allocator, factor in (("glibc", 1), ("jemalloc", 0.5), ("tcmalloc", 0.7), ("mimalloc", 0.8)):
            scenario += [
                {"scenario": name, "allocator": allocator, "value": 10 * factor * rng.normal(1, 0.02)} for _ in range(5)
            ]
    for setting, large, small in (
        ("nothing", 100, 0.1),
        ("mmap_threshold=131072", 0.1, 0.1),
        ("trim_threshold=1073741824", 100, 99),
    ):
        for _ in range(5):
            for case, held in (("large, pinned", large), ("small", small)):
                threshold.append({"setting": setting, "case": case, "held": held * rng.normal(1, 0.01)})
    return tuple(map(pd.DataFrame, (rows, cells, scenario, threshold)))


def test_every_claim_gets_what_its_rule_asks_for():
    handed = arenas.claim_measurements(*made_up())
    ours = {c["id"]: {t["measured"] for t in c["test"]} for c in ledger.claims() if c["chapter"] == "arenas"}
    assert {claim: set(measurements) for claim, measurements in handed.items()} == ours
    rss, held = (handed["A19"][test["measured"]] for test in ledger.claim("A19")["test"])
    assert rss.interval.low < 0 < rss.interval.high
    assert held.interval.low < 1.5 < held.interval.high
    verdicts = {
        claim: {ledger.judge_test(t, measurements[t["measured"]])[0] for t in ledger.claim(claim)["test"]}
        for claim, measurements in handed.items()
    }
    assert verdicts["A19"] == {ledger.CANNOT_TEST, ledger.IN_DIRECTION} or ledger.DOES_NOT_HOLD in verdicts["A19"]
    assert verdicts["A20"] == verdicts["A22"] == {ledger.HOLDS}
    assert handed["A21"]["fork-heavy: jemalloc / glibc"].interval.value == pytest.approx(0.5, rel=0.05)


def test_what_is_absent_is_left_out():
    runs, cells, scenario, threshold = made_up()
    handed = arenas.claim_measurements(
        runs[runs.kernel == "3.14t"], cells[cells.kernel == "3.14"], scenario[scenario.allocator == "glibc"], threshold
    )
    assert handed["A19"] == handed["A20"] == handed["A21"] == {}
    assert len(handed["A22"]) == 2


def test_without_rust_the_page_still_stands(monkeypatch, quiet_progress):
    monkeypatch.setattr(arenas, "usable", lambda labels: [])
    session = child.Session("test-arenas", ["3.14t"])
    runs, cells = arenas.talk(session, ["3.14t"]), arenas.grid(session)
    assert runs.empty
    assert cells.empty
    figure = plt.figure()
    arenas_page.plot_talk(figure, runs)
    arenas_page.plot_grid(figure, cells)
    plt.close(figure)
    assert arenas_page.NO_RUST in {text.get_text() for text in figure.texts}
    assert arenas_page.talk_table(runs).empty
    assert arenas_page.false_alarm(runs).empty
    assert arenas_page.grid_words(cells) == ""
    assert arenas_page.words(runs, "rss", kernel="3.14", condition=arenas.AS_RUN) == arenas_page.NOT_HERE
    *_, scenario, threshold = made_up()
    handed = arenas.claim_measurements(runs, cells, scenario, threshold)
    assert handed["A19"] == handed["A20"] == {}


def test_tables():
    runs, cells, scenario, _ = made_up()
    assert len(arenas_page.talk_table(runs)) == 2 * len(arenas.CONDITIONS)
    alarms = arenas_page.false_alarm(runs)
    assert len(alarms) == 4
    assert "24 × 200" in arenas_page.grid_words(cells)
    table = arenas_page.scenarios_table(scenario[scenario.allocator != "mimalloc"], {"mimalloc": "not installed"})
    assert len(table) == len(arenas.SCENARIOS) + len(arenas.NOT_STAGED)
    assert "★" in table.jemalloc[0]
    assert table.mimalloc[0] == "not installed"
    limits = pd.DataFrame(
        [{"allocator": "glibc", "mib": mib, "ended": mib > 64} for mib in arenas.LIMITS_MIB for _ in range(5)]
    )
    found = arenas_page.limits_table(limits, dict.fromkeys(("jemalloc", "tcmalloc", "mimalloc"), "not installed"))
    assert found["64 MiB"].tolist() == ["0 of 5 ended", *["not installed"] * 3]
    remedy = pd.DataFrame(
        [
            {"remedy": name, "work": work, "grown": 10.0, "trimmed": 1.0, "peak": 12.0, "rate": 1e6, "arenas": 2}
            for name in arenas.REMEDIES
            if name != "jemalloc"
            for work in arenas.WORK
            for _ in range(4)
        ]
    )
    found = arenas_page.remedies_table(remedy, {"jemalloc": "not installed"}).set_index("remedy")
    assert found.loc["jemalloc"].iloc[0] == "not installed"
    assert found.loc["mimalloc", "by turns: arenas"] == "–"
    assert found.loc["nothing", "by turns: arenas"].startswith("2")
