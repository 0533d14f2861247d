"""Margins and interests of the rules: none asks for what a run of `quick` cannot resolve, none is settled in advance,
and a published size is asked of no other experiment than its author's."""

import statistics

import pytest

from ffilab.judge import numbers
from ffilab.judge.claims import chapter_names, declared
from ffilab.judge.rules import CORRECTED, Equal, Side, Size
from ffilab.judge.simulation import simulate

RUNS = 5


def margin(rule) -> float | None:
    """By how much a number may be off, in its own unit; None if the rule is about a side, or about one exact value."""
    if isinstance(rule, Size) or (isinstance(rule, Equal) and rule.margin):
        centre, low, high = rule.bounds
        return min(centre - low, high - centre)
    return -rule.interest if isinstance(rule, Side) and rule.interest < 0 else None


@pytest.mark.parametrize("chapter", chapter_names())
def test_a_published_size_is_asked_of_the_experiment_as_its_author_ran_it(chapter):
    """Of no corrected one; what stands beside the claim counts for no size."""
    sizes = [(claim.id, rule) for claim in declared(chapter).claims for rule in claim.tests if isinstance(rule, Size)]
    assert [(name, rule.number) for name, rule in sizes if rule.experiment == CORRECTED] == []


@pytest.mark.parametrize("chapter", [name for name in chapter_names() if declared(name).claims])
def test_no_margin_is_narrower_than_two_half_widths_of_quick(chapter):
    """Unless the rule says why, as `hard`: an interval would have to lie almost on the centre to agree."""
    runs = [numbers.of(simulate(chapter, "as published", "quick", seed)) for seed in range(RUNS)]
    narrow = []
    for claim in declared(chapter).claims:
        for rule in claim.tests:
            found = [measurement for one in runs if (measurement := one[rule.number].measurement)]
            if rule.hard or not found or margin(rule) is None:
                continue
            half = statistics.median(one.interval.half_width for one in found)
            if margin(rule) < 2 * half:
                narrow.append((claim.id, rule.number, type(rule).__name__, margin(rule), half))
    assert not narrow
