"""Children that may hang or die: started, given a limit, ended by their group, and told as rows.

A child writes one line to its standard output when it has come to the point; only from then on does the limit count, so
that a slow start is no hang.  Standard library only: the workers of every interpreter import it.  POSIX.
"""

import ctypes
import os
import resource
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence

START_LIMIT_S = 60.0  # to come to the point: imports and a fork server's first start, with others beside it
LOOK_S = 0.002  # between two looks at the children
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Child:
    """One running child: its process, what it said, and when it came to the point."""

    def __init__(self, command: Sequence[str], environment: dict[str, str] | None):
        self.said, self.complained = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed in `row`
        self.process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.complained,
            env={**os.environ, **(environment or {})}, start_new_session=True,
        )  # fmt: skip
        self.started, self.ready = time.monotonic(), 0.0

    def look(self, limit_s: float, when_ready: Callable | None) -> str:
        """How it ended, or nothing while it runs.  What has ended is seen before a limit is."""
        code = self.process.poll()
        now = time.monotonic()
        if not self.ready and os.fstat(self.said.fileno()).st_size:
            self.ready = now
            if when_ready and code is None:
                when_ready(self.process.pid)
        if code is not None:
            if code < 0:
                return f"killed by {signal.Signals(-code).name}"
            return "ends" if code == 0 else f"exits with {code}"
        if self.ready:
            return "hangs" if now - self.ready > limit_s else ""
        return "not at the point" if now - self.started > START_LIMIT_S else ""

    def row(self, outcome: str) -> dict:
        """``outcome``; ``pid``; ``ms`` from its report to its end; the lines it said; the last lines it wrote to
        standard error."""
        ended = time.monotonic()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # and whatever it started
        except ProcessLookupError:
            pass
        self.process.wait()
        try:
            while os.waitpid(-self.process.pid, 0):
                pass
        except ChildProcessError:
            pass
        texts = []
        for file in (self.said, self.complained):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        return {
            "outcome": outcome if self.ready or outcome != "ends" else "not at the point",
            "pid": self.process.pid,
            "ms": 1e3 * (ended - self.ready) if self.ready else None,
            "said": texts[0].splitlines(),
            "message": texts[1][-2000:],
        }


def scene(folder: str, code: str, factors: dict) -> list[str]:
    """The command of a child: source that defines ``scene``, called with these factors.  It imports from the modules
    built in ``folder``."""
    place = os.path.join(folder, sysconfig.get_config_var("SOABI"))
    call = f"import sys; sys.path.insert(0, {place!r})\n{code}\nscene(**{factors!r})"
    return [sys.executable, "-I", "-S", "-c", call]


def adopt(orphans: bool) -> None:
    """Whether what a child leaves behind, such as a fork server, is ours to wait for: then its time is not that of
    strangers.  Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, int(orphans), 0, 0, 0)


def children(
    commands: Sequence[Sequence[str]],
    limit_s: float,
    at_once: int = 10,
    environment: dict[str, str] | None = None,
    when_ready: Callable[[int], None] | None = None,
) -> list[dict]:
    """One row for each command, in their order.

    ``outcome`` is "ends" (status 0), "hangs" (``limit_s`` seconds after its first line), "killed by SIGSEGV" and the
    like, "exits with N", or "not at the point" (it never said a line: no result).  ``when_ready(pid)`` is called at the
    first line, to send a signal, say.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # a crash is a result here: no core files
    rows: list[dict | None] = [None] * len(commands)
    waiting, running = list(enumerate(commands)), {}
    adopt(True)
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                index, command = waiting.pop(0)
                running[index] = Child(command, environment)
            for index, child in list(running.items()):
                if outcome := child.look(limit_s, when_ready):
                    rows[index] = running.pop(index).row(outcome)
            time.sleep(LOOK_S)
    finally:
        for child in running.values():
            child.row("")
        adopt(False)
    return rows
