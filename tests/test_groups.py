"""What sessions and builds add to an interval, on values whose truth is known, and on the kept study. Seeds are
fixed."""

import json
import math
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import optimize, stats

from ffilab.judge import groups, numbers, statistics
from ffilab.judge.estimates import LEVEL, PREDICTION_LEVEL, Location, Share
from ffilab.judge.numbers import Numbers
from ffilab.judge.rules import NO, OPEN, Side
from ffilab.measure.record import merged
from ffilab.run.budget import BUDGETS
from ffilab.run.paths import ROOT
from ffilab.setup.catalogue import GIL
from tests.helpers.made_up import timed

# Relative standard deviation between layouts.
OF_LAYOUT = 0.02
SLOW, FAST = (GIL, "slow"), (GIL, "fast")


def drawn(rng, budget, sessions=1, truth=0.0, session=groups.SESSION, build=0.0):
    """An estimate of `truth` from layouts as a budget has them. session, build: what these add."""
    made = BUDGETS[budget]
    which, number = np.repeat(np.arange(sessions), made.layouts), np.arange(sessions * made.layouts) % made.builds
    values = truth + rng.normal(0, OF_LAYOUT, len(which)) + rng.normal(0, session, sessions)[which]
    values += rng.normal(0, build, made.builds)[number]
    found = groups.over_groups(values, which.tolist(), True, groups.SESSION)
    return groups.with_builds(found, values, which.tolist(), number.tolist())


def covers(found, truth=1.0):
    return np.mean([not one.at().excludes(truth) for one in found])


def width(found):
    return np.median([one.at().half_width for one in found])


def test_each_budget_knows_more_than_the_shorter_one():
    """Of one truth: the half-width falls from room to quick to full, and a verdict is given more often with each."""
    rng, rule, truth = np.random.default_rng(1), Side("x", direction="above", null=1.0, interest=0.02), math.log(1.036)
    widths, given = [], []
    for budget in ("room", "quick", "full"):
        found = [drawn(rng, budget, truth=truth, build=0.002) for _ in range(600)]
        answers = [rule.of(one, one.at()).verdict for one in found]
        widths.append(width(found))
        given.append(1 - answers.count(OPEN) / len(answers))
        assert NO not in answers
        assert covers(found, 1.036) >= LEVEL - 0.015
    assert widths[0] > 1.2 * widths[1] > 1.2 * 1.05 * widths[2]
    assert given[0] + 0.1 < given[1] < given[2] - 0.05


def test_a_bad_build_shows():
    """One of three that is off as far as a layout may be: the interval widens, and three builds cover more often than
    one."""
    rng = np.random.default_rng(2)
    same, differ = ([drawn(rng, "full", build=build) for _ in range(500)] for build in (0.0, 0.02))
    assert width(differ) > 1.4 * width(same)
    alone = [drawn(rng, "quick", truth=rng.normal(0, 0.02)) for _ in range(500)]
    assert covers(differ) > covers(alone) + 0.2


# ---- sessions ----


def test_one_session_covers_the_middle_over_sessions_and_another_one():
    rng = np.random.default_rng(3)
    found = [drawn(rng, "quick") for _ in range(1500)]
    assert covers(found) >= LEVEL - 0.01
    others = [drawn(rng, "quick").centre for _ in found]
    inside = np.mean(
        [one.another_session.low <= math.exp(other) <= one.another_session.high for one, other in zip(found, others)]
    )
    assert inside == pytest.approx(PREDICTION_LEVEL, abs=0.02)
    one = found[0]
    assert one.error**2 == pytest.approx(Location.of(np.zeros(3)).error + one.error**2)
    assert one.floor == groups.SESSION
    reach = stats.t.ppf(0.5 + PREDICTION_LEVEL / 2, one.freedom) * one.error * math.sqrt(2)
    assert math.log(one.another_session.high) == pytest.approx(one.centre + reach)


@pytest.mark.parametrize("effect", [0, 1, 2])
def test_intervals_cover_and_become_narrower_with_each_session(effect):
    rng, widths = np.random.default_rng(10 + effect), []
    for sessions in (1, 2, 3, 5):
        found = [drawn(rng, "quick", sessions, session=effect * groups.SESSION) for _ in range(500)]
        widths.append(width(found))
        assert covers(found) >= (LEVEL - 0.015 if effect < 2 else 0.87 if sessions == 1 else 0.92)
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.75 * widths[0]


def test_who_looks_again_and_again_is_not_fooled_more_often():
    """`make more` until there is an effect: with none, all looks together err as often as one."""
    rng, looks, fooled = np.random.default_rng(4), 8, np.zeros(2)
    for _ in range(800):
        which = np.repeat(np.arange(looks), 18)
        values = rng.normal(0, OF_LAYOUT, len(which)) + rng.normal(0, groups.SESSION, looks)[which]
        seen = []
        for count in range(1, looks + 1):
            part = which < count
            found = groups.over_groups(values[part], which[part].tolist(), True, groups.SESSION)
            seen.append(found.at().excludes(1))
        fooled += seen[0], any(seen)
    assert fooled[1] / 800 <= 1 - LEVEL + 0.015
    assert found.sessions == looks


def test_values_of_few_are_taken_together_and_no_scatter_stays_none():
    values = np.random.default_rng(5).normal(0, 1, 6)
    found = groups.over_groups(values, [0, 0, 1, 1, 2, 2])
    assert found.sessions == 3
    assert found.centre == Location.of(values).centre
    assert found.error == Location.of(values).error
    assert groups.over_groups(np.zeros(5), [0] * 5, True, groups.SESSION).at().half_width == 0
    assert not groups.over_groups(np.zeros(2), [0] * 2, True, groups.SESSION).at().is_known


def test_advice_says_what_can_decide_it():
    """More runs do not lower what a session adds; more sessions do."""
    found = drawn(np.random.default_rng(6), "quick")
    far, near = 4 * found.error, 1.5 * found.floor
    assert 0.5 < found.factor(far) < 2
    assert found.factor(near) == math.inf
    assert found.sessions_for(near) > found.sessions_for(far)
    assert found.sessions_for(far) == pytest.approx((found.error * 3.5 / far) ** 2, rel=0.15)


def test_nobody_is_told_to_run_more_where_builds_differ():
    """Neither more layouts nor more sessions of the same three builds say how far another build lies."""
    found = drawn(np.random.default_rng(6), "full", build=0.04)
    near = 2 * found.stays
    assert found.floor > found.stays > groups.SESSION
    assert found.factor(near) == found.sessions_for(near) == math.inf
    assert drawn(np.random.default_rng(6), "full").sessions_for(0.05) < math.inf


# ---- records ----


def a_record(rng, layouts, builds=1, effect=0.0):
    """Two arms on layouts of their own; effect: how far this session is off."""
    off = rng.normal(0, OF_LAYOUT, layouts) + effect
    machine = rng.normal(0, 0.1, (layouts, 1)) + np.zeros(2)
    return timed({"slow": machine + off[:, None], "fast": machine}, np.arange(layouts), builds=builds)


def test_the_spread_between_layouts_is_that_within_sessions():
    """A session that is off as a whole must not make its layouts look different."""
    rng = np.random.default_rng(7)
    sessions = [a_record(rng, 16, effect=effect) for effect in (0, 0.3, -0.3)]
    found = statistics.ratio_over_units(merged(sessions), SLOW, FAST)
    assert found.sessions == 3
    assert found.n == 48
    assert found.spread_freedom == 45
    assert found.spread == pytest.approx(OF_LAYOUT, rel=0.3)
    assert found.at().high > 1.2


def test_a_record_has_what_its_session_and_builds_add():
    rng = np.random.default_rng(8)
    record = a_record(rng, 36, builds=3)
    found, values = statistics.ratio_over_units(record, SLOW, FAST), statistics.log_ratios(record, SLOW, FAST)
    assert found.error > math.hypot(Location.of(values).error, groups.SESSION) * 0.999
    assert found.floor == pytest.approx(math.hypot(groups.SESSION, found.stays))
    # Of a difference of times on their own scale; of copies, nothing.
    other = statistics.over_units(record, values, of=100.0)
    copies = statistics.over_units(record, values, log=True, of=0)
    assert other.floor == pytest.approx(math.hypot(100 * groups.SESSION, other.stays))
    assert copies.floor == copies.stays


# ---- the kept study ----


def study():
    """Of each ratio that is no pair of copies: the variance of its centres over sessions, and its own mean squared
    error."""
    rows = []
    for row in json.loads((ROOT / "book" / "evidence" / "coverage.json").read_text()):
        seen = np.log([one["over_layouts"] for one in row["seen"] if one["over_layouts"]])
        # Sixteen layouts, of which a trimmed mean leaves nine degrees of freedom: as it was run.
        errors = (seen[:, 2] - seen[:, 1]) / 2 / stats.t.ppf(0.5 + LEVEL / 2, 9)
        rows.append((row["ratio"], float(seen[:, 0].var(ddof=1)), float((errors**2).mean())))
    return rows


def test_what_a_session_adds_is_what_the_kept_study_says():
    def added(rows):
        excess = lambda tau: stats.trim_mean([found / (own + tau**2) for _, found, own in rows], 0.2) - 1  # noqa: E731
        return optimize.brentq(excess, 0, 0.05)

    rows = study()
    if len(rows) < 10:
        pytest.skip("the study was made with other ratios")
    every, different = added(rows), added([row for row in rows if "same call" not in row[0]])
    assert 0.002 < every <= different < 0.008
    assert every - 0.001 <= groups.SESSION <= different + 0.001


def session_of(values, lost=(), earlier=()):
    """A made-up session with one experiment and one plan, and its numbers."""
    return SimpleNamespace(
        chapter="c",
        reads=set(),
        plans=["a plan"],
        earlier=list(earlier),
        record=SimpleNamespace(titles=["a title"]),
        mostly_lost=lambda title: title in lost,
        values=values,
        once=lambda make: make(None),
    )


def numbers_of(session):
    def reading(title, number):
        session.reads.add(title)
        return number

    of_all = Location.of(session.values)
    makers = {"of processes": ("a title", of_all), "timed": ("a plan", of_all), "events": ("a title", Share(1, 30))}
    return Numbers(session, {name: partial(reading, *made) for name, made in makers.items()})


def test_numbers_of_processes_have_their_sessions_as_groups(monkeypatch):
    """What rests on a timed plan has them already, and events are counted."""
    monkeypatch.setattr(numbers, "numbers_of", numbers_of)
    rng = np.random.default_rng(9)
    each = [rng.normal(centre, 0.1, 10) for centre in (0.0, 0.1, 0.3)]

    def found(*lost):
        sessions = [session_of(values, of_one) for values, of_one in zip(each, lost)]
        whole = session_of(np.concatenate(each), earlier=sessions[:2])
        whole.each = sessions
        return {name: numbers_of(whole)[name].estimate for name in ("of processes", "timed", "events")}

    found_all = found((), (), ())
    assert found_all["of processes"].sessions == 3
    assert found_all["of processes"].interval.half_width > found_all["timed"].interval.half_width
    assert found_all["timed"] == Location.of(np.concatenate(each))
    assert found_all["events"] == Share(1, 30)
    # The third session, further away, has lost most of it by itself: then it says nothing.
    assert found((), (), ["a title"])["of processes"].centre < found_all["of processes"].centre
