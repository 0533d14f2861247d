"""The study of what is withheld: rows whose records are gone stay, and a run is never its own yardstick."""

import json

import pytest

from studies.calibration import loads

COUNTS = {"numbers": 2, "withheld": 0, "measured_again": 1, "left_out": 0, "units": 9, "minutes": 1.0, "commit": "c"}


@pytest.fixture
def study(monkeypatch, tmp_path):
    """Keeps runs of one part: (load, session, answer)."""
    monkeypatch.setattr(loads, "EVIDENCE", tmp_path / "withholding.json")
    monkeypatch.setattr(loads, "judged", lambda run: run)

    def kept(*runs):
        lines = [
            {**COUNTS, "load": load, "chapter": "races", "session": session, "answers": {"part": answer}}
            for load, session, answer in runs
        ]
        (tmp_path / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        loads.summarise(tmp_path / "runs.jsonl")
        return json.loads((tmp_path / "withholding.json").read_text())

    return kept


def test_a_single_idle_run_judges_others_and_not_itself(study):
    idle, editor = study(("idle", "a", "yes"), ("editor", "b", "no"))
    assert idle == idle | {"answered": 1, "compared": 0, "wrong": 0}
    assert editor == editor | {"answered": 1, "compared": 1, "wrong": 1}


def test_where_idle_runs_contradict_each_other_nothing_is_compared(study):
    idle, editor = study(("idle", "a", "yes"), ("idle", "b", "no"), ("editor", "c", "no"), ("editor", "d", "open"))
    assert idle == idle | {"runs": 2, "compared": 2, "wrong": 2}
    assert editor == editor | {"answered": 1, "compared": 0}


def test_rows_whose_records_are_gone_stay(study):
    study(("idle", "a", "yes"))
    rows = study(("idle", "b", "yes"), ("idle", "c", "yes"))
    assert [(row["runs"], row["sessions"]) for row in rows] == [(1, ["a"]), (2, ["b", "c"])]
    assert len(study(("idle", "b", "yes"), ("idle", "c", "yes"))) == 2
