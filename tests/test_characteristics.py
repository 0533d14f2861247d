"""The operating characteristics: the table that is kept, what it is held to, and that it follows from the kept
estimates."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from ffilab.judge import claims
from ffilab.judge.estimates import Counted, Location, Share, Spread
from ffilab.judge.rules import CORRECTED, KINDS, NO, OPEN, YES, Conformance, Equal, Never, Occurs, Side, Size
from ffilab.judge.verdicts import FAILS, HOLDS, HOLDS_SO_FAR, MIXED, NO_NUMBER
from ffilab.page import characteristics as page
from ffilab.run.budget import BUDGETS
from ffilab.run.errors import UserError
from studies import characteristics, kept
from studies.characteristics import ESTIMATES, TRUTHS, at_budget, drawn, endless
from tests.helpers.of_chapter import GOLDEN

ROWS = kept.read_sessions(characteristics.TABLE)
KEPT = {page.key(one): one for one in ROWS}
KNOWN = kept.read_sessions(ESTIMATES)
TESTED = {claim.id: claim for claim in characteristics.tested()}
# Of a claim that the kept runs know nothing of there are no rows: no machine of ours shows what it takes, or no order
# misses.
IN_TABLE = {identifier: claim for identifier, claim in TESTED.items() if identifier not in ("D2", "D3")}
# Of each rule its part of the kept table, at `quick`, where what was published is exactly so.
AS_PUBLISHED = [
    (identifier, rule, part)
    for identifier, claim in IN_TABLE.items()
    for rule, part in zip(claim.tests, KEPT[identifier, "as published", "quick"]["parts"])
    if not isinstance(rule, Conformance) and part["right"] != NO_NUMBER
]


def named(found):
    return f"{found[0]} {found[1].number} {type(found[1]).__name__}" if isinstance(found, tuple) else str(found)


# ---- the table ----


def test_the_table_holds_every_claim_that_is_tested_with_every_truth_and_budget():
    assert set(KEPT) == {
        (identifier, truth, budget) for identifier in IN_TABLE for truth in TRUTHS for budget in page.BUDGETS
    }
    for (identifier, *_), one in KEPT.items():
        tests = [(rule.number, KINDS[part["kind"]]) for rule, part in zip(TESTED[identifier].tests, one["parts"])]
        assert tests == [(rule.number, type(rule)) for rule in TESTED[identifier].tests], "make the study again"


@pytest.mark.parametrize("key", KEPT, ids=" ".join)
def test_a_row_is_held_to_its_limits(key):
    one = KEPT[key]
    assert sum(one["verdicts"].values()) == pytest.approx(1)
    assert one["provenance"]["command"] == characteristics.COMMAND
    for part in one["parts"]:
        # So many of its runs were wrong as chance allows where one in a hundred is.
        wrong = round(page.part_wrong(part) * one["runs"])
        assert stats.binom.sf(wrong - 1, one["runs"], page.MAX_WRONG) > 1e-4, part


@pytest.mark.parametrize("found", AS_PUBLISHED, ids=named)
def test_quick_decides_what_is_exactly_as_published_or_the_rule_says_why_not(found):
    identifier, rule, part = found
    if not isinstance(rule, Size):
        often = part[part["right"]]
        print(f"{identifier} {rule.part}: p(quick) = {often:.0%}")
        assert often >= page.MIN_RIGHT or rule.hard


def margin(rule) -> float | None:
    """By how much a number may be off, in its own unit; None if the rule is about a side, or about one exact value."""
    if isinstance(rule, Size) or (isinstance(rule, Equal) and rule.margin):
        centre, low, high = rule.bounds
        return min(centre - low, high - centre)
    return -rule.interest if isinstance(rule, Side) and rule.interest < 0 else None


@pytest.mark.parametrize("found", [one for one in AS_PUBLISHED if margin(one[1])], ids=named)
def test_no_margin_is_below_two_half_widths_at_quick_without_a_reason(found):
    """An interval would have to lie almost on the centre to agree."""
    _, rule, part = found
    if part["half_width"]:
        assert margin(rule) >= 2 * part["half_width"] or rule.hard, f"{margin(rule):.3g}, ±{part['half_width']:.3g}"


def test_a_published_size_is_asked_of_the_experiment_as_its_author_ran_it():
    """Of no corrected one; what stands beside the claim counts for no size."""
    sizes = [rule for claim in claims.all_claims() for rule in claim.tests if isinstance(rule, Size)]
    assert [rule.number for rule in sizes if rule.experiment == CORRECTED] == []


@pytest.mark.parametrize("identifier", IN_TABLE)
def test_what_is_right_follows_the_truth(identifier):
    """A half of a published size is not that size."""
    for truth, word in zip(TRUTHS, (HOLDS, MIXED if identifier == "C10" else HOLDS, FAILS, FAILS)):
        # Half of its size refutes a part of C10.
        row = KEPT[identifier, truth, "full"]
        # What no run has measured yet has no number.
        parts = zip(TESTED[identifier].tests, row["parts"], strict=True)
        decides = [part["right"] for rule, part in parts if rule.decides and not isinstance(rule, Size)]
        lacks = NO_NUMBER in decides
        assert row["right"] == (f"{word} so far" if lacks else word)
        sizes = {part["right"] for part in row["parts"] if part["kind"] == "size"} - {NO_NUMBER}
        # The margin of A6 is half of the effect.
        if sizes and (identifier, truth) != ("A6", "half the size"):
            assert sizes == {YES} if truth == "as published" else NO in sizes


@pytest.mark.parametrize("identifier", IN_TABLE)
def test_the_table_follows_from_the_kept_estimates(identifier):
    for one in characteristics.table(KNOWN, [TESTED[identifier]]):
        known = KEPT[page.key(one)]
        assert one["right"] == known["right"]
        # Another version of a library may round a bound otherwise, and turn an answer in one run.
        assert page.right_share(one) == pytest.approx(page.right_share(known), abs=0.02), "make the study again"


def test_a_wrong_answer_is_the_opposite_of_the_right_one():
    def part(yes, no, right):
        return {"yes": yes, "no": no, "open": 1 - yes - no, "right": right}

    assert not page.is_opposite(OPEN, YES)
    assert page.part_wrong(part(0.5, 0.1, "yes")) == 0.1
    assert page.part_wrong(part(0.5, 0.1, "no")) == 0.5
    assert page.part_wrong(part(0.5, 0.1, "open")) == 0


# ---- what is drawn ----

QUICK, FULL = BUDGETS["quick"], BUDGETS["full"]
RATIO = Location(0.1, 0.005, 18, 18, True, floor=0.004, spread=0.01, spread_freedom=17)
PROCESSES = Location(0.5, 0.1, 9, 10)


@pytest.mark.parametrize("builds", [1, 3])
@pytest.mark.parametrize(("estimate", "true"), [(RATIO, 1.02), (PROCESSES, 0.3), (Share(3, 30), 0.2)])
def test_intervals_of_what_is_drawn_hold_the_truth(estimate, true, builds):
    rng = np.random.default_rng(5)
    inside = sum(not drawn(estimate, true, builds, rng).at().excludes(true) for _ in range(2_000))
    # What one build adds stands in no interval of it.
    assert inside / 2_000 >= (0.9 if estimate is RATIO and builds == 1 else 0.97)


def test_what_is_drawn_has_the_error_that_is_kept():
    rng = np.random.default_rng(6)
    found = [drawn(PROCESSES, 0.3, 1, rng) for _ in range(2_000)]
    assert np.std([one.centre for one in found]) == pytest.approx(0.1, rel=0.05)
    assert np.mean([one.error**2 for one in found]) == pytest.approx(0.01, rel=0.05)
    spreads = [drawn(Spread(0.0, 1e-4, 15, 10, 2.77), 1.1, 1, rng).at().value for _ in range(500)]
    assert np.median(spreads) == pytest.approx(1.1, abs=0.01)


def test_a_longer_run_lowers_what_more_runs_lower():
    longer = at_budget(RATIO, FULL)
    assert longer.n == 36
    assert longer.floor == RATIO.floor
    assert longer.error**2 - longer.floor**2 == pytest.approx((RATIO.error**2 - RATIO.floor**2) / 2)
    assert at_budget(PROCESSES, FULL).error == pytest.approx(0.1 / math.sqrt(3))
    assert at_budget(Share(0, 10), FULL).trials == 30
    # What `quick` asks of thirty processes, `full` asks of thirty.
    assert at_budget(Share(0, 30), FULL).trials == 30
    assert at_budget(RATIO, QUICK) == RATIO
    # What others disturbed counts as made.
    lost = at_budget(replace(PROCESSES, n=8), QUICK)
    assert lost.n == 10
    assert lost.error == pytest.approx(0.1 * math.sqrt(0.8))


def test_a_size_scatters_as_much_more_as_it_is_larger_and_a_difference_that_may_be_none_does_not():
    size = replace(PROCESSES, error=0.05)
    assert characteristics.grown(size, 2.0).error == pytest.approx(0.2)
    assert characteristics.grown(size, 0.1) == size
    assert characteristics.grown(replace(size, centre=0.01), 2.0).error == 0.05


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        (Size("x", null=1.0, published=4.0, margin=0.2), (4.0, 2.0, 1.0, 0.25)),
        (Size("x", null=0.0, published=4.0, margin=0.2), (4.0, 2.0, 0.0, -4.0)),
        (Side("x", direction="above", null=0.0, interest=2.0), (10.0, 5.0, 0.0, -10.0)),
        (Side("x", direction="below", null=1.0, interest=0.1), (0.9**5, 0.9**2.5, 1.0, 0.9**-5)),
        (Side("x", direction="below", null=1.0, interest=-0.2), (1.0, 1.1, 1.4, 1.8)),
        (Equal("x", null=1.0, margin=0.2), (1.0, 1.1, 1.4, 1.8)),
        (Equal("x", null=1.0, margin=0.0), (1.0, 1.0, 0.0, 0.0)),
        (Occurs("x", rate=0.1), (1.0, 0.5, 0.0, 0.0)),
        (Never("x", rate=0.1), (0.0, 0.0, 0.2, 0.4)),
    ],
)
def test_each_kind_of_rule_has_its_truths(rule, values):
    assert [characteristics.value([rule], truth) for truth in TRUTHS] == pytest.approx(values)
    known = Share(0, 30) if rule.counts else Counted(0.0)
    said = [rule.answer(endless(known, one)).verdict for one in values]
    assert said == [YES, NO if isinstance(rule, Size) else YES, NO, NO]


# ---- what a run knows ----


def test_what_a_run_knows_is_kept_once(monkeypatch):
    loaders = [claim for claim in TESTED.values() if claim.chapter == "loaders"]
    monkeypatch.setattr(characteristics, "tested", lambda: loaders)
    known = characteristics.known_by(GOLDEN)
    # Of a golden record, which is cut down, one may be left without a number.
    assert {row["number"] for row in known} <= {rule.number for claim in loaders for rule in claim.tests}
    assert len(known) > len(loaders)
    assert all(row["provenance"]["commit"] and isinstance(row["estimate"], dict) for row in known)
    first = {**known[0], "estimate": "kept before"}
    gone = {**known[0], "number": "of a claim that is no more"}
    assert characteristics.added([gone, first], known) == [first, *known[1:]]
    estimates = characteristics.estimates_of(loaders[0], known)
    assert isinstance(estimates[known[0]["number"]], Location)


def test_a_shorter_run_is_refused(monkeypatch):
    monkeypatch.setattr(characteristics, "tested", lambda: [TESTED["A24a"]])
    with pytest.raises(UserError, match="measured at `smoke`"):
        characteristics.known_by(GOLDEN.with_name("golden-poor"))


def test_a_row_counts_words_answers_and_what_no_run_knows():
    claim = TESTED["A14"]
    row = characteristics.row_of(claim, {}, "as published", "quick", 2, 0)
    assert row is None
    (kept_, crashes), parts = (claim.tests[0].number, claim.tests[2].number), len(claim.tests)
    known = {kept_: Location(1.0, 0.01, 9, 10), crashes: Share(0, 30)}
    row = characteristics.row_of(claim, known, "as published", "quick", 20, 0)
    assert row == row | {"verdicts": {HOLDS_SO_FAR: 1.0}, "right": HOLDS_SO_FAR, "wrong": 0.0, "open": 0.0}
    assert [part["right"] for part in row["parts"]].count(NO_NUMBER) == parts - 2
    assert [part["half_width"] is None for part in row["parts"]].count(False) == 2
