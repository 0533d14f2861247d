"""Child processes that end when we do: own process group, killed whole."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from ffilab.bootstrap import lock, watcher_of
from ffilab.errors import UserError

GRACE_S = 3
# A file where a folder should be, or the other way round; links in a circle; a name that is too long.
IN_THE_WAY = (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG)
# What a process is refused by a limit of the system, and what to do.
LIMITS = {
    errno.EMFILE: "too many open files: raise the limit (`ulimit -n`)",
    errno.ENFILE: "too many open files on the whole machine: end what else is running",
    errno.EAGAIN: "too many processes: end some, or raise the limit (`ulimit -u`, or the container's)",
    errno.ENOMEM: "not enough memory: end what else is running",
}

# What `group` has running, so that one thread can end the children of another.
_running: set[subprocess.Popen] = set()
_guard = threading.Lock()
_ending = threading.Event()


class Ended(Exception):
    """The work of this thread was ended from another one."""


def end_all() -> None:
    """End every child of every thread, and let no other start until `go_on`: their threads get Ended."""
    with _guard:
        _ending.set()
        doomed = list(_running)
    for process in doomed:
        kill_group(process)


def go_on() -> None:
    """Children may start again."""
    _ending.clear()


def kill_group(process: subprocess.Popen) -> None:
    """End a child and everything that it started; a polite signal first. Never raises."""
    for sig in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sig)
        except (ProcessLookupError, PermissionError):
            pass
        try:
            process.wait(timeout=GRACE_S)
            # The leader is gone; sweep up what ignored the polite signal, and see it out: a dying process still runs.
            os.killpg(process.pid, signal.SIGKILL)
            _wait_for_members(process.pid)
            return
        except subprocess.TimeoutExpired:
            continue
        except (ProcessLookupError, PermissionError):
            return


def _wait_for_members(group_id: int) -> None:
    """Wait until every process of a group that was sent SIGKILL is gone, or for GRACE_S."""
    deadline = time.monotonic() + GRACE_S
    while time.monotonic() < deadline and any(_is_running_in(group_id, pid) for pid in psutil.pids()):
        time.sleep(0.005)


def _is_running_in(group_id: int, pid: int) -> bool:
    try:
        # An orphan that nobody reaps stays in its group as a zombie; it runs no more.
        return os.getpgid(pid) == group_id and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, PermissionError, psutil.Error):
        return False


def everyone() -> list[psutil.Process]:
    """All processes of this machine, looked at anew. `psutil.process_iter` remembers them, and what it remembers of one that
    ended refuses to signal another one that was given its number."""
    found = []
    for number in psutil.pids():
        with suppress(psutil.Error):
            found.append(psutil.Process(number))
    return found


@contextmanager
def _interrupts_kept():
    """Yields a list to which Ctrl-C is added meanwhile: in the middle of a start it would leave a child that nobody knows."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    kept = [one for one, handler in before.items() if handler is signal.default_int_handler]
    for one in kept:
        signal.signal(one, lambda number, frame: came.append(number))
    try:
        yield came
    finally:
        for one in kept:
            signal.signal(one, before[one])


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that `end_descendants` finds it: in another session and
    with an empty environment too. Linux only; elsewhere such a child belongs to init."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


@contextmanager
def without_strays():
    """On the way out every descendant that was started meanwhile is ended, whatever session or parent it has."""
    adopt_orphans()
    ours = descendants()
    try:
        yield
    finally:
        end_descendants(but=ours)


def descendants() -> list[psutil.Process]:
    """All processes that this one started, at any depth."""
    return psutil.Process().children(recursive=True)


def _strays() -> list[psutil.Process]:
    """All descendants that belong to no group that runs."""
    with _guard:
        known = {process.pid for process in _running}
        found = []
        for child in psutil.Process().children():
            if child.pid not in known:
                with suppress(psutil.Error):
                    found += [child, *child.children(recursive=True)]
        return found


def end_descendants(but: list[psutil.Process] = ()) -> None:
    """Kill all descendants `but` those that were there before and those of groups that still run, in another thread, until
    none is left, or for GRACE_S: one may just start another."""
    deadline = time.monotonic() + GRACE_S
    while (found := [one for one in _strays() if one not in but]) and time.monotonic() < deadline:
        for one in found:
            with suppress(psutil.Error):
                one.kill()
        psutil.wait_procs(found, timeout=0.2)


@contextmanager
def group(command, **options):
    """Popen in a process group of its own; on the way out nothing of it is left running. Raises Ended after `end_all`.

    pass_fds: what it gets besides the folder's lock.
    """
    pass_fds = (*lock(), *options.pop("pass_fds", ()))
    with _guard, _interrupts_kept() as came:
        if _ending.is_set():
            raise Ended
        process = subprocess.Popen(command, start_new_session=True, pass_fds=pass_fds, **options)
        _running.add(process)
    try:
        if came:
            raise KeyboardInterrupt
        yield process
    finally:
        # Not only if it still runs: a finished leader may have left children behind.
        kill_group(process)
        _running.discard(process)
    if _ending.is_set():
        raise Ended


@contextmanager
def watched(process: subprocess.Popen, pass_fds: tuple[int, ...]):
    """Meanwhile, the group of a process ends with us, even by SIGKILL, and the descriptors stay open until it has."""
    command, quiet = watcher_of(process.pid)
    with group(command, pass_fds=pass_fds, **quiet) as watcher, watcher.stdin:
        yield


def logged(command, log: Path, *, on_line=None, pass_fds: tuple[int, ...] = (), **options) -> int:
    """Run a command, append its output to `log`, hand each line to `on_line`; return its exit code. It ends with us, even by
    SIGKILL.

    pass_fds: descriptors that stay open until it has ended. Raises UserError when the disk is full.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    full = False
    with (
        # By lines: who reads the log of a run that is still going, or was killed, sees what it last said.
        log.open("a", buffering=1, encoding="utf-8") as sink,
        group(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            pass_fds=pass_fds,
            **options,
        ) as process,
        watched(process, pass_fds),
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


def disk_full(path) -> UserError:
    return UserError(f"The disk that holds {path} is full: free some space there and run the same command again.")


def refused(error: OSError) -> UserError | None:
    """The sentence for the reader where a limit of the system was reached; None if this is another error."""
    what = LIMITS.get(error.errno)
    return UserError(f"A limit of the system was reached, {what}, and run the same command again.") if what else None


@contextmanager
def explain_os_errors(what: str):
    """Turn a full disk, a forbidden folder or a limit of the system into a sentence for the reader."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(error.filename or what) from None
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            raise UserError(f"No permission to write {error.filename or what}: make it writable for you.") from None
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
