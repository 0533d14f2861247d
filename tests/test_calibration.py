"""The sessions of the study of calibration: what is said of those whose truth is known, and that further ones are added
to those that are there."""

import json

import numpy as np
import pytest

from ffilab.judge.estimates import PREDICTION_LEVEL
from ffilab.judge.groups import SESSION
from studies import kept
from studies.calibration import sessions as study

LAYOUTS, OF_LAYOUT, OF_RESTART = 16, 0.02, 0.004


def sessions(seed, count=12, of_session=SESSION, of_build=0.0, ratios=6):
    """Sessions as they are kept: for each ratio what a session and a build add, layouts, and restarts of one of
    them."""
    rng = np.random.default_rng(seed)
    builds = rng.normal(0, of_build, (ratios, 3))
    found = []
    for number in range(count):
        binary, of_ratios = number % 3 + 1, {}
        for ratio in range(ratios):
            centres = 0.1 + builds[ratio] + rng.normal(0, of_session)
            layouts = {str(build + 1): rng.normal(centres[build], OF_LAYOUT, LAYOUTS).tolist() for build in range(3)}
            one = rng.normal(layouts[str(binary)][0], OF_RESTART, 12).tolist()
            of_ratios[f"ratio {ratio}"] = {"layouts": layouts, "binary": one, "company": 0.1}
        found.append({"binary": binary, "ratios": of_ratios})
    return found


def means(**how):
    rows = [row for seed in range(4) for row in study.rows(sessions(seed, **how))]
    return {kind: np.mean([row[kind] for row in rows]) for kind in (*study.KINDS, "honest")}


def test_honest_intervals_hold_other_sessions_and_that_of_one_binary_does_not():
    found = means()
    assert found["another_session"] == pytest.approx(found["honest"], abs=0.025)
    assert found["another_build"] == pytest.approx(found["honest"], abs=0.025)
    assert found["expected"] == pytest.approx(PREDICTION_LEVEL, abs=0.02)
    assert found["next_build"] == pytest.approx(PREDICTION_LEVEL, abs=0.02)
    assert found["this_binary"] < 0.5


def test_what_a_session_adds_beyond_what_is_known_is_seen():
    found = means(of_session=0.02)
    assert found["another_session"] < 0.7
    assert found["expected"] < 0.7


def test_what_a_build_adds_is_seen_between_builds_alone():
    found = means(of_build=0.02)
    assert found["another_session"] == pytest.approx(found["honest"], abs=0.025)
    assert found["another_build"] < 0.75


def test_no_session_is_held_against_itself():
    (row, *_) = study.rows(sessions(1, count=1))
    assert [row[kind] for kind in study.KINDS] == [None] * len(study.KINDS)
    held = study.inside(study.of_ratio(sessions(1, count=2), "ratio 0"))
    # Two sessions of three builds: in each order the same build, six pairs of others, and all their layouts.
    counts = {"another_session": 6, "another_build": 12, "expected": 6, "next_build": 12 * LAYOUTS, "this_binary": 2}
    assert {kind: len(found) for kind, found in held.items()} == counts


def test_a_build_with_too_few_layouts_is_left_out():
    known = sessions(1, count=2, ratios=1)
    known[0]["ratios"]["ratio 0"]["layouts"]["2"] = [0.1, 0.1]
    found = study.of_ratio(known, "ratio 0")
    assert [(one.session, one.build) for one in found] == [(0, "1"), (0, "3"), (1, "1"), (1, "2"), (1, "3")]


def test_the_kept_table_says_what_the_estimator_of_now_says():
    """To renew it: `write_sessions` of these rows, as at the end of a session."""
    known = study.rows(kept.read_sessions(kept.EVIDENCE / "sessions.json"))
    for row, kept_row in zip(known, kept.read_sessions(kept.EVIDENCE / "calibration.json"), strict=True):
        assert row == pytest.approx(kept_row)


def test_sessions_are_added_to_those_that_are_kept(tmp_path, monkeypatch, quiet_progress):
    """Ctrl-C in the second one of the second time: three are kept."""
    numbers = []

    def measured(folder, number, size):
        if len(numbers) == 3:
            raise KeyboardInterrupt
        numbers.append(number)
        return {"number": number}

    monkeypatch.setattr(kept, "RESULTS", tmp_path)
    monkeypatch.setattr(study, "session", measured)
    monkeypatch.setattr(study, "rows", lambda known: [{"sessions": len(known)}])
    monkeypatch.setattr(study, "compiled", lambda builds: None)
    study.main("smoke", sessions=2)
    with pytest.raises(KeyboardInterrupt):
        study.main("smoke", sessions=2)
    assert numbers == [0, 1, 2]
    assert json.loads((tmp_path / "calibration.json").read_text()) == [{"sessions": 3}]
    assert json.loads((tmp_path / "sessions.json").read_text()) == [{"number": number} for number in numbers]
