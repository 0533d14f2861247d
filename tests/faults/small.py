"""A small clone with one chapter, and what remains of a run in it: for the faults of runs, of the press and afterwards."""

import shutil
import signal
import subprocess
import time
from pathlib import Path

import nbformat
import psutil
from conftest import clean_environment

from ffilab.paths import ROOT

# A kernel that has a worker, which says that it is there.
BUSY = (
    "import subprocess, sys, time, pathlib\n"
    "worker = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'], start_new_session=True)\n"
    "pathlib.Path('worker').write_text(str(worker.pid))\n"
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


RUN = (
    "import os, sys; sys.path.insert(0, {root!r}); from ffilab import cli, bootstrap\n"
    "bootstrap.end_with_make(); bootstrap.lock_folder(); from ffilab.press import execute, chapters\n"
    "import signal; signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
    "execute.sweep()\n"
    "execute.execute(chapters.chapter('victim'), 'smoke', made_from={{}})\n"
)


def start(tree: Path, program: list | None = None) -> subprocess.Popen:
    """The run under make, from the lock to the kernel: what `make chapter` does behind provisioning."""
    if program is None:
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
        env=clean_environment(HOME=str(tree), PYTHONDONTWRITEBYTECODE="1"),
    )


def at_work(tree: Path) -> list[psutil.Process]:
    """Processes that work in the clone."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.cwd().startswith(str(tree)):
                found.append(process)
        except psutil.Error:
            continue
    return found


def wait_for(what, seconds=30.0):
    """Its value when it is true, or what it is after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def part(tree: Path, name: str) -> psutil.Process:
    """One process of a run: make, ffilab, papermill, the kernel or its worker."""
    words = {
        "make": lambda words: words[:1] == ["make"],
        "ffilab": lambda words: words[-1:] == ["run.py"],
        "papermill": lambda words: "ffilab.press.run_notebook" in words,
        "kernel": lambda words: any("ipykernel" in word for word in words),
        "worker": lambda words: words[-1:] == ["import time; time.sleep(300)"],
    }[name]
    found = [process for process in at_work(tree) if words(process.cmdline())]
    return found[0]


def is_locked(tree: Path) -> bool:
    import fcntl

    with (tree / "_build" / "lock").open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


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
    if (tree / "_build" / "lock").exists() and is_locked(tree):
        found.append("the lock is held")
    return found
