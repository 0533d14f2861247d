"""The chapter on measuring, and the contest: the talk's method, what its numbers are made of, the exercise."""

import json

import numpy as np
import pandas as pd
import pytest

from ffilab.bench.case import Case
from ffilab.bench.record import Record
from ffilab.paths import ROOT
from ffilab.provision.catalogue import GIL
from notebooks.loaders import experiment as loaders
from notebooks.measuring import contest, exercise, experiment, figures, results


@pytest.mark.slow
def test_contest_in_small_writes_what_it_promises(tmp_path, monkeypatch, quiet_progress):
    monkeypatch.setattr(contest, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(contest, "RECORDS", tmp_path / "records")
    contest.main("smoke")
    found = json.loads((tmp_path / "results" / "bench.json").read_text())
    for state in ("idle", "burner"):
        assert {"ours", "pyperf", "n"} <= set(found["aa"][state])
    for what in ("loaders", "gil"):
        assert {"ours", "pyperf", "seconds"} <= set(found["half_width"][what])
    assert {"ours", "pyperf"} <= set(found["detect"])
    assert len(figures.contest(found)) == 7
    # Two A/A runs, two half-widths, the calibration, one detection.
    assert len(list((tmp_path / "records" / "contest").glob("*/*.jsonl"))) == 6


def test_self_check_of_the_exercise():
    assert all("open" in line for line in exercise.check_flaws({}))
    assert all("right" in line for line in exercise.check_flaws(exercise.KEYWORDS))
    assert "not this one" in exercise.check_flaws({**exercise.KEYWORDS, "B": "order"})[1]
    assert "choose one" in exercise.check_flaws({**exercise.KEYWORDS, "C": "magic"})[2]


def test_arms_name_native_files_that_exist():
    for arm in [*loaders.arms(), *experiment.arms(), contest.noop("a"), contest.spin("b", 1)]:
        assert (ROOT / arm.file).is_file()


@pytest.mark.slow
@pytest.mark.parametrize("names", [("CDLL", "PyDLL"), ("CDLL", "CDLL")])
def test_the_talk_takes_its_samples_on_every_interpreter(labels, names):
    for label in labels:
        case = experiment.talk(names)
        outcome = Case(label, case.file, case.function, fixed=case.fixed).run()
        assert outcome.ended == "ok"
        assert [len(values) for values in outcome.result["samples"]] == [195, 195]
        assert len(outcome.result["empty"]) == 195
        assert 0 < outcome.result["steps"][0] <= outcome.result["steps"][-1]


def processes(shifts):
    """Processes of the talk's method in which the second copy takes longer by so many ns."""
    rng = np.random.default_rng(3)
    samples = [[rng.normal(100 + extra, 5, 195).tolist() for extra in (0, shift)] for shift in shifts]
    return pd.DataFrame({"process": range(len(shifts)), "samples": samples, "steps": [[10, 20]] * len(shifts)})


def test_the_talks_method_calls_what_was_put_in_significant():
    pairs = results.pairs_of_copies(processes([0, 10, 0, 10, 10]))
    assert results.significant(pairs).tolist() == [False, True, False, True, True]
    assert results.share_of_alarms(pairs).value == pytest.approx(0.6)
    assert pairs["shift"].tolist() == pytest.approx([0, -0.09, 0, -0.09, -0.09], abs=0.02)


def test_the_talks_tables_and_its_clock():
    runs = processes([20]).assign(empty=[[40, 50, 60]])
    moments, pair = results.talk_tables(runs)
    assert moments["sample"].tolist() == ["CDLL", "PyDLL"]
    assert pair["faster"].tolist() == ["CDLL"]
    assert results.clock(runs) == {"step": 10, "empty sample": 50}


def record(between):
    """Forty restarts of ten blocks: noise of 1 % within, and so much between; PyDLL takes two thirds of the time."""
    rng = np.random.default_rng(4)
    cells = dict.fromkeys(experiment.COPIES, 90.0) | {"PyDLL": 60.0, "empty loop": 5.0}
    blocks = []
    for restart in range(40):
        process = np.exp(rng.normal(0, between))
        for _ in range(10):
            ns = {f"{GIL}/{arm}": int(1e6 * v * process * np.exp(rng.normal(0, 0.01))) for arm, v in cells.items()}
            blocks.append({"restart": restart, "ns": ns})
    run = {"plan": {"seed": 1, "interpreters": [GIL], "blocks": 10}}
    return Record(None, run, loops=dict.fromkeys(ns, 1_000_000), blocks=blocks)


def test_spread_between_processes_is_seen_where_there_is_one():
    assert results.between_over_within(record(0.05)).low > 3
    spread = results.between_over_within(record(0.0))
    assert spread.low <= 1 <= spread.high


def test_pseudo_replication_is_too_narrow_where_processes_differ():
    widths = results.pseudo_replication(record(0.05))
    assert widths["restarts"] > 2 * widths["blocks"]
    assert "too narrow" in figures.pseudo_replication_in_words(widths)
    assert "hardly differ" in figures.pseudo_replication_in_words({"restarts": 1, "blocks": 1})


def test_copies_and_loaders():
    found = record(0.05)
    pairs = results.copies_compared(found)
    assert len(pairs) == len(figures.copies(pairs)) == 6
    assert results.loaders_compared(found).ratio.value == pytest.approx(1.5, rel=0.01)
    assert len(results.restart_medians(found)) == 80


def test_tables_of_the_other_axes():
    counted = [
        {"interpreter": label, "arm": arm, "instructions": n}
        for label in ("a", "b")
        for arm, n in (("PyDLL", 2.04), ("CDLL", 3.0), ("empty loop", 1.0))
    ]
    assert figures.counts(counted).to_numpy().tolist() == [["a", 3, 2, 1], ["b", 3, 2, 1]]
    seen = [{"interpreter": "a", "how": "perf", "costs": [["take_gil", "python", 3], ["noop", "libloaders.so", 1]]}]
    shares = results.time_shares(seen)
    assert shares.share.sum() == pytest.approx(1)
    table = figures.shares(shares)
    assert table[["GIL and thread state", "library"]].to_numpy().tolist() == [["75.0%", "25.0%"]]
