"""Child processes in a session of their own, of which nothing is left when the work is done."""

import errno
import os
import signal
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from ffilab.run.errors import UserError
from ffilab.run.paths import BUILD
from ffilab.run.settings import RUN

GRACE_S = 3
# A file where a folder should be, or the other way round; links in a circle; a name that is too long.
IN_THE_WAY = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG)
# Limits of the system, and what to do about them.
LIMITS = {
    errno.EMFILE: "too many open files: raise the limit (`ulimit -n`)",
    errno.ENFILE: "too many open files on the whole machine: end what else is running",
    errno.EAGAIN: "too many processes: end some, or raise the limit (`ulimit -u`, or the container's)",
    errno.ENOMEM: "not enough memory: end what else is running",
}
# What others say of them.
SAYS = {
    errno.EMFILE: ("Too many open files",),
    errno.EAGAIN: ("can't start new thread", "Resource temporarily unavailable (src/thread.cpp"),
}


def kill_group(process: subprocess.Popen) -> None:
    """End a child that has a session of its own, and all of its process group; a polite signal first. Never raises."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        # Not only while the leader runs: one that has ended may have left children.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, sent)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_S)


@contextmanager
def group(command, **options):
    """Start a command in a session of its own; on the way out nothing of its process group is left running."""
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        kill_group(process)


def end_leftovers() -> None:
    """Kill what earlier work in this folder left behind: its processes have the folder in their environment. So has
    this one if it holds the folder's lock; if not, others may be at work here, and nothing is killed."""
    if os.environ.get(RUN) != str(BUILD):
        return
    # Not psutil.process_iter: it remembers processes, also where another one has got the number since.
    for pid in psutil.pids():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            if pid != os.getpid() and process.environ().get(RUN) == str(BUILD):
                process.kill()


def logged(command, log: Path, *, on_line=None, **options) -> int:
    """Run a command, append its output to `log`, hand each line to `on_line`; return its exit code.

    options: of Popen. Raises UserError when the disk is full.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    full = False
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
    with (
        # By lines: the log of a run that still works, or was killed, then holds its last words.
        log.open("a", buffering=1, encoding="utf-8") as sink,
        group(command, text=True, errors="replace", **output, **options) as process,
    ):
        for line in process.stdout:
            sink.write(line)
            full = full or "No space left on device" in line
            if on_line:
                on_line(line)
        code = process.wait()
    if code and full:
        raise disk_full(log)
    return code


def finished(command: list[str], what: str, timeout_s: float, lines: str | None = None, **options) -> None:
    """Run a tool to its end; it reads `lines`. Raises UserError, naming `what` it was, if it fails or does not end.

    options: of Popen.
    """
    pipes = {"stdin": subprocess.DEVNULL if lines is None else subprocess.PIPE, "stdout": subprocess.DEVNULL}
    with group(command, text=True, stderr=subprocess.PIPE, **pipes, **options) as process:
        try:
            _, err = process.communicate(lines, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise UserError(f"{what} did not finish within {timeout_s} s.") from None
    if process.returncode:
        raise UserError(f"{what} failed: {err.strip()[-200:]}")


def without_make() -> dict[str, str]:
    """Our environment without what a make that started us says to its own."""
    return {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}


def measured() -> dict[str, str]:
    """The environment of what is measured: ours, without what says how a Python works, and without colours in what it
    raises (a Jupyter kernel asks for them)."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FORCE_COLOR"))} | {"NO_COLOR": "1"}


def disk_full(path) -> UserError:
    return UserError(f"The disk that holds {path} is full: free some space there and run the same command again.")


def refused(error: OSError) -> UserError | None:
    """Return the sentence for the reader where a limit of the system was reached; None if this is another error."""
    return at_limit(LIMITS[error.errno]) if error.errno in LIMITS else None


def reached(log: str) -> UserError | None:
    """Return the sentence for the reader where the log of a process names a limit of the system; None if it names
    none."""
    for number, limit in LIMITS.items():
        if any(text in log for text in (f"[Errno {number}]", *SAYS.get(number, ()))):
            return at_limit(limit)
    return None


def at_limit(limit: str) -> UserError:
    return UserError(f"A limit of the system was reached, {limit}, and run the same command again.")


def led_by(path) -> str:
    """The environment variable of the reader that put a folder of ours where it is; empty if none did."""
    home = os.environ.get("HOME")
    folders = {name: os.environ.get(name) for name in ("XDG_CACHE_HOME", "TMPDIR")} | {
        "HOME": home and f"{home}/.cache"
    }
    if not isinstance(path, str | Path):
        return ""
    # Of folders that cannot be made, the first one above is named.
    for name, folder in folders.items():
        if folder and (Path(path).is_relative_to(folder) or Path(folder).is_relative_to(path)):
            return name
    return ""


@contextmanager
def explain_os_errors(what: str):
    """Turn a full disk, a folder that cannot be used or a limit of the system into a sentence for the reader."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(error.filename or what) from None
        if variable := led_by(error.filename):
            raise UserError(
                f"{error.filename} cannot be used ({error.strerror}): point {variable} to a folder that you can write."
            ) from None
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise UserError(f"No permission to write {error.filename or what}: change its permissions.") from None
        if error.errno in IN_THE_WAY:
            raise UserError(
                f"{error.filename or what} cannot be used ({error.strerror}): move away what stands in its place."
            ) from None
        if sentence := refused(error):
            raise sentence from None
        raise


def tail(log: Path, lines: int = 3) -> str:
    """The last non-empty lines of a log, joined for a message."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return " | ".join([line.strip() for line in text.splitlines() if line.strip()][-lines:])
