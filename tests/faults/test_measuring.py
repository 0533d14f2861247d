"""What goes wrong while it is measured: the rest is kept, the reason is on record, and no verdict is wrong."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import psutil
import pytest
from made_up import timed
from scipy.stats import binomtest

from ffilab.bench import runner
from ffilab.bench.plan import Arm, plan
from ffilab.judge import statistics
from ffilab.provision.catalogue import GIL

ARMS = Path(__file__).with_name("arms.py")
pytestmark = pytest.mark.usefixtures("quiet_progress")


def measure(smoke, folder, function, **arguments):
    arms = [Arm(function, str(ARMS), function, arguments)]
    return runner.run(plan("faults", arms, [GIL], smoke, 1, False), folder)


def group_of(pid):
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "what", "reason"),
    [
        ("killed", "killed", "exit code -9"),
        ("stopped", "stopped with SIGSTOP", "did not answer"),
        ("segfaults", "ended by a segfault in the middle of a block", "exit code -11"),
        ("out_of_memory", "out of memory", "exit code 1"),
        ("jumps", "of which the clock jumps forward by five minutes", "its clock jumped forward"),
        ("stands_still", "of which the clock stands still", "reported 0 ns"),
        ("forks", "doubled by a fork in an arm, so that each order has two answers", "answered order"),
    ],
    ids=["killed", "stopped", "segfault", "memory", "jumps", "still", "forks"],
)
@pytest.mark.fault(
    "measuring",
    "A worker is {what}",
    "The restart is given up with the reason; the others are kept; no process is left",
)
def test_worker(smoke, tmp_path, seen, monkeypatch, function, what, reason):
    monkeypatch.setattr(runner, "BATCH_TIMEOUT_S", 4)
    record = measure(smoke, tmp_path / "run", function, marker=str(tmp_path / "marker"))
    (failure,) = record.failures
    assert reason in failure["reason"]
    blocks = Counter(block["restart"] for block in record.blocks)
    assert sum(count == smoke.blocks for count in blocks.values()) == smoke.restarts - 1
    pids = [facts["pid"] for restart in record.restarts for facts in restart["facts"].values()]
    assert not [one for one in psutil.pids() if group_of(one) in pids]
    reason = failure["reason"].partition(";")[0]
    seen(reason if function != "forks" else "answered an earlier order: given up")


@pytest.mark.slow
@pytest.mark.fault(
    "measuring", "A worker floods its standard output", "It goes to the log and is no answer; all is measured"
)
def test_flood(smoke, tmp_path, seen):
    record = measure(smoke, tmp_path / "run", "floods", marker=str(tmp_path / "marker"))
    assert not record.failures
    assert not record.cut_off
    seen("13 MB went to the log; no restart was lost")


@pytest.mark.slow
@pytest.mark.fault("measuring", "One core is there instead of two", "All restarts are measured on that one")
def test_one_core(smoke, tmp_path, seen):
    before = os.sched_getaffinity(0)
    core = min(before)
    os.sched_setaffinity(0, {core})
    try:
        record = measure(smoke, tmp_path / "run", "killed", marker=str(tmp_path))
    finally:
        os.sched_setaffinity(0, before)
    assert not record.failures
    assert {restart["cpu"] for restart in record.restarts} <= {core, None}
    seen(f"{len(record.restarts)} restarts on one core")


@pytest.mark.fault(
    "measuring",
    "Something else takes every core at random moments, in simulated records of two arms that are the same",
    "The interval widens; a difference is claimed no more often than the level of 2 % allows",
)
def test_burner(seen):
    wrong, widths = 0, {True: [], False: []}
    for seed in range(50):
        for burning in (False, True):
            rng = np.random.default_rng(seed)
            logs = {arm: rng.normal(0, 0.01, (20, 4)) for arm in "ab"}
            for values in logs.values() if burning else ():
                values += np.log(2) * (rng.random((20, 4)) < 0.4)
            found = statistics.ratio_over_units(timed(logs), (GIL, "a"), (GIL, "b")).at()
            widths[burning].append(np.log(found.high / found.low))
            wrong += burning and found.excludes(1)
    rate = binomtest(int(wrong), 50).proportion_ci(0.95)
    assert np.median(widths[True]) > 2 * np.median(widths[False])
    assert rate.low <= 0.02
    seen(
        f"{wrong} of 50 wrong, 95 % interval {rate.low:.1%} to {rate.high:.1%}; the intervals are {np.median(widths[True]) / np.median(widths[False]):.0f} times as wide"
    )
