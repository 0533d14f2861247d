"""The page of the long studies, in the forms that tests/snapshots/parts/coverage.md does not show."""

import json
import math

import pytest

from ffilab.page import evidence


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"copies": {"sd": 0.0, "p": 0.0001}}, "Copies of one layout differed for 1 of 6 ratios"),
        ({"restarts_a_layout": math.inf}, "| many |"),
    ],
)
def test_a_failed_control_and_links_that_never_pay_are_said(change, says):
    first, *others = evidence.kept_sessions("levels")
    assert says not in evidence.coverage_page([], [], [first, *others])
    assert says in evidence.coverage_page([], [], [first | change, *others])


def test_one_session_has_no_other_to_be_held_against():
    assert "One session has no other" in evidence.coverage_page(evidence.kept_sessions("sessions")[:1], [], [])


def test_what_was_not_run_is_said_and_nothing_else(tmp_path):
    assert evidence.kept_sessions("coverage", tmp_path) == []
    (tmp_path / "coverage.json").write_text(json.dumps([{"ratio": "a / b"}]))
    assert evidence.kept_sessions("coverage", tmp_path) == [{"ratio": "a / b"}]
    page = evidence.coverage_page([], [], [])
    for said in ("No fresh session", "They are not here.", "levels was not run yet"):
        assert said in page
    assert "|" not in page
