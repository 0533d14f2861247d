"""After every case nothing is left: that the look for litter sees it, and that the next run takes it away."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from faults import small
from ffilab.paths import ROOT
from ffilab.press import execute


@pytest.fixture
def tree(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "BUILD", tmp_path / "_build")
    (tmp_path / "ffilab").symlink_to(ROOT / "ffilab")
    (tmp_path / "_build" / "tmpabc" / "runtime").mkdir(parents=True)
    (tmp_path / "_build" / "tmpabc" / "runtime" / "kernel-1.json").write_text("{}")
    (tmp_path / "_build" / "executed" / "good").mkdir(parents=True)
    (tmp_path / "_build" / "executed" / "good" / "good.ipynb").write_text("good")
    (tmp_path / "_build" / "records").mkdir()
    (tmp_path / "_build" / "records" / "x.jsonl").write_text("{}")
    yield tmp_path
    small.end(tmp_path)


@pytest.mark.fault(
    "afterwards", "Litter is planted: folders, a connection file, a process that listens", "The look for it sees each"
)
def test_planted(tree, seen):
    server = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print('in', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", server], cwd=tree, stdout=subprocess.PIPE)
    process.stdout.readline()
    found = small.litter(tree)
    process.kill()
    process.communicate()
    for what in ("_build/tmpabc", "kernel-1.json", f"process {process.pid}", f"socket of {process.pid}"):
        assert any(what in one for one in found), what
    seen(f"{len(found)} things were found")


@pytest.mark.fault(
    "afterwards",
    "A killed run left temporary folders and connection files",
    "The next run takes them away, and finished results stay",
)
def test_swept(tree, seen):
    execute.sweep()
    assert small.litter(tree) == []
    assert (tree / "_build" / "executed" / "good" / "good.ipynb").read_text() == "good"
    assert (tree / "_build" / "records" / "x.jsonl").exists()
    seen("the folder is gone; the page and the record are there")


def ghost_of(build):
    """A process of a killed run, as soon as it shows its surroundings: in the first moment of a program it has none."""
    process = subprocess.Popen(
        ["sleep", "60"], env={**os.environ, "FFILAB_RUN": f"{build}:abc"}, start_new_session=True
    )
    assert small.wait_for(lambda: "FFILAB_RUN" in psutil.Process(process.pid).environ())
    return process


@pytest.mark.fault("afterwards", "A killed run left a process that carries its mark", "The next run ends it")
def test_ghost(tree, seen):
    ghost, other = ghost_of(tree / "_build"), ghost_of("/another/_build")
    execute.sweep()
    try:
        assert ghost.wait(5) == -9
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
    seen("it ended by SIGKILL; that of another clone went on")


LAST = Path("/proc/sys/kernel/ns_last_pid")


@pytest.mark.skipif(
    not os.access(LAST, os.W_OK), reason="who may not choose the number of the next process cannot try it"
)
@pytest.mark.fault(
    "afterwards",
    "A killed run left a process that has the number of one which we saw end",
    "The next run ends it: it remembers none from before",
)
def test_ghost_with_a_number_of_before(tree, seen):
    for _ in range(50):
        first = ghost_of(tree / "_build")
        # As psutil would remember it.
        assert first.pid in {one.pid for one in psutil.process_iter()}
        execute.sweep()
        assert first.wait(5) == -9
        # Their ages are told in hundredths of a second.
        time.sleep(0.02)
        LAST.write_text(str(first.pid - 1))
        ghost = ghost_of(tree / "_build")
        execute.sweep()
        assert ghost.wait(5) == -9
        if ghost.pid == first.pid:
            break
    else:
        pytest.skip("others took the number, fifty times")
    seen("both ended by SIGKILL")
