"""A small clone with one chapter, and what remains of a run in it: for the faults of runs, of the press and afterwards."""

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import nbformat
import psutil
import pytest
from conftest import clean_environment

from ffilab.locks import is_held
from ffilab.paths import ROOT
from ffilab.subprocesses import everyone

# A kernel that has a worker, which says that it is there.
BUSY = (
    "import subprocess, sys, time\n"
    "worker = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)\n"
    "time.sleep(300)"
)


def clone(folder: Path, *cells: str, corner="victim") -> Path:
    """Our machinery and environments, a chapter that holds these cells, and no native code."""
    for name in ("ffilab", "requirements", "book", "kernels"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".venv"))
    for name in ("Makefile", "_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / "native").mkdir()
    for kernel in (ROOT / "kernels" / "kernels").iterdir():
        if (kernel / ".venv").exists():
            (folder / "kernels" / "kernels" / kernel.name / ".venv").symlink_to(kernel / ".venv")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    notebook.metadata["kernelspec"] = {"name": "cpython-3.14", "display_name": "3.14", "language": "python"}
    source = folder / "notebooks" / corner / f"{corner}.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(notebook, source)
    return folder


RUN = """import os, signal, sys
sys.path.insert(0, {root!r})
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    from ffilab import bootstrap
    bootstrap.end_with_make(); bootstrap.lock_folder()
    from ffilab.press import execute, chapters
    execute.sweep()
    execute.execute(chapters.chapter('victim'), 'smoke', made_from={{}})
except KeyboardInterrupt:
    sys.exit(130)
except Exception as error:
    if type(error).__name__ != "UserError":
        raise
    sys.exit(f"ffilab: {{error}}")
"""
# The real thing, which draws layouts too. Several at one time: none is to wait for another.
CHAPTER = ["make", "chapter", "NAME=victim", "BUDGET=smoke", "KERNELS=3.14"]


def start(tree: Path, program: list | None = None) -> subprocess.Popen:
    """The run under make: CHAPTER, or without a program what it does behind provisioning, from the lock to the kernel."""
    if program is None:
        (tree / "run.py").write_text(RUN.format(root=str(tree)))
        text = (tree / "Makefile").read_text()
        if "\nsmall:" not in text:
            (tree / "Makefile").write_text(
                text + "\nsmall:\n\t@FFILAB_MAKE=$(shell echo $$PPID) exec .venv/bin/python run.py\n"
            )
        program = ["make", "small"]
    return subprocess.Popen(
        program,
        cwd=tree,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=clean_environment(FFILAB_ALONE="1"),
    )


def running(belongs) -> list[psutil.Process]:
    """Processes that still run and belong to something."""
    found = []
    for process in everyone():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and belongs(process):
                found.append(process)
    return found


def at_work(tree: Path) -> list[psutil.Process]:
    """Processes that work in the clone."""
    return running(lambda process: process.cwd().startswith(str(tree)))


def words(process: psutil.Process) -> list[str]:
    """Its command; nothing if it is gone."""
    with suppress(psutil.Error):
        return process.cmdline()
    return []


def wait_for(what, seconds=30.0):
    """Its value when it is true, or what it is after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def part(tree: Path, name: str) -> psutil.Process:
    """One process of a run, as soon as it is there: make, ffilab, papermill, the kernel or its worker."""
    known = {
        "make": lambda said: said[:1] == ["make"],
        "ffilab": lambda said: said[-1:] in (["run.py"], ["victim"]),
        "papermill": lambda said: "ffilab.press.run_notebook" in said,
        "kernel": lambda said: any("ipykernel" in word for word in said),
        "worker": lambda said: said[-1:] == ["import time; time.sleep(300)"],
    }[name]
    found = wait_for(lambda: next((one for one in at_work(tree) if known(words(one))), None))
    assert found, f"no {name} among {at_work(tree)}"
    return found


def is_ours(said: str) -> bool:
    """Does what was said hold a traceback of our own code? Python's own start may show one: nothing of a program can prevent
    that. Line 0 is that of a module that has not begun, and the first twelve of bootstrap.py are those which see to it."""
    frames = re.findall(r'File "[^"]*/ffilab/([^"]*)", line (\d+)', said)
    return "Traceback" in said and any(int(line) > (12 if name == "bootstrap.py" else 0) for name, line in frames)


def is_locked(path: Path) -> bool:
    """Does a process hold the lock of a file?"""
    if not path.exists():
        return False
    with path.open("r+") as file:
        return is_held(file)


def end(tree: Path) -> None:
    """Whatever a failed test left."""
    for process in at_work(tree):
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.Error:
            continue


def litter(tree: Path) -> list[str]:
    """What a run may leave behind: temporary folders, connection files, layouts, sockets, shared memory, processes."""
    found = [str(path.relative_to(tree)) for path in tree.glob("_build/tmp*")]
    found += [str(path.relative_to(tree)) for path in tree.rglob("kernel-*.json")]
    found += [str(path.relative_to(tree)) for path in tree.glob("_build/layouts/*")]
    found += [f"shared memory {path.name}" for path in Path("/dev/shm").glob(f"*{tree.name}*")]
    for process in at_work(tree):
        try:
            found.append(f"process {process.pid} {process.name()}")
            found += [f"socket of {process.pid}" for one in process.net_connections() if one.status == "LISTEN"][:1]
        except psutil.Error:
            continue
    if is_locked(tree / "_build" / "lock"):
        found.append("the lock is held")
    return found


@contextmanager
def disk(folder, options):
    """A file system in memory; skipped with the reason where it cannot be mounted."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "faults", folder]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root can mount a small file system, and not in every container")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)
