"""The bench on real interpreters, with arms that behave and arms that do not."""

import itertools
from collections import Counter
from dataclasses import replace

import psutil
import pytest

from ffilab.measure import runner
from ffilab.measure.plan import EMPTY, controls, plan
from ffilab.measure.worker import PARTS
from ffilab.run.errors import UserError
from ffilab.setup.catalogue import FREE_THREADED, GIL
from tests.helpers.of_chapter import hostile

pytestmark = [pytest.mark.usefixtures("quiet_progress", "quiet_machine"), pytest.mark.full]


@pytest.fixture
def run(smoke, tmp_path):
    """Measure arms in smoke budget, each run in a folder of its own."""
    folders = itertools.count()

    def measure(*arms, interpreters=(GIL,), seed=None, with_controls=False, **further):
        made = plan("test", arms, interpreters, smoke, seed, with_controls, **further)
        return runner.run(made, tmp_path / f"run-{next(folders)}")

    return measure


def test_every_interpreter_and_arm_is_measured_in_complete_blocks(run, smoke, labels):
    record = run(hostile("fine"), interpreters=labels, with_controls=True)
    names = ["fine", EMPTY, *(one.name for one in controls(len(labels)))]
    assert not record.missing
    assert not record.cut_off
    assert len(record.blocks) == smoke.restarts * smoke.blocks
    for block in record.blocks:
        assert set(block["ns"]) == {f"{label}/{name}" for label in labels for name in names}
    for label in labels:
        for name in names:
            times = record.times(label, name)
            assert times.shape == (len(record.noise.restarts), smoke.blocks)
            assert not (times <= 0).any()


def test_order_is_shuffled_and_follows_the_recorded_seed(run):
    arms = [hostile("fine", f"fine {n}") for n in range(5)]
    first, again, other = (run(*arms, seed=seed) for seed in (1, 1, 2))
    orders = [[list(block["ns"]) for block in record.blocks] for record in (first, again, other)]
    assert orders[0] == orders[1] != orders[2]
    assert len({tuple(order) for order in orders[0]}) > 1
    assert first.run["plan"]["seed"] == 1


def test_seeds_are_drawn_afresh(smoke):
    assert plan("p", [hostile("fine")], [GIL], smoke).seed != plan("p", [hostile("fine")], [GIL], smoke).seed


def test_a_hiccup_while_calibrating_does_not_shrink_a_cell_for_the_whole_run(run, smoke):
    record = run(hostile("hiccups"))
    expected = smoke.batch_ms * 1e6 / 50
    assert record.loops[f"{GIL}/hiccups"] == pytest.approx(expected, rel=0.2)


def test_missing_arm_is_named_and_the_rest_is_kept(run):
    record = run(hostile("fine"), hostile("missing"))
    assert "no such tool" in record.missing[GIL, "missing"]
    with pytest.raises(KeyError, match="no such tool"):
        record.times(GIL, "missing")
    assert record.times(GIL, "fine").size


def test_what_an_arm_prints_is_no_answer(run, tmp_path):
    record = run(hostile("once", marker=str(tmp_path / "marker"), action="prints"))
    assert not record.failures


def test_a_worker_that_always_dies_ends_the_run_with_one_sentence(run):
    with pytest.raises(UserError, match="exit code 9"):
        run(hostile("always_dies"))


def test_a_t_build_with_its_gil_on_is_refused(run):
    with pytest.raises(UserError, match="GIL"):
        run(hostile("turns_the_gil_on"), interpreters=[FREE_THREADED])


def test_an_arm_may_ask_for_the_gil_of_a_t_build(run):
    """Beside the same arm without it; the record says which process had which."""
    with_gil = replace(hostile("fine", "with the GIL"), group="GIL on", gil=True)
    record = run(hostile("fine"), with_gil, interpreters=[FREE_THREADED])
    for restart in record.restarts:
        gil = {name: facts["gil_enabled"] for name, facts in restart["facts"].items()}
        assert gil == {f"{FREE_THREADED}/shared": False, f"{FREE_THREADED}/GIL on": True}
    assert all(record.times(FREE_THREADED, name).size for name in ("fine", "with the GIL", f"{EMPTY} (GIL on)"))


def pids(record, group):
    return [restart["facts"][f"{GIL}/{group}"]["pid"] for restart in record.restarts]


def test_a_kept_worker_lives_through_all_restarts_and_moves_to_their_cores(run, smoke):
    cores = [replace(hostile("core", f"core of {group}"), group=group) for group in ("shared", "kept")]
    record = run(hostile("fine"), *cores, kept=("kept",))
    assert len(set(pids(record, "kept"))) == 1
    assert len(set(pids(record, "shared"))) == len(record.restarts) == smoke.restarts
    cpu = {restart["restart"]: restart["cpu"] for restart in record.restarts}
    for block in record.blocks:
        for group in ("shared", "kept"):
            assert block["ns"][f"{GIL}/core of {group}"] == PARTS * (1 + cpu[block["restart"]])
    assert not [pid for pid in {*pids(record, "kept"), *pids(record, "shared")} if psutil.pid_exists(pid)]


def test_a_kept_worker_that_dies_is_replaced_and_the_restart_is_named(run, smoke, tmp_path, monkeypatch):
    marker, blocks, block = tmp_path / "marker", itertools.count(), runner._block
    marker.touch()

    def dies_in_the_second_restart(*arguments):
        if next(blocks) == smoke.blocks:
            marker.unlink()
        return block(*arguments)

    monkeypatch.setattr(runner, "_block", dies_in_the_second_restart)
    kept = replace(hostile("once", marker=str(marker), action="dies"), group="kept")
    record = run(hostile("fine"), kept, kept=("kept",))
    assert len(record.failures) == 1
    assert "exit code 7" in record.failures[0]["reason"]
    assert len(set(pids(record, "kept"))) == 2
    blocks = Counter(block["restart"] for block in record.blocks)
    assert sum(count == smoke.blocks for count in blocks.values()) == smoke.restarts - 1


def test_an_arm_that_can_be_made_only_later_is_missing_from_the_whole_run(run, smoke, tmp_path):
    record = run(hostile("fine"), hostile("missing_once", marker=str(tmp_path / "marker")))
    assert "not yet" in record.missing[GIL, "missing_once"]
    assert len(record.blocks) == smoke.restarts * smoke.blocks
    assert all(f"{GIL}/missing_once" not in block["ns"] for block in record.blocks)
