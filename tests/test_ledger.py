import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest

from ffilab.judge import claims, ledger, numbers, verdicts
from ffilab.judge.estimates import Location
from ffilab.judge.numbers import Declarations, Numbers
from ffilab.judge.rules import Never, Occurs
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import GIL
from tests.helpers.made_claims import ABOVE, NAME, claim, row
from tests.helpers.of_chapter import Golden, about, counted, seen


def test_claims_are_those_of_the_four_documents():
    documents = {"A": 25, "B": 6, "C": 10, "D": 7}
    expected = [f"{letter}{n}" for letter, last in documents.items() for n in range(1, last + 1)]
    # A claim that was split has letters.
    found = {claim.id.rstrip("abcdefg") for claim in claims.all_claims() if claim.id[0] in documents}
    assert found == set(expected)


def test_a_row_has_its_verdict_and_each_part_with_its_answer():
    judged = row(counted(1.2), ABOVE)
    assert judged["kind"] == verdicts.MEASURED
    assert judged["numbers"] == {NAME: 1.2}
    assert judged["interval"] == {NAME: [1.2, 1.2]}
    (part,) = judged["parts"]
    assert part["kind"] == "side"
    assert part["experiment"] == "corrected"
    assert "corrected" not in judged["reason"]


@pytest.mark.parametrize("value", [0.5, 1.2])
def test_what_is_withheld_says_why_at_its_part_and_keeps_its_number(value):
    judged = row(about(value), ABOVE, withheld="disturbed")
    (part,) = judged["parts"]
    assert part["reason"] == "disturbed"
    assert judged["numbers"] == {NAME: value}
    assert ledger.is_withheld(judged, NAME)


def test_the_published_size_has_a_field_of_its_own():
    judged = row(counted(1.2))
    assert judged["size"] == verdicts.DIFFERS
    assert ledger.counts_of(judged) == "1 yes"
    assert "published size: differs" in ledger.in_lines(judged)[0]


@pytest.mark.parametrize(
    ("judged", "verdict", "says"),
    [
        (ledger.judge(claim(ABOVE), None), verdicts.NOT_MEASURED, ""),
        (ledger.judge(claim(chapter=""), None), verdicts.NOT_WRITTEN, ""),
        (ledger.judge(claim(not_measurable="a text"), None), verdicts.NOT_MEASURABLE, "a text"),
        (row("no valgrind", ABOVE), verdicts.OPEN, "the part: no number, no valgrind"),
        (row(counted(1.2), replace(ABOVE, experiment="as run")), verdicts.HOLDS, "by the author's program"),
        # What was counted is given whatever else ran.
        (row(counted(1.2), ABOVE, withheld="disturbed"), verdicts.HOLDS, ""),
    ],
)
def test_a_row_says_what_decided_it_or_why_nothing_did(judged, verdict, says):
    assert judged["verdict"] == verdict
    assert says in judged["reason"]


@pytest.mark.parametrize(
    ("rule", "found", "expected"),
    [
        (ABOVE, about(1.2), 0.01),
        (ABOVE, about(0.9), 0.01),
        (ABOVE, about(1.05), 0),  # it is open
        (ABOVE, counted(1.2), 0),
        (ABOVE, "was not measured", 0),
        # That something is rarer than a rate rests on an interval; that it was seen does not.
        *((event(NAME, rate=0.15), seen(0), 0.01) for event in (Never, Occurs)),
        *((event(NAME, rate=0.15), seen(1), 0) for event in (Never, Occurs)),
    ],
)
def test_expected_wrong_answers_count_the_chances_for_one(rule, found, expected):
    assert ledger.expected_wrong([row(found, rule)]) == pytest.approx(expected)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def test_a_row_says_that_its_page_is_stale(results):
    rows = ledger.collect({}, {"loaders": ["the notebook"]})
    ours = {claim.id for claim in claims.declared("loaders").claims}
    assert {row["id"] for row in rows if row["stale"] == ["the notebook"]} == ours
    assert not [row["id"] for row in rows if row["stale"] and row["chapter"] != "loaders"]


def test_a_page_whose_records_are_gone_or_of_another_version_says_so_and_stops_nothing(results):
    def lacks(*_, **__):
        raise UserError("The records do not hold it.")

    older = Golden("pinning")
    older.frame = lacks
    rows = {row["id"]: row for row in ledger.collect({"loaders": None, "pinning": older})}
    assert rows["A12"]["verdict"] == rows["A24a"]["verdict"] == verdicts.NOT_MEASURED
    assert rows["A12"]["reason"] == "its records are gone: `make chapter NAME=loaders` measures it again"
    assert rows["A24a"]["reason"] == "The records do not hold it."
    assert rows["D1"]["reason"] == "its chapter was not measured yet"


NUMBER = Location(1.2, 0.02, 19, 20)


def made(**makers):
    """The numbers of a made-up session, which reads a title for each."""
    session = SimpleNamespace(chapter="c", reads={"left from before"}, earlier=[])

    def reading(title, number):
        session.reads.add(title)
        return number

    return Numbers(session, {name: partial(reading, name, number) for name, number in makers.items()})


def test_a_number_rests_on_what_was_read_for_it_and_is_made_once():
    found = made(one=NUMBER, two=Location(0.2, 0.02, 19, 20), three="was not built", four=None)
    assert found["one"] is found["one"]
    assert [found[name].rests_on for name in ("one", "two")] == [{"one"}, {"two"}]
    assert found["two"].estimate == Location(0.2, 0.02, 19, 20)
    assert [found[name].missing for name in ("three", "four")] == ["was not built", "was not measured"]
    assert found.session.reads == {"left from before", "one", "two", "three", "four"}


def test_a_name_that_no_number_has_is_an_error_and_no_weaker_test():
    with pytest.raises(ValueError, match=r"no number 'ratio on 3\.14'"):
        made(one=NUMBER)["ratio on {GIL}"]


def test_two_numbers_of_one_name_are_an_error():
    number = Declarations()
    for name in ("on {GIL}", f"on {GIL}"):
        number(name)(lambda session: None)
    with pytest.raises(ValueError, match=f"two numbers have one name: on {GIL}"):
        number.makers(None)


def test_every_test_of_a_claim_names_a_number(chapter):
    found = numbers.numbers_of(Golden(chapter))
    assert {test.number for claim in claims.declared(chapter).claims for test in claim.tests} <= set(found)


def test_what_is_asked_of_a_session_is_worked_out_once_until_it_has_measured_more():
    session, asked = Golden("loaders"), []

    def make(given):
        asked.append(given)
        return len(asked)

    assert [session.once(make), session.once(make)] == [1, 1]
    assert ledger.sides(session) == ledger.sides(session)
    assert ledger.answers(session) is ledger.answers(session)


def test_rows_of_the_ledger_are_complete(results):
    ledger.collect({})
    rows = json.loads((results / "ledger.json").read_text())
    keys = {"id", "chapter", "published", "numbers", "interval", "verdict", "reason", "provenance", "kind", "size"}
    assert all(keys <= set(row) for row in rows)
    assert len(rows) == len(claims.all_claims())


def test_every_claim_has_rules_or_a_reason():
    assert not [one.id for one in claims.all_claims() if not (one.tests or one.not_measurable)]
