"""Run one chapter with papermill in a child process: temporary file, rename on success, always a time limit."""

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from ffilab.bench.reporting import ENVIRONMENT
from ffilab.errors import UserError
from ffilab.judge import ledger
from ffilab.paths import EXECUTED, LOGS, NOTEBOOKS, ROOT
from ffilab.progress import Step, minutes, step
from ffilab.subprocesses import group, tail

# A chapter takes one to two minutes in quick budget; these are limits against hangs.
CELL_TIMEOUT_S = {"smoke": 300, "quick": 1800, "full": 7200}
CHAPTER_TIMEOUT_S = {"smoke": 600, "quick": 3600, "full": 14400}
START_TIMEOUT_S = 120


def notebook(name: str, folder: Path = NOTEBOOKS) -> Path:
    """The source of a chapter. Raises UserError with the list of chapters if there is none of that name."""
    path = folder / f"{name}.ipynb"
    if not name or not path.exists():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.ipynb")))
        raise UserError(f"There is no chapter {name!r}: say NAME= one of {known}.")
    return path


def execute(
    source: Path,
    budget: str,
    out: Path = EXECUTED,
    chapter_timeout_s: float | None = None,
    cell_timeout_s: float | None = None,
) -> Path:
    """Execute a notebook on its own kernel and put it into `out`.

    Raises UserError, naming the cell or the signal, if it fails; then nothing of it is kept,
    and what stood in `out` before is still there.
    """
    name = source.stem
    out.mkdir(parents=True, exist_ok=True)
    limit = chapter_timeout_s or CHAPTER_TIMEOUT_S[budget]
    log = LOGS / f"chapter-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with step(f"chapter {name} ({budget})") as bar, tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        temporary, progress = Path(scratch) / source.name, Path(scratch) / "progress.json"
        command = [
            sys.executable,
            "-m",
            "papermill",
            str(source),
            str(temporary),
            "--cwd",
            str(ROOT),
            "--no-progress-bar",
            "--log-level",
            "WARNING",
            "--start-timeout",
            str(START_TIMEOUT_S),
            "--execution-timeout",
            str(int(cell_timeout_s or CELL_TIMEOUT_S[budget])),
        ]
        environment = {
            **os.environ,
            "BUDGET": budget,
            ENVIRONMENT: str(progress),
            "PYTHONPATH": str(ROOT),
            "JUPYTER_PATH": str(ROOT / "kernels"),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "FFILAB_RUN": secrets.token_hex(8),
            ledger.HAND_IN_FOLDER: str(Path(scratch) / "claims"),
        }
        with (
            log.open("w") as sink,
            group(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, env=environment) as process,
        ):
            try:
                code = _wait(process, bar, progress, limit)
            finally:
                # The kernel runs in a session of its own: papermill's group does not hold it.
                _end_kernels(environment["FFILAB_RUN"])
        _check(name, temporary, code, limit, log)
        ledger.accept(name, Path(scratch) / "claims")
        temporary.replace(out / source.name)
    return out / source.name


def _wait(process: subprocess.Popen, bar: Step, progress: Path, limit: float) -> int | None:
    """Exit code, or None if the limit came first. Shows the bench's own progress meanwhile."""
    started = time.monotonic()
    while process.poll() is None:
        elapsed = time.monotonic() - started
        if elapsed > limit:
            return None
        try:
            now = json.loads(progress.read_text())
            bar.update(elapsed / (elapsed + now["left_s"] + 1), f"{now['title']}, {now['detail']}", now["left_s"])
        except (OSError, json.JSONDecodeError):
            bar.update(0, "starting", seconds_left=None)
        time.sleep(0.3)
    return process.returncode


def _end_kernels(run: str) -> None:
    """Kill what the run left behind: kernels and workers carry its mark in their environment."""
    import psutil

    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get("FFILAB_RUN") == run:
                process.send_signal(signal.SIGKILL)
        except psutil.Error:
            continue


def _check(name: str, path: Path, code: int | None, limit: float, log: Path) -> None:
    """The exit code and the cells' execution counts decide, not papermill's marks: it marks cells completed after a crash."""
    if code is None:
        raise UserError(f"The chapter {name} was ended after {minutes(limit)}: a cell hangs; its output is in {log}.")
    text = log.read_text(errors="replace")
    if "CellTimeoutError" in text:
        raise UserError(f"A cell of the chapter {name} ran into its time limit and was ended; see {log}.")
    cells = nbformat.read(path, as_version=4).cells if path.exists() else []
    # Papermill puts cells of its own in front: what it injected, and a note about the error.
    cells = [c for c in cells if not any("papermill" in t or "injected" in t for t in c.metadata.get("tags", []))]
    number, cell = next(
        ((i, c) for i, c in enumerate(cells, 1) if any(o.output_type == "error" for o in c.get("outputs", []))),
        (None, None),
    )
    if cell:
        error = next(o for o in cell.outputs if o.output_type == "error")
        raise UserError(
            f"The chapter {name} stopped in cell {number} ({cell.get('id', '')}) with {error.ename}: {error.evalue}"
        )
    if "DeadKernelError" in text or code == 138:
        raise UserError(f"The kernel of the chapter {name} died (crash or out of memory); its output is in {log}.")
    if "NoSuchKernel" in text:
        raise UserError(f"The kernel of the chapter {name} is not set up: run `make kernels`.")
    if code:
        raise UserError(f"The chapter {name} failed ({tail(log, 1)}); see {log}.")
    unrun = [i for i, c in enumerate(cells, 1) if c.cell_type == "code" and c.source and not c.execution_count]
    if not cells or unrun:
        raise UserError(f"The chapter {name} ended without running all its cells ({unrun}); see {log}.")
