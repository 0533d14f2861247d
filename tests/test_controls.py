"""A run judges itself first: what it times beside its own arms, and the checks on records that are made up."""

from dataclasses import replace

import numpy as np
import pytest

from ffilab.judge import controls as judging
from ffilab.judge.controls import Check, Control, repaired, settled, table
from ffilab.judge.estimates import Location
from ffilab.measure import instructions
from ffilab.measure.plan import APART, APART_AGAIN, EMPTY, PAIRS, control_pair, controls, empty_loop, plan
from ffilab.measure.record import Record
from ffilab.setup.catalogue import FREE_THREADED, GIL
from tests.helpers.made_up import MadeUp
from tests.helpers.made_up import timed as record_of

PAIR = (GIL, FREE_THREADED)


def test_every_plan_brings_its_controls_unless_it_is_told_not_to(smoke):
    names = {arm.name for arm in controls(2)}
    assert names <= {arm.name for arm in plan("p", [empty_loop()], PAIR, smoke).arms}
    assert [arm.name for arm in plan("p", [empty_loop()], PAIR, smoke, with_controls=False).arms] == [EMPTY]


@pytest.mark.full
@pytest.mark.tool("valgrind")
def test_the_positive_control_is_one_per_cent_more_instructions():
    (first, longer), (second, _) = control_pair(1), control_pair(2)
    chosen = [arm for arm in controls() if arm.name in (first, second, longer)]
    counts = instructions.per_call(list(PAIR), chosen)
    for label in PAIR:
        assert 1.008 <= counts[label, longer] / counts[label, first] <= 1.012
        assert counts[label, second] == pytest.approx(counts[label, first], rel=1e-3)


CONTROL_PAIRS = [control_pair(number) for number in range(1, PAIRS // len(PAIR) + 1)]
ARMS = (*(arm for pair in CONTROL_PAIRS for arm in pair), APART, APART_AGAIN)
# Of the logarithm of one arm's time over restarts, beside its neighbours in the same blocks.
SCATTER = 0.006


def timed(rng=None, scatter=SCATTER, missing=(), failures=0, more=0.01, again=0.0, apart=0.0, **columns):
    """A record of controls. again, apart: by so much the second of two equal arms is off, in one process and in two.
    more: what one per cent more work is measured as. columns: further ones of each block."""
    rng = np.random.default_rng(0) if rng is None else rng
    of_arm = {APART: 0.0, APART_AGAIN: apart}
    for number, (shorter, longer) in enumerate(CONTROL_PAIRS):
        off = again * (number == 1)
        of_arm |= {shorter: off, longer: (1 + more) * (1 + off) - 1}
    logs = {
        f"{label}/{arm}": np.log1p(of_arm[arm]) + rng.normal(0, scatter, (20, 1)) + rng.normal(0, scatter, (20, 3))
        for label in PAIR
        for arm in ARMS
        if arm not in missing
    }
    record = record_of(logs, **columns)
    for line in record.restarts:
        line["missing"] = {label: dict.fromkeys(missing, "could not be made") for label in PAIR}
    return replace(record, failures=[{"restart": number} for number in range(failures)])


def session_of(record=None, disturbed=0, cases=1, titles=("races",)):
    """A session with a timed plan, and of each experiment ten processes of each case, of which strangers disturbed so
    many."""
    session = MadeUp("loaders", **({"calls": record} if record else {}))
    for title in titles:
        session.add_processes(title, [({"case": case}, [{"x": 1.0}] * 10) for case in range(cases)])
    for line in session.record.children[:disturbed]:
        line["strangers_s"] = 0.1
    return session


def found(record=None, **processes):
    """What every session is asked."""
    return settled(judging.checks(session_of(record or timed(), **processes)))


def failed(checks):
    return {check.kind for check in checks if not check.passed}


def test_a_clean_run_passes_and_its_table_is_short():
    checks = found()
    assert failed(checks) == set()
    shown = table(checks)
    assert shown.check.tolist() == ["disturbed", "lost restarts", "left out alike", "A/A", "bias"]
    assert shown.passed.tolist() == ["2 of 2", "1 of 1", "1 of 1", "4 of 4", "1 of 1"]


@pytest.mark.full
def test_hardly_any_sound_run_fails_a_control():
    """One in a hundred, says the book. With the level of a single control for each of them it would be eight."""
    rng, runs = np.random.default_rng(11), 300
    wrong = sum(bool(failed(found(timed(rng)))) for _ in range(runs))
    # See Location: an interval of a trimmed mean errs a little oftener than its level says.
    expected = 1.5 * judging.ALARMS * runs
    assert wrong <= expected + 3 * np.sqrt(expected)


@pytest.mark.parametrize("bias", [0.03, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("what", ["again", "apart", "more"])
def test_each_control_fails_on_a_bias_of_either_sign_however_large(what, sign, bias):
    """50 % that is measured for 1 % is no success."""
    wrong = 1.01 * (1 + bias) ** sign - 1 if what == "more" else (1 + bias) ** sign - 1
    checks = found(timed(**{what: wrong}))
    assert failed(checks) == {"bias" if what == "more" else "A/A"}
    for check in checks:
        if not check.passed:
            assert check.source == "calls"
            # Certain is a little less than all of it.
            assert 0.5 * np.log1p(bias) < check.bias < np.log1p(bias)


def test_one_per_cent_that_is_not_measured_is_missed():
    assert failed(found(timed(more=0.0, scatter=0.003))) == {"bias"}


def test_what_could_find_nothing_has_not_passed_and_withholds_nothing():
    """A wide interval holds the truth: to say so is what `open` is for."""
    checks = found(timed(scatter=0.2))
    assert failed(checks) == {"A/A", "bias"}
    assert not any(check.is_off for check in checks)
    assert all("too wide to find 10%" in check.found for check in checks if not check.passed)
    (resolution,) = (check.found for check in checks if check.kind == "bias")
    assert "built in: 1.01; known to ± " in resolution


def test_a_control_of_differences_may_be_negative():
    off = Location(-30.0, 2.0, 19, 20)
    (check,) = settled([Control("A/A", "MiB", "the talk's experiment", off, truth=0.0)])
    assert not check.passed
    assert 20 < check.bias < 30
    # It says nothing of a ratio.
    assert check.concerns(log=False)
    assert not check.concerns(log=True)
    assert settled([Control("A/A", "MiB", "t", replace(off, centre=1.0), truth=0.0)])[0].passed


def test_too_few_values_are_said_and_withhold_nothing():
    (check,) = settled([Control("A/A", "x", "t", Location.of([0.1, 0.2], log=True))])
    assert not check.passed
    assert not check.is_off
    assert check.found == "too few values for an interval"


def test_the_chapter_shares_one_level_among_its_controls():
    """What fails alone may be chance among a hundred."""
    close = Control("A/A", "x", "t", Location(0.0105, 0.0035, 1000, 1001, log=True))
    sound = replace(close, estimate=Location(0.0, 0.0035, 1000, 1001, log=True))
    assert not settled([close])[0].passed
    assert settled([close, *[sound] * 99])[0].passed


def test_what_is_missing_or_lost_is_said_and_fails_nothing():
    checks = found(timed(missing=[APART_AGAIN], failures=5))
    assert failed(checks) == set()
    said = {check.kind: check.found for check in checks}
    assert said["lost restarts"] == "5 of 20"
    assert [check.found for check in checks if APART_AGAIN in check.what] == ["could not be made"] * 2
    bare = timed()
    bare = Record(None, bare.run, loops={f"{GIL}/x": 1}, restarts=bare.restarts, blocks=[])
    assert failed(settled(judging.checks(session_of(bare, titles=())))) == set()


@pytest.mark.parametrize(
    ("others", "cases", "fails"),
    # Half of ten, and more. Few of all, and more than half of one case: its numbers are not to be told apart from the
    # others'.
    [(5, 1, False), (6, 1, True), (6, 3, True), (5, 3, False)],
)
def test_what_stayed_disturbed_in_most_of_its_processes_fails(others, cases, fails):
    checks = found(disturbed=others, cases=cases)
    assert failed(checks) == ({"disturbed"} if fails else set())
    (check,) = (check for check in checks if check.source == "races")
    assert f"{others} " in check.found
    assert check.bias == np.inf


def test_a_plan_of_which_most_blocks_stayed_disturbed_fails():
    assert failed(found(timed(strangers_s=0.09))) == {"disturbed"}
    assert failed(found(timed(strangers_s=0.01))) == set()  # one tick of the clock


def test_one_line_says_what_was_left_out():
    assert repaired(session_of(timed(), disturbed=1, titles=("races", "bank"))) == (
        "0 of 20 processes were measured again, 1 left out: other load; none of 60 blocks was disturbed"
    )
    assert repaired(session_of(titles=())) == ""


def test_arms_that_lose_unequally_are_shown_and_withhold_nothing():
    record = timed()
    lost = {key: np.zeros(len(record.blocks), bool) for key in record.loops}
    lost[f"{GIL}/{APART}"][::2] = True
    record.__dict__["discarded"] = lost
    (check,) = (check for check in found(record) if check.kind == "left out alike")
    assert not check.passed
    assert check.source == ""
    assert check.found.startswith(f"{GIL}/{APART}: +5")


def test_a_table_names_each_failure_and_the_worst_of_what_passed():
    checks = [Check("A/A", str(n), f"found {n}", n < 3, size=n) for n in range(5)]
    assert table(checks).of.tolist() == ["3", "4"]
    assert table(checks[:3]).of.tolist() == ["2"]
    assert table(checks[:3]).passed.tolist() == ["3 of 3"]
