"""The page of the long studies, in the forms that tests/snapshots/parts/coverage.md does not show."""

import json
import math

import pytest

from ffilab.page import evidence
from studies import kept
from studies.calibration import sessions


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"copies": {"sd": 0.0, "p": 0.0001}}, "Copies of one layout differed for 1 of 6 ratios"),
        ({"restarts_a_layout": math.inf}, "| many |"),
    ],
)
def test_a_failed_control_and_links_that_never_pay_are_said(change, says):
    first, *others = evidence.kept_evidence("levels")
    assert says not in evidence.coverage_page([], [], [], [first, *others])
    assert says in evidence.coverage_page([], [], [], [first | change, *others])


def test_one_session_has_no_other_to_be_held_against():
    first = kept.read_sessions(kept.EVIDENCE / "sessions.json")[:1]
    assert "One session has no other" in evidence.coverage_page(first, sessions.rows(first), [], [])


def test_what_was_not_run_is_said_and_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(evidence, "FOLDER", tmp_path)
    assert evidence.kept_evidence("coverage") == []
    (tmp_path / "coverage.json").write_text(json.dumps([{"ratio": "a / b"}]))
    assert evidence.kept_evidence("coverage") == [{"ratio": "a / b"}]
    page = evidence.coverage_page([], [], [], [])
    for said in ("No fresh session", "They are not here.", "levels was not run yet"):
        assert said in page
    assert "|" not in page
