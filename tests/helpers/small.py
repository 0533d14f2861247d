"""A small clone with one chapter, and what remains of a run in it: for the faults of runs and of the press."""

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

from ffilab.run import settings
from ffilab.run.locks import is_held
from ffilab.run.paths import ROOT
from tests.helpers.environment import clean_environment

# A kernel that has a worker, which says that it is there.
BUSY = (
    "import subprocess, sys, time\n"
    "worker = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)\n"
    "time.sleep(300)"
)
MACHINERY = ("Makefile", "README.md", "_config.yml", "_toc.yml", "ffilab", "requirements", "studies", "book", "kernels")


def copy(folder: Path, names=MACHINERY, kernels: bool = True) -> Path:
    """Copy these parts of the repository, and link the environments: the book's, and those of the kernels."""
    ignored = shutil.ignore_patterns("__pycache__", ".venv")
    for name in names:
        source, target = ROOT / name, folder / name
        shutil.copytree(source, target, ignore=ignored) if source.is_dir() else shutil.copy(source, target)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    for kernel in (ROOT / "kernels" / "kernels").iterdir() if kernels else ():
        if (kernel / ".venv").exists():
            (folder / "kernels" / "kernels" / kernel.name / ".venv").symlink_to(kernel / ".venv")
    return folder


def notebook(path: Path, *cells: str, kernel: str = "cpython-3.14") -> None:
    """Write a notebook of code cells."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
    path.parent.mkdir(parents=True)
    nbformat.write(made, path)


def clone(folder: Path, *cells: str) -> Path:
    """Our machinery and environments, a chapter that holds these cells and was measured before, and no native code."""
    copy(folder)
    (folder / "native").mkdir()
    notebook(folder / "notebooks" / "victim" / "victim.ipynb", *cells)
    page = folder / "_build" / "executed" / "victim" / "victim.ipynb"
    page.parent.mkdir(parents=True)
    page.write_text("what stood here before")
    return folder


# A run without provisioning and rendering, from the lock to the kernel.
RUN = """import os, sys
sys.path.insert(0, {root!r})
from ffilab import bootstrap
from ffilab import cli
from ffilab.run import settings
bootstrap.lock_folder()

def book(**options):
    from ffilab.page import contents, execute
    execute.sweep()
    execute.execute(contents.chapter("victim"), "smoke", made_from={{}})

cli.verbs.commands["html"].callback = book
sys.argv = ["ffilab", "html"]
cli.main()
"""


def start(tree: Path, *program: str) -> subprocess.Popen:
    """Start the run, or another program, under make in a session of its own."""
    if not program:
        (tree / "run.py").write_text(RUN.format(root=str(tree)))
        text = (tree / "Makefile").read_text()
        if "\nsmall:" not in text:
            (tree / "Makefile").write_text(text + "\nsmall:\n\t@exec .venv/bin/python run.py\n")
        program = ["make", "small"]
    return subprocess.Popen(
        program,
        cwd=tree,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=clean_environment(**settings.telling(alone=True)),
    )


def running(belongs) -> list[psutil.Process]:
    """Processes that still run and belong to something."""
    found = []
    for pid in psutil.pids():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
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


def wait_for(what, seconds=60.0):
    """Its value when it is true, or what it is after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def part(tree: Path, name: str) -> psutil.Process:
    """One process of a run, as soon as it is there: make, ffilab, papermill, the kernel or its worker."""
    is_it = {
        "make": lambda command: command[:1] == ["make"],
        "ffilab": lambda command: command[-1:] == ["run.py"],
        "papermill": lambda command: "ffilab.page.run_notebook" in command,
        "kernel": lambda command: any("ipykernel" in word for word in command),
        "worker": lambda command: command[-1:] == ["import time; time.sleep(300)"],
    }[name]
    found = wait_for(lambda: next((one for one in at_work(tree) if is_it(words(one))), None))
    assert found, f"no {name} among {at_work(tree)}"
    return found


def is_ours(said: str) -> bool:
    """Does what was said hold a traceback of our own code? Python's own start may show one: no program can prevent
    that."""
    return "Traceback" in said and bool(re.search(r'File "[^"]*/ffilab/[^"]*", line [1-9]', said))


def is_locked(path: Path) -> bool:
    """Does a process hold the lock of a file?"""
    if not path.exists():
        return False
    with path.open("r+") as file:
        return is_held(file)


def end(tree: Path) -> None:
    """Whatever a failed test left."""
    for process in at_work(tree):
        with suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)


def litter(tree: Path) -> list[str]:
    """What a run may leave behind: temporary folders, connection files, processes, a lock."""
    found = [str(path.relative_to(tree)) for path in (*tree.glob("_build/tmp*"), *tree.rglob("kernel-*.json"))]
    found += [f"process {process.pid} {words(process)}" for process in at_work(tree)]
    return found + (["the lock is held"] if is_locked(tree / "_build" / "lock") else [])


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
