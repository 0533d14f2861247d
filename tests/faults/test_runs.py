"""Signals to every part of a run: its children end too, the lock tells the truth, finished results stay.

Each signal is sent 20 times to each part, at another moment each time: from the start of make to the work of the kernel.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from conftest import clean_environment

from faults import small
from ffilab.paths import ROOT
from ffilab.press.run_notebook import connected

pytestmark = pytest.mark.slow
TIMES, AT_ONCE = 20, 5
# For how long after it is there a part may be left alone before the signal comes.
LIFE_S = {"make": 6, "ffilab": 6, "papermill": 2.5, "kernel": 1.5, "worker": 0.3, "ffilab and papermill": 2}
# For how long the run may take to end by itself, where it may.
PATIENCE_S = {("kernel", "SIGKILL"): 12, ("kernel", "SIGINT"): 5}


@pytest.fixture
def tree(tmp_path):
    tree = prepared(tmp_path)
    yield tree
    small.end(tree)


def prepared(folder):
    """A small clone of which a page was made before."""
    tree = small.clone(folder, small.BUSY)
    kept = tree / "_build" / "executed" / "victim"
    kept.mkdir(parents=True)
    (kept / "victim.ipynb").write_text("what stood here before")
    return tree


def ends(run, tree, limit=30):
    """What the run said, and in how long nothing of it was left: with the lock held for as long as anything worked."""
    began = time.monotonic()
    while time.monotonic() - began < limit:
        held = small.is_locked(tree / "_build" / "lock")
        left = small.at_work(tree)
        if not left:
            break
        # Looked at in this order, both may end in between: only a ghost that goes on beside a free lock is none.
        if not held and (ghosts := [one for one in left if one.is_running() and one in small.at_work(tree)]):
            time.sleep(2)
            ghosts = [one for one in ghosts if one in small.at_work(tree)]
            assert not ghosts, f"beside a free lock worked {[small.words(one) for one in ghosts]}"
        time.sleep(0.05)
    seconds = time.monotonic() - began
    said = run.communicate(timeout=10)[0]
    left = small.at_work(tree)
    assert not left, [small.words(one) for one in left]
    assert (tree / "_build" / "executed" / "victim" / "victim.ipynb").read_text() == "what stood here before"
    return said, seconds


def send(run, tree, name, sent):
    """A signal to a part of the run, at a random moment of its life."""
    parts = [small.part(tree, one) for one in name.split(" and ")]
    time.sleep(random.uniform(0, LIFE_S[name]))
    if (name, sent) == ("make", "SIGINT"):
        # As Ctrl-C does it: make alone would wait for its children.
        os.killpg(run.pid, signal.SIGINT)
    for part in parts if (name, sent) != ("make", "SIGINT") else ():
        # The second of two may have ended with the first.
        with suppress(psutil.NoSuchProcess):
            part.send_signal(getattr(signal, sent))
    return parts


def one_trial(tree, name, sent):
    """In how many seconds nothing was left, and whether the run had gone on: then it is ended as by Ctrl-C."""
    run = small.start(tree, small.CHAPTER if name in ("make", "ffilab") else None)
    try:
        ffilab = small.part(tree, "ffilab") if name != "make" else None
        (part,) = send(run, tree, name, sent)
        went_on = False
        if name in ("kernel", "worker"):
            # The notebook does not look at its worker; a kernel is deaf to SIGTERM, and to SIGINT while no cell runs.
            with suppress(subprocess.TimeoutExpired):
                run.wait(PATIENCE_S.get((name, sent), 0.5))
            if name == "kernel" and part not in small.at_work(tree):
                # It ended, and the run is about to say so.
                with suppress(subprocess.TimeoutExpired):
                    run.wait(30)
            went_on = run.poll() is None
            if went_on:
                with suppress(psutil.NoSuchProcess):
                    ffilab.send_signal(signal.SIGINT)
        said, seconds = ends(run, tree)
        assert run.returncode != 0
        # The first two may be hit before our own code runs.
        assert not (small.is_ours(said) if name in ("make", "ffilab") else "Traceback" in said), said
        return seconds, went_on
    finally:
        small.end(tree)


def sweep(tree):
    """What the next run does first."""
    subprocess.run(
        [sys.executable, "-c", "from ffilab.press import execute; execute.sweep(); "
         "from ffilab import layout_pool; layout_pool.remove(layout_pool.POOLS)"],
        cwd=tree, check=True, env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tree)},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["make", "ffilab", "papermill", "kernel", "worker"])
@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM", "SIGKILL"])
@pytest.mark.fault(
    "runs",
    "{sent} to {name}, twenty times",
    "All of the run ends, the lock is held until then, the last page stays, the next run sweeps",
)
def test_signal(tmp_path, seen, name, sent):
    def several(number):
        tree = prepared(tmp_path / f"clone{number}")
        return tree, [one_trial(tree, name, sent) for _ in range(TIMES // AT_ONCE)]

    with ThreadPoolExecutor(AT_ONCE) as crew:
        found = list(crew.map(several, range(AT_ONCE)))
    for tree, _ in found:
        sweep(tree)
        assert small.litter(tree) == []
    trials = [trial for _, trials in found for trial in trials]
    assert len(trials) == TIMES
    on = sum(went_on for _, went_on in trials)
    assert not on or (name, sent) != ("kernel", "SIGKILL")
    seen(
        f"{TIMES} times nothing was left after at most {max(seconds for seconds, _ in trials):.0f} s"
        + (f"; {on} times the run had gone on, and was ended" if on else "")
    )


@pytest.mark.fault(
    "runs", "SIGKILL to ffilab and papermill at one moment", "What is left of the run is ended by the next one"
)
def test_both_killed(tree, seen):
    alone = 0
    for _ in range(5):
        run = small.start(tree)
        send(run, tree, "ffilab and papermill", "SIGKILL")
        run.communicate(timeout=30)
        small.wait_for(lambda: not small.at_work(tree), 3)
        alone += not small.at_work(tree)
        sweep(tree)
        assert small.wait_for(lambda: not small.at_work(tree), 5), small.at_work(tree)
        assert small.litter(tree) == []
    seen(f"5 times nothing was left; {alone} times it had ended by itself")


@pytest.mark.fault(
    "runs", "Other programs take ports while a Jupyter kernel starts", "Its connection needs none of them: Unix sockets"
)
def test_ports(tree, seen):
    run = small.start(tree)
    kernel = small.part(tree, "kernel")
    small.part(tree, "worker")
    sockets = {Path(one.laddr).name for one in kernel.net_connections("unix") if "-ipc-" in str(one.laddr)}
    small.part(tree, "ffilab").send_signal(signal.SIGINT)
    ends(run, tree)
    assert sockets == {f"kernel-ipc-{number}" for number in range(1, 6)}
    seen(f"{len(sockets)} sockets in a folder of the run's own")


@pytest.mark.parametrize(("length", "transport"), [(40, "ipc"), (101, "ipc"), (102, "tcp"), (120, "tcp")])
def test_connection(length, transport):
    """Where the path is too long for a socket's, the kernel takes ports as it always did."""
    path = f"/{'x' * (length - len('/.json'))}.json"
    assert connected(path).KernelManager.transport == transport


@pytest.mark.fault("runs", "A Jupyter kernel dies while it starts", "It is started again")
def test_dies_at_start(tree, seen):
    spec = tree / "kernels" / "kernels" / "cpython-3.14" / "kernel.json"
    kernel = json.loads(spec.read_text())
    once = ["/bin/sh", "-c", 'mkdir "$0" && exit 1; exec "$@"', str(tree / "died")]
    spec.write_text(json.dumps({**kernel, "argv": [*once, *kernel["argv"]]}))
    run = small.start(tree)
    small.part(tree, "worker")
    small.part(tree, "ffilab").send_signal(signal.SIGINT)
    ends(run, tree)
    assert (tree / "died").exists()
    said = (tree / "_build" / "logs" / "chapter-victim.log").read_text()
    assert "The Jupyter kernel died while it started, for the 1. time: once more." in said
    seen("its cells ran; the log says that it was started once more")


@pytest.mark.fault("runs", "A second run begins in the same clone", "It is refused and names the process of the first")
def test_two_in_one(tree, seen):
    first = small.start(tree)
    small.part(tree, "worker")
    second = small.start(tree, ["make", "html"])
    said = second.communicate(timeout=30)[0]
    small.part(tree, "ffilab").send_signal(signal.SIGINT)
    ends(first, tree)
    assert second.returncode != 0
    assert "Another make is at work in this folder (process " in said
    seen(next(line for line in said.splitlines() if "Another" in line))


ALONE = "from ffilab.bench.alone import alone\nimport time\nwith alone(): print('in', flush=True); time.sleep({})"


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
    assert "something else measures on this machine" in said
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
    (tmp_path / "Makefile").write_text(
        f'all:\n\t@FFILAB_MAKE=$(shell echo $$PPID) exec {ROOT}/.venv/bin/python -c "{program}"\n'
    )
    make = subprocess.Popen(
        ["make"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=clean_environment(PYTHONPATH=str(ROOT))
    )
    make.stdout.readline()
    (child,) = psutil.Process(make.pid).children()
    make.kill()
    psutil.wait_procs([child], 5)
    assert not child.is_running()
    seen("it ended with make")


MEASURE = """
import sys
from pathlib import Path
from ffilab.bench import runner
from ffilab.bench.plan import Arm, plan
from ffilab.budget import BUDGETS
made = plan("beside", [Arm("a", {arms!r}, "killed", {{"marker": "/"}})], ["3.14"], BUDGETS["smoke"], 1, False)
print(len(runner.run(made, Path({folder!r})).blocks))
"""


@pytest.mark.fault(
    "runs", "A cell in JupyterLab measures while a chapter is measured", "It says that it waits, and then measures"
)
def test_beside_lab(tmp_path, seen, monkeypatch):
    from ffilab.bench.alone import alone

    monkeypatch.delenv("FFILAB_ALONE", raising=False)
    program = MEASURE.format(arms=str(Path(__file__).with_name("arms.py")), folder=str(tmp_path / "run"))
    with alone():
        cell = subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=clean_environment(PYTHONPATH=str(ROOT)),
        )  # fmt: skip
        said = cell.stderr.readline()
        assert "waiting until it has finished" in said
        assert cell.poll() is None
        assert not list((tmp_path / "run").glob("*"))
    assert int(cell.communicate(timeout=120)[0]) > 0
    seen(said)


@pytest.mark.parametrize("verb", ["compare", "judge"])
@pytest.mark.fault(
    "runs", "`make {verb}` is asked for while something measures", "It says that it disturbs, and answers"
)
def test_reader_beside_a_measurement(verb, seen, monkeypatch):
    from ffilab.bench.alone import alone

    monkeypatch.delenv("FFILAB_ALONE", raising=False)

    def ask():
        return subprocess.run(
            [sys.executable, "-m", "ffilab", verb, "nowhere"], capture_output=True, text=True,
            env=clean_environment(PYTHONPATH=str(ROOT)),
        ).stderr  # fmt: skip

    with alone():
        said = ask().splitlines()
    assert "something measures on this machine just now" in said[0]
    assert "nowhere" in said[-1] or "There is no record" in said[-1]
    assert "something measures" not in ask()
    seen(said[0])
