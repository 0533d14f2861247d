"""The kinds of tests that a claim can have, and their laws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffilab.judge import controls
from ffilab.judge.estimates import LEVEL, TRIMMED_FROM, Interval, Location
from ffilab.judge.rules import NO, OPEN, YES, Conformance, Equal, Never, Occurs, Side, Size
from ffilab.measure import noise
from ffilab.run.paths import ROOT
from tests.helpers.of_chapter import about, counted, seen

ABOVE = Side("x", direction="above", null=1.0, interest=0.02)
BELOW = Side("x", direction="below", null=1.0, interest=0.5)
NOT_SLOWER = Side("x", direction="above", null=1.0, interest=-0.1)
SIZE = Size("x", null=1.0, published=1.4, margin=0.25)
EQUAL = Equal("x", null=1.0, margin=0.1)


def of(rule, value, low, high):
    return rule.of(about(value), Interval(value, low, high)).verdict


@pytest.mark.parametrize(
    ("rule", "events", "trials", "verdict", "says"),
    [
        (Occurs("x", rate=0.15), 0, 28, OPEN, "to exclude 15.0% takes 29 runs"),
        (Never("x", rate=0.15), 0, 28, OPEN, "takes 29 runs"),
        (Never("x", rate=0.15), 0, 29, YES, "14.7%"),
        (Never("x", rate=0.015), 0, 304, OPEN, "takes 305 runs"),
        (Never("x", rate=0.015), 0, 305, YES, "rarer than 1.5%"),
    ],
)
def test_how_many_runs_without_an_event_say_enough(rule, events, trials, verdict, says):
    answer = rule.answer(seen(events, trials))
    assert answer.verdict == verdict
    assert says in answer.reason


@pytest.mark.parametrize("kind", [Occurs, Never])
def test_an_event_is_counted_and_not_estimated(kind):
    with pytest.raises(TypeError, match="counts"):
        kind("x", rate=0.1).answer(about(0.0))


@pytest.mark.parametrize(
    ("rule", "log", "bias"),
    [
        (ABOVE, True, math.log(1.02) / 2),
        (ABOVE, False, 0.01),
        (NOT_SLOWER, False, 0.05),
        (SIZE, True, math.log(1.5 / 1.4) / 2),
        (SIZE, False, 0.05),
        (EQUAL, False, 0.05),
        (Side("x", direction="above", null=0.0, interest=0.1), True, 0.0),
        (Side("x", direction="above", null=1.0, interest=0.0), True, 0.0),
        (Never("x", rate=0.1), False, 0.0),
        (Conformance("x"), False, 0.0),
    ],
)
def test_a_bias_below_half_of_what_is_of_interest_can_be_borne(rule, log, bias):
    assert rule.bearable(log) == pytest.approx(bias)


def test_only_what_was_seen_or_counted_is_a_proof():
    for kind in (Never, Occurs):
        rule = kind("x", rate=0.1)
        assert rule.is_proof(seen(1))
        assert not rule.is_proof(seen(0))
    assert not ABOVE.is_proof(seen(30))
    assert not ABOVE.is_proof(about(2.0))
    assert ABOVE.is_proof(counted(2.0))


@pytest.mark.parametrize("rule", [ABOVE, BELOW, SIZE, EQUAL])
def test_too_few_runs_are_undecided(rule):
    answer = rule.answer(Location.of(np.array([1.0, 1.1])))
    assert answer.verdict == OPEN
    assert "too few" in answer.reason


FLOATS = st.floats(-3, 3)
RULES = st.one_of(
    st.builds(Side, st.just("x"), direction=st.sampled_from(["above", "below"]), null=FLOATS, interest=FLOATS),
    st.builds(Size, st.just("x"), null=FLOATS, published=FLOATS, margin=st.floats(0, 1)),
    st.builds(Equal, st.just("x"), null=FLOATS, margin=st.floats(0, 2)),
)


@given(RULES, st.lists(FLOATS, min_size=5, max_size=5))
def test_width_decides_nothing(rule, points):
    """A narrower interval inside a wider one never turns its answer into another; what the wider one decides, it
    decides."""
    a, b, middle, c, d = sorted(points)
    narrow, wide = of(rule, middle, b, c), of(rule, middle, a, d)
    assert wide in (narrow, OPEN)


@given(RULES, FLOATS, st.floats(0, 2), st.floats(0.5, 0.9999), st.floats(0.5, 0.9999))
def test_a_higher_level_decides_nothing_that_a_lower_one_leaves_open(rule, centre, error, one, other):
    found = Location(centre, error, 10, 11)
    low, high = (rule.answer(found, level).verdict for level in sorted((one, other)))
    assert high in (low, OPEN)


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(1, 40), st.integers(0, 40), st.floats(0.01, 1))
def test_more_runs_without_an_event_never_weaken_never(events, trials, more, rate):
    """Nor do more runs turn a refutation, or a proof, into its opposite."""
    events = min(events, trials)
    for rule in (Never("x", rate=rate), Occurs("x", rate=rate)):
        before, after = (rule.answer(seen(events, n)).verdict for n in (trials, trials + more))
        assert after == before or before == OPEN


@pytest.mark.parametrize("n", [5, 10, 40, 160])
def test_a_true_claim_is_refuted_as_seldom_as_the_level_says_whatever_the_number_of_runs(n):
    """The truth lies on the very bound; more evidence makes no false refutation likelier."""
    rng = np.random.default_rng(n)
    wrong = np.mean([ABOVE.answer(Location.of(rng.normal(ABOVE.bound, 0.03, n))).verdict == NO for _ in range(3000)])
    # The trimmed mean's interval errs a little oftener than its level says: see Location.
    alpha = 1.5 * (1 - LEVEL) / 2
    assert wrong <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / 3000)


def test_what_it_takes_is_about_what_it_takes():
    """With as many runs as an undecided answer asks for, about four of five are decided."""
    rng = np.random.default_rng(1)
    truth, sigma = ABOVE.bound + 0.01, 0.03
    needed = 20 * ABOVE.answer(Location(truth, sigma / math.sqrt(20), 19, 20)).takes
    decided = [ABOVE.answer(Location.of(rng.normal(truth, sigma, round(needed)))).verdict == YES for _ in range(500)]
    assert 0.65 < np.mean(decided) < 0.95


def test_the_pages_on_numbers_name_the_limits_of_the_code():
    text = "".join((ROOT / "book" / f"{page}.md").read_text() for page in ("how_to_read", "reference"))
    assert f"## Why {LEVEL:.0%}".replace("%", " %") in text
    assert f"more than {noise.MAX_STRANGERS:.0%} of its time on the CPUs".replace("%", " %") in text
    assert f"took more than {noise.MAX_TAKEN:.0%} of it".replace("%", " %") in text
    assert f"in each case {noise.LEAST_S:g} s at least" in text.replace("\n", " ")
    assert f"Fewer than {TRIMMED_FROM} values" in text
    assert f"in {controls.ALARMS:.0%} of all sound runs".replace("%", " %") in text
