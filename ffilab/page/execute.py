"""Run one chapter with papermill in a child process: temporary folder, rename on success, always a time limit."""

import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat

from ffilab.page.cells import YOURS
from ffilab.page.chapter import PAGE
from ffilab.page.contents import FACTS, Chapter, glued, kept, record_digests, source_digests
from ffilab.page.draw import filled_in
from ffilab.page.files import HTML
from ffilab.run import settings
from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD, LOGS, ROOT, swap
from ffilab.run.progress import Step, minutes, step
from ffilab.run.subprocesses import disk_full, end_leftovers, group, reached, tail

# A chapter takes one to two minutes in quick budget; these are limits against hangs.
CELL_TIMEOUT_S = {"smoke": 300, "room": 900, "quick": 1800, "full": 7200}
CHAPTER_TIMEOUT_S = {"smoke": 600, "room": 1800, "quick": 3600, "full": 14400}
START_TIMEOUT_S = 120
# How a run ended badly (run_notebook.py), for the reader.
ENDED = {
    "raised": "The {chapter} stopped in cell {cell} with {name}: {message}; its traceback is in {log}.",
    "timeout": "Cell {cell} of the {chapter} ran into its time limit and was ended; see {log}.",
    "died": "The Jupyter kernel of the {chapter} died in cell {cell} ({how}); its output is in {log}.",
    "no kernel": "The Jupyter kernel of the {chapter} is not set up: run `python3 ffilab/bootstrap.py kernels`.",
    "failed": "The {chapter} failed ({name} {message}); see {log}.",
}


def execute(
    chapter: Chapter,
    budget: str,
    source: Path | None = None,
    made_from: dict[str, str] | None = None,
    earlier: Sequence[str] = (),
    language: str = "",
) -> Path:
    """Execute a chapter, and put it where executed chapters are: on its own Jupyter kernel if it measures.

    source: a folder of records to make the page from, instead of measuring.
    earlier: names of the sessions on top of which it measures another. language: of its sentences, if not English.
    made_from: digests of its sources, if they were taken earlier, before the native code was built.
    Raises UserError, naming the cell or the signal, if it fails; then nothing of it is kept,
    and what stood there before is still there.
    """
    name, out = chapter.name, chapter.executed.parent
    out.parent.mkdir(parents=True, exist_ok=True)
    limit = CHAPTER_TIMEOUT_S[budget]
    log = LOGS / f"chapter-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    title = f"chapter {name} ({budget})" if source is None else f"chapter {name}, from records"
    with (
        step(title) as bar,
        tempfile.TemporaryDirectory(dir=out.parent.parent) as scratch,
        tempfile.TemporaryDirectory(prefix=temporary(), ignore_cleanup_errors=True) as short,
    ):
        new, progress, answer = (Path(scratch) / part for part in (name, "progress.json", "answer.json"))
        new.mkdir()
        # Before it runs: what changes meanwhile is not what the page was made from.
        made_from = made_from or source_digests(name)
        order = {
            "source": str(chapter.source),
            "target": str(new / chapter.source.name),
            "answer": str(answer),
            "cwd": str(chapter.source.parent),
            "connection": str(Path(short) / "kernel.json"),
            "kernel": chapter.jupyter_kernel if source is None else reading_kernel(Path(short), "ffilab-reading"),
            "cell_timeout_s": CELL_TIMEOUT_S[budget],
            "start_timeout_s": START_TIMEOUT_S,
        }
        environment = {
            **os.environ,
            **settings.telling(source=source and str(source), earlier=list(earlier), progress=str(progress)),
            settings.BUDGET: budget,
            settings.LANGUAGE: language,
            "PYTHONPATH": str(ROOT),
            "JUPYTER_PATH": str(ROOT / "kernels") if source is None else short,
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            settings.RUN: str(BUILD),
            # What experiments put into temporary files, and the kernel's connection: a killed run leaves them here, and
            # the next one sweeps them. Not below `_build`, whose path may be too long for a socket's.
            "JUPYTER_RUNTIME_DIR": str(Path(scratch) / "runtime"),
            "TMPDIR": short,
        }
        command = [sys.executable, "-m", "ffilab.page.run_notebook", json.dumps(order)]
        with (
            log.open("w") as sink,
            group(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT, env=environment) as process,
        ):
            try:
                code = _wait(process, bar, progress, limit)
            finally:
                # The Jupyter kernel and its workers have sessions of their own: papermill's group does not hold them.
                end_leftovers()
        _check(name, new / chapter.source.name, code, limit, answer, log)
        _finish(new / chapter.source.name, made_from)
        swap(new, out)
    chapter.note_failure("")
    return chapter.executed


def reading_kernel(folder: Path, name: str) -> str:
    """Describe a Jupyter kernel of the book's own environment in a folder for JUPYTER_PATH: reading records needs no
    other. Returns its name."""
    spec = folder / "kernels" / name / "kernel.json"
    spec.parent.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": f"{name}, reading", "language": "python"}))
    return name


def temporary() -> str:
    """Return how the names of this clone's temporary folders begin, in the system's folder for them."""
    return f"ffilab-{hashlib.sha256(os.fsencode(BUILD)).hexdigest()[:12]}-"


def sweep() -> None:
    """Remove the temporary folders that a killed run left. Under the folder's lock."""
    for folder in (*BUILD.glob("tmp*"), *Path(tempfile.gettempdir()).glob(f"{temporary()}*")):
        if folder.is_dir() and folder.lstat().st_uid == os.getuid():
            shutil.rmtree(folder, ignore_errors=True)


def _finish(path: Path, made_from: dict[str, str]) -> None:
    """Make a page of what was executed, and keep its facts beside it, with digests of all that it was made from."""
    notebook = nbformat.read(path, as_version=4)
    _join_streams(notebook)
    _fill_captions(notebook)
    nbformat.write(notebook, path)
    if facts := kept(notebook).get(PAGE):
        facts |= {"digests": {**made_from, **record_digests(facts)}}
        path.with_name(FACTS).write_text(json.dumps(facts, indent=1))


def _join_streams(notebook: nbformat.NotebookNode) -> None:
    """Make one output of what a cell printed, as it arrives in pieces by chance."""
    for cell in notebook.cells:
        joined = []
        for output in cell.get("outputs", []):
            before = joined[-1] if joined else {}
            if output.output_type == "stream" == before.get("output_type") and output.name == before["name"]:
                before["text"] += output.text
            else:
                joined.append(output)
        if "outputs" in cell:
            cell.outputs = joined


def _fill_captions(notebook: nbformat.NotebookNode) -> None:
    """Put the sentences that captions name in their places, now that all of the chapter is measured."""
    said = glued(notebook)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for kind in HTML & set(output.get("data", {})):
                output.data[kind] = filled_in(output.data[kind], said)


def _wait(process: subprocess.Popen, bar: Step, progress: Path, limit: float) -> int | None:
    """Wait for the exit code, and show meanwhile what the measurement reports of itself; None if the limit (s) came
    first."""
    started = time.monotonic()
    while process.poll() is None:
        if time.monotonic() - started > limit:
            return None
        try:
            report = json.loads(progress.read_text())
            bar.update(None, f"{report['title']}, {report['detail']}, {minutes(report['left_s'])} left of it")
        except (OSError, json.JSONDecodeError):
            bar.update(None, "starting")
        time.sleep(0.3)
    return process.returncode


def _check(name: str, path: Path, code: int | None, limit: float, answer: Path, log: Path) -> None:
    """Raise UserError if the run failed. The execution counts of the cells have the last word, as papermill marks cells
    completed after a crash."""
    if code is None:
        raise UserError(f"The chapter {name} was ended after {minutes(limit)}: a cell hangs; its output is in {log}.")
    if code == errno.ENOSPC:
        raise disk_full(path.parent)
    try:
        end = json.loads(answer.read_text())
    except (OSError, json.JSONDecodeError):
        end = {"ended": "failed", "message": tail(log, 1)}
        if code < 0:
            end["message"] = f"the process that ran its cells was ended by {signal.Signals(-code).name}"
    # Whoever met the full disk first may have said nothing of it.
    if end["ended"] == "failed" and (
        "No space left on device" in end["message"] or not shutil.disk_usage(path.parent).free
    ):
        raise disk_full(path.parent)
    if end["ended"] in ("failed", "died") and (error := reached(log.read_text(errors="replace"))):
        raise error
    if form := ENDED.get(end["ended"]):
        end = {"name": "", **end, "message": end.get("message", "").rstrip(".")}
        raise UserError(form.format(chapter=f"chapter {name}", log=log, **end))
    cells = nbformat.read(path, as_version=4).cells if path.exists() else []
    book = [(i, c) for i, c in enumerate(cells, 1) if c.cell_type == "code" and YOURS not in c.metadata.get("tags", [])]
    unrun = [i for i, c in book if c.source and not c.execution_count]
    if code or not cells or unrun:
        raise UserError(f"The chapter {name} ended without running all its cells ({unrun}); see {log}.")
