"""The sentences that the book composes of a run's answers, read in every form: they are sentences, and say what was
found."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ffilab.judge import ledger, processes, verdicts, wording
from ffilab.judge.claims import all_claims
from ffilab.judge.estimates import Interval, Location
from ffilab.judge.poured import Digits
from ffilab.judge.rules import KINDS, NO, OPEN, YES, Conformance, Equal, Never, Occurs, Side, Size
from ffilab.page import advice, ledger_page, parts
from ffilab.run.budget import BUDGETS
from tests.helpers.made_claims import ABOVE, NAME, SIZE, row
from tests.helpers.of_chapter import about, counted, seen
from tests.helpers.prose import faults_of_markdown as faults

EQUAL = Equal(NAME, "the part", null=1.0, margin=0.1)
RULES = {
    "above 1 by 0.05": ABOVE,
    "below 1 by 0.5": Side(NAME, "the part", direction="below", null=1.0, interest=0.5),
    "above 1, or below by less than 0.1": Side(NAME, "the part", direction="above", null=1.0, interest=-0.1),
    "of the published size 1.4": SIZE,
    "equal to 1 but for 0.1": EQUAL,
    "equal to 1": Equal(NAME, "the part", null=1.0, margin=0.0),
    "occurs": Occurs(NAME, "the part", rate=0.15),
    "never": Never(NAME, "the part", rate=0.15),
    "by construction": Conformance(NAME, "our own code is right"),
}
RATIOS = [about(ratio) for ratio in (0.3, 0.5, 0.7, 0.8, 0.9, 0.97, 1.0, 1.02, 1.05, 1.1, 1.2, 1.3, 1.4)]
RATIOS += [about(1.02, 0.05), Location.of([1.2]), *map(counted, (0.8, 1.0, 1.2))]
EVENTS = [seen(5), seen(0), seen(0, 10)]


def answers(rule):
    """What a rule answers to each estimate that it may be asked about."""
    estimates = EVENTS if rule.counts else RATIOS
    estimates = map(counted, (1, 0.5)) if isinstance(rule, Conformance) else estimates
    return [(estimate, rule.answer(estimate)) for estimate in estimates]


def card(row):
    """The card of a claim, cut out of the page."""
    return re.search(r"^::::::\{card\}\n.*?^::::::$", ledger_page.page([row]), re.M | re.S)[0]


def test_every_kind_stands_in_every_form_and_says_what_it_said(held):
    lines, given = [], {kind: set() for kind in KINDS.values()}
    for name, rule in RULES.items():
        for estimate, answer in answers(rule):
            given[type(rule)].add(answer.verdict)
            known = estimate.at()
            asked = f"{name}? {known.value:.3g} [{known.low:.3g}, {known.high:.3g}], n = {estimate.n}"
            lines.append(f"- {asked}: *{answer.verdict}*; {answer.reason}")
    assert given.pop(Conformance) == {YES, NO}
    for kind, verdicts_given in given.items():
        assert verdicts_given == {YES, NO, OPEN}, kind
    held("made_up/answers.md", "\n".join(lines) + "\n")


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_each_answer_reads_well(rule):
    for estimate, answer in answers(rule):
        # A size stands beside its side.
        answered = row(estimate, *([ABOVE] if isinstance(rule, Size) else []), rule)
        for text in (answer.reason, *ledger.in_lines(answered), card(answered)):
            assert faults(text) == [], text


@pytest.mark.parametrize(
    ("found", "further", "verdict"),
    [
        (about(1.2), {"withheld": "A/A, once / again, in 'calls' on 3.14: 1.02 [1.01, 1.03]"}, verdicts.WITHHELD),
        ("there is no valgrind", {}, OPEN),
        (about(1.2), {"is_result": False}, verdicts.NO_RESULT),
    ],
)
@pytest.mark.parametrize("rule", [ABOVE, EQUAL], ids=["side", "equal"])
def test_what_is_withheld_or_has_no_number_reads_well_too(rule, found, further, verdict):
    without = row(found, rule, **further)
    for text in (*ledger.in_lines(without), card(without)):
        assert faults(text) == [], text
    assert without["verdict"] == verdict


def test_a_claim_of_a_chapter_that_was_not_measured_reads_well():
    for claim in all_claims():
        unmeasured = {**ledger.judge(claim, None), "stale": ["the notebook"]}
        assert [line for line in ledger.in_lines(unmeasured) if faults(line)] == [], claim.id
        # Facts have no card.
        assert claim.fact or faults(card(unmeasured)) == [], claim.id


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


@pytest.mark.parametrize(
    ("value", "low", "high", "is_counted", "says"),
    [
        (0.814, 0.814, 0.814, True, "0.814"),
        (0.814, 0.814, 0.814, False, "0.814 (all values alike)"),
        (0.8, float("nan"), float("nan"), False, "0.8 (too few runs for an interval)"),
        (0.8, 0.7, 0.9, False, "0.80 [0.70, 0.90]"),
    ],
)
def test_a_number_without_an_interval_is_not_printed_with_one(value, low, high, is_counted, says):
    known = {"numbers": {NAME: value}, "interval": {NAME: [low, high]}, "counted": [NAME] * is_counted}
    assert advice.value_of(known, NAME) == says


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


def test_what_cannot_be_negative_is_at_most_its_bound():
    """A time or a share has no bound below zero; a difference may."""
    values = [1.0, 2.0, 30.0]
    assert wording.text(processes.location(np.array(values)).at(), "ns").startswith("at most ")
    assert processes.location(np.array(values), signed=True).at().low < 0
    assert processes.difference(np.array(values), np.zeros(3)).at().low < 0
    assert processes.interval_of(pd.DataFrame({"ns": values}), "ns").low == 0
    assert processes.interval_of(pd.DataFrame({"ns": [-1.0, *values]}), "ns").low < 0
    assert wording.text(Interval(0.2, 0.0, 0.71), "%", 100) == "at most 71 %"
    assert wording.text(Interval(0.0, 0.0, 0.09)) == "0.000 [0.000, 0.090]"
