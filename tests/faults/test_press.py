"""Notebooks that go wrong under the press, and what stays of the pages that were good."""

import resource
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from ffilab.page import contents, execute, render
from ffilab.page.contents import Chapter
from ffilab.run import paths, settings
from ffilab.run.errors import UserError
from tests.helpers import small

# Locks a mutex twice, with the GIL held: no signal reaches Python.
HANG = "import ctypes; lib = ctypes.PyDLL(None); m = bytes(128); lib.pthread_mutex_lock(m); lib.pthread_mutex_lock(m)"
LIMITED = (
    "import resource, pathlib\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\npathlib.Path('large').write_bytes(bytes(5000))"
)
BEFORE = "what stood here before"


@pytest.fixture
def chapter(tmp_path):
    """Makes a chapter of some cells; a page of it was there before."""

    def make(*cells, kernel="cpython-3.14"):
        made = Chapter("victim", tmp_path / "notebooks", tmp_path / "executed")
        small.notebook(made.source, *cells, kernel=kernel)
        made.executed.parent.mkdir(parents=True)
        made.executed.write_text(BEFORE)
        return made

    return make


def fails(chapter, says):
    with pytest.raises(UserError, match=says):
        execute.execute(chapter, "smoke", made_from={})
    assert chapter.executed.read_text() == BEFORE
    assert {path.name for path in chapter.executed_folder.parent.iterdir()} == {"notebooks", "executed"}
    assert not small.running(lambda process: process.environ().get(settings.RUN) == str(paths.BUILD))


@pytest.mark.parametrize(
    ("cell", "says", "limits"),
    [
        pytest.param("raise ValueError('on purpose')", "cell 2 with ValueError: on purpose", {}, id="raises"),
        pytest.param("import os; os.kill(os.getpid(), 9)", r"died in cell 2 \(SIGKILL\)", {}, id="dies"),
        pytest.param(HANG, "Cell 2 .* time limit", {"CELL_TIMEOUT_S": 4}, id="hangs"),
        pytest.param(HANG, "was ended after", {"CHAPTER_TIMEOUT_S": 12}, id="hangs for long", marks=pytest.mark.full),
        pytest.param("import os; os.abort()", r"died in cell 2 \(SIGABRT\)", {}, id="aborts", marks=pytest.mark.full),
        pytest.param("import os; os._exit(3)", r"cell 2 \(exit code 3\)", {}, id="exits", marks=pytest.mark.full),
        pytest.param(LIMITED, "cell 2 with OSError", {}, id="writes too much", marks=pytest.mark.full),
        pytest.param("bytearray(1 << 50)", "cell 2 with MemoryError", {}, id="memory", marks=pytest.mark.full),
    ],
)
def test_a_notebook_that_fails(chapter, cell, says, limits, monkeypatch):
    for name, limit in limits.items():
        monkeypatch.setitem(getattr(execute, name), "smoke", limit)
    fails(chapter("x = 1", cell), says)


def test_a_kernel_that_is_not_there(chapter, monkeypatch):
    monkeypatch.setattr(contents, "CHAPTER_PAIR", [SimpleNamespace(name="cpython-9.99")])
    fails(chapter("1", kernel="cpython-9.99"), "not set up: run `python3 ffilab/bootstrap.py kernels`")


@pytest.mark.parametrize("kernel", ["python3", "cpython-3.15"])
def test_a_kernel_that_an_editor_noted(chapter, kernel):
    fails(chapter("1", kernel=kernel), rf"names the Jupyter kernel '{kernel}', .*\(`git checkout .*victim\.ipynb`\)")


def test_the_traceback_of_a_chapter_is_in_its_log(chapter):
    fails(
        chapter("def deep():\n    1 / 0", "deep()"), "ZeroDivisionError: division by zero; its traceback is in .*victim"
    )
    log = (execute.LOGS / "chapter-victim.log").read_text()
    assert "1 / 0" in log
    assert "\x1b" not in log


def test_a_chapter_that_finds_no_free_file_names_the_limit(chapter):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, hard))
        fails(chapter("1"), "too many open files: raise the limit")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("fills", ["pass", "while True: log.write(b'x' * 999)"], ids=["notebook", "log too"])
def test_the_disk_is_full_in_the_middle_of_a_chapter(chapter, tmp_path, monkeypatch, fills):
    log = tmp_path / "small" / "notebooks" / "chapter-victim.log"
    first = f"import contextlib\nwith contextlib.suppress(OSError), open({str(log)!r}, 'ab', 0) as log:\n    {fills}"
    source = chapter(first, "print('x' * 5_000_000)").folder
    with small.disk(tmp_path / "small", "size=1m") as disk:
        monkeypatch.setattr(execute, "LOGS", disk / "notebooks")
        there = Chapter("victim", source, disk / "executed")
        there.executed.parent.mkdir(parents=True)
        there.executed.write_text(BEFORE)
        fails(there, "The disk that holds .* is full: free some space")


def test_a_good_chapter_takes_the_place_of_the_old_one(chapter, monkeypatch, tmp_path):
    """With what a cell left running ended, no cell in the reader's IPython history, and no fork in an experiment.

    IPython's history waited for ever, now and then, before a fork.
    """
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "executed" / "theirs"))
    # As under the folder's lock.
    monkeypatch.setenv(settings.RUN, str(paths.BUILD))
    made = chapter(
        "import os, subprocess, threading; os.register_at_fork(before=threading.Event().wait)",
        "from ffilab.measure import case\nassert case.program(['echo', 'ran']) == ('ok', 'ran\\n', '')",
        "child = subprocess.Popen(['sleep', '300'], start_new_session=True)",
        "for _ in range(50): threading.Thread(target=threading.Event().wait, daemon=False).start()",
    )
    monkeypatch.setitem(execute.CELL_TIMEOUT_S, "smoke", 30)
    execute.execute(made, "smoke", made_from={})
    cells = nbformat.read(made.executed, as_version=4).cells
    assert [cell.execution_count for cell in cells] == [1, 2, 3, 4]
    assert small.wait_for(lambda: not small.running(lambda one: one.environ().get(settings.RUN) == str(paths.BUILD)))
    assert not list(tmp_path.rglob("history.sqlite"))


def test_an_interrupted_rendering_keeps_the_old_book(tmp_path, monkeypatch):
    html = tmp_path / "html"
    html.mkdir()
    (html / "index.html").write_text(BEFORE)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(render, "HTML", html)
    monkeypatch.setattr(render, "chapters", lambda: [SimpleNamespace(is_executed=True)])
    monkeypatch.setattr(render, "assemble", lambda tree: tree.mkdir(exist_ok=True) or tree)
    monkeypatch.setattr(render, "logged", interrupted)
    with pytest.raises(KeyboardInterrupt):
        render.render()
    assert (html / "index.html").read_text() == BEFORE


def test_a_folder_takes_the_place_of_another_one(tmp_path):
    for _ in range(2):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "index.html").write_text("new")
        paths.swap(tmp_path / "new", tmp_path / "html")
    assert [path.name for path in tmp_path.iterdir()] == ["html"]
    assert (tmp_path / "html" / "index.html").read_text() == "new"


def test_what_a_killed_run_left_is_swept_and_results_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "BUILD", tmp_path)
    (tmp_path / "tmpabc" / "runtime").mkdir(parents=True)
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "x.jsonl").write_text("{}")
    execute.sweep()
    assert [path.name for path in tmp_path.iterdir()] == ["records"]
    assert (tmp_path / "records" / "x.jsonl").exists()


@pytest.mark.parametrize(("built", "there"), [(True, True), (False, False)])
def test_a_page_with_a_warning_costs_no_other_page(tmp_path, monkeypatch, built, there):
    def jupyter_book(command, log, env):
        html = Path(command[command.index("--path-output") + 1]) / "_build" / "html"
        html.mkdir(parents=True)
        if built:
            (html / "index.html").touch()
        log.write_text("\x1b[91mpage.md:3: WARNING: No key\x1b[39m\n")
        return 1

    monkeypatch.setattr(render, "BUILD", tmp_path)
    monkeypatch.setattr(render, "LOGS", tmp_path)
    monkeypatch.setattr(render, "HTML", tmp_path / "html")
    monkeypatch.setattr(render, "assemble", lambda tree: tree.mkdir() or tree)
    monkeypatch.setattr(render, "chapters", lambda: [])
    monkeypatch.setattr(render, "any", lambda _: True, raising=False)
    monkeypatch.setattr(render, "logged", jupyter_book)
    with pytest.raises(UserError, match=r"\(page.md:3: WARNING: No key\)"):
        render.render()
    assert (tmp_path / "html" / "index.html").exists() is there
