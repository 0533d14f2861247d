"""From answers to the word of a claim: parts, counts, sizes, kinds, what would decide what is open."""

import pytest

from ffilab.judge import verdicts
from ffilab.judge.estimates import Counted
from ffilab.judge.rules import Conformance, Never, Occurs, Side, Size
from tests.helpers.made_claims import claim, numbers
from tests.helpers.of_chapter import about, seen


def of_claim(rules, found, withheld=None):
    """The verdict on a claim. found: by name an estimate, or why there is none."""
    return verdicts.of_claim(claim(*rules), numbers(found), withheld)


def in_words(given):
    return given.word, given.qualifier, given.size


def side(name):
    return Side(name, direction="above", null=1.0, interest=0.02)


def size(name):
    return Size(name, null=1.0, published=1.4, margin=0.25)


UP, DOWN, STRADDLES = about(1.4), about(0.8), about(1.02)
NEVER, OCCURS = Never("never", rate=0.15), Occurs("occurs", rate=0.15)


@pytest.mark.parametrize(
    ("found", "word", "qualifier"),
    [
        ("u", verdicts.HOLDS, ""),
        ("s", verdicts.OPEN, ""),
        ("d", verdicts.FAILS, ""),
        ("uuu", verdicts.HOLDS, ""),
        ("ddd", verdicts.FAILS, ""),
        ("sss", verdicts.OPEN, ""),
        ("uud", verdicts.MIXED, "2 yes, 1 no"),
        ("usd", verdicts.MIXED, "1 yes, 1 no, 1 open"),
        ("us", verdicts.HOLDS_SO_FAR, "1 yes, 1 open"),
        ("ds", verdicts.FAILS_SO_FAR, "1 no, 1 open"),
        ("u-", verdicts.HOLDS_SO_FAR, "1 yes, 1 no number"),
        ("d-", verdicts.FAILS_SO_FAR, "1 no, 1 no number"),
        ("s-", verdicts.OPEN, "1 open, 1 no number"),
        ("--", verdicts.OPEN, "2 no number"),
    ],
)
def test_a_claim_has_a_word_of_its_own_where_its_parts_agree(found, word, qualifier):
    measured = {"u": UP, "d": DOWN, "s": STRADDLES, "-": "there is no valgrind"}
    by_name = {str(number): measured[one] for number, one in enumerate(found)}
    assert in_words(of_claim(map(side, by_name), by_name)) == (word, qualifier, "")


@pytest.mark.parametrize(
    ("found", "word", "says"),
    [
        (UP, verdicts.HOLDS, verdicts.AGREES),
        (about(1.1), verdicts.HOLDS, verdicts.DIFFERS),
        (about(1.4, 0.06), verdicts.HOLDS, verdicts.OPEN),
        (DOWN, verdicts.FAILS, verdicts.DIFFERS),
    ],
)
def test_the_published_size_stands_beside_the_word_and_is_not_counted(found, word, says):
    assert in_words(of_claim([side("x"), size("x")], {"x": found})) == (word, "", says)


@pytest.mark.parametrize(
    ("other", "says"), [(about(1.1), verdicts.DIFFERS), (about(1.4, 0.06), verdicts.OPEN), (UP, verdicts.AGREES)]
)
def test_of_several_sizes_one_that_differs_decides(other, says):
    rules = [side("x"), size("x"), side("y"), size("y")]
    assert of_claim(rules, {"x": UP, "y": other}).size == says


def test_one_event_refutes_a_claim_of_safety_whatever_else_holds():
    given = of_claim([OCCURS, NEVER, side("z")], {"occurs": seen(30), "never": seen(1), "z": UP})
    assert in_words(given) == (verdicts.FAILS, "2 yes, 1 no", "")


def test_nothing_is_called_safe_that_was_not_tried():
    given = of_claim([OCCURS, NEVER], {"occurs": seen(30), "never": "the threads never met"})
    assert in_words(given) == (verdicts.HOLDS_SO_FAR, "1 yes, 1 no number", "")


def test_what_nothing_tests_is_scope_and_lowers_no_word():
    assert verdicts.of_claim(claim(side("x"), untested=("the rest",)), numbers({"x": UP})).word == verdicts.HOLDS


def test_kinds_of_claims():
    assert verdicts.kind(claim(side("x"))) == verdicts.MEASURED
    assert verdicts.kind(claim(Conformance("x"))) == verdicts.BY_CONSTRUCTION
    assert verdicts.kind(claim(Conformance("x"), side("y"))) == verdicts.MEASURED
    assert verdicts.kind(claim(not_measurable="a text")) == verdicts.NOT_MEASURABLE


@pytest.mark.parametrize(
    ("found", "word", "qualifier"),
    [
        ({"x": Counted(1)}, verdicts.BY_CONSTRUCTION, ""),
        ({"x": Counted(0.5)}, verdicts.NO_RESULT, verdicts.CODE_FAILED),
        ({"x": Counted(1), "y": DOWN}, verdicts.MIXED, "1 yes, 1 no"),
        ({"x": Counted(0), "y": UP}, verdicts.NO_RESULT, verdicts.CODE_FAILED),
        ({"x": "not built"}, verdicts.OPEN, "1 no number"),
    ],
)
def test_what_is_true_by_construction_has_no_verdict_and_says_if_our_code_is_wrong(found, word, qualifier):
    given = of_claim([Conformance("x"), *map(side, found.keys() - {"x"})], found)
    assert in_words(given) == (word, qualifier, "")


@pytest.mark.parametrize(
    ("x", "y", "word", "qualifier"),
    [
        (None, UP, verdicts.HOLDS_SO_FAR, "1 yes, 1 withheld"),
        (None, STRADDLES, verdicts.OPEN, "1 open, 1 withheld"),
        (None, None, verdicts.WITHHELD, ""),
    ],
)
def test_what_is_withheld_is_one_number(x, y, word, qualifier):
    """None: withheld. Whatever was measured there decides nothing."""
    for hidden in (UP, DOWN):
        found = {"x": x or hidden, "y": y or hidden}
        withheld = {name: "A/A" for name, given in (("x", x), ("y", y)) if given is None}
        given = of_claim([side("x"), side("y")], found, withheld)
        assert in_words(given) == (word, qualifier, "")
        assert given.parts[0][1].reason == "A/A"
        assert "another run" in verdicts.what_it_takes(given, None)


def test_a_size_may_be_withheld_where_its_side_is_not():
    given = of_claim([side("x"), size("x")], {"x": UP}, {size("x").key: "A/A"})
    assert in_words(given) == (verdicts.HOLDS, "", verdicts.OPEN)


@pytest.mark.parametrize(("rule", "word"), [(OCCURS, verdicts.HOLDS), (NEVER, verdicts.FAILS)])
def test_an_event_that_was_seen_is_given_beside_any_load_and_none_is_not(rule, word):
    withheld = {rule.number: "disturbed"}
    assert of_claim([rule], {rule.number: seen(1)}, withheld).word == word
    assert of_claim([rule], {rule.number: seen(0)}, withheld).word == verdicts.WITHHELD


def test_what_an_open_claim_would_take():
    given = of_claim([side("x")], {"x": about(1.03, 0.01)})
    words = verdicts.what_it_takes(given, minutes=2.0)
    assert "runs instead of 20" in words
    assert "minutes instead of 2" in words
    hopeless = of_claim([side("x")], {"x": about(1.02 + 1e-9, 0.01)})
    assert "too close to the limit" in verdicts.what_it_takes(hopeless, 2.0)
    assert "what is missing" in verdicts.what_it_takes(of_claim([side("x")], {"x": "no perf"}), None)
