"""Run one notebook with papermill, and write in JSON how it ended: `python -m ffilab.page.run_notebook ORDER`.

ORDER is a JSON object: source, target, answer, cwd, connection, kernel, cell_timeout_s, start_timeout_s. The file
`answer` gets a JSON object: `ended` (ok, raised, timeout, died, no kernel, failed), `cell` (its number), `how` (a
signal or an exit code), `name`, `message`. Where the disk has no space for it, the exit code is ENOSPC.
"""

import ctypes
import json
import os
import signal
import sys
import traceback
from pathlib import Path

import click
import papermill
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from ffilab.page.cells import YOURS

# What a path of a Unix socket may hold: 108 bytes on Linux, 104 on macOS and the BSDs (unix(7), unix(4)).
SOCKET_PATH_BYTES = 104
PR_SET_PDEATHSIG = 1
# The number of the cell that runs, and how the Jupyter kernel ended.
now = {"cell": 0, "how": "it did not say how"}


def follow(client: type) -> None:
    """Note which cell is run, and what became of the kernel's process."""
    execute_cell = client.execute_cell

    def noted(self, cell, index, *arguments, **options):
        now["cell"] = index + 1
        if YOURS in cell.metadata.get("tags", []):
            return cell
        try:
            return execute_cell(self, cell, index, *arguments, **options)
        except DeadKernelError:
            code = self.km.provisioner.process.returncode if self.km and self.km.provisioner.process else None
            if code is not None:
                now["how"] = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise

    client.execute_cell = noted


def connected(path: str) -> Config:
    """Connect to the Jupyter kernel by Unix sockets beside its connection file, where their paths are short enough.

    jupyter_client looks for free ports, and another program may take one before the kernel opens it.
    """
    longest = f"{path.removesuffix('.json')}-ipc-99"
    transport = "ipc" if len(os.fsencode(longest)) < SOCKET_PATH_BYTES else "tcp"
    return Config({"KernelManager": {"transport": transport, "connection_file": path}})


def run(order: dict) -> dict:
    follow(PapermillNotebookClient)
    try:
        papermill.execute_notebook(
            order["source"],
            order["target"],
            cwd=order["cwd"],
            kernel_name=order["kernel"],
            progress_bar=False,
            config=connected(order["connection"]),
            # As nbclient does for a kernel that is named python3: its cells have no place in the reader's own history.
            extra_arguments=["--HistoryManager.hist_file=:memory:"],
            start_timeout=order["start_timeout_s"],
            execution_timeout=order["cell_timeout_s"],
        )
    except PapermillExecutionError as error:
        print(f"Cell {error.cell_index + 1}:", click.unstyle("\n".join(error.traceback)), sep="\n", flush=True)
        return {"ended": "raised", "cell": error.cell_index + 1, "name": error.ename, "message": error.evalue}
    except CellTimeoutError as error:
        return {"ended": "timeout", "message": str(error).splitlines()[0], **now}
    except DeadKernelError as error:
        return {"ended": "died", "message": str(error), **now}
    except NoSuchKernel as error:
        return {"ended": "no kernel", "message": str(error)}
    except Exception as error:
        traceback.print_exc()
        return {"ended": "failed", "name": type(error).__name__, "message": str(error)[-300:]}
    return {"ended": "ok"}


if __name__ == "__main__":
    if hasattr(ctypes.CDLL(None), "prctl"):
        # It is killed when its parent ends. The Jupyter kernel ends a second later: it looks for this process.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    order = json.loads(sys.argv[1])
    try:
        Path(order["answer"]).write_text(json.dumps(run(order)))
    except OSError as error:
        sys.exit(error.errno)
