"""A cell that fails in JupyterLab says so in one sentence.

Without the libraries that chapters measure with: a kernel starts with it (kernel_start.py).
"""

import ast
import json
import sys
import traceback

from IPython.core.getipython import get_ipython

from ffilab.run.errors import UserError
from ffilab.run.paths import NOTEBOOKS

AGAIN = "Correct it, and run the cell again."
ABOVE = "run the cells above this one first (menu Run, Run All Above Selected Cell)"
STOPPED = "The cell was interrupted: what it had begun is dropped, what ran before it is still there. Run it again."


def cell_now() -> str:
    """The source of the cell that runs."""
    shell = get_ipython()
    return shell.user_ns["In"][-1] if shell and shell.user_ns.get("In") else ""


def forgive(chapter: str) -> None:
    """From here on a cell that fails says so in one sentence, without the lines of the book's own code."""

    def tell(shell, kind, error, trace, tb_offset=None):
        sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
        shell._showtraceback(kind, error, [in_a_sentence(chapter, error, trace)])

    if shell := get_ipython():
        shell.set_custom_exc((Exception, KeyboardInterrupt), tell)
        # What is no Python at all, such as a tab among spaces, is told before there is a cell to run.
        shell.showsyntaxerror = lambda *_, **__: tell(shell, *shell._get_exc_info())


def in_a_sentence(chapter: str, error: BaseException, trace) -> str:
    """What went wrong, in which line of the cell, and what to do."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return STOPPED
    told = "".join(traceback.TracebackException(type(error), error, trace).format_exception_only()).strip().splitlines()
    # Of what is no Python the place stands above it.
    said = told[-1 if isinstance(error, SyntaxError) else 0]
    if "incomplete input" in said:
        said = "SyntaxError: a bracket or a text that is opened here is never closed."
    name = getattr(error, "name", None)
    if isinstance(error, NameError) and name in names_of(chapter):
        return f"{name} is not there yet: {ABOVE}."
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename.startswith("<ipython-input")]
    frames = frames or [frame for frame in traceback.extract_tb(trace) if "ipykernel_" in frame.filename]
    at, line = (frames[-1].lineno, frames[-1].line) if frames else (0, "")
    if isinstance(error, SyntaxError) and error.lineno and not frames:
        at, line = error.lineno, error.text or dict(enumerate(cell_now().splitlines(), 1)).get(error.lineno, "")
    where = f"Line {at} of this cell, `{line.strip()}`: " if line else ""
    hint = f"If you changed nothing, {ABOVE}." if isinstance(error, KeyError) else AGAIN
    return f"{where}{said}{'' if said.endswith(('.', '?', '!')) else '.'} {hint} (%tb shows where it came from.)"


def names_of(chapter: str) -> set[str]:
    """All names that the cells of a chapter define."""
    path = NOTEBOOKS / chapter / f"{chapter}.ipynb"
    # A notebook of the reader's own is none of ours.
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"] if path.exists() else []
    found: set[str] = set()
    for cell in cells:
        try:
            nodes = list(ast.walk(ast.parse("".join(cell["source"])))) if cell["cell_type"] == "code" else []
        except SyntaxError:
            # What the reader is about to correct.
            continue
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return found
