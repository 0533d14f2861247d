"""Run one chapter with papermill in a child process: temporary folder, rename on success, always a time limit."""

import errno
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import nbformat
import psutil

from ffilab.bench.reporting import ENVIRONMENT
from ffilab.bench.session import EARLIER, FROM
from ffilab.errors import UserError
from ffilab.judge import claims, ledger
from ffilab.paths import BUILD, HAND_IN_FOLDER, LOGS, PAGE_FILE, ROOT, TABLES_FOLDER, swap
from ffilab.press import tables
from ffilab.press.chapters import FACTS, Chapter, record_digests, source_digests
from ffilab.progress import Step, minutes, step
from ffilab.subprocesses import disk_full, everyone, group, tail, without_strays

# A chapter takes one to two minutes in quick budget; these are limits against hangs.
CELL_TIMEOUT_S = {"smoke": 300, "room": 900, "quick": 1800, "full": 7200}
CHAPTER_TIMEOUT_S = {"smoke": 600, "room": 1800, "quick": 3600, "full": 14400}
START_TIMEOUT_S = 120


def execute(
    chapter: Chapter,
    budget: str,
    source: Path | None = None,
    made_from: dict[str, str] | None = None,
    chapter_timeout_s: float | None = None,
    cell_timeout_s: float | None = None,
    earlier: list[str] = (),
) -> Path:
    """Execute a chapter on its own Jupyter kernel, and put it where executed chapters are.

    source: a folder of records to make the page from, instead of measuring.
    earlier: names of the sessions on top of which it measures another.
    made_from: digests of its sources, if they were taken earlier, before the native code was built.
    Raises UserError, naming the cell or the signal, if it fails; then nothing of it is kept,
    and what stood there before is still there.
    """
    name, out = chapter.corner, chapter.executed.parent
    out.parent.mkdir(parents=True, exist_ok=True)
    limit = chapter_timeout_s or CHAPTER_TIMEOUT_S[budget]
    log = LOGS / f"chapter-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    title = f"chapter {name} ({budget})" if source is None else f"chapter {name}, from records"
    with (
        step(title) as bar,
        tempfile.TemporaryDirectory(dir=out.parent.parent) as scratch,
        tempfile.TemporaryDirectory(prefix=temporary(), ignore_cleanup_errors=True) as theirs,
    ):
        made, progress, page, answer = (Path(scratch) / part for part in (name, "progress.json", FACTS, "answer.json"))
        made.mkdir()
        # Before it runs: what changes meanwhile is not what the page was made from.
        made_from = made_from or source_digests(name)
        order = {
            "source": str(chapter.source),
            "target": str(made / chapter.source.name),
            "answer": str(answer),
            "cwd": str(chapter.source.parent),
            "connection": str(Path(theirs) / "kernel.json"),
            "cell_timeout_s": int(cell_timeout_s or CELL_TIMEOUT_S[budget]),
            "start_timeout_s": START_TIMEOUT_S,
        }
        environment = {
            **{key: value for key, value in os.environ.items() if key != FROM},
            **({FROM: str(source)} if source else {}),
            EARLIER: ",".join(earlier),
            "BUDGET": budget,
            ENVIRONMENT: str(progress),
            "PYTHONPATH": str(ROOT),
            "JUPYTER_PATH": str(ROOT / "kernels"),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            "FFILAB_RUN": f"{BUILD}:{secrets.token_hex(8)}",
            # What experiments put into temporary files, and the kernel's connection: a killed run leaves them here, and the
            # next one sweeps them. Not below `_build`, whose path may be too long for a socket's.
            "JUPYTER_RUNTIME_DIR": str(Path(scratch) / "runtime"),
            "TMPDIR": theirs,
            HAND_IN_FOLDER: str(made / ledger.CLAIMS),
            PAGE_FILE: str(page),
            TABLES_FOLDER: str(made / tables.TABLES),
        }
        with (
            without_strays(),
            log.open("w") as sink,
            group(
                [sys.executable, "-m", "ffilab.press.run_notebook", json.dumps(order)],
                # Nothing is written to it: its end tells the run that we are gone.
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=environment,
            ) as process,
        ):
            try:
                code = _wait(process, bar, progress, limit)
            finally:
                # The Jupyter kernel runs in a session of its own: papermill's group does not hold it.
                _end_kernels(environment["FFILAB_RUN"])
        _check(name, made / chapter.source.name, code, limit, answer, log)
        _join_streams(made / chapter.source.name)
        _keep_facts(page, made / FACTS, made_from)
        if chapter.source.is_relative_to(ROOT):
            _check_hand_in(name, made)
        swap(made, out)
    return chapter.executed


def _check_hand_in(name: str, made: Path) -> None:
    """Before the page takes the place of the last one: does it answer for all claims of its corner?"""
    lacking = [
        claim.id
        for claim in claims.all_claims()
        if claim.corner == name and not (made / ledger.CLAIMS / f"{claim.id}.json").exists()
    ]
    if lacking:
        raise UserError(
            f"The chapter {name!r} handed in nothing for claim {', '.join(lacking)}: have its notebook call chapter.verdicts. "
            "Its last page and verdicts stay."
        )


def temporary() -> str:
    """How the names of this clone's temporary folders begin, in the system's folder for them."""
    return f"ffilab-{hashlib.sha256(os.fsencode(BUILD)).hexdigest()[:12]}-"


def sweep() -> None:
    """Take away what a killed run left: its processes, and its temporary folders. Under the folder's lock."""
    _end_kernels(f"{BUILD}:")
    for left in (*BUILD.glob("tmp*"), *Path(tempfile.gettempdir()).glob(f"{temporary()}*")):
        if left.is_dir() and left.lstat().st_uid == os.getuid():
            shutil.rmtree(left, ignore_errors=True)


def _keep_facts(page: Path, target: Path, made_from: dict[str, str]) -> None:
    """Put what the page said of itself beside it, with digests of all that it was made from."""
    if page.exists():
        facts = json.loads(page.read_text())
        target.write_text(json.dumps({**facts, "digests": {**made_from, **record_digests(facts)}}, indent=1))


def _join_streams(path: Path) -> None:
    """Make one output of what a cell printed: in how many pieces it arrives is chance, and a page must not depend on it."""
    notebook = nbformat.read(path, as_version=4)
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
    nbformat.write(notebook, path)


def _wait(process: subprocess.Popen, bar: Step, progress: Path, limit: float) -> int | None:
    """Exit code, or None if the limit came first. Shows the bench's own progress meanwhile."""
    started, share = time.monotonic(), 0.0
    while process.poll() is None:
        elapsed = time.monotonic() - started
        if elapsed > limit:
            return None
        try:
            now = json.loads(progress.read_text())
            # What is left is known of the experiment that runs: where the next one is longer, the bar waits for it.
            share = max(share, elapsed / (elapsed + now["left_s"] + 1))
            bar.update(share, f"{now['title']}, {now['detail']}", now["left_s"])
        except (OSError, json.JSONDecodeError):
            bar.update(share, "starting", seconds_left=None)
        time.sleep(0.3)
    return process.returncode


def _end_kernels(run: str) -> None:
    """Kill what the run left behind: kernels and workers carry its mark in their environment."""
    for process in everyone():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get("FFILAB_RUN", "").startswith(run):
                process.send_signal(signal.SIGKILL)


def _check(name: str, path: Path, code: int | None, limit: float, answer: Path, log: Path) -> None:
    """How the run ended, by the exceptions that nbclient raises; the execution counts of the cells have the last word,
    as papermill marks cells completed after a crash."""
    if code is None:
        raise UserError(f"The chapter {name} was ended after {minutes(limit)}: a cell hangs; its output is in {log}.")
    if code == errno.ENOSPC:
        raise disk_full(path.parent)
    try:
        found = json.loads(answer.read_text())
    except (OSError, json.JSONDecodeError):
        found = {"ended": "failed", "message": tail(log, 1)}
        if code < 0:
            found["message"] = f"the process that ran its cells was ended by {signal.Signals(-code).name}"
    match found["ended"]:
        case "raised":
            raise UserError(
                f"The chapter {name} stopped in cell {found['cell']} with {found['name']}: {found['message']}"
            )
        case "timeout":
            raise UserError(
                f"Cell {found['cell']} of the chapter {name} ran into its time limit and was ended; see {log}."
            )
        case "died":
            raise UserError(
                f"The Jupyter kernel of the chapter {name} died in cell {found['cell']} ({found['how']}); its output is in {log}."
            )
        case "no kernel":
            raise UserError(
                f"The Jupyter kernel of the chapter {name} is not set up: run `python3 ffilab/bootstrap.py kernels`."
            )
        case "failed" if "No space left on device" in found["message"]:
            raise disk_full(path.parent)
        case "failed":
            raise UserError(f"The chapter {name} failed ({found.get('name', '')} {found['message']}); see {log}.")
    cells = nbformat.read(path, as_version=4).cells if path.exists() else []
    unrun = [i for i, c in enumerate(cells, 1) if c.cell_type == "code" and c.source and not c.execution_count]
    if code or not cells or unrun:
        raise UserError(f"The chapter {name} ended without running all its cells ({unrun}); see {log}.")
