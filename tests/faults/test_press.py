"""Notebooks that go wrong under the press, and what stays of the pages that were good."""

import os
import threading
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from faults import small
from ffilab import paths, subprocesses
from ffilab.errors import UserError
from ffilab.judge import claims
from ffilab.press import execute
from ffilab.press.chapters import Chapter

pytestmark = pytest.mark.slow

# Locks a mutex twice, with the GIL held: no signal reaches Python.
HANG = "import ctypes; lib = ctypes.PyDLL(None); m = bytes(128); lib.pthread_mutex_lock(m); lib.pthread_mutex_lock(m)"
# A child with its own session and an empty environment.
CHILD = (
    "import subprocess, sys, pathlib\n"
    "child = subprocess.Popen(['/bin/sleep', '300'], env={}, start_new_session=True)\n"
    "pathlib.Path('child').write_text(str(child.pid))\n"
)
# The same, of which the parent has ended: nothing leads from the kernel to it.
DAEMON = (
    "import subprocess, sys, pathlib\n"
    "start = \"import subprocess; print(subprocess.Popen(['/bin/sleep', '300'], env={}, start_new_session=True, \"\n"
    "start += 'stdout=subprocess.DEVNULL).pid)'\n"
    "pathlib.Path('child').write_text(subprocess.check_output([sys.executable, '-c', start], text=True))\n"
)
SERVER = (
    "import subprocess, sys, pathlib\n"
    "child = subprocess.Popen([sys.executable, '-m', 'http.server', '0', '--bind', '127.0.0.1'], env={}, start_new_session=True)\n"
    "pathlib.Path('child').write_text(str(child.pid))\n"
)
DISK = (
    "import resource, pathlib\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\npathlib.Path('large').write_bytes(bytes(5000))"
)
THREADS = "import threading, time\nfor _ in range(50): threading.Thread(target=time.sleep, args=(300,)).start()"
SHARED = "from multiprocessing import shared_memory\nkept = shared_memory.SharedMemory('ffilab-fault', True, 4096)"


@pytest.fixture
def chapter(tmp_path):
    """Makes a chapter of some cells; a page of it was there before."""

    def make(*cells):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "cpython-3.14", "display_name": "3.14", "language": "python"}
        made = Chapter("victim", tmp_path / "notebooks", tmp_path / "executed")
        made.source.parent.mkdir(parents=True)
        nbformat.write(notebook, made.source)
        made.executed.parent.mkdir(parents=True)
        made.executed.write_text("what stood here before")
        return made

    return make


def fails(chapter, seen, says, **limits):
    with pytest.raises(UserError, match=says) as error:
        execute.execute(chapter, "smoke", made_from={}, **limits)
    assert chapter.executed.read_text() == "what stood here before"
    assert {one.name for one in chapter.executed_folder.parent.iterdir()} == {"notebooks", "executed"}
    seen(str(error.value).partition("; its output")[0].partition("; see")[0])


@pytest.mark.parametrize(
    ("what", "cell", "says", "limits"),
    [
        ("raises", "raise ValueError('on purpose')", "cell 2 with ValueError: on purpose", {}),
        ("segfaults", "import ctypes; ctypes.string_at(0)", r"died in cell 2 \(SIGSEGV\)", {}),
        ("aborts", "import os; os.abort()", r"died in cell 2 \(SIGABRT\)", {}),
        ("is killed, as where memory ends", "import os; os.kill(os.getpid(), 9)", r"died in cell 2 \(SIGKILL\)", {}),
        ("exits", "import os; os._exit(3)", r"died in cell 2 \(exit code 3\)", {}),
        ("hangs in C", HANG, "Cell 2 .* time limit", {"cell_timeout_s": 4}),
        ("hangs for longer than a chapter may take", HANG, "was ended after", {"chapter_timeout_s": 12}),
        ("writes more than it may", DISK, "cell 2 with OSError", {}),
        ("runs out of memory", "x = bytearray(1 << 50)", "cell 2 with MemoryError", {}),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 45 and "import" not in value else "",
)  # fmt: skip
@pytest.mark.fault(
    "press", "A notebook {what}", "The cell and what ended it are named; the last page stays; nothing is left"
)
def test_notebook(chapter, seen, what, cell, says, limits):
    fails(chapter("x = 1", cell), seen, says, **limits)


@pytest.mark.fault(
    "press", "The disk is full in the middle of a chapter", "Said in one sentence; the last page stays; nothing is left"
)
def test_disk_full(chapter, seen, tmp_path, monkeypatch):
    source = chapter("x = 1", "print('x' * 5_000_000)").folder
    with small.disk(tmp_path / "small", "size=1m") as disk:
        monkeypatch.setattr(execute, "LOGS", disk / "notebooks")
        there = Chapter("victim", source, disk / "executed")
        there.executed.parent.mkdir(parents=True)
        there.executed.write_text("what stood here before")
        fails(there, seen, "The disk that holds .* is full: free some space")


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("a child with its own session and an empty environment", CHILD),
        ("a child without parent, session and environment", DAEMON),
        ("a server on loopback", SERVER),
    ],
    ids=lambda value: value if " " in value and "import" not in value else "",
)
@pytest.mark.fault("press", "A notebook leaves {what}", "It is found and ended with the chapter, and the page is good")
def test_left_behind(chapter, seen, what, code):
    made = chapter(code)
    execute.execute(made, "smoke", made_from={})
    pid = int((made.source.parent / "child").read_text())
    assert not psutil.pid_exists(pid)
    seen("the page is there, and the process is gone")


@pytest.mark.fault(
    "press",
    "Something in a Jupyter kernel waits for ever before each fork, as IPython's history did now and then",
    "No experiment is a fork: all of them run",
)
def test_hook_before_a_fork(chapter, seen):
    made = chapter(
        "import os, threading; os.register_at_fork(before=threading.Event().wait)",
        "from ffilab.bench import case\nassert case.program(['echo', 'ran']) == ('ok', 'ran\\n', '')",
    )
    execute.execute(made, "smoke", made_from={}, cell_timeout_s=30)
    seen("the experiment ran, and the hook did not")


@pytest.mark.fault("press", "The reader keeps a history of IPython", "No cell of a chapter is written to it")
def test_history(chapter, seen, monkeypatch, tmp_path):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "executed" / "theirs"))
    execute.execute(chapter("x = 1", "y = 2"), "smoke", made_from={})
    assert (tmp_path / "executed" / "theirs").exists()
    assert not list(tmp_path.rglob("history.sqlite"))
    seen("none was opened")


@pytest.mark.fault("press", "A notebook leaks fifty threads", "They end with the Jupyter kernel, and the page is good")
def test_threads(chapter, seen):
    made = chapter(THREADS, "x = 1")
    execute.execute(made, "smoke", made_from={})
    assert nbformat.read(made.executed, as_version=4).cells[1].execution_count == 2
    seen("the page is there")


@pytest.mark.fault("press", "A notebook leaves shared memory", "It is taken away with the Jupyter kernel")
def test_shared_memory(chapter, seen):
    made = chapter(SHARED)
    execute.execute(made, "smoke", made_from={})
    gone = Path("/dev/shm/ffilab-fault")
    deadline = time.monotonic() + 3
    while gone.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    found = gone.exists()
    gone.unlink(missing_ok=True)
    assert not found
    seen("it is gone")


@pytest.mark.fault(
    "press",
    "A chapter's notebook forgets to hand in",
    "Said before anything is replaced: the last page and verdicts stay",
)
def test_hand_in_forgotten(tmp_path, seen):
    made = tmp_path / "made"
    made.mkdir()
    corner = claims.corners()[0]
    with pytest.raises(UserError, match=r"handed in nothing for claim .* stay") as error:
        execute._check_hand_in(corner, made)
    seen(error.value)


@pytest.mark.fault(
    "press", "A reader opens the book while the new one takes its place", "There is a whole book at every moment"
)
def test_no_moment_without_a_book(tmp_path, seen):
    new, place = tmp_path / "new", tmp_path / "html"
    for folder in (new, place):
        folder.mkdir()
        (folder / "index.html").write_text(folder.name)
    missed, looked, over = [], [0], threading.Event()

    def look():
        while not over.is_set():
            looked[0] += 1
            try:
                os.stat(place / "index.html")
            except FileNotFoundError:
                missed.append(looked[0])

    thread = threading.Thread(target=look)
    thread.start()
    for _ in range(2000):
        paths.swap(new, place)
    over.set()
    thread.join()
    assert not missed
    assert looked[0] > 100
    seen(f"2000 exchanges, looked at {looked[0]} times, never missing")


@pytest.mark.fault(
    "press", "The system knows no exchange of two names", "Two renames do it, and the old book is put aside"
)
def test_swap_without_exchange(tmp_path, seen, monkeypatch):
    import ctypes

    for name in ("new", "html"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").write_text(name)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    paths.swap(tmp_path / "new", tmp_path / "html")
    assert (tmp_path / "html" / "index.html").read_text() == "new"
    assert (tmp_path / "new" / "index.html").read_text() == "html"
    seen("the new one is in its place, the old one beside it")


@pytest.mark.fault(
    "press", "A process that belongs to nobody appears while another chapter runs", "Only the stray is ended"
)
def test_other_groups_are_left_alone(seen):
    ours = subprocesses.descendants()
    subprocesses.adopt_orphans()
    with subprocesses.group(["sleep", "60"]) as busy:
        stray = psutil.Popen(["sleep", "61"])
        subprocesses.end_descendants(but=ours)
        assert busy.poll() is None
        assert stray.poll() is not None
    seen("the stray ended, the group went on")
