"""The corners of the talk: a table with what the ledger says of each."""

import pytest

from ffilab.judge import claims, verdicts
from ffilab.judge.rules import NO, OPEN, YES
from ffilab.page import corners
from tests.helpers.source_pages import anchors

CORNERS = corners.corners()
JUDGED = [corner for corner in CORNERS if corner.claim]
(ONE,) = (corner for corner in CORNERS if corner.name == "system libraries")


def row(verdict, **more):
    """A row of the ledger with this answer for `ONE`."""
    part = {"number": ONE.number, "kind": "side", "verdict": verdict, "reason": "so it is"}
    return {"id": ONE.claim, "reason": "not measured yet", "parts": [part] if verdict else [], **more}


def shown(*rows):
    (found,) = (entry for entry in corners.table(list(rows)) if entry["corner"] is ONE)
    return found


def test_all_corners_of_the_talk_are_there_and_each_names_one_test_of_the_ledger():
    assert len(CORNERS) == 16
    bold = [corner for corner in CORNERS if corner.bold]
    assert [corner.costs for corner in bold].count("reliability") == 4
    assert len(bold) == 7
    assert {corner.level for corner in CORNERS} == {"application", "system", "hardware"}
    assert {corner.costs for corner in JUDGED} == {"reliability", "performance"}
    assert {(corner.claim, corner.number) for corner in JUDGED} <= claims.by_number().keys()
    # Lazy binding is shown on its page, and no claim speaks of it.
    assert [corner.name for corner in bold if not corner.claim] == ["dynamic loading"]
    assert not [corner.name for corner in bold if not corner.page]


@pytest.mark.parametrize(("verdict", "words"), [(YES, "yes, here"), (NO, "not here"), (OPEN, "too close to call here")])
def test_a_corner_says_what_its_test_says(verdict, words):
    found = shown(row(verdict))
    assert found["words"] == words
    assert found["why"] == "so it is"
    assert found["look"] != "dim"


def test_what_is_withheld_without_a_number_or_stale_says_so():
    assert shown(row(verdicts.WITHHELD))["words"] == "withheld"
    assert shown(row(verdicts.NO_NUMBER))["words"] == "no number here"
    assert shown(row(None))["why"] == "not measured yet"
    assert shown()["words"] == "no number here"
    assert shown(row(YES, stale=["figures.py"]))["words"] == "yes, here (page is stale)"


def test_every_link_leads_to_a_heading_and_every_corner_stands_in_the_table():
    page = corners.page([row(YES)])
    for corner in CORNERS:
        address, _, anchor = corner.page.partition("#")
        assert not address or anchor in anchors()[address], corner.page
        assert corner.name in page
