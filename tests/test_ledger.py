import json
import math

import pytest

from ffilab import paths
from ffilab.errors import UserError
from ffilab.judge import ledger
from ffilab.judge.ledger import CANNOT_TEST, DOES_NOT_HOLD, HOLDS, IN_DIRECTION, NOT_WRITTEN, Measurement, judge_test
from ffilab.judge.statistics import Interval

ABOVE = {"measured": "x", "direction": "above", "null": 1.0, "published": 1.2, "tolerance": 0.25}
BELOW = {"measured": "x", "direction": "below", "null": 1.0, "published": 0.1, "tolerance": 0.1}
SIDE = {"measured": "x", "direction": "above", "null": 1.0}
EQUAL = {"measured": "x", "direction": "equal", "null": 1.0, "tolerance": 0.1}


@pytest.mark.parametrize(
    ("test", "interval", "mde", "verdict"),
    [
        (ABOVE, (1.19, 1.17, 1.21), 0.02, HOLDS),
        (ABOVE, (1.05, 1.04, 1.06), 0.02, IN_DIRECTION),
        (ABOVE, (1.80, 1.70, 1.90), 0.02, IN_DIRECTION),
        (ABOVE, (1.01, 0.99, 1.03), 0.02, DOES_NOT_HOLD),
        (ABOVE, (0.80, 0.79, 0.81), 0.02, DOES_NOT_HOLD),
        (ABOVE, (1.30, 0.90, 1.70), 0.50, CANNOT_TEST),
        (SIDE, (1.5, 1.2, 1.9), 0.02, HOLDS),
        (SIDE, (1.5, 0.9, 1.9), 0.02, DOES_NOT_HOLD),
        # Significant, but smaller than what the run could reliably find: no verdict for it.
        (ABOVE, (1.01, 1.001, 1.02), 0.02, DOES_NOT_HOLD),
        (ABOVE, (1.19, math.nan, math.nan), 0.02, CANNOT_TEST),
        (BELOW, (0.12, 0.11, 0.13), 0.02, HOLDS),
        (BELOW, (0.70, 0.69, 0.71), 0.02, IN_DIRECTION),
        (BELOW, (1.10, 1.09, 1.11), 0.02, DOES_NOT_HOLD),
        (EQUAL, (1.01, 0.95, 1.05), 0.02, HOLDS),
        (EQUAL, (1.01, 0.85, 1.25), 0.20, CANNOT_TEST),
        (EQUAL, (0.50, 0.45, 0.55), 0.02, DOES_NOT_HOLD),
    ],
)
def test_rule(test, interval, mde, verdict):
    assert judge_test(test, Measurement(Interval(*interval), mde, ""))[0] == verdict


def test_claims_are_those_of_the_four_documents():
    expected = [
        f"{letter}{n}" for letter, last in (("A", 25), ("B", 6), ("C", 10), ("D", 7)) for n in range(1, last + 1)
    ]
    assert [claim["id"] for claim in ledger.claims()] == expected


def handed_in(value, is_result=True):
    return {
        "measurements": {"x": {"interval": {"value": value, "low": value, "high": value}, "mde": 0.01, "unit": ""}},
        "provenance": {"is_result": is_result},
    }


def entry(*tests):
    return {"id": "A12", "chapter": "c", "claim": "", "published": "", "where": "", "test": list(tests)}


def test_one_refuted_part_refutes_the_claim_whatever_else_could_not_be_tested():
    row = ledger.judge(entry(SIDE, {**SIDE, "measured": "y"}), handed_in(0.5))
    assert row["verdict"] == DOES_NOT_HOLD
    row = ledger.judge(entry(SIDE, {**SIDE, "measured": "y"}), handed_in(1.5))
    assert row["verdict"] == CANNOT_TEST


def test_a_claim_is_as_strong_as_its_weakest_test():
    assert ledger.judge(entry(ABOVE), handed_in(1.2))["verdict"] == HOLDS
    assert ledger.judge(entry(ABOVE, EQUAL), handed_in(1.2))["verdict"] == DOES_NOT_HOLD
    other = {**ABOVE, "measured": "y"}
    assert ledger.judge(entry(ABOVE, other), handed_in(1.2))["verdict"] == CANNOT_TEST


def test_a_smoke_test_is_no_result():
    assert ledger.judge(entry(ABOVE), handed_in(1.2, is_result=False))["verdict"] == CANNOT_TEST


def test_nothing_handed_in_is_said_so():
    assert ledger.judge(entry(ABOVE), None)["verdict"] == NOT_WRITTEN


def test_a_chapter_that_exists_and_hands_in_nothing_fails_the_build(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "RESULTS", tmp_path)
    with pytest.raises(UserError, match="handed in nothing for claim"):
        ledger.collect()


def test_only_what_a_successful_chapter_handed_in_replaces_the_old(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "RESULTS", tmp_path)
    old, new = tmp_path / "claims", tmp_path / "scratch"
    old.mkdir()
    for name in ("A12", "A13", "A5"):
        (old / f"{name}.json").write_text("old")
    monkeypatch.setenv(ledger.HAND_IN_FOLDER, str(new))
    number = {"ratio on 3.14": Measurement(Interval(1.2, 1.1, 1.3), 0.01, "")}
    ledger.hand_in("A12", number, {"is_result": True})
    assert (old / "A12.json").read_text() == "old"
    ledger.accept("loaders", new)
    assert "1.2" in (old / "A12.json").read_text()
    assert not (old / "A13.json").exists()
    assert (old / "A5.json").read_text() == "old"


def test_hand_in_refuses_what_the_rule_does_not_know(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "RESULTS", tmp_path)
    with pytest.raises(ValueError, match="typo"):
        ledger.hand_in("A12", {"typo": Measurement(Interval(1, 1, 1), 0, "")}, {"is_result": True})


def test_rows_of_the_ledger_are_complete(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "RESULTS", tmp_path)
    monkeypatch.setattr(ledger, "NOTEBOOKS", tmp_path)
    ledger.collect()
    rows = json.loads((tmp_path / "ledger.json").read_text())
    keys = {"id", "chapter", "published", "measured", "interval", "verdict", "reason", "provenance"}
    assert all(keys <= set(row) for row in rows)
    assert len(rows) == len(ledger.claims())


def test_every_chapter_with_a_notebook_has_rules():
    for claim in ledger.claims():
        if (paths.NOTEBOOKS / f"{claim['chapter']}.ipynb").exists():
            assert claim["test"], claim["id"]
