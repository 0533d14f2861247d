import json
import math

import pytest

from ffilab.errors import UserError
from ffilab.judge import claims, ledger
from ffilab.judge.claims import Claim, Rule
from ffilab.judge.ledger import CANNOT_TEST, DOES_NOT_HOLD, HOLDS, IN_DIRECTION, NOT_MEASURED, NOT_WRITTEN, judge_test
from ffilab.judge.statistics import Interval, Measurement
from ffilab.provision.catalogue import FREE_THREADED, GIL

ABOVE = Rule("x", "above", null=1.0, published=1.2, tolerance=0.25)
BELOW = Rule("x", "below", null=1.0, published=0.1, tolerance=0.1)
SIDE = Rule("x", "above", null=1.0)
EQUAL = Rule("x", "equal", null=1.0, tolerance=0.1)


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
    documents = {"A": 25, "B": 6, "C": 10, "D": 7}
    expected = [f"{letter}{n}" for letter, last in documents.items() for n in range(1, last + 1)]
    assert {claim.id for claim in claims.all_claims()} >= set(expected)


def handed_in(value, is_result=True):
    return {
        "measurements": {"x": {"interval": {"value": value, "low": value, "high": value}, "mde": 0.01, "unit": ""}},
        "provenance": {"is_result": is_result},
    }


def named(rule, name):
    return Rule(**{**vars(rule), "measured": name})


def claim(*tests, corner="c"):
    return Claim("A12", corner, "", "", "", tests)


def test_one_refuted_part_refutes_the_claim_whatever_else_could_not_be_tested():
    row = ledger.judge(claim(SIDE, named(SIDE, "y")), handed_in(0.5))
    assert row["verdict"] == DOES_NOT_HOLD
    row = ledger.judge(claim(SIDE, named(SIDE, "y")), handed_in(1.5))
    assert row["verdict"] == CANNOT_TEST


def test_a_claim_is_as_strong_as_its_weakest_test():
    assert ledger.judge(claim(ABOVE), handed_in(1.2))["verdict"] == HOLDS
    assert ledger.judge(claim(ABOVE, EQUAL), handed_in(1.2))["verdict"] == DOES_NOT_HOLD
    assert ledger.judge(claim(ABOVE, named(ABOVE, "y")), handed_in(1.2))["verdict"] == CANNOT_TEST


def test_a_smoke_test_is_no_result():
    assert ledger.judge(claim(ABOVE), handed_in(1.2, is_result=False))["verdict"] == CANNOT_TEST


def test_nothing_handed_in_is_said_so():
    assert ledger.judge(claim(ABOVE), None)["verdict"] == NOT_MEASURED
    assert ledger.judge(claim(corner=""), None)["verdict"] == NOT_WRITTEN


def test_why_a_number_is_missing_stands_in_the_reason():
    row = ledger.judge(claim(ABOVE), {**handed_in(1.2), "measurements": {}, "missing": {"x": "there is no valgrind"}})
    assert (row["verdict"], row["reason"]) == (CANNOT_TEST, "x: there is no valgrind")


@pytest.fixture
def results(tmp_path, monkeypatch):
    for module in (ledger,):
        monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
        monkeypatch.setattr(module, "EXECUTED", tmp_path / "executed")
    return tmp_path / "results"


def test_a_chapter_that_was_measured_and_handed_in_nothing_fails_the_build(tmp_path, results):
    (tmp_path / "executed" / "loaders").mkdir(parents=True)
    with pytest.raises(UserError, match="handed in nothing for claim"):
        ledger.collect()


@pytest.fixture
def handed(monkeypatch, tmp_path):
    """Hand-ins for a corner with one claim of two tests."""
    rule = '{measured = "ratio on {GIL}", direction = "above", null = 1.0}'
    other = '{measured = "ratio on {FREE_THREADED}", direction = "above", null = 1.0}'
    write_claims(tmp_path, f"test = [{rule}, {other}]")
    monkeypatch.setattr(claims, "NOTEBOOKS", tmp_path)
    return ledger.Handed("c")


def write_claims(folder, test, head=""):
    (folder / "c").mkdir(exist_ok=True)
    path = folder / "c" / "claims.toml"
    path.write_text(f'{head}\n[[claim]]\nid = "X1"\nwhere = "w"\nclaim = "c"\npublished = "p"\n{test}\n')
    return path


NUMBER = Measurement(Interval(1.2, 1.1, 1.3), 0.01, "")


def test_what_is_handed_in_is_kept_only_where_the_press_asks_for_it(handed, tmp_path, monkeypatch):
    """In JupyterLab nobody asks: what is seen there never gets into the ledger of the book."""
    for label in (GIL, FREE_THREADED):
        handed.put("X1", f"ratio on {label}", NUMBER)
    before = set(tmp_path.rglob("*"))
    assert [row["verdict"] for row in ledger.hand_in(handed.complete(), {"is_result": True})] == [HOLDS]
    assert set(tmp_path.rglob("*")) == before
    monkeypatch.setenv(ledger.HAND_IN_FOLDER, str(tmp_path / "page" / "claims"))
    ledger.hand_in(handed, {"is_result": True})
    assert json.loads((tmp_path / "page" / "claims" / "X1.json").read_text())["measurements"]


def test_a_row_says_that_its_page_is_stale(results):
    rows = ledger.collect({"loaders": ["the notebook"]})
    assert {row["id"] for row in rows if row["stale"] == ["the notebook"]} == {"A12", "A13", "A14"}
    assert not [row["id"] for row in rows if row["stale"] and row["chapter"] != "loaders"]


def test_hand_in_refuses_what_no_rule_knows_and_what_was_put_twice(handed):
    for identifier, name in (("X1", "typo"), ("A12", f"ratio on {GIL}")):
        with pytest.raises(ValueError, match=name):
            handed.put(identifier, name, NUMBER)
    handed.put("X1", "ratio on {GIL}", NUMBER)
    with pytest.raises(ValueError, match="no test"):
        handed.put("X1", f"ratio on {GIL}", NUMBER)


def test_hand_in_misses_what_was_forgotten(handed):
    handed.put("X1", f"ratio on {GIL}", "no compiler here")
    with pytest.raises(ValueError, match=f"hands in nothing for X1: ratio on {FREE_THREADED}"):
        handed.complete()


def test_rows_of_the_ledger_are_complete(results):
    ledger.collect()
    rows = json.loads((results / "ledger.json").read_text())
    keys = {"id", "chapter", "published", "measured", "interval", "verdict", "reason", "provenance"}
    assert all(keys <= set(row) for row in rows)
    assert len(rows) == len(claims.all_claims())


def test_every_claim_of_a_chapter_has_rules():
    for claim in claims.all_claims():
        assert bool(claim.tests) == bool(claim.corner), claim.id


GOOD = '{measured = "x", direction = "above", null = 1.0}'


@pytest.mark.parametrize(
    ("test", "says"),
    [
        ('{measured = "x", direction = "above", null = 1.0, publishd = 1.2, tolerance = 0.1}', "publishd"),
        ('{measured = "x", direction = "abov", null = 1.0}', "direction"),
        ('{measured = "x", direction = "above"}', "`null`"),
        ('{measured = "x", direction = "above", null = nan}', "finite number for `null`"),
        ('{measured = "x", direction = "above", null = "1"}', "finite number for `null`"),
        ('{measured = "x", direction = "above", null = 1.0, published = 1.2}', "tolerance"),
        ('{measured = "x", direction = "above", null = 1.0, tolerance = 0.1}', "tolerance"),
        ('{measured = "x", direction = "equal", null = 1.0}', "tolerance"),
        (f"{GOOD}, {GOOD}", "twice"),
        ('{direction = "above", null = 1.0}', "measured"),
    ],
)
def test_a_rule_with_a_mistake_is_refused(tmp_path, test, says):
    with pytest.raises(UserError, match=says):
        claims.read(write_claims(tmp_path, f"test = [{test}]"), "c")


@pytest.mark.parametrize(
    ("head", "test", "says"),
    [
        ('corner = "c"', "", "corner"),
        ("", 'chapter = "c"', "chapter"),
        ("", "published = 3", "cannot be read"),
        ("use = []", "", "use"),
    ],
)
def test_a_file_of_claims_with_a_mistake_is_refused(tmp_path, head, test, says):
    with pytest.raises(UserError, match=says):
        claims.read(write_claims(tmp_path, test, head), "c")


def test_an_id_that_stands_twice_is_refused(tmp_path, monkeypatch):
    path = write_claims(tmp_path, f"test = [{GOOD}]")
    monkeypatch.setattr(claims, "NOTEBOOKS", tmp_path)
    monkeypatch.setattr(claims, "UNWRITTEN", path)
    with pytest.raises(UserError, match="X1 stands twice"):
        claims.all_claims()
