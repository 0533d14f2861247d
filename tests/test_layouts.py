"""Layouts: what a restart draws anew, what of it is on record, and what a page says that it rests on."""

import dataclasses
import random

import numpy as np
import pytest

from ffilab.judge import basis, ledger, statistics
from ffilab.judge.estimates import Counted
from ffilab.judge.verdicts import HOLDS
from ffilab.measure import runner
from ffilab.measure.plan import APART, EMPTY, Arm, control_pair, plan
from ffilab.measure.record import SESSION, Record, Unit, merged, read_record
from ffilab.setup.catalogue import FREE_THREADED, GIL
from ffilab.setup.layouts import Layout
from tests.helpers.made_claims import ABOVE, NAME, row
from tests.helpers.made_up import timed
from tests.helpers.of_chapter import write

PAIR = (GIL, FREE_THREADED)


def pool_of(**counts):
    return {
        label: [Layout(label, n, f"id{n}", n, 1, "python", "native") for n in range(count)]
        for label, count in zip(PAIR, counts.values())
    }


# ---- which layout a restart gets ----


@pytest.mark.parametrize(("count", "restarts"), [(16, 20), (3, 20), (16, 5), (16, 32), (2, 7), (4, 12)])
def test_each_layout_comes_as_often_as_the_others_in_an_order_of_the_seed(count, restarts):
    orders = []
    for seed in (*range(20), 0):
        given = runner.turns(pool_of(gil=count, free=1), restarts, random.Random(seed))
        often = [given.count(number) for number in range(count)]
        assert sum(often) == len(given) == restarts
        assert max(often) - min(often) <= 1
        if restarts % count == 0:
            # Every layout has its turn before the next one.
            assert all(sorted(given[at : at + count]) == [*range(count)] for at in range(0, restarts, count))
        orders.append(tuple(given))
    assert orders[0] == orders[-1]
    assert len(set(orders)) > 1
    assert runner.turns(pool_of(gil=1, free=1), restarts, random.Random(1)) == [None] * restarts


def test_layouts_that_come_again_do_not_do_so_at_the_end_only():
    """Else what they tell of restarts would be about the last minutes of a run."""
    first = []
    for seed in range(40):
        given = runner.turns(pool_of(gil=16, free=16), 20, random.Random(seed))
        first.append(next(number for number in range(20) if given[number] in given[:number]))
    assert min(first) < 8
    assert np.mean(first) < 14


def test_what_is_compared_lies_side_by_side_in_a_complete_block():
    arms = [Arm(f"arm {n}", file="f", function="g", beside="together" if n < 3 else "") for n in range(6)]
    cells = [(label, arm) for label in PAIR for arm in arms]
    seen, order = set(), random.Random(1)
    for _ in range(30):
        block = runner.side_by_side(cells, order)
        assert sorted(block, key=lambda cell: (cell[0], cell[1].name)) == cells
        for which in ({"arm 0", "arm 1", "arm 2"}, {"arm 3"}, {"arm 4"}, {"arm 5"}):
            places = [place for place, (_, arm) in enumerate(block) if arm.name in which]
            assert max(places) - min(places) == len(which) * len(PAIR) - 1
        seen.add(tuple((label, arm.name) for label, arm in block))
    # Their order is random, within a group and between groups.
    assert len(seen) == 30
    assert len({block[0] for block in seen}) > 3


def test_the_controls_lie_side_by_side(smoke):
    made = plan("p", [Arm("mine", file="f", function="g")], PAIR, smoke)
    block = [arm.name for _, arm in runner.side_by_side(made.cells(), random.Random(2))]
    places = [place for place, name in enumerate(block) if name in (*control_pair(1), *control_pair(2), APART)]
    assert max(places) - min(places) < sum(name.startswith("control") for name in block)


# ---- records of several layouts and sessions ----


def a_record(drawn, restarts=None, blocks=3, loops=1000, seed=0, **further):
    """Arm "a" takes 1 µs, arm "b" 1.1 µs; each layout n makes "b" longer by n %."""
    rng = np.random.default_rng(seed)
    restarts = restarts or len(drawn)
    noise = rng.normal(0, 1e-4, (restarts, blocks))
    off = np.zeros(restarts) if drawn is None else np.log1p(np.array(drawn) / 100)
    logs = {"a": noise, "b": noise + np.log(1.1) + off[:, None], EMPTY: noise - 4}
    return timed(logs, drawn, loops, **further)


def test_a_row_of_times_is_a_layout_and_without_layouts_a_restart():
    record = a_record([2, 0, 2, 1])
    assert record.kept == [Unit(0, 1, 2), Unit(0, 1, 0), Unit(0, 1, 1)]
    times = record.times(GIL, "b")
    assert times.shape == (3, 6)
    assert np.isnan(times).sum(axis=1).tolist() == [0, 3, 3]
    assert np.nanmedian(times, axis=1) == pytest.approx([1100 * 1.02, 1100, 1100 * 1.01], rel=1e-3)
    assert record.by_restart(GIL, "b").shape == (4, 3)
    assert statistics.log_ratios_by_restart(record, (GIL, "b"), (GIL, "a")) == pytest.approx(
        np.log(1.1 * np.array([1.02, 1, 1.02, 1.01])), abs=1e-6
    )
    alone = a_record(None, restarts=4)
    assert alone.times(GIL, "b").shape == (4, 3)
    assert [unit.restart for unit in alone.kept] == [0, 1, 2, 3]


def test_a_restart_that_is_lost_takes_its_layout_along():
    record = a_record([0, 1, 2, 1])
    record.blocks.pop(0)
    assert record.noise.restarts == [1, 2, 3]
    assert record.kept == [Unit(0, 1, 1), Unit(0, 1, 2)]
    assert record.times(GIL, "a").shape == (2, 6)


def test_records_of_several_sessions_are_put_on_one_scale():
    first, second = a_record([0, 1, 1], loops=1000), a_record([0, 1], loops=7000, seed=1)
    both = merged([first, second])
    assert both.kept == [Unit(0, 1, 0), Unit(0, 1, 1), Unit(1, 1, 0), Unit(1, 1, 1)]
    assert np.nanmedian(both.times(GIL, "a"), axis=1) == pytest.approx([1000] * 4, rel=1e-3)
    assert both.by_restart(GIL, "a")[3:] == pytest.approx(second.by_restart(GIL, "a"))
    assert [line["restart"] for line in both.restarts] == [0, 1, 2, SESSION, SESSION + 1]
    # What it was made of is as it was.
    assert [line["restart"] for line in second.restarts] == [0, 1]
    assert second.blocks[0]["ns"][f"{GIL}/a"] == pytest.approx(7e6, rel=1e-3)


def test_sessions_without_layouts_know_their_restarts_apart():
    both = merged([a_record(None, restarts=3), a_record(None, restarts=4)])
    assert [unit.session for unit in both.kept] == [0] * 3 + [1] * 4
    assert len(both.times(GIL, "a")) == 7
    # Made-up records have no lines of restarts.
    bare = [Record(None, one.run, loops=one.loops, blocks=one.blocks) for one in both.sessions]
    assert [unit.session for unit in merged(bare).kept] == [0] * 3 + [1] * 4


def test_the_default_link_stands_beside_the_units(tmp_path):
    record = a_record([0, 1, 2, 0], blocks=4)
    record.restarts[2] |= {"layout": None, "default": True}
    path = write(record, tmp_path / "calls.jsonl")
    found = read_record(path)
    assert found.kept == [Unit(0, 1, 0), Unit(0, 1, 1)]
    assert len(found.blocks) == 12
    assert found.disturbed() == (0, 0, 12)
    assert found.default_link(GIL, "b") == pytest.approx([1100 * 1.02] * 4, rel=1e-3)
    arms, _, slower = statistics.among_lots(found, beside="a")
    # Arm "b" is slower by 2 % there, and by 0 and 1 % on the layouts.
    assert arms == 2
    assert slower >= 1
    assert statistics.among_lots(a_record([0, 1]), beside="a") == (0, 0, 0)
    both = merged([found, found])
    assert len(both.kept) == 4
    assert len(both.default_link(GIL, "b")) == 8
    assert not a_record([0, 1]).default_link(GIL, "b").size
    for block in record.blocks[8:12]:
        block |= BUSY
    assert not read_record(write(record, tmp_path / "busy.jsonl")).default_link(GIL, "b").size


BUSY = {"strangers_s": 0.06, "wall_s": 0.1}


def test_a_disturbed_session_counts_for_nothing_beside_clean_ones_and_does_not_spoil_them():
    clean, busy = a_record([0, 1, 2, 3]), a_record([0, 1, 2, 3], **BUSY)
    clean.blocks[4] |= BUSY
    both = merged([busy, clean, clean])
    assert {unit.session for unit in both.kept} == {1, 2}
    assert both.disturbed() == (0, 14, 36)
    assert both.noise.report == "0 of 36 blocks were measured again, 14 left out: other load"
    assert np.isnan(both.times(GIL, "a")).sum() == 2
    # Alone it is shown, and said to be what it is.
    assert busy.disturbed().is_most
    assert not np.isnan(busy.times(GIL, "a")).any()
    assert "more than half, and all are shown: other load" in busy.noise.report


def test_what_was_measured_again_stands_in_the_row_of_its_layout():
    record = a_record([0, 1, 2, 1, 2])
    for block in record.blocks[3:5]:
        block |= BUSY
    # The last restart is a repair of the second: two blocks of its layout.
    record.restarts[4] |= {"again": True, "blocks": 2, "layout": 1}
    record.blocks.pop()
    for block in record.blocks[12:]:
        block["again"] = True
    assert record.noise.restarts == [0, 1, 2, 3, 4]
    assert record.disturbed() == (2, 0, 12)
    assert record.disturbed_by() == "other load"
    times = record.times(GIL, "a")
    assert np.isfinite(times).sum(axis=1).tolist() == [3, 6, 3]
    # One that lost all of its blocks is no restart, and one that lacks some was cut off.
    record.blocks[5] |= BUSY
    assert dataclasses.replace(record).noise.restarts == [0, 2, 3, 4]
    record.blocks.pop()
    assert dataclasses.replace(record).noise.restarts == [0, 2, 3]


def test_builds_that_differ_between_interpreters_are_told():
    def unit(*builds):
        drawn = {label: {"build": build} for label, build in zip(PAIR, builds)}
        return Unit.of({"restart": 0, "layout": 4, "layouts": drawn})

    assert unit(2, 2).build == 2
    assert len({unit(2, 3).build, unit(3, 1).build, unit(1, 3).build, unit(3, 3).build}) == 4


def test_a_cell_that_one_session_lacks_is_not_measured_in_both():
    """It may have had fewer interpreters, or a tool less."""
    first, second = a_record([0, 1]), a_record([0, 1], blocks=5)
    for block in first.blocks:
        del block["ns"][f"{GIL}/b"]
    del first.loops[f"{GIL}/b"]
    for both in (merged([first, second]), merged([second, first])):
        assert both.has(GIL, "a")
        assert not both.has(GIL, "b")
        assert both.times(GIL, "a").shape == both.by_restart(GIL, "a").shape == (4, 5)


# ---- what a page says that it rests on ----


def rests_on(sessions=1, builds=1, gil=16, free=16):
    return {"sessions": sessions, "builds": dict.fromkeys(PAIR, builds), "layouts": {GIL: gil, FREE_THREADED: free}}


def test_what_numbers_rest_on_in_words():
    drawn = basis.in_words(rests_on())
    assert drawn.startswith(
        "1 session; what another adds to a ratio of times is that of a kept study; 3.14: 16 layouts of 1 build; "
    )
    assert drawn.endswith("unknown: another build, another machine")
    most = basis.in_words(rests_on(sessions=3, builds=3))
    assert most.startswith("3 sessions; 3.14: 16 layouts of 3 builds;")
    assert most.endswith("unknown: another machine")
    assert "another layout" in basis.in_words(rests_on(gil=1))
    assert "1 layout of 1 build" in basis.in_words(rests_on(gil=1))
    assert "kept study" not in basis.in_words(rests_on(sessions=2))


def test_verdicts_of_one_binary_are_qualified():
    assert basis.one_binary(rests_on()) == []
    assert basis.one_binary(rests_on(free=1)) == [FREE_THREADED]
    assert basis.qualifier(rests_on()) == ""
    limit = basis.qualifier(rests_on(gil=1, free=1))
    assert limit == f"{basis.ONE_BINARY}: {basis.holds_again():.0%} of such intervals hold another session's number"
    assert 0 < basis.holds_again() < 0.9
    # Another interpreter decides no claim.
    other = rests_on()
    other["layouts"]["3.13"] = 1
    assert basis.qualifier(other) == ""


def an_estimate(drawn):
    record = a_record(drawn, restarts=20)
    return statistics.ratio_over_units(record, (GIL, "b"), (GIL, "a"))


def test_a_row_of_the_ledger_says_where_another_session_will_come_out():
    found = row(an_estimate([*range(16), *range(4)]), ABOVE, rests_on=rests_on())
    assert found["verdict"] == HOLDS
    assert ledger.verdict_of(found) == HOLDS
    ((name, (low, high)),) = found["beside"][NAME].items()
    assert name == basis.ANOTHER_SESSION
    assert low < found["interval"][NAME][0] < found["interval"][NAME][1] < high


def test_a_row_of_one_binary_says_so_and_nothing_of_another_session():
    found = row(an_estimate(None), ABOVE, rests_on=rests_on(gil=1))
    assert ledger.verdict_of(found) == f"{HOLDS} ({basis.qualifier(rests_on(gil=1))})"
    assert found["beside"] == {}
    # What was counted, and not timed, has nothing beside it either.
    of_counts = row(Counted(1.2), ABOVE, rests_on=rests_on())
    assert (of_counts["beside"], ledger.verdict_of(of_counts)) == ({}, HOLDS)
