"""Run one notebook with papermill, and say in JSON how it ended: `python -m ffilab.press.run_notebook ORDER`.

ORDER is a JSON object: source, target, answer, cwd, cell_timeout_s, start_timeout_s. The file `answer` gets a JSON object:
`ended` (ok, raised, timeout, died, no kernel, failed), `cell` (its number), `name`, `message`.
"""

import json
import sys
from pathlib import Path

import papermill
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError


def run(order: dict) -> dict:
    try:
        papermill.execute_notebook(
            order["source"],
            order["target"],
            cwd=order["cwd"],
            progress_bar=False,
            start_timeout=order["start_timeout_s"],
            execution_timeout=order["cell_timeout_s"],
        )
    except PapermillExecutionError as error:
        return {"ended": "raised", "cell": error.cell_index + 1, "name": error.ename, "message": error.evalue}
    except CellTimeoutError as error:
        return {"ended": "timeout", "message": str(error).splitlines()[0]}
    except DeadKernelError as error:
        return {"ended": "died", "message": str(error)}
    except NoSuchKernel as error:
        return {"ended": "no kernel", "message": str(error)}
    except Exception as error:
        return {"ended": "failed", "name": type(error).__name__, "message": str(error)[-300:]}
    return {"ended": "ok"}


if __name__ == "__main__":
    order = json.loads(sys.argv[1])
    Path(order["answer"]).write_text(json.dumps(run(order)))
