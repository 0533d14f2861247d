"""Runs that are interrupted, killed or started twice: no result is lost, and the next run finds a clean folder."""

import os
import signal
import subprocess
import sys

import pytest

from ffilab.measure.alone import alone
from ffilab.page.run_notebook import connected
from ffilab.run import settings, subprocesses
from ffilab.run.paths import ROOT
from tests.helpers import small
from tests.helpers.environment import clean_environment, ran


@pytest.fixture
def tree(tmp_path):
    yield small.clone(tmp_path, small.BUSY)
    small.end(tmp_path)


def ended(run, tree, seconds=60):
    """What the run said, when nothing of it is left."""
    said = run.communicate(timeout=seconds)[0]
    assert small.wait_for(lambda: not small.at_work(tree)), small.at_work(tree)
    assert run.returncode != 0
    assert (tree / "_build" / "executed" / "victim" / "victim.ipynb").read_text() == "what stood here before"
    return said


def sweep(tree):
    """What the next run does first."""
    code = (
        "from ffilab import bootstrap; from ffilab.run import subprocesses; bootstrap.lock_folder(); "
        "subprocesses.end_leftovers(); from ffilab.page import execute; execute.sweep()"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tree)}
    subprocess.run([sys.executable, "-c", code], cwd=tree, check=True, env=environment)


def test_who_has_no_lock_kills_nothing(monkeypatch, tmp_path):
    """As a laboratory that is interrupted beside `make book`."""
    monkeypatch.setattr(subprocesses, "BUILD", tmp_path)
    monkeypatch.delenv(settings.RUN, raising=False)
    environment = {**os.environ, settings.RUN: str(tmp_path)}
    with subprocesses.group([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment) as other:
        subprocesses.end_leftovers()
        assert other.poll() is None
        monkeypatch.setenv(settings.RUN, str(tmp_path))
        subprocesses.end_leftovers()
        assert other.wait(10) == -signal.SIGKILL


def test_ctrl_c(tree):
    """As a terminal sends it: to make and to the run."""
    run = small.start(tree)
    small.part(tree, "worker")
    os.killpg(run.pid, signal.SIGINT)
    said = ended(run, tree)
    assert "ffilab: stopped; what was finished is kept" in said
    assert not small.is_ours(said)
    assert small.litter(tree) == []


def test_a_second_run_in_the_same_folder_is_refused(tree):
    first = small.start(tree)
    small.part(tree, "worker")
    second = small.start(tree, "make", "html")
    said = second.communicate(timeout=60)[0]
    small.part(tree, "ffilab").send_signal(signal.SIGINT)
    ended(first, tree)
    assert second.returncode != 0
    assert "Another make is running in this folder (process " in said


def test_the_next_run_ends_what_a_killed_one_left(tree):
    run = small.start(tree)
    worker = small.part(tree, "worker")
    small.part(tree, "ffilab").kill()
    run.communicate(timeout=60)
    # Papermill dies at once, and the kernel when it notices.
    gone = small.wait_for(lambda: {one.pid for one in small.at_work(tree)} <= {worker.pid})
    assert gone, small.at_work(tree)
    assert not small.is_locked(tree / "_build" / "lock")
    sweep(tree)
    assert small.wait_for(lambda: not small.at_work(tree))
    assert small.litter(tree) == []


def test_processes_of_another_folder_are_left_alone(tree):
    other = subprocess.Popen(["sleep", "600"], env={**os.environ, "FFILAB_RUN": "/another/_build"})
    sweep(tree)
    assert other.poll() is None
    other.kill()
    other.wait()


@pytest.mark.full
@pytest.mark.parametrize("after", ["papermill", "worker"])
@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("make", "SIGTERM"),
        ("ffilab", "SIGINT"),
        ("ffilab", "SIGTERM"),
        ("papermill", "SIGINT"),
        ("papermill", "SIGTERM"),
        ("papermill", "SIGKILL"),
        ("kernel", "SIGKILL"),
    ],
)
def test_signal(tree, name, sent, after):
    """To a part of the run, while papermill starts and while a cell runs."""
    run = small.start(tree)
    small.part(tree, after)
    small.part(tree, name).send_signal(getattr(signal, sent))
    said = ended(run, tree)
    assert not small.is_ours(said), said
    assert small.litter(tree) == []


@pytest.mark.parametrize(("length", "transport"), [(40, "ipc"), (101, "ipc"), (102, "tcp")])
def test_a_kernel_takes_ports_only_where_the_path_is_too_long_for_a_socket(length, transport):
    path = f"/{'x' * (length - len('/.json'))}.json"
    assert connected(path).KernelManager.transport == transport


ALONE = "from ffilab.measure.alone import alone\nwith alone(): print('in', flush=True); input()"


def test_a_measurement_waits_for_the_one_of_another_clone(tmp_path):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

    def start():
        return subprocess.Popen([sys.executable, "-c", ALONE], env=environment, **options)

    first = start()
    assert first.stdout.readline() == "in\n"
    second = start()
    assert "another measurement is running on this machine" in second.stderr.readline()
    assert second.poll() is None
    # A killed one holds nothing.
    first.kill()
    first.communicate()
    assert second.stdout.readline() == "in\n"
    second.communicate("go on\n", timeout=60)
    assert second.returncode == 0


def test_a_verb_that_only_reads_says_that_a_measurement_is_running(tell, monkeypatch, tmp_path):
    tell(alone=None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    environment = clean_environment(PYTHONPATH=str(ROOT))
    with alone():
        said = ran(sys.executable, "-m", "ffilab", "judge", "nowhere", env=environment).stderr.splitlines()
    assert "on this machine" in said[0]
    assert "nowhere" in said[-1]


def test_what_a_child_started_is_gone_when_its_group_ends(tmp_path):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('ready', 'w'); time.sleep(60)"
    leader = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {deaf!r}]); time.sleep(60)"
    with subprocesses.group([sys.executable, "-c", leader], cwd=tmp_path) as process:
        assert small.wait_for((tmp_path / "ready").exists)
    assert small.wait_for(lambda: not small.running(lambda one: os.getpgid(one.pid) == process.pid))
