"""The operating characteristics: the table that is kept, what it is held to, and a small one made again."""

import json
import math

import pytest
from scipy import stats

from ffilab.judge import characteristics, claims, verdicts
from ffilab.judge.rules import CORRECTED, KINDS, OPEN, YES, Conformance, Equal, Side, Size
from ffilab.judge.simulation import TRUTHS
from ffilab.judge.verdicts import AGREES, DIFFERS, FAILS, HOLDS, MIXED

RUNS = 12
KEPT = {characteristics.key(one): one for one in characteristics.kept()}
TESTED = {claim.id: claim for claim in claims.all_claims() if claim.tests and verdicts.kind(claim) == verdicts.MEASURED}
# Of each rule its part of the kept table, at `quick`, where what was published is exactly so.
AS_PUBLISHED = [
    (identifier, rule, part)
    for identifier, claim in TESTED.items()
    if (identifier, "as published", "quick") in KEPT
    for rule, part in zip(claim.tests, KEPT[identifier, "as published", "quick"]["parts"])
    if not isinstance(rule, Conformance)
]


def named(found):
    return f"{found[0]} {found[1].number} {type(found[1]).__name__}" if isinstance(found, tuple) else str(found)


def test_the_table_holds_every_claim_that_is_tested_with_every_truth_and_budget():
    assert set(KEPT) == {
        (identifier, truth, budget) for identifier in TESTED for truth in TRUTHS for budget in characteristics.BUDGETS
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
        wrong = round(characteristics.part_wrong(part) * one["runs"])
        assert stats.binom.sf(wrong - 1, one["runs"], characteristics.MAX_WRONG) > 1e-4, part


@pytest.mark.parametrize("found", AS_PUBLISHED, ids=named)
def test_quick_decides_what_is_exactly_as_published_or_the_rule_says_why_not(found):
    identifier, rule, part = found
    if not isinstance(rule, Size):
        often = characteristics.part_right(part)
        print(f"{identifier} {rule.title}: p(quick) = {often:.0%}")
        assert often >= characteristics.MIN_RIGHT or rule.hard


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


@pytest.mark.parametrize("identifier", TESTED)
def test_what_is_right_follows_the_truth(identifier):
    right = {truth: KEPT[identifier, truth, "full"]["right"] for truth in TRUTHS}
    # Half of its size refutes a part of C10. Of orders that do not differ, none is slow: D2 and D3 have nothing to ask.
    other = OPEN if identifier in ("D2", "D3") else FAILS
    assert right == dict(zip(TRUTHS, (HOLDS, MIXED if identifier == "C10" else HOLDS, other, other)))


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("chapter", [name for name in claims.chapter_names() if claims.declared(name).claims])
def test_without_noise_every_rule_says_what_is_true(chapter, truth):
    """As the kept table has it; and a half of a published size is not that size."""
    judged = characteristics.rows(chapter, truth, "full", 0, noise=0)
    assert set(judged) == TESTED.keys() & {claim.id for claim in claims.declared(chapter).claims}
    for name, row in judged.items():
        known = KEPT[name, truth, "full"]
        said = [(part["kind"], part["verdict"]) for part in row["parts"]]
        assert said == [(part["kind"], part["right"]) for part in known["parts"]], name
        assert row["verdict"] == known["right"]
        sized = any(isinstance(rule, Size) for rule in TESTED[name].tests)
        assert row["size"] == sized * (AGREES if truth == "as published" else DIFFERS)


@pytest.mark.full
@pytest.mark.parametrize("chapter", claims.chapter_names())
def test_a_small_table_made_again_agrees_with_the_one_that_is_kept(chapter):
    """With another seed: every share of right verdicts is what the kept one makes likely."""
    for one in [row for rows in characteristics.table([chapter], RUNS, seed=424_242) for row in rows]:
        known = KEPT[characteristics.key(one)]
        assert one["right"] == known["right"]
        likely = stats.fisher_exact([counted(one), counted(known)]).pvalue
        assert likely > 1e-4, (one, known)


def counted(row):
    right = round(characteristics.right_share(row) * row["runs"])
    return right, row["runs"] - right


def test_a_wrong_answer_is_the_opposite_of_the_right_one():
    def part(yes, no, right):
        return {"yes": yes, "no": no, "open": 1 - yes - no, "right": right}

    assert not characteristics.is_opposite(OPEN, YES)
    assert characteristics.part_wrong(part(0.5, 0.1, "yes")) == 0.1
    assert characteristics.part_wrong(part(0.5, 0.1, "no")) == 0.5
    assert characteristics.part_wrong(part(0.5, 0.1, "open")) == 0
    assert characteristics.part_right(part(0.5, 0.1, "open")) == pytest.approx(0.4)


def test_a_row_counts_words_answers_and_widths():
    def said(verdict, *answers):
        return {"verdict": verdict, "answers": list(zip(answers, (0.1, math.nan)))}

    parts = [{"number": "x", "kind": "side", "verdict": "yes"}, {"number": "y", "kind": "never", "verdict": "no"}]
    right = {"id": "A1", "verdict": "mixed", "parts": parts}
    runs = [
        said("mixed", "yes", "no"),
        said("open", "open", "open"),
        said("does not hold", "no", "no"),
        said("mixed", "yes", "open"),
    ]
    row = characteristics.row_of("no effect", "quick", right, runs)
    assert row["verdicts"] == {"mixed": 0.5, "open": 0.25, "does not hold": 0.25}
    assert (row["right"], row["wrong"], row["open"]) == ("mixed", 0.25, 0.25)
    assert [(part["yes"], part["no"], part["open"]) for part in row["parts"]] == [(0.5, 0.25, 0.25), (0, 0.5, 0.5)]
    assert [part["half_width"] for part in row["parts"]] == [0.1, None]


def test_keeping_a_part_keeps_the_others_and_what_was_before(tmp_path):
    path = tmp_path / "kept.json"
    first = {"claim": "A1", "truth": "no effect", "budget": "quick", "runs": 1, "before": {"wrong": 0.5}}
    gone = {**first, "claim": "A99"}
    characteristics.keep([first, {**first, "budget": "full"}, {**first, "claim": "A2"}, gone], path)
    characteristics.keep([{**first, "runs": 2} | {"before": None}], path)
    found = [(one["claim"], one["budget"], one["runs"]) for one in json.loads(path.read_text())]
    assert found == [("A1", "quick", 2), ("A1", "full", 1), ("A2", "quick", 1)]
