"""The sentences that the book composes of a run's answers, read in every form: they are sentences, and say what was
found."""

import re
from types import SimpleNamespace

import pytest

from ffilab.judge import ledger, verdicts
from ffilab.judge.claims import Claim, all_claims
from ffilab.judge.estimates import Location
from ffilab.judge.numbers import Number
from ffilab.judge.poured import Digits
from ffilab.judge.rules import KINDS, NO, OPEN, YES, Conformance, Equal, Never, Occurs, Side, Size
from ffilab.page import advice, ledger_page, parts
from ffilab.run.budget import BUDGETS
from tests.helpers.of_chapter import about, counted, seen
from tests.helpers.prose import faults_of_markdown as faults
from tests.test_ledger_page import card

PROVENANCE = {"is_result": True, "minutes": 2.0, "budget": "quick"}


ABOVE = Side("a / b", "the part", direction="above", null=1.0, interest=0.05)
BELOW = Side("a / b", "the part", direction="below", null=1.0, interest=0.5)
NOT_SLOWER = Side("a / b", "the part", direction="above", null=1.0, interest=-0.1)
SIZE = Size("a / b", "the part", null=1.0, published=1.4, margin=0.25)
EQUAL = Equal("a / b", "the part", null=1.0, margin=0.1)
EXACTLY = Equal("a / b", "the part", null=1.0, margin=0.0)
NEVER = Never("a / b", "the part", rate=0.15)
OCCURS = Occurs("a / b", "the part", rate=0.15)

# Each kind in each form: rule, measurement, answer, and what its reason has to say.
FORMS = [
    (ABOVE, about(1.2), YES, "the whole interval lies above 1.05"),
    (ABOVE, about(0.8), NO, "the other way round: the whole interval lies below 1"),
    (ABOVE, about(1.02), NO, "less than is of interest: the whole interval lies between 1 and 1.05"),
    (ABOVE, about(1.0), NO, "no effect of interest: the interval contains 1, and does not reach 1.05"),
    (ABOVE, about(1.05), OPEN, "the side is clear; the interval contains 1.05"),
    (ABOVE, about(1.02, 0.05), OPEN, "the interval contains 1, no effect, and 1.05"),
    (ABOVE, counted(1.2), YES, "it is 1.2, above 1.05"),
    (ABOVE, counted(1.0), NO, "no effect of interest: it is 1"),
    (ABOVE, counted(0.8), NO, "the other way round: it is 0.8, below 1"),
    (ABOVE, Location.of([1.2]), OPEN, "too few"),
    (BELOW, about(0.3), YES, "the whole interval lies below 0.5"),
    (BELOW, about(1.3), NO, "the other way round: the whole interval lies above 1"),
    (BELOW, about(0.7), NO, "less than is of interest: the whole interval lies between 1 and 0.5"),
    (BELOW, about(0.5), OPEN, "the side is clear; the interval contains 0.5"),
    (NOT_SLOWER, about(0.97), YES, "the whole interval lies above 0.9, the margin"),
    (NOT_SLOWER, about(0.8), NO, "beyond the margin: the whole interval lies below 0.9"),
    (NOT_SLOWER, about(0.9), OPEN, "the interval contains 0.9, the margin"),
    (SIZE, about(1.4), YES, "within the published 1.4 ± 0.1 (25 % of its effect)"),
    (SIZE, about(1.1), NO, "outside the published 1.4 ± 0.1"),
    (SIZE, about(1.3), OPEN, "crosses the edge of the published 1.4 ± 0.1"),
    (EQUAL, about(1.0), YES, "within 1 ± 0.1"),
    (EQUAL, about(1.3), NO, "outside 1 ± 0.1"),
    (EQUAL, about(1.1), OPEN, "crosses the edge of 1 ± 0.1"),
    (EXACTLY, counted(1.0), YES, "it is 1, as claimed"),
    (EXACTLY, counted(0.8), NO, "it is 0.8, outside 1"),
    (OCCURS, seen(5), YES, "it happened in 5 of 30 runs"),
    (OCCURS, seen(0), NO, "not seen in 30 runs, so rarer than 14.2%"),
    (OCCURS, seen(0, 10), OPEN, "to exclude 15.0% takes 29 runs"),
    (NEVER, seen(0), YES, "not seen in 30 runs, so rarer than 14.2%"),
    (NEVER, seen(2), NO, "2 of 30 runs"),
    (NEVER, seen(0, 10), OPEN, "to exclude 15.0% takes 29 runs"),
    (Conformance("a / b"), counted(1), YES, "true by construction"),
    (Conformance("a / b"), counted(0.5), NO, "should be true by construction"),
]


def test_every_kind_stands_in_every_form():
    for kind in KINDS.values():
        answers = {answer for rule, _, answer, _ in FORMS if type(rule) is kind}
        possible = {Conformance: {YES, NO}}
        assert answers == possible.get(kind, {YES, NO, OPEN})


def given(measured, withheld=None, missing=None, **provenance):
    found = {name: Number(one) for name, one in measured.items()}
    found |= {name: Number(None, why) for name, why in (missing or {}).items()}
    return ledger.Given(found, PROVENANCE | provenance, withheld or {})


def row_of(rule, measured, **further):
    """The ledger's row of a claim with one test; a size stands beside its side."""
    rules = (ABOVE, rule) if isinstance(rule, Size) else (rule,)
    claim = Claim("A1", "loaders", "A, a slide", "One is slower.", "1.4", rules)
    return {**ledger.judge(claim, given(measured, **further)), "stale": []}


@pytest.mark.parametrize(("rule", "found", "answer", "says"), FORMS)
def test_each_answer_reads_well_and_says_what_was_found(rule, found, answer, says):
    answered = rule.answer(found)
    assert (answered.verdict, says in answered.reason) == (answer, True), answered.reason
    row = row_of(rule, {"a / b": found})
    for text in (answered.reason, *ledger.in_lines(row), card(row)):
        assert faults(text) == [], text


WITHOUT = {
    "withheld": {"withheld": {"a / b": "A/A, once / again, in 'calls' on 3.14: 1.02 [1.01, 1.03]"}},
    "no number": {"numbers": {}, "missing": {"a / b": "there is no valgrind"}},
    "smoke": {"is_result": False},
}


@pytest.mark.parametrize("case", WITHOUT)
@pytest.mark.parametrize("rule", [ABOVE, EQUAL])
def test_what_is_withheld_or_has_no_number_reads_well_too(rule, case):
    further = dict(WITHOUT[case])
    row = row_of(rule, further.pop("numbers", {"a / b": about(1.2)}), **further)
    for text in (*ledger.in_lines(row), card(row)):
        assert faults(text) == [], text
    assert row["verdict"] == {"withheld": verdicts.WITHHELD, "no number": OPEN, "smoke": verdicts.NO_RESULT}[case]


def test_a_claim_of_a_chapter_that_was_not_measured_reads_well():
    for claim in all_claims():
        row = {**ledger.judge(claim, None), "stale": ["the notebook"]}
        assert [line for line in ledger.in_lines(row) if faults(line)] == [], claim.id
        assert faults(card(row)) == [], claim.id


def test_each_claim_has_a_card_that_the_overview_leads_to():
    """Also one of a document that nobody foresaw, and one with more lines than are shown at once."""
    rows = [
        row_of(SIZE, {"a / b": about(1.4)}) | {"id": name, "untested": ["x", "y", "z"]} for name in ("A2", "B1", "X1")
    ]
    text = ledger_page.page([{**row, "provenance": {}} for row in rows])
    assert (
        re.findall(r"\(#(claim-\w+)\)", text)
        == re.findall(r"^\((claim-\w+)\)=$", text, re.M)
        == ["claim-a2", "claim-b1", "claim-x1"]
    )
    assert text.count("{dropdown}") == 3
    assert "*Published size:* {bdg-success}`agrees`" in text


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('chapter = "nowhere"\nsay = "x"', "no chapter"),
        ('chapter = "loaders"\nsay = "x"\nsays = "y"', "asks nothing"),
        ('chapter = "loaders"\nsay = "x"\nyes = "y"', "asks nothing"),
        ('chapter = "loaders"\nsay = "x"\nask = {claim = "A12", number = "typo"}', "does not test"),
        ('chapter = "loaders"', "says nothing"),
        (
            'chapter = "loaders"\nsay = "x"\nask = {claim = "A12", number = "getpid: ratio on {GIL}"}\nyes = "y"',
            "no form for",
        ),
    ],
)
def test_advice_with_a_mistake_is_refused(tmp_path, entry, says):
    path = tmp_path / "best_practice.toml"
    path.write_text(f"[[advice]]\n{entry}\n")
    with pytest.raises(Exception, match=says):
        advice.entries(path)


def test_a_number_without_an_interval_is_not_printed_with_one():
    row = {
        "numbers": {"counted": 0.814, "alike": 0.814, "few": 0.8, "known": 0.8},
        "interval": {"counted": [0.814] * 2, "alike": [0.814] * 2, "few": [float("nan")] * 2, "known": [0.7, 0.9]},
        "counted": ["counted"],
    }
    assert advice.value_of(row, "counted") == "0.814"
    assert advice.value_of(row, "alike") == "0.814 (all values alike)"
    assert "too few" in advice.value_of(row, "few")
    assert advice.value_of(row, "known") == "0.80 [0.70, 0.90]"


@pytest.mark.parametrize(
    ("minutes", "says"),
    [
        ({}, "No chapter was measured yet."),
        ({"loaders": 2.0}, "In this copy, `quick` measured for 2 min 00 s in the one chapter."),
        ({"loaders": 2.0, "races": 4.5}, "for 2 min 00 s to 4 min 30 s in each of 2 chapters, 6 min 30 s in all."),
    ],
)
def test_the_run_says_how_long_it_took(minutes, says):
    sessions = {name: SimpleNamespace(minutes=took, budget=BUDGETS["quick"]) for name, took in minutes.items()}
    assert says in parts.minutes_page({"records that are gone": None, **sessions})


def test_digits_that_a_form_asks_for_have_no_exponent():
    said = [f"{Digits(value):.2g}" for value in (0.0123, 1.44, 79.2, 144.0, 14_400.0)]
    assert said == ["0.012", "1.4", "79", "140", "14,000"]
