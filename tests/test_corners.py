"""The map of corners and the claim that rests on it: judged by other verdicts, drawn as they are."""

import math
import re
from xml.etree import ElementTree

import pytest

from ffilab.judge import derived, ledger, verdicts
from ffilab.judge.claims import all_claims
from ffilab.judge.estimates import Location, Share
from ffilab.judge.numbers import Number
from ffilab.judge.rules import NO, YES, Occurs, Side
from ffilab.page import map as corner_map
from ffilab.run.errors import UserError
from tests.source_pages import anchors

CLAIM, CORNERS = derived.read()
BOLD = [one for one in CORNERS if one.bold]
TESTS = derived.rules()
CLAIMS = {claim.id: claim for claim in all_claims()}


def number(rule, holds):
    """A measurement by which a test holds, is refuted, or is left open (None)."""
    if isinstance(rule, Occurs):
        return Share(5 * (holds is True), 2000 if holds is False else 20)
    assert isinstance(rule, Side)
    log = rule.null == 1
    sign = 1 if rule.direction == "above" else -1
    target = {
        True: rule.bound * 2 if log else rule.bound + sign * 10 * rule.interest,
        False: rule.null,
        None: rule.bound,
    }[holds]
    centre = math.log(target) if log else target
    return Location(centre, 0.1 * abs(rule.interest) if holds is not None else rule.interest, 19, 20, log=log)


def ledger_of(holds, withheld=(), unmeasured=(), smoke=()):
    """The rows of a made-up ledger with the claims that the map rests on. holds: by the corner's name; True if it is not there."""
    given, rows = {}, []
    for claim in all_claims():
        used = {one.number: holds.get(one.name, True) for one in CORNERS if one.claim == claim.id}
        if used and claim.id not in unmeasured:
            found = {rule.number: Number(None, "not made up") for rule in claim.tests}
            found |= {name: Number(number(TESTS[claim.id, name], what)) for name, what in used.items()}
            why = dict.fromkeys(used, "a control failed") if claim.id in withheld else {}
            given[claim.id] = ledger.Given(found, {"is_result": claim.id not in smoke}, why)
        rows.append({**ledger.judge(claim, given.get(claim.id)), "stale": []})
    return derived.judged(rows, given, ledger.Given, ledger.judge)


def row_of(rows):
    return next(row for row in rows if row["id"] == CLAIM)


def places(rows):
    return {one.corner.name: one for one in corner_map.places(CORNERS, rows, CLAIM)}


def test_all_corners_of_the_talk_are_there():
    assert len(BOLD) == 7
    assert len(CORNERS) == 16
    assert [one.costs for one in BOLD].count("reliability") == 4


def test_if_every_part_holds_the_claim_does_and_the_sorting_by_level_is_left():
    row = row_of(ledger_of({}))
    assert [part["verdict"] for part in row["parts"]] == [YES] * len(BOLD)
    assert row["verdict"] == verdicts.HOLDS
    assert row["untested"]
    # Each part that an interval answered is a chance to be wrong; an event that was seen is none.
    by_interval = sum(not isinstance(TESTS[one.claim, one.number], Occurs) for one in BOLD)
    assert ledger.expected_wrong([row]) == pytest.approx(by_interval * verdicts.ALPHA)


def test_a_corner_that_costs_nothing_is_refuted_and_drawn_so():
    rows = ledger_of({"dynamic loading": False})
    part = next(part for part in row_of(rows)["parts"] if part["part"].startswith("dynamic"))
    assert part["verdict"] == NO
    one = places(rows)["dynamic loading"]
    assert one.state == NO
    assert f'class="fails"><a href="{one.link}"' in corner_map.page(rows)


def test_withheld_smoke_and_not_measured_show_as_such():
    rows = ledger_of({"race conditions": None}, withheld=["A15"], unmeasured=["D1"], smoke=["A12"])
    found = places(rows)
    assert found["race conditions"].state == verdicts.WITHHELD
    assert found["race conditions"].why == "a control failed"
    assert found["cache locality"].state == corner_map.NO_NUMBER
    assert found["dynamic loading"].state == corner_map.NO_NUMBER
    # Of a corner that is no part of the claim, too.
    assert places(ledger_of({}, smoke=["A24a"]))["affinity of a processor"].state == corner_map.NO_NUMBER
    assert places(ledger_of({}, unmeasured=["A24a"]))["affinity of a processor"].state == corner_map.NOT_MEASURED
    parts = {part["part"]: part for part in row_of(rows)["parts"]}
    assert {name for name, part in parts.items() if part["verdict"] == verdicts.NO_NUMBER} == {
        "cache locality: performance",
        "dynamic loading: performance",
    }
    assert parts["race conditions: reliability"]["verdict"] == verdicts.WITHHELD


def test_a_race_that_was_seen_is_on_the_map_whatever_else_ran():
    rows = ledger_of({}, withheld=["A15"])
    assert places(rows)["race conditions"].state == YES


def test_the_map_is_text_with_links_for_everyone():
    picture, listed, table = re.search("(<svg.*</svg>)(.*)(<table.*)", corner_map.page(ledger_of({})), re.S).groups()
    drawn = picture
    assert len(drawn.encode()) < 30_000
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "group"
    assert root.get("aria-labelledby") == "map-title map-desc"
    links = [element.get("href") for element in root.iter("a")]
    assert len(links) == sum(bool(one.page) for one in CORNERS)
    texts = {element.text for element in root.iter("text")}
    assert {one.name for one in CORNERS} <= texts
    assert not re.findall(r"#[0-9a-f]{6}", drawn)
    for one in CORNERS:
        assert one.name in table
        assert one.name in listed


def test_every_link_leads_to_a_heading():
    for one in CORNERS:
        page, _, anchor = one.page.partition("#")
        assert not page or anchor in anchors()[page], one.page


def test_a_file_of_corners_that_the_ledger_does_not_know_is_refused(tmp_path):
    text = derived.FILE.read_text()
    for old, new, message in (
        ('number = "getpid: ratio on {GIL}"', 'number = "no such"', "does not test"),
        ('level = "system"', 'level = "moon"', "needs a level"),
        ("bold = true", "bald = true", "not known"),
    ):
        path = tmp_path / "corners.toml"
        path.write_text(text.replace(old, new, 1))
        with pytest.raises(UserError, match=message):
            derived.read(path)


def test_a_stale_page_is_said_beside_its_corner():
    rows = [{**row, "stale": ["figures.py"] * (row["id"] == "A12")} for row in ledger_of({})]
    one = places(rows)["dynamic loading"]
    assert one.word == "yes, here (page is stale)"
    assert corner_map.page(rows).count(one.word) >= 3
