"""From answers to the verdict of a claim: parts, conjunctions, what would decide what is open."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffilab.judge import verdicts
from ffilab.judge.claims import Claim
from ffilab.judge.estimates import Counted, Location, Measurement, Share
from ffilab.judge.rules import NO, YES, Conformance, Never, Occurs, Side, Size
from ffilab.judge.verdicts import (
    ALPHA,
    CANNOT_TEST,
    CONFORMS,
    IN_DIRECTION,
    IN_PART,
    REFUTED,
    UNDECIDED_HERE,
    of_claim,
)


def side(name):
    return Side(name, direction="above", null=1.0, interest=0.02)


def size(name):
    return Size(name, null=1.0, published=1.4, margin=0.25)


def claim(*rules, untested=()):
    return Claim("A1", "c", "", "", "", rules, untested)


def at(value, error=0.005, n=20):
    return Measurement(Location(value, error, n - 1, n), "")


UP, DOWN, STRADDLES = at(1.4), at(0.8), at(1.02)


@pytest.mark.parametrize(
    ("rules", "found", "verdict", "qualifier"),
    [
        ([side("x")], {"x": UP}, YES, ""),
        ([side("x")], {"x": STRADDLES}, UNDECIDED_HERE, ""),
        ([side("x")], {"x": DOWN}, REFUTED, ""),
        ([side("x"), size("x")], {"x": UP}, YES, ""),
        ([side("x"), size("x")], {"x": at(1.1)}, IN_DIRECTION, "size differs"),
        ([side("x"), size("x")], {"x": at(1.4, 0.06)}, IN_DIRECTION, "size not resolved"),
        ([side("x"), side("y"), side("z")], {"x": UP, "y": UP, "z": DOWN}, IN_PART, "2 of 3; 1 refuted"),
        (
            [side("x"), side("y"), side("z")],
            {"x": UP, "y": STRADDLES, "z": DOWN},
            IN_PART,
            "1 of 3; 1 refuted, 1 undecided",
        ),
        ([side("x"), side("y")], {"x": DOWN, "y": STRADDLES}, REFUTED, "1 of 2 parts; the others are open"),
        ([side("x"), side("y")], {"x": DOWN, "y": DOWN}, REFUTED, ""),
        # An interval that contains "nothing" is no proof of the opposite, and is not called so.
        ([side("x")], {"x": at(1.0, 0.001)}, REFUTED, "no effect of interest"),
        ([side("x"), side("y")], {"x": UP, "y": at(1.0, 0.001)}, IN_PART, "1 of 2; 1 with no effect of interest"),
        (
            [Occurs("x"), Never("y", rate=0.15)],
            {"x": Measurement(Share(1, 30), ""), "y": Measurement(Share(0, 30), "")},
            YES,
            "",
        ),
        ([Conformance("x")], {"x": Measurement(Counted(1), "")}, CONFORMS, ""),
        ([Conformance("x"), side("y")], {"x": Measurement(Counted(1), ""), "y": DOWN}, REFUTED, ""),
        (
            [Conformance("x"), side("y")],
            {"x": Measurement(Counted(0), ""), "y": UP},
            CANNOT_TEST,
            "our own code failed its checks",
        ),
    ],
)
def test_verdict_names_its_parts(rules, found, verdict, qualifier):
    given = of_claim(claim(*rules), found, {})
    assert (given.verdict, given.qualifier) == (verdict, qualifier)


def test_one_event_refutes_a_claim_of_safety_whatever_else_holds():
    found = {"x": Measurement(Share(30, 30), ""), "y": Measurement(Share(1, 30), ""), "z": UP}
    given = of_claim(claim(Occurs("x"), Never("y", rate=0.15), side("z")), found, {})
    assert (given.verdict, given.qualifier) == (REFUTED, "1 of 3 parts")


def test_what_nothing_tests_keeps_a_claim_from_holding_whole():
    given = of_claim(claim(side("x"), untested=("the rest",)), {"x": UP}, {})
    assert (given.verdict, given.qualifier) == (IN_PART, "1 of 2; 1 not tested")


def test_a_number_that_cannot_be_had_is_no_refutation():
    given = of_claim(claim(side("x"), side("y")), {"x": UP}, {"y": "there is no valgrind"})
    assert (given.verdict, given.qualifier) == (IN_PART, "1 of 2; 1 without a number")
    assert "what is missing" in verdicts.what_it_takes(given, None)
    assert of_claim(claim(side("x")), {}, {"x": "no such interpreter"}).verdict == CANNOT_TEST


def test_a_missing_measurement_is_an_error():
    with pytest.raises(ValueError, match="nothing was handed in for 'y'"):
        of_claim(claim(side("x"), side("y")), {"x": UP}, {})


def test_what_an_undecided_claim_would_take():
    given = of_claim(claim(side("x")), {"x": at(1.03, 0.01)}, {})
    words = verdicts.what_it_takes(given, minutes=2.0)
    assert "runs instead of 20" in words
    assert "minutes of this chapter instead of 2" in words
    hopeless = of_claim(claim(side("x")), {"x": at(1.02 + 1e-9, 0.01)}, {})
    assert "too close to the limit" in verdicts.what_it_takes(hopeless, 2.0)


@given(
    st.lists(st.tuples(st.floats(0.5, 1.5), st.floats(0.001, 0.2), st.floats(1, 5)), min_size=1, max_size=6),
)
def test_wider_intervals_decide_no_part_that_narrower_ones_left_open(numbers):
    """Nor does a claim ever turn from holding to refuted, or back, when its intervals shrink around their centres."""
    rules = [side(str(number)) for number in range(len(numbers))]
    narrow, wide = (
        of_claim(
            claim(*rules),
            {str(i): at(value, error * (factor if wider else 1)) for i, (value, error, factor) in enumerate(numbers)},
            {},
        )
        for wider in (False, True)
    )
    for what in (YES, NO):
        held = [
            {rule.measured for rule, answer in verdict.parts if answer.verdict == what} for verdict in (narrow, wide)
        ]
        # More refutations elsewhere may let Holm's procedure refute a part; width alone never decides one for the claim.
        assert held[1] <= held[0]
    assert {narrow.verdict, wide.verdict} != {YES, REFUTED}


@pytest.mark.full
@pytest.mark.parametrize("what", [NO, YES])
@pytest.mark.parametrize("parts", [2, 3, 7])
def test_a_conjunction_errs_as_seldom_as_one_test(parts, what):
    """All parts lie on their very bound, the worst case: none may be refuted for certain, and none may hold."""
    rng = np.random.default_rng(parts)
    rules = [side(str(number)) for number in range(parts)]
    runs, wrong = 1500, 0
    for _ in range(runs):
        found = {rule.measured: Measurement(Location.of(rng.normal(1.02, 0.03, 20)), "") for rule in rules}
        wrong += any(answer.verdict == what for _, answer in of_claim(claim(*rules), found, {}).parts)
    # See Location: an interval of a trimmed mean errs a little oftener than its level says.
    assert wrong / runs <= 1.5 * ALPHA + 3 * np.sqrt(1.5 * ALPHA / runs)


def test_holm_decides_what_remains_at_the_level_of_what_remains():
    """Two parts: the second is refuted at the plain level only, and counts once the first is refuted."""
    rules = [side("x"), side("y")]
    border = at(1.02 - 0.0135, 0.005)  # between the quantiles of .99 and .995
    assert verdicts.holm(rules, {"x": DOWN, "y": border}, NO) == set(rules)
    assert verdicts.holm(rules, {"x": UP, "y": border}, NO) == set()


def test_a_part_that_holds_beside_others_that_do_not_holds_for_certain_among_all():
    border = at(1.02 + 0.0135, 0.005)
    rules = [side("x"), side("y")]
    assert of_claim(claim(*rules), {"x": UP, "y": border}, {}).verdict == YES
    given = of_claim(claim(*rules), {"x": STRADDLES, "y": border}, {})
    assert given.verdict == UNDECIDED_HERE
    assert "chance among 2 tests" in given.parts[1][1].reason
