"""What a machine of a fleet does: unpack the clone, run the verb, hand back the pack.

Dask carries this file there (`Client.upload_file`), where it is imported alone: it needs the standard library and
`distributed`, on any Python that the book starts with.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

# A file that Dask brings beside this one.
BUNDLE = "clone.bundle"
# The topic of what a machine says while it works.
TOPIC = "fleet"
# A command that ends with its worker, also with one that is killed: then nobody holds the other end of the input.
# It is asked politely first, as a verb takes its own children along.
GUARDED = """
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
{ cat <&3; kill -TERM $child; sleep 10; kill -KILL $child; } >/dev/null 2>&1 &
guard=$!
wait $child; code=$?
kill $guard
exit $code
"""


class Failed(Exception):
    """Why this machine has no pack, in one sentence."""


def measured(name: str, called: str, commit: str, verb: list[str], settings: dict[str, str]) -> tuple[bytes, str]:
    """Run a verb of the clone at this commit. Returns what `make pack` makes of its records, and what failed of it.
    Raises Failed.

    name: of the machine, in what it says. settings: environment variables, such as BUDGET.
    """
    import dask  # pyright: ignore[reportMissingImports]
    from distributed import get_worker  # pyright: ignore[reportMissingImports]

    worker = get_worker()
    # What Dask sets for its own processes changes how what is measured allocates.
    own = {"PYTHONHASHSEED", *dask.config.get("distributed.nanny.pre-spawn-environ")}
    kept = {key: value for key, value in os.environ.items() if key not in own and not key.startswith("DASK_")}
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ffi-hidden-corners" / "fleet"
    bundle = Path(worker.local_directory) / BUNDLE

    def say(line: str) -> None:
        worker.log_event(TOPIC, {"machine": name, "line": line})

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                # Such as what a killed worker left behind, until it has ended.
                say("waits for what is running in its folder")
                fcntl.flock(lock, fcntl.LOCK_EX)
            return Work(folder / "book", {**kept, **settings}, say, lock.fileno()).pack(bundle, commit, verb, called)
    except OSError as error:
        raise Failed(f"{error.filename or folder}: {error.strerror}") from None


class Work:
    """The work in one clone."""

    def __init__(self, clone: Path, environment: dict[str, str], say: Callable[[str], None], lock: int):
        self.clone, self.environment, self.say, self.lock = clone, environment, say, lock

    def pack(self, bundle: Path, commit: str, verb: list[str], called: str) -> tuple[bytes, str]:
        if not (self.clone / ".git").exists():
            self.run("git", "init", "-q", str(self.clone), folder=self.clone.parent)
        self.run("git", "fetch", "-q", str(bundle), "HEAD")
        self.run("git", "reset", "-q", "--hard", commit)
        # A pack holds this run, and nothing of an earlier one.
        for made in ("records", "packs"):
            shutil.rmtree(self.clone / "_build" / made, ignore_errors=True)
        failed = ""
        try:
            self.run("python3", "ffilab/bootstrap.py", *verb)
        except Failed as why:
            # A chapter that fails costs itself alone.
            failed = str(why)
        try:
            self.run("python3", "ffilab/bootstrap.py", "pack", *(["--called", called] if called else []))
        except Failed as why:
            failed = failed or str(why)
        for path in (self.clone / "_build" / "packs").glob("*.tar.gz"):
            return path.read_bytes(), failed
        raise Failed(failed or "it has no pack")

    def run(self, *words: str, folder: Path | None = None) -> None:
        """Run a command to its end, and say each of its lines. Raises Failed with its last words."""
        full, last = False, ""
        process = subprocess.Popen(
            ["/bin/sh", "-c", GUARDED, "guarded", *words],
            cwd=folder or self.clone,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=[self.lock],
        )
        # Leaving closes the input, which ends what is left.
        with process:
            for line in filter(None, map(str.strip, process.stdout or ())):
                full, last = full or "No space left" in line, line
                self.say(line)
        if process.returncode and full:
            raise Failed(f"the disk that holds {self.clone} is full: free some space there")
        if process.returncode:
            raise Failed(last.removeprefix("ffilab: ") or f"`{' '.join(words[:3])}` ended with {process.returncode}")
