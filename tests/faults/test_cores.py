"""What comes between a measurement and its cores: the interval widens or the verdict is withheld, and none is wrong."""

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from ffilab.judge import statistics
from ffilab.measure import runner
from ffilab.measure.plan import controls as control_arms
from ffilab.measure.plan import plan
from ffilab.measure.record import read_record
from ffilab.run import machine, settings
from ffilab.run import quota as quotas
from ffilab.run.paths import ROOT
from ffilab.run.subprocesses import group
from ffilab.setup.catalogue import GIL
from tests.helpers import small
from tests.helpers.environment import clean_environment
from tests.helpers.of_chapter import hostile

pytestmark = pytest.mark.usefixtures("quiet_progress")

# Two arms that are the same, and the controls of a plan, fewer than a chapter's.
TWINS = [hostile("fine", name) for name in "ab"]
RESTARTS = 10


def twins(smoke, seed, batch_ms=1):
    """A plan of one worker in each of ten restarts, with two pairs of controls, and none in processes apart."""
    budget = dataclasses.replace(smoke, restarts=RESTARTS, batch_ms=batch_ms)
    pairs = [arm for arm in control_arms(8) if arm.group == "shared"]
    return plan("twins", [*TWINS, *pairs], [GIL], budget, seed, with_controls=False)


def ratio(record):
    return statistics.compare(record, (GIL, "a"), (GIL, "b")).estimate


BURNER = """
import os, random, sys, time
core, seed, share = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
if core >= 0:
    os.sched_setaffinity(0, {core})
order, block = random.Random(seed), bytearray(1 << 25)
while True:
    until, copies = time.monotonic() + order.uniform(0, 0.1), order.random() < 0.5
    while time.monotonic() < until:
        bytes(block) if copies else sum(range(1000))
    time.sleep(order.uniform(0, 0.1) * (1 - share) / share)
"""


@contextlib.contextmanager
def burners(seed, share):
    """On every core something else, for this share of the time, in bursts: arithmetic, or copies of memory."""
    with contextlib.ExitStack() as stack:
        for core in machine.cores_to_pin() or [-1]:
            stack.enter_context(group([sys.executable, "-c", BURNER, str(core), str(seed * 100 + core), str(share)]))
        yield


@pytest.mark.full
def test_other_load_is_found_and_nothing_wrong_is_said(smoke, tmp_path):
    for seed in range(4):
        with burners(seed, 0.5):
            # Blocks as long as a chapter's: the clocks of the system have ticks.
            record = runner.run(twins(smoke, seed, batch_ms=15), tmp_path / str(seed))
        assert record.disturbed_by() == "other load"
        assert record.disturbed().again
        # Chance does that less than once in ten thousand runs.
        assert not ratio(record).at(0.99999).excludes(1)


def own_group(controller):
    """The folder of this process's control group, of version 1 or 2; None where there is none."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, name = line.split(":", 2)
        folder = Path("/sys/fs/cgroup", controller if names else "", name.lstrip("/"))
        if controller in names.split(",") or (not names and (folder / "cgroup.controllers").exists()):
            return folder
    return None


@contextlib.contextmanager
def half_a_core():
    """At most half a core's time, by a control group, for this process and what it starts; skipped where none can be
    made."""
    above = own_group("cpu")
    if above is None:
        pytest.skip("no control groups here")
    inner = above / f"ffilab-faults-{os.getpid()}"
    version_1 = {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}
    try:
        inner.mkdir()
        limits = version_1 if (inner / "cpu.cfs_quota_us").exists() else {"cpu.max": "50000 100000"}
        for name, value in limits.items():
            (inner / name).write_text(value)
        (inner / "cgroup.procs").write_text(str(os.getpid()))
    except OSError as error:
        with contextlib.suppress(OSError):
            inner.rmdir()
        pytest.skip(f"no control group can be made here ({error.strerror})")
    try:
        yield
    finally:
        (above / "cgroup.procs").write_text(str(os.getpid()))
        # What has ended may still be on its way out.
        small.wait_for(lambda: not (inner / "cgroup.procs").read_text().strip())
        with contextlib.suppress(OSError):
            inner.rmdir()


@pytest.mark.full
def test_a_quota_is_found_and_nothing_wrong_is_said(smoke, tmp_path):
    with half_a_core():
        record = runner.run(twins(smoke, 1, batch_ms=15), tmp_path / "quota")
        facts = machine.facts()
    # Chance does that less than once in ten thousand runs.
    assert not ratio(record).at(0.99999).excludes(1)
    # Beside other load a quota may take nothing: it is others who take the cores.
    assert record.disturbed_by() in ("quota", "other load")
    assert facts["cpu_quota"] == 0.5
    assert not record.failures


TREES = {
    "of version 2": (
        "0::/inner/most",
        {
            "inner/cpu.max": "50000 100000",
            "inner/most/cpu.max": "max 100000",
            "inner/cpu.stat": "throttled_usec 2500000",
        },
    ),
    "of version 1, under the name that its host has for it": (
        "4:memory:/host/x\n1:cpu,cpuacct:/host/x",
        {
            "cpu/cpu.cfs_quota_us": "50000",
            "cpu/cpu.cfs_period_us": "100000",
            "cpu/cpu.stat": "throttled_time 2500000000",
        },
    ),
    "of version 2, seen from outside its namespace": (
        "0::/../../other",
        {"cpu.max": "50000 100000", "cpu.stat": "nr_throttled 3\nthrottled_usec 2500000"},
    ),
}


@pytest.mark.parametrize("what", TREES)
def test_a_quota_is_read_from_its_control_group(tmp_path, monkeypatch, what):
    name, files = TREES[what]
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    plain = quotas.read_text
    monkeypatch.setattr(quotas, "CGROUPS", tmp_path)
    monkeypatch.setattr(quotas, "read_text", lambda path: name if path == "/proc/self/cgroup" else plain(path))
    assert quotas.cores() == 0.5
    assert quotas.throttled_s(quotas.cgroups()) == 2.5


RUN = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.faults import test_cores
from ffilab.measure import runner
from ffilab.run.budget import BUDGETS
runner.run(test_cores.twins(BUDGETS["smoke"], 1, batch_ms=5), Path({folder!r}))
"""


def disturbed(folder, disturb):
    """The record of a run in a process of its own, which gets to work and is then disturbed: `disturb(process,
    path)`."""
    path = folder / "twins.jsonl"
    code = RUN.format(root=str(ROOT), folder=str(folder))
    environment = clean_environment(
        PYTHONDONTWRITEBYTECODE="1", **settings.telling(progress=str(folder.parent / "progress"))
    )
    with group([sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True) as process:
        small.wait_for(lambda: path.exists() and path.read_text().count('"kind": "block"') >= 6)
        disturb(process, path)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    return read_record(path)


@pytest.mark.full
def test_a_run_that_is_stopped_for_a_while_loses_nothing(tmp_path):
    def stop_all(process, path):
        with contextlib.suppress(psutil.Error):
            # The worker before the runner: it is in the middle of a batch.
            runner_itself = psutil.Process(process.pid)
            stopped = [*runner_itself.children(recursive=True), runner_itself]
            for sent, seconds in ((signal.SIGSTOP, 2), (signal.SIGCONT, 0)):
                for one in stopped:
                    with contextlib.suppress(psutil.Error):
                        one.send_signal(sent)
                time.sleep(seconds)

    record = disturbed(tmp_path / "run", stop_all)
    assert not record.failures
    assert not record.cut_off
    # What others did in these two seconds disturbed a block, and it was measured again.
    assert sum(not block["again"] for block in record.blocks) == RESTARTS * 4
    # Two seconds in a batch of some milliseconds: one that took over would be far from here.
    assert 0.5 < np.median([block["ns"][f"{GIL}/a"] / block["ns"][f"{GIL}/b"] for block in record.blocks]) < 2


@pytest.mark.full
@pytest.mark.skipif(len(machine.cores_to_pin() or []) < 2, reason="needs two cores that can be pinned to")
def test_a_core_that_is_taken_away_is_not_used_any_more(tmp_path):
    kept, marks = min(machine.cores_to_pin()), []

    def take_away(process, path):
        os.sched_setaffinity(process.pid, {kept})
        marks.append(read_record(path).restarts[-1]["restart"])

    record = disturbed(tmp_path / "run", take_away)
    later = {restart["cpu"] for restart in record.restarts if restart["restart"] > marks[0] + 1}
    assert later == {kept}
    assert len(record.failures) <= 1
