"""Run one notebook with papermill, and say in JSON how it ended: `python -m ffilab.press.run_notebook ORDER`.

ORDER is a JSON object: source, target, answer, cwd, connection, cell_timeout_s, start_timeout_s. The file `answer` gets a
JSON object: `ended` (ok, raised, timeout, died, no kernel, failed), `cell` (its number), `how` (a signal or an exit code),
`name`, `message`; where the disk has no space for it, the exit code is ENOSPC. When its standard input ends, whoever started it
is gone: then it ends everything that it started, and itself.
"""

import json
import os
import signal

# It has a session of its own, so that Ctrl-C reaches whoever started it. Who sends SIGINT to this process means its end, and in
# the middle of an import it might be lost.
if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import subprocess
import sys
import threading
import time
from pathlib import Path

import papermill
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from ffilab.subprocesses import adopt_orphans, end_descendants

# How often a Jupyter kernel is started that exits before its first cell.
STARTS = 3
# What a path of a Unix socket may hold: 108 bytes on Linux, 104 on macOS and the BSDs (unix(7), unix(4)).
SOCKET_PATH_BYTES = 104
# The number of the cell that runs, how the Jupyter kernel ended, and the exit code of one that did not start.
now = {"cell": 0, "how": "it did not say how", "start": None}


def follow(client: type) -> None:
    """Note which cell is run, and what became of the kernel's process."""
    execute_cell, start_client = client.execute_cell, client.start_new_kernel_client

    def started(self):
        process, now["start"] = self.km.provisioner.process, None
        try:
            return start_client(self)
        except RuntimeError:
            now["start"] = process.poll()
            raise

    def noted(self, cell, index, *arguments, **further):
        now["cell"] = index + 1
        try:
            return execute_cell(self, cell, index, *arguments, **further)
        except DeadKernelError:
            code = self.km.provisioner.process.returncode if self.km and self.km.provisioner.process else None
            if code is not None:
                now["how"] = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise

    client.execute_cell, client.start_new_kernel_client = noted, started


def connected(path: str) -> Config:
    """How to talk to the Jupyter kernel: by Unix sockets beside its connection file, where their paths are short enough.

    jupyter_client looks for free ports and closes them again before the kernel opens them: another program, or another
    kernel, may take one in between, and the kernel exits or is never heard. Sockets in a folder of our own are nobody else's.
    """
    longest = f"{path.removesuffix('.json')}-ipc-99"
    transport = "ipc" if len(os.fsencode(longest)) < SOCKET_PATH_BYTES else "tcp"
    return Config({"KernelManager": {"transport": transport, "connection_file": path}})


def run(order: dict) -> dict:
    follow(PapermillNotebookClient)
    try:
        execute(order)
    except PapermillExecutionError as error:
        return {"ended": "raised", "cell": error.cell_index + 1, "name": error.ename, "message": error.evalue}
    except CellTimeoutError as error:
        return {"ended": "timeout", "message": str(error).splitlines()[0], **now}
    except DeadKernelError as error:
        return {"ended": "died", "message": str(error), **now}
    except NoSuchKernel as error:
        return {"ended": "no kernel", "message": str(error)}
    except Exception as error:
        return {"ended": "failed", "name": type(error).__name__, "message": str(error)[-300:]}
    return {"ended": "ok"}


def execute(order: dict, start: int = 1) -> None:
    """Once more from the beginning if the Jupyter kernel exits before the first cell; not if it is killed."""
    try:
        papermill.execute_notebook(
            order["source"],
            order["target"],
            cwd=order["cwd"],
            progress_bar=False,
            config=connected(order["connection"]),
            # As nbclient does for a kernel that is named python3: its cells have no place in the reader's own history.
            extra_arguments=["--HistoryManager.hist_file=:memory:"],
            start_timeout=order["start_timeout_s"],
            execution_timeout=order["cell_timeout_s"],
        )
    except RuntimeError:
        if (now["start"] or 0) <= 0 or start == STARTS:
            raise
        print(f"The Jupyter kernel died while it started, for the {start}. time: once more.", flush=True)
        execute(order, start + 1)


def end_when_alone() -> None:
    while os.read(0, 1):
        pass
    # The other thread may just be starting a kernel, behind our look: it starts no more, and we look twice.
    subprocess.Popen.__init__ = lambda *_, **__: threading.Event().wait()
    end_descendants()
    time.sleep(0.2)
    end_descendants()
    os._exit(1)


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    adopt_orphans()
    threading.Thread(target=end_when_alone, daemon=True).start()
    try:
        Path(order["answer"]).write_text(json.dumps(run(order)))
    except OSError as error:
        sys.exit(error.errno)
    finally:
        end_descendants()
