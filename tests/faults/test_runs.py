"""Signals to every part of a run: its children end too, the lock tells the truth, finished results stay.

FFILAB_TIMES: how often each is tried, at another moment each time (once, if it is not set; 20 in a long run).
"""

import os
import random
import signal
import subprocess
import time
from contextlib import suppress

import psutil
import pytest
from conftest import clean_environment

from faults import small
from ffilab.paths import ROOT

pytestmark = pytest.mark.slow
TIMES = int(os.environ.get("FFILAB_TIMES", "1"))


@pytest.fixture
def tree(tmp_path):
    tree = small.clone(tmp_path, small.BUSY)
    kept = tree / "_build" / "executed" / "victim"
    kept.mkdir(parents=True)
    (kept / "victim.ipynb").write_text("what stood here before")
    yield tree
    small.end(tree)


def ends(run, tree, limit=20):
    """How the run ended, and in how long nothing of it was left: with the lock held for as long as anything worked."""
    began = time.monotonic()
    truthful = True
    while time.monotonic() - began < limit:
        held = small.is_locked(tree)
        left = small.at_work(tree)
        if not left:
            break
        # Looked at in this order, both may end in between: only a ghost that goes on beside a free lock is none.
        if not held and (ghosts := [one for one in left if one.is_running() and one in small.at_work(tree)]):
            time.sleep(0.7)
            truthful = truthful and not [one for one in ghosts if one in small.at_work(tree)]
    said = run.communicate(timeout=10)[0]
    assert not small.at_work(tree), [one.cmdline() for one in small.at_work(tree)]
    assert truthful, "something worked on beside a free lock"
    assert (tree / "_build" / "executed" / "victim" / "victim.ipynb").read_text() == "what stood here before"
    return said, time.monotonic() - began


@pytest.mark.parametrize("name", ["make", "ffilab", "papermill", "kernel", "worker"])
@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM", "SIGKILL"])
@pytest.mark.fault(
    "runs",
    "{sent} to {name}",
    "All of the run ends, the lock is held until then, the last page stays, the next run sweeps",
)
def test_signal(tree, seen, name, sent):
    took = []
    for _ in range(TIMES):
        (tree / "notebooks" / "victim" / "worker").unlink(missing_ok=True)
        run = small.start(tree)
        try:
            assert small.wait_for((tree / "notebooks" / "victim" / "worker").exists), run.poll()
            time.sleep(random.uniform(0, 0.5))
            target = small.part(tree, name)
            if (name, sent) == ("make", "SIGINT"):
                # As Ctrl-C does it: make alone would wait for its children.
                os.killpg(run.pid, signal.SIGINT)
            else:
                target.send_signal(getattr(signal, sent))
            if name == "worker" or (name == "kernel" and sent == "SIGTERM"):
                # The notebook does not look at its worker; a kernel is deaf to SIGTERM: the run goes on, and is ended here.
                time.sleep(1)
                with suppress(IndexError, psutil.Error):
                    small.part(tree, "ffilab").send_signal(signal.SIGINT)
            _, seconds = ends(run, tree)
            took.append(seconds)
            assert run.returncode != 0
        finally:
            small.end(tree)
    subprocess.run(
        [ROOT / ".venv/bin/python", "-c", "from ffilab.press import execute; execute.sweep()"],
        cwd=tree, check=True, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tree)},
    )  # fmt: skip
    assert small.litter(tree) == []
    seen(f"nothing was left after at most {max(took):.1f} s; exit {run.returncode}")


@pytest.mark.fault("runs", "A second run begins in the same clone", "It is refused and names the process of the first")
def test_two_in_one(tree, seen):
    first = small.start(tree)
    small.wait_for((tree / "notebooks" / "victim" / "worker").exists)
    second = small.start(tree, ["make", "html"])
    said = second.communicate(timeout=30)[0]
    small.part(tree, "ffilab").send_signal(signal.SIGINT)
    ends(first, tree)
    assert second.returncode != 0
    assert "Another make is at work in this folder (process " in said
    seen(next(line for line in said.splitlines() if "Another" in line))


ALONE = "from ffilab.press.execute import alone\nimport time\nwith alone(): print('in', flush=True); time.sleep({})"


@pytest.mark.fault(
    "runs", "Two clones measure on one machine at one time", "The second says that it waits, and then goes on"
)
def test_two_clones(tmp_path, seen):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    run = [ROOT / ".venv/bin/python", "-c"]
    hold = ALONE.replace("time.sleep({})", "input()")
    first = subprocess.Popen([*run, hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert first.stdout.readline() == "in\n"
    second = subprocess.Popen(
        [*run, ALONE.format(0)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    said = second.stderr.readline()
    assert "another clone measures" in said
    assert second.poll() is None
    first.communicate("go on\n")
    assert second.communicate(timeout=60)[0] == "in\n"
    seen(said)


@pytest.mark.fault(
    "runs", "The run that another clone waits for is killed", "The lock is free at once, and the other goes on"
)
def test_waits_for_the_dead(tmp_path, seen):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path)}
    run = [ROOT / ".venv/bin/python", "-c"]
    first = subprocess.Popen([*run, ALONE.format(300)], stdout=subprocess.PIPE, text=True, env=environment)
    first.stdout.readline()
    first.kill()
    first.communicate()
    second = subprocess.run([*run, ALONE.format(0)], capture_output=True, text=True, timeout=60, env=environment)
    assert second.returncode == 0
    assert "waiting" not in second.stderr
    seen("it went on without waiting")


@pytest.mark.fault("runs", "make is killed while it stands above a run", "The run gets SIGTERM from Linux")
def test_orphan_of_make(tmp_path, seen):
    program = (
        "from ffilab import bootstrap; import time; bootstrap.end_with_make(); print('in', flush=True); time.sleep(300)"
    )
    (tmp_path / "Makefile").write_text(f'all:\n\t@exec {ROOT}/.venv/bin/python -c "{program}"\n')
    make = subprocess.Popen(
        ["make"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=clean_environment(PYTHONPATH=str(ROOT))
    )
    make.stdout.readline()
    (child,) = psutil.Process(make.pid).children()
    make.kill()
    psutil.wait_procs([child], 5)
    assert not child.is_running()
    seen("it ended with make")
