"""From the machine's own Python to the book environment, then on to the verb.

Standard library only: it runs before anything is installed. Usage:
`python3 ffilab/bootstrap.py VERB [OPTIONS]`.
"""

import hashlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# Of the environment variables in settings.py the one that is needed before anything else can be imported.
RUN = "FFILAB_RUN"
MINIMUM = (3, 11)
# Verbs that set up interpreters and native code, unless FROM says that nothing is measured.
SETTING_UP = {"book", "chapter", "more", "lab", "test", "test-all", "kernels", "native", "study", "ready"}
# Verbs that run beside others in this folder. All others write to it, one at a time.
READERS = {"doctor", "lab", "compare", "judge", "time", "scale", "--help", "-h"}


class Stop(Exception):
    """Ends the command with one sentence for the reader."""


def lock_folder():
    """Hold the folder's lock until this process, or the one it turns into, ends. Returns its descriptor. Raises
    Stop."""
    import fcntl

    path = ROOT / "_build" / "lock"
    try:
        path.parent.mkdir(exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise Stop(
            f"Cannot write {error.filename} ({error.strerror}): make this folder writable for you, "
            "and move away what stands in the place of _build."
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(handle, 200).decode(errors="replace").strip() or "unknown"
        raise Stop(f"Another make is running in this folder ({holder}): wait for it, or stop it.") from None
    try:
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()}, since {time.strftime('%H:%M:%S')}".encode())
    except OSError as error:
        raise Stop(f"Cannot write {path} ({error.strerror}): free some space on this disk.") from None
    # Survives exec, so the verb itself holds the lock.
    os.set_inheritable(handle, True)
    # The next run knows by it what this one left, should it be killed (subprocesses.end_leftovers).
    os.environ[RUN] = str(ROOT / "_build")
    return handle


def suitable_python():
    """This Python if it is new enough, else one named python3.X on PATH."""
    if sys.version_info >= MINIMUM:
        return sys.executable
    import shutil

    for minor in range(20, MINIMUM[1] - 1, -1):
        python = shutil.which(f"python3.{minor}")
        if python:
            return python
    raise Stop(
        f"This needs Python {MINIMUM[0]}.{MINIMUM[1]} or newer to start with, and python3 is {sys.version.split()[0]}: "
        "install a newer one (`make doctor` names the command)."
    )


def run(command, hint):
    log = ROOT / "_build" / "logs" / "bootstrap.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        process = subprocess.Popen(
            command,
            stdout=sink,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            # It holds the folder's lock too: where we are killed, nobody else works on .venv until it has ended.
            close_fds=False,
        )
        try:
            code = process.wait()
        finally:
            # What it started too: venv has a child that installs pip.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code:
        last = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-1:]
        if "No space left" in "".join(last):
            hint = "free some space on this disk"
        raise Stop(f"`{' '.join(map(str, command[:4]))} …` failed ({''.join(last).strip()}): {hint}.")


LOCK = ROOT / "requirements" / "book.txt"
# Of a folder that `make ready` wrote: what kind of machine it serves.
KIND = "kind.json"


def kind():
    """What another machine must have in common with this one to use what is ready here. Of Python the whole version:
    the lock asks for other packages from some of its last numbers on."""
    return {"system": platform.system(), "processor": platform.machine(), "python3": platform.python_version()}


def take_from(folder):
    """Let pip, uv and cargo take everything from a folder that `make ready` wrote, and ask no network. Raises Stop."""
    folder = Path(folder).resolve()
    try:
        made_on = dict(json.loads((folder / KIND).read_text()))
        sums = [line.split("  ", 1) for line in (folder / "SHA256SUMS").read_text().splitlines()]
        damaged = [name for digest, name in sums if hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest]
    except (OSError, TypeError, ValueError) as error:
        raise Stop(f"FROM is {folder}, which is no folder that `make ready` wrote ({error}): copy it again.") from None
    if damaged:
        raise Stop(f"{folder / damaged[0]} is not as `make ready` wrote it: copy the folder again.")
    if made_on != kind():
        made, here = (" ".join(map(str, facts.values())) for facts in (made_on, kind()))
        raise Stop(
            f"{folder} serves machines with {made} (system, processor, python3), and this one has {here}: "
            "run `make ready` without FROM, with a connection."
        )
    os.environ["FROM"] = str(folder)
    # As an address: pip takes a path with a space for two.
    wheels = (folder / "wheels").as_uri()
    os.environ.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=wheels, UV_FIND_LINKS=wheels, UV_OFFLINE="1")
    os.environ["CARGO_NET_OFFLINE"] = "true"


def is_ready():
    """Is everything in the lock installed in `.venv`, and does its Python start?"""
    return stamp().exists() and starts(PYTHON)


def starts(python):
    try:
        return subprocess.run([python, "-I", "-c", ""], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def prepare():
    """Make or renew `.venv` from the hashed lock; a no-op if it has not changed."""
    if is_ready():
        return
    offline = "check the connection, then run the same command again"
    if os.environ.get("UV_OFFLINE"):
        offline = "the folder that FROM names was written for another state of the book: take the clone that lies in it"
    uv = VENV / "bin" / "uv"
    try:
        sys.stderr.write("  Preparing the book environment in .venv (about a minute, once)\n")
        run([suitable_python(), "-m", "venv", "--clear", str(VENV)], "read _build/logs/bootstrap.log")
        # pip installs uv, and uv the rest, in a fraction of the time.
        only_uv = VENV / "uv.txt"
        only_uv.write_text(re.search(r"^uv==.*(\n .*)*", LOCK.read_text(), re.MULTILINE).group())
        run([PYTHON, "-m", "pip", "install", "-q", "--require-hashes", "-r", only_uv], offline)
        # Where PYTHONDONTWRITEBYTECODE is set, every start would compile the libraries anew.
        compiled = ["--compile-bytecode", "--python", PYTHON]
        run([uv, "pip", "install", "--no-config", *compiled, "--require-hashes", "-r", LOCK], offline)
        stamp().touch()
    except OSError as error:
        raise Stop(
            f"Cannot write {error.filename or VENV} ({error.strerror}): free some space or permissions."
        ) from None


def stamp():
    """Return the path of the file that marks a complete installation of this lock."""
    return VENV / f"ready-book-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]}"


def check(kernels, budget):
    """Raise Stop if the machine lacks what the work needs: everything that is lacking, with one command for it."""
    import doctor

    if refusal := doctor.refusal(kernels, budget):
        raise Stop(refusal)


def main():
    verb, *rest = sys.argv[1:] or ["--help"]
    try:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        # uv gives up compiling a file after a minute: a slow or crowded machine, or a laptop that was closed meanwhile.
        os.environ.setdefault("UV_COMPILE_BYTECODE_TIMEOUT", "0")
        if verb == "doctor":
            import doctor

            # Quietly, where its output goes to `head`.
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            sys.argv = ["doctor.py", *rest]
            sys.exit(doctor.main())
        source = os.environ.get("FROM", "")
        if verb in SETTING_UP and (verb == "ready" or not source):
            check(os.environ.get("KERNELS", ""), "room" if verb == "lab" else os.environ.get("BUDGET", ""))
        if verb == "ready" and source:
            take_from(source)
        if verb not in READERS:
            lock_folder()
            prepare()
        elif not is_ready():
            # `.venv` may be in use by a run that writes, or another one may be making it.
            handle = lock_folder()
            prepare()
            os.close(handle)
            del os.environ[RUN]
        # Kept while the next Python starts, which would show them as a traceback: __main__.py lets them through.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    except Stop as stop:
        sys.exit(f"ffilab: {stop}")
    except KeyboardInterrupt:
        sys.exit(130)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(ROOT / "kernels")}
    os.execve(PYTHON, [str(PYTHON), "-m", "ffilab", verb, *rest], environment)


if __name__ == "__main__":
    main()
