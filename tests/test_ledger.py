import json
from types import SimpleNamespace

import pytest

from ffilab.bench.foreign import find
from ffilab.bench.reading import Reading
from ffilab.errors import UserError
from ffilab.judge import claims, ledger, verdicts
from ffilab.judge.claims import Claim
from ffilab.judge.estimates import Counted, Location, Measurement, Share
from ffilab.judge.rules import YES, Never, Occurs, Side, Size
from ffilab.provision.catalogue import FREE_THREADED, GIL
from tests.golden_pages import GOLDEN

SIDE = Side("x", direction="above", null=1.0, interest=0.05)


def test_claims_are_those_of_the_four_documents():
    documents = {"A": 25, "B": 6, "C": 10, "D": 7}
    expected = [f"{letter}{n}" for letter, last in documents.items() for n in range(1, last + 1)]
    # A claim that was split has letters.
    assert {claim.id.rstrip("abcdefg") for claim in claims.all_claims()} == set(expected)


def handed_in(value, is_result=True, withheld=None):
    return {
        "measurements": {"x": Measurement(Counted(value), "").as_json()},
        "missing": {},
        "withheld": withheld or {},
        "provenance": {"is_result": is_result},
    }


def about(value):
    return Measurement(Location(value, 0.005, 19, 20), "")


def claim(*rules, corner="c", **further):
    return Claim("A12", corner, "", "", "", rules, **further)


def test_a_row_has_its_verdict_and_each_part_with_its_answer():
    row = ledger.judge(claim(SIDE), handed_in(1.2))
    assert (row["verdict"], row["measured"], row["interval"]) == (verdicts.HOLDS, {"x": 1.2}, {"x": [1.2, 1.2]})
    assert (row["kind"], row["size"]) == (verdicts.MEASURED, "")
    assert [(part["kind"], part["verdict"], part["experiment"]) for part in row["parts"]] == [
        ("side", YES, "corrected")
    ]
    assert "corrected" not in row["reason"]


def test_what_its_author_ran_is_said_where_it_decides():
    as_run = Side("x", experiment="as run", direction="above", null=1.0, interest=0.05)
    assert "by the author's program" in ledger.judge(claim(as_run), handed_in(1.2))["reason"]


def test_a_smoke_test_is_no_result():
    assert ledger.judge(claim(SIDE), handed_in(1.2, is_result=False))["verdict"] == verdicts.NO_RESULT


def test_what_is_withheld_decides_nothing_whatever_was_measured_and_says_why_at_its_part():
    for value in (0.5, 1.2):
        given = {**handed_in(1.2, withheld={"x": "disturbed"}), "measurements": {"x": about(value).as_json()}}
        row = ledger.judge(claim(SIDE), given)
        assert row["verdict"] == verdicts.WITHHELD
        assert [(part["verdict"], part["reason"]) for part in row["parts"]] == [(verdicts.WITHHELD, "disturbed")]
        assert row["measured"] == {"x": value}
        assert ledger.is_withheld(row, "x")


def test_what_was_counted_is_given_whatever_else_ran():
    assert ledger.judge(claim(SIDE), handed_in(1.2, withheld={"x": "disturbed"}))["verdict"] == verdicts.HOLDS


def test_the_published_size_has_a_field_of_its_own():
    size = Size("x", null=1.0, published=2.0, margin=0.25)
    row = ledger.judge(claim(SIDE, size), handed_in(1.2))
    assert (row["verdict"], row["qualifier"], row["size"]) == (verdicts.HOLDS, "", verdicts.DIFFERS)
    assert ledger.counts_of(row) == "1 yes"
    assert "published size: differs" in ledger.in_lines(row)[0]


def test_nothing_handed_in_is_said_so():
    assert ledger.judge(claim(SIDE), None)["verdict"] == verdicts.NOT_MEASURED
    assert ledger.judge(claim(corner=""), None)["verdict"] == verdicts.NOT_WRITTEN


def test_a_claim_that_no_measurement_decides_says_why():
    row = ledger.judge(claim(not_measurable="a text"), None)
    assert (row["verdict"], row["reason"]) == (verdicts.NOT_MEASURABLE, "a text")


def test_why_a_number_is_missing_stands_in_the_reason():
    row = ledger.judge(claim(SIDE), {**handed_in(1.2), "measurements": {}, "missing": {"x": "there is no valgrind"}})
    assert (row["verdict"], row["reason"]) == (verdicts.OPEN, "x: no number, there is no valgrind")


def test_a_renamed_or_missing_number_is_an_error_and_no_weaker_test():
    renamed = {**handed_in(1.2), "measurements": {"y": Measurement(Counted(1.2), "").as_json()}}
    with pytest.raises(ValueError, match="no test measures y"):
        ledger.judge(claim(SIDE), renamed)
    with pytest.raises(ValueError, match="nothing was handed in for 'x'"):
        ledger.judge(claim(SIDE), {**handed_in(1.2), "measurements": {}})


def test_expected_wrong_answers_count_the_chances_for_one():
    def expected(rule, number):
        return ledger.expected_wrong(
            [ledger.judge(claim(rule), {**handed_in(0), "measurements": {"x": number.as_json()}})]
        )

    assert expected(SIDE, about(1.2)) == expected(SIDE, about(0.9)) == pytest.approx(0.01)
    assert expected(SIDE, about(1.05)) == 0  # it is open
    assert expected(SIDE, Measurement(Counted(1.2), "")) == 0
    # That something is rarer than a rate rests on an interval; that it was seen does not.
    for rule in (Never("x", rate=0.15), Occurs("x", rate=0.15)):
        assert expected(rule, Measurement(Share(0, 30), "")) == pytest.approx(0.01)
        assert expected(rule, Measurement(Share(1, 30), "")) == 0
    assert ledger.expected_wrong([ledger.judge(claim(SIDE), None)]) == 0


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
    rule = '{kind = "side", measured = "ratio on {GIL}", direction = "above", null = 1.0, interest = 0.0}'
    other = '{kind = "side", measured = "ratio on {FREE_THREADED}", direction = "above", null = 1.0, interest = 0.0}'
    write_claims(tmp_path, f"test = [{rule}, {other}]")
    monkeypatch.setattr(claims, "NOTEBOOKS", tmp_path)
    return ledger.Handed(SimpleNamespace(corner="c", reads=set()))


def write_claims(folder, test, head=""):
    (folder / "c").mkdir(exist_ok=True)
    path = folder / "c" / "claims.toml"
    path.write_text(f'{head}\n[[claim]]\nid = "X1"\nwhere = "w"\nclaim = "c"\npublished = "p"\n{test}\n')
    return path


NUMBER = Measurement(Location(1.2, 0.02, 19, 20), "")


def test_what_is_handed_in_is_kept_only_where_the_press_asks_for_it(tell, handed, tmp_path, monkeypatch):
    """In JupyterLab nobody asks: what is seen there never gets into the ledger of the book."""
    for label in (GIL, FREE_THREADED):
        handed.put("X1", f"ratio on {label}", NUMBER)
    judged = ledger.rows_of(handed.complete(), {"is_result": True}, [])
    monkeypatch.setattr(ledger, "judged", lambda session: judged)
    before = set(tmp_path.rglob("*"))
    assert [row["verdict"] for row in ledger.hand_in(None)] == [verdicts.HOLDS]
    assert set(tmp_path.rglob("*")) == before
    tell(hand_in=str(tmp_path / "page" / "claims"))
    ledger.hand_in(None)
    kept = json.loads((tmp_path / "page" / "claims" / "X1.json").read_text())
    assert Measurement.from_json(kept["measurements"][f"ratio on {GIL}"]) == NUMBER


def test_a_row_says_that_its_page_is_stale(results):
    rows = ledger.collect({"loaders": ["the notebook"]})
    assert {row["id"] for row in rows if row["stale"] == ["the notebook"]} == {"A12", "A12b", "A13", "A14", "A25"}
    assert not [row["id"] for row in rows if row["stale"] and row["chapter"] not in ("loaders", "")]


def test_a_page_of_other_tests_says_so_and_stops_nothing(results, tmp_path):
    """A newer claims.toml beside an older page: its claim is not measured, and every other one is judged."""
    folder = tmp_path / "executed" / "loaders" / "claims"
    folder.mkdir(parents=True)
    for identifier in ("A12", "A12b", "A13", "A14"):
        (folder / f"{identifier}.json").write_text(json.dumps(handed_in(1.2)))
    rows = {row["id"]: row for row in ledger.collect()}
    assert rows["A12"]["verdict"] == verdicts.NOT_MEASURED
    assert rows["A12"]["reason"] == "its tests have changed since: `make chapter NAME=loaders` measures it again"


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


def test_a_number_rests_on_what_was_read_for_it_and_on_what_was_read_for_all():
    session = SimpleNamespace(corner="loaders", reads={"left from before"})
    handed = ledger.Handed(session)
    session.reads.add("for all")

    def reading(title):
        session.reads.add(title)
        return NUMBER

    names = [(claim.id, test.measured) for claim in claims.declared("loaders").claims for test in claim.tests]
    (first, second, third) = list(dict.fromkeys(names))[:3]
    handed.put(*first, lambda: reading("one"))
    handed.put(*second, lambda: reading("two"))
    handed.put(*third, "was not built")
    rests_on = {name: handed.rests_on[name[0]][name[1]] for name in (first, second, third)}
    assert rests_on == {first: {"for all", "one"}, second: {"for all", "two"}, third: {"for all"}}


def test_what_is_asked_of_a_session_is_worked_out_once_until_it_has_measured_more():
    session, asked = Reading("loaders", find(GOLDEN, "loaders")), []

    def make(given):
        asked.append(given)
        return len(asked)

    assert [session.once(make), session.once(make)] == [1, 1]
    assert ledger.sides(session) == ledger.sides(session)
    assert ledger.answers(session) is ledger.answers(session)


def test_rows_of_the_ledger_are_complete(results):
    ledger.collect()
    rows = json.loads((results / "ledger.json").read_text())
    keys = {"id", "chapter", "published", "measured", "interval", "verdict", "reason", "provenance", "kind", "size"}
    assert all(keys <= set(row) for row in rows)
    assert len(rows) == len(claims.all_claims())


def test_every_claim_of_a_chapter_has_rules_or_a_reason():
    for claim in claims.all_claims():
        assert bool(claim.tests or claim.not_measurable) == bool(claim.corner), claim.id


GOOD = '{kind = "side", measured = "x", direction = "above", null = 1.0, interest = 0.0}'


@pytest.mark.parametrize(
    ("test", "says"),
    [
        (
            '{kind = "side", measured = "x", direction = "above", null = 1.0, interest = 0.1, publishd = 1.2}',
            "publishd",
        ),
        ('{kind = "sid", measured = "x"}', "a kind: side, size"),
        ('{measured = "x", direction = "above", null = 1.0, interest = 0.1}', "a kind"),
        ('{kind = "side", measured = "x", direction = "abov", null = 1.0, interest = 0.1}', "direction"),
        ('{kind = "side", measured = "x", direction = "above", interest = 0.1}', "`null`"),
        (
            '{kind = "side", measured = "x", direction = "above", null = nan, interest = 0.1}',
            "finite number for `null`",
        ),
        (
            '{kind = "side", measured = "x", direction = "above", null = "1", interest = 0.1}',
            "finite number for `null`",
        ),
        (
            '{kind = "side", measured = "x", direction = "above", null = true, interest = 0.1}',
            "finite number for `null`",
        ),
        ('{kind = "side", measured = "x", direction = "above", null = 1.0}', "`interest`"),
        (
            '{kind = "side", measured = "x", direction = "above", null = 1.0, interest = 0.1, experiment = "run"}',
            "as run, corrected, beside",
        ),
        (f'{GOOD}, {{kind = "size", measured = "x", null = 1.0, published = 1.2}}', "`margin`"),
        (f'{GOOD}, {{kind = "size", measured = "x", null = 1.0, published = 1.2, margin = -1}}', "not negative"),
        (
            f'{GOOD}, {{kind = "size", measured = "x", null = 1.0, published = 1.2, margin = 0.1, rounding = -1}}',
            "not negative",
        ),
        ('{kind = "equal", measured = "x", null = 1.0}', "`margin`"),
        ('{kind = "never", measured = "x"}', "`rate`"),
        ('{kind = "occurs", measured = "x"}', "`rate`"),
        ('{kind = "occurs", measured = "x", rate = 0}', "between 0 and 1"),
        (f"{GOOD}, {GOOD}", "twice"),
        ('{kind = "occurs"}', "measured"),
        ('{kind = "occurs", measured = 3}', "measured"),
    ],
)
def test_a_rule_with_a_mistake_is_refused(tmp_path, test, says):
    with pytest.raises(UserError, match=says):
        claims.read(write_claims(tmp_path, f"test = [{test}]"), "c")
