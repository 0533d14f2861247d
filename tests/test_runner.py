"""The bench on real interpreters, with arms that behave and arms that do not."""

import json
from collections import Counter
from pathlib import Path

import pytest

from ffilab.bench import runner
from ffilab.bench.plan import EMPTY, Arm, plan
from ffilab.bench.record import read
from ffilab.errors import UserError
from ffilab.judge import statistics

ARMS = Path(__file__).with_name("hostile_arms.py")
pytestmark = pytest.mark.usefixtures("quiet_progress")


def arm(function, **arguments):
    return Arm(function, str(ARMS), function, arguments)


def run(smoke, *arms, kernels=("3.14",), seed=None):
    return runner.run(plan("test", arms, kernels, smoke, seed))


def test_every_kernel_and_arm_is_measured_in_complete_blocks(smoke, labels):
    record = run(smoke, arm("fine"), kernels=labels)
    assert not record.cut_off
    assert len(record.blocks) == smoke.restarts * smoke.blocks
    for block in record.blocks:
        assert set(block["ns"]) == {f"{label}/{name}" for label in labels for name in ("fine", EMPTY)}
    # The noise rule may discard whole restarts, and single blocks (NaN), on a busy machine.
    for label in labels:
        for name in ("fine", EMPTY):
            times = record.times(label, name)
            assert times.shape == (len(record.noise.restarts), smoke.blocks)
            assert not (times <= 0).any()


def test_order_is_shuffled_and_follows_the_recorded_seed(smoke):
    arms = [Arm(f"fine {n}", str(ARMS), "fine") for n in range(5)]
    first, again, other = (run(smoke, *arms, seed=seed) for seed in (1, 1, 2))
    orders = [[block["order"] for block in record.blocks] for record in (first, again, other)]
    assert orders[0] == orders[1] != orders[2]
    assert len({tuple(order) for order in orders[0]}) > 1
    assert first.run["plan"]["seed"] == 1


def test_seeds_are_drawn_afresh(smoke):
    assert plan("p", [arm("fine")], ["3.14"], smoke).seed != plan("p", [arm("fine")], ["3.14"], smoke).seed


def test_a_hiccup_while_calibrating_does_not_shrink_a_cell_for_the_whole_run(smoke):
    record = run(smoke, arm("hiccups"))
    expected = smoke.batch_ms * 1e6 / 50
    assert record.blocks[0]["loops"]["3.14/hiccups"] == pytest.approx(expected, rel=0.2)


def test_missing_arm_is_named_and_the_rest_is_kept(smoke):
    record = run(smoke, arm("fine"), arm("missing"))
    assert "no such tool" in record.missing["3.14", "missing"]
    with pytest.raises(KeyError, match="no such tool"):
        record.times("3.14", "missing")
    assert record.times("3.14", "fine").size


@pytest.mark.parametrize(
    ("function", "reason"),
    [("dies", "exit code 7"), ("hangs", "did not answer"), ("clock_steps_back", "-5 ns"), ("nonsense", "'many' ns")],
)
def test_one_bad_restart_is_named_and_the_rest_is_kept(smoke, tmp_path, monkeypatch, function, reason):
    monkeypatch.setattr(runner, "BATCH_TIMEOUT_S", 2)
    # The first restart calibrates; the marker lets exactly one later batch go wrong.
    record = run(smoke, arm("fine"), arm(function, marker=str(tmp_path / "marker")))
    assert len(record.failures) == 1
    assert reason in record.failures[0]["reason"]
    # Complete restarts, counted before the noise rule: a busy machine may cost further ones.
    blocks = Counter(block["restart"] for block in record.blocks)
    assert sum(count == smoke.blocks for count in blocks.values()) == smoke.restarts - 1


def test_what_an_arm_prints_is_no_answer(smoke, tmp_path):
    record = run(smoke, arm("prints", marker=str(tmp_path / "marker")))
    assert not record.failures


def test_a_worker_that_always_dies_ends_the_run_with_one_sentence(smoke):
    with pytest.raises(UserError, match="exit code 9"):
        run(smoke, arm("always_dies"))


def test_a_t_build_with_its_gil_on_is_refused(smoke):
    with pytest.raises(UserError, match="GIL"):
        run(smoke, arm("turns_the_gil_on"), kernels=["3.14t"])


def test_a_record_cut_off_in_a_write_keeps_its_complete_restarts(smoke, tmp_path):
    record = run(smoke, arm("fine"))
    text = record.path.read_text()
    cut = tmp_path / "cut.jsonl"
    cut.write_text(text[: int(len(text) * 0.7)])
    half = read(cut)
    assert half.cut_off
    assert 0 < half.times("3.14", "fine").shape[0] < smoke.restarts


def test_something_else_is_no_record(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("not json\n")
    with pytest.raises(UserError, match="not a record"):
        read(path)


def test_comparison_of_a_call_with_itself_has_the_ratio_one_inside_or_near(smoke):
    record = run(smoke, arm("fine"), Arm("fine again", str(ARMS), "fine"))
    result = statistics.compare(record, ("3.14", "fine"), ("3.14", "fine again"))
    assert result.restarts == smoke.restarts
    assert result.ratio.low <= result.ratio.value <= result.ratio.high
    assert result.difference.low <= result.difference.high


def test_the_record_says_where_it_comes_from(smoke):
    record = run(smoke, arm("fine"))
    assert {"cpu", "cores", "system", "libc", "compiler", "commit", "date", "load"} <= set(record.run["machine"])
    assert {"load", "steal_s", "involuntary", "mhz"} <= set(record.blocks[0])
    assert {"version", "route", "config_args", "packages"} <= set(record.run["kernels"]["3.14"])
    assert json.loads(record.path.read_text().splitlines()[-1])["kind"] == "end"
