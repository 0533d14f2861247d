"""What goes wrong while it is measured: the rest is kept, and the reason is on record."""

import os
from collections import Counter

import pytest

from ffilab.measure import runner, workers
from ffilab.measure.plan import plan
from ffilab.setup.catalogue import GIL
from tests.helpers import small
from tests.helpers.of_chapter import hostile


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("killed", "was killed by SIGKILL"),
        pytest.param("stopped", "took longer than 4 s", marks=pytest.mark.full),
        pytest.param("segfaults", "was killed by SIGSEGV", marks=pytest.mark.full),
        pytest.param("out_of_memory", "MemoryError", marks=pytest.mark.full),
        pytest.param("jumps", "its clock jumped forward", marks=pytest.mark.full),
        pytest.param("forks", "the child of a fork", marks=pytest.mark.full),
        pytest.param("dies", "exit code 7", marks=pytest.mark.full),
        pytest.param("hangs", "took longer than 4 s", marks=pytest.mark.full),
        pytest.param("clock_steps_back", "-5 ns", marks=pytest.mark.full),
        pytest.param("nonsense", "'many' ns", marks=pytest.mark.full),
    ],
)
@pytest.mark.usefixtures("quiet_progress", "quiet_machine")
def test_a_worker_that_fails_costs_one_restart(smoke, tmp_path, monkeypatch, action, reason):
    monkeypatch.setattr(workers, "TIMEOUT_S", 4)
    arms = [hostile("once", marker=str(tmp_path / "marker"), action=action)]
    record = runner.run(plan("faults", arms, [GIL], smoke, 1, False), tmp_path / "run")
    (failure,) = record.failures
    assert reason in failure["reason"]
    blocks = Counter(block["restart"] for block in record.blocks)
    assert sum(count == smoke.blocks for count in blocks.values()) == smoke.restarts - 1
    pids = [facts["pid"] for restart in record.restarts for facts in restart["facts"].values()]
    assert not small.running(lambda one: os.getpgid(one.pid) in pids)
