"""The operating characteristics: the table that is kept, what it is held to, and a small one made again."""

import json

import pytest
from scipy import stats

from ffilab.judge import characteristics, claims, verdicts
from ffilab.judge.rules import YES, Conformance
from ffilab.judge.simulation import TRUTHS
from ffilab.judge.verdicts import IN_DIRECTION, IN_PART

RUNS = 12
KEPT = {(one["claim"], one["truth"]): one for one in characteristics.kept()}
TESTED = {
    claim.id: claim
    for claim in claims.all_claims()
    if claim.tests and not all(isinstance(rule, Conformance) for rule in claim.tests)
}


def test_the_table_holds_every_claim_that_is_tested_with_every_truth():
    assert set(KEPT) == {(identifier, truth) for identifier in TESTED for truth in TRUTHS}
    assert min(one["runs"] for one in KEPT.values()) >= 1000


@pytest.mark.parametrize("key", KEPT, ids=" ".join)
def test_a_row_is_held_to_its_limits(key):
    one = KEPT[key]
    assert sum(one["verdicts"].values()) == pytest.approx(1)
    # A thousand runs know a share of 1 % to about half a point.
    assert one["wrong"] <= characteristics.MAX_WRONG + 0.005
    assert one["provenance"]["budget"] == "full"
    assert one["provenance"]["command"] == characteristics.COMMAND


@pytest.mark.parametrize("identifier", TESTED)
def test_what_is_right_follows_the_truth(identifier):
    right = {truth: KEPT[identifier, truth]["right"] for truth in TRUTHS}
    assert right["as published"] == (IN_PART if TESTED[identifier].untested else YES)
    assert right["half the size"] in (YES, IN_DIRECTION, IN_PART)
    for truth in ("no effect", "the wrong sign"):
        assert right[truth] not in (YES, IN_DIRECTION)


@pytest.mark.full
@pytest.mark.parametrize("corner", claims.corners())
def test_a_small_table_made_again_agrees_with_the_one_that_is_kept(corner):
    """With another seed: every share of right verdicts is what the kept one makes likely."""
    for one in characteristics.table([corner], RUNS, seed=424_242):
        known = KEPT[one["claim"], one["truth"]]
        assert one["right"] == known["right"]
        share = known["verdicts"].get(known["right"], 0.0)
        found = round(one["verdicts"].get(one["right"], 0.0) * RUNS)
        # The kept share is itself known to a few thousandths only.
        likely = [stats.binomtest(found, RUNS, min(1.0, max(0.0, share + off))).pvalue for off in (-0.01, 0, 0.01)]
        assert max(likely) > 1e-4, (one, known)


def test_a_wrong_verdict_is_one_that_says_the_opposite_of_the_right_one_about_a_part():
    def row(*answers):
        return {"parts": [{"verdict": answer} for answer in answers]}

    right = row("holds", "does not hold", "undecided")
    assert not characteristics.is_wrong(row("holds", "undecided", "holds"), right)
    assert characteristics.is_wrong(row("does not hold", "undecided", "undecided"), right)
    assert characteristics.is_wrong(row("holds", "holds", "undecided"), right)


def test_keeping_one_corner_keeps_the_rows_of_the_others(tmp_path, monkeypatch):
    path = tmp_path / "kept.json"
    monkeypatch.setattr(characteristics, "EVIDENCE", path)
    first = {"claim": "A1", "truth": "no effect", "runs": 1}
    characteristics.keep([first, {**first, "claim": "A2"}], path=path)
    characteristics.keep([{**first, "runs": 2}], replace_all=False, path=path)
    assert [(one["claim"], one["runs"]) for one in json.loads(path.read_text())] == [("A1", 2), ("A2", 1)]


def test_every_verdict_is_one_that_the_book_knows():
    known = {*verdicts.TESTED, verdicts.CANNOT_TEST}
    assert {verdict for one in KEPT.values() for verdict in one["verdicts"]} <= known
